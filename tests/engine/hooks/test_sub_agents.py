"""Sub-agents of a coding agent before the resident gate: whose rights count, and what the log says of them."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from gatewright.base.errors import WorkspaceError
from gatewright.gate import Approval, AuditFilter, AuditIndex
from gatewright.workspace import Workspace, permission_broker
from gatewright.workspace.replay import decide_again, sent_of
from tests.engine.hooks.world import POLICY, TOOLS, HookWorld
from tests.support.patience import until

_ENDS = POLICY[POLICY.index("[[sources]]") :]
FAMILY = f"""gatewright = 1

[agents.coder]
tools = ["claude.Read", "claude.Bash", "claude.Agent"]
sources = ["project"]
approvals = {{ privileged = "allow", "claude.Bash" = "deny" }}
capabilities = [{{ Exec = {{}} }}]
sub_agents = ["writer"]

[agents.writer]
tools = ["claude.Read", "claude.Write", "claude.Bash", "claude.Agent"]
sources = ["project"]
approvals = {{ privileged = "allow", "claude.Write" = "allow" }}
capabilities = [{{ Exec = {{}} }}]
sub_agents = ["deeper"]

[agents.deeper]
tools = ["claude.Monitor", "claude.Write", "claude.Read"]
sources = ["project", "attic"]
approvals = {{ privileged = "allow", "claude.Monitor" = "ask" }}
capabilities = [{{ Exec = {{}} }}]

[agents.admin]
sources = ["project", "attic"]
approvals = {{ privileged = "allow" }}
capabilities = [{{ Exec = {{}} }}]
sub_agents = ["deeper"]

[[sources]]
id = "attic"
type = "file"
base_path = "attic"
default_permission = "read_write"

[[policy.rules]]
name = "coder never sees plans"
effect = "deny"
agents = ["coder"]
tools = ["claude.Read", "claude.Write"]
when = {{ properties = {{ file_path = {{ pattern = "plan" }} }}, required = ["file_path"] }}
message = "the plans are not for you"

