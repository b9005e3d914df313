"""Lookup: this agent can see this tool. Unknown and hidden tools get the same words."""

from __future__ import annotations

from dataclasses import replace

from gatewright.base.jsonvalue import is_text
from gatewright.compile.confinement import confinement_words
from gatewright.gate import message
from gatewright.gate.call import CallState, Stage, StageResult, denied

_NAMED = 80
_PASSES = StageResult(note="shown to this agent")


def _run(state: CallState) -> StageResult:
    if state.agent is None:
        return denied("unknown-agent", f"no agent `{_shown(state.agent_id)}` in the policy", message.NO_SUCH_TOOL)
    if state.user_id is not None and not is_text(state.user_id):
        return denied("bad-user", "the user id holds half of a surrogate pair", message.NO_SUCH_TOOL)
    plan = state.agent.plan(state.tool_name)
    absent = state.services.absent.get(state.tool_name) if plan is None else None
    if absent is not None:
        return denied("not-available", absent, message.NO_SUCH_TOOL)
    if plan is None:
        return denied("unknown-tool", f"no tool `{_shown(state.tool_name)}`", message.NO_SUCH_TOOL)
    if plan.closed is not None:
        return StageResult((replace(plan.closed, model=message.NO_SUCH_TOOL),))
    state.tool = plan
    words = confinement_words(state.agent.policy, state.agent.agent, plan.tool.name, plan.tool.origin)
    return StageResult(note=f"{_PASSES.note}; {words}") if words else _PASSES


def _shown(name: str) -> str:
    return name[:_NAMED].encode("utf-8", "backslashreplace").decode()


LOOKUP = Stage("lookup", _run)
