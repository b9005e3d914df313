"""The MCP servers of a workspace: what starts and stops them, and what calls their tools.

Nothing starts by itself: a server is started by the operator, or by the first allowed call of one of its tools, and
never before its exact definition was trusted. A process is started in a room; agents for whom another confinement
holds are served by another process, and one that holds no more is ended at once.
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
from gatewright.base.thread import in_own_thread
from gatewright.policy.document import Catalog, CatalogType, Confine
from gatewright.policy.target import Confinement
from gatewright.record.process import fork_safe_lock
from gatewright.sources.roomplan import Mount, MountKind
from gatewright.tools.context import ToolExecutionContext
from gatewright.tools.pin import Listing, Pin
from gatewright.tools.server_tool import checked_answer
from gatewright.workspace.commandfiles import shim_fault
from gatewright.workspace.trust import NOT_TRUSTED, WAITS_FOR_PLACES, require_accepted

PASSED_ON = ("PATH", "HOME", "LANG")
"""The environment variables that every server gets; all others must be named by its catalog."""
_UNREACHABLE = "the server of this tool cannot be reached now; try again later or go on without it"
_UNCONFINED = "what this tool may reach cannot be held here, so it is not started; go on without it"
_CHANGED = "what it may reach was changed"

_Key = tuple[object, ...]
_Made = tuple[str, _Key, Confinement | None]
"""A catalog by its id, what starts it, and what holds for its process."""
INSTALLED = "/run/gatewright/server"
"""The path in a room of a package that we installed: the state folder, in which it lies, is hidden there."""
_PROMINENCE = (
    ServerStatus.RUNNING,
    ServerStatus.STARTING,
    ServerStatus.RESTARTING,
    ServerStatus.FAILED,
    ServerStatus.STOPPED,
)
_log = logging.getLogger(__name__)


class Servers:
    """The servers of the catalogs of one workspace, by the ids of these; any thread and any loop may use it.

    What is said of no agent is for a process that is there, else for one that gets the places and no host.
    ``catalogs`` are those of the policy as it is now, ``pin`` says what was accepted of one, ``trusts`` whether its
    definition was trusted, ``record`` keeps what a server lists, so that what is not accepted is held. ``state``: the
    state folder, below which packages of servers are installed. ``confinement`` says what holds for the process of a
    catalog that serves an agent (empty: none), ``agents`` which there are, ``confiner`` has it hold.
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
    ) -> None:
        self._folder, self._catalogs, self._pin, self._trusts, self._record = folder, catalogs, pin, trusts, record
        self._lock = fork_safe_lock()
        self._agents, self._confinement, self._confiner = agents, confinement, confiner
        self._made: dict[_Made, McpServer] = {}
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
        """Where each server is in its life, in the order of the policy."""
        return {catalog.catalog_id: self._state(catalog) for catalog in self._of_servers()}

    def stderr(self, catalog_id: str) -> str:
        """The end of what a server wrote on its standard error, as text that can be shown."""
        return "".join(server.stderr for server in self._of(catalog_id).values())

    def subscribe(self, watcher: Callable[[], None]) -> Callable[[], None]:
        """Call ``watcher``, in a thread of ours, whenever a state changes; what is returned ends that."""
        with self._lock:
            self._watchers = (*self._watchers, watcher)

        def leave() -> None:
            with self._lock:
                self._watchers = tuple(one for one in self._watchers if one is not watcher)

        return leave

    def lend(self, catalog_id: str, values: Mapping[str, str]) -> None:
        """Values for variables that a catalog names, such as a client's file has them, kept in memory alone.

        They come before the environment, and go to the server as the policy defines it now and to no other.
        """
        catalog = self._catalog(catalog_id)
        self._lent[catalog_id, _key_of(catalog)] = dict(values)

    def variables(self, catalog: Catalog) -> dict[str, str]:
        """The variables that a catalog names, with the values that they have now. Raises ServerFailed."""
        lent = self._lent.get((catalog.catalog_id, _key_of(catalog)), {})
        return {name: _variable(name, lent) for name in catalog.env}

    def headers(self, catalog: Catalog) -> dict[str, str]:
        """The headers of a catalog, with the values that they have now. Raises ServerFailed."""
        lent = self._lent.get((catalog.catalog_id, _key_of(catalog)), {})
        return {header: _variable(name, lent) for header, name in catalog.headers_env.items()}

    async def install(
        self, catalog_id: str, *, scripts: bool = False, tell: Callable[[str], None] = lambda _: None
    ) -> Installed | None:
        """Install the package that the command of a catalog names, unless it is there; None where it names none.

        ``scripts``: its install scripts may run; ``tell`` is told, in a thread of ours, what goes on. Raises
        ServerFailed.
        """
        return await self._install(self._catalog(catalog_id), tell, scripts=scripts)

    async def start(self, catalog_id: str) -> None:
        """Start a server, or connect to it. Raises ServerFailed."""
        await self._server(self._key(catalog_id)).start()

    async def stop(self, catalog_id: str) -> None:
        """Stop a server, if it runs: nothing of its processes is left. The next allowed call starts it again."""
        for server in self._of(catalog_id).values():
            await server.stop()

    async def restart(self, catalog_id: str, *, scripts: bool = False) -> None:
        """Stop a server and start it, whatever failed before. Raises ServerFailed.

        ``scripts``: its package is installed anew where install scripts were left out, and they run.
        """
        await self.stop(catalog_id)
        if scripts:
            self._with_scripts.add(catalog_id)
        try:
            await self.start(catalog_id)
        finally:
            self._with_scripts.discard(catalog_id)

    def left_out_scripts(self, catalog_id: str) -> tuple[str, ...]:
        """The packages whose install scripts somebody has to decide about: they did not run, and the server was
        installed a moment ago, or failed.
        """
        catalog = self._catalog(catalog_id)
        key = catalog_id, _key_of(catalog)
        installed = self._installed.get(key)
        if key in self._needed or installed is None:
            return self._needed.get(key, ())
        has_failed = self._state(catalog).status is ServerStatus.FAILED
        return installed.scripts if installed.is_new or has_failed else ()

    async def list(self, catalog_id: str, agent_id: str = "") -> Listing:
        """What a server says of itself and its tools now; it is started where it does not run. Raises ServerFailed."""
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
        """Ask a server what it lists now, and hold what of it was not accepted, in the policy in force too.

        Raises ServerFailed, WorkspaceError where the pin cannot be written, PolicyInvalid for a policy that could not
        be loaded then.
        """
        return await in_own_thread(self._record, catalog_id, await self.list(catalog_id))

    async def run(
        self, catalog_id: str, name: str, arguments: Mapping[str, JsonValue], context: ToolExecutionContext
    ) -> dict[str, JsonValue]:
        """Execute a tool for the gate: its whole `CallToolResult`. Raises ToolFailure.

        It is not called where its server lists it otherwise than it was accepted, or not any more.
        """
        try:
            listing, catalog = await self.list(catalog_id, context.agent_id), self._catalog(catalog_id)
            await require_accepted(name, catalog, listing, self._pin(catalog), self._record)
            key = self._key(catalog_id, context.agent_id)
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
        return checked_answer(answer)

    def follow(self) -> None:
        """Begin to stop the servers whose catalogs the policy does not have any more, or defines otherwise.

        A process for which something else holds now is killed before this returns, and starts anew with the next call.
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
                _log.warning(
                    "the server of catalog `%s` was ended: %s; it starts anew when it is called", key[0], _CHANGED
                )
            server.begin_stop()

    def take_ended(self) -> Mapping[str, str]:
        """The servers that `follow` ended since this was asked last, by their catalogs in the policy, and why."""
        with self._lock:
            ended, self._ended = self._ended, {}
        return ended

    def close(self) -> None:
        """Stop all of them; it waits for a few seconds at most."""
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
        """The servers of a catalog, one for each confinement."""
        with self._lock:
            return {key: server for key, server in self._made.items() if key[0] == catalog_id}

    def _holds(self, made: _Made) -> bool:
        """Tell whether the confinement of a server is still that of somebody."""
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
        """The server for an agent as the policy has it now; for none one that runs. Raises ServerFailed."""
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
        """The server of that key. Raises ServerFailed where its catalog is not there any more."""
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
        """The target that is started or reached for a catalog, as long as the context lasts. Raises ServerFailed."""
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
        """The package of a catalog: the version that it names, else the one of its pin, else the newest."""
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
    """What a connection depends on."""
    how = (catalog.command, catalog.args, catalog.env, catalog.cwd)
    return (*how, catalog.url, tuple(sorted(catalog.headers_env.items())))


def _variable(name: str, lent: Mapping[str, str]) -> str:
    value = lent.get(name, os.environ.get(name))
    if value is None:
        raise ServerFailed(f"the environment variable `{name}`, which the catalog passes on, is not set")
    return value
