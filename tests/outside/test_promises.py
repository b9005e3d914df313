"""What each coding agent does with the end of a hook: the promises on which its module and our entries rest.

The hook here is a stand-in. A new version of a host that keeps a promise no more fails here first.
"""

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.outside import stand_in
from tests.outside.agents import Agent, Room
from tests.outside.models import serving

PATIENCE_S = 3
"""Of a host with its hook, in all entries here."""

WHY = "because of the rule"


def _reply(host: str, verdict: str, changed: str = "") -> str:
    """Spell a decision for a host."""
    if host in {"claude-code", "codex"}:
        said: dict[str, Any] = {"hookEventName": "PreToolUse", "permissionDecision": verdict}
        said |= {"updatedInput": {"command": changed}} if changed else {"permissionDecisionReason": WHY}
        return json.dumps({"hookSpecificOutput": said})
    if host == "gemini-cli":
        whole = {"hookSpecificOutput": {"hookEventName": "BeforeTool", "tool_input": {"command": changed}}}
        return json.dumps({"decision": verdict, "reason": WHY, **(whole if changed else {})})
    if host == "opencode":
        return json.dumps({"decision": verdict, "reason": WHY, "command": changed})
    arguments = {"modifiedArgs": {"command": changed, "description": "go"}} if changed else {}
    return json.dumps({"permissionDecision": verdict, "permissionDecisionReason": WHY, **arguments})


def _ends(host: str) -> dict[str, dict[str, Any]]:
    return {
        "deny": {"stdout": _reply(host, "deny")},
        "blocked": {"code": 2, "stderr": WHY},
        "changed": {"stdout": _reply(host, "allow", "touch instead")},
        "silent": {"code": 2},
        "failed": {"code": 1, "stderr": WHY},
        "broken": {"stdout": '{"decision": "de'},
        "late": {"sleep": PATIENCE_S * 2, "code": 2, "stderr": WHY},
        **({} if host == "gemini-cli" else {"ask": {"stdout": _reply(host, "ask")}}),
    }


RUNS = {
    "claude-code": {"broken"},
    "codex": {"ask", "silent", "failed", "broken", "late"},
    "gemini-cli": {"silent", "failed", "broken", "late"},
    "opencode": set[str](),
    "copilot": {"broken", "late"},
}
"""The ends of a hook after which a call runs as it was asked for: where the host fails open."""

_PLUGIN = """import { spawnSync } from "node:child_process"
const [program, ...words] = %s
export const StandIn = async () => ({
  "tool.execute.before": async ({ tool }, output) => {
    const message = JSON.stringify({ tool, args: output.args })
    const done = spawnSync(program, words, { input: message, encoding: "utf8", timeout: %d000 })
    if (done.status !== 0) throw new Error(done.stderr || "no answer")
    if (!done.stdout) return
    const answer = JSON.parse(done.stdout)
    if (answer.decision !== "allow") throw new Error(answer.reason)
    output.args.command = answer.command
  },
})
"""


def _plant(host: str, room: Room, command: list[str]) -> None:
    """Write the entry of a hook where the host looks for it."""
    line = shlex.join(command)
    run: dict[str, Any] = {"type": "command", "command": line, "timeout": PATIENCE_S}
    match host:
        case "claude-code":
            place = ".claude/settings.json"
            run |= {"command": command[0], "args": command[1:], "onFailure": "block"}
            entry: dict[str, Any] = {"hooks": {"PreToolUse": [{"matcher": "*", "hooks": [run]}]}}
        case "codex":
            place, entry = ".codex/hooks.json", {"hooks": {"PreToolUse": [{"matcher": "*", "hooks": [run]}]}}
        case "gemini-cli":
            place, run = ".gemini/settings.json", {**run, "timeout": PATIENCE_S * 1000}
            entry = {"hooks": {"BeforeTool": [{"matcher": "*", "hooks": [run]}]}}
        case "copilot":
            place = ".copilot/hooks/stand-in.json"
            entry = {
                "version": 1,
                "hooks": {"preToolUse": [{"type": "command", "bash": line, "timeoutSec": PATIENCE_S}]},
            }
        case _:
            place, entry = ".config/opencode/plugins/stand-in.js", {}
    file = room.home / place
    file.parent.mkdir(parents=True, exist_ok=True)
    there: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    file.write_text(json.dumps(there | entry) if entry else _PLUGIN % (json.dumps(command), PATIENCE_S))


@pytest.mark.parametrize("host", RUNS)
def test_a_call_runs_after_these_ends_of_a_hook_and_no_others(
    host: str, agent: Agent, room: Room, tmp_path: Path
) -> None:
    ends = _ends(host)
    (tmp_path / "ends.json").write_text(json.dumps(ends))
    agent.prepare(room)
    _plant(host, room, [sys.executable, "-I", "-S", stand_in.__file__, str(tmp_path)])

    with serving([[agent.shell(f"touch {name}")] for name in ends]) as model:
        ended = agent.run(room, model.url)

    there = {file.name for file in room.project.iterdir()} - {".git"}
    asked = len((tmp_path / "messages.jsonl").read_text().splitlines())
    assert asked == len(ends), ended
    assert len(model.seen.results) == len(ends), ended
    assert there == RUNS[host] | {"instead"}, ended
    assert WHY in model.seen.results["call_0000"]


@pytest.mark.parametrize(("host", "runs"), [("claude-code", False), ("codex", True), ("opencode", False)])
def test_a_call_whose_hook_cannot_be_started_runs_where_the_host_fails_open(
    host: str, agent: Agent, room: Room, tmp_path: Path, runs: bool
) -> None:
    agent.prepare(room)
    _plant(host, room, [str(tmp_path / "missing"), "word"])

    with serving([[agent.shell("touch done")]]) as model:
        ended = agent.run(room, model.url)

    assert len(model.seen.results) == 1, ended
    assert (room.project / "done").exists() is runs, ended
