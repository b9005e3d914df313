"""Finds what holds up the thread of the window: how long, during which interaction, and in which lines of code.

A thread of its own sends the window a small event every few
milliseconds and looks how long the answer takes; where it takes long it notes what the window is doing.

A busy machine is told from a busy window: time in which others kept the window's thread from a processor, which the
system counts, does not count, nor that in which no thread of this process had one, seen by the watching thread coming
late itself. Time that the window's thread computed always
counts, and so does time that it slept, waited or was kept out by other threads of the process.
"""

import faulthandler
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile

from PySide6.QtCore import QCoreApplication, QEvent, QObject, QThread

from gatewright_gui.app.patience import wait_s

STEP_S = 0.004
NOTICED_S = 0.016
"""Shorter blocks are not kept: a frame of a screen at 60 Hz."""
BETWEEN = "between interactions"
_MOST_FRAMES, _MOST_SAMPLES = 12, 25
_LINE = re.compile(r'File "(.+)", line (\d+) in (.+)')


@dataclass(frozen=True, slots=True)
class Block:
    """One time in which the window answered nothing.

    `wall_s` by the clock; `own_s` of it was computing in the window's thread; `held_s` is what counts: without the time
    in which the machine left the process no processor. `where`: what the window was doing, outermost first.
    """

    interaction: str
    wall_s: float
    own_s: float
    held_s: float
    where: tuple[str, ...] = ()

    def __str__(self) -> str:
        took = f"{self.interaction}: {self.held_s * 1e3:.0f} ms, {self.own_s * 1e3:.0f} ms of it computing"
        return "\n  ".join((took, *self.where))


@dataclass(slots=True)
class _Answer:
    """What the window's thread said last: when, how much it had computed until then, and in which interaction."""

    number: int
    at_s: float
    own_s: float
    interaction: str


class _Ear(QObject):
    """An object in the window's thread that answers."""

    KIND = QEvent.Type(QEvent.registerEventType())

    def __init__(self, answered: Callable[[], None]) -> None:
        super().__init__()
        self._answered = answered

    def event(self, event: QEvent) -> bool:
        """Handle the small event, and every other event of an object."""
        if event.type() == self.KIND:
            self._answered()
            return True
        return super().event(event)


class _Sampler:
    """Reads what a thread is doing from the dump that Python's fault handler writes.

    Frames asked for in the usual way would be kept alive for a moment, with painters and other things in them that must
    end in the window's thread.
    """

    def __init__(self, thread_id: int) -> None:
        self._mark = f"0x{thread_id:016x} "
        self._file = TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115  closed by `close`

    def doing(self) -> tuple[str, ...]:
        """The innermost lines that the thread is at, outermost first."""
        self._file.seek(0)
        self._file.truncate()
        faulthandler.dump_traceback(self._file, all_threads=True)
        self._file.seek(0)
        own = next((part for part in self._file.read().split("hread ") if part.startswith(self._mark)), "")
        found = _LINE.findall(own)[:_MOST_FRAMES]
        return tuple(f"{Path(file).name}:{line} {name}" for file, line, name in reversed(found))

    def close(self) -> None:
        """Stop taking samples."""
        self._file.close()


class Watchdog:
    """Make it in the window's thread, `start` it, name what one does with `begin`, `stop` it at the end."""

    def __init__(self, *, noticed_s: float = NOTICED_S) -> None:
        self._noticed_s = noticed_s
        self._ear = _Ear(self._answered)
        self._sampler: _Sampler | None = None
        self._window = threading.get_native_id()
        self._lock = threading.Lock()
        self._answer = _Answer(0, time.perf_counter(), time.thread_time(), BETWEEN)
        self._asked = 0
        self._came = threading.Event()
        self._ends = threading.Event()
        self._interaction = BETWEEN
        self._worst: dict[str, Block] = {}
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Watch from now on. Raises RuntimeError outside the thread of the application."""
        app = QCoreApplication.instance()
        if app is None or app.thread() is not QThread.currentThread():
            raise RuntimeError("a watchdog is started in the thread of the application")
        self._sampler = _Sampler(threading.get_ident())
        self._thread = threading.Thread(
            target=self._watch, args=(self._sampler,), name="gatewright-watchdog", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """Stop watching, and keep the results."""
        self._ends.set()
        if self._thread is not None:
            self._thread.join()
        if self._sampler is not None:
            self._sampler.close()

    def begin(self, interaction: str = BETWEEN) -> None:
        """Begin an interaction, to which later blocks belong."""
        with self._lock:
            self._interaction = interaction

    @property
    def rounds(self) -> int:
        """How often the window has answered. When it grew by two, all that was before the first of them is kept."""
        with self._lock:
            return self._answer.number

    @property
    def worst(self) -> Mapping[str, Block]:
        """Return the longest block of each interaction."""
        with self._lock:
            return dict(self._worst)

    def over(self, limit_s: float) -> tuple[Block, ...]:
        """The longest block of each interaction that held up the window for at least so long, the worst first."""
        found = [block for block in self.worst.values() if block.held_s >= limit_s]
        return tuple(sorted(found, key=lambda block: -block.held_s))

    def _answered(self) -> None:
        with self._lock:
            self._answer = _Answer(self._asked, time.perf_counter(), time.thread_time(), self._interaction)
        self._came.set()

    # in the thread of its own

    def _watch(self, sampler: _Sampler) -> None:
        while not self._ends.wait(STEP_S):
            self._ask_once(sampler)

    def _ask_once(self, sampler: _Sampler) -> None:
        """Send the event, wait for the answer, keep the block if it was a long one."""
        with self._lock:
            before = self._answer
            self._asked += 1
        self._came.clear()
        sent_s, process_s, late_s = time.perf_counter(), time.process_time(), 0.0
        kept_s = wait_s(self._window)
        seen: Counter[tuple[str, ...]] = Counter()
        QCoreApplication.postEvent(self._ear, QEvent(_Ear.KIND))
        while True:
            looked_s = time.perf_counter()
            if self._came.wait(STEP_S) or self._ends.is_set():  # who stops it waits in the thread that would answer
                break
            late_s += max(time.perf_counter() - looked_s - 2 * STEP_S, 0.0)
            if seen.total() < _MOST_SAMPLES and time.perf_counter() - sent_s > self._noticed_s / 2:
                seen[sampler.doing()] += 1
        if self._ends.is_set():
            return
        with self._lock:
            answer = self._answer
        wall_s = answer.at_s - sent_s
        own_s = min(answer.own_s - before.own_s, wall_s)
        where = seen.most_common(1)[0][0] if seen else ()
        starved_s = max(late_s - (time.process_time() - process_s), wait_s(self._window) - kept_s)
        self._keep(Block(answer.interaction, wall_s, own_s, max(own_s, wall_s - starved_s), where))

    def _keep(self, block: Block) -> None:
        if block.held_s < self._noticed_s:
            return
        with self._lock:
            held = self._worst.get(block.interaction)
            if held is None or held.held_s < block.held_s:
                self._worst[block.interaction] = block
