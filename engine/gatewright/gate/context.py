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
from gatewright.tools.context import OnPiece, Progress, StopSignal, ToolExecutionContext
from gatewright.tools.declaration import ResourceBounds

_MOST_WORDS = 2_000
_log = logging.getLogger(__name__)


def context_of(state: CallState) -> ToolExecutionContext:
    """The snapshot for the tool; ``granted`` is the action that the permission stage allowed."""
    return ToolExecutionContext(
        agent_id=state.agent_id,
        session_id=state.session.session_id,
        operation=state.operation.name if state.operation is not None else "",
        call_id=state.call_id,
        user_id=state.user_id,
        source_ids=state.agent.source_ids if state.agent else (),
        own_source_ids=state.agent.own_source_ids if state.agent else (),
        granted=state.assessment.action if state.assessment else None,
        ports=state.ports,
        client=state.client,
    )


@lru_cache(maxsize=256)
def _within(bounds: ResourceBounds, timeout_s: float) -> ResourceBounds:
    return replace(bounds, timeout_s=timeout_s)


def running_context(state: CallState, stop: StopSignal) -> ToolExecutionContext:
    """The snapshot for a tool that begins now: with its deadline, the signal to stop, and its bounds.

    These are the smaller of what the tool declares and what the agent is granted, with the time that the policy gives.
    """
    plan, agent, needs = state.plan, state.agent.agent if state.agent else None, state.chosen.capabilities
    bounds = plan.tool.resource_bounds
    if bounds.timeout_s != plan.timeout_s:
        bounds = _within(bounds, plan.timeout_s)
    if agent is not None and needs:
        bounds = bounds_of(bounds, needs, agent)
    is_approved = state.grant is not None and state.grant.approved
    if state.answer is not None:
        is_approved = state.answer.approval.approved is True
    return replace(
        context_of(state),
        bounds=bounds,
        capabilities=agent.capabilities if agent is not None else (),
        deadline_s=time.monotonic() + plan.timeout_s,
        stop=stop,
        again=state.again,
        step=state.step,
        approved_change=state.assessment.change if state.assessment and state.answer else None,
        agreed=state.assessment is not None and state.assessment.ask is not None,
        approved=is_approved,
        progress=None if state.progress is None else partial(_tell_progress, state.progress, plan.scrub),
        note=partial(setattr, state, "ran_under"),
        on_piece=None if state.on_piece is None else partial(_tell_piece, state.on_piece, stop, plan.scrub),
    )


def _tell_progress(tell: Progress, scrub: bool, amount: float, whole: float | None, words: str | None) -> None:
    """Say how far the call is; of words that are too long the beginning."""
    if words is not None:
        words = words[:_MOST_WORDS]
        words = scrub_text(words)[0] if scrub else words
    tell(amount, whole, words)


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
