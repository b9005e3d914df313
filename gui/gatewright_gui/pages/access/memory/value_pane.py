"""The value of a block: a text, or for anything else a form or JSON, edited here and saved as one edit."""

from PySide6.QtCore import QEvent, Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QPushButton, QWidget

from gatewright.workspace.api import frozen
from gatewright_gui.pages.access.memory.value_form import ValueForm
from gatewright_gui.qt.language import counted, mark, tr
from gatewright_gui.qt.layout import column_of, named, row_of, stack_of, stretch
from gatewright_gui.qt.look import tie_icon
from gatewright_gui.qt.task import TaskOwner
from gatewright_gui.qt.widget.button import Segmented, WordButton
from gatewright_gui.qt.widget.code_view import CodeView
from gatewright_gui.qt.widget.label import ElidedLabel
from gatewright_gui.qt.widget.text_field import LargeTextEdit
from gatewright_gui.qt.widget.tight_row import TightRow
from gatewright_gui.session.memory import BlockContent, json_fault

SAVE_KEYS = "Ctrl+Return"
MODES = (
    ("form", mark("Form"), mark("Each part in a field of its own")),
    ("json", mark("JSON"), mark("The whole value as JSON")),
)
TOO_LARGE = mark("too large to be typed in as a whole: replace a part of it, or add to its end")


@frozen
class Draft:
    """The text typed over a value and not saved, and the value that it began with."""

    content: BlockContent
    text: str


