"""What one does first: the welcome, a workspace of one's own, the servers that one has already."""

import json
import tempfile
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel, QPushButton

from gatewright.policy.verdict import Permission, Verdict
from gatewright.workspace.template import SECRETS
from gatewright_gui.app.build import new_window
from gatewright_gui.pages.servers.add_dialog import AddDialog
from gatewright_gui.pages.servers.gate_dialogs import ClientDialog
from gatewright_gui.pages.servers.page import ServersPage
from gatewright_gui.pages.trial import TrialPage
from gatewright_gui.qt.widget.chip import Chip
from gatewright_gui.session.calls import CallRequest
from gatewright_gui.session.coding_agents import FoundProgram
from gatewright_gui.session.opening import stop_demo_call
from gatewright_gui.settings import Preferences
from gatewright_gui.window.main_window import MainWindow
from gatewright_gui.window.new_dialog import NewDialog
from tests.gui.session.opened import agents_page, click, demo, end, settled, until


def fresh(tmp_path: Path, qapp: QApplication) -> MainWindow:
    window = new_window(qapp, preferences=Preferences(tmp_path / "p.ini"), theme="light")
    window.show()
    return window


async def begun(tmp_path: Path, qapp: QApplication) -> MainWindow:
    """A window on the demo with the first steps."""
    window = fresh(tmp_path, qapp)
    window.resize(1280, 800)
    window.steps.begin()
    await window.open(demo(tmp_path))
    await until(window.steps.isVisible)
    window.show_page("tools")
    await settled(window)
    return window


async def asked(window: MainWindow, way: str) -> NewDialog:
    QTest.mouseClick(window.shelf.welcome.buttons[way], Qt.MouseButton.LeftButton)
    await until(lambda: window.findChild(NewDialog, "new") is not None)
    dialog = window.findChild(NewDialog, "new")
    assert dialog is not None
    return dialog


def mine(tmp_path: Path) -> Path:
    folder = tmp_path / "mine"
    (folder / ".git").mkdir(parents=True)
    (folder / ".git" / "config").touch()
    (folder / "notes.md").write_text("a note\n")
    (folder / ".env").write_text("TOKEN=1\n")
    return folder


async def test_new_workspace_hides_what_looks_like_a_secret(tmp_path: Path, qapp: QApplication) -> None:
    window, folder = fresh(tmp_path, qapp), mine(tmp_path)
    dialog = await asked(window, "new")
    assert not dialog.accept_button.isEnabled()
    assert dialog.note.text().startswith("Choose a folder")
    assert not dialog.fault.isVisible()
    QTest.keyClicks(dialog.place, str(folder))
    assert dialog.hide_secrets.isVisible()
    assert ".env*" in dialog.hide_secrets.text()
    assert str(folder / "policy.toml") in dialog.note.text()
    QTest.keyClick(dialog.place, Qt.Key.Key_Return)
    await until(lambda: window.document.is_open)

    policy = window.document.policy
    (source,) = policy.sources
    assert {rule.pattern for rule in source.permission_rules} == set(SECRETS)
    assert {rule.permission for rule in source.permission_rules} == {Permission.NONE}
    agent = policy.agents["assistant"]
    assert (agent.tools, agent.sources) == ((), (source.source_id,))
    assert not window.document.problems
    assert window.selection.agent_id == "assistant"
    await settled(window)
    await end(window)


async def test_a_new_workspace_may_begin_as_a_copy_of_an_example(tmp_path: Path, qapp: QApplication) -> None:
    window, folder = fresh(tmp_path, qapp), tmp_path / "bot"
    dialog = await asked(window, "new")
    QTest.keyClicks(dialog.place, str(folder))
    dialog.begin.setFocus()
    QTest.keyClick(dialog.begin, Qt.Key.Key_End)
    assert dialog.begin.currentText() == "a copy of the example: support bot"
    assert not dialog.agent.isVisible()
    assert not dialog.level.isVisible()
    dialog.agent.clear()
    QTest.mouseClick(dialog.accept_button, Qt.MouseButton.LeftButton)
    await until(lambda: window.document.is_open)

    assert list(window.document.policy.agents) == ["bot"]
    assert (folder / "handbook" / "refunds.md").is_file()
    assert not window.document.problems
    await settled(window)
    await end(window)


