"""The coding agents on this machine: which of them ask the gate before each call, and what they let pass."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from PySide6.QtCore import QObject, QTimer, Signal
from shiboken6 import isValid

from gatewright.workspace.api import (
    ClientStatus,
    Effect,
    GatewrightError,
    HostCalls,
    HostEdit,
    HostFact,
    HostLevel,
    HostScope,
    HostStatus,
    client_files,
    client_status,
    find_hosts,
    frozen,
    host_around,
    host_effects,
    host_file,
    host_files_there,
    host_of,
    install_edit,
    project_of,
    uninstall_edit,
    write_agent_policy,
    write_host_file,
)
from gatewright_gui.qt.language import counted, mark, tr
from gatewright_gui.qt.look import Role
from gatewright_gui.qt.task import TaskOwner
from gatewright_gui.session.clients import is_worth_telling
from gatewright_gui.session.document import Document

__all__ = [
    "CodingAgents",
    "FoundProgram",
    "FoundPrograms",
    "HostEdit",
    "HostFact",
    "HostLevel",
    "HostScope",
    "HostStatus",
    "add_agent_for",
    "edit_to_install",
    "edit_to_remove",
    "facts_of",
    "hosts_beside",
    "look_for_programs",
    "new_agent_of",
    "write_gate",
]

TASK, COUNTING = "hosts", "hosts.calls"
LOOK_MS = 500
"""A hook that somebody took out or changed shows within a second."""
OPEN = "open"
"""The name of a fact about a way past the gate, which no setting closes."""


class CodingAgents(QObject):
    """Reads their files beside the window while ``is_looked_at``; nothing is started for it.

    Their calls are counted by a task of its own: reading a long log does not hold up what the files say.
    """

    changed = Signal()

    def __init__(
        self,
        document: Document,
        tasks: TaskOwner,
        is_looked_at: Callable[[], bool],
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._document, self._tasks, self._is_looked_at = document, tasks, is_looked_at
        self._found: tuple[HostStatus, ...] | None = None
        self._calls = HostCalls()
        self._timer = QTimer(self, interval=LOOK_MS)
        self._timer.timeout.connect(self.look)
        self._timer.start()
        document.closed.connect(self._forget)

    @property
    def found(self) -> tuple[HostStatus, ...] | None:
        """The coding agents on this machine, as they were at the last look; None before the first."""
        return self._found

    @property
    def open_ones(self) -> tuple[str, ...]:
        """The names of those whose gate does not hold."""
        found = self._found or ()
        return tuple(one.title for one in found if one.file is not None and one.level is HostLevel.RED)

    def look(self) -> None:
        """Look now, unless that is under way or nobody wants to know."""
        if self._document.is_open and self._is_looked_at():
            if TASK not in self._tasks.names:
                self._tasks.start(self._look(), TASK)
            if COUNTING not in self._tasks.names and any(one.policy is not None for one in self._found or ()):
                self._tasks.start(self._count(self._calls), COUNTING)

    def end(self) -> None:
        """Look no more."""
        self._timer.stop()
        self._calls.close()

    def _forget(self) -> None:
        self._calls.close()
        self._found, self._calls = None, HostCalls()

    async def _look(self) -> None:
        found = await hosts_beside(self._document)
        if isValid(self):
            self._take(_with_calls(found, self._found or ()))

    async def _count(self, calls: HostCalls) -> None:
        asked = self._found or ()
        counted = await asyncio.to_thread(lambda: tuple(map(calls.counted, asked)))
        if isValid(self) and self._found is not None and calls is self._calls:
            self._take(_with_calls(self._found, counted))

    def _take(self, found: tuple[HostStatus, ...]) -> None:
        if found != self._found:
            self._found = found
            self.changed.emit()

    def write(self, edit: HostEdit) -> bool:
        """Write a coding agent's file and look again; a failure is said, and nothing has changed then."""
        is_written = write_gate(self._document, edit)
        if is_written:
            self.look()
        return is_written


