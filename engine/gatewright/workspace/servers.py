"""The MCP servers of a workspace: starts them, stops them, and calls their tools.

The operator starts a server, or the first allowed call of one of its tools does, and never before somebody has trusted
its exact definition. A process starts in a room; agents with another confinement get a process of their own, and a
process whose confinement is outdated ends at once.
"""

from __future__ import annotations

import logging
import os
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from gatewright.adapters.confine import Confiner, Room
from gatewright.adapters.mcp_client import McpServer, ServerList, ServerRefused, ServerState, ServerStatus
from gatewright.adapters.mcp_transport import Confined, Endpoint, NotConfined, ServerFailed
from gatewright.adapters.package_runner import read_runner
from gatewright.adapters.server_install import Installed, ScriptsNeeded, ServerInstaller, scripts_advice
from gatewright.adapters.server_process import Command
from gatewright.base.errors import ToolFailure, WorkspaceError
from gatewright.base.jsonvalue import JsonValue
from gatewright.base.late import in_own_thread
from gatewright.policy.document import Catalog, CatalogType, Confine
from gatewright.policy.target import Confinement
from gatewright.record.process import fork_safe_lock
from gatewright.sources.roomplan import Mount, MountKind
from gatewright.tools.context import ToolExecutionContext
from gatewright.tools.pin import Listing, Pin
from gatewright.tools.server_tool import check_answer
from gatewright.workspace.commandfiles import shim_fault
from gatewright.workspace.trust import NOT_TRUSTED, WAITS_FOR_PLACES, require_accepted

PASSED_ON = ("PATH", "HOME", "LANG")
"""Environment variables that every server gets; its catalog must name all others."""
_UNREACHABLE = "the server of this tool cannot be reached now; try again later or go on without it"
_UNCONFINED = "the limits of this tool cannot be enforced here, so it does not start; go on without it"
_CHANGED = "its confinement changed"
_STOPPED = "its agents were stopped"

_Key = tuple[object, ...]
_Made = tuple[str, _Key, Confinement | None]
"""A catalog's id, its definition, and the confinement of its process."""
INSTALLED = "/run/gatewright/server"
"""The path in a room of a package that we installed, since the state folder is hidden there."""
_PROMINENCE = (
    ServerStatus.RUNNING,
    ServerStatus.STARTING,
    ServerStatus.RESTARTING,
    ServerStatus.FAILED,
    ServerStatus.STOPPED,
)
_log = logging.getLogger(__name__)


