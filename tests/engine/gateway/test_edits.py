"""Edits of the policy file while clients are connected."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import Any

import pytest
from mcp import Client
from mcp.types import ToolListChangedNotification

from gatewright.adapters.mcp_server import AgentServer, Caller
from gatewright.gate import Session
from gatewright.policy.verdict import SafetyTier
from gatewright.tools import ResultType, ToolRegistry, tool
from gatewright.workspace import Workspace
from tests.engine.gateway.conftest import Listen, Place, Serve
from tests.engine.gateway.test_http import READ, connected
from tests.support.clock import ManualClock
from tests.support.patience import patient

HOUR_S = 3600.0

ON = 'AllowedOperations = ["read", "list", "append"]'
LESS = 'AllowedOperations = ["read", "list"]'
HOST = """
[[catalogs]]
id = "station"
type = "host"
manifest = "tools.json"
trusted = true
"""


@tool(safety_tier=SafetyTier.READ_ONLY, result_type=ResultType.STRING)
async def tide(station: str) -> str:
    """Give the next high water."""
    return f"2.4 m at {station}"


class Ear:
    """Hears what a client is told of its tools."""

    def __init__(self) -> None:
        self.times = 0
        self.news = asyncio.Event()

    async def __call__(self, message: Any) -> None:
        if isinstance(message, ToolListChangedNotification):
            self.times += 1
            self.news.set()


def operations(tools: Any) -> list[str]:
    return next(tool for tool in tools.tools if tool.name == "file").input_schema["properties"]["op"]["enum"]


async def test_those_whose_tools_change_are_told_and_keep_their_connection(place: Place, listen: Listen) -> None:
    gate, ears = listen(), [Ear(), Ear(), Ear()]
    async with AsyncExitStack() as stack:
        clients: list[Client] = []
        for agent, ear in zip(("reader", "reader", "writer"), ears, strict=True):
            made = connected(gate, place.token(agent), "legacy", message_handler=ear)
            clients.append(await stack.enter_async_context(made))
        assert "append" in operations(await clients[0].list_tools())
        place.edit(ON, LESS)
        async with patient():
            await ears[0].news.wait()
            await ears[1].news.wait()
        listed = [operations(await client.list_tools(cache_mode="bypass")) for client in clients]
        denied = await clients[0].call_tool("file", {"op": "append", "path": "a.md", "content": "x"})
        allowed = await clients[1].call_tool("file", READ)

    assert listed[0] == listed[1] == ["list", "read"]
    assert "append" in listed[2]
    assert (denied.is_error, allowed.is_error) == (True, False)
    assert [ear.times for ear in ears] == [1, 1, 0]


async def test_a_client_of_the_new_protocol_hears_it_where_it_listens(place: Place, listen: Listen) -> None:
    gate = listen()
    async with connected(gate, place.token("reader")) as client, client.listen(tools_list_changed=True) as changes:
        place.edit(ON, LESS)
        async with patient():
            await anext(changes)
        assert operations(await client.list_tools()) == ["list", "read"]


async def test_a_policy_with_errors_raises_the_alarm_and_the_last_good_one_stays(place: Place, listen: Listen) -> None:
    gate, ear = listen(), Ear()
    async with connected(gate, place.token("reader"), "legacy", message_handler=ear) as client:
        good = place.policy.read_text("utf-8")
        place.edit(ON, 'AllowedOperations = ["read", "lst"]')
        gate.told("ALARM")
        allowed = await client.call_tool("file", READ)
        still = operations(await client.list_tools(cache_mode="bypass"))
        place.policy.write_text(good, "utf-8")
        gate.told("took over")
        await client.call_tool("file", READ)
    gate.end()

    assert not allowed.is_error
    assert "append" in still
    assert ear.times == 0
    assert any("lst" in line for line in gate.lines)
    assert [row["body"]["refused"] for row in place.rows("PolicyChanged")] == [True]


async def test_an_agent_that_is_taken_out_sees_and_calls_nothing_any_more(place: Place, listen: Listen) -> None:
    gate, ear = listen(), Ear()
    async with connected(gate, place.token("writer"), "legacy", message_handler=ear) as client:
        place.edit("[agents.writer]", "[agents.other]")
        async with patient():
            await ear.news.wait()
        listed = (await client.list_tools(cache_mode="bypass")).tools
        denied = await client.call_tool("file", READ)

    assert listed == []
    assert denied.is_error


@pytest.mark.parametrize("method", ["notifications/tools/list_changed"])
def test_a_client_on_standard_input_and_output_is_told_too(place: Place, serve: Serve, method: str) -> None:
    served = serve()
    served.start()
    before = served.ask(1, "tools/list")
    place.edit(ON, LESS)
    while served.receive().get("method") != method:
        pass
    after = served.ask(2, "tools/list")

    assert before["result"] != after["result"]
    assert served.ask(3, "tools/call", name="file", arguments=READ)["result"]["isError"] is False


async def test_a_client_is_told_of_a_tool_that_comes_late_and_of_its_end(place: Place) -> None:
    text = place.policy.read_text("utf-8").replace('tools = ["file"]', 'tools = ["file", "tide"]')
    place.policy.write_text(text + HOST, "utf-8")
    registry = ToolRegistry()
    registry.register(tide)
    registry.write_manifest(place.folder / "tools.json")
    with Workspace.open(place.folder) as workspace:
        agent, ear = AgentServer(workspace.gate, Caller("reader", Session(agent_id="reader"))), Ear()
        async with Client(agent.server, mode="legacy", message_handler=ear) as client:
            withdraw = workspace.tools.add(tide)
            await agent.refresh()
            assert ear.times == 0  # it is what was listed as its definition
            assert (await client.call_tool("tide", {"station": "Husum"})).is_error is False

            withdraw()
            await agent.refresh()
            async with patient():
                await ear.news.wait()
            listed = await client.list_tools(cache_mode="bypass")
            refused = await client.call_tool("tide", {"station": "Husum"})

            ear.news.clear()
            workspace.tools.add(tide)
            await agent.refresh()
            async with patient():
                await ear.news.wait()
            again = await client.list_tools(cache_mode="bypass")

    assert [tool.name for tool in listed.tools] == ["file"]
    assert refused.is_error
    assert [tool.name for tool in again.tools] == ["file", "tide"]
    assert ear.times == 2


async def test_a_client_is_told_when_the_times_of_a_rule_begin_and_end(place: Place) -> None:
    rule = """
[[policy.rules]]
name = "no files at night"
effect = "deny"
tools = ["file"]
times = { hours = "22:00-06:00", zone = "UTC" }
"""
    place.policy.write_text(place.policy.read_text("utf-8") + rule, "utf-8")
    clock, listed = ManualClock(20.5 * HOUR_S), list[list[str]]()
    with Workspace.open(place.folder, clock=clock) as workspace:
        agent, ear = AgentServer(workspace.gate, Caller("reader", Session(agent_id="reader"))), Ear()
        async with Client(agent.server, mode="legacy", message_handler=ear) as client:
            for hours in (1, 1, 7, 1):  # half past nine, half past ten, half past five, half past six
                clock.advance(hours * HOUR_S)
                ear.news.clear()
                before = ear.times
                await agent.refresh()
                tools = (await client.list_tools(cache_mode="bypass")).tools
                listed.append([tool.name for tool in tools])
                if len(listed) > 1 and listed[-1] != listed[-2]:
                    async with patient():
                        await ear.news.wait()
                else:
                    assert ear.times == before
    assert listed == [["file"], [], [], ["file"]]
    assert ear.times == 2
