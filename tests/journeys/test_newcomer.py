"""Somebody new: from the welcome to a restricted agent; by keys to a published policy; why a call was denied."""

import time
from functools import partial
from pathlib import Path

import pytest
from PySide6.QtCore import QModelIndex, QPoint, Qt
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QApplication,
    QCheckBox,
    QComboBox,
    QDialog,
    QLabel,
    QLineEdit,
    QListWidget,
    QPushButton,
    QTableView,
    QTreeView,
    QWidget,
)

from gatewright.workspace import Workspace, write_demo
from gatewright_gui.pages.access.files import rule_model
from gatewright_gui.pages.access.tools import limit_list
from gatewright_gui.pages.access.tools.tool_tree import SWITCH
from gatewright_gui.pages.trial import TrialPage
from gatewright_gui.qt.widget.button import Segmented
from gatewright_gui.session.calls import CallRecord
from tests.journeys.commandline import gatewright
from tests.journeys.hand import Hand, until
from tests.journeys.views import (
    NAME,
    box_place,
    box_state,
    shown_schema,
    shown_text,
    table_row,
    texts,
    tree_row,
    waits,
)
from tests.support.clock import ManualClock

pytestmark = pytest.mark.journey

OFF = Qt.CheckState.Unchecked
DEAD = "drafts/letters/**"
PLANTED = f"""[[sources.permission_rules]]
pattern = "{DEAD}"
permission = "none"

"""
"""Below a rule that matches all that it matches: it decides nothing, and whoever reads the policy is told."""


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    path = write_demo(tmp_path / "demo")
    before = '[[sources.permission_rules]]\npattern = "notes/**"'
    text = path.read_text("utf-8")
    assert before in text
    path.write_text(text.replace(before, PLANTED + before), "utf-8")
    return path


async def test_who_starts_at_the_welcome_gets_an_agent_that_reads_and_sees_no_secrets(
    first_hand: Hand, tmp_path: Path
) -> None:
    hand, window, folder = first_hand, first_hand.window, tmp_path / "mine"
    (folder / "notes").mkdir(parents=True)
    for name in (".env", "notes/a.md", "plan.md"):
        (folder / name).write_text("a line\n", "utf-8")

    # a workspace in a folder of one's own, without the secrets in it
    await hand.click(window.shelf.welcome.buttons["new"])
    await hand.click(await hand.see("new.folder", QLineEdit))
    await hand.key("ctrl+a")
    await hand.type(str(folder))
    hide = await hand.see("new.hide", QCheckBox)
    assert hide.isChecked()
    await hand.click(hand.find("new.accept", QPushButton))
    await until(lambda: window.document.is_open and window.steps.isVisible(), "the first steps")
    await hand.rest()

    # the first steps lead: what it may do, what the model sees of it, a call
    steps, tree = window.steps.buttons, hand.find("agents.tree", QTreeView)
    await hand.click(steps["tick"])
    await hand.click_cell(tree, tree_row(tree, "file"), NAME)
    await hand.click_cell(tree, tree_row(tree, "file"), box_place(tree, "file"))
    assert shown_schema(hand)["op"]["enum"] == ["diff", "list", "load", "read", "reload", "status"]
    await hand.key("Right")
    await hand.click_cell(tree, tree_row(tree, "file", "list"), box_place(tree, "file", "list"))
    assert box_state(tree, "file", "list") == OFF
    await hand.click(steps["schema"])
    assert shown_schema(hand)["op"]["enum"] == ["diff", "load", "read", "reload", "status"]
    await hand.click(steps["try"])
    assert window.shelf.current_key == "try"
    paths = {"plan.md": "allow", ".env": "deny"}
    decided = [await _decide(hand, f'{{"op": "read", "path": "{path}"}}') for path in paths]
    decided.append(await _decide(hand, '{"op": "list"}'))
    assert [record.verdict for record in decided] == [*paths.values(), "deny"]
    assert all("done" in button.accessibleName() for button in steps.values())

    # a level of its own for the notes comes before that of the secrets
    await hand.go_to("files")
    tree, rules = hand.find("files.tree", QTreeView), hand.find("files.rules", QTableView)
    await until(lambda: tree.model().rowCount() > 0, "the folder")
    await hand.click_cell(tree, tree_row(tree, "notes"))
    await hand.key("Menu")
    await hand.choose("hidden")
    above = texts(rules.model(), rule_model.PATTERN)[-3]
    assert texts(rules.model(), rule_model.PATTERN)[-2] == "/notes/"  # the default is the last row
    first = rules.visualRect(table_row(rules, above, rule_model.PATTERN))
    dragged = table_row(rules, "/notes/", rule_model.PATTERN)
    await hand.drag(rules, dragged, QPoint(first.center().x(), first.top() + 3))
    assert texts(rules.model(), rule_model.PATTERN)[-3:-1] == ["/notes/", above]

    # saved, and the command line decides the same
    await hand.key("ctrl+s")
    await hand.click(await hand.see("review.accept", QAbstractButton))
    await until(lambda: not window.document.is_dirty, "the file to be saved")
    await _check_published(folder, "assistant", decided)


