"""MCP servers and other catalogs: the list at the left, the chosen one at the right."""

import asyncio
import time
from pathlib import Path

from PySide6.QtCore import QModelIndex, Qt, QTimer
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import QListView, QPushButton, QStackedWidget, QWidget
from shiboken6 import isValid

from gatewright.workspace.api import Observed, ObservedKind, ToolFacts, is_observed
from gatewright_gui.pages.access.tools.results_dialog import ask_trust
from gatewright_gui.pages.page import Page, PageContext
from gatewright_gui.pages.servers.accept_dialog import AcceptDialog
from gatewright_gui.pages.servers.add_dialog import AddDialog
from gatewright_gui.pages.servers.catalog_list import CatalogDelegate, CatalogModel
from gatewright_gui.pages.servers.client_dialog import connect_client
from gatewright_gui.pages.servers.coding_agents_pane import CodingAgentsPane
from gatewright_gui.pages.servers.detail_pane import DetailPane, definition_words
from gatewright_gui.pages.servers.observe_dialog import ObserveDialog
from gatewright_gui.pages.servers.serving_panel import ServingPanel
from gatewright_gui.pages.servers.trust_dialog import ProposedServer, TrustDialog
from gatewright_gui.qt.dialog import Choice, ask, choose_open_file, shown
from gatewright_gui.qt.dropped import dropped_path
from gatewright_gui.qt.language import counted, mark, tr
from gatewright_gui.qt.layout import column_of, holding, named, stretch
from gatewright_gui.qt.look import tie_icon
from gatewright_gui.qt.table_model import ROW
from gatewright_gui.qt.widget.button import WordButton
from gatewright_gui.qt.widget.empty_state import EmptyState
from gatewright_gui.qt.widget.section_header import SectionHeader
from gatewright_gui.qt.widget.splitter import Splitter
from gatewright_gui.session.catalogs import CatalogRow, Catalogs
from gatewright_gui.session.serving import Serving
from gatewright_gui.session.verbs import catalogs as verbs
from gatewright_gui.session.verbs.operations import closed_at_first
from gatewright_gui.session.verbs.policy import set_observed

LOOK_MS = 500
"""How often it is looked who is served, while the page is there to be seen."""
NO_CATALOGS = mark("Take the servers of a client such as Claude Desktop or VS Code, paste its JSON, or type a command.")
CONNECT = mark("Connect a client...")
NAMED = 8
"""Packages that a question names."""


