"""Hides names in a running room: starts the process that does it, `confined_cover`, and sends its orders."""

from __future__ import annotations

import os
import select
import subprocess
from pathlib import Path
from threading import Lock

from gatewright.adapters.bubblewrap import python_of_rooms
from gatewright.sources.roomview import Mount, MountKind

_PROGRAM = Path(__file__).with_name("confined_cover.py")
_ORDERS = {MountKind.OVERLAY: "r", MountKind.READ: "o"}
_HIDE_S = 10.0


class Covers:
    """Hides files in the mounts of a running room; it owns ``namespace``, an open file.

    The first path starts a process that stays in the room's mounts.
    """

    def __init__(self, namespace: int) -> None:
        self._namespace, self._lock = namespace, Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._is_closed = False

    def hide(self, mounts: tuple[Mount, ...]) -> None:
        """Hide the mounts and wait for it. Raises OSError if that fails."""
        with self._lock:
            if self._is_closed:  # the room has ended
                return
            if self._process is None:
                self._process = self._begin()
                self._ask(self._process, b"", 1)
            asked = (f"{_ORDERS.get(one.kind, 'h')}{one.path}\0" for one in mounts)
            self._ask(self._process, os.fsencode("".join(asked)), len(mounts))

    def close(self) -> None:
        """Release the mounts."""
        with self._lock:
            self._is_closed = True
            if self._process is not None:
                self._process.kill()
                self._process.communicate()
            os.close(self._namespace)

    def _begin(self) -> subprocess.Popen[bytes]:
        python = python_of_rooms()
        assert python is not None
        return subprocess.Popen(
            [*python.outside, str(_PROGRAM), str(self._namespace)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            pass_fds=(self._namespace,),
            env={},
            cwd="/",
            bufsize=0,
        )

    @staticmethod
    def _ask(process: subprocess.Popen[bytes], asked: bytes, count: int) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(asked)
        while count:
            ready, _, _ = select.select([process.stdout], [], [], _HIDE_S)
            answer = process.stdout.read(count) if ready else b""
            if not answer or b"-" in answer:
                raise OSError("what appeared in it could not be hidden")
            count -= len(answer)
