"""The page itself."""

from collections.abc import AsyncIterator

import pytest

from gatewright_gui.pages.access.files import FilesPage
from tests.gui.dress import dressed
from tests.gui.files.support import Opened, until


@pytest.fixture
async def page(demo: Opened) -> AsyncIterator[FilesPage]:
    made = dressed(FilesPage(demo.context))
    made.resize(1228, 720)
    made.show()
    made.page_shown()
    await until(lambda: made.rules.model.hits is not None and not made.tree_model.is_reading)
    yield made
    made.outside.close()
    made.close()
    made.deleteLater()
