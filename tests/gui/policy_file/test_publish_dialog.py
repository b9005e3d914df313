"""Publishing a policy from its dialog: what each card would write, what it wrote, and the lines that it gives then."""

import asyncio
import json
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QPushButton

from gatewright.workspace import Workspace, verify_export
from gatewright_gui.pages.policy_file.publish_dialog import ProgramPane, PublishDialog, PublishPane
from gatewright_gui.session.verbs import rights
from gatewright_gui.window.main_window import MainWindow
from tests.gui.session.opened import demo, opened_window, settled, until


@pytest.fixture
async def window(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[MainWindow]:
    home = tmp_path / "home"
    (home / ".claude").mkdir(parents=True)
    (home / ".claude" / "settings.json").write_text('{"model": "opus"}\n', "utf-8")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    async with opened_window(demo(tmp_path), tmp_path) as made:
        yield made


async def publish(window: MainWindow, action: str = "publish", card: str = "") -> PublishDialog:
    """Open the dialog, and wait for what its card would write."""
    window.actions_by_key[action].trigger()
    await until(lambda: any(one.isVisible() for one in window.findChildren(PublishDialog)))
    dialog = next(one for one in window.findChildren(PublishDialog) if one.isVisible())
    if card:
        QTest.mouseClick(dialog.cards[card], Qt.MouseButton.LeftButton)
    return dialog


async def program(dialog: PublishDialog, folder: Path, card: str = "policy") -> ProgramPane:
    """The card of a folder, once what would be written there is known."""
    pane = dialog.panes[card]
    assert isinstance(pane, ProgramPane)
    pane.folder.setText(str(folder))
    await until(pane.act_button.isEnabled)
    return pane


def fates(pane: PublishPane) -> dict[str, str]:
    """What happens to each file."""
    return {row.name: row.what for row in pane.files.model.rows}


async def write(window: MainWindow, pane: PublishPane) -> None:
    QTest.mouseClick(pane.act_button, Qt.MouseButton.LeftButton)
    await until(pane.done.isVisible)


async def close(window: MainWindow, dialog: PublishDialog) -> None:
    dialog.reject()
    await settled(window)


async def test_program_card_lists_what_it_writes_writes_it_and_gives_lines_that_work(
    window: MainWindow, tmp_path: Path
) -> None:
    window.selection.choose_agent("archivist")
    dialog = await publish(window)
    pane = await program(dialog, tmp_path / "out" / "station")
    assert not (tmp_path / "out").exists()
    assert fates(pane) == {
        "policy.toml": "new",
        "station-tools.json": "new",
        **dict.fromkeys(("workspace/", "desk/", "tmp/", "vault/"), "new, empty"),
    }
    assert pane.code.text.splitlines() == window.document.workspace.text().splitlines()
    assert pane.act_button.text() == "Write 2 files and 4 empty folders"
    first = pane.then_line.text

    await write(window, pane)
    assert (tmp_path / "out" / "station" / "policy.toml").read_text("utf-8") == window.document.workspace.text()
    assert pane.done_words.text() == f"Written: 2 files and 4 empty folders in {tmp_path / 'out' / 'station'}"
    QTest.mouseClick(pane.copy_button, Qt.MouseButton.LeftButton)
    assert first in QApplication.clipboard().text().splitlines()
    assert not pane.then.text + pane.then_line.text
    names: dict[str, object] = {}
    exec(QApplication.clipboard().text(), names)  # the lines are there to be run
    opened, tools = names["workspace"], names["tools"]
    assert isinstance(opened, Workspace)
    assert tools == opened.view("archivist").tools("openai")
    opened.close()
    assert set(fates(pane).values()) == {"stays as it is"}
    assert not pane.act_button.isEnabled()
    await close(window, dialog)

    again = await publish(window)
    known = again.panes["policy"]
    assert isinstance(known, ProgramPane)
    assert known.place == tmp_path / "out" / "station"
    await close(window, again)


async def test_file_that_is_there_shows_what_changes_in_it_with_edits_that_are_not_saved(
    window: MainWindow, tmp_path: Path
) -> None:
    dialog = await publish(window)
    pane = await program(dialog, tmp_path / "out")
    await write(window, pane)
    await close(window, dialog)
    rights.tick_operations(window.document, "archivist", "file", ["create"], on=False)

    dialog = await publish(window)
    pane = await program(dialog, tmp_path / "out")
    assert fates(pane) == {"policy.toml": "changes", "station-tools.json": "stays as it is"}
    changed = [line for line in pane.code.text.splitlines() if line[:1] in "+-" and line[:3] not in {"+++", "---"}]
    assert [('"create"' in line, line[0]) for line in changed] == [(True, "-"), (False, "+")]
    assert pane.note.text().startswith("Your unsaved edits are in it.")
    QTest.mouseClick(dialog.cards["clients"], Qt.MouseButton.LeftButton)
    await until(lambda: "unsaved edits are saved first" in dialog.panes["clients"].note.text())
    await close(window, dialog)


async def test_team_card_writes_what_a_team_needs_and_gives_the_command_that_verifies_it(
    window: MainWindow, tmp_path: Path
) -> None:
    dialog = await publish(window, "team")
    pane = await program(dialog, tmp_path / "team", "team")
    assert pane.isVisible()
    command = f"gatewright export --verify {tmp_path / 'team'}"
    assert (pane.then.text, pane.then_line.text) == ("Then type:", command)
    assert {"README.md", "start.py", "policy.toml", "export.json"} <= fates(pane).keys()

    await write(window, pane)
    digest, files, problems = verify_export(tmp_path / "team")
    assert not problems
    assert {path.name for path in (tmp_path / "team").iterdir() if path.is_file()} <= fates(pane).keys()
    assert pane.next_lines.text() == f"{command}\n# sha256:{digest}"
    assert f"{files} files verified" in pane.next_words.text()
    await close(window, dialog)


async def test_pattern_gets_a_file_per_agent_and_is_told_who_is_left_out(window: MainWindow, tmp_path: Path) -> None:
    dialog = await publish(window, "pattern")
    pane = await program(dialog, tmp_path / "out")
    assert list(fates(pane)) == ["archivist.toml", "researcher.toml", "operator.toml"]
    assert "newcomer" in pane.note.text()

    await write(window, pane)
    assert {path.name for path in (tmp_path / "out").iterdir()} == fates(pane).keys()
    await close(window, dialog)


async def test_folder_that_cannot_be_written_is_said_and_nothing_is_offered(window: MainWindow, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("x", "utf-8")
    dialog = await publish(window)
    pane = await program(dialog, tmp_path / "taken" / "below")
    QTest.mouseClick(pane.act_button, Qt.MouseButton.LeftButton)
    await until(pane.fault.isVisible)
    assert "Not written" in pane.fault.text()

    pane.folder.setText("not/whole")
    await until(lambda: "whole" in pane.fault.text())
    assert not pane.act_button.isEnabled()
    team = dialog.panes["team"]
    assert isinstance(team, ProgramPane)
    dialog.choose("team")
    team.folder.setText(str(window.document.workspace.folder))
    await until(lambda: "own folder" in team.fault.text())
    await close(window, dialog)


async def test_client_card_shows_each_file_and_writes_the_chosen_one(window: MainWindow, tmp_path: Path) -> None:
    file = tmp_path / "home" / ".cursor" / "mcp.json"
    file.parent.mkdir()
    file.write_text('{"mcpServers": {}}\n', "utf-8")
    dialog = await publish(window, card="clients")
    pane = dialog.panes["clients"]
    await until(pane.act_button.isEnabled)
    assert fates(pane)[f"Cursor: {file}"] == "gets the gateway"
    assert pane.act_button.text() == "Connect Cursor..."
    command = f"gatewright serve {window.document.workspace.policy_path} --list"
    assert (pane.then.text, pane.then_line.text) == ("Then start Cursor again and type:", command)
    assert '"gatewright"' in pane.code.text

    QTest.mouseClick(pane.act_button, Qt.MouseButton.LeftButton)
    await accept("client.accept")
    await until(pane.done.isVisible)
    assert "gatewright" in json.loads(file.read_text("utf-8"))["mcpServers"]
    assert fates(pane)[f"Cursor: {file}"] == "has the gateway"
    assert pane.next_lines.text() == command
    await close(window, dialog)


async def test_agent_card_puts_a_gate_before_a_coding_agent(window: MainWindow, tmp_path: Path) -> None:
    file = tmp_path / "home" / ".claude" / "settings.json"
    dialog = await publish(window, card="hooks")
    pane = dialog.panes["hooks"]
    await until(pane.act_button.isEnabled)
    assert fates(pane)[f"Claude Code: {file}"] == "gets a gate"
    assert '"hooks"' in pane.code.text
    assert pane.then.text == "Then start Claude Code again and type:"
    assert pane.then_line.text == "gatewright hook status claude-code"

    QTest.mouseClick(pane.act_button, Qt.MouseButton.LeftButton)
    await accept("hook.accept")
    await until(pane.done.isVisible)
    assert json.loads(file.read_text("utf-8"))["hooks"]
    assert fates(pane)[f"Claude Code: {file}"] == "asks the gate"
    assert pane.next_lines.text() == "gatewright hook status claude-code"
    await close(window, dialog)


async def accept(name: str) -> None:
    """Click a button of the dialog that opens."""

    def button() -> QPushButton | None:
        box = QApplication.activeModalWidget()
        return None if box is None else box.findChild(QPushButton, name)

    await until(lambda: (found := button()) is not None and found.isEnabled())
    found = button()
    assert found is not None
    await asyncio.sleep(0)
    QTest.mouseClick(found, Qt.MouseButton.LeftButton)


async def test_keys_alone_choose_a_card_and_write(window: MainWindow, tmp_path: Path) -> None:
    dialog = await publish(window)
    pane = await program(dialog, tmp_path / "out")
    QTest.keyClick(dialog.cards["policy"], Qt.Key.Key_Down)
    assert dialog.cards["team"].isChecked()
    QTest.keyClick(dialog.cards["team"], Qt.Key.Key_Up)
    assert pane.isVisible()
    await until(pane.act_button.isEnabled)
    QTest.keyClick(pane.folder, Qt.Key.Key_Return)
    await until(pane.done.isVisible)
    assert (tmp_path / "out" / "policy.toml").is_file()
    assert pane.copy_button.hasFocus()
    await close(window, dialog)
