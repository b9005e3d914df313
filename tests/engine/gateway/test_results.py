"""What a client gets of the results of tools of MCP servers, in memory: the official client on the gateway's server."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator, Mapping
from typing import Any, Literal

import pytest
from mcp import Client
from mcp.shared.dispatcher import ProgressFnT
from mcp.types import CallToolResult
from pydantic import BaseModel

from gatewright import Gate, ToolRegistry
from gatewright.adapters.mcp_server import AgentServer, Caller
from gatewright.base.jsonvalue import JsonValue
from gatewright.gate import Session
from gatewright.policyfile import KnownTools, parse_policy
from gatewright.tools import ToolDefinition, ToolExecutionContext
from gatewright.tools.declaration import ResultType
from gatewright.tools.registry import tool
from gatewright.tools.server_tool import ServerTool, check_answer
from gatewright.tools.tool import Tool

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


async def called(
    answer: dict[str, Any], on_progress: ProgressFnT | None = None, output: dict[str, Any] | None = None, **more: Any
) -> CallToolResult:
    """What the client gets of a call whose server answers so. ``output``: its tool's output schema."""

    async def run(arguments: Mapping[str, JsonValue], context: ToolExecutionContext) -> object:
        if context.progress is not None:
            for amount in (0.0, 1.0, 2.0):
                context.progress(amount, 2.0, f"{amount:g} of 2")
        return check_answer(answer)

    definition = ToolDefinition("far", "Far away.", {"type": "object"}, output)
    return await answered(ServerTool(definition, origin="there", runner=run), on_progress, **more)


async def answered(
    one: Tool, on_progress: ProgressFnT | None = None, settings: str = "", **more: Any
) -> CallToolResult:
    """What the client gets of a call of the tool, which takes nothing."""
    registry = ToolRegistry()
    registry.register(one)
    text = POLICY.replace('"far"', f'"{one.name}"') + settings
    loaded = parse_policy(text, file="policy.toml", known=KnownTools(registry.facts()))
    assert loaded.policy is not None, loaded.problems
    agent = AgentServer(Gate(loaded.policy, registry), Caller("clerk", Session(agent_id="clerk")))
    async with Client(agent.server, **more) as client:
        return await client.call_tool(one.name, {}, progress_callback=on_progress)


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

    assert [block["text"] for block in blocks(result)] == ["short", "[structured result left out: 511 bytes]"]
    assert result.structured_content is None


async def test_what_a_server_says_of_its_failure_is_an_error_for_the_client() -> None:
    result = await called({"content": [{"type": "text", "text": "no such issue"}], "isError": True})

    assert result.is_error
    assert blocks(result) == [{"type": "text", "text": "Tool execution failed: no such issue"}]


class Found(BaseModel):
    """What was found."""

    total: int
    texts: list[str] = []


def finding(total: Any, *texts: str) -> Tool:
    @tool
    async def find() -> Found:
        """Find them."""
        return Found.model_construct(total=total, texts=list(texts))

    return find


SECRET = "ghp_" + "a1B2" * 9


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_structured_content_comes_with_what_fits_the_listed_schema(mode: Literal["auto", "legacy"]) -> None:
    result = await answered(finding(1, f"token {SECRET}"), mode=mode)

    assert result.structured_content == {"total": 1, "texts": ["token [REDACTED]"]}
    assert json.loads(blocks(result)[0]["text"]) == result.structured_content
    assert not result.is_error


@pytest.mark.parametrize("texts", [["x" * 5_000], ["tea"] * 500, ["x" * 400] * 40, ['\u00e9"' * 300]])
async def test_structured_content_that_is_too_long_is_cut_within_and_fits_its_schema(texts: list[str]) -> None:
    result = await answered(finding(1, *texts))  # the client holds it against the schema, and raises

    assert result.structured_content is not None
    assert len(json.dumps(result.structured_content, ensure_ascii=False).encode()) <= 250
    assert result.structured_content["total"] == 1
    assert not result.is_error


async def test_result_that_fits_no_more_once_it_is_cut_is_an_error_that_says_so() -> None:
    @tool(output_schema={"type": "object", "properties": {"key": {"type": "string", "minLength": 400}}})
    async def find() -> dict[str, str]:
        """Find it."""
        return {"key": "x" * 400}

    result = await answered(find)

    assert (result.is_error, result.structured_content) == (True, None)
    assert "longer than a result may be" in blocks(result)[-1]["text"]


@pytest.mark.parametrize("check", ["strict", "warn", "off"])
async def test_result_that_misfits_never_breaks_the_client_whatever_the_policy_says(check: str) -> None:
    result = await answered(finding("three"), settings=f'\n[tools.find]\noutput = "{check}"\n')

    assert result.is_error == (check != "off")
    assert ("three" in blocks(result)[0]["text"]) == (check != "strict")
    assert result.structured_content is None


@pytest.mark.parametrize("total", [3, "three"])
async def test_server_that_promises_a_schema_is_held_to_it_for_the_client(total: object) -> None:
    schema = {"type": "object", "properties": {"total": {"type": "integer"}}, "required": ["total"]}
    content = [{"type": "text", "text": "so many"}]
    result = await called({"content": content, "structuredContent": {"total": total}}, output=schema)

    assert blocks(result)[0] == content[0]
    assert result.is_error == (total != 3)
    assert result.structured_content == (None if result.is_error else {"total": 3})


PICTURES = {
    "image/png": b"\x89PNG\r\n\x1a\n\0\0",
    "image/jpeg": b"\xff\xd8\xff\xe0\0",
    "image/gif": b"GIF89a\x01\0",
    "image/webp": b"RIFF\x1a\0\0\0WEBPVP8L",
}
SOUNDS = {"audio/wav": b"RIFF\x1a\0\0\0WAVEfmt ", "audio/ogg": b"OggS\0\x02", "audio/mpeg": b"ID3\x04\0"}
FILES = {
    "application/pdf": b"%PDF-1.7\n\0\xff",
    "application/octet-stream": b"\0\x01\xfe",
    "application/zip": b"PK\x03\x04\0",
}


@pytest.mark.parametrize(("kind", "data"), [*PICTURES.items(), *SOUNDS.items(), *FILES.items()])
async def test_bytes_are_passed_on_as_the_image_sound_or_file_that_they_are(kind: str, data: bytes) -> None:
    @tool
    async def draw() -> bytes:
        """Draw it."""
        return data

    (text, block) = blocks(await answered(draw))

    assert "binary result of" in text["text"]
    held = block["resource"] if block["type"] == "resource" else block
    assert block["type"] == {"image": "image", "audio": "audio"}.get(kind.partition("/")[0], "resource")
    assert held["mimeType"] == kind
    assert base64.b64decode(held["blob" if "blob" in held else "data"]) == data


async def test_stream_of_bytes_is_passed_on_as_one_file_and_bytes_that_are_text_as_text() -> None:
    @tool
    async def draw() -> AsyncIterator[bytes]:
        """Draw it."""
        for piece in (b"\x89PNG", b"\r\n\x1a\n\0"):
            yield piece

    @tool
    async def say() -> bytes:
        """Say it."""
        return b"tea"

    assert blocks(await answered(draw))[1]["mimeType"] == "image/png"
    assert blocks(await answered(say)) == [{"type": "text", "text": "tea"}]
    assert draw.result_type is ResultType.STREAM
