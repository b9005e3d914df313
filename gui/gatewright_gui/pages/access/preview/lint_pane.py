"""What the chosen provider makes of the tools that are shown, note by note."""

from collections.abc import Hashable
from typing import Any

from PySide6.QtCore import QModelIndex, QRect, QSize, Qt, Signal
from PySide6.QtGui import QColor, QFontMetrics, QPainter
from PySide6.QtWidgets import QAbstractItemView, QStyleOptionViewItem, QWidget

from gatewright.workspace.api import Level
from gatewright_gui.qt.language import mark, tr
from gatewright_gui.qt.layout import column_of, named, stretch
from gatewright_gui.qt.look import Role, current_look
from gatewright_gui.qt.plaintext import LEFT, label_text, line_text
from gatewright_gui.qt.table_model import ROW, Index, RowModel
from gatewright_gui.qt.widget.button import CopyButton
from gatewright_gui.qt.widget.chip import chip_width, paint_chip
from gatewright_gui.qt.widget.item_view import Delegate, paint_ground
from gatewright_gui.qt.widget.label import SectionHeader
from gatewright_gui.qt.widget.note_list import NoteList
from gatewright_gui.session.preview import LEVEL_WORDS, LintRow, level_words


class LintModel(RowModel[LintRow]):
    """In the order in which they are given."""

    def key(self, row: LintRow) -> Hashable:
        """The content of a row: rows that only moved to other lines of the text stay chosen."""
        return row.level, row.tool, row.pointer, row.reason, row.advice

    def cell(self, row: LintRow, column: int, role: int) -> Any:
        """The lint in words, with what to do in the tooltip."""
        del column
        if role == Qt.ItemDataRole.DisplayRole:
            return f"{tr(LEVEL_WORDS[row.level])}, {where_words(row)}: {lint_words(row)}"
        if role in {Qt.ItemDataRole.ToolTipRole, Qt.ItemDataRole.AccessibleTextRole}:
            return whole_words(row)
        return None


def whole_words(row: LintRow) -> str:
    """All of a lint: level, place, reason, what to do."""
    return f"{tr(LEVEL_WORDS[row.level])}, {where_words(row)}: {lint_words(row)}\n{to_do_words(row)}"


def to_do_words(row: LintRow) -> str:
    """The words for what the operator can do, without code marks."""
    return tr("What to do: {to_do}", to_do=row.to_do).replace("`", "")


def where_words(row: LintRow) -> str:
    """The tool and the place in its schema."""
    return f"{row.tool or tr('all tools')} {row.pointer}".rstrip()


def lint_words(row: LintRow) -> str:
    """The reason and what to do, without code marks."""
    return f"{row.reason}; {row.advice}".replace("`", "") if row.advice else row.reason.replace("`", "")


LEVEL_LOOKS: dict[Level, tuple[str, Role]] = {
    "refused": ("circle-x", "deny"),
    "looser": ("lock-open", "ask"),
    "narrower": ("funnel", "ask"),
    "note": ("info", "accent"),
}
LEVEL_TIPS = {
    "refused": mark("the provider would not take the tool"),
    "looser": mark("what the provider checks accepts more than the gate will"),
    "narrower": mark("what the provider checks accepts less than the gate would"),
    "note": mark("nothing changes for calls"),
}
_LEFT = 8
_GAP = 8
_WRAPPED = Qt.AlignmentFlag.AlignLeft | Qt.TextFlag.TextWordWrap


