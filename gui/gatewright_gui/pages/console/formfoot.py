"""The line below a form that says what is wrong with its arguments, or that nothing is. It looks for no faults."""

from collections.abc import Sequence

from PySide6.QtWidgets import QHBoxLayout, QWidget

from gatewright_gui.models.argumentcheck import PlaceFault
from gatewright_gui.qt.look import current_look
from gatewright_gui.qt.widget import IconLabel, ProseLine


class FormFoot(QWidget):
    """Tells the first fault and how many more there are."""

    def __init__(self) -> None:
        super().__init__()
        tokens = current_look().tokens
        self._icon = IconLabel("circle-check", "allow", size=14)
        self._said = ProseLine()
        self._said.setObjectName("console.formfault")
        row = QHBoxLayout(self)
        row.setContentsMargins(tokens.space_2, tokens.space_1, tokens.space_2, tokens.space_1)
        row.setSpacing(tokens.space_2)
        row.addWidget(self._icon)
        row.addWidget(self._said, 1)
        self.show_faults(())

    @property
    def text(self) -> str:
        """What it says."""
        return self._said.text

    def show_faults(self, faults: Sequence[PlaceFault]) -> None:
        """Say the first of them."""
        self._icon.set_icon("circle-alert" if faults else "circle-check", "ask" if faults else "allow")
        more = f"  (and {len(faults) - 1} more)" if len(faults) > 1 else ""
        self._said.set_text(f"{faults[0]}{more}" if faults else "fits the schema")
