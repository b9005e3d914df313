"""What every built-in tool declares of its results is so: the same calls on equal workspaces, one after the other."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Any

import pytest

from gatewright.builtins import builtin_tools, file_tool, note_tools, root_tools
from gatewright.gate import Status
from gatewright.memory.block_store import adopt_memory
from gatewright.tools.declaration import Determinism, SideEffect
from gatewright.tools.tool import Tool
from gatewright.workspace import Approval, ApprovalRequest, Workspace, create_workspace

OLDER = ("context", "recall@1")
AGENT = f"""
[agents.older]
tools = {list(OLDER)}
"""
OUTLINE = "drafts/outline.md"
CALLS: dict[str, list[dict[str, Any]]] = {
    "block": [
        {"op": "info", "label": "plan"},
        {"op": "unpin", "label": "plan"},
        {"op": "pin", "label": "plan"},
        {"op": "load", "label": "plan"},
        {"op": "unpin", "label": "plan"},
        {"op": "archive", "label": "plan"},
    ],
    "block_edit": [
        {"op": "append", "label": "plan", "content": "sleep"},
        {"op": "undo", "label": "plan"},
        {"op": "redo", "label": "plan"},
        {"op": "append", "label": "logbook", "content": "looked at the weir"},
        {"op": "set_field", "label": "gauges", "field": "bridge", "value": 0.5},
    ],
    "recall": [{"op": "search", "query": "level"}, {"op": "insert", "content": "a wren at the mill"}],
    "search": [{"domain": "all", "query": "level"}],
    "source": [{"op": "list"}, {"op": "status"}],
    "context": [
        {"operation": "load_from_archival", "label": "season-2025"},
        {"operation": "append", "label": "season-2025", "value": " Dry."},
        {"operation": "replace", "label": "season-2025", "old": "Dry", "new": "Wet"},
        {"operation": "archive", "label": "season-2025"},
    ],
    "recall@1": [
        {"operation": "insert", "label": "otter", "value": "an otter"},
        {"operation": "append", "label": "otter", "value": ", twice"},
        {"operation": "read", "label": "otter"},
        {"operation": "delete", "label": "otter"},
    ],
    "memory_search": [{"query": "battery"}],
    "memory_save": [{"content": "The depot is closed on Mondays."}],
    "file_list": [{}],
    "file_read": [{"path": "todo.md"}],
    "read_file": [{"path": "todo.md"}],
    "file_search": [{"query": "gauge"}],
    "file_write": [{"path": "new.txt", "content": "new"}, {"path": "new.txt", "content": "newer"}],
    "file_edit": [{"path": "todo.md", "old_text": "gauge", "new_text": "board"}],
    "vault_copyto": [{"source_path": "vault/calibration.csv", "destination_path": "shared/c.csv"}],
    "file_delete": [{"path": "todo.md"}],
    "shell_exec": [{"command": "date +%N"}],
    "send_message": [{"target": {"type": "user"}, "content": "The water is low."}],
    "file": [
        {"op": "list"},
        {"op": "read", "path": OUTLINE},
        {"op": "load", "path": OUTLINE},
        {"op": "append", "path": OUTLINE, "content": "4. Thanks\n"},
        {"op": "insert", "path": OUTLINE, "line": 1, "content": "0. Title\n"},
        {"op": "replace", "path": OUTLINE, "old": "Thanks", "new": "Sources"},
        {"op": "diff", "path": OUTLINE},
        {"op": "status", "path": OUTLINE},
        {"op": "save", "path": OUTLINE},
        {"op": "reload", "path": OUTLINE},
        {"op": "create", "path": "drafts/new.md", "content": "new\n"},
        {"op": "delete", "path": "drafts/new.md"},
    ],
}
"""Calls in an order in which each of them succeeds, on the demo."""
NOTED = ("memory_update", "memory_delete")
"""Called with the id of a note that is there."""
ALL = (*builtin_tools(), *note_tools(), *root_tools(), file_tool())
BY_NAME = {
    tool.name if tool.major == max(t.major for t in ALL if t.name == tool.name) else f"{tool.name}@1": tool
    for tool in ALL
}


async def approve(request: ApprovalRequest) -> Approval:
    return Approval(True, who="the test")


@pytest.fixture(scope="module")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("origin") / "demo"
    policy = create_workspace(folder, "demo")
    text = policy.read_text("utf-8").replace('rule_type = { Cooldown = "100ms" }', "rule_type = { MaxCalls = 99 }")
    # how it is confined is another matter, and cannot be had everywhere
    text = text.replace("[workspace.shell]", '[workspace.shell]\nconfine = "none"', 1)
    policy.write_text(text.replace('[[sources]]\nid = "archive"', f'{AGENT}\n[[sources]]\nid = "archive"', 1), "utf-8")
    return folder


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "copy"


async def results(origin: Path, place: Path, name: str) -> list[bytes]:
    """What the calls of a tool give in a new copy of the workspace that always stands at the same place."""
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(origin, place)
    found: list[bytes] = []
    with Workspace.open(place) as workspace:
        adopt_memory(workspace.state_folder, workspace.key_folder)
        calls = CALLS.get(name) or []
        if name in NOTED:
            [note_id] = {hit.note_id for hit in workspace.notes.of("station").search("depot", top_k=1)}
            calls = [{"note_id": note_id, **({"content": "closed"} if name == "memory_update" else {})}]
        agent, tool = ("older", name.partition("@")[0]) if name in OLDER else ("operator", name)
        for arguments in calls:
            outcome = await workspace.call(agent, tool, arguments, approver=approve)
            assert outcome.status is Status.ALLOWED, (arguments, outcome.output, outcome.decision.reason)
            assert outcome.data is not None
            found.append(outcome.data)
    return found


@pytest.mark.parametrize("name", sorted(BY_NAME))
async def test_results_depend_on_what_the_tool_declares(origin: Path, place: Path, name: str) -> None:
    tool = BY_NAME[name]
    if SideEffect.NET_READ in tool.side_effects and name not in CALLS:
        assert tool.determinism in {Determinism.MAYBE, Determinism.NON_DETERMINISTIC}
        return
    first = await results(origin, place, name)
    await asyncio.sleep(0.002)  # times in results are in milliseconds
    second = await results(origin, place, name)

    assert first
    if tool.determinism is Determinism.DETERMINISTIC:
        assert first == second
    elif tool.determinism is Determinism.NON_DETERMINISTIC:
        assert first != second
    else:
        assert tool.determinism is Determinism.MAYBE


@pytest.mark.parametrize("tool", ALL, ids=lambda tool: f"{tool.name}@{tool.major}")
def test_a_tool_that_reads_only_declares_no_effect_that_writes(tool: Tool) -> None:
    writing = {SideEffect.NET_WRITE, SideEffect.FS_WRITE, SideEffect.DB_WRITE, SideEffect.PROCESS_SPAWN}
    if tool.facts().tier == "read_only":
        assert writing.isdisjoint(tool.side_effects)
        assert tool.side_effects
