"""The questions of a coding agent today, and the rules that would have answered, each written on a click."""

from PySide6.QtWidgets import QWidget

from gatewright_gui.qt.dialog import FormDialog
from gatewright_gui.qt.language import counted, mark, tr
from gatewright_gui.qt.layout import named, stretch
from gatewright_gui.qt.prose import plain
from gatewright_gui.qt.table_model import ROW, RowModel
from gatewright_gui.qt.widget.item_view import TableView
from gatewright_gui.qt.widget.label import Label
from gatewright_gui.session.asked_today import AskedRule, AskedToday

HEADINGS = (mark("Call"), mark("Asked"), mark("Answers"), mark("Recorded calls that change"), mark("Rule"))
CALL, ASKED, ANSWERS, CHANGES, RULE = range(len(HEADINGS))


def asked_words(asked: AskedToday) -> str:
    """Count the questions of today, and those that rules could answer."""
    could = asked.could_be_rules
    words = tr("Asked {times} today", times=counted(asked.asked, "time", "times"))
    return tr("{asked}, {count} could be rules", asked=words, count=f"{could:,}") if could else words


class AskedModel(RowModel[AskedRule]):
    """One row per rule."""

    headers = HEADINGS
    numeric = frozenset((ASKED, ANSWERS, CHANGES))

    def text(self, row: AskedRule, column: int) -> str:
        """Cells."""
        changes = tr("{count} of {total}", count=f"{row.changes:,}", total=f"{row.looked_at:,}")
        return (row.called, f"{row.asked:,}", f"{row.answers:,}", changes, plain(row.words))[column]

    def tip(self, row: AskedRule, column: int) -> str:
        """The whole rule."""
        return plain(row.words) if column == RULE else ""


class AskedDialog(FormDialog):
    """After it was accepted `chosen` is the rule to write."""

    def __init__(self, parent: QWidget | None, agent_id: str, asked: AskedToday) -> None:
        super().__init__(parent, "asked", tr("What {agent} asked today", agent=agent_id), tr("Write this rule"))
        self.model = AskedModel(rows=asked.rules)
        self.view = named(TableView(tr("Rules that would have answered")), "asked.rules")
        self.view.show_model(self.model, {CALL: 170, ASKED: 60, ANSWERS: 70, CHANGES: 180}, wide=RULE)
        note = tr("A rule opens what it names for every call to come; undo takes it back.")
        self.lay_out(
            Label(asked_words(asked)), stretch(self.view), named(Label(note, wraps=True), "asked.note", kind="muted")
        )
        self.accept_button.setDefault(True)
        self.view.selectionModel().currentChanged.connect(self._show)
        self.view.activated.connect(self.accept)
        self.resize(860, 360)
        self.view.setCurrentIndex(self.model.index(0, CALL))
        self._show()

    @property
    def chosen(self) -> AskedRule | None:
        """The rule that is looked at."""
        row = self.view.currentIndex().data(ROW)
        return row if isinstance(row, AskedRule) else None

    def _show(self, _index: object = None) -> None:
        self.accept_button.setEnabled(self.chosen is not None)
