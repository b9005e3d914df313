"""Calls that wait and answers that stand, on the page Activity: by mouse and keys, with calls of other processes."""

import asyncio
import json
import re
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QMenu, QWidget

from gatewright.gate import Approval, ApprovalRequest, Outcome, Remember, Status, ledger
from gatewright.gate.approvalstore import EXPIRED, UNTAKEN
from gatewright.workspace import Workspace, permission_broker
from gatewright_gui.pages.activity import ActivityPage
from gatewright_gui.pages.activity.rows import AGENT, CALL, CLIENT, REASON, TIME, TOOK, VERDICT
from gatewright_gui.qt.language import current_catalog
from gatewright_gui.qt.widget.label import Label
from gatewright_gui.session.question import Standing, question_of, stale_of
from gatewright_gui.window.main_window import MainWindow
from tests.engine.gate.asking import a_request, small_store
from tests.gui.session.opened import opened_window, settled, until
from tests.support.checkout import ROOT
from tests.support.demo import copy_demo
from tests.support.patience import in_time

DELETE = {"op": "delete", "path": "drafts/report.md"}
APPEND = {"op": "append", "path": "notes/species.md", "content": "an otter\n"}
ALT = Qt.KeyboardModifier.AltModifier


class Deployed:
    """The demo in a window, and as another gate serves it."""

    def __init__(self, window: MainWindow, workspace: Workspace) -> None:
        self.window, self.workspace = window, workspace
        self.calls: list[asyncio.Task[Outcome]] = []

    async def ask(self, arguments: dict[str, str]) -> asyncio.Task[Outcome]:
        """A call that waits, once the window knows of it."""
        await self.rest(arguments)
        before = len(self.window.waiting.questions)
        broker = self.workspace.broker
        call = asyncio.create_task(self.workspace.call("operator", "file", arguments, approver=broker))
        self.calls.append(call)
        await until(lambda: len(self.window.waiting.questions) > before or call.done())
        assert not call.done(), call.result().decision.reason
        return call

    async def rest(self, arguments: dict[str, str]) -> None:
        """Until the pause that the demo wants after a call is over."""
        await until(lambda: str(self.workspace.decide("operator", "file", arguments).verdict) != "deny")

    async def ask_nobody(self, arguments: dict[str, str]) -> Outcome:
        """A call that a standing answer covers."""
        await self.rest(arguments)
        return await self.workspace.call("operator", "file", arguments)

    @property
    def page(self) -> ActivityPage:
        page = self.window.shelf.page("activity")
        assert isinstance(page, ActivityPage)
        return page

    def seen(self, name: str) -> Any:
        """What is visible under that name, if anything is."""
        return next((one for one in self.window.findChildren(QWidget, name) if one.isVisible()), None)

    def find(self, name: str) -> Any:
        found = self.window.findChild(QWidget, name)
        assert found is not None, name
        return found


@pytest.fixture
async def deployed(tmp_path: Path) -> AsyncIterator[Deployed]:
    policy = copy_demo(tmp_path / "demo")
    async with opened_window(policy, tmp_path) as window:
        with Workspace.open(policy) as workspace:
            await workspace.call(
                "archivist", "file", {"op": "list"}
            )  # enforced from now on; of the operator it would be a pause
            await until(lambda: window.waiting.is_known)
            made = Deployed(window, workspace)
            window.activateWindow()  # keys go to the window that is active
            await until(window.isActiveWindow)
            yield made
            for call in made.calls:
                call.cancel()
                with suppress(asyncio.CancelledError):
                    await call
            await until(lambda: not window.tasks.names)


@pytest.mark.parametrize("count", [0, 1, 3])
async def test_calls_that_asked_while_nobody_could_be_reached_are_counted(count: int, tmp_path: Path) -> None:
    policy = copy_demo(tmp_path / "demo")
    with Workspace.open(policy) as workspace:
        for _ in range(count):
            assert (await workspace.call("operator", "file", DELETE)).status is Status.UNANSWERED
    async with opened_window(policy, tmp_path) as window:
        window.show_page("activity")
        page = window.shelf.page("activity")
        assert isinstance(page, ActivityPage)
        await until(lambda: page.answers.is_known and page.band.quiet.isVisible())
        await until(lambda: page.answers.unreached == count)
        told = page.band.why.text()
        assert ("nobody could be reached" in told) == bool(count)
        assert not count or f"{count} call" in told
        await settled(window)


