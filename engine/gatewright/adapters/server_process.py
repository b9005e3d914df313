"""The process of a server that speaks line by line on its standard streams, and the loop that outlives its caller.

The process runs in its own session, with exactly the given environment. Its output is bounded, and nothing of its
process group outlives this program, however this program ends: a guard kills the group, a shell that waits for the end
of a pipe which only we hold.
"""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import subprocess
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import field
from functools import cache
from pathlib import Path
from typing import Any, Self, TypeVar

from gatewright.base.frozen import frozen
from gatewright.base.late import in_own_thread, unbroken
from gatewright.record.process import fork_safe_lock, renew_after_fork

LOOP_THREAD = "gatewright-loop"
T = TypeVar("T")


class LoopThread:
    """Runs coroutines in a loop in its own thread, which begins with the first of them and ends with the process."""

    def __init__(self) -> None:
        self._lock = fork_safe_lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        renew_after_fork(self)

    def renew(self) -> None:
        """Start anew in the child of a fork, which lacks its parent's thread."""
        self._loop = None

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Await ``work`` from any loop and return its result; cancelling the wait cancels the work."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._running()))

    async def run_out(self, work: Coroutine[Any, Any, T]) -> T:
        """Await ``work`` like `run`; a cancelled waiter continues only after the cancelled work has ended."""
        loop, done, tasks = self._running(), Future[T](), list[asyncio.Task[T]]()

        def begin() -> None:
            tasks.append(loop.create_task(work))
            tasks[0].add_done_callback(end)

        def end(task: asyncio.Task[T]) -> None:
            if task.cancelled():
                done.cancel()
            elif (error := task.exception()) is not None:
                done.set_exception(error)
            else:
                done.set_result(task.result())

        loop.call_soon_threadsafe(begin)
        waiting = asyncio.wrap_future(done)
        try:
            return await asyncio.shield(waiting)
        except asyncio.CancelledError:
            if not waiting.done():
                loop.call_soon_threadsafe(lambda: tasks[0].cancel())  # noqa: PLW0108 the task exists by then
                await asyncio.wait({waiting})
                if not waiting.cancelled():
                    waiting.exception()  # nobody asks for it
            raise

    def wait(self, work: Coroutine[Any, Any, T], timeout_s: float) -> T:
        """Wait for ``work`` without a loop. Raises TimeoutError, and then cancels the work."""
        future = asyncio.run_coroutine_threadsafe(work, self._running())
        try:
            return future.result(timeout_s)
        except TimeoutError:
            future.cancel()
            raise

    def begin(self, work: Coroutine[Any, Any, None]) -> None:
        """Begin ``work`` without waiting for it."""
        asyncio.run_coroutine_threadsafe(work, self._running())

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=self._loop.run_forever, name=LOOP_THREAD, daemon=True).start()
            return self._loop


@cache
def loop_thread() -> LoopThread:
    """Return the loop thread of this process."""
    return LoopThread()


def call_in(loop: asyncio.AbstractEventLoop, function: Callable[..., None]) -> Callable[..., None]:
    """Wrap ``function`` so that any thread may call it and ``loop`` runs it; after the loop's end calls do nothing."""

    def tell(*args: object) -> None:
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(function, *args)

    return tell


MAX_LINE_BYTES = 16 * 1024 * 1024
STDERR_BYTES = 64 * 1024
LEAVE_S = 1.0
"""The seconds for a server to leave after its input ends, and again after a signal."""
_CHUNK = 64 * 1024
_PROCESSES = Path("/proc")
_GUARD = 'trap "" HUP INT TERM; while read -r _; do :; done; kill -s KILL -- "-$1" 2>/dev/null'


class LineTooLong(Exception):
    """A line of more than `MAX_LINE_BYTES`."""


@frozen
class Command:
    """A program to start. ``environment`` is all that the process gets; ``cwd`` None means the folder of this program.

    ``secrets``: values in it to remove from the words of a failure, if the process repeats them.
    """

    command: str
    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict[str, str], hash=False, repr=False)
    cwd: Path | None = None
    pass_fds: tuple[int, ...] = ()
    secrets: tuple[str, ...] = field(default=(), hash=False, repr=False)


