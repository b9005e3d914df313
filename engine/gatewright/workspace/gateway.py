"""The gateway: serves agents to MCP clients over standard streams or HTTP, by a policy or by one made for a server."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import signal
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from gatewright.adapters.mcp_http import HttpGateway, TokenDoor, address_of, listen, security_of, serve_http
from gatewright.adapters.mcp_server import AgentServer, Caller, stdio_streams
from gatewright.adapters.package_runner import read_runner
from gatewright.base.amount import new_id
from gatewright.base.errors import GatewrightError, NotSupported, SessionConflict, WorkspaceError
from gatewright.base.file import write_atomically
from gatewright.base.late import unbroken
from gatewright.gate import Alarm, Session, SessionStore
from gatewright.gate.sessionstore import MOST_CLIENTS, ServingProcess
from gatewright.policy.document import Agent, Catalog, CatalogType, PlaceUse, Policy
from gatewright.policy.verdict import SafetyTier, Verdict
from gatewright.policyfile import render_policy
from gatewright.record.folder import StatePlace
from gatewright.sources.ground import POLICY_NAME
from gatewright.workspace.commandfiles import propose_places
from gatewright.workspace.workspace import Workspace

if TYPE_CHECKING:
    from gatewright.workspace.trust import Token, TokenBook


CATALOG = "server"
_HEAD = """\
# Made by `gatewright serve --agent {agent} -- COMMAND`. Everything that the server offers is shown and nothing is
# enforced yet, but every call is recorded. Open it with `gatewright {folder}` to restrict it.
"""


def policy_for_server(
    folder: Path,
    agent_id: str,
    command: Sequence[str],
    env: Sequence[str] = (),
    *,
    state: StatePlace | None = None,
    scripts: bool = False,
    tell: Callable[[str], None] = lambda _: None,
) -> Path:
    """Return the policy file in a folder for this server and agent; make it if missing, and report that to ``tell``.

    The typed command counts as trusted, and its package is installed (``scripts``: with its install scripts). A new
    policy accepts all tools that the server lists; paths in the command's arguments become its places, which it may
    change. Raises WorkspaceError for a folder with another policy, or a server that does not answer; then nothing of a
    new policy stays.
    """
    path = folder.absolute() / POLICY_NAME if folder.is_dir() else folder.absolute()
    is_new = not path.exists()
    package = read_runner(command[0], command[1:])
    arguments = tuple(command[1:]) if package is None else package.arguments
    typed = Catalog(CATALOG, CatalogType.MCP, command=command[0], args=arguments)
    places = tuple(propose_places(typed, path.parent, {}))
    if is_new:
        _write(path, agent_id, command, env, tools=(), places=places)
    try:
        with Workspace.open(path, state=state) as workspace:
            catalog = workspace.policy.catalog(CATALOG)
            words = (catalog.command, *catalog.args) if catalog is not None else ()
            if words != tuple(command) or agent_id not in workspace.policy.agents:
                hint = f"serve it unchanged (`gatewright serve {path} --agent ID`), or name another folder before `--`"
                raise WorkspaceError(f"`{path}` is another policy, without this server for `{agent_id}`: {hint}")
            workspace.trust_server(CATALOG)
            asyncio.run(workspace.servers.install(CATALOG, scripts=scripts, tell=tell))
            if is_new:
                asyncio.run(workspace.servers.refresh(CATALOG))
                workspace.accept_tools(CATALOG, None, needs_capabilities=False, instructions=True, who="command line")
                (held,) = workspace.catalog_states()
                _write(path, agent_id, command, env, tools=held.tool_names, places=places)
                tell(f"made `{path}`, which shows everything and enforces nothing yet")
                named = ", ".join(f"`{place}`" for place in places) or "no folder"
                tell(f"the server reads and changes {named}, and nothing else of yours")
    except BaseException:
        if is_new:
            path.unlink(missing_ok=True)
            shutil.rmtree(path.parent / "catalogs", ignore_errors=True)
        raise
    return path


def _write(
    path: Path,
    agent_id: str,
    command: Sequence[str],
    env: Sequence[str],
    *,
    tools: Sequence[str],
    places: Sequence[str],
) -> None:
    agent = Agent(agent_id, tools=tuple(tools), approvals=dict.fromkeys(map(str, SafetyTier), Verdict.ALLOW))
    uses = dict.fromkeys(places, PlaceUse.WRITE)
    arguments, names = tuple(command[1:]), tuple(env)
    server = Catalog(CATALOG, CatalogType.MCP, command=command[0], args=arguments, env=names, places=uses)
    head = _HEAD.format(agent=agent_id if agent_id.isprintable() else "A", folder=path.parent)
    try:
        text = render_policy(Policy(agents={agent_id: agent}, catalogs=(server,)))
        write_atomically(path, (head + text).encode())
    except (OSError, NotSupported, UnicodeEncodeError) as error:
        raise WorkspaceError(f"a policy cannot be made at `{path}`: {error}; name another folder before `--`") from None


LOOPBACK = ("127.0.0.1", "localhost", "::1")
STDIO_SESSION = "stdio"
WATCH_S = 0.25
"""The seconds between checks of policy, tokens and sessions."""
_MOST_SESSIONS = 20
_log = logging.getLogger(__name__)


class Gateway:
    """A workspace in service. ``tell`` receives lines to print for the operator.

    Raises AuditUnavailable for a log that cannot be continued.
    """

    def __init__(self, workspace: Workspace, tell: Callable[[str], None]) -> None:
        workspace.audit.check()
        self._workspace = workspace
        self._tell = tell
        self._agents: list[AgentServer] = []
        self._told: ServingProcess | None = None

    async def serve_stdio(self, agent_id: str, session_id: str | None = None) -> None:
        """Serve one agent on standard input and output, until the client closes its end or the process must end.

        Raises WorkspaceError for an unknown agent or an unavailable session, and KeyboardInterrupt for SIGINT, after
        everything is stored.
        """
        self._workspace.view(agent_id)
        with _stop_signals() as stopped:
            async with AsyncExitStack() as stack:
                session = await self._stdio_session(stack, agent_id, session_id)
                agent = self._agent_server(Caller(agent_id, session))
                await _until(stopped, _serve_streams(agent), self._watch(self._process("stdio"), lambda: (agent_id,)))
        _raise_interrupt(stopped)

    async def serve_http(self, tokens: TokenBook, host: str, port: int, names: tuple[str, ...] = ()) -> None:
        """Serve every agent with a token until the process must end; report the address.

        ``names``: further names of the gateway besides ``host`` and loopback. Raises WorkspaceError, and
        KeyboardInterrupt for SIGINT, after all is stored.
        """
        listening = listen(host, port)
        doors = _Doors(self, tokens, (*LOOPBACK, host, *names))
        app = HttpGateway(doors.find, self._workspace.answer_pages())
        self._tell(f"serving {address_of(listening)}")
        process = self._process("http", address_of(listening))
        with _stop_signals() as stopped:
            ended = asyncio.get_running_loop().create_future()
            serving = asyncio.ensure_future(serve_http(app, listening, ended))
            await _until(stopped, asyncio.shield(serving), self._watch(process, doors.agents))
            await doors.close()
            ended.set_result(None)
            await serving
        _raise_interrupt(stopped)

    def open_door(self, token: Token, session: Session, names: tuple[str, ...]) -> TokenDoor:
        """Open the door of a token: its calls count in ``session``."""
        caller = Caller(token.agent_id, session, token.user_id, token.elicit, token.token_id)
        return TokenDoor(self._agent_server(caller), security_of(names))

    def forget(self, agent: AgentServer) -> None:
        """Drop an agent without connections."""
        self._agents.remove(agent)

    @asynccontextmanager
    async def hold_session(self, session_id: str, agent_id: str) -> AsyncGenerator[Session]:
        """Hold a session of the agent for this process alone, and save it continually. Raises WorkspaceError."""
        store = self._workspace.sessions
        async with store.hold(session_id, agent_id=agent_id, patience_s=0.0) as session:
            keeping = asyncio.ensure_future(_keep(store, session))
            try:
                yield session
            finally:
                keeping.cancel()
                await asyncio.wait({keeping})
                await self._workspace.end_shells(session_id)

    def _agent_server(self, caller: Caller) -> AgentServer:
        made = AgentServer(self._workspace.gate, caller, self._workspace.broker)
        self._agents.append(made)
        return made

    async def _stdio_session(self, stack: AsyncExitStack, agent_id: str, session_id: str | None) -> Session:
        """Return the named session, else the agent's usual one; if another process has that, the next free one."""
        if session_id is not None:
            return await stack.enter_async_context(self.hold_session(session_id, agent_id))
        for number in range(1, _MOST_SESSIONS + 1):
            name = STDIO_SESSION if number == 1 else f"{STDIO_SESSION}-{number}"
            with suppress(SessionConflict):
                return await stack.enter_async_context(self.hold_session(name, agent_id))
        raise WorkspaceError(f"{_MOST_SESSIONS} processes serve the agent `{agent_id}` already")

    def _process(self, transport: str, address: str = "") -> ServingProcess:
        policy = str(self._workspace.policy_path.resolve())
        return ServingProcess(new_id("serving"), policy, os.getpid(), transport, address, (), time.time())

    async def _watch(self, process: ServingProcess, agents: Callable[[], tuple[str, ...]]) -> None:
        """Apply changes on disk, notify the clients whose tools changed, send questions to those whom the policy names,
        and publish which clients are connected.
        """
        leave = self._workspace.gate.on_alarm(self._tell_alarm)
        stop_sending = None
        known = None if self._workspace.is_changed_outside() else self._workspace.file_marks()
        seen = known
        try:
            while True:
                now = self._workspace.file_marks()
                if now != known and now == seen:  # wait until changes stop, since an editor may write in several steps
                    await self._reload()
                    known = now
                seen = now
                stop_sending = await self._send_questions(stop_sending)
                served = agents()
                for agent in tuple(self._agents):
                    await agent.refresh()
                clients = [client for agent in self._agents for client in agent.clients]
                serving = replace(process, agents=served, clients=tuple(clients[:MOST_CLIENTS]))
                if serving != self._told:
                    self._told = serving
                    try:
                        await unbroken(asyncio.ensure_future(asyncio.to_thread(self._workspace.serving.tell, serving)))
                    except WorkspaceError as error:
                        _log.warning("other processes cannot see the served agents: %s", error)
                await asyncio.sleep(WATCH_S)
        finally:
            leave()
            if stop_sending is not None:
                await unbroken(asyncio.ensure_future(asyncio.to_thread(stop_sending)))

    async def _send_questions(self, stop: Callable[[], None] | None) -> Callable[[], None] | None:
        """Begin or end to send links, as the present policy wants; ``stop`` ends what has begun."""
        questions = self._workspace.policy.questions
        has_somebody = bool(questions.answer_by and questions.link_base)
        if stop is not None and not has_somebody:
            await unbroken(asyncio.ensure_future(asyncio.to_thread(stop)))
            self._tell("sends no questions any more")
            return None
        if stop is None and has_somebody:
            stop = self._workspace.send_questions()
            self._tell(f"sends questions to {', '.join(questions.answer_by)}, with links to {questions.link_base}")
        return stop

    async def _reload(self) -> None:
        """Read the policy again; after errors the last good one stays, and an alarm reports that."""
        try:
            await asyncio.to_thread(self._workspace.reload)
        except GatewrightError as error:
            self._tell(str(error))
        if self._workspace.alarm is None:
            self._tell(f"took over `{self._workspace.policy_path}`")

    def _tell_alarm(self, alarm: Alarm | None) -> None:
        for line in () if alarm is None else (f"ALARM: {alarm}", *map(str, alarm.problems)):
            self._tell(line)


