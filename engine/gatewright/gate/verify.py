"""Holding a proof against a call: MAC and digests first, then the same stages with the facts of then.

It reads no live session, clock, rate or standing approval; files are looked at as they are now.
"""

from __future__ import annotations

from dataclasses import field, replace

from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue
from gatewright.gate.call import CallState, RawArguments
from gatewright.gate.decision import Decision
from gatewright.gate.inforce import InForce
from gatewright.gate.pipeline import ACTING, Passage
from gatewright.gate.proof import DecisionProof
from gatewright.gate.prover import call_digest, sent_digest, tool_digest
from gatewright.gate.session import Session
from gatewright.policy.verdict import Verdict


@frozen
class ProvenCall:
    """The call that a proof is held against. ``arguments``: as the model sent them, or the canonical ones."""

    agent_id: str
    tool: str
    arguments: RawArguments = field(hash=False)
    user_id: str | None = None


@frozen
class Verification:
    """What held of a proof. ``again``: what the gate says now, with the facts of then; None when it was not asked.

    ``mac``: written by us and unchanged; ``call``: for this call; ``policy``: the policy of then is still in force;
    ``decision``: deciding again gave the same. A proof whose policy has moved on is no pass, nor a forgery.
    """

    mac: bool
    call: bool = False
    policy: bool = False
    decision: bool = False
    problems: tuple[str, ...] = ()
    again: Decision | None = None

    @property
    def holds(self) -> bool:
        """Whether everything did."""
        return self.mac and self.call and self.policy and self.decision

    def to_json(self) -> dict[str, JsonValue]:
        """Shape: holds, mac, call, policy, decision, problems."""
        return {
            "holds": self.holds,
            "mac": self.mac,
            "call": self.call,
            "policy": self.policy,
            "decision": self.decision,
            "problems": list(self.problems),
        }


_ACTING = frozenset(stage.name for stage in ACTING)


def verified(proof: DecisionProof, call: ProvenCall, force: InForce) -> Verification:
    """What holds of the proof. What was forged is not decided again."""
    key = force.keys.find(proof.key_id)
    if key is None:
        return Verification(False, problems=("the key that the proof was made with is not here",))
    if not proof.is_sealed_by(key):
        return Verification(False, problems=("the proof was changed, or not made here",))
    agent = force.snapshot.agent(call.agent_id)
    services = replace(force.services, rates=None, grants=None)
    session = Session(proof.facts.session_id or "none")
    user_id = call.user_id or (agent.agent.user_id if agent else None)
    state = CallState("", call.agent_id, call.tool, call.arguments, agent, session, services, user_id)
    state.answer, state.facts, state.grant = proof.answer, proof.facts, proof.grant
    state.now_s, state.wall_s, state.rates = proof.now_s, proof.wall_s, proof.rates
    passage = Passage(state, force)
    again = passage.decide()
    is_call = proof.sent_digest == sent_digest(state, key) or proof.call_digest == call_digest(
        state, key, proof.tool_digest
    )  # as it was sent, or canonical as the log may have kept it
    moved = _moved(proof, passage.state, force)
    same, difference = _compared(proof, again, passage.state)
    problems = [] if is_call else ["the proof is for another call"]
    return Verification(True, is_call, not moved, same, (*problems, *moved, *difference), again)


def _moved(proof: DecisionProof, state: CallState, force: InForce) -> list[str]:
    if proof.policy_digest != force.snapshot.policy_digest:
        return ["the policy has changed since"]
    return ["the tool has changed since"] if proof.tool_digest != tool_digest(state) else []


def _compared(proof: DecisionProof, again: Decision, state: CallState) -> tuple[bool, list[str]]:
    """Whether deciding again gave the same; what was refused while acting must have been allowed until then."""
    if proof.stage in _ACTING:
        allowed = again.verdict is Verdict.ALLOW
        return allowed, [] if allowed else [f"it would not have come to `{proof.stage}`: {again.reason}"]
    rule = again.rule.rule_id if again.rule else None
    now = (again.verdict, again.stage, again.code, rule, state.grant)
    if now == (proof.verdict, proof.stage, proof.code, proof.rule, proof.grant):
        return True, []
    return False, [f"decided again it is {again.verdict} at `{again.stage}` ({again.code}): {again.reason}"]
