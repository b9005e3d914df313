"""One window from its first to its last moment: what is opened first, what ends it, who hears of errors."""

import asyncio
import signal
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import TracebackType

from PySide6.QtCore import QEvent, QObject, QTimer, Signal
from PySide6.QtWidgets import QApplication, QWidget

from gatewright_gui.app.build import new_window
from gatewright_gui.app.collector import Collector
from gatewright_gui.app.warm import warm_up
from gatewright_gui.qt.language import tr
from gatewright_gui.session.diagnostics import keep_log
from gatewright_gui.settings import Preferences
from gatewright_gui.theme import ThemeChoice
from gatewright_gui.window.main_window import MainWindow

PATIENCE_MS = 500
"""A window that nobody sees (it lies on another desktop) is not painted; what waits for it does not wait for ever."""


class FirstPaint(QObject):
    """Of one window; says `painted` once, in a later turn of the event loop than the painting."""

    painted = Signal()

    def __init__(self, window: QWidget) -> None:
        super().__init__(window)
        self._patience = QTimer(self, singleShot=True, interval=PATIENCE_MS)
        self._patience.timeout.connect(self._tell)
        self._patience.start()
        window.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802
        """Of a window all is painted with this one event."""
        if event.type() == QEvent.Type.UpdateRequest:
            watched.removeEventFilter(self)
            self._patience.start(0)
        return super().eventFilter(watched, event)

    def _tell(self) -> None:
        self.painted.emit()
        self.deleteLater()


async def live(app: QApplication, workspace: Path | None, theme: ThemeChoice | None, preferences: Preferences) -> int:
    """One window from its first to its last moment; what goes wrong in it is in the log, whatever becomes of it."""
    with keep_log():
        return await _live(app, workspace, theme, preferences)


async def _live(app: QApplication, workspace: Path | None, theme: ThemeChoice | None, preferences: Preferences) -> int:
    window = new_window(app, preferences=preferences, theme=theme)
    collector = Collector(app)
    ended = asyncio.Event()
    window.closed.connect(ended.set)

    def report(kind: type[BaseException], error: BaseException, _trace: TracebackType | None) -> None:
        window.report_failure(f"{kind.__name__}: {error}", error)

    hook, sys.excepthook = sys.excepthook, report
    for number in (signal.SIGINT, signal.SIGTERM):
        with suppress(NotImplementedError, ValueError):
            asyncio.get_running_loop().add_signal_handler(number, window.close_now)
    try:
        window.deriver.hold()
        window.show()
        if (opening := window.tasks.start(open_first(window, workspace), "open")) is not None:
            await asyncio.wait([opening])  # a failure is said there
        FirstPaint(window).painted.connect(partial(_go_on, window))
        await ended.wait()
    finally:
        sys.excepthook = hook
        await window.shut()
        collector.stop()
        with suppress(OSError):
            window.preferences.save()
    return 0


def _go_on(window: MainWindow) -> None:
    """With all that did not have to be there at once; a window may be closed before it was painted."""
    if window.tasks.closed:
        return
    window.deriver.release()
    window.tasks.start(_make_ready(window), "warm", stays=True)


async def _make_ready(window: MainWindow) -> None:
    """Read in what comes later, then make the pages of it."""
    await warm_up(window.document)
    await window.shelf.make_rest()


async def open_first(window: MainWindow, workspace: Path | None) -> None:
    """Open what was asked for, else what was open last, else nothing: the welcome says how to begin."""
    if workspace is not None:
        await window.open(workspace)
        return
    last = window.preferences.last_workspace
    if last is not None and last.exists():
        await window.open(last)
        return
    if last is not None:
        window.preferences.forget_recent_workspace(last)
        window.document.say("warning", tr("`{path}` is not there any more", path=last))