class _Doors:
    """The doors of the tokens in use; a task of its own opens, holds and closes each door."""

    def __init__(self, gateway: Gateway, tokens: TokenBook, names: tuple[str, ...]) -> None:
        self._gateway = gateway
        self._tokens = tokens
        self._names = names
        self._doors: dict[str, asyncio.Future[TokenDoor]] = {}
        self._owners: set[asyncio.Task[None]] = set()

    async def find(self, secret: str) -> TokenDoor | None:
        """Return the door of the presented token. Raises WorkspaceError if it cannot be opened."""
        token = self._tokens.find(secret)
        if token is None:
            return None
        door = self._doors.get(token.token_id)
        if door is None:
            door = self._doors[token.token_id] = asyncio.get_running_loop().create_future()
            owner = asyncio.create_task(self._own(token, door))
            self._owners.add(owner)
            owner.add_done_callback(self._owners.discard)
        return await asyncio.shield(door)

    def agents(self) -> tuple[str, ...]:
        """List the agents of the tokens, and close the doors of removed tokens."""
        try:
            known = {token.token_id: token.agent_id for token in self._tokens.list()}
        except WorkspaceError:
            return ()  # no request finds its token then
        for token_id in self._doors.keys() - known.keys():
            self._close(token_id)
        return tuple(dict.fromkeys(known.values()))

    async def close(self) -> None:
        """Close every door, and wait until all sessions are saved."""
        for token_id in tuple(self._doors):
            self._close(token_id)
        if self._owners:
            await asyncio.wait(self._owners)

    def _close(self, token_id: str) -> None:
        opened = self._doors.pop(token_id)
        opened.add_done_callback(_close_door)

    async def _own(self, token: Token, opened: asyncio.Future[TokenDoor]) -> None:
        try:
            async with self._gateway.hold_session(token.token_id, token.agent_id) as session:
                door = self._gateway.open_door(token, session, self._names)
                try:
                    await door.run(lambda: opened.set_result(door))
                finally:
                    self._gateway.forget(door.agent)
        except Exception as error:
            self._doors.pop(token.token_id, None)
            if not opened.done():
                opened.set_exception(error)
            if not isinstance(error, WorkspaceError):
                raise


