"""The four answers to a question, what stands afterwards, and what the Session part of the console shows of it."""

import asyncio
import json
from collections.abc import AsyncIterator

import pytest
from PySide6.QtCore import QEvent, QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel, QWidget
from pytestqt.qtbot import QtBot

from gatewright.policy.verdict import Verdict
from gatewright_gui.pages.trial import TrialPage, conversation, stages
from gatewright_gui.pages.trial.approval import ApprovalBar
from gatewright_gui.session.question import PendingApproval, Reply
from tests.gui.console.standing import call, choose, console_page, settled
from tests.gui.files.support import Opened, until

DELETE = {"op": "delete", "path": "drafts/report.md"}
APPEND = {"op": "append", "path": "notes/species.md", "content": "an otter\n"}


@pytest.fixture
async def page(demo: Opened) -> AsyncIterator[TrialPage]:
    async with console_page(demo, "operator") as made:
        yield made


async def asked(page: TrialPage, arguments: dict[str, str]) -> ApprovalBar:
    call(page, **arguments)
    await paused(page)
    page.run()
    await until(lambda: page.outcome.approval.question is not None)
    return page.outcome.approval


async def paused(page: TrialPage) -> None:
    """Until the cooldown of the demo's operator is over."""
    await page.console.look_at_session("operator")
    await until(lambda: not any(" to wait" in text for text in states(page)))


def states(page: TrialPage) -> list[str]:
    model = page.history.session.model
    return [str(model.index(row, conversation.STATE).data()) for row in range(model.rowCount())]


def names(page: TrialPage) -> list[str]:
    model = page.history.session.model
    return [str(model.index(row, conversation.WHAT).data()) for row in range(model.rowCount())]


async def run_through(page: TrialPage, arguments: dict[str, str], count: int) -> str:
    """Run a call that is not asked about; what its approval stage said."""
    call(page, **arguments)
    await paused(page)
    page.run()
    record = await settled(page, count)
    return next((row.reason for row in record.stages if row.name == "approval"), record.reason)


async def test_bar_has_four_answers_and_the_one_that_denies_comes_first(page: TrialPage) -> None:
    bar = await asked(page, APPEND)

    buttons = (bar.refuse_button, bar.approve_button, bar.while_button, bar.scope_button)
    assert [button.isVisible() and button.isEnabled() for button in buttons] == [True] * 4
    places = [button.mapTo(page, button.rect().topLeft()).y() for button in buttons]
    assert places == sorted(places)
    assert bar.scope_button.text() == "Allow in this session"
    assert (
        bar.reach[bar.scope_button].text()
        == "Every call of this session in the consent group record, for at most 30 days"
    )
    assert "waits until it is answered" in bar.about
    assert "tier side effects" in bar.about
    assert bar.question is not None
    assert bar.question.session_id in bar.about
    assert APPEND.items() <= json.loads(bar.question.arguments).items()
    bar.refuse_button.click()
    assert (await settled(page, 1)).code == "approval-refused"


async def test_allowed_for_a_while_is_not_asked_again_until_it_is_revoked(page: TrialPage) -> None:
    bar = await asked(page, DELETE)
    bar.while_button.click()
    times = [f"Allow {words} in any session" for words in ("5 minutes", "15 minutes", "1 hour")]
    assert [action.text() for action in bar.menu.actions()][:3] == times
    bar.menu.actions()[0].trigger()
    assert (await settled(page, 1)).status == "allowed"

    page.history.part.set_current("session")
    await until(lambda: "file.delete of drafts/report.md" in names(page))
    said = states(page)[names(page).index("file.delete of drafts/report.md")]
    assert said == "allowed for 5 min in any session, by you"
    reason = await run_through(page, DELETE, 2)
    assert reason.startswith("approved earlier by you, until ")
    # put back, since nobody is asked about deleting what is not there
    await run_through(page, {"op": "create", "path": "drafts/report.md"}, 3)

    row = names(page).index("file.delete of drafts/report.md")
    page.history.session.table.selectRow(row)
    QTest.mouseClick(page.history.revoke_button, Qt.MouseButton.LeftButton)
    await until(lambda: "file.delete of drafts/report.md" not in names(page))
    await asked(page, DELETE)
    page.outcome.approval.refuse_button.click()
    await settled(page, 4)


async def test_another_time_is_typed_and_counts_in_minutes(page: TrialPage) -> None:
    bar = await asked(page, DELETE)
    assert not bar.minutes.isVisible()
    bar.menu.actions()[-1].trigger()
    assert bar.minutes.isVisible()
    assert QApplication.focusWidget() is not bar.minutes_button
    bar.minutes.setValue(120)
    bar.minutes_button.click()
    await settled(page, 1)
    await until(lambda: "file.delete of drafts/report.md" in names(page))
    assert states(page)[names(page).index("file.delete of drafts/report.md")].startswith("allowed for 2 h")


async def test_allowed_for_a_scope_covers_other_arguments_in_that_session_only(page: TrialPage) -> None:
    bar = await asked(page, APPEND)
    bar.scope_button.click()
    assert (await settled(page, 1)).status == "allowed"
    reason = await run_through(page, {**APPEND, "path": "notes/2026/spring.md"}, 2)
    assert reason.startswith("approved earlier by")
    page.history.reset_button.click()
    await asked(page, APPEND)
    page.outcome.approval.refuse_button.click()
    await settled(page, 3)


