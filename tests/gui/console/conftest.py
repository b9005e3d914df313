"""The page itself."""

from collections.abc import AsyncIterator

import pytest

from gatewright_gui.pages.console import ConsolePage
from tests.gui.console.standing import console_page
from tests.gui.files.support import Opened


@pytest.fixture
async def page(demo: Opened) -> AsyncIterator[ConsolePage]:
    async with console_page(demo) as made:
        yield made
