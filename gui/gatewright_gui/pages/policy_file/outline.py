"""The parts of the policy file as a list beside its text: agents, tools, sources, catalogs, policy rules."""

from collections.abc import Iterable
from typing import Any

from PySide6.QtCore import QModelIndex, Qt, Signal
from PySide6.QtGui import QFont
from PySide6.QtWidgets import QWidget

from gatewright_gui.qt.language import mark, tr
from gatewright_gui.qt.layout import named
from gatewright_gui.qt.plaintext import label_text, tip_text
from gatewright_gui.qt.table_model import ROW, RowModel
from gatewright_gui.qt.widget.delegate import Delegate
from gatewright_gui.qt.widget.row_list import RowList
from gatewright_gui.session.filetext import OutlineRow


class OutlineModel(RowModel[OutlineRow]):
    """A heading over the parts of each kind, which come kind by kind."""

    headers = (mark("Outline"),)

    def set_rows(self, rows: Iterable[OutlineRow]) -> None:
        """Show these parts."""
        shown: list[OutlineRow] = []
        for row in rows:
            if not shown or shown[-1].kind != row.kind:
                shown.append(OutlineRow(row.kind, "", row.line))
            shown.append(row)
        super().set_rows(shown)

    def text(self, row: OutlineRow, _column: int) -> str:
        """The name, or the kind as a heading."""
        return label_text(row.name or row.kind, 80)

    def tip(self, row: OutlineRow, _column: int) -> str:
        """With the line."""
        return tip_text(tr("{part}: line {line}", part=row.name or row.kind, line=row.line))

    def cell(self, row: OutlineRow, column: int, role: int) -> Any:
        """A heading in bold."""
        if role != Qt.ItemDataRole.FontRole or row.name:
            return super().cell(row, column, role)
        font = QFont()
        font.setWeight(QFont.Weight.DemiBold)
        return font


class OutlineList(RowList):
    """A click or Enter asks for the line."""

    line_requested = Signal(object)
    """int."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        named(self, "toml.outline", spoken=tr("Outline of the policy file"))
        self.rows = OutlineModel(self)
        self.setModel(self.rows)
        self.setItemDelegate(Delegate(self))
        self.setMinimumWidth(120)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.clicked.connect(self._ask)
        self.activated.connect(self._ask)

    def _ask(self, index: QModelIndex) -> None:
        self.line_requested.emit(index.data(ROW).line)
