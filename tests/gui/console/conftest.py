"""The page itself."""

from collections.abc import AsyncIterator

import pytest

from gatewright_gui.pages.trial import TrialPage
from tests.gui.console.standing import console_page
from tests.gui.files.support import Opened


@pytest.fixture
async def page(demo: Opened) -> AsyncIterator[TrialPage]:
    async with console_page(demo) as made:
        yield made