async def test_keys_answer_only_once_the_focus_is_in_the_bar_and_no_letter_does(page: TrialPage) -> None:
    page.activateWindow()
    await until(page.isActiveWindow)
    call(page, **DELETE)
    editor = page.request.raw.editor
    editor.setFocus()
    page.run()
    await until(lambda: page.outcome.approval.question is not None)
    text = page.request.raw.text
    QTest.keyClick(editor, Qt.Key.Key_O)
    assert page.outcome.approval.question is not None
    assert page.request.raw.text != text
    QTest.keyClick(editor, Qt.Key.Key_F6)
    assert QApplication.focusWidget() is page.outcome.approval.refuse_button
    for letter in (Qt.Key.Key_O, Qt.Key.Key_W, Qt.Key.Key_S, Qt.Key.Key_2):
        QTest.keyClick(page.outcome.approval.refuse_button, letter)
    assert page.outcome.approval.question is not None
    QTest.keyClick(page.outcome.approval.refuse_button, Qt.Key.Key_2, Qt.KeyboardModifier.AltModifier)
    assert (await settled(page, 1)).status == "allowed"


async def test_stage_leads_to_its_line_by_a_click(demo: Opened, page: TrialPage) -> None:
    call(page, **DELETE)
    page.decide()
    record = await settled(page, 1)
    row = stages.STAGE_NAMES.index("approval")
    asks = next(stage for stage in record.stages if stage.name == "approval")
    assert asks.rule is not None
    assert asks.rule.address == ("agents", "operator", "approvals", "file.delete")
    index = page.outcome.model.index(row, stages.RULE)
    assert index.data() == f"line {asks.rule.line}"
    view = page.outcome.stages
    view.scrollTo(index)
    spot = view.visualRect(index).center()
    QTest.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, spot)
    await until(lambda: demo.lines)
    assert demo.lines == [asks.rule.line]


async def test_session_says_what_is_left_and_what_the_end_waits_for(page: TrialPage) -> None:
    await until(lambda: "34 left" not in str(states(page)) and "0 of 40 calls made, 40 left" in states(page))
    reason = await run_through(page, {"op": "read", "path": "README.md"}, 1)
    assert reason == "nothing asks"
    await until(lambda: "1 of 40 calls made, 39 left" in states(page))
    assert "1 run" in states(page)[names(page).index("file.read")]
    await choose(page, "researcher")
    await until(lambda: "has to succeed before the end" in states(page))
    assert names(page)[states(page).index("has to succeed before the end")] == "file.read"
    assert "30 of 30 left \u00b7 never more than 30 in any 1 min" in states(page)


async def test_conditional_policy_rule_denies_with_its_words_and_its_line(page: TrialPage) -> None:
    call(page, op="create", path="drafts/run.sh", content="x")
    page.decide()
    record = await settled(page, 1)
    assert (record.verdict, record.stage) == (Verdict.DENY, "policy"), record.reason
    assert record.rule is not None
    assert (record.rule.rule_id, record.rule.address) == ("no new scripts", ("policy", "rules", 0))
    assert "scripts are put in by hand" in (record.model_message or "")


def question(**changes: object) -> tuple[PendingApproval, list[Reply]]:
    given: list[Reply] = []
    values: dict[str, object] = {"request_id": "ask-1", **changes}
    made = PendingApproval("a", "t", "", "{}", ("it asks",), None, given.append, **values)  # type: ignore[arg-type]
    return made, given


def test_what_the_tool_itself_asks_can_only_be_allowed_once(qtbot: QtBot) -> None:
    bar = ApprovalBar()
    qtbot.addWidget(bar)
    made, given = question(once_only=True)
    bar.ask(made)
    assert bar.approve_button.isEnabled()
    assert not bar.while_button.isEnabled()
    assert not bar.scope_button.isEnabled()
    bar.approve_button.click()
    assert given == [Reply(approved=True)]


def test_question_of_another_process_says_when_its_time_is_over(qtbot: QtBot) -> None:
    bar = ApprovalBar(name="window")
    qtbot.addWidget(bar)
    bar.ask(question(asked_wall_s=1.0, expires_wall_s=4e9, waiting=3, user_id="eve\u202e")[0])
    assert "if nobody answers" in bar.about
    assert "3 identical calls" in bar.about
    assert "eve\\u202e" in bar.about
    bar.ask(question(expires_wall_s=1.0)[0])
    assert "its time is over" in bar.about
    assert bar.findChild(QLabel, "window.approval.why") is not None
    assert bar.findChild(QWidget, "window.refuse") is bar.refuse_button


@pytest.mark.parametrize("width", [948, 1204])
async def test_call_that_asks_and_what_stands_after_it_move_nothing_beside_them(page: TrialPage, width: int) -> None:
    """Of a window 1024 and 1280 wide."""
    page.resize(width, 640)
    await laid_out()
    controls = (*(page.history.part.button(key) for key in ("calls", "session")), page.run_button, page.live_button)

    def places() -> list[tuple[int, int]]:
        return [(at.x(), at.y()) for at in (control.mapTo(page, QPoint()) for control in controls)]

    call(page, **APPEND)
    await paused(page)
    await laid_out()
    before = places()
    bar = await asked(page, APPEND)
    await laid_out()
    assert places() == before, "while it asks"
    bar.scope_button.click()
    await settled(page, 1)
    await page.console.look_at_session("operator")
    assert "consent group record" in " ".join(names(page))
    await laid_out()
    assert places() == before, "while the answer stands"
    call(page, **DELETE)
    page.decide()
    await settled(page, 2)
    await laid_out()
    assert places() == before, "beside a verdict"


async def laid_out() -> None:
    """Until every layout that was asked for is made, however many are in each other."""
    for _ in range(20):
        QApplication.sendPostedEvents(None, QEvent.Type.LayoutRequest.value)
        await asyncio.sleep(0)
