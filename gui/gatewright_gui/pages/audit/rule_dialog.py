"""A rule made of a call: what could be said, and what the policy file would say then."""

from collections.abc import Sequence

from PySide6.QtCore import QSize, Signal
from PySide6.QtWidgets import QListWidget, QWidget

from gatewright_gui.qt.dialog import FormDialog
from gatewright_gui.qt.language import tr
from gatewright_gui.qt.layout import named, stretch
from gatewright_gui.qt.look import current_look
from gatewright_gui.qt.plaintext import label_text
from gatewright_gui.qt.prose import plain
from gatewright_gui.qt.widget.code_view import CodeView
from gatewright_gui.qt.widget.label import Label
from gatewright_gui.session.audit_call import Mending

SIZE = (680, 460)


class RuleDialog(FormDialog):
    """`chosen` is the edit that is to be made when it is accepted."""

    looked_at = Signal()
    """Another one is looked at: `show_change` is to say what it changes."""

    def __init__(self, parent: QWidget | None, called: str, mendings: Sequence[Mending]) -> None:
        title = tr("Make a rule from the call of {called}", called=called)
        super().__init__(parent, "audit_rule", title, tr("Change the policy"))
        self._mendings = mendings
        self.list = named(QListWidget(), "audit_rule.list", spoken=tr("What the policy could say"))
        for one in mendings:
            self.list.addItem(label_text(plain(one.words), 300, keep=""))
            self.list.item(self.list.count() - 1).setSizeHint(QSize(0, current_look().tokens.row_height))
        self.change = named(CodeView(tr("What changes in the policy file")), "audit_rule.change")
        self.accept_button.setDefault(True)
        self.accept_button.setEnabled(False)
        self.lay_out(
            Label(tr("What should happen to calls like this one?")),
            stretch(self.list),
            Label(tr("What the policy file will say; undo takes it back")),
            stretch(self.change),
        )
        self.resize(*SIZE)
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
