"""A screen of 1280x800 at 150 % has 853x533 pixels: every page fits there in every size of text, no word is cut."""

from collections.abc import Iterator

import pytest
from PySide6.QtCore import QRect, QSize
from PySide6.QtWidgets import QAbstractButton, QLabel, QPushButton, QToolButton, QWidget

from gatewright_gui.app.driver import lay_out
from gatewright_gui.pages.access.tools.tool_delegate import name_left
from gatewright_gui.pages.access.tools.tool_tree import Column
from gatewright_gui.qt.widget.button import WordButton
from gatewright_gui.settings import TEXT_FACTORS, TextSize
from gatewright_gui.theme import Theme
from gatewright_gui.window.main_window import MainWindow
from gatewright_gui.window.pages import all_rows
from gatewright_resources.access import languages
from tests.gui.dress import app_in, dressed
from tests.gui.session.opened import agents_page, settled

SCREEN = QSize(853, 533)
SENSIBLE_NAME = 90


@pytest.fixture(params=["en", *languages()])
def language(request: pytest.FixtureRequest) -> Iterator[str]:
    """The app speaks each of its languages."""
    with app_in(request.param):
        yield request.param


@pytest.fixture(params=TEXT_FACTORS)
def size(one_theme: Theme, request: pytest.FixtureRequest) -> Iterator[TextSize]:
    """A size of text; the usual one comes back when no window is there any more that had to be dressed again."""
    yield request.param
    one_theme.set_text_size(1.0)


@pytest.fixture
def sized(language: str, size: TextSize, window: MainWindow) -> MainWindow:
    """The window in one of the sizes of text and one of its languages, on a small screen."""
    del language
    if size == window.preferences.text_size:
        dressed(window)
    window.preferences.text_size = size  # another one dresses it, too
    lay_out()
    window.resize(SCREEN)
    return window


def cut(window: MainWindow) -> list[tuple[str, str, int]]:
    """Buttons and labels that are narrower than their own words."""
    lay_out()
    found: list[tuple[str, str, int]] = []
    for one in window.findChildren(QWidget):
        if not one.isVisible() or not isinstance(one, QPushButton | QToolButton | QLabel):
            continue
        if isinstance(one, QLabel) and one.wordWrap():
            continue
        is_icon = isinstance(one, QAbstractButton) and (
            isinstance(one, QToolButton) and one.toolButtonStyle() == one.toolButtonStyle().ToolButtonIconOnly
        )
        is_icon = is_icon or (isinstance(one, WordButton) and one.is_brief)
        words = "" if is_icon else one.text().replace("&", "")
        if words and one.fontMetrics().horizontalAdvance(words) > one.width():
            found.append((one.objectName(), words, one.width()))
    return found


def outside(window: MainWindow) -> list[str]:
    """Buttons of the bars that reach over the edge of the window."""
    whole = QRect(window.rect())
    buttons = [*window.top.findChildren(QToolButton), *window.status.findChildren(QPushButton)]
    return [
        one.objectName()
        for one in buttons
        if one.isVisible() and not whole.contains(QRect(one.mapTo(window, one.rect().topLeft()), one.size()))
    ]


async def test_every_page_fits_a_small_screen_in_every_size_of_text(sized: MainWindow) -> None:
    for row in all_rows():
        sized.show_page(row.key)
        await settled(sized)
        lay_out()
        assert sized.size() == SCREEN, row.key
        least = sized.minimumSizeHint()
        assert least.width() <= SCREEN.width(), row.key
        assert least.height() <= SCREEN.height(), row.key
        page = sized.shelf.page(row.key)
        needed = page.minimumSizeHint()
        assert needed.width() <= page.width(), row.key
        assert needed.height() <= page.height(), row.key
        assert not cut(sized), row.key
        assert not outside(sized), row.key


async def test_everything_that_the_foot_can_say_fits_a_small_screen(sized: MainWindow) -> None:
    sized.status.set_waiting(12)
    sized.status.set_question(is_open=True)
    sized.status.set_live(live=True)
    sized.status.set_unsaved()
    sized.status.set_problems(12, 34)
    lay_out()
    assert sized.size() == SCREEN
    assert not outside(sized)


async def test_names_have_room_and_the_inspector_is_a_drawer_over_the_tree(sized: MainWindow) -> None:
    page = agents_page(sized)
    sized.show_page("tools")
    await settled(sized)
    lay_out()
    assert not page.inspector.isVisible()
    assert page.tools.view.columnWidth(Column.NAME) >= name_left(QRect()) + SENSIBLE_NAME
    before = page.tools.view.geometry()
    page.inspector_button.click()
    lay_out()
    assert page.inspector.isVisible()
    assert page.tools.view.geometry() == before
    at = page.inspector.mapTo(sized, page.inspector.rect().center())
    under = sized.childAt(at)
    assert under is not None
    assert page.inspector.isAncestorOf(under)
    assert not cut(sized)
    page.inspector_button.click()
    assert not page.inspector.isVisible()


async def test_in_a_window_that_is_made_wider_the_inspector_is_where_it_was_left(window: MainWindow) -> None:
    dressed(window)
    lay_out()
    page = agents_page(window)
    for is_shown in (True, False):
        page.inspector_button.setChecked(is_shown)
        for _ in range(2):
            window.resize(SCREEN)
            lay_out()
            assert not page.inspector.isVisible()
            page.inspector_button.click()
            assert page.inspector.isVisible()
            window.resize(1280, 800)
            lay_out()
            assert page.inspector.isVisible() == is_shown
            assert page.inspector_button.isChecked() == is_shown