def _with_calls(found: tuple[HostStatus, ...], counted: tuple[HostStatus, ...]) -> tuple[HostStatus, ...]:
    """Give each status the calls that were counted for the same agent of the same policy."""
    held = {(one.host_id, one.policy, one.agent_id): (one.last_call_s, one.calls_today) for one in counted}
    sums = [held.get((one.host_id, one.policy, one.agent_id), (None, None)) for one in found]
    return tuple(
        replace(one, last_call_s=last_s, calls_today=today) for one, (last_s, today) in zip(found, sums, strict=True)
    )


async def hosts_beside(document: Document) -> tuple[HostStatus, ...]:
    """Find the coding agents on this machine, beside the window."""
    where = host_around(project_of(document.workspace.folder))
    return tuple(one for one in await asyncio.to_thread(find_hosts, where) if one.is_found)


def write_gate(document: Document, edit: HostEdit) -> bool:
    """Write a coding agent's file; a failure is said, and nothing has changed then."""
    try:
        write_host_file(edit)
    except GatewrightError as error:
        document.say("error", str(error))
        return False
    return True


async def add_agent_for(document: Document, host_id: str) -> bool:
    """Give the saved policy an agent for a coding agent, with its tools; a failure is said."""
    workspace = document.workspace
    project, path = project_of(workspace.folder), workspace.policy_path
    try:
        await document.in_worker(lambda: write_agent_policy(host_id, project, path))
    except GatewrightError as error:
        document.say("error", str(error))
        return False
    return await document.reload()


def new_agent_of(host_id: str) -> str:
    """The agent that a policy gets for a coding agent."""
    return host_of(host_id).prefix


def edit_to_install(document: Document, host_id: str, scope: HostScope, agent_id: str) -> HostEdit:
    """The edit that puts the gate of the open policy into a coding agent's file. Raises GatewrightError."""
    workspace = document.workspace
    where = host_around(project_of(workspace.folder))
    return install_edit(host_file(host_id, scope, where), workspace.policy_path, agent_id)


def facts_of(status: HostStatus) -> tuple[HostFact, ...]:
    """Say what is known of a coding agent, the worst first; without a gate what it does, and what one would change."""
    if status.file is None:
        return _without_gate(status.host_id)
    order = [*HostLevel]
    return tuple(sorted(status.facts, key=lambda fact: (-order.index(fact.level), fact.name != OPEN)))


def _without_gate(host_id: str) -> tuple[HostFact, ...]:
    host = host_of(host_id)
    held, title = host.enforcement, host.title
    asks = tr("what asks first asks you, here or in {agent}", agent=title)
    if not held.asks:
        asks = tr("what asks first waits for you here, and {agent} is told to try again", agent=title)
    confines = host.shells.keys() <= held.changes
    fails = tr("a gate that does not answer stops the call")
    if not held.fails_closed:
        fails = tr("{agent} lets a call run if it kills the hook or cannot start it", agent=title)
    found = [
        (
            "hook",
            HostLevel.AMBER,
            tr("now its calls pass this policy by: they run with your rights, and no log here has them"),
        ),
        ("decided", HostLevel.OK, tr("with a gate this policy decides each call, and the log keeps it")),
        ("asks", HostLevel.OK, asks),
        ("confined", HostLevel.OK, tr("allowed commands run confined: they see files by their levels"))
        if confines
        else ("confined", HostLevel.RED, tr("its commands would still run with your rights")),
        ("fails-closed", HostLevel.OK if held.fails_closed else HostLevel.AMBER, fails),
    ]
    if held.needs_trust:
        found.append(("trusted", HostLevel.AMBER, tr("{agent} skips the hook until you review it there", agent=title)))
    opens = tr("even a gate cannot stop this: {way}")
    found += [(OPEN, HostLevel.AMBER, opens.format(way=way)) for way in held.open_ways]
    return tuple(HostFact(*one) for one in found)


def edit_to_remove(status: HostStatus) -> HostEdit:
    """The edit that takes the gate out again, so that the file is as it was. Raises GatewrightError."""
    if status.file is None:
        raise GatewrightError(tr("no gate is there"))
    return uninstall_edit(status.file)


