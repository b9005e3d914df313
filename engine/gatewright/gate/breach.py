"""The rules that a call would break in its session, as public values for a host, and in words for operator and model.

The stage decides with the same test that guards a slot, so that no race can exceed a limit or change the order. Names
in the values are for the operator: some may be hidden from the model, whose words never name them. The module exceeds
450 lines because each kind of rule has its value, its test and its words here.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, fields, replace
from typing import Any, assert_never, cast, get_args

from gatewright.base.amount import duration_words, iso_utc
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue
from gatewright.compile.agent import AgentSnapshot
from gatewright.compile.rule_test import (
    BoundRule,
    CallsTest,
    Due,
    ExitTest,
    Finding,
    FollowingTest,
    GapTest,
    GroupTest,
    OutsideTest,
    PrecedingTest,
    RateTest,
    RuleBook,
    SessionTest,
    StartTest,
    ToolRef,
)
from gatewright.gate.decision import Decision
from gatewright.gate.session import SessionFacts
from gatewright.policy.verdict import Verdict

KEY = "violation"
"""The key of the violation in a decision's facts."""


@frozen
class StartConstraintsNotMet:
    """The start tools that have not succeeded yet."""

    tool: str
    required_start_tools: tuple[str, ...]


@frozen
class PrerequisitesNotMet:
    """The tools that must have succeeded first, and those of them that have."""

    tool: str
    required: tuple[str, ...]
    executed: tuple[str, ...]


@frozen
class OrderingViolation:
    """The tools that must come later, and those of them that succeeded or are running."""

    tool: str
    must_precede: tuple[str, ...]
    already_executed: tuple[str, ...]


@frozen
class ExclusiveGroupViolation:
    """The group, and its other members that were called."""

    tool: str
    group: tuple[str, ...]
    already_called: tuple[str, ...]


@frozen
class MaxCallsExceeded:
    """The limit of the session, the calls made, and for how many this one counts (for a batch its size)."""

    tool: str
    max: int
    current: int
    asked: int = 1


@frozen
class CooldownActive:
    """The time until the next permitted call of the tool."""

    tool: str
    remaining_s: float


@frozen
class OutsideResult:
    """The call that brought the first result from outside into the session: its tool, id, and time in UTC."""

    tool: str
    result_of: str
    call: str
    time: str


@frozen
class RateLimited:
    """The time until the rate permits another call."""

    tool: str
    wait_s: float


@frozen
class OperationNotAllowed:
    """The operation that is hidden from the agent, and the visible ones."""

    tool: str
    operation: str
    allowed: tuple[str, ...]


@frozen
class ConstraintViolation:
    """The field with a limited value, and the permitted values."""

    tool: str
    field: str
    errors: tuple[str, ...]


@frozen
class ExitRequirementsPending:
    """The tools that must succeed before the loop may end."""

    tool: str
    pending: tuple[str, ...]


Violation = (
    StartConstraintsNotMet
    | PrerequisitesNotMet
    | OrderingViolation
    | ExclusiveGroupViolation
    | MaxCallsExceeded
    | CooldownActive
    | OutsideResult
    | RateLimited
    | OperationNotAllowed
    | ConstraintViolation
    | ExitRequirementsPending
)
_KINDS: dict[str, type[Violation]] = {kind.__name__: kind for kind in get_args(Violation)}


def to_json(violation: Violation) -> dict[str, JsonValue]:
    """``kind`` and the fields."""
    told: dict[str, JsonValue] = {"kind": type(violation).__name__}
    for name, value in asdict(violation).items():
        told[name] = list(cast("tuple[str, ...]", value)) if isinstance(value, tuple) else value
    return told


def from_json(data: object) -> Violation | None:
    """The violation that `to_json` wrote; None for anything else."""
    if not isinstance(data, dict):
        return None
    table = dict(cast("dict[str, object]", data))
    kind = _KINDS.get(str(table.pop("kind", "")))
    if kind is None or set(table) != {one.name for one in fields(kind)}:
        return None
    values: dict[str, Any] = {}
    for one in fields(kind):
        value = table[one.name]
        if not _fits(value, str(one.type)):
            return None
        values[one.name] = tuple(cast("list[str]", value)) if isinstance(value, list) else value
    return kind(**values)


def violation_of(decision: Decision) -> Violation | None:
    """The rule that the call broke, in values; None for an allow and for other denials."""
    return from_json(decision.facts.get(KEY))