async def test_keyboard_alone_restricts_an_agent_mends_a_problem_and_publishes(hand: Hand, tmp_path: Path) -> None:
    tree = hand.find("agents.tree", QTreeView)

    # an agent that has nothing yet is made one that reads
    await _palette(hand, "newcomer")
    assert hand.find("agents.title", QLabel).text() == "newcomer"
    await _palette(hand, ">preset")
    accept = await hand.see("rights.accept", QPushButton)
    await hand.key("Down")
    assert hand.find("rights.preset.read_only", QAbstractButton).isChecked()
    await until(accept.isEnabled, "what would change")
    await hand.key("Return")
    await until(lambda: _dialog() is None, "the preset")
    assert [hand.window.document.undo_stack.undoText()] == ["preset read only for newcomer"]

    # that makes a problem: it has no folder to read in. The problem tells its place, the Agents page what to do
    await until(lambda: len(hand.window.document.problems) == 2, "the problem")
    await _palette(hand, ">problems")
    problems = hand.find("problems.list", QTableView)
    assert problems.hasFocus()
    while "newcomer" not in str(problems.model().index(problems.currentIndex().row(), 0).data()):
        await hand.key("Down")
    assert "no source" in hand.find("problems.whole", QLabel).text()
    await hand.go_to("tools")
    await hand.focus_by("Tab", tree)
    await hand.focus_by("shift+Tab", hand.find("agents.sources", QWidget))
    await hand.key("space")
    await until(lambda: QApplication.activePopupWidget() is not None, "the sources")
    await hand.key("Down", "Return")
    await until(lambda: len(hand.window.document.problems) == 1, "the problem to go")

    # one operation less: it goes from the schema and from the usage rules
    await _palette(hand, "file.list")
    assert tree.hasFocus()
    assert tree.currentIndex() == tree_row(tree, "file", "list")
    assert shown_schema(hand)["op"]["enum"] == ["diff", "list", "read", "status"]
    tabs = hand.find("inspector.tabs", Segmented)
    await hand.focus_by("Tab", tabs)
    await hand.key("Right")
    assert tabs.current == "sees"
    parts = hand.find("preview.part", Segmented)
    await hand.focus_by("Tab", parts)
    await hand.key("Right")
    assert parts.current == "rules"
    assert "`list`" in shown_text(hand)
    await hand.focus_by("shift+Tab", tree)
    await hand.key("space")
    assert box_state(tree, "file", "list") == OFF
    await until(lambda: "`list`" not in shown_text(hand), "the usage rules without it")
    await hand.focus_by("Tab", parts)
    await hand.key("Left")
    assert shown_schema(hand)["op"]["enum"] == ["diff", "read", "status"]

    # ask first, and back
    await hand.focus_by("shift+Tab", tree)
    await _walk(hand, tree, tree_row(tree, "file", "read"))
    for key, lit in (("alt+k", "ask"), ("alt+d", None), ("alt+a", "on")):
        await hand.key(key)
        await until(partial(_says, tree, lit), f"`{key}` to light {lit}")

    # a limit on one operation
    await hand.focus_by("Tab", tabs)
    await hand.key("Right")
    assert tabs.current == "limits"
    limits = hand.find("agents.limits.list", QTableView)
    await hand.focus_by("Tab", hand.find("agents.limits.add", QPushButton))
    await hand.key("space", "Down", "Return")
    await until(lambda: _focus_name() == "agents.limits.calls", "the field of the limit")
    await hand.type("1")
    await hand.key("Return")
    assert limits.hasFocus()
    assert texts(limits.model(), limit_list.Column.VALUE) == ["1 call in a session"]

    # a call is tried: once it is taken, the second is refused, and the link goes to the limit
    await hand.go_to("try")
    await hand.focus_by("Tab", hand.find("console.form.op", QComboBox))
    await hand.type("rea")
    await hand.focus_by("Tab", hand.find("console.form.path", QWidget))
    await hand.type("README.md")
    assert (await _called(hand, "ctrl+shift+Return")).status == "allowed"
    refused = await _called(hand, "ctrl+shift+Return")
    assert (refused.verdict, refused.stage) == ("deny", "rules")
    await hand.focus_by("Tab", hand.find("console.rule", QAbstractButton))
    await hand.key("space")
    await until(limits.isVisible, "the limit that refused it")
    await hand.focus_by("Tab", limits)
    await hand.key("F2")
    await hand.type("3")
    await hand.key("Return")
    await hand.go_to("try")
    await hand.focus_by("Tab", hand.find("console.history", QAbstractItemView))
    await hand.key("Home")
    taken = await _called(hand, "Return")
    assert (taken.status, taken.earlier and taken.earlier.verdict) == ("allowed", "deny")

    # the rule that decides nothing is moved above the one that hides it
    await hand.go_to("files")
    rules = hand.find("files.rules", QTableView)
    await hand.focus_by("Tab", rules)
    await hand.key("ctrl+Home")
    await _walk(hand, rules, table_row(rules, DEAD, rule_model.PATTERN))
    await hand.key("alt+Up")
    await until(lambda: hand.find("status.problems", QPushButton).text() == "no problems", "the problem to go")

    # what the window decides, the published files decide too
    await hand.go_to("try")
    await hand.focus_by("shift+Tab", hand.find("console.form.path", QWidget))
    decided = [await _called(hand, "ctrl+Return")]
    assert decided[0].verdict == "allow"
    await hand.key("ctrl+shift+x")
    await _publish_into(hand, tmp_path / "handed over")
    await _check_published(tmp_path / "handed over", "newcomer", decided)