async def test_first_steps_get_their_ticks_and_never_come_again(tmp_path: Path, qapp: QApplication) -> None:
    window, folder = fresh(tmp_path, qapp), mine(tmp_path)
    assert not window.steps.isVisible()
    assert not any(window.rail.button(key).isEnabled() for key in window.rail.keys)
    dialog = await asked(window, "new")
    dialog.place.setText(str(folder))
    await until(dialog.accept_button.isEnabled)
    QTest.mouseClick(dialog.accept_button, Qt.MouseButton.LeftButton)
    await until(window.steps.isVisible)
    window.activateWindow()
    steps = window.steps.buttons
    await until(lambda: agents_page(window).tools.view.current_row[0] == "file")  # an agent that reads was asked for
    assert [button.accessibleName() for button in steps.values()] == [
        "Tick an operation, to do",
        "See the schema the model gets, to do",
        "Try a call, to do",
    ]

    QTest.mouseClick(steps["schema"], Qt.MouseButton.LeftButton)
    await settled(window)
    assert window.steps.done == ()  # nothing is ticked, so there is no schema yet
    QTest.mouseClick(steps["tick"], Qt.MouseButton.LeftButton)
    QTest.keyClick(agents_page(window).tools.view, Qt.Key.Key_Space)
    await settled(window)
    assert window.steps.done == ("tick",)
    agents_page(window).inspector_button.click()
    assert not agents_page(window).inspector.isVisible()
    QTest.mouseClick(steps["schema"], Qt.MouseButton.LeftButton)
    assert window.steps.done == ("tick", "schema")
    assert agents_page(window).preview.code.editor.isVisible()
    QTest.mouseClick(steps["try"], Qt.MouseButton.LeftButton)
    await settled(window)
    assert window.shelf.current_key == "try"
    console = window.shelf.page("try")
    assert isinstance(console, TrialPage)
    assert console.request.tool_name == window.selection.tool
    QTest.mouseClick(console.request.example_button, Qt.MouseButton.LeftButton)
    await settled(window)
    QTest.mouseClick(console.decide_button, Qt.MouseButton.LeftButton)
    assert not window.steps.next_button.isVisible()
    await until(lambda: "done" in steps["try"].accessibleName())
    await settled(window)

    # then its agent can be put to work
    QTest.mouseClick(window.steps.next_button, Qt.MouseButton.LeftButton)
    await until(lambda: any(dialog.isVisible() for dialog in window.findChildren(ClientDialog)))
    assert window.findChildren(ClientDialog)[0].agent.currentText() == "assistant"
    window.findChildren(ClientDialog)[0].reject()
    await settled(window)
    await end(window)

    again = fresh(tmp_path, qapp)
    dialog = await asked(again, "new")
    dialog.place.setText(str(tmp_path / "another"))
    await until(dialog.accept_button.isEnabled)
    QTest.mouseClick(dialog.accept_button, Qt.MouseButton.LeftButton)
    await until(lambda: again.document.is_open)
    assert not again.steps.isVisible()
    await settled(again)
    await end(again)


async def test_a_step_is_done_by_its_effect_and_to_do_again_once_that_is_taken_back(
    tmp_path: Path, qapp: QApplication
) -> None:
    window = await begun(tmp_path, qapp)
    click(window, "file", "delete")  # the agent is not granted what that needs
    await settled(window)
    assert window.steps.done == ("tick",)
    window.document.undo()
    await settled(window)
    assert window.steps.done == ()
    click(window, "file_delete", None)  # this one has no effect
    await settled(window)
    assert window.steps.done == ()
    await end(window)


