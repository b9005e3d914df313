"""The parts of the policy file as a list beside its text: agents, tools, sources, catalogs, policy rules."""

from typing import Any

from PySide6.QtCore import QModelIndex, QObject, QPersistentModelIndex, Qt, Signal
from PySide6.QtGui import QFont
from PySide6.QtWidgets import QWidget

from gatewright_gui.qt.language import mark, tr
from gatewright_gui.qt.layout import named
from gatewright_gui.qt.plaintext import label_text, tip_text
from gatewright_gui.qt.table_model import FlatModel
from gatewright_gui.qt.widget.delegate import Delegate
from gatewright_gui.qt.widget.row_list import RowList
from gatewright_gui.session.filetext import OutlineRow

Index = QModelIndex | QPersistentModelIndex
LINE = Qt.ItemDataRole.UserRole + 1


class OutlineModel(FlatModel):
    """A heading over the parts of each kind."""

    headers = (mark("Outline"),)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._given: tuple[OutlineRow, ...] = ()
        self._rows: list[OutlineRow] = []

    def set_rows(self, rows: tuple[OutlineRow, ...]) -> None:
        """Show these, which come kind by kind."""
        if rows == self._given:
            return
        self.beginResetModel()
        self._given, self._rows = rows, []
        for row in rows:
            if not self._rows or self._rows[-1].kind != row.kind:
                self._rows.append(OutlineRow(row.kind, "", row.line))
            self._rows.append(row)
        self.endResetModel()

    def count(self) -> int:
        """Headings and parts."""
        return len(self._rows)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """The name, or the kind as a heading in bold; the line."""
        if not index.isValid():
            return None
        row = self._rows[index.row()]
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return label_text(row.name or row.kind, 80)
            case Qt.ItemDataRole.ToolTipRole:
                return tip_text(tr("{part}: line {line}", part=row.name or row.kind, line=row.line))
            case Qt.ItemDataRole.FontRole if not row.name:
                font = QFont()
                font.setWeight(QFont.Weight.DemiBold)
                return font
            case _ if role == LINE:
                return row.line
            case _:
                return None


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
        self.line_requested.emit(index.data(LINE))