def _says(tree: QTreeView, lit: str | None) -> bool:
    return tree_row(tree, "file", "read").data(SWITCH) == lit


async def _palette(hand: Hand, text: str) -> None:
    """Type into the command palette and take the first row."""
    await hand.key("ctrl+k")
    field = await hand.see("palette.search", QLineEdit)
    await until(field.hasFocus, "the command palette")
    await hand.type(text)
    await hand.key("Return")
    await until(lambda: not field.isVisible(), "the command palette to go")


async def _walk(hand: Hand, view: QAbstractItemView, goal: QModelIndex) -> None:
    """Up or down to a row."""
    key = "Up" if view.visualRect(goal).top() < view.visualRect(view.currentIndex()).top() else "Down"
    for _ in range(60):
        if view.currentIndex().siblingAtColumn(0) == goal.siblingAtColumn(0):
            return
        await hand.key(key)
    raise AssertionError(f"`{goal.data()}` is not reached by {key}")


async def test_who_asks_why_a_call_was_denied_yesterday_finds_it_and_mends_the_policy(hand: Hand, policy: Path) -> None:
    with Workspace.open(policy, clock=ManualClock(time.time() - 86_400)) as yesterday:
        sent = {"op": "append", "path": "README.md", "content": "a line"}
        denied = await yesterday.call("archivist", "file", sent)
    assert denied.decision.verdict == "deny"

    # "denied" is what one looks for
    await hand.key("ctrl+k")
    await hand.type("denied")
    await hand.key("Return")
    calls = await hand.see("activity.rows", QTableView)
    await hand.click(hand.find("activity.part", Segmented).button("deny"))
    await _pick(hand, "activity.when", "Yesterday")
    await until(lambda: calls.model().rowCount() == 1 and calls.model().index(0, 2).data() is not None, "the call")
    await hand.click_cell(calls, calls.model().index(0, 2))
    rule = await hand.see("activity.rule", QPushButton)
    assert rule.text().startswith("Go to line ")
    assert rule.toolTip().startswith("sources.archive.default_permission, line ")
    assert hand.find("activity.detail.reason", QLabel).text() != ""

    # a level for just this file, seen before it is written
    await hand.click(hand.find("activity.mend", QPushButton))
    offered = await hand.see("activity_rule.list", QListWidget)
    row = next(at for at in range(offered.count()) if offered.item(at).text().startswith("Give README.md of archive"))
    await hand.click_cell(offered, offered.model().index(row, 0))
    accept = hand.find("activity_rule.accept", QPushButton)
    await until(accept.isEnabled, "what would change")
    await hand.click(accept)
    said = await hand.see("activity.detail.again", QLabel)
    await until(lambda: "Today it would be " in said.text(), "what it would be today")
    await hand.rest()
    assert hand.window.document.workspace.decide("archivist", "file", sent).verdict != "deny"
    await hand.key("ctrl+z")
    await hand.rest()
    assert hand.window.document.workspace.decide("archivist", "file", sent).verdict == "deny"


