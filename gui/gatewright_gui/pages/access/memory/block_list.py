"""The list of blocks: label and what the agent may do with it, then what it is, how full, and when it changed."""

import time
from typing import cast

from PySide6.QtCore import QRect, QSize, Qt
from PySide6.QtGui import QColor, QFontMetrics, QPainter
from PySide6.QtWidgets import QStyleOptionViewItem

from gatewright.workspace.api import frozen
from gatewright_gui.qt.language import tr
from gatewright_gui.qt.look import Role, current_look, role_hex
from gatewright_gui.qt.plaintext import label_text, line_text
from gatewright_gui.qt.table_model import ROW, Index, RowModel
from gatewright_gui.qt.widget.chip import chip_width, paint_chip
from gatewright_gui.qt.widget.item_view import Delegate, paint_ground
from gatewright_gui.session.memory import BlockRow
from gatewright_gui.session.question import span
from gatewright_gui.session.verdict import permission_words

_PAD = 8
_CHIP_HEIGHT = 17


@frozen
class BlockLine:
    """A block as the list shows it. ``may``: the most that the chosen agent may do, and its colour."""

    row: BlockRow
    may: tuple[str, str] = ("", "none")
    has_draft: bool = False

    @property
    def facts(self) -> str:
        """`text · 1,203 of 2,000 characters · shared · always seen · changed 3 min ago`; the level of a shared one."""
        row, record = self.row, self.row.record
        level = [self.level] if self.level and not self.may[0] else []
        marks = [word for word, holds in ((tr("shared"), not record.owner), (tr("pinned"), record.pinned)) if holds]
        place = [tr("always seen")] if row.position is not None else []
        changed = tr("changed {ago}", ago=ago_words(record.updated_at))  # the last: what is told less is cut first
        return " · ".join([row.kind, row.size_words, *level, *marks, *place, changed])

    @property
    def level(self) -> str:
        """The level of the block; empty where it cannot be read."""
        return "" if self.row.info is None else permission_words(self.row.info.permission)

    @property
    def words(self) -> str:
        """All of it, for whoever listens and for the tooltip."""
        row = self.row
        may = [tr("the agent {may}", may=self.may[0])] if self.may[0] else []
        told = "; ".join((*may, row.kind_words, self.facts, *[tr("not saved yet")] * self.has_draft))
        return "\n".join(filter(None, (f"{row.label}: {told}", row.record.description, row.problem)))

    def has(self, wanted: str) -> bool:
        """Tell whether every word of a filter is in it."""
        row = self.row
        parts = (row.label, row.kind_words, self.facts, self.level, self.may[0], row.record.description)
        text = " ".join(parts).casefold()
        return all(word in text for word in wanted.casefold().split())


def ago_words(at_s: float) -> str:
    """The words for how long ago that was; ``at_s``: as `time.time` tells it."""
    told = span(time.time() - at_s)
    return told if told == span(0) else tr("{time} ago", time=told)


class BlockModel(RowModel[BlockLine]):
    """One row per block that fits the filter."""

    def __init__(self) -> None:
        super().__init__()
        self.all: tuple[BlockLine, ...] = ()
        """What there is, whether it fits or not."""
        self._filter = ""

    def key(self, row: BlockLine) -> object:
        """The label."""
        return row.row.label

    def set_lines(self, lines: tuple[BlockLine, ...]) -> None:
        """Show these, as far as they fit."""
        self.all = lines
        self.set_filter(self._filter)

    def set_filter(self, text: str) -> None:
        """Show only blocks with all these words."""
        self._filter = text
        self.set_rows(tuple(line for line in self.all if line.has(text)))

    def text(self, row: BlockLine, _column: int) -> str:
        """The label."""
        return row.row.label

    def tip(self, row: BlockLine, _column: int) -> str:
        """All of it in words."""
        return row.words

    spoken = tip


class BlockDelegate(Delegate):
    """Two lines: the label with a chip for what the agent may do, and the facts."""

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:  # noqa: N802
        """Two lines high."""
        return QSize(super().sizeHint(option, index).width(), 2 * current_look().tokens.row_height - 8)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        """Ground, chip, words."""
        line = index.data(ROW)
        if not isinstance(line, BlockLine):
            return
        look, rect = current_look(), QRect(getattr(option, "rect"))  # noqa: B009
        paint_ground(painter, option)
        painter.save()
        half, right = rect.height() // 2, rect.right() - _PAD
        if line.may[0]:
            right = _paint_may(painter, line, right, rect.top() + 5) - _PAD
        label = tr("{label} (not saved)", label=line.row.label) if line.has_draft else line.row.label
        place = QRect(rect.left() + _PAD, rect.top() + 4, right - rect.left() - _PAD, half - 4)
        _write(painter, place, label, look.palette.text)
        place = QRect(rect.left() + _PAD, rect.top() + half, rect.width() - 2 * _PAD, half - 4)
        _write(painter, place, line.facts, role_hex(look.palette, "deny" if line.row.problem else "muted"))
        painter.restore()


def _paint_may(painter: QPainter, line: BlockLine, right: int, top: int) -> int:
    """The chip at the right end; where it begins."""
    words, role = line.may
    painter.save()
    font = current_look().small_font
    painter.setFont(font)
    width = chip_width(QFontMetrics(font).horizontalAdvance(words), with_icon=False)
    paint_chip(painter, QRect(right - width, top, width, _CHIP_HEIGHT), words, None, cast("Role", role))
    painter.restore()
    return right - width


def _write(painter: QPainter, place: QRect, text: str, colour: str) -> None:
    painter.setPen(QColor(colour))
    align = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignAbsolute
    painter.drawText(place, align, line_text(painter.fontMetrics(), label_text(text), place.width()))
