"""Puts the policy to work: in a program, for a team, before MCP clients, before coding agents.

A card each: the files that would be written, what changes in them, a button, and afterwards the next lines to type.

Over 450 lines, because its four cards share one pane and are told apart by little.
"""

import asyncio
import shlex
from collections.abc import Coroutine, Sequence
from functools import partial
from pathlib import Path, PurePath

from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import (
    QButtonGroup,
    QComboBox,
    QDialog,
    QFrame,
    QLabel,
    QLineEdit,
    QPushButton,
    QSizePolicy,
    QWidget,
)
from shiboken6 import isValid

from gatewright.workspace.api import GatewrightError, frozen
from gatewright_gui.pages.page import PageContext
from gatewright_gui.pages.servers.gate_dialogs import connect_client, put_gate
from gatewright_gui.qt.dialog import choose_folder
from gatewright_gui.qt.language import mark, tr
from gatewright_gui.qt.layout import Part, aligned, column_of, holding, named, row_of, stack_of, stretch
from gatewright_gui.qt.listing import REST, Column, Listing, ListingModel
from gatewright_gui.qt.look import Role, current_look
from gatewright_gui.qt.plaintext import button_text
from gatewright_gui.qt.prose import ProseLabel, plain
from gatewright_gui.qt.widget.button import CopyButton
from gatewright_gui.qt.widget.code_view import CodeView
from gatewright_gui.qt.widget.empty_state import EmptyState
from gatewright_gui.qt.widget.label import ElidedLabel, IconLabel, Label
from gatewright_gui.session.clients import ClientFile, edit_of_client, list_client_files
from gatewright_gui.session.coding_agents import HostScope, HostStatus, edit_to_install, hosts_beside, new_agent_of
from gatewright_gui.session.document import Document
from gatewright_gui.session.exporting import (
    ExportKind,
    FileFate,
    Outlook,
    export_outlook,
    next_step,
    open_line,
    verify_command,
    write_export,
)

SIZE = (960, 620)
_LEFT = 236
FOLDER = "export-folder"
"""The key under which the policy that was published last and its folder are kept, for each kind."""
_PATTERN = mark("Pattern, one file per agent")
_FATES: dict[FileFate, tuple[str, Role]] = {
    "new": (mark("new"), "allow"),
    "changes": (mark("changes"), "ask"),
    "same": (mark("stays as it is"), "muted"),
}


@frozen
class PublishRow:
    """A file that a card writes or offers to change. ``text``: what changes in it, or all of a new file."""

    name: str
    what: str
    role: Role
    text: str
    is_whole: bool = False
    handle: object = None


_COLUMNS: tuple[Column[PublishRow], ...] = (
    Column(mark("File"), lambda row: row.name, REST, is_cut_within=True),
    Column(mark("What happens"), lambda row: row.what, 170, role=lambda row: row.role),
)


class PublishModel(ListingModel[PublishRow]):
    """The files of a card."""

    def key(self, row: PublishRow) -> object:
        """The file, whatever happens to it."""
        return row.name


class PublishCard(QPushButton):
    """A way to publish, as a large button with a sentence."""

    def __init__(self, key: str, icon: str, title: str, about: str) -> None:
        super().__init__()
        named(self, f"publish.card.{key}", spoken=title, kind="card").setAccessibleDescription(about)
        self.setCheckable(True)
        self.setAutoDefault(False)
        words = named(Label(about, wraps=True), kind="muted")
        words.setFixedWidth(_LEFT - 2 * current_look().tokens.space_3)
        head = row_of(IconLabel(icon, "accent", size=16), named(Label(title), kind="heading"), stretch(), space=2)
        column_of(head, words, into=self, space=1, margins=(3, 2))
        for label in self.findChildren(QLabel):
            label.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)

    def sizeHint(self) -> QSize:  # noqa: N802
        """A size as large as the words need."""
        layout = self.layout()
        return QSize(_LEFT, layout.sizeHint().height()) if layout is not None else super().sizeHint()

    def minimumSizeHint(self) -> QSize:  # noqa: N802
        """No smaller."""
        return self.sizeHint()


