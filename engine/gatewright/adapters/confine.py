"""Rooms: bubblewrap makes the kernel enforce a `Confinement` on the processes in one.

A room has an empty root with the read-only parts of the system, the mounts of its plan, devices, processes, a home, a
temporary folder, and a network of its own whose one port leads to the proxy for its hosts. The filter of system calls
(`seccomp`) applies from the start; `confined_init` closes the rest and becomes the program on command. A room leaves
nothing on disk, and nothing in it outlives this program.

It has more than 450 lines because a room, its needs and the start of a process in it belong together.
"""

from __future__ import annotations

import asyncio
import math
import os
import select
import signal
import socket
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Protocol, Self

from gatewright.adapters.bubblewrap import (
    HOME,
    INIT,
    OURS,
    bubblewrap,
    python_of_rooms,
    room_options,
    seccomp_filter,
    why_no_room,
)
from gatewright.adapters.roomcover import Covers
from gatewright.adapters.server_process import LEAVE_S, Command, ServerProcess
from gatewright.base.errors import ToolFailure
from gatewright.base.late import in_own_thread, unbroken
from gatewright.base.printable import printable
from gatewright.gate.record import Connection
from gatewright.policy.document import PlaceUse
from gatewright.policy.target import Confinement, ProcessBounds
from gatewright.policy.verdict import covers
from gatewright.sources.roomcopy import Difference
from gatewright.sources.roomview import Mount, MountKind, RoomPlan
from gatewright.sources.writeback import WriteBack

NOT_CONFINED = "not-confined"
PROXY_PORT = 39128
"""Port of the proxy in a room with hosts."""
_SHELL = "/bin/sh"
_IGNORING = 'trap "" HUP INT QUIT TERM; exec "$@"'
"""Ignores signals that the program itself must handle; bubblewrap would end the program at once."""
_LIBRARIES = "LD_LIBRARY_PATH"
_BEGIN_S = 60.0
"""The longest time to build a room, in s; a busy machine takes some hundredths of a second."""
_MAX_ANSWER = 256
_LEAVE_MS = 10_000
_UNKNOWN = "it is no longer known which files it may see"
_APPEARED = "a file appeared that it may not see"
_SAID_CHARS = 300
_GRANTED = {MountKind.READ: "read", MountKind.OVERLAY: "read", MountKind.WRITE: "write and delete"}


class Planner(Protocol):
    """The planner of a room's mounts."""

    def plan(self, confinement: Confinement, /) -> RoomPlan:
        """Plan the mounts, in a thread. Raises ToolFailure if they cannot enforce the confinement."""
        ...

    def watch(self, confinement: Confinement, plan: RoomPlan, listener: Room, /) -> Watch:
        """Watch the folders and notify the room."""
        ...

    def differences(self, plan: RoomPlan, /) -> Sequence[Difference]:
        """Return the changes of processes in the plan's private copies, until its watch closes."""
        ...


class Watch(Protocol):
    """A watch over the folders of a room."""

    @property
    def plan(self) -> RoomPlan:
        """The mounts for a process that starts now."""
        ...

    def check(self) -> None:
        """Wait until the watch has seen every change so far. Raises ToolFailure if it is dead or behind."""
        ...

    def begin(self) -> None:
        """Take what stands now for the operator's. Raises ToolFailure."""
        ...

    def appeared(self) -> Sequence[str]:
        """Return what the room's processes have made against the levels since then."""
        ...

    def close(self) -> None:
        """Stop watching."""
        ...


class Proxy(Protocol):
    """The connection of a room's processes to its hosts."""

    @property
    def missed(self) -> Sequence[Connection]:
        """The last connections that the proxy refused or could not make."""
        ...

    async def listen(self, listener: socket.socket, /) -> Callable[[], None]:
        """Answer on a port of the room; the result ends that."""
        ...

    async def close(self) -> None:
        """End every connection and stop listening."""
        ...


