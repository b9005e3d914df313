"""Stages that turn a result, or an exception, into the text for the model.

* **output**: the result is of the kind that the tool declared and fits its output schema. By the policy for the tool, a
  misfit fails the call (the operator reads the fault, the model a general sentence), is accepted with a note in trace
  and log, or is not checked.
* **normalise**: scrub secrets, then make the canonical bytes of the result, their hash, and the text for the model. A
  text stays as it is, anything else becomes canonical JSON; binary data appears as size and hash. The hash is of the
  normalised bytes.
* **truncate**: the model gets no more than the agent's share of bytes, and the original size.

A thread asks a foreign exception for its words, since code of that exception may never end.
"""

from __future__ import annotations

import hashlib
import logging
import time
import traceback
from typing import cast

from gatewright.base.errors import ForeignStore, ToolFailure, WorkspaceError
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue
from gatewright.base.late import aio, in_own_thread
from gatewright.base.printable import plain_text
from gatewright.compile.plan import ToolPlan
from gatewright.gate import record
from gatewright.gate.call import CallState, EffectStage, Stage, StageResult, Status, deny
from gatewright.gate.decision import Message, to_model
from gatewright.gate.scrub import LARGE, apart, binary_text, scrub_text, scrub_value, valid
from gatewright.policy.document import OutputCheck
from gatewright.schema.check import SchemaChecker
from gatewright.tools.declaration import Normalization
from gatewright.tools.result import kind_problem, unread
from gatewright.tools.tool import Tool

READ_S = 1.0
"""The time for an exception to describe itself."""
CRASHED = "tool-crashed"
_CUT = " [cut]"


class Exited(BaseException):
    """A tool tried to end the program."""


@frozen
class Raised:
    """A raised exception: its type, its own words, code and detail (of a ToolFailure, bounded), and the traceback.

    ``trace`` is None if it did not answer in time; nobody asks it again.
    """

    error: BaseException
    name: str = "an error that could not be read"
    text: str = Message.CRASHED
    code: str = CRASHED
    trace: str | None = None
    detail: str = ""

    @property
    def is_failure(self) -> bool:
        """True for a ToolFailure, whose words are for the model."""
        return issubclass(type(self.error), ToolFailure)

    def in_words(self, who: str) -> str:
        """Describe an exception of the host's code for the operator; a ToolFailure describes itself."""
        if self.is_failure:
            return self.detail or self.text
        if type(self.error) is Exited:
            return f"the {who} tried to end the program"
        told = self.name if self.trace is None else f"{self.name}: {self.text}"
        return record.clean(f"the {who} raised {told}", 500)

    def log(self, log: logging.Logger, text: str, *args: object) -> None:
        """Log an error with its traceback and without secrets, so that no handler needs to ask the exception again.

        A WorkspaceError is for the operator, not for the tool's author: its words are enough.
        """
        if not log.isEnabledFor(logging.ERROR):
            return
        error = self.error
        if issubclass(type(error), WorkspaceError):
            log.error(f"{text}: %s", *args, scrub_text(self.text)[0])
            return
        log_error(log, error, self.trace, text, *args)


def log_error(log: logging.Logger, error: BaseException, trace: str | None, text: str, *args: object) -> None:
    """Log an error with its traceback, without secrets. ``trace`` is the traceback as text, None if unavailable."""
    told, secrets = scrub_text(trace or "")
    info = None if trace is None or secrets else (type(error), error, error.__traceback__)
    row = log.makeRecord(log.name, logging.ERROR, __file__, 0, text, args, info)
    row.exc_text = told or None
    log.handle(row)


def trace_of(error: BaseException) -> str:
    """The traceback as text. Raises whatever the exception itself raises."""
    return _bound("".join(traceback.format_exception(error)).rstrip("\n"))


async def read_error(error: BaseException) -> Raised:
    """Ask an exception to describe itself, and wait only a moment."""
    work = in_own_thread(_read, error)
    await aio.wait({work}, timeout=READ_S)
    if work.done():
        return work.result()
    work.cancel()
    return Raised(error)