class PublishPane(QWidget):
    """The files of one card, what changes in the chosen one, a button, and what was written."""

    key = ""
    icon = ""
    title = ""
    about = ""

    def __init__(self, context: PageContext, *options: Part) -> None:
        super().__init__()
        self._context, self._document = context, context.document
        empty = EmptyState("circle-check", tr("Nothing to write"), "")
        self.files = Listing(PublishModel(_COLUMNS), self._name("files"), tr("Files"), empty, chooses=True)
        self.code = named(CodeView(tr("What changes in this file")), self._name("code"))
        self.code.set_wrapping(True)
        self.note = named(ProseLabel(), self._name("note"), kind="muted")
        self.then = named(ElidedLabel(role="muted"), self._name("then"))
        self.then_line = named(ElidedLabel(path=True, mono=True), self._name("then.line"))
        self.fault = named(Label(wraps=True), self._name("fault"), kind="error")
        self.act_button = named(QPushButton(), self._name("accept"), kind="primary")
        self.act_button.setEnabled(False)  # until it is known what it would do
        self.done_words = named(Label(wraps=True), self._name("done"))
        self.next_words = named(Label(wraps=True), kind="muted")
        self.next_lines = named(Label(wraps=True), self._name("next"), spoken=tr("What to type next"))
        self.next_lines.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self.next_lines.setFont(current_look().mono_font)
        self.next_lines.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.copy_button = named(CopyButton(tr("Copy these lines"), self.next_lines.text), self._name("copy"))
        self.done = named(QFrame(), kind="card")
        lines = row_of(stretch(self.next_lines), aligned(self.copy_button, Qt.AlignmentFlag.AlignTop), space=2)
        words = column_of(self.done_words, self.next_words, lines, space=1)
        check = aligned(IconLabel("circle-check", "allow"), Qt.AlignmentFlag.AlignTop)
        row_of(check, stretch(words), into=self.done, space=2, margins=2)
        self._lines = lines
        column_of(
            *options,
            stretch(self.files, 2),
            stretch(self.code, 3),
            self.note,
            self.fault,
            self.done,
            row_of(stretch(column_of(self.then, self.then_line, space=1)), self.act_button, space=3),
            into=self,
            space=2,
        )
        for part in (self.note, self.fault, self.done):
            part.hide()
        self.files.chosen_changed.connect(self._show_chosen)
        self.act_button.clicked.connect(lambda: self._start(self.act(), "act"))

    def _name(self, part: str) -> str:
        return f"publish.{self.key}.{part}"

    def _start(self, work: Coroutine[object, object, None], what: str = "look") -> None:
        self._context.tasks.start(work, f"publish.{self.key}.{what}", replace=True)

    def look(self) -> None:
        """Work out anew what would be written."""
        self.tell_act()
        self._start(self.work_out())

    async def work_out(self) -> None:
        """Find the files, beside the window."""
        raise NotImplementedError

    async def act(self) -> None:
        """Write, and say what comes next."""
        raise NotImplementedError

    def show_rows(self, rows: Sequence[PublishRow], notes: Sequence[str] = ()) -> None:
        """Show the files that would be written."""
        self.say("")
        self.files.show_rows(rows)
        self.note.setText(" ".join(notes))
        self.note.setVisible(bool(notes))
        self._show_chosen()

    @property
    def saved_first(self) -> list[str]:
        """The note of what reads the policy from its file."""
        return [tr("Your unsaved edits are saved first.")] if self._document.is_dirty else []

    def say(self, fault: str) -> None:
        """Say why nothing can be written; nothing where it is empty."""
        self.fault.setText(fault.replace("`", ""))
        self.fault.setVisible(bool(fault))
        if fault:
            self.files.show_rows(())
            self.note.hide()
            self._show_chosen()

    def tell_done(self, words: str, then: str, lines: str) -> None:
        """Say what was written, and what to do next."""
        self.done_words.setText(words)
        self._tell_then("", "")
        self.next_words.setText(then)
        self.next_words.setVisible(bool(then))
        self.next_lines.setText(lines)
        self.next_lines.setVisible(bool(lines))
        self.copy_button.setVisible(bool(lines))
        self.done.show()
        if lines:
            self.copy_button.setFocus(Qt.FocusReason.OtherFocusReason)

    def tell_act(self) -> None:
        """Bring the button up to date with the chosen file."""

    def then_words(self) -> tuple[str, str]:
        """Say what to do once it is written, and the line to type; empty where nothing can be."""
        raise NotImplementedError

    def _tell_then(self, words: str, line: str) -> None:
        self.then.set_text(words)
        self.then_line.set_text(line)

    def _show_chosen(self) -> None:
        row = self.files.current
        self._tell_then(*(("", "") if row is None else self.then_words()))
        self.code.setVisible(row is not None and bool(row.text))
        if row is not None and row.is_whole:
            suffix = PurePath(row.name).suffix
            show = {".toml": self.code.set_toml, ".md": self.code.set_markdown}.get(suffix, self.code.set_plain)
            self.code.set_json(row.text) if suffix == ".json" else show(row.text)
        else:
            self.code.set_diff("" if row is None else row.text)
        self.tell_act()


