"""A real policy of 50 agents and a manifest of 500 tools, by mouse and keyboard: nothing holds up the window."""

import json
import math
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest
from PySide6.QtCore import QModelIndex, Qt
from PySide6.QtWidgets import (
    QAbstractButton,
    QApplication,
    QComboBox,
    QLabel,
    QLineEdit,
    QListView,
    QPushButton,
    QTreeView,
    QWidget,
)

from gatewright.policyfile import render_policy
from gatewright_gui.pages.access.tools.matrix import Place
from gatewright_gui.pages.access.tools.page import ToolsPage
from gatewright_gui.pages.access.tools.tool_tree import SWITCH
from gatewright_gui.pages.trial import TrialPage
from tests.gui.watchdog.watching import Watching, judge
from tests.journeys.commandline import gatewright
from tests.journeys.hand import Hand, until
from tests.journeys.views import NAME, agent_row, box_place, box_state, rows_below, shown_schema, tree_row
from tests.support.largeworkspace import agent_names, large_policy, tool_names
from tests.support.manyoperations import EIGHT
from tests.support.patience import pace
from tests.support.watchdog import Watchdog

pytestmark = pytest.mark.journey

AGENTS, TOOLS = 50, 500
CATALOG = '\n[[catalogs]]\nid = "plant"\ntype = "host"\nmanifest = "plant-tools.json"\n'
COPIED = 10
TYPING_MS = 40
"""Between two keys, for somebody who types fast."""


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    (tmp_path / "plant-tools.json").write_text(json.dumps({"tools": [_tool(name) for name in tool_names(TOOLS)]}))
    path = tmp_path / "policy.toml"
    path.write_text(render_policy(large_policy(AGENTS, TOOLS)) + CATALOG, "utf-8")
    return path


@pytest.fixture
async def watching() -> AsyncIterator[Watching]:
    """Fails when an interaction computed for too long; how long the window waits here is up to the machine."""
    watched = Watching(Watchdog(), pace, wait_limit_s=math.inf)
    watched.dog.start()
    yield watched
    watched.dog.stop()
    judge(watched)


def _tool(name: str) -> dict[str, object]:
    properties = {
        "op": {"type": "string", "enum": list(EIGHT), "description": f"What to do in {name}."},
        "path": {"type": "string", "description": "What it is done to."},
        "to": {"type": "string", "description": "The new name."},
    }
    schema = {"type": "object", "properties": properties, "required": ["op", "path"], "additionalProperties": False}
    return {"name": name, "description": f"Looks after the things of {name}.", "inputSchema": schema}


def _tool_count(tree: QTreeView) -> int:
    """The tools that are shown, below the rows of their groups."""
    return sum(tree.model().rowCount(group) for group in rows_below(tree, QModelIndex()))


