"""Runs commands in rooms: a shell for each, a sidecar for one session, or a program on a person's terminal.

Each is a process with its own session, an environment of a few fixed variables and bounded output; nothing of its
process group outlives the command, the session or this program. It runs in its agent's room (`confine`) with only the
granted things, unless the policy turns confinement off. A program on a terminal gets a terminal of its own, which
passes on keys, output and window size. Job control works inside, and the program cannot type into the terminal of its
starter. It ends with this process. The module has more than 450 lines because all of them start and end alike.
"""

from __future__ import annotations

import asyncio
import fcntl
import math
import os
import pty
import secrets
import signal
import socket
import struct
import subprocess
import sys
import termios
import time
import tty
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

from gatewright.adapters.confine import Confiner, Room
from gatewright.adapters.server_process import Command, ServerProcess, loop_thread
from gatewright.adapters.subprocess_tool import IDLE_S, KeptRooms
from gatewright.base.errors import ToolFailure
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue
from gatewright.policy.document import ROOT_NAMES, Confine, Policy, ShellBackend
from gatewright.policy.target import Confinement, Refusal
from gatewright.tools.context import ToolExecutionContext
from gatewright.tools.declaration import ResourceBounds

SHELL = "/bin/bash"
ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "HOME": "/nonexistent",
    "LANG": "C.UTF-8",
    "TERM": "dumb",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
}
MAX_OUTPUT_BYTES = 256 * 1024
MAX_SIDECARS = 16
_DRAIN_S = 1.0
_TAKEN = "enable -n printf test '['"
"""Builtins that would evaluate an argument (`-v`); the programs with these names do not."""
_LOOP = f"""exec 2>&1; {_TAKEN}
while IFS= builtin read -r -d '' -u 3 GATEWRIGHT; do
  builtin eval "$GATEWRIGHT" </dev/null 3>&-
  builtin echo -n "$? $PWD" >&3; builtin echo -ne '\\0' >&3
  IFS= builtin read -r -d '' -u 3 GATEWRIGHT; builtin echo -n "$GATEWRIGHT"
done"""
_SOCKET = 3
"""The file number in a sidecar that is its end of the socket."""


@frozen
class _Launch:
    """The start of a shell: its room (or None), its first folder, and the limits that it sets itself."""

    room: Room | None
    folder: str
    limits: str

    def process(self, script: str, *, pass_fds: tuple[int, ...] = ()) -> ServerProcess:
        words = ("--noprofile", "--norc", "-c", f"{self.limits}{script}")
        command = Command(SHELL, words, ENVIRONMENT, Path(self.folder), pass_fds)
        return (
            ServerProcess(command, bytearray(), 0.0)
            if self.room is None
            else self.room.process(command, bytearray(), 0.0)
        )


