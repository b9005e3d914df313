"""The coding agents on this machine, in the place Servers: gated, looked at, and ungated again."""

import json
import sqlite3
from collections.abc import AsyncGenerator, Callable
from contextlib import closing
from pathlib import Path
from time import process_time

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from gatewright.workspace import Workspace
from gatewright.workspace.api import HostLevel, HostScope, host_around, host_file, install_edit, write_host_file
from gatewright_gui.pages.home import HomePage
from gatewright_gui.pages.servers.gate_dialogs import CodingAgentDialog
from gatewright_gui.pages.servers.rows import DOES, NAME, STATE
from gatewright_gui.session.coding_agents import LOOK_MS, hosts_beside
from gatewright_gui.window.main_window import MainWindow
from tests.gui.servers.test_page import can_press, page_of, press, told
from tests.gui.session.opened import opened_window, until
from tests.support.patience import in_time

SETTINGS = '{\n  // mine\n  "model": "opus"\n}\n'
POLICY = 'gatewright = 1\n\n[agents.coder]\ndescription = "Writes code"\ntools = []\nsources = []\n'


@pytest.fixture
async def window(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[MainWindow]:
    home = tmp_path / "home"
    (home / ".claude").mkdir(parents=True)
    (home / ".claude" / "settings.json").write_text(SETTINGS, "utf-8")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    folder = tmp_path / "desk"
    folder.mkdir()
    (folder / "policy.toml").write_text(POLICY, "utf-8")
    async with opened_window(folder / "policy.toml", tmp_path) as made:
        made.show_page("servers")
        await until(lambda: choose(made))
        yield made


def choose(window: MainWindow, host_id: str = "claude-code") -> bool:
    """Choose a coding agent, once it is found."""
    page = page_of(window)
    page.choose("host", host_id)
    return page.current_host is not None and page.current_host.host_id == host_id


def cell(window: MainWindow, column: int, role: int = Qt.ItemDataRole.DisplayRole) -> str:
    model = page_of(window).model
    return str(model.index(model.find(("host", "claude-code")), column).data(role))


def has_gate(window: MainWindow) -> bool:
    return can_press(page_of(window), "servers.ungate")


def settings(window: MainWindow) -> Path:
    return window.document.workspace.folder.parent / "home" / ".claude" / "settings.json"


def dialog() -> CodingAgentDialog | None:
    found = QApplication.activeModalWidget()
    return found if isinstance(found, CodingAgentDialog) else None


async def put_gate(window: MainWindow) -> None:
    press(page_of(window), "servers.gate")
    await until(lambda: dialog() is not None)
    shown = dialog()
    assert shown is not None
    press(shown, "hook.accept")
    await until(lambda: has_gate(window))


async def test_coding_agent_without_a_gate_is_named_with_what_that_means(window: MainWindow) -> None:
    assert [cell(window, column) for column in (NAME, STATE, DOES)] == ["Claude Code", "not gated", "all that you can"]
    page = page_of(window)
    facts = [fact.text for fact in page.detail.facts.rows]
    assert facts[1] == "Now its calls pass this policy by: they run with your rights, and no log here has them."
    assert "Even a gate cannot stop this: `claude --bare` skips every hook that is not managed." in facts
    assert "With a gate this policy decides each call, and the log keeps it." in facts
    assert "Allowed commands run confined: they see files by their levels." in facts
    assert not any("pass nobody" in fact for fact in facts)
    assert page.detail.facts_view.wordWrap()
    assert page.detail.header.accessibleName() == "Claude Code"
    assert not has_gate(window)


async def test_gate_is_put_before_a_coding_agent_after_its_difference_was_shown(window: MainWindow) -> None:
    press(page_of(window), "servers.gate")
    await until(lambda: dialog() is not None)
    shown = dialog()
    assert shown is not None
    assert "hook_client.py" in shown.difference.text
    assert settings(window).read_text("utf-8") == SETTINGS
    press(shown, "hook.accept")
    await until(lambda: settings(window).read_text("utf-8") != SETTINGS)
    text = settings(window).read_text("utf-8")
    assert "// mine" in text
    assert "PreToolUse" in json.loads(text.replace("// mine", ""))["hooks"]
    await until(lambda: has_gate(window))
    current = page_of(window).current_host
    assert current is not None
    assert current.agent_id == "claude"
    assert "claude" in window.document.policy.agents


async def test_agent_that_a_gate_adds_to_the_policy_is_no_change_from_outside(window: MainWindow) -> None:
    told: list[None] = []
    window.document.changed_outside.connect(lambda: told.append(None))
    await put_gate(window)
    window.document.look_outside()
    assert not told
    assert not window.document.is_dirty


async def test_gate_that_is_removed_leaves_the_file_as_it_was(window: MainWindow) -> None:
    await put_gate(window)
    press(page_of(window), "servers.ungate")
    await until(lambda: QApplication.activeModalWidget() is not None)
    question = QApplication.activeModalWidget()
    assert question is not None
    press(question, "choice-remove")
    await until(lambda: settings(window).read_text("utf-8") == SETTINGS)
    await until(lambda: not has_gate(window))


async def test_hook_that_somebody_takes_out_is_red_within_a_second(window: MainWindow) -> None:
    await put_gate(window)
    current = page_of(window).current_host
    assert current is not None
    settings(window).write_text(SETTINGS, "utf-8")
    await until(lambda: "ur entry is gone" in told(page_of(window)))
    current = page_of(window).current_host
    assert current is not None
    assert current.level is HostLevel.RED
    assert cell(window, STATE) == "its gate does not hold"


def _take_out(file: Path) -> None:
    file.unlink()


def _switch_off(file: Path) -> None:
    file.write_text(file.read_text("utf-8").replace('"model"', '"disableAllHooks": true, "model"'), "utf-8")


def _change(file: Path) -> None:
    file.write_text(file.read_text("utf-8").replace('"matcher": "*"', '"matcher": "Nothing"'), "utf-8")


@pytest.mark.parametrize("change", [_take_out, _switch_off, _change])
async def test_gate_that_somebody_gets_round_is_red_while_the_window_is_open_and_fine_again_after(
    window: MainWindow, change: Callable[[Path], None]
) -> None:
    await put_gate(window)
    page, kept = page_of(window), settings(window).read_text("utf-8")

    def level() -> HostLevel | None:
        return None if page.current_host is None else page.current_host.level

    await until(lambda: level() is HostLevel.AMBER)
    change(settings(window))
    await until(lambda: level() is HostLevel.RED)
    assert LOOK_MS <= 500
    assert "Claude Code, its gate does not hold" in cell(window, NAME, Qt.ItemDataRole.AccessibleTextRole)
    settings(window).write_text(kept, "utf-8")
    await until(lambda: level() is HostLevel.AMBER)


async def test_on_every_page_the_rail_turns_red_within_a_second(window: MainWindow) -> None:
    """Of one that works in the tools: what a look costs, and how often it is made, together are below a second."""
    await put_gate(window)
    assert window.rail.button("servers").accessibleName() == "Servers"
    window.show_page("tools")
    settings(window).write_text(SETTINGS, "utf-8")
    await until(lambda: window.rail.button("servers").accessibleName() != "Servers")
    assert window.rail.button("servers").accessibleName() == "Servers, the gate before Claude Code does not hold"
    began = process_time()
    for _ in range(10):
        await hosts_beside(window.document)
    assert in_time((process_time() - began) / 10, 0.2)
    assert LOOK_MS / 1000 + 2 * 0.2 < 1  # it may have begun to look just before


async def test_a_log_that_cannot_be_read_yet_holds_no_red_up(window: MainWindow, tmp_path: Path) -> None:
    other = tmp_path / "other" / "policy.toml"
    other.parent.mkdir()
    other.write_text(POLICY, "utf-8")
    with Workspace.open(other) as workspace:
        await workspace.call("coder", "file", {})
        log = workspace.state_folder / "audit.sqlite3"
    with closing(sqlite3.connect(log, isolation_level=None)) as busy:
        busy.execute("PRAGMA locking_mode = EXCLUSIVE")
        busy.execute("BEGIN EXCLUSIVE")
        write_host_file(install_edit(host_file("claude-code", HostScope.USER, host_around()), other, "coder"))
        await until(lambda: has_gate(window))
        settings(window).write_text(SETTINGS, "utf-8")
        await until(lambda: cell(window, STATE) == "its gate does not hold")
        current = page_of(window).current_host
        assert current is not None
        assert current.calls_today is None
        busy.execute("ROLLBACK")
    await until(lambda: (one := page_of(window).current_host) is not None and one.calls_today == 1)


async def test_a_hook_that_its_agent_no_longer_trusts_is_red(window: MainWindow) -> None:
    home = settings(window).parent.parent
    (home / ".codex").mkdir()
    await until(lambda: choose(window, "codex"))
    page = page_of(window)
    press(page, "servers.gate")
    await until(lambda: dialog() is not None)
    shown = dialog()
    assert shown is not None
    press(shown, "hook.accept")
    await until(lambda: has_gate(window))
    host = page.current_host
    assert host is not None
    assert (host.is_trusted, host.level) == (False, HostLevel.RED)
    assert "skips the hook without a word until" in told(page)
    window.show_page("tools")
    assert window.rail.button("servers").accessibleName() == "Servers, the gate before Codex does not hold"


async def test_home_names_who_is_not_gated_and_whose_gate_does_not_hold(window: MainWindow) -> None:
    window.show_page("home")
    page = window.shelf.page("home")
    assert isinstance(page, HomePage)
    await until(lambda: page.notices.ungated.text() == "Put a gate before Claude Code")
    said = "Nobody decides what Claude Code may do: it can do all that you can."
    await until(lambda: page.headline.text().startswith(said))
    window.show_page("servers")
    await put_gate(window)
    settings(window).write_text(SETTINGS, "utf-8")
    window.show_page("home")
    await until(lambda: page.notices.unsafe.text() == "The gate before Claude Code does not hold")
    assert page.notices.ungated.isHidden()
    QTest.mouseClick(page.notices.unsafe, Qt.MouseButton.LeftButton)
    assert window.shelf.current_key == "servers"


async def test_gate_of_a_projects_own_policy_goes_into_the_project(window: MainWindow, tmp_path: Path) -> None:
    project = tmp_path / "shop"
    (project / ".gatewright-policy").mkdir(parents=True)
    (project / ".gatewright-policy" / "policy.toml").write_text(POLICY, "utf-8")
    assert await window.document.open(project / ".gatewright-policy" / "policy.toml")
    window.show_page("servers")
    await until(lambda: choose(window))
    press(page_of(window), "servers.gate")
    await until(lambda: dialog() is not None)
    shown = dialog()
    assert shown is not None
    shown.scope.setCurrentIndex(shown.scope.findData("project"))
    assert shown.place.text() == str(project / ".claude" / "settings.local.json")
    press(shown, "hook.accept")
    await until(lambda: has_gate(window))
    assert (project / ".claude" / "settings.local.json").is_file()
    assert window.document.policy.agents["claude"].description == "Claude Code, in shop"
