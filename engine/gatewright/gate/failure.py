"""What an exception of somebody else's says of itself. Its own code may never end, so no event loop runs it."""

from __future__ import annotations

import logging
import traceback
from typing import cast

from gatewright.base import aio
from gatewright.base.errors import ToolFailure, WorkspaceError
from gatewright.base.frozen import frozen
from gatewright.base.thread import in_own_thread
from gatewright.gate import message, record
from gatewright.gate.heavy import LARGE
from gatewright.gate.output import valid
from gatewright.gate.scrub import scrub_text

READ_S = 1.0
"""How long an exception may take to say what it is."""
CRASHED = "tool-crashed"
_CUT = " [cut]"


class Exited(BaseException):
    """A tool tried to end the program."""


@frozen
class Raised:
    """What was raised: its type, its own words, code and detail (a ToolFailure's, bounded), and the traceback.

    ``trace`` None: it did not say in time, and must not be asked again.
    """

    error: BaseException
    name: str = "an error that could not be read"
    text: str = message.CRASHED
    code: str = CRASHED
    trace: str | None = None
    detail: str = ""

    @property
    def is_failure(self) -> bool:
        """Whether it is a ToolFailure, whose words are for the model."""
        return issubclass(type(self.error), ToolFailure)

    def in_words(self, who: str) -> str:
        """What the host's code raised, for the operator; a ToolFailure says it itself."""
        if self.is_failure:
            return self.detail or self.text
        if type(self.error) is Exited:
            return f"the {who} tried to end the program"
        told = self.name if self.trace is None else f"{self.name}: {self.text}"
        return record.clean(f"the {who} raised {told}", 500)

    def log(self, log: logging.Logger, text: str, *args: object) -> None:
        """Write an error with the traceback, less its secrets; no handler has to ask the exception for its words again.

        One of the workspace is for whoever looks after it, not for who wrote the tool, and says all in its words.
        """
        if not log.isEnabledFor(logging.ERROR):
            return
        error = self.error
        if issubclass(type(error), WorkspaceError):
            log.error(f"{text}: %s", *args, scrub_text(self.text)[0])
            return
        log_error(log, error, self.trace, text, *args)


def log_error(log: logging.Logger, error: BaseException, trace: str | None, text: str, *args: object) -> None:
    """Write an error with its traceback, less its secrets. ``trace`` is that as text, None where it cannot be had."""
    told, secrets = scrub_text(trace or "")
    info = None if trace is None or secrets else (type(error), error, error.__traceback__)
    row = log.makeRecord(log.name, logging.ERROR, __file__, 0, text, args, info)
    row.exc_text = told or None
    log.handle(row)


def trace_of(error: BaseException) -> str:
    """The traceback as text. Raises what the exception itself raises."""
    return _bounded("".join(traceback.format_exception(error)).rstrip("\n"))


async def read_error(error: BaseException) -> Raised:
    """Ask an exception what it is, for a moment at most."""
    work = in_own_thread(_read, error)
    await aio.wait({work}, timeout=READ_S)
    if work.done():
        return work.result()
    work.cancel()
    return Raised(error)


def _read(error: BaseException) -> Raised:
    kind, code, detail = type(error), CRASHED, ""
    try:
        text = _bounded(str(error))
        if issubclass(kind, ToolFailure):
            failure = cast("ToolFailure", error)
            code, detail = record.clean(scrub_text(_bounded(str(failure.code)))[0]), _bounded(str(failure.detail))
    except Exception:  # noqa: BLE001 an exception of somebody else's may not even print
        text = message.CRASHED
    try:
        trace = trace_of(error)
    except Exception:  # noqa: BLE001 nor be shown with its traceback
        trace = text
    return Raised(error, _bounded(kind.__name__), text, code, trace, detail)


def _bounded(text: str) -> str:
    """The text as one of Python's own class, that can be written, of bounded length."""
    plain = str.__str__(text)
    return valid(plain if len(plain) <= LARGE else plain[:LARGE] + _CUT)
