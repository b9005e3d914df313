"""Garbage in the window: found in small doses in the window's thread, all of it when nobody looks."""

import gc
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from weakref import ref

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from pytestqt.qtbot import QtBot

from gatewright_gui.app.collector import DOSE, Collector
from gatewright_gui.session.document import Document
from tests.gui.session.opened import demo, opened_window

MAY_DIE = DOSE // 10
"""Objects put aside before a test that may end during it: threads of earlier tests do."""


class Ring:
    """Refers to itself, so that only a collection ends it."""

    def __init__(self) -> None:
        self.own = self


@pytest.fixture
def collector(qtbot: QtBot) -> Iterator[Collector]:
    del qtbot
    made = Collector()
    yield made
    made.stop()
    gc.disable()  # as every test of the window has it


@pytest.fixture
def states(monkeypatch: pytest.MonkeyPatch) -> list[Qt.ApplicationState]:
    """What the desktop says of the application; the last one counts."""
    said = [Qt.ApplicationState.ApplicationActive]
    monkeypatch.setattr(QGuiApplication, "applicationState", lambda: said[-1])
    return said


def filler(count: int) -> list[list[int]]:
    return [[number] for number in range(count)]


def test_python_itself_collects_no_more_until_the_end(collector: Collector) -> None:
    assert not gc.isenabled()

    collector.stop()

    assert gc.isenabled()
    assert gc.get_freeze_count() == 0


def test_garbage_of_an_edit_goes_with_the_next_tick(collector: Collector, states: list[Qt.ApplicationState]) -> None:
    del states
    watched = ref(Ring())
    kept = filler(2_000)

    collector.tick()

    assert watched() is None
    assert len(kept) == 2_000


def test_large_workspace_is_put_aside_without_being_looked_through(
    collector: Collector, states: list[Qt.ApplicationState]
) -> None:
    del states
    looked: list[str] = []
    before = gc.get_freeze_count()
    kept = filler(DOSE * 3)
    gc.callbacks.append(lambda phase, _info: looked.append(phase))
    try:
        collector.tick()
        more = filler(2_000)
        collector.tick()
    finally:
        gc.callbacks.pop()

    assert looked == ["start", "stop"], "only what came after it"
    assert gc.get_freeze_count() - before >= len(kept) - MAY_DIE
    assert len(more) == 2_000


def test_what_lasted_is_put_aside_before_it_grows_beyond_a_dose(
    collector: Collector, states: list[Qt.ApplicationState]
) -> None:
    del states
    gc.collect()
    gc.freeze()
    kept, before = list[list[list[int]]](), gc.get_freeze_count()
    for turn in range(1, 7):
        kept.append(filler(DOSE // 4))
        collector.tick()
        assert turn * DOSE // 4 - (gc.get_freeze_count() - before) <= DOSE + MAY_DIE


def test_tuples_that_another_thread_builds_are_left_alone(
    collector: Collector, states: list[Qt.ApplicationState]
) -> None:
    """As a policy that is being read has them; seen once while it is built, such a one cannot be finished."""
    del states
    is_over = threading.Event()

    def build() -> int:
        lengths = {3_000}
        while not is_over.is_set():
            lengths.add(len(tuple(number for number in range(3_000))))
        return len(lengths)

    kept = filler(1_000)
    with ThreadPoolExecutor(1) as pool:
        built = pool.submit(build)
        for _ in range(200):
            kept += filler(1_000)
            collector.tick()
            time.sleep(0)  # hands over
        is_over.set()

    assert built.result() == 1
    assert len(kept) == 201_000


def test_closed_workspace_goes_once_the_window_is_not_used(
    collector: Collector, states: list[Qt.ApplicationState]
) -> None:
    workspace = Ring()
    contents = filler(DOSE * 2)
    collector.tick()
    watched = ref(workspace)
    del workspace

    collector.tick()
    assert watched() is not None, "it was put aside, and the window is used"

    states.append(Qt.ApplicationState.ApplicationInactive)
    collector.tick()
    assert watched() is None
    assert len(contents) == DOSE * 2


def test_unused_window_looks_through_everything_only_once(
    collector: Collector, states: list[Qt.ApplicationState], monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = filler(DOSE * 2)
    states.append(Qt.ApplicationState.ApplicationHidden)
    collector.tick()
    swept: list[None] = []
    monkeypatch.setattr(collector, "sweep", lambda: swept.append(None))

    collector.tick()

    assert not swept
    assert len(kept) == DOSE * 2


async def test_window_that_is_shut_is_let_go_with_its_document(tmp_path: Path) -> None:
    async def opened_and_shut() -> "ref[Document]":
        async with opened_window(demo(tmp_path), tmp_path) as window:
            return ref(window.document)

    document = await opened_and_shut()
    gc.collect()
    assert document() is None
