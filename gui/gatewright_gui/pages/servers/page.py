"""The place Servers: MCP servers and other tools, coding agents, clients in one list, the chosen one at the right.

Over 450 lines, because the verbs of all of them and the questions behind each are told here.
"""

import asyncio
import time
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from pathlib import Path

from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import QPushButton, QWidget
from shiboken6 import isValid

from gatewright.workspace.api import (
    Effect,
    GatewrightError,
    Observed,
    ObservedKind,
    ToolFacts,
    is_observed,
)
from gatewright_gui.pages.access.tools.results_dialog import ask_trust
from gatewright_gui.pages.page import Page, PageContext
from gatewright_gui.pages.servers.add_dialog import AddDialog
from gatewright_gui.pages.servers.detail import DetailPane, definition_text, definition_words
from gatewright_gui.pages.servers.gate_dialogs import AskedDialog, connect_client, put_gate, question_words
from gatewright_gui.pages.servers.rows import COLUMNS, ServerDelegate, ServerModel
from gatewright_gui.pages.servers.server_dialogs import ObserveDialog, ProposedServer, TrustDialog
from gatewright_gui.pages.servers.tools import AcceptDialog
from gatewright_gui.qt.dialog import Choice, ask, choose_open_file, run_dialog
from gatewright_gui.qt.filedialog import path_of_drop
from gatewright_gui.qt.language import counted, mark, tr
from gatewright_gui.qt.layout import column_of, holding, named, row_of, stretch
from gatewright_gui.qt.listing import Listing, Verb
from gatewright_gui.qt.look import tie_icon
from gatewright_gui.qt.prose import plain
from gatewright_gui.qt.widget.button import WordButton
from gatewright_gui.qt.widget.empty_state import EmptyState
from gatewright_gui.qt.widget.label import Label, SectionHeader
from gatewright_gui.qt.widget.splitter import split_of
from gatewright_gui.session.asked_today import AskedToday, mending_of, questions_today
from gatewright_gui.session.catalogs import CatalogRow, Catalogs
from gatewright_gui.session.clients import ClientFile, Clients, ClientStatus
from gatewright_gui.session.coding_agents import HostStatus, edit_to_remove
from gatewright_gui.session.confinement import standing_of, why_not_run
from gatewright_gui.session.effects import OriginReach, origins_of
from gatewright_gui.session.navigator import Place, go_to
from gatewright_gui.session.recent_calls import RecentCalls, RecentCallsWatch, ToolCalls
from gatewright_gui.session.servers import (
    Connected,
    Fact,
    Known,
    catalog_facts,
    client_facts,
    connection_facts,
    host_facts,
    rows_of,
    waiting_effects,
)
from gatewright_gui.session.verbs import catalogs as verbs
from gatewright_gui.session.verbs.operations import groups_to_close
from gatewright_gui.session.verbs.policy import set_observed

LOOK_MS = 500
"""The time between two looks at who is served, while somebody sees the page."""
NOTHING = mark("Add the servers of a client such as Claude Desktop or VS Code, paste its JSON, or type a command.")
ABOUT = mark("Where agents get their tools, and which programs on this computer ask this policy first.")
CONNECT = mark("Connect a client...")
NAMED = 8
"""Packages that a question names."""
WIDTHS = (690, 514)
BUTTONS = (
    ("trust", "lock-open"), ("places", "folder-open"), ("start", "play"), ("stop", "circle-stop"),
    ("ask", "refresh-cw"),
    ("confine", "lock"), ("gate", "shield-check"), ("connect", "shield-check"), ("take", "plus"), ("answer", "hand"),
    ("agent", "users"), ("calls", "history"), ("asked", "hand"), ("observe", "eye"), ("enforce", "shield-check"),
    ("ungate", "trash"), ("remove", "trash"),
)  # fmt: skip


