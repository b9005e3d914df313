"""The log file of the app, and what somebody who reports a fault copies. Neither holds words of a call or a policy."""

import faulthandler
import logging
import platform
import re
import sys
import threading
import time
import traceback
from collections.abc import Generator
from contextlib import contextmanager
from importlib.metadata import version
from logging.handlers import RotatingFileHandler
from pathlib import Path

from platformdirs import user_log_path
from PySide6.QtCore import qVersion
from PySide6.QtGui import QGuiApplication

from gatewright_gui.session.document import Document

LOGGERS = "gatewright", "gatewright_gui"
MOST_BYTES = 256_000
"""Of one log file; the one before it is kept too."""
LAST_BYTES, LAST_LINES = 16_000, 60
_FOLDER = re.compile(r'File "[^"]*[/\\]')
"""What `faulthandler` names before a file of code."""
_log = logging.getLogger(__name__)


class PlainLines(logging.Formatter):
    """When, how grave, where, the sentence of our own code without what was put into it, and where an error came from.

    What an error says of itself, and what a sentence is filled with, may be an argument of a call or a secret.
    """

    def format(self, record: logging.LogRecord) -> str:
        """One line, and one more for each place that an error went through."""
        when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(record.created))
        lines = [f"{when} {record.levelname} {record.name}:{record.lineno} {record.msg}"]
        kind, _, trace = record.exc_info or (None, None, None)
        if kind is not None:
            lines.append(f"  {kind.__module__}.{kind.__qualname__}")
            for frame, line in traceback.walk_tb(trace):
                lines.append(f"  {frame.f_globals.get('__name__')}:{line} {frame.f_code.co_name}")
        return "\n".join(line.replace("\n", " ") for line in lines)


def log_file() -> Path:
    """The file to which the app of this user writes its log."""
    return user_log_path("gatewright") / "app.log"


@contextmanager
def keep_log() -> Generator[None]:
    """Write warnings and errors of ours into the log file, and whatever ends a thread, the program, or what is done.

    They go to the terminal too, as they do without a log. A file that cannot be written is done without.
    """
    file = log_file()
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        handler = RotatingFileHandler(file, maxBytes=MOST_BYTES, backupCount=1, encoding="utf-8")
    except OSError:
        yield
        return
    handler.setFormatter(PlainLines())
    last = logging.lastResort
    for name in LOGGERS:
        for one in (handler, *([last] if last is not None else [])):
            logging.getLogger(name).addHandler(one)
    try:
        with _crashes_kept(file), _threads_heard():
            yield
    except Exception as error:
        _log.critical("the app ended with an error", exc_info=error)
        raise
    finally:
        for name in LOGGERS:
            for one in (handler, *([last] if last is not None else [])):
                logging.getLogger(name).removeHandler(one)
        handler.close()


@contextmanager
def _crashes_kept(file: Path) -> Generator[None]:
    """Let what ends the process at once (a fault in Qt, say) write where every thread was, with nothing of Python's."""
    was_on = faulthandler.is_enabled()
    with file.open("ab") as crashes:
        faulthandler.enable(crashes)
        try:
            yield
        finally:
            faulthandler.disable()
            if was_on:
                faulthandler.enable()


@contextmanager
def _threads_heard() -> Generator[None]:
    """An error that ends a thread, or that nobody can be given, is logged before Python says it."""
    of_thread, of_nobody = threading.excepthook, sys.unraisablehook

    def report_end(args: threading.ExceptHookArgs) -> None:
        _log.error("a thread ended with an error", exc_info=args.exc_value)
        of_thread(args)

    def unraisable(args: "sys.UnraisableHookArgs") -> None:
        _log.error("an error was nobody's", exc_info=args.exc_value)
        of_nobody(args)

    threading.excepthook, sys.unraisablehook = report_end, unraisable
    try:
        yield
    finally:
        threading.excepthook, sys.unraisablehook = of_thread, of_nobody


def diagnostics(document: Document) -> str:
    """Versions, platform, counts and the last lines of the log; no path, no name and no text of the workspace."""
    policy = document.policy
    errors = sum(problem.is_error for problem in document.problems)
    counts = {
        "agents": len(policy.agents),
        "tools": len(document.catalog),
        "sources": len(policy.sources),
        "catalogs": len(policy.catalogs),
        "errors": errors,
        "warnings": len(document.problems) - errors,
    }
    try:
        with log_file().open("rb") as log:
            log.seek(max(0, log.seek(0, 2) - LAST_BYTES))
            text = log.read().decode("utf-8", "replace")
            last_lines = [_FOLDER.sub('File "', line) for line in text.splitlines()[-LAST_LINES:]]
    except OSError:
        last_lines = ["no log file"]
    state = "open" if document.is_open else "with errors" if document.failure is not None else "none"
    return "\n".join(
        (
            f"Gatewright {version('gatewright')}, Python {platform.python_version()}, Qt {qVersion()}",
            f"{platform.system()} {platform.release()} {platform.machine()}, {QGuiApplication.platformName()}",
            f"workspace: {state}{', unsaved changes' if document.is_dirty else ''}",
            ", ".join(f"{name} {count:,}" for name, count in counts.items()),
            "",
            *last_lines,
            "",
        )
    )
