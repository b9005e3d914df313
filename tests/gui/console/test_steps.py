"""The steps of a composition in the Console, in the real window: shown, walked through, asked about, given up."""

import json
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QPushButton

from gatewright.workspace import Workspace
from gatewright_gui.pages.trial import TrialPage
from gatewright_gui.pages.trial.steps_pane import CALL, REASON, VERDICT
from gatewright_gui.session.call_record import record_text
from gatewright_gui.session.calls import STAGE_NAMES, CallRecord
from gatewright_gui.window.main_window import MainWindow
from tests.gui.session.opened import opened_window, settled, until

POLICY = """\
gatewright = 1

[agents.copier]
tools = ["file", "copy", "twice"]
sources = ["docs"]
approvals = { side_effecting = "allow", "file.append" = "ask" }

[[sources]]
id = "docs"
type = "file"
base_path = "docs"
default_permission = "read_write"

[[compositions]]
name = "copy"
input = { type = "object", properties = { path = { type = "string" }, to = { type = "string" }, more = {} } }
steps = [
  { tool = "file", arguments = { op = "read", path = "$input.path" } },
  { tool = "file", arguments = { op = "append", path = "$input.to", content = "$input.more" }, \
when = { properties = { input = { required = ["more"] } } } },
  { tool = "file", arguments = { op = "create", path = "$input.to", content = "$steps.0.data.content" } },
]

[[compositions]]
name = "twice"
steps = [
  { tool = "copy", arguments = { path = "a.md", to = "b.md" } },
  { tool = "copy", arguments = { path = "a.md", to = "a.md" } },
  { tool = "file", arguments = { op = "list" } },
]
"""


@pytest.fixture
async def window(tmp_path: Path) -> AsyncGenerator[MainWindow]:
    folder = tmp_path / "desk"
    (folder / "docs").mkdir(parents=True)
    (folder / "docs/a.md").write_text("one\n", encoding="utf-8")
    (folder / "policy.toml").write_text(POLICY, encoding="utf-8")
    async with opened_window(folder / "policy.toml", tmp_path) as made:
        yield made


async def page_of(window: MainWindow, tool: str, **arguments: str) -> TrialPage:
    window.show_page("try")
    page = window.shelf.page("try")
    assert isinstance(page, TrialPage)
    await until(lambda: page.request.tool.is_known)
    page.request.choose_tool(tool)
    page.request.mode.set_current("json")
    page.request.raw.set_text(json.dumps(arguments))
    await settled(window)
    return page


def press(page: TrialPage, name: str) -> None:
    button = page.findChild(QPushButton, name)
    assert button is not None
    assert button.isVisible(), name
    assert button.isEnabled(), name
    QTest.mouseClick(button, Qt.MouseButton.LeftButton)


async def record_of(page: TrialPage, count: int) -> CallRecord:
    await until(lambda: len(page.console.records) == count and not page.console.is_busy)
    return page.console.records[-1]


def told(page: TrialPage, column: int) -> list[str]:
    model = page.outcome.steps.model
    return [str(model.index(row, column).data() or "") for row in range(1, model.count())]


def held(page: TrialPage) -> str:
    step = page.outcome.steps.held
    return step.number if step is not None else ""


async def test_each_step_shows_its_own_stages_arguments_and_result_and_what_was_skipped(window: MainWindow) -> None:
    page = await page_of(window, "copy", path="a.md", to="b.md")
    press(page, "console.run")
    record = await record_of(page, 1)
    steps = page.outcome.steps

    assert record.status == "allowed"
    assert steps.isVisible()
    assert told(page, VERDICT) == ["allowed", "skipped", "allowed"]
    assert told(page, REASON)[1] == "its condition does not hold"
    assert page.outcome.result.record is record

    steps.view.setFocus()
    for _ in range(3):
        QTest.keyClick(steps.view, Qt.Key.Key_Down)
    shown = page.outcome.result.record
    assert shown is not None
    assert shown.called == "file.create"
    assert json.loads(shown.request.text) == {"op": "create", "path": "b.md", "content": "one\n"}
    assert [row.name for row in shown.stages] == list(STAGE_NAMES)
    assert str(page.outcome.model.state_at(10)) == "allow"
    assert '"data"' in page.outcome.result.text.text
    arguments = page.outcome.result.parts.button("arguments")
    assert arguments.isVisible()
    QTest.mouseClick(arguments, Qt.MouseButton.LeftButton)
    assert page.outcome.result.arguments.isVisible()
    assert '"content": "one\\n"' in page.outcome.result.arguments.text

    QTest.keyClick(steps.view, Qt.Key.Key_Up)
    assert "is skipped" in page.outcome.verdict.accessibleName()
    for _ in range(2):
        QTest.keyClick(steps.view, Qt.Key.Key_Up)
    assert page.outcome.result.record is record
    assert not arguments.isVisible()


