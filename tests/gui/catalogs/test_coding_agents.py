"""The coding agents on this machine, on the page of catalogs: gated, looked at, and ungated again."""

import json
from collections.abc import AsyncGenerator, Callable
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QPushButton

from gatewright.workspace.api import HostLevel
from gatewright_gui.pages.home import HomePage
from gatewright_gui.pages.servers import ServersPage
from gatewright_gui.pages.servers.agent_dialog import CodingAgentDialog
from gatewright_gui.pages.servers.coding_agents_pane import GATE, NAME, CodingAgentsPane
from gatewright_gui.session.coding_agents import LOOK_MS
from gatewright_gui.window.main_window import MainWindow
from tests.gui.session.opened import opened_window, until

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
        await until(lambda: pane_of(made).isVisible())
        yield made


def pane_of(window: MainWindow) -> CodingAgentsPane:
    page = window.shelf.page("servers")
    assert isinstance(page, ServersPage)
    return page.coding_agents


def settings(window: MainWindow) -> Path:
    return window.document.workspace.folder.parent / "home" / ".claude" / "settings.json"


def press(button: QPushButton) -> None:
    QTest.mouseClick(button, Qt.MouseButton.LeftButton)


def dialog() -> CodingAgentDialog | None:
    found = QApplication.activeModalWidget()
    return found if isinstance(found, CodingAgentDialog) else None


async def put_gate(window: MainWindow) -> None:
    press(pane_of(window).install_button)
    await until(lambda: dialog() is not None)
    shown = dialog()
    assert shown is not None
    press(shown.accept_button)
    await until(pane_of(window).remove_button.isEnabled)


async def test_coding_agent_without_a_gate_is_named_with_what_that_means(window: MainWindow) -> None:
    pane = pane_of(window)
    assert [str(pane.model.index(0, column).data()) for column in (NAME, GATE)] == [
        "Claude Code",
        "no gate",
    ]
    facts = [fact.sentence for fact in pane.facts.rows]
    assert facts[0] == "now its calls pass this policy by: they run with your rights, and no log here has them"
    assert "even a gate cannot stop this: `claude --bare` skips every hook that is not managed" in facts
    assert "with a gate this policy decides each call, and the log keeps it" in facts
    assert "allowed commands run confined: they see files by their levels" in facts
    assert not any("pass nobody" in fact for fact in facts)
    assert pane.facts_view.wordWrap()
    assert pane.header.accessibleName() == "Coding agents"
    assert not pane.remove_button.isEnabled()


async def test_gate_is_put_before_a_coding_agent_after_its_difference_was_shown(window: MainWindow) -> None:
    press(pane_of(window).install_button)
    await until(lambda: dialog() is not None)
    shown = dialog()
    assert shown is not None
    assert "hook_client.py" in shown.difference.text
    assert settings(window).read_text("utf-8") == SETTINGS
    press(shown.accept_button)
    await until(lambda: settings(window).read_text("utf-8") != SETTINGS)
    text = settings(window).read_text("utf-8")
    assert "// mine" in text
    assert "PreToolUse" in json.loads(text.replace("// mine", ""))["hooks"]
    await until(pane_of(window).remove_button.isEnabled)
    current = pane_of(window).current
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
    press(pane_of(window).remove_button)
    await until(lambda: QApplication.activeModalWidget() is not None)
    question = QApplication.activeModalWidget()
    assert question is not None
    button = question.findChild(QPushButton, "choice-remove")
    assert button is not None
    press(button)
    await until(lambda: settings(window).read_text("utf-8") == SETTINGS)
    await until(lambda: not pane_of(window).remove_button.isEnabled())


async def test_hook_that_somebody_takes_out_is_red_within_a_second(window: MainWindow) -> None:
    await put_gate(window)
    current = pane_of(window).current
    assert current is not None
    settings(window).write_text(SETTINGS, "utf-8")
    await until(lambda: any("our entry is gone" in str(fact.sentence) for fact in pane_of(window).facts.rows))
    current = pane_of(window).current
    assert current is not None
    assert current.level is HostLevel.RED
    assert pane_of(window).facts.rows[0].level is HostLevel.RED


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
    pane, kept = pane_of(window), settings(window).read_text("utf-8")

    def level() -> HostLevel | None:
        return None if pane.current is None else pane.current.level

    await until(lambda: level() is HostLevel.AMBER)
    change(settings(window))
    await until(lambda: level() is HostLevel.RED)
    assert LOOK_MS <= 500
    assert str(pane.model.index(0, NAME).data(Qt.ItemDataRole.AccessibleTextRole)) == "Claude Code: not safe"
    settings(window).write_text(kept, "utf-8")
    await until(lambda: level() is HostLevel.AMBER)


async def test_home_names_who_is_not_gated_and_whose_gate_does_not_hold(window: MainWindow) -> None:
    window.show_page("home")
    page = window.shelf.page("home")
    assert isinstance(page, HomePage)
    await until(lambda: page.notices.ungated.text() == "Not gated: Claude Code")
    await until(lambda: page.headline.text().startswith("Claude Code: not gated, can do all that you can."))
    window.show_page("servers")
    await put_gate(window)
    settings(window).write_text(SETTINGS, "utf-8")
    window.show_page("home")
    await until(lambda: page.notices.unsafe.text() == "The gate before Claude Code does not hold")
    assert page.notices.ungated.isHidden()
    press(page.notices.unsafe)
    assert window.shelf.current_key == "servers"


async def test_gate_of_a_projects_own_policy_goes_into_the_project(window: MainWindow, tmp_path: Path) -> None:
    project = tmp_path / "shop"
    (project / ".gatewright-policy").mkdir(parents=True)
    (project / ".gatewright-policy" / "policy.toml").write_text(POLICY, "utf-8")
    assert await window.document.open(project / ".gatewright-policy" / "policy.toml")
    window.show_page("servers")
    pane = pane_of(window)
    await until(lambda: pane.current is not None)
    press(pane.install_button)
    await until(lambda: dialog() is not None)
    shown = dialog()
    assert shown is not None
    shown.scope.setCurrentIndex(shown.scope.findData("project"))
    assert shown.place.text() == str(project / ".claude" / "settings.local.json")
    press(shown.accept_button)
    await until(pane.remove_button.isEnabled)
    assert (project / ".claude" / "settings.local.json").is_file()
    assert window.document.policy.agents["claude"].description == "Claude Code, in shop"
