"""The stages in their order, a call's passage through them, and passages without a call.

``decide`` runs the stages up to approval, ``call`` runs all of them: one tuple, one order, one code. A proof is
compared with a call by MAC and digests first, then by the same stages with the facts in the proof; the live session,
clock, rates and standing approvals do not count, the present files do. A composition's input is known before it is
called, its results are not: its steps are decided as far as possible.

More than 450 lines, since a decision, a proof and a forecast are the same passage.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from gatewright.arguments.url import UrlTarget
from gatewright.base.amount import new_id
from gatewright.base.errors import SchemaError, ToolFailure
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue
from gatewright.base.late import aio
from gatewright.compile.operation import EMPTY
from gatewright.compile.rule_test import Finding
from gatewright.compile.snapshot import Snapshot
from gatewright.gate.call import CallState, EffectStage, Stage, StageResult, Within
from gatewright.gate.decision import (
    NO_FACTS,
    Decision,
    DecisionProof,
    Message,
    RuleRef,
    StageTrace,
    spell_address,
    to_model,
)
from gatewright.gate.inforce import InForce, ProofKeys, ProvenCall, Verification, call_digest, sent_digest, tool_digest
from gatewright.gate.scrub import spotless
from gatewright.gate.session import Session
from gatewright.gate.stages.approval import APPROVAL, POLICY, REFUSED_TO_CALLER, denials_of_caller
from gatewright.gate.stages.arguments import ARGUMENTS
from gatewright.gate.stages.execute import EXECUTE
from gatewright.gate.stages.permission import CAPABILITY, PERMISSION
from gatewright.gate.stages.read import LOOKUP, OPERATION, PARSE
from gatewright.gate.stages.result import NORMALISE, OUTPUT, TRUNCATE, stage_failure
from gatewright.gate.stages.rules import RULES, SCHEMA
from gatewright.gate.stop import CODE
from gatewright.policy.composition import (
    INPUT,
    STEPS,
    CompositionStep,
    NoValue,
    fill_in,
    references_in,
    step_operations,
)
from gatewright.policy.delegation import Caller
from gatewright.policy.verdict import Verdict, strictest
from gatewright.schema.walk import as_list, as_object
from gatewright.tools.defined import ComposedTool

STAGES: tuple[Stage | EffectStage, ...] = (
    PARSE,
    LOOKUP,
    OPERATION,
    SCHEMA,
    ARGUMENTS,
    RULES,
    CAPABILITY,
    POLICY,
    PERMISSION,
    APPROVAL,
    EXECUTE,
    OUTPUT,
    NORMALISE,
    TRUNCATE,
)
DECIDING = tuple(stage for stage in STAGES[: STAGES.index(APPROVAL) + 1] if isinstance(stage, Stage))
ACTING = STAGES[len(DECIDING) :]
_LAST = APPROVAL.name
_ALLOW = Verdict.ALLOW

OnStage = Callable[[StageTrace], None]
_log = logging.getLogger(__name__)


class Passage:
    """One call's way through the stages: its state, the trace, and the deciding objection."""

    def __init__(self, state: CallState, force: InForce, on_stage: OnStage | None = None) -> None:
        if state.facts is None:  # else facts from before the question would decide
            clock = state.services.clock
            state.facts, state.now_s, state.wall_s = state.session.facts(), clock.monotonic_s(), clock.wall_s()
            if (span := force.snapshot.span) is not None:  # a proof tells a time at which these rules held
                state.wall_s = span.nearest(state.wall_s)
        self._is_other = False
        if state.lineage is not None:
            found = state.lineage.sub_agent(force.snapshot.present)
            state.callers, self._is_other = found.callers, found.agent_id != state.agent_id
        self.state = state
        self._force = force
        self._on_stage = on_stage
        self._clock_ns = time.perf_counter_ns()
        self._trace: list[StageTrace] = []
        self._deny: tuple[str, Finding] | None = None
        self._ask: tuple[str, Finding] | None = None
        self._noted: tuple[str, Finding] | None = None
        self._prover: Prover | None = None
        self.effect = _ALLOW  # of the last decision

    def decide(self) -> Decision:
        """Run the deciding stages until one denies; without an observer, a stage without objections is only counted."""
        state, note, watched = self.state, self._trace.append, self._on_stage is not None
        for stage in DECIDING:
            result = run_stage(stage, state)
            if stage is POLICY and state.lineage is not None:
                result = self._with_callers(result)
            if result.findings or watched or (stage is APPROVAL and (state.asks or state.noted)):
                if not self._add(stage.name, result):
                    break
            else:
                ended_ns = time.perf_counter_ns()
                note(StageTrace(stage.name, _ALLOW, result.note, (ended_ns - self._clock_ns) / 1000))
                self._clock_ns = ended_ns
        return self.decision()

    def _with_callers(self, own: StageResult) -> StageResult:
        """The result of the stage policy together with what the callers of a sub-agent may not do."""
        found = [*own.findings]
        if self._is_other:
            reason = f"under this policy the sub-agent is another agent than `{self.state.agent_id}`"
            found.append(Finding(Verdict.DENY, "caller-denied", reason, model=REFUSED_TO_CALLER))
        for caller in self.state.callers:
            try:
                found += self._taken_by(caller)
            except Exception as error:  # noqa: BLE001 the stage boundary
                return stage_failure(POLICY.name, error)
        return own if len(found) == len(own.findings) else StageResult(tuple(found), own.note)

    def _taken_by(self, caller: Caller) -> Iterator[Finding]:
        """The objections to the call because of one caller: explicit denials, or all that stops it if it is whole."""
        state, whose = self.state, f"the caller `{caller.agent_id}`"
        agent = self._force.snapshot.agent(caller.agent_id)
        if agent is None:
            yield Finding(
                Verdict.DENY, "caller-denied", f"the policy has no agent for {whose}", model=REFUSED_TO_CALLER
            )
        elif not caller.whole:
            yield from denials_of_caller(state, agent, whose)
        else:
            twin = CallState(
                "",
                caller.agent_id,
                state.tool_name,
                state.raw,
                agent,
                state.session,
                state.services,
                state.user_id,
                state.client,
            )
            twin.facts, twin.now_s, twin.wall_s, twin.folder = state.facts, state.now_s, state.wall_s, state.folder
            decision = Passage(twin, self._force).decide()
            verdict, does = decision.effect, "may not do" if decision.effect is Verdict.DENY else "is asked before"
            if verdict is not _ALLOW:
                rule, code = decision.rule, "caller-denied" if verdict is Verdict.DENY else "caller-asks"
                yield Finding(
                    verdict,
                    code,
                    f"{whose} {does} this: {decision.reason}",
                    rule.address if rule is not None else None,
                    rule.rule_id if rule is not None else None,
                    REFUSED_TO_CALLER if verdict is Verdict.DENY else None,
                )

    async def act(self) -> Decision:
        """Run the acting stages of an allowed call."""
        self.state.again = self._again
        self._clock_ns = time.perf_counter_ns()
        for stage in ACTING:
            if isinstance(stage, Stage):
                result = run_stage(stage, self.state)
            else:
                result = await _run_effect(stage, self.state)
            if not self._add(stage.name, result):
                break
        return self.decision()

    def _again(
        self, arguments: Mapping[str, JsonValue], reaching: tuple[UrlTarget, ...] = ()
    ) -> Mapping[str, JsonValue]:
        """The canonical form of other arguments if the call would be allowed with them without a question; else
        ToolFailure.
        """
        state = self.state.instead(arguments, reaching)
        decision = Passage(state, self._force).decide()
        if decision.effect is not Verdict.ALLOW:
            raise ToolFailure(Message.NOT_INSTEAD, code=decision.code, detail=decision.reason)
        self.state.led_to += tuple(f"{url.host}:{url.port}" for url in (*state.urls, *reaching))
        return decision.arguments

    def decision(self) -> Decision:
        """The decision by the stages so far."""
        state, force, trace = self.state, self._force, tuple(self._trace)
        decided, passed = self._deny or (self._ask if state.asks else None), None
        if self._noted is not None and self._deny is None:
            decided, passed = self._pass(decided)
        prover = self._prover
        if prover is None or (decided is not None and passed is None):  # a call that runs has one decision with one id
            prover = self._prover = Prover(state, force.snapshot, force.keys)
        if decided is None:
            name = f".{state.operation.name}" if state.operation and state.operation.name else ""
            text, self.effect = f"`{state.tool_name}{name}` is allowed", _ALLOW
            return Decision(
                _ALLOW, _LAST, "allowed", text, None, None, trace, state.arguments, NO_FACTS, prover, None, force.places
            )
        stage, finding = decided
        self.effect = passed or finding.verdict
        address, model = finding.address, None
        if finding.verdict is Verdict.DENY and passed is None:
            model = to_model(finding.model or EMPTY)
        return Decision(
            finding.verdict,
            stage,
            finding.code,
            finding.reason,
            RuleRef(finding.rule_id or spell_address(address), address, force.places) if address is not None else None,
            model,
            trace,
            state.arguments,
            finding.facts,
            prover,
            passed,
            force.places,
        )

    def _pass(self, decided: tuple[str, Finding] | None) -> tuple[tuple[str, Finding] | None, Verdict | None]:
        """The objection that decides where observe mode passes some, and what becomes of the call if it passes that."""
        noted, effect = self._noted, _ALLOW if decided is None else Verdict.ASK
        if noted is not None and noted[1].verdict is Verdict.DENY:
            return noted, effect
        return (noted, effect) if decided is None and self.state.noted else (decided, None)

    def _add(self, name: str, result: StageResult) -> bool:
        """Add a stage's result; True if the call continues."""
        findings, reason = result
        verdict, address = _ALLOW, None
        if findings:
            is_asked = name == _LAST and findings[0].verdict is Verdict.ASK  # our own words, to which an answer refers
            tool = self.state.tool
            if not is_asked and (tool is None or tool.scrub):
                findings = tuple(spotless(finding) for finding in findings)
            verdict = strictest(*(finding.verdict for finding in findings))
            deciding = next(finding for finding in findings if finding.verdict is verdict)
            reason, address = deciding.reason, deciding.address
            if tool is not None and tool.observation is not None:
                passes = tool.observation.passes
                self._note(name, [finding for finding in findings if passes(name, finding)])
                findings = tuple(finding for finding in findings if not passes(name, finding))
            if findings:
                self._object(name, findings)
        elif name == _LAST and (self.state.asks or self.state.noted):
            verdict = Verdict.ASK
        ended_ns = time.perf_counter_ns()
        row = StageTrace(name, verdict, reason, (ended_ns - self._clock_ns) / 1000, address)
        self._clock_ns = ended_ns
        self._trace.append(row)
        if self._on_stage is not None:
            try:
                self._on_stage(row)
            except Exception:  # noqa: BLE001 the observer is the host's code, and its failure stops no call
                _log.exception("an observer of stages failed")
        return self._deny is None

    def _object(self, name: str, findings: tuple[Finding, ...]) -> None:
        """Take objections that are enforced."""
        verdict = strictest(*(finding.verdict for finding in findings))
        deciding = next(finding for finding in findings if finding.verdict is verdict)
        if verdict is Verdict.DENY:
            self._deny = (name, deciding)
        else:
            self._ask = self._ask or (name, deciding)
            self.state.asks = (*self.state.asks, *findings)

    def _note(self, name: str, findings: list[Finding]) -> None:
        """Take objections that observe mode passes: the first denial decides, else the first ask."""
        if findings and name == PERMISSION.name:
            self.state.passes_levels = True
        for finding in findings:
            is_denied = finding.verdict is Verdict.DENY
            if self._noted is None or (is_denied and self._noted[1].verdict is not Verdict.DENY):
                self._noted = (name, finding)
            if is_denied:
                self.state.counts = False
            else:
                self.state.noted = (*self.state.noted, finding)


