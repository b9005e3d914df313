"""Unknown is not none: what a page says and offers before the answers have come still holds once they are there."""

from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtWidgets import QAbstractButton, QApplication

from gatewright.workspace import create_workspace
from gatewright_gui.app.build import new_window
from gatewright_gui.qt.widget.empty_state import EmptyState
from gatewright_gui.settings import Preferences
from gatewright_gui.window.main_window import MainWindow
from gatewright_gui.window.pages import all_rows
from tests.gui.session.opened import demo, end, opened_window, settled, until


def said(window: MainWindow) -> set[tuple[str, str]]:
    """Where something is said to be empty, and the sentence."""
    places = window.shelf.findChildren(EmptyState)
    return {(one.objectName(), one.accessibleName()) for one in places if one.isVisible() and one.is_known}


def offered(window: MainWindow) -> set[str]:
    """The buttons of the page that can be pressed."""
    buttons = window.shelf.findChildren(QAbstractButton)
    return {one.objectName() for one in buttons if one.isVisible() and one.isEnabled() and one.objectName()}


def empty(folder: Path) -> Path:
    return create_workspace(folder / "empty", "empty")


def example(folder: Path) -> Path:
    return create_workspace(folder / "bot", "support-bot")


@pytest.mark.parametrize("make", [demo, empty, example])
@pytest.mark.parametrize("page", [row.key for row in all_rows()])
async def test_what_is_said_and_offered_at_first_holds_once_all_is_known(
    page: str, make: Callable[[Path], Path], tmp_path: Path
) -> None:
    async with opened_window(make(tmp_path), tmp_path) as window:
        window.show_page(page)  # no answer can have come: the loop does not turn before the frame is painted
        window.grab()
        first_said, first_offered = said(window), offered(window)
        await settled(window)
        if page == "activity":
            await until(lambda: all(one.is_known for one in window.shelf.findChildren(EmptyState) if one.isVisible()))
        assert first_said <= said(window)
        assert first_offered <= offered(window)
        assert all(one.is_known for one in window.shelf.findChildren(EmptyState) if one.isVisible())


async def test_the_welcome_offers_nothing_while_a_named_workspace_is_opened(tmp_path: Path, qapp: QApplication) -> None:
    window = new_window(qapp, preferences=Preferences(tmp_path / "p.ini"), theme="light")
    window.show()
    buttons, seen = window.shelf.welcome.buttons.values(), list[bool]()
    window.document.opened.connect(lambda: seen.append(any(one.isEnabled() for one in buttons)))
    await window.open(demo(tmp_path))
    assert seen == [False]
    assert all(button.isEnabled() for button in buttons)
    await settled(window)
    await end(window)
