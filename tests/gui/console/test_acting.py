"""What the console says while one acts: which call is told of, what an answer covers, where it counts, what is left."""

import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel, QSplitter

from gatewright_gui.pages.trial import TrialPage, stages
from gatewright_gui.pages.trial import history_model as callhistory
from gatewright_gui.pages.trial.conversation import HOLDS, STATE, ConversationModel
from gatewright_gui.qt.table_model import ROW
from gatewright_gui.qt.widget import Chip, ElidedLabel
from gatewright_gui.session.conversation import Fact, SessionState, Window
from tests.gui.console.standing import call, choose, console_page, settled
from tests.gui.console.test_approvals import DELETE, asked, names, paused, states
from tests.gui.files.support import Opened, until
from tests.gui.session.opened import demo as demo_policy
from tests.gui.session.opened import opened_window
from tests.gui.session.opened import settled as window_settled

READ = {"op": "read", "path": "README.md"}


@pytest.fixture
async def page(demo: Opened) -> AsyncIterator[TrialPage]:
    async with console_page(demo, "operator") as made:
        yield made


def advice(page: TrialPage) -> str:
    return " ".join(label.text() for label in page.outcome.result.none.findChildren(QLabel))


async def test_after_deciding_in_live_mode_the_key_that_runs_is_said_to_run_live(demo: Opened, page: TrialPage) -> None:
    call(page, **READ)
    page.decide()
    await settled(page, 1)
    assert "disposable copy" in advice(page)
    demo.document.live.enter()
    assert "Run LIVE (Ctrl+Shift+Return) makes the call in the real workspace" in advice(page)
    page.decide()
    await settled(page, 2)
    assert "Run LIVE (Ctrl+Shift+Return) makes the call in the real workspace" in advice(page)
    assert "disposable copy" not in advice(page)
    demo.document.live.leave()
    assert "disposable copy" in advice(page)


async def test_bar_says_what_each_answer_covers_before_it_is_given(page: TrialPage) -> None:
    bar = await asked(page, DELETE)
    said = "file.delete of drafts/report.md by operator, in any session"
    assert bar.reach[bar.while_button].text() == said
    assert bar.while_button.accessibleDescription() == said
    assert (
        bar.reach[bar.scope_button].text()
        == "file.delete of drafts/report.md in this session only, for at most 30 days"
    )
    bar.menu.actions()[0].trigger()
    await settled(page, 1)
    await until(lambda: "file.delete of drafts/report.md" in names(page))
    row = names(page).index("file.delete of drafts/report.md")
    told = page.history.session.model.index(row, STATE).data(Qt.ItemDataRole.ToolTipRole)
    assert "Another file or block whose own level asks is asked about again" in told


async def test_what_a_while_covers_is_what_the_row_says(page: TrialPage) -> None:
    call(page, op="create", path="drafts/other.md", content="x")
    await paused(page)
    page.run()
    await settled(page, 1)
    bar = await asked(page, DELETE)
    bar.menu.actions()[0].trigger()
    await settled(page, 2)
    await asked(page, {**DELETE, "path": "drafts/other.md"})
    page.outcome.approval.refuse_button.click()
    await settled(page, 3)


async def test_bar_says_where_an_answer_counts(demo: Opened, page: TrialPage) -> None:
    bar = await asked(page, DELETE)
    where = bar.findChild(Chip, "console.approval.where")
    assert where is not None
    assert where.text == "in the copy"
    bar.refuse_button.click()
    await settled(page, 1)
    demo.document.live.enter()
    await asked(page, DELETE)
    assert where.text == "LIVE: the real workspace"
    bar.refuse_button.click()
    assert (await settled(page, 2)).reason == "you did not approve the call"


async def test_open_question_is_told_to_the_other_pages_until_it_is_answered(demo: Opened, page: TrialPage) -> None:
    told: list[bool] = []
    demo.context.navigator.question_told.connect(told.append)
    bar = await asked(page, DELETE)
    assert told == [True]
    page.activateWindow()
    await until(page.isActiveWindow)
    demo.context.navigator.go_to_question()
    assert bar.refuse_button.hasFocus()
    bar.refuse_button.click()
    await settled(page, 1)
    assert told[-1] is False