def run_stage(stage: Stage, state: CallState) -> StageResult:
    """Run a stage; any exception becomes a denial, even a panic of a compiled library, which is no Exception."""
    try:
        return stage.run(state)
    except (KeyboardInterrupt, SystemExit, aio.CancelledError):
        raise
    except BaseException as error:  # noqa: BLE001 the stage boundary
        return stage_failure(stage.name, error)


async def _run_effect(stage: EffectStage, state: CallState) -> StageResult:
    try:
        return await stage.run(state)
    except (KeyboardInterrupt, SystemExit, GeneratorExit, aio.CancelledError):
        raise
    except BaseException as error:  # noqa: BLE001 the stage boundary
        return stage_failure(stage.name, error)


_ACTING = frozenset(stage.name for stage in ACTING)


def verify(proof: DecisionProof, call: ProvenCall, force: InForce) -> Verification:
    """Verify the proof. A forged one is not decided again."""
    key = force.keys.find(proof.key_id)
    if key is None:
        return Verification(False, problems=("the key of the proof is not here",))
    if not proof.is_sealed_by(key):
        return Verification(False, problems=("the proof was changed, or not made here",))
    force = replace(force, snapshot=force.snapshot.at(proof.wall_s))
    agent = force.snapshot.agent(call.agent_id)
    services = replace(force.services, rates=None, grants=None, stops=None)
    session = Session(proof.facts.session_id or "none")
    user_id = call.user_id or (agent.agent.user_id if agent else None)
    state = CallState("", call.agent_id, call.tool, call.arguments, agent, session, services, user_id)
    state.answer, state.facts, state.grant, state.folder = proof.answer, proof.facts, proof.grant, call.folder
    state.now_s, state.wall_s, state.rates, state.lineage = proof.now_s, proof.wall_s, proof.rates, call.lineage
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
    is_same = proof.code == CODE or proof.tool_digest == tool_digest(state)  # a stopped call reached no tool
    return [] if is_same else ["the tool has changed since"]


