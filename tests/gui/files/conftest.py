"""One theme for all tests of the page, and the page itself."""

from collections.abc import AsyncIterator

import pytest
from PySide6.QtWidgets import QApplication

from gatewright_gui.pages.files import FilesPage
from gatewright_gui.theme import Theme
from tests.gui.files.support import Opened, until


@pytest.fixture(scope="session")
def _theme(qapp: QApplication) -> Theme:  # pyright: ignore[reportUnusedFunction]
    made = Theme()
    made.apply(qapp, "light")
    return made


@pytest.fixture(autouse=True)
def light(_theme: Theme, qapp: QApplication) -> Theme:
    _theme.apply(qapp, "light")
    return _theme


@pytest.fixture
async def page(demo: Opened) -> AsyncIterator[FilesPage]:
    made = FilesPage(demo.context)
    made.resize(1228, 720)
    made.show()
    made.page_shown()
    await until(lambda: made.rules.model.hits is not None and not made.tree_model.is_reading)
    yield made
    made.outside.close()
    made.close()
    made.deleteLater()
