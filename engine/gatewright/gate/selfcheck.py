"""The program's own test of its promise: for every agent, tool and operation, three sets must agree.

*Listed*: named in the schemas that the model sees. *Valid*: the operation field of those schemas accepts it. *Passed*:
the stages lookup and operation let a call of it through. Each set is found without the others and without the policy.
The check also tries a call that fits the whole schema and every constraint, and for each constraint and each checked
format a call that only this one denies; the report lists the cases without such a call.

A result stays valid while the compiled tool and its listing are the same objects, so an edit costs only the tools that
it affects.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import suppress
from operator import is_
from typing import Any, cast

from gatewright.base.errors import GatewrightError
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue
from gatewright.base.late import last_of
from gatewright.compile.agent import AgentSnapshot
from gatewright.compile.operation import OperationPlan
from gatewright.compile.plan import ToolPlan, ToolShape
from gatewright.compile.rule_test import Constraint, OutsideTest
from gatewright.gate.call import CallState
from gatewright.gate.gate import Gate
from gatewright.gate.pipeline import DECIDING, run_stage
from gatewright.gate.session import Mark, Session
from gatewright.gate.stages.read import LOOKUP, OPERATION
from gatewright.gate.stages.rules import RULES, SCHEMA
from gatewright.gate.witness import variations, witness
from gatewright.policy.rule import ArgumentConstraints
from gatewright.policy.verdict import Verdict
from gatewright.schema import discover_operations
from gatewright.schema.check import SchemaChecker, is_checked_format
from gatewright.schema.constraint import close_constraint
from gatewright.schema.filter import reduce_schema
from gatewright.schema.operation import OperationSet, Steps, ToolListing
from gatewright.schema.selector import KEYED_FIELD, FieldRules, naming, over, places_of
from gatewright.schema.walk import as_object, in_place, properties_of

TOOLS_AT_A_TIME = 8
"""The number of tools to check before a pause."""
Schema = dict[str, Any]
Call = dict[str, JsonValue]


@frozen
class Difference:
    """A disagreement between the sets; ``what`` describes it."""

    agent_id: str
    tool: str
    operation: str
    what: str

    def to_json(self) -> dict[str, JsonValue]:
        """Shape: agent, tool, operation, what."""
        return {"agent": self.agent_id, "tool": self.tool, "operation": self.operation, "what": self.what}


@frozen
class SelfCheck:
    """The result. ``checked``: agents x tools x operations. ``no_witness``: visible, but no full call could be made."""

    checked: int
    differences: tuple[Difference, ...] = ()
    no_witness: tuple[Difference, ...] = ()

    def to_json(self) -> dict[str, JsonValue]:
        """Shape: checked, differences, no_witness."""
        return {
            "checked": self.checked,
            "differences": [difference.to_json() for difference in self.differences],
            "no_witness": [row.to_json() for row in self.no_witness],
        }


@frozen
class _Shown:
    """The operations in one listing; ``{""}`` for a tool without any.

    ``places``: where a call names one. ``rules``: what the schema accepts there, None if undecidable. ``found``: how
    the schema names them, None if it does not.
    """

    listed: frozenset[str]
    places: tuple[Steps, ...] | None
    rules: FieldRules | None = None
    found: OperationSet | None = None

    def call(self, operation: str) -> Call:
        """A minimal call of the operation."""
        return {} if self.places is None else naming(operation, self.places)


@frozen
class _Found:
    """The findings on one tool, or on all tools of an agent."""

    checked: int
    differences: tuple[Difference, ...] = ()
    no_witness: tuple[Difference, ...] = ()

    @staticmethod
    def of_all(found: Sequence[_Found]) -> _Found:
        """The findings of several tools as one."""
        differences = tuple(row for one in found for row in one.differences)
        no_witness = tuple(row for one in found for row in one.no_witness)
        return _Found(sum(one.checked for one in found), differences, no_witness)


@frozen
class _Checked:
    """A tool when it was checked, with the findings."""

    plan: ToolPlan
    listing: ToolListing | None
    found: _Found

    def is_of(self, plan: ToolPlan, listing: ToolListing | None) -> bool:
        """Tell whether these are the same, apart from the visibility of other tools, which no stage here uses."""
        return self.listing is listing and all(map(is_, _material(self.plan), _material(plan)))


def _material(plan: ToolPlan) -> tuple[object, ...]:
    return plan.operations, plan.hidden, plan.closed, plan.shape, plan.right, plan.tool


@frozen
class _CheckedAgent:
    """All tools of an agent when they were checked: the listings, and the findings."""

    listings: tuple[ToolListing, ...]
    found: _Found


def selfcheck(gate: Gate, agents: tuple[str, ...] | None = None, *, afresh: bool = False) -> SelfCheck:
    """Check these agents, or all of the policy. ``afresh``: also repeat earlier checks."""
    return last_of(selfcheck_in_pieces(gate, agents, afresh=afresh))


def selfcheck_in_pieces(
    gate: Gate, agents: tuple[str, ...] | None, *, afresh: bool
) -> Generator[None, None, SelfCheck]:
    """The same in pieces of some milliseconds, with room for other work between them."""
    run, found = _Run(gate, afresh=afresh), list[_Found]()
    for agent_id in tuple(gate.policy.agents) if agents is None else agents:
        found.append((yield from run.check_agent(agent_id)))
    every = _Found.of_all(found)
    return SelfCheck(every.checked, every.differences, every.no_witness)


class _Run:
    """One run over a gate."""

    def __init__(self, gate: Gate, *, afresh: bool) -> None:
        self._gate, self._afresh = gate.without_stop(), afresh
        self._no_witness: list[Difference] = []

    def check_agent(self, agent_id: str) -> Generator[None, None, _Found]:
        snapshot = self._gate.snapshot().agent(agent_id)
        if snapshot is None:
            return _Found(0)
        listings, held = self._gate.view(agent_id).listings(), snapshot.checked
        if isinstance(held, _CheckedAgent) and held.listings is listings and not self._afresh:
            return held.found
        found = yield from self._check_agent(snapshot, {listing.name: listing for listing in listings})
        snapshot.checked = _CheckedAgent(listings, found)
        return found

    def _check_agent(
        self, snapshot: AgentSnapshot, listings: Mapping[str, ToolListing]
    ) -> Generator[None, None, _Found]:
        agent_id, plans, found = snapshot.agent.agent_id, list(snapshot.plans()), list[_Found]()
        for number, plan in enumerate(plans):
            if number % TOOLS_AT_A_TIME == 0:
                yield
            found.append(self._check(agent_id, plan, listings.get(plan.tool.name), snapshot.checks))
        unknown = sorted(listings.keys() - {plan.tool.name for plan in plans})
        strange = (Difference(agent_id, name, "", "listed, but the tool is unknown") for name in unknown)
        return _Found.of_all([*found, _Found(0, tuple(strange))])

    def _check(self, agent_id: str, plan: ToolPlan, listing: ToolListing | None, checks: dict[str, object]) -> _Found:
        name = plan.tool.name
        held = checks.get(name)
        if isinstance(held, _Checked) and held.is_of(plan, listing) and not self._afresh:
            return held.found
        self._no_witness = []
        names = [row.name for row in plan.right.facts.operations]
        wrong = [
            Difference(agent_id, name, operation, what)
            for operation in names
            for what in self._wrong(agent_id, plan, listing, operation)
        ]
        found = _Found(len(names), tuple(wrong), tuple(self._no_witness))
        checks[name] = _Checked(plan, listing, found)
        return found

    def _wrong(self, agent_id: str, plan: ToolPlan, listing: ToolListing | None, operation: str) -> Iterator[str]:
        shown = self._facts(listing, plan) if listing is not None else _no_listing(plan)
        call = shown.call(operation)
        listed = operation in shown.listed
        valid = listing is not None and (shown.places is None or (shown.rules is not None and shown.rules.accept(call)))
        passed = self._passes(agent_id, plan.tool.name, call)
        if len({listed, valid, passed}) > 1:
            yield f"{_says('listed', listed)}, {_says('valid', valid)}, {_says('passed', passed)}"
        if listed and listing is not None and plan.shape is not None:
            yield from self._try(agent_id, plan, plan.shape, listing, operation)

    def _try(
        self, agent_id: str, plan: ToolPlan, shape: ToolShape, listing: ToolListing, operation: str
    ) -> Iterator[str]:
        """Try one full call of a visible operation, made from the schema, so that it must pass the schema stage too."""
        arguments = self._witness(plan, listing, operation)
        if arguments is None or not shape.checker.is_valid(arguments):
            self._no_witness.append(Difference(agent_id, plan.tool.name, operation, "no call could be made"))
        elif not self._passes(agent_id, plan.tool.name, arguments, through_schema=True):
            yield "a call that fits the shown schema is denied"
        elif barred := _bar(plan.operations[operation], arguments):
            self._no_witness.append(Difference(agent_id, plan.tool.name, operation, barred))
        else:
            yield from self._break_constraints(agent_id, plan, shape, operation, arguments)
            yield from self._omit_arguments(agent_id, plan, shape, operation, arguments)
            yield from self._break_formats(agent_id, plan, shape, arguments)
            yield from self._bring_outside(agent_id, plan, operation, arguments)

    def _break_constraints(
        self, agent_id: str, plan: ToolPlan, shape: ToolShape, operation: str, arguments: Call
    ) -> Iterator[str]:
        """The faults of calls that only the constraint on one field denies."""
        name, selecting = plan.tool.name, plan.tool.selector.places if plan.tool.selector is not None else ()
        stranger = _with_stranger(shape, arguments) if shape.closed else None
        if stranger is not None and self._passes(agent_id, name, stranger, through_schema=True):
            yield "a call with an argument that the schema does not name fits it"
        for constraint in plan.operations[operation].constraints:
            for field, checker in constraint.fields if constraint.source_id is None else ():
                if (field,) in selecting:
                    continue  # a refused value names another operation, which is hidden
                call = _breaking(plan, shape.whole, operation, arguments, field, checker)
                if call is None:
                    what = f"no call could be made that only the constraint on `{field}` denies"
                    self._no_witness.append(Difference(agent_id, name, operation, what))
                elif plan.observation is None and field not in dict(shape.unsaid):
                    if self._passes(agent_id, name, call, through_schema=True):
                        yield f"a call that the constraint on `{field}` denies fits the shown schema"
                elif self._gate.decide(agent_id, name, call).verdict is not Verdict.DENY:
                    yield f"a call that the constraint on `{field}` denies is not denied"

    def _omit_arguments(
        self, agent_id: str, plan: ToolPlan, shape: ToolShape, operation: str, arguments: Call
    ) -> Iterator[str]:
        """The faults of calls without an argument that only a rule requires."""
        name = plan.tool.name
        for field in _rule_requirements(plan, operation):
            call = {key: value for key, value in arguments.items() if key != field}
            is_said = plan.observation is None and field not in dict(shape.unsaid)
            fits = is_said and self._passes(agent_id, name, call, through_schema=True)
            if fits or self._gate.decide(agent_id, name, call).verdict is not Verdict.DENY:
                yield f"a call without `{field}`, which a rule requires, passes"

    def _break_formats(self, agent_id: str, plan: ToolPlan, shape: ToolShape, arguments: Call) -> Iterator[str]:
        """The faults of calls in which a text breaks the format in the shown schema."""
        for field, own in properties_of(shape.listing.schema).items() if shape.check_formats else ():
            said = as_object(own) or {}
            if not is_checked_format(said.get("format")):
                continue
            if self._passes(agent_id, plan.tool.name, {**arguments, field: "?"}, through_schema=True):
                yield f"a call whose `{field}` breaks its format `{said['format']}` passes"

    def _bring_outside(self, agent_id: str, plan: ToolPlan, operation: str, arguments: Call) -> Iterator[str]:
        """The faults of a call before and after a result from outside, by the rules of that kind."""
        agent = self._gate.snapshot().agent(agent_id)
        tests = agent.rules.book(plan.tool.name, operation).tests if agent is not None else ()
        wanted = {one.effect for one in tests if isinstance(one, OutsideTest) and one.bound.source_id is None}
        for mark in (None, Mark(plan.tool.name, "", 0.0)) if wanted else ():
            session = Session(agent_id=agent_id)
            if mark is not None:
                session.mark(mark)
            state = self._gate.state(agent_id, plan.tool.name, arguments, session=session)
            stages = (run_stage(stage, state).findings for stage in DECIDING[: DECIDING.index(RULES) + 1])
            found = next((some for some in stages if some), ())
            said = {one.verdict for one in found if one.code == "after-outside"}
            if found and not said:
                what = "no call could be made that only the rule after outside results stops"
                self._no_witness.append(Difference(agent_id, plan.tool.name, operation, what))
            elif said != (wanted if mark is not None else set()):
                yield f"a call {'after' if mark is not None else 'before'} a result from outside is judged otherwise"

    def _passes(self, agent_id: str, tool: str, arguments: Call, *, through_schema: bool = False) -> bool:
        state: CallState = self._gate.state(agent_id, tool, arguments)
        state.arguments = arguments
        for stage in (LOOKUP, OPERATION, SCHEMA) if through_schema else (LOOKUP, OPERATION):
            if not all(finding.noted for finding in run_stage(stage, state).findings):
                return False
        return True

    def _facts(self, listing: ToolListing, plan: ToolPlan) -> _Shown:
        return self._once(plan, listing, None, lambda: _read(listing, plan))

    def _witness(self, plan: ToolPlan, listing: ToolListing, operation: str) -> Call | None:
        shown = self._facts(listing, plan)
        made = self._once(plan, listing, operation, lambda: _make(plan, listing, shown, operation))
        if not isinstance(made, dict):
            return None
        own = plan.operations.get(operation)
        return _within(cast("Call", made), own.constraints if own is not None else ())

    def _once(self, plan: ToolPlan, listing: ToolListing, key: str | None, make: Callable[[], Any]) -> Any:
        """The result of ``make``, cached with the shape of the listing for all agents that see the same."""
        shape = plan.shape
        if self._afresh or shape is None or shape.listing is not listing or shape.tool is not plan.tool:
            return make()
        if key not in shape.tried:
            shape.tried[key] = make()
        return shape.tried[key]


def _no_listing(plan: ToolPlan) -> _Shown:
    """The form of a call of an unlisted tool, which uses the tool's own operation field."""
    places = places_of(plan.tool.operation_field, None) if plan.has_operations else None
    return _Shown(frozenset(), places)