class Confiner:
    """The rooms of one workspace. ``proxy`` makes the connection of a room to its hosts.

    ``write_back`` makes the writer of changes in private copies, from the agents that a room serves.
    """

    def __init__(
        self,
        planner: Planner,
        proxy: Callable[[Confinement], Proxy] | None = None,
        *,
        write_back: Callable[[Confinement, Collection[str]], WriteBack] | None = None,
    ) -> None:
        self._planner, self._proxy, self._write_back = planner, proxy, write_back

    @staticmethod
    def why_not() -> str:
        """Explain why this system cannot confine a process, and what to do; empty if it can. This is tested once."""
        return why_no_room()

    async def require(self) -> None:
        """Raise ToolFailure if no process can be confined."""
        if why := await in_own_thread(why_no_room):
            raise ToolFailure("this cannot be confined here, so it does not start", code=NOT_CONFINED, detail=why)

    async def room(
        self, confinement: Confinement, own: tuple[Mount, ...] = (), *, write_back: WriteBack | None = None
    ) -> Room:
        """Open a room, for the caller to close.

        ``own``: our own mounts for it, at otherwise empty places. ``write_back``: the writer for its private copies,
        instead of the usual one. Raises ToolFailure if the room cannot be made, or its files cannot be searched.
        """
        await self.require()
        if confinement.hosts and self._proxy is None:
            raise ToolFailure("it cannot get a network here", code=NOT_CONFINED)
        uses = {place.use for place in confinement.places}
        has_copies = PlaceUse.SNAPSHOT in uses
        served = set[str]()
        if write_back is None and self._write_back is not None and uses - {PlaceUse.READ}:
            write_back = self._write_back(confinement, served)
        if has_copies and write_back is None:
            raise ToolFailure("a private copy could not be written back here", code=NOT_CONFINED)
        proxy = self._proxy(confinement) if self._proxy is not None and confinement.hosts else None
        room = Room(confinement, proxy, own, write_back)
        room.served = served
        await in_own_thread(room.open, self._planner)
        return room


