"""A read-only text area for code: line numbers, folds, marked lines, updates that keep the place one was reading."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterator, Sequence
from math import ceil
from operator import attrgetter, itemgetter
from typing import TypeVar

from PySide6.QtCore import QMargins, QMimeData, QRect, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QFontMetricsF,
    QMouseEvent,
    QPaintEvent,
    QResizeEvent,
    QTextBlock,
    QTextCharFormat,
    QTextCursor,
    QTextFormat,
)
from PySide6.QtWidgets import QPlainTextEdit, QTextEdit, QWidget

from gatewright_gui.qt.fold import Fold, Foldable, Folded
from gatewright_gui.qt.highlighter import STRONGER, mix
from gatewright_gui.qt.linediff import ChangedLetters
from gatewright_gui.qt.look import Role, current_look, role_pair
from gatewright_gui.qt.textfind import Hit
from gatewright_gui.qt.widget.code_numbers import LineNumbers, NumberedRow
from gatewright_gui.qt.widget.code_rows import RowFiller

FAR = 4_000
"""Rows further down are not put in at once only because the cursor is there; it follows when they have come."""

T = TypeVar("T")
_LINE_OF: Callable[[Hit | ChangedLetters], int] = attrgetter("line")
Colour = Callable[[QTextBlock, int, Sequence[str]], None]
"""Colours so many lines from a block, before they are painted; the last are the lines above it."""


class CodeEdit(QPlainTextEdit):
    """Text that can be read, selected, copied and folded. Lines count from 1 and stay true when some are folded away;
    rows are what is left of them.
    """

    folding_changed = Signal(object)
    """The paths of the closed folds: frozenset[str]."""

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._marks: Sequence[tuple[int, Role]] = ()
        """By line (from 1)."""
        self._letters: Sequence[ChangedLetters] = ()
        self._hits: Sequence[Hit] = ()
        self._current_hit = 0
        self._folded = Folded(Foldable.plain(""))
        self._awaited: int | None = None
        """The line (from 0) that the cursor goes to as soon as it has come."""
        self._colour: Colour | None = None
        self._corner_room = 0
        self.numbers = LineNumbers(self._rows_in_view, self)
        self._filler = RowFiller(self.document())
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
        self.numbers.fold_chosen.connect(self.toggle_fold)
        self.verticalScrollBar().valueChanged.connect(self._follow_scroll)
        self.updateRequest.connect(self._follow)
        self._filler.grew.connect(self._grew)
        current_look().changed.connect(self._retint)
        self._make_room()

    # the text

    def set_text(self, text: Foldable, closed: Collection[str] = (), *, from_top: bool = False) -> None:
        """Show another text; only the rows that differ are replaced, so that scrolling and selection stay.

        `from_top`: begin at its first line instead. A long text comes in slices; what is in view is there at once.
        """
        self._show(Folded(text, closed), 0 if from_top else self._rows_to_see()[-1])
        if from_top:
            self.moveCursor(QTextCursor.MoveOperation.Start)
            self.verticalScrollBar().setValue(0)

    def set_colour(self, colour: Colour | None) -> None:
        """Set what colours lines when they come into view; None: somebody else does it."""
        self._colour = colour
        self.viewport().update()

    @property
    def lines(self) -> Sequence[str]:
        """Every line of the text, those that are folded away too."""
        return self._folded.whole.lines

    @property
    def is_filling(self) -> bool:
        """Tell whether rows of a long text are still to come."""
        return self._filler.is_filling

    @property
    def has_folds(self) -> bool:
        """Tell whether anything can be folded."""
        return bool(self._folded.whole.folds)

    @property
    def closed(self) -> frozenset[str]:
        """The paths of the closed folds; some may not be in this text."""
        return self._folded.closed

    @property
    def current_line(self) -> int:
        """The line (from 0) of the cursor."""
        if self._awaited is not None:
            return self._awaited
        return self._folded.line_of(self._row_of(self.textCursor().block()))

    def go_to_line(self, line: int) -> None:
        """Select a line (from 1) and bring it into view, unfolded; a line beyond the end does nothing."""
        if not 1 <= line <= len(self.lines):
            return
        self.reveal(line - 1)
        cursor = QTextCursor(self._block_of(line - 1))
        cursor.movePosition(QTextCursor.MoveOperation.EndOfBlock, QTextCursor.MoveMode.KeepAnchor)
        self.setTextCursor(cursor)
        self.centerCursor()

    def go_to_hit(self, hit: Hit) -> None:
        """Put the cursor before what was found, unfolded."""
        self.reveal(hit.line)
        self._block_of(hit.line)
        cursor = self._cursor_over(hit.line, hit.start, hit.start)
        if cursor is not None:
            self.setTextCursor(cursor)

    def createMimeDataFromSelection(self) -> QMimeData:  # noqa: N802
        """Copy with a selection what is folded away in it, and what has still to come."""
        cursor = self.textCursor()
        first, last = (
            self._row_of(self.document().findBlock(at)) for at in (cursor.selectionStart(), cursor.selectionEnd())
        )
        if not self.is_filling and not any(self._is_closed_row(row) for row in range(first, last + 1)):
            return super().createMimeDataFromSelection()
        data = QMimeData()
        data.setText(self._folded.whole_text(first, last))
        return data

    def _show(self, folded: Folded, needed_row: int) -> None:
        vertical, horizontal = self.verticalScrollBar().value(), self.horizontalScrollBar().value()
        row, line = self._row_of(self.textCursor().block()), self.current_line
        self._folded, self._awaited = folded, None
        if row in self._filler.show(folded.rows, needed_row):
            # to the same line as before, where that has come; what is put in would push it on
            block = self._filler.block_of(folded.row_of(line))
            self.setTextCursor(QTextCursor(self.document().findBlockByNumber(max(block, 0))))
        self._make_room()
        self.verticalScrollBar().setValue(vertical)
        self.horizontalScrollBar().setValue(horizontal)
        self._retint()

    def _grew(self) -> None:
        self._arrive()
        if not self.is_filling:
            self._retint()

    def _arrive(self) -> None:
        line = self._awaited
        if line is not None and self._filler.block_of(self._folded.row_of(line)) >= 0:
            self._awaited = None
            self.setTextCursor(QTextCursor(self._block_of(line)))

    # rows and blocks

    def _row_of(self, block: QTextBlock) -> int:
        return self._filler.row_of(block.blockNumber())

    def _block_of(self, line: int) -> QTextBlock:
        """The block that a line (from 0) is in; it is put in where it is still to come, and nothing else awaited."""
        self._awaited = None
        row = self._folded.row_of(line)
        self._filler.reach(row)
        return self.document().findBlockByNumber(self._filler.block_of(row))

    def _cursor_over(self, line: int, start: int, end: int) -> QTextCursor | None:
        """Over letters (code points) of a line (from 0); None where it is folded away or still to come."""
        if not 0 <= line < len(self.lines) or not self._folded.is_shown(line):
            return None
        block = self.document().findBlockByNumber(self._filler.block_of(self._folded.row_of(line)))
        if not block.isValid():
            return None
        text, cursor = self.lines[line], QTextCursor(block)
        cursor.setPosition(block.position() + _utf16_length(text[:start]))
        cursor.setPosition(block.position() + _utf16_length(text[:end]), QTextCursor.MoveMode.KeepAnchor)
        return cursor

    def _rows_to_see(self) -> range:
        """The rows in view, and perhaps some below: a row is at least one line high."""
        first = self._row_of(self.firstVisibleBlock())
        return range(first, first + self.viewport().height() // max(1, self.fontMetrics().height()) + 2)

    def _rows_in_view(self) -> Iterator[NumberedRow]:
        block, bottom = self.firstVisibleBlock(), self.viewport().height()
        top = self.blockBoundingGeometry(block).translated(self.contentOffset()).top()
        while block.isValid() and top <= bottom:
            row = self._row_of(block)
            fold = self._folded.fold_at(row)
            is_closed = fold is not None and self._folded.is_closed(fold)
            yield NumberedRow(round(top), self._folded.line_of(row), fold, is_closed)
            top += self.blockBoundingRect(block).height()
            block = block.next()

    # folds

    def set_closed(self, closed: Collection[str], keep_line: int | None = None) -> None:
        """Close these folds and no others; the cursor stays on `keep_line` (from 0), else on its own."""
        if frozenset(closed) == self.closed:
            return
        line = self.current_line if keep_line is None else keep_line
        folded = Folded(self._folded.whole, closed)
        self._show(folded, min(folded.row_of(line), FAR))
        self._awaited = line
        self._arrive()
        self.folding_changed.emit(self.closed)

    def toggle_fold(self, fold: Fold) -> None:
        """Close a fold, or open it."""
        self.set_closed(self.closed ^ {fold.path}, fold.first)

    def fold_here(self) -> None:
        """Close the innermost open fold that the cursor is in."""
        around = [fold for fold in self._folded.around(self.current_line) if not self._folded.is_closed(fold)]
        if around:
            self.set_closed(self.closed | {around[-1].path}, around[-1].first)

    def unfold_here(self) -> None:
        """Open the fold of the cursor's row."""
        fold = self._folded.fold_at(self._row_of(self.textCursor().block()))
        if fold is not None:
            self.set_closed(self.closed - {fold.path}, fold.first)

    def toggle_here(self) -> None:
        """Open the fold of the cursor's row where it is closed, else close the one that the cursor is in."""
        if self._is_closed_row(self._row_of(self.textCursor().block())):
            self.unfold_here()
        else:
            self.fold_here()

    def fold_all(self) -> None:
        """Close every fold but the outermost."""
        self.set_closed(self._folded.whole.below_root)

    def unfold_all(self) -> None:
        """Open every fold."""
        self.set_closed(())

    def reveal(self, line: int) -> None:
        """Open what a line (from 0) is folded away in."""
        hiding = self._folded.hiding(line)
        if hiding:
            self.set_closed(self.closed - hiding, line)

    def mousePressEvent(self, event: QMouseEvent) -> None:  # noqa: N802
        """A click on what stands for folded lines opens them."""
        cursor = self.cursorForPosition(event.position().toPoint())
        fold = self._folded.fold_at(self._row_of(cursor.block()))
        is_left = event.button() == Qt.MouseButton.LeftButton
        if fold is not None and is_left and self._folded.is_closed(fold) and _is_behind(cursor, self.lines[fold.first]):
            self.toggle_fold(fold)
        else:
            super().mousePressEvent(event)

    def _is_closed_row(self, row: int) -> bool:
        fold = self._folded.fold_at(row)
        return fold is not None and self._folded.is_closed(fold)

    # marks

    def mark_lines(self, marks: dict[int, Role]) -> None:
        """Give lines (from 1) the soft ground of a role."""
        self._marks = sorted(marks.items())
        self._retint()

    def mark_letters(self, letters: Sequence[ChangedLetters]) -> None:
        """Put the changed letters of a diff on a stronger ground."""
        self._letters = sorted(letters, key=_LINE_OF)
        self._retint()

    def mark_hits(self, hits: Sequence[Hit], current: int = 0) -> None:
        """Show what a search found, in the order of the lines; the current one stands out."""
        self._hits, self._current_hit = hits, current
        self._retint()

    def set_corner_room(self, pixels: int) -> None:
        """Keep the text this far from the right edge, where something else lies over it."""
        self._corner_room = pixels
        self._make_room()

    def _retint(self) -> None:
        """Tint what is in view: every cursor that is kept makes changes of the text slower."""
        rows = self._rows_to_see()
        first, last = (self._folded.line_of(row) for row in (rows[0], rows[-1]))
        kinds = (self._line_marks, self._letter_marks, self._hit_marks)
        self.setExtraSelections([mark for marks in kinds for mark in marks(first, last)])
        self.numbers.update()

    def _line_marks(self, first: int, last: int) -> Iterator[QTextEdit.ExtraSelection]:
        palette = current_look().palette
        for line, role in _between(self._marks, first + 1, last + 1, itemgetter(0)):
            cursor = self._cursor_over(line - 1, 0, 0)
            if cursor is not None:
                yield _selection(cursor, role_pair(palette, role).soft, whole_line=True)

    def _letter_marks(self, first: int, last: int) -> Iterator[QTextEdit.ExtraSelection]:
        palette = current_look().palette
        for letters in _between(self._letters, first, last, _LINE_OF):
            cursor = self._cursor_over(letters.line, letters.start, letters.end)
            if cursor is not None:
                pair = palette.diff_added if letters.is_added else palette.diff_removed
                yield _selection(cursor, mix(pair.soft, pair.fg, STRONGER))

    def _hit_marks(self, first: int, last: int) -> Iterator[QTextEdit.ExtraSelection]:
        palette, current = current_look().palette, self._hits[self._current_hit] if self._hits else None
        for hit in _between(self._hits, first, last, _LINE_OF):
            cursor = self._cursor_over(hit.line, hit.start, hit.end)
            if cursor is not None:
                yield _selection(cursor, palette.selection if hit == current else palette.verdict.ask.soft)

    # what Qt asks

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802
        """Colours first, where nobody else gives them."""
        if self._colour is not None:
            rows = self._rows_to_see()
            self._colour(self.firstVisibleBlock(), len(rows), self.lines[: self._folded.line_of(rows[0])])
        super().paintEvent(event)

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802
        """Keep the numbers at the left edge."""
        super().resizeEvent(event)
        self._make_room()
        self._follow_scroll()

    def _make_room(self) -> None:
        """Room for the numbers and the corner; below, as much that no line is cut in two."""
        old = self.viewportMargins()
        whole, line = self.viewport().height() + old.bottom(), ceil(QFontMetricsF(self.font()).lineSpacing())
        spare = (whole - round(self.document().documentMargin())) % line if whole > 3 * line else 0
        wide = self.numbers.width_for(len(self.lines), with_arrows=self.has_folds)
        new = QMargins(wide, 0, self._corner_room, spare)
        if new != old:
            self.setViewportMargins(new)
        inside = self.contentsRect()
        self.numbers.setGeometry(QRect(inside.left(), inside.top(), wide, self.viewport().height()))

    def _follow_scroll(self, _value: int = 0) -> None:
        if self._hits or self._marks or self._letters:
            self._retint()

    def _follow(self, rect: QRect, scrolled: int) -> None:
        if scrolled:
            self.numbers.scroll(0, scrolled)
        else:
            self.numbers.update(0, rect.y(), self.numbers.width(), rect.height())


def _between(places: Sequence[T], first: int, last: int, line_of: Callable[[T], int]) -> Sequence[T]:
    """Those of the lines `first` to `last`; they are in the order of the lines."""
    return places[bisect_left(places, first, key=line_of) : bisect_right(places, last, key=line_of)]


def _is_behind(cursor: QTextCursor, text: str) -> bool:
    return cursor.positionInBlock() >= _utf16_length(text)


def _selection(cursor: QTextCursor, ground: str, *, whole_line: bool = False) -> QTextEdit.ExtraSelection:
    """A coloured ground behind the letters of a cursor, or behind its whole line."""
    form = QTextCharFormat()
    form.setBackground(QColor(ground))
    if whole_line:
        form.setProperty(QTextFormat.Property.FullWidthSelection, True)
    made = QTextEdit.ExtraSelection()
    made.cursor = cursor
    made.format = form
    return made


def _utf16_length(text: str) -> int:
    return len(text) if text.isascii() else len(text) + sum(letter > "\uffff" for letter in text)
