"""A tool of every kind of adapter through every door: called and refused with the same words as any other."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp.types import TextContent

from gatewright import Outcome, Status, ToolRegistry, Workspace, tool
from gatewright.policy.verdict import SafetyTier
from tests.designs.world import World, agent, opened
from tests.support.adapterworkspace import ANSWERS, CALLS, VARIABLES, pets, write_adapters
from tests.support.checkout import ROOT
from tests.support.gateway import served

SERVER = str(ROOT / "tests" / "support" / "bad_server.py")
ADAPTERS = {"http": "pet", "subprocess": "text", "wasm": "echo"}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("adapters")
    with pytest.MonkeyPatch.context() as patch, pets() as url:
        for name, value in {**VARIABLES, "GATEWRIGHT_KEYS": str(folder / "keys")}.items():
            patch.setenv(name, value)
        policy = write_adapters(folder / "ws", folder / "keys", url)
        with Workspace.open(policy, keys=folder / "keys") as workspace:
            yield World(workspace, web=url)


def made(world: World, name: str) -> Outcome:
    arguments, field, hidden = CALLS[ADAPTERS[name]]
    outcome = world.call(ADAPTERS[name], **arguments)
    assert outcome.status is Status.ALLOWED, (outcome.output, outcome.detail)
    assert ANSWERS[ADAPTERS[name]] in outcome.output
    assert hidden not in json.dumps(world.shown()[ADAPTERS[name]])
    assert world.refused(ADAPTERS[name], **{**arguments, field: hidden}) == "operation-not-allowed"
    return outcome


def told(outcome: Outcome) -> str:
    return next(one.reason for one in outcome.decision.trace if one.stage == "execute")


def test_adapter_for_http(world: World) -> None:
    made(world, "http")


def test_adapter_for_a_subprocess(world: World) -> None:
    made(world, "subprocess")


def test_adapter_for_wasm(world: World) -> None:
    made(world, "wasm")


def test_adapters_built_in_host_manifest_and_mcp(tmp_path: Path) -> None:
    registry = ToolRegistry()

    @tool(safety_tier=SafetyTier.READ_ONLY)
    async def tide(station: str) -> str:
        """Give the tide."""
        return station

    registry.register(tide)
    catalogs = f"""
[[catalogs]]
id = "own"
type = "host"
manifest = "own.json"

[[catalogs]]
id = "far"
type = "mcp"
command = {json.dumps(sys.executable)}
args = [{json.dumps(SERVER)}, "plain"]
confine = "none"
"""
    (tmp_path / "ws").mkdir()
    registry.write_manifest(tmp_path / "ws" / "own.json")
    with opened(tmp_path, catalogs) as fresh:
        fresh.run(fresh.workspace.servers.refresh("far"))
        fresh.workspace.accept_tools("far", None)
    with opened(
        tmp_path, agent("able", ["tide", "one", "block"], "approvals = { privileged = 'allow' }") + catalogs
    ) as bench:
        assert bench.shown().keys() == {"tide", "one", "block"}
        assert bench.workspace.decide("able", "tide", {"station": "Husum"}).verdict == "allow"
        assert bench.call("one").output == "raw"
        bench.workspace.blocks("able").create("notes", author="operator", content="one")
        assert bench.data("block", op="info", label="notes")["label"] == "notes"


def test_isolation_of_what_runs_as_a_process_and_of_modules(world: World) -> None:
    assert "confined by bubblewrap" in told(made(world, "subprocess"))
    said = told(made(world, "wasm"))
    assert "no network" in said
    assert "bytes of memory" in said


def refusals() -> Iterator[tuple[str, dict[str, Any], str, str]]:
    """Each tool with a call that is hidden from the agent: an operation of it, or all of it."""
    for name, (arguments, field, hidden) in CALLS.items():
        yield ("able", {**arguments, field: hidden}, name, hidden) if field else ("bare", arguments, name, name)


def test_every_kind_of_tool_is_refused_with_the_same_words(world: World) -> None:
    operations, others = set[str](), set[str]()
    for agent_id, arguments, name, hidden in refusals():
        outcome = world.call(name, agent=agent_id, **arguments)
        assert outcome.status is Status.DENIED
        assert hidden not in outcome.output
        words = outcome.output.replace(f"`{CALLS[name][1]}`", "FIELD").replace(
            f"`{CALLS[name][0].get(CALLS[name][1])}`", "SHOWN"
        )
        (operations if agent_id == "able" else others).add(words)
        others.add(world.call(name, agent="bare", **arguments).output)
    others.add(world.call("nothing", agent="bare").output)
    assert (len(operations), len(others)) == (1, 1), operations | others


async def test_every_kind_of_tool_is_called_and_refused_through_the_gateway_as_by_a_call(world: World) -> None:
    async with served(world.folder, world.workspace.key_folder, "able", **VARIABLES) as client:
        listed = [
            one.model_dump(mode="json", by_alias=True, exclude_none=True) for one in (await client.list_tools()).tools
        ]
        assert listed == world.workspace.view("able").tools("mcp")
        for name, (arguments, _, _) in CALLS.items():
            result = await client.call_tool(name, arguments)
            assert (not result.is_error, ANSWERS[name] in text_of(result.content)) == (True, True), result
        for agent_id, arguments, name, _ in refusals():
            if agent_id == "able":
                result = await client.call_tool(name, arguments)
                outcome = await world.call_async(name, **arguments)
                assert (result.is_error, text_of(result.content)) == (True, outcome.output)


def text_of(content: list[Any]) -> str:
    """What a model reads of a result."""
    return "".join(one.text for one in content if isinstance(one, TextContent))