def _close_door(opened: asyncio.Future[TokenDoor]) -> None:
    if not opened.cancelled() and opened.exception() is None:
        opened.result().close()


async def _serve_streams(agent: AgentServer) -> None:
    async with stdio_streams() as (incoming, outgoing):
        await agent.server.run(incoming, outgoing, agent.server.create_initialization_options())


async def _keep(store: SessionStore, session: Session) -> None:
    """Save the session after every count in it, and retry a failed save."""
    kept = session.facts()
    while True:
        await asyncio.sleep(WATCH_S)
        now = session.facts()
        if now is not kept:
            try:
                await asyncio.to_thread(store.save, session)
                kept = now
            except WorkspaceError as error:
                _log.warning("the session cannot be saved now: %s", error)


async def _until(stopped: asyncio.Future[int], *works: Awaitable[None]) -> None:
    """Wait until one of the works ends or the process must end; then cancel the others."""
    tasks = [asyncio.ensure_future(work) for work in works]
    await asyncio.wait({*tasks, stopped}, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()
    for task in tasks:
        with suppress(asyncio.CancelledError):
            await task


@contextmanager
def _stop_signals() -> Generator[asyncio.Future[int]]:
    """Return a future for the number of the signal that asks the process to end."""
    loop = asyncio.get_running_loop()
    stopped: asyncio.Future[int] = loop.create_future()
    signals = (signal.SIGTERM, signal.SIGINT)
    with suppress(NotImplementedError):  # Windows raises Ctrl-C instead
        for number in signals:
            loop.add_signal_handler(number, lambda number=number: stopped.done() or stopped.set_result(number))
    try:
        yield stopped
    finally:
        with suppress(NotImplementedError):
            for number in signals:
                loop.remove_signal_handler(number)


def _raise_interrupt(stopped: asyncio.Future[int]) -> None:
    if stopped.done() and stopped.result() == signal.SIGINT:
        raise KeyboardInterrupt
