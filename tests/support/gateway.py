"""The gateway in its own process, with the official client connected to it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client


def served(folder: Path, keys: Path, agent: str, **variables: str) -> Client:
    """A client that is connected to `gatewright serve` of the workspace for as long as its `async with` block."""
    words = ["-c", "from gatewright.cli.main import script; script()", "serve", str(folder), "--agent", agent]
    environment = {name: os.environ[name] for name in ("PATH", "HOME")} | {"GATEWRIGHT_KEYS": str(keys), **variables}
    return Client(stdio_client(StdioServerParameters(command=sys.executable, args=words, env=environment)))