class ProgramPane(PublishPane):
    """The policy and what belongs to it, in a folder that a program opens."""

    key, icon, title = "policy", "code", mark("For a program")
    about = mark("Your own program opens this folder and sends each call through the gate.")

    def __init__(self, context: PageContext, kind: ExportKind = "policy") -> None:
        self.folder = named(QLineEdit(), self._name("folder"), spoken=tr("Folder (created if missing)"))
        self.browse_button = named(QPushButton(tr("C&hoose...")), self._name("browse"), spoken=tr("Choose the folder"))
        self.browse_button.setAutoDefault(False)
        self.form = named(QComboBox(), self._name("form"), spoken=tr("Form of the files"))
        self.form.addItem(tr("Policy file, with what it names"), "policy")
        self.form.addItem(tr(_PATTERN), "pattern")
        self.form.setCurrentIndex(self.form.findData(kind) if kind == "pattern" else 0)
        label = Label(tr("&Folder (created if missing)"), buddy=self.folder)
        written = [row_of(Label(tr("For&mat"), buddy=self.form), self.form, stretch(), space=2)]
        where = row_of(label, stretch(self.folder), self.browse_button, space=2)
        super().__init__(context, where, *(written if self.key == "policy" else ()))
        self._outlook: Outlook | None = None
        self.folder.setText(str(self._default_folder()))
        self.folder.textChanged.connect(self._forget_outlook)
        self.folder.returnPressed.connect(self.act_button.click)
        self.form.currentIndexChanged.connect(self._change_form)
        self.browse_button.clicked.connect(lambda: self._start(self._browse(), "browse"))

    @property
    def kind(self) -> ExportKind:
        """The kind that is written."""
        return "team" if self.key == "team" else "pattern" if self.form.currentData() == "pattern" else "policy"

    @property
    def place(self) -> Path:
        """The folder as it is typed."""
        return Path(self.folder.text().strip()).expanduser()

    def _default_folder(self) -> Path:
        """The folder of the last time; for another policy one beside it."""
        workspace = self._document.workspace
        policy, _, folder = self._context.sizes.choice(f"{FOLDER}.{self.kind}").partition("\n")
        if folder and policy == str(workspace.policy_path):
            return Path(folder)
        beside = Path(folder).parent if folder and Path(folder).parent.is_dir() else workspace.folder.parent
        ends = {"policy": "published", "team": "team", "pattern": "pattern"}
        return beside / f"{workspace.folder.name}-{ends[self.kind]}"

    def _change_form(self, _at: int) -> None:
        self.folder.setText(str(self._default_folder()))
        self._forget_outlook()

    def _forget_outlook(self, _text: str = "") -> None:
        self._outlook = None
        self.done.hide()
        self.tell_act()
        self.look()

    async def _browse(self) -> None:
        here = next((one for one in (self.place, *self.place.parents) if one.is_dir()), Path.home())
        chosen = await choose_folder(self, tr("Folder to publish into"), here)
        if chosen is not None:
            self.folder.setText(str(chosen))

    async def work_out(self) -> None:
        """Ask the worker process."""
        folder, kind = self.place, self.kind
        if not folder.is_absolute():
            self.say(tr("Write the folder whole, from the root or from ~ on."))
            return
        try:
            outlook = await self._context.deriver.derive(export_outlook, folder, kind)
        except (GatewrightError, OSError) as error:
            self.say(str(error))
            return
        if outlook is None or not isValid(self) or (folder, kind) != (self.place, self.kind):
            return
        self._outlook = outlook
        rows = [
            PublishRow(file.name, tr(_FATES[file.fate][0]), _FATES[file.fate][1], file.text, file.fate == "new")
            for file in outlook.files
        ]
        made = [PublishRow(f"{name}/", tr("new, empty"), "allow", "") for name in outlook.folders]
        self.show_rows([*rows, *made], outlook.notes)

    def tell_act(self) -> None:
        """Say how much is written."""
        outlook = self._outlook
        is_there = outlook is not None and not outlook.is_new
        words = tr("All of it is there") if is_there else tr("Write") if outlook is None else ""
        self.act_button.setText(words or tr("Write {what}", what=outlook.words if outlook is not None else ""))
        self.act_button.setEnabled(outlook is not None and outlook.is_new)

    def then_words(self) -> tuple[str, str]:
        """Say how a program opens the folder, or a team checks it."""
        match self.kind:
            case "team":
                return tr("Then type:"), verify_command(self.place)
            case "pattern":
                return tr("Then give each file to the agent that it is named after."), ""
            case _:
                return tr("Then, in your program:"), open_line(self.place)

    async def act(self) -> None:
        """Write it, beside the window."""
        outlook, folder, kind = self._outlook, self.place, self.kind
        if outlook is None:
            return
        document, agent_id = self._document, self._context.selection.agent_id
        self.act_button.setEnabled(False)

        def write() -> tuple[str, str]:
            write_export(document.workspace, folder, kind)
            return next_step(document.workspace, folder, kind, agent_id)

        try:
            then, lines = await document.in_worker(write)
        except (GatewrightError, OSError) as error:
            self.say(tr("Not written: {reason}", reason=error))
            return
        self._context.sizes.set_choice(f"{FOLDER}.{kind}", f"{document.workspace.policy_path}\n{folder}")
        await self.work_out()
        self.tell_done(tr("Written: {what} in {folder}", what=outlook.words, folder=folder), then, lines)


