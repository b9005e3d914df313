"""Puts the theme on what a test has built, as the app does. It builds nothing."""

from typing import TypeVar

from PySide6.QtWidgets import QApplication, QWidget

from gatewright_gui.qt.look import current_look
from gatewright_gui.theme import Theme

Built = TypeVar("Built", bound=QWidget)


def dressed(built: Built) -> Built:
    """The same widget, in the light theme."""
    app, look = QApplication.instance(), current_look()
    assert isinstance(app, QApplication)
    assert isinstance(look, Theme)
    look.apply(app, "light")
    return built
