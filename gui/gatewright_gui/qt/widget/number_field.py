"""A field for a whole number, its text in line with that of other fields."""

from PySide6.QtWidgets import QSpinBox, QWidget

from gatewright_gui.qt.look import current_look


class NumberField(QSpinBox):
    """Range and unit are given once."""

    def __init__(self, name: str, low: int, high: int, *, unit: str = "", parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName(name)
        self.setRange(low, high)
        self.setSuffix(f" {unit}" if unit else "")
        self.lineEdit().setTextMargins(current_look().tokens.space_1, 0, 0, 0)