async def test_suspended_call_is_answered_here_and_made_later_by_its_program(deployed: Deployed) -> None:
    window = deployed.window
    named: dict[str, Any] = {"call_id": "toolu_1", "conversation": "chat-7"}
    await deployed.rest(DELETE)
    asked = await deployed.workspace.call("operator", "file", DELETE, **named, on_ask="suspend")
    assert asked.status is Status.WAITING
    await until(lambda: bool(window.waiting.questions))
    window.show_page("activity")
    page = deployed.page
    await until(page.question.isVisible)
    assert page.question.question is not None
    assert page.question.question.asker == "suspended \u00b7 conversation chat-7 \u00b7 user station"
    assert "waits 7 d more without a process" in page.question.about
    assert "asked" in page.question.about
    await until(page.question.approve_button.isEnabled)
    page.question.approve_button.click()
    await until(lambda: not deployed.workspace.broker.pending())  # written beside the window
    assert list(deployed.workspace.folder.rglob("drafts/report.md"))
    await deployed.rest(DELETE)
    done = await deployed.workspace.call("operator", "file", DELETE, **named, on_ask="suspend")
    assert done.status is Status.ALLOWED, done.decision.reason
    assert not list(deployed.workspace.folder.rglob("drafts/report.md"))


async def test_call_that_waits_is_told_over_every_page_and_show_leads_to_it(deployed: Deployed) -> None:
    window = deployed.window
    await deployed.ask(DELETE)

    bar = window.asking
    await until(bar.isVisible)
    assert "operator asks to call file.delete: drafts/report.md, denied in" in bar.text
    assert window.rail.button("activity").count == 1
    assert window.status.waiting.text() == "1 call waits for you"
    window.show_page("files")
    assert bar.isVisible()

    QTest.mouseClick(bar.action_button, Qt.MouseButton.LeftButton)

    assert window.shelf.current_key == "activity"
    assert not bar.isVisible()
    question = deployed.page.question.question
    assert question is not None
    assert (question.agent_id, question.called) == ("operator", "file.delete")
    window.show_page("files")
    assert not bar.isVisible(), "what was looked at is not told again"
    await deployed.ask(APPEND)
    await until(bar.isVisible)

    window.show_page("activity")
    await until(lambda: deployed.page.detail.detail is not None)
    assert deployed.page.detail.detail is not None
    facts = dict(deployed.page.detail.detail.facts)
    assert facts["Approval"] == "asked, no answer yet"
    assert facts["Result"] == "none yet: it still waits, or its program has ended"


async def test_question_shows_arguments_change_reasons_with_lines_and_who_asks(deployed: Deployed) -> None:
    await deployed.ask(DELETE)
    deployed.window.show_page("activity")
    panel = deployed.page.question
    assert panel.isVisible()
    await settled(deployed.window)

    part = deployed.find("activity.approval.part")
    assert part.current == "diff"
    QTest.mouseClick(part.button("arguments"), Qt.MouseButton.LeftButton)
    assert panel.tree is not None
    model = panel.tree.model
    root = model.index(0, 0)
    cells = {model.index(row, 0, root).data(): model.index(row, 1, root).data() for row in range(model.rowCount(root))}
    assert root.data() == "arguments"
    assert {name: cells[name].strip('"') for name in ("op", "path")} == DELETE
    why = deployed.find("activity.approval.why").text()
    assert "file.delete asks first by the approvals key file.delete" in why
    assert f"process {question_process(deployed)}" in deployed.find("activity.approval.where").text
    assert not part.button("records").isVisible()

    places = [deployed.find(f"activity.approval.place.{at}") for at in range(2)]
    line = next(place for place in places if "agents.operator.approvals.file.delete, line " in place.toolTip())
    assert re.fullmatch(r"Go to line [0-9]+", line.text())
    QTest.mouseClick(line, Qt.MouseButton.LeftButton)
    await settled(deployed.window)
    assert deployed.window.shelf.current_key == "text"