async def test_the_example_of_the_first_steps_is_allowed_in_the_copy(tmp_path: Path, qapp: QApplication) -> None:
    window = await begun(tmp_path, qapp)
    QTest.mouseClick(window.steps.buttons["try"], Qt.MouseButton.LeftButton)
    await settled(window)
    console = window.shelf.page("try")
    assert isinstance(console, TrialPage)
    QTest.mouseClick(console.request.example_button, Qt.MouseButton.LeftButton)
    await settled(window)
    for button in (console.decide_button, console.run_button):
        made = len(console.console.records)
        QTest.mouseClick(button, Qt.MouseButton.LeftButton)
        await until(lambda made=made: len(console.console.records) > made)
        await settled(window)
    decided, ran = console.console.records
    assert (decided.verdict, ran.verdict, ran.status) == (Verdict.ALLOW, Verdict.ALLOW, "allowed"), ran.reason
    assert "try" in window.steps.done
    await end(window)


async def test_a_denied_call_of_the_console_is_no_step_done(tmp_path: Path, qapp: QApplication) -> None:
    window = await begun(tmp_path, qapp)
    window.show_page("try")
    console = window.shelf.page("try")
    assert isinstance(console, TrialPage)
    await settled(window)
    console.request.put(CallRequest("archivist", "file", {"op": "delete", "path": "README.md"}))
    QTest.mouseClick(console.decide_button, Qt.MouseButton.LeftButton)
    await until(lambda: len(console.console.records) == 1)
    await settled(window)
    assert console.console.records[0].verdict is Verdict.DENY
    assert window.steps.done == ()
    await end(window)


async def test_folder_with_a_policy_is_not_overwritten(tmp_path: Path, qapp: QApplication) -> None:
    window, there = fresh(tmp_path, qapp), demo(tmp_path)
    before = there.read_bytes()
    dialog = await asked(window, "new")
    QTest.keyClicks(dialog.place, str(there.parent))

    assert not dialog.accept_button.isEnabled()
    assert "exists already" in dialog.fault.text()
    QTest.keyClick(dialog, Qt.Key.Key_Escape)
    await settled(window)
    assert there.read_bytes() == before
    assert not window.document.is_open
    await end(window)


async def test_name_that_no_agent_can_have_is_said(tmp_path: Path, qapp: QApplication) -> None:
    window, folder = fresh(tmp_path, qapp), tmp_path / "new" / "deep"
    dialog = await asked(window, "new")
    dialog.agent.setText("two words")
    QTest.keyClicks(dialog.place, str(folder))
    await until(dialog.accept_button.isEnabled)
    QTest.mouseClick(dialog.accept_button, Qt.MouseButton.LeftButton)
    await until(window.message.isVisible)

    assert "two words is no agent id" in window.message.text
    assert not folder.exists()
    await settled(window)
    await end(window)


async def test_import_of_servers_makes_a_workspace_first(tmp_path: Path, qapp: QApplication) -> None:
    window = fresh(tmp_path, qapp)
    dialog = await asked(window, "import")
    dialog.place.setText(str(tmp_path / "servers"))
    await until(dialog.accept_button.isEnabled)
    QTest.mouseClick(dialog.accept_button, Qt.MouseButton.LeftButton)
    await until(lambda: bool(window.findChildren(AddDialog)))

    assert window.shelf.current_key == "servers"
    assert window.document.policy.sources == ()
    window.findChildren(AddDialog)[0].reject()
    await settled(window)
    await end(window)


async def test_what_was_open_before_is_offered(tmp_path: Path, qapp: QApplication) -> None:
    preferences, policy = Preferences(tmp_path / "p.ini"), demo(tmp_path)
    preferences.add_recent_workspace(policy)
    window = new_window(qapp, preferences=preferences, theme="light")
    window.show()
    (again,) = (b for b in window.shelf.welcome.findChildren(QPushButton) if b.text() == str(policy))
    QTest.mouseClick(again, Qt.MouseButton.LeftButton)
    await until(lambda: window.document.is_open)

    assert window.document.path == policy
    await settled(window)
    await end(window)