def _compare(proof: DecisionProof, again: Decision, state: CallState) -> tuple[bool, list[str]]:
    """Tell whether the second decision is the same; a refusal while acting must have been allowed until then, and a
    stop denies whatever the policy says.
    """
    if proof.code == CODE:
        return True, []
    if proof.stage in _ACTING:
        allowed = again.effect is Verdict.ALLOW
        return allowed, [] if allowed else [f"it would not have reached `{proof.stage}`: {again.reason}"]
    rule = again.rule.rule_id if again.rule else None
    now = (again.verdict, again.stage, again.code, rule, state.grant)
    if now == (proof.verdict, proof.stage, proof.code, proof.rule, proof.grant):
        return True, []
    return False, [f"decided again it is {again.verdict} at `{again.stage}` ({again.code}): {again.reason}"]


_NEEDS = "its arguments need results of earlier steps"


@frozen
class StepForecast:
    """A step, and the gate's decision on it as the next call of its agent.

    ``applies`` and ``verdict`` are None if they depend on results. ``decision``: if all its arguments are known.
    """

    step: int
    tool: str
    applies: bool | None
    verdict: Verdict | None
    reason: str
    decision: Decision | None = None

    def to_json(self) -> dict[str, JsonValue]:
        """Shape: step, tool, applies, verdict, reason, and of a decision also stage, code and arguments."""
        more: dict[str, JsonValue] = {}
        if self.decision is not None:
            more = {"stage": self.decision.stage, "code": self.decision.code}
            more["arguments"] = dict(self.decision.arguments)
        verdict = None if self.verdict is None else str(self.verdict)
        said: dict[str, JsonValue] = {"step": self.step, "tool": self.tool, "applies": self.applies}
        return {**said, "verdict": verdict, "reason": self.reason, **more}