class LintDelegate(Delegate):
    """The level as a chip, the place beside it, the words and what to do below."""

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:  # noqa: N802
        """A size of as many lines as the words need."""
        row, view = index.data(ROW), getattr(option, "widget", None)
        line = current_look().tokens.row_height
        if not isinstance(row, LintRow) or not isinstance(view, QAbstractItemView):
            return QSize(200, line)
        metrics: QFontMetrics = getattr(option, "fontMetrics")  # noqa: B009
        room = QRect(0, 0, max(view.viewport().width() - 2 * _LEFT, 60), 10_000)
        texts = (label_text(lint_words(row)), label_text(to_do_words(row)))
        words = sum(metrics.boundingRect(room, _WRAPPED, text).height() for text in texts)
        return QSize(200, line + words + 3 * current_look().tokens.space_1)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        """Chip, place, words, what to do."""
        row = index.data(ROW)
        if not isinstance(row, LintRow):
            return
        paint_ground(painter, option)
        look = current_look()
        rect: QRect = getattr(option, "rect")  # noqa: B009
        line = look.tokens.row_height
        painter.save()
        left = _chip(painter, rect, row.level)
        painter.setFont(look.mono_font)
        painter.setPen(QColor(look.palette.muted))
        place = QRect(left, rect.top(), rect.right() - _LEFT - left, line)
        cut = line_text(painter.fontMetrics(), where_words(row), place.width(), Qt.TextElideMode.ElideMiddle)
        painter.drawText(place, LEFT, cut)
        painter.setFont(getattr(option, "font"))  # noqa: B009
        painter.setPen(QColor(look.palette.text))
        words = rect.adjusted(_LEFT, line, -_LEFT, 0)
        painter.drawText(words, _WRAPPED, label_text(lint_words(row)))
        down = (
            painter.fontMetrics().boundingRect(words, _WRAPPED, label_text(lint_words(row))).height()
            + look.tokens.space_1
        )
        painter.setPen(QColor(look.palette.muted))
        painter.drawText(words.adjusted(0, down, 0, 0), _WRAPPED, label_text(to_do_words(row)))
        painter.restore()


def _chip(painter: QPainter, rect: QRect, level: Level) -> int:
    (icon, role), words = LEVEL_LOOKS[level], tr(LEVEL_WORDS[level])
    look = current_look()
    painter.setFont(look.small_font)
    metrics = painter.fontMetrics()
    height, wide = metrics.height() + 5, chip_width(metrics.horizontalAdvance(words), with_icon=True)
    top = rect.top() + (look.tokens.row_height - height) // 2
    paint_chip(painter, QRect(rect.left() + _LEFT, top, wide, height), words, icon, role)
    return rect.left() + _LEFT + wide + _GAP


class LintPane(QWidget):
    """A click or Enter on a note asks for its place; Ctrl+C copies the note."""

    place_requested = Signal(object)
    """LintRow."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("preview.lints")
        self.model = LintModel(self)
        self.header = SectionHeader(tr("Provider notes"))
        self.view = named(NoteList(tr("Provider notes")), "preview.lints.list")
        self.view.setModel(self.model)
        self.view.setItemDelegate(LintDelegate(self.view))
        self.view.chosen.connect(self._go)
        self.copy_button = named(CopyButton(tr("Copy all notes"), self._text), "preview.lints.copy")
        self.header.add_control(self.copy_button)
        column_of(self.header, stretch(self.view), into=self)

    def show_rows(self, provider: str, rows: tuple[LintRow, ...]) -> None:
        """The notes of a provider, named as it is shown; hidden where there are none."""
        self.model.set_rows(rows)
        self.header.set_title(tr("{provider} notes", provider=provider))
        self.header.set_note(_counts(rows))
        self.setVisible(bool(rows))

    def _text(self) -> str:
        rows = "\n".join(whole_words(row) for row in self.model.rows)
        return f"{self.header.title}\n{rows}\n"

    def _go(self, index: QModelIndex) -> None:
        row = index.data(ROW)
        if isinstance(row, LintRow):
            self.place_requested.emit(row)


def _counts(rows: tuple[LintRow, ...]) -> str:
    counts: dict[Level, int] = {level: sum(row.level == level for row in rows) for level in LEVEL_LOOKS}
    return ", ".join(level_words(lv, n) for lv, n in counts.items() if n)
