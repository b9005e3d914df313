"""MCP servers that misbehave in different ways, in raw lines. Run as a program: ``bad_server.py WAY``."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote


def say(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def answer(request: dict[str, Any], result: dict[str, Any]) -> None:
    say({"id": request["id"], "result": result})


def tool(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "description": f"The tool {name}.", "inputSchema": {"type": "object"}, **more}


def speak(**ways: Callable[[dict[str, Any]], None]) -> None:
    """A server of raw lines, whose answers to single methods may be replaced (``tools_list`` for `tools/list`)."""
    usual: dict[str, Callable[[dict[str, Any]], None]] = {
        "initialize": lambda asked: answer(
            asked,
            {
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "raw", "version": "0"},
            },
        ),
        "tools_list": lambda asked: answer(asked, {"tools": [tool("one")]}),
        "tools_call": lambda asked: answer(asked, {"content": [{"type": "text", "text": "raw"}]}),
    }
    for line in sys.stdin:
        asked = json.loads(line)
        way = {**usual, **ways}.get(asked.get("method", "").replace("/", "_"))
        if way is not None:
            way(asked)


def for_ever(_: object = None) -> None:
    while True:
        time.sleep(3600)


def leave(_: object = None) -> None:
    sys.stderr.write("cannot open the database\n")
    sys.stderr.flush()
    sys.exit(3)


def write_raw(data: bytes) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def _page(asked: dict[str, Any]) -> None:
    cursor = int(asked.get("params", {}).get("cursor", "0"))
    answer(asked, {"tools": [tool(f"tool{cursor}")], "nextCursor": str(cursor + 1)})


def _long_line(_: object) -> None:
    chunk = b"x" * (1024 * 1024)
    for _ in range(100):
        write_raw(chunk)
    write_raw(b"\n")


def _many(asked: dict[str, Any]) -> None:
    answer(asked, {"tools": [tool(f"tool{number}") for number in range(6_000)]})


def _bad_tools(asked: dict[str, Any]) -> None:
    rows = [tool("fine"), {"name": 7}, "no tool", tool("bad", inputSchema={"type": "no-such-type"}), tool("also_fine")]
    answer(asked, {"tools": rows})


def _asks(asked: dict[str, Any]) -> None:
    for number, method in enumerate(("sampling/createMessage", "roots/list", "elicitation/create")):
        say({"id": f"mine-{number}", "method": method, "params": {}})
        reply = json.loads(sys.stdin.readline())
        assert reply["id"] == f"mine-{number}", reply
        assert reply["error"]["code"] == -32601, reply
    answer(asked, {"content": [{"type": "text", "text": "all refused"}]})


def _asks_without_end(_: object) -> None:
    number = 0
    while True:
        number += 1
        say({"id": number, "method": "roots/list"})


def _tells_without_end(asked: dict[str, Any]) -> None:
    until = time.monotonic() + 1.0
    while time.monotonic() < until:
        say({"method": "notifications/message", "params": {"level": "info", "data": "x" * 1000}})
    answer(asked, {"content": []})


def _stderr_flood(asked: dict[str, Any]) -> None:
    for _ in range(2_000):
        sys.stderr.write("y" * 1023 + "\n")
    sys.stderr.write("the end\x1b[31m\n")
    sys.stderr.flush()
    answer(asked, {"content": []})


def _garbage(asked: dict[str, Any]) -> None:
    write_raw(b'Welcome!\n\xff\xfe\x00\n[1, 2\n{"jsonrpc": "2.0"}\n' + b"[" * 100_000 + b"\n")
    answer(asked, {"tools": [tool("one")]})


def _unreadable(asked: dict[str, Any]) -> None:
    number = asked["id"]
    if sys.argv[2] == "cut":
        write_raw(b'{"jsonrpc": "2.0", "id": %d, "result": {"content\n' % number)
    elif sys.argv[2] == "surrogate":
        write_raw(b'{"result":{"content":[{"type":"text","text":"\\ud800"}]},"jsonrpc":"2.0","id":%d}\n' % number)
    else:
        say({"id": number, "result": [1]})


def _with_child() -> None:
    """It ends when asked, the child that it started does not; the id of that goes to the file named behind it."""
    child = subprocess.Popen([sys.executable, "-c", "import signal, time; signal.signal(15, 1); time.sleep(3600)"])
    Path(sys.argv[2]).write_text(str(child.pid))
    speak()


def _stays() -> None:
    """It ignores the end of its input and SIGTERM; its id goes to the file named behind it."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    Path(sys.argv[2]).write_text(str(os.getpid()))
    speak()
    for_ever()


