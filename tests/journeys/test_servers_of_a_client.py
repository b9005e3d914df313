"""From an empty workspace to a client that gets just what is ticked, with a real mouse and real MCP servers."""

import asyncio
import json
import os
import sys
from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from PySide6.QtWidgets import QApplication, QComboBox, QListView, QPushButton, QTableView, QTreeView

from gatewright_gui.pages.catalogs import CatalogsPage
from gatewright_gui.pages.catalogs.catalog_list import ROW
from gatewright_gui.qt.widget.code_view import CodeView
from tests.journeys.hand import Hand, until
from tests.journeys.views import NAME, agent_row, box_place, shown_text, tree_row
from tests.support.checkout import ROOT

pytestmark = pytest.mark.journey
GOOD = str(ROOT / "tests" / "support" / "good_server.py")
POLICY = """\
gatewright = 1

[agents.desk]
tools = []
sources = []
approvals = { privileged = "allow" }
"""


@pytest.fixture
def policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Without a server and a right; the client's file is that of a home of its own."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("GATEWRIGHT_KEYS", str(tmp_path / "keys"))
    monkeypatch.setenv("GOOD_KEY", "very-secret")
    path = tmp_path / "desk" / "policy.toml"
    path.parent.mkdir()
    path.write_text(POLICY, encoding="utf-8")
    return path


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "home" / ".cursor" / "mcp.json"
    path.parent.mkdir(parents=True)
    first = {"command": sys.executable, "args": [GOOD, "stdio"], "env": {"GOOD_KEY": "very-secret"}}
    second = {"command": sys.executable, "args": [GOOD, "stdio", str(tmp_path / "log")]}
    path.write_text(json.dumps({"mcpServers": {"first": first, "second": second}}, indent=2), encoding="utf-8")
    return path


def _page(hand: Hand) -> CatalogsPage:
    page = hand.window.shelf.page("catalogs")
    assert isinstance(page, CatalogsPage)
    return page


async def _press(hand: Hand, name: str) -> None:
    await hand.click(await hand.see(name, QPushButton))


async def test_servers_of_a_client_are_taken_in_and_the_client_gets_what_is_ticked(
    config: Path, policy: Path, hand: Hand
) -> None:
    # the client's servers come in
    await hand.key("ctrl+6")
    page = _page(hand)
    await hand.click(page.empty.action_button)
    await _press(hand, "catalog_add.file")
    await hand.choose("Cursor: mcp.json")
    await _press(hand, "catalog_add.accept")
    await until(lambda: page.model.rowCount() == 2, "the two servers")
    assert "very-secret" not in hand.window.document.workspace.text()

    # each is trusted, its tools are accepted
    view = hand.find("catalogs.list", QListView)
    for row in range(2):
        await hand.click_cell(view, page.model.index(row))
        await _press(hand, "catalogs.trust")
        await _press(hand, "trust.accept")
        await until(lambda: page.detail.model.rowCount() > 0, "the tools of the server")
        assert hand.find("catalogs.tools", QTableView).isVisible()
        await _press(hand, "catalogs.accept")
        await until(lambda at=row: not page.model.index(at).data(ROW).held_count, "the tools to be accepted")

    # two of them are ticked, and the preview shows them
    await hand.key("ctrl+1")
    await hand.click_cell(*agent_row(hand, "desk"))
    tree = hand.find("agents.tree", QTreeView)
    for name in ("first.echo", "second.add"):
        await hand.click_cell(tree, tree_row(tree, name), NAME)
        await hand.click_cell(tree, tree_row(tree, name), box_place(tree, name))
        await until(lambda name=name: name.partition(".")[2] in shown_text(hand), "the preview to show it")
    await hand.key("ctrl+s")

    # the configuration goes out, after its difference was shown
    await hand.key("ctrl+6")
    await hand.click(page.client_button)
    file = await hand.see("client.file", QComboBox)
    assert file.currentText() == "Cursor (yours)"
    shown = hand.find("client.difference", CodeView)
    assert '"gatewright"' in shown.text
    assert "very-secret" not in shown.text
    await _press(hand, "client.write")
    await until(lambda: "gatewright" in config.read_text("utf-8"), "the client's file to be written")
    assert not [one for one in QApplication.topLevelWidgets() if one.objectName() == "client" and one.isVisible()]

    # the client sees just that, and a call goes through
    wanted = [tool["name"] for tool in hand.window.document.workspace.view("desk").tools("mcp")]
    names, said = await asyncio.to_thread(lambda: asyncio.run(_as_client(config)))
    assert names == wanted
    assert len(names) == 2
    assert said == "hello"


async def _as_client(config: Path) -> tuple[list[str], str]:
    """What the official client gets from the entry in a client's file."""
    [(_, entry)] = json.loads(config.read_text("utf-8"))["mcpServers"].items()
    env = {**os.environ, **entry["env"]}
    server = StdioServerParameters(command=entry["command"], args=entry["args"], env=env)
    async with Client(stdio_client(server)) as client:
        names = [tool.name for tool in (await client.list_tools()).tools]
        echo = next(name for name in names if "echo" in name)
        result = await client.call_tool(echo, {"text": "hello"})
        return names, result.content[0].text  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType]