class Shells:
    """The shells of one workspace, under the policy that ``policy`` returns; any thread and any loop may use it.

    ``confinement``: the restrictions of an agent's commands, None for none; ``confiner`` makes rooms of them. ``began``
    is called when a shell of a session begins.
    """

    def __init__(
        self,
        policy: Callable[[], Policy],
        confinement: Callable[[str], Confinement | None],
        confiner: Callable[[], Confiner],
        began: Callable[[], None] = lambda: None,
    ) -> None:
        self._policy, self._confinement, self._began = policy, confinement, began
        self._sidecars: dict[tuple[str, str, str], _Sidecar] = {}
        self._rooms = KeptRooms(confiner)

    async def run(self, command: str, context: ToolExecutionContext) -> dict[str, JsonValue]:
        """Execute a judged command: ``exit_code``, ``output`` (with standard error).

        Raises ToolFailure if no shell can start. A cancellation ends the shell with all its processes.
        """
        start = context.require_roots().find(ROOT_NAMES[0], roots=ROOT_NAMES[:1])
        if isinstance(start, Refusal):
            raise ToolFailure(start.hint, code=start.code)
        try:
            return await loop_thread().run(self._run(command, start.absolute, context))
        except (OSError, ValueError) as error:
            raise ToolFailure("no shell can be started here", code="no-shell", detail=str(error)) from None

    async def _run(self, command: str, folder: str, context: ToolExecutionContext) -> dict[str, JsonValue]:
        confinement = self._confinement(context.agent_id)
        if confinement is None:
            launch = _Launch(None, folder, _limits(context.bounds))
        else:
            launch = _Launch(await self._rooms.room(context.agent_id, confinement), confinement.folder, "")
        if self._policy().shell.backend is ShellBackend.SESSION:
            return await self._in_session(command, launch, context)
        return await _once(command, launch)

    def close(self) -> None:
        """End every sidecar and every room; wait a few seconds at most."""
        if self._sidecars or self._rooms.rooms:
            with suppress(TimeoutError):
                loop_thread().wait(self._end(), 5.0)

    async def end_session(self, session_id: str) -> None:
        """End the sidecars of an ended session."""
        await loop_thread().run(self._end_where(lambda key: key[1] == session_id))

    @property
    def is_used(self) -> bool:
        """True while a shell of a session lives."""
        return bool(self._sidecars)

    async def end_of(self, is_stopped: Callable[[str], bool]) -> None:
        """End the sidecars of stopped agents; in the loop thread."""
        await self._end_where(lambda key: is_stopped(key[0]))

    async def _end(self) -> None:
        await self._end_where(lambda _: True)
        await self._rooms.close()

    async def _end_where(self, is_meant: Callable[[tuple[str, str, str]], bool]) -> None:
        ending = [self._sidecars.pop(key) for key in list(self._sidecars) if is_meant(key)]
        await asyncio.gather(*(sidecar.end() for sidecar in ending))

    async def _in_session(self, command: str, launch: _Launch, context: ToolExecutionContext) -> dict[str, JsonValue]:
        key = (context.agent_id, context.session_id, context.user_id or "")
        now = time.monotonic()
        by_age = sorted(self._sidecars, key=lambda one: self._sidecars[one].used_s)
        too_many = frozenset(by_age[: max(0, len(by_age) - MAX_SIDECARS + 1)]) - {key}
        await self._end_where(lambda one: one in too_many or now - self._sidecars[one].used_s > IDLE_S)
        held = self._sidecars.get(key)
        if held is not None and (held.launch != launch or held.is_over):
            del self._sidecars[key]
            await held.end()
        sidecar = self._sidecars.setdefault(key, _Sidecar(launch))
        self._began()
        return await sidecar.run(command)


def _limits(bounds: ResourceBounds) -> str:
    """Return the commands that set the limits of a shell without a room."""
    limits = ""
    if bounds.cpu_s is not None:
        limits += f"ulimit -t {math.ceil(bounds.cpu_s)} || exit 126; "
    if bounds.memory_bytes is not None:
        limits += f"ulimit -v {max(1, bounds.memory_bytes // 1024)} || exit 126; "
    return limits


def isolation_words(confine: Confine) -> str:
    """Describe in plain words how far shells are separated from the rest of the system."""
    if confine is Confine.NONE:
        return "not confined, as the policy says: programs may reach all that the user may"
    return "confined: of files and hosts only what the agent is granted exists for it"


def shell_obstacle(confine: Confine) -> str:
    """Explain why no command may run on this system, and what to do; empty if one may."""
    why = Confiner.why_not() if confine is Confine.POLICY else ""
    return f"commands cannot be confined on this system: {why}" if why else ""


async def _once(command: str, launch: _Launch) -> dict[str, JsonValue]:
    """Run one command in its own shell."""
    output = _Output()
    async with launch.process(f"exec 2>&1; {_TAKEN}; {command}") as process:
        process.end_input()
        reading = asyncio.create_task(output.read(process))
        try:
            await process.has_ended.wait()
            process.kill_group()  # its background processes keep the output open
            with suppress(TimeoutError):
                await asyncio.wait_for(reading, _DRAIN_S)
        finally:
            process.kill_group()
            reading.cancel()
        return {"exit_code": process.returncode, **output.data}


