"""Tools are added: a command or an address typed, text pasted, a client's file, a document or a manifest chosen."""

from pathlib import Path

from PySide6.QtCore import QMimeData, Qt, Signal
from PySide6.QtWidgets import QListWidget, QListWidgetItem, QMenu, QPlainTextEdit, QPushButton, QWidget
from shiboken6 import isValid

from gatewright.workspace.api import GatewrightError
from gatewright_gui.pages.servers.room_browser import fitting_height
from gatewright_gui.pages.servers.tool_form import ToolForm
from gatewright_gui.qt.dialog import FormDialog
from gatewright_gui.qt.language import counted, tr
from gatewright_gui.qt.layout import named, row_of, stack_of, stretch
from gatewright_gui.qt.look import tie_icon
from gatewright_gui.qt.plaintext import button_text
from gatewright_gui.qt.task import TaskOwner
from gatewright_gui.qt.widget.item_view import Delegate
from gatewright_gui.qt.widget.label import Label
from gatewright_gui.qt.widget.message_bar import NO_LIMIT, FootBars, ProgressStrip
from gatewright_gui.session.clients import ClientFile, ClientServer, list_client_files, servers_in
from gatewright_gui.session.document import Document
from gatewright_gui.session.toolfiles import ToolFileReader, add_tools, defines_tools

_SERVER = Qt.ItemDataRole.UserRole + 1
HINT = (
    'npx -y @modelcontextprotocol/server-filesystem notes\nhttps://example.com/mcp\n{ "mcpServers": { ... } }\n'
    "openapi: 3.1.0"
)
TEXT_HEIGHT = 110
"""Pixels of what is typed, above what was found in it; before it has all the room."""
LARGE = 200_000
"""A longer text that is pasted is taken as it is and not shown."""


class _Text(QPlainTextEdit):
    """The text that is typed or pasted."""

    large_pasted = Signal(str)
    """A text that is too long to be shown."""

    def insertFromMimeData(self, source: QMimeData) -> None:  # noqa: N802
        """Paste, or drop."""
        text = source.text()
        if len(text) > LARGE:
            self.large_pasted.emit(text)
        else:
            super().insertFromMimeData(source)