def _fits(value: object, kind: str) -> bool:
    if kind == "str":
        return isinstance(value, str)
    if kind.startswith("tuple"):
        return isinstance(value, list) and all(isinstance(item, str) for item in cast("list[object]", value))
    if isinstance(value, bool):
        return False
    return isinstance(value, int) if kind == "int" else isinstance(value, (int, float))


Uses = Mapping[str, int] | None
"""The number of uses of each operation in a call; None means one use of its own operation."""


@frozen
class Pending:
    """The requirements left before the loop may end; ``bound`` is the most important of their rules."""

    bound: BoundRule
    tests: tuple[ExitTest, ...]


Broken = tuple[SessionTest | Pending, Violation]


def violations(
    book: RuleBook,
    tool: str,
    facts: SessionFacts,
    now_s: float,
    sources: frozenset[str],
    uses: Uses = None,
) -> list[Broken]:
    """The result of every test of the session that a call would fail now.

    The calls in one batch run side by side: none counts as earlier than another.
    """
    found: list[Broken] = []
    for test in book.tests:
        if test.bound.source_id is None or test.bound.source_id in sources:
            violation = _violation(test, tool, facts, now_s, uses)
            if violation is not None:
                found.append((test, violation))
    if book.requirements and book.ends_loop(sources):
        left = tuple(pending(book.requirements, facts))
        if left:
            names = _names(dict.fromkeys(test.required for test in left))
            found.append((Pending(left[0].bound, left), ExitRequirementsPending(tool, names)))
    if not found:
        return found
    # each missing start names them all
    names = tuple(dict.fromkeys(str(test.start) for test, _ in found if isinstance(test, StartTest)))
    if len(names) <= 1:
        return found
    whole = StartConstraintsNotMet(tool, names)
    return [(test, whole if isinstance(test, StartTest) else violation) for test, violation in found]


def pending(requirements: Iterable[ExitTest], facts: SessionFacts) -> Iterator[ExitTest]:
    """The requirements that must still be met before the loop may end."""
    for test in requirements:
        if all(_has_succeeded(ref, facts) for ref in test.conditions) and not _has_succeeded(test.required, facts):
            yield test


def times_of(uses: Uses, operations: frozenset[str] | None) -> int:
    """The number of calls of ``operations`` (None: of any) in a call under a rule on them; at least one."""
    if not uses:
        return 1
    return max(1, sum(times for name, times in uses.items() if operations is None or name in operations))


def _violation(test: SessionTest, tool: str, facts: SessionFacts, now_s: float, uses: Uses) -> Violation | None:
    match test:
        case CallsTest():
            made = facts.calls(tool, test.counted.operations, test.bound.source_id or "")
            times = times_of(uses, test.counted.operations)
            return MaxCallsExceeded(tool, test.calls, made, times) if made + times > test.calls else None
        case GapTest():
            start_s = facts.last_start_s(tool, test.counted.operations, test.bound.source_id or "")
            left_s = 0.0 if start_s is None else test.gap_s - (now_s - start_s)
            return CooldownActive(tool, round(left_s, 6)) if left_s > 0 else None
        case OutsideTest():
            mark = facts.outside
            return (
                None if mark is None else OutsideResult(tool, mark.tool, mark.call_id, iso_utc(mark.wall_s)[:19] + "Z")
            )
        case StartTest():
            return None if _has_succeeded(test.start, facts) else StartConstraintsNotMet(tool, (str(test.start),))
        case PrecedingTest():
            done = tuple(ref for ref in test.required if _has_succeeded(ref, facts))
            if len(done) == len(test.required):
                return None
            return PrerequisitesNotMet(tool, _names(test.required), _names(done))
        case FollowingTest():
            begun = tuple(ref for ref in test.later if _has_begun(ref, facts) or _is_beside(ref, (), tool, uses))
            return OrderingViolation(tool, _names(test.later), _names(begun)) if begun else None
        case GroupTest():
            called = tuple(
                ref
                for ref in test.others
                if _is_called(ref, test.own, facts.operations_called(ref.tool)) or _is_beside(ref, test.own, tool, uses)
            )
            if not called:
                return None
            return ExclusiveGroupViolation(tool, _names((*test.own, *test.others)), _names(called))
        case _:
            assert_never(test)


def _has_begun(ref: ToolRef, facts: SessionFacts) -> bool:
    return facts.may_have_succeeded(ref.tool, ref.operations) or facts.is_flying(ref.tool, ref.operations)


