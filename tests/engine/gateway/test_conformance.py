"""The official conformance suite of the protocol, and the Inspector, on the gateway."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from gatewright import Gate, ToolRegistry
from gatewright.adapters.mcp_http import HttpGateway, TokenDoor, address_of, listen, security_of, serve_http
from gatewright.adapters.mcp_server import AgentServer, Caller
from gatewright.base.jsonvalue import JsonValue
from gatewright.cli.main import main
from gatewright.gate import Session
from gatewright.policyfile import KnownTools, parse_policy
from gatewright.tools import ToolDefinition, ToolExecutionContext
from gatewright.tools.server_tool import ServerTool, check_answer
from tests.engine.gateway.conftest import INITIALIZE, Listen, Place
from tests.engine.gateway.test_http import JSON
from tests.support.real_servers import FROM_NPM, from_npm

POLICY = "gatewright = 1\n\n[agents.tested]\napprovals = { privileged = 'allow' }\n"
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
SOUND = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="
IMAGE = {"type": "image", "data": PIXEL, "mimeType": "image/png"}
HELD = {"type": "resource", "resource": {"uri": "test://held", "mimeType": "text/plain", "text": "This is held."}}
SESSION = "mcp-session-id"
ANSWERS: Mapping[str, dict[str, Any]] = {
    "test_simple_text": {"content": [{"type": "text", "text": "This is a simple text response for testing."}]},
    "test_image_content": {"content": [IMAGE]},
    "test_audio_content": {"content": [{"type": "audio", "data": SOUND, "mimeType": "audio/wav"}]},
    "test_embedded_resource": {"content": [HELD]},
    "test_multiple_content_types": {"content": [{"type": "text", "text": "Several:"}, IMAGE, HELD]},
    "test_error_handling": {"content": [{"type": "text", "text": "It fails, as it should"}], "isError": True},
    "json_schema_2020_12_tool": {"content": []},
    "test_tool_with_progress": {"content": [{"type": "text", "text": "done"}]},
}
SCHEMA_2020: dict[str, object] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {"address": {"type": "object", "properties": {"street": {"type": "string"}, "city": {"type": "string"}}}},
    "properties": {"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"}},
    "additionalProperties": False,
}
APPLY = (
    "server-initialize",
    "ping",
    "tools-list",
    "tools-call-simple-text",
    "tools-call-image",
    "tools-call-audio",
    "tools-call-embedded-resource",
    "tools-call-mixed-content",
    "tools-call-error",
    "tools-call-with-progress",
    "json-schema-2020-12",
    "server-sse-multiple-streams",
    "dns-rebinding-protection",
)


def agent() -> AgentServer:
    """An agent whose tools answer as the suite wants, as if a server had sent that."""
    registry = ToolRegistry()
    for name, answer in ANSWERS.items():

        async def run(_: Mapping[str, JsonValue], context: ToolExecutionContext, sent: Any = answer) -> object:
            if context.progress is not None:
                for amount in (0.0, 50.0, 100.0):
                    context.progress(amount, 100.0, None)
            return check_answer(sent)

        schema: dict[str, object] = SCHEMA_2020 if "2020" in name else {"type": "object"}
        definition = ToolDefinition(name, "A tool of the suite.", schema)
        registry.register(ServerTool(definition, origin="suite", runner=run))
    loaded = parse_policy(POLICY, file="policy.toml", known=KnownTools(registry.facts()))
    assert loaded.policy is not None, loaded.problems
    return AgentServer(Gate(loaded.policy, registry), Caller("tested", Session(agent_id="tested")))


class Authorized:
    """The gateway for a client that cannot send a token."""

    def __init__(self, gateway: HttpGateway) -> None:
        self._gateway = gateway

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await self._gateway({**scope, "headers": [*scope["headers"], (b"authorization", b"Bearer one")]}, receive, send)


@asynccontextmanager
async def served() -> AsyncGenerator[str]:
    """The URL of the gateway while it serves that agent."""
    door, ready = TokenDoor(agent(), security_of(["127.0.0.1", "localhost"])), asyncio.Event()
    owner = asyncio.create_task(door.run(ready.set))
    await ready.wait()

    async def find(_: str) -> TokenDoor:
        return door

    listening, stopped = listen("127.0.0.1", 0), asyncio.get_running_loop().create_future()
    serving = asyncio.create_task(serve_http(Authorized(HttpGateway(find)), listening, stopped))
    try:
        yield address_of(listening).replace("127.0.0.1", "localhost")
    finally:
        door.close()
        stopped.set_result(None)
        await asyncio.gather(owner, serving)


async def test_the_scenarios_for_a_server_of_tools_pass(tmp_path: Path) -> None:
    async with served() as url:
        said = await asyncio.gather(*(_passes(name, url, tmp_path) for name in APPLY))

    failed = {name: words for name, (status, words) in zip(APPLY, said, strict=True) if status != 0}
    assert not failed, "\n".join(failed.values())


async def _passes(scenario: str, url: str, folder: Path) -> tuple[int | None, str]:
    words = from_npm("conformance", "server", "--url", url, "--scenario", scenario)
    process = await asyncio.create_subprocess_exec(
        *words, cwd=folder, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    said, _ = await process.communicate()
    return process.returncode, said.decode()


async def test_a_stream_that_broke_off_goes_on_where_it_was_and_only_in_its_session() -> None:
    newest = {**INITIALIZE, "params": {**INITIALIZE["params"], "protocolVersion": "2025-11-25"}}
    async with served() as url, httpx2.AsyncClient(timeout=None) as http:

        async def session() -> dict[str, str]:
            headers = {**JSON, "mcp-protocol-version": "2025-11-25"}
            return {**headers, SESSION: (await http.post(url, headers=headers, json=newest)).headers[SESSION]}

        async def until(part: str, method: str, headers: dict[str, str], tool: str = "") -> str:
            """The first line of an answer that holds ``part``; then the client breaks it off."""
            request = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": tool}} if tool else None
            async with http.stream(method, url, headers=headers, json=request) as stream:
                async for line in stream.aiter_lines():
                    if part in line:
                        return line
            return ""

        one, other = await session(), await session()
        first = await until("id:", "POST", one, "test_simple_text")
        assert "It fails" in await until("result", "POST", other, "test_error_handling")
        last = {"last-event-id": first.removeprefix("id:").strip()}
        assert "a simple text" in await until("result", "GET", {**one, **last})
        assert "It fails" in await until("result", "GET", {**other, **last})


@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_the_inspector_lists_what_the_preview_shows_and_calls_it(
    place: Place, listen: Listen, transport: str, capsys: pytest.CaptureFixture[str]
) -> None:
    target = [sys.executable, *place.arguments("serve", str(place.policy), "--agent", "reader")]
    if transport == "http":
        token = place.token("reader")
        target = [listen().url, "--transport", "http", "--header", f"Authorization: Bearer {token}"]

    def asked(*words: str) -> dict[str, Any]:
        line = from_npm("inspector-cli", *target, "--method", *words, file="build/index.js")
        folder = FROM_NPM / "inspector-cli" / "build"  # from elsewhere it does not find its own version
        done = subprocess.run(line, capture_output=True, check=False, cwd=folder, env=place.environment)
        assert done.returncode == 0, done.stderr.decode()
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer

    main(["preview", str(place.policy), "--agent", "reader", "--format", "mcp", "--json"])
    assert asked("tools/list")["tools"] == json.loads(capsys.readouterr().out)
    call = ["tools/call", "--tool-name", "file"]
    done = asked(*call, "--tool-arg", "op=read", "--tool-arg", "path=a.md")
    assert not done.get("isError")
    assert "hello" in done["content"][0]["text"]
    refused = asked(*call, "--tool-arg", "op=delete", "--tool-arg", "path=a.md")
    assert refused["isError"]
    assert "delete" not in json.dumps(refused)
    assert [row["kind"] for row in place.rows() if row["kind"].startswith("Tool")][-1] == "ToolDenied"
