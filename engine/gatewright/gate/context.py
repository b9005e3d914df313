"""What a tool is told about the call: built from the state, never from what the model sent. It runs nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gatewright.tools.context import ToolExecutionContext

if TYPE_CHECKING:
    from gatewright.gate.call import CallState


def context_of(state: CallState) -> ToolExecutionContext:
    """The snapshot for the tool; ``granted`` is the action that the permission stage allowed."""
    return ToolExecutionContext(
        agent_id=state.agent_id,
        session_id=state.session.session_id,
        call_id=state.call_id,
        user_id=state.user_id,
        source_ids=state.agent.source_ids if state.agent else (),
        granted=state.assessment.action if state.assessment else None,
        sources=state.ports.sources,
    )
