"""Code to look at: highlighted text with line numbers, a find bar, a copy button and one that wraps long lines.

It does not know where the text is from, nor whether it is right.
"""

from functools import partial
from typing import Protocol

from PySide6.QtCore import QEvent, QObject, QTimer, Signal
from PySide6.QtGui import QGuiApplication, QKeyEvent, QKeySequence
from PySide6.QtWidgets import QPlainTextEdit, QVBoxLayout, QWidget

from gatewright_gui.qt.highlighter import Highlighter
from gatewright_gui.qt.linediff import changed_letters
from gatewright_gui.qt.look import Role
from gatewright_gui.qt.syntax import Language
from gatewright_gui.qt.widget.button import IconButton
from gatewright_gui.qt.widget.code_edit import CodeEdit
from gatewright_gui.qt.widget.find_bar import FindBar

MAX_HIGHLIGHTED = 1_000_000
"""Longer texts are shown plain, so that the window does not wait for colours."""
COPIED_MS = 1500
_GAP = 6


class WrapStore(Protocol):
    """Keeps whether long lines are wrapped, under a key."""

    def wraps_lines(self, key: str) -> bool | None:
        """Whether they are; None when nobody has said."""
        ...

    def set_wraps_lines(self, key: str, wraps: bool) -> None:
        """Keep it."""
        ...


class CodeView(QWidget):
    """Read-only. Setting another text keeps the place that is in view. Long lines run on until they are wrapped."""

    wrapping_changed = Signal(object)
    """bool: the button was pressed."""

    def __init__(self, name: str = "Code", parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.editor = CodeEdit(name)
        self.find_bar = FindBar(self.editor)
        self.copy_button = IconButton("copy", "Copy all", parent=self)
        self.wrap_button = IconButton("wrap-text", "Wrap long lines", parent=self)
        self.wrap_button.setCheckable(True)
        for button in (self.copy_button, self.wrap_button):
            button.setProperty("kind", "floating")
        self._highlighter = Highlighter(self.editor.document())
        self._text = ""
        self.setAccessibleName(name)
        self.setFocusProxy(self.editor)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.find_bar)
        column.addWidget(self.editor, 1)
        self._copied = QTimer(self, singleShot=True, interval=COPIED_MS)
        self._copied.timeout.connect(self._reset_copy)
        self.copy_button.clicked.connect(self.copy_all)
        self.wrap_button.clicked.connect(self._wrap_pressed)
        self.editor.installEventFilter(self)
        self.editor.viewport().installEventFilter(self)
        self._place_buttons()

    @property
    def text(self) -> str:
        """The whole text, as it was set."""
        return self._text

    @property
    def language(self) -> Language:
        """The language it is coloured as."""
        return self._highlighter.language

    @property
    def is_wrapping(self) -> bool:
        """Whether long lines go on in the next row."""
        return self.wrap_button.isChecked()

    def set_wrapping(self, on: bool) -> None:
        """Let long lines go on in the next row, or run off to the right."""
        self.wrap_button.setChecked(on)
        mode = QPlainTextEdit.LineWrapMode.WidgetWidth if on else QPlainTextEdit.LineWrapMode.NoWrap
        self.editor.setLineWrapMode(mode)
        self._place_buttons()

    def keep_wrapping(self, key: str, store: WrapStore, *, default: bool) -> None:
        """Wrap as it was chosen the last time, and remember it from now on."""
        kept = store.wraps_lines(key)
        self.set_wrapping(default if kept is None else kept)
        self.wrapping_changed.connect(partial(_keep, store, key))

    def set_json(self, text: str) -> None:
        """Show JSON text; it is the caller's to indent it."""
        self._set(text, "json")

    def set_toml(self, text: str) -> None:
        """Show TOML text."""
        self._set(text, "toml")

    def set_markdown(self, text: str) -> None:
        """Show Markdown source."""
        self._set(text, "markdown")

    def set_diff(self, text: str) -> None:
        """Show a unified diff; where a line takes the place of another, what changed in it stands out."""
        self._set(text, "diff")
        self.editor.mark_letters(changed_letters(text) if len(text) <= MAX_HIGHLIGHTED else ())

    def set_plain(self, text: str) -> None:
        """Show text without colours."""
        self._set(text, "plain")

    def mark_lines(self, marks: dict[int, Role]) -> None:
        """Give lines (from 1) the soft ground of a role."""
        self.editor.mark_lines(marks)

    def go_to_line(self, line: int) -> None:
        """Select a line (from 1) and bring it into view."""
        self.editor.go_to_line(line)

    def open_find(self) -> None:
        """Open the find bar."""
        self.find_bar.open()

    def copy_all(self) -> None:
        """Put the whole text on the clipboard."""
        QGuiApplication.clipboard().setText(self._text)
        self.copy_button.set_icon("check", "Copied", "allow")
        self._copied.start()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802
        """Ctrl+F finds; the buttons stay in their corner."""
        if event.type() == QEvent.Type.Resize:
            self._place_buttons()
        is_find = isinstance(event, QKeyEvent) and event.matches(QKeySequence.StandardKey.Find)
        if event.type() == QEvent.Type.KeyPress and is_find:
            self.open_find()
            return True
        return super().eventFilter(watched, event)

    def _set(self, text: str, language: Language) -> None:
        self._text = text
        self.editor.mark_letters(())
        self._highlighter.set_language(language if len(text) <= MAX_HIGHLIGHTED else "plain")
        self.editor.set_text(text)
        self.find_bar.refresh()
        self._place_buttons()

    def _reset_copy(self) -> None:
        self.copy_button.set_icon("copy", "Copy all")

    def _wrap_pressed(self, on: bool) -> None:
        self.set_wrapping(on)
        self.wrapping_changed.emit(on)

    def _place_buttons(self) -> None:
        inside = self.editor.viewport()
        right = inside.mapTo(self, inside.rect().topRight()).x() + 1 + self.editor.viewportMargins().right()
        top = self.editor.y() + _GAP - 1
        for button in (self.copy_button, self.wrap_button):
            button.adjustSize()
            button.move(right - button.width() - _GAP, top)
            button.raise_()
            top += button.height() + 2
        self.editor.set_corner_room(self.copy_button.width() + _GAP if self.is_wrapping else 0)


def _keep(store: WrapStore, key: str, on: object) -> None:
    store.set_wraps_lines(key, bool(on))
