"""How often a tool may be called in a conversation, whoever is killed, forked or beside it: never more than that."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import sqlite3
import subprocess
import sys
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gatewright.base.errors import WorkspaceError
from gatewright.gate import Approval, ApprovalRequest, Session
from gatewright.workspace import Workspace
from tests.engine.workspace.killed_process import WAYS, calls, opened
from tests.support.checkout import ROOT

POLICY = """\
gatewright = 1

[agents.a]
tools = ["ledger"]

[agents.b]
tools = ["ledger"]
"""
LIMIT = """
[[agents.a.tool_rules]]
tool_name = "ledger"
rule_type = {{ MaxCalls = {most} }}
conditions = [{conditions}]
"""


def folder_with(tmp_path: Path, most: int, conditions: str = "") -> Path:
    (tmp_path / "policy.toml").write_text(POLICY + LIMIT.format(most=most, conditions=conditions), encoding="utf-8")
    return tmp_path


def effects(folder: Path) -> int:
    path = folder / "ledger.txt"
    return len(path.read_text(encoding="utf-8").split()) if path.exists() else 0


def process(folder: Path, way: str, session_id: str, times: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.engine.workspace.killed_process", str(folder), way, session_id, str(times)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("most", [1, 2])
def test_process_killed_after_an_effect_has_used_the_call_up(tmp_path: Path, way: str, most: int) -> None:
    folder = folder_with(tmp_path, most)
    ends: list[int] = []
    for _ in range(most + 1):
        with process(folder, way, "chat", 1) as child:
            child.communicate()
            ends.append(child.returncode)
    assert ends == [-9] * most + [0]
    assert effects(folder) == most
    with closing(opened(folder)) as workspace:
        assert workspace.session("a", "chat").calls("ledger") == most
        assert workspace.decide("a", "ledger", {"op": "pay"}, session=Session("chat", "a")).code == "max-calls"
        assert asyncio.run(calls(workspace, way, "another", 0)) == ["allowed"] * most + ["max-calls"]


@pytest.mark.parametrize("way", [way for way in WAYS if way != "hold"])
def test_processes_side_by_side_share_what_a_conversation_has_left(tmp_path: Path, way: str) -> None:
    folder = folder_with(tmp_path, 5)
    running = [process(folder, way, "chat", 0) for _ in range(3)]
    told = "".join(child.communicate()[0] for child in running)
    assert (
        Counter(word.strip(" []'\n") for word in told.replace("][", "],[").replace("\n", ",").split(","))["allowed"]
        == effects(folder)
        == 5
    )


def spend(workspace: Workspace, session: Session, allowed: Any) -> None:
    async def all_at_once() -> int:
        codes = await asyncio.gather(*(workspace.call("a", "ledger", {"op": "pay"}, session=session) for _ in range(4)))
        return sum(outcome.code == "allowed" for outcome in codes)

    allowed.put(asyncio.run(all_at_once()))


@pytest.mark.parametrize("named", [None, "chat"])
def test_forks_with_the_same_session_share_what_it_has_left(tmp_path: Path, named: str | None) -> None:
    fork = multiprocessing.get_context("fork")
    allowed = fork.Queue()
    with closing(opened(folder_with(tmp_path, 6))) as workspace:
        session = Session(named, "a")
        spend(workspace, session, allowed)
        children = [fork.Process(target=spend, args=(workspace, session, allowed)) for _ in range(4)]
        for child in children:
            child.start()
        assert sum(allowed.get() for _ in range(5)) == effects(tmp_path) == 6
        for child in children:
            child.join()


async def test_two_objects_of_one_conversation_count_together(tmp_path: Path) -> None:
    with closing(opened(folder_with(tmp_path, 3))) as workspace:
        one, other = Session("chat", "a"), Session("chat", "a")
        codes = [
            (await workspace.call("a", "ledger", {"op": "pay"}, session=session)).code
            for session in (one, other, one, other, one)
        ]
        assert codes == ["allowed"] * 3 + ["max-calls"] * 2
        assert workspace.decide("a", "ledger", {"op": "pay"}, session=other).stage == "rules"


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    turns=st.lists(
        st.lists(
            st.tuples(st.integers(0, 1), st.sampled_from(["pay", "refund"]), st.sampled_from(["x", "y"])), max_size=4
        ),
        max_size=8,
    )
)
def test_writers_in_turns_count_what_each_and_the_other_wrote(
    tmp_path_factory: pytest.TempPathFactory, turns: list[list[tuple[int, str, str]]]
) -> None:
    folder = folder_with(tmp_path_factory.mktemp("turns"), 3, '"operation:pay"')
    allowed: Counter[tuple[str, str]] = Counter()

    known = {(at, name): Session(name, "a") for at in (0, 1) for name in "xy"}

    async def play(writers: tuple[Workspace, Workspace]) -> None:
        for turn in turns:  # the calls of one turn come at once
            asked = [writers[at].call("a", "ledger", {"op": op}, session=known[at, name]) for at, op, name in turn]
            for (_, op, name), outcome in zip(turn, await asyncio.gather(*asked), strict=True):
                assert outcome.code in {"allowed", "max-calls"}
                allowed[op, name] += outcome.code == "allowed"

    with closing(opened(folder)) as one, closing(opened(folder)) as other:
        asyncio.run(play((one, other)))
    wanted = Counter((op, name) for turn in turns for _, op, name in turn)
    assert allowed == {key: min(3, count) if key[0] == "pay" else count for key, count in wanted.items()}
    with closing(opened(folder)) as later:
        for op, name in wanted:
            assert later.session("a", name).calls("ledger", frozenset({op})) == allowed[op, name]


async def test_a_limit_of_one_operation_counts_that_operation_of_that_agent_and_conversation(tmp_path: Path) -> None:
    with closing(opened(folder_with(tmp_path, 1, '"operation:pay"'))) as workspace:
        for agent, op, name in [("a", "refund", "x"), ("b", "pay", "x"), ("a", "pay", "y"), ("a", "pay", "x" * 150)]:
            assert (await workspace.call(agent, "ledger", {"op": op}, session=Session(name, agent))).code == "allowed"
        for name, code in [("x", "allowed"), ("y", "max-calls"), ("x" * 149, "allowed"), ("x" * 150, "max-calls")]:
            outcome = await workspace.call("a", "ledger", {"op": "pay"}, session=Session(name, "a"))
            assert outcome.code == code, name


@pytest.mark.parametrize("approved", [True, False])
async def test_call_that_asked_counts_once_it_is_approved(tmp_path: Path, approved: bool) -> None:
    folder = folder_with(tmp_path, 1)
    text = (folder / "policy.toml").read_text(encoding="utf-8")
    asks = text.replace("[agents.a]", '[agents.a]\napprovals = { side_effecting = "ask" }')
    (folder / "policy.toml").write_text(asks, encoding="utf-8")

    async def answer(request: ApprovalRequest) -> Approval:
        assert request.tool == "ledger"
        return Approval(approved, "dana")

    with closing(opened(folder)) as workspace:
        await workspace.call("a", "ledger", {"op": "pay"}, session=Session("chat", "a"), approver=answer)
        await workspace.call("a", "ledger", {"op": "no such"}, session=Session("chat", "a"))
        assert workspace.session("a", "chat").calls("ledger") == int(approved)
        verdict = workspace.decide("a", "ledger", {"op": "pay"}, session=Session("chat", "a")).code
        assert verdict == ("max-calls" if approved else "approval-needed")


async def test_a_log_of_an_older_version_counts_and_stays_sound(tmp_path: Path) -> None:
    with closing(opened(folder_with(tmp_path, 2))) as workspace:
        await workspace.call("a", "ledger", {"op": "pay"}, session=Session("chat", "a"))
    with closing(sqlite3.connect(tmp_path / "state/audit.sqlite3")) as file:
        file.execute("DROP INDEX began")
    with closing(opened(tmp_path)) as workspace:
        assert await calls(workspace, "own object", "chat", 0) == ["allowed", "max-calls"]
        report = workspace.audit.verify()
        assert report.is_sound
        assert not report.unended
    with closing(sqlite3.connect(tmp_path / "state/audit.sqlite3")) as file:
        question = "EXPLAIN QUERY PLAN SELECT seq FROM rows WHERE session = 'chat' AND seq > 1 AND "
        kinds = ("ToolInvoked", "ApprovalResolved", "ToolAbandoned", "SessionDeleted")
        either = " OR ".join(f"kind = '{kind}'" for kind in kinds)
        plan = file.execute(f"{question}({either})").fetchall()
        assert "INDEX began" in json.dumps(plan)


async def test_conversation_held_by_this_task_is_refused_a_second_time_and_waited_for_by_another(
    tmp_path: Path,
) -> None:
    with closing(opened(folder_with(tmp_path, 1))) as workspace:
        hold = workspace.sessions.hold

        async def again(patience_s: float | None) -> str:
            try:
                async with hold("chat", agent_id="a", patience_s=patience_s):
                    return "held"
            except WorkspaceError as error:
                return str(error)

        async with hold("chat", agent_id="a"):
            assert "this task holds" in await again(None)
            async with hold("chat", agent_id="b"), hold("other", agent_id="a"):
                assert "this task holds" in await again(9.0)
            assert "held by" in await asyncio.create_task(again(0.0))
            waiting = asyncio.create_task(again(None))
            await asyncio.sleep(0)
            assert not waiting.done()
        assert await waiting == "held"
        assert await again(None) == "held"
