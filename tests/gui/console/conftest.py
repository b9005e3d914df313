"""One theme for all tests of pages: ready before a page is built, put on by `dressed` when it is there."""

from collections.abc import AsyncIterator

import pytest
from PySide6.QtCore import QEvent
from PySide6.QtWidgets import QApplication

from gatewright_gui.pages.console import ConsolePage
from gatewright_gui.theme import Theme
from tests.gui.console.standing import console_page
from tests.gui.files.support import Opened


@pytest.fixture(scope="session")
def _theme(qapp: QApplication) -> Theme:  # pyright: ignore[reportUnusedFunction]
    made = Theme()
    made.prepare(qapp, "light")
    return made


@pytest.fixture(autouse=True)
def light(_theme: Theme, qapp: QApplication) -> Theme:
    _theme.prepare(qapp, "light")
    qapp.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)
    qapp.setStyleSheet("")  # under one, every part of the next page is styled many times
    return _theme


@pytest.fixture
async def page(demo: Opened) -> AsyncIterator[ConsolePage]:
    async with console_page(demo) as made:
        yield made
