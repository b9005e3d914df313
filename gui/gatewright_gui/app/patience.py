"""Patience that lasts as long as something moves, however busy the machine is.

A wait is in vain when this process and those that it started slept through it, or computed without end. The time in
which one of them computes, or would if others left it a processor or the disk, is not held against it. What they do is
read from Linux; on another system the clock counts, less what this process computes.
"""

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

LOOK_S = 0.2
"""Between two looks at what the processes do."""
IDLE_S, BUSY_S = 12.0, 300.0
_KNOWS = Path("/proc/self/task").is_dir()
_MOST = 1 << 16
_TICK_S = 1 / os.sysconf("SC_CLK_TCK") if _KNOWS else 1.0


class Thread(NamedTuple):
    """A thread so far: what it computed, how long it was kept from it by others, and whether it would go on now."""

    ran_s: float
    kept_s: float
    is_wanting: bool


class Patience:
    """Ask `is_over` again and again while waiting; `vain` then says why it is.

    `idle_s`: how long everything may sleep. `busy_s`: how much processor time everything may use. `root`: the process
    that is waited for, with those below it; by default this one.
    """

    def __init__(self, idle_s: float = IDLE_S, busy_s: float = BUSY_S, root: int | None = None) -> None:
        self._idle_s, self._busy_s = idle_s, busy_s
        self._root = os.getpid() if root is None else root
        self._looked_s = time.monotonic()
        self._before: dict[int, Thread] | None = None  # a wait that is short costs no look
        self._slept_s = self._ran_s = 0.0

    @property
    def is_over(self) -> bool:
        """Tell whether to wait on is in vain."""
        now_s = time.monotonic()
        if now_s >= self._looked_s + LOOK_S:
            self._look(now_s)
        return self._slept_s > self._idle_s or self._ran_s > self._busy_s

    @property
    def vain(self) -> str:
        """The wait, in words: `12 s with nothing moving` or `300 s of computing`."""
        if self._slept_s > self._idle_s:
            return f"{self._slept_s:.0f} s with nothing moving"
        return f"{self._ran_s:.0f} s of computing"

    def _look(self, now_s: float) -> None:
        found = dict(_threads(self._root)) if _KNOWS else {0: Thread(time.process_time(), 0.0, False)}
        before, passed_s = self._before, now_s - self._looked_s
        self._before, self._looked_s = found, now_s
        if before is None:
            return
        nothing, own = Thread(0.0, 0.0, False), threading.get_native_id()
        ran_s = sum(one.ran_s - before.get(at, nothing).ran_s for at, one in found.items())
        kept_s = sum(one.kept_s - before.get(at, nothing).kept_s for at, one in found.items())
        self._ran_s += max(ran_s, 0.0)
        if not any(one.is_wanting for at, one in found.items() if at != own):
            self._slept_s += max(passed_s - ran_s - kept_s, 0.0)


def wait_s(thread: int) -> float:
    """Seconds that others kept a thread of this process from a processor so far; 0 where the system does not say."""
    return _times(f"/proc/self/task/{thread}")[1]


def _threads(root: int) -> Iterator[tuple[int, Thread]]:
    """The threads of a process and of all below it; what ends meanwhile is left out."""
    waiting = [str(root)]
    while waiting:
        tasks = f"/proc/{waiting.pop()}/task"
        for task in _names_in(tasks):
            place = f"{tasks}/{task}"
            told = _read(f"{place}/stat").rpartition(")")[2].split()
            if told:
                ran_s, kept_s = _times(place)
                ran_s = ran_s or (int(told[11]) + int(told[12])) * _TICK_S
                yield int(task), Thread(ran_s, kept_s, told[0] in {"R", "D"})
            waiting += _read(f"{place}/children").split()


def _times(task: str) -> tuple[float, float]:
    """The seconds that a thread computed, and those that it was kept from it."""
    told = _read(f"{task}/schedstat").split()
    return (int(told[0]) / 1e9, int(told[1]) / 1e9) if told else (0.0, 0.0)


def _names_in(folder: str) -> list[str]:
    try:
        return os.listdir(folder)  # noqa: PTH208  names are all that is wanted
    except OSError:
        return []


def _read(file: str) -> str:
    try:
        with open(file, "rb", buffering=0) as opened:  # noqa: PTH123  some hundred of them at each look
            return opened.read(_MOST).decode("ascii", "replace")
    except OSError:
        return ""
