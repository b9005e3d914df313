"""The MCP servers of a workspace: what starts and stops them, and what calls their tools.

Nothing starts by itself: a server is started by the operator, or by the first allowed call of one of its tools, and
never before its exact definition was trusted.
"""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from gatewright.adapters.mcp_client import McpServer, ServerList, ServerRefused, ServerState, ServerStatus
from gatewright.adapters.mcp_transport import Endpoint, ServerFailed
from gatewright.adapters.package_runner import read_runner
from gatewright.adapters.server_install import Installed, ServerInstaller
from gatewright.adapters.server_process import Command
from gatewright.base.errors import GatewrightError, ToolFailure, WorkspaceError
from gatewright.base.jsonvalue import JsonValue
from gatewright.base.thread import in_own_thread
from gatewright.policy.document import Catalog, CatalogType
from gatewright.record.fork import fork_safe_lock
from gatewright.tools.context import ToolExecutionContext
from gatewright.tools.pin import Listing, Pin, drift
from gatewright.tools.server_tool import checked_answer

PASSED_ON = ("PATH", "HOME", "LANG")
"""The environment variables that every server gets; all others must be named by its catalog."""
_UNREACHABLE = "the server of this tool cannot be reached now; try again later or go on without it"
_HELD = "this tool is not the one that you were given any more; go on without it"

_Key = tuple[object, ...]


