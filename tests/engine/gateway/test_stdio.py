"""``gatewright serve`` on standard input and output, as the official client and as clients that behave badly see it."""

from __future__ import annotations

import json
import os
import signal
import sys
from contextlib import suppress
from select import select
from threading import Thread
from typing import IO, Any, Literal

import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.types import CallToolResult, Implementation, TextContent

from gatewright.cli.main import main
from gatewright.tools.pin import Listing, Pin, accept, write_pin
from tests.engine.gateway.conftest import INITIALIZE, Place, Serve, Served
from tests.support.git_tools import BRANCH, LOG
from tests.support.patience import patient, pause_until

READ = {"op": "read", "path": "a.md"}


def client(place: Place, agent: str, mode: Literal["auto", "legacy"] = "auto") -> Client:
    words = place.arguments("serve", str(place.policy), "--agent", agent)
    parameters = StdioServerParameters(command=sys.executable, args=words, env=place.environment)
    return Client(stdio_client(parameters), mode=mode, client_info=Implementation(name="tester", version="1.2"))


def text(result: CallToolResult) -> str:
    (block,) = result.content
    assert isinstance(block, TextContent)
    return block.text


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_client_gets_exactly_what_the_preview_shows(
    place: Place, mode: Literal["auto", "legacy"], capsys: pytest.CaptureFixture[str]
) -> None:
    async with client(place, "writer", mode) as connected:
        listed = [
            tool.model_dump(mode="json", by_alias=True, exclude_none=True)
            for tool in (await connected.list_tools()).tools
        ]
        main(["preview", str(place.policy), "--agent", "writer", "--format", "mcp", "--json"])
        shown = json.loads(capsys.readouterr().out)
        capabilities, instructions = connected.server_capabilities, connected.instructions

    assert [tool["name"] for tool in listed] == ["block", "file"]
    assert listed == shown
    assert capabilities.tools is not None
    assert capabilities.resources is None
    assert instructions is not None
    assert instructions.startswith("## Tool Usage Rules")


async def test_calls_pass_the_gate_and_are_recorded_with_the_client(place: Place) -> None:
    async with client(place, "reader") as connected:
        read = await connected.call_tool("file", READ)
        appended = await connected.call_tool("file", {"op": "append", "path": "a.md", "content": "more\n"})

    assert not read.is_error
    assert json.loads(text(read))["data"]["content"] == "hello\n"
    assert not appended.is_error
    assert (place.folder / "docs" / "a.md").read_text("utf-8") == "hello\n"  # in the block, until it is saved
    rows = place.rows("ToolInvoked")
    assert [(row["agent"], row["operation"], row["body"]["client"]) for row in rows] == [
        ("reader", "read", "tester 1.2"),
        ("reader", "append", "tester 1.2"),
    ]
    assert len(place.rows("ToolCompleted")) == 2


async def test_what_is_hidden_is_denied_in_the_words_for_what_is_unknown(place: Place) -> None:
    async with client(place, "reader") as connected:
        hidden = await connected.call_tool("block", {"op": "info", "label": "x"})
        unknown = await connected.call_tool("nonsense", {})
        operations = [await connected.call_tool("file", {"op": op, "path": "a.md"}) for op in ("delete", "nonsense")]
        listed = json.dumps([tool.model_dump(mode="json") for tool in (await connected.list_tools()).tools])

    assert hidden.is_error
    assert unknown.is_error
    assert text(hidden) == text(unknown)
    assert text(hidden).startswith("Tool execution failed: ")
    assert all(result.is_error for result in operations)
    assert text(operations[0]) == text(operations[1])
    assert "delete" not in listed + text(operations[0])
    assert len(place.rows("ToolDenied")) == 4


async def test_limits_count_over_all_calls_of_the_connection(place: Place) -> None:
    async with client(place, "reader") as connected:
        results = [await connected.call_tool("file", READ) for _ in range(4)]

    assert [result.is_error for result in results] == [False, False, False, True]
    (denied,) = place.rows("ToolDenied")
    assert denied["body"]["code"] == "max-calls"


async def test_a_call_that_asks_is_refused_at_once_where_nobody_is_there(place: Place) -> None:
    async with client(place, "writer") as connected, patient():  # the wait for an answer would be longer
        result = await connected.call_tool("file", {"op": "append", "path": "a.md", "content": "x"})

    assert result.is_error
    assert "approval of an operator" in text(result)


async def test_a_large_result_is_cut(place: Place) -> None:
    (place.folder / "docs" / "long.md").write_text("x" * 100_000, "utf-8")
    async with client(place, "reader") as connected:
        result = await connected.call_tool("file", {"op": "read", "path": "long.md"})

    assert len(text(result)) < 17_000
    assert "output truncated" in text(result)


def test_messages_that_are_none_are_refused_and_the_next_is_served(serve: Serve) -> None:
    served = serve()
    before: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "file"}}
    served.send(b"this is no message\n", b"\n", b"[]\n", b'{"jsonrpc": "2.0"}\n', b"\xff\xfe\x00\n", before)
    refused = [served.receive() for _ in range(4)]
    early = served.answer(1)
    served.send(b"x" * 6_000_000 + b"\n")
    large = served.receive()
    served.start()
    called = served.ask(2, "tools/call", name="file", arguments=READ)
    status, errors = served.end()

    assert [one["error"]["code"] for one in refused] == [-32700] * 4
    assert "error" in early
    assert "5,242,880 bytes" in large["error"]["message"]
    assert called["result"]["isError"] is False
    assert status == 0
    assert "Traceback" not in errors
    assert "refused a message of the client" in errors


