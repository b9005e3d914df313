"""A broken rule in two sets of words: everything for the operator, for the model what it can do. It decides nothing.

What the model does not see is not named to it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import assert_never

from gatewright.base.durationwords import duration_words
from gatewright.base.jsonvalue import JsonValue
from gatewright.compile.agent import AgentSnapshot
from gatewright.compile.finding import Finding
from gatewright.compile.rule_test import (
    BoundRule,
    CallsTest,
    Due,
    FollowingTest,
    GapTest,
    GroupTest,
    PrecedingTest,
    RateTest,
    SessionTest,
    StartTest,
    ToolRef,
)
from gatewright.gate import violation as broken
from gatewright.gate.breach import Pending
from gatewright.gate.session import SessionFacts
from gatewright.policy.verdict import Verdict

_NOT_YET = "this tool cannot be used yet; go on without it"
_NOT_THE_END = "you cannot finish yet; go on with your task"
_NO_MORE = "this tool cannot be used in this session any more; go on without it"


def finding_of(test: SessionTest | Pending, violation: broken.Violation, agent: AgentSnapshot) -> Finding:
    """The denial of a call that breaks a rule of the session."""
    bound, tool = test.bound, violation.tool
    match test:
        case StartTest(_, start):
            told = named([start], agent)
            reason = f"{operator_words([start])} must have succeeded before any other tool"
            return denial("start-required", reason, bound, f"call {told[0]} first" if told else _NOT_YET, violation)
        case PrecedingTest(_, required):
            left = [ref for ref in required if str(ref) not in getattr(violation, "executed", ())]
            told = named(left, agent)
            reason = f"{operator_words(left)} must have succeeded before `{tool}`"
            model = f"call {joined(told, 'and')} first" if told else _NOT_YET
            return denial("preceding-required", reason, bound, model, violation)
        case FollowingTest(_, later):
            begun = [ref for ref in later if str(ref) in getattr(violation, "already_executed", ())]
            told = named(begun, agent)
            reason = f"`{tool}` must come before {operator_words(begun, 'and')}, and that was called already"
            model = f"this tool has to come before {joined(told, 'and')}, which came first; go on without it"
            return denial("too-late", reason, bound, model if told else _NO_MORE, violation)
        case GroupTest(_, _, others):
            called = [ref for ref in others if str(ref) in getattr(violation, "already_called", ())]
            told = named(called, agent)
            reason = f"`{tool}` excludes {operator_words(called, 'and')} within a session, and that was called already"
            model = f"this tool excludes {joined(told, 'and')}, which was called in this session; go on without it"
            return denial("exclusive-group", reason, bound, model if told else _NO_MORE, violation)
        case CallsTest(_, counted, calls):
            return _max_calls(bound, counted, calls, violation)
        case GapTest(_, counted, gap_s):
            left_s = getattr(violation, "remaining_s", 0.0)
            reason = f"`{counted.tool}` needs {duration_words(gap_s)} between calls; {_left(left_s)} are left"
            wait_s = max(1, math.ceil(round(left_s, 3)))
            model = f"this tool may be called again in {duration_words(wait_s)}; do something else until then"
            return denial("cooldown", reason, bound, model, violation, {"wait_s": round(left_s, 3)})
        case Pending(_, tests):
            required = list(dict.fromkeys(one.required for one in tests))
            told = named(required, agent)
            reason = f"{operator_words(required)} must have succeeded before `{tool}` may end the loop"
            model = f"call {joined(told, 'and')} before you finish" if told else _NOT_THE_END
            return denial("exit-requirements-pending", reason, bound, model, violation)
        case _:
            assert_never(test)


def _max_calls(bound: BoundRule, counted: ToolRef, calls: int, violation: broken.Violation) -> Finding:
    assert isinstance(violation, broken.MaxCallsExceeded)
    made, asked, left = violation.current, violation.asked, max(0, calls - violation.current)
    done = "1 call was made" if made == 1 else f"{made} calls were made"
    here = f", and this call counts as {asked}" if asked > 1 else ""
    reason = f"`{counted.tool}` may be called {_times(calls)} per session, and {done}{here}"
    model = "this tool may not be called again in this session; go on without it"
    if left:  # so it was asked for more than one
        model = f"this call does more at once than is left in this session: {left} at most"
    return denial("max-calls", reason, bound, model, violation, {"calls": made, "limit": calls})


def _left(wait_s: float) -> str:
    """The time that a call that comes too soon has to wait, in tenths of a second; never none."""
    return f"{max(1, math.ceil(round(wait_s, 3) * 10)) / 10:.1f} s"


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def rate_finding(test: RateTest, tool: str, wait_s: float) -> Finding:
    """The denial of a call that comes too soon for its rate, or that is more than its rate ever allows at once."""
    rule = test.rate.rule
    reason = f"`{tool}` may be called {_times(rule.calls)} per {duration_words(rule.per_s)}; {_left(wait_s)} are left"
    shown_s = max(1, math.ceil(round(wait_s, 3)))
    model = f"this tool was called too often; it may be called again in {duration_words(shown_s)}"
    if test.rate.calls > rule.calls > 0:
        model = f"this call does more at once than is allowed: {rule.calls} at most"
    rounded = round(wait_s, 3)
    return denial("rate-limit", reason, test.bound, model, broken.RateLimited(tool, rounded), {"wait_s": rounded})


def denial(
    code: str,
    reason: str,
    bound: BoundRule,
    model: str,
    violation: broken.Violation,
    facts: Mapping[str, JsonValue] | None = None,
) -> Finding:
    """A refusal by a rule, with its values."""
    told = {**(facts or {}), broken.KEY: broken.to_json(violation)}
    return Finding(Verdict.DENY, code, reason, bound.address, bound.rule.rule_id, model, told)


def named(refs: Iterable[ToolRef], agent: AgentSnapshot) -> list[str]:
    """What the model sees of ``refs``, in words; hidden tools and operations are left out."""
    found: list[str] = []
    for ref in refs:
        plan = agent.plan(ref.tool)
        if plan is None or plan.closed is not None:
            continue
        if ref.operations is None:
            found.append(f"`{ref.tool}`")
        elif seen := sorted(ref.operations & plan.operations.keys()):
            found.append(f"`{ref.tool}` with {joined([f'`{name}`' for name in seen], 'or')}")
    return found


def operator_words(refs: Sequence[ToolRef], word: str = "and") -> str:
    """``refs`` as they are."""
    return joined([_whole(ref) for ref in refs], word)


def joined(names: Sequence[str], word: str) -> str:
    """Names as people list them."""
    if len(names) <= 1:
        return "".join(names)
    return f"{', '.join(names[:-1])} {word} {names[-1]}"


def _whole(ref: ToolRef) -> str:
    if not ref.operations:
        return f"`{ref.tool}`"
    return f"`{ref.tool}` with {joined([f'`{name}`' for name in sorted(ref.operations)], 'or')}"


def reminders(agent: AgentSnapshot, facts: SessionFacts, now_s: float) -> tuple[str, ...]:
    """One sentence for each tool that is due, most important first; a session that never began is owed nothing."""
    told = (_sentence(agent, one) for one in agent.rules.due if is_due(one, facts, now_s))
    return tuple(dict.fromkeys(text for text in told if text is not None))


def is_due(one: Due, facts: SessionFacts, now_s: float) -> bool:
    """Whether nothing of it succeeded for long enough, counted from the beginning of the session at the earliest."""
    last_s = facts.last_success_s(one.counted.tool, one.counted.operations)
    since_s = last_s if last_s is not None else facts.began_s
    return since_s is not None and now_s - since_s >= one.every_s


def _sentence(agent: AgentSnapshot, one: Due) -> str | None:
    names = named([one.counted], agent)
    return f"{names[0]} is due: it is to be called every {duration_words(one.every_s)}." if names else None
