"""Calls of another gate on the open workspace that wait for the operator at the window."""

import shutil
from pathlib import Path

from tests.gui.session.opened import opened_window, until
from tests.support.demo import copy_demo


def unenforced(folder: Path) -> Path:
    """The demo without its memory, so that there is no state folder."""
    policy = copy_demo(folder)
    shutil.rmtree(folder / ".gatewright")
    return policy


async def test_workspace_that_nobody_enforces_is_left_as_it_is(tmp_path: Path) -> None:
    policy = unenforced(tmp_path / "demo")
    before = sorted(tmp_path.rglob("*"))
    async with opened_window(policy, tmp_path) as window:
        await until(lambda: not window.tasks.names)
        assert not window.waiting.questions
        window.show_page("approvals")
        await until(lambda: not window.tasks.names)
        assert not (tmp_path / "demo" / ".gatewright").exists()
        assert [path for path in sorted(tmp_path.rglob("*")) if path.suffix != ".ini"] == before


async def test_file_with_errors_raises_an_alarm_that_stays_until_it_is_good(tmp_path: Path) -> None:
    policy = copy_demo(tmp_path / "demo")
    good = policy.read_text("utf-8")
    async with opened_window(policy, tmp_path) as window:
        policy.write_text(good.replace('"ContinueLoop"', '"ContinuLoop"'), "utf-8")
        assert not await window.document.reload()
        assert window.alarm.isVisible()
        assert "policy.toml has 1 error" in window.alarm.text
        assert "the last good policy stays in force" in window.alarm.text
        assert not window.alarm.close_button.isVisible()
        window.alarm.action_button.click()
        assert window.shelf.current_key == "problems"
        assert [problem.is_error for problem in window.document.problems] == [True]
        assert "archivist" in window.document.policy.agents

        policy.write_text(good, "utf-8")
        assert await window.document.reload()
        assert not window.alarm.isVisible()
        assert window.document.problems == ()