class TeamPane(ProgramPane):
    """The same with what people need who have only that folder."""

    key, icon, title = "team", "users", mark("For a team")
    about = mark("The same folder with a README, a program to start with, and hashes that prove it whole.")


class ClientsPane(PublishPane):
    """The gateway in the configuration of a client, in place of its servers."""

    key, icon, title = "clients", "plug", mark("For MCP clients")
    about = mark("Claude Desktop, Cursor, VS Code and others reach their tools through the gate.")

    async def work_out(self) -> None:
        """Read the files of all clients."""
        document, agent_id = self._document, self._agent
        if agent_id is None:
            self.say(tr("A client speaks for an agent, and this policy has none yet."))
            return
        rows = await asyncio.to_thread(_client_rows, document, agent_id)
        if isValid(self):
            note = tr("Shown for the agent `{agent}`; the next step lets you choose another.", agent=agent_id)
            self.show_rows(rows, [note, *self.saved_first])

    @property
    def _agent(self) -> str | None:
        return self._context.selection.agent_id or next((one.agent_id for one in self._document.agents), None)

    def tell_act(self) -> None:
        """Name the client."""
        row = self.files.current
        file = row.handle if row is not None else None
        name = file.client.name if isinstance(file, ClientFile) else ""
        self.act_button.setText(
            button_text(tr("Connect {client}...", client=name)) if name else tr("Connect a client...")
        )
        self.act_button.setEnabled(bool(name))

    @property
    def _list_command(self) -> str:
        return f"gatewright serve {shlex.quote(str(self._document.workspace.policy_path))} --list"

    def then_words(self) -> tuple[str, str]:
        """Name the command that lists who is connected."""
        row = self.files.current
        if row is None or not isinstance(row.handle, ClientFile):
            return "", ""
        return tr("Then start {program} again and type:", program=row.handle.client.name), self._list_command

    async def act(self) -> None:
        """Ask for agent and wait, and write the file."""
        row = self.files.current
        if row is None or not isinstance(row.handle, ClientFile):
            return
        change = await connect_client(self, self._context, row.handle)
        if change is None:
            return
        await self.work_out()
        file = change.file
        then = tr("Start {client} again. This shows who is connected:", client=file.client.name)
        self.tell_done(tr("Written: {file}", file=file.path), then, self._list_command)


class AgentsPane(PublishPane):
    """The gate before the calls of a coding agent."""

    key, icon, title = "hooks", "terminal", mark("For coding agents")
    about = mark("Claude Code, Codex, Gemini CLI and others ask the gate before each call.")

    async def work_out(self) -> None:
        """Find those on this machine, and what a gate would change in their files."""
        document = self._document
        found = await hosts_beside(document)
        rows = await asyncio.to_thread(_host_rows, document, found, self._context.selection.agent_id)
        if not isValid(self):
            return
        if not rows:
            self.say(tr("No coding agent was found on this computer."))
            return
        self.show_rows(rows, self.saved_first)

    def tell_act(self) -> None:
        """Name the coding agent."""
        row = self.files.current
        status = row.handle if row is not None else None
        if isinstance(status, HostStatus) and status.file is not None:
            words = tr("Change the gate before {agent}...", agent=status.title)
        elif isinstance(status, HostStatus):
            words = tr("Put a gate before {agent}...", agent=status.title)
        else:
            words = tr("Put a gate here...")
        self.act_button.setText(button_text(words))
        self.act_button.setEnabled(isinstance(status, HostStatus))

    def then_words(self) -> tuple[str, str]:
        """Name the command that tells whether it asks the gate."""
        row = self.files.current
        if row is None or not isinstance(row.handle, HostStatus):
            return "", ""
        return tr("Then start {program} again and type:", program=row.handle.title), _status_command(row.handle)

    async def act(self) -> None:
        """Ask where and as which agent, and write the file."""
        row = self.files.current
        if row is None or not isinstance(row.handle, HostStatus):
            return
        change = await put_gate(self, self._context, row.handle)
        if change is None:
            return
        await self.work_out()
        then = tr("Start {agent} again. This shows whether it asks:", agent=row.handle.title)
        self.tell_done(tr("Written: {file}", file=change.file.path), then, _status_command(row.handle))


