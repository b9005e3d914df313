"""The list of catalogs: id, state with its icon, and how many tools wait."""

from typing import Any

from PySide6.QtCore import QAbstractListModel, QModelIndex, QPersistentModelIndex, QRect, QSize, Qt
from PySide6.QtGui import QColor, QPainter
from PySide6.QtWidgets import QStyleOptionViewItem

from gatewright_gui.qt.look import current_look, role_hex
from gatewright_gui.qt.plaintext import line_text
from gatewright_gui.qt.widget.delegate import Delegate, paint_ground
from gatewright_gui.session.catalogs import CatalogRow

Index = QModelIndex | QPersistentModelIndex
ROW = Qt.ItemDataRole.UserRole + 1


class CatalogModel(QAbstractListModel):
    """One row per catalog."""

    def __init__(self) -> None:
        super().__init__()
        self._rows: tuple[CatalogRow, ...] = ()

    def set_rows(self, rows: tuple[CatalogRow, ...]) -> None:
        """Show these; rows of the same ids stay where they are."""
        if [row.catalog_id for row in rows] != [row.catalog_id for row in self._rows]:
            self.beginResetModel()
            self._rows = rows
            self.endResetModel()
        elif rows:
            self._rows = rows
            self.dataChanged.emit(self.index(0), self.index(len(rows) - 1))

    def find(self, catalog_id: str) -> int:
        """The row of a catalog; -1 where there is none."""
        return next((at for at, row in enumerate(self._rows) if row.catalog_id == catalog_id), -1)

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: N802, B008
        """How many catalogs."""
        return 0 if parent.isValid() else len(self._rows)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Names, and the row itself."""
        if not index.isValid() or index.row() >= len(self._rows):
            return None
        row = self._rows[index.row()]
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return row.catalog_id
            case Qt.ItemDataRole.AccessibleTextRole:
                return f"{row.catalog_id}: {row.status[0]}, {row.held_words}"
            case Qt.ItemDataRole.ToolTipRole:
                return f"{row.catalog_id}: {row.status[0]}, {row.held_words}"
            case _ if role == ROW:
                return row
            case _:
                return None


class CatalogDelegate(Delegate):
    """Two lines: the id with an icon for its state, and that state in words."""

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:  # noqa: N802
        """Two lines high."""
        return QSize(super().sizeHint(option, index).width(), 2 * current_look().tokens.row_height - 8)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        """Ground, icon, words."""
        row = index.data(ROW)
        if not isinstance(row, CatalogRow):
            return
        look, rect = current_look(), QRect(getattr(option, "rect"))  # noqa: B009
        paint_ground(painter, option)
        words, icon, role = row.status
        state = role_hex(look.palette, "ask" if row.held_count else "muted")
        painter.save()
        look.icon(icon, role).paint(painter, QRect(rect.left() + 12, rect.top() + (rect.height() - 16) // 2, 16, 16))
        metrics, left, width = painter.fontMetrics(), rect.left() + 40, rect.width() - 48
        half = rect.height() // 2
        for top, text, colour in (
            (rect.top() + 4, row.catalog_id, look.palette.text),
            (
                rect.top() + half - 2,
                f"{words}, {row.held_words}",
                state,
            ),
        ):
            painter.setPen(QColor(colour))
            elided = line_text(metrics, text, width)
            painter.drawText(QRect(left, top, width, half - 2), Qt.AlignmentFlag.AlignVCenter, elided)
        painter.restore()
