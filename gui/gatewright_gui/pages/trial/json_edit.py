"""The arguments as JSON text, checked while they are typed, with what could be typed at the cursor."""

from collections.abc import Callable, Sequence
from functools import partial

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

from gatewright.workspace.api import JsonRefused, parse_object
from gatewright_gui.pages.trial.argument_check import (
    FITS,
    ArgumentCheck,
    FaultLine,
    TextFault,
    syntax_faults,
    text_faults,
)
from gatewright_gui.pages.trial.json_completion import Completion, completion_at
from gatewright_gui.pages.trial.json_value import to_text
from gatewright_gui.qt.highlighter import Highlighter
from gatewright_gui.qt.language import mark, tr
from gatewright_gui.qt.layout import column_of, named, stretch
from gatewright_gui.qt.look import current_look
from gatewright_gui.qt.plaintext import tip_text
from gatewright_gui.qt.task import TaskOwner
from gatewright_gui.qt.widget.button import text_button
from gatewright_gui.qt.widget.item_view import Delegate
from gatewright_gui.qt.widget.text_field import LargeTextEdit, TabTakes
from gatewright_gui.session.calls import ShownTool

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
        self._list.setAccessibleName(tr("What could stand here"))
        self._list.setFont(current_look().mono_font)
        current_look().dress(self._list)
        self._completer.setPopup(self._list)
        TabTakes(self._list)
        self._completer.activated.connect(self._put_in)
        current_look().changed.connect(self._draw)

    @property
    def is_offering(self) -> bool:
        """Tell whether the list is open."""
        return self._list.isVisible()

    def offers(self) -> list[str]:
        """The texts that the list holds."""
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
        chosen = self.textCursor().selectedText().replace("\u2029", "\n")
        is_whole = not self.text.strip() or chosen.strip() == self.toPlainText().strip()
        if not (is_whole and self.take_paste(source.text())):
            super().insertFromMimeData(source)

    def complete(self) -> None:
        """Open the list of what could stand at the cursor."""
        if self.is_aside:
            return
        units = self.textCursor().position()  # the schema is asked by code points
        at = len(self.toPlainText().encode("utf-16-le")[: 2 * units].decode("utf-16-le", "replace"))
        found = self.offer(self.text, at)
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


AT_ONCE = 20_000
"""The syntax of texts up to this many characters is checked at once, that of longer ones beside the window."""
IS_OBJECT = mark("one JSON object")


class RawJson(QWidget):
    """Editor and the line below it that says what is wrong, and where. F8 goes to it."""

    changed = Signal()

    def __init__(self, tasks: TaskOwner, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._tool: ShownTool | None = None
        self.faults: tuple[TextFault, ...] = ()
        self.editor = named(JsonEdit(tr("Arguments as JSON")), "console.json")
        self.editor.setPlaceholderText('{ "op": "read", "path": "README.md" }')
        self.editor.offer = self._offer
        self.editor.edited.connect(self._follow_edit)
        self._check = ArgumentCheck(
            tasks, "console.check", lambda checker: partial(text_faults, self.text, checker), self
        )
        self._check.found.connect(self._show)
        tip = tr("Put the cursor to the first fault (F8)")
        self.go_button = text_button(tr("Go to it"), "console.json.go", self.go_to_fault, tip, kind="link")
        tip = tr("Indent the text (Ctrl+Shift+I)")
        self.format_button = text_button(tr("Format"), "console.json.format", self.format, tip, kind="link")
        self._line = FaultLine("console.jsonfault", self.go_button, self.format_button)
        column_of(stretch(self.editor), self._line, into=self)
        self._show(())

    @property
    def text(self) -> str:
        """The whole text."""
        return self.editor.text

    @property
    def fault(self) -> str | None:
        """The first thing that is wrong, as far as it is known."""
        return str(self.faults[0]) if self.faults else None

    def set_text(self, text: str) -> None:
        """Hold another text."""
        self.editor.set_text(text)

    def set_tool(self, tool: ShownTool | None) -> None:
        """Check against, and complete from, the schema of a tool; None: of one that the agent does not see."""
        if tool == self._tool:
            return
        self._tool = tool
        self._check.set_tool(tool)

    def format(self) -> None:
        """Indent the text; broken text stays as it is."""
        if self.editor.is_aside:
            return
        try:
            text = to_text(parse_object(self.text))
        except JsonRefused:
            self.go_to_fault()
            return
        if text != self.text:
            self.editor.put_formatted(text)

    def go_to_fault(self) -> None:
        """Put the cursor to the first thing that is wrong."""
        if self.faults:
            self.editor.go_to(self.faults[0])

    def _offer(self, text: str, at: int) -> Completion:
        return Completion(at, at) if self._tool is None else completion_at(self._tool, text, at)

    def _follow_edit(self) -> None:
        if not self.editor.is_aside and self.editor.document().characterCount() <= AT_ONCE:
            self._show(syntax_faults(self.text), is_checked=self._tool is None)
        self._check.start()
        self.changed.emit()

    def _show(self, faults: tuple[TextFault, ...], *, is_checked: bool = True) -> None:
        self.faults = faults
        self._line.show_faults(faults, FITS if is_checked and self._tool is not None else IS_OBJECT)
        self.go_button.setVisible(bool(faults))
        self.editor.mark(faults)
