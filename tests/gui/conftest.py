"""What every test with Qt gets: garbage is collected in the thread of the window only, as in the app."""

import gc
from collections.abc import Iterator

import pytest

from tests.gui.watchdog.watching import gui_watchdog

__all__ = ["gui_watchdog"]


@pytest.fixture(autouse=True)
def garbage_stays_in_the_window_thread() -> Iterator[None]:
    """A worker thread that happens to collect the loop or the widgets of an earlier test would end the process."""
    gc.collect()
    gc.freeze()  # the next test looks through what this one leaves, and no more
    gc.disable()
    yield
    gc.enable()