def _read(listing: ToolListing, plan: ToolPlan) -> _Shown:
    if not plan.has_operations:
        return _Shown(frozenset({""}), None)
    field = plan.tool.operation_field
    try:
        found = own = discover_operations(listing.schema, field=field)
        if found is None and field == KEYED_FIELD:  # the one variant left is the whole schema
            found = discover_operations({"oneOf": [listing.schema]}, field=field)
        places = places_of(field, found)
        rules = FieldRules(listing.schema, places)
    except GatewrightError:
        return _Shown(frozenset(), places_of(field, None))
    return _Shown(frozenset(found.names) if found is not None else frozenset(), places, rules, own)


def _make(plan: ToolPlan, listing: ToolListing, shown: _Shown, operation: str) -> JsonValue:
    """Arguments for ``operation``: those that the schema requires, and those that the operation requires."""
    needed = [(parameter.name,) for parameter in plan.tool.parameters(operation) if parameter.required]
    needed += [(name,) for name in _rule_requirements(plan, operation)]
    check_formats = plan.shape is not None and plan.shape.check_formats
    try:
        if not operation:
            return witness(listing.schema, needed, check_formats=check_formats)
        alone = frozenset({operation})  # the visible schema for this operation alone, without its texts
        if shown.found is None:
            schema = plan.tool.schema_for(alone) or listing.schema
        else:
            schema = reduce_schema(listing.schema, shown.found, alone)
        made = witness(schema, [*needed, *(shown.places or ())], check_formats=check_formats)
    except (LookupError, TypeError, GatewrightError):
        return None
    if not isinstance(made, dict) or set(plan.tool.operations_of(made) or ()) == {operation}:
        return made
    return over(made, shown.call(operation))


