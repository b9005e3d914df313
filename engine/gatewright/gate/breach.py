"""Compiled rules against a session as it was at one moment: what a call would break. It changes and asks nothing.

The stage decides with it, and a slot is taken under the same test, so that no race can overrun or reorder.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, assert_never

from gatewright.gate.rulebook import (
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
from gatewright.gate.violation import (
    CooldownActive,
    ExclusiveGroupViolation,
    ExitRequirementsPending,
    MaxCallsExceeded,
    OrderingViolation,
    PrerequisitesNotMet,
    StartConstraintsNotMet,
    Violation,
)

if TYPE_CHECKING:
    from gatewright.gate.ruleset import BoundRule
    from gatewright.gate.session import SessionFacts


@dataclass(frozen=True, slots=True)
class Pending:
    """What must still succeed before the loop may end; ``bound`` is the most important of its rules."""

    bound: BoundRule
    tests: tuple[ExitTest, ...]


Broken = tuple[SessionTest | Pending, Violation]


def broken(book: RuleBook, tool: str, facts: SessionFacts, now_s: float, sources: frozenset[str]) -> list[Broken]:
    """Every test of the session that a call would fail now."""
    found: list[Broken] = []
    for test in book.tests:
        if test.bound.source_id is None or test.bound.source_id in sources:
            violation = _violation(test, tool, facts, now_s)
            if violation is not None:
                found.append((test, violation))
    if book.requirements and book.ends_loop(sources):
        left = tuple(pending(book.requirements, facts))
        if left:
            names = _names(dict.fromkeys(test.required for test in left))
            found.append((Pending(left[0].bound, left), ExitRequirementsPending(tool, names)))
    return _all_starts(found, tool)


def _all_starts(found: list[Broken], tool: str) -> list[Broken]:
    """Every start that is missing is named with each of them."""
    names = tuple(dict.fromkeys(str(test.start) for test, _ in found if isinstance(test, StartTest)))
    if len(names) <= 1:
        return found
    whole = StartConstraintsNotMet(tool, names)
    return [(test, whole if isinstance(test, StartTest) else violation) for test, violation in found]


def pending(requirements: Iterable[ExitTest], facts: SessionFacts) -> Iterator[ExitTest]:
    """What must still succeed before the loop may end."""
    for test in requirements:
        if all(_succeeded(ref, facts) for ref in test.conditions) and not _succeeded(test.required, facts):
            yield test


def _violation(test: SessionTest, tool: str, facts: SessionFacts, now_s: float) -> Violation | None:
    match test:
        case CallsTest():
            made = facts.calls(tool, test.counted.operations, test.bound.source_id or "")
            return MaxCallsExceeded(tool, test.calls, made) if made >= test.calls else None
        case GapTest():
            start_s = facts.last_start_s(tool, test.counted.operations, test.bound.source_id or "")
            left_s = 0.0 if start_s is None else test.gap_s - (now_s - start_s)
            return CooldownActive(tool, round(left_s, 6)) if left_s > 0 else None
        case StartTest():
            return None if _succeeded(test.start, facts) else StartConstraintsNotMet(tool, (str(test.start),))
        case PrecedingTest():
            done = tuple(ref for ref in test.required if _succeeded(ref, facts))
            if len(done) == len(test.required):
                return None
            return PrerequisitesNotMet(tool, _names(test.required), _names(done))
        case FollowingTest():
            begun = tuple(ref for ref in test.later if _succeeded(ref, facts) or _is_flying(ref, facts))
            return OrderingViolation(tool, _names(test.later), _names(begun)) if begun else None
        case GroupTest():
            called = tuple(ref for ref in test.others if _called(ref, test.own, facts))
            if not called:
                return None
            return ExclusiveGroupViolation(tool, _names((*test.own, *test.others)), _names(called))
        case _:
            assert_never(test)


def _is_flying(ref: ToolRef, facts: SessionFacts) -> bool:
    return facts.is_flying(ref.tool, ref.operations)


def _succeeded(ref: ToolRef, facts: SessionFacts) -> bool:
    return facts.has_succeeded(ref.tool, ref.operations)


def _called(ref: ToolRef, own: tuple[ToolRef, ...], facts: SessionFacts) -> bool:
    """Whether a call that is of this member, and not of the caller's own, succeeded or is under way."""
    return any(
        ref.covers(ref.tool, operation) and not any(mine.covers(ref.tool, operation) for mine in own)
        for operation in facts.called(ref.tool)
    )


def _names(refs: Iterable[ToolRef]) -> tuple[str, ...]:
    return tuple(str(ref) for ref in refs)
