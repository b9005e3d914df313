"""The calls of Activity in the real window: found, followed, proved, written out, decided again, mended from."""

import asyncio
import json
import sqlite3
import subprocess
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import closing
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QApplication,
    QComboBox,
    QDialog,
    QLineEdit,
    QListWidget,
    QPushButton,
    QStyleOptionViewItem,
    QWidget,
)

from gatewright.base.jsonvalue import JsonValue
from gatewright.gate import AuditLog, key_folder
from gatewright.policy.delegation import Lineage
from gatewright.policy.verdict import Verdict
from gatewright.workspace import Workspace
from gatewright_gui.pages.activity import ActivityPage
from gatewright_gui.pages.activity.rows import CALL, CLIENT, REASON, TOOK, VERDICT
from gatewright_gui.pages.trial import TrialPage
from gatewright_gui.qt.widget.item_view import Delegate
from gatewright_gui.qt.widget.label import ElidedLabel
from gatewright_gui.session.audit import LoggedCall
from gatewright_gui.session.audit_call import outcomes
from gatewright_gui.session.calls import CallRecord
from gatewright_gui.window.main_window import MainWindow
from tests.gui.session.opened import opened_window, settled, until
from tests.support.checkout import ROOT
from tests.support.logged_calls import call_rows, fill_log

POLICY = """\
gatewright = 1

[agents.archivist]
tools = ["file"]
sources = ["docs"]

[[sources]]
id = "docs"
type = "file"
base_path = "docs"
default_permission = "read_only"

[[sources.permission_rules]]
pattern = "/b.md"
permission = "append"
"""
CALLS = 6_700
DENIED = {"op": "append", "path": "a.md", "content": "x"}


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    """A workspace with a folder that may only be read."""
    folder = tmp_path / "desk"
    (folder / "docs").mkdir(parents=True)
    (folder / "docs/a.md").write_text("one\n", encoding="utf-8")
    (folder / "policy.toml").write_text(POLICY, encoding="utf-8")
    return folder / "policy.toml"


SUB_AGENTS = """\

[agents.boss]
tools = ["block"]
sub_agents = ["archivist"]

[[policy.rules]]
name = "hands off"
effect = "deny"
agents = ["boss"]
tools = ["file"]
"""


@pytest.fixture
async def window(policy: Path, tmp_path: Path) -> AsyncGenerator[MainWindow]:
    async with opened_window(policy, tmp_path) as made:
        yield made


def fill(policy: Path, calls: int) -> None:
    """Calls a minute apart, the last one a minute ago."""
    fill_log(policy.parent / ".gatewright", key_folder(), calls, begin_s=time.time() - 60 * (calls + 1))


def log_of(policy: Path) -> AuditLog:
    return AuditLog(policy.parent / ".gatewright", key_folder())


async def make_calls(policy: Path) -> None:
    """One that is allowed and one that is denied, by another workspace object than that of the window."""
    with Workspace.open(policy) as workspace:
        await workspace.call("archivist", "file", {"op": "read", "path": "a.md"})
        await workspace.call("archivist", "file", DENIED)


async def page_of(window: MainWindow, rows: int) -> ActivityPage:
    """The page, with that many rows that are all read."""
    window.show_page("activity")
    page = window.shelf.page("activity")
    assert isinstance(page, ActivityPage)
    await until(lambda: page.model.rowCount() == rows and page.trail.now.is_whole)
    await until(lambda: not rows or page.model.row_at(0) is not None)
    await settled(window)
    return page


async def choose(window: MainWindow, page: ActivityPage, row: int) -> None:
    """A click on a row of the calls."""
    index = page.model.index(row, VERDICT)
    page.view.scrollTo(index)
    await settled(window)
    at = page.view.visualRect(index).center()
    QTest.mouseClick(page.view.viewport(), Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, at)
    await until(lambda: page.detail.detail is not None and page.detail.detail.call == call_at(page, row))
    await settled(window)


def press(where: QWidget, name: str) -> None:
    button = where.findChild(QPushButton, name)
    assert button is not None
    assert button.isEnabled()
    QTest.mouseClick(button, Qt.MouseButton.LeftButton)


