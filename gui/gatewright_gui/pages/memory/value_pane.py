"""The value of a block: a text, or JSON for anything else, edited here and saved as one edit."""

from PySide6.QtCore import QEvent, Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QPushButton, QStackedWidget, QWidget

from gatewright.workspace.api import frozen
from gatewright_gui.qt.layout import column_of, holding, named, row_of, stretch
from gatewright_gui.qt.look import tie_icon
from gatewright_gui.qt.widget.code_view import CodeView
from gatewright_gui.qt.widget.elided_label import ElidedLabel
from gatewright_gui.qt.widget.large_text import LargeTextEdit
from gatewright_gui.session.memory import BlockContent, json_fault

SAVE_KEYS = "Ctrl+Return"
TOO_LARGE = "too large to be typed in as a whole: replace a part of it, or add to its end"


@frozen
class Draft:
    """What was typed over a value and not saved, and the value that it began with."""

    content: BlockContent
    text: str


class ValuePane(QWidget):
    """Holds one value; what is asked for goes out as signals."""

    save_requested = Signal()
    undo_requested = Signal()
    redo_requested = Signal()
    add_requested = Signal()
    replace_requested = Signal()
    draft_changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._content: BlockContent | None = None
        self._is_dirty = False
        self.editor = named(LargeTextEdit("Value of the block"), "memory.value")
        self.view = named(CodeView("Value of the block, to read"), "memory.value_view")
        self._stack = QStackedWidget()
        for part in (self.editor, self.view):
            self._stack.addWidget(part)
        self.note = named(ElidedLabel(role="muted"), "memory.value_note")
        self.undo_button = _button("Undo", "undo", "undo", "Take back your own last edit; what others did stays")
        self.redo_button = _button("Redo", "redo", "redo", "Do again what you took back last")
        self.add_button = _button("Add...", "plus", "add_entry", "Add to the end")
        self.replace_button = _button("Replace...", "pencil", "replace", "Put one text in the place of another")
        self.revert_button = _button("Revert", "x", "revert", "Throw away what was typed here")
        self.save_button = named(
            QPushButton("Save"), "memory.save", spoken="Save the value", tip=f"Save ({SAVE_KEYS})", kind="primary"
        )
        buttons = (self.undo_button, self.redo_button, self.add_button, self.replace_button, self.revert_button)
        foot = holding(row_of(stretch(self.note), *buttons, self.save_button, space=1, margins=(2, 1)))
        column_of(stretch(self._stack), foot, into=self)
        self.editor.edited.connect(self._edited)
        self.revert_button.clicked.connect(self.revert)
        for button, signal in (
            (self.save_button, self.save_requested),
            (self.undo_button, self.undo_requested),
            (self.redo_button, self.redo_requested),
            (self.add_button, self.add_requested),
            (self.replace_button, self.replace_requested),
        ):
            button.clicked.connect(signal)

    @property
    def draft(self) -> Draft | None:
        """What is typed and not saved; None where nothing is."""
        return Draft(self._content, self.editor.text) if self._content is not None and self._is_dirty else None

    @property
    def can_save(self) -> bool:
        """Whether what is typed may be saved."""
        content = self._content
        return content is not None and self._is_dirty and (content.is_text or not json_fault(self.editor.text))

    def show_content(self, content: BlockContent, draft: Draft | None = None) -> None:
        """Show a value, or what was typed over one."""
        text = content.text if draft is None else draft.text
        same = self._content is not None and self._content.label == content.label and self.editor.text == text
        self._content = content if draft is None else draft.content
        is_read_only = content.is_log or not content.can_type
        self._stack.setCurrentWidget(self.view if is_read_only else self.editor)
        if is_read_only:
            self.view.set_plain(content.to_read or content.text)
        elif not same:
            self.editor.set_text(text)
        was, self._is_dirty = self._is_dirty, draft is not None and not is_read_only
        self.undo_button.setEnabled(content.info.can_undo)
        self.redo_button.setEnabled(content.info.can_redo)
        self.add_button.setVisible(content.is_log or (content.is_text and is_read_only))
        self.replace_button.setVisible(content.is_text and is_read_only)
        for button in (self.save_button, self.revert_button):
            button.setVisible(not is_read_only)
        self._tell()
        if was != self._is_dirty:
            self.draft_changed.emit()

    def rebase(self, content: BlockContent) -> None:
        """What is typed is from now on meant to go over this value."""
        self._content = content
        self._tell()

    def revert(self) -> None:
        """Show the value as it was read."""
        if self._content is not None and self._is_dirty:
            self.editor.set_text(self._content.text)

    def event(self, event: QEvent) -> bool:
        """Ctrl+Return saves."""
        if (
            isinstance(event, QKeyEvent)
            and event.type() in (QEvent.Type.ShortcutOverride, QEvent.Type.KeyPress)
            and event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
            and event.modifiers() & Qt.KeyboardModifier.ControlModifier
        ):
            if event.type() == QEvent.Type.KeyPress and self.can_save:
                self.save_requested.emit()
            event.accept()
            return True
        return super().event(event)

    def _edited(self) -> None:
        if self._content is None:
            return
        was, self._is_dirty = self._is_dirty, self.editor.text != self._content.text
        self._tell()
        if was != self._is_dirty:
            self.draft_changed.emit()

    def _tell(self) -> None:
        content = self._content
        if content is None:
            return
        self.save_button.setEnabled(self.can_save)
        self.revert_button.setEnabled(self._is_dirty)
        limit = content.info.record.char_limit
        of = f" of {limit:,}" if limit else ""
        fault = "" if content.is_text or not self._is_dirty else json_fault(self.editor.text)
        if fault:
            self.note.set_text(fault)
        elif not content.can_type:
            self.note.set_text(f"{content.info.size.chars:,}{of} characters, {TOO_LARGE}")
        elif content.is_log:
            self.note.set_text("entries of a log are only ever added")
        else:
            chars = len(self.editor.text) if content.is_text else content.info.size.chars
            self.note.set_text(f"{chars:,}{of} characters" + (", not saved" if self._is_dirty else ""))


def _button(words: str, icon: str, name: str, tip: str) -> QPushButton:
    button = named(QPushButton(words), f"memory.{name}", spoken=words.rstrip("."), tip=tip)
    tie_icon(button, icon)
    return button
