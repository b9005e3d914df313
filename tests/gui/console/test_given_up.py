"""A call that is cancelled: it ends at once for who looks on, and stays in the history as what it was."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel

from gatewright_gui.pages.trial import TrialPage
from gatewright_gui.pages.trial import history_model as callhistory
from gatewright_gui.session.calls import CallRecord
from tests.gui.console.standing import call, console_page, settled
from tests.gui.console.test_approvals import DELETE, asked, names
from tests.gui.files.support import Opened, until
from tests.support.demo import copy_demo


@pytest.fixture
async def page(demo: Opened) -> AsyncIterator[TrialPage]:
    async with console_page(demo, "operator") as made:
        yield made


async def given_up(page: TrialPage) -> CallRecord:
    """Cancel by the mouse, and let everything that the call still has to say be said."""
    QTest.mouseClick(page.cancel_button, Qt.MouseButton.LeftButton)
    await until(lambda: not page.console.is_busy)
    await until(lambda: "console.session" not in page._context.tasks.names)  # pyright: ignore[reportPrivateUsage]
    await page.console.reset_copy()  # comes after the call in the thread of calls
    await asyncio.sleep(0)
    return page.console.records[-1]


@pytest.mark.parametrize("live", [False, True])
async def test_call_that_is_cancelled_at_its_question_ends_and_stays_in_the_history(
    demo: Opened, page: TrialPage, live: bool
) -> None:
    if live:
        demo.document.live.enter()
    await asked(page, DELETE)
    record = await given_up(page)

    assert (record.status, record.stage, record.is_live) == ("cancelled", "approval", live)
    assert record.model_text is None
    assert not page.outcome.strip.isVisible()
    assert not page.outcome.approval.isVisible()
    assert page.outcome.verdict.accessibleName().startswith("cancelled at \u201cask first\u201d")
    told = [label.text() for label in page.outcome.result.none.findChildren(QLabel)]
    assert any("was not run" in text for text in told)
    assert str(page.outcome.model.state_at(page.outcome.model.rowCount() - 1)) == "skipped"
    row = page.history.model.index(0, callhistory.VERDICT)
    assert row.data() == "cancelled"
    target = demo.folder / "workspace" / "drafts" / "report.md"
    assert target.exists()


async def test_next_call_is_not_disturbed_by_what_the_cancelled_one_still_says(page: TrialPage) -> None:
    await asked(page, DELETE)
    QTest.mouseClick(page.cancel_button, Qt.MouseButton.LeftButton)
    await until(lambda: not page.console.is_busy)
    call(page, op="read", path="README.md")
    page.decide()
    record = await settled(page, 2)

    assert [one.status for one in page.console.records] == ["cancelled", None]
    assert record.number == page.console.records[0].number + 1
    assert not page.outcome.strip.isVisible()
    assert page.outcome.shown is record


async def test_cancelled_call_of_a_workspace_that_was_left_is_not_in_the_history_of_the_next(
    demo: Opened, page: TrialPage, tmp_path: Path
) -> None:

    await asked(page, DELETE)
    assert await demo.document.open(copy_demo(tmp_path / "other"))
    await until(lambda: not page.console.is_busy)
    assert page.console.records == ()
    await until(lambda: "console.tools" not in demo.context.tasks.names)


async def test_impatient_second_click_on_cancel_resets_nothing(page: TrialPage) -> None:
    await asked(page, DELETE)
    cancel, reset = page.cancel_button, page.reset_copy_button
    at = cancel.mapTo(page, cancel.rect().center())
    QTest.mouseClick(cancel, Qt.MouseButton.LeftButton)
    await until(lambda: not page.console.is_busy)
    assert page.childAt(at) not in {cancel, reset, page.live_button, page.run_button, page.decide_button}
    assert reset.isVisible()
    assert reset.isEnabled()
    assert "approvals that stand in it" in reset.toolTip()


async def test_reset_copy_says_what_went_with_it(demo: Opened, page: TrialPage) -> None:
    bar = await asked(page, DELETE)
    bar.menu.actions()[0].trigger()
    await settled(page, 1)
    await until(lambda: "console.session" not in demo.context.tasks.names)
    assert "file.delete of drafts/report.md" in names(page)
    QTest.mouseClick(page.reset_copy_button, Qt.MouseButton.LeftButton)
    await until(lambda: demo.said)
    assert demo.said == ["the copy was thrown away, and 1 standing approval with it; the next run gets a fresh one"]
    await until(lambda: "file.delete of drafts/report.md" not in names(page))
