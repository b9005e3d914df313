"""What a client gets of the results of tools of MCP servers, in memory: the official client on the gateway's server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import pytest
from mcp import Client
from mcp.shared.dispatcher import ProgressFnT
from mcp.types import CallToolResult

from gatewright import Gate, ToolRegistry
from gatewright.adapters.mcp_server import AgentServer, Caller
from gatewright.base.jsonvalue import JsonValue
from gatewright.gate import Session
from gatewright.policyfile import KnownTools, parse_policy
from gatewright.tools import ToolDefinition, ToolExecutionContext
from gatewright.tools.server_tool import ServerTool, checked_answer

POLICY = """gatewright = 1

[defaults]
max_output_bytes = 200

[agents.clerk]
tools = ["far"]
approvals = { privileged = "allow" }
"""
IMAGE = {"type": "image", "data": "aGVsbG8=", "mimeType": "image/png"}
SOUND = {"type": "audio", "data": "aGVsbG8=", "mimeType": "audio/wav"}
LINK = {"type": "resource_link", "uri": "file:///notes", "name": "notes"}
HELD = {"type": "resource", "resource": {"uri": "mem:1", "text": "embedded"}}


async def called(answer: dict[str, Any], on_progress: ProgressFnT | None = None, **more: Any) -> CallToolResult:
    """What the client gets of a call whose server answers so."""

    async def run(arguments: Mapping[str, JsonValue], context: ToolExecutionContext) -> object:
        if context.progress is not None:
            for amount in (0.0, 1.0, 2.0):
                context.progress(amount, 2.0, f"{amount:g} of 2")
        return checked_answer(answer)

    registry = ToolRegistry()
    registry.register(ServerTool(ToolDefinition("far", "Far away.", {"type": "object"}), origin="there", runner=run))
    loaded = parse_policy(POLICY, file="policy.toml", known=KnownTools(registry.facts()))
    assert loaded.policy is not None, loaded.problems
    agent = AgentServer(Gate(loaded.policy, registry), Caller("clerk", Session(agent_id="clerk")))
    async with Client(agent.server, **more) as client:
        return await client.call_tool("far", {}, progress_callback=on_progress)


def blocks(result: CallToolResult) -> list[dict[str, Any]]:
    return [block.model_dump(mode="json", by_alias=True, exclude_none=True) for block in result.content]


async def test_what_a_tool_tells_of_its_progress_comes_before_its_answer() -> None:
    heard: list[tuple[float, float | None, str | None]] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, total, message))

    await called({"content": []}, hear, mode="legacy")

    assert heard == [(0.0, 2.0, "0 of 2"), (1.0, 2.0, "1 of 2"), (2.0, 2.0, "2 of 2")]


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_blocks_and_structured_content_pass_through_whole(mode: Literal["auto", "legacy"]) -> None:
    content = [{"type": "text", "text": "one"}, IMAGE, SOUND, LINK, HELD, {"type": "text", "text": "two"}]
    result = await called({"content": content, "structuredContent": {"total": 3}}, mode=mode)

    assert blocks(result) == content
    assert result.structured_content == {"total": 3}
    assert not result.is_error


async def test_bytes_of_images_and_files_stay_whatever_they_look_like() -> None:
    pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    held = {"type": "resource", "resource": {"uri": "mem:2", "blob": pixel}}
    result = await called({"content": [IMAGE | {"data": pixel}, held]})

    assert blocks(result) == [IMAGE | {"data": pixel}, held]


async def test_secrets_are_taken_out_of_blocks_and_structured_content() -> None:
    secret = "ghp_" + "a1B2" * 9
    answer = {"content": [{"type": "text", "text": f"token {secret}"}], "structuredContent": {"token": secret}}
    result = await called(answer)

    assert secret not in result.model_dump_json()
    assert "[REDACTED]" in result.model_dump_json()


async def test_texts_that_are_too_long_are_cut_and_what_is_no_text_stays() -> None:
    long = {"type": "text", "text": "x" * 500}
    result = await called({"content": [long, IMAGE], "structuredContent": {"text": "x" * 500}})

    (text, image) = blocks(result)
    assert "output truncated" in text["text"]
    assert len(text["text"]) < 300
    assert image == IMAGE
    assert result.structured_content is None


async def test_structured_content_that_is_too_long_is_left_out_with_a_word() -> None:
    result = await called({"content": [{"type": "text", "text": "short"}], "structuredContent": {"text": "x" * 500}})

    assert [block["text"] for block in blocks(result)] == ["short", "[structured result left out: 512 bytes]"]
    assert result.structured_content is None


async def test_what_a_server_says_of_its_failure_is_an_error_for_the_client() -> None:
    result = await called({"content": [{"type": "text", "text": "no such issue"}], "isError": True})

    assert result.is_error
    assert blocks(result) == [{"type": "text", "text": "Tool execution failed: no such issue"}]