DESKTOP = ".config/Claude/claude_desktop_config.json"
GEMINI = ".gemini/settings.json"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user without any program."""
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    for name in ("XDG_CONFIG_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME", "COPILOT_HOME"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "home"


def write_servers(path: Path, *names: str, **entries: object) -> Path:
    """Write a client's file with these servers."""
    path.parent.mkdir(parents=True, exist_ok=True)
    servers = {name: {"command": "npx", "args": [name]} for name in names} | entries
    path.write_text(json.dumps({"mcpServers": servers}), "utf-8")
    return path


async def cards(window: MainWindow) -> dict[str, FoundProgram]:
    await until(lambda: bool(window.shelf.welcome.cards))
    return {card.program.name: card.program for card in window.shelf.welcome.cards}


def source(window: MainWindow) -> str:
    label = window.shelf.welcome.findChild(QLabel, "welcome.source")
    assert label is not None
    return label.text()


async def test_programs_on_this_computer_are_shown_with_what_they_can_do_the_worst_first(
    tmp_path: Path, home: Path, qapp: QApplication
) -> None:
    write_servers(home / DESKTOP, "mail", "files", "web", "git")
    write_servers(home / GEMINI, "mail")
    write_servers(home / ".codeium/windsurf/mcp_config.json")
    window = fresh(tmp_path, qapp)
    assert not window.shelf.welcome.nothing.isVisible()  # nobody has looked yet
    assert "Reading" in source(window)
    found = await cards(window)

    assert [*found] == ["Gemini CLI", "Claude Desktop", "Windsurf"]
    gemini, desktop, windsurf = found.values()
    assert (gemini.does, gemini.role, gemini.servers) == (
        "can run commands, change files and reach the web",
        "deny",
        "1 server",
    )
    assert gemini.note == "what its servers can do is unknown until they are started"
    assert (desktop.does, desktop.role) == ("unknown until its servers are started", "ask")
    assert desktop.servers == "4 servers"
    assert (windsurf.does, windsurf.role) == ("reaches nothing: it has no servers", "allow")
    assert source(window) == "Found by reading 3 configuration files. Nothing was started or sent."
    first = window.shelf.welcome.cards[0].button
    assert (first.text(), first.accessibleName()) == ("Put a gate here", "Put a gate before Gemini CLI")
    assert window.focusWidget() is first, "Enter puts the gate"
    assert not window.rail.isVisible(), "no place works yet"
    await end(window)


async def test_a_computer_without_programs_is_told_so_once_that_is_known(
    tmp_path: Path, home: Path, qapp: QApplication
) -> None:
    window = fresh(tmp_path, qapp)
    welcome = window.shelf.welcome
    assert not welcome.nothing.isVisible()
    await until(welcome.nothing.isVisible)

    assert not any(home.iterdir())
    assert not welcome.cards
    assert welcome.nothing.text() == "No coding agent and no MCP client was found on this computer."
    await end(window)


async def test_of_many_programs_the_worst_are_shown_and_the_others_by_a_link(
    tmp_path: Path, home: Path, qapp: QApplication
) -> None:
    for folder in (".claude", ".codex", ".gemini", ".cursor"):
        (home / folder).mkdir()
    write_servers(home / DESKTOP, "mail")
    window = fresh(tmp_path, qapp)
    window.activateWindow()
    assert len(await cards(window)) == 4
    more = window.shelf.welcome.more_button
    assert more.text() == "Show 1 more"
    more.setFocus()
    QTest.keyClick(more, Qt.Key.Key_Return)

    assert [*await cards(window)][-1] == "Claude Desktop"
    assert not more.isVisible()
    assert window.focusWidget() is window.shelf.welcome.cards[-1].button
    await end(window)


