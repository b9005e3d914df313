"""A read-only text area for code: line numbers, a marked line, and updates that keep the place one was reading.

It does not know languages, nor the buttons around it.
"""

from collections.abc import Sequence
from math import ceil

from PySide6.QtCore import QMargins, QRect, QSize, Qt
from PySide6.QtGui import (
    QColor,
    QFontMetricsF,
    QPainter,
    QPaintEvent,
    QResizeEvent,
    QTextBlock,
    QTextCharFormat,
    QTextCursor,
    QTextFormat,
)
from PySide6.QtWidgets import QPlainTextEdit, QTextEdit, QWidget

from gatewright_gui.qt.linediff import ChangedLetters
from gatewright_gui.qt.look import Role, current_look, role_pair

STRONGER = 0.16
"""How much of the words' colour goes into the ground of changed letters; more would cost contrast."""


class _Numbers(QWidget):
    """The column of line numbers; its editor draws it."""

    def __init__(self, editor: "CodeEdit") -> None:
        super().__init__(editor)
        self._editor = editor

    def sizeHint(self) -> QSize:  # noqa: N802
        return QSize(self._editor.numbers_width(), 0)

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802
        self._editor.paint_numbers(event)


class CodeEdit(QPlainTextEdit):
    """Text that can be read, selected and copied."""

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._marks: dict[int, Role] = {}
        self._letters: tuple[ChangedLetters, ...] = ()
        self._found: list[QTextEdit.ExtraSelection] = []
        self._corner_room = 0
        self._numbers = _Numbers(self)
        self.setReadOnly(True)
        self.setUndoRedoEnabled(False)
        self.setAccessibleName(name)
        self.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        self.setFont(current_look().mono_font)
        self.setTabStopDistance(4 * self.fontMetrics().horizontalAdvance(" "))
        self.document().setDocumentMargin(current_look().tokens.space_1)
        self.blockCountChanged.connect(self._make_room)
        self.updateRequest.connect(self._follow)
        current_look().changed.connect(self._retint)
        self._make_room()

    def set_text(self, text: str) -> None:
        """Show another text; only the lines that differ are replaced, so that scrolling and selection stay."""
        text = text.replace("\r\n", "\n")
        old = self.toPlainText()
        if text == old:
            return
        vertical, horizontal = self.verticalScrollBar().value(), self.horizontalScrollBar().value()
        start, old_end, new_end = changed_range(old, text)
        cursor = QTextCursor(self.document())
        cursor.setPosition(_utf16_length(old[:start]))
        cursor.setPosition(_utf16_length(old[:old_end]), QTextCursor.MoveMode.KeepAnchor)
        cursor.insertText(text[start:new_end])
        self.verticalScrollBar().setValue(vertical)
        self.horizontalScrollBar().setValue(horizontal)

    def mark_lines(self, marks: dict[int, Role]) -> None:
        """Give lines (from 1) the soft ground of a role."""
        self._marks = dict(marks)
        self._retint()

    def mark_letters(self, letters: Sequence[ChangedLetters]) -> None:
        """Put the changed letters of a diff on a stronger ground."""
        self._letters = tuple(letters)
        self._retint()

    def set_corner_room(self, pixels: int) -> None:
        """Keep the text this far from the right edge, where something else lies over it."""
        self._corner_room = pixels
        self._make_room()

    def mark_found(self, selections: list[QTextEdit.ExtraSelection]) -> None:
        """Show what a search found."""
        self._found = selections
        self._retint()

    def go_to_line(self, line: int) -> None:
        """Select a line (from 1) and bring it into view; a line beyond the end does nothing."""
        block = self.document().findBlockByNumber(line - 1)
        if not block.isValid():
            return
        cursor = QTextCursor(block)
        cursor.movePosition(QTextCursor.MoveOperation.EndOfBlock, QTextCursor.MoveMode.KeepAnchor)
        self.setTextCursor(cursor)
        self.centerCursor()

    def numbers_width(self) -> int:
        """Pixels that the column of numbers takes."""
        digits = max(2, len(str(self.blockCount())))
        return digits * self.fontMetrics().horizontalAdvance("9") + 2 * current_look().tokens.space_2

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802
        """Keep the numbers at the left edge."""
        super().resizeEvent(event)
        self._make_room()

    def paint_numbers(self, event: QPaintEvent) -> None:
        """Draw the numbers of the lines in view."""
        palette = current_look().palette
        painter = QPainter(self._numbers)
        painter.setFont(self.font())
        painter.fillRect(event.rect(), QColor(palette.background))
        painter.setPen(QColor(palette.muted))
        block = self.firstVisibleBlock()
        top = self.blockBoundingGeometry(block).translated(self.contentOffset()).top()
        while block.isValid() and top <= event.rect().bottom():
            top += self._paint_number(painter, block, round(top))
            block = block.next()

    def _paint_number(self, painter: QPainter, block: QTextBlock, top: int) -> float:
        height = self.blockBoundingRect(block).height()
        width = self._numbers.width() - current_look().tokens.space_2
        place = QRect(0, top, width, self.fontMetrics().height())
        painter.drawText(place, Qt.AlignmentFlag.AlignRight, str(block.blockNumber() + 1))
        return height

    def _make_room(self) -> None:
        """Room for the numbers and the corner; below, as much that no line is cut in two."""
        old = self.viewportMargins()
        whole, line = self.viewport().height() + old.bottom(), ceil(QFontMetricsF(self.font()).lineSpacing())
        spare = (whole - round(self.document().documentMargin())) % line if whole > 3 * line else 0
        new = QMargins(self.numbers_width(), 0, self._corner_room, spare)
        if new != old:
            self.setViewportMargins(new)
        inside = self.contentsRect()
        self._numbers.setGeometry(QRect(inside.left(), inside.top(), self.numbers_width(), self.viewport().height()))

    def _follow(self, rect: QRect, scrolled: int) -> None:
        if scrolled:
            self._numbers.scroll(0, scrolled)
        else:
            self._numbers.update(0, rect.y(), self._numbers.width(), rect.height())

    def _retint(self) -> None:
        self.setExtraSelections([*self._line_marks(), *self._letter_marks(), *self._found])
        self._numbers.update()

    def _line_marks(self) -> list[QTextEdit.ExtraSelection]:
        palette = current_look().palette
        made: list[QTextEdit.ExtraSelection] = []
        for line, role in self._marks.items():
            block = self.document().findBlockByNumber(line - 1)
            if block.isValid():
                made.append(selection(QTextCursor(block), role_pair(palette, role).soft, whole_line=True))
        return made

    def _letter_marks(self) -> list[QTextEdit.ExtraSelection]:
        palette = current_look().palette
        made: list[QTextEdit.ExtraSelection] = []
        for letters in self._letters:
            block = self.document().findBlockByNumber(letters.line)
            text = block.text()
            if not block.isValid() or _utf16_length(text) < letters.end:
                continue
            cursor = QTextCursor(block)
            cursor.setPosition(block.position() + _utf16_length(text[: letters.start]))
            end = block.position() + _utf16_length(text[: letters.end])
            cursor.setPosition(end, QTextCursor.MoveMode.KeepAnchor)
            pair = palette.diff_added if letters.is_added else palette.diff_removed
            made.append(selection(cursor, mixed(pair.soft, pair.fg, STRONGER)))
        return made