class _Output:
    """The beginning of a process's output, and the amount of the rest; ``marker`` ends it."""

    def __init__(self, marker: bytes = b"") -> None:
        self._kept, self._last, self._count = bytearray(), b"", 0
        self._marker, self.has_marker = marker, asyncio.Event()

    async def read(self, process: ServerProcess) -> None:
        """Read until the process closes its output."""
        async for chunk in process.chunks():
            self.take(chunk)

    def take(self, chunk: bytes) -> None:
        """Add a piece."""
        self._count += len(chunk)
        self._kept += chunk[: MAX_OUTPUT_BYTES - len(self._kept)]
        self._last = (self._last + chunk)[-MAX_OUTPUT_BYTES:]
        if self._marker and self._marker in self._last:
            self.has_marker.set()

    def expect(self, marker: bytes) -> None:
        """Look for the marker that the shell writes at the end of a command."""
        self._marker = marker
        self.take(b"")

    @property
    def data(self) -> dict[str, JsonValue]:
        """Return the output as the answer has it."""
        kept, count = bytes(self._kept), self._count
        if self._marker and self.has_marker.is_set():
            kept, count = kept.partition(self._marker)[0], count - len(self._marker)
        left_out = count - len(kept)
        text: dict[str, JsonValue] = {"output": kept.decode("utf-8", "replace")}
        return {**text, "left_out_bytes": left_out} if left_out > 0 else text


class _Sidecar:
    """A shell that lives as long as a session. Commands and answers go over a Unix socket that only the shell has."""

    def __init__(self, launch: _Launch) -> None:
        self.launch = launch
        self.used_s = time.monotonic()
        self.is_over = False
        self._turn = asyncio.Lock()
        self._process: ServerProcess | None = None
        self._output = _Output()

    async def run(self, command: str) -> dict[str, JsonValue]:
        """Execute a command after the earlier ones. A cancellation ends the shell."""
        async with self._turn:
            self.used_s = time.monotonic()
            began = {} if self._process is not None else {"session": "begins with this command"}
            try:
                process = self._process or await self._start()
                if self.launch.room is not None:
                    await self.launch.room.check()
                self._output = output = _Output()
                self._writer.write(command.encode() + b"\0")
                status, _, folder = (await self._reader.readuntil(b"\0"))[:-1].decode("utf-8", "replace").partition(" ")
                marker = secrets.token_hex(16).encode()
                self._writer.write(marker + b"\0")
                output.expect(marker)
                await output.has_marker.wait()
            except (asyncio.IncompleteReadError, ConnectionError):
                return await self._result_of_end()
            except BaseException:
                self.is_over = True
                if self._process is not None:
                    self._process.kill_group()
                raise
            finally:
                self.used_s = time.monotonic()
            if self.launch.room is not None:
                await self.launch.room.take_back()
        assert process is self._process
        return {"exit_code": int(status), **output.data, "folder": folder, **began}

    async def end(self) -> None:
        """Kill it with all its processes."""
        self.is_over = True
        process, self._process = self._process, None
        if process is not None:
            process.kill_group()
            self._writer.close()
            self._reading.cancel()
            await process.__aexit__(None, None, None)

    async def _start(self) -> ServerProcess:
        ours, theirs = socket.socketpair()
        with theirs:
            number = theirs.fileno()
            script = _LOOP if number == _SOCKET else f"exec {_SOCKET}<&{number} {number}<&-; {_LOOP}"
            made = self.launch.process(script, pass_fds=(number,))
            try:
                self._process = process = await made.__aenter__()
            except BaseException:
                ours.close()
                raise
        process.end_input()
        self._reader, self._writer = await asyncio.open_connection(sock=ours)
        self._reading = asyncio.create_task(self._read(process))
        return process

    async def _read(self, process: ServerProcess) -> None:
        async for chunk in process.chunks():
            self._output.take(chunk)

    async def _result_of_end(self) -> dict[str, JsonValue]:
        """Return the result of a command that ended its shell."""
        process, output = self._process, self._output
        code: JsonValue = None
        if process is not None:
            await process.has_ended.wait()
            process.kill_group()
            with suppress(TimeoutError, asyncio.CancelledError):
                await asyncio.wait_for(self._reading, _DRAIN_S)
            code = process.returncode
        await self.end()
        return {"exit_code": code, **output.data, "session": "the shell ended; the next command begins a new one"}


_PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
_CHUNK = 64 * 1024
_SIZE = struct.pack("HHHH", 0, 0, 0, 0)


async def run_in_room(room: Room, command: Command) -> int:
    """Run a program to its end and return its exit code, 128 and more for a signal. Raises ToolFailure, OSError.

    Only the main thread may call this.
    """
    with _terminal() as slave:
        before: tuple[str, ...] = ()
        if slave is not None:
            joined = "".join(f" {number}>&0" for number in (1, 2) if os.isatty(number))
            before = ("/bin/sh", "-c", f'exec "$@" 0<>"$0"{joined}', os.ttyname(slave))
        code = await run_on(room, command, (None, None, None), _signals_to, before)
    return code if code >= 0 else 128 - code


async def run_on(
    room: Room,
    command: Command,
    streams: tuple[int | None, int | None, int | None],
    meanwhile: Callable[[int], AbstractContextManager[None]],
    before: Sequence[str] = (),
) -> int:
    """Run a program to its end on these standard streams (None: ours) and return its code, negative for a signal.

    ``meanwhile`` gets its group while it runs; ``before``: words of a program that starts it. A cancellation kills the
    group. Raises ToolFailure, OSError.
    """
    launch = room.launch(command)
    try:
        process = subprocess.Popen(
            [*before, launch.command.command, *launch.command.arguments],
            stdin=streams[0],
            stdout=streams[1],
            stderr=streams[2],
            env=dict(launch.command.environment),
            cwd=launch.command.cwd,
            pass_fds=launch.command.pass_fds,
            start_new_session=True,  # so that it owns the terminal that it opens
        )
        try:
            await launch.began(process.pid)
            with meanwhile(process.pid):
                return await _end_of(process)
        finally:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    finally:
        launch.close()


async def _end_of(process: subprocess.Popen[bytes]) -> int:
    ended = asyncio.Event()
    descriptor = os.pidfd_open(process.pid)
    loop = asyncio.get_running_loop()
    loop.add_reader(descriptor, ended.set)
    try:
        await ended.wait()
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)
    return process.wait()


@contextmanager
def _signals_to(group: int) -> Generator[None]:
    """Pass signals for the program on to it."""
    loop = asyncio.get_running_loop()

    def send(number: signal.Signals) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(group, number)

    for number in _PASSED_ON:
        loop.add_signal_handler(number, send, number)
    try:
        yield
    finally:
        for number in _PASSED_ON:
            loop.remove_signal_handler(number)


@contextmanager
def _terminal() -> Generator[int | None]:
    """Open a terminal for the program, joined to ours; None if our input is not a terminal."""
    if not sys.stdin.isatty():
        yield None
        return
    loop, ours = asyncio.get_running_loop(), sys.stdin.fileno()
    master, slave = pty.openpty()
    before = termios.tcgetattr(ours)

    def resize() -> None:
        with suppress(OSError):
            fcntl.ioctl(master, termios.TIOCSWINSZ, fcntl.ioctl(ours, termios.TIOCGWINSZ, _SIZE))

    def pass_on(source: int, target: int) -> None:
        try:
            data = os.read(source, _CHUNK)
            while data:
                data = data[os.write(target, data) :]
        except OSError:  # the other side is gone; other code notices its end
            loop.remove_reader(source)

    out = 1 if os.isatty(1) else 2
    resize()
    tty.setraw(ours, termios.TCSADRAIN)
    loop.add_signal_handler(signal.SIGWINCH, resize)
    loop.add_reader(ours, pass_on, ours, master)
    loop.add_reader(master, pass_on, master, out)
    try:
        yield slave
    finally:
        loop.remove_signal_handler(signal.SIGWINCH)
        for source in (ours, master):
            loop.remove_reader(source)
        _drain(master, out)
        termios.tcsetattr(ours, termios.TCSADRAIN, before)
        os.close(slave)
        os.close(master)


def _drain(master: int, out: int) -> None:
    """Pass on the last output."""
    os.set_blocking(master, False)
    with suppress(OSError):
        while data := os.read(master, _CHUNK):
            os.write(out, data)
