"""The list of the place Servers: what a row says against the facts, found clients, search, keys."""

import json
from collections import Counter
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QComboBox

from gatewright.policy import policyedit
from gatewright.workspace.api import Catalog, CatalogType, Effect, Verdict
from gatewright_gui.pages.servers.add_dialog import AddDialog
from gatewright_gui.pages.servers.gate_dialogs import ClientDialog, CodingAgentDialog
from gatewright_gui.pages.servers.rows import NAME, TODAY
from gatewright_gui.pages.servers.server_dialogs import TrustDialog
from gatewright_gui.pages.servers.tools import DOES, NAME_WIDTH, TOOL
from gatewright_gui.qt.dialog import QuestionDialog
from gatewright_gui.session.servers import Group, Row, effect_words
from gatewright_gui.window.main_window import MainWindow
from tests.gui.servers.test_page import dialog_of, page_of, press, told
from tests.gui.session.opened import demo, opened_window, settled, until

CURSOR = {"mcpServers": {"left": {"command": "left-server"}, "right": {"url": "https://right.example.org/mcp"}}}


@pytest.fixture
async def window(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[MainWindow]:
    """The demo, for somebody who uses Claude Code and Cursor."""
    home = tmp_path / "home"
    for name, content in ((".claude/settings.json", {}), (".cursor/mcp.json", CURSOR)):
        (home / name).parent.mkdir(parents=True)
        (home / name).write_text(json.dumps(content), "utf-8")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    async with opened_window(demo(tmp_path), tmp_path) as made:
        made.show_page("servers")
        await until(lambda: page_of(made).model.find(("host", "claude-code")) >= 0)
        await until(lambda: row_of(made, "catalog", "station").does not in {"", "…"})
        await settled(made)
        yield made


def row_of(window: MainWindow, kind: str, name: str) -> Row:
    return next(row for row in page_of(window).model.every if row.key == (kind, name))


def cursor(tmp_path: Path) -> Path:
    return tmp_path / "home" / ".cursor" / "mcp.json"


async def test_row_of_a_server_says_by_effect_what_its_tools_do_and_who_may_do_it_without_asking(
    window: MainWindow,
) -> None:
    page, document = page_of(window), window.document
    tools = [facts for facts in document.catalog if facts.origin == "station"]
    effects = Counter(op.effect for facts in tools for op in facts.operations)
    row = row_of(window, "catalog", "station")
    assert row.does == effect_words(effects)
    assert sum(effects.values()) > len(tools)

    may: dict[str, set[Effect]] = {}
    for agent in document.agents:
        for facts in tools:
            right = document.rights(agent.agent_id)[facts.name]
            for op, shown in zip(right.facts.operations, right.operations, strict=True):
                if shown.ticked and shown.verdict is not Verdict.DENY:
                    free = may.setdefault(agent.agent_id, set())
                    free |= {op.effect} if shown.verdict is Verdict.ALLOW else set()
    assert row.agents == tuple(may)
    page.choose("catalog", "station")
    words = told(page)
    assert f"{', '.join(may)} may use it." in words
    for effect, said in ((Effect.DELETE, "can delete"), (Effect.CHANGE, "can change things")):
        free = [name for name, one in may.items() if effect in one]
        assert (f"{', '.join(free)} {said} with it without asking." in words) == bool(free)
    assert words.count("another program") == 1


async def test_effects_of_tools_are_seen_after_a_server_of_which_nothing_is_known(window: MainWindow) -> None:
    page, tools = page_of(window), page_of(window).detail.tools
    new = Catalog("new", CatalogType.MCP, url="https://new.example.com/mcp")
    window.document.push(lambda policy, _: policyedit.add_catalog(policy, new))
    await settled(window)
    page.choose("catalog", "new")
    assert tools.view.isColumnHidden(DOES)
    page.choose("catalog", "station")
    assert "changes" in {tools.model.text(line, DOES) for line in tools.model.rows}
    assert tools.view.columnWidth(TOOL) == NAME_WIDTH
    assert tools.view.columnWidth(DOES) > NAME_WIDTH


async def test_client_that_is_found_by_its_file_is_gated_from_its_row_after_its_difference_was_shown(
    window: MainWindow, tmp_path: Path
) -> None:
    page, path = page_of(window), cursor(tmp_path)
    row = row_of(window, "client", str(path))
    assert (row.group, row.name, row.state, row.does) == (
        Group.CLIENTS,
        "Cursor",
        "not gated",
        "all that its 2 servers can",
    )
    page.choose("client", str(path))
    assert "nobody decides: `left`, `right`." in told(page)
    assert json.loads(path.read_text("utf-8")) == CURSOR
    page.view.setFocus()
    QTest.keyClick(page.view, Qt.Key.Key_Return)
    dialog = await dialog_of(window, ClientDialog)
    combo = dialog.findChild(QComboBox, "client.file")
    assert combo is not None
    assert combo.currentText() == "Cursor, for all that you do"
    press(dialog, "client.accept")
    await until(lambda: row_of(window, "client", str(path)).state == "gated, but 2 servers directly")
    assert "These it still reaches directly: `left`, `right`." in told(page)
    assert row_of(window, "client", str(path)).needs

    path.write_text(json.dumps({"mcpServers": {}}), "utf-8")
    await until(lambda: row_of(window, "client", str(path)).state == "no servers")
    path.unlink()
    await until(lambda: page.model.find(("client", str(path))) < 0)


async def test_servers_of_a_client_are_taken_in_from_its_row_and_start_nothing(
    window: MainWindow, tmp_path: Path
) -> None:
    page = page_of(window)
    page.choose("client", str(cursor(tmp_path)))
    press(page, "servers.take")
    dialog = await dialog_of(window, AddDialog)
    assert [server.server_id for server in dialog.chosen] == ["left", "right"]
    press(dialog, "catalog_add.accept")
    press(await dialog_of(window, TrustDialog), "trust.cancel")
    await settled(window)
    states = {row.name: (row.state, row.does) for row in page.model.every if row.group is Group.SERVERS}
    assert states["left"] == states["right"] == ("not trusted", "unknown: not started yet")
    assert "and so is its risk" in told(page)


async def test_filter_finds_rows_by_all_that_they_say_and_keeps_the_headings_of_what_it_finds(
    window: MainWindow,
) -> None:
    page = page_of(window)
    page.focus_search()
    QTest.keyClicks(page.list.search, "not gated")
    await until(lambda: len(page.model.rows) < len(page.model.every))
    headings = [row.group for row in page.model.rows if row.subject is None]
    assert headings == [Group.AGENTS, Group.CLIENTS]
    assert {row.state for row in page.model.rows if row.subject is not None} == {"not gated"}
    assert page.view.columnSpan(0, NAME) == TODAY + 1
    page.list.search.clear()
    await until(lambda: len(page.model.rows) == len(page.model.every))


async def test_arrows_walk_past_headings_and_keys_do_what_the_buttons_do(window: MainWindow, tmp_path: Path) -> None:
    page = page_of(window)
    page.view.setFocus()
    QTest.keyClick(page.view, Qt.Key.Key_Home, Qt.KeyboardModifier.ControlModifier)
    seen: list[tuple[str, str]] = []
    for _ in page.model.rows:
        row = page.list.current
        assert row is not None
        assert row.subject is not None
        assert page.detail.header.title == row.name
        if row.key in seen:
            break
        seen.append(row.key)
        QTest.keyClick(page.view, Qt.Key.Key_Down)
    assert seen == [row.key for row in page.model.rows if row.subject is not None]

    page.choose("host", "claude-code")
    QTest.keyClick(page.view, Qt.Key.Key_Return)
    (await dialog_of(window, CodingAgentDialog)).reject()
    await settled(window)
    page.choose("catalog", "station")
    QTest.keyClick(page.view, Qt.Key.Key_Delete)
    question = await dialog_of(window, QuestionDialog)
    press(question, "choice-remove")
    await settled(window)
    assert window.document.policy.catalog("station") is None


async def test_calls_of_a_servers_tools_are_counted_with_the_last_one(window: MainWindow) -> None:
    page, document = page_of(window), window.document
    await until(lambda: row_of(window, "catalog", "station").today == 0)
    assert row_of(window, "catalog", "station").last_words == "none"
    page.choose("catalog", "station")
    assert "No call in the last 30 days." in told(page)
    for _ in range(2):
        await document.workspace.call("operator", "run_sql", {"nonsense": True})
    await until(lambda: row_of(window, "catalog", "station").today == 2)
    assert row_of(window, "catalog", "station").last_words.endswith(" ago")
    assert "2 calls today." in told(page)
