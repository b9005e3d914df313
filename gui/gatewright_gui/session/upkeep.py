"""Keeps what is told of the whole policy current: its problems and the self-check's count. It draws nothing."""

from PySide6.QtCore import QObject, Signal

from gatewright_gui.qt.task import TaskOwner
from gatewright_gui.session.derive import Deriver
from gatewright_gui.session.document import Document
from gatewright_gui.session.filetext import CheckCount, check_count


class Upkeep(QObject):
    """Asks again after every change; the newest question wins."""

    selfcheck_changed = Signal(object)
    """CheckCount, or None while it is not known."""

    def __init__(self, document: Document, deriver: Deriver, tasks: TaskOwner) -> None:
        super().__init__(document)
        self._document = document
        self._deriver = deriver
        self._tasks = tasks
        document.opened.connect(self._ask)
        document.policy_changed.connect(self._ask)

    def _ask(self, _changes: object = None) -> None:
        if self._document.is_open:
            self._tasks.start(self._refresh(), "upkeep", replace=True)
        else:
            self._tell(None)

    async def _refresh(self) -> None:
        problems = await self._deriver.derive(lambda workspace: workspace.current_problems())
        if problems is not None:
            self._document.set_problems(problems)
        found = await self._deriver.derive(check_count)
        if found is not None:
            self._tell(found)

    def _tell(self, found: CheckCount | None) -> None:
        self.selfcheck_changed.emit(found)
