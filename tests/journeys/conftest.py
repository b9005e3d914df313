"""A window on a demo workspace of its own, on the private display."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from gatewright.workspace import write_demo
from gatewright_gui.app.build import build_window
from gatewright_gui.app.collector import Collector
from gatewright_gui.settings import Preferences
from tests.journeys.hand import Hand, until
from tests.support.xvfb import Display


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    return write_demo(tmp_path / "demo")


@pytest_asyncio.fixture
async def hand(display: Display, policy: Path, tmp_path: Path) -> AsyncIterator[Hand]:
    window = await build_window(policy, preferences=Preferences(tmp_path / "preferences.ini"), theme="light")
    window.show()
    window.activateWindow()
    collector = Collector()  # as in the program: Python's own collections would be held against the window
    made = Hand(display, window)
    await until(window.isActiveWindow, "the window to get the keyboard")
    await made.rest()
    yield made
    window.hide()
    await window.shut()
    collector.stop()
