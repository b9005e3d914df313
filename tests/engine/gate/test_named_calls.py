"""Calls that their program names: at most once, suspended until an answer, told again."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gatewright import Workspace, tool
from gatewright.base.amount import iso_utc
from gatewright.base.errors import WorkspaceError
from gatewright.gate import Approval, Gate, Outcome, Remember, RowKind, Status
from gatewright.gate.approvalstore import MOST_SUSPENDED
from gatewright.gate.turn import ToolCall
from gatewright.policy.document import Agent, Policy
from gatewright.policy.verdict import SafetyTier
from gatewright.tools.declaration import Normalization, ResultType
from gatewright.tools.registry import ToolRegistry
from gatewright.tools.tool import Tool
from tests.support.clock import ManualClock
from tests.support.patience import patient

POLICY = """gatewright = 1

[agents.clerk]
tools = ["pay", "look", "file"]
approvals = { pay = "ask" }

[[sources]]
id = "docs"
type = "file"
base_path = "docs"
default_permission = "partner"
"""
RULE = '[[agents.clerk.tool_rules]]\ntool_name = "look"\n'
SECRET = "ghp_" + "a1B2c3D4e5" * 4
Opened = Callable[..., Workspace]


class Bank:
    """What happened outside of the gate: a line in a file for each payment, that a killed process has made too."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "payments"
        self.path.touch()
        self.then: Callable[[], object] = bool

    @property
    def payments(self) -> list[str]:
        return self.path.read_text("utf-8").split()

    def tools(self) -> list[Tool]:
        @tool(safety_tier=SafetyTier.SIDE_EFFECTING, result_type=ResultType.STRING, normalization=Normalization.JSON)
        async def pay(amount: int) -> str:
            """Pay.

            Args:
                amount: How much.
            """
            with self.path.open("a", encoding="utf-8") as file:
                file.write(f"{amount}\n")
            waits = self.then()
            if asyncio.iscoroutine(waits):
                await waits
            return f"paid {amount} with {SECRET}"

        @tool(safety_tier=SafetyTier.READ_ONLY, result_type=ResultType.STRING, normalization=Normalization.JSON)
        async def look(size: int = 1) -> str:
            """Look.

            Args:
                size: How much to see.
            """
            with self.path.open("a", encoding="utf-8") as file:
                file.write("look\n")
            self.then()
            return "x" * size

        return [pay, look]


@pytest.fixture
def bank(tmp_path: Path) -> Bank:
    return Bank(tmp_path)


@pytest.fixture
def opened(tmp_path: Path, bank: Bank) -> Iterator[Opened]:
    """Opens the workspace as another process would: nothing is shared but the files."""
    folder, made, clock = tmp_path / "w", list[Workspace](), ManualClock()
    (folder / "docs").mkdir(parents=True)
    (folder / "policy.toml").write_text(POLICY, "utf-8")
    (folder / "docs" / "note.md").write_text("one\n", "utf-8")

    def open_it() -> Workspace:
        made.append(Workspace.open(folder, tools=bank.tools(), keys=tmp_path / "keys", clock=clock))
        return made[-1]

    open_it.clock = clock  # pyright: ignore[reportFunctionMemberAccess]
    yield open_it
    for one in made:
        one.close()


async def pay(workspace: Workspace, amount: int = 5, **more: Any) -> Outcome:
    given: dict[str, Any] = {"call_id": "c1", "conversation": "chat", "on_ask": "suspend"} | more
    return await workspace.call("clerk", "pay", {"amount": amount}, **given)


def answer(workspace: Workspace, approval: Approval | None = None) -> None:
    question = workspace.broker.pending()[0]
    assert workspace.broker.answer(question.request_id, approval or Approval(True, "dana"))


def kinds(workspace: Workspace) -> list[str]:
    return [row.kind for row in workspace.audit.rows() if row.call_id]


