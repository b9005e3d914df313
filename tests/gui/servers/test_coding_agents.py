"""The coding agents on this machine, in the place Servers: gated, looked at, and ungated again."""

import json
from collections.abc import AsyncGenerator, Callable
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from gatewright.workspace.api import HostLevel
from gatewright_gui.pages.home import HomePage
from gatewright_gui.pages.servers.gate_dialogs import CodingAgentDialog
from gatewright_gui.pages.servers.rows import DOES, NAME, STATE
from gatewright_gui.session.coding_agents import LOOK_MS
from gatewright_gui.window.main_window import MainWindow
from tests.gui.servers.test_page import can_press, page_of, press, told
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
        await until(lambda: choose(made))
        yield made


def choose(window: MainWindow) -> bool:
    """Choose Claude Code, once it is found."""
    page = page_of(window)
    page.choose("host", "claude-code")
    return page.current_host is not None


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


async def test_home_names_who_is_not_gated_and_whose_gate_does_not_hold(window: MainWindow) -> None:
    window.show_page("home")
    page = window.shelf.page("home")
    assert isinstance(page, HomePage)
    await until(lambda: page.notices.ungated.text() == "Put a gate before Claude Code")
    await until(lambda: page.headline.text().startswith("Claude Code asks no gate: it can do all that you can."))
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
