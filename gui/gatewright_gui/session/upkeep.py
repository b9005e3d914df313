"""Keeps what is told of the whole policy current: its problems and the self-check's count. It draws nothing."""

import asyncio

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtGui import QGuiApplication

from gatewright.workspace.api import Workspace
from gatewright_gui.qt.task import TaskOwner
from gatewright_gui.session.derive import Deriver
from gatewright_gui.session.document import Document
from gatewright_gui.session.selfcheck import CheckCount, check_count

TASK = "upkeep.check"


class Upkeep(QObject):
    """Asks again after every change; the newest question wins, and a self-check of an older policy is stopped."""

    selfcheck_changed = Signal(object)
    """CheckCount, or None while it is not known."""
    check_progressed = Signal(object)
    """CheckProgress while a self-check takes longer; None when none is under way any more."""

    def __init__(self, document: Document, deriver: Deriver, tasks: TaskOwner) -> None:
        super().__init__(document)
        self._document = document
        self._deriver = deriver
        self._tasks = tasks
        self._check_task: asyncio.Task[None] | None = None
        self.found: CheckCount | None = None
        document.closed.connect(self._ask)
        document.opened.connect(self._ask)
        document.policy_changed.connect(self._ask)
        document.source_changed.connect(self.look_again)
        app = QGuiApplication.instance()
        if isinstance(app, QGuiApplication):
            app.applicationStateChanged.connect(self._come_back)

    @property
    def is_checking(self) -> bool:
        """Tell whether a self-check is under way."""
        return self._check_task is not None

    def check_again(self) -> None:
        """Check everything anew, also what was checked and has not changed."""
        self._start_check(afresh=True)

    def stop_check(self) -> None:
        """Stop the self-check; what it found before stays told, as that of an older policy."""
        task, self._check_task = self._check_task, None
        if task is not None:
            task.cancel()
            self.check_progressed.emit(None)

    def look_again(self, _changes: object = None) -> None:
        """Ask for the problems again: folders come and go without an edit."""
        if self._document.is_open:
            self._tasks.start(self._look(), "upkeep.look", replace=True)

    def _come_back(self, state: Qt.ApplicationState) -> None:
        if state is Qt.ApplicationState.ApplicationActive:
            self.look_again()

    async def _look(self) -> None:
        problems = await self._deriver.derive(Workspace.current_problems)
        if problems is not None:
            self._document.set_problems(problems)

    def _ask(self, _changes: object = None) -> None:
        self.stop_check()
        if self._document.is_open:
            self._tasks.start(self._refresh(), "upkeep", replace=True)
        else:
            self._tell(None)

    async def _refresh(self) -> None:
        problems = await self._deriver.derive(Workspace.current_problems)
        if problems is not None:
            self._document.set_problems(problems)
            self._start_check(afresh=False)

    def _start_check(self, *, afresh: bool) -> None:
        self.stop_check()
        if self._document.is_open:
            self._check_task = self._tasks.start(self._check(afresh=afresh), TASK)

    async def _check(self, *, afresh: bool) -> None:
        try:
            found = await self._deriver.derive_in_pieces(check_count, self.check_progressed.emit, afresh=afresh)
        finally:
            if self._check_task is asyncio.current_task():
                self._check_task = None
                self.check_progressed.emit(None)
        if found is not None:
            self._tell(found)

    def _tell(self, found: CheckCount | None) -> None:
        self.found = found
        self.selfcheck_changed.emit(found)