async def test_a_gate_is_put_before_a_client_by_way_of_a_new_workspace(
    tmp_path: Path, home: Path, qapp: QApplication
) -> None:
    file = write_servers(home / DESKTOP, "mail")
    window = fresh(tmp_path, qapp)
    await cards(window)
    QTest.mouseClick(window.shelf.welcome.cards[0].button, Qt.MouseButton.LeftButton)
    await until(lambda: window.findChild(NewDialog, "new") is not None)
    dialog = window.findChild(NewDialog, "new")
    assert dialog is not None
    dialog.place.setText(str(tmp_path / "gate"))
    await until(dialog.accept_button.isEnabled)
    QTest.mouseClick(dialog.accept_button, Qt.MouseButton.LeftButton)
    await until(lambda: window.shelf.current_key == "servers")
    page = window.shelf.page("servers")
    assert isinstance(page, ServersPage)
    await until(lambda: page.list.current is not None and page.list.current.key == ("client", str(file)))

    QTest.keyClick(page.view, Qt.Key.Key_Return)  # what the chosen row offers first
    await until(lambda: any(one.isVisible() for one in window.findChildren(ClientDialog)))
    (asked_for,) = window.findChildren(ClientDialog)
    assert asked_for.file.currentData().path == file
    asked_for.reject()
    await settled(window)
    await end(window)


async def test_a_program_with_a_gate_leads_to_its_policy(tmp_path: Path, home: Path, qapp: QApplication) -> None:
    policy = demo(tmp_path)
    entry = {"command": "gatewright", "args": ["serve", str(policy), "--agent", "archivist"]}
    write_servers(home / DESKTOP, gatewright=entry)
    window = fresh(tmp_path, qapp)
    found = await cards(window)
    assert found["Claude Desktop"].does == "reaches its servers through a gate"
    assert found["Claude Desktop"].role == "allow"
    button = window.shelf.welcome.cards[0].button
    assert button.text() == "Open its policy"
    QTest.mouseClick(button, Qt.MouseButton.LeftButton)
    await until(lambda: window.document.is_open)

    assert window.document.path == policy
    await settled(window)
    await end(window)


async def test_a_call_of_the_demo_is_stopped_by_one_click(tmp_path: Path, home: Path, qapp: QApplication) -> None:
    window = fresh(tmp_path, qapp)
    QTest.mouseClick(window.shelf.welcome.buttons["stop"], Qt.MouseButton.LeftButton)
    await until(lambda: window.document.is_open and window.shelf.current_key == "try")
    console = window.shelf.page("try")
    assert isinstance(console, TrialPage)
    await until(lambda: bool(console.console.records))
    await settled(window)

    (record,) = console.console.records
    assert (record.request.agent_id, record.request.tool) == ("archivist", "file")
    assert record.request.arguments == {"op": "delete", "path": "drafts/report.md"}
    assert record.verdict is Verdict.DENY
    await end(window)


async def test_a_stopped_call_is_shown_with_its_stage_and_let_by_one_click(
    tmp_path: Path, home: Path, qapp: QApplication
) -> None:
    (home / ".claude").mkdir()
    window = fresh(tmp_path, qapp)
    stopped = window.shelf.welcome.stopped
    await until(stopped.isVisible)
    marks = [(chip.text, chip.role) for chip in stopped.findChildren(Chip)]
    assert marks[:2] == [("tool", "allow"), ("operation", "deny")]
    assert {role for _, role in marks[2:]} == {"muted"}
    assert stopped.about.text().startswith("The model is not told that delete exists.")
    assert not window.document.is_open
    window.resize(820, 640)  # the purpose takes two lines, and the card keeps its room
    await settled(window)
    assert stopped.height() >= stopped.heightForWidth(stopped.width())

    QTest.mouseClick(stopped.button, Qt.MouseButton.LeftButton)
    await until(lambda: window.document.is_open and window.document.is_dirty)
    await settled(window)
    assert window.shelf.current_key == "tools"
    chosen = window.selection
    assert (chosen.agent_id, chosen.tool, chosen.operation) == ("archivist", "file", "delete")
    assert "delete" in window.document.rights("archivist")["file"].shown
    window.document.undo()
    assert "delete" not in window.document.rights("archivist")["file"].shown
    await end(window)


def test_no_stopped_call_is_told_where_no_demo_can_be_written(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    assert stop_demo_call() is None
    monkeypatch.undo()
    call = stop_demo_call()
    assert call is not None
    assert (call.stages[:2], call.stage, call.is_shown) == (("parse", "lookup"), "operation", False)
