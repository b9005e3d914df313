"""Row "gateway": a call through the gateway beside one through the SDK alone, and beside FastMCP's proxy."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from mcp import Client
from mcp.server.lowlevel import Server
from mcp.types import CallToolRequestParams, CallToolResult, ListToolsResult, PaginatedRequestParams, TextContent, Tool

from gatewright import Gate, ToolRegistry
from gatewright.adapters.mcp_server import AgentServer, Caller
from gatewright.base.jsonvalue import JsonValue
from gatewright.gate import AuditLog, Session
from gatewright.policyfile import KnownTools, parse_policy
from gatewright.tools import ToolDefinition, ToolExecutionContext
from gatewright.tools.server_tool import ServerTool, check_answer
from tests.bench.measure import Effort, figure, quiet, run, timer_cost
from tests.bench.row import Figure, Measured, Missing, Row, times_at_most, times_faster

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"op": {"type": "string", "enum": ["read", "write"]}, "path": {"type": "string"}},
    "required": ["op", "path"],
}
POLICY = """gatewright = 1

[agents.clerk]
tools = ["notes"]
approvals = { privileged = "allow" }

[[agents.clerk.tool_rules]]
tool_name = "notes"
rule_type = { AllowedOperations = ["read"] }
"""
ARGUMENTS = {"op": "read", "path": "a.md"}
SDK, TOOL, SERVER, PROXY = "SDK alone", "gateway, tool here", "gateway, tool of a server", "FastMCP proxy"
_ANSWER: dict[str, Any] = {"content": [{"type": "text", "text": "hello"}]}


def gateway(effort: Effort) -> Row:
    """One call at a time over the SDK's in-memory transport, with a log on disk."""
    share = effort.scaled(0.05)
    figures = run(lambda: _measured(share, peers=effort.peers))
    bars = (
        times_at_most("gateway, beside the SDK alone", figures[TOOL], figures[SDK], 2),
        times_faster("beside FastMCP's proxy", figures[SERVER], figures[PROXY], 1),
    )
    work = "tools/call, client and server in memory; the gateway checks, records and counts it"
    return Row("gateway", work, (TOOL, SERVER), figures, bars, SDK)


async def _measured(effort: Effort, *, peers: bool) -> Mapping[str, Measured]:
    with TemporaryDirectory(ignore_cleanup_errors=True) as name:
        async with AsyncExitStack() as stack:
            far = await stack.enter_async_context(Client(_server()))

            async def there(_: Mapping[str, JsonValue], __: ToolExecutionContext) -> object:
                result = await far.call_tool("notes", ARGUMENTS)
                return check_answer(result.model_dump(mode="json", by_alias=True, exclude_none=True))

            async def here(_: Mapping[str, JsonValue], __: ToolExecutionContext) -> object:
                return check_answer(_ANSWER)

            calls: dict[str, Callable[[], Awaitable[object]]] = {SDK: lambda: far.call_tool("notes", ARGUMENTS)}
            for what, runner in ((TOOL, here), (SERVER, there)):
                log = AuditLog(Path(name, what), Path(name, "keys"))
                stack.callback(log.close)
                client = await stack.enter_async_context(Client(_agent(runner, log).server))
                calls[what] = lambda client=client: client.call_tool("notes", ARGUMENTS)
            missing = await _add_proxy(stack, calls) if peers else Missing("not asked for")
            figures: dict[str, Measured] = {**await _timed(calls, effort)}
            return figures if missing is None else {**figures, PROXY: missing}


async def _add_proxy(stack: AsyncExitStack, calls: dict[str, Callable[[], Awaitable[object]]]) -> Missing | None:
    try:
        fastmcp: Any = import_module("fastmcp")
        create_proxy: Any = import_module("fastmcp.server").create_proxy
    except ImportError:
        return Missing()
    notes: Any = fastmcp.FastMCP("notes")
    notes.tool(_notes, name="notes")
    backing: Any = await stack.enter_async_context(fastmcp.Client(notes))
    client: Any = await stack.enter_async_context(fastmcp.Client(create_proxy(backing)))
    calls[PROXY] = lambda: client.call_tool("notes", ARGUMENTS)
    return None


async def _timed(calls: Mapping[str, Callable[[], Awaitable[object]]], effort: Effort) -> Mapping[str, Figure]:
    """In turns, so that a busy machine hits all alike."""
    samples: dict[str, list[int]] = {name: [] for name in calls}
    for call in calls.values():
        for _ in range(5):
            await call()
    for _ in range(0, effort.calls, effort.block):
        for name, call in calls.items():
            with quiet():
                for _ in range(effort.block):
                    began = time.perf_counter_ns()
                    await call()
                    samples[name].append(time.perf_counter_ns() - began)
            await asyncio.sleep(0)
    floor = timer_cost()
    return {name: figure(taken, floor) for name, taken in samples.items()}


async def _notes(op: str, path: str) -> str:
    return "hello"


def _server() -> Server[Any]:
    async def list_tools(_: Any, __: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=[Tool(name="notes", description="Notes.", input_schema=SCHEMA)])

    async def call_tool(_: Any, __: CallToolRequestParams) -> CallToolResult:
        return CallToolResult(content=[TextContent(type="text", text="hello")])

    return Server("far", on_list_tools=list_tools, on_call_tool=call_tool)


def _agent(runner: Any, log: AuditLog) -> AgentServer:
    registry = ToolRegistry()
    registry.register(ServerTool(ToolDefinition("notes", "Notes.", SCHEMA), origin="far", runner=runner))
    loaded = parse_policy(POLICY, file="policy.toml", known=KnownTools(registry.facts()))
    assert loaded.policy is not None, loaded.problems
    return AgentServer(Gate(loaded.policy, registry, audit=log), Caller("clerk", Session(agent_id="clerk")))