class AddDialog(FormDialog):
    """Shows what is in what is typed at once. Servers: after it was accepted `chosen` holds those that are ticked.

    Tools of a file: they are added before it closes, as the catalog `added`; where that fails it says why and stays.
    """

    def __init__(self, parent: QWidget | None, document: Document, tasks: TaskOwner, path: Path | None = None) -> None:
        super().__init__(parent, "catalog_add", tr("Add tools"), tr("Add"))
        self._document, self._tasks = document, tasks
        self.asks_file = False
        """Closed to choose a file by the platform's dialog."""
        self.added = ""
        self._reader = ToolFileReader(document)
        self._path: Path | None = None
        """The file of the tools that are shown; None where they were typed."""
        told = Label(
            tr("Type a command or an address, or paste a client's configuration, an OpenAPI document or a manifest."),
            wraps=True,
        )
        self.text = named(_Text(), "catalog_add.text", spoken=tr("Command, address, configuration or document"))
        self.text.setPlaceholderText(HINT)
        self.text.setTabChangesFocus(True)
        self.file_button = named(
            QPushButton(tr("From a file")), "catalog_add.file", spoken=tr("Servers of a client, or tools of a file")
        )
        tie_icon(self.file_button, "download")
        self.file_button.setMenu(self._menu(list_client_files(document)))
        self.list = named(QListWidget(), "catalog_add.list", spoken=tr("Servers that were found"))
        self.list.setItemDelegate(Delegate(self.list))
        self.list.setWordWrap(True)
        self.form = ToolForm(document, tasks)
        self.strip = ProgressStrip()
        self._stack = stack_of(self.list, self.form)
        self.note = named(Label(wraps=True), "catalog_add.note", kind="muted")
        self.fault = named(Label(wraps=True), "catalog_add.fault", kind="error")
        head = row_of(stretch(told), self.file_button, space=2)
        self.lay_out(head, self.text, stretch(self._stack), self.note, self.fault)
        FootBars(self._stack, self.strip)
        self.accept_button.setDefault(True)
        self.text.textChanged.connect(self._read_text)
        self.text.large_pasted.connect(self._read_large)
        self.list.itemChanged.connect(self._tell)
        self.list.currentItemChanged.connect(self._tell)
        self.form.changed.connect(self._tell)
        self.strip.cancel_requested.connect(self._stop_reading)
        self.resize(720, fitting_height(parent, 660))
        self._tell()
        self.text.setFocus()
        if path is not None:
            self.read_file(path)

    def accept(self) -> None:
        """Servers are added by whoever asked; tools of a file here."""
        if not self._shows_form:
            super().accept()
        elif self.accept_button.isEnabled():
            self._tasks.start(self._add(), "servers.add_tools", replace=True)

    def done(self, result: int) -> None:
        """Nothing is read any more."""
        self._reader.end()
        super().done(result)

    @property
    def chosen(self) -> tuple[ClientServer, ...]:
        """The servers that are ticked."""
        items = (self.list.item(row) for row in range(self.list.count()))
        return tuple(item.data(_SERVER) for item in items if item.checkState() == Qt.CheckState.Checked)

    def read_file(self, path: Path) -> None:
        """Show the servers of a client's file, or the tools that a file defines."""
        self.text.blockSignals(True)
        self.text.clear()
        self.text.blockSignals(False)
        self.text.setPlaceholderText(str(path))
        self._read("", path)

    def _menu(self, files: tuple[ClientFile, ...]) -> QMenu:
        menu = named(QMenu(self), "catalog_add.clients")
        for file in files:
            if file.path.is_file():
                action = menu.addAction(button_text(f"{file.client.name}: {file.path.name}"))
                action.setToolTip(str(file.path))
                action.triggered.connect(lambda _=False, path=file.path: self.read_file(path))
        if not menu.isEmpty():
            menu.addSeparator()
        menu.addAction(tr("Another file...")).triggered.connect(self._ask_file)
        return menu

    def _ask_file(self) -> None:
        self.asks_file = True
        self.reject()

    def _read_text(self) -> None:
        self.text.setPlaceholderText(HINT)
        self._read(self.text.toPlainText(), None)

    def _read_large(self, text: str) -> None:
        self.text.blockSignals(True)
        self.text.clear()
        self.text.blockSignals(False)
        self.text.setPlaceholderText(tr("A text of {count} characters was pasted.", count=f"{len(text):,}"))
        self._read(text, None)

    def _read(self, text: str, path: Path | None) -> None:
        self._stop_reading()
        self.fault.setText("")
        self.list.blockSignals(True)
        self.list.clear()
        self.list.blockSignals(False)
        self.form.clear()
        if (path is not None or text.strip()) and defines_tools(text, path):
            self._path = path
            self._stack.setCurrentWidget(self.form)
            self.strip.start(tr("Reading the file"))
            self._tasks.start(self._read_tools(text, path), "servers.read_tools", replace=True)
        else:
            self._stack.setCurrentWidget(self.list)
            self._show_servers(text, path)
        self._tell()

    def _show_servers(self, text: str, path: Path | None) -> None:
        servers: tuple[ClientServer, ...] = ()
        if path is not None or text.strip():
            try:
                servers = servers_in(text, path)
            except GatewrightError as error:
                self._say(error)
        self.list.blockSignals(True)
        for server in servers:
            self.list.addItem(_item(server))
        self.list.blockSignals(False)
        if servers:
            self.list.setCurrentRow(0)

    async def _read_tools(self, text: str, path: Path | None) -> None:
        try:
            found = await self._reader.read(path, text)
        except GatewrightError as error:
            if isValid(self):
                self._stop_reading()
                self._say(error)
            return
        if found is not None and isValid(self):
            self.strip.stop()
            self.form.show_file(found)

    def _stop_reading(self) -> None:
        self._tasks.cancel("servers.read_tools")
        self._reader.end()
        self.strip.stop()

    async def _add(self) -> None:
        found = self.form.found
        self.accept_button.setEnabled(False)
        try:
            wanted = self.form.catalog()
            self.added = await add_tools(self._document, found, wanted, self._path) if found is not None else ""
        except GatewrightError as error:
            if isValid(self):
                self._tell()
                self._say(error)
            return
        if isValid(self):
            super().accept()

    def _say(self, error: GatewrightError) -> None:
        self.fault.setText(str(error).replace("`", ""))
        self.fault.setVisible(True)

    @property
    def _shows_form(self) -> bool:
        return self._stack.currentWidget() is self.form

    def _tell(self, _item: object = None, _before: object = None) -> None:
        holds = self._shows_form or self.list.count() > 0
        self._stack.setVisible(holds)
        self.text.setMaximumHeight(TEXT_HEIGHT if holds else NO_LIMIT)
        if self._shows_form:
            self._tell_tools()
            return
        number = len(self.chosen)
        servers = counted(number, "server", "servers")
        self.accept_button.setText(tr("Add {servers}", servers=servers) if number else tr("Add"))
        self.accept_button.setEnabled(number > 0)
        server = self.list.currentIndex().data(_SERVER)
        notes = server.notes if isinstance(server, ClientServer) else ()
        self.note.setText("\n".join(note[:1].upper() + note[1:].replace("`", "") for note in notes))
        self.note.setVisible(bool(notes))
        self.fault.setVisible(bool(self.fault.text()))

    def _tell_tools(self) -> None:
        """Say what is missing before the tools can be added."""
        found = self.form.found
        self.note.hide()
        number = counted(len(found.tools), "tool", "tools") if found is not None else ""
        self.accept_button.setText(tr("Add {tools}", tools=number) if number else tr("Add"))
        self.accept_button.setEnabled(found is not None and bool(found.tools))
        if found is not None:
            try:
                self.form.catalog()
            except GatewrightError as error:
                self._say(error)
                self.accept_button.setEnabled(False)
                return
            self.fault.setText("")
        self.fault.setVisible(bool(self.fault.text()))


def _item(server: ClientServer) -> QListWidgetItem:
    catalog = server.catalog
    if catalog is None:
        words = tr("cannot be added: {reason}", reason=server.refusal).replace("`", "")
    else:
        words = catalog.url or " ".join((catalog.command or "", *catalog.args))
    name = server.server_id
    called = tr("{server}  (switched off in the client)", server=name) if server.is_disabled else name
    item = QListWidgetItem(f"{called}   {words}")
    item.setToolTip(words)
    item.setData(_SERVER, server)
    if catalog is None:
        item.setFlags(Qt.ItemFlag.ItemIsSelectable)
    else:
        item.setCheckState(Qt.CheckState.Unchecked if server.is_disabled else Qt.CheckState.Checked)
    return item
