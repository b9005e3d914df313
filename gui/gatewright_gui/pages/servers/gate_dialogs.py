"""The dialogs of gates: before a coding agent, in a client's file, and the rules for what a gate asked today.

A gate's change of a file is shown as a difference first and written on a click; of a client's file a backup stays.
"""

import json

from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QComboBox, QLineEdit, QPushButton, QWidget

from gatewright.workspace.api import GatewrightError
from gatewright_gui.pages.page import PageContext
from gatewright_gui.qt.dialog import FormDialog, run_dialog
from gatewright_gui.qt.language import counted, mark, tr
from gatewright_gui.qt.layout import named, row_of, stretch
from gatewright_gui.qt.look import tie_icon
from gatewright_gui.qt.prose import plain
from gatewright_gui.qt.table_model import ROW, RowModel
from gatewright_gui.qt.widget.code_view import CodeView
from gatewright_gui.qt.widget.item_view import TableView
from gatewright_gui.qt.widget.label import Label
from gatewright_gui.session.asked_today import AskedRule, AskedToday
from gatewright_gui.session.clients import ClientEdit, ClientFile, edit_of_client, list_client_files, write_edit
from gatewright_gui.session.coding_agents import (
    HostEdit,
    HostScope,
    HostStatus,
    add_agent_for,
    edit_to_install,
    new_agent_of,
    write_gate,
)
from gatewright_gui.session.document import Document

SCOPES = {
    HostScope.USER: mark("in all that you do with it"),
    HostScope.PROJECT: mark("in the folder of this workspace"),
    HostScope.MANAGED: mark("for everybody on this machine"),
}


class CodingAgentDialog(FormDialog):
    """Accepted: `change` is to be written, and before it the agent, if it `makes_agent`."""

    def __init__(self, parent: QWidget | None, document: Document, status: HostStatus, agent_id: str | None) -> None:
        title = tr("Put a gate before {agent}", agent=status.title)
        super().__init__(parent, "hook", title, tr("Write file"))
        self._document, self._status = document, status
        self.change: HostEdit | None = None
        self.scope = named(QComboBox(), "hook.scope", spoken=tr("Where it asks"))
        for scope, words in SCOPES.items():
            self.scope.addItem(tr(words), str(scope))
        if status.file is not None:
            self.scope.setCurrentIndex(self.scope.findData(str(status.file.scope)))
        self.agent = named(QComboBox(), "hook.agent", spoken=tr("Agent of the policy whose rights it gets"))
        self.makes_agent = document.policy.catalog(status.host_id) is None
        """Nothing of the policy is about this coding agent so far: it gets an agent of its own, and its tools."""
        if self.makes_agent:
            new = new_agent_of(status.host_id)
            self.agent.addItem(tr("{agent}, a new one", agent=new), new)
        for agent in () if self.makes_agent else document.agents:
            self.agent.addItem(agent.agent_id, agent.agent_id)
        for wanted in (status.agent_id, agent_id):
            if wanted and self.agent.findData(wanted) >= 0:
                self.agent.setCurrentIndex(self.agent.findData(wanted))
                break
        self.place = named(Label(), "hook.place", kind="muted")
        self.difference = named(CodeView(tr("What would change")), "hook.difference")
        self.difference.set_wrapping(True)
        self.note = named(Label(wraps=True), "hook.note", kind="muted")
        self.lay_out(
            row_of(Label(tr("It asks")), stretch(self.scope, 2), Label(tr("as agent")), stretch(self.agent), space=2),
            self.place,
            stretch(self.difference),
            self.note,
        )
        self.scope.currentIndexChanged.connect(self._show)
        self.agent.currentIndexChanged.connect(self._show)
        self.resize(760, 520)
        self._show()

    @property
    def agent_id(self) -> str:
        """The chosen agent."""
        return str(self.agent.currentData() or "")

    def _show(self, _what: object = None) -> None:
        self.change = None
        fault = "" if self.agent.count() else tr("It needs an agent of the policy: add one in Access.")
        if not fault:
            try:
                scope = HostScope(self.scope.currentData())
                self.change = edit_to_install(self._document, self._status.host_id, scope, self.agent_id)
            except GatewrightError as error:
                fault = str(error).replace("`", "")
        self.place.setText("" if self.change is None else str(self.change.file.path))
        said = "" if self.change is None else self.change.difference or tr("The file says so already.") + "\n"
        self.difference.set_diff(said)
        told = [tr("The policy is saved first: the gate decides by what is saved.")] if self._document.is_dirty else []
        if self.makes_agent:
            told.append(
                tr("The policy gets an agent that may read and change files here, except secrets; the web asks first.")
            )
        self.note.setText(fault or " ".join(told))
        self.accept_button.setEnabled(self.change is not None and self.change.changes)


