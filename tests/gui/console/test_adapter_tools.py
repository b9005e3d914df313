"""A tool of every kind of adapter in the console: decided in the copy, run live, and refused with the same words."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gatewright_gui.pages.trial import TrialPage
from tests.gui.console.standing import call, console_page, settled
from tests.gui.console.test_live_mode import go_live
from tests.gui.files.support import Opened
from tests.support.adapterworkspace import ANSWERS, CALLS, VARIABLES, pets, write_adapters

ELSEWHERE = ("text", "echo", "pet")
"""Those whose calls would leave the copy."""


@pytest.fixture
async def page(
    demo: Opened, tmp_path: Path, user_home: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[TrialPage]:
    for name, value in VARIABLES.items():
        monkeypatch.setenv(name, value)
    with pets() as url:
        policy = await asyncio.to_thread(write_adapters, tmp_path / "ws", user_home / "keys", url)
        assert await demo.document.open(policy)
        async with console_page(demo) as made:
            yield made


async def test_every_kind_of_tool_is_decided_in_the_copy_run_live_and_refused(page: TrialPage) -> None:
    made = 0
    for name in ELSEWHERE:
        page.request.choose_tool(name)
        assert page.run_button.text() == "Decide, not run"
        call(page, **CALLS[name][0])
        page.run()
        record = await settled(page, made := made + 1)
        assert (record.kind, record.verdict) == ("decide", "allow")
    await go_live(page)
    said: set[str] = set()
    for name, (arguments, field, hidden) in CALLS.items():
        page.request.choose_tool(name)
        call(page, **arguments)
        page.run()
        record = await settled(page, made := made + 1)
        assert (record.kind, record.status) == ("run", "allowed"), record
        assert ANSWERS[name] in str(record.output)
        if field:
            call(page, **{**arguments, field: hidden})
            page.run()
            record = await settled(page, made := made + 1)
            assert (record.status, record.stage, hidden in str(record.output)) == ("denied", "operation", False)
            said.add(
                str(record.output)
                .replace(f"`{field}`", "FIELD")
                .replace(json.dumps(arguments[field]), "SHOWN")
                .replace(f"`{arguments[field]}`", "SHOWN")
            )
    assert len(said) == 1
