"""Generated calls of Claude Code's own tools: what the hook answers beside what library and command line decide.

`python -m tests.engine.hooks.agreement [CALLS]` is the long form.
"""

from __future__ import annotations

import contextlib
import io
import json
import random
import sys
import tempfile
from pathlib import Path
from typing import Any

from gatewright.adapters import hook_exchange
from gatewright.cli.main import main
from gatewright.gate import Decision
from gatewright.policy.verdict import Verdict
from gatewright.tools import ToolExecutionContext
from gatewright.workspace import Workspace
from gatewright_resources import folder
from tests.engine.hooks.world import HookWorld

POLICY = """gatewright = 1

[workspace]
closed = ["project/closed"]
shell = { confine = "none", allow = ["ls", "cat", "git status", "npm run test:*"], ask = ["git"], deny = ["rm"] }

[agents.coder]
sources = ["project"]
capabilities = [{ Exec = {} }, { NetRead = { allowlist = ["*.example.org"] } }]
approvals = { privileged = "allow", "claude.Edit" = "ask", "claude.Skill" = "deny" }

[[sources]]
id = "project"
type = "file"
base_path = "project"
default_permission = "read_write"
permission_rules = [
  { pattern = "secret/**", permission = "none" },
  { pattern = "log.txt", permission = "append" },
  { pattern = "shared/**", permission = "partner" },
]

[[catalogs]]
id = "claude-code"
type = "host"
manifest = "catalogs/claude-code.tools.json"
prefix = "claude"
trusted = true

[[policy.rules]]
name = "no drafts"
effect = "deny"
tools = ["claude.Write"]
when = { properties = { file_path = { pattern = "draft" } } }
message = "drafts are not written"
"""
PATHS = (
    "a.py",
    "secret/key",
    "./sub/../a.py",
    "../a.py",
    "/etc/passwd",
    "log.txt",
    "shared/n",
    "closed/x",
    "draft.md",
    "",
    "~/x",
    "link/key",
)
COMMANDS = (
    "ls",
    "ls -la && cat a.py",
    "rm -rf .",
    "git status",
    "git push",
    "npm run test:a",
    "cat secret/key",
    "ls > secret/new",
    "$(x)",
    "env rm a",
    "",
)
URLS = ("https://www.example.org/a", "http://127.0.0.1/", "https://evil.test/", "file:///etc/passwd", "nonsense")
TOOLS: dict[str, Any] = json.loads(folder("hosts").joinpath("claude-code.tools.json").read_text())


INSIDE = (
    POLICY.replace('"project/closed"', '"../closed"')
    .replace('base_path = "project"', 'base_path = ".."')
    .replace('id = "project"', 'id = "files"')
    .replace('sources = ["project"]', 'sources = ["files"]')
)
"""The same policy in a folder of the project, as `hook install` makes it."""
COMMAND_EVERY = 25
"""Of so many calls one is decided by the command line too."""


def make(folder_: Path, run: Path, *, inside: bool = False) -> HookWorld:
    """Make the workspace, with files for the levels."""
    world = HookWorld(folder_, run, INSIDE if inside else POLICY, TOOLS, inside=inside)
    for name in ("a.py", "secret/key", "log.txt", "shared/n", "closed/x", "sub/b"):
        (world.project / name).parent.mkdir(exist_ok=True)
        (world.project / name).write_text("text")
    (world.project / "link").symlink_to("secret")
    Workspace.open(world.policy, keys=world.keys, trust=True).close()
    return world


def _value(name: str, schema: dict[str, Any], dice: random.Random) -> object:
    if dice.random() < 0.05:
        return dice.choice([None, 7, True, [], {}, "\u202e", "x" * 300])
    match schema.get("type"):
        case "string" if "enum" in schema:
            return dice.choice([*schema["enum"], "other"])
        case "string" if name == "command":
            return dice.choice(COMMANDS)
        case "string" if "path" in name:
            return dice.choice(PATHS)
        case "string":
            return dice.choice(URLS if name == "url" else ("text", "*.py", "secret/**"))
        case "boolean":
            return dice.choice([True, False])
        case "integer" | "number":
            return dice.randrange(5)
        case "array":
            return [_value("", schema.get("items", {}), dice) for _ in range(dice.randrange(3))]
        case _:
            return {key: _value(key, one, dice) for key, one in schema.get("properties", {}).items()}