async def put_gate(parent: QWidget, context: PageContext, status: HostStatus) -> HostEdit | None:
    """Ask how a coding agent is to ask the gate and write that into its file; return what was written."""
    document = context.document
    dialog = CodingAgentDialog(parent, document, status, context.selection.agent_id)
    if not await run_dialog(dialog) or dialog.change is None:
        return None
    if document.is_dirty and not await context.save():
        return None
    if dialog.makes_agent and not await add_agent_for(document, status.host_id):
        return None
    return dialog.change if write_gate(document, dialog.change) else None


USUAL_WAIT = "45s"


class ClientDialog(FormDialog):
    """Asks for a client's file and an agent, with `chosen` at first; accepted: `change` is to be written."""

    def __init__(
        self, parent: QWidget | None, document: Document, agent_id: str | None, chosen: ClientFile | None = None
    ) -> None:
        super().__init__(parent, "client", tr("Connect a client"), tr("Write file"))
        self._document, self._files = document, list_client_files(document)
        self.change: ClientEdit | None = None
        self.file = named(QComboBox(), "client.file", spoken=tr("Client and its file"))
        for file in sorted(self._files, key=lambda file: not file.path.is_file()):
            where = tr("for this project") if file.is_project else tr("for all that you do")
            told = where if file.path.is_file() else tr("{place}; its file is made", place=where)
            self.file.addItem(f"{file.client.name}, {told}", file)
        paths = [file.path for file in map(self.file.itemData, range(self.file.count()))]
        if chosen is not None and chosen.path in paths:
            self.file.setCurrentIndex(paths.index(chosen.path))
        self.agent = named(QComboBox(), "client.agent", spoken=tr("Agent that the client is"))
        self.agent.addItems([agent.agent_id for agent in document.agents])
        if agent_id is not None:
            self.agent.setCurrentText(agent_id)
        self.wait = named(
            QLineEdit(),
            "client.wait",
            spoken=tr("How long a question waits"),
            tip=tr("How long a call that asks waits for an answer, such as 45s, 10m or 2h"),
        )
        self.wait.setMaximumWidth(90)
        self.place = named(Label(), "client.place", kind="muted")
        self.difference = named(CodeView(tr("What would change")), "client.difference")
        self.difference.set_wrapping(True)
        self.note = named(Label(wraps=True), "client.note", kind="muted")
        self.copy_button = named(
            QPushButton(tr("Copy entry")), "client.copy", tip=tr("Copy the gateway's entry as JSON")
        )
        tie_icon(self.copy_button, "copy")
        about = tr("The client gets the tools of this policy, with the rights of the agent that you choose.")
        self.lay_out(
            named(Label(about, wraps=True), "client.about", kind="muted"),
            row_of(stretch(self.file, 2), Label(tr("as agent")), stretch(self.agent), space=2),
            row_of(stretch(self.place), Label(tr("wait for an answer")), self.wait, space=2),
            stretch(self.difference),
            self.note,
            foot=(self.copy_button, stretch()),
        )
        self.file.currentIndexChanged.connect(self._show)
        self.agent.currentIndexChanged.connect(self._show)
        self.wait.textChanged.connect(self._show)
        self.copy_button.clicked.connect(self._copy)
        self.resize(760, 560)
        self._show()

    def _show(self, _what: object = None) -> None:
        self.change = None
        file = self.file.currentData()
        try:
            self.change = edit_of_client(self._document, file, self.agent.currentText(), self.wait.text().strip())
        except GatewrightError as error:
            self.difference.set_plain("")
            self.note.setText(str(error).replace("`", ""))
        self.place.setText(str(file.path))
        can = self.change is not None and bool(self.agent.count())
        is_new = self.change is not None and bool(self.change.edit.difference)
        self.accept_button.setEnabled(can and is_new)
        self.copy_button.setEnabled(can)
        if self.change is None:
            return
        if not self.wait.text():
            self.wait.setPlaceholderText(_wait_in(self.change))
        self.difference.set_diff(self.change.edit.difference or tr("The file says so already.") + "\n")
        told = [tr("The policy is saved first: the client gets what is saved.")] if self._document.is_dirty else []
        self.note.setText(" ".join((*told, *_edit_notes(self.change))))

    def _copy(self) -> None:
        if self.change is not None:
            entry = {"gatewright": dict(self.change.edit.entry)}
            QGuiApplication.clipboard().setText(json.dumps(entry, indent=2, ensure_ascii=False))
            self.copy_button.setText(tr("Copied"))


