"""Calls that ask, from the first question to the execution: what an answer covers, how long, and what takes it back."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from gatewright.base.jsonvalue import JsonValue, digest
from gatewright.gate import Approval, ApprovalRequest, Outcome, PermissionBroker, Remember, Session, Status
from gatewright.policy.verdict import Verdict
from tests.engine.gate.asking import Desk, asking_gate, soon
from tests.engine.gate.conftest import MakeWorld
from tests.engine.gate.world import POLICY, Operator, World, context_for

PREFIX = "Tool execution failed:"
YES = Approval(True, "dana")
TEN_MINUTES = Approval(True, "dana", Remember.DURATION, 600.0)
SESSION = Approval(True, "dana", Remember.SCOPE)
CONSENT = """
[[agents.archivist.tool_rules]]
tool_name = "{tool}"
rule_type = {{ RequiresConsent = {{ scope = "{scope}" }} }}
"""

MakeBroker = Callable[..., PermissionBroker]


@pytest.fixture
def make_broker() -> Iterator[MakeBroker]:
    made: list[PermissionBroker] = []

    def make(world: World, **options: Any) -> PermissionBroker:
        made.append(asking_gate(world, **options))
        return made[-1]

    yield make
    for broker in made:
        broker.close()


class Office:
    """A world whose calls ask at a desk."""

    def __init__(self, world: World, broker: PermissionBroker) -> None:
        self.world = world
        self.broker = broker
        self.desk = Desk(broker)
        self.session = Session("session-1")

    def start(self, tool: str, given: dict[str, Any], **more: Any) -> asyncio.Task[Outcome]:
        return asyncio.ensure_future(self.world.call(tool, given, session=more.pop("session", self.session), **more))

    async def call(self, tool: str, given: dict[str, Any], answer: Approval, **more: Any) -> Outcome:
        """A call that must ask, answered."""
        call = self.start(tool, given, **more)
        question = await self.desk.question()
        assert self.broker.answer(question.request_id, answer) is not None
        outcome = await soon(call)
        await self.desk.empty()
        return outcome

    async def asks(self, tool: str, given: dict[str, Any], **more: Any) -> bool:
        """Whether such a call would ask again; nobody answers it."""
        session = more.pop("session", self.session)
        context = more.pop("context", None)
        decision = self.world.gate.decide("archivist", tool, given, session=session, context=context)
        assert decision.verdict is not Verdict.DENY, decision.reason
        return decision.verdict is Verdict.ASK


@pytest.fixture
async def office(world: World, make_broker: MakeBroker) -> Office:
    return Office(world, make_broker(world))


async def office_of(make_world: MakeWorld, make_broker: MakeBroker, text: str) -> Office:
    world = make_world(text)
    return Office(world, make_broker(world))


def bodies(world: World, kind: str) -> list[dict[str, Any]]:
    assert world.audit is not None
    return [json.loads(row.body) for row in world.audit.rows() if row.kind == kind]


async def test_once_allows_one_execution(office: Office) -> None:
    outcome = await office.call("vault", {"text": "please"}, YES)

    assert (outcome.status, outcome.output) == (Status.ALLOWED, "open please")
    assert await office.asks("vault", {"text": "please"})
    assert office.broker.standing() == ()


async def test_question_carries_all_an_operator_must_see(office: Office) -> None:
    (office.world.docs / "shared.md").write_text("one\n", "utf-8")
    call = office.start("file", {"op": "append", "path": "./shared.md", "content": "two\n"}, context=context_for("ann"))
    question = await office.desk.question()
    office.broker.answer(question.request_id, YES)
    await soon(call)

    assert (question.agent_id, question.user_id, question.session_id) == ("archivist", "ann", "session-1")
    assert (question.tool, question.operation, question.safety_tier) == ("file", "append", "side_effecting")
    assert question.arguments["content"] == "two\n"
    assert "+two" in (question.diff or "")
    assert "changes ask" in question.reasons[0]
    assert question.tool_digest
    assert question.expires_wall_s == question.asked_wall_s + 45.0
    bound: dict[str, JsonValue] = {
        "agent": "archivist",
        "user": "ann",
        "session": "session-1",
        "tool": "file",
        "tool_digest": question.tool_digest,
        "operation": "append",
        "arguments": dict(question.arguments),
        "diff": hashlib.sha256((question.diff or "").encode()).hexdigest(),
    }
    assert question.digest == digest(bound), "what is kept by one version is found by the next"


@pytest.mark.parametrize("answer", [TEN_MINUTES, Approval(True, "dana", Remember.DURATION), Approval(False, "dana")])
async def test_rows_of_a_call_that_asked_say_who_answered_and_for_how_long(office: Office, answer: Approval) -> None:
    outcome = await office.call("vault", {}, answer, context=replace(context_for("ann"), client="cli 1"))
    assert office.world.audit is not None
    _, *rows = office.world.audit.rows()
    told = [(row.kind, json.loads(row.body)) for row in rows]
    question, grants = told[2][1]["digest"], [grant.grant_id for grant in office.broker.standing()]
    made_grant = told[3][1]["grant"]
    asks = "`vault` asks first as its tier is privileged"

    def decision(number: int, verdict: str, code: str, reason: str, **more: object) -> tuple[str, dict[str, object]]:
        named = {"decision": told[number][1]["decision"], "policy": outcome.decision.policy_digest}
        said = {"code": code, "reason": reason, "rule": None, "stage": "approval", "verdict": verdict}
        return "PolicyDecision", {**named, **said, **more}

    lasts = answer is TEN_MINUTES
    assert grants == [made_grant] * lasts
    assert (made_grant is None) is not answer.approved
    assert {(row.call_id, row.agent, row.session, row.tool, row.operation) for row in rows} == {
        (outcome.call_id, "archivist", "session-1", "vault", "")
    }
    assert told[:4] == [
        ("ToolInvoked", {"arguments": {}, "digest": office.world.audit.digest({}), "client": "cli 1"}),
        decision(1, "ask", "approval-needed", asks),
        ("ApprovalRequested", {"digest": question, "reasons": [asks], "scope": None}),
        (
            "ApprovalResolved",
            {
                "approved": answer.approved,
                "grant": made_grant,
                "remember": "duration" if lasts else "once",
                "scope": None,
                "seconds": 600.0 if lasts else None,
                "who": "dana",
            },
        ),
    ]
    if not answer.approved:
        refusal = decision(4, "deny", "approval-refused", "dana did not approve the call")
        assert told[4:] == [refusal, ("ToolDenied", {"code": "approval-refused"})]
        return
    ended = {"bytes": 5, "code": "", "hash": outcome.output_hash, "elapsed_ms": told[5][1]["elapsed_ms"]}
    allowed = decision(4, "allow", "allowed", "`vault` is allowed", grant=made_grant)
    assert told[4:] == [allowed, ("ToolCompleted", ended)]


async def test_duration_covers_other_arguments_and_sessions_until_it_is_over(office: Office) -> None:
    await office.call("vault", {"text": "a"}, TEN_MINUTES)

    assert not await office.asks("vault", {"text": "b"}, session=Session())
    second = await soon(office.start("vault", {"text": "b"}))
    assert (second.status, second.output) == (Status.ALLOWED, "open b")
    office.world.clock.advance(600.0)
    assert await office.asks("vault", {"text": "b"})


async def test_standing_approval_covers_a_level_that_asks_when_the_file_is_changed(office: Office) -> None:
    (office.world.docs / "shared.md").write_text("one\n", "utf-8")
    given = {"op": "append", "path": "shared.md", "content": "more\n"}
    await office.call("file", given, TEN_MINUTES)
    second = await soon(office.start("file", given))

    assert second.status is Status.ALLOWED, second.output
    read = await soon(office.start("file", {"op": "read", "path": "shared.md"}))
    assert "one\\nmore\\nmore\\n" in read.output


async def test_decision_under_a_standing_approval_says_so_and_uses_nothing_up(office: Office) -> None:
    await office.call("vault", {}, TEN_MINUTES)
    grant = office.broker.standing()[0]
    decisions = [office.world.decide("vault", {}, session=office.session) for _ in range(3)]

    assert {decision.verdict for decision in decisions} == {Verdict.ALLOW}
    note = f"covered by the standing approval `{grant.grant_id}` of dana"
    assert decisions[0].trace[-1].reason == note
    assert office.broker.standing() == (grant,)


async def test_duration_is_for_its_user(office: Office) -> None:
    await office.call("vault", {}, TEN_MINUTES, context=context_for("ann"))

    assert not await office.asks("vault", {}, context=context_for("ann"))
    assert await office.asks("vault", {}, context=context_for("bob"))


async def test_scope_covers_the_tools_of_that_scope_in_its_session(
    make_world: MakeWorld, make_broker: MakeBroker
) -> None:
    text = POLICY + "".join(
        CONSENT.format(tool=tool, scope=scope)
        for tool, scope in (("echo", "mail"), ("counter", "mail"), ("block", "post"))
    )
    office = await office_of(make_world, make_broker, text)
    outcome = await office.call("echo", {"text": "a"}, SESSION)

    assert outcome.status is Status.ALLOWED
    assert not await office.asks("echo", {"text": "b"})
    assert not await office.asks("counter", {"op": "up"})
    assert await office.asks("counter", {"op": "up"}, session=Session())
    office.world.clock.advance(1e6)
    assert not await office.asks("counter", {"op": "up"})


async def test_scope_of_one_consent_does_not_answer_what_else_asks(
    make_world: MakeWorld, make_broker: MakeBroker
) -> None:
    text = POLICY + CONSENT.format(tool="echo", scope="mail") + CONSENT.format(tool="vault", scope="mail")
    office = await office_of(make_world, make_broker, text)
    await office.call("echo", {"text": "a"}, SESSION)

    assert await office.asks("vault", {})
    await office.call("vault", {}, SESSION)
    assert not await office.asks("vault", {"text": "b"})


async def test_two_scopes_need_an_answer_that_saw_both(make_world: MakeWorld, make_broker: MakeBroker) -> None:
    text = POLICY + CONSENT.format(tool="echo", scope="mail") + CONSENT.format(tool="echo", scope="post")
    office = await office_of(make_world, make_broker, text + CONSENT.format(tool="counter", scope="mail"))
    await office.call("counter", {"op": "up"}, SESSION)

    assert await office.asks("echo", {"text": "a"})
    await office.call("echo", {"text": "a"}, SESSION)
    assert not await office.asks("echo", {"text": "b"})


async def test_lasting_answer_does_not_silence_an_ask_that_is_new(
    make_world: MakeWorld, make_broker: MakeBroker
) -> None:
    office = await office_of(make_world, make_broker, POLICY)
    await office.call("vault", {}, TEN_MINUTES)
    assert not await office.asks("vault", {})
    office.world.reload(POLICY + CONSENT.format(tool="vault", scope="mail"))

    assert await office.asks("vault", {})


async def test_lasting_answer_does_not_cover_another_policy_rule_of_the_same_name(
    make_world: MakeWorld, make_broker: MakeBroker
) -> None:
    rule = """