async def test_a_suspended_call_is_answered_and_made_by_processes_that_come_later(opened: Opened, bank: Bank) -> None:
    asked = await pay(opened())
    assert (asked.status, bank.payments) == (Status.WAITING, [])
    question = json.loads(json.dumps(asked.to_json()))["question"]
    other = opened()
    waiting = other.broker.pending()[0]
    assert (waiting.request_id, waiting.conversation, waiting.call_key) == (question["id"], "chat", "c1")
    assert kinds(other) == ["ToolInvoked", "PolicyDecision", "ApprovalRequested", "CallWaits"]
    assert (await pay(other)).question == waiting
    answer(other)
    assert other.broker.pending() == ()
    done = await pay(opened())
    assert (done.status, bank.payments) == (Status.ALLOWED, ["5"])
    rows = [row for row in other.audit.rows() if row.call_id]
    assert {row.call_id for row in rows} == {asked.call_id}
    invoked = [json.loads(row.body) for row in rows if row.kind == RowKind.TOOL_INVOKED]
    assert [body.get("answer") for body in invoked] == [None, waiting.request_id]
    report = other.audit.verify()
    assert (report.problems, report.unended) == ((), ())


async def test_a_call_that_waits_is_not_a_call_without_an_end(opened: Opened) -> None:
    workspace = opened()
    await pay(workspace)
    assert workspace.audit.verify().unended == ()


async def test_a_replay_gets_the_recorded_outcome_without_secrets(opened: Opened, bank: Bank) -> None:
    first = opened()
    await pay(first)
    answer(first)
    made = await pay(first)
    for workspace in (first, opened()):
        again = await pay(workspace)
        assert (again.replayed, again.status, again.output, again.data) == (True, made.status, made.output, made.data)
        assert SECRET not in f"{again.to_json()} {again.raw}"
        assert again.call_id == made.call_id
    assert bank.payments == ["5"]


async def test_a_call_that_asks_nobody_runs_once_and_tells_its_outcome(opened: Opened, bank: Bank) -> None:
    named: dict[str, Any] = {"call_id": "l1", "conversation": "chat"}
    made = await opened().call("clerk", "look", {}, **named)
    again = await opened().call("clerk", "look", '{ "size": 1 }', **named)
    assert (made.replayed, bank.payments) == (False, ["look"])
    assert again.code == "call-id-reused"  # other arguments than those sent before
    told = await opened().call("clerk", "look", "{}", **named)
    assert (told.replayed, told.output, bank.payments) == (True, made.output, ["look"])


@pytest.mark.parametrize(
    "limit",
    [
        '[[policy.rules]]\nname = "no"\neffect = "deny"\ntools = ["look"]\n',
        '[[policy.rules]]\nname = "who"\neffect = "ask"\ntools = ["look"]\n',
        '[policy]\ndefault = "ask"\n',
        RULE + "rule_type = { ArgumentConstraints = { size = { maximum = 0 } } }\n",
        RULE + 'rule_type = "RequiresPrecedingTools"\nconditions = ["pay"]\n',
        RULE + "rule_type = { RequiresConsent = {} }\n",
        RULE + "rule_type = { MaxCalls = 0 }\n",
    ],
)
async def test_a_call_that_observing_passes_runs_once_too(opened: Opened, bank: Bank, limit: str) -> None:
    until = iso_utc(getattr(opened, "clock").wall_s() + 86_400)  # noqa: B009
    observed = POLICY.replace("tools =", f'mode = "observe"\nobserve_until = {until}\ntools =')
    opened().policy_path.write_text(observed + limit, "utf-8")
    named: dict[str, Any] = {"call_id": "l1", "conversation": "chat", "on_ask": "suspend"}
    made = await opened().call("clerk", "look", {}, **named)
    assert (made.status, made.decision.enforced, made.replayed) == (Status.ALLOWED, False, False)
    for _ in range(2):
        assert (await opened().call("clerk", "look", {}, **named)).replayed
    workspaces = [opened() for _ in range(3)]
    named["call_id"] = "l2"
    await asyncio.gather(*(one.call("clerk", "look", {}, **named) for one in workspaces))
    assert bank.payments == ["look", "look"]


