"""The gateway goes into a client's configuration: shown as a difference first, written on a click, with a backup."""

import json

from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QComboBox, QLineEdit, QPushButton, QWidget

from gatewright.workspace.api import GatewrightError
from gatewright_gui.pages.page import PageContext
from gatewright_gui.qt.dialog import FormDialog, shown
from gatewright_gui.qt.language import tr
from gatewright_gui.qt.layout import named, row_of, stretch
from gatewright_gui.qt.look import tie_icon
from gatewright_gui.qt.widget.code_view import CodeView
from gatewright_gui.qt.widget.label import Label
from gatewright_gui.session.catalogs import ClientEdit, ClientFile, edit_of_client, known_client_files, write_edit
from gatewright_gui.session.document import Document

USUAL_WAIT = "45s"


class ClientDialog(FormDialog):
    """Asks for a client's file and an agent; after it was accepted `change` is to be written."""

    def __init__(
        self, parent: QWidget | None, document: Document, agent_id: str | None, file: ClientFile | None = None
    ) -> None:
        super().__init__(parent, "client", tr("Connect a client"), tr("Write file"))
        self._document, self._files = document, known_client_files(document)
        self.change: ClientEdit | None = None
        self.file = named(QComboBox(), "client.file", spoken=tr("Client and its file"))
        for one in sorted(self._files, key=lambda one: not one.path.is_file()):
            where = tr("this project") if one.is_project else tr("yours")
            told = where if one.path.is_file() else tr("{place}, not there yet", place=where)
            self.file.addItem(f"{one.client.name} ({told})", one)
            if one == file:
                self.file.setCurrentIndex(self.file.count() - 1)
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
        self.note = named(Label(wraps=True), "client.note", kind="muted")
        self.copy_button = named(
            QPushButton(tr("Copy entry")), "client.copy", tip=tr("Copy the gateway's entry as JSON")
        )
        tie_icon(self.copy_button, "copy")
        self.lay_out(
            row_of(stretch(self.file, 2), Label(tr("as agent")), stretch(self.agent), space=2),
            row_of(stretch(self.place), Label(tr("a question waits")), self.wait, space=2),
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
        self.note.setText(" ".join((*told, *_told(self.change))))

    def _copy(self) -> None:
        if self.change is not None:
            entry = {"gatewright": dict(self.change.edit.entry)}
            QGuiApplication.clipboard().setText(json.dumps(entry, indent=2, ensure_ascii=False))
            self.copy_button.setText(tr("Copied"))


async def connect_client(parent: QWidget, context: PageContext, file: ClientFile | None = None) -> ClientEdit | None:
    """Ask for a client's file, with ``file`` chosen first, and write it; return what was written."""
    document = context.document
    dialog = ClientDialog(parent, document, context.selection.agent_id, file)
    if not await shown(dialog) or dialog.change is None:
        return None
    if document.is_dirty and not await context.save():  # what is not saved the client would not get
        return None
    return dialog.change if write_edit(document, dialog.change) else None


def _wait_in(change: ClientEdit) -> str:
    args = change.edit.entry["args"]
    at = args.index("--wait") + 1 if isinstance(args, list) and "--wait" in args else 0
    return str(args[at]) if isinstance(args, list) and at else USUAL_WAIT


def _told(change: ClientEdit) -> list[str]:
    edit = change.edit
    told = [tr("Values of variables stay in this file and are not shown.")] if edit.handed else []
    if edit.direct:
        names = "; ".join(f"{name} ({why})" for name, why in edit.direct.items()).replace("`", "")
        told.append(tr("Still reached directly: {servers}.", servers=names))
    if change.before is not None:
        told.append(tr("A backup is kept beside it."))
    return told
