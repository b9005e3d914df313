"""The rules that a call would break in its session, as public values for a host that reacts without reading sentences.

The stage decides with the same test that guards a slot, so that no race can exceed a limit or change the order. Names
in the values are for the operator: some may be hidden from the model.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, fields
from typing import Any, assert_never, cast, get_args

from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue
from gatewright.compile.rule_test import (
    BoundRule,
    CallsTest,
    ExitTest,
    FollowingTest,
    GapTest,
    GroupTest,
    PrecedingTest,
    RuleBook,
    SessionTest,
    StartTest,
    ToolRef,
)
from gatewright.gate.decision import Decision
from gatewright.gate.session import SessionFacts

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
    """The limit of the session, the calls made, and the number that this one counts for (a batch: its size)."""

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
class RateLimited:
    """The time until the rate permits another call."""

    tool: str
    wait_s: float


@frozen
class OperationNotAllowed:
    """The operation that is hidden from the agent, and the shown ones."""

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
    """The rule that the call broke, in values; None for an allow and for denials without them."""
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
"""The number of uses of each operation in a call; None: one of its own operation."""


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
    """Every test of the session that a call would fail now.

    The calls in one batch run side by side: none precedes another.
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
    """The requirements that must still succeed before the loop may end."""
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
    """Tell whether one of these calls belongs to this member and not to the caller's own; ``""`` may have been any."""
    return any(
        ref.covers(ref.tool, operation) and not any(mine.covers(ref.tool, operation) for mine in own)
        if operation or ref.operations is None
        else ref.tool not in {mine.tool for mine in own if mine.operations is None}
        for operation in operations
    )


def _names(refs: Iterable[ToolRef]) -> tuple[str, ...]:
    return tuple(str(ref) for ref in refs)