class Servers:
    """The servers of one workspace's catalogs, by catalog id; any thread and any loop may use it.

    A request without an agent goes to a running process, else to one with the places and without a host. ``catalogs``
    returns those of the present policy, ``pin`` the accepted tools of one, ``trusts`` judges its definition, ``record``
    stores a server's listing, so that unaccepted tools are held. ``state``: the state folder, below which packages of
    servers are installed. ``confinement`` returns that of a catalog's process for an agent (empty: none), ``agents``
    the existing agents, ``confiner`` enforces it. ``began`` is called when an agent uses one.
    """

    def __init__(
        self,
        folder: Path,
        catalogs: Callable[[], Iterable[Catalog]],
        *,
        pin: Callable[[Catalog], Pin | None],
        trusts: Callable[[Catalog], bool],
        record: Callable[[str, Listing], Pin],
        state: Path,
        agents: Callable[[], Iterable[str]],
        confinement: Callable[[str, str], Confinement | None],
        confiner: Callable[[], Confiner],
        began: Callable[[], None] = lambda: None,
    ) -> None:
        self._folder, self._catalogs, self._pin, self._trusts, self._record = folder, catalogs, pin, trusts, record
        self._lock = fork_safe_lock()
        self._agents, self._confinement, self._confiner = agents, confinement, confiner
        self._made: dict[_Made, McpServer] = {}
        self._users: dict[_Made, set[str]] = {}
        self._began = began
        self._rooms: dict[_Made, Room] = {}
        self._lists: dict[_Made, tuple[ServerList, Listing]] = {}
        self._changed: set[str] = set()
        self._ended: dict[str, str] = {}
        self._watchers: tuple[Callable[[], None], ...] = ()
        self._lent: dict[tuple[str, _Key], Mapping[str, str]] = {}
        self._installer, self._installed = ServerInstaller(state), dict[tuple[str, _Key], Installed]()
        self._needed: dict[tuple[str, _Key], tuple[str, ...]] = {}
        self._with_scripts: set[str] = set()

    @property
    def states(self) -> Mapping[str, ServerState]:
        """Return the state of each server, in the order of the policy."""
        return {catalog.catalog_id: self._state(catalog) for catalog in self._of_servers()}

    def stderr(self, catalog_id: str) -> str:
        """Return the end of a server's standard error, as printable text."""
        return "".join(server.stderr for server in self._of(catalog_id).values())

    def subscribe(self, watcher: Callable[[], None]) -> Callable[[], None]:
        """Call ``watcher``, in a thread of ours, whenever a state changes; the result ends that."""
        with self._lock:
            self._watchers = (*self._watchers, watcher)

        def leave() -> None:
            with self._lock:
                self._watchers = tuple(one for one in self._watchers if one is not watcher)

        return leave

    def lend(self, catalog_id: str, values: Mapping[str, str]) -> None:
        """Set values for variables of a catalog, such as those of a client's file, in memory only.

        They override the environment, and only the server as the policy defines it now gets them.
        """
        catalog = self._catalog(catalog_id)
        self._lent[catalog_id, _key_of(catalog)] = dict(values)

    def variables(self, catalog: Catalog) -> dict[str, str]:
        """Return a catalog's variables with their present values. Raises ServerFailed."""
        lent = self._lent.get((catalog.catalog_id, _key_of(catalog)), {})
        return {name: _variable(name, lent) for name in catalog.env}

    def headers(self, catalog: Catalog) -> dict[str, str]:
        """Return a catalog's headers with their present values. Raises ServerFailed."""
        lent = self._lent.get((catalog.catalog_id, _key_of(catalog)), {})
        return {header: _variable(name, lent) for header, name in catalog.headers_env.items()}

    async def install(
        self, catalog_id: str, *, scripts: bool = False, tell: Callable[[str], None] = lambda _: None
    ) -> Installed | None:
        """Install the package that a catalog's command names, unless it exists; None if it names none.

        ``scripts``: its install scripts may run; ``tell`` gets the progress, in a thread of ours. Raises ServerFailed.
        """
        return await self._install(self._catalog(catalog_id), tell, scripts=scripts)

    async def start(self, catalog_id: str) -> None:
        """Start a server, or connect to it. Raises ServerFailed."""
        await self._server(self._key(catalog_id)).start()

    async def stop(self, catalog_id: str) -> None:
        """Stop a running server with all its processes. The next allowed call starts it again."""
        for server in self._of(catalog_id).values():
            await server.stop()

    async def restart(self, catalog_id: str, *, scripts: bool = False) -> None:
        """Stop a server and start it, despite earlier failures. Raises ServerFailed.

        ``scripts``: if install scripts were omitted, install its package again and run them.
        """
        await self.stop(catalog_id)
        if scripts:
            self._with_scripts.add(catalog_id)
        try:
            await self.start(catalog_id)
        finally:
            self._with_scripts.discard(catalog_id)

    def left_out_scripts(self, catalog_id: str) -> tuple[str, ...]:
        """List the packages whose omitted install scripts need a decision, since the server was just installed, or
        failed.
        """
        catalog = self._catalog(catalog_id)
        key = catalog_id, _key_of(catalog)
        installed = self._installed.get(key)
        if key in self._needed or installed is None:
            return self._needed.get(key, ())
        has_failed = self._state(catalog).status is ServerStatus.FAILED
        return installed.scripts if installed.is_new or has_failed else ()

    async def list(self, catalog_id: str, agent_id: str = "") -> Listing:
        """Ask a server for its description and tools; start it if necessary. Raises ServerFailed."""
        key = self._key(catalog_id, agent_id)
        said = await self._server(key).list()
        held = self._lists.get(key)
        if held is not None and held[0] is said:
            return held[1]
        about = {"name": said.name, "version": said.version, "instructions": said.instructions}
        installed = self._installed.get((catalog_id, _key_of(self._catalog(catalog_id))))
        if installed is not None:
            about |= {"package": installed.package.requirement, "package_version": installed.version}
        listing = await in_own_thread(lambda: Listing.of(list(said.tools), **about))
        self._lists[key] = said, listing
        return listing

    async def refresh(self, catalog_id: str) -> Pin:
        """Ask a server for its present list, and hold the tools that nobody has accepted, in the policy in force too.

        Raises ServerFailed, WorkspaceError if the pin cannot be written, PolicyInvalid if the policy could not be
        loaded with it.
        """
        return await in_own_thread(self._record, catalog_id, await self.list(catalog_id))

    async def run(
        self, catalog_id: str, name: str, arguments: Mapping[str, JsonValue], context: ToolExecutionContext
    ) -> dict[str, JsonValue]:
        """Execute a tool for the gate and return the whole `CallToolResult`. Raises ToolFailure.

        A tool whose present listing differs from the accepted one is refused.
        """
        try:
            self._use(self._key(catalog_id, context.agent_id), context.agent_id)
            listing, catalog = await self.list(catalog_id, context.agent_id), self._catalog(catalog_id)
            await require_accepted(name, catalog, listing, self._pin(catalog), self._record)
            key = self._key(catalog_id, context.agent_id)
            self._use(key, context.agent_id)
            server = self._server(key)
            if (room := self._rooms.get(key)) is not None:
                room.served.add(context.agent_id)
                await room.check()
            answer = await server.call(name, arguments, on_progress=context.progress)
        except ServerRefused as error:
            raise ToolFailure(str(error)) from None
        except NotConfined as error:
            detail = f"catalog `{catalog_id}`: {error}"
            raise ToolFailure(_UNCONFINED, code="not-confined", detail=detail) from None
        except WorkspaceError as error:
            detail = f"catalog `{catalog_id}`: {error}"
            raise ToolFailure(_UNREACHABLE, code="server-failed", detail=detail) from None
        return check_answer(answer)

    def follow(self) -> None:
        """Begin to stop the servers whose catalogs the policy has dropped or redefined.

        A process with an outdated confinement is killed before this returns; the next call starts a new one.
        """
        keys = {catalog.catalog_id: _key_of(catalog) for catalog in self._of_servers()}
        for key, server in self._take_out(lambda made: keys.get(made[0]) == made[1] and self._holds(made)).items():
            room = self._rooms.get(key)
            if room is not None:
                room.end(_CHANGED)
            was_free = keys.get(key[0]) == key[1] and server.state.status is ServerStatus.RUNNING
            if room is not None or was_free:
                with self._lock:
                    self._changed.add(key[0])
                    self._ended |= {key[0]: _CHANGED} if key[0] in keys else {}
                _log.warning("ended the server of catalog `%s`: %s; the next call starts it anew", key[0], _CHANGED)
            server.begin_stop()

    @property
    def is_used(self) -> bool:
        """True while a server runs that agents use."""
        return bool(self._users)

    async def end_of(self, is_stopped: Callable[[str], bool]) -> None:
        """End the servers that only stopped agents use."""
        for key, users in tuple(self._users.items()):
            server = self._made.get(key)
            if server is not None and all(map(is_stopped, users)):
                if (room := self._rooms.get(key)) is not None:
                    room.end(_STOPPED)
                await server.stop()
            if server is None or server.state.status in {ServerStatus.STOPPED, ServerStatus.FAILED}:
                self._users.pop(key, None)

    def _use(self, key: _Made, agent_id: str) -> None:
        self._users.setdefault(key, set()).add(agent_id)
        self._began()

    def take_ended(self) -> Mapping[str, str]:
        """Return the servers that `follow` ended since the last call of this, by catalog, with the reason."""
        with self._lock:
            ended, self._ended = self._ended, {}
        return ended

    def close(self) -> None:
        """Stop all servers; wait a few seconds at most."""
        gone = self._take_out(lambda _: False).values()
        for server in gone:
            server.begin_stop()
        for server in gone:
            server.close()

    def _state(self, catalog: Catalog) -> ServerState:
        own = _key_of(catalog)
        states = [server.state for key, server in self._of(catalog.catalog_id).items() if key[1] == own]
        if states:
            return min(states, key=lambda state: _PROMINENCE.index(state.status))
        if not self._trusts(catalog):
            return ServerState(ServerStatus.NOT_TRUSTED, *NOT_TRUSTED)
        return ServerState(reason=_CHANGED if catalog.catalog_id in self._changed else "")

    def _of(self, catalog_id: str) -> dict[_Made, McpServer]:
        """Return the servers of a catalog, one for each confinement."""
        with self._lock:
            return {key: server for key, server in self._made.items() if key[0] == catalog_id}

    def _holds(self, made: _Made) -> bool:
        """Tell whether a server's confinement is still in use."""
        catalog_id, _, confinement = made
        return any(self._confinement(agent_id, catalog_id) == confinement for agent_id in ("", *self._agents()))

    def _of_servers(self) -> list[Catalog]:
        return [catalog for catalog in self._catalogs() if catalog.kind is CatalogType.MCP]

    def _catalog(self, catalog_id: str) -> Catalog:
        found = next((catalog for catalog in self._of_servers() if catalog.catalog_id == catalog_id), None)
        if found is None:
            raise ServerFailed(f"the policy has no catalog `{catalog_id}` of type `mcp`")
        return found

    def _key(self, catalog_id: str, agent_id: str = "") -> _Made:
        """Return the key of an agent's server as of now; without an agent, of a running one. Raises ServerFailed."""
        own = _key_of(self._catalog(catalog_id))
        if not agent_id:
            for key, server in self._of(catalog_id).items():
                if key[1] == own and server.state.status is ServerStatus.RUNNING:
                    return key
        try:
            return catalog_id, own, self._confinement(agent_id, catalog_id)
        except ServerFailed:
            raise
        except WorkspaceError as error:
            raise ServerFailed(str(error)) from None

    def _server(self, key: _Made) -> McpServer:
        """Return the server of that key. Raises ServerFailed if its catalog is gone."""
        catalog = self._catalog(key[0])
        with self._lock:
            self._changed.discard(key[0])
            if key not in self._made:
                for old in [one for one in self._made if one[0] == key[0] and one[1] != key[1]]:
                    self._made.pop(old).begin_stop()
                server = self._made[key] = McpServer(lambda: self._target(key, catalog, server), self._tell)
            return self._made[key]

    @asynccontextmanager
    async def _target(
        self, key: _Made, catalog: Catalog, server: McpServer
    ) -> AsyncGenerator[Command | Confined | Endpoint]:
        """Open the command to start, or the address to reach, for a catalog, while the context lasts.

        Raises ServerFailed.
        """
        server.advice = ""
        if not self._trusts(catalog):
            raise ServerFailed(*NOT_TRUSTED)
        if catalog.waits_for_places:
            raise ServerFailed(*WAITS_FOR_PLACES)
        if catalog.url is not None:
            yield Endpoint(catalog.url, self.headers(catalog))
            return
        scripts = catalog.catalog_id in self._with_scripts
        installed, confinement = await self._install(catalog, server.tell, scripts=scripts), key[2]
        if installed is not None and installed.scripts:
            server.advice = scripts_advice(installed.scripts)
        named = self.variables(catalog)
        secrets = tuple(value for name, value in named.items() if name not in PASSED_ON)
        words = (catalog.command or "", *catalog.args)
        if confinement is None:
            usual = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
            words = words if installed is None else (*installed.command, *installed.package.arguments)
            folder = self._folder / (catalog.cwd or ".")
            yield Command(words[0], words[1:], {**usual, **named}, folder, secrets=secrets)
            return
        if installed is not None:
            words = (*installed.at(INSTALLED), *installed.package.arguments)
            confinement = replace(confinement, programs=installed.reads)
        elif (fault := shim_fault(words[0], self._folder / (catalog.cwd or "."))) is not None:
            raise ServerFailed(*fault)
        own = {name: value for name, value in named.items() if name not in PASSED_ON}
        mounts = () if installed is None else (Mount(MountKind.READ, INSTALLED, origin=installed.folder),)
        try:
            room = self._rooms[key] = await self._confiner().room(confinement, mounts)
        except ToolFailure as error:
            raise NotConfined(str(error), error.detail) from None
        try:
            yield Confined(Command(words[0], words[1:], own, room.start, secrets=secrets), room)
        finally:
            del self._rooms[key]
            await room.close()

    async def _install(
        self, catalog: Catalog, tell: Callable[[str], None], *, scripts: bool = False
    ) -> Installed | None:
        """Install a catalog's package in the version that the catalog names, else that of its pin, else the newest."""
        if not self._trusts(catalog):
            raise ServerFailed(*NOT_TRUSTED)
        package = None if catalog.command is None else read_runner(catalog.command, catalog.args)
        if package is None:
            return None
        pin = self._pin(catalog)
        is_same = pin is not None and pin.listing.package == package.requirement
        version = pin.listing.package_version if pin is not None and is_same else ""
        confiner = None if catalog.confine is Confine.NONE else self._confiner()
        key = catalog.catalog_id, _key_of(catalog)
        self._needed.pop(key, None)
        try:
            installed = await self._installer.install(package, version, confiner=confiner, scripts=scripts, tell=tell)
        except ScriptsNeeded as error:
            self._needed[key] = error.packages
            raise
        self._installed[key] = installed
        return installed

    def _tell(self) -> None:
        for watcher in self._watchers:
            watcher()

    def _take_out(self, stays: Callable[[_Made], bool]) -> dict[_Made, McpServer]:
        with self._lock:
            gone = {key: server for key, server in self._made.items() if not stays(key)}
            for key in gone:
                del self._made[key]
                self._lists.pop(key, None)
        return gone


def _key_of(catalog: Catalog) -> _Key:
    """Return the values on which a connection depends."""
    how = (catalog.command, catalog.args, catalog.env, catalog.cwd)
    return (*how, catalog.url, tuple(sorted(catalog.headers_env.items())))


def _variable(name: str, lent: Mapping[str, str]) -> str:
    value = lent.get(name, os.environ.get(name))
    if value is None:
        raise ServerFailed(f"the environment variable `{name}`, which the catalog passes on, is not set")
    return value
