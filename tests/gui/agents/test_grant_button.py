"""A tick without effect for want of a grant: the button beside the reason gives it."""

from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from gatewright.policy.verdict import Verdict
from gatewright_gui.pages.access.rules import RulesPage
from tests.gui.session.opened import agents_page, cell, click, demo, opened_window, settled


async def test_the_tick_that_lacks_a_grant_gets_its_effect_by_one_more_click(tmp_path: Path) -> None:
    async with opened_window(demo(tmp_path), tmp_path) as window:
        window.show_page("tools")
        window.selection.choose_agent("archivist")
        await settled(window)
        grant_button = agents_page(window).inspector.why.grant_button
        click(window, "file_delete", None)
        await settled(window)
        assert grant_button.isVisible()
        assert grant_button.text().startswith("Grant write access in ")
        QTest.mouseClick(grant_button, Qt.MouseButton.LeftButton)
        await settled(window)
        (right,) = window.document.rights("archivist")["file_delete"].operations
        assert right.verdict is not Verdict.DENY
        assert not grant_button.isVisible()
        window.document.undo()
        await settled(window)
        assert grant_button.isVisible()


async def test_every_ticked_tool_that_lacks_a_grant_offers_it_and_none_that_has_all(tmp_path: Path) -> None:
    async with opened_window(demo(tmp_path), tmp_path) as window:
        window.show_page("tools")
        window.selection.choose_agent("archivist")
        await settled(window)
        pane = agents_page(window).tools
        lacking = 0
        for name in list(window.document.rights("archivist")):
            pane.view.setCurrentIndex(cell(window, name, None))
            if not window.document.rights("archivist")[name].listed:
                pane.toggle()
                await settled(window)
            operations = window.document.rights("archivist")[name].operations
            lacks = any(
                one.ticked and any(reason.code == "capability-not-granted" for reason in one.reasons)
                for one in operations
            )
            lacking += lacks
            assert agents_page(window).inspector.why.grant_button.isVisible() == lacks, name
        assert lacking > 2


async def test_a_grant_whose_reach_nobody_knows_is_asked_for_in_its_form(tmp_path: Path) -> None:
    async with opened_window(demo(tmp_path), tmp_path) as window:
        window.show_page("tools")
        window.selection.choose_agent("archivist")
        await settled(window)
        inspector = agents_page(window).inspector
        click(window, "web_fetch", None)
        await settled(window)
        assert inspector.why.grant_button.text() == "Grant network access..."
        QTest.mouseClick(inspector.why.grant_button, Qt.MouseButton.LeftButton)
        await settled(window)
        page = window.shelf.page("rules")
        assert isinstance(page, RulesPage)
        assert window.shelf.current_key == "rules"
        row = page.agent.model.row_at(page.agent.view.currentIndex().row())
        assert row is not None
        assert row.what == "NetRead"
