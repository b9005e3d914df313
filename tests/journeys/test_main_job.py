"""The main job with a real mouse and a real keyboard: from a box to a call that is refused, and to the saved file."""

from pathlib import Path

import pytest
from PySide6.QtCore import QModelIndex, QPoint, Qt
from PySide6.QtWidgets import QAbstractButton, QComboBox, QLabel, QLineEdit, QListView, QTableView, QTreeView, QWidget

from gatewright_gui.pages.access.files import folder_tree, rule_model
from gatewright_gui.pages.access.tools.tool_tree import SWITCH
from gatewright_gui.pages.trial import TrialPage
from gatewright_gui.qt.widget.button import Segmented
from tests.journeys.hand import Hand, until
from tests.journeys.views import (
    NAME,
    agent_row,
    box_place,
    box_state,
    changed_lines,
    shown_schema,
    shown_text,
    texts,
    tree_row,
    waits,
)

pytestmark = pytest.mark.journey

ON, OFF, MIXED = Qt.CheckState.Checked, Qt.CheckState.Unchecked, Qt.CheckState.PartiallyChecked


async def _click_box(hand: Hand, view: QTreeView, *names: str) -> None:
    await hand.click_cell(view, tree_row(view, *names), box_place(view, *names))


def _enum(hand: Hand) -> list[str]:
    return shown_schema(hand)["op"]["enum"]


def _console(hand: Hand) -> TrialPage:
    page = hand.window.shelf.page("try")
    assert isinstance(page, TrialPage)
    return page