def forecast(state: CallState, force: InForce) -> tuple[StepForecast, ...]:
    """The steps of a decided call; none for a denied call or for a tool other than a composition."""
    decision = Passage(state, force).decide()
    if decision.effect is Verdict.DENY or not isinstance(state.plan.tool, ComposedTool):
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


class Prover:
    """Makes the proof of a decision on first use; before that it only stores what the decision used."""

    __slots__ = ("_decision_id", "_keys", "_made", "_snapshot", "state")

    def __init__(self, state: CallState, snapshot: Snapshot, keys: ProofKeys) -> None:
        self.state = state
        self._snapshot = snapshot
        self._keys = keys
        self._decision_id = ""
        self._made: tuple[Decision, DecisionProof] | None = None

    @property
    def decision_id(self) -> str:
        """The id of the decision, assigned on first use."""
        self._decision_id = self._decision_id or new_id("decision")
        return self._decision_id

    @property
    def policy_digest(self) -> str:
        """The digest of the policy that decided."""
        return self._snapshot.policy_digest

    def proof(self, decision: Decision) -> DecisionProof:
        """The proof, the same one each time."""
        if self._made is not None and self._made[0] is decision:
            return self._made[1]
        state = self.state
        key_id, key = self._keys.current()
        proof = DecisionProof(
            self.decision_id,
            decision.verdict,
            decision.stage,
            decision.code,
            decision.reason.encode("utf-8", "replace").decode(),
            decision.rule.rule_id if decision.rule else None,
            state.grant,
            self.policy_digest,
            tool_digest(state),
            call_digest(state, key, tool_digest(state)),
            sent_digest(state, key),
            state.facts or state.session.facts(),
            state.now_s,
            state.wall_s,
            dict(state.rates),
            state.answer,
            key_id,
        ).seal(key)
        self._made = (decision, proof)
        return proof
