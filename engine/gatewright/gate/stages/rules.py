"""Rules: what must come first, how often, how soon again. Tested here, reserved when the call is executed."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from gatewright.gate.call import CallState, Finding, Stage, StageResult
from gatewright.gate.ruleset import BoundRule, LimitRule, StartRule
from gatewright.gate.session import Breach
from gatewright.policy.verdict import Verdict

if TYPE_CHECKING:
    from gatewright.gate.snapshot import AgentSnapshot


def _run(state: CallState) -> StageResult:
    agent, operation = state.agent, state.chosen
    starts = agent.starts if agent is not None else ()
    if not starts and not operation.limits:
        return StageResult(state, note="no rule limits it")
    found = [*_starts(state, starts), *_limits(state, operation.limits)]
    found.sort(key=lambda pair: _order(pair[0]))
    return StageResult(state, tuple(finding for _, finding in found), note="within every limit")


def breach_finding(rule: LimitRule, breach: Breach) -> Finding:
    """The denial of a call that would break a limit."""
    bound, name = rule.bound, rule.bound.rule.rule_id
    if rule.limit.calls is not None:
        times = "once" if rule.limit.calls == 1 else f"{rule.limit.calls} times"
        reason = f"`{rule.limit.tool}` may be called {times} per session, and {breach.calls} calls were made"
        model = "this tool may not be called again in this session; go on without it"
        return Finding(
            Verdict.DENY,
            "max-calls",
            reason,
            bound.address,
            name,
            model,
            {"calls": breach.calls, "limit": rule.limit.calls},
        )
    wait_s = max(1, math.ceil(breach.wait_s))
    reason = f"`{rule.limit.tool}` needs {rule.limit.gap_s:g} s between calls; {breach.wait_s:.1f} s are left"
    model = f"this tool may be called again in {wait_s} s; do something else until then"
    return Finding(Verdict.DENY, "cooldown", reason, bound.address, name, model, {"wait_s": round(breach.wait_s, 3)})


def _starts(state: CallState, starts: tuple[StartRule, ...]) -> list[tuple[BoundRule, Finding]]:
    name, agent = state.tool_name, state.agent
    if agent is None or any(start.tool == name and start.bound.binds(state.chosen.name) for start in starts):
        return []
    return [
        (start.bound, _start_finding(agent, start))
        for start in starts
        if not state.session.has_succeeded(start.tool, start.bound.operations)
    ]


def _start_finding(agent: AgentSnapshot, start: StartRule) -> Finding:
    plan = agent.plan(start.tool)
    shown = plan is not None and plan.closed is None
    named = f"`{start.tool}`{_with(start.bound.operations)}"
    model = f"call {named} first" if shown else "this tool cannot be used yet; go on without it"
    if shown and start.bound.operations and plan is not None and not start.bound.operations <= plan.operations.keys():
        model = f"call `{start.tool}` first"
    reason = f"{named} must have succeeded before any other tool"
    return Finding(Verdict.DENY, "start-required", reason, start.bound.address, start.bound.rule.rule_id, model)


def _with(operations: frozenset[str] | None) -> str:
    return f" with {' or '.join(f'`{name}`' for name in sorted(operations))}" if operations else ""


def _limits(state: CallState, limits: tuple[LimitRule, ...]) -> list[tuple[BoundRule, Finding]]:
    now_s = state.ports.clock.monotonic_s()
    found: list[tuple[BoundRule, Finding]] = []
    for rule in limits:
        breach = state.session.breach((rule.limit,), now_s)
        if breach is not None:
            found.append((rule.bound, breach_finding(rule, breach)))
    return found


def _order(bound: BoundRule) -> tuple[int, bool, int]:
    """Higher priority first, the agent's rules before the tool's own, then the order of the file."""
    index = bound.address[-1] if bound.address else 0
    return -bound.rule.priority, bound.address is None, index if isinstance(index, int) else 0


RULES = Stage("rules", _run)
