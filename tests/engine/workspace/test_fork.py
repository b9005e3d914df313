"""A server opens a workspace and forks its workers: each asks, is answered and counts as if it had opened its own."""

from __future__ import annotations

import asyncio
import faulthandler
import os
import signal
import threading
import traceback
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gatewright import Approval, ApprovalLimits, Session, Workspace
from gatewright.base.errors import WorkspaceError
from gatewright.gate import AuditEntry, AuditLog, AuditUnavailable, RowKind
from gatewright.memory.block_store import BlockStore

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

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
    opened = Workspace.open(
        tmp_path / "ws", keys=tmp_path / "keys", approvals=ApprovalLimits(timeout_s=60.0, waiting=15)
    )
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
            faulthandler.register(signal.SIGALRM, file=2, chain=True)
            signal.alarm(20)  # one that hangs says where, and is killed
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


@contextmanager
def threads_that(work: Callable[[], object]) -> Generator[None]:
    """Three threads do their work over and over meanwhile."""
    stop = threading.Event()

    def run() -> None:
        while not stop.is_set():
            work()

    running = [threading.Thread(target=run) for _ in range(3)]
    for thread in running:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in running:
            thread.join()


def test_workers_forked_while_threads_make_calls_do_not_hang(workspace: Workspace) -> None:
    session = Session("shared", "a")

    def read(_number: int = 0) -> bool:
        done = asyncio.run(workspace.gate.call("a", "file", {"op": "read", "path": "x"}, session=session))
        return done.code in {"allowed", "rate-limit"}

    def write(number: int) -> bool:
        return create(workspace, f"made-{number}") == "allowed"

    workspace.broker.subscribe(answering(workspace))
    with threads_that(read):
        assert children(15, read) == [0] * 15
        assert children(15, write) == [0] * 15
    log = AuditLog(workspace.state_folder, workspace.folder.parent / "keys")
    assert log.verify().problems == ()


@contextmanager
def kept_by_a_thread(store: BlockStore, release: threading.Event) -> Generator[None]:
    inside = threading.Event()

    def change() -> None:
        with store.exclusive():
            inside.set()
            assert release.wait()

    thread = threading.Thread(target=change)
    thread.start()
    inside.wait()
    yield
    thread.join()


def test_fork_waits_for_the_end_of_a_change_in_another_thread(tmp_path: Path) -> None:
    store, release = BlockStore(tmp_path / "blocks.sqlite"), threading.Event()

    def work(_number: int) -> bool:
        with store.exclusive():
            return release.is_set()

    with kept_by_a_thread(store, release):
        threading.Timer(0.2, release.set).start()
        assert children(1, work) == [0]


def test_worker_forked_in_the_middle_of_an_endless_change_is_refused_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gatewright.record.process.PATIENCE_S", 0.05)
    log, store, release = (
        AuditLog(tmp_path, tmp_path / "keys"),
        BlockStore(tmp_path / "blocks.sqlite"),
        threading.Event(),
    )
    rows = [AuditEntry(RowKind.TOOL_INVOKED)]
    log.append(rows)

    def work(_number: int) -> bool:
        with pytest.raises(AuditUnavailable, match="forked while another thread was at work"):
            log.append(rows)
        with pytest.raises(WorkspaceError, match="forked while another thread was at work"):
            store.labels()
        return True

    with kept_by_a_thread(store, release):
        assert children(1, work) == [0]
        log.append(rows)
        release.set()
    assert children(1, lambda _number: log.append(rows)) == [0]
    assert log.verify().rows == 4