async def connect_client(parent: QWidget, context: PageContext, file: ClientFile | None = None) -> ClientEdit | None:
    """Ask for a client's file, with ``file`` chosen first, and write it; return what was written."""
    document = context.document
    dialog = ClientDialog(parent, document, context.selection.agent_id, file)
    if not await run_dialog(dialog) or dialog.change is None:
        return None
    if document.is_dirty and not await context.save():  # what is not saved the client would not get
        return None
    return dialog.change if write_edit(document, dialog.change) else None


def _wait_in(change: ClientEdit) -> str:
    args = change.edit.entry["args"]
    at = args.index("--wait") + 1 if isinstance(args, list) and "--wait" in args else 0
    return str(args[at]) if isinstance(args, list) and at else USUAL_WAIT


def _edit_notes(change: ClientEdit) -> list[str]:
    edit = change.edit
    told = [tr("Values of variables stay in this file and are not shown.")] if edit.handed else []
    if edit.direct:
        names = "; ".join(f"{name} ({why})" for name, why in edit.direct.items()).replace("`", "")
        told.append(tr("Still reached directly: {servers}.", servers=names))
    if change.before is not None:
        told.append(tr("A backup is kept beside it."))
    return told


ASKED_HEADINGS = (mark("Call"), mark("Asked"), mark("Answers"), mark("Recorded calls that change"), mark("Rule"))
CALL, ASKED, ANSWERS, CHANGES, RULE = range(len(ASKED_HEADINGS))


def question_words(asked: AskedToday) -> str:
    """Count the questions of today, and those that rules could answer."""
    could = asked.could_be_rules
    words = tr("Asked {times} today", times=counted(asked.asked, "time", "times"))
    return tr("{asked}, {count} could be rules", asked=words, count=f"{could:,}") if could else words


class AskedModel(RowModel[AskedRule]):
    """One row per rule."""

    headers = ASKED_HEADINGS
    numeric = frozenset((ASKED, ANSWERS, CHANGES))

    def text(self, row: AskedRule, column: int) -> str:
        """Cells."""
        changes = tr("{count} of {total}", count=f"{row.changes:,}", total=f"{row.looked_at:,}")
        return (row.called, f"{row.asked:,}", f"{row.answers:,}", changes, plain(row.words))[column]

    def tip(self, row: AskedRule, column: int) -> str:
        """The whole rule."""
        return plain(row.words) if column == RULE else ""


class AskedDialog(FormDialog):
    """Accepted: `chosen` is the rule to write."""

    def __init__(self, parent: QWidget | None, agent_id: str, asked: AskedToday) -> None:
        super().__init__(parent, "asked", tr("What {agent} asked today", agent=agent_id), tr("Write this rule"))
        self.model = AskedModel(rows=asked.rules)
        self.view = named(TableView(tr("Rules that would have answered")), "asked.rules")
        self.view.show_model(self.model, {CALL: 170, ASKED: 60, ANSWERS: 70, CHANGES: 180}, wide=RULE)
        note = tr("A rule opens what it names for every call to come; undo takes it back.")
        self.lay_out(
            Label(question_words(asked)), stretch(self.view), named(Label(note, wraps=True), "asked.note", kind="muted")
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
