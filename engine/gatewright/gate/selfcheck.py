"""The program's own test of its promise: for every agent, tool and operation, three sets that must agree.

*Listed*: read off the schemas that the model is shown. *Valid*: the operation field of those schemas accepts it.
*Passed*: lookup and operation let a call of it through. Each is found without asking the others or the policy. One
call that fits the whole schema is tried as well; where none can be made it is reported apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from gatewright.base.errors import GatewrightError
from gatewright.base.jsonvalue import JsonValue
from gatewright.gate.call import CallState
from gatewright.gate.pipeline import run_stage
from gatewright.gate.stages.lookup import LOOKUP
from gatewright.gate.stages.operation import OPERATION
from gatewright.gate.stages.schema import SCHEMA
from gatewright.gate.witness import witness
from gatewright.policy.rule import ArgumentConstraints
from gatewright.policy.verdict import Verdict
from gatewright.schema import discover_operations
from gatewright.schema.check import SchemaChecker

if TYPE_CHECKING:
    from gatewright.gate.condition import Constraint
    from gatewright.gate.gate import Gate
    from gatewright.gate.plan import OperationPlan, ToolPlan
    from gatewright.schema.formats import ToolListing

Schema = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Difference:
    """Where the views disagree; ``what`` says how."""

    agent_id: str
    tool: str
    operation: str
    what: str

    def to_json(self) -> dict[str, JsonValue]:
        """Shape: agent, tool, operation, what."""
        return {"agent": self.agent_id, "tool": self.tool, "operation": self.operation, "what": self.what}


@dataclass(frozen=True, slots=True)
class SelfCheck:
    """``checked``: how many agents x tools x operations. ``no_witness``: shown, but no full call could be made."""

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


@dataclass(frozen=True, slots=True)
class _Shown:
    """What one listing says of its operations; ``{""}`` when it has none."""

    listed: frozenset[str]
    field: SchemaChecker | None


def selfcheck(gate: Gate, agents: tuple[str, ...] | None = None) -> SelfCheck:
    """Check these agents, or all of the policy."""
    run = _Run(gate)
    checked = sum(run.check_agent(agent_id) for agent_id in agents or tuple(gate.policy.agents))
    return SelfCheck(checked, tuple(run.differences), tuple(run.no_witness))


class _Run:
    """One run over a gate; what is the same for many agents is worked out once."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self._shown: dict[int, tuple[ToolListing, _Shown]] = {}
        self._witnesses: dict[tuple[int, str], tuple[object, JsonValue]] = {}
        self.differences: list[Difference] = []
        self.no_witness: list[Difference] = []

    def check_agent(self, agent_id: str) -> int:
        snapshot = self._gate.snapshot().agent(agent_id)
        if snapshot is None:
            return 0
        listings = {listing.name: listing for listing in self._gate.view(agent_id).listings()}
        count = 0
        for plan in snapshot.plans():
            listing = listings.get(plan.tool.name)
            for row in plan.right.facts.operations:
                count += 1
                for what in self._wrong(agent_id, plan, listing, row.name):
                    self.differences.append(Difference(agent_id, plan.tool.name, row.name, what))
        unknown = listings.keys() - {plan.tool.name for plan in snapshot.plans()}
        self.differences += [
            Difference(agent_id, name, "", "listed, and no such tool is known") for name in sorted(unknown)
        ]
        return count

    def _wrong(self, agent_id: str, plan: ToolPlan, listing: ToolListing | None, operation: str) -> Iterator[str]:
        field = plan.tool.operation_field
        call: dict[str, JsonValue] = {field: operation} if operation else {}
        shown = self._facts(listing, plan) if listing is not None else _Shown(frozenset(), None)
        listed = operation in shown.listed
        valid = listing is not None and (shown.field is None or not operation or shown.field.is_valid(operation))
        passed = self._passes(agent_id, plan.tool.name, call)
        if len({listed, valid, passed}) > 1:
            yield f"{_says('listed', listed)}, {_says('valid', valid)}, {_says('passed', passed)}"
        if listed and listing is not None:
            yield from self._tried(agent_id, plan, listing, operation)

    def _tried(self, agent_id: str, plan: ToolPlan, listing: ToolListing, operation: str) -> Iterator[str]:
        """One full call of a shown operation: made from the schema, so it has to pass the schema stage as well."""
        arguments = self._witness(plan, listing, operation)
        checker = plan.shape.checker if plan.shape is not None else None
        if arguments is None or checker is None or not checker.is_valid(arguments):
            self.no_witness.append(Difference(agent_id, plan.tool.name, operation, "no call could be made"))
        elif not self._passes(agent_id, plan.tool.name, arguments, through_schema=True):
            yield "a call that fits the shown schema is denied"
        elif barred := _barred(plan.operations.get(operation), arguments):
            self.no_witness.append(Difference(agent_id, plan.tool.name, operation, barred))

    def _passes(
        self, agent_id: str, tool: str, arguments: dict[str, JsonValue], *, through_schema: bool = False
    ) -> bool:
        state: CallState = self._gate.state(agent_id, tool, arguments).having(arguments=arguments)
        for stage in (LOOKUP, OPERATION, SCHEMA) if through_schema else (LOOKUP, OPERATION):
            result = run_stage(stage, state)
            if result.findings:
                return False
            state = result.state
        return True

    def _facts(self, listing: ToolListing, plan: ToolPlan) -> _Shown:
        return _once(self._shown, id(listing), listing, lambda: _read(listing, plan))

    def _witness(self, plan: ToolPlan, listing: ToolListing, operation: str) -> dict[str, JsonValue] | None:
        made = _once(self._witnesses, (id(listing), operation), listing, lambda: _made(plan, listing, operation))
        if not isinstance(made, dict):
            return None
        shown = plan.operations.get(operation)
        return _within(cast("dict[str, JsonValue]", made), shown.constraints if shown is not None else ())


