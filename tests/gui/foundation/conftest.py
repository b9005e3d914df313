"""The theme of the tests of the foundation."""

import pytest
from PySide6.QtWidgets import QApplication

from gatewright_gui.theme import Theme


@pytest.fixture
def theme(one_theme: Theme, qapp: QApplication) -> Theme:
    """Light, and on."""
    one_theme.apply(qapp, "light")
    return one_theme
