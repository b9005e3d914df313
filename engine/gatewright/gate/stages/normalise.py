"""Normalise: secrets scrubbed, then the canonical bytes that stand for the result, their hash, the text for the model.

A text stays the text that it is, anything else becomes canonical JSON; bytes that are no text are named by size and
hash. The hash is of the normalised bytes.
"""

from __future__ import annotations

import hashlib
import logging
import time

from gatewright.base import aio
from gatewright.base.content import plain_text
from gatewright.base.errors import ToolFailure
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue
from gatewright.base.thread import in_own_thread
from gatewright.compile.plan import ToolPlan
from gatewright.gate import message
from gatewright.gate.call import CallState, EffectStage, StageResult, Status
from gatewright.gate.failure import read_error
from gatewright.gate.heavy import apart
from gatewright.gate.output import binary_text, shown_text
from gatewright.gate.scrub import scrub_text, scrub_value
from gatewright.tools.declaration import Normalization
from gatewright.tools.result import unread
from gatewright.tools.tool import Tool

_log = logging.getLogger(__name__)


@frozen
class _Normal:
    output: str
    normal: bytes
    output_hash: str
    output_bytes: int
    secrets: int


async def _run(state: CallState) -> StageResult:
    if state.reused:
        return StageResult(note="reused")
    if state.status is not Status.ALLOWED:
        return StageResult(note=f"{state.secrets} secrets taken out" if state.secrets else "the call failed")
    try:
        if type(state.plan.tool).normalize is Tool.normalize:
            done = await apart(state.result, _normalised, state.plan, state.result)
        else:
            done = await _in_time(state, in_own_thread(_normalised, state.plan, state.result))
    except _TooLate:
        failure = unread()
        state.end(Status.TIMED_OUT, failure.code, message.to_model(str(failure)), state.detail)
        return StageResult(note="its own normalisation did not end in time")
    except _Broken as broken:
        raised = await read_error(broken.error)
        if not raised.is_failure:
            raised.log(_log, "the normalisation of the tool `%s` raised", state.tool_name)
        state.end(Status.FAILED, raised.code, message.to_model(message.MISMATCH), raised.in_words("tool"))
        return StageResult()
    state.output, state.normal, state.secrets = done.output, done.normal, done.secrets
    state.output_hash, state.output_bytes = done.output_hash, done.output_bytes
    return StageResult(note=_note(done))


class _Broken(Exception):
    """The tool's own normalisation raised ``error``."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error


class _TooLate(Exception):
    """The tool's own normalisation did not end within the time of its call."""


async def _in_time(state: CallState, work: aio.Future[_Normal]) -> _Normal:
    """What is worked out within the time that is left of the call."""
    begun_s = state.execution.began_s if state.execution is not None else time.monotonic()
    await aio.wait({work}, timeout=max(0.0, begun_s + state.plan.timeout_s - time.monotonic()))
    if not work.done():
        work.cancel()
        raise _TooLate
    return work.result()


def _note(done: _Normal) -> str:
    what = f"{len(done.normal):,} bytes, SHA-256 {done.output_hash[:12]}"
    if not done.secrets:
        return what
    return f"{what}; {done.secrets} {'secret' if done.secrets == 1 else 'secrets'} taken out"


def _normalised(plan: ToolPlan, result: JsonValue | bytes) -> _Normal:
    value, secrets = _scrubbed(plan, result) if plan.scrub else (result, 0)
    try:
        normal = plan.tool.actor.normalize(value)
    except Exception as error:  # noqa: BLE001 a tool's own method may raise anything
        raise _Broken(error) from None
    if not isinstance(normal, bytes):  # pyright: ignore[reportUnnecessaryIsInstance] a tool's own method may err
        raise _Broken(ToolFailure("its `normalize` did not give bytes", code="bad-result"))
    digest = hashlib.sha256(normal).hexdigest()
    text = _text(plan, value, normal)
    size = len(normal) if text is None else len(text.encode())
    return _Normal(binary_text(normal, digest) if text is None else text, normal, digest, size, secrets)


def _scrubbed(plan: ToolPlan, result: JsonValue | bytes) -> tuple[JsonValue | bytes, int]:
    if not isinstance(result, bytes):
        return plan.tool.scrubbed(result, scrub_value)
    text = plain_text(result)
    scrubbed, secrets = scrub_text(text) if text is not None else ("", 0)
    return (scrubbed.encode(), secrets) if secrets else (result, 0)


def _text(plan: ToolPlan, value: JsonValue | bytes, normal: bytes) -> str | None:
    """The text for the model; None where there is none, because the result is binary."""
    told = None if isinstance(value, bytes) else plan.tool.text_for_model(value)
    if told is not None:
        return told
    return shown_text(value, normal) if plan.tool.normalization is Normalization.JSON else plain_text(normal)


NORMALISE = EffectStage("normalise", _run)
"""
Acts, because a large result is worked through in a thread, and any where the tool has its own `normalize`.
"""
