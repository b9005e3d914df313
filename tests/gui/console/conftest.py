"""One theme for all tests of pages."""

import pytest
from PySide6.QtWidgets import QApplication

from gatewright_gui.theme import Theme


@pytest.fixture(scope="session")
def _theme(qapp: QApplication) -> Theme:  # pyright: ignore[reportUnusedFunction]
    made = Theme()
    made.apply(qapp, "light")
    return made


@pytest.fixture(autouse=True)
def light(_theme: Theme, qapp: QApplication) -> Theme:
    _theme.apply(qapp, "light")
    return _theme
