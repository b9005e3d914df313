"""Compares the calls that observe mode let through with what enforcing would have made of them, by stage and rule."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QListWidget, QListWidgetItem, QWidget

from gatewright.workspace.api import Comparison, NotedCount
from gatewright_gui.qt.dialog import FormDialog
from gatewright_gui.qt.language import counted, tr
from gatewright_gui.qt.layout import named, stretch
from gatewright_gui.qt.plaintext import label_text
from gatewright_gui.qt.prose import ProseLabel


class CompareDialog(FormDialog):
    """Shows how many calls enforcing would have stopped, by stage and rule; a row leads to these calls in Audit."""

    calls_requested = Signal(str, str)
    """`NotedCount.key` and its words"""

    def __init__(self, parent: QWidget | None, found: Comparison) -> None:
        super().__init__(parent, "compare", tr("Observed and enforced"), tr("Close"))
        self.cancel_button.hide()
        denied, asked = f"{found.count('deny'):,}", f"{found.count('ask'):,}"
        words = tr(
            "Of {calls} {denied} would have been denied", calls=counted(found.calls, "call", "calls"), denied=denied
        )
        if found.count("ask"):
            words += tr(", and {asked} asked first", asked=asked)
        self.words = ProseLabel()
        self.words.setText(f"{words}.")
        self.rows = named(QListWidget(), "compare.rows", spoken=tr("Why, with the number of calls"))
        for row in found.rows:
            item = QListWidgetItem(f"{row.count:,}  {cause_words(row)}")
            item.setData(Qt.ItemDataRole.UserRole, row)
            self.rows.addItem(item)
        self.rows.itemActivated.connect(self._open)
        self.lay_out(self.words, stretch(self.rows))
        self.accept_button.setDefault(not found.rows)
        self.resize(560, 360)

    def _open(self, item: QListWidgetItem) -> None:
        row: NotedCount = item.data(Qt.ItemDataRole.UserRole)
        self.calls_requested.emit(row.key, cause_words(row))
        self.accept()


def cause_words(row: NotedCount) -> str:
    """The verdict of enforcing, with its stage and rule."""
    verdict = tr("denied") if row.verdict == "deny" else tr("asked first")
    return f"{verdict}, {row.stage}" + (f": {label_text(row.rule, 80, keep='')}" if row.rule else "")
