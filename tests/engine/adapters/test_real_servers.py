"""The client with servers as people run them, from PyPI and npm."""

from __future__ import annotations

import os
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from gatewright.adapters.mcp_client import McpServer
from gatewright.adapters.server_process import Command
from gatewright.base.jsonvalue import JsonValue
from tests.support.real_servers import from_npm, from_pypi

Start = Callable[[tuple[str, ...]], McpServer]


@pytest.fixture
async def start(tmp_path: Path) -> AsyncIterator[Start]:
    async with AsyncExitStack() as stack:

        def make(words: tuple[str, ...]) -> McpServer:
            environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
            server = McpServer(lambda: Command(words[0], words[1:], environment))
            stack.push_async_callback(server.stop)
            return server

        yield make


@pytest.mark.parametrize(
    ("words", "tool", "arguments", "wanted"),
    [
        (from_pypi("mcp-server-time"), "get_current_time", {"timezone": "Europe/Oslo"}, "Europe/Oslo"),
        (from_pypi("mcp-server-fetch"), "fetch", {"url": "http://127.0.0.1:9/"}, "127.0.0.1:9"),
        (from_npm("server-everything"), "echo", {"message": "hello"}, "Echo: hello"),
        (from_npm("server-memory"), "read_graph", {}, "entities"),
    ],
)
async def test_a_server_lists_its_tools_and_answers_a_call(
    start: Start, words: tuple[str, ...], tool: str, arguments: dict[str, JsonValue], wanted: str
) -> None:
    server = start(words)
    listed = [row["name"] for row in (await server.list()).tools if isinstance(row, dict)]
    assert tool in listed
    assert wanted in str(await server.call(tool, arguments))


async def test_the_git_server_works_on_the_repository_that_it_is_given(start: Start, tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", "-b", "trunk", str(tmp_path)], check=True)
    server = start(from_pypi("mcp-server-git", "--repository", str(tmp_path)))
    assert "On branch trunk" in str(await server.call("git_status", {"repo_path": str(tmp_path)}))


async def test_the_filesystem_server_reads_below_the_folder_that_it_is_given(start: Start, tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("remember the milk")
    server = start(from_npm("server-filesystem", str(tmp_path)))
    answer = await server.call("read_text_file", {"path": str(tmp_path / "note.txt")})
    assert "remember the milk" in str(answer["content"])