PANES = (ProgramPane, TeamPane, ClientsPane, AgentsPane)


class PublishDialog(QDialog):
    """The cards at the left; of the chosen one all else at the right."""

    def __init__(self, parent: QWidget | None, context: PageContext, kind: ExportKind = "policy") -> None:
        super().__init__(parent)
        named(self, "publish", spoken=tr("Publish")).setWindowTitle(tr("Publish"))
        self.panes: dict[str, PublishPane] = {"policy": ProgramPane(context, kind)}
        self.panes |= {pane.key: pane(context) for pane in PANES[1:]}
        self._group = QButtonGroup(self)
        self.cards: dict[str, PublishCard] = {}
        self._stack = stack_of(*self.panes.values())
        for key, pane in self.panes.items():
            card = self.cards[key] = PublishCard(key, pane.icon, tr(pane.title), tr(pane.about))
            self._group.addButton(card)
            card.toggled.connect(partial(self._turn, key))
        left = holding(column_of(*self.cards.values(), stretch(), space=2))
        left.setFixedWidth(_LEFT)
        self.close_button = named(QPushButton(tr("Close")), "publish.close")
        self.close_button.clicked.connect(self.reject)
        for button in (self.close_button, *(pane.act_button for pane in self.panes.values())):
            button.setAutoDefault(False)
        body = row_of(left, stretch(self._stack), space=3)
        about = Label(tr("Choose where this policy is to hold. You see each file before it is written."))
        column_of(about, stretch(body), row_of(stretch(), self.close_button), into=self, space=3, margins=4)
        self.resize(*SIZE)
        self.choose("team" if kind == "team" else "policy")

    def choose(self, key: str) -> None:
        """Show a card."""
        self.cards[key].setChecked(True)
        self.cards[key].setFocus(Qt.FocusReason.OtherFocusReason)

    def _turn(self, key: str, on: bool) -> None:
        if on:
            self._stack.setCurrentWidget(self.panes[key])
            self.panes[key].look()


def _status_command(status: HostStatus) -> str:
    return f"gatewright hook status {status.host_id}"


def _client_rows(document: Document, agent_id: str) -> list[PublishRow]:
    """Rows for what the gateway would change in each client's file, those that are there first."""
    rows: list[PublishRow] = []
    for file in sorted(list_client_files(document), key=lambda one: not one.path.is_file()):
        name = f"{file.client.name}: {file.path}"
        try:
            edit = edit_of_client(document, file, agent_id).edit
        except GatewrightError as error:
            rows.append(PublishRow(name, tr("cannot be read"), "deny", f"{plain(str(error))}\n", True, file))
            continue
        if not edit.difference:
            rows.append(PublishRow(name, tr("has the gateway"), "allow", "", handle=file))
        else:
            what = tr("gets the gateway") if file.path.is_file() else tr("not there yet")
            rows.append(PublishRow(name, what, "ask" if file.path.is_file() else "muted", edit.difference, handle=file))
    return rows


def _host_rows(document: Document, found: Sequence[HostStatus], agent_id: str | None) -> list[PublishRow]:
    rows: list[PublishRow] = []
    for status in found:
        new = new_agent_of(status.host_id)
        chosen = new if document.policy.catalog(status.host_id) is None else agent_id or new
        try:
            edit = edit_to_install(document, status.host_id, HostScope.USER, status.agent_id or chosen)
        except GatewrightError as error:
            rows.append(PublishRow(status.title, tr("cannot be read"), "deny", f"{plain(str(error))}\n", True, status))
            continue
        name = f"{status.title}: {edit.file.path if status.file is None else status.file.path}"
        if status.file is not None:
            rows.append(PublishRow(name, tr("asks the gate"), "allow", "", handle=status))
        else:
            rows.append(PublishRow(name, tr("gets a gate"), "ask", edit.difference, handle=status))
    return rows
