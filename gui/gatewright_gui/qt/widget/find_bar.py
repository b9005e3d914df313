"""A bar to look for words in a text: field, count, up and down.

It does not know languages; it works on the text of a `CodeEdit`.
"""

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent, QTextCursor
from PySide6.QtWidgets import QHBoxLayout, QLabel, QWidget

from gatewright_gui.qt.look import current_look
from gatewright_gui.qt.widget.button import IconButton
from gatewright_gui.qt.widget.code_edit import CodeEdit, selection
from gatewright_gui.qt.widget.search_field import SearchField

MAX_HITS = 1000


class FindBar(QWidget):
    """Enter goes to the next hit, Shift+Enter to the one before, Escape closes."""

    closed = Signal()

    def __init__(self, editor: CodeEdit, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        tokens = current_look().tokens
        self._editor = editor
        self._hits: list[QTextCursor] = []
        self._index = 0
        self.field = SearchField("Find in text")
        self.count = QLabel()
        self.count.setProperty("kind", "small")
        up = IconButton("chevron-up", "Previous hit (Shift+Enter)")
        down = IconButton("chevron-down", "Next hit (Enter)")
        close = IconButton("x", "Close find bar (Esc)")
        row = QHBoxLayout(self)
        row.setContentsMargins(tokens.space_1, tokens.space_1, tokens.space_1, tokens.space_1)
        row.setSpacing(tokens.space_1)
        row.addWidget(self.field, 1)
        for part in (self.count, up, down, close):
            row.addWidget(part)
        self.field.search_changed.connect(self._search)
        self.field.leave_requested.connect(self.dismiss)
        up.clicked.connect(lambda: self.step(-1))
        down.clicked.connect(lambda: self.step(1))
        close.clicked.connect(self.dismiss)
        current_look().changed.connect(self._mark)
        self.hide()

    @property
    def hits(self) -> int:
        """How many there are, at most MAX_HITS."""
        return len(self._hits)

    def open(self) -> None:
        """Show the bar, ready to type."""
        self.show()
        self.field.setFocus()
        self.field.selectAll()
        self.refresh()

    def dismiss(self) -> None:
        """Hide the bar and its marks."""
        self.hide()
        self._editor.mark_found([])
        self._editor.setFocus()
        self.closed.emit()

    def refresh(self) -> None:
        """Look again, after the text changed."""
        if not self.isHidden():
            self._search(self.field.text().strip())

    def step(self, by: int) -> None:
        """Go to another hit; after the last comes the first."""
        if self._hits:
            self._index = (self._index + by) % len(self._hits)
            self._show_hit()

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802
        """Enter and Escape."""
        if event.key() in {Qt.Key.Key_Return, Qt.Key.Key_Enter}:
            self.step(-1 if event.modifiers() & Qt.KeyboardModifier.ShiftModifier else 1)
        elif event.key() == Qt.Key.Key_Escape:
            self.dismiss()
        else:
            super().keyPressEvent(event)

    def _search(self, wanted: object) -> None:
        self._hits = _found(self._editor, str(wanted)) if wanted else []
        self._index = 0
        self._show_hit()

    def _show_hit(self) -> None:
        if self._hits:
            self.count.setText(f"{self._index + 1} of {len(self._hits)}{'+' if len(self._hits) == MAX_HITS else ''}")
            place = QTextCursor(self._hits[self._index])
            place.clearSelection()
            self._editor.setTextCursor(place)
        else:
            self.count.setText("no hits" if self.field.text().strip() else "")
        self._mark()

    def _mark(self) -> None:
        palette = current_look().palette
        marks = [
            selection(hit, palette.selection if number == self._index else palette.verdict.ask.soft)
            for number, hit in enumerate(self._hits)
        ]
        self._editor.mark_found([] if self.isHidden() else marks)


def _found(editor: CodeEdit, wanted: str) -> list[QTextCursor]:
    hits: list[QTextCursor] = []
    hit = editor.document().find(wanted)
    while not hit.isNull() and len(hits) < MAX_HITS:
        hits.append(hit)
        hit = editor.document().find(wanted, hit)
    return hits
