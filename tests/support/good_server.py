"""A well-behaved MCP server that starts in no time: the tools and answers of `sdk_server.py`, in raw lines.

What a test has to say about the protocol it says with the official SDK, whose import takes a second of the processor.
Run as a program: ``good_server.py stdio [LOG]`` writes what it was asked into LOG, one line each.
"""

import json
import os
import signal
import sys
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any

Json = dict[str, Any]
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
_voice = Lock()
_stops: dict[object, Event] = {}


def schema(title: str, **types: str) -> Json:
    properties = {name: {"title": name.title(), "type": kind} for name, kind in types.items()}
    return {"properties": properties, "type": "object", "title": title} | ({"required": [*types]} if types else {})


def tool(name: str, description: str, output: Json | None = None, **parameters: str) -> Json:
    """Return a tool with a text as its result, or with the schema `output`; an empty schema promises nothing."""
    output = schema(f"{name}Output", result="string") if output is None else output
    taken = {"name": name, "description": description, "inputSchema": schema(f"{name}Arguments", **parameters)}
    return taken | ({"outputSchema": output} if output else {})


VARIABLES = {"type": "object", "additionalProperties": {"type": "string"}, "title": "environmentDictOutput"}
TOOLS = [
    {**tool("echo", "Give the text back.", text="string"), "annotations": {"readOnlyHint": True}},
    tool("add", "Add two numbers.", schema("Sum", total="integer"), a="integer", b="integer"),
    tool("picture", "Draw a picture.", {}),
    tool("fail", "Fail."),
    tool("slow", "Take a while.", seconds="number"),
    tool("count", "Count to three, and tell how far it is."),
    tool("die", "End the server."),
    tool("grow", "Get one more tool."),
    tool("environment", "What the server sees of the environment.", VARIABLES),
]


def say(message: Json) -> None:
    with _voice:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def record(what: str) -> None:
    if len(sys.argv) > 2:
        with Path(sys.argv[2]).open("a") as file:
            file.write(what + "\n")


def give(text: str, structured: object = None) -> Json:
    return {
        "content": [{"type": "text", "text": text}],
        "structuredContent": {"result": text} if structured is None else structured,
        "isError": False,
    }


def refuse(why: str) -> Json:
    return {"content": [{"type": "text", "text": why}], "isError": True}


def outcome(asked: Json, stop: Event) -> Json | None:
    """The result of a call; None: it was cancelled."""
    name: str = asked["name"]
    arguments: Json = asked.get("arguments") or {}
    match name, arguments:
        case "echo", {"text": str(text)}:
            record(f"echo {text}")
            return give(text)
        case "add", {"a": int(a), "b": int(b)}:
            return give(json.dumps({"total": a + b}, indent=2), {"total": a + b})
        case "picture", _:
            image = {"type": "image", "data": PIXEL, "mimeType": "image/png"}
            return {"content": [{"type": "text", "text": "a pixel"}, image], "isError": False}
        case "slow", {"seconds": int(seconds) | float(seconds)}:
            record("slow begins")
            was_cancelled = stop.wait(seconds)
            record("slow cancelled" if was_cancelled else "slow ends")
            return None if was_cancelled else give("done")
        case "count", _:
            for number in (1, 2, 3):
                token = asked.get("_meta", {}).get("progressToken")
                told = {"progressToken": token, "progress": number, "total": 3, "message": f"at {number}"}
                say({"method": "notifications/progress", "params": told})
                stop.wait(0.1)
            return give("counted")
        case "die", _:
            os.kill(os.getpid(), signal.SIGKILL)
        case "grow", _:
            TOOLS.append(tool("new", "A new tool."))
            say({"method": "notifications/tools/list_changed"})
            return give("grown")
        case "environment", _:
            return give(json.dumps(dict(os.environ), indent=2), dict(os.environ))
        case "new", _:
            return give("new")
        case _:
            pass
    is_known = any(one["name"] == name for one in TOOLS)
    return refuse(f"Error executing tool {name}" if is_known else f"Unknown tool: {name}")


def call(number: object, asked: Json, stop: Event) -> None:
    if "traceparent" in asked.get("_meta", {}):
        record(f"{asked['name']} of {asked['_meta']['traceparent']}")
    result = outcome(asked, stop)
    _stops.pop(number, None)
    if result is not None:
        say({"id": number, "result": result})


def answer(asked: Json) -> None:
    """Answer a request that is no call; return nothing for a notification."""
    match asked.get("method"):
        case "initialize":
            result: Json = {
                "protocolVersion": asked["params"]["protocolVersion"],
                "capabilities": {"tools": {"listChanged": False}},
                "serverInfo": {"name": "good", "version": "1.2.3"},
                "instructions": "Ask before you write.",
            }
        case "tools/list":
            result = {"tools": TOOLS}
        case "ping":
            result = {}
        case "notifications/cancelled":
            if stop := _stops.get(asked["params"].get("requestId")):
                stop.set()
            return
        case _:
            if "id" in asked:
                say({"id": asked["id"], "error": {"code": -32601, "message": "Method not found"}})
            return
    say({"id": asked["id"], "result": result})


def serve() -> None:
    """Answer until the input ends, each call in its own thread."""
    threads: list[Thread] = []
    for line in sys.stdin:
        asked = json.loads(line)
        if asked.get("method") == "tools/call":
            stop = _stops[asked["id"]] = Event()
            threads.append(Thread(target=call, args=(asked["id"], asked["params"], stop)))
            threads[-1].start()
        else:
            answer(asked)
    for stop in [*_stops.values()]:
        stop.set()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    if "GOOD_KEY" in os.environ:
        record(f"GOOD_KEY {os.environ['GOOD_KEY']}")
    serve()
