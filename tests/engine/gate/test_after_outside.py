"""AfterOutside: what marks a session, what asks or is denied from then on, and that no way around forgets the mark."""

from __future__ import annotations

import asyncio
import itertools
from pathlib import Path
from typing import Any

import pytest

from gatewright import ProvenCall
from gatewright.builtins import builtin_tools
from gatewright.gate import Gate, Outcome, Session, Status, selfcheck
from gatewright.gate.breach import OutsideResult, violation_of
from gatewright.gate.session import Mark, SessionFacts
from gatewright.gate.turn import ToolCall
from gatewright.policy.verdict import Verdict
from gatewright.workspace import Workspace
from tests.engine.gate.conftest import MakeWorld
from tests.engine.gate.world import GateTool, Operator, World

POLICY = """gatewright = 1

[agents.archivist]
tools = ["echo", "counter", "fail", "crash", "wait", "vault"]
approvals = { privileged = "allow" }

[[agents.archivist.tool_rules]]
tool_name = "counter"
rule_type = { AfterOutside = "ask" }
conditions = ["operation:up"]

[[agents.archivist.tool_rules]]
tool_name = "vault"
rule_type = { AfterOutside = "deny" }

[tools.echo]
trust = "outside"

[tools.fail]
trust = "outside"

[tools.crash]
trust = "outside"
"""
Call = tuple[str, dict[str, Any]]
UP: Call = ("counter", {"op": "up"})
OPEN: Call = ("vault", {})
HELLO: Call = ("echo", {"text": "hello"})


@pytest.fixture
def world(make_world: MakeWorld) -> World:
    return make_world(POLICY, GateTool())


def verdicts(world: World, session: Session) -> tuple[str, str, str]:
    calls = (UP, ("counter", {"op": "down"}), OPEN)
    return tuple(str(world.decide(*call, session=session).verdict) for call in calls)  # pyright: ignore[reportReturnType]


FREE, BOUND = ("allow", "allow", "allow"), ("ask", "allow", "deny")


async def test_a_result_from_outside_binds_what_is_under_the_rule_in_its_session_alone(world: World) -> None:
    session, other = Session("one"), Session("two")
    assert verdicts(world, session) == FREE
    outcome = await world.call(*HELLO, session=session)
    assert verdicts(world, session) == BOUND
    assert verdicts(world, other) == FREE

    asked, denied = world.decide(*UP, session=session), world.decide(*OPEN, session=session)
    for decision in (asked, denied):
        assert (decision.stage, decision.code) == ("rules", "after-outside")
        assert all(word in decision.reason for word in ("`echo`", outcome.call_id, "2023-11-14T22:13:20Z"))
        assert decision.rule is not None
        assert decision.rule.line in {7, 12}
    assert violation_of(denied) == OutsideResult("vault", "echo", outcome.call_id, "2023-11-14T22:13:20Z")
    model = denied.model_message or ""
    assert "echo" not in model
    assert outcome.call_id not in model


async def test_the_first_result_stays_the_reason(world: World) -> None:
    session = Session("one")
    first = await world.call(*HELLO, session=session)
    world.clock.advance(60)
    await world.call(*HELLO, session=session)
    assert session.facts().outside == Mark("echo", first.call_id, 1_700_000_000.0)


MARKS = {"echo": True, "fail": True, "crash": True, "hidden": False, "misfit": False, "own": False, "decide": False}


@pytest.mark.parametrize("what", MARKS)
async def test_what_ran_outside_marks_and_what_did_not_run_does_not(world: World, what: str) -> None:
    session, text = Session("one"), {"text": "x"}
    calls: dict[str, tuple[str, dict[str, Any]]] = {
        "hidden": ("file", {"op": "list"}),
        "misfit": ("echo", {}),
        "own": UP,
    }
    if what == "decide":
        world.decide(*HELLO, session=session)
    else:
        await world.call(*calls.get(what, (what, text)), session=session)
    assert (session.facts().outside is not None) is MARKS[what]