async def test_mouse_takes_a_policy_from_a_box_to_the_saved_file(hand: Hand, policy: Path) -> None:
    before = policy.read_text("utf-8")
    tree = hand.find("agents.tree", QTreeView)

    # an agent, a box, the schema
    await hand.click_cell(*agent_row(hand, "archivist"))
    assert hand.find("agents.title", QLabel).text() == "archivist"
    await hand.click_cell(tree, tree_row(tree, "file"), NAME)
    assert "create" in _enum(hand)
    await _click_box(hand, tree, "file", "create")
    assert box_state(tree, "file", "create") == OFF
    assert box_state(tree, "file") == MIXED
    assert "create" not in shown_text(hand)

    # asks first, off and on by key, undone and redone
    await hand.click_cell(tree, tree_row(tree, "file", "replace"), NAME)
    for key, lit in (("alt+k", "ask"), ("alt+d", None), ("alt+a", "on")):
        await hand.key(key)
        assert tree_row(tree, "file", "replace").data(SWITCH) == lit
    await hand.key("ctrl+z")
    assert tree_row(tree, "file", "replace").data(SWITCH) is None
    await hand.key("ctrl+shift+z")
    assert tree_row(tree, "file", "replace").data(SWITCH) == "on"

    # a level, and the folder in its colours
    await hand.go_to("files")
    folder, rules = hand.find("files.tree", QTreeView), hand.find("files.rules", QTableView)
    await until(lambda: folder.model().rowCount() > 0, "the folder")
    drafts = folder.visualRect(tree_row(folder, "drafts"))
    await hand.click(folder.viewport(), QPoint(drafts.left() - folder.indentation() // 2, drafts.center().y()))
    await until(lambda: folder.model().rowCount(tree_row(folder, "drafts")) > 0, "what is in drafts/")
    assert tree_row(folder, "drafts", "outline.md").data(folder_tree.PATH_LEVEL).permission == "read_write"
    painted = folder.viewport().grab().toImage()
    row = [rules.model().index(r, rule_model.PATTERN).data() for r in range(7)].index("drafts/**")
    await hand.click_cell(rules, rules.model().index(row, rule_model.LEVEL))
    combo = await hand.see("files.level", QComboBox)
    await until(combo.view().isVisible, "the list of levels")
    await hand.click_cell(combo.view(), combo.model().index(combo.findData("read_only"), 0))
    await until(lambda: "read_only" in _level(folder), "the level of the file")
    assert folder.viewport().grab().toImage() != painted

    # the hidden operation is refused
    await hand.go_to("try")
    await hand.click(hand.find("console.mode", Segmented).button("json"))
    await _retype(hand, "console.tool", "file")
    await _retype_call(hand, '{"op": "create", "path": "drafts/new.md"}')
    await hand.click(hand.find("console.decide", QAbstractButton))
    await until(lambda: len(_console(hand).console.records) == 1, "the decision")
    record = _console(hand).console.records[0]
    assert (record.request.agent_id, record.verdict, record.stage) == ("archivist", "deny", "operation")
    assert record.rule is not None
    assert hand.find("console.rule", QAbstractButton).text().endswith(f"line {record.rule.line}")

    # saved: the two lines that were changed, and nothing else
    await hand.key("ctrl+s")
    await hand.see("review.accept", QAbstractButton)
    await hand.key("Return")
    await until(lambda: not hand.window.document.is_dirty, "the file to be saved")
    assert changed_lines(before, policy.read_text("utf-8")) == [
        '-rule_type = { AllowedOperations = ["read", "list", "load", "save", "append", "replace", "create"] }',
        '+rule_type = { AllowedOperations = ["read", "list", "load", "save", "append", "replace"] }',
        '-permission = "read_write"',
        '+permission = "read_only"',
    ]


def _level(folder: QTreeView) -> str:
    return str(tree_row(folder, "drafts", "outline.md").data(folder_tree.PATH_LEVEL).permission)


async def _retype(hand: Hand, name: str, text: str) -> None:
    line = hand.find(name, QComboBox).lineEdit()
    assert line is not None
    await hand.click(line)
    await hand.key("ctrl+a")
    await hand.type(text)


async def _retype_call(hand: Hand, call: str) -> None:
    await hand.click(hand.find("console.json", QWidget))
    await hand.key("ctrl+a")
    await hand.type(call)


async def test_closing_with_unsaved_changes_asks(hand: Hand, policy: Path) -> None:
    before = policy.read_bytes()
    tree = hand.find("agents.tree", QTreeView)
    closed: list[bool] = []
    hand.window.closed.connect(lambda: closed.append(True))
    await hand.click_cell(*agent_row(hand, "operator"))
    await _click_box(hand, tree, "file", "delete")
    assert hand.window.document.is_dirty

    await hand.key("ctrl+q")
    await until(lambda: _question(hand) is not None, "the question")
    await hand.key("Escape")
    await until(lambda: _question(hand) is None, "the question to go")
    assert hand.window.isVisible()
    assert closed == []

    await hand.key("ctrl+q")
    await until(lambda: _question(hand) is not None, "the question")
    await hand.click(hand.find("choice-discard", QAbstractButton))
    await until(lambda: bool(closed), "the window to close")
    assert policy.read_bytes() == before


def _question(hand: Hand) -> QWidget | None:
    return next((b for b in hand.window.findChildren(QWidget, "choice-save") if b.isVisible()), None)


async def _walk_down(hand: Hand, tree: QTreeView, goal: QModelIndex) -> None:
    for _ in range(100):
        if tree.currentIndex() == goal:
            return
        await hand.key("Down")
    assert tree.currentIndex() == goal


async def test_keyboard_alone_does_the_main_job(hand: Hand, policy: Path) -> None:
    before = policy.read_text("utf-8")
    tree, agents = hand.find("agents.tree", QTreeView), hand.find("agents.list", QListView)

    # the agent and the box
    await hand.focus_by("shift+Tab", agents)
    await hand.key("Home", "Down", "Down")
    assert hand.find("agents.title", QLabel).text() == "operator"
    await hand.focus_by("Tab", tree)
    await hand.key("Home")
    await _walk_down(hand, tree, tree_row(tree, "file"))
    await hand.key("Right")
    await _walk_down(hand, tree, tree_row(tree, "file", "delete"))
    assert "delete" in _enum(hand)
    await hand.key("space")
    assert box_state(tree, "file", "delete") == OFF
    assert "delete" not in shown_text(hand)
    await hand.key("ctrl+z")
    assert box_state(tree, "file", "delete") == ON
    await hand.key("ctrl+shift+z")
    assert box_state(tree, "file", "delete") == OFF

    # the filter
    await hand.key("ctrl+f")
    await hand.type("append")
    assert hand.find("agents.search", QLineEdit).text() == "append"
    file = tree_row(tree, "file")
    assert [tree.model().index(row, 0, file).data() for row in range(tree.model().rowCount(file))] == ["append"]
    await hand.key("Escape")

    # a level
    await hand.go_to("files")
    rules = hand.find("files.rules", QTableView)
    await hand.focus_by("Tab", rules)
    await hand.key("Home", "ctrl+Home")
    while rules.currentIndex().column() != rule_model.LEVEL:
        await hand.key("Right")
    while rules.model().index(rules.currentIndex().row(), rule_model.PATTERN).data() != "notes/**":
        await hand.key("Down")
    await hand.key("F2")
    combo = await hand.see("files.level", QComboBox)
    await until(combo.view().isVisible, "the list of levels")
    wanted = combo.findData("read_only")
    while combo.view().currentIndex().row() != wanted:
        await hand.key("Up" if combo.view().currentIndex().row() > wanted else "Down")
    await hand.key("Return")
    await until(lambda: rules.model().index(3, rule_model.LEVEL).data() == "read only", "the level")

    # a call through the form
    await hand.go_to("try")
    await hand.focus_by("Tab", hand.find("console.tool", QComboBox))
    await hand.type("file")
    await hand.focus_by("Tab", hand.find("console.form.op", QComboBox))
    await hand.type("rea")
    await hand.focus_by("Tab", hand.find("console.form.path", QWidget))
    await hand.type("README.md")
    await hand.key("ctrl+Return")
    await until(lambda: len(_console(hand).console.records) == 1, "the decision")
    record = _console(hand).console.records[0]
    assert (record.request.agent_id, record.operation, record.kind) == ("operator", "read", "decide")
    assert record.verdict == "allow"

    await hand.key("ctrl+s")
    await hand.see("review.accept", QAbstractButton)
    await hand.key("Return")
    await until(lambda: not hand.window.document.is_dirty, "the file to be saved")
    changed = changed_lines(before, policy.read_text("utf-8"))
    assert [line for line in changed if line.startswith("-")] == ['-permission = "append"']
    assert '+permission = "read_only"' in changed
    assert any("AllowedOperations" in line and "delete" not in line for line in changed)


async def test_answer_for_a_while_holds_until_it_is_revoked(hand: Hand) -> None:
    await hand.click_cell(*agent_row(hand, "operator"))
    await hand.go_to("try")
    await hand.click(hand.find("console.mode", Segmented).button("json"))
    await _retype(hand, "console.tool", "file")
    delete = '{"op": "delete", "path": "drafts/report.md"}'
    await _retype_call(hand, delete)
    console, bar = _console(hand).console, _console(hand).outcome.approval

    # asked, and allowed for five minutes
    await hand.key("ctrl+shift+Return")
    await until(lambda: bar.question is not None, "the question")
    assert not bar.approve_button.hasFocus()
    await hand.key("F6", "alt+3")
    await until(bar.menu.isVisible, "the list of times")
    await hand.key("Down", "Return")
    await until(lambda: len(console.records) == 1 and not console.is_busy, "the call")
    assert console.records[0].status == "allowed"

    # the second is not asked about
    await hand.click(hand.find("console.below", Segmented).button("session"))
    table = hand.find("console.sessionstate", QTableView)
    await until(
        lambda: "file.delete of drafts/report.md" in texts(table.model()) and not waits(table), "the standing approval"
    )
    await hand.click(hand.find("console.run", QAbstractButton))
    await until(lambda: len(console.records) == 2 and not console.is_busy, "the second call")
    said = {row.name: row.reason for row in console.records[1].stages}
    assert said["approval"].startswith("approved earlier by you, until ")

    # put back, since nobody is asked about deleting what is not there
    await _retype_call(hand, '{"op": "create", "path": "drafts/report.md"}')
    await until(lambda: not waits(table), "the pause after the second call to be over")
    await hand.click(hand.find("console.run", QAbstractButton))
    await until(lambda: len(console.records) == 3 and not console.is_busy, "the file to be put back")
    assert console.records[2].status == "allowed"
    await _retype_call(hand, delete)

    # revoked, and asked again
    await hand.click_cell(table, table.model().index(texts(table.model()).index("file.delete of drafts/report.md"), 0))
    await hand.click(hand.find("console.revoke", QAbstractButton))
    await until(
        lambda: "file.delete of drafts/report.md" not in texts(table.model()) and not waits(table),
        "the approval to go",
    )
    await hand.click(hand.find("console.run", QAbstractButton))
    await until(lambda: bar.question is not None, "the question again")
    await hand.click(bar.refuse_button)
    await until(lambda: len(console.records) == 4 and not console.is_busy, "the last call")
    assert console.records[3].code == "approval-refused"