def test_nothing_but_messages_comes_out_of_standard_output(serve: Serve) -> None:
    served = serve()
    served.start()
    names = [f"nonsense-{number}" for number in range(5)]
    answers = [served.ask(name, "tools/call", name=name, arguments={}) for name in names]
    status, _ = served.end()

    assert status == 0
    assert all(answer["result"]["isError"] for answer in answers)
    assert all(message["jsonrpc"] == "2.0" for message in served.seen)


def test_a_flood_is_bounded_and_every_request_gets_its_answer(serve: Serve, place: Place) -> None:
    served = serve("writer")
    served.start()
    count = 2_000
    call: dict[str, Any] = {"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "x", "arguments": {}}}
    calls = [call | {"id": number} for number in range(count)]
    sender = Thread(target=served.send, args=calls)  # it is held up until its answers are read
    sender.start()
    answers = {message["id"]: message for message in (served.receive() for _ in range(count))}
    sender.join()
    after = served.ask("after", "tools/call", name="file", arguments=READ)

    assert len(answers) == count
    refused = [one for one in answers.values() if "error" in one]
    assert all("too many requests" in one["error"]["message"] for one in refused)
    assert after["result"]["isError"] is False
    assert served.end()[0] == 0
    assert len(place.rows("ToolDenied")) == count - len(refused)


def test_a_client_that_closes_its_end_still_gets_the_answers_under_way(serve: Serve) -> None:
    served = serve()
    served.start()
    call = {"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": {"name": "file", "arguments": READ}}
    served.send(call)
    assert served.process.stdin is not None
    served.process.stdin.close()

    assert served.answer(9)["result"]["isError"] is False
    assert served.process.wait() == 0


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_a_signal_ends_it_with_the_log_closed(serve: Serve, place: Place, number: int, status: int) -> None:
    served = serve()
    served.start()
    served.ask(1, "tools/call", name="file", arguments=READ)
    served.process.send_signal(number)

    assert served.process.wait() == status
    assert not list((place.folder / ".gatewright").glob("*-wal"))
    assert len(place.rows("ToolCompleted")) == 1


def is_full(pipe: IO[bytes] | None) -> bool:
    """Nothing more goes into a pipe that is read here."""
    assert pipe is not None
    end = os.open(f"/proc/self/fd/{pipe.fileno()}", os.O_WRONLY | os.O_NONBLOCK)
    try:
        return not select([], [end], [], 0)[1]
    finally:
        os.close(end)


def test_a_signal_ends_it_while_a_client_reads_nothing(serve: Serve, place: Place) -> None:
    served = serve()
    served.start()
    call: dict[str, Any] = {"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "x", "arguments": {}}}

    def flood() -> None:
        with suppress(BrokenPipeError):
            served.send(*(call | {"id": number} for number in range(5_000)))

    sender = Thread(target=flood, daemon=True)
    sender.start()
    pause_until(lambda: is_full(served.process.stdout), "answers that nobody reads to hold it up")
    assert sender.is_alive()  # what it sends is not taken any more
    served.process.send_signal(signal.SIGTERM)

    assert served.process.wait() == 0
    sender.join()
    assert served.process.stderr is not None
    assert b"Traceback" not in served.process.stderr.read()
    assert place.rows("ToolDenied")


def test_limits_outlive_the_process_and_another_client_has_a_session_of_its_own(serve: Serve, place: Place) -> None:
    def read(served: Served, number: int) -> bool:
        return served.ask(number, "tools/call", name="file", arguments=READ)["result"]["isError"]

    one = serve()
    one.start()
    assert [read(one, number) for number in range(2)] == [False, False]
    other = serve()
    other.start()
    assert [read(other, number) for number in range(4)] == [False, False, False, True]
    assert one.end()[0] == 0
    again, named = serve(), serve("reader", "--session", "today")
    again.start()
    named.start()
    assert [read(again, number) for number in range(2)] == [False, True]
    assert not read(named, 0)

    assert {row["session"] for row in place.rows("ToolInvoked")} == {"stdio", "stdio-2", "today"}


def test_it_refuses_to_start_where_the_log_has_lost_its_key(serve: Serve, place: Place) -> None:
    served = serve()
    served.start()
    served.ask(1, "tools/call", name="file", arguments=READ)
    served.end()
    for key in place.keys.glob("*.key"):
        key.unlink()
    status, errors = serve().end()

    assert status == 2
    assert "key" in errors


def test_it_does_not_start_with_a_policy_that_has_errors(serve: Serve, place: Place) -> None:
    place.edit("MaxCalls = 3", "MaxCall = 3")
    status, errors = serve().end()

    assert status == 1
    assert "MaxCall" in errors


def test_a_client_is_told_what_a_server_says_of_its_tools(place: Place, serve: Serve) -> None:
    place.edit('tools = ["file"]', 'tools = ["file", "git_log"]')
    place.edit(
        "[[sources]]",
        '[[catalogs]]\nid = "git"\ntype = "mcp"\ncommand = "mcp-server-git"\nconfine = "none"\n\n[[sources]]',
    )
    (place.folder / "catalogs").mkdir()
    pin = accept(Pin(Listing.of([LOG, BRANCH], instructions="Look at the log first.")), None, instructions=True)
    (place.folder / "catalogs" / "git.json").write_bytes(write_pin(pin))
    told: dict[str, str] = {}
    for agent in ("reader", "writer"):
        served = serve(agent)
        served.send(INITIALIZE)
        told[agent] = served.answer("hello")["result"]["instructions"]
        served.end()
    section = "## Instructions of the server `git`\n\n> Look at the log first.\n"
    assert told["reader"].endswith(section)
    assert "Look at the log" not in told["writer"]