# before any policy is open

_CAN = {
    Effect.RUN: mark("run commands"),
    Effect.DELETE: mark("delete things"),
    Effect.CHANGE: mark("change files"),
    Effect.SEND: mark("reach the web"),
}
"""What coding agents do, the worst first."""
_WORST: tuple[Role, ...] = ("deny", "ask", "allow")
_ICONS: dict[Role, str] = {"deny": "shield-alert", "ask": "triangle-alert", "allow": "shield-check"}


@frozen
class FoundProgram:
    """A coding agent or an MCP client on this computer: its servers and effects in words, and the weight of these.

    ``key``: of its row in Servers; ``policy``: of the gate before it, None without one.
    """

    key: tuple[str, str]
    name: str
    servers: str
    does: str
    role: Role
    note: str = ""
    policy: Path | None = None

    @property
    def icon(self) -> str:
        """The icon of its weight."""
        return _ICONS[self.role]


@frozen
class FoundPrograms:
    """The programs, the worst first, and how many configuration files were read for that."""

    programs: tuple[FoundProgram, ...]
    files: int


def look_for_programs() -> FoundPrograms:
    """Find the user's own coding agents and MCP clients by their files; nothing is started. Takes time."""
    where = host_around()
    files = tuple(file for file in client_files(where.home) if not file.is_project and file.path.is_file())
    clients = {one.file.client.client_id: one for one in map(client_status, files) if is_worth_telling(one)}
    found = [_host_program(one, clients.pop(one.host_id, None)) for one in find_hosts(where) if one.is_found]
    found += map(_client_program, clients.values())
    read = {file.path for file in files} | {*host_files_there(where)}
    return FoundPrograms(tuple(sorted(found, key=lambda one: _WORST.index(one.role))), len(read))


def _host_program(host: HostStatus, client: ClientStatus | None) -> FoundProgram:
    count = 0 if client is None else len(client.servers)
    servers = counted(count, "server", "servers") if count else ""
    key = "host", host.host_id
    if host.file is not None and host.is_everywhere:
        is_held = host.level is not HostLevel.RED
        does = tr("asks a gate before each call") if is_held else tr("has a gate that does not hold")
        return FoundProgram(key, host.title, servers, does, "allow" if is_held else "deny", policy=host.policy)
    effects = host_effects(host.host_id)
    words = [tr(word) for effect, word in _CAN.items() if effect in effects]
    does = tr("can {first} and {last}", first=", ".join(words[:-1]), last=words[-1]) if words[1:] else ""
    does = does or (tr("can {what}", what=words[0]) if words else tr("only reads"))
    role: Role = "deny" if effects & {Effect.RUN, Effect.DELETE} else "ask" if words else "allow"
    note = _unknown(count)
    if host.file is not None:
        note = tr("asks a gate in one project alone, by {file}", file=host.file.path)
    return FoundProgram(key, host.title, servers, does, role, note)


def _client_program(client: ClientStatus) -> FoundProgram:
    key, name, count = ("client", str(client.file.path)), client.file.client.name, len(client.servers)
    servers = counted(count, "server", "servers") if count else tr("no servers")
    if client.fault:
        return FoundProgram(key, name, "", tr("unknown: its file cannot be read"), "ask", client.fault.replace("`", ""))
    if not client.is_gated:
        does = tr("unknown until its servers are started") if count else tr("reaches nothing: it has no servers")
        return FoundProgram(key, name, servers, does, "ask" if count else "allow")
    if count:
        passing = tr("reaches {servers} past its gate", servers=servers)
        return FoundProgram(key, name, servers, passing, "ask", _unknown(count), client.policy)
    return FoundProgram(key, name, "", tr("reaches its servers through a gate"), "allow", policy=client.policy)


def _unknown(count: int) -> str:
    """Say of servers that nobody has started what is known of them."""
    return tr("what its servers can do is unknown until they are started") if count else ""
