"""A well-behaved MCP server with tools of several shapes, written with the official SDK.

Run as a program: ``sdk_server.py stdio [LOG]`` writes what it was asked into LOG, one line each;
``sdk_server.py http`` prints the port of its own that it listens on.
"""

import os
import signal
import socket
import sys
from pathlib import Path

import anyio
import uvicorn
from mcp.server.mcpserver import Context, MCPServer
from mcp_types import ImageContent, TextContent, ToolAnnotations
from pydantic import BaseModel

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

server = MCPServer("good", version="1.2.3", instructions="Ask before you write.")


def record(what: str) -> None:
    if len(sys.argv) > 2:
        with Path(sys.argv[2]).open("a") as file:
            file.write(what + "\n")


class Sum(BaseModel):
    total: int


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def echo(text: str) -> str:
    """Give the text back."""
    record(f"echo {text}")
    return text


@server.tool()
def add(a: int, b: int) -> Sum:
    """Add two numbers."""
    return Sum(total=a + b)


@server.tool()
def picture() -> list[TextContent | ImageContent]:
    """Draw a picture."""
    image = ImageContent(type="image", data=PIXEL, mime_type="image/png")
    return [TextContent(type="text", text="a pixel"), image]


@server.tool()
def fail() -> str:
    """Fail."""
    raise ValueError("the disk is full")


@server.tool()
async def slow(seconds: float) -> str:
    """Take a while."""
    record("slow begins")
    try:
        await anyio.sleep(seconds)
    except anyio.get_cancelled_exc_class():
        record("slow cancelled")
        raise
    record("slow ends")
    return "done"


@server.tool()
async def count(ctx: Context) -> str:
    """Count to three, and tell how far it is."""
    for number in (1, 2, 3):
        await ctx.report_progress(number, 3, f"at {number}")
        await anyio.sleep(0.1)
    return "counted"


@server.tool()
def die() -> str:
    """End the server."""
    os.kill(os.getpid(), signal.SIGKILL)
    return "unreachable"


@server.tool()
async def grow(ctx: Context) -> str:
    """Get one more tool."""
    server.add_tool(new)
    await ctx.session.send_tool_list_changed()
    return "grown"


@server.tool()
def environment() -> dict[str, str]:
    """What the server sees of the environment."""
    return dict(os.environ)


def new() -> str:
    """A new tool."""
    return "new"


def over_http() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    config = uvicorn.Config(server.streamable_http_app(), log_level="warning")
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    if "GOOD_KEY" in os.environ:
        record(f"GOOD_KEY {os.environ['GOOD_KEY']}")
    if sys.argv[1] == "http":
        over_http()
    else:
        server.run("stdio")
