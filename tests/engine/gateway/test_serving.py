"""Who serves a workspace and who is connected there, as another process sees it, with real processes and clients."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Callable
from typing import Any, Literal

import pytest

from gatewright.cli.main import main
from gatewright.gate.sessionstore import FILE_NAME
from gatewright.workspace import Approval
from tests.engine.gateway.conftest import Listen, Place, Serve
from tests.engine.gateway.test_consent import APPEND, operator_of
from tests.engine.gateway.test_http import connected
from tests.engine.gateway.test_stdio import READ, client
from tests.support.patience import patient

Listed = list[dict[str, Any]]


def clients(found: Listed) -> Listed:
    return [client for process in found for client in process["clients"]]


class Looking:
    """`gatewright serve --list --json`, asked until it says what is waited for."""

    def __init__(self, place: Place, capsys: pytest.CaptureFixture[str]) -> None:
        self._place, self._capsys = place, capsys

    def now(self, *words: str) -> str:
        self._capsys.readouterr()
        assert main(["serve", str(self._place.policy), "--list", *words]) == 0
        return self._capsys.readouterr().out

    async def until(self, holds: Callable[[Listed], object]) -> Listed:
        async with patient():
            while not holds(found := json.loads(self.now("--json"))):
                await asyncio.sleep(0.02)
        return found


@pytest.fixture
def looking(place: Place, capsys: pytest.CaptureFixture[str]) -> Looking:
    return Looking(place, capsys)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_client_on_standard_input_is_seen_with_its_calls_and_gone_when_it_leaves(
    place: Place, looking: Looking, mode: Literal["auto", "legacy"]
) -> None:
    assert looking.now() == "nobody serves the policy now\n"
    async with client(place, "reader", mode) as connected_client:
        await connected_client.call_tool("file", READ)
        await connected_client.call_tool("nonsense", {})
        (process,) = await looking.until(lambda found: any(one["denied"] for one in clients(found)))
        words = looking.now()

    assert (process["transport"], process["address"], process["agents"]) == ("stdio", "", ["reader"])
    (one,) = process["clients"]
    assert (one["client"], one["agent_id"], one["token_id"]) == ("tester 1.2", "reader", None)
    assert (one["calls"], one["denied"], one["waits"]) == (2, 1, [])
    assert f"stdio  process {process['pid']}" in words
    assert "  tester 1.2 as reader: 2 calls, 1 denied\n" in words
    await looking.until(lambda found: not found)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_clients_over_http_are_seen_with_their_tokens_and_the_question_that_waits(
    place: Place, listen: Listen, looking: Looking, mode: Literal["auto", "legacy"]
) -> None:
    gate, token = listen(), place.token("writer", user_id="bob")
    async with operator_of(place) as operator, connected(gate, token, mode) as writer:
        call = asyncio.create_task(writer.call_tool("file", APPEND))
        (question,) = await operator.sees(1)
        (process,) = await looking.until(lambda found: any(one["waits"] for one in clients(found)))
        assert "as writer (bob token-" in looking.now()
        assert "1 call, 0 denied, 1 wait for an operator" in looking.now()
        operator.broker.answer(question.request_id, Approval(False, "ann"))
        await call
        (after,) = await looking.until(lambda found: not any(one["waits"] for one in clients(found)))

    (one,) = process["clients"]
    assert (process["transport"], process["address"], process["agents"]) == ("http", gate.url, ["writer"])
    assert (one["client"], one["user_id"], one["waits"]) == ("tester 1.2", "bob", [question.digest])
    assert (after["clients"][0]["calls"], after["clients"][0]["denied"]) == (1, 1)
    if mode == "legacy":  # else nobody says goodbye
        await looking.until(lambda found: not clients(found))
    assert gate.end() == 0
    assert json.loads(looking.now("--json")) == []


async def test_process_that_was_killed_is_gone_at_once_and_another_process_id_does_not_bring_it_back(
    place: Place, serve: Serve, looking: Looking
) -> None:
    first = serve()
    first.start()
    await looking.until(clients)
    first.process.kill()
    first.process.wait()
    assert json.loads(looking.now("--json")) == []

    second = serve("writer")
    second.start()
    (process,) = await looking.until(clients)
    assert process["pid"] == second.process.pid
    with sqlite3.connect(place.folder / ".gatewright" / FILE_NAME) as connection:  # what was written is not believed
        connection.execute("UPDATE sealed SET body = replace(body, 'raw client', 'somebody else')")
    connection.close()
    assert json.loads(looking.now("--json")) == []


async def test_other_policy_of_the_same_folder_is_not_told_of(
    place: Place, serve: Serve, looking: Looking, capsys: pytest.CaptureFixture[str]
) -> None:
    served = serve()
    served.start()
    await looking.until(clients)
    other = place.folder / "other.toml"
    other.write_text(place.policy.read_text("utf-8"), "utf-8")
    looking.now()
    assert main(["serve", str(other), "--list"]) == 0
    assert capsys.readouterr().out == "nobody serves the policy now\n"


def test_listing_is_refused_where_it_would_mean_nothing(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", str(place.policy), "--agent", "reader", "--json"]) == 2
    assert "`--json` goes with `--list`" in capsys.readouterr().err
