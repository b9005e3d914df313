"""The servers and other catalogs of the open policy as they are now; starts them, asks them, accepts their tools."""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import Literal

from PySide6.QtCore import QObject, Signal
from shiboken6 import isValid

from gatewright.workspace.api import (
    Catalog,
    CatalogState,
    CatalogType,
    GatewrightError,
    Pin,
    PlaceUse,
    SafetyTier,
    ServerState,
    ServerStatus,
    Waiting,
    Workspace,
    frozen,
    waiting,
)
from gatewright_gui.qt.language import mark, tr
from gatewright_gui.qt.task import TaskOwner
from gatewright_gui.session.document import Document
from gatewright_gui.session.verbs.operations import lists_tool

Tone = Literal["allow", "ask", "deny", "muted", "accent"]
__all__ = [
    "Catalog",
    "CatalogRow",
    "Catalogs",
    "SafetyTier",
    "Waiting",
]

_STATUS: Mapping[ServerStatus, tuple[str, str, Tone]] = {
    ServerStatus.NOT_TRUSTED: (mark("not trusted"), "lock", "ask"),
    ServerStatus.STOPPED: (mark("ready"), "circle-dot", "muted"),
    ServerStatus.STARTING: (mark("starting"), "clock", "accent"),
    ServerStatus.RUNNING: (mark("running"), "circle-check", "allow"),
    ServerStatus.RESTARTING: (mark("restarting"), "rotate-ccw", "ask"),
    ServerStatus.FAILED: (mark("failed"), "circle-x", "deny"),
}
_UP = frozenset({ServerStatus.STARTING, ServerStatus.RUNNING, ServerStatus.RESTARTING})


@frozen
class CatalogRow:
    """A catalog as it stands now; ``server`` None: its tools are run one call at a time, or by another program."""

    state: CatalogState
    server: ServerState | None
    waiting: tuple[Waiting, ...]

    @property
    def catalog_id(self) -> str:
        """The id of the catalog."""
        return self.state.catalog.catalog_id

    @property
    def has_failed(self) -> bool:
        """True if its server could not be started, or ended by itself."""
        return self.server is not None and self.server.status is ServerStatus.FAILED

    @property
    def waits_for_places(self) -> bool:
        """True if somebody has to say which folders it gets before it is started."""
        return self.state.catalog.waits_for_places

    @property
    def fault(self) -> str:
        """The fault of its manifest as it lies on the disk; empty where nothing is wrong."""
        return self.state.fault

    @property
    def is_server(self) -> bool:
        """True for an MCP server, which can be started."""
        return self.server is not None

    @property
    def is_run_here(self) -> bool:
        """True if its tools run here, once what runs them is trusted."""
        return self.state.is_trusted is not None

    @property
    def is_trusted(self) -> bool:
        """True if it may be started."""
        return self.state.is_trusted is not False

    @property
    def is_up(self) -> bool:
        """True if it runs or is about to."""
        return self.server is not None and self.server.status in _UP

    @property
    def status(self) -> tuple[str, str, Tone]:
        """Words, an icon and a colour for its state."""
        if self.fault:
            return (tr("cannot be read"), "circle-x", "deny")
        if not self.is_run_here:
            return (tr("run elsewhere"), "package", "muted")
        if self.waits_for_places and self.is_trusted:
            return tr("off: needs folders"), "lock", "ask"
        if self.server is None and self.is_trusted:
            return tr("on"), "circle-check", "allow"
        if self.server is None:
            return tr("not trusted"), "lock", "ask"
        if self.server.status is ServerStatus.STOPPED and self.state.pin is None:
            return tr("not started yet"), "circle-dot", "muted"
        words, icon, tone = _STATUS[self.server.status]
        return tr(words), icon, tone

    @property
    def held_count(self) -> int:
        """The number of tools that wait to be accepted; `waiting` says a moment later what each would count as."""
        return len(self.state.pin.drift.names) if self.state.pin is not None else 0


