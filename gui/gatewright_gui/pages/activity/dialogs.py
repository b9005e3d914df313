"""Dialogs on calls of the log: a rule made from one, and what enforcing would have made of those that were observed."""

from collections.abc import Sequence

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import QListWidget, QListWidgetItem, QWidget

from gatewright.workspace.api import Comparison, NotedCount
from gatewright_gui.qt.dialog import FormDialog
from gatewright_gui.qt.language import counted, tr
from gatewright_gui.qt.layout import named, stretch
from gatewright_gui.qt.look import current_look
from gatewright_gui.qt.plaintext import label_text
from gatewright_gui.qt.prose import ProseLabel, plain
from gatewright_gui.qt.widget.code_view import CodeView
from gatewright_gui.qt.widget.label import Label
from gatewright_gui.session.audit_call import Mending
from gatewright_gui.session.calls import stage_words


class RuleDialog(FormDialog):
    """`chosen` is the edit that is to be made when it is accepted."""

    looked_at = Signal()
    """Another one is looked at: `show_change` is to say what it changes."""

    def __init__(self, parent: QWidget | None, called: str, mendings: Sequence[Mending]) -> None:
        title = tr("Make a rule from the call of {called}", called=called)
        super().__init__(parent, "activity_rule", title, tr("Change the policy"))
        self._mendings = mendings
        self.list = named(QListWidget(), "activity_rule.list", spoken=tr("What the policy could say"))
        for one in mendings:
            self.list.addItem(label_text(plain(one.words), 300, keep=""))
            self.list.item(self.list.count() - 1).setSizeHint(QSize(0, current_look().tokens.row_height))
        self.change = named(CodeView(tr("What changes in the policy file")), "activity_rule.change")
        self.accept_button.setDefault(True)
        self.accept_button.setEnabled(False)
        self.lay_out(
            Label(tr("What should happen to calls like this one?")),
            stretch(self.list),
            Label(tr("What the policy file will say; undo takes it back")),
            stretch(self.change),
        )
        self.resize(680, 460)
        self.list.currentRowChanged.connect(self._look)

    @property
    def chosen(self) -> Mending | None:
        """The one that is looked at."""
        at = self.list.currentRow()
        return self._mendings[at] if 0 <= at < len(self._mendings) else None

    def _look(self, _row: int) -> None:
        self.accept_button.setEnabled(False)
        self.change.set_plain("")
        self.looked_at.emit()

    def show_change(self, of: Mending, text: str) -> None:
        """Show what an edit changes, if it is still looked at."""
        if of is self.chosen:
            self.change.set_diff(text)
            self.accept_button.setEnabled(True)


class CompareDialog(FormDialog):
    """Shows how many calls enforcing would have stopped, by stage and rule; a row leads to these calls in Activity."""

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
    return f"{verdict}, {stage_words(row.stage)}" + (f": {label_text(row.rule, 80, keep='')}" if row.rule else "")