def pick(page: ActivityPage, name: str, text: str) -> None:
    combo = page.findChild(QComboBox, name)
    assert combo is not None
    at = combo.findText(text)
    assert at >= 0, [combo.itemText(row) for row in range(combo.count())]
    combo.setCurrentIndex(at)


def list_part(page: ActivityPage, part: str) -> None:
    """A click on a chip."""
    QTest.mouseClick(page.filters.chips.button(part), Qt.MouseButton.LeftButton)


def call_at(page: ActivityPage, row: int) -> LoggedCall | None:
    """The call of a row, once it is read."""
    line = page.model.row_at(row)
    return line.item if line is not None and isinstance(line.item, LoggedCall) else None


def called(page: ActivityPage) -> str:
    """What the chosen row calls."""
    return page.current.called if isinstance(page.current, LoggedCall) else ""


async def dialog_named(name: str) -> QDialog:
    def found() -> list[QDialog]:
        every = (one for one in QApplication.topLevelWidgets() if isinstance(one, QDialog))
        return [one for one in every if one.isVisible() and name in {one.objectName(), type(one).__name__}]

    await until(lambda: bool(found()))
    return found()[0]


async def test_page_without_a_call_says_so_and_the_first_call_appears(window: MainWindow, policy: Path) -> None:
    page = await page_of(window, 0)
    assert page.empty.isVisible()
    assert not page.timeline.isVisible()
    await make_calls(policy)
    await until(lambda: page.model.rowCount() == 3)
    await until(page.timeline.isVisible)
    assert page.view.isVisible()


async def test_a_few_calls_of_one_minute_are_narrow_bars_told_to_the_second(window: MainWindow, policy: Path) -> None:
    page = await page_of(window, 0)
    await make_calls(policy)
    await until(page.timeline.isVisible)
    timeline = page.timeline.timeline
    assert timeline.stretch_s == 1
    assert timeline.stretches >= 60
    at = timeline.counts[0].stretch
    assert page.timeline.rect_of(at).width() < page.timeline.width() / 30
    page.timeline.span_chosen.emit((timeline.begin_s + at, timeline.begin_s + at + 1))
    assert page.filters.span_button.text().count(":") == 4
    assert not page.view.isColumnHidden(TOOK)
    window.resize(1024, 640)
    await until(lambda: all(page.view.isColumnHidden(column) for column in (CLIENT, TOOK)))


async def test_what_the_log_says_nothing_of_has_no_column_and_what_it_says_is_whole(
    window: MainWindow, policy: Path
) -> None:
    page = await page_of(window, 0)
    await make_calls(policy)
    await until(page.timeline.isVisible)
    assert page.view.isColumnHidden(CLIENT)
    assert not page.filters.client.isVisible()
    for size in (1280, 1600):
        window.resize(size, 800)
        for row in range(page.model.rowCount()):
            for column in (VERDICT, TOOK):
                index = page.model.index(row, column)
                assert page.view.sizeHintForIndex(index).width() <= page.view.columnWidth(column), index.data()
    for words in outcomes():
        assert page.view.fontMetrics().horizontalAdvance(words) + 20 <= page.view.columnWidth(VERDICT), words


async def test_reason_of_a_denial_stands_behind_the_verdict_where_it_has_no_column(
    window: MainWindow, policy: Path
) -> None:
    page = await page_of(window, 0)
    await make_calls(policy)
    await until(lambda: page.model.rowCount() == 3 and page.model.row_at(0) is not None)
    denied, allowed = page.model.row_at(0), page.model.row_at(1)
    assert denied is not None
    assert allowed is not None
    await until(lambda: page.view.isColumnHidden(REASON))
    assert page.model.more(denied, VERDICT) == denied.reason != ""
    assert not page.model.more(allowed, VERDICT)
    window.resize(1920, 1000)
    await until(lambda: not page.view.isColumnHidden(REASON))
    assert not page.model.more(denied, VERDICT)