async def test_an_operator_is_told_why_and_the_approved_call_runs(world: World) -> None:
    session, operator = Session("one"), Operator()
    hello = await world.call(*HELLO, session=session, approver=operator)
    outcome = await world.call(*UP, session=session, approver=operator)
    assert outcome.status is Status.ALLOWED
    (request,) = operator.requests
    assert any(hello.call_id in reason and "`echo`" in reason for reason in request.reasons)
    assert request.places == (("agents", "archivist", "tool_rules", 0),)
    assert (await world.call(*UP, session=session)).status is Status.UNANSWERED


async def test_a_question_that_was_asked_before_the_mark_is_no_answer_after_it(make_world: MakeWorld) -> None:
    text = POLICY.replace('privileged = "allow"', 'privileged = "allow", "counter.up" = "ask"')
    world = make_world(text, GateTool())
    session, operator = Session("one"), Operator()
    operator.may_answer.clear()
    waits = asyncio.ensure_future(world.call(*UP, session=session, approver=operator))
    await operator.asked.wait()
    await world.call(*HELLO, session=session)
    operator.may_answer.set()
    outcome = await waits
    assert (outcome.status, outcome.decision.code) == (Status.DENIED, "approval-stale")
    assert world.counter.value == 0


async def test_a_call_that_a_result_overtakes_between_decision_and_execution_does_not_run(world: World) -> None:
    session, overtaken = Session("one"), list[str]()

    def overtake(row: Any) -> None:
        if row.stage == "approval" and not overtaken:
            overtaken.append(row.stage)
            session.mark(Mark("echo", "call-other", 0.0))

    outcome = await world.call(*UP, session=session, on_stage=overtake)
    assert (outcome.status, outcome.code) == (Status.DENIED, "after-outside")
    assert "make it again" in outcome.output
    assert world.counter.value == 0


async def test_reads_of_a_turn_run_together_and_later_calls_see_the_mark(world: World) -> None:
    calls = [
        ToolCall("echo", {"text": "a"}),
        ToolCall("echo", {"text": "b"}),
        ToolCall("vault", {}),
        ToolCall("counter", {"op": "down"}),
    ]
    outcomes = await world.gate.call_many("archivist", calls, session=Session("one"))
    assert [outcome.status for outcome in outcomes] == [
        Status.ALLOWED,
        Status.ALLOWED,
        Status.DENIED,
        Status.ALLOWED,
    ]


async def test_every_order_of_calls_marks_from_the_first_result_from_outside_on(world: World) -> None:
    tools = {"echo": True, "counter": False, "fail": True, "file": False}
    for number, order in enumerate(itertools.product(tools, repeat=3)):
        session, marked = Session(f"s{number}"), False
        for name in order:
            given = {"op": "down"} if name == "counter" else {"text": "x"}
            await world.call(name, given, session=session)
            marked = marked or tools[name]
            assert verdicts(world, session) == (BOUND if marked else FREE)


async def test_a_saved_session_and_a_proof_keep_the_mark(world: World) -> None:
    session = Session("one")
    before = world.decide(*OPEN, session=session).proof
    await world.call(*HELLO, session=session)
    after = world.decide(*OPEN, session=session).proof
    again = Session.resume(session.to_saved(world.clock), world.clock)
    assert verdicts(world, again) == BOUND
    assert again.to_json()["outside"] == list(session.facts().outside or ())
    assert SessionFacts.from_json(session.facts().to_json()) == session.facts()
    assert before is not None
    assert after is not None
    call = ProvenCall("archivist", *OPEN)
    assert world.gate.verify(before, call).holds
    assert world.gate.verify(after, call).holds
    assert "outside" not in Session("new").to_saved(world.clock)


