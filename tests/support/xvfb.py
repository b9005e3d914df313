"""A private X display for journeys: one Xvfb process, the real mouse and keyboard on it, and their end."""

import os
import shutil
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass

STOP_SECONDS = 10.0
NEEDED_PROGRAMS = ("Xvfb", "xdotool")


class NoDisplayError(RuntimeError):
    """The X server or the mouse and keyboard are missing, or the server did not come up in time."""


@dataclass(frozen=True, slots=True)
class Display:
    """A running X display; `name` is what DISPLAY has to say, the size is in pixels."""

    name: str
    width: int
    height: int

    def environ(self) -> dict[str, str]:
        """The environment of a process that draws on this display only."""
        rest = {key: value for key, value in os.environ.items() if key != "WAYLAND_DISPLAY"}
        return {**rest, "DISPLAY": self.name, "QT_QPA_PLATFORM": "xcb"}

    def xdotool(self, *arguments: str) -> str:
        """Run one xdotool command on this display; its output. Raises CalledProcessError when it fails."""
        done = subprocess.run(
            ["xdotool", *arguments],
            env=self.environ(),
            check=True,
            capture_output=True,
            text=True,
        )
        return done.stdout.strip()


@contextmanager
def private_display(width: int = 1400, height: int = 900) -> Generator[Display, None, None]:
    """Start an X server on a free display number and end that one process afterwards."""
    missing = [name for name in NEEDED_PROGRAMS if shutil.which(name) is None]
    if missing:
        raise NoDisplayError(f"journeys need {' and '.join(f'`{name}`' for name in missing)}: `./check` installs them")
    read_end, write_end = os.pipe()
    with os.fdopen(read_end, "rb") as numbers:
        server = _start_server(write_end, width, height)
        try:
            yield Display(f":{_number(numbers.fileno(), server)}", width, height)
        finally:
            _stop(server)


def _start_server(write_end: int, width: int, height: int) -> subprocess.Popen[bytes]:
    command = ["Xvfb", "-displayfd", str(write_end), "-screen", "0", f"{width}x{height}x24"]
    command += ["-nolisten", "tcp", "-noreset", "-r"]  # a key that a busy machine holds long does not repeat
    try:
        return subprocess.Popen(
            command,
            pass_fds=(write_end,),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
    finally:
        os.close(write_end)


def _number(read_end: int, server: subprocess.Popen[bytes]) -> int:
    """The display number the server chose; it writes it once it takes connections, and closes the pipe if it dies."""
    said = b""
    while not said.endswith(b"\n"):
        piece = os.read(read_end, 64)
        if not piece:
            raise NoDisplayError(f"Xvfb ended at once with status {server.wait()}")
        said += piece
    return int(said)


def _stop(server: subprocess.Popen[bytes]) -> None:
    server.terminate()
    try:
        server.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()