def _is_beside(ref: ToolRef, own: tuple[ToolRef, ...], tool: str, uses: Uses) -> bool:
    """Tell whether the same batch also calls the other tool."""
    return uses is not None and ref.tool == tool and _is_called(ref, own, uses)


def _has_succeeded(ref: ToolRef, facts: SessionFacts) -> bool:
    return facts.has_succeeded(ref.tool, ref.operations)


def _is_called(ref: ToolRef, own: tuple[ToolRef, ...], operations: Iterable[str]) -> bool:
    """Tell whether one of these calls belongs to this member and is not the caller's own; ``""`` may mean any."""
    return any(
        ref.covers(ref.tool, operation) and not any(mine.covers(ref.tool, operation) for mine in own)
        if operation or ref.operations is None
        else ref.tool not in {mine.tool for mine in own if mine.operations is None}
        for operation in operations
    )


def _names(refs: Iterable[ToolRef]) -> tuple[str, ...]:
    return tuple(str(ref) for ref in refs)


_NOT_YET = "this tool cannot be used yet; go on without it"
_NOT_THE_END = "you cannot finish yet; go on with your task"
_NO_MORE = "this tool cannot be used in this session any more; go on without it"


def finding_of(test: SessionTest | Pending, violation: Violation, agent: AgentSnapshot) -> Finding:
    """The denial of a call that breaks a rule of the session."""
    bound, tool = test.bound, violation.tool
    match test:
        case StartTest(_, start):
            told = visible_words([start], agent)
            reason = f"{operator_words([start])} must have succeeded before any other tool"
            return denial("start-required", reason, bound, f"call {told[0]} first" if told else _NOT_YET, violation)
        case PrecedingTest(_, required):
            left = [ref for ref in required if str(ref) not in getattr(violation, "executed", ())]
            told = visible_words(left, agent)
            reason = f"{operator_words(left)} must have succeeded before `{tool}`"
            model = f"call {join_words(told, 'and')} first" if told else _NOT_YET
            return denial("preceding-required", reason, bound, model, violation)
        case FollowingTest(_, later):
            begun = [ref for ref in later if str(ref) in getattr(violation, "already_executed", ())]
            told = visible_words(begun, agent)
            reason = f"`{tool}` must come before {operator_words(begun, 'and')}, which has run already"
            model = f"this tool has to come before {join_words(told, 'and')}, which came first; go on without it"
            return denial("too-late", reason, bound, model if told else _NO_MORE, violation)
        case GroupTest(_, _, others):
            called = [ref for ref in others if str(ref) in getattr(violation, "already_called", ())]
            told = visible_words(called, agent)
            reason = f"`{tool}` excludes {operator_words(called, 'and')} within a session, which was called already"
            model = f"this tool excludes {join_words(told, 'and')}, which was called in this session; go on without it"
            return denial("exclusive-group", reason, bound, model if told else _NO_MORE, violation)
        case CallsTest(_, counted, calls):
            return _max_calls(bound, counted, calls, violation)
        case OutsideTest(_, effect):
            return _after_outside(bound, effect, violation)
        case GapTest(_, counted, gap_s):
            left_s = getattr(violation, "remaining_s", 0.0)
            reason = f"`{counted.tool}` needs {duration_words(gap_s)} between calls; {_wait_words(left_s)} are left"
            wait_s = max(1, math.ceil(round(left_s, 3)))
            model = f"this tool may be called again in {duration_words(wait_s)}; do something else until then"
            return denial("cooldown", reason, bound, model, violation, {"wait_s": round(left_s, 3)})
        case Pending(_, tests):
            required = list(dict.fromkeys(one.required for one in tests))
            told = visible_words(required, agent)
            reason = f"{operator_words(required)} must have succeeded before `{tool}` may end the loop"
            model = f"call {join_words(told, 'and')} before you finish" if told else _NOT_THE_END
            return denial("exit-requirements-pending", reason, bound, model, violation)
        case _:
            assert_never(test)


def _after_outside(bound: BoundRule, effect: Verdict, violation: Violation) -> Finding:
    assert isinstance(violation, OutsideResult)
    came = f"the session got a result from outside, of `{violation.result_of}` at {violation.time} ({violation.call})"
    says = "may not be called any more" if effect is Verdict.DENY else "asks first"
    found = denial("after-outside", f"{came}, after which `{violation.tool}` {says}", bound, _NO_MORE, violation)
    return found if effect is Verdict.DENY else replace(found, verdict=effect, model=None)


