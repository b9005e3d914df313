"""What every test with Qt gets: garbage collected in the thread of the window only, as in the app; a demo, a window."""

import gc
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QEvent
from PySide6.QtWidgets import QApplication

from gatewright_gui.qt.language import current_catalog
from gatewright_gui.theme import Theme
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


@pytest.fixture(scope="session", autouse=True)
def one_theme(qapp: QApplication) -> Iterator[Theme]:
    """All windows of a process have one theme, as in the app: what it has drawn once need not be drawn again."""
    made = Theme(qapp)

    def kept(_: QApplication) -> Theme:
        return made

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gatewright_gui.app.build.Theme", kept)
        yield made


@pytest.fixture(scope="module", autouse=True)
def the_app_is_as_before(one_theme: Theme, qapp: QApplication) -> Iterator[None]:
    """Fail a module that leaves the app in another language, size or shape, or a window open, for the next one."""
    one_theme.prepare(qapp, "light")
    before = _shape(qapp)
    yield
    gc.collect()  # what nobody holds any more, and what was closed and is to be deleted, is nobody's window
    qapp.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)
    assert _shape(qapp) == before, "a test of this module left the app otherwise"


def _shape(app: QApplication) -> tuple[object, ...]:
    shown = [one.objectName() or type(one).__name__ for one in app.topLevelWidgets() if one.isVisible()]
    return current_catalog(), app.font().key(), app.layoutDirection(), app.overrideCursor() is not None, shown


@pytest.fixture(autouse=True)
def in_light(one_theme: Theme, qapp: QApplication) -> None:
    """Put the light theme on, as when the app starts."""
    one_theme.prepare(qapp, "light")
    qapp.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)


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
