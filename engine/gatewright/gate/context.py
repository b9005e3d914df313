"""What a tool is told about the call: built from the state, never from what the model sent. It runs nothing."""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from functools import lru_cache, partial

from gatewright.gate.call import CallState
from gatewright.gate.heavy import is_large
from gatewright.gate.scope import bounds_of
from gatewright.gate.scrub import scrub_text
from gatewright.tools.context import OnPiece, StopSignal, ToolExecutionContext
from gatewright.tools.declaration import ResourceBounds

_log = logging.getLogger(__name__)


def context_of(state: CallState) -> ToolExecutionContext:
    """The snapshot for the tool; ``granted`` is the action that the permission stage allowed."""
    return ToolExecutionContext(
        agent_id=state.agent_id,
        session_id=state.session.session_id,
        call_id=state.call_id,
        user_id=state.user_id,
        source_ids=state.agent.source_ids if state.agent else (),
        granted=state.assessment.action if state.assessment else None,
        ports=state.ports,
        client=state.client,
    )


def _bounds(state: CallState) -> ResourceBounds:
    """The smaller of what the tool declares and what the agent is granted, with the time that the policy gives."""
    own, timeout_s = state.plan.tool.resource_bounds, state.plan.timeout_s
    if own.timeout_s != timeout_s:
        own = _within(own, timeout_s)
    needs = state.chosen.capabilities
    return own if state.agent is None or not needs else bounds_of(own, needs, state.agent.agent)


@lru_cache(maxsize=256)
def _within(bounds: ResourceBounds, timeout_s: float) -> ResourceBounds:
    return replace(bounds, timeout_s=timeout_s)


def running_context(state: CallState, stop: StopSignal) -> ToolExecutionContext:
    """The snapshot for a tool that begins now: with its bounds, its deadline and the signal to stop."""
    plan = state.plan
    return replace(
        context_of(state),
        bounds=_bounds(state),
        capabilities=state.agent.agent.capabilities if state.agent else (),
        deadline_s=time.monotonic() + plan.timeout_s,
        stop=stop,
        again=state.again,
        approved_change=state.assessment.change if state.assessment and state.answer else None,
        agreed=state.assessment is not None and state.assessment.ask is not None,
        approved=_approved(state),
        progress=state.progress,
        on_piece=None if state.on_piece is None else partial(_tell_piece, state.on_piece, stop, plan.scrub),
    )


def _tell_piece(tell: OnPiece, stop: StopSignal, scrub: bool, piece: str) -> None:
    """Show a piece of a stream to whoever watches; a watcher that fails stops no call.

    A large one, which would hold up the loop, is seen in the whole result alone.
    """
    if stop.is_set() or is_large(piece):
        return
    try:
        tell(scrub_text(piece)[0] if scrub else piece)
    except Exception:  # noqa: BLE001 the watcher is the host's code
        _log.exception("a watcher of pieces failed")


def _approved(state: CallState) -> bool:
    if state.answer is not None:
        return state.answer.approval.approved is True
    return state.grant is not None and state.grant.approved
