"""A gate before a coding agent, from nothing: by mouse in the window, and from a terminal."""

import asyncio
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtWidgets import QLineEdit, QPushButton

from gatewright.workspace.api import AuditFilter, AuditIndex, Workspace
from gatewright_gui.pages.activity import ActivityPage
from gatewright_gui.pages.servers import ServersPage
from tests.journeys.commandline import gatewright
from tests.journeys.hand import Hand, until
from tests.journeys.views import texts

pytestmark = pytest.mark.journey
SETTINGS = '{\n  // what I like\n  "model": "opus"\n}\n'


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Somebody who uses Claude Code."""
    home = tmp_path / "home"
    (home / ".claude").mkdir(parents=True)
    (home / ".claude" / "settings.json").write_text(SETTINGS, "utf-8")
    for variable, folder in (("HOME", home), ("XDG_RUNTIME_DIR", tmp_path / "run")):
        monkeypatch.setenv(variable, str(folder))
    (tmp_path / "run").mkdir(mode=0o700)
    return home


async def call(settings: Path, folder: Path, command: str) -> dict[str, Any]:
    """What Claude Code does before a command: it starts the hook of its settings, and obeys the answer."""
    said = json.loads("\n".join(line for line in settings.read_text().splitlines() if "//" not in line))
    hook = said["hooks"]["PreToolUse"][0]["hooks"][0]
    message = {
        "session_id": "s1",
        "transcript_path": "/dev/null",
        "cwd": str(folder),
        "permission_mode": "default",
        "hook_event_name": "PreToolUse",
        "tool_name": "Bash",
        "tool_input": {"command": command},
        "tool_use_id": "toolu_1",
    }
    done = await asyncio.to_thread(
        subprocess.run,
        [hook["command"], *hook["args"]],
        input=json.dumps(message),
        env={**os.environ, "CLAUDE_CODE_SESSION_ATTENDED": "0"},
        capture_output=True,
        text=True,
        cwd=folder,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)["hookSpecificOutput"]
    return answer


async def test_rm_is_refused_after_five_actions_in_the_window_and_the_log_says_why(
    first_hand: Hand, home: Path, tmp_path: Path
) -> None:
    hand, window, folder = first_hand, first_hand.window, tmp_path / "shop"
    (folder / "src").mkdir(parents=True)
    settings = home / ".claude" / "settings.json"

    await hand.click(window.shelf.welcome.buttons["new"])  # 1
    await hand.click(await hand.see("new.folder", QLineEdit))
    await hand.key("ctrl+a")
    await hand.type(str(folder))
    await hand.click(hand.find("new.accept", QPushButton))  # 2
    await until(lambda: window.document.is_open, "the workspace")
    await hand.go_to("servers")  # 3
    page = window.shelf.page("servers")
    assert isinstance(page, ServersPage)
    await until(lambda: page.model.find(("host", "claude-code")) >= 0, "the coding agent")
    assert page.current_host is not None  # without a server it is the first row
    await hand.click(await hand.see("servers.gate", QPushButton))  # 4
    await hand.click(await hand.see("hook.accept", QPushButton))  # 5
    await hand.see("servers.ungate", QPushButton)

    answer = await call(settings, folder, "rm -rf src")
    assert answer["permissionDecision"] == "deny"
    assert (folder / "src").is_dir()
    await hand.go_to("activity")
    audit = window.shelf.page("activity")
    assert isinstance(audit, ActivityPage)
    await until(lambda: "claude.Bash" in " ".join(texts(audit.model, 2)), "the call in the log")

    # taken out again, the file is as it was
    await hand.go_to("servers")
    page.choose("host", "claude-code")
    await hand.click(await hand.see("servers.ungate", QPushButton))
    await hand.click(await hand.see("choice-remove", QPushButton))
    await until(lambda: settings.read_text("utf-8") == SETTINGS, "the file to be as before")


async def test_rm_is_refused_after_one_command_and_the_log_says_why(home: Path, tmp_path: Path) -> None:
    folder = tmp_path / "shop"
    (folder / "src").mkdir(parents=True)
    settings, policy = folder / ".claude" / "settings.local.json", folder / ".gatewright-policy"
    status, told = await gatewright("hook", "install", "claude-code", "--project", str(folder), "--yes")
    assert (status, told["hook"]["agent"]) == (0, "claude")
    answer = await call(settings, folder, "rm -rf src")
    assert answer["permissionDecision"] == "deny"
    assert (folder / "src").is_dir()
    with Workspace.open(policy) as workspace:
        index = AuditIndex(workspace.state_folder)
    index.read_older()
    (found,) = index.calls(index.numbers(AuditFilter(tool="claude.Bash", verdict="deny")))
    index.close()
    assert "rm" in found.reason
    assert (await gatewright("hook", "uninstall", "claude-code", "--project", str(folder), "--yes"))[0] == 0
    assert not settings.exists()
    assert (home / ".claude" / "settings.json").read_text("utf-8") == SETTINGS
