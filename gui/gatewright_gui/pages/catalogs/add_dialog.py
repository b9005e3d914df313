"""Servers are added: a command or an address typed, JSON pasted, a client's file chosen or dropped."""

from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QListWidget, QListWidgetItem, QMenu, QPlainTextEdit, QPushButton, QWidget

from gatewright.workspace.api import GatewrightError
from gatewright_gui.qt.dialog import FormDialog
from gatewright_gui.qt.language import counted, tr
from gatewright_gui.qt.layout import named, row_of, stretch
from gatewright_gui.qt.look import tie_icon
from gatewright_gui.qt.plaintext import button_text
from gatewright_gui.qt.widget.delegate import Delegate
from gatewright_gui.qt.widget.label import Label
from gatewright_gui.session.catalogs import ClientFile, ClientServer, servers_in

_SERVER = Qt.ItemDataRole.UserRole + 1
HINT = 'npx -y @modelcontextprotocol/server-filesystem notes\nhttps://example.com/mcp\n{ "mcpServers": { ... } }'


class AddDialog(FormDialog):
    """Shows the servers of what is typed at once; after it was accepted `chosen` holds those that are ticked."""

    def __init__(self, parent: QWidget | None, files: tuple[ClientFile, ...], path: Path | None = None) -> None:
        super().__init__(parent, "catalog_add", tr("Add MCP servers"), tr("Add"))
        self.asks_file = False
        """Closed to choose a file by the platform's dialog."""
        told = Label(tr("Type a command or an address, or paste a client's configuration."))
        self.text = named(QPlainTextEdit(), "catalog_add.text", spoken=tr("Command, address or configuration"))
        self.text.setPlaceholderText(HINT)
        self.text.setTabChangesFocus(True)
        self.text.setMaximumHeight(130)
        self.file_button = named(QPushButton(tr("From a client")), "catalog_add.file", spoken=tr("Servers of a client"))
        tie_icon(self.file_button, "download")
        self.file_button.setMenu(self._menu(files))
        self.list = named(QListWidget(), "catalog_add.list", spoken=tr("Servers that were found"))
        self.list.setItemDelegate(Delegate(self.list))
        self.list.setWordWrap(True)
        self.note = named(Label(wraps=True), "catalog_add.note", kind="muted")
        self.fault = named(Label(wraps=True), "catalog_add.fault", kind="error")
        head = row_of(stretch(told), self.file_button, space=2)
        self.lay_out(head, self.text, stretch(self.list), self.note, self.fault)
        self.accept_button.setDefault(True)
        self.text.textChanged.connect(self._read_text)
        self.list.itemChanged.connect(self._tell)
        self.list.currentItemChanged.connect(self._tell)
        self.resize(640, 460)
        self._tell()
        self.text.setFocus()
        if path is not None:
            self.read_file(path)

    @property
    def chosen(self) -> tuple[ClientServer, ...]:
        """The servers that are ticked."""
        items = (self.list.item(row) for row in range(self.list.count()))
        return tuple(item.data(_SERVER) for item in items if item.checkState() == Qt.CheckState.Checked)

    def read_file(self, path: Path) -> None:
        """Show the servers of a client's file."""
        self.text.blockSignals(True)
        self.text.clear()
        self.text.blockSignals(False)
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
        self._read(self.text.toPlainText(), None)

    def _read(self, text: str, path: Path | None) -> None:
        servers: tuple[ClientServer, ...] = ()
        fault = ""
        if path is not None or text.strip():
            try:
                servers = servers_in(text, path)
            except GatewrightError as error:
                fault = str(error)
        self.list.blockSignals(True)
        self.list.clear()
        for server in servers:
            self.list.addItem(_item(server))
        self.list.blockSignals(False)
        if servers:
            self.list.setCurrentRow(0)
        self.fault.setText(fault.replace("`", ""))
        self._tell()

    def _tell(self, _item: object = None, _before: object = None) -> None:
        number = len(self.chosen)
        servers = counted(number, "server", "servers")
        self.accept_button.setText(tr("Add {servers}", servers=servers) if number else tr("Add"))
        self.accept_button.setEnabled(number > 0)
        server = self.list.currentIndex().data(_SERVER)
        notes = server.notes if isinstance(server, ClientServer) else ()
        self.note.setText("\n".join(note[:1].upper() + note[1:].replace("`", "") for note in notes))
        self.note.setVisible(bool(notes))
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