class Servers:
    """The servers of the catalogs of one workspace, by the ids of these; any thread and any loop may use it.

    ``catalogs`` are those of the policy as it is now, ``pin`` says what was accepted of one, ``trusts`` whether its
    definition was trusted, ``record`` keeps what a server lists, so that what is not accepted is held. ``state``: the
    state folder, below which packages of servers are installed.
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
    ) -> None:
        self._folder, self._catalogs, self._pin, self._trusts, self._record = folder, catalogs, pin, trusts, record
        self._lock = fork_safe_lock()
        self._made: dict[str, tuple[_Key, McpServer]] = {}
        self._lists: dict[str, tuple[ServerList, Listing]] = {}
        self._watchers: tuple[Callable[[], None], ...] = ()
        self._lent: dict[tuple[str, _Key], Mapping[str, str]] = {}
        self._installer, self._installed = ServerInstaller(state), dict[tuple[str, _Key], Installed]()

    @property
    def states(self) -> Mapping[str, ServerState]:
        """Where each server is in its life, in the order of the policy."""
        return {catalog.catalog_id: self._state(catalog) for catalog in self._of_servers()}

    def stderr(self, catalog_id: str) -> str:
        """The end of what a server wrote on its standard error, as text that can be shown."""
        made = self._made.get(catalog_id)
        return made[1].stderr if made is not None else ""

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
        await self._server(catalog_id).start()

    async def stop(self, catalog_id: str) -> None:
        """Stop a server, if it runs: nothing of its process is left. The next allowed call starts it again."""
        made = self._made.get(catalog_id)
        if made is not None:
            await made[1].stop()

    async def restart(self, catalog_id: str) -> None:
        """Stop a server and start it, whatever failed before. Raises ServerFailed."""
        await self._server(catalog_id).restart()

    async def list(self, catalog_id: str) -> Listing:
        """What a server says of itself and its tools now; it is started where it does not run. Raises ServerFailed."""
        said = await self._server(catalog_id).list()
        held = self._lists.get(catalog_id)
        if held is not None and held[0] is said:
            return held[1]
        about = {"name": said.name, "version": said.version, "instructions": said.instructions}
        installed = self._installed.get((catalog_id, _key_of(self._catalog(catalog_id))))
        if installed is not None:
            about |= {"package": installed.package.requirement, "package_version": installed.version}
        listing = await in_own_thread(lambda: Listing.of(list(said.tools), **about))
        self._lists[catalog_id] = said, listing
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
            await self._require_accepted(catalog_id, name)
            answer = await self._server(catalog_id).call(name, arguments, on_progress=context.progress)
        except ServerRefused as error:
            raise ToolFailure(str(error)) from None
        except WorkspaceError as error:
            detail = f"catalog `{catalog_id}`: {error}"
            raise ToolFailure(_UNREACHABLE, code="server-failed", detail=detail) from None
        return checked_answer(answer)

    def follow(self) -> None:
        """Begin to stop the servers whose catalogs the policy does not have any more, or defines otherwise."""
        keys = {catalog.catalog_id: _key_of(catalog) for catalog in self._of_servers()}
        for server in self._take_out(lambda catalog_id, key: keys.get(catalog_id) != key):
            server.begin_stop()

    def close(self) -> None:
        """Stop all of them; it waits for a few seconds at most."""
        gone = self._take_out(lambda _, __: True)
        for server in gone:
            server.begin_stop()
        for server in gone:
            server.close()

    async def _require_accepted(self, catalog_id: str, name: str) -> None:
        """Raises ToolFailure where the tool that the server lists now is not the one that was accepted."""
        listing, catalog = await self.list(catalog_id), self._catalog(catalog_id)
        definition, pin = listing.definitions.get(name), self._pin(catalog)
        if pin is not None and drift(pin, listing) != pin.drift:
            with suppress(GatewrightError):  # it is held for this call anyhow
                await in_own_thread(self._record, catalog_id, listing)
        if definition is not None and pin is not None and pin.is_accepted(definition):
            return
        why = "does not list it any more" if definition is None else "lists it otherwise than it was accepted"
        detail = f"`{name}` is held: the server of catalog `{catalog_id}` {why}"
        raise ToolFailure(_HELD, code="held", detail=detail)

    def _state(self, catalog: Catalog) -> ServerState:
        made = self._made.get(catalog.catalog_id)
        if made is not None and made[0] == _key_of(catalog):
            return made[1].state
        if self._trusts(catalog):
            return ServerState()
        return ServerState(ServerStatus.NOT_TRUSTED, *_UNTRUSTED)

    def _of_servers(self) -> list[Catalog]:
        return [catalog for catalog in self._catalogs() if catalog.kind is CatalogType.MCP]

    def _catalog(self, catalog_id: str) -> Catalog:
        found = next((catalog for catalog in self._of_servers() if catalog.catalog_id == catalog_id), None)
        if found is None:
            raise ServerFailed(f"the policy has no catalog `{catalog_id}` of type `mcp`")
        return found

    def _server(self, catalog_id: str) -> McpServer:
        """The server as the policy defines it now. Raises ServerFailed where it is not trusted or not there."""
        catalog = self._catalog(catalog_id)
        key = _key_of(catalog)
        with self._lock:
            made = self._made.get(catalog_id)
            if made is None or made[0] != key:
                if made is not None:
                    made[1].begin_stop()
                server = McpServer(lambda: self._target(catalog, server), self._tell)
                made = self._made[catalog_id] = key, server
            return made[1]

    @asynccontextmanager
    async def _target(self, catalog: Catalog, server: McpServer) -> AsyncGenerator[Command | Endpoint]:
        """What is started or reached for a catalog, as long as the context lasts. Raises ServerFailed."""
        if not self._trusts(catalog):
            raise ServerFailed(*_UNTRUSTED)
        lent = self._lent.get((catalog.catalog_id, _key_of(catalog)), {})
        if catalog.url is not None:
            headers = {header: _variable(name, lent) for header, name in catalog.headers_env.items()}
            yield Endpoint(catalog.url, headers)
            return
        installed = await self._install(catalog, server.tell)
        usual = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
        named = {name: _variable(name, lent) for name in catalog.env}
        folder = self._folder / (catalog.cwd or ".")
        secrets = tuple(value for name, value in named.items() if name not in PASSED_ON)
        words = (catalog.command or "", *catalog.args)
        if installed is not None:
            words = (*installed.command, *installed.package.arguments)
        yield Command(words[0], words[1:], {**usual, **named}, folder, secrets=secrets)

    async def _install(
        self, catalog: Catalog, tell: Callable[[str], None], *, scripts: bool = False
    ) -> Installed | None:
        """The package of a catalog: the version that it names, else the one of its pin, else the newest."""
        if not self._trusts(catalog):
            raise ServerFailed(*_UNTRUSTED)
        package = None if catalog.command is None else read_runner(catalog.command, catalog.args)
        if package is None:
            return None
        pin = self._pin(catalog)
        is_same = pin is not None and pin.listing.package == package.requirement
        version = pin.listing.package_version if pin is not None and is_same else ""
        installed = await self._installer.install(package, version, scripts=scripts, tell=tell)
        self._installed[catalog.catalog_id, _key_of(catalog)] = installed
        return installed

    def _tell(self) -> None:
        for watcher in self._watchers:
            watcher()

    def _take_out(self, is_gone: Callable[[str, _Key], bool]) -> list[McpServer]:
        with self._lock:
            gone = [
                (catalog_id, server) for catalog_id, (key, server) in self._made.items() if is_gone(catalog_id, key)
            ]
            for catalog_id, _ in gone:
                del self._made[catalog_id]
                self._lists.pop(catalog_id, None)
        return [server for _, server in gone]


_UNTRUSTED = ("what starts it is not trusted yet", "`gatewright check --trust` trusts it")


def _key_of(catalog: Catalog) -> _Key:
    """What a connection depends on."""
    how = (catalog.command, catalog.args, catalog.env, catalog.cwd)
    return (*how, catalog.url, tuple(sorted(catalog.headers_env.items())))


def _variable(name: str, lent: Mapping[str, str]) -> str:
    value = lent.get(name, os.environ.get(name))
    if value is None:
        raise ServerFailed(f"the environment variable `{name}`, which the catalog passes on, is not set")
    return value
