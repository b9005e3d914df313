"""Keeps what is told of the whole policy current: its problems and the self-check's count. It draws nothing."""

from functools import partial

from PySide6.QtCore import QObject, QTimer, Signal

from gatewright_gui.qt.task import TaskOwner
from gatewright_gui.session.derive import Deriver
from gatewright_gui.session.document import Document
from gatewright_gui.session.selfcheck import CheckCount, Checking, check_count

LOOK_MS = 250
"""How often one looks how far a self-check is."""
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
        self._checking: Checking | None = None
        self.found: CheckCount | None = None
        self._look = QTimer(self, interval=LOOK_MS)
        self._look.timeout.connect(self._tell_progress)
        document.opened.connect(self._ask)
        document.policy_changed.connect(self._ask)

    @property
    def is_checking(self) -> bool:
        """Whether a self-check is under way."""
        return self._checking is not None

    def check_again(self) -> None:
        """Check everything anew, also what was checked and has not changed."""
        self._start_check(afresh=True)

    def stop_check(self) -> None:
        """Stop the self-check; what it found before stays told, as that of an older policy."""
        self._end_check()
        self._tasks.cancel(TASK)

    def _ask(self, _changes: object = None) -> None:
        self._end_check()
        if self._document.is_open:
            self._tasks.start(self._refresh(), "upkeep", replace=True)
        else:
            self._tasks.cancel(TASK)
            self._tell(None)

    async def _refresh(self) -> None:
        problems = await self._deriver.derive(lambda workspace: workspace.current_problems(), aside=True)
        if problems is not None:
            self._document.set_problems(problems)
            self._start_check(afresh=False)

    def _start_check(self, *, afresh: bool) -> None:
        self._end_check()
        if self._document.is_open:
            self._checking = checking = Checking(afresh=afresh, let_others_go=self._deriver.let_others_go)
            self._look.start()
            self._tasks.start(self._check(checking), TASK, replace=True)

    async def _check(self, checking: Checking) -> None:
        try:
            found = await self._deriver.derive(partial(check_count, checking=checking), last=True)
        finally:
            checking.stop()
            if self._checking is checking:
                self._end_check()
        if found is not None:
            self._tell(found)

    def _end_check(self) -> None:
        checking, self._checking = self._checking, None
        self._look.stop()
        if checking is not None:
            checking.stop()
            self.check_progressed.emit(None)

    def _tell_progress(self) -> None:
        if self._checking is not None:
            self.check_progressed.emit(self._checking.progress)

    def _tell(self, found: CheckCount | None) -> None:
        self.found = found
        self.selfcheck_changed.emit(found)
