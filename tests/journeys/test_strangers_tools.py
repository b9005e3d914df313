"""A stranger's tool with a real keyboard: its operations are declared, and what the model sees changes at once."""

import json
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint
from PySide6.QtWidgets import QLabel, QLineEdit, QListView, QPushButton, QTreeView

from gatewright_gui.pages.access.agents import AGENT_ID
from gatewright_gui.qt.table_model import ROW
from gatewright_gui.qt.widget.code_view import CodeView
from gatewright_gui.qt.widget.message_bar import MessageBar
from tests.journeys.hand import Hand, until
from tests.journeys.views import NAME, tree_row

pytestmark = pytest.mark.journey


def _command(hand: Hand) -> dict[str, object]:
    schema = json.loads(hand.find("preview.code", CodeView).text)
    return schema["inputSchema"]["properties"]["command"]


async def _choose(hand: Hand, agent: str, tool: str) -> QTreeView:
    agents, tree = hand.find("agents.list", QListView), hand.find("agents.tree", QTreeView)
    rows = [agents.model().index(row, 0) for row in range(agents.model().rowCount())]
    await hand.click_cell(agents, next(row for row in rows if row.data(AGENT_ID) == agent))
    await hand.click_cell(tree, tree_row(tree, tool), NAME)
    return tree


async def test_keyboard_declares_operations_of_a_strangers_tool_and_the_model_sees_no_other(hand: Hand) -> None:
    tree = await _choose(hand, "operator", "calendar")
    assert "enum" not in _command(hand)

    # the row of the menu, a suggested name, one of our own
    await hand.click(hand.find("agents.declare", QPushButton))
    names, field = await hand.see("declare.operations", QListView), hand.find("declare.name", QLineEdit)
    choices = hand.find("declare.choices", QListView)
    assert choices.currentIndex().data(ROW).field == "command"
    await hand.focus_by("Tab", names)
    await hand.key("Home", "space", "Down", "space")
    await hand.focus_by("Tab", field)
    await hand.type("close_year")
    await hand.key("Return")
    assert "3 operations instead of one box" in hand.find("declare.effect", QLabel).text()
    await hand.key("Return")

    # the boxes are there to be seen, and the model sees the list
    wanted = ["add_round", "move_round", "close_year"]
    await until(lambda: _command(hand).get("enum") == wanted, "the preview to list what was declared")
    assert tree.isExpanded(tree_row(tree, "calendar"))
    await hand.click_cell(tree, tree_row(tree, "calendar", "move_round"), QPoint(80, 12))
    await hand.key("space")
    await until(lambda: "move_round" not in hand.find("preview.code", CodeView).text, "the operation to be hidden")

    # back as it was
    await hand.key("ctrl+z", "ctrl+z")
    await until(lambda: "enum" not in _command(hand), "the schema to be as it came")


async def test_field_that_does_not_look_like_operations_can_be_chosen_all_the_same(hand: Hand) -> None:
    await _choose(hand, "operator", "calendar")
    await hand.click(hand.find("agents.declare", QPushButton))
    choices = await hand.see("declare.choices", QListView)
    fields = [choices.model().index(row, 0).data(ROW).field for row in range(choices.model().rowCount())]

    assert fields == [None, "command", "day", "person", ""]
    await hand.key("Escape")


async def test_broken_manifest_is_noticed_and_reloading_names_it_first(hand: Hand, policy: Path) -> None:
    outside = hand.find("window.outside", MessageBar)
    assert not outside.isVisible()
    manifest = policy.parent / "station-tools.json"
    good = manifest.read_text("utf-8")

    manifest.write_text(good + "}", "utf-8")

    await until(outside.isVisible, "the change of the manifest to be told")
    await hand.key("ctrl+r")
    await hand.go_to("problems")
    whole = hand.find("problems.whole", QLabel)
    await until(whole.isVisible, "the problems to be shown")
    assert "station-tools.json" in whole.text()

    manifest.write_text(good, "utf-8")
    await until(outside.isVisible, "the mended manifest to be told")
    await hand.key("ctrl+r")
    await until(lambda: not hand.window.alarm.isVisible(), "the alarm to end")
