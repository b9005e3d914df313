"""The proof of a decision: found out when it is not ours, else decided again with the facts of then."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gatewright.gate import Decision, DecisionProof, ProofInvalid, ProvenCall, Session, Status, Verification
from gatewright.policy.verdict import Verdict
from tests.engine.gate.conftest import MakeWorld
from tests.engine.gate.world import POLICY, Operator, World, context_for

READ = {"op": "read", "path": "note.md"}
LIMITED = """
[[agents.archivist.tool_rules]]
tool_name = "counter"
rule_type = { MaxCalls = 1 }

[[agents.archivist.tool_rules]]
tool_name = "echo"
rule_type = { Cooldown = 60 }
"""


def call(tool: str, arguments: Any, *, user: str | None = None) -> ProvenCall:
    return ProvenCall("archivist", tool, arguments, user)


def proof_of(world: World, tool: str, arguments: Any, **more: Any) -> DecisionProof:
    return world.decide(tool, arguments, **more).proof


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("file", READ),
        ("file", '{"op": "read", "path": "./note.md"}'),
        ("file", {"op": "delete", "path": "note.md"}),
        ("file", {"op": "read", "path": "secret/x"}),
        ("file", {"op": "read"}),
        ("file", "no json at all"),
        ("file", b"\xff"),
        ("vault", {}),
        ("teleport", {"a": 1}),
        ("\u00e9\ud800", {}),
    ],
)
def test_proof_of_any_decision_holds_for_its_call(world: World, tool: str, arguments: Any) -> None:
    proof = proof_of(world, tool, arguments)
    result = world.gate.verify(proof, call(tool, arguments))

    assert result.holds, result.problems
    assert result.problems == ()
    assert DecisionProof.from_text(proof.to_text()) == proof


def test_proof_names_decision_policy_rule_and_time(world: World) -> None:
    decision = world.decide("file", {"op": "delete", "path": "note.md"})
    proof = decision.proof

    assert decision.rule is not None
    assert proof is decision.proof
    assert proof.decision_id == decision.decision_id
    assert proof.to_json() == {
        "proof": 1,
        "decision": decision.decision_id,
        "verdict": "deny",
        "stage": "operation",
        "code": "operation-not-allowed",
        "reason": decision.reason,
        "rule": decision.rule.rule_id,
        "grant": None,
        "policy": world.gate.snapshot().policy_digest,
        "tool": proof.tool_digest,
        "call": proof.call_digest,
        "sent": proof.sent_digest,
        "session": {"session": proof.facts.session_id, "ended": False, "began_s": None, "uses": []},
        "now_s": world.clock.monotonic_s(),
        "wall_s": world.clock.wall_s(),
        "rates": {},
        "answer": None,
        "key": proof.key_id,
        "mac": proof.mac,
    }
    assert [name.partition("-")[0] for name in (proof.decision_id, proof.key_id)] == ["decision", "gate"]
    assert proof.decision_id != world.decide("file", READ).proof.decision_id


def test_decision_that_no_gate_made_has_no_proof() -> None:
    with pytest.raises(LookupError):
        _ = Decision(Verdict.ALLOW, "approval", "allowed", "").proof


@pytest.mark.parametrize(
    ("other", "more"),
    [
        (ProvenCall("archivist", "file", {"op": "read", "path": "other.md"}), ()),
        (ProvenCall("archivist", "file", READ, "ann"), ()),
        (
            ProvenCall("archivist", "echo", {"text": "x"}),
            ("the tool has changed since", "decided again it is allow at `approval` (allowed): `echo` is allowed"),
        ),
        (
            ProvenCall("somebody", "file", READ),
            (
                "the tool has changed since",
                "decided again it is deny at `lookup` (unknown-agent): no agent `somebody` in the policy",
            ),
        ),
    ],
)
def test_proof_is_for_one_call_only(world: World, other: ProvenCall, more: tuple[str, ...]) -> None:
    denied = {"op": "delete", "path": "note.md"} if other.tool == "echo" else READ
    result = world.gate.verify(proof_of(world, "file", denied), other)

    assert (result.mac, result.call, result.holds) == (True, False, False)
    assert result.problems == ("the proof is for another call", *more)


async def test_proof_of_what_was_refused_while_acting_holds_for_as_long_as_it_would_come_there(world: World) -> None:
    up = {"op": "up"}
    (world.folder / "state").write_text("", "utf-8")
    proof = (await world.call("counter", up)).decision.proof

    assert (proof.stage, proof.code) == ("execute", "audit-unavailable")
    assert world.gate.verify(proof, call("counter", up)).holds
    world.reload(POLICY.replace('"counter", ', ""))
    assert world.gate.verify(proof, call("counter", up)).to_json() == {
        "holds": False,
        "mac": True,
        "call": True,
        "policy": False,
        "decision": False,
        "problems": [
            "the policy has changed since",
            "it would not have reached `execute`: `counter` is not among the tools of agent `archivist`",
        ],
    }


def test_user_is_part_of_the_call(world: World) -> None:
    decision = world.gate.decide("archivist", "file", READ, context=context_for("ann"))

    assert world.gate.verify(decision.proof, call("file", READ, user="ann")).holds
    assert not world.gate.verify(decision.proof, call("file", READ)).call


def test_proof_after_a_policy_change_is_no_pass_and_no_forgery(world: World) -> None:
    allowed = proof_of(world, "file", READ)
    world.reload(POLICY.replace('["read", "append", "load", "save"]', '["append", "load"]'))
    result = world.gate.verify(allowed, call("file", READ))

    assert (result.mac, result.call, result.policy, result.decision, result.holds) == (True, True, False, False, False)
    denied = "`file` is limited to `append`, `load` for agent `archivist`"
    again = f"decided again it is deny at `operation` (operation-not-allowed): {denied}"
    assert result.problems == ("the policy has changed since", again)


def test_same_policy_in_other_words_is_the_same_policy(world: World) -> None:
    allowed = proof_of(world, "file", READ)
    world.reload("# a comment\n" + POLICY)

    assert world.gate.verify(allowed, call("file", READ)).holds


async def test_proof_is_decided_again_with_the_session_and_the_clock_of_then(make_world: MakeWorld) -> None:
    world = make_world(POLICY + LIMITED)
    session = Session()
    up, say = {"op": "up"}, {"text": "a"}
    first = world.decide("counter", up, session=session)
    early = world.decide("echo", say, session=session)
    await world.call("counter", up, session=session)
    await world.call("echo", say, session=session)
    second = world.decide("counter", up, session=session)
    late = world.decide("echo", say, session=session)
    world.clock.advance(3600)
    await world.call("echo", say, session=session)

    assert (second.code, late.code) == ("max-calls", "cooldown")
    for proof, arguments, tool in (
        (first.proof, up, "counter"),
        (second.proof, up, "counter"),
        (early.proof, say, "echo"),
        (late.proof, say, "echo"),
    ):
        result = world.gate.verify(proof, call(tool, arguments))
        assert result.holds, (proof, result.problems)


async def test_proof_of_an_approved_call_holds_the_answer(world: World) -> None:
    outcome = await world.call("vault", {"text": "a"}, approver=Operator())
    proof = outcome.decision.proof

    assert proof.answer is not None
    assert proof.verdict is Verdict.ALLOW
    assert world.gate.verify(DecisionProof.from_text(proof.to_text()), call("vault", {"text": "a"})).holds
    assert world.decide("vault", {"text": "a"}).verdict is Verdict.ASK


async def test_another_process_verifies_with_the_key_of_the_log(make_world: MakeWorld) -> None:
    world = make_world()
    outcome = await world.call("file", READ)
    text = outcome.decision.proof.to_text()
    other = World(world.folder, audited=True)
    result = other.gate.verify(DecisionProof.from_text(text), call("file", READ))
    other.close()

    assert result.holds, result.problems


def test_proof_without_a_log_is_good_for_this_gate_only(make_world: MakeWorld) -> None:
    world, other = make_world(audited=False), make_world(audited=False)
    proof = proof_of(world, "file", READ)

    assert world.gate.verify(proof, call("file", READ)).holds
    assert other.gate.verify(proof, call("file", READ)).to_json() == {
        **dict.fromkeys(("holds", "mac", "call", "policy", "decision"), False),
        "problems": ["the key of the proof is not here"],
    }


async def test_proof_made_before_the_log_began_still_holds(world: World) -> None:
    proof = proof_of(world, "file", READ)
    assert not (world.folder / "state").exists()
    await world.call("file", READ)

    assert world.gate.verify(proof, call("file", READ)).holds


def test_deciding_proving_and_verifying_write_nothing(world: World) -> None:
    before = sorted(world.folder.rglob("*"))
    for tool, arguments in (("file", READ), ("vault", {}), ("teleport", {})):
        proof = proof_of(world, tool, arguments)
        assert world.gate.verify(proof, call(tool, arguments)).holds

    assert sorted(world.folder.rglob("*")) == before


def test_every_changed_byte_of_a_proof_is_found(world: World) -> None:
    proof = proof_of(world, "file", READ)
    text = proof.to_text().encode()

    @settings(max_examples=400, deadline=None)
    @given(at=st.integers(0, len(text) - 1), other=st.integers(0, 255))
    def changed(at: int, other: int) -> None:
        forged = text[:at] + bytes([other]) + text[at + 1 :]
        if forged != text:
            assert not _passes(world, forged)

    changed()
    for at in range(len(text)):
        assert not _passes(world, text[:at])
        assert not _passes(world, text[:at] + text[at + 1 :])
        assert not _passes(world, text[:at] + b" " + text[at:])


def _passes(world: World, text: bytes) -> bool:
    try:
        proof = DecisionProof.from_text(text)
    except ProofInvalid:
        return False
    result = world.gate.verify(proof, call("file", READ))
    assert result.mac is result.holds
    return result.holds


def test_parts_of_two_proofs_do_not_make_one(world: World) -> None:
    one, other = proof_of(world, "file", READ).to_json(), proof_of(world, "file", {"op": "delete"}).to_json()
    for name in one:
        if one[name] != other[name]:
            mixed = DecisionProof.from_json({**other, name: one[name]})
            assert not world.gate.verify(mixed, call("file", {"op": "delete"})).mac


def test_forged_verdict_is_not_decided_again(world: World) -> None:
    forged = replace(proof_of(world, "file", {"op": "delete"}), verdict=Verdict.ALLOW)
    result = world.gate.verify(forged, call("file", {"op": "delete"}))

    assert result.again is None
    assert result.to_json() == {
        **dict.fromkeys(("holds", "mac", "call", "policy", "decision"), False),
        "problems": ["the proof was changed, or not made here"],
    }


@pytest.mark.parametrize("data", [None, [], {}, {"proof": 1}, "x", 3])
def test_what_is_no_proof_is_refused(data: object) -> None:
    for read in (lambda: DecisionProof.from_json(data), lambda: DecisionProof.from_text(json.dumps(data))):
        with pytest.raises(ProofInvalid, match=r"^this is no proof: it has other fields$"):
            read()


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"proof": 2}, "a proof of version 2 is not supported"),
        ({"verdict": "x"}, "this is no proof: 'x' is not a valid Verdict"),
        ({"grant": {}}, "this is no proof: 'id'"),
        ({"rates": {"k": True}}, "this is no proof: a level is not a number"),
        ({"rates": {"k": "x"}}, "this is no proof: a level is not a number"),
        ({"answer": {}}, "this is no proof: 'approval'"),
    ],
)
def test_proof_with_a_part_that_cannot_be_is_refused_with_the_reason(
    world: World, change: dict[str, Any], why: str
) -> None:
    proof = proof_of(world, "file", READ)
    with pytest.raises(ProofInvalid, match=f"^{why}$"):
        DecisionProof.from_json({**proof.to_json(), **change})
    for text, said in (
        ("{", "this is no proof: it is not JSON"),
        (f" {proof.to_text()}", "differs from the original text of the proof"),
    ):
        with pytest.raises(ProofInvalid, match=f"{said}$"):
            DecisionProof.from_text(text)


@pytest.mark.parametrize("change", [{"now_s": math.nan}, {"reason": "\ud800"}, {"rates": {"k": math.inf}}])
def test_proof_of_what_is_no_json_is_no_proof_of_ours(world: World, change: dict[str, Any]) -> None:
    proof = replace(world.decide("echo", {"text": "x"}).proof, **change)

    assert not world.gate.verify(proof, ProvenCall("archivist", "echo", {"text": "x"})).mac


def test_fields_of_the_wrong_kind_are_refused(world: World) -> None:
    good = proof_of(world, "file", READ).to_json()
    for name in good:
        with pytest.raises(ProofInvalid, match=f"^this is no proof: `{name}` is of the wrong type$"):
            DecisionProof.from_json({**good, name: []})
        for wrong in (None, 1, 1.5, True, "x", [], {}, {"a": 1}, ["x"]):
            try:
                proof = DecisionProof.from_json({**good, name: wrong})
            except ProofInvalid:
                continue
            assert not world.gate.verify(proof, call("file", READ)).holds or good[name] == wrong
    with pytest.raises(ProofInvalid):
        DecisionProof.from_json({**good, "extra": 1})


async def test_log_names_decision_and_policy(world: World) -> None:
    outcome = await world.call("file", {"op": "delete", "path": "note.md"})
    assert world.audit is not None
    row = next(row for row in world.audit.rows() if row.kind == "PolicyDecision")
    body = json.loads(row.body)

    assert body["decision"] == outcome.decision.decision_id
    assert body["policy"] == world.gate.snapshot().policy_digest


def test_proof_of_a_folder_is_portable_text(world: World, tmp_path: Path) -> None:
    (tmp_path / "proof.json").write_text(proof_of(world, "file", READ).to_text(), "utf-8")
    proof = DecisionProof.from_text((tmp_path / "proof.json").read_bytes())

    assert world.gate.verify(proof, call("file", READ)).to_json()["holds"] is True


async def test_log_and_outcome_name_the_same_decision_of_a_call_that_was_made(world: World) -> None:
    (world.docs / "note.md").write_text("a note")
    outcome = await world.call("file", READ)
    assert world.audit is not None
    row = next(row for row in world.audit.rows() if row.kind == "PolicyDecision")

    assert outcome.status is Status.ALLOWED
    assert json.loads(row.body)["decision"] == outcome.decision.decision_id
    assert world.gate.verify(outcome.decision.proof, call("file", READ)).holds


def test_decision_that_is_the_same_under_another_policy_does_not_hold(world: World) -> None:
    proof = proof_of(world, "file", READ)
    world.reload(POLICY + LIMITED)
    result = world.gate.verify(proof, call("file", READ))

    assert (result.mac, result.call, result.policy, result.decision, result.holds) == (True, True, False, True, False)


@pytest.mark.parametrize("part", ["mac", "call", "policy", "decision"])
def test_proof_of_which_one_part_does_not_hold_does_not_hold(part: str) -> None:
    whole = Verification(True, True, True, True)
    assert whole.holds
    assert not replace(whole, **{part: False}).holds


def test_rate_that_came_after_a_proof_cannot_be_told_of_then(world: World) -> None:
    proof = proof_of(world, "echo", {"text": "a"})
    rate = (
        '\n[[agents.archivist.tool_rules]]\ntool_name = "echo"\nrule_type = { RateLimit = { calls = 1, per = 60 } }\n'
    )
    world.reload(POLICY + rate)
    again = world.gate.verify(proof, call("echo", {"text": "a"})).again

    assert again is not None
    assert (again.code, again.reason) == ("rates-unavailable", "no store counts the rate of calls")