@pytest.mark.parametrize(
    "other", [{"call_id": "c2"}, {"conversation": "talk"}, {"context": "somebody"}], ids=["id", "conversation", "user"]
)
async def test_a_call_is_named_by_user_conversation_and_id(opened: Opened, bank: Bank, other: dict[str, Any]) -> None:
    from gatewright.tools.context import ToolExecutionContext

    if "context" in other:
        other = {"context": ToolExecutionContext(agent_id="", session_id="", user_id="ada")}
    workspace = opened()
    await pay(workspace)
    answer(workspace)
    await pay(workspace)
    assert (await pay(workspace, **other)).status is Status.WAITING
    answer(workspace)
    assert (await pay(workspace, **other)).status is Status.ALLOWED
    assert bank.payments == ["5", "5"]


@pytest.mark.parametrize("when", ["waiting", "answered", "made"])
async def test_the_same_id_for_another_call_is_denied(opened: Opened, bank: Bank, when: str) -> None:
    workspace = opened()
    await pay(workspace)
    if when != "waiting":
        answer(workspace)
    if when == "made":
        await pay(workspace)
    other = await pay(workspace, 6)
    assert (other.status, other.code) == (Status.DENIED, "call-id-reused")
    assert "6" not in bank.payments
    assert workspace.audit.verify().is_sound


async def test_without_a_conversation_an_answer_is_spent_once_and_a_replay_asks_anew(
    opened: Opened, bank: Bank
) -> None:
    nowhere: dict[str, Any] = {"conversation": ""}
    await pay(opened(), **nowhere)
    answer(opened())
    assert (await pay(opened(), **nowhere)).status is Status.ALLOWED
    assert (await pay(opened(), **nowhere)).status is Status.WAITING
    assert bank.payments == ["5"]


async def test_a_call_that_is_suspended_without_an_id_gets_one(opened: Opened, bank: Bank) -> None:
    workspace = opened()
    asked = await workspace.call("clerk", "pay", {"amount": 5}, on_ask="suspend")
    assert asked.question is not None
    answer(workspace)
    assert (await opened().resume(asked.question.request_id)).status is Status.ALLOWED
    with pytest.raises(WorkspaceError, match="no suspended call"):
        await opened().resume(asked.question.request_id)
    assert bank.payments == ["5"]


async def test_a_refusal_is_told_to_every_call_with_the_id(opened: Opened, bank: Bank) -> None:
    await pay(opened())
    answer(opened(), Approval(False, "dana", reason="too much"))
    for _ in range(2):
        refused = await pay(opened())
        assert (refused.status, refused.code) == (Status.DENIED, "approval-refused")
        assert "too much" in refused.output
    assert bank.payments == []


async def test_an_answer_for_a_time_covers_the_call_and_the_next(opened: Opened, bank: Bank) -> None:
    await pay(opened())
    answer(opened(), Approval(True, "dana", Remember.DURATION, 600.0))
    assert (await pay(opened())).status is Status.ALLOWED
    assert (await pay(opened(), call_id="c2")).status is Status.ALLOWED
    assert bank.payments == ["5", "5"]


async def test_an_answer_that_was_taken_back_asks_anew(opened: Opened, bank: Bank) -> None:
    await pay(opened())
    workspace = opened()
    answer(workspace, Approval(True, "dana", Remember.DURATION, 600.0))
    workspace.broker.revoke(workspace.broker.standing()[0].grant_id, "dana")
    assert (await pay(opened())).status is Status.WAITING
    assert ["taken back" in one.why for one in workspace.broker.stale()] == [True]
    assert bank.payments == []