def _read(error: BaseException) -> Raised:
    kind, code, detail = type(error), CRASHED, ""
    try:
        text = _bound(str(error))
        if issubclass(kind, ToolFailure):
            failure = cast("ToolFailure", error)
            code, detail = record.clean(scrub_text(_bound(str(failure.code)))[0]), _bound(str(failure.detail))
    except Exception:  # noqa: BLE001 a stranger's exception may fail to print
        text = Message.CRASHED
    try:
        trace = trace_of(error)
    except Exception:  # noqa: BLE001 or to show its traceback
        trace = text
    return Raised(error, _bound(kind.__name__), text, code, trace, detail)


def _bound(text: str) -> str:
    """Return the text as a plain `str`, valid and of bounded length."""
    plain = str.__str__(text)
    return valid(plain if len(plain) <= LARGE else plain[:LARGE] + _CUT)


_ERRORS_TOLD = 5


async def _check_output(state: CallState) -> StageResult:
    """Check the result against the tool's declared kind and output schema."""
    if state.status is not Status.ALLOWED:
        return StageResult(note="the call failed")
    if state.reused:
        return StageResult(note="reused")
    tool, check = state.plan.tool, state.plan.output
    problem = kind_problem(state.result, tool.result_type)
    checker = tool.output_checker_of(state.chosen.name)
    if problem is None and checker is None:
        return StageResult(note="no output schema")
    if problem is None and check is OutputCheck.OFF:
        return StageResult(note="not checked: output is off")
    if problem is None and checker is not None:
        problem = await apart(state.is_heavy, _problem, tool, checker, state.result)
        if problem is not None and check is OutputCheck.WARN:
            state.misfit = problem
            return StageResult(note=f"accepted as it is: {problem}")
    if problem is None:
        return StageResult(note="fits")
    state.end(Status.FAILED, "output-mismatch", to_model(Message.MISMATCH), problem)
    return StageResult(note=state.detail)


def _problem(tool: Tool, checker: SchemaChecker, result: JsonValue | bytes) -> str | None:
    """Return the fault of the result, or None."""
    if isinstance(result, bytes):
        return None
    part = tool.output_part(result)
    if checker.is_valid(part):
        return None
    errors = [f"`{error.pointer or '/'}`: {error.message}" for error in checker.errors(part)[:_ERRORS_TOLD]]
    return "the result does not fit the output schema: " + "; ".join(errors)


OUTPUT = EffectStage("output", _check_output)
"""An effect stage, because a thread checks a large result."""


_log = logging.getLogger(__name__)


@frozen
class _Normal:
    output: str
    normal: bytes
    output_hash: str
    output_bytes: int
    secrets: int


async def _normalise(state: CallState) -> StageResult:
    """Scrub secrets, then make the canonical bytes of the result, their hash and the text for the model."""
    if state.reused:
        return StageResult(note="reused")
    if state.status is not Status.ALLOWED:
        return StageResult(note=f"{state.secrets} secrets removed" if state.secrets else "the call failed")
    try:
        if type(state.plan.tool).normalize is Tool.normalize:
            done = await apart(state.is_heavy, _make_normal, state.plan, state.result)
        else:
            done = await _in_time(state, in_own_thread(_make_normal, state.plan, state.result))
    except _TooLate:
        failure = unread()
        state.end(Status.TIMED_OUT, failure.code, to_model(str(failure)), state.detail)
        return StageResult(note="its own normalisation did not end in time")
    except _Broken as broken:
        raised = await read_error(broken.error)
        if not raised.is_failure:
            raised.log(_log, "the normalisation of the tool `%s` failed", state.tool_name)
        state.end(Status.FAILED, raised.code, to_model(Message.MISMATCH), raised.in_words("tool"))
        return StageResult()
    state.output, state.normal, state.secrets = done.output, done.normal, done.secrets
    state.output_hash, state.output_bytes = done.output_hash, done.output_bytes
    note = f"{len(done.normal):,} bytes, SHA-256 {done.output_hash[:12]}"
    if done.secrets:
        note += f"; {done.secrets} {'secret' if done.secrets == 1 else 'secrets'} removed"
    return StageResult(note=note)