[[policy.rules]]
name = "look twice"
effect = "ask"
tools = ["echo"]
when = { properties = { text = { const = "a" } } }
"""
    office = await office_of(make_world, make_broker, POLICY + rule)
    await office.call("echo", {"text": "a"}, TEN_MINUTES)
    assert not await office.asks("echo", {"text": "a"})
    office.world.reload(POLICY + rule.replace('"a"', '"b"'))

    assert await office.asks("echo", {"text": "b"})


async def test_lasting_answer_for_one_file_does_not_cover_another(
    make_world: MakeWorld, make_broker: MakeBroker
) -> None:
    text = POLICY.replace(
        '{ pattern = "shared.md", permission = "partner" }', '{ pattern = "*.md", permission = "partner" }'
    )
    office = await office_of(make_world, make_broker, text)
    for name in ("one.md", "two.md"):
        (office.world.docs / name).write_text("x\n", "utf-8")
    await office.call("file", {"op": "append", "path": "one.md", "content": "a\n"}, TEN_MINUTES)

    assert not await office.asks("file", {"op": "append", "path": "one.md", "content": "b\n"})
    assert await office.asks("file", {"op": "append", "path": "two.md", "content": "a\n"})


async def test_what_a_tool_asks_about_content_is_asked_each_time(office: Office) -> None:
    (office.world.docs / "note.md").write_text("one\n", "utf-8")
    load = {"op": "load", "path": "note.md"}
    for _ in range(2):
        await soon(office.start("file", {"op": "append", "path": "note.md", "content": "two\n"}))
        outcome = await office.call("file", load, TEN_MINUTES)
        assert outcome.status is Status.ALLOWED
    await soon(office.start("file", {"op": "append", "path": "note.md", "content": "three\n"}))

    assert await office.asks("file", load)


async def test_refused_call_is_denied_and_asked_again_next_time(office: Office) -> None:
    outcome = await office.call("vault", {}, Approval(False, "dana"))

    assert (outcome.status, outcome.code) == (Status.DENIED, "approval-refused")
    assert await office.asks("vault", {})


async def test_refusal_is_told_to_operator_and_model_word_for_word(world: World) -> None:
    refused = "an operator did not approve this call; go on without it"
    asked = "this call needs the approval of an operator"
    late, full = (
        f"{asked}, and none came in time; go on without it",
        f"{asked}, who could not be asked; go on without it",
    )
    many = "too many calls wait for an operator already; go on without this one, or try it again later"
    gone = "the approval was taken back, or an equal call used it; make the call again if it is still needed"
    rows = [
        (Approval(False), "approval-refused", "the operator did not approve the call", refused),
        (Approval(False, "eve", reason="x" * 501), "approval-refused", f"eve did not approve the call: {'x' * 500}",
         f"{refused}. The operator says: {'x' * 500}"),
        (Approval(False, code="approval-timed-out", reason="1 s"), "approval-timed-out", "1 s", late),
        (Approval(False, code="approval-rate", reason="30"), "approval-rate", "30", many),
        (Approval(False, code="approval-unavailable", reason="disk"), "approval-unavailable", "disk", full),
        (Approval(False, code="approval-too-large", reason="2 MB"), "approval-too-large", "2 MB", full),
        (Approval(False, code="approval-withdrawn", reason="eve"), "approval-withdrawn", "eve", gone),
        (Approval(False, "eve", code="odd"), "odd", "eve did not approve the call", refused),
    ]  # fmt: skip
    for answer, *told in rows:

        async def answers(_: ApprovalRequest, answer: Approval = answer) -> Approval:
            return answer

        outcome = await world.call("vault", {}, approver=answers)
        found = [outcome.code, outcome.decision.reason, outcome.output.removeprefix(f"{PREFIX} ")]
        assert found == told


async def test_lasting_refusal_refuses_identical_calls_without_asking(office: Office) -> None:
    await office.call("vault", {}, Approval(False, "dana", Remember.DURATION, 600.0))
    again = await soon(office.start("vault", {}))

    assert (again.status, again.code, again.decision.stage) == (Status.DENIED, "approval-refused", "approval")
    assert again.decision.reason == "dana refused identical calls for a time"
    assert again.decision.facts == {"grant": office.broker.standing()[0].grant_id}
    assert again.output == f"{PREFIX} an operator did not approve this call; go on without it"
    assert await office.asks("vault", {"text": "other"})
    office.world.clock.advance(600.0)
    assert await office.asks("vault", {})


async def test_time_that_is_over_denies_and_says_so_to_both(office: Office) -> None:
    call = office.start("vault", {})
    await office.desk.question()
    office.world.clock.advance(45.0)
    outcome = await soon(call)

    assert (outcome.status, outcome.code) == (Status.DENIED, "approval-timed-out")
    assert outcome.decision.verdict is Verdict.DENY
    assert "45 s" in outcome.decision.reason
    assert outcome.output.startswith(PREFIX)
    assert bodies(office.world, "ApprovalResolved")[0]["approved"] is False


async def test_call_without_any_operator_is_unanswered_at_once(world: World, make_broker: MakeBroker) -> None:
    make_broker(world)
    outcome = await soon(world.call("vault", {}))

    assert (outcome.status, outcome.decision.verdict) == (Status.UNANSWERED, Verdict.ASK)
    assert world.row_kinds() == ["ToolInvoked", "PolicyDecision", "ToolDenied"]


async def test_identical_calls_share_the_question_and_not_the_execution(office: Office) -> None:
    calls = [office.start("vault", {"text": "a"}) for _ in range(4)]
    question = await office.desk.waiting(4)
    office.broker.answer(question.request_id, YES)
    outcomes = [await soon(call) for call in calls]

    assert sorted(outcome.status for outcome in outcomes) == [Status.ALLOWED] + [Status.DENIED] * 3
    left = [outcome for outcome in outcomes if outcome.status is Status.DENIED]
    assert {outcome.code for outcome in left} == {"approval-withdrawn"}
    assert all("an equal call used it; make the call again if it is still needed" in one.output for one in left)
    assert office.world.row_kinds().count("ToolCompleted") == 1


async def test_lasting_answer_lets_all_identical_calls_through(office: Office) -> None:
    calls = [office.start("vault", {"text": "a"}) for _ in range(4)]
    office.broker.answer((await office.desk.waiting(4)).request_id, TEN_MINUTES)

    assert [(await soon(call)).status for call in calls] == [Status.ALLOWED] * 4
    assert len(office.broker.standing()) == 1


async def test_waiting_call_does_not_outlive_a_policy_that_hides_its_tool(office: Office) -> None:
    call = office.start("vault", {})
    question = await office.desk.question()
    office.world.reload(POLICY.replace(', "vault"', ""))
    office.broker.answer(question.request_id, TEN_MINUTES)
    outcome = await soon(call)

    assert (outcome.status, outcome.decision.stage, outcome.code) == (Status.DENIED, "lookup", "tool-not-listed")


async def test_answer_does_not_hold_for_an_ask_that_came_while_it_was_waited_for(office: Office) -> None:
    call = office.start("vault", {})
    question = await office.desk.question()
    office.world.reload(POLICY + CONSENT.format(tool="vault", scope="mail"))
    office.broker.answer(question.request_id, YES)
    outcome = await soon(call)

    assert (outcome.status, outcome.code) == (Status.DENIED, "approval-stale")
    assert outcome.decision.reason == "dana did not see this ask: a person must allow `vault` (consent group: mail)"


async def test_answer_holds_when_less_is_asked_than_before(make_world: MakeWorld, make_broker: MakeBroker) -> None:
    office = await office_of(make_world, make_broker, POLICY + CONSENT.format(tool="vault", scope="mail"))
    call = office.start("vault", {})
    question = await office.desk.question()
    office.world.reload(POLICY)
    office.broker.answer(question.request_id, YES)

    assert (await soon(call)).status is Status.ALLOWED


async def test_answer_does_not_hold_for_content_that_changed_meanwhile(office: Office) -> None:
    (office.world.docs / "shared.md").write_text("one\n", "utf-8")
    call = office.start("file", {"op": "append", "path": "shared.md", "content": "two\n"})
    question = await office.desk.question()
    (office.world.docs / "shared.md").write_text("something else entirely\n", "utf-8")
    office.broker.answer(question.request_id, YES)
    outcome = await soon(call)

    assert (outcome.status, outcome.code) == (Status.DENIED, "approval-stale")
    assert outcome.decision.reason == "the call would now do something else than dana approved"
    assert (office.world.docs / "shared.md").read_text("utf-8") == "something else entirely\n"


@pytest.mark.parametrize("answer", [YES, TEN_MINUTES, SESSION], ids=["once", "duration", "scope"])
async def test_grant_revoked_before_the_execution_stops_the_call(
    office: Office, answer: Approval, monkeypatch: pytest.MonkeyPatch
) -> None:
    spend = office.broker.grants.spend

    def revoked_first(grant: Any) -> bool:
        office.broker.revoke(grant.grant_id, "eve")
        return spend(grant)

    monkeypatch.setattr(office.broker.grants, "spend", revoked_first)
    outcome = await office.call("vault", {}, answer)

    assert (outcome.status, outcome.code, outcome.decision.stage) == (Status.DENIED, "approval-withdrawn", "execute")
    reason = "the approval by dana was revoked, has expired, or was used by an identical call"
    assert outcome.decision.reason == reason
    assert office.world.row_kinds()[-1] == "ToolDenied"
    assert office.session.calls("vault") == 0


async def test_grant_revoked_while_the_call_is_decided_again_stops_it(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    get = office.broker.grants.get

    def revoked_first(grant_id: str) -> Any:
        office.broker.revoke(grant_id, "eve")
        return get(grant_id)

    monkeypatch.setattr(office.broker.grants, "get", revoked_first)
    outcome = await office.call("vault", {}, TEN_MINUTES)

    assert (outcome.status, outcome.code, outcome.decision.stage) == (Status.DENIED, "approval-withdrawn", "approval")


async def test_revocation_is_recorded_and_asks_again(office: Office) -> None:
    await office.call("vault", {}, TEN_MINUTES)
    grant = office.broker.standing()[0]
    office.broker.revoke(grant.grant_id, "eve")

    assert await office.asks("vault", {})
    assert office.world.audit is not None
    (row,) = (row for row in office.world.audit.rows() if row.kind == "GrantRevoked")
    assert (row.call_id, row.agent, row.session, row.tool) == ("", "archivist", grant.session_id, "vault")
    assert bodies(office.world, "GrantRevoked") == [
        {
            "grant": grant.grant_id,
            "kind": "duration",
            "approved": True,
            "scope": None,
            "given_by": "dana",
            "who": "eve",
        }
    ]


async def test_two_calls_cannot_both_spend_one_answer(office: Office) -> None:
    await office.call("vault", {"text": "first"}, YES)
    question = ApprovalRequest(**request_fields(office))
    office.broker.grants.remember(question, YES)
    calls = [office.start("vault", {"text": "again"}) for _ in range(8)]
    done, waiting = await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)
    office.broker.close()
    outcomes = [await soon(call) for call in (*done, *waiting)]

    assert [outcome.status for outcome in outcomes].count(Status.ALLOWED) == 1


def request_fields(office: Office) -> dict[str, Any]:
    """A question as the gate would make it for the call of the test above."""
    from gatewright.gate.callrun import request_of
    from gatewright.gate.pipeline import Passage

    state = office.world.gate.state("archivist", "vault", {"text": "again"}, session=office.session)
    passage = Passage(state, office.world.gate.in_force())
    passage.decide()
    request = request_of(passage.state)
    return {name: getattr(request, name) for name in ApprovalRequest.__dataclass_fields__}


async def test_approver_of_a_call_may_give_a_lasting_answer(world: World, make_broker: MakeBroker) -> None:
    broker = make_broker(world)

    async def lasting(request: ApprovalRequest) -> Approval:
        return TEN_MINUTES

    first = await world.call("vault", {}, approver=lasting)
    second = await world.call("vault", {"text": "b"})

    assert (first.status, second.status) == (Status.ALLOWED, Status.ALLOWED)
    assert [grant.who for grant in broker.standing()] == ["dana"]


async def test_lasting_answer_without_a_place_to_keep_it_counts_once(world: World) -> None:
    async def lasting(request: ApprovalRequest) -> Approval:
        return TEN_MINUTES

    assert (await world.call("vault", {}, approver=lasting)).status is Status.ALLOWED
    assert (await world.call("vault", {})).status is Status.UNANSWERED


@pytest.mark.parametrize("seconds", ["ten", float("nan"), -1.0, True, None])
async def test_lasting_answer_of_nonsense_length_counts_once(
    world: World, make_broker: MakeBroker, seconds: Any
) -> None:
    broker = make_broker(world)

    async def careless(request: ApprovalRequest) -> Approval:
        return Approval(True, "dana", Remember.DURATION, seconds)

    outcome = await world.call("vault", {}, approver=careless)

    assert outcome.status in {Status.ALLOWED, Status.DENIED}
    assert all(grant.kind is Remember.ONCE or seconds is True for grant in broker.standing())


async def test_state_that_cannot_be_written_denies_the_call_with_the_reason(
    make_world: MakeWorld, make_broker: MakeBroker
) -> None:
    world = make_world(audited=False)
    broker = make_broker(world, waits_alone=True)
    state = world.folder / "state"
    world.blocks.close()
    if state.exists():
        for path in state.iterdir():
            path.unlink()
        state.rmdir()
    state.write_text("a file where the folder should be", "utf-8")
    outcome = await soon(world.call("vault", {}))

    assert (outcome.status, outcome.code) == (Status.DENIED, "approval-unavailable")
    assert "cannot be" in outcome.decision.reason
    assert str(world.folder) not in outcome.output
    assert broker.pending() == ()


async def test_broker_of_a_gate_without_a_book_lets_one_identical_call_through(world: World) -> None:
    broker = PermissionBroker(None, world.clock)
    desk, session = Desk(broker), Session()
    calls = [asyncio.ensure_future(world.call("vault", {}, session=session, approver=broker)) for _ in range(3)]
    broker.answer((await desk.waiting(3)).request_id, YES)
    outcomes = [await soon(call) for call in calls]
    broker.close()

    assert sorted(outcome.code for outcome in outcomes) == ["allowed", "approval-withdrawn", "approval-withdrawn"]


async def test_plain_approver_still_answers_for_its_call_alone(world: World, make_broker: MakeBroker) -> None:
    make_broker(world)
    operator = Operator()

    assert (await world.call("vault", {}, approver=operator)).status is Status.ALLOWED
    assert (await world.call("vault", {}, approver=operator)).status is Status.ALLOWED
    assert len(operator.requests) == 2
