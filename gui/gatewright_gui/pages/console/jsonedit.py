"""An editor for the arguments as JSON: marks under what is wrong, and what could be typed at the cursor.

It checks nothing and knows no tools; others give it the marks and what to offer.
"""

from collections.abc import Callable, Sequence

from PySide6.QtCore import QMimeData, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QKeyEvent,
    QStandardItem,
    QStandardItemModel,
    QTextCharFormat,
    QTextCursor,
)
from PySide6.QtWidgets import QCompleter, QListView, QTextEdit, QWidget

from gatewright_gui.models.argumentcheck import TextFault
from gatewright_gui.models.jsoncompletion import Completion
from gatewright_gui.pages.console.fields.tabtakes import TabTakes
from gatewright_gui.pages.console.largetext import LargeTextEdit
from gatewright_gui.qt.highlighter import Highlighter
from gatewright_gui.qt.look import current_look
from gatewright_gui.qt.plaintext import tip_text
from gatewright_gui.qt.widget.delegate import Delegate

INDENT = "  "
_TEXT = Qt.ItemDataRole.UserRole
_CLOSING = {Qt.Key.Key_Enter, Qt.Key.Key_Return, Qt.Key.Key_Escape, Qt.Key.Key_Backtab}


class JsonEdit(LargeTextEdit):
    """Ctrl+Space asks `offer` for what could stand at the cursor; `take_paste` may take a text that is pasted."""

    completed = Signal()
    """Something that was offered was put in."""

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(name, parent=parent)
        self.offer: Callable[[str, int], Completion] = lambda _text, at: Completion(at, at)
        self.take_paste: Callable[[str], bool] = lambda _text: False
        self._range = (0, 0)
        self._faults: tuple[TextFault, ...] = ()
        Highlighter(self.document()).set_language("json")
        self._model = QStandardItemModel(self)
        self._completer = QCompleter(self._model, self)
        self._completer.setWidget(self)
        self._completer.setCompletionMode(QCompleter.CompletionMode.UnfilteredPopupCompletion)
        self._list = QListView()
        self._list.setItemDelegate(Delegate(self._list))
        self._list.setObjectName("console.json.offer")
        self._list.setAccessibleName("What could stand here")
        self._list.setFont(current_look().mono_font)
        self._completer.setPopup(self._list)
        TabTakes(self._list)
        self._completer.activated.connect(self._put_in)
        current_look().changed.connect(self._draw)

    @property
    def is_offering(self) -> bool:
        """Whether the list is open."""
        return self._list.isVisible()

    def offered(self) -> list[str]:
        """What the list holds."""
        return [self._model.item(row).text() for row in range(self._model.rowCount())]

    def mark(self, faults: Sequence[TextFault]) -> None:
        """Draw a line under what is wrong."""
        self._faults = tuple(faults)
        self._draw()

    def go_to(self, fault: TextFault) -> None:
        """Put the cursor to a fault."""
        cursor = self._cursor_over(fault.start, fault.start)
        self.setTextCursor(cursor)
        self.setFocus(Qt.FocusReason.OtherFocusReason)

    def put_formatted(self, text: str) -> None:
        """Another spelling of the same text, which can be undone."""
        cursor = QTextCursor(self.document())
        cursor.select(QTextCursor.SelectionType.Document)
        cursor.insertText(text)

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802
        """Ctrl+Space offers; Return keeps the indentation; the open list has its own keys."""
        if self.is_offering and Qt.Key(event.key()) in _CLOSING:
            event.ignore()
            return
        plain = event.modifiers() in {Qt.KeyboardModifier.NoModifier, Qt.KeyboardModifier.KeypadModifier}
        if event.key() == Qt.Key.Key_Space and event.modifiers() == Qt.KeyboardModifier.ControlModifier:
            self.complete()
        elif event.key() in {Qt.Key.Key_Return, Qt.Key.Key_Enter} and plain and not self.is_aside:
            self._break_line()
        else:
            super().keyPressEvent(event)
            if self.is_offering:
                self.complete()

    def insertFromMimeData(self, source: QMimeData) -> None:  # noqa: N802
        """A paste that fills the whole field may be taken as something else."""
        text = source.text()
        is_whole = not self.text.strip() or self.textCursor().selectedText().strip() == self._one_line()
        if not (is_whole and self.take_paste(text)):
            super().insertFromMimeData(source)

    def complete(self) -> None:
        """Open the list of what could stand at the cursor."""
        if self.is_aside:
            return
        text, at = self.text, self._text_position()
        found = self.offer(text, at)
        self._range = (found.start, found.end)
        self._model.clear()
        for one in found.offered:
            item = QStandardItem(one.label)
            item.setData(one.text, _TEXT)
            item.setToolTip(tip_text(one.note))
            self._model.appendRow(item)
        popup = self._list
        if not found.offered:
            popup.hide()
            return
        room = popup.sizeHintForColumn(0) + popup.verticalScrollBar().sizeHint().width() + 24
        rect = self.cursorRect()
        rect.setWidth(min(max(room, 140), 420))
        self._completer.complete(rect)
        popup.setCurrentIndex(self._completer.completionModel().index(0, 0))

    def _put_in(self, label: str) -> None:
        found = self._list.currentIndex().data(_TEXT)
        text = str(found) if found is not None else label
        cursor = self._cursor_over(*self._range)
        cursor.insertText(text)
        if text.endswith(('""', "{}", "[]")):
            cursor.movePosition(QTextCursor.MoveOperation.Left)
        self.setTextCursor(cursor)
        self.completed.emit()

    def _break_line(self) -> None:
        cursor = self.textCursor()
        before = cursor.block().text()[: cursor.positionInBlock()]
        after = cursor.block().text()[cursor.positionInBlock() :]
        indent = before[: len(before) - len(before.lstrip(" "))]
        opens = before.rstrip().endswith(("{", "["))
        closes = opens and after.lstrip().startswith(("}", "]"))
        cursor.insertText("\n" + indent + (INDENT if opens else ""))
        if closes:
            at = cursor.position()
            cursor.insertText("\n" + indent)
            cursor.setPosition(at)
        self.setTextCursor(cursor)
        self.ensureCursorVisible()

    def _one_line(self) -> str:
        return self.toPlainText().strip().replace("\n", "\u2029")

    def _text_position(self) -> int:
        """Where the cursor is, in code points."""
        units = self.textCursor().position()
        return len(self.toPlainText().encode("utf-16-le")[: 2 * units].decode("utf-16-le", "replace"))

    def _cursor_over(self, start: int, end: int) -> QTextCursor:
        text = self.toPlainText()
        cursor = QTextCursor(self.document())
        last = self.document().characterCount() - 1
        cursor.setPosition(min(_units(text[:start]), last))
        cursor.setPosition(min(_units(text[:end]), last), QTextCursor.MoveMode.KeepAnchor)
        return cursor

    def _draw(self) -> None:
        made: list[QTextEdit.ExtraSelection] = []
        colour = QColor(current_look().palette.verdict.deny.fg)
        for fault in () if self.is_aside else self._faults:
            form = QTextCharFormat()
            form.setUnderlineStyle(QTextCharFormat.UnderlineStyle.WaveUnderline)
            form.setUnderlineColor(colour)
            form.setBackground(QColor(current_look().palette.verdict.deny.soft))
            form.setToolTip(str(fault))
            selection = QTextEdit.ExtraSelection()
            end = fault.end if fault.end > fault.start else fault.start + 1
            start = fault.start if fault.start < len(self.toPlainText()) else max(fault.start - 1, 0)
            selection.cursor = self._cursor_over(start, end)
            selection.format = form
            made.append(selection)
        self.setExtraSelections(made)


def _units(text: str) -> int:
    return len(text) if text.isascii() else len(text) + sum(letter > "\uffff" for letter in text)