class Room:
    """One confinement, with any number of processes in it, in turn or at once.

    `process` makes one; a caller that starts a process in another way takes a `launch`.
    """

    def __init__(
        self,
        confinement: Confinement,
        proxy: Proxy | None = None,
        own: tuple[Mount, ...] = (),
        write_back: WriteBack | None = None,
    ) -> None:
        self.confinement, self._proxy, self._own, self._write_back = confinement, proxy, own, write_back
        self._look: Callable[[], Sequence[Difference]] = tuple
        self._first_plan = RoomPlan()
        self.landlock = ""
        self.served = set[str]()
        """The agents whose calls its processes have served."""
        self._watch: Watch | None = None
        self._why_over = ""
        self._lock = Lock()
        self._launches: set[Launch] = set()
        self._leaving: list[int] = []
        self.taken_back = False
        """True once something was taken back that a process had made against the levels."""

    def open(self, planner: Planner) -> None:
        """Plan the room and watch its files. Raises ToolFailure."""
        plan = planner.plan(self.confinement)
        self._first_plan, self._look = plan, partial(planner.differences, plan)
        self._watch = planner.watch(self.confinement, plan, self)

    @property
    def plan(self) -> RoomPlan:
        """The mounts for the next process."""
        plan = self._watch.plan if self._watch is not None else RoomPlan()
        return replace(plan, mounts=(*plan.mounts, *self._own)) if self._own else plan

    @property
    def start(self) -> Path:
        """The first folder of a process: the confinement's, if the room shows it or something in it."""
        folder = self.confinement.folder
        seen = [*(one.path for one in self.plan.mounts if one.kind in _GRANTED), *self.confinement.programs]
        return Path(folder if any(covers(one, folder) or covers(folder, one) for one in seen) else "/tmp")

    @property
    def words(self) -> tuple[str, ...]:
        """The restrictions in plain words."""
        hosts = ", ".join(self.confinement.hosts)
        plan, own = self.plan, {one.path for one in self._own}
        copied = [one.path for one in plan.mounts if one.origin and one.path not in own]
        granted = [
            f"{_GRANTED[one.kind]}{' in a copy:' if one.path in copied else ''} {one.path}"
            for one in plan.mounts
            if one.kind in _GRANTED
        ]
        second = f" and Landlock {self.landlock}" if self.landlock[:1].isdigit() else ""
        return (
            f"confined by bubblewrap with seccomp{second}",
            "; ".join(granted) or "no folder",
            f"hosts: {hosts}" if hosts else "no network",
        )

    @property
    def missed(self) -> Sequence[Connection]:
        """The last connections of the room that the proxy refused or could not make."""
        return () if self._proxy is None else self._proxy.missed

    @property
    def is_over(self) -> bool:
        """True once nothing may start in it."""
        return bool(self._why_over)

    def process(self, command: Command, stderr: bytearray, leave_s: float = LEAVE_S) -> ConfinedProcess:
        """Make a process in this room, for the length of an ``async with``; entering it may raise ToolFailure."""
        return ConfinedProcess(self, command, stderr, leave_s)

    def launch(self, command: Command) -> Launch:
        """Prepare the launch of ``command`` in this room. Raises ToolFailure once nothing may start in it."""
        made = Launch(self)
        with self._lock:  # before its mounts are fixed, so that the launch learns of everything that appears later
            self._launches.add(made)
        try:
            if self._why_over:
                raise ToolFailure(_UNKNOWN, code=NOT_CONFINED, detail=self._why_over)
            made.prepare(command)
        except BaseException:
            made.close()
            raise
        return made

    async def check(self) -> None:
        """Wait until everything that appeared so far is hidden. Raises ToolFailure if that is unknown."""
        if self._watch is not None and not self._why_over:
            await in_own_thread(self._watch.check)
        if self._why_over:
            raise ToolFailure(_UNKNOWN, code=NOT_CONFINED, detail=self._why_over)

    async def begin(self) -> None:
        """Do before a program begins what `check` does; if it is alone, what stands now was not made by a process."""
        await self.check()
        if self._takes_back and self._watch is not None and len(self._launches) == 1 and not self._leaving:
            await in_own_thread(self._watch.begin)

    async def take_back(self) -> None:
        """Take back what the ended processes made against the levels; a canceled caller waits, too."""
        if self._takes_back and self._watch is not None:
            await unbroken(asyncio.ensure_future(self._take_back(self._watch)))

    async def _take_back(self, watch: Watch) -> None:
        await in_own_thread(self._await_ends)
        made = await in_own_thread(watch.appeared)
        if made and self._write_back is not None:
            self.taken_back = True
            await self._write_back.take_back(made)

    @property
    def _takes_back(self) -> bool:
        return self._write_back is not None and self._write_back.takes_back

    def _await_ends(self) -> None:
        """Wait until the last descendants of ended processes are gone, which a kill reaches a moment later."""
        with self._lock:
            leaving, self._leaving = self._leaving, []
        for number in leaving:
            waiting = select.poll()
            waiting.register(number, select.POLLIN)
            waiting.poll(_LEAVE_MS)
            os.close(number)

    def forget(self, launch: Launch, leaving: int) -> None:
        """Drop the launch of an ended process; ``leaving``: a descriptor of the first process in its room, or -1."""
        with self._lock:
            self._launches.discard(launch)
            if leaving >= 0 and self._takes_back:
                self._leaving.append(leaving)
            elif leaving >= 0:
                os.close(leaving)

    async def serve(self, number: int) -> Callable[[], None]:
        """Let the proxy answer on a port in the room until somebody calls the result."""
        assert self._proxy is not None
        return await self._proxy.listen(socket.socket(fileno=number))

    async def close(self) -> None:
        """End the room and everything that runs in it."""
        self.end("the room was closed")
        await asyncio.shield(asyncio.ensure_future(self._let_go()))

    async def _let_go(self) -> None:
        """Write back changes in copies, even if nobody waits any more, and release everything else."""
        await self.take_back()
        write_back, self._write_back = self._write_back, None
        try:
            if write_back is not None and self._watch is not None:
                await write_back.give_back(self._first_plan, self._look)
        finally:
            if self._watch is not None:
                await in_own_thread(self._watch.close)
            if self._proxy is not None:
                await self._proxy.close()

    def end(self, why: str) -> None:
        """End everything in the room for good; any thread may call this."""
        self._why_over = self._why_over or why
        for launch in self._running():
            launch.end(why)

    def hide(self, mounts: tuple[Mount, ...], *, anew: bool) -> None:
        """Hide more in running processes; ``anew``: end them instead, since they may have seen it."""
        for launch in self._running():
            if anew:
                launch.end(_APPEARED)
            else:
                launch.hide(mounts)

    def fail(self, why: str) -> None:
        """End everything, since nothing is certain any more."""
        self.end(why)

    def _running(self) -> tuple[Launch, ...]:
        with self._lock:
            return tuple(self._launches)


