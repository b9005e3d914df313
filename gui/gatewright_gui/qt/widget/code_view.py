"""Code to look at: highlighted text with line numbers, a find bar and a copy button.

It does not know where the text is from, nor whether it is right.
"""

from PySide6.QtCore import QEvent, QObject, QTimer
from PySide6.QtGui import QGuiApplication, QKeyEvent, QKeySequence
from PySide6.QtWidgets import QVBoxLayout, QWidget

from gatewright_gui.qt.highlighter import Highlighter
from gatewright_gui.qt.look import Role
from gatewright_gui.qt.syntax import Language
from gatewright_gui.qt.widget.button import IconButton
from gatewright_gui.qt.widget.code_edit import CodeEdit
from gatewright_gui.qt.widget.find_bar import FindBar

MAX_HIGHLIGHTED = 1_000_000
"""Longer texts are shown plain, so that the window does not wait for colours."""
COPIED_MS = 1500


class CodeView(QWidget):
    """Read-only. Setting another text keeps the place that is in view."""

    def __init__(self, name: str = "Code", parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.editor = CodeEdit(name)
        self.find_bar = FindBar(self.editor)
        self.copy_button = IconButton("copy", "Copy all", parent=self)
        self.copy_button.setProperty("kind", "floating")
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
        self.editor.installEventFilter(self)
        self.copy_button.raise_()

    @property
    def text(self) -> str:
        """The whole text, as it was set."""
        return self._text

    @property
    def language(self) -> Language:
        """The language it is coloured as."""
        return self._highlighter.language

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
        """Show a unified diff."""
        self._set(text, "diff")

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
        """Ctrl+F finds; the copy button stays in its corner."""
        if event.type() == QEvent.Type.Resize:
            self._place_copy()
        is_find = isinstance(event, QKeyEvent) and event.matches(QKeySequence.StandardKey.Find)
        if event.type() == QEvent.Type.KeyPress and is_find:
            self.open_find()
            return True
        return super().eventFilter(watched, event)

    def _set(self, text: str, language: Language) -> None:
        self._text = text
        self._highlighter.set_language(language if len(text) <= MAX_HIGHLIGHTED else "plain")
        self.editor.set_text(text)
        self.find_bar.refresh()
        self._place_copy()

    def _reset_copy(self) -> None:
        self.copy_button.set_icon("copy", "Copy all")

    def _place_copy(self) -> None:
        button, bar = self.copy_button, self.editor.verticalScrollBar()
        room = bar.width() if bar.isVisible() else 0
        button.adjustSize()
        button.move(self.editor.geometry().right() - room - button.width() - 6, self.editor.y() + 5)
        button.raise_()