def _version(asked: dict[str, Any]) -> None:
    answer(asked, {"protocolVersion": "1999-01-01", "capabilities": {}, "serverInfo": {}})


def _wrong(asked: dict[str, Any]) -> None:
    answer(asked, {"tools": {"not": "a list"}})


def _refuses_calls(asked: dict[str, Any]) -> None:
    say({"id": asked["id"], "error": {"code": -32000, "message": "out of order"}})


def _lists_its_token(asked: dict[str, Any]) -> None:
    answer(asked, {"tools": [{**tool("one"), "description": f"Uses {os.environ['TOKEN']}."}]})


def _repeats(asked: dict[str, Any]) -> None:
    """Repeat the token, in the way that the next word of the command names."""
    words = f"the token {os.environ['TOKEN']} is bad"
    match sys.argv[2]:
        case "error":
            say({"id": asked["id"], "error": {"code": -32000, "message": "x" * 1_980 + words}})
        case "result":
            answer(asked, {"isError": True, "content": [{"type": "text", "text": words}]})
        case "whole":  # a result that is none of a failure, and every text beside it
            token = os.environ["TOKEN"]
            number = {"number": int(token)} if token.isdigit() else {}
            inner = {"type": "text", "text": json.dumps({"in_json": token})}
            texts = [inner, {"type": "text", "text": f"https://x.example/?q={quote(token)}&r={quote(token, '')}"}]
            structured = {token: [words, {"deep": token}], **number}
            answer(asked, {"content": [*texts, {"type": "text", "text": words}], "structuredContent": structured})
        case "flood":
            sys.stderr.write(f"{os.environ['TOKEN']}\n" * 4_000 + "the end\n")
            sys.stderr.flush()
            answer(asked, {"content": []})
        case _:
            sys.stderr.write(f"{words}\n")
            sys.stderr.flush()
            sys.exit(3)


def _answers_as_text(asked: dict[str, Any]) -> None:
    """Send an answer without a request, then the answer to the request."""
    answer({**asked, "id": str(asked["id"])}, {"content": [{"type": "text", "text": "forged"}]})
    answer(asked, {"content": [{"type": "text", "text": "true"}]})


def _closes_output() -> None:
    os.close(1)
    for_ever()


BAD: dict[str, Callable[[], object]] = {
    "hang-at-start": for_ever,
    "hang-at-list": lambda: speak(tools_list=for_ever),
    "hang-at-call": lambda: speak(tools_call=for_ever),
    "exit-at-start": leave,
    "exit-at-handshake": lambda: speak(initialize=leave),
    "exit-at-list": lambda: speak(tools_list=leave),
    "exit-at-call": lambda: speak(tools_call=leave),
    "closes-output": _closes_output,
    "garbage": lambda: speak(tools_list=_garbage),
    "long-line-at-start": lambda: _long_line(None),
    "long-line-at-list": lambda: speak(tools_list=_long_line),
    "long-line-at-call": lambda: speak(tools_call=_long_line),
    "endless-pages": lambda: speak(tools_list=_page),
    "many-tools": lambda: speak(tools_list=_many),
    "bad-tools": lambda: speak(tools_list=_bad_tools),
    "no-list": lambda: speak(tools_list=_wrong),
    "asks": lambda: speak(tools_call=_asks),
    "asks-without-end": lambda: speak(tools_call=_asks_without_end),
    "tells-without-end": lambda: speak(tools_call=_tells_without_end),
    "stderr-flood": lambda: speak(tools_call=_stderr_flood),
    "other-version": lambda: speak(initialize=_version),
    "refuses-calls": lambda: speak(tools_call=_refuses_calls),
    "answers-as-text": lambda: speak(tools_call=_answers_as_text),
    "repeats": lambda: speak(tools_call=_repeats, tools_list=_lists_its_token),
    "unreadable-start": lambda: speak(initialize=_unreadable),
    "unreadable-list": lambda: speak(tools_list=_unreadable),
    "unreadable-call": lambda: speak(tools_call=_unreadable),
    "plain": speak,
    "with-child": _with_child,
    "stays": _stays,
}


if __name__ == "__main__":
    BAD[sys.argv[1]]()
