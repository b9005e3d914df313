"""Files and their blocks on the Files page: how they stand, and bringing them into step. The engine does the work."""

from collections.abc import Callable

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QWidget
from shiboken6 import isValid

from gatewright.base.errors import GatewrightError
from gatewright_gui.pages.files.reconcile import BothDialog
from gatewright_gui.pages.page import PageContext
from gatewright_gui.qt.dialog import Choice, ask, shown
from gatewright_gui.session.files import SourceFolder
from gatewright_gui.session.filestate import FileStanding, Reconciled, Standings

_BLOCKS = "files.blocks"
_DONE = {
    "nothing": "`{path}`: block and file were in step already",
    "kept_block": "`{path}`: the block stays, and is now compared with the file as it is on disk",
    "took_disk": "`{path}`: the block took what is on disk",
    "merged": "`{path}`: merged into the block; nothing was written to disk",
    "forgotten": "`{path}`: the file is gone, and its block with it",
    "conflict": "`{path}`: nothing was done, {why}",
}


class Blocks(QObject):
    """One source at a time; an answer for another one is dropped."""

    found = Signal(object)
    """Standings."""
    failed = Signal(object)
    """Why they are not known: str."""

    def __init__(self, page: QWidget, context: PageContext, folder: SourceFolder) -> None:
        super().__init__(page)
        self._page, self._context, self._folder = page, context, folder
        self._turn = 0

    def look(self, source_id: str) -> None:
        """Look at every file that has a block."""
        self._turn += 1
        self._context.tasks.start(self._look(source_id, self._turn), _BLOCKS, replace=True)

    def reconcile(self, source_id: str, path: str, strategy: str, standing: Callable[[], FileStanding | None]) -> None:
        """Bring a file and its block into step, after a question where edits would be lost."""
        task = self._reconcile(source_id, path, strategy, standing())
        self._context.tasks.start(task, "files.reconcile", replace=True)

    async def _look(self, source_id: str, turn: int) -> None:
        try:
            standings: Standings = await self._folder.standings(source_id)
        except GatewrightError as error:
            if isValid(self) and turn == self._turn:
                self.failed.emit(str(error))
            return
        if isValid(self) and turn == self._turn:
            self.found.emit(standings)

    async def _reconcile(self, source_id: str, path: str, strategy: str, standing: FileStanding | None) -> None:
        if strategy == "theirs" and standing is not None and not await self._may_lose(standing):
            return
        try:
            told = await self._folder.reconcile(source_id, path, strategy)
        except GatewrightError as error:
            self._context.document.say("error", f"not reconciled: {error}")
            return
        if isValid(self):
            await self._tell(source_id, told, strategy)

    async def _may_lose(self, standing: FileStanding) -> bool:
        if not standing.is_conflict:
            return True
        text = f"What was edited in the block of {standing.path} and not written to disk is gone then."
        choices = (Choice("keep", "Keep the edits", "primary"), Choice("take", "Take disk", "danger"))
        title = "Throw the edits of the block away?"
        return await ask(self._page, title, text, choices, icon="triangle-alert", role="ask") == "take"

    async def _tell(self, source_id: str, told: Reconciled, strategy: str) -> None:
        self.look(source_id)
        if strategy != "ask":
            words = _DONE.get(told.outcome, "`{path}`: {why}").format(path=told.path, why=told.why)
            self._context.document.say("warning" if told.is_conflict else "info", words)
        if told.is_conflict:
            await shown(BothDialog(self._page, told))
