"""The level `ask`: every access asks first, reading too, whatever tool comes to it."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gatewright.gate import Approval, ApprovalRequest, Outcome, Status
from gatewright.policy.document import PermissionRule, PlaceUse
from gatewright.policy.target import LevelDecision, Tree, View, view_of
from gatewright.policy.verdict import Action, Permission, Verdict, is_more_open, verdict_for
from gatewright.sources.known import strictest_level
from gatewright.workspace import Workspace
from tests.engine.workspace.test_host_catalogs import Agent

POLICY = """\
gatewright = 1
[defaults]
approvals = { privileged = "allow" }
[workspace]
roots = { shared = "docs" }
[workspace.shell]
backend = "host"
confine = "none"
allow = ["cat", "tee", "ls", "grep"]
[agents.a]
tools = ["file", "file_read", "file_search", "file_list", "file_write", "block", "shell_exec", "read_note"]
capabilities = ["Exec", { FsRead = { prefixes = ["docs"] } }, { FsWrite = { prefixes = ["docs"] } }]
sources = ["docs"]
[[sources]]
id = "docs"
type = "file"
base_path = "docs"
default_permission = "read_write"
permission_rules = [{ pattern = "private/", permission = "ask" }, { pattern = "diary.txt", permission = "ask" }]
[[catalogs]]
id = "strange"
type = "host"
manifest = "notes.json"
[tools.read_note]
paths = { path = "read" }
"""
NOTE = {
    "name": "read_note",
    "description": "Reads a note.",
    "inputSchema": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
}
ACCESSES: list[tuple[str, dict[str, Any]]] = [
    *(("file", {"op": op, "path": "diary.txt"}) for op in ("read", "load", "status", "diff", "delete")),
    ("file", {"op": "append", "path": "diary.txt", "content": "x"}),
    ("file", {"op": "create", "path": "private/new.txt", "content": "x"}),
    ("file", {"op": "read", "path": "private/a.txt"}),
    ("file", {"op": "list", "path": "private"}),
    ("block", {"op": "load", "label": "diary.txt", "source_id": "docs"}),
    ("file_read", {"path": "shared/diary.txt"}),
    ("file_read", {"path": "shared/./private/a.txt"}),
    ("file_search", {"query": "dear", "path": "shared/diary.txt"}),
    ("file_write", {"path": "shared/private/a.txt", "content": "x"}),
    ("shell_exec", {"command": "cat diary.txt"}),
    ("shell_exec", {"command": "cat < diary.txt"}),
    ("shell_exec", {"command": "cat p*/a.txt"}),
    ("shell_exec", {"command": "grep -r dear ."}),
    ("shell_exec", {"command": "tee private/a.txt"}),
    ("read_note", {"path": "docs/diary.txt"}),
]


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    for name in ("diary.txt", "private/a.txt", "open.txt"):
        (tmp_path / "docs" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "docs" / name).write_text("dear diary\n")
    (tmp_path / "policy.toml").write_text(POLICY)
    (tmp_path / "notes.json").write_text(json.dumps([NOTE]))
    with Workspace.open(tmp_path, keys=tmp_path / "keys") as made:
        yield made


def call(workspace: Workspace, tool: str, **arguments: Any) -> Outcome:
    return asyncio.run(workspace.call("a", tool, arguments))


@pytest.mark.parametrize(("tool", "arguments"), ACCESSES)
def test_every_access_asks_and_nothing_is_told_before_the_answer(
    workspace: Workspace, tool: str, arguments: dict[str, Any]
) -> None:
    decision = workspace.decide("a", tool, arguments)
    assert (decision.verdict, decision.stage) == (Verdict.ASK, "permission"), decision.reason
    outcome = call(workspace, tool, **arguments)
    assert outcome.status is Status.UNANSWERED
    assert "diary\n" not in outcome.output
    assert not (workspace.folder / "docs/private/new.txt").exists()


@pytest.mark.parametrize(("tool", "arguments"), [one for one in ACCESSES if one[1].get("op") not in {"delete"}])
def test_after_a_yes_the_access_is_made(workspace: Workspace, tool: str, arguments: dict[str, Any]) -> None:
    broker = workspace.broker

    def say_yes(requests: tuple[ApprovalRequest, ...]) -> None:
        for request in requests:
            broker.answer(request.request_id, Approval(approved=True, who="ann"))

    leave = broker.subscribe(say_yes)
    try:
        outcome = call(workspace, tool, **arguments)
    finally:
        leave()
    assert outcome.code in {"allowed", "no-block", "not-supported"}, (outcome.code, outcome.detail)


def test_a_search_passes_it_over_a_list_names_it_and_enters_no_folder_that_asks(workspace: Workspace) -> None:
    found = call(workspace, "file_search", query="dear", path="shared")
    assert found.status is Status.ALLOWED
    assert "open.txt" in found.output
    assert "diary.txt:" not in found.output
    assert "private/a.txt" not in found.output
    assert '"asks_first":2' in found.output.replace(" ", "")
    listed = call(workspace, "file", op="list", path=".", recursive=True)
    assert "diary.txt" in listed.output
    assert "a.txt" not in listed.output.replace("diary.txt", "")


def test_no_process_sees_it_with_any_use_of_the_place() -> None:
    assert {view_of(Permission.ASK, use) for use in PlaceUse} == {View.ABSENT}
    assert Tree("/x", Permission.READ_ONLY, (PermissionRule("a", Permission.ASK),)).closes


@pytest.mark.parametrize("level", Permission)
def test_where_places_overlap_the_strictest_answer_to_each_action_counts(level: Permission) -> None:
    both = strictest_level([LevelDecision(level), LevelDecision(Permission.ASK)]).permission
    assert not is_more_open(both, level)
    assert not is_more_open(both, Permission.ASK)
    assert all(verdict_for(Permission.ASK, action) is Verdict.ASK for action in Action)


HOST_CALLS: list[tuple[str, dict[str, Any], Verdict]] = [
    ("Read", {"file_path": "diary/a"}, Verdict.ASK),
    ("Write", {"file_path": "diary/new", "content": "x"}, Verdict.ASK),
    ("Edit", {"file_path": "diary/a", "old_string": "a", "new_string": "b"}, Verdict.ASK),
    ("Grep", {"pattern": "text", "path": "diary"}, Verdict.ASK),
    ("Grep", {"pattern": "text", "path": "."}, Verdict.DENY),
    ("Bash", {"command": "cat diary/a"}, Verdict.ASK),
    ("Bash", {"command": "timeout 5 cat diary/a"}, Verdict.ASK),
    ("Bash", {"command": "cat a.py > diary/list"}, Verdict.ASK),
    ("Bash", {"command": "cat a.py"}, Verdict.ALLOW),
    ("Bash", {"command": "git status -s"}, Verdict.ALLOW),
    ("Bash", {"command": "git status && nice git -C . push"}, Verdict.DENY),
    ("Bash", {"command": "git status && nice git push"}, Verdict.ASK),
    ("Bash", {"command": "git stash"}, Verdict.DENY),
    ("Read", {"file_path": "private/a"}, Verdict.DENY),
    ("Read", {"file_path": "~/.ssh/id"}, Verdict.DENY),
    ("Write", {"file_path": "private/new", "content": "x"}, Verdict.DENY),
    ("Grep", {"pattern": "text", "path": "private"}, Verdict.DENY),
    ("Bash", {"command": "cat private/a"}, Verdict.DENY),
    ("Bash", {"command": "cd private && cat a"}, Verdict.DENY),
    ("Bash", {"command": "cat < private/a"}, Verdict.DENY),
]


def test_it_holds_for_the_tools_of_a_coding_agent_and_so_do_closed_places_and_first_words(tmp_path: Path) -> None:
    agent = Agent(tmp_path)
    for name in ("diary/a", "private/a"):
        (agent.project / name).parent.mkdir()
        (agent.project / name).write_text("text")
    policy = tmp_path / "policy.toml"
    text = policy.read_text().replace('allow = ["ls", "cat", "touch"]', 'allow = ["ls", "cat", "cd", "git status"]')
    text = text.replace('deny = ["rm"]', 'deny = ["rm"]\nask = ["git push"]')
    text = text.replace(
        '{ pattern = "secret/**"', '{ pattern = "diary/", permission = "ask" },\n  { pattern = "secret/**"'
    )
    policy.write_text(f'{text}\n[workspace]\nclosed = ["project/private", "~/.ssh"]\n')
    agent.workspace.reload()
    with agent.workspace:
        found = [(tool, given, agent.decide_any(f"claude.{tool}", given).verdict) for tool, given, _ in HOST_CALLS]
    assert found == HOST_CALLS