class Launch:
    """The start of one process in a room: run `command`, then call `began`, and `close` after its end."""

    command: Command

    def __init__(self, room: Room) -> None:
        self._room = room
        self._numbers: list[int] = []
        self._sockets: list[socket.socket] = []
        self._pid: int | None = None
        self._first = -1
        self._hiding = Lock()
        self._waiting: list[Mount] = []
        self._covers: Covers | None = None
        self._leave: Callable[[], None] = lambda: None
        self.why_ended = ""

    def prepare(self, command: Command) -> None:
        """Work out how to start ``command`` with the present mounts of the room. Raises ToolFailure."""
        confinement, plan, python = self._room.confinement, self._room.plan, python_of_rooms()
        if python is None:
            raise ToolFailure("it cannot be confined here", code=NOT_CONFINED, detail=why_no_room())
        environment = _environment(confinement, command)
        orders = [*_places(confinement, plan), *_limits(confinement.bounds)]
        if confinement.hosts:
            orders.append(("listen", str(PROXY_PORT)))
        if python.library_path:
            own = environment.get(_LIBRARIES)
            orders.append(("unset", _LIBRARIES) if own is None else ("set", f"{_LIBRARIES}={own}"))
            environment[_LIBRARIES] = python.library_path
        self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._sockets += [self._channel, theirs]
        try:
            self._channel.send(os.fsencode("\0".join(word for order in orders for word in order)))
        except OSError:
            raise ToolFailure("it has too many places to be confined", code=NOT_CONFINED) from None
        closed = tuple(dict.fromkeys((*confinement.closed, *(tree.base for tree in confinement.trees))))
        options = [
            *room_options(plan.mounts, confinement.programs, closed, python, self._keep, confinement.etc),
            *("--chdir", str(command.cwd or confinement.folder)),
        ]
        numbers = self._keep(seccomp_filter()), self._keep(os.fsencode("".join(f"{one}\0" for one in options)))
        self.command = replace(
            command,
            command=_SHELL,
            arguments=(
                *("-c", _IGNORING, "sh", bubblewrap(), "--seccomp", str(numbers[0]), "--args", str(numbers[1]), "--"),
                *(*python.words, INIT, str(theirs.fileno()), command.command, *command.arguments),
            ),
            environment=environment,
            cwd=Path("/"),
            pass_fds=(*command.pass_fds, theirs.fileno(), *self._numbers),
        )

    async def began(self, pid: int) -> None:
        """Let the program begin; ``pid`` is the started process, the first of its group.

        Raises ToolFailure if the program cannot begin.
        """
        self._pid = pid
        for one in self._sockets[1:]:
            one.close()
        try:
            answer, numbers = await asyncio.wait_for(self._answer(), _BEGIN_S)
            if not numbers:
                raise OSError(self.why_ended or "it ended before its program began")
            self._first = os.pidfd_open(_child_of(pid))
            self._room.landlock = answer.decode("ascii", "replace")
            with self._hiding:
                self._covers = covers = Covers(numbers[0])
                waiting = tuple(self._waiting)
            for number in numbers[1:]:
                self._leave = await self._room.serve(number)
            if waiting:
                await in_own_thread(covers.hide, waiting)
            await self._room.begin()
            self._channel.send(b"g")
        except (OSError, TimeoutError) as error:
            raise ToolFailure("it cannot be started", code=NOT_CONFINED, detail=str(error)) from None

    async def _answer(self) -> tuple[bytes, list[int]]:
        loop, readable = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(self._channel, readable.set)
        try:
            await readable.wait()
        finally:
            loop.remove_reader(self._channel)
        answer, numbers, *_ = socket.recv_fds(self._channel, _MAX_ANSWER, 2)
        return answer, numbers

    def hide(self, mounts: tuple[Mount, ...]) -> None:
        """Hide the mounts, or end the process if that fails; any thread may call this."""
        with self._hiding:
            covers = self._covers
            if covers is None:
                self._waiting += mounts
                return
        try:
            covers.hide(mounts)
        except OSError as error:
            self.end(str(error))

    def end(self, why: str) -> None:
        """Kill the process and its descendants; any thread may call this."""
        self.why_ended = self.why_ended or why
        for one in self._sockets[:1]:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        if self._pid is not None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._pid, signal.SIGKILL)

    def close(self) -> None:
        """Release everything after the process has ended."""
        self._room.forget(self, self._first)
        self._first = -1
        with self._hiding:
            covers, self._covers = self._covers, None
        if covers is not None:
            covers.close()
        self._leave()
        for one in self._sockets:
            one.close()
        for number in self._numbers:
            os.close(number)
        self._numbers.clear()

    def _keep(self, data: bytes) -> int:
        """Put ``data`` into an open file in memory and return its number."""
        number = os.memfd_create("gatewright")
        self._numbers.append(number)
        os.write(number, data)
        os.lseek(number, 0, os.SEEK_SET)
        return number


