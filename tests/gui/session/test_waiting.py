"""Calls of another gate on the open workspace that wait for the operator at the window."""

import asyncio
import json
import shutil
import subprocess
import sys
from pathlib import Path

from gatewright_gui.session.question import Reply
from tests.gui.session.opened import opened_window, until
from tests.support.demo import copy_demo


def unenforced(folder: Path) -> Path:
    """The demo without its memory, so that there is no state folder."""
    policy = copy_demo(folder)
    shutil.rmtree(folder / ".gatewright")
    return policy


async def test_workspace_that_nobody_enforces_is_left_as_it_is(tmp_path: Path) -> None:
    policy = unenforced(tmp_path / "demo")
    before = sorted((tmp_path / "demo").rglob("*"))
    async with opened_window(policy, tmp_path) as window:
        await until(lambda: not window.tasks.names)
        assert not window.waiting.questions
        window.show_page("activity")
        await until(lambda: not window.tasks.names)
        await until(lambda: window.waiting.is_known)
        assert sorted((tmp_path / "demo").rglob("*")) == before


def first_call(policy: Path) -> subprocess.Popen[str]:
    """`gatewright call` in a process of its own, of something that asks."""
    arguments = json.dumps({"op": "append", "path": "notes/species.md", "content": "an otter\n"})
    words = ["call", str(policy), "--agent", "operator", "--tool", "file", "--args", arguments, "--json"]
    command = [sys.executable, "-c", "from gatewright.cli.main import script; script()", *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


async def status_of(call: subprocess.Popen[str]) -> str:
    said, _ = await asyncio.to_thread(call.communicate)
    return json.loads(said)["status"]


async def test_first_call_that_ever_asks_waits_for_the_window_and_for_the_one_that_left_it_none(tmp_path: Path) -> None:
    policies = [unenforced(tmp_path / f"demo{number}") for number in range(5)]
    async with opened_window(policies[0], tmp_path) as window:
        for policy in policies:
            await window.document.open(policy)
            await until(lambda: window.waiting.is_known)
            assert not (policy.parent / ".gatewright").exists()

            call = first_call(policy)
            await until(lambda call=call: window.waiting.questions or call.poll() is not None)
            (question,) = window.waiting.questions
            assert question.process_id == call.pid
            question.answer(Reply(approved=True))
            assert await status_of(call) == "allowed"
            await until(lambda: not window.waiting.questions)

        shutil.rmtree(policies[0].parent / ".gatewright")  # the window has left it since
        assert await status_of(first_call(policies[0])) == "unanswered"
        await until(lambda: not window.tasks.names)
    assert await status_of(first_call(policies[-1])) == "unanswered"
    assert list(tmp_path.rglob("*.alive")) == []


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