async def test_reason_of_the_one_call_that_waits_stands_below_it_and_an_answer_leaves_no_gap(
    deployed: Deployed,
) -> None:
    page = deployed.page
    deployed.window.show_page("activity")
    call = await deployed.ask(APPEND)
    await until(page.band.reason.isVisible)
    assert page.band.reason.text == "a person must allow file (consent group: record)"
    assert page.question.isVisible()
    await until(lambda: any(line.item != page.detail.waits for line in page.list.chosen))

    page.band.rows[0].deny_button.click()
    assert page.detail.header.title == "file.append", "the call stays until what came of it is read"
    await call
    await until(lambda: page.detail.detail is not None)
    assert page.detail.verdict.text == "denied"
    assert not page.band.reason.isVisible()


async def test_reach_of_every_answer_is_whole_in_a_small_window(deployed: Deployed) -> None:
    window = deployed.window
    window.show_page("activity")
    window.resize(1024, 768)
    await deployed.ask(DELETE)
    await deployed.ask(APPEND)
    bar = deployed.page.question
    for question in window.waiting.questions:
        deployed.page.see(question)
        await settled(window)
        await until(lambda: all(one.text() and one.isVisible() for one in bar.reach.values()))
        cut = [one.text() for one in bar.reach.values() if one.heightForWidth(one.width()) > one.height()]
        assert not cut


def question_process(deployed: Deployed) -> int:
    return deployed.window.waiting.questions[0].process_id


async def test_keys_answer_and_no_letter_does(deployed: Deployed) -> None:
    call = await deployed.ask(DELETE)
    window = deployed.window
    window.activateWindow()
    QTest.mouseClick(window.rail.button("activity"), Qt.MouseButton.LeftButton)
    view, panel = deployed.page.view, deployed.page.question
    await until(lambda: QApplication.focusWidget() is view)
    await until(lambda: deployed.page.current is not None)

    for key in (Qt.Key.Key_D, Qt.Key.Key_O, Qt.Key.Key_W, Qt.Key.Key_S, Qt.Key.Key_Space, Qt.Key.Key_Return):
        QTest.keyClick(view, key)
    assert panel.question is not None
    assert QApplication.focusWidget() is panel.refuse_button, "Enter in the list leads to what denies"
    QTest.keyClick(panel.refuse_button, Qt.Key.Key_2, ALT)

    outcome = await call
    assert outcome.status == "allowed", outcome.decision.reason
    await until(lambda: not window.waiting.questions)
    assert deployed.page.band.quiet.isVisible()
    await until(lambda: deployed.page.detail.detail is not None)  # what came of it
    detail = deployed.page.detail.detail
    assert detail is not None
    assert dict(detail.facts)["Approval"] == "allowed once by a person in the app"


async def test_keys_answer_no_question_that_is_not_to_be_seen(deployed: Deployed) -> None:
    await deployed.ask(DELETE)
    window, page = deployed.window, deployed.page
    window.show_page("activity")
    await until(lambda: page.detail.detail is not None and page.model.rowCount() > 2)
    asked = page.view.currentIndex().row()
    page.view.setCurrentIndex(page.model.index(asked + 1, 0))
    await until(lambda: page.detail.waits is None)

    QTest.keyClick(page.view, Qt.Key.Key_2, ALT)

    assert len(window.waiting.questions) == 1
    page.view.setCurrentIndex(page.model.index(asked, 0))
    assert page.question.question is not None


async def test_refusal_takes_its_reason_to_the_model(deployed: Deployed) -> None:
    call = await deployed.ask(DELETE)
    deployed.window.show_page("activity")
    panel = deployed.page.question

    QTest.keyClicks(panel.reason, "the report is still needed")
    QTest.mouseClick(panel.refuse_button, Qt.MouseButton.LeftButton)

    outcome = await call
    assert (outcome.status, outcome.code) == ("denied", "approval-refused")
    assert outcome.output.endswith("The operator says: the report is still needed")


