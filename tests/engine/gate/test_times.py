"""Policy rules with times in the gate: each boundary, and a clock that is set back, makes a new snapshot."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from gatewright.gate import DecisionProof, Session, Status
from gatewright.gate.inforce import ProvenCall
from gatewright.policy.verdict import Verdict
from tests.engine.gate.world import Operator, World

HEAD = """gatewright = 1

[agents.archivist]
tools = ["echo", "counter"]

[agents.other]
tools = ["echo", "counter"]

"""
NIGHT = """[[policy.rules]]
name = "quiet at night"
effect = "deny"
agents = ["archivist"]
tools = ["echo"]
times = { hours = "22:00-06:00", zone = "Europe/Berlin" }
"""
LUNCH = """[[policy.rules]]
name = "no counting at lunch"
effect = "ask"
tools = ["counter"]
when = { properties = { by = { minimum = 2 } }, required = ["by"] }
times = { hours = "12:00-13:00", days = ["mon", "tue", "wed", "thu", "fri"], zone = "Europe/Berlin" }
"""


class Night(World):
    """A world whose clock is set by what it shows in Berlin."""

    def set(self, text: str, fold: int = 0) -> None:
        moment = datetime.fromisoformat(text).replace(tzinfo=ZoneInfo("Europe/Berlin"), fold=fold)
        self.clock.advance(moment.timestamp() - self.clock.wall_s())

    def shown(self, agent: str = "archivist") -> list[str]:
        return [tool["name"] for tool in self.gate.view(agent).tools("mcp")]


@pytest.fixture
def night(tmp_path: Any) -> Any:
    world = Night(tmp_path, HEAD + NIGHT + LUNCH)
    world.set("2026-11-27T20:00")
    yield world
    world.close()


def test_an_unconditional_deny_hides_its_tool_inside_its_times_alone(night: Night) -> None:
    seen = list[tuple[bool, Verdict, str]]()
    for moment in ("2026-11-27T21:59:59", "2026-11-27T22:00", "2026-11-28T05:59:59", "2026-11-28T06:00"):
        night.set(moment)
        decision = night.decide("echo", {"text": "x"})
        seen.append(("echo" in night.shown(), decision.verdict, decision.stage))
        assert night.gate.check("archivist", "echo").is_open is ("echo" in night.shown())
        assert "echo" in night.shown("other")
    shown, hidden = (True, Verdict.ALLOW, "approval"), (False, Verdict.DENY, "lookup")
    assert seen == [shown, hidden, hidden, shown]


def test_a_clock_that_is_set_back_brings_back_what_held_then(night: Night) -> None:
    night.set("2026-11-27T23:00")
    assert "echo" not in night.shown()
    night.set("2026-11-27T21:00")
    assert "echo" in night.shown()
    night.set("2026-11-27T22:00")
    assert "echo" not in night.shown()


def test_the_gap_and_the_hour_that_is_there_twice_follow_the_clock_of_the_zone(night: Night) -> None:
    night.reload(HEAD + NIGHT.replace("22:00-06:00", "02:30-03:30"))
    assert not _hidden(night, "2026-03-29T01:59:59")
    assert _hidden(night, "2026-03-29T03:00")  # 02:00 to 03:00 is not there
    assert _hidden(night, "2026-10-25T02:30")
    assert not _hidden(night, "2026-10-25T02:00", fold=1)
    assert _hidden(night, "2026-10-25T02:30", fold=1)
    assert not _hidden(night, "2026-10-25T03:30")


def _hidden(night: Night, text: str, fold: int = 0) -> bool:
    night.set(text, fold)
    return "echo" not in night.shown()


def test_a_boundary_compiles_only_the_tools_of_its_rule_anew(night: Night) -> None:
    night.decide("counter", {"op": "up"})
    before = night.gate.snapshot()
    archivist, other = before.agent("archivist"), before.agent("other")
    assert archivist is not None
    counter = archivist.rights["counter"]
    assert night.gate.snapshot() is before
    night.set("2026-11-27T22:00")
    after = night.gate.snapshot()
    assert after is not before
    assert after.policy_digest == before.policy_digest
    assert after.agent("other") is other
    later = after.agent("archivist")
    assert later is not None
    assert later is not archivist
    assert later.rights["counter"] is counter
    assert later.rights["echo"] is not archivist.rights["echo"]


def test_a_policy_without_times_keeps_its_snapshot_for_ever(night: Night) -> None:
    night.reload(HEAD)
    before = night.gate.snapshot()
    assert before.span is None
    night.set("2027-11-27T22:00")
    assert night.gate.snapshot() is before


def test_a_condition_with_times_asks_inside_them_and_the_words_say_when(night: Night) -> None:
    for moment, verdict in (("2026-11-27T11:59", "allow"), ("2026-11-27T12:30", "ask"), ("2026-11-28T12:30", "allow")):
        night.set(moment)
        decision = night.decide("counter", {"op": "up", "by": 3})
        assert decision.verdict == verdict
    night.set("2026-11-27T12:30")
    reason = night.decide("counter", {"op": "up", "by": 3}).reason
    assert "12:00-13:00 on mon, tue, wed, thu, fri (Europe/Berlin)" in reason


def test_a_proof_is_verified_with_the_rules_of_its_time(night: Night) -> None:
    session = Session("one")
    proofs = list[DecisionProof]()
    for moment in ("2026-11-27T21:59", "2026-11-27T22:30"):
        night.set(moment)
        proof = night.gate.decide("archivist", "echo", {"text": "x"}, session=session).proof
        assert proof is not None
        proofs.append(proof)
    assert [proof.verdict for proof in proofs] == [Verdict.ALLOW, Verdict.DENY]
    night.set("2026-11-28T12:00")
    call = ProvenCall("archivist", "echo", {"text": "x"})
    assert all(night.gate.verify(proof, call).holds for proof in proofs)


async def test_a_question_that_waits_over_a_boundary_is_decided_by_the_rules_after_it(night: Night) -> None:
    night.reload(HEAD.replace('"counter"]', '"counter"]\napprovals = { echo = "ask" }', 1) + NIGHT)
    operator = Operator()
    operator.may_answer.clear()
    call = asyncio.ensure_future(night.call("echo", {"text": "x"}, approver=operator))
    await operator.asked.wait()
    night.set("2026-11-27T22:00")
    operator.may_answer.set()
    outcome = await call
    assert (outcome.status, outcome.decision.stage) == (Status.DENIED, "lookup")
