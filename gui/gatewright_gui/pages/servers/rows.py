"""The list of the place Servers: one listing under four headings."""

import time
from collections.abc import Iterable, Sequence

from PySide6.QtCore import QRect, Qt
from PySide6.QtGui import QColor, QPainter
from PySide6.QtWidgets import QStyleOptionViewItem

from gatewright_gui.qt.language import mark, tr
from gatewright_gui.qt.listing import REST, Column, ColumnDelegate, ListingModel
from gatewright_gui.qt.look import current_look, role_hex
from gatewright_gui.qt.plaintext import LEFT, line_text
from gatewright_gui.qt.table_model import ROW, Index
from gatewright_gui.session.servers import Row

NAME, STATE, DOES, AGENTS, LAST, TODAY = range(6)
_PAD = 8


def _does_tip(row: Row) -> str:
    """The numbers, with their meaning."""
    return tr("{name}: {does}\nThe number of operations by effect.", name=row.name, does=row.does) if row.does else ""


def _agents_tip(row: Row) -> str:
    return ", ".join(row.agents)


def _last_tip(row: Row) -> str:
    """The whole time."""
    return "" if row.last_s is None else time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(row.last_s))


COLUMNS: tuple[Column[Row], ...] = (
    Column(mark("Name"), lambda row: row.name, 150, lambda row: ((row.icon, row.role),) if row.icon else ()),
    Column(mark("State"), lambda row: row.state, 112, role=lambda row: row.role),
    Column(mark("Can do (operations)"), lambda row: row.does, REST, role=lambda row: row.does_role, tip=_does_tip),
    Column(mark("Agents"), lambda row: row.agent_words, 60, tip=_agents_tip, least_room=460),
    Column(mark("Last call"), lambda row: row.last_words, 78, role=lambda _: "muted", tip=_last_tip, least_room=620),
    Column(mark("Calls today"), lambda row: row.today_words, 84, is_number=True, least_room=560),
)


class ServerModel(ListingModel[Row]):
    """One row per server, coding agent or client, below the heading of its group."""

    def __init__(self) -> None:
        super().__init__(COLUMNS, lambda row: f"{_whole(row)}, {tr(row.group)}")

    def key(self, row: Row) -> object:
        """The subject, whatever its state."""
        return row.key

    def arrange(self, rows: Sequence[Row]) -> Iterable[Row]:
        """Leave out headings without a row where rows are sought."""
        groups = {row.group for row in rows if row.subject is not None}
        is_whole = len(rows) == len(self.every)
        headings = {row.group: row for row in self.every if row.subject is None}
        for group, heading in headings.items():
            if is_whole or group in groups:
                yield heading
                yield from (row for row in rows if row.subject is not None and row.group is group)

    def flags(self, index: Index) -> Qt.ItemFlag:
        """Headings cannot be chosen."""
        row = self.row_at(index.row())
        return Qt.ItemFlag.ItemNeverHasChildren if row is None or row.subject is None else super().flags(index)

    def spoken(self, row: Row, column: int) -> str:
        """The whole row at its first cell, the others as they stand."""
        return _whole(row) if column == NAME else ""


def _whole(row: Row) -> str:
    cells = (row.name, row.state, row.does, ", ".join(row.agents), row.last_words)
    return ", ".join(filter(None, cells))


class ServerDelegate(ColumnDelegate):
    """Rows as their columns say; a heading through all columns, with its note."""

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        """A heading is painted from its first cell on; the view joins its cells."""
        row = index.data(ROW)
        if not isinstance(row, Row) or row.subject is not None:
            super().paint(painter, option, index)
            return
        look, rect = current_look(), QRect(getattr(option, "rect"))  # noqa: B009
        painter.save()
        painter.fillRect(rect, QColor(look.palette.background))
        font = painter.font()
        font.setBold(True)
        painter.setFont(font)
        painter.setPen(QColor(look.palette.text))
        room = rect.adjusted(_PAD, 0, -_PAD, 0)
        painter.drawText(room, LEFT, row.name)
        room.setLeft(room.left() + painter.fontMetrics().horizontalAdvance(row.name) + _PAD)
        font.setBold(False)
        painter.setFont(font)
        painter.setPen(QColor(role_hex(look.palette, row.role)))
        painter.drawText(room, LEFT, line_text(painter.fontMetrics(), row.state, room.width()))
        painter.restore()