@pytest.mark.parametrize("is_answered", [False, True])
async def test_a_changed_file_voids_the_question(opened: Opened, is_answered: bool) -> None:
    append = {"op": "append", "path": "note.md", "content": "two\n"}
    named: dict[str, Any] = {"call_id": "f1", "conversation": "chat", "on_ask": "suspend"}
    workspace = opened()
    first = await workspace.call("clerk", "file", append, **named)
    assert first.question is not None
    if is_answered:
        answer(workspace)
    (workspace.folder / "docs" / "note.md").write_text("other\n", "utf-8")
    second = await opened().call("clerk", "file", append, **named)
    assert second.status is Status.WAITING
    assert second.question is not None
    assert second.question.request_id != first.question.request_id
    assert [one.request.request_id for one in workspace.broker.stale()] == [first.question.request_id]
    assert [one.request_id for one in workspace.broker.pending()] == [second.question.request_id]
    answer(workspace)
    assert (await opened().call("clerk", "file", append, **named)).status is Status.ALLOWED


async def test_a_file_of_equal_text_in_the_place_of_the_other_voids_the_answer(opened: Opened) -> None:
    append = {"op": "append", "path": "note.md", "content": "two\n"}
    named: dict[str, Any] = {"call_id": "f1", "conversation": "chat", "on_ask": "suspend"}
    workspace = opened()
    await workspace.call("clerk", "file", append, **named)
    answer(workspace)
    note = workspace.folder / "docs" / "note.md"
    note.rename(note.with_name("old.md"))
    note.write_text("one\n", "utf-8")
    assert (await opened().call("clerk", "file", append, **named)).status is Status.WAITING


async def test_another_policy_voids_the_answer_and_says_so(opened: Opened, bank: Bank) -> None:
    workspace = opened()
    await pay(workspace)
    answer(workspace)
    workspace.policy_path.write_text(POLICY.replace('"partner"', '"read_write"'), "utf-8")
    asked = await pay(opened())
    assert (asked.status, bank.payments) == (Status.WAITING, [])
    assert [one.why for one in workspace.broker.stale()] == ["the policy has changed"]
    assert json.loads([row.body for row in workspace.audit.rows()][-1])["why"] == "the policy has changed"


async def test_a_denial_wins_over_an_answer(opened: Opened, bank: Bank) -> None:
    workspace = opened()
    await pay(workspace)
    answer(workspace)
    workspace.policy_path.write_text(POLICY.replace('pay = "ask"', 'pay = "deny"'), "utf-8")
    denied = await pay(opened())
    assert (denied.status, denied.decision.stage, bank.payments) == (Status.DENIED, "lookup", [])


async def test_a_question_waits_for_its_time_and_is_due_before(opened: Opened, bank: Bank) -> None:
    workspace, clock = opened(), getattr(opened, "clock")  # noqa: B009
    text = POLICY + '\n[workspace]\nquestions = { wait = "2h", remind = "1h" }\n'
    workspace.policy_path.write_text(text, "utf-8")
    await pay(opened())
    question = workspace.broker.pending()[0]
    assert not question.is_due(clock.wall_s())
    clock.advance(3_600)
    assert question.is_due(clock.wall_s())
    clock.advance(3_600)
    assert workspace.broker.pending() == ()
    assert [one.why for one in workspace.broker.stale()] == ["nobody answered in time"]
    assert workspace.broker.answer(question.request_id, Approval(True, "late")) is None
    assert (await pay(opened())).status is Status.WAITING
    assert [one.why for one in workspace.broker.stale()] == ["nobody answered in time"]
    clock.advance(8 * 86_400)
    assert workspace.broker.stale()[0].request.request_id != question.request_id
    assert bank.payments == []


