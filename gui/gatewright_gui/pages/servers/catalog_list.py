"""The list of catalogs: id, state with its icon, and how many tools wait."""

import time

from PySide6.QtCore import QRect, QSize, Qt
from PySide6.QtGui import QColor, QPainter
from PySide6.QtWidgets import QStyleOptionViewItem

from gatewright.workspace.api import is_observed
from gatewright_gui.qt.language import tr
from gatewright_gui.qt.look import current_look, role_hex
from gatewright_gui.qt.plaintext import line_text
from gatewright_gui.qt.table_model import ROW, Index, RowModel
from gatewright_gui.qt.widget.delegate import Delegate, paint_ground
from gatewright_gui.session.catalogs import CatalogRow


def _state(row: CatalogRow) -> str:
    """The state of a catalog in words; what is only observed says so first."""
    observed = tr("only observed") if is_observed(row.state.catalog, time.time()) else ""
    return ", ".join(filter(None, (observed, row.status[0], row.held_words)))


class CatalogModel(RowModel[CatalogRow]):
    """One row per catalog."""

    def key(self, row: CatalogRow) -> object:
        """The id."""
        return row.catalog_id

    def text(self, row: CatalogRow, _column: int) -> str:
        """The id."""
        return row.catalog_id

    def tip(self, row: CatalogRow, _column: int) -> str:
        """With its state in words."""
        return f"{row.catalog_id}: {_state(row)}"

    spoken = tip


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
        _, icon, role = row.status
        is_amber = row.held_count or is_observed(row.state.catalog, time.time())
        state = role_hex(look.palette, "ask" if is_amber else "muted")
        painter.save()
        look.icon(icon, role).paint(painter, QRect(rect.left() + 12, rect.top() + (rect.height() - 16) // 2, 16, 16))
        metrics, left, width = painter.fontMetrics(), rect.left() + 40, rect.width() - 48
        half = rect.height() // 2
        for top, text, colour in (
            (rect.top() + 4, row.catalog_id, look.palette.text),
            (
                rect.top() + half - 2,
                _state(row),
                state,
            ),
        ):
            painter.setPen(QColor(colour))
            elided = line_text(metrics, text, width)
            painter.drawText(QRect(left, top, width, half - 2), Qt.AlignmentFlag.AlignVCenter, elided)
        painter.restore()