def mixed(ground: str, colour: str, share: float) -> str:
    """`#rrggbb` between two colours; `share` of the second."""
    one, two = QColor(ground), QColor(colour)
    parts = zip((one.red(), one.green(), one.blue()), (two.red(), two.green(), two.blue()), strict=True)
    return QColor(*(round(a + (b - a) * share) for a, b in parts)).name()


def selection(cursor: QTextCursor, ground: str, *, whole_line: bool = False) -> QTextEdit.ExtraSelection:
    """A coloured ground behind the letters of a cursor, or behind its whole line."""
    form = QTextCharFormat()
    form.setBackground(QColor(ground))
    if whole_line:
        form.setProperty(QTextFormat.Property.FullWidthSelection, True)
    made = QTextEdit.ExtraSelection()
    made.cursor = cursor
    made.format = form
    return made


def changed_range(old: str, new: str) -> tuple[int, int, int]:
    """What differs between two texts, in whole lines: start in both, end in `old`, end in `new`."""
    old_lines, new_lines = old.split("\n"), new.split("\n")
    head = 0
    limit = min(len(old_lines), len(new_lines))
    while head < limit and old_lines[head] == new_lines[head]:
        head += 1
    tail = 0
    while tail < limit - max(head, 1) and old_lines[-1 - tail] == new_lines[-1 - tail]:
        tail += 1
    old_end, new_end = len(old) - _tail_size(old_lines, tail), len(new) - _tail_size(new_lines, tail)
    return min(_offset(old_lines, head), old_end, new_end), old_end, new_end


def _offset(lines: list[str], count: int) -> int:
    return sum(len(line) + 1 for line in lines[:count])


def _tail_size(lines: list[str], count: int) -> int:
    return sum(len(line) + 1 for line in lines[len(lines) - count :])


def _utf16_length(text: str) -> int:
    return len(text) if text.isascii() else len(text) + sum(letter > "\uffff" for letter in text)
