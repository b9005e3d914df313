"""A list to choose one of, which the wheel does not change while one scrolls past it. It knows no values."""

from PySide6.QtCore import QSignalBlocker, Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import QComboBox

_LEAST_LETTERS = 8


class StillCombo(QComboBox):
    """Its first row stands for nothing chosen."""

    def __init__(self, nothing: str = "(not given)") -> None:
        super().__init__()
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.setMinimumContentsLength(_LEAST_LETTERS)
        self.addItem(nothing)

    def show_choice(self, index: int | None) -> None:
        """Show which is chosen, None for nothing, without telling it."""
        with QSignalBlocker(self):
            self.setCurrentIndex(0 if index is None else index + 1)

    @property
    def choice(self) -> int | None:
        """Which is chosen, from 0; None for nothing."""
        return self.currentIndex() - 1 if self.currentIndex() > 0 else None

    def wheelEvent(self, event: QWheelEvent) -> None:  # noqa: N802
        """The wheel scrolls the form; it changes a choice only where the keys are."""
        if self.hasFocus():
            super().wheelEvent(event)
        else:
            event.ignore()