async def _pick(hand: Hand, name: str, text: str) -> None:
    """Open a list and click a row of it."""
    combo = hand.find(name, QComboBox)
    await hand.click(combo)
    await until(combo.view().isVisible, "the list")
    await hand.click_cell(combo.view(), combo.model().index(combo.findText(text), 0))
    assert combo.currentText() == text


def _dialog() -> QWidget | None:
    found = QApplication.activeModalWidget()
    return found if isinstance(found, QDialog) else None


def _focus_name() -> str:
    focus = QApplication.focusWidget()
    return focus.objectName() if focus is not None else ""


def _console(hand: Hand) -> TrialPage:
    page = hand.window.shelf.page("try")
    assert isinstance(page, TrialPage)
    return page


async def _decide(hand: Hand, arguments: str) -> CallRecord:
    """Ask the gate about a call of `file` in a session of its own."""
    await hand.go_to("try")
    mode = hand.find("console.mode", Segmented)
    if mode.current != "json":
        await hand.click(hand.find("console.below", Segmented).button("session"))
        await hand.click(hand.find("console.resetsession", QWidget))
        await hand.click(mode.button("json"))
    await hand.click(hand.find("console.json", QWidget))
    await hand.key("ctrl+a")
    await hand.type(arguments)
    return await _called(hand, click="console.decide")


async def _called(hand: Hand, *keys: str, click: str = "") -> CallRecord:
    """Send what is filled in, once no pause after the last call would have it denied: the record of it."""
    console, session = _console(hand).console, hand.find("console.sessionstate", QTableView)
    await until(lambda: not waits(session), "the pause after the last call to be over")
    before = len(console.records)
    if click:
        await hand.click(hand.find(click, QAbstractButton))
    await hand.key(*keys)
    await until(lambda: len(console.records) > before and not console.is_busy, "the call")
    await hand.rest()
    return max(console.records, key=lambda record: record.number)


async def _publish_into(hand: Hand, folder: Path) -> None:
    """Name a folder on the card for a program, and have it written there."""
    field = await hand.see("publish.policy.folder", QLineEdit)
    await hand.focus_by("Tab", field)
    await hand.key("ctrl+a")
    await hand.type(str(folder))
    write = hand.find("publish.policy.accept", QPushButton)
    await until(lambda: write.isEnabled() and field.text() == str(folder), "what would be written")
    await hand.key("Return")
    copy = hand.find("publish.policy.copy", QAbstractButton)
    await until(copy.hasFocus, "the lines to type next")
    await hand.key("Escape")
    await until(lambda: "publish" not in hand.window.tasks.names, "the dialog to go")


async def _check_published(folder: Path, agent_id: str, decided: list[CallRecord]) -> None:
    """The command line finds no difference, and says of each call what the window said."""
    ended, found = await gatewright("selfcheck", str(folder))
    assert (ended, found["differences"]) == (0, [])
    for record in decided:
        words = ("--agent", agent_id, "--tool", record.request.tool, "--args", record.request.text)
        _, said = await gatewright("decide", str(folder), *words)
        assert (said["verdict"], said["stage"], said["code"]) == (record.verdict, record.stage, record.code)