def _max_calls(bound: BoundRule, counted: ToolRef, calls: int, violation: Violation) -> Finding:
    assert isinstance(violation, MaxCallsExceeded)
    made, asked, left = violation.current, violation.asked, max(0, calls - violation.current)
    done = "1 call was made" if made == 1 else f"{made} calls were made"
    here = f", and this call counts as {asked}" if asked > 1 else ""
    reason = f"`{counted.tool}` may be called {_times(calls)} per session, and {done}{here}"
    model = "this tool may not be called again in this session; go on without it"
    if left:  # so the call counts for more than one
        model = f"this call does more at once than this session has left: {left} at most"
    return denial("max-calls", reason, bound, model, violation, {"calls": made, "limit": calls})


def _wait_words(wait_s: float) -> str:
    """The time to wait in tenths of a second; at least one."""
    return f"{max(1, math.ceil(round(wait_s, 3) * 10)) / 10:.1f} s"


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def rate_finding(test: RateTest, tool: str, wait_s: float) -> Finding:
    """The denial of a call that comes too soon for its rate, or that alone exceeds the rate."""
    rule = test.rate.rule
    reason = (
        f"`{tool}` may be called {_times(rule.calls)} per {duration_words(rule.per_s)}; {_wait_words(wait_s)} are left"
    )
    shown_s = max(1, math.ceil(round(wait_s, 3)))
    model = f"this tool was called too often; it may be called again in {duration_words(shown_s)}"
    if test.rate.calls > rule.calls > 0:
        model = f"this call does more at once than permitted: {rule.calls} at most"
    rounded = round(wait_s, 3)
    return denial("rate-limit", reason, test.bound, model, RateLimited(tool, rounded), {"wait_s": rounded})


def denial(
    code: str,
    reason: str,
    bound: BoundRule,
    model: str,
    violation: Violation,
    facts: Mapping[str, JsonValue] | None = None,
) -> Finding:
    """A denial by a rule, with its values."""
    told = {**(facts or {}), KEY: to_json(violation)}
    return Finding(Verdict.DENY, code, reason, bound.address, bound.rule.rule_id, model, told)


def visible_words(refs: Iterable[ToolRef], agent: AgentSnapshot) -> list[str]:
    """Those of ``refs`` that the model sees, in words."""
    found: list[str] = []
    for ref in refs:
        plan = agent.plan(ref.tool)
        if plan is None or plan.closed is not None:
            continue
        if ref.operations is None:
            found.append(f"`{ref.tool}`")
        elif seen := sorted(ref.operations & plan.operations.keys()):
            found.append(f"`{ref.tool}` with {join_words([f'`{name}`' for name in seen], 'or')}")
    return found


def operator_words(refs: Sequence[ToolRef], word: str = "and") -> str:
    """All ``refs`` in words."""
    return join_words([_whole(ref) for ref in refs], word)


def join_words(names: Sequence[str], word: str) -> str:
    """Names as a list in prose."""
    if len(names) <= 1:
        return "".join(names)
    return f"{', '.join(names[:-1])} {word} {names[-1]}"


def _whole(ref: ToolRef) -> str:
    if not ref.operations:
        return f"`{ref.tool}`"
    return f"`{ref.tool}` with {join_words([f'`{name}`' for name in sorted(ref.operations)], 'or')}"


def reminders(agent: AgentSnapshot, facts: SessionFacts, now_s: float) -> tuple[str, ...]:
    """One sentence for each due tool, the most important first; none for a session that never began."""
    told = (_sentence(agent, one) for one in agent.rules.due if is_due(one, facts, now_s))
    return tuple(dict.fromkeys(text for text in told if text is not None))


def is_due(one: Due, facts: SessionFacts, now_s: float) -> bool:
    """Tell whether nothing of a tool succeeded for long enough, counted at most from the start of the session."""
    last_s = facts.last_success_s(one.counted.tool, one.counted.operations)
    since_s = last_s if last_s is not None else facts.began_s
    return since_s is not None and now_s - since_s >= one.every_s


def _sentence(agent: AgentSnapshot, one: Due) -> str | None:
    names = visible_words([one.counted], agent)
    return f"{names[0]} is due: call it every {duration_words(one.every_s)}." if names else None
