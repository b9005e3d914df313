"""What the rows about the window measure, in a process of its own: `python -m tests.bench.guichild PART WORDS`.

It prints one line of JSON. A window of the benchmark's own process would weigh on its other rows.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

USER_FOLDERS = ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "GATEWRIGHT_KEYS")


def main(words: list[str]) -> int:
    """Measure one part."""
    os.environ["QT_QPA_PLATFORM"] = "offscreen"
    sys.argv = ["gatewright"]
    if words[0] == "empty":
        return _empty_window()
    from tempfile import TemporaryDirectory  # not for the empty window: it is to import what Qt needs and no more

    with TemporaryDirectory(ignore_cleanup_errors=True) as home:
        for name in ("HOME", *USER_FOLDERS):
            os.environ[name] = str(Path(home, name.casefold()))
        if words[0] == "app":
            return _app(words[1])
        if words[0] == "files":
            return _in_loop(lambda app: _files(app, Path(home), Path(words[1])))
        if words[0] == "tick":
            agents, tools, limited = int(words[1]), int(words[2]), float(words[3])
            return _in_loop(lambda app: _ticks(app, Path(home), agents, tools, limited))
        return _in_loop(lambda app: _measured(app, Path(home), quick="--quick" in words))


def _tell(found: object) -> None:
    print(json.dumps(found), flush=True)


def _processor_ns(process_id: int) -> int:
    """What another process computed so far; 0 where that cannot be told."""
    told = Path(f"/proc/{process_id}/schedstat")
    return int(told.read_text("utf-8").split()[0]) if told.exists() else 0


def _memory_kib(process_id: int | str = "self") -> int:
    """What a process, or this one, holds now."""
    status = Path(f"/proc/{process_id}/status")
    text = status.read_text("utf-8") if status.exists() else ""
    line = next((row for row in text.splitlines() if row.startswith("VmRSS")), "VmRSS: 0 kB")
    return int(line.split()[1])


def _empty_window() -> int:
    """Import, an application, a bare window, painted."""
    from PySide6.QtCore import QTimer
    from PySide6.QtGui import QPaintEvent
    from PySide6.QtWidgets import QApplication, QMainWindow

    class Window(QMainWindow):
        def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802
            super().paintEvent(event)
            QTimer.singleShot(0, self, app.quit)

    app = QApplication([])
    window = Window()
    window.resize(1280, 800)
    window.show()
    app.exec()
    _tell_end()
    return 0


def _app(policy: str) -> int:
    """`gatewright gui POLICY`, until its window shows the tools of that policy."""
    from tests.support.firstpaint import TreeWatch

    def done() -> None:
        _tell_end()
        os._exit(0)

    sys.meta_path.insert(0, TreeWatch(done))
    sys.argv = ["gatewright", "gui", policy]
    return int(import_module("gatewright.cli.main").script() or 0)


def _tell_end() -> None:
    used = time.process_time_ns()
    _tell({"done_ns": time.time_ns(), "processor_ns": used, "memory_kib": _memory_kib()})


def _in_loop(main: Callable[[Any], Any]) -> int:
    loop, application = import_module("gatewright_gui.qt.loop"), import_module("PySide6.QtWidgets").QApplication
    app = application([])
    loop.run(app, lambda: main(app))
    return 0


async def _large_window(home: Path, agents: int, tools: int, limited: float) -> Any:
    """On a large policy, 1280 x 800, not shown; nothing is collected from now on."""
    from gatewright_gui.app.build import build_window
    from gatewright_gui.settings import Preferences
    from tests.support.largeworkspace import large_opener, write_large

    window = await build_window(
        write_large(home / "large", agents, tools, limited),
        preferences=Preferences(home / "preferences.ini"),
        theme="light",
        opener=large_opener(tools),
    )
    window.resize(1280, 800)
    gc.collect()
    gc.disable()
    return window


async def _measured(app: Any, home: Path, *, quick: bool) -> int:
    import asyncio

    from tests.support.largeworkspace import AGENTS, LIMITED, TOOLS, agent_names

    agents, tools, rounds = (4, 20, 2) if quick else (AGENTS, TOOLS, 30)
    window = await _large_window(home, agents, tools, LIMITED)
    window.tasks.cancel("upkeep")
    taken: dict[str, list[int]] = {}

    def timed(name: str, action: Callable[[], object]) -> None:
        began = time.thread_time_ns()
        action()
        app.sendPostedEvents()
        taken.setdefault(name, []).append(time.thread_time_ns() - began)

    page: Any = window.shelf.page("tools")
    timed("show", window.show)
    await asyncio.sleep(0.3)
    names = agent_names(agents)
    for number in range(rounds):
        agent = names[number * 7 % agents]
        timed("switch agent", lambda agent=agent: window.selection.choose_agent(agent))
        await asyncio.sleep(0.05)
    bar = page.tools.view.verticalScrollBar()
    for number in range(rounds):
        timed("scroll the tree", lambda number=number: bar.setValue(78 * (number + 1)))
    for number in range(rounds):
        page.tools.view.setCurrentIndex(page.tools.rows.tool_index(number % tools))
        await asyncio.sleep(0.02)
        timed("tick", page.tools.toggle)
        await asyncio.sleep(0.05)
    timed("open the matrix", page.switch.trigger)
    matrix = page.matrix
    while any(matrix.grid.column(name) is None for name in matrix.view.agents_in_view()):
        await asyncio.sleep(0.01)
    down, along = matrix.view.verticalScrollBar(), matrix.view.horizontalScrollBar()
    for number in range(rounds):
        timed("scroll the matrix down", lambda number=number: down.setValue(78 * (number + 1)))
        timed("scroll the matrix sideways", lambda number=number: along.setValue(58 * (number % 5 + 1)))
        await asyncio.sleep(0.01)
    _tell(taken)
    os._exit(0)


async def _ticks(_app: Any, home: Path, agents: int, tools: int, limited: float) -> None:
    """The space bar on an operation and all that follows, with everything running that runs in the app."""
    import asyncio

    from PySide6.QtCore import Qt
    from PySide6.QtTest import QTest

    window, rounds = await _large_window(home, agents, tools, limited), 3 if agents < 10 else 12
    window.show()
    pane = window.shelf.page("tools").tools
    view = pane.view
    taken: dict[str, list[int]] = {}

    def note(name: str, nanoseconds: int) -> None:
        taken.setdefault(name, []).append(nanoseconds)

    async def current() -> dict[str, int]:
        """When each part was, of those that the bar asks for; what providers take is waited for as well."""
        ended: dict[str, int] = {}
        while len(ended) < len(_SHOWN):
            here = window.tasks.names
            ended |= {name: time.perf_counter_ns() for name in _SHOWN if name not in here and name not in ended}
            await asyncio.sleep(0.001)
        return ended

    await current()
    while not pane.rows.tool_count:
        await asyncio.sleep(0.01)
    places = [place for place in range(pane.rows.tool_count) if len(pane.rows.operations_at(place)) >= 3]
    for number in range(rounds):
        tool = pane.rows.tool_index(places[number % len(places)])
        view.expand(tool)
        view.setCurrentIndex(pane.rows.index(number % 3, 0, tool))
        await current()
        await asyncio.sleep(0.1)  # the picture of the new row
        pieces = _Pieces()
        worker = window.deriver.process_id
        began, used, worked = time.perf_counter_ns(), time.process_time_ns(), _processor_ns(worker)
        QTest.keyClick(view, Qt.Key.Key_Space)
        ended = await current()
        note("processor", time.process_time_ns() - used)
        note("worker processor", _processor_ns(worker) - worked)
        note("longest piece", pieces.stop())
        note("all current", max(ended[name] for name in _ASKED) - began)
        for name, at in ended.items():
            note(name, at - began)
    memory = {"memory_kib": [_memory_kib()], "worker_memory_kib": [_memory_kib(window.deriver.process_id)]}
    _tell({name: samples[2:] or samples for name, samples in taken.items()} | memory)
    os._exit(0)


_ASKED = ("preview", "preview.tokens", "upkeep")
"""The tasks of the window that bring up to date: texts and usage rules, tokens, problems."""
_SHOWN = (*_ASKED, "preview.providers")


class _Pieces:
    """Looks every millisecond how much the window's thread has computed since it last came round."""

    def __init__(self) -> None:
        from PySide6.QtCore import Qt, QTimer

        self._last, self._longest = time.thread_time_ns(), 0
        self._timer = QTimer(interval=1, timerType=Qt.TimerType.PreciseTimer)
        self._timer.timeout.connect(self._look)
        self._timer.start()

    def _look(self) -> None:
        now = time.thread_time_ns()
        self._longest, self._last = max(self._longest, now - self._last), now

    def stop(self) -> int:
        """The most at once, in nanoseconds."""
        self._timer.stop()
        self._look()
        return self._longest


