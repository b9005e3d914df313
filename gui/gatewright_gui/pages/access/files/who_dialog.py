"""Who can touch one file or folder: every agent, what it may do there, and why, as the gate decides it."""

from functools import partial

from PySide6.QtCore import QModelIndex, QObject, Signal
from PySide6.QtWidgets import QDialog, QWidget
from shiboken6 import isValid

from gatewright.workspace.api import GatewrightError
from gatewright_gui.models.access import AccessTable
from gatewright_gui.pages.page import PageContext
from gatewright_gui.qt.language import mark, tr
from gatewright_gui.qt.layout import column_of, named, row_of, stretch
from gatewright_gui.qt.plaintext import title_text
from gatewright_gui.qt.widget import ElidedLabel, ProgressStrip
from gatewright_gui.qt.widget.button import CopyButton, text_button
from gatewright_gui.qt.widget.label import Label
from gatewright_gui.session.block_access import mildest
from gatewright_gui.session.file_access import GROUPS, FileAccess, OperationAnswer, file_access
from gatewright_gui.session.navigator import Place, go_to

TASK = "files.who"
_HINT = mark("Choose a cell to read why. Return or a double click goes to the operation.")


class WhoDialog(QDialog):
    """A table of agents by what is done to the path; below it the reasons of the chosen cell."""

    operation_requested = Signal(object, object)
    """Agent id; tool and operation, None for the agent alone."""

    def __init__(self, path: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("files.who")
        self._path = path
        self.setWindowTitle(title_text(tr("Who can touch {path}?", path=path)))
        self.resize(800, 420)
        self.table = named(AccessTable(tr("Who can touch {path}", path=path), GROUPS), "who.table")
        self.why = named(Label(tr(_HINT), wraps=True), "who.why", kind="muted")
        self.strip = ProgressStrip()
        self.strip.cancel_requested.connect(self.reject)
        self.copy_button = named(CopyButton(tr("Copy as text"), self.text), "who.copy")
        self.go_button = text_button(tr("Go to the operation"), "who.go", lambda: self._go(self.table.currentIndex()))
        self.close_button = text_button(tr("Close"), "who.close", self.accept)
        self.close_button.setAutoDefault(True)
        self.table.cell_requested.connect(self._go)
        self.table.selectionModel().currentChanged.connect(self._say_why)
        name = ElidedLabel(path, path=True, mono=True)
        buttons = row_of(self.copy_button, stretch(), self.go_button, self.close_button, space=2)
        parts = (name, self.strip, stretch(self.table), self.why, buttons)
        column_of(*parts, into=self, space=2, margins=4)

    def text(self) -> str:
        """The table as text."""
        return f"{self._path}\n{self.table.rows.as_text()}"

    def show_answers(self, answers: tuple[FileAccess, ...]) -> None:
        """Every agent's."""
        self.strip.stop()
        self.table.rows.set_rows(answers)
        if answers:
            self.table.setCurrentIndex(self.table.rows.index(0, 1))
        else:
            self.why.setText(tr("There is no agent yet."))

    def _say_why(self, index: QModelIndex, _before: QModelIndex) -> None:
        words = [one.words for one in self.table.rows.operations_at(index)] if index.isValid() else []
        self.why.setText("\n".join(words) or tr(_HINT))
        self.go_button.setEnabled(index.isValid())

    def _go(self, index: QModelIndex) -> None:
        """To the mildest operation of the cell, which is what it shows."""
        if not index.isValid():
            return
        answers = [one for one in self.table.rows.operations_at(index) if isinstance(one, OperationAnswer)]
        best = mildest(one.verdict for one in answers)
        chosen = next(((one.tool, one.operation) for one in answers if one.verdict is best), None)
        self.operation_requested.emit(self.table.rows.rows[index.row()].agent_id, chosen)
        self.accept()


class WhoQuestion(QObject):
    """Asks the worker process, and shows its answer in a dialog, which is there at once and can be closed meanwhile."""

    def __init__(self, context: PageContext, page: QWidget) -> None:
        super().__init__(page)
        self._context, self._page = context, page

    def ask(self, source_id: str, path: str) -> None:
        """Of a path from the base of the source; of a folder with `/` at its end."""
        dialog = WhoDialog(path, self._page)
        dialog.operation_requested.connect(self._go)
        dialog.finished.connect(partial(self._end, dialog))
        dialog.strip.start(tr("Asking the gate"))
        dialog.open()
        self._context.tasks.start(self._answer(dialog, source_id, path), TASK, replace=True)

    async def _answer(self, dialog: WhoDialog, source_id: str, path: str) -> None:
        agents = max(len(self._context.document.agents), 1)

        def progress(done: object) -> None:
            if isValid(dialog) and isinstance(done, int):
                told = tr("Asking the gate: {count:,} of {total:,} agents", count=done, total=agents)
                dialog.strip.set_progress(done / agents, told)

        try:
            found = await self._context.deriver.derive_in_pieces(file_access, progress, source_id, path)
        except GatewrightError as error:
            self._context.document.say("error", str(error))
            found = None
        if isValid(dialog):
            dialog.show_answers(found) if found is not None else dialog.reject()

    def _end(self, dialog: WhoDialog, _result: int) -> None:
        self._context.tasks.cancel(TASK)
        dialog.deleteLater()

    def _go(self, agent_id: str, chosen: tuple[str, str] | None) -> None:
        if chosen is not None:
            tool, operation = chosen
            self._context.navigator.go_to_tool(agent_id, tool, operation or None, "why")
        else:
            go_to(Place("agent", agent_id), self._context.navigator, self._context.selection)
