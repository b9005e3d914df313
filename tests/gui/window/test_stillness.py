"""Nothing that one can click moves while one only looks: rows are chosen, bars come and go, and every control stays."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QComboBox,
    QLineEdit,
    QPushButton,
    QStackedWidget,
    QWidget,
)

from gatewright.policy import policyedit
from gatewright.policy.document import Catalog, CatalogType, PlaceUse
from gatewright_gui.app.driver import lay_out
from gatewright_gui.pages.access.memory import MemoryPage
from gatewright_gui.pages.page import Page, PageRow
from gatewright_gui.pages.servers import ServersPage
from gatewright_gui.qt.widget.message_bar import FootBars, MessageBar, ProgressStrip
from gatewright_gui.window.main_window import MainWindow
from gatewright_gui.window.pages import all_rows
from tests.gui.dress import dressed
from tests.gui.session.opened import agents_page, settled

KINDS = (QAbstractButton, QComboBox, QLineEdit, QAbstractItemView)


def controls(window: MainWindow, *without: QWidget) -> dict[QWidget, QRect]:
    """Where every control stands that can be seen, and none of those that lie in `without`."""
    lay_out()
    found = (one for kind in KINDS for one in window.findChildren(kind))
    return {
        one: QRect(one.mapTo(window, QPoint()), one.size())
        for one in found
        if one.isVisible() and one not in without and not any(part.isAncestorOf(one) for part in without)
    }


def moved(before: dict[QWidget, QRect], now: dict[QWidget, QRect]) -> list[tuple[str, QRect, QRect]]:
    both = before.keys() & now.keys()
    return [(one.objectName(), before[one], now[one]) for one in both if before[one] != now[one]]


@pytest.mark.parametrize("size", [(1280, 800), (1024, 768), (853, 533)])
async def test_no_control_moves_when_another_row_of_the_tree_is_chosen(
    window: MainWindow, size: tuple[int, int]
) -> None:
    dressed(window)
    window.resize(*size)
    page = agents_page(window)
    view = page.tools.view
    for agent in window.document.policy.agents:
        window.selection.choose_agent(agent)
        await settled(window)
        view.expandAll()
        content = (page.inspector.why, page.preview.code, view)
        before, rows = controls(window, *content), 0
        index = view.model().index(0, 0)
        while index.isValid():
            view.setCurrentIndex(index)
            assert not moved(before, controls(window, *content)), (agent, index.data())
            rows += 1
            index = view.indexBelow(index)
        assert rows > 30
        await settled(window)
        assert not moved(before, controls(window, *content)), agent


async def test_a_bar_that_comes_or_goes_moves_nothing(window: MainWindow) -> None:
    dressed(window)
    bars = (window.message, window.alarm, window.outside, window.unsaved_bar, window.asking)
    for page in ("home", "tools", "files", "rules", "try", "activity", "text", "servers"):
        window.show_page(page)
        await settled(window)
        before = controls(window, window.bars)
        for bar in bars:
            bar.show_message("warning", "Something happened, " * 20, action="Do it", other="Or that", more="Show")
            assert not moved(before, controls(window, window.bars)), (page, bar.objectName())
            assert bar.action_button.isVisible()
            at = bar.action_button.mapTo(window, bar.action_button.rect().center())
            assert window.childAt(at) is bar.action_button
        for bar in bars:
            bar.dismiss()
            assert not moved(before, controls(window, window.bars)), (page, bar.objectName())
        assert window.bars.height() == 0


async def parts(window: MainWindow, page: Page) -> AsyncIterator[str]:
    """Every part of a page that has parts, chosen one after the other."""
    yield ""
    if isinstance(page, ServersPage):  # the demo has no server that is confined
        held = Catalog("held", CatalogType.MCP, command="serve", places={"./": PlaceUse.READ})
        assert window.document.push(lambda policy, _: policyedit.add_catalog(policy, held))
        window.message.dismiss()
        await settled(window)
        page.choose("catalog", "held")
        QTest.mouseClick(page.detail.part.button("sees"), Qt.MouseButton.LeftButton)
        await settled(window)
        yield "sees"
    if not isinstance(page, MemoryPage):
        return
    for part in page.part.keys[1:]:
        page.part.set_current(part)
        await settled(window)
        yield part


def is_there(place: QWidget | None) -> bool:
    return place is not None and place.isVisible()


def arise(bar: QWidget) -> QPushButton:
    """Have a bar say something long; the button that one presses then."""
    if isinstance(bar, ProgressStrip):
        bar.start("Something is under way, " * 20, at_once=True)
        return bar.cancel_button
    assert isinstance(bar, MessageBar)
    bar.show_message("error", "Something happened, " * 20, action="Do it", other="Or that", more="Show")
    return bar.action_button


@pytest.mark.parametrize("row", all_rows(), ids=lambda row: row.key)
async def test_no_bar_of_a_page_moves_anything_when_it_comes_and_when_it_goes(window: MainWindow, row: PageRow) -> None:
    dressed(window)
    window.show_page(row.key)
    await settled(window)
    page = window.shelf.page(row.key)
    seen = set[QWidget]()
    async for part in parts(window, page):
        lay_out()
        found = [bar for kind in (MessageBar, ProgressStrip) for bar in page.findChildren(kind)]
        for bar in [bar for bar in found if is_there(bar.parentWidget())]:
            seen.add(bar)
            bar.hide()
            place = bar.parentWidget()
            without = (bar, *place.views) if isinstance(place, FootBars) else (bar,)
            before = controls(window, *without)
            button = arise(bar)
            now = controls(window, *without)
            assert not moved(before, now), (part, bar.objectName())
            assert before.keys() == now.keys(), (part, bar.objectName())
            at = button.mapTo(window, button.rect().center())
            assert window.childAt(at) is button, (part, bar.objectName())
            bar.hide()
            assert not moved(before, controls(window, *without)), (part, bar.objectName())
    assert seen == {bar for kind in (MessageBar, ProgressStrip) for bar in page.findChildren(kind)}


@pytest.mark.parametrize("key", ["problems", "files"])
async def test_the_last_row_under_a_bar_that_stays_can_be_scrolled_into_sight(window: MainWindow, key: str) -> None:
    dressed(window)
    window.show_page(key)
    await settled(window)
    (place,) = [place for place in window.shelf.page(key).findChildren(FootBars) if place.views]
    (view,) = place.views
    host = place.parentWidget()
    assert isinstance(host, QStackedWidget)
    host.setCurrentWidget(view)
    lay_out()
    whole = view.geometry()
    for bar in place.findChildren(MessageBar):
        bar.show_message("error", "Something happened", action="Do it")
        lay_out()
        assert view.geometry().topLeft() == whole.topLeft()
        assert view.geometry().bottom() + 1 == place.y() < whole.bottom()
        bar.dismiss()
        lay_out()
        assert view.geometry() == whole


async def test_one_bar_covers_the_foot_and_nothing_of_the_page(window: MainWindow) -> None:
    dressed(window)
    window.message.show_message("error", "something went wrong")
    lay_out()
    assert window.bars.y() >= window.status.y()
    assert window.bars.geometry().contains(window.status.geometry())


async def test_the_first_steps_that_are_closed_leave_everything_where_it_is(window: MainWindow, tmp_path: Path) -> None:
    del tmp_path
    dressed(window)
    window.steps.begin()
    window.document.opened.emit()
    await settled(window)
    before = controls(window, window.steps)
    QTest.mouseClick(window.steps.close_button, Qt.MouseButton.LeftButton)
    assert not window.steps.isVisible()
    assert not moved(before, controls(window, window.steps))
    top = window.shelf.y()
    window.show_page("files")
    lay_out()
    assert window.shelf.y() < top
