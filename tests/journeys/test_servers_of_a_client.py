"""From an empty workspace to a client that gets just what is ticked, with a real mouse and real MCP servers."""

import asyncio
import json
import os
import subprocess
from functools import partial
from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp_types import TextContent
from PySide6.QtWidgets import (
    QApplication,
    QCheckBox,
    QComboBox,
    QLineEdit,
    QListView,
    QPushButton,
    QToolButton,
    QTreeView,
)

from gatewright.workspace import create_workspace
from gatewright_gui.pages.servers import ServersPage
from gatewright_gui.qt.widget.code_view import CodeView
from gatewright_gui.qt.widget.empty_state import EmptyState
from gatewright_gui.session.catalogs import CatalogRow
from tests.journeys.hand import Hand, until
from tests.journeys.views import NAME, agent_row, box_place, shown_text, tree_row
from tests.support.real_servers import from_npm, from_pypi

pytestmark = pytest.mark.journey


@pytest.fixture
def policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Without a server and a right; the client's file is that of a home of its own."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("GATEWRIGHT_KEYS", str(tmp_path / "keys"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home" / ".config"))
    return create_workspace(tmp_path / "desk", "empty")


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """Five servers as people have them in Claude Desktop, one of them with a secret."""
    notes, repository = tmp_path / "notes", tmp_path / "repo"
    (notes / "private").mkdir(parents=True)
    (notes / "milk.txt").write_text("remember the milk", encoding="utf-8")
    (notes / "private" / "key.txt").write_text("the key", encoding="utf-8")
    subprocess.run(["git", "init", "-q", "-b", "trunk", str(repository)], check=True)
    servers = {
        "git": from_pypi("mcp-server-git", "--repository", str(repository)),
        "time": from_pypi("mcp-server-time"),
        "files": from_npm("server-filesystem", str(notes)),
        "memory": from_npm("server-memory"),
        "everything": from_npm("server-everything"),
    }
    entries: dict[str, dict[str, object]] = {
        name: {"command": words[0], "args": words[1:]} for name, words in servers.items()
    }
    entries["memory"]["env"] = {"MEMORY_FILE_PATH": str(tmp_path / "very-secret.json")}
    path = tmp_path / "home" / ".config" / "Claude" / "claude_desktop_config.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"mcpServers": entries}, indent=2), encoding="utf-8")
    return path


def _page(hand: Hand) -> ServersPage:
    page = hand.window.shelf.page("servers")
    assert isinstance(page, ServersPage)
    return page


def _rows(page: ServersPage) -> list[CatalogRow]:
    return [row.subject for row in page.model.rows if isinstance(row.subject, CatalogRow)]


async def _press(hand: Hand, name: str) -> None:
    await hand.click(await hand.see(name, QPushButton))


