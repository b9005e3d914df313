"""A bar to look for words in a text: field, count, up and down."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QHBoxLayout, QWidget

from gatewright_gui.qt.language import tr
from gatewright_gui.qt.look import current_look
from gatewright_gui.qt.textfind import MAX_HITS, Hit, find
from gatewright_gui.qt.widget.button import IconButton
from gatewright_gui.qt.widget.code_edit import CodeEdit
from gatewright_gui.qt.widget.label import Label
from gatewright_gui.qt.widget.text_field import SearchField

_WIDEST = 360
"""The field of a bar that stays, in pixels."""


class FindBar(QWidget):
    """Enter and F3 go to the next hit, with Shift to the one before, Escape closes. What is found is unfolded.

    One that stays (`keep_open`) only leaves its field with Escape.
    """

    closed = Signal()

    def __init__(self, editor: CodeEdit, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        tokens = current_look().tokens
        self._editor = editor
        self._hits: tuple[Hit, ...] = ()
        self._index = 0
        self.setObjectName("find")
        self.field = SearchField(tr("Find in text"))
        self.field.leaves_at_once = True
        self.count = Label()
        self.count.setProperty("kind", "small")
        self.count.setAccessibleName(tr("Hits"))
        self._up = up = IconButton("chevron-up", tr("Previous hit (Shift+F3)"))
        self._down = down = IconButton("chevron-down", tr("Next hit (F3)"))
        self._close = close = IconButton("x", tr("Close find bar (Esc)"))
        self._stays = False
        self._row = row = QHBoxLayout(self)
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
        self.hide()

    @property
    def hits(self) -> int:
        """The number of hits, at most MAX_HITS."""
        return len(self._hits)

    @property
    def controls(self) -> tuple[QWidget, ...]:
        """The widgets that take the keys in a bar that stays, in order."""
        return self.field, self._up, self._down

    def keep_open(self) -> QHBoxLayout:
        """Stay, and take further controls at the right: return the layout for them."""
        self._stays = True
        self._close.hide()
        self.field.setMaximumWidth(_WIDEST)
        self._row.addStretch(1)
        self.show()
        return self._row

    def open(self) -> None:
        """Show the bar, ready to type; what is selected in a line of the text is looked for."""
        chosen = self._editor.textCursor().selectedText()
        self.show()
        if chosen.strip() and "\u2029" not in chosen:
            self.field.setText(chosen.strip())
        self.field.setFocus()
        self.field.selectAll()
        self.refresh()

    def dismiss(self) -> None:
        """Hide the bar and its marks, or only the marks where it stays."""
        if self._stays:
            self.field.clear()
        else:
            self.hide()
        self._editor.mark_hits(())
        self._editor.setFocus()
        self.closed.emit()

    def refresh(self) -> None:
        """Look again, after the text changed; nothing scrolls."""
        if not self.isHidden():
            self._hits = find(self._editor.lines, self.field.text().strip())
            self._index = min(self._index, max(len(self._hits) - 1, 0))
            self._tell()

    def step(self, by: int) -> None:
        """Go to another hit; after the last comes the first. With the bar closed it opens first."""
        if self.isHidden():
            self.open()
        elif self._hits:
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
        self._hits = find(self._editor.lines, str(wanted))
        self._index = 0
        self._show_hit()

    def _show_hit(self) -> None:
        if self._hits:
            self._editor.go_to_hit(self._hits[self._index])
        self._tell()

    def _tell(self) -> None:
        if self._hits:
            more = "+" if len(self._hits) == MAX_HITS else ""
            of = f"{len(self._hits):,}{more}"
            self.count.setText(tr("{number:,} of {count}", number=self._index + 1, count=of))
        else:
            self.count.setText(tr("no hits") if self.field.text().strip() else "")
        self._editor.mark_hits(self._hits, self._index)
