"""``gatewright serve --agent A -- COMMAND``: one real server, the policy made for it, and what an edit of that does."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from gatewright.cli.main import main
from tests.engine.gateway.conftest import Place
from tests.engine.gateway.test_stdio import text
from tests.support.real_servers import from_npm, from_pypi

TIME = {"timezone": "UTC"}


def client(folder: Path, *words: str) -> Client:
    place = Place(folder)
    arguments = place.arguments("serve", *words)
    parameters = StdioServerParameters(command=sys.executable, args=arguments, env=place.environment, cwd=folder)
    return Client(stdio_client(parameters))


async def test_one_line_puts_the_gate_before_a_server(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--agent", "clerk", "--", *from_pypi("mcp-server-time"))
    async with client(tmp_path, *words) as connected:
        first = [
            tool.model_dump(mode="json", by_alias=True, exclude_none=True)
            for tool in (await connected.list_tools()).tools
        ]
        answered = await connected.call_tool("get_current_time", TIME)
    main(["preview", str(tmp_path), "--agent", "clerk", "--format", "mcp", "--json"])
    shown = json.loads(capsys.readouterr().out)
    place = Place(tmp_path)
    place.edit(', "convert_time"', "")
    async with client(tmp_path, *words) as connected:
        second = [tool.name for tool in (await connected.list_tools()).tools]
        refused = await connected.call_tool("convert_time", {})

    assert first == shown
    assert [tool["name"] for tool in first] == ["convert_time", "get_current_time"]
    assert "datetime" in text(answered)
    assert second == ["get_current_time"]
    assert refused.is_error
    assert len(place.rows("ToolInvoked")) == 2


async def test_images_of_a_real_server_pass_through(tmp_path: Path) -> None:
    async with client(tmp_path, "--agent", "clerk", "--", *from_npm("server-everything")) as connected:
        result = await connected.call_tool("get-tiny-image", {})

    image = next(block for block in result.content if block.type == "image")
    assert image.mime_type == "image/png"
    assert image.data.startswith("iVBORw0KGgo")
    assert "REDACTED" not in result.model_dump_json()


def test_a_server_that_does_not_answer_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    status = main(["serve", "--agent", "clerk", "--", sys.executable, "-c", "raise SystemExit('no licence')"])

    assert status == 2
    assert "no licence" in capsys.readouterr().err
    assert not (tmp_path / "policy.toml").exists()
    assert not (tmp_path / "catalogs").exists()


def test_another_policy_is_not_overwritten(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    before = place.policy.read_text("utf-8")
    status = main(["serve", str(place.folder), "--agent", "reader", "--", "mcp-server-time"])

    assert status == 2
    assert "is another policy" in capsys.readouterr().err
    assert place.policy.read_text("utf-8") == before


def test_serve_needs_a_policy_or_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--agent", "clerk"]) == 2
    assert "a policy, or `-- COMMAND`" in capsys.readouterr().err
    assert main(["serve", "--agent", "clerk", "--"]) == 2
