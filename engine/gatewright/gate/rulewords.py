"""Broken rules and constraints in two sets of words: the whole story for the operator, the next step for the model.

The model never reads hidden names.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import assert_never

from gatewright.base.amount import duration_words
from gatewright.base.jsonvalue import JsonValue
from gatewright.base.pattern import folder_words, texts_in_folders
from gatewright.compile.agent import AgentSnapshot
from gatewright.compile.rule_test import (
    BoundRule,
    CallsTest,
    Constraint,
    Due,
    Finding,
    FollowingTest,
    GapTest,
    GroupTest,
    PrecedingTest,
    RateTest,
    SessionTest,
    StartTest,
    ToolRef,
)
from gatewright.gate.breach import KEY, ConstraintViolation, MaxCallsExceeded, Pending, RateLimited, Violation, to_json
from gatewright.gate.call import CallState
from gatewright.gate.session import SessionFacts
from gatewright.gate.stages.read import leads_out
from gatewright.policy.rule import ArgumentConstraints
from gatewright.policy.verdict import Verdict
from gatewright.schema.contradiction import is_off
from gatewright.schema.walk import pointer_text
from gatewright.tools.parameter import Role

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
    """The denial of a call that comes too soon for its rate, or that exceeds the rate by itself."""
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
    """Those of ``refs`` that the model sees, in words; hidden tools and operations are left out."""
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
    """Tell whether nothing of it succeeded for long enough, counted from the start of the session at the earliest."""
    last_s = facts.last_success_s(one.counted.tool, one.counted.operations)
    since_s = last_s if last_s is not None else facts.began_s
    return since_s is not None and now_s - since_s >= one.every_s


def _sentence(agent: AgentSnapshot, one: Due) -> str | None:
    names = visible_words([one.counted], agent)
    return f"{names[0]} is due: call it every {duration_words(one.every_s)}." if names else None


Found = tuple["BoundRule", Finding]
SAID = "the arguments are limited:\n"
MUST_BE_GIVEN = "must be given"
_CANONICAL = frozenset({Role.PATH, Role.FILE})


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
    """The required folders that paths of a stranger's tool leave through a link.

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
    """The fields that the rule requires of an operation of the call and that the call omits."""
    kind, facts = one.bound.rule.rule_type, state.plan.right.facts
    if not isinstance(kind, ArgumentConstraints) or arguments.keys() >= set(kind.required):
        return []
    called = {part.name for part in state.chosen.parts or (state.chosen,)}
    asked = (facts.mandatory_arguments(one.bound.rule, row) for row in facts.operations if row.name in called)
    return [name for name in dict.fromkeys(chain.from_iterable(asked)) if name not in arguments]


def _defaults(state: CallState, one: Constraint, name: str) -> Iterator[JsonValue]:
    """The defaults of an omitted field, by each operation of the call that the constraint binds."""
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
    """The faults for the model; those of the field that selects operations may name a hidden one and are replaced."""
    selector, redactor = state.plan.tool.selector, state.plan.redactor
    carries = selector is not None and name in selector.fields
    for line in where:
        yield (
            f"{line.split(': ', 1)[0]}: is not allowed; try another value"
            if carries and redactor.visible(line) != line
            else line
        )
