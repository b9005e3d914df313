"""The row of the settings that lets all that only reads run without a question, in the real window."""

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest

from gatewright.tools.pin import Listing, Pin, accept, write_pin
from gatewright.workspace.api import Verdict
from gatewright_gui.pages.access.rules.reading_row import ASKS, BASIS, NAME, ORIGIN, ReadingDialog, ReadingRow
from gatewright_gui.pages.policy_file.settings_pane import SettingsPage
from gatewright_gui.window.main_window import MainWindow
from tests.gui.session.opened import opened_window, settled, until
from tests.support.git_tools import BRANCH, LOG

CATALOG = '\n[[catalogs]]\nid = "{id}"\ntype = "mcp"\ncommand = "server"\nconfine = "none"\n'
POLICY = (
    """\
gatewright = 1

[agents.clerk]
tools = ["catalog:git", "catalog:hub", "file"]
approvals = { read_only = "ask", git_log = "ask" }

[agents.guest]
tools = ["catalog:hub"]

[tools.stat]
safety_tier = "read_only"
"""
    + CATALOG.format(id="git")
    + CATALOG.format(id="hub")
    + "trusted = true\n"
)


def hub_tool(name: str, **hints: bool) -> dict[str, Any]:
    return {"name": name, "description": "Looks.", "inputSchema": {"type": "object"}, "annotations": hints}


@pytest.fixture
async def window(tmp_path: Path) -> AsyncGenerator[MainWindow]:
    """A server whose tiers were accepted, and a trusted one whose hints count."""
    folder = tmp_path / "desk"
    (folder / "catalogs").mkdir(parents=True)
    (folder / "policy.toml").write_text(POLICY, encoding="utf-8")
    git = accept(Pin(Listing.of([LOG, BRANCH])), None)
    listed = [hub_tool("delete_check", readOnlyHint=True), hub_tool("peek", readOnlyHint=False), hub_tool("stat")]
    hub = accept(Pin(Listing.of(listed)), ["delete_check", "peek", "stat"], trusted=True)
    for name, pin in (("git", git), ("hub", hub)):
        (folder / "catalogs" / f"{name}.json").write_bytes(write_pin(pin))
    async with opened_window(folder / "policy.toml", tmp_path) as made:
        made.show_page("settings")
        await settled(made)
        yield made


def page_of(window: MainWindow) -> SettingsPage:
    page = window.shelf.page("settings")
    assert isinstance(page, SettingsPage)
    return page


def row_of(window: MainWindow) -> ReadingRow:
    return page_of(window).reading


def click(window: MainWindow) -> None:
    box = row_of(window).box
    QTest.mouseClick(box, Qt.MouseButton.LeftButton, pos=QPoint(8, box.height() // 2))


def verdicts(window: MainWindow) -> dict[str, Verdict]:
    """Of three operations that only read."""
    names = (("clerk", "delete_check", ""), ("clerk", "git_log", ""), ("guest", "delete_check", ""))
    snapshot = window.document.workspace.gate.snapshot()
    return {f"{agent} {tool}": snapshot.operation(agent, tool, name).verdict for agent, tool, name in names}


async def test_row_says_for_whom_it_asks_and_on_whose_word_that_rests(window: MainWindow) -> None:
    row = row_of(window)
    assert not row.box.isChecked()
    assert row.asking.text() == "It asks first now for clerk."
    await until(lambda: "hub" in row.words.text())
    assert "1 by hints of trusted servers (hub), 2 by tiers that you accepted, 1 by your settings" in row.words.text()


async def test_box_turns_the_questions_off_for_everybody_and_undo_brings_them_back(window: MainWindow) -> None:
    asks, allow = Verdict.ASK, Verdict.ALLOW
    before = {"clerk delete_check": asks, "clerk git_log": asks, "guest delete_check": allow}
    assert verdicts(window) == before
    click(window)
    assert row_of(window).box.isChecked()
    assert verdicts(window) == before | {"clerk delete_check": allow}  # a key for one tool still asks
    assert not row_of(window).asking.isVisible()
    click(window)
    assert row_of(window).asking.text() == "It asks first now for guest."  # clerk has its own key by now
    assert verdicts(window)["guest delete_check"] is asks
    window.document.undo()
    window.document.undo()
    assert verdicts(window) == before
    assert window.document.workspace.text() == POLICY


async def test_list_shows_each_operation_with_what_is_known_of_it(window: MainWindow) -> None:
    QTest.mouseClick(row_of(window).button, Qt.MouseButton.LeftButton)
    await until(lambda: any(one.isVisible() for one in window.findChildren(ReadingDialog)))
    model = window.findChildren(ReadingDialog)[0].model
    rows = {model.text(row, NAME): [model.text(row, column) for column in (ORIGIN, BASIS, ASKS)] for row in model.rows}
    assert rows["delete_check"] == ["hub", "by hints of trusted servers", ""]
    assert rows["branch.list"] == ["git", "by tiers that you accepted", ""]
    assert rows["git_log"][2] == "git_log asks first by the approvals key git_log"
    assert rows["stat"][1] == "by your settings of tools"
    assert rows["block.info"][:2] == ["built-in", "built in"]
    assert "peek" not in rows
    window.findChildren(ReadingDialog)[0].accept()
    await settled(window)