def _child_of(pid: int) -> int:
    """Return the only child of a process: of bubblewrap the first process in the room. Raises OSError."""
    for one in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            if int(one.read_bytes().rpartition(b")")[2].split()[1]) == pid:
                return int(one.parent.name)
    raise ProcessLookupError("it ended before its program began")


def _environment(confinement: Confinement, command: Command) -> dict[str, str]:
    """Return a process's variables: the given ones, its folders, and the way to the proxy."""
    made = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", **confinement.environment, **command.environment}
    made |= {"HOME": HOME, "TMPDIR": "/tmp"}
    if confinement.hosts:
        address = f"127.0.0.1:{PROXY_PORT}"
        # not as SOCKS: a program without a library for it would fail on every request
        proxies = dict.fromkeys(("http_proxy", "https_proxy", "all_proxy"), f"http://{address}")
        proxies |= {"no_proxy": "localhost,127.0.0.1,::1"}
        made |= proxies | {name.upper(): value for name, value in proxies.items()}
    return made


def _places(confinement: Confinement, plan: RoomPlan) -> Iterator[tuple[str, str]]:
    """Yield the places that Landlock allows: the root for listing, the system and granted places for reading, some for
    writing.
    """
    yield "list", "/"
    for path in ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc", "/proc", "/dev", OURS, *confinement.programs):
        yield "read", path
    for path in ("/tmp", HOME, "/dev/null", "/dev/zero", "/dev/full", "/dev/tty", "/dev/pts", "/dev/ptmx", "/dev/shm"):
        yield "write", path
    for mount in plan.mounts:
        if mount.kind in _GRANTED:
            yield ("write" if mount.kind is MountKind.WRITE else "read"), mount.path


def _limits(bounds: ProcessBounds) -> Iterator[tuple[str, str]]:
    for word, value in (
        ("cpu", bounds.cpu_s),
        ("memory", bounds.memory_bytes),
        ("processes", bounds.processes),
        ("files", bounds.files),
        ("file", bounds.file_bytes),
    ):
        if value is not None:
            yield word, str(max(1, math.ceil(value)))


class ConfinedProcess(ServerProcess):
    """A process in a room; it ends with the room, or when something appears that it must not see."""

    def __init__(self, room: Room, command: Command, stderr: bytearray, leave_s: float) -> None:
        super().__init__(command, stderr, leave_s)
        self._room, self._said = room, stderr

    async def __aenter__(self) -> Self:
        self._launch = self._room.launch(self._command)
        self._command = self._launch.command
        try:
            await super().__aenter__()
            try:
                await self._launch.began(self.pid)
            except BaseException as error:
                await super().__aexit__(None, None, None)
                if isinstance(error, ToolFailure):
                    said = printable(self._said.decode("utf-8", "replace").strip())[:_SAID_CHARS]
                    error.detail = said or error.detail
                raise
        except BaseException:
            self._launch.close()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        try:
            await super().__aexit__(*_)
        finally:
            self._launch.close()
            await self._room.take_back()

    @property
    def why_ended(self) -> str:
        """The reason if we ended it; else empty."""
        return self._launch.why_ended
