"""Dresses what a test has built in the theme and the app in a language."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import TypeVar

import pytest
from PySide6.QtWidgets import QApplication, QWidget

from gatewright_gui.qt.language import VARIABLE, current_catalog
from gatewright_gui.qt.look import current_look
from gatewright_gui.theme import Theme

Built = TypeVar("Built", bound=QWidget)


def dressed(built: Built) -> Built:
    """The same widget, in the light theme."""
    app, look = QApplication.instance(), current_look()
    assert isinstance(app, QApplication)
    assert isinstance(look, Theme)
    look.apply(app, "light")
    look.dress(built)
    return built


@contextmanager
def app_in(language: str) -> Generator[None]:
    """Speak this language, such as ``de_AT``, inside the block.

    The environment is the old one again before the catalog is let go of: a thread that asks in between would keep it.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIABLE, language)
        current_catalog.cache_clear()
        yield
    current_catalog.cache_clear()