class _Broken(Exception):
    """The tool's own normalisation raised ``error``."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error


class _TooLate(Exception):
    """The tool's own normalisation exceeded the time of its call."""


async def _in_time(state: CallState, work: aio.Future[_Normal]) -> _Normal:
    """The result of the work within the remaining time of the call."""
    begun_s = state.execution.began_s if state.execution is not None else time.monotonic()
    await aio.wait({work}, timeout=max(0.0, begun_s + state.plan.timeout_s - time.monotonic()))
    if not work.done():
        work.cancel()
        raise _TooLate
    return work.result()


def _make_normal(plan: ToolPlan, result: JsonValue | bytes) -> _Normal:
    value, secrets = result, 0
    if plan.scrub:
        is_binary = isinstance(result, bytes)
        value, secrets = _scrub(result) if is_binary else plan.tool.scrub_result(result, scrub_value)
    try:
        normal = plan.actor.normalize(value)
    except Exception as error:  # noqa: BLE001 a tool's own method may raise anything
        raise _Broken(error) from None
    if not isinstance(normal, bytes):  # pyright: ignore[reportUnnecessaryIsInstance] a tool's own method may err
        raise _Broken(ToolFailure("its `normalize` returned no bytes", code="bad-result"))
    digest = hashlib.sha256(normal).hexdigest()
    text = None if isinstance(value, bytes) else plan.tool.text_for_model(value)
    if text is None and plan.tool.normalization is Normalization.JSON:
        text = value if isinstance(value, str) else normal.decode()
    elif text is None:
        text = plain_text(normal)
    size = len(normal) if text is None else len(text.encode())
    return _Normal(binary_text(normal, digest) if text is None else text, normal, digest, size, secrets)


def _scrub(result: bytes) -> tuple[bytes, int]:
    text = plain_text(result)
    scrubbed, secrets = scrub_text(text) if text is not None else ("", 0)
    return (scrubbed.encode(), secrets) if secrets else (result, 0)


NORMALISE = EffectStage("normalise", _normalise)
"""An effect stage, because a thread processes a large result, and any result of a tool with its own `normalize`."""


def cut(text: str, limit: int) -> str | None:
    """The first ``limit`` bytes of the UTF-8 text, whole characters only, and the suffix; None if it fits."""
    if len(text) * 4 <= limit:
        return None
    data = text.encode()
    if len(data) <= limit:
        return None
    head = data[:limit].decode("utf-8", "ignore")
    return f"{head}\n[output truncated — original size: {len(data):,} bytes]"


def _truncate(state: CallState) -> StageResult:
    """Give the model no more than the agent's share of bytes, and the original size."""
    shorter = cut(state.output or "", state.plan.max_output_bytes)
    if shorter is None:
        return StageResult(note="fits")
    state.output, state.truncated = shorter, True
    return StageResult(note="cut")


TRUNCATE = Stage("truncate", _truncate)


def stage_failure(name: str, error: BaseException) -> StageResult:
    """The denial of a call whose stage raised ``error``; the log gets the trace."""
    if type(error) is ForeignStore:
        _log.error("the stage %s was refused memory: %s", name, error)
        return deny(error.code, str(error), Message.FOREIGN)
    trace: str | None = None
    try:
        trace = trace_of(error)
        words = f"{type(error).__name__}: {error}"[:200]
    except Exception:  # noqa: BLE001 a stranger's exception may fail to print
        words = type(error).__name__
    log_error(_log, error, trace, "the stage %s raised", name)
    return deny("internal-error", f"the stage {name} failed: {words}", Message.INTERNAL)
