"""A workspace with a coding agent, and the real client as its hook: each message is a process of its own."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import struct
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from gatewright.adapters.hook_socket import CLIENT_FILE, HookPlace
from gatewright.workspace import Workspace
from gatewright.workspace.host_files import hook_command
from tests.support.patience import pause_until

POLICY = """gatewright = 1

[agents.coder]
tools = ["claude.Bash", "claude.Read", "claude.Write"]
sources = ["project"]
approvals = { privileged = "allow", "claude.Write" = "ask" }
capabilities = [{ Exec = {} }]

[agents.helper]
tools = ["claude.Read"]
sources = ["project"]
approvals = { privileged = "allow" }

[[sources]]
id = "project"
type = "file"
base_path = "project"
default_permission = "read_write"

[[sources.permission_rules]]
pattern = "*.key"
permission = "none"

[[catalogs]]
id = "claude-code"
type = "host"
manifest = "catalogs/claude-code.tools.json"
prefix = "claude"

[[policy.rules]]
name = "nothing of yesterday"
effect = "deny"
tools = ["claude.Read"]
when = { properties = { file_path = { pattern = "yesterday" } } }
message = "yesterday is over"
"""


def _tool(name: str, *arguments: str, **more: object) -> dict[str, Any]:
    properties = {one: {"type": "string"} for one in arguments}
    schema = {"type": "object", "properties": properties, "required": list(arguments[:1])}
    return {"name": name, "description": f"{name} of the host.", "inputSchema": schema, "_meta": {"gatewright": more}}


TOOLS = {
    "tools": [
        _tool("Bash", "command", "description"),
        _tool("Monitor", "command", "description", arguments={"command": "command"}),
        _tool("Read", "file_path"),
        _tool("Write", "file_path", "content"),
    ]
}
"""Definitions that say little of what the arguments are, so that any command reaches a room."""


class HookWorld:
    """The workspace below ``folder``, ``inside`` of the project or around it; the sockets lie in ``run``."""

    def __init__(
        self, folder: Path, run: Path, policy: str = POLICY, tools: object = TOOLS, *, inside: bool = False
    ) -> None:
        self.folder, self.run, self.keys = folder / "workspace", run, folder / "keys"
        self.project = self.folder / "project"
        self.folder = self.project / ".gatewright-policy" if inside else self.folder
        self.policy = self.folder / "policy.toml"
        self.project.mkdir(parents=True)
        self.folder.mkdir(exist_ok=True)
        (self.folder / "catalogs").mkdir()
        (self.folder / "catalogs" / "claude-code.tools.json").write_text(json.dumps(tools))
        self.policy.write_text(policy)
        self.keys.mkdir(mode=0o700)
        self.place = HookPlace.of(self.policy, self.keys)
        self.host: tuple[str, ...] = ()
        """The options of a program that starts the client in the place of this one."""
        self.environment = {name: os.environ[name] for name in ("PATH", "HOME")} | {"XDG_RUNTIME_DIR": str(run)}

    def message(self, event: str, tool: str, given: Mapping[str, object], call_id: str, **more: object) -> bytes:
        """A message of Claude Code."""
        said = {"session_id": "talk-1", "cwd": str(self.project), "hook_event_name": event, "tool_name": tool}
        said |= {"permission_mode": "dontAsk", "tool_input": given, "tool_use_id": call_id, **more}
        return json.dumps(said).encode()

    async def send(self, message: bytes, *, timeout_s: float = 600.0, agent: str = "coder") -> tuple[int, str, str]:
        """Run the client on a message; its exit code, output and errors."""
        words = self.words(timeout_s, agent)
        return await self.start((*_HOST, *self.host, "--", *words) if self.host else words, message)

    def words(self, timeout_s: float = 600.0, agent: str = "coder") -> tuple[str, ...]:
        """The command of the hook, as it is installed."""
        words = list(hook_command("claude-code", self.policy, agent, self.keys).command)
        words[words.index("--timeout") + 1] = f"{timeout_s:g}"
        return tuple(words)

    async def start(self, words: Sequence[str], given: bytes = b"", cwd: Path | None = None) -> tuple[int, str, str]:
        """Run a program to its end."""
        process = await asyncio.create_subprocess_exec(
            *words,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=self.environment,
            cwd=cwd or self.project,
        )
        out, said = await process.communicate(given)
        return process.returncode or 0, out.decode(), said.decode()

    async def ask(
        self, tool: str, given: Mapping[str, object], call_id: str, *, agent: str = "coder", **more: object
    ) -> dict[str, Any]:
        """Ask before a call; the answer as Claude Code reads it."""
        code, out, said = await self.send(self.message("PreToolUse", tool, given, call_id, **more), agent=agent)
        assert (code, said) == (0, ""), (code, out, said)
        answer: dict[str, Any] = json.loads(out)["hookSpecificOutput"]
        return answer

    async def report(self, tool: str, given: Mapping[str, object], call_id: str, result: object = "done") -> None:
        """Tell the end of a call."""
        message = self.message("PostToolUse", tool, given, call_id, tool_response=result)
        assert await self.send(message) == (0, "", "")

    def rows(self, *kinds: str) -> list[tuple[str, str, dict[str, Any]]]:
        """The rows of the log of these kinds: kind, agent and content."""
        with Workspace.open(self.policy, keys=self.keys) as workspace:
            assert workspace.audit.verify().is_sound
            rows = [(row.kind, row.agent, json.loads(row.body)) for row in workspace.audit.rows()]
        return [(str(kind), agent, body) for kind, agent, body in rows if not kinds or kind in kinds]

    @property
    def gate_pid(self) -> int:
        """The process that serves the socket; 0 if nobody does."""
        with socket.socket(socket.AF_UNIX) as probe:
            try:
                probe.connect(str(self.run / "gatewright" / f"{self.place.name}.sock"))
            except OSError:
                return 0
            return struct.unpack("3i", probe.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]

    def end(self, number: int = signal.SIGTERM) -> None:
        """End the gate, and wait until it has ended."""
        if pid := self.gate_pid:
            with suppress(ProcessLookupError):
                os.kill(pid, number)
            pause_until(lambda: _has_ended(pid))


def _has_ended(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] == b"Z"
    except OSError:
        return True


_HOST = (
    sys.executable,
    "-c",
    "import subprocess, sys; sys.exit(subprocess.call(sys.argv[sys.argv.index('--') + 1 :]))",
)
CLIENT = (sys.executable, "-I", "-S", str(CLIENT_FILE))
