"""The place Servers with real MCP servers: added, trusted, started, accepted, taken to a client."""

import json
import sys
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import pytest
from PySide6.QtCore import QMimeData, QPoint, Qt, QUrl
from PySide6.QtGui import QDropEvent, QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QComboBox, QDialog, QPlainTextEdit, QPushButton, QWidget

from gatewright.policy import policyedit
from gatewright.policy.document import Catalog, CatalogType, Confine, PlaceUse
from gatewright.policy.edit import CatalogChange, Edit
from gatewright_gui.pages.servers import ServersPage
from gatewright_gui.pages.servers.add_dialog import AddDialog
from gatewright_gui.pages.servers.gate_dialogs import ClientDialog
from gatewright_gui.pages.servers.server_dialogs import TrustDialog, trust_words
from gatewright_gui.pages.servers.tools import DOES, STATE, TIER, TOOL, WHY, AcceptDialog
from gatewright_gui.pages.trial import TrialPage
from gatewright_gui.qt.dialog import QuestionDialog
from gatewright_gui.session.verbs import catalogs as verbs
from gatewright_gui.window.main_window import MainWindow
from gatewright_gui.window.pages import all_rows
from gatewright_gui.window.save_review import SaveReview
from tests.gui.session.opened import Said, opened_window, settled, until
from tests.support.checkout import ROOT

GOOD = str(ROOT / "tests" / "support" / "good_server.py")
D = TypeVar("D", bound=QDialog)
POLICY = 'gatewright = 1\n\n[agents.desk]\ntools = ["file"]\nsources = []\n\n[agents.free]\nsources = []\n'