async def test_one_agent_suspends_so_many_calls_and_no_more(opened: Opened) -> None:
    workspace = opened()
    outcomes = [await pay(workspace, call_id=f"c{number}") for number in range(MOST_SUSPENDED + 1)]
    assert [one.status for one in outcomes] == [Status.WAITING] * MOST_SUSPENDED + [Status.DENIED]
    assert outcomes[-1].code == "approval-rate"


async def test_a_second_caller_is_denied_while_the_first_runs(opened: Opened, bank: Bank) -> None:
    first = opened()
    await pay(first)
    answer(first)
    began, may_end = asyncio.Event(), asyncio.Event()

    async def hold() -> None:
        began.set()
        await may_end.wait()

    bank.then = hold
    running = asyncio.ensure_future(pay(first))
    async with patient():
        await began.wait()
    for workspace in (first, opened()):
        second = await pay(workspace)
        assert (second.status, second.code) == (Status.DENIED, "call-id-running")
    may_end.set()
    assert (await running).status is Status.ALLOWED
    assert (await pay(opened())).replayed
    assert bank.payments == ["5"]


async def test_callers_of_one_moment_make_one_call(opened: Opened, bank: Bank) -> None:
    workspaces = [opened() for _ in range(4)]
    await pay(workspaces[0])
    answer(workspaces[0])
    outcomes = await asyncio.gather(*(pay(one) for one in workspaces for _ in range(3)))
    assert bank.payments == ["5"]
    assert {(one.status, one.code) for one in outcomes} <= {
        (Status.ALLOWED, "allowed"),
        (Status.ALLOWED, "replayed"),
        (Status.DENIED, "call-id-running"),
    }
    report = workspaces[0].audit.verify()
    assert (report.problems, report.unended) == ((), ())


@pytest.mark.parametrize("conversation", ["chat", ""])
async def test_callers_of_one_moment_ask_one_question(opened: Opened, bank: Bank, conversation: str) -> None:
    workspaces = [opened() for _ in range(4)]
    asked = await asyncio.gather(*(pay(one, conversation=conversation) for one in workspaces))
    assert len({one.question.request_id for one in asked if one.question is not None}) == 1
    assert [one.waiting for one in workspaces[0].broker.pending()] == [1]
    answer(workspaces[0])
    for one in workspaces:
        await pay(one, conversation=conversation)
    assert bank.payments == ["5"]


async def test_a_cancelled_call_is_not_made_again(opened: Opened, bank: Bank) -> None:
    workspace, began = opened(), asyncio.Event()

    async def hold() -> None:
        began.set()
        await asyncio.Event().wait()

    bank.then = hold
    await pay(workspace)
    answer(workspace)
    running = asyncio.ensure_future(pay(workspace))
    async with patient():
        await began.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    again = await pay(opened())
    assert (again.status, again.code, bank.payments) == (Status.UNKNOWN, "outcome-not-kept", ["5"])


def test_a_killed_call_has_an_unknown_end_and_is_never_repeated(opened: Opened, bank: Bank) -> None:
    asyncio.run(pay(opened()))
    answer(opened())
    bank.then = lambda: os.kill(os.getpid(), signal.SIGKILL)
    _in_child(lambda: asyncio.run(pay(opened())))
    for _ in range(2):
        again = asyncio.run(pay(opened()))
        assert (again.status, again.code) == (Status.UNKNOWN, "end-unknown")
        assert "started" in again.decision.reason
        assert "end unknown" in again.decision.reason
    assert bank.payments == ["5"]
    assert len(opened().audit.verify().unended) == 1


def test_max_calls_counts_the_calls_of_killed_processes(opened: Opened, bank: Bank) -> None:
    limit = '[[agents.clerk.tool_rules]]\ntool_name = "look"\nrule_type = { MaxCalls = 1 }\n'
    opened().policy_path.write_text(POLICY.replace("[[sources]]", limit + "\n[[sources]]"), "utf-8")

    async def look(workspace: Workspace) -> Outcome:
        async with workspace.sessions.hold("s1", agent_id="clerk") as session:
            return await workspace.call("clerk", "look", {}, session=session)

    bank.then = lambda: os.kill(os.getpid(), signal.SIGKILL)
    _in_child(lambda: asyncio.run(look(opened())))
    denied = asyncio.run(look(opened()))
    assert (denied.code, bank.payments) == ("max-calls", ["look"])


