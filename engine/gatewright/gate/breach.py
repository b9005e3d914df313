"""Compiled rules against a session as it was at one moment: what a call would break. It changes and asks nothing.

The stage decides with it, and a slot is taken under the same test, so that no race can overrun or reorder.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import assert_never

from gatewright.base.frozen import frozen
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
from gatewright.gate.session import SessionFacts
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

Uses = Mapping[str, int] | None
"""How often a call uses each operation; None: the one that it calls, once."""


@frozen
class Pending:
    """What must still succeed before the loop may end; ``bound`` is the most important of its rules."""

    bound: BoundRule
    tests: tuple[ExitTest, ...]


Broken = tuple[SessionTest | Pending, Violation]


def broken(
    book: RuleBook,
    tool: str,
    facts: SessionFacts,
    now_s: float,
    sources: frozenset[str],
    uses: Uses = None,
) -> list[Broken]:
    """Every test of the session that a call would fail now.

    What stands in one batch is done side by side: none of it comes before the rest.
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
    # Every start that is missing is named with each of them
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


def times_of(uses: Uses, operations: frozenset[str] | None) -> int:
    """How many calls of ``operations`` (None: of any) a call is that comes under a rule on them; one at least."""
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
            return None if _succeeded(test.start, facts) else StartConstraintsNotMet(tool, (str(test.start),))
        case PrecedingTest():
            done = tuple(ref for ref in test.required if _succeeded(ref, facts))
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
                if _called(ref, test.own, facts.called(ref.tool)) or _is_beside(ref, test.own, tool, uses)
            )
            if not called:
                return None
            return ExclusiveGroupViolation(tool, _names((*test.own, *test.others)), _names(called))
        case _:
            assert_never(test)


def _has_begun(ref: ToolRef, facts: SessionFacts) -> bool:
    return facts.may_have_succeeded(ref.tool, ref.operations) or facts.is_flying(ref.tool, ref.operations)


def _is_beside(ref: ToolRef, own: tuple[ToolRef, ...], tool: str, uses: Uses) -> bool:
    """Whether the call itself is of this one too, in the same batch."""
    return uses is not None and ref.tool == tool and _called(ref, own, uses)


def _succeeded(ref: ToolRef, facts: SessionFacts) -> bool:
    return facts.has_succeeded(ref.tool, ref.operations)


def _called(ref: ToolRef, own: tuple[ToolRef, ...], operations: Iterable[str]) -> bool:
    """Whether one of these calls is of this member, and not of the caller's own; ``""`` may have been any."""
    return any(
        ref.covers(ref.tool, operation) and not any(mine.covers(ref.tool, operation) for mine in own)
        if operation or ref.operations is None
        else ref.tool not in {mine.tool for mine in own if mine.operations is None}
        for operation in operations
    )


def _names(refs: Iterable[ToolRef]) -> tuple[str, ...]:
    return tuple(str(ref) for ref in refs)