def _once(held: dict[Any, Any], key: object, owner: object, make: Callable[[], Any]) -> Any:
    """``make()``, remembered as long as ``owner`` lives in the table (its id is part of the key)."""
    found = held.get(key)
    if found is None:
        found = held[key] = (owner, make())
    return found[1]


def _read(listing: ToolListing, plan: ToolPlan) -> _Shown:
    if not plan.has_operations:
        return _Shown(frozenset({""}), None)
    field = plan.tool.operation_field
    found = discover_operations(listing.schema, field=field)
    listed = frozenset(found.names) if found is not None else frozenset[str]()
    properties = cast("Schema", listing.schema.get("properties", {}))
    if field not in properties:
        return _Shown(listed, _field_of_branches(listing.schema, field))
    return _Shown(listed, SchemaChecker({**properties[field], "$defs": listing.schema.get("$defs", {})}))


def _field_of_branches(schema: Schema, field: str) -> SchemaChecker | None:
    """The operation field of a union: any of what its branches say."""
    branches = [cast("Schema", branch) for key in ("oneOf", "anyOf") for branch in schema.get(key, [])]
    rules = [branch["properties"][field] for branch in branches if field in branch.get("properties", {})]
    return SchemaChecker({"anyOf": rules, "$defs": schema.get("$defs", {})}) if rules else None


def _made(plan: ToolPlan, listing: ToolListing, operation: str) -> JsonValue:
    """Arguments for ``operation``: the schema's own required ones, and those that the operation asks for."""
    needed = frozenset(parameter.name for parameter in plan.tool.parameters(operation) if parameter.required)
    try:
        if not operation:
            return witness(listing.schema, needed)
        return witness(_fixed(listing.schema, plan.tool.operation_field, operation), needed)
    except (LookupError, TypeError, GatewrightError):
        return None


def _within(arguments: dict[str, JsonValue], constraints: tuple[Constraint, ...]) -> dict[str, JsonValue]:
    """The arguments with values that the constraints ask for, where those say plainly which."""
    for constraint in constraints:
        fields = constraint.bound.rule.rule_type
        for name, checker in constraint.fields:
            schema = fields.fields.get(name) if isinstance(fields, ArgumentConstraints) else None
            if name in arguments and not checker.is_valid(arguments[name]) and isinstance(schema, dict):
                try:
                    arguments = {**arguments, name: witness(cast("Schema", schema))}
                except (LookupError, TypeError, GatewrightError):
                    continue
    return arguments


def _barred(plan: OperationPlan | None, arguments: dict[str, JsonValue]) -> str:
    """Why the generated call says nothing: a condition on arguments denies it; empty when none does."""
    if plan is None:
        return ""
    for constraint in plan.constraints:
        if any(name in arguments and not checker.is_valid(arguments[name]) for name, checker in constraint.fields):
            return "no call could be made that satisfies the constraints"
    for rule in plan.policy_rules:
        if rule.rule.effect is Verdict.DENY and rule.matches(arguments):
            return f"policy rule `{rule.rule.name}` denies the call that was made"
    return ""


def _fixed(schema: Schema, field: str, operation: str) -> Schema:
    """``schema`` with the operation field held at one value, in the root and in the branches that allow it."""
    if field in schema.get("properties", {}):
        return {**schema, "properties": {**schema["properties"], field: {"const": operation}}}
    for keyword in ("oneOf", "anyOf"):
        fitting = [branch for branch in schema.get(keyword, []) if _allows(branch, field, operation)]
        if fitting:
            return {**schema, keyword: [_fixed(branch, field, operation) for branch in fitting]}
    return schema


def _allows(branch: Schema, field: str, operation: str) -> bool:
    rule = cast("Schema", branch.get("properties", {}).get(field, {}))
    return rule.get("const") == operation or operation in rule.get("enum", [])


def _says(what: str, holds: bool) -> str:
    return what if holds else f"not {what}"