@pytest.fixture
async def window(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[MainWindow]:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    policy = tmp_path / "desk" / "policy.toml"
    policy.parent.mkdir()
    policy.write_text(POLICY, encoding="utf-8")
    async with opened_window(policy, tmp_path) as made:
        made.show_page("servers")
        await settled(made)
        yield made


def page_of(window: MainWindow) -> ServersPage:
    page = window.shelf.page("servers")
    assert isinstance(page, ServersPage)
    return page


def config(folder: Path) -> Path:
    path = folder / "claude_desktop_config.json"
    servers: dict[str, dict[str, object]] = {
        "good": {"command": sys.executable, "args": [GOOD, "stdio"], "env": {"GOOD_KEY": "very-secret"}},
        "odd": {"args": []},
    }
    path.write_text(json.dumps({"mcpServers": servers}, indent=2), encoding="utf-8")
    return path


async def dialog_of(window: MainWindow, kind: type[D]) -> D:
    await until(lambda: any(isinstance(one, kind) and one.isVisible() for one in QApplication.topLevelWidgets()))
    return next(one for one in QApplication.topLevelWidgets() if isinstance(one, kind) and one.isVisible())


def press(where: QWidget, name: str) -> None:
    button = where.findChild(QPushButton, name)
    assert button is not None
    assert button.isEnabled()
    QTest.mouseClick(button, Qt.MouseButton.LeftButton)


def told(page: ServersPage) -> str:
    """All facts of the chosen row."""
    return "\n".join(fact.text for fact in page.detail.facts.rows)


def can_press(page: ServersPage, name: str) -> bool:
    button = page.findChild(QPushButton, name)
    return button is not None and button.isVisible() and button.isEnabled()


async def add_good(window: MainWindow, path: Path) -> ServersPage:
    page = page_of(window)
    press(page, "servers.add")
    dialog = await dialog_of(window, AddDialog)
    dialog.read_file(path)
    assert [server.server_id for server in dialog.chosen] == ["good"]
    press(dialog, "catalog_add.accept")
    press(await dialog_of(window, TrustDialog), "trust.cancel")
    await settled(window)
    return page


async def trust(window: MainWindow, page: ServersPage) -> str:
    press(page, "servers.trust")
    dialog = await dialog_of(window, TrustDialog)
    words = dialog.code.text
    press(dialog, "trust.accept")
    await settled(window)
    return words


async def test_empty_page_says_how_to_begin_and_a_command_can_be_typed(window: MainWindow) -> None:
    page = page_of(window)
    assert page.empty.isVisible()
    QTest.mouseClick(page.empty.action_button, Qt.MouseButton.LeftButton)
    dialog = await dialog_of(window, AddDialog)
    text = dialog.findChild(QPlainTextEdit, "catalog_add.text")
    assert text is not None
    QTest.keyClicks(text, "npx 'open")
    assert dialog.fault.text() == "it is no command: no closing quotation"
    assert not dialog.accept_button.isEnabled()
    text.setPlainText("https://tickets.example.com/mcp")
    press(dialog, "catalog_add.accept")
    press(await dialog_of(window, TrustDialog), "trust.cancel")
    await settled(window)
    assert [catalog.url for catalog in window.document.policy.catalogs] == ["https://tickets.example.com/mcp"]
    row = page.current
    assert row is not None
    assert row.status[0] == "not trusted"
    window.document.undo()
    assert page.empty.isVisible()


async def test_server_of_a_client_is_trusted_started_and_accepted_and_then_agents_can_have_its_tools(
    window: MainWindow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOOD_KEY", "very-secret")
    page = await add_good(window, config(tmp_path))
    assert not any(tool.origin == "good" for tool in window.document.catalog)

    words = await trust(window, page)
    assert window.impact.text == "good may be started now; agents use what Access switches on"
    assert not window.impact.undo_button.isVisible()
    assert f"command   {sys.executable}" in words
    assert "variables GOOD_KEY" in words
    assert "very-secret" not in words
    assert window.document.workspace.server_digest("good") in words
    row = page.current
    assert row is not None
    assert (row.status[0], len(row.waiting)) == ("running", len(page.detail.tools.model.rows))
    assert page.header.accessibleName()

    index = page.detail.tools.model.index(0, 0)
    assert page.detail.tools.model.setData(index, Qt.CheckState.Unchecked, Qt.ItemDataRole.CheckStateRole)
    left_out = page.detail.tools.model.rows[0].name
    press(page, "servers.accept")
    await settled(window)
    row = page.current
    assert row is not None
    assert [one.name for one in row.waiting] == [left_out]
    facts = {tool.name: tool for tool in window.document.catalog if tool.origin == "good"}
    assert not facts["add"].held
    assert facts[left_out].held

    press(page, "servers.stop")
    await settled(window)
    await until(lambda: page.current is not None and page.current.status[0] == "ready")


async def test_all_servers_of_a_client_are_trusted_by_one_dialog_and_their_tools_accepted_by_another(
    window: MainWindow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GOOD_KEY", raising=False)
    (tmp_path / "memory").mkdir()  # a name for what a server writes
    log, path = tmp_path / "memory" / "log", tmp_path / "mcp.json"
    servers = {
        name: {
            "command": sys.executable,
            "args": [GOOD, "stdio", str(log.with_name(file)), str(log.parent)],
            "env": {"GOOD_KEY": f"secret-{name}"},
        }
        for name, file in (("first", "log"), ("second", "log2"))
    }
    broken = {"command": "no-such-server-anywhere", "args": ["with two words"]}
    path.write_text(json.dumps({"mcpServers": {**servers, "broken": broken}}), encoding="utf-8")
    page = page_of(window)
    press(page, "servers.add")
    dialog = await dialog_of(window, AddDialog)
    dialog.read_file(path)
    press(dialog, "catalog_add.accept")
    trusting = await dialog_of(window, TrustDialog)
    words = trusting.code.text
    assert words.count(f"command   {sys.executable}") == 2
    assert "argument  with two words" in words
    assert words.count("variables GOOD_KEY") == 2
    assert all(window.document.workspace.server_digest(name) in words for name in (*servers, "broken"))
    assert "secret-" not in words
    assert not log.exists()
    press(trusting, "trust.cancel")
    await settled(window)
    assert not log.exists()

    press(page, "servers.next")
    press(await dialog_of(window, TrustDialog), "trust.accept")
    await settled(window)
    assert log.read_text(encoding="utf-8").startswith("GOOD_KEY secret-first")
    assert [row.status[0] for row in page.catalogs.rows] == ["running", "running", "failed"]

    button = page.findChild(QPushButton, "servers.next")
    assert button is not None
    assert button.text() == "Accept 18 tools..."
    press(page, "servers.next")
    accepting = await dialog_of(window, AcceptDialog)
    index = accepting.model.index(0, 0)
    assert [accepting.model.index(0, column).data() for column in range(4)] == ["echo", "reads", "first", "read-only"]
    assert accepting.model.setData(index, Qt.CheckState.Unchecked, Qt.ItemDataRole.CheckStateRole)
    press(accepting, "accept.accept")
    await settled(window)
    held = [tool.name for tool in window.document.catalog if tool.held]
    assert held == ["first.echo"]
    assert button.isHidden()


async def test_tool_of_a_server_is_tried_in_the_console_as_an_agent_that_has_it(
    window: MainWindow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOOD_KEY", "very-secret")
    page = await add_good(window, config(tmp_path))
    await trust(window, page)
    press(page, "servers.accept")
    await settled(window)
    window.selection.choose_agent("desk")
    names = [line.name for line in page.detail.tools.model.rows]
    page.detail.tools.view.setCurrentIndex(page.detail.tools.model.index(names.index("add"), 0))
    assert page.detail.tools.header.title == "add"
    press(page, "servers.try")
    await settled(window)
    console = window.shelf.page("try")
    assert isinstance(console, TrialPage)
    assert window.shelf.current_key == "try"
    assert (console.request.agent_id, console.request.tool_name) == ("free", "add")
    console.request.form.set_values({"a": 1, "b": 2})
    console.decide()
    await until(lambda: console.outcome.shown is not None)
    assert console.outcome.shown is not None
    assert console.outcome.shown.verdict == "ask"


async def test_tools_of_a_manifest_are_listed_and_tried_too(window: MainWindow) -> None:
    folder = window.document.workspace.folder
    tools = [{"name": "post", "description": "Posts.", "inputSchema": {"type": "object"}}]
    (folder / "mail.json").write_text(json.dumps({"tools": tools}), encoding="utf-8")
    host = '\n[[catalogs]]\nid = "mail"\ntype = "host"\nmanifest = "mail.json"\nprefix = "mail"\n'
    (folder / "policy.toml").write_text(POLICY + host, encoding="utf-8")
    assert await window.document.reload()
    await settled(window)
    page = page_of(window)
    assert [(line.name, line.state) for line in page.detail.tools.model.rows] == [("post", "")]
    assert json.loads(page.detail.tools.code.text) == tools[0]
    view = page.detail.tools.view
    assert [view.isColumnHidden(column) for column in (TOOL, DOES, STATE, TIER, WHY)] == [
        False,
        False,
        True,
        True,
        True,
    ]
    press(page, "servers.try")
    await settled(window)
    console = window.shelf.page("try")
    assert isinstance(console, TrialPage)
    assert console.request.tool_name == "mail.post"


DRIFTING = """
import pathlib, sys
from mcp.server.mcpserver import MCPServer
server = MCPServer("drifting")
words = pathlib.Path(sys.argv[1]).read_text()

def note(text: str) -> str:
    return text

server.add_tool(note, description=words)
if "more" in words:
    server.add_tool(lambda: "x", name="extra", description="One more.")
server.run("stdio")
"""


async def test_changed_tool_is_held_with_its_difference_until_it_is_accepted(
    window: MainWindow, tmp_path: Path
) -> None:
    program, words = tmp_path / "drifting.py", tmp_path / "words"
    program.write_text(DRIFTING, encoding="utf-8")
    words.write_text("Keeps a note.", encoding="utf-8")
    path = tmp_path / "mcp.json"
    entry = {"command": sys.executable, "args": [str(program), str(words)]}
    path.write_text(json.dumps({"mcpServers": {"good": entry}}), encoding="utf-8")
    page = await add_good(window, path)
    await trust(window, page)
    press(page, "servers.accept")
    await settled(window)
    assert {tool.name: tool.held for tool in window.document.catalog if tool.origin == "good"} == {"note": ""}

    words.write_text("Keeps a note, and more.", encoding="utf-8")
    press(page, "servers.stop")
    await until(lambda: page.current is not None and page.current.status[0] == "ready")
    await settled(window)
    press(page, "servers.start")
    await settled(window)
    assert [(line.name, line.state) for line in page.detail.tools.model.rows] == [
        ("extra", "new, to accept"),
        ("note", "changed, to accept"),
    ]
    page.detail.tools.view.setCurrentIndex(page.detail.tools.model.index(1, 0))
    assert "-description: Keeps a note." in page.detail.tools.code.text
    assert "+description: Keeps a note, and more." in page.detail.tools.code.text
    held = {tool.name: bool(tool.held) for tool in window.document.catalog if tool.origin == "good"}
    assert held == {"note": True, "extra": True}

    tier = page.detail.tools.tier
    tier.setCurrentIndex(tier.findText("all read-only"))
    press(page, "servers.accept")
    await settled(window)
    assert [(line.state, line.tier) for line in page.detail.tools.model.rows] == [("accepted", "read-only")] * 2


async def test_question_says_what_starts_what_it_reaches_and_what_follows_before_the_definition(
    window: MainWindow, tmp_path: Path
) -> None:
    page = await add_good(window, config(tmp_path))
    assert told(page).count("trust") == 1
    assert "which folders" not in told(page)
    QTest.mouseClick(page.detail.no_tools.action_button, Qt.MouseButton.LeftButton)
    dialog = await dialog_of(window, TrustDialog)
    assert dialog.accessibleDescription().splitlines()[:5] == [
        "Starts: The program below, on this computer, now and with later calls.",
        "Reaches: Of your files only the places below.",
        "If yes: You see its tools and accept them; no agent has one before.",
        "If not now: It stays off, and no agent can use it. You can come back to this.",
        "Asked again: When its command, folder, variables, address or module changes.",
    ]
    press(dialog, "trust.cancel")
    await settled(window)


def test_question_about_servers_of_several_kinds_says_of_each_what_it_reaches() -> None:
    free = Catalog("free", CatalogType.MCP, "catalogs/free.json", command="free", confine=Confine.NONE)
    away = Catalog("away", CatalogType.MCP, "catalogs/away.json", url="https://away.example.com/mcp")
    said = dict(trust_words([free, away, replace(away, catalog_id="hub")]))
    assert said["Reaches"].splitlines() == [
        "free: All that you can: your files, keys and networks. No policy limits what it does by itself.",
        "away, hub: What agents write into their calls goes to that address.",
    ]
    assert "If yes" not in dict(trust_words([free], is_trusted=True))
    assert "Installs" not in said


def test_question_says_which_package_is_installed_and_what_that_reaches() -> None:
    npm = Catalog("files", CatalogType.MCP, "", command="npx", args=("-y", "files@1.2.3"), places={})
    free = replace(npm, catalog_id="git", command="uvx", args=("mcp-server-git",), confine=Confine.NONE)
    odd = replace(npm, catalog_id="odd", args=("--registry", "https://example.com", "files"))
    said = dict(trust_words([npm, free, replace(npm, catalog_id="own", command="files", args=())]))
    assert said["Installs"].splitlines() == [
        "files: files@1.2.3, once, before it runs; the installation reaches only the registries of packages.",
        "git: mcp-server-git, once, before it runs; nothing limits what the installation does.",
    ]
    assert dict(trust_words([odd]))["Installs"].startswith("It cannot start as it is written: ")


async def test_failed_server_says_why_and_what_to_do(window: MainWindow, tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    path.write_text('{"mcpServers": {"good": {"command": "no-such-server-anywhere"}}}', encoding="utf-8")
    page = await add_good(window, path)
    await trust(window, page)
    await until(lambda: page.current is not None and page.current.status[0] == "failed")
    failed = next(fact for fact in page.detail.facts.rows if fact.role == "deny")
    assert "no-such-server-anywhere" in failed.text
    assert "and so is its risk" in told(page)
    button = page.findChild(QPushButton, "servers.start")
    assert button is not None
    assert button.text() == "Try again"
    press(page, "servers.start")
    await settled(window)
    await until(lambda: page.current is not None and page.current.status[0] == "failed")
    assert failed in page.detail.facts.rows


async def test_what_was_changed_while_the_question_was_open_is_not_what_was_agreed_to(
    window: MainWindow, tmp_path: Path
) -> None:
    page, document = await add_good(window, config(tmp_path)), window.document
    for name, accept in (("servers.trust", "trust.accept"), ("servers.remove", "choice-remove")):
        press(page, name)
        dialog = await dialog_of(window, TrustDialog if accept.startswith("trust") else QuestionDialog)
        (before,) = document.policy.catalogs
        after = replace(before, args=(*before.args, "--other"))
        assert document.push(lambda _p, _t, two=(before, after): Edit("other", (CatalogChange(*two, 0),)))
        press(dialog, accept)
        await settled(window)
        assert "changed meanwhile" in window.message.text
        window.message.dismiss()
        assert document.policy.catalogs == (after,)
        assert not document.workspace.trusts_server("good")


async def test_file_that_is_dropped_is_read(window: MainWindow, tmp_path: Path) -> None:
    page = page_of(window)
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(config(tmp_path)))])
    event = QDropEvent(
        QPoint(9, 9), Qt.DropAction.CopyAction, data, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    )
    page.dropEvent(event)
    dialog = await dialog_of(window, AddDialog)
    assert dialog.list.count() == 2
    assert "cannot be added" in dialog.list.item(1).text()
    dialog.reject()
    await settled(window)


async def test_policy_without_a_server_goes_into_a_client(window: MainWindow, tmp_path: Path) -> None:
    page, path = page_of(window), tmp_path / "home" / ".cursor" / "mcp.json"
    path.parent.mkdir(parents=True)
    path.write_text("{}", encoding="utf-8")
    page.empty.other_button.click()
    (await dialog_of(window, ClientDialog)).reject()
    await settled(window)
    window.show_page("files")
    window.actions_by_key["connect"].trigger()
    press(await dialog_of(window, ClientDialog), "client.accept")
    await settled(window)
    assert window.shelf.current_key == "servers"
    assert json.loads(path.read_text(encoding="utf-8"))["mcpServers"].keys() == {"gatewright"}


async def test_configuration_goes_back_to_the_client_after_its_difference_was_shown(
    window: MainWindow, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    path = home / ".cursor" / "mcp.json"
    path.parent.mkdir(parents=True)
    config(tmp_path).rename(path)
    before = path.read_text(encoding="utf-8")
    page, said = await add_good(window, path), Said(window.document)
    press(page, "servers.client")
    dialog = await dialog_of(window, ClientDialog)
    combo = dialog.findChild(QComboBox, "client.file")
    assert combo is not None
    assert combo.currentText() == "Cursor, for all that you do"
    assert '"GOOD_KEY": "..."' in dialog.difference.text
    assert "very-secret" not in dialog.difference.text
    assert "odd" in dialog.note.text()
    press(dialog, "client.copy")
    assert json.loads(QGuiApplication.clipboard().text())["gatewright"]["args"][-1] == "desk"
    assert dialog.wait.placeholderText() == "45s"
    dialog.wait.setText("soon")
    assert "the wait for an answer, soon:" in dialog.note.text()
    assert not dialog.accept_button.isEnabled()
    dialog.wait.setText("10m")
    assert '"--wait"' in dialog.difference.text
    press(dialog, "client.copy")
    assert json.loads(QGuiApplication.clipboard().text())["gatewright"]["args"][-2:] == ["--wait", "10m"]
    assert path.read_text(encoding="utf-8") == before
    assert "saved first" in dialog.note.text()
    press(dialog, "client.accept")
    review = await dialog_of(window, SaveReview)
    assert json.loads(path.read_text(encoding="utf-8"))["mcpServers"].keys() == {"good", "odd"}
    press(review, "review.accept")
    await settled(window)
    assert not window.document.is_dirty
    entries = json.loads(path.read_text(encoding="utf-8"))["mcpServers"]
    assert entries.keys() == {"odd", "gatewright"}
    assert entries["gatewright"]["env"] == {"GOOD_KEY": "very-secret"}
    assert (path.parent / "mcp.json.before-gatewright").read_text(encoding="utf-8") == before
    assert "mcp.json.before-gatewright" in said.last


async def test_catalog_is_removed_after_a_question_and_undo_brings_it_back(window: MainWindow, tmp_path: Path) -> None:
    page = await add_good(window, config(tmp_path))
    press(page, "servers.remove")
    press(await dialog_of(window, QDialog), "choice-remove")
    await settled(window)
    assert window.document.policy.catalogs == ()
    window.document.undo()
    assert [catalog.catalog_id for catalog in window.document.policy.catalogs] == ["good"]


async def test_servers_that_an_edit_ends_are_told_in_a_bar_at_once_whatever_page_is_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = tmp_path / "desk" / "policy.toml"
    (policy.parent / "notes").mkdir(parents=True)
    servers = "".join(
        f'\n[[catalogs]]\nid = "{name}"\ntype = "mcp"\ncommand = {json.dumps(sys.executable)}\n'
        f'args = {json.dumps([GOOD, "stdio"])}\nplaces = {{ "./notes" = "write" }}\n'
        for name in ("one", "two")
    )
    policy.write_text(POLICY + servers, encoding="utf-8")
    async with opened_window(policy, tmp_path) as window:
        document, pages = window.document, [row.key for row in all_rows() if row.key != "servers"]
        for name in ("one", "two"):
            document.workspace.trust_server(name)
        uses, changed = (PlaceUse.READ, PlaceUse.WRITE), 0
        for page in pages:  # none is Servers, which was never made
            await document.workspace.servers.start("one")
            window.show_page(page)
            await settled(window)
            use, changed = uses[changed % 2], changed + 1
            document.push(lambda policy, _, use=use: policyedit.set_places(policy, "one", {"./notes": use}))
            assert window.message.isVisible(), page
            assert "server of one was ended" in window.message.text
            assert "starts anew" in window.message.text
            window.message.dismiss()
        document.undo()
        assert not window.message.isVisible()  # it does not run
        document.redo()

        for name in ("one", "two"):
            await document.workspace.servers.start(name)
        policy.write_text(policy.read_text().replace('"write"', '"read"'), encoding="utf-8")
        assert await document.reload()
        assert "servers of one, two were ended" in window.message.text

        verbs.unconfine(document, "one")
        document.workspace.trust_server("one")
        await document.workspace.servers.start("one")
        window.message.dismiss()
        verbs.confine(document, "one")
        assert "server of one was ended" in window.message.text


async def test_server_that_an_edit_ends_is_told(
    window: MainWindow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOOD_KEY", "very-secret")
    (tmp_path / "desk" / "notes").mkdir()
    page = await add_good(window, config(tmp_path))
    press(page, "servers.trust")
    dialog = await dialog_of(window, TrustDialog)
    dialog.add_place("good", "./notes")
    press(dialog, "trust.accept")
    await settled(window)
    row = page.current
    assert row is not None
    assert row.status[0] == "running"

    said = Said(window.document)
    window.document.push(lambda policy, _: policyedit.set_places(policy, "good", {}))
    await until(lambda: any("`good` was ended" in message.text for message in said.messages))
    await until(lambda: page.current is not None and page.current.status[0] == "ready")
    assert "starts anew with the next call" in said.last
