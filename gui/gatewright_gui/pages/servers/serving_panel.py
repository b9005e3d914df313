"""The clients that the gateway serves now: who they are, what they called, what of it waits for an answer."""

import time

from PySide6.QtCore import QModelIndex, Signal
from PySide6.QtGui import QColor, QPalette
from PySide6.QtWidgets import QStyleOptionViewItem, QWidget

from gatewright.workspace.api import frozen
from gatewright_gui.qt.language import counted, mark, tr
from gatewright_gui.qt.layout import column_of, named, stretch
from gatewright_gui.qt.look import current_look, role_hex
from gatewright_gui.qt.table_model import ROW, Index, RowModel
from gatewright_gui.qt.widget.delegate import Delegate
from gatewright_gui.qt.widget.item_view import TableView
from gatewright_gui.qt.widget.section_header import SectionHeader
from gatewright_gui.session.question import span
from gatewright_gui.session.serving import ClientSession, ServingProcess

HEADINGS = (
    mark("Client"),
    mark("Agent"),
    mark("Reached by"),
    mark("Calls"),
    mark("Denied"),
    mark("Waits for you"),
    mark("Connected"),
)
CLIENT, AGENT, WAY, CALLS, DENIED, WAITS, SINCE = range(len(HEADINGS))


@frozen
class ServingLine:
    """A client of a process; None: nobody is connected there. `cells`: what the columns say."""

    process: ServingProcess
    client: ClientSession | None
    cells: tuple[str, ...]

    @property
    def waits(self) -> tuple[str, ...]:
        """The digests of its calls that wait."""
        return self.client.waits if self.client is not None else ()


def serving_lines(processes: tuple[ServingProcess, ...], now_s: float) -> tuple[ServingLine, ...]:
    """A line for each client, and one for each process that has none."""
    return tuple(
        ServingLine(process, client, _cells(process, client, now_s))
        for process in processes
        for client in process.clients or (None,)
    )


def _cells(process: ServingProcess, client: ClientSession | None, now_s: float) -> tuple[str, ...]:
    way = (
        tr("standard input")
        if process.transport == "stdio"
        else process.address.removeprefix("http://").removesuffix("/mcp")
    )
    since = process.since_wall_s if client is None else client.since_wall_s
    ago = tr("{time} ago", time=span(max(1, now_s - since)))
    if client is None:
        agents = ", ".join(process.agents) or tr("no token yet")
        return (tr("no client is connected"), agents, way, "", "", "", ago)
    by = [word for word in (client.user_id, client.token_id) if word]
    return (
        client.client or tr("a client without a name"),
        client.agent_id,
        ", ".join((way, *by)),
        f"{client.calls:,}",
        f"{client.denied:,}",
        counted(len(client.waits), "call", "calls") if client.waits else "",
        ago,
    )


class ServingModel(RowModel[ServingLine]):
    """One row per client."""

    headers = HEADINGS
    numeric = frozenset((CALLS, DENIED, WAITS))

    def key(self, _row: ServingLine) -> object:
        """As long as there are as many, rows stay where they are."""
        return None

    def text(self, row: ServingLine, column: int) -> str:
        """Cells."""
        return row.cells[column]

    def tip(self, row: ServingLine, column: int) -> str:
        """What a click shows, else which process and session it is."""
        if column == WAITS and row.waits:
            return tr("Show the call that waits, and answer it")
        if column == AGENT and row.client is not None:
            return tr("Show what {agent} may do", agent=row.client.agent_id)
        told = [tr("{cell}: process {number}", cell=row.cells[column], number=row.process.pid)]
        if row.client is not None:
            told.append(tr("session {name}", name=row.client.session_id))
        return ", ".join(told)


class _Delegate(Delegate):
    """What leads somewhere has the colour of a link, and of a question where one waits."""

    def initStyleOption(self, option: QStyleOptionViewItem, index: Index) -> None:  # noqa: N802
        super().initStyleOption(option, index)
        line, palette = index.data(ROW), QPalette(getattr(option, "palette"))  # noqa: B009
        role = {AGENT: "accent", WAITS: "ask"}.get(index.column())
        if isinstance(line, ServingLine) and role is not None and line.client is not None:
            colour = QColor(role_hex(current_look().palette, role))  # pyright: ignore[reportArgumentType]
            palette.setColor(QPalette.ColorRole.Text, colour)
            palette.setColor(QPalette.ColorRole.HighlightedText, colour)
            setattr(option, "palette", palette)  # noqa: B010


class ServingPanel(QWidget):
    """Hidden while nobody serves the workspace."""

    question_requested = Signal(object)
    """tuple[str, ...]: the digests of the calls that wait."""
    agent_requested = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self.header = SectionHeader(tr("Clients that are served now"))
        self.model = ServingModel()
        self.view = named(TableView(tr("Clients that are served now")), "catalogs.serving")
        self.view.setItemDelegate(_Delegate(self.view))
        widths = {CLIENT: 220, AGENT: 160, CALLS: 70, DENIED: 70, WAITS: 110, SINCE: 110}
        self.view.show_model(self.model, widths, wide=WAY)
        column_of(self.header, stretch(self.view), into=self)
        self.view.clicked.connect(self._follow)
        self.view.activated.connect(self._activate)
        self.hide()

    def show_processes(self, processes: tuple[ServingProcess, ...]) -> None:
        """Show these, as they are now."""
        self.model.set_rows(serving_lines(processes, time.time()))
        clients = sum(len(process.clients) for process in processes)
        served, running = counted(clients, "client", "clients"), counted(len(processes), "process", "processes")
        self.header.set_note(tr("{clients} of {processes}", clients=served, processes=running))
        self.setVisible(bool(processes))

    def _follow(self, index: QModelIndex) -> None:
        """A click on what looks like a link."""
        line = index.data(ROW)
        if isinstance(line, ServingLine) and line.client is not None:
            if index.column() == WAITS and line.waits:
                self.question_requested.emit(line.waits)
            elif index.column() == AGENT:
                self.agent_requested.emit(line.client.agent_id)

    def _activate(self, index: QModelIndex) -> None:
        """The return key, or a double click: what waits goes first."""
        line = index.data(ROW)
        self._follow(index.siblingAtColumn(WAITS if isinstance(line, ServingLine) and line.waits else AGENT))
