"""Calls that wait without their program or are stopped, rules that are observed or have times, by mouse and keys."""

import json
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from PySide6.QtWidgets import QAbstractButton, QLabel, QLineEdit, QListWidget

from gatewright_gui.pages.access.rules.rule_list import NAME, RuleList
from gatewright_gui.pages.activity import ActivityPage
from gatewright_gui.qt.widget.button import Segmented
from tests.journeys.commandline import gatewright
from tests.journeys.hand import Hand, until
from tests.journeys.views import table_row

pytestmark = pytest.mark.journey
DELETE = {"op": "delete", "path": "drafts/report.md"}
SCRIPT = {"op": "create", "path": "drafts/run.sh", "content": "true\n"}
NAMED = "--call-id", "toolu_1", "--conversation", "chat-7", "--on-ask", "suspend"


async def call(policy: Path, agent: str, arguments: dict[str, str], *more: str) -> tuple[int, Any]:
    """What a program does that ends right after its call."""
    given = "--agent", agent, "--tool", "file", "--args", json.dumps(arguments)
    return await gatewright("call", str(policy), *given, *more)


async def save(hand: Hand) -> None:
    await hand.key("ctrl+s")
    await hand.click(await hand.see("review.accept", QAbstractButton))
    await until(lambda: not hand.window.document.is_dirty, "the file to be saved")


async def test_question_is_answered_after_the_program_that_asked_has_ended(hand: Hand, policy: Path) -> None:
    (report,) = policy.parent.rglob("drafts/report.md")
    window = hand.window
    await until(lambda: window.waiting.is_known, "the window to hear of calls")

    # the program asks and ends; every page tells of its call
    status, asked = await call(policy, "operator", DELETE, *NAMED)
    assert (status, asked["status"]) == (3, "waiting")
    await until(window.asking.isVisible, "the bar that tells of the call")
    await hand.click(window.asking.action_button)
    page = window.shelf.page("activity")
    assert isinstance(page, ActivityPage)
    await until(page.question.isVisible, "the question")
    assert page.question.question is not None
    assert "conversation chat-7" in page.question.question.asker
    await until(page.question.approve_button.isEnabled, "the button that approves")
    await hand.click(page.question.approve_button)
    await until(lambda: not window.waiting.questions, "the answer to be kept")
    assert report.exists()

    # another process resumes the call, once; whoever repeats it is told what came of it
    status, done = await gatewright("call", str(policy), "--resume", asked["question"]["id"])
    assert (status, done["status"]) == (0, "allowed")
    assert not report.exists()
    report.write_text("a new one")
    status, again = await call(policy, "operator", DELETE, *NAMED)
    assert (status, again["output"]) == (0, done["output"])
    assert report.read_text() == "a new one"


async def test_stop_holds_for_every_process_until_go(hand: Hand, policy: Path) -> None:
    listed = {"op": "list"}
    assert (await call(policy, "archivist", listed))[0] == 0

    await hand.key("ctrl+shift+period")
    await until(hand.window.stop_bar.isVisible, "the bar that tells of the stop")
    status, stopped = await call(policy, "archivist", listed)
    assert (status, stopped["stage"], stopped["code"]) == (4, "lookup", "stopped")
    await hand.go_to("activity")
    assert hand.window.stop_bar.isVisible()
    await hand.click(hand.window.stop_bar.action_button)
    await until(hand.window.stop_bar.isHidden, "the stop to end")
    assert (await call(policy, "archivist", listed))[0] == 0

    # pulled elsewhere for one agent, it shows here as well
    assert (await gatewright("stop", str(policy), "--agent", "operator", "--because", "odd deletes"))[0] == 0
    await until(hand.window.stop_bar.isVisible, "the stop from elsewhere")
    assert "odd deletes" in hand.window.stop_bar.text
    assert (await call(policy, "archivist", listed))[0] == 0
    await hand.click(hand.window.stop_bar.action_button)
    await until(hand.window.stop_bar.isHidden, "the stop to end")


async def test_rule_is_observed_compared_and_enforced(hand: Hand, policy: Path) -> None:
    window = hand.window
    assert (await call(policy, "archivist", SCRIPT))[0] == 4

    # observed: the same call is made, and noted
    await hand.go_to("rules")
    rules = hand.find("policy.rules", RuleList)
    await hand.click_cell(rules, table_row(rules, "no new scripts", NAME))
    await hand.click(hand.find("policy.observe", QAbstractButton))
    await until(window.observe.isVisible, "the bar that tells what is observed")
    await save(hand)
    status, made = await call(policy, "archivist", SCRIPT)
    assert (status, made["verdict"], made["enforced"], made["status"]) == (4, "deny", False, "allowed")
    assert list(policy.parent.rglob("drafts/run.sh"))

    # compared, and enforced again
    await hand.click(window.observe.more_button)
    rows = await hand.see("compare.rows", QListWidget)
    assert "no new scripts" in rows.item(0).text()
    await hand.key("Escape")
    await until(lambda: not rows.isVisible(), "the comparison to close")
    await hand.click(window.observe.action_button)
    await until(window.observe.isHidden, "the rule to be enforced")
    await save(hand)
    second = {**SCRIPT, "path": "drafts/again.sh"}
    assert (await call(policy, "archivist", second))[0] == 4
    assert not list(policy.parent.rglob("drafts/again.sh"))


async def test_rule_gets_times_and_holds_only_then(hand: Hand, policy: Path) -> None:
    window, hour = hand.window, datetime.now(ZoneInfo("Europe/Berlin")).hour
    await hand.go_to("rules")
    await hand.click(hand.find("access.everyone", QAbstractButton))  # the rule is for all agents
    rules = hand.find("policy.rules", RuleList)
    await hand.click_cell(rules, table_row(rules, "no new scripts", NAME))
    times = hand.find("policy.times.part", Segmented)
    await hand.click(times.button("times"))

    # hours that are not now, by the clock of a zone that is completed: the rule holds no more
    later, now = (f"{(hour + start) % 24}-{(hour + start + 3) % 24 or 24}" for start in (2, 23))
    zone = hand.find("policy.times.zone", QLineEdit)
    await hand.click(zone)
    await hand.key("ctrl+a")
    await hand.type("europe/berl")
    completer = zone.completer()
    assert completer is not None
    popup = completer.popup()
    assert popup is not None
    await until(popup.isVisible, "the names of zones")
    await hand.key("Down", "Return")
    await until(lambda: zone.text() == "Europe/Berlin", "the whole name")
    await hand.click(hand.find("policy.times.hours", QLineEdit))
    await hand.key("ctrl+a")
    await hand.type(later)
    said = hand.find("policy.times.now", QLabel)
    await until(lambda: said.text().startswith("Applies from "), "the form to say that it does not hold now")
    apply = hand.find("policy.apply", QAbstractButton)
    await until(apply.isEnabled, "the button that applies")
    await hand.click(apply)
    await until(lambda: window.document.is_dirty, "the edit")
    await save(hand)
    assert (await call(policy, "archivist", SCRIPT))[0] == 0

    # hours around now: it holds
    await hand.click(hand.find("policy.times.hours", QLineEdit))
    await hand.key("ctrl+a")
    await hand.type(now)
    await until(lambda: said.text().startswith("Applies now, until "), "the form to say that it holds now")
    await until(apply.isEnabled, "the button that applies")
    await hand.click(apply)
    await until(lambda: window.document.is_dirty, "the edit")
    await save(hand)
    second = {**SCRIPT, "path": "drafts/again.sh"}
    assert (await call(policy, "archivist", second))[0] == 4
