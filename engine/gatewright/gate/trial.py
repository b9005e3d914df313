"""Decisions without a call: a proof compared with a call, and the steps of a composition before it is called.

Verification checks MAC and digests first, then runs the same stages with the facts in the proof; it ignores the live
session, clock, rates and standing approvals, and uses the present files. A composition's input is known, its results
are not: its steps are decided as far as possible.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field, replace

from gatewright.base.errors import SchemaError
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue
from gatewright.gate.call import CallState, RawArguments, Within
from gatewright.gate.decision import Decision, DecisionProof
from gatewright.gate.inforce import InForce
from gatewright.gate.pipeline import ACTING, Passage, call_digest, sent_digest, tool_digest
from gatewright.gate.session import Session
from gatewright.policy.composition import (
    INPUT,
    STEPS,
    CompositionStep,
    NoValue,
    fill_in,
    references_in,
    step_operations,
)
from gatewright.policy.verdict import Verdict
from gatewright.schema.walk import as_list, as_object
from gatewright.tools.defined import ComposedTool


@frozen
class ProvenCall:
    """The call to compare a proof with. ``arguments``: as the model sent them, or the canonical ones."""

    agent_id: str
    tool: str
    arguments: RawArguments = field(hash=False)
    user_id: str | None = None


@frozen
class Verification:
    """The parts of a proof that hold. ``again``: the gate's present decision with the facts in the proof; None if
    skipped.

    ``mac``: made by us and unchanged; ``call``: for this call; ``policy``: that policy is still in force; ``decision``:
    the second decision is the same. A proof under an earlier policy neither passes nor is forged.
    """

    mac: bool
    call: bool = False
    policy: bool = False
    decision: bool = False
    problems: tuple[str, ...] = ()
    again: Decision | None = None

    @property
    def holds(self) -> bool:
        """Every part of the proof holds."""
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


def verify(proof: DecisionProof, call: ProvenCall, force: InForce) -> Verification:
    """Verify the proof. A forged one is not decided again."""
    key = force.keys.find(proof.key_id)
    if key is None:
        return Verification(False, problems=("the key of the proof is not here",))
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
    )  # as sent, or canonical as the log may have stored it
    moved = _policy_changes(proof, passage.state, force)
    same, difference = _compare(proof, again, passage.state)
    problems = [] if is_call else ["the proof is for another call"]
    return Verification(True, is_call, not moved, same, (*problems, *moved, *difference), again)


def _policy_changes(proof: DecisionProof, state: CallState, force: InForce) -> list[str]:
    if proof.policy_digest != force.snapshot.policy_digest:
        return ["the policy has changed since"]
    return ["the tool has changed since"] if proof.tool_digest != tool_digest(state) else []


def _compare(proof: DecisionProof, again: Decision, state: CallState) -> tuple[bool, list[str]]:
    """Tell whether the second decision is the same; a refusal while acting must have been allowed until then."""
    if proof.stage in _ACTING:
        allowed = again.verdict is Verdict.ALLOW
        return allowed, [] if allowed else [f"it would not have reached `{proof.stage}`: {again.reason}"]
    rule = again.rule.rule_id if again.rule else None
    now = (again.verdict, again.stage, again.code, rule, state.grant)
    if now == (proof.verdict, proof.stage, proof.code, proof.rule, proof.grant):
        return True, []
    return False, [f"decided again it is {again.verdict} at `{again.stage}` ({again.code}): {again.reason}"]


_NEEDS = "its arguments need results of earlier steps"


@frozen
class StepForecast:
    """A step and the gate's decision on it as the next call of its agent.

    ``applies`` None: it depends on results. ``verdict`` None: it does too. ``decision``: if all its arguments are
    known.
    """

    step: int
    tool: str
    applies: bool | None
    verdict: Verdict | None
    reason: str
    decision: Decision | None = None

    def to_json(self) -> dict[str, JsonValue]:
        """Shape: step, tool, applies, verdict, reason, and of a decision stage, code and arguments."""
        more: dict[str, JsonValue] = {}
        if self.decision is not None:
            more = {"stage": self.decision.stage, "code": self.decision.code}
            more["arguments"] = dict(self.decision.arguments)
        verdict = None if self.verdict is None else str(self.verdict)
        said: dict[str, JsonValue] = {"step": self.step, "tool": self.tool, "applies": self.applies}
        return {**said, "verdict": verdict, "reason": self.reason, **more}


def forecast(state: CallState, force: InForce) -> tuple[StepForecast, ...]:
    """The steps of a decided call; none for a denied call or another tool than a composition."""
    decision = Passage(state, force).decide()
    if decision.verdict is Verdict.DENY or not isinstance(state.plan.tool, ComposedTool):
        return ()
    return tuple(_forecasts(state.plan.tool, state, force))


def _forecasts(tool: ComposedTool, state: CallState, force: InForce) -> Iterator[StepForecast]:
    given = tool.with_defaults(state.arguments)
    for number, step in enumerate(tool.composition.steps):
        applies = _applies(tool, number, step, given)
        if applies is False:
            yield StepForecast(number, step.tool, applies, None, "it does not apply to this input")
            continue
        if any(reference.step is not None for reference in references_in(dict(step.arguments))):
            verdict = _denial(state, force, step)
            reason = _NEEDS if verdict is None else f"`{step.tool}` is not open to this agent"
            yield StepForecast(number, step.tool, applies, verdict, reason)
            continue
        try:
            call = fill_in(step.arguments, given, (), ())
        except NoValue:
            yield StepForecast(number, step.tool, applies, Verdict.DENY, "it needs a missing argument")
            continue
        below = state.beneath("", Within(state.call_id, number, 1), step.tool, call)
        decision = Passage(below, force).decide()
        yield StepForecast(number, step.tool, applies, decision.verdict, decision.reason, decision)


def _applies(tool: ComposedTool, number: int, step: CompositionStep, given: JsonValue) -> bool | None:
    """Tell whether a step applies; None if its condition depends on results."""
    if step.is_unconditional:
        return True
    if number and not (isinstance(step.when, bool) or _is_about_input(step.when or {})):
        return None
    try:
        return tool.applies(number, given, [])
    except SchemaError:
        return None


def _is_about_input(when: Mapping[str, JsonValue]) -> bool:
    """Tell whether a condition depends on the input alone; an unclear one counts as depending on more."""
    properties, required = as_object(when.get("properties", {})), as_list(when.get("required", []))
    if not when.keys() <= {"properties", "required", "type"} or properties is None or required is None:
        return False
    return properties.keys() <= {INPUT} and all(name in {INPUT, STEPS} for name in required)


def _denial(state: CallState, force: InForce, step: CompositionStep) -> Verdict | None:
    """The denial of the step whatever the results; None if it depends on them."""
    plan = state.agent.plan(step.tool) if state.agent is not None else None
    if plan is None:
        return Verdict.DENY
    rows = step_operations(plan.right.facts, step)
    proofs = [force.snapshot.operation(state.agent_id, step.tool, row.name) for row in rows]
    return None if any(proof.is_open for proof in proofs) else Verdict.DENY
