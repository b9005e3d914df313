"""Execute: counters reserved, the call recorded, the tool run within its time. Nothing runs that is not recorded first.

A tool that does not stop when asked is left behind: its result is discarded, and the call ends as abandoned.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from typing import TYPE_CHECKING, Any

from gatewright.base.errors import ToolFailure
from gatewright.gate import message, record
from gatewright.gate.audit import AuditUnavailable, RowKind
from gatewright.gate.call import CallState, EffectStage, StageResult, Status, denied
from gatewright.gate.context import context_of
from gatewright.gate.output import output_text, valid
from gatewright.gate.session import Breach
from gatewright.gate.stages.rules import breach_finding

if TYPE_CHECKING:
    from gatewright.base.jsonvalue import JsonValue

GRACE_S = 1.0
"""How long a tool that was asked to stop may take to do so."""

_ENDS = {
    Status.ALLOWED: RowKind.TOOL_COMPLETED,
    Status.FAILED: RowKind.TOOL_FAILED,
    Status.TIMED_OUT: RowKind.TOOL_TIMED_OUT,
    Status.ABANDONED: RowKind.TOOL_ABANDONED,
}


async def _run(state: CallState) -> StageResult:
    limits = state.chosen.limits
    plain = tuple(rule.limit for rule in limits)
    taken = state.session.reserve(state.tool_name, state.chosen.name, plain, state.ports.clock.monotonic_s())
    if isinstance(taken, Breach):
        rule = next(rule for rule in limits if rule.limit is taken.limit)
        return StageResult(state, (breach_finding(rule, taken),))
    try:
        if state.pending is not None:
            state.ports.commit(state.pending)
    except AuditUnavailable as error:
        state.session.release(taken)
        return denied(state, "audit-unavailable", str(error), message.UNRECORDED)
    except BaseException:
        state.session.release(taken)
        raise
    return StageResult(await _executed(state), note="executed")


async def _executed(state: CallState) -> CallState:
    began = time.monotonic()
    task = asyncio.ensure_future(_invoke(state))
    try:
        done, _ = await asyncio.wait({task}, timeout=state.plan.timeout_s)
        ended = _ended(state, task) if done else await _stopped(state, task)
    except asyncio.CancelledError:
        await _cancelled(state, task, began)
        raise
    return _recorded(ended, began)


async def _invoke(state: CallState) -> JsonValue | bytes:
    return await state.plan.tool.execute(state.chosen.name, state.arguments, context_of(state))


def _ended(state: CallState, task: asyncio.Future[JsonValue | bytes]) -> CallState:
    """What became of a tool that ran to its end."""
    try:
        text = output_text(task.result())
    except ToolFailure as failure:
        return _failed(state, record.clean(failure.code), state.plan.redactor(_words(failure)))
    except BaseException:  # noqa: BLE001 what a tool raised is kept in its task; it may be anything
        return _failed(state, "tool-crashed", message.CRASHED)
    return state.having(output=text)


def _failed(state: CallState, code: str, text: str) -> CallState:
    return state.having(status=Status.FAILED, code=code, output=message.to_model(valid(text)))


def _words(failure: ToolFailure) -> str:
    try:
        return str(failure)
    except Exception:  # noqa: BLE001 a tool's own exception may not even print
        return message.CRASHED


async def _stopped(state: CallState, task: asyncio.Future[Any]) -> CallState:
    """Ask the tool to stop; it may take a moment, and no more."""
    task.cancel()
    done, _ = await asyncio.wait({task}, timeout=GRACE_S)
    _forget(task)
    if done:
        return state.having(status=Status.TIMED_OUT, code="timed-out", output=message.to_model(message.TIMED_OUT))
    return state.having(status=Status.ABANDONED, code="abandoned", output=message.to_model(message.ABANDONED))


async def _cancelled(state: CallState, task: asyncio.Future[Any], began: float) -> None:
    """The caller gave up: the tool is asked to stop, and the call is recorded as abandoned in any case."""
    task.cancel()
    try:
        await asyncio.wait({task}, timeout=GRACE_S)
    finally:
        _forget(task)
        _recorded(state.having(status=Status.ABANDONED, code="cancelled"), began)


def _forget(task: asyncio.Future[Any]) -> None:
    """Nobody waits for the result any more; whatever it turns out to be is dropped."""
    task.add_done_callback(lambda done: done.cancelled() or done.exception())


def _recorded(state: CallState, began: float) -> CallState:
    """Write the end of the call; a result whose end cannot be recorded is withheld."""
    data = (state.output or "").encode()
    digest = hashlib.sha256(data).hexdigest()
    if state.status is Status.ALLOWED:
        state.session.succeeded(state.tool_name, state.chosen.name, ends_loop=state.chosen.ends_loop)
    body: dict[str, JsonValue] = {
        "code": state.code,
        "bytes": len(data),
        "hash": digest,
        "elapsed_ms": round((time.monotonic() - began) * 1000, 3),
    }
    try:
        state.ports.commit(lambda _log: (record.entry(state, _ENDS[state.status], body),))
    except AuditUnavailable:
        return _failed(state, "audit-unavailable", message.RESULT_UNRECORDED)
    return state.having(output_hash=digest, output_bytes=len(data))


EXECUTE = EffectStage("execute", _run)
