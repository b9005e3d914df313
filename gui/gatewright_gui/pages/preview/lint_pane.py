"""The notes of the chosen provider under the preview: level, place, reason, advice. It does not work them out."""

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QRect, QSize, Qt, Signal
from PySide6.QtGui import QColor, QFontMetrics, QPainter
from PySide6.QtWidgets import (
    QAbstractItemView,
    QStyle,
    QStyleOptionViewItem,
    QVBoxLayout,
    QWidget,
)

from gatewright_gui.models.lints import LINT, LintModel, said, to_do_words, where_words, whole_words
from gatewright_gui.qt.look import Role, current_look
from gatewright_gui.qt.plaintext import label_text, line_text
from gatewright_gui.qt.widget.chip import chip_width, paint_chip
from gatewright_gui.qt.widget.copy_button import CopyButton
from gatewright_gui.qt.widget.delegate import Delegate
from gatewright_gui.qt.widget.note_list import NoteList
from gatewright_gui.qt.widget.section_header import SectionHeader
from gatewright_gui.session.lints import LintRow

Index = QModelIndex | QPersistentModelIndex
LEVEL_LOOKS: dict[str, tuple[str, Role]] = {
    "refused": ("circle-x", "deny"),
    "looser": ("lock-open", "ask"),
    "narrower": ("funnel", "ask"),
    "note": ("info", "accent"),
}
LEVEL_TIPS = {
    "refused": "the provider would not take the tool",
    "looser": "what the provider checks accepts more than the gate will",
    "narrower": "what the provider checks accepts less than the gate would",
    "note": "nothing changes for calls",
}
_LEFT = 8
_GAP = 8
_WRAPPED = Qt.AlignmentFlag.AlignLeft | Qt.TextFlag.TextWordWrap


class LintDelegate(Delegate):
    """The level as a chip, the place beside it, the words and what to do below."""

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:  # noqa: N802
        """As many lines as the words need."""
        row, view = index.data(LINT), getattr(option, "widget", None)
        line = current_look().tokens.row_height
        if not isinstance(row, LintRow) or not isinstance(view, QAbstractItemView):
            return QSize(200, line)
        metrics: QFontMetrics = getattr(option, "fontMetrics")  # noqa: B009
        room = QRect(0, 0, max(view.viewport().width() - 2 * _LEFT, 60), 10_000)
        texts = (label_text(said(row)), label_text(to_do_words(row)))
        words = sum(metrics.boundingRect(room, _WRAPPED, text).height() for text in texts)
        return QSize(200, line + words + 3 * current_look().tokens.space_1)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        """Chip, place, words, what to do."""
        row = index.data(LINT)
        if not isinstance(row, LintRow):
            return
        widget: QWidget | None = getattr(option, "widget", None)
        if widget is not None:
            widget.style().drawPrimitive(QStyle.PrimitiveElement.PE_PanelItemViewItem, option, painter, widget)
        look = current_look()
        rect: QRect = getattr(option, "rect")  # noqa: B009
        line = look.tokens.row_height
        painter.save()
        left = _chip(painter, rect, row.level)
        painter.setFont(look.mono_font)
        painter.setPen(QColor(look.palette.muted))
        place = QRect(left, rect.top(), rect.right() - _LEFT - left, line)
        cut = line_text(painter.fontMetrics(), where_words(row), place.width(), Qt.TextElideMode.ElideMiddle)
        painter.drawText(place, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, cut)
        painter.setFont(getattr(option, "font"))  # noqa: B009
        painter.setPen(QColor(look.palette.text))
        words = rect.adjusted(_LEFT, line, -_LEFT, 0)
        painter.drawText(words, _WRAPPED, label_text(said(row)))
        down = painter.fontMetrics().boundingRect(words, _WRAPPED, label_text(said(row))).height() + look.tokens.space_1
        painter.setPen(QColor(look.palette.muted))
        painter.drawText(words.adjusted(0, down, 0, 0), _WRAPPED, label_text(to_do_words(row)))
        painter.restore()


def _chip(painter: QPainter, rect: QRect, level: str) -> int:
    icon, role = LEVEL_LOOKS[level]
    look = current_look()
    painter.setFont(look.small_font)
    metrics = painter.fontMetrics()
    height, wide = metrics.height() + 5, chip_width(metrics.horizontalAdvance(level), with_icon=True)
    top = rect.top() + (look.tokens.row_height - height) // 2
    paint_chip(painter, QRect(rect.left() + _LEFT, top, wide, height), level, icon, role)
    return rect.left() + _LEFT + wide + _GAP


class LintPane(QWidget):
    """A click or Enter on a note asks for its place; Ctrl+C copies the note."""

    place_requested = Signal(object)
    """LintRow."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("preview.lints")
        self.model = LintModel(self)
        self.header = SectionHeader("Provider notes")
        self.view = NoteList("Provider notes")
        self.view.setObjectName("preview.lints.list")
        self.view.setModel(self.model)
        self.view.setItemDelegate(LintDelegate(self.view))
        self.view.chosen.connect(self._go)
        self.copy_button = CopyButton("Copy all notes", self._text)
        self.copy_button.setObjectName("preview.lints.copy")
        self.header.add_control(self.copy_button)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.header)
        column.addWidget(self.view, 1)

    def show_rows(self, provider: str, rows: tuple[LintRow, ...]) -> None:
        """The notes of a provider, named as it is shown; hidden where there are none."""
        self.model.set_rows(rows)
        self.header.set_title(f"{provider} notes")
        self.header.set_note(_counts(rows))
        self.setVisible(bool(rows))

    def _text(self) -> str:
        rows = "\n".join(whole_words(row) for row in self.model.rows)
        return f"{self.header.title}\n{rows}\n"

    def _go(self, index: QModelIndex) -> None:
        row = index.data(LINT)
        if isinstance(row, LintRow):
            self.place_requested.emit(row)


def _counts(rows: tuple[LintRow, ...]) -> str:
    counts = {level: sum(row.level == level for row in rows) for level in LEVEL_LOOKS}
    return ", ".join(f"{n:,} {lv}{'s' if lv == 'note' and n != 1 else ''}" for lv, n in counts.items() if n)