class ServerProcess:
    """A running process, during an ``async with``. Entering raises OSError or ValueError."""

    def __init__(self, command: Command, stderr: bytearray, leave_s: float = LEAVE_S) -> None:
        self._command, self._stderr, self._leave_s = command, stderr, leave_s
        self.has_ended = asyncio.Event()

    async def __aenter__(self) -> Self:
        if not hasattr(os, "killpg"):
            raise OSError(errno.ENOSYS, "this system cannot end a program together with all that it started")
        starting = asyncio.ensure_future(
            asyncio.create_subprocess_exec(
                self._command.command,
                *self._command.arguments,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=dict(self._command.environment),
                cwd=self._command.cwd,
                start_new_session=True,
                pass_fds=self._command.pass_fds,
            )
        )
        try:
            self._process = await asyncio.shield(starting)
        except asyncio.CancelledError:
            # it may have started others, which asyncio would not end
            starting.add_done_callback(_kill_started)
            raise
        pid = self._process.pid
        try:
            self._guard = subprocess.Popen(
                ["/bin/sh", "-c", _GUARD, "gatewright-guard", str(pid)],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                env={},
                cwd="/",
            )
        except BaseException:
            _signal_group(pid, signal.SIGKILL)
            raise
        self._tasks = [asyncio.create_task(work) for work in (self._keep_stderr(), self._watch())]
        return self

    async def __aexit__(self, *_: object) -> None:
        """Let the process leave, then ask it, then kill the rest of its group; a cancellation waits for that."""
        await unbroken(asyncio.ensure_future(self._end()))

    async def _end(self) -> None:
        pid = self._process.pid
        self.end_input()
        if not await self._leaves():
            _signal_group(pid, signal.SIGTERM)
            await self._leaves()
        _signal_group(pid, signal.SIGKILL)
        await self._leaves()
        for _tries in range(100):  # its children are not ours, so nobody reports their end
            if not _signal_group(pid, 0) or not is_alive(pid):
                break
            await asyncio.sleep(0.01)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._process._transport.close()  # pyright: ignore  # a descendant that left the group may hold the pipes open
        self._guard.kill()
        if self._guard.stdin is not None:
            self._guard.stdin.close()
        self._guard.wait()

    @property
    def pid(self) -> int:
        """The id of the process and of its group."""
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """Its exit code, negative for a signal; None while it runs."""
        return self._process.returncode

    @property
    def why_ended(self) -> str:
        """The reason if we ended it early; else empty."""
        return ""

    def end_input(self) -> None:
        """Close its input."""
        self._stdin.close()

    def kill_group(self) -> None:
        """Kill it and its whole group at once."""
        _signal_group(self.pid, signal.SIGKILL)

    async def chunks(self) -> AsyncGenerator[bytes]:
        """Yield its output, until it and its descendants close it."""
        stdout = self._process.stdout
        while stdout is not None and (chunk := await stdout.read(_CHUNK)):
            yield chunk

    async def lines(self) -> AsyncGenerator[bytes]:
        """Yield its output line by line, until it closes it. Raises LineTooLong."""
        line = bytearray()
        async for chunk in self.chunks():
            *whole, rest = chunk.split(b"\n")
            for piece in whole:
                line += piece
                yield bytes(line)
                line.clear()
            line += rest
            if len(line) > MAX_LINE_BYTES:
                raise LineTooLong

    async def write(self, line: bytes) -> None:
        """Send a line; wait while the process does not read. Raises OSError once it stops listening."""
        self._stdin.write(line)
        self._stdin.write(b"\n")
        await self._stdin.drain()

    async def how_it_ended(self) -> str:
        """Describe how it ended, or that it closed its output and still runs."""
        await self._leaves()
        code = self._process.returncode
        if code is None:
            return "closed its output"
        if code >= 0:
            return f"ended with exit code {code}"
        with suppress(ValueError):
            return f"was killed by {signal.Signals(-code).name}"
        return f"was killed by signal {-code}"

    @property
    def _stdin(self) -> asyncio.StreamWriter:
        assert self._process.stdin is not None
        return self._process.stdin

    async def _leaves(self) -> bool:
        with suppress(TimeoutError):
            await asyncio.wait_for(self.has_ended.wait(), self._leave_s)
        return self.has_ended.is_set()

    async def _watch(self) -> None:
        """Notice the end of the process itself, since its descendants may hold its output open."""
        with suppress(ChildProcessError):
            await in_own_thread(os.waitid, os.P_PID, self._process.pid, os.WEXITED | os.WNOWAIT)
        while self._process.returncode is None:
            await asyncio.sleep(0.001)
        self.has_ended.set()

    async def _keep_stderr(self) -> None:
        stderr = self._process.stderr
        while stderr is not None and (chunk := await stderr.read(_CHUNK)):
            self._stderr += chunk
            if len(self._stderr) > STDERR_BYTES:  # whole lines, since half a secret could not be found and removed
                end = self._stderr.find(b"\n", -STDERR_BYTES - 1, -1)
                del self._stderr[: end + 1 if end >= 0 else -STDERR_BYTES]


def _kill_started(starting: asyncio.Future[asyncio.subprocess.Process]) -> None:
    """Kill a process, with its descendants, for which nobody waits any more."""
    if not starting.cancelled() and starting.exception() is None:
        process = starting.result()
        _signal_group(process.pid, signal.SIGKILL)
        process._transport.close()  # pyright: ignore


def is_alive(group: int) -> bool:
    """Tell whether anything in a process group runs; an ended process stays in it until its parent reads its status."""
    if not _PROCESSES.is_dir():
        return True
    for one in _PROCESSES.glob("[0-9]*/stat"):
        with suppress(OSError):
            state, _, its_group, *_ = one.read_bytes().rpartition(b")")[2].split()
            if int(its_group) == group and state not in (b"Z", b"X"):
                return True
    return False


def _signal_group(pid: int, number: int) -> bool:
    """Send a signal to a process group; false for an empty group."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)
        return True
    return False
