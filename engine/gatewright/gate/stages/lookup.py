"""Lookup: this agent can see this tool. Unknown and hidden tools get the same words. It knows no operation."""

from __future__ import annotations

from dataclasses import replace

from gatewright.gate import message
from gatewright.gate.call import CallState, Stage, StageResult, denied

_NAMED = 80


def _run(state: CallState) -> StageResult:
    if state.agent is None:
        return denied(
            state, "unknown-agent", f"no agent `{state.agent_id[:_NAMED]}` in the policy", message.NO_SUCH_TOOL
        )
    plan = state.agent.plan(state.tool_name)
    absent = state.ports.absent.get(state.tool_name) if plan is None else None
    if absent is not None:
        return denied(state, "not-available", absent, message.NO_SUCH_TOOL)
    if plan is None:
        return denied(state, "unknown-tool", f"no tool `{state.tool_name[:_NAMED]}`", message.NO_SUCH_TOOL)
    if plan.closed is not None:
        return StageResult(state, (replace(plan.closed, model=message.NO_SUCH_TOOL),))
    return StageResult(state.having(tool=plan), note="shown to this agent")


LOOKUP = Stage("lookup", _run)