async def test_after_a_crash_the_log_tells_the_mark(world: World) -> None:
    ended, stopped = Session("ended"), Session("stopped")
    outcome = await world.call(*HELLO, session=ended)
    call = asyncio.ensure_future(world.call("wait", {"op": "politely"}, session=stopped))
    await next(one for one in world.registry.tools() if isinstance(one, GateTool)).began.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    resumed = {name: Session(name, "archivist") for name in ("ended", "stopped")}
    seen = {name: verdicts(world, session) for name, session in resumed.items()}
    assert seen == {"ended": BOUND, "stopped": FREE}
    mark = resumed["ended"].facts().outside
    assert mark is not None
    assert (mark.tool, mark.call_id) == ("echo", outcome.call_id)


async def test_a_cancelled_call_of_an_outside_tool_marks_neither_now_nor_after_a_crash(make_world: MakeWorld) -> None:
    world = make_world(POLICY + '[tools.wait]\ntrust = "outside"\n', tool := GateTool())
    session = Session("one")
    call = asyncio.ensure_future(world.call("wait", {"op": "politely"}, session=session))
    await tool.began.wait()
    assert verdicts(world, session) == FREE
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert verdicts(world, session) == FREE
    assert verdicts(world, Session("one", "archivist")) == FREE
    tool.let_go.set()
    await world.call("wait", {"op": "politely"}, session=session)
    assert verdicts(world, session) == BOUND


def test_the_self_check_tries_each_rule_before_and_after_a_result_from_outside(world: World) -> None:
    assert [row for row in selfcheck(world.gate).no_witness if row.tool in {"counter", "vault"}] == []
    assert selfcheck(world.gate).differences == ()


def test_the_model_reads_the_rule(world: World) -> None:
    rules = world.gate.view("archivist").usage_rules
    assert "For `up`: once a result from outside came in, a person has to agree first." in rules
    assert "It cannot be called any more once a result from outside came in." in rules


def test_the_web_is_outside_and_the_other_tools_that_come_along_are_not() -> None:
    outside = {tool.name for tool in builtin_tools() if tool.facts().outside}
    assert outside == {"web_fetch", "http_fetch", "web_search"}


async def test_a_rule_for_every_tool_binds_those_outside_too(make_world: MakeWorld) -> None:
    text = POLICY.replace('tool_name = "vault"', 'tool_name = "*"')
    world, session = make_world(text, GateTool()), Session("one")
    assert (await world.call(*HELLO, session=session)).status is Status.ALLOWED
    assert world.decide(*HELLO, session=session).verdict is Verdict.DENY


async def test_a_step_of_a_composition_marks_the_session_for_the_next(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes/a.md").write_text("words of a stranger", "utf-8")
    (tmp_path / "policy.toml").write_text(
        """gatewright = 1

[agents.a]
tools = ["copy", "file"]
sources = ["notes"]

[[agents.a.tool_rules]]
tool_name = "file"
rule_type = { AfterOutside = "deny" }
conditions = ["operation:create"]

[tools.file]
trust = "outside"

[[sources]]
id = "notes"
type = "file"
base_path = "notes"
default_permission = "read_write"

[[compositions]]
name = "copy"
description = "Copies a.md."
input = { type = "object", properties = {}, additionalProperties = false }
steps = [
  { tool = "file", arguments = { op = "read", path = "a.md" } },
  { tool = "file", arguments = { op = "create", path = "b.md", content = "x" } },
]
""",
        "utf-8",
    )
    with Workspace.open(tmp_path) as workspace:
        gate: Gate = workspace.gate
        session = Session("one", "a")
        outcome: Outcome = await gate.call("a", "copy", {}, session=session)
        assert [step.status for step in outcome.steps] == [Status.ALLOWED, Status.DENIED]
        assert outcome.steps[1].decision.code == "after-outside"
        mark = session.facts().outside
        assert mark is not None
        assert (mark.tool, mark.call_id) == ("file.read", outcome.steps[0].call_id)
    assert not (tmp_path / "notes/b.md").exists()
