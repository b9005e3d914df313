"""The calls of one turn: what runs together, what alone, in which order, and what a cancellation leaves behind."""

from __future__ import annotations

import asyncio
import json

import pytest

from gatewright.base.errors import NobodyAnswered
from gatewright.base.jsonvalue import JsonValue
from gatewright.gate import Approval, ApprovalRequest, Approver, Session, StageTrace, Status
from gatewright.gate.turn import ToolCall
from gatewright.policy.verdict import SafetyTier
from gatewright.tools.declaration import Normalization, ResultType
from gatewright.tools.registry import operation
from gatewright.tools.tool import Tool
from tests.engine.gate.conftest import MakeWorld
from tests.engine.gate.world import POLICY, GateTool, World

MORE = POLICY.replace('"vault"]', '"vault", "fail", "crash", "wait", "meter"]')


class Meter(Tool):
    """Counts how many run at once."""

    name = "meter"
    description = "Measures."
    safety_tier = SafetyTier.READ_ONLY
    result_type = ResultType.OBJECT
    normalization = Normalization.JSON

    def __init__(self) -> None:
        self.running = 0
        self.log: list[str] = []

    @operation(tier=SafetyTier.READ_ONLY)
    async def look(self, name: str) -> JsonValue:
        """Look."""
        return await self._run(f"look {name}")

    @operation(tier=SafetyTier.SIDE_EFFECTING)
    async def write(self, name: str) -> JsonValue:
        """Write."""
        return await self._run(f"write {name}")

    async def _run(self, what: str) -> JsonValue:
        self.running += 1
        self.log.append(f"{what} +")
        most = self.running
        for _ in range(5):
            await asyncio.sleep(0)
            most = max(most, self.running)
        self.running -= 1
        self.log.append(f"{what} -")
        return {"name": what, "most": most}


def meter(op: str, name: str) -> ToolCall:
    return ToolCall("meter", {"op": op, "name": name})


async def test_neighbouring_read_only_calls_run_together_and_others_alone(make_world: MakeWorld) -> None:
    world = make_world(MORE, GateTool(), Meter())
    calls = [meter("look", "a"), meter("look", "b"), meter("write", "c"), meter("look", "d"), meter("write", "e")]
    outcomes = await world.gate.call_many("archivist", calls)
    results = [json.loads(outcome.output) for outcome in outcomes]

    assert [row["name"] for row in results] == ["look a", "look b", "write c", "look d", "write e"]
    assert [row["most"] for row in results] == [2, 2, 1, 1, 1]


async def test_tier_of_the_policy_decides_what_runs_together(make_world: MakeWorld) -> None:
    text = MORE + '\n[tools.meter]\noperation_tiers = { look = "side_effecting" }\n'
    outcomes = await make_world(text, GateTool(), Meter()).gate.call_many(
        "archivist", [meter("look", "a"), meter("look", "b")]
    )

    assert [json.loads(outcome.output)["most"] for outcome in outcomes] == [1, 1]


async def test_unknown_and_unreadable_calls_keep_their_place(make_world: MakeWorld) -> None:
    world = make_world(MORE, GateTool(), Meter())
    calls = [
        meter("look", "a"),
        ToolCall("nobody"),
        ToolCall("meter", '{"op": '),
        meter("zap", "x"),
        meter("look", "b"),
    ]
    outcomes = await world.gate.call_many("archivist", calls)

    assert [str(outcome.status) for outcome in outcomes] == ["allowed", "denied", "denied", "denied", "allowed"]
    assert [outcome.decision.stage for outcome in outcomes[1:4]] == ["lookup", "parse", "operation"]


async def test_no_more_than_so_many_run_at_once(make_world: MakeWorld) -> None:
    calls = [meter("look", str(number)) for number in range(20)]
    outcomes = await make_world(MORE, GateTool(), Meter()).gate.call_many("archivist", calls, most=3)

    assert max(json.loads(outcome.output)["most"] for outcome in outcomes) == 3


async def test_calls_of_one_turn_share_a_session_and_its_limits(make_world: MakeWorld) -> None:
    rule = '\n[[agents.archivist.tool_rules]]\ntool_name = "meter"\nrule_type = { MaxCalls = 2 }\n'
    world = make_world(MORE + rule, GateTool(), Meter())
    outcomes = await world.gate.call_many("archivist", [meter("look", str(number)) for number in range(4)])

    assert [str(outcome.status) for outcome in outcomes] == ["allowed", "allowed", "denied", "denied"]
    assert len({outcome.session_id for outcome in outcomes}) == 1


