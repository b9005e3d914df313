"""Approvals between real processes: one makes calls, others list, answer, revoke, and some die."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gatewright.gate import Approval, PermissionBroker, Remember
from gatewright.workspace import permission_broker
from tests.engine.gate.asking import Desk, a_request
from tests.support.checkout import ROOT

POLICY = """gatewright = 1

[agents.archivist]
tools = ["file"]
approvals = { file = "ask" }

[[sources]]
id = "docs"
type = "file"
base_path = "docs"
default_permission = "read_write"
"""
COMMAND = (sys.executable, "-c", "from gatewright.cli.main import script; script()")
READ = {"op": "read", "path": "note.md"}
SECONDS = 30.0


class Caller:
    """A calling process."""

    def __init__(self, folder: Path, *options: str) -> None:
        command = [sys.executable, "-m", "tests.engine.gate.calling_process", str(folder), *options]
        self.process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )
        assert self.result() == {"ready": True}

    def send(self, **command: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()

    def result(self) -> Any:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    async def later(self) -> Any:
        return await asyncio.to_thread(self.result)

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "note.md").write_text("hello\n", "utf-8")
    (tmp_path / "policy.toml").write_text(POLICY, "utf-8")
    return tmp_path


@pytest.fixture
def caller(folder: Path) -> Iterator[Caller]:
    made = Caller(folder, "--waits-alone")
    yield made
    made.end()


@pytest.fixture
def broker(folder: Path) -> Iterator[PermissionBroker]:
    made = permission_broker(folder, state=folder / "state", keys=folder / "keys")
    yield made
    made.close()


def gatewright(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, "approvals", words[0], str(folder), *words[1:], "--state", "state"],
        cwd=folder,
        env={"GATEWRIGHT_KEYS": str(folder / "keys"), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )


async def test_one_process_waits_and_others_list_and_answer(
    folder: Path, caller: Caller, broker: PermissionBroker
) -> None:
    caller.send(call="file", arguments=READ)
    await Desk(broker).question()
    listed = json.loads(gatewright(folder, "list", "--json").stdout)["pending"]
    answered = gatewright(folder, "answer", listed[0]["id"], "--once", "--who", "dana", "--json")

    assert (len(listed), listed[0]["tool"], listed[0]["arguments"]["path"]) == (1, "file", "note.md")
    assert json.loads(answered.stdout)["approved"] is True
    assert await caller.later() == {"status": "allowed", "code": "allowed"}
    assert broker.pending() == ()
    assert broker.standing() == ()


async def test_standing_approval_of_one_process_holds_in_another_until_it_is_revoked(
    folder: Path, caller: Caller, broker: PermissionBroker
) -> None:
    desk = Desk(broker)
    caller.send(call="file", arguments=READ)
    broker.answer((await desk.question()).request_id, Approval(True, "dana", Remember.DURATION, 3600.0))
    assert (await caller.later())["status"] == "allowed"
    await desk.empty()
    caller.send(call="file", arguments=READ)
    assert (await caller.later())["status"] == "allowed"

    broker.revoke(broker.standing()[0].grant_id, "eve")
    caller.send(call="file", arguments=READ)
    question = await desk.question()
    broker.answer(question.request_id, Approval(False, "dana"))
    assert await caller.later() == {"status": "denied", "code": "approval-refused"}
    kinds = [json.loads(row)["kind"] for row in audit_rows(folder)]
    assert kinds.count("GrantRevoked") == 1
    assert kinds[-1] == "ToolDenied"


async def test_question_of_a_killed_process_disappears(caller: Caller, broker: PermissionBroker) -> None:
    desk = Desk(broker)
    caller.send(call="file", arguments=READ)
    question = await desk.question()
    caller.process.send_signal(signal.SIGKILL)
    await asyncio.to_thread(caller.process.wait)

    await desk.empty()
    assert broker.pending() == ()
    assert broker.answer(question.request_id, Approval(True, "dana")) is None
    assert broker.standing() == ()


async def test_operator_that_was_killed_is_not_attached(folder: Path, broker: PermissionBroker) -> None:
    watcher = watching(folder)
    try:
        caller = Caller(folder)
        caller.send(call="file", arguments=READ)
        shown = await asyncio.to_thread(watched_question, watcher)
        watcher.kill()
        await asyncio.to_thread(watcher.wait)
        broker.answer(shown["id"], Approval(True, "dana"))
        assert (await caller.later())["status"] == "allowed"
        caller.send(call="file", arguments=READ)
        assert (await caller.later())["status"] == "unanswered"
        caller.end()
    finally:
        watcher.kill()
        watcher.communicate()


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Processes that are started hear SIGINT, also where this one was started in the background, deaf to it."""
    kept = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, kept)


def test_watching_ends_at_an_interrupt_with_its_exit_code(folder: Path, interruptible: None) -> None:
    watcher = watching(folder)
    try:
        watcher.send_signal(signal.SIGINT)
        watcher.communicate()
    finally:
        watcher.kill()
        watcher.wait()

    assert watcher.returncode == 130
    assert list((folder / "state").glob("*.alive")) == []


def test_two_processes_never_spend_one_approval_twice(folder: Path, broker: PermissionBroker) -> None:
    grants = [broker.grants.remember(a_request(digest=f"d{n}"), Approval(True, "dana")).grant_id for n in range(60)]
    callers = [Caller(folder) for _ in range(2)]
    for caller in callers:
        caller.send(spend=grants)
    taken = [caller.result() for caller in callers]
    for caller in callers:
        caller.end()

    assert [sum(pair) for pair in zip(*taken, strict=True)] == [1] * 60
    assert broker.standing() == ()


def watching(folder: Path) -> subprocess.Popen[str]:
    """``approvals list --watch`` in a process of its own, once it is attached."""
    watcher = subprocess.Popen(
        [*COMMAND, "approvals", "list", str(folder), "--watch", "--json", "--state", "state"],
        cwd=folder,
        env={"GATEWRIGHT_KEYS": str(folder / "keys"), "PATH": ""},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert watcher.stdout is not None
    assert json.loads(watcher.stdout.readline()) == {"pending": []}
    return watcher


def watched_question(watcher: subprocess.Popen[str]) -> dict[str, Any]:
    assert watcher.stdout is not None
    for line in watcher.stdout:
        if questions := json.loads(line)["pending"]:
            return questions[0]
    raise AssertionError("the watcher ended")


def audit_rows(folder: Path) -> list[str]:
    done = subprocess.run(
        [*COMMAND, "audit", "export", str(folder), "--state", "state"],
        cwd=folder,
        env={"GATEWRIGHT_KEYS": str(folder / "keys"), "PATH": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()
