"""What every test with Qt gets: garbage collected in the thread of the window only, as in the app; a demo, a window."""

import gc
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from gatewright_gui.window.main_window import MainWindow
from tests.gui.files.support import Opened, opened
from tests.gui.session.opened import demo as demo_folder
from tests.gui.session.opened import opened_window
from tests.gui.watchdog.watching import gui_watchdog
from tests.support.kept_worker import KeptWorkers

__all__ = ["gui_watchdog"]


@pytest.fixture(scope="session", autouse=True)
def workers_are_kept() -> Iterator[None]:
    """The worker process of a window that is closed is given to the next one: starting one takes half a second."""
    workers = KeptWorkers()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gatewright_gui.session.derive.WorkerProcess", workers.take)
        yield
    workers.end()


@pytest.fixture(autouse=True)
def garbage_stays_in_the_window_thread() -> Iterator[None]:
    """A worker thread that happens to collect the loop or the widgets of an earlier test would end the process."""
    gc.collect()
    gc.freeze()  # the next test looks through what this one leaves, and no more
    gc.disable()
    yield
    gc.enable()


@pytest.fixture
async def demo(tmp_path: Path) -> AsyncIterator[Opened]:
    async with opened(tmp_path / "demo") as made:
        yield made


@pytest.fixture
async def window(tmp_path: Path) -> AsyncIterator[MainWindow]:
    async with opened_window(demo_folder(tmp_path), tmp_path) as made:
        yield made
