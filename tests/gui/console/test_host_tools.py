"""Tools that a coding agent runs itself, in the Console: decided from the folder in which the agent works."""

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest
from PySide6.QtWidgets import QApplication

from gatewright.policy.verdict import Verdict
from gatewright_gui.pages.trial import TrialPage
from gatewright_gui.session.calls import CallRecord, CallRequest
from gatewright_gui.session.question import Reply
from gatewright_gui.window.main_window import MainWindow
from tests.engine.hooks import agreement
from tests.engine.hooks.world import HookWorld
from tests.gui.console.standing import settled
from tests.gui.session.opened import opened_window, until

CALLS = 25


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> HookWorld:
    """A project with its policy in a folder of its own, as `hook install` makes it."""
    made = agreement.make(tmp_path, Path(tmp_path / "run"), inside=True)
    monkeypatch.setenv("GATEWRIGHT_KEYS", str(made.keys))
    return made


@pytest.fixture
async def window(world: HookWorld, tmp_path: Path) -> AsyncGenerator[MainWindow]:
    async with opened_window(world.policy, tmp_path) as made:
        made.show_page("try")
        page = page_of(made)
        await until(lambda: page.request.tool.is_known)
        yield made


def page_of(window: MainWindow) -> TrialPage:
    page = window.shelf.page("try")
    assert isinstance(page, TrialPage)
    return page


async def decide(page: TrialPage, tool: str, arguments: dict[str, object]) -> CallRecord:
    count = len(page.console.records)
    page.request.put(CallRequest("coder", tool, json.dumps(arguments)))
    page.decide()
    return await settled(page, count + 1)


async def answered(window: MainWindow, world: HookWorld, tool: str, given: Mapping[str, object], call_id: str) -> str:
    """Return the answer of the hook; a question waits for the window, the operator, which refuses it."""
    await until(lambda: window.waiting.is_known)
    answer = asyncio.ensure_future(world.ask(tool, given, call_id, permission_mode="default"))
    await until(lambda: answer.done() or bool(window.waiting.questions))
    if answer.done():
        return str(answer.result()["permissionDecision"])
    assert window.waiting.questions[0].tool == f"claude.{tool}"
    window.waiting.questions[0].answer(Reply(approved=False))
    assert (await answer)["permissionDecision"] == "deny"
    await until(lambda: not window.waiting.questions)
    return "ask"


async def test_console_decides_what_a_hook_answers_in_a_project(window: MainWindow, world: HookWorld) -> None:
    page, dice = page_of(window), Random()
    with TemporaryDirectory(prefix="gw", dir="/tmp") as run:
        world.run, world.environment["XDG_RUNTIME_DIR"] = Path(run), run
        try:
            await agreement.start(world)
            calls: list[tuple[str, dict[str, object]]] = [
                ("Bash", {"command": "git status"}),
                ("Bash ", {"command": "ls"}),
                *(agreement.call(dice) for _ in range(CALLS)),
            ]
            for number, (tool, given) in enumerate(calls):
                record = await decide(page, f"claude.{tool}", given)
                said = await answered(window, world, tool, given, f"t{number}")
                assert said == str(record.verdict), (tool, given, record.reason)
        finally:
            world.end()


async def test_relative_paths_start_in_the_folder_that_is_named(window: MainWindow, world: HookWorld) -> None:
    page = page_of(window)
    page.request.choose_tool("claude.Read")
    assert page.request.folder.isVisible()
    assert page.request.folder.text() == str(world.project)
    assert (await decide(page, "claude.Read", {"file_path": "a.py"})).verdict is Verdict.ALLOW
    page.request.folder.setText(str(world.project / "secret"))
    page.request.folder.setModified(True)
    record = await decide(page, "claude.Read", {"file_path": "key"})
    assert record.verdict is Verdict.DENY
    assert record.request.folder == str(world.project / "secret")
    page.request.folder.setText("secret")
    page.request.folder.setModified(True)
    page.decide()
    assert page.request.message.text == "name the whole path of the folder in which the coding agent works"
    assert len(page.console.records) == 2


async def test_only_tools_of_coding_agents_ask_for_their_folder(window: MainWindow) -> None:
    page = page_of(window)
    page.request.choose_tool("file")
    QApplication.processEvents()
    assert page.request.folder.isHidden()
    page.request.choose_tool("claude.Bash")
    assert not page.request.folder.isHidden()