class ValuePane(QWidget):
    """Holds one value; what is asked for goes out as signals."""

    save_requested = Signal()
    undo_requested = Signal()
    redo_requested = Signal()
    add_requested = Signal()
    replace_requested = Signal()
    edited = Signal()
    draft_changed = Signal()

    def __init__(self, tasks: TaskOwner) -> None:
        super().__init__()
        self._content: BlockContent | None = None
        self._is_dirty = False
        self.mode = named(Segmented(tr("How to edit the value"), is_dense=True), "memory.value_mode")
        for key, words, tip in MODES:
            self.mode.add_segment(key, tr(words), tooltip=tr(tip))
        self.form = ValueForm(tasks, "memory.value_form")
        self.editor = named(LargeTextEdit(tr("Value of the block")), "memory.value")
        self.view = named(CodeView(tr("Value of the block, to read")), "memory.value_view")
        self._stack = stack_of(self.editor, self.form, self.view)
        self.note = named(ElidedLabel(role="muted"), "memory.value_note")
        self.undo_button = memory_button(
            tr("Undo"), "undo", "undo", tr("Take back your own last edit; what others did stays")
        )
        self.redo_button = memory_button(tr("Redo"), "redo", "redo", tr("Do again what you took back last"))
        for button in (self.undo_button, self.redo_button):
            button.setText("")  # their icons and tooltips say it: the line has no room for more words
        self.add_button = memory_button(tr("Add..."), "plus", "add_entry", tr("Add to the end"))
        self.replace_button = memory_button(
            tr("Replace..."), "pencil", "replace", tr("Put one text in the place of another")
        )
        self.revert_button = memory_button(tr("Revert"), "x", "revert", tr("Throw away what was typed here"))
        self.save_button = named(
            QPushButton(tr("Save value")),
            "memory.save",
            spoken=tr("Save the value"),
            tip=tr("Save ({keys})", keys=SAVE_KEYS),
            kind="primary",
        )
        buttons = (self.undo_button, self.redo_button, self.add_button, self.replace_button, self.revert_button)
        foot = self._foot = TightRow()
        row_of(self.mode, stretch(self.note), *buttons, self.save_button, into=foot, space=1, margins=(2, 1))
        foot.give_way(*(button.set_brief for button in (self.revert_button, self.add_button, self.replace_button)))
        column_of(stretch(self._stack), foot, into=self)
        for part in (self.editor, self.form):
            part.edited.connect(self._follow_edit)
        self.mode.current_changed.connect(self._choose_mode)
        for button in (self.save_button, self.revert_button, self.undo_button, self.redo_button):
            button.setEnabled(False)  # nothing is shown yet
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
    def text(self) -> str:
        """The value as it stands here."""
        return self.form.text if self._stack.currentWidget() is self.form else self.editor.text

    @property
    def draft(self) -> Draft | None:
        """The draft that is typed and not saved; None where nothing is."""
        return Draft(self._content, self.text) if self._content is not None and self._is_dirty else None

    @property
    def can_save(self) -> bool:
        """Tell whether what is typed may be saved."""
        return self._content is not None and self._is_dirty and not self._fault()

    def show_content(self, content: BlockContent, draft: Draft | None = None) -> None:
        """Show a value, or what was typed over one."""
        text = content.text if draft is None else draft.text
        before, self._content = self._content, content if draft is None else draft.content
        is_same = before is not None and before.info.record.block_id == content.info.record.block_id
        is_read_only = content.is_log or not content.can_type
        if is_read_only:
            self._stack.setCurrentWidget(self.view)
            self.view.set_plain(content.to_read or content.text)
        elif not is_same or self._stack.currentWidget() is self.view or self.text != text:
            self._put(content, text)
        was, self._is_dirty = self._is_dirty, draft is not None and not is_read_only
        self.mode.setVisible(not is_read_only and not content.is_text)
        self.undo_button.setEnabled(content.info.can_undo)
        self.redo_button.setEnabled(content.info.can_redo)
        for button in (self.undo_button, self.redo_button):
            button.setVisible(content.info.can_undo or content.info.can_redo)  # nothing of yours: nothing to take back
        self.add_button.setVisible(content.is_log or (content.is_text and is_read_only))
        self.replace_button.setVisible(content.is_text and is_read_only)
        for button in (self.save_button, self.revert_button):
            button.setVisible(not is_read_only)
        self._foot.refit()
        self._tell()
        if was != self._is_dirty:
            self.draft_changed.emit()

    def rebase(self, content: BlockContent) -> None:
        """Take what is typed as meant, from now on, to go over this value."""
        self._content = content
        self._tell()

    def revert(self) -> None:
        """Show the value as it was read."""
        if self._content is not None and self._is_dirty:
            self._put(self._content, self._content.text)
            self._follow_edit()

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

    def _put(self, content: BlockContent, text: str) -> None:
        """Show a text in the form where that is wanted and holds it, else as text."""
        record = content.info.record
        is_form = not content.is_text and self.mode.current == "form"
        if is_form and self.form.show_value(record.block_id, record.schema, text):
            self._stack.setCurrentWidget(self.form)
            return
        self._stack.setCurrentWidget(self.editor)
        self.editor.set_text(text)
        if is_form:
            self.mode.set_current("json")

    def _choose_mode(self, _mode: object) -> None:
        content, shown = self._content, self._stack.currentWidget()
        wanted = self.form if self.mode.current == "form" else self.editor
        if content is not None and not content.is_text and shown is not self.view and shown is not wanted:
            self._put(content, self.text)
            self._tell()

    def _fault(self) -> str:
        if self._stack.currentWidget() is self.form:
            return self.form.fault
        return json_fault(self.editor.text) if self._content is not None and not self._content.is_text else ""

    def _follow_edit(self) -> None:
        if self._content is None:
            return
        was, self._is_dirty = self._is_dirty, not self._content.is_same(self.text)
        self._tell()
        self.edited.emit()
        if was != self._is_dirty:
            self.draft_changed.emit()

    def _tell(self) -> None:
        content = self._content
        if content is None:
            return
        self.save_button.setEnabled(self.can_save)
        self.revert_button.setEnabled(self._is_dirty)
        fault = self._fault() if self._is_dirty else ""
        if fault:
            self.note.set_text(fault)
        elif not content.can_type:
            self.note.set_text(f"{_size_words(content, content.info.size.chars)}, {tr(TOO_LARGE)}")
        elif content.is_log:
            self.note.set_text(tr("entries of a log are only ever added"))
        else:
            chars = len(self.text) if content.is_text else content.info.size.chars
            size = _size_words(content, chars)
            self.note.set_text(tr("{size}, not saved", size=size) if self._is_dirty else size)


def _size_words(content: BlockContent, chars: int) -> str:
    limit = content.info.record.char_limit
    if not limit:
        return counted(chars, "character", "characters")
    return tr("{count:,} of {limit:,} characters", count=chars, limit=limit)


def memory_button(words: str, icon: str, name: str, tip: str) -> WordButton:
    """A button of this page, with its icon."""
    button = named(WordButton(words), f"memory.{name}", spoken=words.rstrip("."), tip=tip)
    tie_icon(button, icon)
    return button
