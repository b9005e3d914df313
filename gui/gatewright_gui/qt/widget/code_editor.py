"""A text area for code that can be typed in: an undo of its own, and what is wrong underlined, in words beside it."""

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from PySide6.QtCore import QEvent, QRectF, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QKeyEvent,
    QKeySequence,
    QPainter,
    QPaintEvent,
    QTextCharFormat,
    QTextCursor,
)
from PySide6.QtWidgets import QTextEdit, QWidget

from gatewright_gui.qt.fold import Foldable, Folded
from gatewright_gui.qt.look import Role, current_look, role_pair
from gatewright_gui.qt.plaintext import LEFT, line_text
from gatewright_gui.qt.widget.code_edit import CodeEdit

_GAP = 24
"""Pixels between a line and the words beside it."""


class LineFault(NamedTuple):
    """The fault at a line and column (both from 1), in words; `role`: `deny` of an error, `ask` of a warning."""

    line: int
    column: int
    words: str
    role: Role


class CodeEditor(CodeEdit):
    """Text without folds that is edited once `let_type` allows it and all of its rows have come."""

    typed = Signal()
    """Somebody changed the text."""

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        self._may_type = False
        self._faults: Sequence[LineFault] = ()
        super().__init__(name, parent)
        self.setTabChangesFocus(True)
        self.document().contentsChange.connect(self._take)

    def let_type(self, on: bool) -> None:
        """Say whether the text may be typed in."""
        self._may_type = on
        self._open_up()

    def set_text(self, text: Foldable, closed: Collection[str] = (), *, from_top: bool = False) -> None:
        """Show another text; what was typed cannot be undone afterwards."""
        self.setReadOnly(True)
        self.setUndoRedoEnabled(False)
        super().set_text(text, closed, from_top=from_top)
        self._open_up()

    def show_faults(self, faults: Sequence[LineFault]) -> None:
        """Underline these, in the order of their lines."""
        self._faults = faults
        self._retint()
        self.viewport().update()

    @property
    def faults(self) -> Sequence[LineFault]:
        """The faults that are underlined."""
        return self._faults

    def go_to_fault(self, fault: LineFault) -> None:
        """Put the cursor where it is."""
        self.go_to_line(fault.line)
        cursor = self._cursor_over(fault.line - 1, fault.column - 1, fault.column - 1)
        if cursor is not None:
            self.setTextCursor(cursor)
        self.setFocus(Qt.FocusReason.OtherFocusReason)

    def go_to_next_fault(self) -> None:
        """Go to the first one below the cursor; from the last to the first."""
        at = self.textCursor()
        here = (at.blockNumber() + 1, at.positionInBlock() + 1)
        later = (fault for fault in self._faults if (fault.line, fault.column) > here)
        fault = next(later, self._faults[0] if self._faults else None)
        if fault is not None:
            self.go_to_fault(fault)

    def event(self, event: QEvent) -> bool:
        """Undo and redo are keys of the window where there is no typing to take back."""
        if isinstance(event, QKeyEvent) and event.type() is QEvent.Type.ShortcutOverride:
            document = self.document()
            for key, can in (
                (QKeySequence.StandardKey.Undo, document.isUndoAvailable()),
                (QKeySequence.StandardKey.Redo, document.isRedoAvailable()),
            ):
                if event.matches(key) and not can:
                    event.ignore()
                    return False
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802
        """Shift+Return breaks the line like Return, not within its paragraph; Ctrl+Return is no letter."""
        if event.key() in {Qt.Key.Key_Return, Qt.Key.Key_Enter} and not self.isReadOnly():
            if not event.modifiers() & Qt.KeyboardModifier.ControlModifier:
                self.textCursor().insertBlock()
                self.ensureCursorVisible()
            return
        super().keyPressEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802
        """The words beside the lines, over the text's ground."""
        super().paintEvent(event)
        if self._faults:
            painter = QPainter(self.viewport())
            painter.setFont(current_look().mono_font)
            told: set[int] = set()
            for fault in self._in_view():
                if fault.line not in told:
                    told.add(fault.line)
                    self._paint_words(painter, fault)

    def _grew(self) -> None:
        super()._grew()
        self._open_up()

    def _open_up(self) -> None:
        can = self._may_type and not self.is_filling
        if can == self.isReadOnly():
            self.setReadOnly(not can)
            self.setUndoRedoEnabled(can)

    def _take(self, at: int, _removed: int, added: int) -> None:
        """Know the lines as they are typed; those below a change keep their faults."""
        if self.isReadOnly():
            return
        document, old = self.document(), self.lines
        block = document.findBlock(at)
        last = document.findBlock(min(at + added, document.characterCount() - 1)).blockNumber()
        first, more = block.blockNumber(), document.blockCount() - len(old)
        new: list[str] = []
        while block.isValid() and block.blockNumber() <= last:
            new.append(block.text())
            block = block.next()
        if not more and old[first : last + 1] == new:
            return  # only its colours
        lines = [*old[:first], *new, *old[last + 1 - more :]]
        self._folded = Folded(Foldable("\n".join(lines), lines))
        self._filler.keep(lines)
        if more:
            self._faults = [
                fault._replace(line=fault.line + more) if fault.line > first + 1 else fault for fault in self._faults
            ]
            self._make_room()
        self.typed.emit()

    def _retint(self) -> None:
        super()._retint()
        faults = [self._underline(fault) for fault in self._in_view()]
        if faults:
            self.setExtraSelections([*self.extraSelections(), *[one for one in faults if one is not None]])

    def _in_view(self) -> Iterator[LineFault]:
        rows = self._rows_to_see()
        return (fault for fault in self._faults if rows[0] < fault.line <= rows[-1] + 1)

    def _underline(self, fault: LineFault) -> QTextEdit.ExtraSelection | None:
        cursor = self._cursor_over(fault.line - 1, fault.column - 1, fault.column - 1)
        if cursor is None:
            return None
        cursor.movePosition(QTextCursor.MoveOperation.EndOfBlock, QTextCursor.MoveMode.KeepAnchor)
        if not cursor.hasSelection():
            cursor.movePosition(QTextCursor.MoveOperation.StartOfBlock, QTextCursor.MoveMode.KeepAnchor)
        pair = role_pair(current_look().palette, fault.role)
        form = QTextCharFormat()
        form.setUnderlineStyle(QTextCharFormat.UnderlineStyle.WaveUnderline)
        form.setUnderlineColor(QColor(pair.fg))
        made = QTextEdit.ExtraSelection()
        made.cursor, made.format = cursor, form
        return made

    def _paint_words(self, painter: QPainter, fault: LineFault) -> None:
        cursor = self._cursor_over(fault.line - 1, 0, 0)
        if cursor is None or not cursor.block().layout().lineCount():
            return
        block = cursor.block()
        layout = block.layout()
        line = layout.lineAt(layout.lineCount() - 1)
        box = self.blockBoundingGeometry(block).translated(self.contentOffset())
        left = box.left() + line.x() + line.naturalTextWidth() + _GAP
        room = QRectF(left, box.top() + line.y(), self.viewport().width() - left - 4, line.height())
        painter.setPen(QColor(role_pair(current_look().palette, fault.role).fg))
        words = line_text(painter.fontMetrics(), fault.words, int(room.width()))
        painter.drawText(room, LEFT, words)