def call(dice: random.Random) -> tuple[str, dict[str, object]]:
    """A call that a model might make: a right one, nearly right, or of a tool that nobody knows."""
    if dice.random() < 0.03:
        return dice.choice(["Nothing", "bash", "Bash ", "mcp__x__y", "claude.Bash"]), {"command": "ls"}
    tool = dice.choice(TOOLS["tools"])
    schema = tool["inputSchema"]
    needed = set(schema.get("required", ())) if dice.random() < 0.95 else set[str]()
    names = [one for one in schema.get("properties", {}) if one in needed or dice.random() < 0.3]
    given = {name: _value(name, schema["properties"][name], dice) for name in names}
    return tool["name"], given | ({"extra": 1} if dice.random() < 0.03 else {})


def differences(world: HookWorld, count: int, seed: int) -> list[str]:
    """Ask the resident gate, the library and the command line about the same calls; return where they differ.

    The library is told once where the agent works, and finds it out by itself once, as the Console does.
    """
    found, dice = list[str](), random.Random(seed)
    gate = {"policy": str(world.policy), "key": str(world.place.key)}
    with Workspace.open(world.policy, keys=world.keys) as workspace:
        for number in range(count):
            tool, given = call(dice)
            context = ToolExecutionContext("coder", "", folder=str(world.project))
            decision = workspace.gate.decide("coder", f"claude.{tool}", given, context=context)  # pyright: ignore[reportArgumentType]
            alone = workspace.decide("coder", f"claude.{tool}", given)  # pyright: ignore[reportArgumentType]
            said = [(one.verdict, one.stage, one.code, one.reason) for one in (decision, alone)]
            if number % COMMAND_EVERY == 0:
                told = _command(world, tool, given)
                said.append((Verdict(told["verdict"]), told["stage"], told["code"], told["reason"]))
            if len(set(said)) > 1:
                found.append(f"{tool} {given}: {said}")
            talk = f"talk-{number // 100}"
            answer = _ask(
                gate, world.message("PreToolUse", tool, given, f"t{number}", session_id=talk, permission_mode="default")
            )
            if not _agree(decision, answer):
                found.append(f"{tool} {given}: {decision.effect} {decision.model_message!r}, hook {answer}")
            if number % 100 == 99:
                _send(gate, world.message("SessionEnd", "", {}, "", session_id=talk))
    return found


def _command(world: HookWorld, tool: str, given: dict[str, object]) -> dict[str, Any]:
    call_ = ["--agent", "coder", "--tool", f"claude.{tool}", "--args", json.dumps(given)]
    with contextlib.redirect_stdout(io.StringIO()) as out:
        main(["decide", str(world.policy), *call_, "--folder", str(world.project), "--trust", "--json"])
    told: dict[str, Any] = json.loads(out.getvalue())
    return told


def _agree(decision: Decision, answer: dict[str, Any]) -> bool:
    said = answer["permissionDecision"]
    if decision.effect is not Verdict.DENY:
        return said == str(decision.effect)
    reason = answer["permissionDecisionReason"]
    return said == "deny" and ((decision.model_message or "?") in reason or decision.code == "unknown-tool")


def _send(options: dict[str, str], message: bytes) -> bytes:
    connection = hook_exchange.Gate(options, 0.0).connect()
    try:
        return connection.ask(b"event", "claude-code", "coder", "60000", message)
    finally:
        connection.close()


def _ask(options: dict[str, str], message: bytes) -> dict[str, Any]:
    body = _send(options, message)
    answer: dict[str, Any] = json.loads(body[6 : 6 + int.from_bytes(body[2:6], "big")])["hookSpecificOutput"]
    return answer


async def start(world: HookWorld) -> None:
    """Let the first hook start the gate."""
    await world.ask("TodoWrite", {"todos": []}, "first")


if __name__ == "__main__":
    import asyncio

    with tempfile.TemporaryDirectory() as top, tempfile.TemporaryDirectory(prefix="gw", dir="/tmp") as run_folder:
        made = make(Path(top), Path(run_folder))
        asyncio.run(start(made))
        try:
            wanted = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
            wrong = differences(made, wanted, 1)
        finally:
            made.end()
    print("\n".join(wrong[:20]))
    print(f"{wanted:,} calls, {len(wrong):,} differences")
    sys.exit(bool(wrong))