class ServersPage(Page):
    """Nothing here starts by itself."""

    def __init__(self, context: PageContext) -> None:
        super().__init__()
        self.setObjectName("catalogs")
        self.setAcceptDrops(True)
        self._context, self._document = context, context.document
        self.catalogs = Catalogs(context.document, context.tasks, self)
        self.header = SectionHeader(tr("Catalogs"))
        self.add_button = named(WordButton(tr("Add...")), "catalogs.add", spoken=tr("Add servers"))
        tie_icon(self.add_button, "plus")
        self.header.add_control(self.add_button)
        self.model = CatalogModel()
        self.view = named(QListView(), "catalogs.list", spoken=tr("Catalogs"))
        self.view.setModel(self.model)
        self.view.setItemDelegate(CatalogDelegate(self.view))
        self.view.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.client_button = named(
            QPushButton(tr(CONNECT)),
            "catalogs.client",
            tip=tr("Put the gateway into the configuration of a client, in place of its servers"),
        )
        tie_icon(self.client_button, "send")
        self.detail = DetailPane(context.sizes, context.document, context.tasks)
        self.empty = named(
            EmptyState("plug", tr("No catalogs"), tr(NO_CATALOGS), action=tr("Add servers..."), other=tr(CONNECT)),
            "catalogs.empty",
        )
        self.next_button = named(QPushButton(), "catalogs.next", kind="primary")
        self.next_button.hide()
        foot = column_of(self.next_button, self.client_button, space=2, margins=2)
        left = holding(column_of(self.header, stretch(self.view), foot))
        self.serving = Serving(context.document, context.tasks, self)
        self.served = ServingPanel()
        self.coding_agents = CodingAgentsPane(context, self.isVisible)
        self._stack = QStackedWidget()
        both = Splitter(Qt.Orientation.Vertical, "catalogs.serving", context.sizes)
        splitter = Splitter(Qt.Orientation.Horizontal, "catalogs", context.sizes)
        column_of(stretch(both), into=self)  # from outside to inside: what moves is styled anew with all that is in it
        for pane in (self._stack, self.coding_agents, self.served):
            both.addWidget(pane)
        for pane in (splitter, self.empty):
            self._stack.addWidget(pane)
        for pane in (left, self.detail):
            splitter.addWidget(pane)
        splitter.setStretchFactor(1, 1)
        splitter.restore((280, 900))
        both.setStretchFactor(0, 1)
        both.restore((390, 214, 160))
        self._whole = splitter
        self._connect()
        self._refresh()
        self._asking = asyncio.Lock()  # one question after the other
        self._look = QTimer(self, interval=LOOK_MS)
        self._look.timeout.connect(self._look_after)
        self._look.start()

    def main_view(self) -> QWidget:
        """The list; without a catalog the way to add one."""
        return self.view if self._stack.currentWidget() is self._whole else self.empty.action_button

    def page_shown(self) -> None:
        """Servers and clients may have come and gone meanwhile."""
        self._refresh()
        self.serving.look()
        self.coding_agents.look()

    def end(self) -> None:
        """Hear no more of servers and clients."""
        self._look.stop()
        self.coding_agents.end()
        self.catalogs.end()

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:  # noqa: N802
        """A file may be dropped."""
        if self._document.is_open and dropped_path(event) is not None:
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:  # noqa: N802
        """The configuration file of a client."""
        path = dropped_path(event)
        if path is not None:
            event.acceptProposedAction()
            self._start(self._add(path))

    def _connect(self) -> None:
        self.catalogs.changed.connect(self._refresh)
        self.serving.changed.connect(self._show_served)
        self.served.question_requested.connect(self._context.navigator.go_to_waiting)
        self.served.agent_requested.connect(self._go_to_agent)
        self.view.selectionModel().currentChanged.connect(self._show)
        self.add_button.clicked.connect(lambda: self._start(self._add(None)))
        self.empty.action_requested.connect(lambda: self._start(self._add(None)))
        self._context.navigator.servers_requested.connect(lambda: self._start(self._add(None)))
        self._context.navigator.trust_requested.connect(self._trust_one)
        self.next_button.clicked.connect(self._go_on)
        for asked in (
            self.client_button.clicked,
            self.empty.other_requested,
            self._context.navigator.client_requested,
        ):
            asked.connect(lambda: self._start(self._connect_client()))
        detail = self.detail
        detail.trust_requested.connect(self._trust_current)
        detail.places_requested.connect(self._trust_current)
        detail.start_requested.connect(lambda: self._serve("start"))
        detail.ask_requested.connect(lambda: self._serve("ask"))
        detail.stop_requested.connect(lambda: self._serve("stop"))
        detail.accept_requested.connect(lambda: self._start(self._accept()))
        detail.try_requested.connect(self._try)
        detail.results_requested.connect(self._ask_trust)
        detail.observe_requested.connect(lambda: self._start(self._observe()))
        detail.remove_requested.connect(lambda: self._start(self._remove()))

    @property
    def current(self) -> CatalogRow | None:
        """The chosen catalog."""
        row = self.view.currentIndex().data(ROW)
        return row if isinstance(row, CatalogRow) else None

    def _refresh(self, _why: object = None) -> None:
        if not self.isVisible() and self.model.rowCount():
            return
        rows = self.catalogs.rows
        before = self.current
        self.model.set_rows(rows)
        self._tell_next()
        self._stack.setCurrentWidget(self._whole if rows else self.empty)
        if rows and not self.view.currentIndex().isValid():
            at = self.model.find(before.catalog_id) if before is not None else 0
            self.view.setCurrentIndex(self.model.index(max(at, 0), 0))
        self._show()

    def _tell_next(self) -> None:
        """One button for what comes next: trust several servers, accept their tools, add the first agent."""
        untrusted, waiting = self._untrusted, self._waiting
        text = ""
        if len(untrusted) > 1:
            text = tr("Trust {servers}...", servers=counted(len(untrusted), "server", "servers"))
        elif len(self._placeless) > 1:
            text = tr("Places of {servers}...", servers=counted(len(self._placeless), "server", "servers"))
        elif len(waiting) > 1:
            tools = sum(len(row.waiting) for row in waiting)
            text = tr("Accept {tools}...", tools=counted(tools, "tool", "tools"))
        elif not (untrusted or waiting or self._document.policy.agents):
            text = tr("Go on: add an agent")
        self.next_button.setText(text)
        self.next_button.setVisible(bool(text))

    @property
    def _untrusted(self) -> list[CatalogRow]:
        return [row for row in self.catalogs.rows if not row.is_trusted]

    @property
    def _placeless(self) -> list[CatalogRow]:
        """Servers that are held until somebody said which places they get."""
        return [row for row in self.catalogs.rows if row.waits_for_places]

    @property
    def _waiting(self) -> list[CatalogRow]:
        return [row for row in self.catalogs.rows if row.waiting]

    def _go_on(self) -> None:
        untrusted, waiting = self._untrusted, self._waiting
        if len(untrusted) > 1:
            self._start(self._trust(untrusted))
        elif len(self._placeless) > 1:
            self._start(self._trust(self._placeless))
        elif len(waiting) > 1:
            self._start(self._accept_all())
        else:
            self._context.navigator.go_to_page("tools")

    def _show(self, _now: QModelIndex | None = None, _before: QModelIndex | None = None) -> None:
        row = self.current
        if row is not None:
            stderr = self.catalogs.stderr(row.catalog_id) if row.is_server else ""
            self.detail.show_row(row, stderr, self.catalogs.digest(row.catalog_id) if row.is_run_here else "")

    def _look_after(self) -> None:
        if self.isVisible():
            self._show_served()  # times say how long ago
            self.serving.look()

    def _show_served(self) -> None:
        self.served.show_processes(self.serving.processes)

    def _go_to_agent(self, agent_id: str) -> None:
        if agent_id in self._document.policy.agents:
            self._context.navigator.go_to_agent(agent_id)
        else:
            told = tr("there is no agent `{agent}` in the policy as it is edited", agent=agent_id)
            self._document.say("info", told)

    def _try(self, tool: str) -> None:
        agent_id = self.catalogs.caller_of(tool, self._context.selection.agent_id)
        if agent_id is None:
            self._document.say("info", tr("a call is made for an agent: add one on the page Agents"))
        else:
            self._context.navigator.go_to_call(agent_id, tool)

    def _ask_trust(self, facts: ToolFacts) -> None:
        self._start(ask_trust(self._context, self, facts))

    def _start(self, work: object) -> None:
        self._context.tasks.start(work, "catalogs", replace=True)  # pyright: ignore[reportArgumentType]

    def _serve(self, what: str) -> None:
        """Start, ask or stop the chosen server, beside other servers."""
        row = self.current
        if row is None:
            return
        name = row.catalog_id
        work = {"start": self._restart, "ask": self.catalogs.ask_tools, "stop": self.catalogs.stop}[what]
        self._context.tasks.start(work(name), f"catalogs.{name}")

    async def _add(self, path: Path | None) -> None:
        while True:
            dialog = AddDialog(self, self._document, self._context.tasks, path)
            accepted = await shown(dialog)
            if not dialog.asks_file:
                break
            start = self._document.workspace.folder
            kinds = tr("Configurations, documents, manifests (*.json *.yaml *.yml);;Any file (*)")
            path = await choose_open_file(self, tr("A client's servers, or tools of a file"), start, kinds)
        if not accepted:
            return
        is_first = len(self._document.policy.catalogs) == bool(dialog.added)
        added = (dialog.added,) if dialog.added else verbs.add_servers(self._document, dialog.chosen)
        if added:
            if is_first:
                chosen = self._context.selection
                chosen.close_groups(chosen.closed_groups | closed_at_first(self._document))
            self._refresh()
            self.view.setCurrentIndex(self.model.index(self.model.find(added[0]), 0))
            await self._trust([row for row in self._untrusted if row.catalog_id in added])
            if dialog.added:
                await self._look_anew(dialog.added)

    async def _look_anew(self, catalog_id: str) -> None:
        """A document was read again: what of its tools is new or other is shown, to be accepted."""
        row = next((row for row in self.catalogs.rows if row.catalog_id == catalog_id), None)
        if row is not None and row.is_trusted:
            await self.catalogs.ask_tools(catalog_id)

    def _trust_current(self) -> None:
        if self.current is not None:
            self._start(self._trust([self.current]))

    def _trust_one(self, catalog_id: str) -> None:
        """A link from elsewhere: the catalog with the question."""
        self._refresh()
        self.view.setCurrentIndex(self.model.index(self.model.find(catalog_id), 0))
        self._trust_current()

    async def _trust(self, rows: list[CatalogRow]) -> None:
        """Ask whether servers are trusted, with which places, and start those that are, all at once."""
        if not rows:
            return
        asked = self._proposals(rows)
        is_trusted = all(row.is_trusted for row in rows)
        dialog = TrustDialog(self, self._document, self._context.tasks, asked, is_trusted=is_trusted)
        if not await shown(dialog):
            return
        ids = [row.catalog_id for row in rows]
        if self._proposals([row for row in self.catalogs.rows if row.catalog_id in ids]) != asked:
            told = tr("what would be started was changed meanwhile: nothing was trusted. Look at it again")
            self._document.say("warning", told)
        elif verbs.set_places(self._document, dialog.places) and self.catalogs.trust(ids):
            for catalog_id in ids:
                self._context.tasks.start(self._restart(catalog_id), f"catalogs.{catalog_id}")

    async def _restart(self, catalog_id: str) -> None:
        """Start a server; where install scripts of its package were left out, ask about them and start it anew."""
        await self.catalogs.restart(catalog_id)
        async with self._asking:
            row = next((one for one in self.catalogs.rows if one.catalog_id == catalog_id), None)
            packages = self.catalogs.left_out_scripts(catalog_id) if isValid(self) and row is not None else ()
            if row is None or not packages:
                return
            definition = self.catalogs.digest(catalog_id)
            choices = (Choice("leave", tr("Leave them out"), "primary"), Choice("run", tr("Run them"), "danger"))
            title = tr("Run install scripts for {server}?", server=catalog_id)
            if await ask(self, title, _scripts_words(row, packages), choices, icon="shield-alert", role="ask") != "run":
                return
            now = {one.catalog_id for one in self.catalogs.rows}
            is_same = catalog_id in now and self.catalogs.digest(catalog_id) == definition
        if is_same and self.catalogs.left_out_scripts(catalog_id) == packages:
            await self.catalogs.restart(catalog_id, scripts=True)
        else:
            told = tr("what would be installed was changed meanwhile: no install script ran. Look at it again")
            self._document.say("warning", told)

    def _proposals(self, rows: list[CatalogRow]) -> tuple[ProposedServer, ...]:
        """The servers that would be started or connected to, as they are now, and what they would get."""
        return tuple(
            ProposedServer(
                row.state.catalog,
                definition_words(row, self.catalogs.digest(row.catalog_id)),
                self.catalogs.places(row.state.catalog),
            )
            for row in rows
        )

    async def _accept(self) -> None:
        await self.catalogs.accept(self.detail.model.ticked, self.detail.chosen_tier)

    async def _accept_all(self) -> None:
        waiting = {row.catalog_id: row.waiting for row in self._waiting}
        dialog = AcceptDialog(self, self._waiting)
        if not await shown(dialog):
            return
        chosen = dialog.chosen
        if any(waiting[row.catalog_id] != row.waiting for row in self.catalogs.rows if row.catalog_id in chosen):
            told = tr("what the servers list was changed meanwhile: nothing was accepted. Look at it again")
            self._document.say("warning", told)
        else:
            await self.catalogs.accept(chosen)

    async def _observe(self) -> None:
        """Enforce a catalog that is only observed; ask until when to observe one that is enforced."""
        row = self.current
        if row is None:
            return
        until_s: float | None = None
        if not is_observed(row.state.catalog, time.time()):
            dialog = ObserveDialog(self, self._document, row.catalog_id)
            if not await shown(dialog):
                return
            until_s = dialog.until_s
        set_observed(self._document, [Observed(ObservedKind.CATALOG, row.catalog_id, until_s or 0.0)], until_s)

    async def _remove(self) -> None:
        row = self.current
        if row is None:
            return
        text = tr(
            "What the policy says of its tools goes with it; what was accepted stays on disk. Undo brings it back."
        )
        choices = (Choice("keep", tr("Keep it")), Choice("remove", tr("Remove"), "danger"))
        title = tr("Remove catalog {catalog}?", catalog=row.catalog_id)
        if await ask(self, title, text, choices, icon="trash", role="ask") == "remove":
            verbs.remove_catalog(self._document, row.state.catalog)

    async def _connect_client(self) -> None:
        await connect_client(self, self._context)


def _scripts_words(row: CatalogRow, packages: tuple[str, ...]) -> str:
    """Say whose install scripts were left out, what they could reach, and how the server is without them."""
    named = ", ".join(packages[:NAMED])
    if len(packages) > NAMED:
        named = tr("{packages} and {count} more", packages=named, count=f"{len(packages) - NAMED:,}")
    reach = tr(
        "They can reach the registries that npm and pip are set for and the folder of the package, nothing else."
    )
    if not row.state.catalog.is_confined:
        reach = tr("Nothing confines this server: they may do all that you may.")
    stands = tr("Without them the server runs.") if row.is_up else tr("Without them the server does not start.")
    return "\n\n".join((tr("These have code of their own that runs once: {packages}.", packages=named), reach, stands))
