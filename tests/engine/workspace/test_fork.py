"""A server opens a workspace and forks its workers: each asks, is answered and counts as if it had opened its own."""

from __future__ import annotations

import asyncio
import os
import traceback
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gatewright import Approval, ApprovalLimits, Workspace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gatewright.gate.approval import ApprovalRequest

POLICY = """
gatewright = 1
[agents.a]
tools = ["file"]
sources = ["d"]
approvals = { "file.create" = "ask" }
[[agents.a.tool_rules]]
tool_name = "file"
conditions = ["operation:read"]
rule_type = { RateLimit = { calls = 5, per = "1h" } }
[[sources]]
id = "d"
type = "file"
base_path = "d"
default_permission = "read_write"
"""


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    (tmp_path / "ws/d").mkdir(parents=True)
    (tmp_path / "ws/d/x").write_text("x\n")
    (tmp_path / "ws/policy.toml").write_text(POLICY)
    opened = Workspace.open(tmp_path / "ws", keys=tmp_path / "keys", approvals=ApprovalLimits(timeout_s=60.0))
    yield opened
    opened.close()


def answering(workspace: Workspace) -> Callable[[tuple[ApprovalRequest, ...]], None]:
    def answer(questions: tuple[ApprovalRequest, ...]) -> None:
        for question in questions:
            workspace.broker.answer(question.request_id, Approval(True, "dana"))

    return answer


def create(workspace: Workspace, name: str) -> str:
    arguments = {"op": "create", "path": name, "content": name}
    return str(asyncio.run(workspace.gate.call("a", "file", arguments, approver=workspace.broker)).status)


def children(count: int, work: Callable[[int], bool]) -> list[int]:
    """The exit codes of forked processes that do their work, 0 where it was well."""
    found: list[int] = []
    for number in range(count):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                code = 0 if work(number) else 2
            except Exception:  # noqa: BLE001 - nothing may leave the child but its code
                traceback.print_exc()
            finally:
                os._exit(code)
        found.append(child)
    return [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in found]


def test_forked_workers_ask_and_the_operator_of_the_parent_answers(workspace: Workspace) -> None:
    leave = workspace.broker.subscribe(answering(workspace))
    assert create(workspace, "parent") == "allowed"  # its thread runs and its file is held when it forks

    assert children(3, lambda number: create(workspace, f"child-{number}") == "allowed") == [0, 0, 0]
    assert create(workspace, "again") == "allowed"
    leave()
    assert sorted(path.name for path in (workspace.folder / "d").iterdir()) == [
        "again", "child-0", "child-1", "child-2", "parent", "x",
    ]  # fmt: skip


def test_forked_worker_has_the_operator_that_it_gets_itself(workspace: Workspace) -> None:
    workspace.broker.subscribe(answering(workspace), announce=False)
    assert create(workspace, "parent") == "allowed"

    def work(_number: int) -> bool:
        unanswered = create(workspace, "nobody")
        workspace.broker.subscribe(answering(workspace))
        return (unanswered, create(workspace, "somebody")) == ("unanswered", "allowed")

    assert children(1, work) == [0]


def test_forked_workers_share_one_rate(workspace: Workspace) -> None:
    read = {"op": "read", "path": "x"}
    assert asyncio.run(workspace.gate.call("a", "file", read)).status == "allowed"

    def work(number: int) -> bool:
        done = [asyncio.run(workspace.gate.call("a", "file", read)).status for _ in range(3)]
        (workspace.folder / f"worker-{number}").write_text(str(sum(one == "allowed" for one in done)))
        return True

    assert children(4, work) == [0] * 4
    assert sum(int((workspace.folder / f"worker-{number}").read_text()) for number in range(4)) == 4