class Catalogs(QObject):
    """Tells whenever something about the catalogs changed; answers come in the thread of the window."""

    changed = Signal()
    _told = Signal()
    """A server's state changed, in a thread of the engine."""

    def __init__(self, document: Document, tasks: TaskOwner, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._document, self._tasks = document, tasks
        self._waiting: dict[str, tuple[Pin, bool, tuple[Waiting, ...]]] = {}
        """Results by pin: each tool that waits takes a millisecond."""
        self._pins: tuple[object, ...] = ()
        self._leave: Callable[[], None] = _nothing
        self._told.connect(self._look)
        document.closed.connect(self._follow)
        document.opened.connect(self._follow)
        document.policy_changed.connect(self._tell_changed)
        self._follow()

    @property
    def rows(self) -> tuple[CatalogRow, ...]:
        """The catalogs in the order of the policy."""
        if not self._document.is_open:
            return ()
        workspace = self._document.workspace
        servers = workspace.servers.states
        return tuple(
            CatalogRow(
                state,
                servers.get(state.catalog.catalog_id) if state.catalog.kind is CatalogType.MCP else None,
                self._waiting_of(state) or (),
            )
            for state in workspace.catalog_states()
        )

    def _waiting_of(self, state: CatalogState) -> tuple[Waiting, ...] | None:
        """The tools of a catalog that wait; None: still to be worked out."""
        pin, kept = state.pin, self._waiting.get(state.catalog.catalog_id)
        if pin is None or pin.drift.is_empty:
            return ()
        fits = kept is not None and kept[0] is pin and kept[1] == state.catalog.trusted
        return kept[2] if kept is not None and fits else None

    @property
    def _unknown(self) -> CatalogState | None:
        """A catalog of which is still to be worked out what waits."""
        states = self._document.workspace.catalog_states() if self._document.is_open else ()
        return next((state for state in states if self._waiting_of(state) is None), None)

    async def _work_out(self) -> None:
        """Beside the window, one catalog after the other."""
        while isValid(self) and (state := self._unknown) is not None and (pin := state.pin) is not None:
            trusted = state.catalog.trusted
            found = await asyncio.to_thread(waiting, pin, trusted=trusted)
            self._waiting[state.catalog.catalog_id] = pin, trusted, found
            if isValid(self):
                self.changed.emit()

    def _tell_changed(self) -> None:
        """Whoever shows rows looks again; what is still to be worked out is begun."""
        if "servers.waiting" not in self._tasks.names and self._unknown is not None:
            self._tasks.start(self._work_out(), "servers.waiting")
        self.changed.emit()

    def caller_of(self, tool_name: str, chosen: str | None) -> str | None:
        """An agent that lists a tool, the chosen one before others; without any that one, else the first."""
        agents = sorted(self._document.agents, key=lambda agent: agent.agent_id != chosen)
        facts = next((tool for tool in self._document.catalog if tool.name == tool_name), None)
        listing = [agent for agent in agents if facts is not None and lists_tool(agent.tools, facts)]
        return next((agent.agent_id for agent in (*listing, *agents)), None)

    def places(self, catalog: Catalog) -> Mapping[str, PlaceUse]:
        """The places that the process of a server gets, or seems to need where nobody accepted any yet."""
        held = catalog.places
        return self._document.workspace.proposed_places(catalog) if held is None else held

    def digest(self, catalog_id: str) -> str:
        """The digest of what is trusted when a server is trusted."""
        return self._document.workspace.server_digest(catalog_id)

    def stderr(self, catalog_id: str) -> str:
        """The end of what a server wrote on its standard error."""
        return self._document.workspace.servers.stderr(catalog_id)

    def trust(self, catalog_ids: Sequence[str]) -> bool:
        """Remember that servers may be started. A failure is said."""
        try:
            for catalog_id in catalog_ids:
                self._document.workspace.trust_server(catalog_id)
        except GatewrightError as error:
            self._document.say("error", str(error))
            return False
        self.changed.emit()
        servers = ", ".join(catalog_ids)
        told = tr("{servers} may be started now; agents use what Access switches on", servers=servers)
        self._document.noted.emit(told)
        return True

    async def ask_tools(self, catalog_id: str) -> None:
        """Start a server where it does not run, and take in what tools it lists; why it failed is in its state.

        Of a catalog without a server what its manifest lists, and a failure is said.
        """
        workspace = self._document.workspace
        try:
            await workspace.catalog_tools.refresh(catalog_id)
        except GatewrightError as error:
            if isValid(self) and catalog_id not in workspace.servers.states:
                self._document.say("error", str(error))
        if isValid(self):
            self._look()

    async def stop(self, catalog_id: str) -> None:
        """Stop a server."""
        await self._document.workspace.servers.stop(catalog_id)

    async def restart(self, catalog_id: str, *, scripts: bool = False) -> None:
        """Stop a server and start it, whatever failed before; `scripts`: the install scripts of its package run.

        Of a catalog without a server its manifest is read.
        """
        servers = self._document.workspace.servers
        with suppress(GatewrightError):
            if catalog_id in servers.states:
                await servers.restart(catalog_id, scripts=scripts)
            await self.ask_tools(catalog_id)
        if isValid(self):
            self._look()

    def left_out_scripts(self, catalog_id: str) -> tuple[str, ...]:
        """The packages whose install scripts somebody has to decide about."""
        with suppress(GatewrightError):
            return self._document.workspace.servers.left_out_scripts(catalog_id)
        return ()

    async def accept(self, chosen: Mapping[str, Collection[str]], tier: SafetyTier | None = None) -> None:
        """Accept tools, by catalog, as their servers list them; ``tier`` None: as it is proposed for each.

        What fails of one catalog is said, and leaves the others alone.
        """

        def accept_all() -> list[str]:
            return [why for one, names in chosen.items() if (why := _accept(workspace, one, names, tier))]

        workspace = self._document.workspace
        for why in await self._document.in_worker(accept_all):
            self._document.say("error", why)
        self._look()

    def end(self) -> None:
        """Listen no more."""
        self._leave()
        self._leave = _nothing

    def _follow(self) -> None:
        self.end()
        if self._document.is_open:
            self._leave = self._document.workspace.servers.subscribe(self._tell)
            self._pins = self._pins_now()
        self._tell_changed()

    def _tell(self) -> None:
        if isValid(self):
            self._told.emit()

    def _look(self) -> None:
        """Tools that came, went or were accepted change what agents see: the whole window follows."""
        pins = self._pins_now()
        if pins != self._pins:
            self._pins = pins
            self._document.tell_tools_changed()
        self._tell_changed()

    def _pins_now(self) -> tuple[object, ...]:
        if not self._document.is_open:
            return ()
        return tuple((state.catalog.catalog_id, state.pin) for state in self._document.workspace.catalog_states())


def _accept(workspace: Workspace, catalog_id: str, names: Collection[str], tier: SafetyTier | None) -> str:
    """Accept tools of one catalog; why it failed, empty when it did not."""
    pin = workspace.pin(catalog_id)
    tiers = {(name, ""): tier for name in names if tier is not None and pin and name in pin.listing.definitions}
    words = pin is not None and pin.drift.instructions
    try:
        workspace.accept_tools(catalog_id, names, tiers=tiers, instructions=words, who="operator")
    except GatewrightError as error:
        return tr("catalog `{catalog}`: {reason}", catalog=catalog_id, reason=error)
    return ""


def _nothing() -> None:
    """Nothing to end."""