{_ENDS}"""
READ, WRITE = {"file_path": "a.txt"}, {"file_path": "a.txt", "content": "x"}
PLAN = {"file_path": "plan.txt", "content": "x"}
START: dict[str, Any] = {"description": "d", "prompt": "p", "subagent_type": "writer"}


def _tools() -> dict[str, Any]:
    arguments = {name: {"type": "string"} for name in START}
    schema = {"type": "object", "properties": arguments, "required": ["prompt"]}
    agent = {"name": "Agent", "description": "Starts an agent.", "inputSchema": schema}
    return {"tools": [*TOOLS["tools"], agent]}


@pytest.fixture
def family(world: HookWorld) -> HookWorld:
    """A policy with a caller, an agent that it may start, one that this may start, and one that nobody may."""
    (world.folder / "catalogs" / "claude-code.tools.json").write_text(json.dumps(_tools()))
    (world.folder / "attic").mkdir()
    world.policy.write_text(FAMILY)
    return world


async def _says(world: HookWorld, tool: str, given: dict[str, Any], call_id: str, **more: Any) -> str:
    return str((await world.ask(tool, given, call_id, **more))["permissionDecision"])


async def _start(world: HookWorld, kind: str, call_id: str, **more: Any) -> None:
    assert await _says(world, "Agent", {**START, "subagent_type": kind}, call_id, **more) == "allow"


def _child(kind: str, child_id: str = "") -> dict[str, str]:
    return {"agent_type": kind, "agent_id": child_id or f"id-{kind}"}


async def test_a_name_that_a_model_chose_gives_no_right_that_the_caller_lacks(family: HookWorld) -> None:
    await _start(family, "admin", "t0")
    assert await _says(family, "Write", WRITE, "t1", agent="admin") == "allow"
    assert await _says(family, "Write", WRITE, "t2", **_child("admin")) == "deny"
    assert await _says(family, "Read", READ, "t3", **_child("admin")) == "allow"
    family.policy.write_text(FAMILY.replace('sub_agents = ["writer"]', 'sub_agents = ["writer", "admin"]'))
    assert await _says(family, "Write", WRITE, "t4", **_child("admin")) == "allow"


async def test_an_agent_that_the_caller_may_start_has_its_own_rights_but_for_explicit_denials(
    family: HookWorld,
) -> None:
    assert await _says(family, "Write", WRITE, "t0") == "deny"  # never given to the caller
    await _start(family, "writer", "t1")
    assert await _says(family, "Write", WRITE, "t2", **_child("writer")) == "allow"
    denied = await family.ask("Write", PLAN, "t3", **_child("writer"))
    assert denied["permissionDecision"] == "deny"
    assert "the plans are not for you" in denied["permissionDecisionReason"]
    assert await _says(family, "Bash", {"command": "ls"}, "t4", **_child("writer")) == "deny"  # turned off by hand
    assert await _says(family, "Read", {"file_path": "my.key"}, "t5", **_child("writer")) == "deny"
    assert {agent for _, agent, body in family.rows("ToolInvoked") if "child" in body} == {"writer"}
    reasons = [body["reason"] for _, agent, body in family.rows("PolicyDecision") if agent == "writer"]
    assert "the caller `coder` is denied this: policy rule `coder never sees plans` denies it" in reasons[1]


async def test_with_intersect_a_sub_agent_has_of_its_rights_only_those_of_its_caller(family: HookWorld) -> None:
    family.policy.write_text(FAMILY.replace("[agents.writer]", 'delegate = "intersect"\n\n[agents.writer]', 1))
    await _start(family, "writer", "t0")
    assert await _says(family, "Write", WRITE, "t1", **_child("writer")) == "deny"
    assert await _says(family, "Read", READ, "t2", **_child("writer")) == "allow"


async def test_a_kind_that_is_no_agent_counts_as_whoever_started_it(family: HookWorld) -> None:
    await _start(family, "writer", "t0")
    assert await _says(family, "Read", READ, "t1", **_child("writer")) == "allow"
    await _start(family, "Explore", "t2", **_child("writer"))
    await _start(family, "Plan", "t3")
    assert await _says(family, "Write", WRITE, "t4", **_child("Explore")) == "allow"
    assert await _says(family, "Write", PLAN, "t5", **_child("Explore")) == "deny"
    assert await _says(family, "Write", WRITE, "t6", **_child("Plan")) == "deny"
    agents = [(agent, body.get("child")) for _, agent, body in family.rows("ToolInvoked")]
    assert agents[-3:] == [("writer", "id-Explore"), ("writer", "id-Explore"), ("coder", "id-Plan")]


async def test_a_name_in_between_gives_no_right_to_what_it_starts(family: HookWorld) -> None:
    await _start(family, "admin", "t0")
    await _start(family, "deeper", "t1", **_child("admin"))
    assert await _says(family, "Write", WRITE, "t2", agent="deeper") == "allow"
    assert await _says(family, "Write", WRITE, "t3", **_child("deeper")) == "deny"


async def test_of_several_possible_callers_the_denials_of_all_count(family: HookWorld) -> None:
    await _start(family, "writer", "t0")
    await _start(family, "deeper", "t1", **_child("writer"))
    await _start(family, "deeper", "t2")  # which the caller itself may not give more than it has
    assert await _says(family, "Write", WRITE, "t3", **_child("deeper")) == "deny"
    ended = family.message("PostToolUse", "Agent", {**START, "subagent_type": "deeper"}, "t1")
    said = {**json.loads(ended), "tool_response": {"agentId": "id-deeper"}, **_child("writer")}
    assert (await family.send(json.dumps(said).encode()))[0] == 0
    assert await _says(family, "Write", WRITE, "t4", **_child("deeper")) == "allow"


async def test_a_start_that_nobody_saw_counts_as_that_of_everybody_who_might(family: HookWorld) -> None:
    assert await _says(family, "Write", WRITE, "t0", **_child("deeper")) == "deny"  # perhaps started by the coder
    assert await _says(family, "Write", WRITE, "t1", **_child("writer")) == "allow"
    assert await _says(family, "Write", PLAN, "t2", **_child("writer")) == "deny"
    assert await _says(family, "Write", WRITE, "t3", agent_type="admin") == "deny"
    assert await _says(family, "Read", READ, "t4", **_child("Explore")) == "allow"
    family.policy.write_text(
        FAMILY.replace('tools = ["claude.Read", "claude.Write", "claude.Bash"', 'tools = ["claude.B"')
    )
    assert await _says(family, "Read", READ, "t5", **_child("Explore")) == "deny"


async def test_the_stop_of_a_caller_stops_what_it_started(family: HookWorld) -> None:
    await _start(family, "writer", "t0")
    assert await _says(family, "Write", WRITE, "t1", **_child("writer")) == "allow"
    _run(family, "stop", family.policy, "--agent", "coder")
    assert await _says(family, "Write", WRITE, "t2", **_child("writer")) == "deny"
    assert await _says(family, "Write", WRITE, "t3", agent="writer", session_id="talk-2") == "allow"
    await until(lambda: [agent for _, agent, _ in family.rows("ToolAbandoned")].count("writer"))  # the one that ran
    _run(family, "go", family.policy, "--agent", "coder")
    assert await _says(family, "Write", WRITE, "t4", **_child("writer")) == "allow"


async def test_a_question_of_a_sub_agent_names_its_callers_and_its_answer_ends_with_their_policy(
    family: HookWorld,
) -> None:
    await _start(family, "writer", "t0")
    await _start(family, "deeper", "t1", **_child("writer"))
    child = _child("deeper")
    family.policy.write_text(FAMILY.replace('"claude.Monitor" = "ask"', '"claude.Write" = "ask"'))
    asked = await family.ask("Write", WRITE, "t2", permission_mode="default", **child)
    assert asked["permissionDecision"] == "ask"
    assert "for deeper, started by writer, started by coder" in asked["permissionDecisionReason"]
    assert await _says(family, "Write", WRITE, "t3", **child) == "deny"
    listed = _run(family, "approvals", "list", family.policy)
    assert "deeper, started by writer, started by coder: claude.Write" in listed
    with closing(permission_broker(family.policy, keys=family.keys)) as broker:
        (question,) = broker.pending()
        broker.answer(question.request_id, Approval(True, "ann"))
    written = family.policy.read_text()
    family.policy.write_text(written.replace('sub_agents = ["writer"]', "sub_agents = []"))
    assert await _says(family, "Write", WRITE, "t4", **child) == "deny"
    family.policy.write_text(written)
    assert await _says(family, "Write", WRITE, "t5", **child) == "allow"


async def test_a_question_about_a_tool_of_the_host_is_resumed_by_the_host_alone(family: HookWorld) -> None:
    await _start(family, "writer", "t0")
    family.policy.write_text(FAMILY.replace('"claude.Write" = "allow"', '"claude.Write" = "ask"'))
    assert await _says(family, "Write", WRITE, "t1", **_child("writer")) == "deny"
    with closing(permission_broker(family.policy, keys=family.keys)) as broker:
        (question,) = broker.pending()
        broker.answer(question.request_id, Approval(True, "ann"))
    with (
        Workspace.open(family.policy, keys=family.keys) as workspace,
        pytest.raises(
            WorkspaceError, match=r"`claude.Write` is run by Claude Code, which makes this call again itself"
        ),
    ):
        await workspace.resume(question.request_id)
    assert await _says(family, "Write", WRITE, "t2", **_child("writer")) == "allow"
    assert await _says(family, "Write", WRITE, "t3", **_child("writer")) == "deny"


async def test_recorded_calls_of_sub_agents_are_decided_again_as_they_were(family: HookWorld) -> None:
    await _start(family, "writer", "t0")
    await _start(family, "admin", "t1")
    await _start(family, "Explore", "t2", **_child("writer"))
    await _start(family, "deeper", "t3", **_child("admin"))
    made = [("Write", WRITE), ("Write", PLAN), ("Read", READ), ("Bash", {"command": "ls"})]
    for number, kind in enumerate(("writer", "admin", "Explore", "deeper", "Plan")):
        for at, (tool, given) in enumerate(made):
            await family.ask(tool, given, f"c{number}-{at}", **_child(kind))
    again: list[tuple[str, str, str]] = []
    with (
        Workspace.open(family.policy, keys=family.keys) as workspace,
        closing(AuditIndex(workspace.state_folder)) as log,
    ):
        log.read_older()
        for call in log.calls(log.numbers(AuditFilter())):
            if call.is_call:
                found = decide_again(workspace, call, sent_of(log.rows_of(call)))
                again.append((f"{call.whose}: {call.called}", call.verdict, str(found.verdict)))
    assert len(again) == 24
    assert {then for _, then, _ in again} == {"allow", "deny"}
    assert [one for one in again if one[1] != one[2]] == []


async def test_the_recorded_exchange_of_claude_code_puts_each_call_under_the_one_that_started_it(
    family: HookWorld,
) -> None:
    """Claude Code 2.1.332: a sub-agent in the background, which starts another one."""
    text = FAMILY + '\n[workspace]\nshell = { confine = "none" }\n'
    text = text.replace(', "claude.Bash" = "deny"', "").replace('"claude.Monitor", ', '"claude.Bash", ')
    family.policy.write_text(text)
    for line in (Path(__file__).parent / "sub_agents.jsonl").read_text().splitlines():
        message = {**json.loads(line), "cwd": str(family.project)}
        _, out, _ = await family.send(json.dumps(message).encode())
        if message["hook_event_name"] == "PreToolUse":
            assert json.loads(out)["hookSpecificOutput"]["permissionDecision"] == "allow", (message, out)
    calls = [json.loads(line) for line in _run(family, "audit", "export", family.policy).splitlines()]
    begun = [(row["call_id"], row["agent"], row["body"]) for row in calls if row["kind"] == "ToolInvoked"]
    ids = [call_id for call_id, _, _ in begun]
    said = [(agent, body.get("callers"), body.get("within", ""), body.get("child", "")) for _, agent, body in begun]
    child, grandchild = "add00c1dbeb3c95d8", "a239998dfea98fa6b"
    assert said == [
        ("coder", None, "", ""),
        ("coder", None, "", ""),  # starts the writer
        ("writer", ["coder"], ids[1], child),
        ("coder", None, "", ""),
        ("writer", ["coder"], ids[1], child),  # starts the other one
        ("deeper", ["coder", "writer"], ids[4], grandchild),
    ]
    listed = _run(family, "audit", "list", family.policy)
    assert "deeper, started by writer, started by coder  claude.Bash" in listed
    assert f"under {ids[4]}" in listed
    within = _run(family, "audit", "list", family.policy, "--within", ids[1])
    assert within.count("  allow  ") == 4
    assert "2 calls under it" in within


async def test_a_command_of_a_sub_agent_sees_no_files_that_its_caller_lacks(family: HookWorld) -> None:
    (family.folder / "attic" / "old.txt").write_text("old")
    (family.project / "a.txt").write_text("new")
    family.policy.write_text(FAMILY.replace(', "claude.Bash" = "deny"', ""))
    command = {"command": f"cat {family.folder}/attic/old.txt; cat a.txt"}
    await _start(family, "admin", "t0")
    for call_id, seen, more in (("t1", "new", _child("admin")), ("t2", "oldnew", {"agent": "admin"})):
        answer = await family.ask("Bash", command, call_id, **more)
        assert answer["permissionDecision"] == "allow", answer
        _, out, _ = await family.start(("bash", "-c", answer["updatedInput"]["command"]))
        assert out == seen


def _run(world: HookWorld, *words: object) -> str:
    """Run our command line in the surroundings of the gate."""
    command = [sys.executable, "-m", "gatewright", *map(str, words)]
    environ = {**world.environment, "GATEWRIGHT_KEYS": str(world.keys)}
    return subprocess.run(command, env=environ, check=True, capture_output=True, text=True).stdout
