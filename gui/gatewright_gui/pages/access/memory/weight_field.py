"""How much a note counts by what it means in a search, as the policy says it for all agents."""

from PySide6.QtCore import Signal

from gatewright.workspace.api import MemoryWeights
from gatewright_gui.qt.language import tr
from gatewright_gui.qt.layout import named
from gatewright_gui.qt.widget.text_field import NumberField
from gatewright_gui.session.document import Document
from gatewright_gui.session.verbs.policy import set_field


class WeightField(NumberField):
    """The weight of the meaning in percent. Each change is one edit of the policy, which undo takes back."""

    changed = Signal()
    """The policy says another weight: what is found may be in another order."""

    def __init__(self, document: Document) -> None:
        super().__init__(tr("Weight of the meaning"), 0, 100, unit="%")
        self._document = document
        self._shown: MemoryWeights | None = None
        named(self, "memory.weight")
        self.setPrefix(tr("Meaning") + " ")
        tip = tr("How much a note counts by what it means in a search; the rest of 100 % is its words. For all agents.")
        self.setToolTip(tip)
        self.setKeyboardTracking(False)
        self.valueChanged.connect(self._weigh)
        document.policy_changed.connect(self._show)
        document.opened.connect(self._show)
        self._show()

    def _show(self, _why: object = None) -> None:
        if not self._document.is_open or self._document.policy.memory == self._shown:
            return
        self._shown = self._document.policy.memory
        self.blockSignals(True)
        self.setValue(round(100 * self._shown.vector))
        self.blockSignals(False)
        self.changed.emit()

    def _weigh(self, percent: int) -> None:
        set_field(self._document, "memory", MemoryWeights(percent / 100, (100 - percent) / 100))