async def test_call_that_ends_the_loop_does_not_cut_the_turn_short(make_world: MakeWorld) -> None:
    rule = '\n[[agents.archivist.tool_rules]]\ntool_name = "echo"\nrule_type = "ExitLoop"\n'
    session = Session()
    world = make_world(MORE + rule, GateTool(), Meter())
    calls = [ToolCall("echo", {"text": "bye"}), meter("write", "after")]
    outcomes = await world.gate.call_many("archivist", calls, session=session)

    assert [outcome.status for outcome in outcomes] == [Status.ALLOWED, Status.ALLOWED]
    assert outcomes[0].should_continue is False
    assert session.should_continue is False


async def test_cancelling_cancels_all_of_them_and_records_each(make_world: MakeWorld) -> None:
    tool = GateTool()
    world = make_world(MORE, tool, Meter())
    waiting = [ToolCall("wait", {"op": "politely"}) for _ in range(3)]
    turn = asyncio.ensure_future(world.gate.call_many("archivist", [*waiting, meter("write", "never")]))
    while tool.started < 3:
        await asyncio.sleep(0)
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn

    assert world.row_kinds().count("ToolAbandoned") == 3
    assert world.row_kinds().count("ToolInvoked") == 3


async def test_watcher_is_told_which_call_passes_a_stage(world: World) -> None:
    seen: list[tuple[int, str]] = []

    def watch(number: int, row: StageTrace) -> None:
        seen.append((number, row.stage))

    await world.gate.call_many("archivist", [ToolCall("echo", {"text": "a"}), ToolCall("nobody")], on_stage=watch)

    assert (0, "truncate") in seen
    assert seen[-1] == (1, "lookup")


async def test_no_calls_give_no_outcomes(world: World) -> None:
    assert await world.gate.call_many("archivist", []) == ()


async def nobody(request: ApprovalRequest) -> Approval:
    raise NobodyAnswered("nobody is there")


async def refuses(request: ApprovalRequest) -> Approval:
    return Approval(request.tool != "vault", "dana")


async def answers(request: ApprovalRequest) -> Approval:
    return Approval(bool(request.tool), "dana")


@pytest.mark.parametrize(("approver", "status"), [(nobody, Status.UNANSWERED), (refuses, Status.DENIED)])
@pytest.mark.parametrize("asks_at", range(4))
async def test_after_a_call_that_got_no_yes_the_rest_of_the_turn_is_not_made(
    make_world: MakeWorld, approver: Approver, status: Status, asks_at: int
) -> None:
    gauge = Meter()
    world = make_world(MORE, GateTool(), gauge)
    calls = [meter("look", "a"), meter("look", "b"), meter("write", "c"), meter("write", "d")]
    calls.insert(asks_at, ToolCall("vault", {"text": "gold"}))
    outcomes = await world.gate.call_many("archivist", calls, approver=approver)

    before, (asked, *after) = outcomes[:asks_at], outcomes[asks_at:]
    assert {outcome.status for outcome in before} <= {Status.ALLOWED}
    assert asked.status is status
    assert {(outcome.status, outcome.code) for outcome in after} == {(Status.DENIED, "earlier-unanswered")}
    assert all("not approved" in outcome.output and "vault" not in outcome.output for outcome in after)
    assert len(gauge.log) == 2 * asks_at
    assert world.audit is not None
    assert sum(row.kind == "ToolDenied" for row in world.audit.rows()) == len(after) + 1


async def test_a_yes_a_denial_by_rule_and_a_question_about_reading_stop_nothing(make_world: MakeWorld) -> None:
    asks_to_read = MORE.replace("[agents.archivist]", '[agents.archivist]\napprovals = { "echo" = "ask" }')
    world = make_world(asks_to_read, GateTool(), Meter())
    calls = [ToolCall("vault", {}), ToolCall("nobody"), ToolCall("echo", {"text": "a"}), meter("write", "d")]

    yes = await world.gate.call_many("archivist", calls, approver=answers)
    assert [outcome.status for outcome in yes] == [Status.ALLOWED, Status.DENIED, Status.ALLOWED, Status.ALLOWED]
    no = await world.gate.call_many("archivist", calls[1:], approver=nobody)
    assert [outcome.status for outcome in no] == [Status.DENIED, Status.UNANSWERED, Status.ALLOWED]