async def _files(_app: Any, home: Path, policy: Path) -> None:
    """From the wish to see the Files page, and its first source again, to its folder, drawn; counting; filtering."""
    import asyncio

    from gatewright_gui.app.build import build_window
    from gatewright_gui.settings import Preferences

    window = await build_window(policy, preferences=Preferences(home / "preferences.ini"), theme="light")
    window.resize(1280, 800)
    window.show()
    await asyncio.sleep(0.5)
    taken: dict[str, list[int]] = {}
    used = time.thread_time_ns()
    page: Any = window.shelf.page("files")
    taken["make"] = [time.thread_time_ns() - used]
    drawn = _Drawn(type(page.folder.tree))

    async def counted() -> None:
        while page.rules.model.hits is None:
            await asyncio.sleep(0.002)

    def choose(row: int) -> None:
        page.rules.header.picker.setCurrentIndex(row)
        page.rules.header.picker.activated.emit(row)

    taken["first screen"] = [await drawn.after(lambda: window.show_page("files"))]
    taken["rows"] = [page.tree_model.rowCount()]
    began = time.perf_counter_ns()
    await counted()
    taken["counts"], taken["files"] = [time.perf_counter_ns() - began], [page.rules.model.hits.files]
    choose(1)
    await counted()
    taken["source again"] = [await drawn.after(lambda: choose(0))]
    await counted()
    for chip in page.folder.bar.chips.values():
        for _ in range(2 if chip.isVisible() else 0):
            await asyncio.sleep(0.3)
            pieces = _Pieces()
            chip.click()
            await asyncio.sleep(0.5)
            taken.setdefault("filter", []).append(pieces.stop())
    _tell(taken)
    os._exit(0)


class _Drawn:
    """Waits for the moment at which the rows of a view have been drawn."""

    def __init__(self, view: Any) -> None:
        import asyncio

        self._event, self._at = asyncio.Event(), 0
        paint: Callable[..., None] = view.paintEvent

        def painted(widget: Any, event: object) -> None:
            paint(widget, event)
            if widget.model().rowCount() > 1 and not self._event.is_set():
                self._at = time.perf_counter_ns()
                self._event.set()

        view.paintEvent = painted

    async def after(self, action: Callable[[], object]) -> int:
        """Nanoseconds by the clock from the action on; the rows of before count for nothing."""
        self._event.clear()
        began = time.perf_counter_ns()
        action()
        await self._event.wait()
        return self._at - began


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
