"""A window on the private display: on a demo workspace of its own, or as it is at the first start."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import pytest_asyncio
from PySide6.QtWidgets import QApplication

from gatewright.workspace import write_demo
from gatewright_gui.app.build import build_window, new_window
from gatewright_gui.app.collector import Collector
from gatewright_gui.settings import Preferences
from gatewright_gui.window.main_window import MainWindow
from tests.journeys.hand import Hand, until
from tests.support.xvfb import Display


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    return write_demo(tmp_path / "demo")


@pytest.fixture
def preferences(tmp_path: Path) -> Preferences:
    return Preferences(tmp_path / "preferences.ini")


@pytest_asyncio.fixture
async def hand(display: Display, policy: Path, preferences: Preferences) -> AsyncIterator[Hand]:
    async with _hand_on(display, await build_window(policy, preferences=preferences, theme="light")) as made:
        yield made


@pytest_asyncio.fixture
async def first_hand(display: Display, qapp: QApplication, preferences: Preferences) -> AsyncIterator[Hand]:
    """In a window that nothing was ever opened in."""
    async with _hand_on(display, new_window(qapp, preferences=preferences, theme="light")) as made:
        welcome = made.window.shelf.welcome
        await until(lambda: welcome.cards or welcome.nothing.isVisible(), "the look for programs, which moves the rest")
        yield made


@asynccontextmanager
async def _hand_on(display: Display, window: MainWindow) -> AsyncGenerator[Hand]:
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
