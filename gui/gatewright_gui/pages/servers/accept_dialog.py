"""What waits to be accepted of all servers, in one list: looked through and accepted as it is proposed."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from PySide6.QtCore import QModelIndex
from PySide6.QtWidgets import QPushButton, QWidget

from gatewright_gui.pages.servers.tool_table import TOOL, ToolModel, lines_of, tool_view
from gatewright_gui.qt.dialog import FormDialog
from gatewright_gui.qt.language import counted, mark, tr
from gatewright_gui.qt.layout import named, stretch
from gatewright_gui.qt.widget.code_view import CodeView
from gatewright_gui.qt.widget.label import Label
from gatewright_gui.session.calls import visible
from gatewright_gui.session.catalogs import CatalogRow

HEADINGS = (mark("Tool"), mark("Server"), mark("Counts as"), mark("Because"))


class AcceptDialog(FormDialog):
    """After it was accepted `chosen` holds the names of the tools that are ticked, by catalog."""

    def __init__(self, parent: QWidget | None, rows: Iterable[CatalogRow]) -> None:
        super().__init__(parent, "accept", tr("Accept the tools of all servers"), tr("Accept"))
        self.model = ToolModel(HEADINGS)
        waiting = (line for row in rows for line in lines_of(row) if line.waiting is not None)
        self.model.set_lines(tuple(replace(line, state=line.catalog_id) for line in waiting), afresh=True)
        self.view = named(tool_view(self.model, tr("Tools that wait to be accepted"), 270), "accept.tools")
        self.code = named(CodeView(tr("What the tool says of itself")), "accept.code")
        self.note = named(Label(), "accept.note", kind="muted")
        self.all_button = named(QPushButton(tr("None")), "accept.all", spoken=tr("Tick none"))
        self.lay_out(stretch(self.view, 3), stretch(self.code, 2), foot=(stretch(self.note), self.all_button))
        self.accept_button.setDefault(True)
        self.view.selectionModel().currentChanged.connect(self._show)
        self.model.ticks_changed.connect(self._tell)
        self.all_button.clicked.connect(lambda: self.model.tick_all(not self.model.ticked))
        self.resize(860, 600)
        self.view.setCurrentIndex(self.model.index(0, TOOL))
        self._tell()

    @property
    def chosen(self) -> Mapping[str, Collection[str]]:
        """The ticked tools by catalog, as their servers name them."""
        return self.model.ticked

    def _show(self, index: QModelIndex, _before: QModelIndex) -> None:
        waiting = self.model.rows[index.row()].waiting if index.isValid() else None
        self.code.set_diff(visible(waiting.difference) if waiting is not None else "")

    def _tell(self) -> None:
        number = self.model.ticked_count
        self.accept_button.setText(tr("Accept {number}", number=number) if number else tr("Accept"))
        self.accept_button.setEnabled(number > 0)
        self.all_button.setText(tr("None") if number else tr("All"))
        self.all_button.setAccessibleName(tr("Tick none") if number else tr("Tick all"))
        tools = counted(len(self.model.rows), "tool", "tools")
        self.note.setText(tr("{number} of {tools} ticked; no agent sees them before.", number=number, tools=tools))