async def test_five_hundred_tools_and_fifty_agents_are_worked_with_and_nothing_holds_up_the_window(
    hand: Hand, policy: Path, watching: Watching
) -> None:
    window, tree = hand.window, hand.find("agents.tree", QTreeView)
    document, during = window.document, watching.during
    await until(lambda: _tool_count(tree) >= TOOLS, "the rows of the first agent")
    every = _tool_count(tree)
    assert len(document.agents) == AGENTS

    # one agent after the other, and what its model sees
    for name in ("agent_0003", "agent_0001", "agent_0007"):
        async with during("switch the agent"):
            await hand.click_cell(*agent_row(hand, name))
            await until(partial(_is_shown, hand, name), "the agent")
    async with during("filter the tree"):
        await hand.key("ctrl+f")
        await hand.type("tool_0042", pause_ms=TYPING_MS)
        await until(lambda: _tool_count(tree) == 1, "the tool")
    async with during("choose a tool"):
        await hand.click_cell(tree, tree_row(tree, "tool_0042"), NAME)
    async with during("turn a tool on"):
        await hand.key("alt+d", "alt+a")
        await until(lambda: _ops(hand) == list(EIGHT), "the schema of the tool")
    async with during("tick an operation"):
        await hand.click_cell(tree, tree_row(tree, "tool_0042", "delete"), box_place(tree, "tool_0042", "delete"))
        await until(lambda: "delete" not in _ops(hand), "the schema without it")
    assert box_state(tree, "tool_0042", "delete") == Qt.CheckState.Unchecked
    async with during("take the filter away"):
        await hand.key("ctrl+f", "ctrl+a", "BackSpace")
        await until(lambda: _tool_count(tree) == every, "all tools")

    # the matrix: one operation asks first for several agents, in one step
    page = window.shelf.page("tools")
    assert isinstance(page, ToolsPage)
    async with during("open the matrix"):
        await hand.key("ctrl+m")
        matrix = page.matrix
        await until(matrix.view.isVisible, "the matrix")
        await until(lambda: matrix.grid.column("agent_0005") is not None, "its columns")
    async with during("filter the matrix"):
        await hand.key("ctrl+f")
        await hand.type("tool_0123", pause_ms=TYPING_MS)
        await until(lambda: matrix.model.tool_count == 1, "the row")
    async with during("open a row of the matrix"):
        await hand.key("Down", "ctrl+Home", "Down", "plus")  # below the row of its group
        await until(lambda: matrix.model.rowCount() == 2 + len(EIGHT), "its operations")
    async with during("choose cells of several agents"):
        await hand.key("Down", "shift+Right", "shift+Right", "shift+Right", "shift+Right")
        await until(lambda: sum(len(row) for row in matrix.cell_choice().values()) == 5, "five cells")
    chosen = tuple(matrix.cell_choice())
    before = document.undo_stack.count()
    async with during("ask first in several cells"):
        await hand.key("alt+k")
        await until(lambda: document.undo_stack.count() == before + 1, "one edit")
    place = Place("tool_0123", EIGHT[0])
    asked = [_verdict(hand, name, place) for name in chosen]
    assert set(asked) == {"ask"}
    async with during("take it back"):
        await hand.key("ctrl+z")
        await until(lambda: document.undo_stack.index() == before, "the undo")
    assert [_verdict(hand, name, place) for name in chosen] != asked
    async with during("do it again"):
        await hand.key("ctrl+shift+z")
        await until(lambda: document.undo_stack.index() == before + 1, "the redo")
    async with during("go back to the tree"):
        await hand.key("ctrl+f", "ctrl+a", "BackSpace", "ctrl+m")
        await until(tree.isVisible, "the tree")

    # the rights of one agent for ten others, after a look at what would change
    await hand.click_cell(*agent_row(hand, "agent_0003"))
    await until(partial(_is_shown, hand, "agent_0003"), "the agent")  # else its rows count to the dialog
    async with during("ask what a copy would change"):
        await hand.click(hand.find("agents.preset", QWidget))
        await hand.choose("agents.copy_rights")
        others = await hand.see("rights.agents", QListView)
        await until(others.hasFocus, "the dialog")
    async with during("choose agents"):
        await hand.key("Home", *("space", "Down") * (COPIED - 1), "space")
    accept = hand.find("rights.accept", QPushButton)
    await until(accept.isEnabled, "what would change")
    async with during("copy the rights"):
        await hand.click(accept)
        await until(lambda: QApplication.activeModalWidget() is None, "the dialog to go")
        await hand.rest()
    given = document.policy.agents["agent_0003"].tools
    same = [name for name in agent_names(AGENTS) if document.policy.agents[name].tools == given]
    assert len(same) == 1 + COPIED

    # anywhere from anywhere, and a call
    async with during("jump to an operation"):
        await hand.key("ctrl+k")
        await hand.type("tool_0123.read", pause_ms=TYPING_MS)
        await hand.key("Return")
        await until(lambda: tree.currentIndex() == tree_row(tree, "tool_0123", "read"), "the operation")
    async with during("choose another agent"):
        await hand.click_cell(*agent_row(hand, chosen[0]))
        await until(partial(_is_shown, hand, chosen[0]), "the agent")
    said = str(tree_row(tree, "tool_0123", "read").data(SWITCH))
    console = window.shelf.page("try")
    assert isinstance(console, TrialPage)
    async with during("open the console"):
        await hand.go_to("try")
        await until(lambda: hand.find("console.tool", QComboBox).currentText() != "", "the tools")
    async with during("decide a call"):
        await hand.click(hand.find("console.mode", QWidget).findChildren(QAbstractButton)[1])
        line = hand.find("console.tool", QComboBox).lineEdit()
        assert isinstance(line, QLineEdit)
        await hand.click(line)
        await hand.key("ctrl+a")
        await hand.type("tool_0123", pause_ms=TYPING_MS)
        await hand.click(hand.find("console.json", QWidget))
        await hand.key("ctrl+a")
        await hand.type('{"op": "read", "path": "a"}', pause_ms=TYPING_MS)
        await hand.key("ctrl+Return")
        await until(lambda: len(console.console.records) == 1, "the decision")
    record = console.console.records[0]
    assert record.request.agent_id == chosen[0]
    assert record.verdict == "ask"
    assert said == "ask"

    # saved, and the command line says the same
    async with during("save"):
        await hand.key("ctrl+s")
        await hand.see("review.accept", QAbstractButton)
        await hand.key("Return")
        await until(lambda: not document.is_dirty, "the file to be saved")
    words = ("--agent", chosen[0], "--tool", "tool_0123", "--args", record.request.text)
    _, decided = await gatewright("decide", str(policy), *words)
    assert (decided["verdict"], decided["stage"], decided["code"]) == (record.verdict, record.stage, record.code)


def _is_shown(hand: Hand, name: str) -> bool:
    return hand.find("agents.title", QLabel).text() == name


def _ops(hand: Hand) -> list[str]:
    try:
        return shown_schema(hand)["op"]["enum"]
    except (ValueError, KeyError):
        return []


def _verdict(hand: Hand, agent_id: str, place: Place) -> str:
    right = hand.window.document.rights(agent_id)[place.tool]
    return str(next(row for row in right.operations if row.operation == place.operation).verdict)
