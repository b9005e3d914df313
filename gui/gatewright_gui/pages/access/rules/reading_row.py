"""Part of the row *Calls that only read* in Settings: nobody is asked; with what that rests on, and a list of it."""

from PySide6.QtCore import QSignalBlocker
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QCheckBox, QPushButton, QWidget
from shiboken6 import isValid

from gatewright.workspace.api import Verdict, asks_to_read
from gatewright_gui.pages.page import PageContext
from gatewright_gui.qt.dialog import FormDialog, run_dialog
from gatewright_gui.qt.language import mark, tr
from gatewright_gui.qt.layout import column_of, named, row_of, stretch
from gatewright_gui.qt.look import tie_icon
from gatewright_gui.qt.table_model import RowModel
from gatewright_gui.qt.widget.item_view import TableView
from gatewright_gui.qt.widget.label import Label
from gatewright_gui.session.read_only import READ_ONLY, Reads, basis_words, count_words, read_only_rows
from gatewright_gui.session.verbs.policy import set_reading

HEADINGS = (mark("Operation"), mark("From"), mark("How it is known"), mark("Asks nevertheless"))
NAME, ORIGIN, BASIS, ASKS = range(len(HEADINGS))
_NAMED = 3


class ReadingModel(RowModel[Reads]):
    """One row per operation."""

    headers = HEADINGS

    def text(self, row: Reads, column: int) -> str:
        """Cells."""
        name = f"{row.tool}.{row.operation}" if row.operation else row.tool
        return (name, row.origin, basis_words(row.basis), row.asks)[column]

    def tip(self, row: Reads, column: int) -> str:
        """The text that a cell may be too narrow for."""
        return self.text(row, column)


class ReadingDialog(FormDialog):
    """The operations that only read, to be looked at; with the questions of one agent, if one is chosen."""

    def __init__(self, parent: QWidget | None, rows: tuple[Reads, ...], agent_id: str | None) -> None:
        super().__init__(parent, "reading", tr("Calls that only read"), tr("Close"))
        self.cancel_button.hide()
        self.model = ReadingModel(rows=rows)
        self.view = named(TableView(tr("Operations that only read")), "reading.rows")
        self.view.show_model(self.model, {NAME: 210, ORIGIN: 100, BASIS: 220}, wide=ASKS)
        note = tr("Choose an agent in Access to see what asks it nevertheless.")
        if agent_id is not None:
            note = tr("What asks {agent} nevertheless: a key for a tool, a policy rule, a level.", agent=agent_id)
        self.lay_out(
            Label(count_words(rows), wraps=True), stretch(self.view), named(Label(note, wraps=True), kind="muted")
        )
        self.accept_button.setDefault(True)
        self.resize(860, 440)


class ReadingRow(QWidget):
    """A box that is on while the tier asks for nobody; below it what the tier rests on."""

    def __init__(self, context: PageContext) -> None:
        super().__init__()
        self._context, self._document = context, context.document
        self.box = named(QCheckBox(tr("never ask, even for agents set to ask first")), "settings.reading")
        self.box.setAccessibleName(tr("Calls that only read never ask"))
        self.box.setToolTip(tr("By the tier read_only. Keys for tools, policy rules and levels may still ask, or deny"))
        self.asking = named(Label(wraps=True), "settings.reading.asking")
        self.words = named(Label(), "settings.reading.words", kind="muted")
        self.button = named(
            QPushButton(tr("Show them...")), "settings.reading.which", spoken=tr("Show what only reads")
        )
        tie_icon(self.button, "eye")
        column_of(self.box, self.asking, row_of(self.words, self.button, stretch(), space=2), into=self, space=1)
        self.box.toggled.connect(self._write)
        self.button.clicked.connect(lambda: context.tasks.start(self._show_which(), "settings.which", replace=True))

    def showEvent(self, event: QShowEvent) -> None:  # noqa: N802
        """Look again at what it rests on, which nobody sees while the page is hidden."""
        super().showEvent(event)
        self.refresh()

    def refresh(self) -> None:
        """The policy as it is now."""
        policy, is_open = self._document.policy, self._document.is_open
        agents = asks_to_read(policy)
        is_usual = policy.defaults.approvals.get(str(READ_ONLY)) is Verdict.ASK
        with QSignalBlocker(self.box):
            self.box.setChecked(is_open and not agents and not is_usual)
        for control in (self.box, self.button):
            control.setEnabled(is_open)
        self.asking.setText(self._asking_words(agents, is_usual=is_usual))
        self.asking.setVisible(bool(agents) or is_usual)
        if is_open and self.isVisible():
            self._context.tasks.start(self._find(), "settings.reading", replace=True)

    def _asking_words(self, agents: tuple[str, ...], *, is_usual: bool) -> str:
        if is_usual and len(agents) == len(self._document.policy.agents):
            return tr("It asks first now.")
        more = len(agents) - _NAMED
        said = ", ".join(agents[:_NAMED])
        said = tr("{names} and {count:,} more", names=said, count=more) if more > 0 else said
        return tr("It asks first now for {agents}.", agents=said) if agents else tr("It asks first now by default.")

    async def _find(self) -> None:
        rows = await self._context.deriver.derive(read_only_rows)
        if rows is not None and isValid(self):
            self.words.setText(count_words(rows))

    async def _show_which(self) -> None:
        agent_id = self._context.selection.agent_id
        rows = await self._context.deriver.derive(read_only_rows, agent_id)
        if rows is not None and isValid(self):
            await run_dialog(ReadingDialog(self.window(), rows, agent_id))

    def _write(self, on: bool) -> None:
        set_reading(self._document, asks=not on)
        self.refresh()