async def test_deciding_tells_what_each_step_would_get_as_far_as_it_is_known(window: MainWindow) -> None:
    page = await page_of(window, "copy", path="a.md", to="a.md", more="x")
    press(page, "console.decide")
    await record_of(page, 1)
    assert told(page, VERDICT) == ["allowed", "asks", "not known yet"]
    assert (window.document.workspace.folder / "docs/a.md").read_text("utf-8") == "one\n"
    await page_of(window, "copy", to="b.md")
    press(page, "console.decide")
    await record_of(page, 2)
    assert told(page, VERDICT) == ["denied", "skipped", "not known yet"]
    await page_of(window, "file", op="list")
    press(page, "console.decide")
    await record_of(page, 3)
    assert not page.outcome.steps.isVisible()


async def test_a_walk_stops_before_each_step_until_somebody_lets_it_go_on(window: MainWindow) -> None:
    page = await page_of(window, "twice")
    QTest.mouseClick(page.calls.step_box, Qt.MouseButton.LeftButton)
    page.run_button.setFocus()
    press(page, "console.run")
    await until(lambda: held(page) == "1")
    assert page.console.is_busy
    assert QApplication.focusWidget() is page.outcome.steps.next_button
    QTest.keyClick(page.outcome.steps.next_button, Qt.Key.Key_Space)
    await until(lambda: held(page) == "1.1")  # a step of the step
    assert page.outcome.result.arguments.isVisible()
    press(page, "console.nextstep")
    await until(lambda: held(page) == "1.3")
    assert told(page, CALL)[1].startswith("file.read")
    press(page, "console.rest")
    record = await record_of(page, 1)
    assert record.status == "failed"  # a.md is there: nothing is created over it
    assert [row.number for row in record.steps] == ["1", "1.1", "1.2", "1.3", "2", "2.1", "2.2", "2.3", "3"]
    assert [row.state for row in record.steps][-1] == "waiting"
    assert told(page, VERDICT)[-1] == "not reached"
    value = json.loads(record_text(record))
    assert [step["state"] for step in value["steps"]][-2:] == ["done", "waiting"]


async def test_a_step_that_asks_is_asked_about_as_any_call(window: MainWindow) -> None:
    page = await page_of(window, "copy", path="a.md", to="a.md", more="two\n")
    press(page, "console.run")
    await until(page.outcome.approval.isVisible)
    assert told(page, VERDICT)[1] == "at work"
    assert str(page.outcome.model.state_at(STAGE_NAMES.index("approval"))) == "ask"
    press(page, "console.refuse")
    record = await record_of(page, 1)
    assert record.status == "failed"
    assert told(page, VERDICT) == ["allowed", "denied", "not reached"]


@pytest.mark.parametrize("at", ["1", "1.1", "1.3"])
async def test_a_call_that_is_cancelled_while_a_step_is_held_makes_it_not(window: MainWindow, at: str) -> None:
    page = await page_of(window, "twice")
    window.document.live.enter()
    await settled(window)
    page.calls.step_box.setChecked(True)
    press(page, "console.run")
    await until(lambda: held(page) != "")
    while held(page) != at:
        now = held(page)
        press(page, "console.nextstep")
        await until(lambda now=now: held(page) not in {"", now})
    QTest.keyClick(page.outcome.steps.view, Qt.Key.Key_Escape)
    record = await record_of(page, 1)
    assert record.is_cancelled
    assert record.stage == "execute"
    assert "held" not in {row.state for row in record.steps}
    folder = window.document.workspace.folder
    assert not (folder / "docs/b.md").exists()
    await settled(window)
    with Workspace.open(folder / "policy.toml") as other:
        ends = [row.kind for row in other.audit.rows() if row.tool == "twice"]
        assert ends[-1] == "ToolAbandoned"
        assert other.audit.verify().unended == ()
