"""The stages that check a call against the schema that the model sees, and against the tool rules.

* **schema**: the arguments fit the schema that the model saw. It reports every error, one per line with its pointer.
  That schema also expresses constraints: if a call fails by these alone, the rule behind them is reported.
* **rules**: the order of tools, the number and rate of calls, and their values.

The stage decides by the session, the times and the waits in the state. Only `reserve`, at execution, touches the live
session: it repeats the tests there, so that it notices whatever happened meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import chain

from gatewright.base.jsonvalue import JsonValue
from gatewright.base.pattern import folder_words, texts_in_folders
from gatewright.compile.plan import ToolShape
from gatewright.compile.rule_test import (
    BoundRule,
    CallsTest,
    Constraint,
    Finding,
    RateTest,
    RuleBook,
    applies,
    report_order,
)
from gatewright.gate.breach import ConstraintViolation, denial, finding_of, rate_finding, times_of, violations
from gatewright.gate.call import CallState, Stage, StageResult, deny
from gatewright.gate.history import RatesUnavailable
from gatewright.gate.port import Rates
from gatewright.gate.session import UNCOUNTED, Reservation, SessionFacts
from gatewright.gate.stages.read import leads_out
from gatewright.policy.rule import ArgumentConstraints, RequiresConsent
from gatewright.policy.rulekind import consent_words
from gatewright.policy.verdict import Verdict
from gatewright.schema.fault import is_off
from gatewright.schema.walk import pointer_text
from gatewright.tools.parameter import Role

Found = tuple[BoundRule, Finding]
SAID = "the arguments are limited:\n"
MUST_BE_GIVEN = "must be given"
_CANONICAL = frozenset({Role.PATH, Role.FILE})

_FITS = StageResult(note="fits the shown schema")


def _check_schema(state: CallState) -> StageResult:
    """Require arguments that fit the schema that the model saw, and report every error, one per line."""
    shape = state.plan.shape
    if shape is None:
        raise LookupError("a visible tool has no schema")
    found = _misfits(state, shape)
    observation = state.plan.observation
    if observation is None or found.findings:
        return found
    shown = observation.enforced.operations
    if any(part.name not in shown for part in state.chosen.parts or (state.chosen,)):
        return found  # enforcing would have hidden it already
    narrower = observation.enforced.shape
    noted = _misfits(state, narrower).findings if narrower is not None else ()
    return StageResult(tuple(replace(finding, noted=True) for finding in noted), found.note)


def _misfits(state: CallState, shape: ToolShape) -> StageResult:
    errors = shape.checker.errors(state.arguments)
    if not errors:
        return _FITS
    limits = _limits(state, shape)
    if limits:
        return StageResult(limits)
    lines = "\n".join(str(error) for error in errors)
    model = f"the arguments do not fit the schema:\n{lines}"
    if (tool := state.plan.tool).in_folder:
        lines += (
            f"\n`gatewright catalog accept POLICY {tool.origin} {tool.listed_name}` takes arguments of a newer version"
        )
    return deny("schema-mismatch", lines, model, facts={"errors": len(errors)})


def _limits(state: CallState, shape: ToolShape) -> tuple[Finding, ...]:
    """The broken constraints of a call that would fit without them; the words of the first name the faults of all."""
    if not shape.narrowed or not shape.whole.checker.is_valid(state.arguments):
        return ()
    found = [
        pair
        for one in state.chosen.constraints
        if one.source_id is None
        for pair in broken_fields(state, one, state.arguments, shape.narrowed)
    ]
    found.sort(key=lambda pair: report_order(pair[0]))
    findings = [finding for _, finding in found]
    if len(findings) > 1:
        lines = "\n".join(dict.fromkeys(line for one in findings for line in one.reason.split("\n")))
        told = (line for one in findings for line in (one.model or "").removeprefix(SAID).split("\n"))
        findings[0] = replace(findings[0], reason=lines, model=message(told))
    return tuple(findings)


SCHEMA = Stage("schema", _check_schema)


_SOURCE = Role.SOURCE
_NOWHERE: frozenset[str] = frozenset()
_NO_RULE, _WITHIN_LIMITS = StageResult(note="no rule limits it"), StageResult(note="within every limit")
_MEANWHILE = "a result from outside came in while this call waited; make it again"
_UNUSABLE = "how often this tool may be called cannot be checked now; try again later"


def _check_rules(state: CallState) -> StageResult:
    """Test the order of tools, the number and rate of calls, and their values; `reserve` repeats this at execution."""
    chosen, constraints = state.chosen, state.chosen.constraints
    if state.agent is None:
        raise LookupError("a stage used the rules of a call without an agent")
    rules, state.sources = state.agent.rules, _source_ids(state)
    if chosen.parts:
        state.book = rules.book_of(state.tool_name, frozenset(part.name for part in chosen.parts))
    else:
        state.book = rules.books.get((state.tool_name, chosen.name)) or rules.book(state.tool_name, chosen.name)
    book, sources = state.book, state.sources
    if not (constraints or book.tests or book.rates or book.requirements or book.consents):
        return _NO_RULE
    found = _violations(state, book, state.facts or state.session.facts(), state.now_s)
    if book.rates:
        found += _rates(state)
    for one in constraints:
        if one.source_id is None or one.source_id in sources:
            found += broken_fields(state, one, state.policy_arguments)
    if not found:
        return _WITHIN_LIMITS
    found.sort(key=lambda pair: report_order(pair[0]))
    return StageResult(tuple(finding for _, finding in found))


def reserve(state: CallState) -> Reservation | Finding:
    """Take the session's slot and a start under every rate for an execution that begins now, all or nothing.

    Return the finding that denies the call if another one has used up a limit since the decision.
    """
    now_s, book = state.services.clock.monotonic_s(), state.book
    if not state.counts:
        taken = Reservation(state.session, state.tool_name, {}, (), now_s, UNCOUNTED)
        if state.claim is not None:  # the log refuses a second call with its name
            taken.objection, state.slot = state.claim.refusal, taken
        return taken
    test = partial(_first_broken, state, book, now_s) if book.tests or book.requirements else None
    used, sources = state.chosen.name if state.uses is None else state.uses, sorted(state.sources)
    taken = state.session.reserve(state.tool_name, used, now_s, sources=sources, test=test)
    if isinstance(taken, Finding):
        return taken
    short = _take(state) if book.rates else None
    if short is not None:
        state.session.release(taken)
        return short
    if book.tests:
        taken.test = _test_of_log(state)
    if state.claim is not None:
        taken.objection = state.claim.refusal
    state.slot = taken
    return taken


def _first_broken(state: CallState, book: RuleBook, now_s: float, facts: SessionFacts) -> Finding | None:
    found = _violations(state, book, facts, now_s)
    if state.facts is not None and state.facts.outside is not None:  # whoever agreed knew of the mark
        found = [pair for pair in found if pair[1].verdict is Verdict.DENY]
    first = min(found, key=lambda pair: report_order(pair[0]))[1] if found else None
    if first is None or first.verdict is Verdict.DENY:
        return first
    return replace(first, verdict=Verdict.DENY, reason=f"{first.reason}, and it came meanwhile", model=_MEANWHILE)


def _test_of_log(state: CallState) -> Callable[[SessionFacts], Finding | None] | None:
    """The limits that calls of other or killed processes may have used up; None without limits."""
    counting = tuple(test for test in state.book.tests if isinstance(test, CallsTest))
    return partial(_first_broken, state, RuleBook(counting), 0.0) if counting else None


def release(state: CallState, slot: Reservation) -> None:
    """Return slot and starts because execution never began. Starts that cannot be returned still count."""
    state.slot = None
    if not state.counts:
        return
    state.session.release(slot)
    rates, clock = _bound_rates(state), state.services.clock
    if rates and state.services.rates is not None:
        with suppress(RatesUnavailable):
            ago_s = clock.monotonic_s() - slot.start_s
            state.services.rates.give_back([test.rate for test in rates], clock.wall_s(), ago_s)


def record_success(state: CallState) -> None:
    """Record the success; if the call ends the loop, end the session."""
    ends = bool(state.book.exits) and state.book.ends_loop(state.sources)
    used: str | Mapping[str, int] = state.chosen.name if state.uses is None else state.uses
    if not state.counts:
        used = dict[str, int]()
    state.session.add_success(state.tool_name, used, ends_loop=ends, sources=sorted(state.sources))


def _source_ids(state: CallState) -> frozenset[str]:
    """The sources that the call goes to: those of its places, and one that it names."""
    found: set[str] = set()
    for place in state.places:
        found.add(place.source_id)
    for parameter in state.chosen.roles:
        if parameter.role is _SOURCE:
            name = state.arguments.get(parameter.name, parameter.default)
            if isinstance(name, str):
                found.add(name)
    return frozenset(found) if found else _NOWHERE


def _violations(state: CallState, book: RuleBook, facts: SessionFacts, now_s: float) -> list[Found]:
    agent = state.agent
    if agent is None:
        return []
    found = violations(book, state.tool_name, facts, now_s, state.sources, state.uses)
    return [(test.bound, finding_of(test, violation, agent)) for test, violation in found]


def _rates(state: CallState) -> list[Found]:
    """The rates that the call must wait for.

    The state keeps each wait, and a wait that it has already is not looked up again.
    """
    waits: dict[str, float] = {}
    found: list[Found] = []
    for test in _bound_rates(state):
        rate = test.rate
        wait_s = state.rates.get(rate.key)
        if wait_s is None:
            try:
                wait_s = _book(state).peek(rate.key, rate.rule, state.wall_s).wait_s(rate.calls)
            except RatesUnavailable as error:
                found.append((test.bound, _unusable(test.bound, str(error))))
                continue
        waits[rate.key] = wait_s
        if wait_s > 0:
            found.append((test.bound, rate_finding(test, state.tool_name, wait_s)))
    if waits:
        state.rates = {**state.rates, **waits}
    return found


def _book(state: CallState) -> Rates:
    if state.services.rates is None:
        raise RatesUnavailable("no store counts the rate of calls")
    return state.services.rates


def _take(state: CallState) -> Finding | None:
    bound = _bound_rates(state)
    if not bound:
        return None
    try:
        short = _book(state).take([test.rate for test in bound], state.services.clock.wall_s())
    except RatesUnavailable as error:
        return _unusable(bound[0].bound, str(error))
    if short is None:
        return None
    rate, wait_s = short
    test = next(test for test in bound if test.rate.key == rate.key)
    return rate_finding(test, state.tool_name, wait_s)


def _bound_rates(state: CallState) -> list[RateTest]:
    """The rates that limit the call; for a batch, with the number of its uses that each rate counts."""
    if not state.book.rates:
        return []
    tests = [test for test in state.book.rates if applies(test.bound, state.sources)]
    if state.uses is None:
        return tests
    times = [times_of(state.uses, test.bound.operations) for test in tests]
    return [replace(test, rate=replace(test.rate, calls=calls)) for test, calls in zip(tests, times, strict=True)]


def _unusable(bound: BoundRule, reason: str) -> Finding:
    return Finding(Verdict.DENY, "rates-unavailable", reason, bound.address, bound.rule.rule_id, _UNUSABLE)


def source_consents(state: CallState) -> tuple[Finding, ...]:
    """The consents that the call's sources require; the stage approval counts them together with the others."""
    found: list[Finding] = []
    for bound in state.book.consents:
        if applies(bound, state.sources):
            kind = bound.rule.rule_type
            scope = kind.scope if isinstance(kind, RequiresConsent) else None
            text = consent_words(f"`{state.tool_name}` at the source `{bound.source_id}`", scope)
            finding = Finding(Verdict.ASK, "requires-consent", text, bound.address, bound.rule.rule_id, scope=scope)
            found.append(finding)
    return tuple(found)