async def test_what_waits_is_denied_and_allowed_in_its_row_above_the_calls(deployed: Deployed) -> None:
    first, second = await deployed.ask(DELETE), await deployed.ask(APPEND)
    third = await deployed.ask({**APPEND, "content": "a heron\n"})
    window, page = deployed.window, deployed.page
    window.show_page("activity")
    band = page.band
    high, top = band.height(), page.filters.y()
    assert "operator asks to call file.delete: drafts/report.md" in band.rows[0].words.text
    assert band.all_button.text() == "See all 3"
    QTest.mouseClick(band.all_button, Qt.MouseButton.LeftButton)
    await until(lambda: page.model.rowCount() == 3)
    assert [page.model.index(row, VERDICT).data() for row in range(3)] == ["waits"] * 3
    assert page.model.index(0, CALL).data() == "file.delete  drafts/report.md"

    QTest.mouseClick(band.rows[0].deny_button, Qt.MouseButton.LeftButton)
    QTest.mouseClick(band.rows[0].deny_button, Qt.MouseButton.LeftButton)
    assert (await first).status == "denied"
    assert len(window.waiting.questions) == 2, "a second click was not meant for the call that came up"
    assert band.rows[1].question is not None
    assert band.rows[1].question.called == "file.append", "what waited stays where it was"

    band.rows[1].allow_button.setFocus()
    QTest.keyClick(band.rows[1].allow_button, Qt.Key.Key_Space)
    assert page.detail.waits == band.rows[1].question, "nothing is allowed that is not shown"
    menu = QApplication.activePopupWidget()
    assert isinstance(menu, QMenu)
    allow = {action.text().split("\t")[0]: action for action in menu.actions()}
    assert {"Allow once", "Allow in this session", "Allow 5 minutes in any session"} <= {*allow}
    allow["Allow once"].trigger()
    menu.close()
    outcome = await second
    assert outcome.status == "allowed", outcome.decision.reason
    third.cancel()
    await until(lambda: not window.waiting.questions)
    assert (band.height(), page.filters.y()) == (high, top), "nothing moved"


async def test_next_question_comes_up_calmly_after_an_answer(deployed: Deployed) -> None:
    first, second = await deployed.ask(DELETE), await deployed.ask(APPEND)
    deployed.window.show_page("activity")
    panel = deployed.page.question

    QTest.keyClick(deployed.page.view, Qt.Key.Key_1, ALT)
    assert panel.question is not None
    assert panel.question.called == "file.append"
    assert not panel.approve_button.isEnabled(), "a second press was not meant for this one"
    assert panel.refuse_button.isEnabled()
    QTest.keyClick(deployed.page.view, Qt.Key.Key_2, ALT)
    assert panel.question is not None
    assert (await first).status == "denied"

    await until(panel.approve_button.isEnabled)
    QTest.keyClick(deployed.page.view, Qt.Key.Key_4, ALT)
    outcome = await second
    assert outcome.status == "allowed", outcome.decision.reason


async def test_question_that_goes_by_itself_is_told_and_gives_its_place_to_no_other(deployed: Deployed) -> None:
    await deployed.ask(DELETE)
    await deployed.ask(APPEND)
    deployed.window.show_page("activity")
    page = deployed.page
    asked = page.question.question
    assert asked is not None

    with_broker = permission_broker(deployed.workspace.policy_path)
    try:
        assert with_broker.answer(asked.request_id, Approval(False, "dana")) is not None
    finally:
        with_broker.close()

    await until(page.detail.gone.isVisible)
    await until(lambda: "Refused by dana; the call: not made" in page.detail.gone.accessibleDescription())
    assert page.question.question is None
    assert "file.delete does not wait any more" in page.detail.gone.accessibleName()
    QTest.keyClick(page.view, Qt.Key.Key_2, ALT)
    assert len(deployed.window.waiting.questions) == 1, "the key answers nothing"
    QTest.mouseClick(page.detail.gone.action_button, Qt.MouseButton.LeftButton)
    assert page.question.question is not None
    assert page.question.question.called == "file.append"


