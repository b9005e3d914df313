"""A program in a room, on this process's terminal or streams: a person runs it under a policy.

On a terminal it gets its own one, which passes on keys, output and window size. Job control is inside; a program cannot
type into the terminal of its starter. It ends with this process.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import pty
import signal
import struct
import subprocess
import sys
import termios
import tty
from collections.abc import Generator
from contextlib import contextmanager, suppress

from gatewright.adapters.confine import Room
from gatewright.adapters.server_process import Command

_PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
_CHUNK = 64 * 1024
_SIZE = struct.pack("HHHH", 0, 0, 0, 0)


async def run_in_room(room: Room, command: Command) -> int:
    """Run a program to its end and return its exit code, 128 and more for a signal. Raises ToolFailure, OSError.

    Only the main thread may call it.
    """
    launch = room.launch(command)
    try:
        with _terminal() as slave:
            words = [launch.command.command, *launch.command.arguments]
            if slave is not None:
                joined = "".join(f" {number}>&0" for number in (1, 2) if os.isatty(number))
                words = ["/bin/sh", "-c", f'exec "$@" 0<>"$0"{joined}', os.ttyname(slave), *words]
            process = subprocess.Popen(
                words,
                env=dict(launch.command.environment),
                cwd=launch.command.cwd,
                pass_fds=launch.command.pass_fds,
                start_new_session=True,  # so that it owns the terminal that it opens
            )
            try:
                await launch.began(process.pid)
                with _signals_to(process.pid):
                    code = await _end_of(process)
            finally:
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    finally:
        launch.close()
    return code if code >= 0 else 128 - code


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
    """Show the last output."""
    os.set_blocking(master, False)
    with suppress(OSError):
        while data := os.read(master, _CHUNK):
            os.write(out, data)