def broken_fields(
    state: CallState, one: Constraint, arguments: Mapping[str, JsonValue], names: frozenset[str] | None = None
) -> list[Found]:
    """The missing fields that a call must give, and the fields whose value, or default, is not permitted.

    ``names``: the fields to examine; None: all that the constraint names.
    """
    found = [
        (one.bound, _finding(state, one, name, (f"{pointer_text((name,))}: {MUST_BE_GIVEN}",)))
        for name in _missing(state, one, arguments)
        if names is None or name in names
    ]
    for name, checker in one.fields:
        if names is not None and name not in names:
            continue
        values = (arguments[name],) if name in arguments else tuple(_defaults(state, one, name))
        errors = next((errors for value in values if (errors := checker.errors(value))), None)
        where = tuple(f"{pointer_text((name,))}{error.pointer}: {error.message}" for error in errors or ())
        if not errors and (
            left := next((folder for value in values for folder in _folders_outside(state, one, name, value)), "")
        ):
            where = (f"{pointer_text((name,))}: {folder_words(left)}",)
        if where:
            found.append((one.bound, _finding(state, one, name, where)))
    return found


def _folders_outside(state: CallState, one: Constraint, name: str, value: JsonValue) -> Iterator[str]:
    """The required folders that paths of a foreign tool leave through a link.

    Paths that the author marked are canonical by now.
    """
    kind = one.bound.rule.rule_type
    if isinstance(kind, ArgumentConstraints) and all(
        one.name != name or one.role not in _CANONICAL for one in state.chosen.roles
    ):
        for folder, text in texts_in_folders(kind.fields.get(name), value):
            if leads_out(state, folder, text):
                yield folder