async def test_verdict_of_another_call_is_marked_until_its_own_is_filled_in_again(page: TrialPage) -> None:
    page.request.form.set_values(READ)
    page.decide()
    await settled(page, 1)
    verdict = page.outcome.verdict
    assert not verdict.is_stale
    page.request.form.set_values({**READ, "path": "notes/species.md"})
    await until(lambda: verdict.is_stale)
    assert verdict.accessibleName().startswith("of another call: allow")
    page.request.form.set_values(READ)
    await until(lambda: not verdict.is_stale)
    page.request.mode.set_current("json")
    page.request.raw.set_text('{"path": "README.md", "op": "read"}')
    page.request.raw.set_text('{"path": "README.md"}')
    await until(lambda: verdict.is_stale)
    page.decide()
    await settled(page, 2)
    assert not verdict.is_stale


async def test_history_tells_calls_of_one_operation_apart(page: TrialPage) -> None:
    for number, path in enumerate(("README.md", "notes/species.md"), 1):
        call(page, op="read", path=path)
        page.decide()
        await settled(page, number)
    rows = [page.history.model.index(row, callhistory.CALL) for row in range(2)]
    assert [row.data(ROW).telling for row in rows] == ["notes/species.md", "README.md"]
    assert "notes/species.md" in str(rows[0].data(Qt.ItemDataRole.AccessibleTextRole))


async def test_stage_at_which_a_call_failed_says_so(page: TrialPage) -> None:
    call(page, op="read", path="nothing/here.md")
    await paused(page)
    page.run()
    assert (await settled(page, 1)).status == "failed"
    row = stages.STAGE_NAMES.index("execute")
    assert page.outcome.model.state_at(row) == "failed"
    assert page.outcome.model.index(row, stages.VERDICT).data() == "failed"


async def test_deleted_file_is_said_to_be_deleted(page: TrialPage) -> None:
    bar = await asked(page, DELETE)
    bar.approve_button.click()
    assert (await settled(page, 1)).status == "allowed"
    about = page.outcome.result.findChild(ElidedLabel, "console.changeabout")
    assert about is not None
    assert about.text == "deleted drafts/report.md · the whole file · -11 lines"


async def test_calls_and_session_are_chosen_without_anything_moving(page: TrialPage) -> None:
    call(page, **READ)
    page.decide()
    await settled(page, 1)
    splitter = page.history.parentWidget()
    assert isinstance(splitter, QSplitter)
    page.history.part.set_current("session")
    QApplication.sendPostedEvents()
    splitter.setSizes([2000, 1])
    QApplication.sendPostedEvents()
    before = page.history.height()
    page.history.part.set_current("calls")
    QApplication.sendPostedEvents()
    assert page.history.bar.isVisible()
    assert page.history.height() == before


async def test_reasons_keep_most_of_the_room_where_there_is_little(page: TrialPage) -> None:
    call(page, **READ)
    page.decide()
    await settled(page, 1)
    pane = page.outcome.stage_pane
    pane.resize(470, 300)
    view = pane.view
    assert view.columnWidth(stages.VERDICT) + view.columnWidth(stages.RULE) < 180
    pane.resize(900, 300)
    assert view.columnWidth(stages.VERDICT) == 130


async def test_foot_of_the_window_leads_back_to_the_question(tmp_path: Path) -> None:
    async with opened_window(demo_policy(tmp_path), tmp_path) as window:
        window.show_page("try")
        await window_settled(window)
        page = window.shelf.page("try")
        assert isinstance(page, TrialPage)
        await choose(page, "operator")
        await window_settled(window)
        assert not window.status.question.isVisible()
        await asked(page, DELETE)
        window.show_page("files")
        await until(window.status.question.isVisible)
        QTest.mouseClick(window.status.question, Qt.MouseButton.LeftButton)
        assert window.shelf.current_key == "try"
        assert page.request.tool_name == "file"
        page.outcome.approval.refuse_button.click()
        await settled(page, 1)
        assert not window.status.question.isVisible()
        await window_settled(window)


def test_rate_fills_up_by_itself_while_one_looks() -> None:
    now = [100.0]
    model = ConversationModel(steady=lambda: now[0], wall=time.time)
    fact = Fact("rate", "file", "never more than 2", seen_s=100.0, window=Window(2, ((15.0, 1), (70.0, 1))))
    model.set_state(SessionState("a", True, "open", (), "s", True, (fact,)))
    cell = model.index(1, STATE)
    assert cell.data() == "0 of 2 left · next in 15 s · never more than 2"
    assert cell.data(HOLDS)
    assert model.counts_down
    now[0] += 16
    assert cell.data() == "1 of 2 left · never more than 2"
    assert not cell.data(HOLDS)
    now[0] += 60
    assert cell.data().startswith("2 of 2 left")
    assert not model.counts_down


async def test_session_says_what_a_rate_means(page: TrialPage) -> None:
    await choose(page, "researcher")
    await until(lambda: "30 of 30 left · never more than 30 in any 1 min" in states(page))