async def test_call_of_another_process_is_answered_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "note.md").write_text("hello\n", "utf-8")
    policy = tmp_path / "policy.toml"
    policy.write_text(
        'gatewright = 1\n[agents.archivist]\ntools = ["file"]\napprovals = { file = "ask" }\n'
        '[[sources]]\nid = "docs"\ntype = "file"\nbase_path = "docs"\ndefault_permission = "read_write"\n',
        "utf-8",
    )
    (tmp_path / "state").mkdir()
    monkeypatch.setenv("GATEWRIGHT_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("GATEWRIGHT_KEYS", str(tmp_path / "keys"))
    command = [sys.executable, "-m", "tests.engine.gate.calling_process", str(tmp_path), "--waits-alone"]
    process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        assert json.loads(process.stdout.readline()) == {"ready": True}
        async with opened_window(policy, tmp_path) as window:
            process.stdin.write(json.dumps({"call": "file", "arguments": {"op": "read", "path": "note.md"}}) + "\n")
            process.stdin.flush()
            await until(lambda: len(window.waiting.questions) == 1)
            window.show_page("activity")
            page = window.shelf.page("activity")
            assert isinstance(page, ActivityPage)
            assert page.question.question is not None
            assert page.question.question.process_id == process.pid
            QTest.mouseClick(page.question.approve_button, Qt.MouseButton.LeftButton)
            assert json.loads(await asyncio.to_thread(process.stdout.readline))["status"] == "allowed"

            process.stdin.write(json.dumps({"call": "file", "arguments": {"op": "read", "path": "note.md"}}) + "\n")
            process.stdin.flush()
            await until(lambda: len(window.waiting.questions) == 1)
            process.kill()
            await until(page.detail.gone.isVisible)
            await until(
                lambda: "The process that waited for the answer has ended" in page.detail.gone.accessibleDescription()
            )
            await until(lambda: not window.tasks.names)
    finally:
        process.kill()
        process.communicate()


async def test_answers_that_stand_are_listed_with_their_uses_found_and_taken_back(deployed: Deployed) -> None:
    call = await deployed.ask(APPEND)
    window, page = deployed.window, deployed.page
    window.show_page("activity")
    QTest.keyClick(page.view, Qt.Key.Key_4, ALT)
    assert (await call).status == "allowed"
    assert (await deployed.ask_nobody(APPEND)).status == "allowed"

    QTest.mouseClick(page.filters.chips.button("standing"), Qt.MouseButton.LeftButton)
    model = page.model
    await until(lambda: model.rowCount() == 1 and model.index(0, TOOK).data() == "2 times")
    said = [model.index(0, column).data() for column in (AGENT, CALL, VERDICT, REASON, CLIENT)]
    assert said == ["operator", "consent group record in this session", "allowed", "in 30 d", "a person in the app"]
    heads = [model.headerData(column, Qt.Orientation.Horizontal) for column in (TIME, CALL, REASON, CLIENT, TOOK)]
    assert heads == ["Given", "What", "Ends", "By", "Used today"]
    QTest.keyClicks(page.filters.search, "nonsense")
    await until(lambda: model.rowCount() == 0)
    page.filters.search.setText("record")
    await until(lambda: model.rowCount() == 1)
    page.filters.chips.set_current("all")
    await until(lambda: model.rowCount() > 1)
    line = model.row_at(0)
    assert line is not None
    assert isinstance(line.item, Standing), "one search finds calls and answers alike"

    assert deployed.seen("activity.back") is None
    rect = page.view.visualRect(model.index(0, 0))
    QTest.mouseClick(page.view.viewport(), Qt.MouseButton.LeftButton, pos=rect.center())
    assert page.detail.item == line.item
    await until(lambda: "2 times" in [one.text() for one in page.detail.findChildren(Label) if one.isVisible()])
    assert not page.detail.reason.isVisible(), "what it covers is the title already"
    QTest.mouseClick(deployed.seen("activity.back"), Qt.MouseButton.LeftButton)
    await until(lambda: not page.answers.standing)
    assert deployed.workspace.broker.standing() == ()
    await until(lambda: page.detail.item is None)
    await deployed.ask(APPEND)


async def test_several_answers_are_taken_back_only_after_a_question(deployed: Deployed) -> None:
    broker = deployed.workspace.broker
    lasting = Approval(True, "dana", Remember.DURATION, 600.0)
    for tool in ("one", "two"):
        broker.grants.remember(a_request(tool=tool, agent="operator"), lasting)
    window, page = deployed.window, deployed.page
    window.show_page("activity")
    page.filters.chips.set_current("standing")
    await until(lambda: [line.what for line in page.model.rows] == ["two in any session", "one in any session"])

    for answer, left in (("keep", 2), ("back", 0)):
        window.activateWindow()
        await until(window.isActiveWindow)
        page.view.setFocus()
        page.view.selectAll()
        assert deployed.find("activity.back").text() == "Take back 2 answers"
        if answer == "keep":
            QTest.mouseClick(deployed.find("activity.back"), Qt.MouseButton.LeftButton)
        else:
            QTest.keyClick(page.view, Qt.Key.Key_Delete)
        await until(lambda name=f"choice-{answer}": deployed.seen(name) is not None)
        QTest.mouseClick(deployed.seen(f"choice-{answer}"), Qt.MouseButton.LeftButton)
        await until(lambda: "activity.back" not in window.tasks.names)
        assert len(broker.standing()) == left


async def test_calls_that_asked_are_listed_with_answer_and_outcome(deployed: Deployed) -> None:
    page = deployed.page
    deployed.window.show_page("activity")
    for arguments, key in ((DELETE, Qt.Key.Key_1), (APPEND, Qt.Key.Key_2)):
        call = await deployed.ask(arguments)
        await until(page.question.approve_button.isEnabled)
        QTest.keyClick(page.view, key, ALT)
        await call

    QTest.mouseClick(page.filters.chips.button("asked"), Qt.MouseButton.LeftButton)
    model = page.model
    await until(lambda: model.rowCount() == 2 and model.row_at(1) is not None)
    await until(lambda: model.index(0, VERDICT).data() == "allowed")
    rows = [[model.index(row, column).data() for column in (AGENT, VERDICT, REASON)] for row in range(2)]
    assert rows == [
        ["operator", "allowed", "allowed once by a person in the app, consent group record"],
        ["operator", "denied", "a person in the app did not approve the call"],
    ]
    assert deployed.seen("activity.back") is None


async def test_answer_that_the_policy_overtook_is_listed_with_what_the_gate_made_of_it(deployed: Deployed) -> None:
    call = await deployed.ask(DELETE)
    page = deployed.page
    deployed.window.show_page("activity")
    policy = deployed.workspace.policy_path
    text = policy.read_text("utf-8")
    assert '"file.delete" = "ask"' in text
    policy.write_text(text.replace('"file.delete" = "ask"', '"file.delete" = "deny"'), "utf-8")
    deployed.workspace.reload()

    QTest.keyClick(page.view, Qt.Key.Key_2, ALT)
    assert (await call).status == "denied"
    page.filters.chips.set_current("asked")
    await until(lambda: page.model.rowCount() == 1 and page.model.row_at(0) is not None)
    await until(lambda: page.model.index(0, VERDICT).data() == "denied")
    page.view.setCurrentIndex(page.model.index(0, 0))
    await until(lambda: page.detail.detail is not None)
    assert page.detail.detail is not None
    assert dict(page.detail.detail.facts)["Approval"] == "allowed once by a person in the app"


async def test_desktop_tells_of_a_call_only_who_looks_elsewhere_and_wants_it(deployed: Deployed) -> None:
    window, told = deployed.window, list[tuple[str, str]]()
    window.notifier.put = lambda title, text: told.append((title, text))
    await deployed.ask(DELETE)
    assert told == [], "the window is in front"
    other = QWidget()
    other.show()
    other.activateWindow()
    await until(lambda: not window.isActiveWindow())

    await deployed.ask(APPEND)
    assert told == [("A call waits for your answer", "operator asks to call file.append")]
    window.notifier.clicked.emit()
    assert window.shelf.current_key == "activity"
    await until(window.isActiveWindow)

    QTest.mouseClick(deployed.page.notify, Qt.MouseButton.LeftButton, pos=QPoint(8, deployed.page.notify.height() // 2))
    assert not deployed.page.notify.isChecked()
    other.activateWindow()
    await until(lambda: not window.isActiveWindow())
    await deployed.ask({**APPEND, "content": "a heron\n"})
    assert len(told) == 1
    assert not window.preferences.notifies
    other.close()


async def test_thousand_questions_are_listed_and_chosen_without_holding_up_the_window(deployed: Deployed) -> None:
    window = deployed.window

    def asked(number: int) -> ApprovalRequest:
        more: dict[str, Any] = {"arguments": {"text": f"no. {number}"}, "expires_wall_s": time.time() + 600}
        return a_request(digest=f"d{number}", request_id=f"ask-{number}", asked_wall_s=1.0 + number, **more)

    questions = tuple(question_of(asked(number), lambda _reply: None) for number in range(1000))
    window.show_page("activity")
    deployed.page.filters.chips.set_current("waiting")
    await until(lambda: deployed.page.model.rowCount() == 0)
    window.waiting.close()  # from now on it tells what the test puts in
    began = time.process_time()
    window.waiting._put(questions)  # pyright: ignore[reportPrivateUsage]
    await asyncio.sleep(0)
    page = deployed.page
    assert page.model.rowCount() == 1000
    for number in (500, 999):
        page.view.setCurrentIndex(page.model.index(number, 0))
        await asyncio.sleep(0)
        assert page.question.question is not None
        assert page.question.question.request_id == f"ask-{number}"
    window.waiting._put(questions[1:])  # pyright: ignore[reportPrivateUsage]
    await asyncio.sleep(0)
    assert in_time(time.process_time() - began, 1.0)
    assert page.question.question.request_id == "ask-999"
    assert page.view.currentIndex().row() == 998
    assert window.rail.button("activity").count == 999


async def test_question_that_the_policy_or_the_files_overtook_is_listed_as_stale_with_its_age_and_why(
    deployed: Deployed,
) -> None:
    window, page = deployed.window, deployed.page
    window.show_page("activity")
    QTest.mouseClick(page.filters.chips.button("lapsed"), Qt.MouseButton.LeftButton)
    await until(lambda: page.empty.accessibleName() == "No lapsed questions")
    policy = deployed.workspace.policy_path
    (report,) = deployed.workspace.folder.rglob("drafts/report.md")

    def edit_file() -> None:
        report.write_text(report.read_text("utf-8") + "More.\n", "utf-8")

    def edit_policy() -> None:
        text = policy.read_text("utf-8")
        policy.write_text(
            text.replace('"file.delete" = "ask"', '"file.delete" = "ask", "file.append" = "ask"'), "utf-8"
        )
        deployed.workspace.reload()

    for number, (overtake, why) in enumerate(
        (
            (edit_file, "the call would now do something else than dana approved"),
            (edit_policy, "the policy has changed"),
        ),
        1,
    ):
        named: dict[str, Any] = {"call_id": f"toolu_{number}", "conversation": f"chat-{number}"}
        await deployed.rest(DELETE)
        asked = await deployed.workspace.call("operator", "file", DELETE, **named, on_ask="suspend")
        assert asked.question is not None
        deployed.workspace.broker.answer(asked.question.request_id, Approval(True, "dana"))
        overtake()
        await deployed.rest(DELETE)
        again = await deployed.workspace.call("operator", "file", DELETE, **named, on_ask="suspend")
        assert again.status is Status.WAITING
        model = page.model
        await until(lambda count=number, model=model: model.rowCount() == count)
        said = [model.index(0, column).data() for column in (CALL, AGENT, CLIENT, REASON)]
        assert said == ["file.delete", "operator", f"chat-{number}", why]
        page.view.setCurrentIndex(model.index(0, 0))
        assert page.detail.reason.text() == why
        assert "drafts/report.md" in page.detail.code.text
        assert page.detail.who.text == "operator"
    QTest.keyClicks(page.filters.search, "policy")
    await until(lambda: page.model.rowCount() == 1)
    page.filters.search.setText("report.md")  # among the arguments
    await until(lambda: page.model.rowCount() == 2)


def test_every_reason_of_a_stale_question_is_said_in_the_language_of_the_app_and_hides_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said_by_ledger = [vars(ledger)[name] for name in ("_POLICY", "_CONTENT", "_GONE")]
    reasons = [*said_by_ledger, EXPIRED, UNTAKEN, "dana\u202e did {not} see"]
    store = small_store(tmp_path)
    for number, why in enumerate(reasons):
        asked = a_request(tool=f"t{number}", agent="operator", call_key=f"c{number}", conversation="chat")
        first = store.suspend(asked)
        assert first is not None
        store.suspend(replace(asked, request_id=f"later{number}"), void=first.request_id, why=why)
    for language in ("", "de"):
        monkeypatch.setenv("GATEWRIGHT_LANGUAGE", language)
        current_catalog.cache_clear()
        said = [stale_of(one).why for one in store.stale()]
        assert len(said) == len(reasons)
        assert "\u202e" not in "".join(said)
        assert (set(said) & set(reasons) == set()) == bool(language)
    monkeypatch.delenv("GATEWRIGHT_LANGUAGE")
    current_catalog.cache_clear()
