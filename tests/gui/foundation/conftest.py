"""One theme for the tests of the foundation; each test begins in light."""

from collections.abc import Iterator

import pytest
from PySide6.QtWidgets import QApplication

from gatewright_gui.theme import Theme


@pytest.fixture(scope="session")
def one_theme(qapp: QApplication) -> Theme:
    made = Theme()
    made.apply(qapp, "light")
    return made


@pytest.fixture
def theme(one_theme: Theme, qapp: QApplication) -> Iterator[Theme]:
    one_theme.apply(qapp, "light")
    yield one_theme
    one_theme.apply(qapp, "light")
