"""The operations that no call has used, to be turned off."""

from collections.abc import Sequence

from PySide6.QtWidgets import QAbstractItemView, QWidget

from gatewright_gui.qt.dialog import FormDialog
from gatewright_gui.qt.language import counted, mark, tr
from gatewright_gui.qt.layout import named, stretch
from gatewright_gui.qt.plaintext import button_text
from gatewright_gui.qt.table_model import ROW, RowModel
from gatewright_gui.qt.widget.item_view import TableView
from gatewright_gui.qt.widget.label import Label

Right = tuple[str, str, str]
"""Agent, tool, operation."""


class RightModel(RowModel[Right]):
    """One row per right."""

    headers = (mark("Agent"), mark("Operation"))

    def text(self, row: Right, column: int) -> str:
        """The agent, or the operation."""
        agent_id, tool, operation = row
        return (agent_id, f"{tool}.{operation}" if operation else tool)[column]


class UnusedDialog(FormDialog):
    """After it was accepted `chosen` are the rights to turn off."""

    def __init__(self, parent: QWidget | None, rights: Sequence[Right], since: str) -> None:
        super().__init__(parent, "unused", tr("On and never used"), tr("Turn off"))
        self.model = RightModel(rows=rights)
        self.view = named(TableView(tr("Operations that no call has used")), "unused.rights")
        self.view.show_model(self.model, {0: 180}, wide=1)
        self.view.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        count = counted(len(rights), "operation", "operations")
        words = tr(
            "{operations}, not used {since}. Choose those to turn off (Ctrl+A: all).", operations=count, since=since
        )
        note = tr("The model no longer sees what is off. It is one change, which undo takes back.")
        self.lay_out(
            Label(words, wraps=True), stretch(self.view), named(Label(note, wraps=True), "unused.note", kind="muted")
        )
        self.accept_button.setDefault(True)
        self.view.selectionModel().selectionChanged.connect(self._tell)
        self.resize(560, 460)
        self._tell()

    @property
    def chosen(self) -> list[Right]:
        """The chosen rights, in the order of the list."""
        rows = sorted(self.view.selectionModel().selectedRows(), key=lambda index: index.row())
        return [index.data(ROW) for index in rows]

    def _tell(self, *_why: object) -> None:
        count = len(self.view.selectionModel().selectedRows())
        self.accept_button.setEnabled(count > 0)
        words = (
            tr("Turn off {operations}", operations=counted(count, "operation", "operations"))
            if count
            else tr("Turn off")
        )
        self.accept_button.setText(button_text(words))
