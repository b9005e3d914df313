"""The log file of the app, and what somebody who reports a fault copies. Neither holds words of a call or a policy."""

import logging
import platform
import time
import traceback
from collections.abc import Callable
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
    """Where the app of this user writes its log."""
    return user_log_path("gatewright") / "app.log"


def start_log() -> Callable[[], None]:
    """Write warnings and errors of ours into the log file from now on; what is returned ends that.

    They go to the terminal too, as they do without a log. A file that cannot be written is done without.
    """
    file = log_file()
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        handler = RotatingFileHandler(file, maxBytes=MOST_BYTES, backupCount=1, encoding="utf-8")
    except OSError:
        return lambda: None
    handler.setFormatter(PlainLines())
    handlers = [handler, *([logging.lastResort] if logging.lastResort is not None else [])]
    for name in LOGGERS:
        for one in handlers:
            logging.getLogger(name).addHandler(one)

    def end() -> None:
        for name in LOGGERS:
            for one in handlers:
                logging.getLogger(name).removeHandler(one)
        handler.close()

    return end


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
            last_lines = log.read().decode("utf-8", "replace").splitlines()[-LAST_LINES:]
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