def _within(arguments: Call, constraints: tuple[Constraint, ...]) -> Call:
    """The arguments with values from those constraints that state them plainly."""
    for constraint in constraints:
        fields = constraint.bound.rule.rule_type
        for name, checker in constraint.fields:
            schema = fields.fields.get(name) if isinstance(fields, ArgumentConstraints) else None
            if name in arguments and not checker.is_valid(arguments[name]) and isinstance(schema, dict):
                with suppress(LookupError, TypeError, GatewrightError):
                    arguments = {**arguments, name: witness(close_constraint(schema))}
    return arguments


def _with_stranger(shape: ToolShape, arguments: Call) -> Call | None:
    """The call with an extra argument that the schema names nowhere; None if patterns may name it."""
    parts = in_place(shape.listing.schema)
    if any("patternProperties" in part for part in parts):
        return None
    known = {name for part in parts for name in properties_of(part)}
    added = next(name for at in range(len(known) + 1) if (name := f"stranger_{at}") not in known)
    return {**arguments, added: None}


def _breaking(
    plan: ToolPlan, whole: ToolShape, operation: str, arguments: Call, field: str, checker: SchemaChecker
) -> Call | None:
    """The call with another value of ``field`` that fits the schema without constraints."""
    for value in variations(whole.listing.schema, field, arguments.get(field)):
        call = {**arguments, field: value}
        if not checker.is_valid(value) and whole.checker.is_valid(call):
            called = plan.tool.operations_of(call)
            if called is not None and operation in (called or (operation,)) and plan.operations.keys() >= set(called):
                return call
    return None


def _rule_requirements(plan: ToolPlan, operation: str) -> tuple[str, ...]:
    """The arguments that rules on every call require of the operation."""
    facts, own = plan.right.facts, plan.operations.get(operation)
    rows = [row for row in facts.operations if row.name == operation]
    rules = [one.bound.rule for one in (own.constraints if own is not None else ()) if one.source_id is None]
    return tuple(dict.fromkeys(name for rule in rules for row in rows for name in facts.mandatory_arguments(rule, row)))


def _bar(plan: OperationPlan, arguments: Call) -> str | None:
    """The reason why the generated call proves nothing: a condition on arguments denies it; None otherwise."""
    for constraint in plan.constraints:
        if any(name in arguments and not checker.is_valid(arguments[name]) for name, checker in constraint.fields):
            return "no call could be made that satisfies the constraints"
    for rule in plan.policy_rules:
        if rule.rule.effect is Verdict.DENY and rule.matches(arguments):
            return f"policy rule `{rule.rule.name}` denies the call that was made"
    return None


def _says(what: str, holds: bool) -> str:
    return what if holds else f"not {what}"