async def test_an_outcome_too_large_to_keep_is_not_told_and_not_repeated(opened: Opened, bank: Bank) -> None:
    named: dict[str, Any] = {"call_id": "l1", "conversation": "chat"}
    large = {"size": 2 << 20}
    made = await opened().call("clerk", "look", large, **named)
    told = await opened().call("clerk", "look", large, **named)
    assert (told.replayed, told.output, told.data, told.output_hash) == (True, made.output, None, made.output_hash)
    assert bank.payments == ["look"]


async def test_an_outcome_is_kept_for_seven_days(opened: Opened, bank: Bank) -> None:
    named: dict[str, Any] = {"call_id": "l1", "conversation": "chat"}
    await opened().call("clerk", "look", {}, **named)
    getattr(opened, "clock").advance(7 * 86_400 + 1)  # noqa: B009
    late = await opened().call("clerk", "look", {}, **named)
    assert (late.status, late.code, bank.payments) == (Status.UNKNOWN, "outcome-not-kept", ["look"])


async def test_a_forged_outcome_is_not_told(opened: Opened) -> None:
    import sqlite3

    named: dict[str, Any] = {"call_id": "l1", "conversation": "chat"}
    workspace = opened()
    await workspace.call("clerk", "look", {}, **named)
    with sqlite3.connect(workspace.state_folder / "outcomes.sqlite") as file:
        file.execute("UPDATE outcomes SET body = replace(body, '\"x\"', '\"y\"')")
    file.close()
    told = await opened().call("clerk", "look", {}, **named)
    assert told.code == "outcome-not-kept"


async def test_after_a_suspended_call_the_rest_of_the_turn_is_not_made(opened: Opened, bank: Bank) -> None:
    turn = [ToolCall("pay", {"amount": 5}, "t1"), ToolCall("look", {}, "t2"), ToolCall("pay", {"amount": 6}, "t3")]

    async def make() -> tuple[Outcome, ...]:
        return await opened().gate.call_many("clerk", turn, conversation="chat", on_ask="suspend")

    first = await make()
    assert [one.status for one in first] == [Status.WAITING, Status.DENIED, Status.DENIED]
    assert {one.code for one in first[1:]} == {"earlier-unanswered"}
    answer(opened())
    second = await make()
    assert [one.status for one in second] == [Status.ALLOWED, Status.ALLOWED, Status.WAITING]
    answer(opened())
    assert [one.status for one in await make()] == [Status.ALLOWED] * 3
    assert sorted(bank.payments) == ["5", "6", "look"]


async def test_arguments_that_are_no_json_are_denied_as_ever(opened: Opened) -> None:
    for bad in ("{", b"\xff", "[]"):
        denied = await opened().call("clerk", "pay", bad, call_id="c1", conversation="chat", on_ask="suspend")
        assert (denied.status, denied.decision.stage) == (Status.DENIED, "parse")


async def test_a_gate_without_a_log_names_no_calls() -> None:
    gate = Gate(Policy(agents={"a": Agent("a")}), ToolRegistry())
    with pytest.raises(WorkspaceError, match="log"):
        await gate.call("a", "x", {}, call_id="c")
    with pytest.raises(ValueError, match="on_ask"):
        await gate.call("a", "x", {}, on_ask="later")  # pyright: ignore[reportArgumentType]


def _in_child(work: Callable[[], object]) -> None:
    """Do it in another process, which is killed in the midst of it."""
    child = os.fork()
    if child == 0:
        try:
            work()
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == signal.SIGKILL