async def test_command_is_told_from_both_ends_and_whole_in_its_tip(window: MainWindow, policy: Path) -> None:
    command = f"cd packages/server && {'npm run test:unit && ' * 12}git status | tail -n 20"
    given: dict[str, JsonValue] = {"command": command, "description": "Runs all tests"}
    page = await page_of(window, 0)
    with closing(log_of(policy)) as log:
        log.append(call_rows(1, "archivist", tool="claude.Bash", operation="", client="Claude Code", arguments=given))
    await until(lambda: page.model.rowCount() == 2 and page.model.row_at(0) is not None)
    index = page.model.index(0, CALL)
    assert index.data() == f"claude.Bash  {command}"
    assert command in index.data(Qt.ItemDataRole.ToolTipRole)
    option = QStyleOptionViewItem()
    delegate = page.view.itemDelegate()
    assert isinstance(delegate, Delegate)
    delegate.initStyleOption(option, index)
    assert option.textElideMode is Qt.TextElideMode.ElideMiddle  # pyright: ignore[reportAttributeAccessIssue]
    await until(lambda: page.view.columnWidth(CALL) > page.view.columnWidth(REASON) * 3 // 2)
    page.view.setCurrentIndex(index)
    await until(lambda: command in page.detail.code.editor.toPlainText())


async def test_page_without_a_call_says_what_it_keeps_and_leads_to_what_is_recorded(window: MainWindow) -> None:
    page = await page_of(window, 0)
    await until(lambda: page.empty.is_known)
    assert "Runs in the copy are not recorded" in page.empty.accessibleDescription()
    QTest.mouseClick(page.empty.action_button, Qt.MouseButton.LeftButton)
    (await dialog_named("ClientDialog")).reject()
    await settled(window)


async def test_header_counts_calls_and_other_rows_apart(window: MainWindow, policy: Path) -> None:
    page = await page_of(window, 0)
    await make_calls(policy)
    await until(lambda: page.model.rowCount() == 3)
    note = page.header.findChildren(ElidedLabel)[0]
    await until(lambda: note.text == "2 calls \u00b7 1 other row")
    list_part(page, "deny")
    await until(lambda: note.text == "1 call")
    with Workspace.open(policy) as workspace:
        await workspace.call("archivist", "file", DENIED)
    await until(lambda: note.text == "2 calls")
    list_part(page, "all")
    await until(lambda: note.text == "3 calls \u00b7 1 other row")


async def test_palette_leads_from_what_one_looks_for_to_the_page(window: MainWindow) -> None:
    for word in ("audit", "denied", "history"):
        window.show_page("tools")
        window.open_palette()
        QTest.keyClicks(window.palette_box.search, word)
        QTest.keyClick(window.palette_box.search, Qt.Key.Key_Return)
        await until(lambda: window.shelf.current_key == "activity")


async def test_log_of_twenty_thousand_rows_is_narrowed_by_every_field_and_shown_whole_again(
    policy: Path, tmp_path: Path
) -> None:
    fill(policy, CALLS)
    async with opened_window(policy, tmp_path) as window:
        page = await page_of(window, CALLS + 1)
        press(page, "activity.verify")
        pick(page, "activity.agent", "archivist")
        await until(lambda: page.model.rowCount() == CALLS // 3)
        list_part(page, "deny")
        await until(lambda: page.model.rowCount() == CALLS // 33)
        window.resize(1700, 800)
        await until(lambda: not page.view.isColumnHidden(CLIENT))
        pick(page, "activity.client", "claude-code")
        await until(lambda: page.model.rowCount() == (CALLS // 33 + 1) // 2)
        pick(page, "activity.tool", "file.append")
        QTest.keyClicks(page.filters.search, "only 165.md")
        await until(lambda: page.model.rowCount() == 1)
        await settled(window)
        await choose(window, page, 0)
        assert page.detail.reason.text() == "`165.md` may be read only"
        QTest.keyClicks(page.filters.search, "nothing")
        await until(page.empty.isVisible)
        press(page, "activity.clear")
        await until(lambda: page.model.rowCount() == CALLS + 1)
        pick(page, "activity.when", "Last 7 days")
        await until(lambda: page.model.rowCount() == CALLS + 1)
        await settled(window)
        assert page.detail.detail is not None
        assert page.log.proof.text == f"proved: {3 * CALLS + 1:,} rows"
        assert page.detail.chain.text == "proved"


async def test_span_is_drawn_on_the_timeline_and_left_again(policy: Path, tmp_path: Path) -> None:
    fill(policy, 600)
    async with opened_window(policy, tmp_path) as window:
        page = await page_of(window, 601)
        bar = page.timeline
        assert sum(one.count for one in bar.timeline.counts) == 600
        begin, end = bar.rect_of(10).center(), bar.rect_of(12).center()
        QTest.mousePress(bar, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, begin)
        QTest.mouseMove(bar, end)
        QTest.mouseRelease(bar, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, end)
        chosen = sum(one.count for one in bar.timeline.counts if 10 <= one.stretch <= 12)
        await until(lambda: page.model.rowCount() == chosen)
        assert chosen == 3 * bar.timeline.stretch_s // 60
        assert page.filters.span_button.isVisible()
        QTest.keyClick(bar, Qt.Key.Key_Right, Qt.KeyboardModifier.ShiftModifier)
        await until(lambda: page.model.rowCount() == chosen + bar.timeline.stretch_s // 60)
        QTest.keyClick(bar, Qt.Key.Key_Escape)
        await until(lambda: page.model.rowCount() == 601)


async def test_rows_of_another_process_come_on_top_without_moving_what_one_reads(policy: Path, tmp_path: Path) -> None:
    fill(policy, 300)
    words = [
        sys.executable,
        "-m",
        "gatewright",
        "call",
        str(policy),
        "--agent",
        "archivist",
        "--tool",
        "file",
        "--args",
    ]
    async with opened_window(policy, tmp_path) as window:
        page = await page_of(window, 301)
        await choose(window, page, 100)
        chosen, bar = page.detail.detail, page.view.verticalScrollBar()
        top = page.model.key_at(page.view.rowAt(0))
        assert bar.value() > 0
        process = await asyncio.to_thread(
            subprocess.run, [*words, json.dumps(DENIED)], capture_output=True, text=True, check=False, cwd=ROOT
        )
        assert process.returncode == 4, process.stderr
        await until(lambda: page.model.rowCount() == 302)
        await settled(window)
        assert page.model.key_at(page.view.rowAt(0)) == top
        assert page.detail.detail == chosen
        assert page.view.currentIndex().row() == 101
        bar.setValue(0)
        await until(lambda: page.model.row_at(0) is not None)
        newest = call_at(page, 0)
        assert newest is not None
        assert (newest.verdict, newest.arguments) == ("deny", "a.md  content=x  source=docs")
        await make_calls(policy)
        await until(lambda: page.model.rowCount() == 304)
        assert page.view.rowAt(0) == 0


async def test_call_of_a_sub_agent_is_tried_under_who_started_it_until_that_is_left_out(
    policy: Path, tmp_path: Path
) -> None:
    policy.write_text(POLICY + SUB_AGENTS, encoding="utf-8")
    with Workspace.open(policy) as workspace:
        lineage = Lineage("boss", "archivist", (("archivist",),), "one")
        await workspace.call("archivist", "file", {"op": "read", "path": "a.md"}, lineage=lineage)
    async with opened_window(policy, tmp_path) as window:
        page = await page_of(window, 2)
        await choose(window, page, 0)
        press(page, "activity.try")
        console = window.shelf.page("try")
        assert isinstance(console, TrialPage)
        request = console.request
        await until(lambda: request.tool_name == "file" and request.form.values_as_far() != {})
        await settled(window)
        assert request.agent_id == "archivist"
        assert request.origin.text == "Sub-agent, started by boss"
        assert (await decided(console)).reason.startswith("the caller `boss` is denied this")
        stale = console.findChild(QWidget, "console.stale")
        assert stale is not None
        assert not stale.isVisible()

        QTest.mouseClick(request.alone_button, Qt.MouseButton.LeftButton)
        await until(stale.isVisible)
        assert not request.origin.isVisible()
        assert (await decided(console)).verdict is Verdict.ALLOW

        console.history.edit_requested.emit(console.console.records[0])
        await until(request.origin.isVisible)
        request.choose_agent("boss")
        assert not request.origin.isVisible()
        assert request.lineage is None


async def decided(console: TrialPage) -> CallRecord:
    """Decide the call that is filled in by a click."""
    count = len(console.console.records)
    QTest.mouseClick(console.decide_button, Qt.MouseButton.LeftButton)
    await until(lambda: len(console.console.records) > count and not console.console.is_busy)
    return console.console.records[-1]


async def test_denied_call_says_by_which_line_and_is_decided_again_filled_in_and_mended(
    window: MainWindow, policy: Path
) -> None:
    await make_calls(policy)
    page = await page_of(window, 3)
    await choose(window, page, 0)
    detail = page.detail.detail
    assert detail is not None
    assert (detail.stage, detail.arguments) == ("permission", {**DENIED, "source": "docs"})
    button = page.detail.rule_button
    assert (button.text(), button.toolTip()) == ("Go to line 11", "sources.docs.default_permission, line 11")
    assert not page.detail.rule_note.isVisible()

    press(page, "activity.again")
    await until(page.detail.again.isVisible)
    assert page.detail.again.text().startswith("Then denied. Today it would still be denied at check levels: ")

    press(page, "activity.try")
    console = window.shelf.page("try")
    assert isinstance(console, TrialPage)
    await until(lambda: console.request.tool_name == "file" and console.request.form.values_as_far() != {})
    await settled(window)
    assert window.shelf.current_key == "try"
    assert console.request.form.values_as_far() == {**DENIED, "source": "docs"}

    window.show_page("activity")
    press(page, "activity.mend")
    dialog = await dialog_named("activity_rule")
    rows = dialog.findChild(QListWidget, "activity_rule.list")
    accept = dialog.findChild(QPushButton, "activity_rule.accept")
    assert rows is not None
    assert accept is not None
    offered = [rows.item(at).text() for at in range(rows.count())]
    assert "Give a.md of docs the level add only, for every agent" in offered
    assert "Let path of file.append be only a.md for archivist" in offered
    assert "Give a.md of docs the level read only, for every agent" not in offered
    rows.setCurrentRow(offered.index("Give a.md of docs the level add only, for every agent"))
    await until(accept.isEnabled)
    assert not window.document.is_dirty
    QTest.mouseClick(accept, Qt.MouseButton.LeftButton)
    await until(lambda: page.detail.again.text().startswith("Then denied. Today it would be allowed"))
    await settled(window)
    assert page.detail.rule_note.isVisible()
    assert window.document.undo_stack.undoText() == "add rule /a.md to docs"
    window.document.undo()
    press(page, "activity.again")
    await until(lambda: "still be denied" in page.detail.again.text())

    window.document.undo_stack.clear()
    QTest.mouseClick(page.detail.rule_button, Qt.MouseButton.LeftButton)
    await until(lambda: window.shelf.current_key == "files")


async def test_arguments_that_the_log_scrubbed_are_said_to_be_missing(window: MainWindow, policy: Path) -> None:
    with Workspace.open(policy) as workspace:
        token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" + "k1L2m3N4o5P6q7R8"
        await workspace.call("archivist", "file", {**DENIED, "content": f"use {token}"})
    page = await page_of(window, 2)
    await choose(window, page, 0)
    assert page.detail.lacks.isVisible()
    press(page, "activity.again")
    await until(page.detail.again.isVisible)
    assert page.detail.again.text().endswith("(1 secret taken out: with these it may differ)")
    assert token not in page.detail.code.text


async def test_tampered_row_is_said_with_its_number_and_its_call_is_not_proved(policy: Path, tmp_path: Path) -> None:
    fill(policy, 20)
    with closing(sqlite3.connect(log_of(policy).path)) as connection:
        connection.execute("UPDATE rows SET body = replace(body, 'deny', 'allow') WHERE seq = 33")
        connection.commit()
    async with opened_window(policy, tmp_path) as window:
        page = await page_of(window, 21)
        press(page, "activity.verify")
        await until(page.log.message.isVisible)
        assert "row 33 was changed, moved or added" in page.log.message.text
        assert page.log.proof.text == "1 problem"
        await choose(window, page, 0)
        assert page.detail.chain.text == "not proved"
        await choose(window, page, 18)
        assert page.detail.chain.text == "proved"


async def test_log_that_cannot_be_read_is_said_with_its_place(policy: Path, tmp_path: Path) -> None:
    fill(policy, 1)
    path = log_of(policy).path
    path.write_bytes(b"no database at all" * 100)
    async with opened_window(policy, tmp_path) as window:
        window.show_page("activity")
        page = window.shelf.page("activity")
        assert isinstance(page, ActivityPage)
        await until(lambda: page.empty.accessibleName() == "The log cannot be read")
        assert str(path) in page.empty.accessibleDescription()


async def test_what_is_shown_is_written_out_as_json_lines(policy: Path, tmp_path: Path) -> None:
    fill(policy, 100)
    target = tmp_path / "out.jsonl"
    async with opened_window(policy, tmp_path) as window:
        page = await page_of(window, 101)
        list_part(page, "deny")
        await until(lambda: page.model.rowCount() == 100 // 11)
        press(page, "activity.export")
        dialog = await dialog_named("QFileDialog")
        name = dialog.findChild(QLineEdit, "fileNameEdit")
        assert name is not None
        name.setText(str(target))
        QTest.keyClick(name, Qt.Key.Key_Return)
        await until(target.is_file)
        await settled(window)
    rows = [json.loads(line) for line in target.read_text("utf-8").splitlines()]
    assert len(rows) == 3 * (100 // 11)
    assert {row["body"]["verdict"] for row in rows if row["kind"] == "PolicyDecision"} == {"deny"}
    assert sorted(tmp_path.glob("*.part")) == []


async def test_another_workspace_has_another_log(window: MainWindow, policy: Path, tmp_path: Path) -> None:
    await make_calls(policy)
    page = await page_of(window, 3)
    list_part(page, "deny")
    await until(lambda: page.model.rowCount() == 1)
    other = tmp_path / "other" / "policy.toml"
    (other.parent / "docs").mkdir(parents=True)
    other.write_text(POLICY, encoding="utf-8")
    await window.open(other)
    await until(lambda: page.model.rowCount() == 0 and page.empty.isVisible())
    assert page.detail.detail is None
    assert page.filters.part == "all"


COMPOSED = """
[agents.copier]
tools = ["file", "copy"]
sources = ["docs"]

[[compositions]]
name = "copy"
input = { type = "object", properties = { path = { type = "string" } } }
steps = [
  { tool = "file", arguments = { op = "read", path = "$input.path" } },
  { tool = "file", arguments = { op = "list" } },
]
"""


async def test_a_composition_leads_to_its_steps_and_each_step_back_by_click_and_by_keys(tmp_path: Path) -> None:
    folder = tmp_path / "desk"
    (folder / "docs").mkdir(parents=True)
    (folder / "docs/a.md").write_text("one\n", encoding="utf-8")
    (folder / "policy.toml").write_text(POLICY + COMPOSED, encoding="utf-8")
    with Workspace.open(folder / "policy.toml") as workspace:
        outcome = await workspace.call("copier", "copy", {"path": "a.md"})
        assert len(outcome.steps) == 2
        await workspace.call("copier", "file", {"op": "list"})
    async with opened_window(folder / "policy.toml", tmp_path) as window:
        page = await page_of(window, 5)
        assert [page.model.index(row, 2).data().strip().split("  ")[0] for row in range(4)] == [
            "file.list", "step 2: file.list", "step 1: file.read", "copy"
        ]  # fmt: skip
        assert page.model.index(3, 2).data().endswith("2 steps")

        await choose(window, page, 3)
        press(page.detail, "activity.steps")
        await until(lambda: page.model.rowCount() == 3)
        await until(lambda: called(page) == "copy")
        assert page.filters.within_button.isVisible()

        page.view.setFocus()
        QTest.keyClick(page.view, Qt.Key.Key_Up)
        await until(lambda: page.detail.detail is not None and page.detail.detail.call.step == 0)
        await settled(window)
        parent = page.detail.parent_button
        assert parent.text() == "step 1 of copy"
        parent.setFocus(Qt.FocusReason.TabFocusReason)
        QTest.keyClick(parent, Qt.Key.Key_Space)
        await until(lambda: called(page) == "copy")
        assert page.view.hasFocus()

        QTest.mouseClick(page.filters.within_button, Qt.MouseButton.LeftButton)
        await until(lambda: page.model.rowCount() == 5)
        pick(page, "activity.tool", "file.read")
        await until(lambda: page.model.rowCount() == 1)
        await choose(window, page, 0)
        press(page.detail, "activity.parent")  # which the filter does not show: it comes with its steps
        await until(lambda: page.model.rowCount() == 3)
        await until(lambda: called(page) == "copy")
        await settled(window)