def _missing(state: CallState, one: Constraint, arguments: Mapping[str, JsonValue]) -> list[str]:
    """The fields that the rule requires for an operation of the call and that the call omits."""
    kind, facts = one.bound.rule.rule_type, state.plan.right.facts
    if not isinstance(kind, ArgumentConstraints) or arguments.keys() >= set(kind.required):
        return []
    called = {part.name for part in state.chosen.parts or (state.chosen,)}
    asked = (facts.mandatory_arguments(one.bound.rule, row) for row in facts.operations if row.name in called)
    return [name for name in dict.fromkeys(chain.from_iterable(asked)) if name not in arguments]


def _defaults(state: CallState, one: Constraint, name: str) -> Iterator[JsonValue]:
    """The defaults of an omitted field in each operation of the call that the constraint binds."""
    kind = one.bound.rule.rule_type
    if isinstance(kind, ArgumentConstraints) and is_off(kind.fields.get(name)):
        return
    for part in state.chosen.parts or (state.chosen,):
        if one.bound.binds(part.name):
            yield from state.plan.tool.defaults(part.name, name)


def _finding(state: CallState, one: Constraint, name: str, where: tuple[str, ...]) -> Finding:
    lines = "\n".join(where)
    violation = ConstraintViolation(state.tool_name, name, where)
    return denial("argument-constraint", lines, one.bound, message(_for_model(state, name, where)), violation)


def message(lines: Iterable[str]) -> str:
    """Join the faults into one message for the model."""
    return SAID + "\n".join(dict.fromkeys(lines))


def _for_model(state: CallState, name: str, where: tuple[str, ...]) -> Iterator[str]:
    """The faults for the model; a fault of the field that selects operations may name a hidden one and is replaced."""
    selector, redactor = state.plan.tool.selector, state.plan.redactor
    carries = selector is not None and name in selector.fields
    for line in where:
        yield (
            f"{line.split(': ', 1)[0]}: is not allowed; try another value"
            if carries and redactor.visible(line) != line
            else line
        )


RULES = Stage("rules", _check_rules)