class ServersPage(Page):
    """Reads files and the log while somebody sees the page; nothing starts by itself."""

    def __init__(self, context: PageContext) -> None:
        super().__init__()
        self.setObjectName("servers")
        self.setAcceptDrops(True)
        self._context, self._document = context, context.document
        self._reaches: dict[str, OriginReach] | None = None
        self._calls: tuple[ToolCalls, ...] | None = None
        self._tools: dict[str, dict[str, ToolFacts]] = {}
        """By origin and name, as of the snapshot whose number stands below."""
        self._of_snapshot = -1
        self._known = Known()
        self._proposed: dict[str, tuple[tuple[int, int], Mapping[Effect, int]]] = {}
        """The effects of tools that wait, with the list and the snapshot that they were counted of."""
        self._why_not: dict[str, str] = {}
        """The reasons for which servers cannot be confined here, as far as they were looked for."""
        self._confined = ("", -1)
        """The server, and the snapshot, of which that was looked for last."""
        self._counted: dict[str, int | None] | None = None
        """The agents of coding agents, with their calls of today, when it was last counted what they asked."""
        self._asked: dict[str, AskedToday] = {}
        self._ago: tuple[str, ...] = ()
        self._wanted: tuple[str, str] | None = None
        """The row that somebody wants to see, until it is there."""
        self.catalogs = Catalogs(context.document, context.tasks, self)
        self.clients = Clients(context.document, context.tasks, self)
        self.coding_agents = context.coding_agents
        self.recent = RecentCallsWatch(context.document, context.tasks, "servers.calls", self.isVisible, self)
        self.model = ServerModel()
        self.empty = named(
            EmptyState("plug", tr("No servers"), tr(NOTHING), action=tr("Add servers..."), other=tr(CONNECT)),
            "servers.empty",
        )
        self.list = Listing(self.model, "servers.list", tr("Servers"), self.empty, self._offer, chooses=True)
        self.view = self.list.view
        self.view.setItemDelegate(ServerDelegate(COLUMNS, self.view))
        self.detail = DetailPane(
            context.sizes,
            context.document,
            context.tasks,
            [self.list.button(f"servers.{name}", icon) for name, icon in BUTTONS],
        )
        self._lay_out()
        self._connect()
        self._asking = asyncio.Lock()  # one question after the other
        self._look = QTimer(self, interval=LOOK_MS)
        self._look.timeout.connect(self._look_after)
        self._look.start()
        self._refresh()

    def _lay_out(self) -> None:
        self.header = SectionHeader(tr("Servers"))
        self.add_button = named(WordButton(tr("Add...")), "servers.add", spoken=tr("Add servers"))
        self.client_button = named(
            WordButton(tr(CONNECT)),
            "servers.client",
            tip=tr("Put the gateway into the configuration of a client, in place of its servers"),
        )
        self.next_button = named(QPushButton(), "servers.next", kind="primary")
        self.next_button.hide()
        tie_icon(self.add_button, "plus")
        tie_icon(self.client_button, "send")
        for control in (self.next_button, self.client_button, self.add_button):
            self.header.add_control(control)
        search = row_of(stretch(self.list.search_field("servers.search", tr("Filter servers"))), margins=(2, 0, 2, 1))
        about = named(Label(tr(ABOUT), wraps=True), "servers.about", kind="muted")
        left = holding(column_of(self.header, row_of(stretch(about), margins=(2, 0, 2, 1)), search, stretch(self.list)))
        across, panes = Qt.Orientation.Horizontal, (left, self.detail)
        column_of(stretch(split_of(across, "servers", self._context.sizes, panes, WIDTHS)), into=self)

    def main_view(self) -> QWidget:
        """The list; without a row the way to add a server."""
        return self.view if self.list.currentWidget() is self.view else self.empty.action_button

    def focus_search(self) -> None:
        """Go into the filter."""
        self.list.search.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self.list.search.selectAll()

    def page_shown(self) -> None:
        """Servers, coding agents and clients may have come and gone meanwhile."""
        self._take_hosts()
        self._ask_reaches()
        self.clients.look()
        self.coding_agents.look()
        self.recent.look()

    def end(self) -> None:
        """Look no more."""
        self._look.stop()
        self.recent.end()
        self.catalogs.end()

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:  # noqa: N802
        """A file may be dropped."""
        if self._document.is_open and path_of_drop(event) is not None:
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:  # noqa: N802
        """The configuration file of a client."""
        path = path_of_drop(event)
        if path is not None:
            event.acceptProposedAction()
            self._start(self._add(path))

    def _connect(self) -> None:
        document, navigator = self._document, self._context.navigator
        for moved in (self.catalogs.changed, self.clients.changed):
            moved.connect(self._refresh)
        self.coding_agents.changed.connect(self._take_hosts)
        self.recent.counted.connect(self._take_calls)
        document.closed.connect(self._forget)
        for moved in (document.opened, document.policy_changed):
            moved.connect(self._ask_reaches)
        for moved in (self.model.modelReset, self.model.rowsInserted, self.model.rowsRemoved):
            moved.connect(self._join_headings)
        self.list.chosen_changed.connect(self._show)
        self.add_button.clicked.connect(lambda: self._start(self._add(None)))
        self.empty.action_requested.connect(lambda: self._start(self._add(None)))
        navigator.servers_requested.connect(lambda: self._start(self._add(None)))
        navigator.server_requested.connect(self._want)
        navigator.trust_requested.connect(self._trust_one)
        self.next_button.clicked.connect(self._go_on)
        for asked in (self.client_button.clicked, self.empty.other_requested, navigator.client_requested):
            asked.connect(lambda: self._start(self._connect_client(None)))
        tools = self.detail.tools
        tools.accept_requested.connect(lambda: self._start(self._accept()))
        tools.try_requested.connect(self._try)
        tools.results_requested.connect(self._ask_results)
        self.detail.sees.places_requested.connect(self._trust_current)
        self.detail.no_tools.action_requested.connect(self._go_to_tools)

    # what is known

    @property
    def current(self) -> CatalogRow | None:
        """The chosen server."""
        subject = self._subject
        return subject if isinstance(subject, CatalogRow) else None

    @property
    def current_host(self) -> HostStatus | None:
        """The chosen coding agent."""
        subject = self._subject
        return subject if isinstance(subject, HostStatus) else None

    @property
    def _subject(self) -> CatalogRow | HostStatus | ClientStatus | Connected | None:
        row = self.list.current
        return None if row is None else row.subject

    def choose(self, kind: str, name: str) -> None:
        """Make a row the current one, by what it stands for and its name; one that is filtered out is shown again."""
        if self.model.find((kind, name)) < 0:
            self.list.search.clear()
            self.model.search("")
        self.list.choose(self.model.find((kind, name)))

    def _want(self, key: tuple[str, str]) -> None:
        """A link from elsewhere: the row may come to be with the next look at coding agents and clients."""
        self._wanted = key
        self._choose_wanted()

    def _choose_wanted(self) -> None:
        wanted = self._wanted
        if wanted is not None and any(row.key == wanted for row in self.model.every):
            self._wanted = None
            self.choose(*wanted)

    def _forget(self) -> None:
        self._wanted, self._reaches, self._calls, self._counted = None, None, None, None
        self._asked, self._why_not = {}, {}

    def _refresh(self, _why: object = None) -> None:
        if not self.isVisible() and self.model.every:
            return
        document = self._document
        if self._of_snapshot != document.snapshot_id:
            self._of_snapshot, self._tools = document.snapshot_id, {}
            for facts in document.catalog:
                self._tools.setdefault(facts.origin, {})[facts.name] = facts
        catalogs = self.catalogs.rows
        known = self._known = Known(
            catalogs,
            self.coding_agents.found,
            self.clients.found,
            self.clients.processes,
            self._reaches,
            self._calls,
            {name: origin for origin, tools in self._tools.items() for name in tools},
            {row.catalog_id: self._proposals_of(row) for row in catalogs if row.waiting},
            document.workspace.policy_path if document.is_open else None,
        )
        rows = rows_of(known)
        self._tell_next()
        is_empty = not any(row.subject for row in rows)
        self.list.show_rows(() if is_empty else rows, is_known=known.is_whole or not document.is_open)
        self._choose_wanted()

    def _proposals_of(self, row: CatalogRow) -> Mapping[Effect, int]:
        """Count what waits of a server, once for each list of it."""
        held, now = self._proposed.get(row.catalog_id), (id(row.waiting), self._of_snapshot)
        if held is None or held[0] != now:
            found = waiting_effects(row, self._tools.get(row.catalog_id, {}))
            held = self._proposed[row.catalog_id] = now, found
        return held[1]

    def _join_headings(self, *_what: object) -> None:
        """A heading goes through all columns."""
        self.view.clearSpans()
        for at, row in enumerate(self.model.rows):
            if row.subject is None:
                self.view.setSpan(at, 0, 1, len(COLUMNS))

    def _ask_reaches(self, _changes: object = None) -> None:
        if self.isVisible() and self._document.is_open:
            self._context.tasks.start(self._work_out_reaches(), "servers.reaches", replace=True)

    async def _work_out_reaches(self) -> None:
        found = await self._context.deriver.derive_in_pieces(origins_of, _ignore)
        if found is not None and isValid(self) and found != self._reaches:
            self._reaches = found
            self._refresh()

    def _take_calls(self, recent: RecentCalls) -> None:
        self._calls = recent.tools if recent.today.stretches else None
        self._refresh()

    def _take_hosts(self) -> None:
        self._refresh()
        if self.isVisible():
            self._count_asked()

    def _look_after(self) -> None:
        if self.isVisible():
            self.clients.look()
            ago = tuple(row.last_words for row in self.model.rows)
            if ago != self._ago:
                self._ago = ago
                self.model.tell_changed()
                self._show()
            elif isinstance(self._subject, Connected):  # its facts say since when
                self._show()

    def _show(self) -> None:
        """Show the facts of the chosen row."""
        row = self.list.current
        facts: Sequence[Fact] = ()
        match None if row is None else row.subject:
            case CatalogRow() as subject if row is not None:
                name = subject.catalog_id
                reach = self._known.reach(name)
                standing = standing_of(self._document, name, self._why_not.get(name, ""))
                facts = catalog_facts(subject, row, reach, standing)
                self._look_at_confinement(name)
            case HostStatus() as subject if row is not None:
                facts = host_facts(subject, row)
            case ClientStatus() as subject if row is not None:
                facts = client_facts(subject, row)
            case Connected() as subject:
                facts = connection_facts(subject)
            case _:
                row = None
        self.detail.show_row(row, facts)
        if (server := self.current) is not None:
            digest = self.catalogs.digest(server.catalog_id) if server.is_run_here else ""
            stderr = self.catalogs.stderr(server.catalog_id) if server.is_server else ""
            tools = self._tools.get(server.catalog_id, {})
            self.detail.show_server(server, tools, definition_text(server, digest), stderr)

    def _look_at_confinement(self, catalog_id: str) -> None:
        now = catalog_id, self._document.snapshot_id
        if now != self._confined and self._document.is_open:
            self._confined = now
            self._context.tasks.start(self._find_why_not(catalog_id), "servers.confined", replace=True)

    async def _find_why_not(self, catalog_id: str) -> None:
        reach = (self._reaches or {}).get(catalog_id, OriginReach())
        why_not = await asyncio.to_thread(why_not_run, self._document, catalog_id, tuple(reach.agents))
        if isValid(self) and why_not != self._why_not.get(catalog_id, ""):
            self._why_not[catalog_id] = why_not
            self._show()

    # what can be done

    def _offer(self) -> Iterator[Verb]:
        """Offer what can be done now with the chosen row."""
        match self._subject:
            case CatalogRow() as subject:
                yield from self._offer_server(subject)
            case HostStatus() as subject:
                yield from self._offer_host(subject)
            case ClientStatus() as subject:
                file = subject.file
                words, tip = tr("Put a gate here..."), tr("Have it reach the policy instead; the change is shown first")
                if subject.is_gated:
                    words = tr("Change the gate...")
                yield Verb("servers.connect", words, lambda: self._start(self._connect_client(file)), tip, "Enter")
                if subject.servers:
                    tip = tr("Take its servers into the policy; nothing is started before you trust it")
                    yield Verb("servers.take", tr("Add its servers..."), lambda: self._start(self._add(file.path)), tip)
            case Connected() as subject:
                yield from self._offer_connected(subject)
            case _:
                return

    def _offer_server(self, row: CatalogRow) -> Iterator[Verb]:
        if not row.is_trusted:
            tip = tr("See exactly what would be started, and trust it")
            yield Verb("servers.trust", tr("Trust..."), self._trust_current, tip, "Enter")
        elif row.waits_for_places:
            tip = tr("Say which folders it gets")
            yield Verb("servers.places", tr("Places..."), self._trust_current, tip, "Enter")
        elif row.is_server and not row.is_up:
            words = tr("Try again") if row.has_failed else tr("Start")
            tip = tr("Start the server and ask for its tools")
            yield Verb("servers.start", words, partial(self._serve, "start"), tip)
        if row.is_up:
            yield Verb("servers.stop", tr("Stop"), partial(self._serve, "stop"), tr("Stop the server"))
            tip = tr("Ask the server for its tools again")
            yield Verb("servers.ask", tr("Ask for tools"), partial(self._serve, "ask"), tip)
        if row.state.catalog.command is not None and not row.state.catalog.is_confined:
            tip = tr("Have the policy hold for it again")
            yield Verb("servers.confine", tr("Confine"), lambda: verbs.confine(self._document, row.catalog_id), tip)
        if is_observed(row.state.catalog, time.time()):
            tip = tr("Deny and ask again as the policy says")
            yield Verb("servers.enforce", tr("Enforce"), lambda: self._start(self._observe()), tip)
        elif row.is_trusted:
            tip = tr("Only note for a time what would be denied or asked of its tools")
            yield Verb("servers.observe", tr("Observe..."), lambda: self._start(self._observe()), tip)
        tip = tr("Take it out of the policy")
        yield Verb("servers.remove", tr("Remove..."), lambda: self._start(self._remove()), tip, "Del")

    def _offer_host(self, host: HostStatus) -> Iterator[Verb]:
        has_gate = host.file is not None
        put = lambda: self._start(self._put_gate())  # noqa: E731
        tip = tr("Have this coding agent ask before each call; the change is shown first")
        words = tr("Change the gate...") if has_gate else tr("Put a gate here...")
        yield Verb("servers.gate", words, put, tip, "" if has_gate else "Enter")
        if not has_gate:
            return
        tip = tr("Show its calls in the log")
        yield Verb("servers.calls", tr("Show its calls"), self._show_calls, tip, "Enter")
        if (asked := self._asked.get(host.agent_id)) is not None:
            tip = tr("Show the rules that would have answered, and what else they would open")
            yield Verb(
                "servers.asked", question_words(asked), lambda: self._start(self._show_asked(host.agent_id)), tip
            )
        tip = tr("Take the gate out; its file is then as it was before")
        yield Verb("servers.ungate", tr("Remove the gate..."), lambda: self._start(self._remove_gate()), tip, "Del")

    def _offer_connected(self, one: Connected) -> Iterator[Verb]:
        if one.waits:
            tip = tr("Show the call that waits, and answer it")
            answer = partial(self._context.navigator.go_to_waiting, one.waits)
            yield Verb("servers.answer", tr("Answer its call..."), answer, tip, "Enter")
        if one.client is not None:
            agent_id = one.client.agent_id
            words = tr("Show {agent}", agent=agent_id)
            go = partial(self._go_to_agent, agent_id)
            yield Verb("servers.agent", words, go, tr("Show what it may do"), "" if one.waits else "Enter")

    def _show_calls(self) -> None:
        self._context.navigator.go_to_page("activity")

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

    def _go_to_agent(self, agent_id: str) -> None:
        if agent_id in self._document.policy.agents:
            go_to(Place("agent", agent_id), self._context.navigator, self._context.selection)
        else:
            told = tr("there is no agent `{agent}` in the policy as it is edited", agent=agent_id)
            self._document.say("info", told)

    def _ask_results(self, facts: ToolFacts) -> None:
        self._start(ask_trust(self._context, self, facts))

    def _try(self, tool: str) -> None:
        agent_id = self.catalogs.caller_of(tool, self._context.selection.agent_id)
        if agent_id is None:
            self._document.say("info", tr("a call is made for an agent: add one in Access"))
        else:
            self._context.navigator.go_to_call(agent_id, tool)

    def _start(self, work: Coroutine[object, object, None]) -> None:
        self._context.tasks.start(work, "servers", replace=True)

    def _serve(self, what: str) -> None:
        """Start, ask or stop the chosen server, beside other servers."""
        row = self.current
        if row is None:
            return
        name = row.catalog_id
        work = {"start": self._restart, "ask": self.catalogs.ask_tools, "stop": self.catalogs.stop}[what]
        self._context.tasks.start(work(name), f"servers.{name}")

    async def _add(self, path: Path | None) -> None:
        while True:
            dialog = AddDialog(self, self._document, self._context.tasks, path)
            accepted = await run_dialog(dialog)
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
                chosen.close_groups(chosen.closed_groups | groups_to_close(self._document))
            self._refresh()
            self.choose("catalog", added[0])
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

    def _go_to_tools(self) -> None:
        """Do what brings the tools of the chosen server: trust it, give it its places, start it."""
        row = self.current
        if row is not None and row.is_trusted and not row.waits_for_places:
            self._serve("start")
        else:
            self._trust_current()

    def _trust_one(self, catalog_id: str) -> None:
        """A link from elsewhere: the catalog with the question."""
        self._refresh()
        self.choose("catalog", catalog_id)
        self._trust_current()

    async def _trust(self, rows: list[CatalogRow]) -> None:
        """Ask whether servers are trusted, with which places, and start those that are, all at once."""
        if not rows:
            return
        asked = self._proposals(rows)
        is_trusted = all(row.is_trusted for row in rows)
        dialog = TrustDialog(self, self._document, self._context.tasks, asked, is_trusted=is_trusted)
        if not await run_dialog(dialog):
            return
        ids = [row.catalog_id for row in rows]
        if self._proposals([row for row in self.catalogs.rows if row.catalog_id in ids]) != asked:
            told = tr("what would be started was changed meanwhile: nothing was trusted. Look at it again")
            self._document.say("warning", told)
        elif verbs.set_places(self._document, dialog.places) and self.catalogs.trust(ids):
            for catalog_id in ids:
                self._context.tasks.start(self._restart(catalog_id), f"servers.{catalog_id}")

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
        await self.catalogs.accept(self.detail.tools.model.ticked, self.detail.tools.chosen_tier)

    async def _accept_all(self) -> None:
        waiting = {row.catalog_id: row.waiting for row in self._waiting}
        dialog = AcceptDialog(
            self, self._waiting, {name: one for part in self._tools.values() for name, one in part.items()}
        )
        if not await run_dialog(dialog):
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
            if not await run_dialog(dialog):
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
        title = tr("Remove {catalog}?", catalog=row.catalog_id)
        if await ask(self, title, text, choices, icon="trash", role="ask") == "remove":
            verbs.remove_catalog(self._document, row.state.catalog)

    async def _connect_client(self, chosen: ClientFile | None) -> None:
        if await connect_client(self, self._context, chosen) is not None:
            self.clients.look()

    # gates before coding agents

    async def _put_gate(self) -> None:
        status = self.current_host
        if status is None:
            return
        change = await put_gate(self, self._context, status)
        if change is not None:
            self.coding_agents.look()
            told = tr("{agent} asks the gate before each call: {file}", agent=status.title, file=change.file.path)
            self._document.say("info", told)

    async def _remove_gate(self) -> None:
        status = self.current_host
        if status is None:
            return
        try:
            change = edit_to_remove(status)
        except GatewrightError as error:
            self._document.say("error", str(error))
            return
        text = tr("Nobody decides its calls then. {file} is as it was before.", file=change.file.path)
        choices = (Choice("keep", tr("Keep it")), Choice("remove", tr("Remove"), "danger"))
        title = tr("Remove the gate before {agent}?", agent=status.title)
        if await ask(self, title, text, choices, icon="shield-alert", role="ask") == "remove":
            self.coding_agents.write(change)

    def _count_asked(self) -> None:
        """Count again once a coding agent of this policy has made further calls."""
        here = self._document.workspace.policy_path if self._document.is_open else None
        found = self.coding_agents.found or ()
        gated = {one.agent_id: one.calls_today for one in found if one.policy == here and one.agent_id}
        if here is not None and gated != self._counted:
            self._counted = gated
            self._context.tasks.start(self._work_out_asked(tuple(gated)), "servers.asked", replace=True)

    async def _work_out_asked(self, agents: tuple[str, ...]) -> None:
        since_s = datetime.now().astimezone().replace(hour=0, minute=0, second=0, microsecond=0).timestamp()
        found: dict[str, AskedToday] = {}
        for agent_id in agents:
            with suppress(GatewrightError):  # the log itself says why it cannot be read
                asked = await self._context.deriver.derive_in_pieces(questions_today, _ignore, agent_id, since_s)
                if asked is not None and asked.asked:
                    found[agent_id] = asked
        if isValid(self):
            self._asked = found
            self.list.tell()

    async def _show_asked(self, agent_id: str) -> None:
        dialog = AskedDialog(self, agent_id, self._asked[agent_id])
        if not await run_dialog(dialog) or dialog.chosen is None:
            return
        mending = await asyncio.to_thread(mending_of, self._document.workspace, dialog.chosen)
        if mending is None:
            self._document.say("warning", tr("the policy has changed meanwhile: look at the rules again"))
        elif self._document.push(mending.make):
            self._document.say("info", plain(mending.words), can_undo=True)
        self._counted = None
        self._count_asked()


def _ignore(_progress: object) -> None:
    """Nobody looks at how far it is."""


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