async def test_servers_of_a_client_are_taken_in_and_the_client_gets_what_is_ticked(
    config: Path, policy: Path, hand: Hand, tmp_path: Path
) -> None:
    # the client's servers come in
    await hand.go_to("servers")
    page = _page(hand)
    await until(lambda: page.list.current is not None, "the client, found by its file")
    assert page.list.current is not None
    assert (page.list.current.name, page.list.current.state) == ("Claude Desktop", "not gated")
    await _press(hand, "servers.take")
    await _press(hand, "catalog_add.accept")
    await until(lambda: len(_rows(page)) == 5, "the five servers")
    assert "very-secret" not in hand.window.document.workspace.text()

    # one dialog shows what each runs, and nothing runs before it is trusted; one accepts all their tools
    words = (await hand.see("trust.definition", CodeView)).text
    assert words.count("digest    ") == 5
    await _press(hand, "trust.accept")
    rows = partial(_rows, page)
    await until(lambda: all(row.waiting for row in rows()), "the tools of the five servers")
    await _press(hand, "servers.next")
    await _press(hand, "accept.accept")
    await until(lambda: not any(row.held_count for row in rows()), "the tools to be accepted")

    # an agent gets two of them, and one operation of a third; the preview shows just that
    assert page.next_button.text() == "Go on: add an agent"
    await _press(hand, "servers.next")
    await hand.key("ctrl+n")
    await hand.type("desk")
    await hand.key("Return")
    await hand.click_cell(*agent_row(hand, "desk"))
    tree = hand.find("agents.tree", QTreeView)
    for name in ("git_status", "echo"):
        await hand.click_cell(tree, tree_row(tree, name), NAME)
        await hand.click_cell(tree, tree_row(tree, name), box_place(tree, name))
        await until(lambda name=name: f'"name": "{name}"' in shown_text(hand), "the preview to show it")
    await hand.click_cell(tree, tree_row(tree, "get-annotated-message"), NAME)
    await hand.click(hand.find("agents.declare", QPushButton))
    await hand.see("declare.choices", QListView)
    await hand.key("Down", "Return")
    await hand.click_cell(tree, tree_row(tree, "get-annotated-message", "success"), NAME)
    await hand.key("space")
    await until(lambda: '"success"' in shown_text(hand), "the preview to show the operation")
    assert '"debug"' not in shown_text(hand)

    # the files server may read the notes, but nothing that is private
    await hand.click_cell(tree, tree_row(tree, "read_text_file"), NAME)
    await hand.key("space")
    await hand.go_to("files")
    await hand.click(hand.find("files.nosource", EmptyState).action_button)
    await hand.see("source.name", QLineEdit)
    await hand.type("notes")
    await hand.click(hand.find("source.folder", QLineEdit))
    await hand.key("ctrl+a")
    await hand.type(str(tmp_path / "notes"))
    await hand.click(await hand.see("source.trust", QCheckBox))
    await _press(hand, "source.accept")
    folder = hand.find("files.tree", QTreeView)
    await until(lambda: folder.model().rowCount() > 0, "the folder")
    await hand.click_cell(folder, tree_row(folder, "private"))
    await hand.key("Menu")
    await hand.choose("hidden")
    assert [rule.pattern for rule in hand.window.document.policy.sources[0].permission_rules] == ["/private/"]
    await hand.go_to("tools")
    await hand.click(hand.find("agents.sources", QToolButton))
    await hand.choose("notes")
    await until(lambda: '"name": "read_text_file"' in shown_text(hand), "the preview to show it")
    # the configuration goes out, after its difference was shown
    await hand.go_to("servers")
    await hand.click(page.client_button)
    file = await hand.see("client.file", QComboBox)
    assert file.currentText() == "Claude Desktop, for all that you do"
    shown = hand.find("client.difference", CodeView)
    assert '"gatewright"' in shown.text
    assert "very-secret" not in shown.text
    await _press(hand, "client.accept")
    await _press(hand, "review.accept")
    await until(lambda: "gatewright" in config.read_text("utf-8"), "the client's file to be written")
    assert not [one for one in QApplication.topLevelWidgets() if one.objectName() == "client" and one.isVisible()]

    # the client sees just that, and a call goes through
    wanted = [tool["name"] for tool in hand.window.document.workspace.view("desk").tools("mcp")]
    names, said, refused = await asyncio.to_thread(lambda: asyncio.run(_as_client(config, tmp_path / "notes")))
    assert names == wanted
    assert names == ["echo", "get-annotated-message", "git_status", "read_text_file"]
    assert said == ["Echo: hello", "remember the milk"]
    assert refused == [
        "Tool execution failed: that path is not available to you; choose another one",
        "Tool execution failed: `messageType` must be one of `success`",
        "Tool execution failed: no tool of that name is available to you; use one of your own tools",
    ]


async def _as_client(config: Path, notes: Path) -> tuple[list[str], list[str], list[str]]:
    """What the official client gets from the entry in a client's file: tools, answers, and refusals."""
    [(_, entry)] = json.loads(config.read_text("utf-8"))["mcpServers"].items()
    env = {**os.environ, **entry["env"]}
    server = StdioServerParameters(command=entry["command"], args=entry["args"], env=env)
    async with Client(stdio_client(server)) as client:
        names = [tool.name for tool in (await client.list_tools()).tools]

        async def call(name: str, **arguments: str) -> str:
            result = await client.call_tool(name, arguments)
            return "".join(block.text for block in result.content if isinstance(block, TextContent))

        said = [await call("echo", message="hello"), await call("read_text_file", path=str(notes / "milk.txt"))]
        refused = [
            await call("read_text_file", path=str(notes / "private" / "key.txt")),
            await call("get-annotated-message", messageType="debug"),
            await call("git_log", repo_path="."),
        ]
        return names, said, refused
