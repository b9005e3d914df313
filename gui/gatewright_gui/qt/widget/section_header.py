"""The line above a part of a page: its name, a count or note, and small controls at the right."""

from PySide6.QtWidgets import QHBoxLayout, QWidget

from gatewright_gui.qt.layout import keep_room
from gatewright_gui.qt.look import current_look
from gatewright_gui.qt.widget.button import WordButton
from gatewright_gui.qt.widget.elided_label import ElidedLabel
from gatewright_gui.qt.widget.label import Label
from gatewright_gui.qt.widget.tight_row import TightRow


class SectionHeader(TightRow):
    """Give it controls with `add_control`; they line up at the right. The note gives way to them, then their words do.

    `flush`: without space at the left, for a dialog, which has margins of its own.
    """

    def __init__(
        self,
        title: str,
        note: str = "",
        parent: QWidget | None = None,
        *,
        note_is_path: bool = False,
        flush: bool = False,
    ) -> None:
        super().__init__(parent)
        tokens = current_look().tokens
        self._title = Label()
        self._title.setProperty("kind", "heading")
        self._note = ElidedLabel(path=note_is_path, role="muted")
        self._note.setMinimumWidth(1)
        self._row = QHBoxLayout(self)
        self._row.setContentsMargins(0 if flush else tokens.space_2, tokens.space_1, tokens.space_1, tokens.space_1)
        self._row.setSpacing(tokens.space_2)
        self._row.addWidget(self._title)
        self._row.addWidget(self._note)
        self._row.addStretch(1)
        self.setMinimumHeight(tokens.control_height + tokens.space_2)
        self.set_title(title)
        self.set_note(note)

    @property
    def title(self) -> str:
        """The name of the part."""
        return self._title.text()

    def set_title(self, title: str) -> None:
        """Name the part."""
        self._title.setText(title)
        self.setAccessibleName(title)

    def set_note(self, note: str) -> None:
        """Say a count or a state, such as `41 of 57 on`."""
        self._note.set_text(note)
        self._note.setVisible(bool(note))

    def add_control(self, control: QWidget, *, keeps_room: bool = False) -> None:
        """Put a control at the right, after those that are there; `keeps_room`: also while it is hidden."""
        self._row.addWidget(keep_room(control) if keeps_room else control)
        if isinstance(control, WordButton):
            self.give_way(*self._parts, control.set_brief)
