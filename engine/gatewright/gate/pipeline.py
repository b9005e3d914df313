"""The stages in their order, a call's passage through them, and the proof of its decision.

``decide`` runs the stages up to approval, ``call`` runs all of them: one tuple, one order, one code.
"""

from __future__ import annotations

import hmac
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache

from gatewright.arguments.url import UrlTarget
from gatewright.base.amount import new_id
from gatewright.base.errors import ForeignStore, JsonRefused, ToolFailure
from gatewright.base.jsonvalue import JsonValue, canonical_json
from gatewright.base.late import aio
from gatewright.compile.operation import EMPTY
from gatewright.compile.rule_test import Finding
from gatewright.compile.snapshot import Snapshot
from gatewright.gate.call import CallState, EffectStage, Stage, StageResult, deny
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
from gatewright.gate.inforce import InForce, ProofKeys
from gatewright.gate.scrub import scrub_text
from gatewright.gate.stages.approval import APPROVAL, POLICY
from gatewright.gate.stages.arguments import ARGUMENTS
from gatewright.gate.stages.execute import EXECUTE
from gatewright.gate.stages.permission import CAPABILITY, PERMISSION
from gatewright.gate.stages.read import LOOKUP, OPERATION, PARSE, read_arguments
from gatewright.gate.stages.result import NORMALISE, OUTPUT, TRUNCATE, log_error, trace_of
from gatewright.gate.stages.rules import RULES, SCHEMA
from gatewright.policy.verdict import Verdict, strictest


class Prover:
    """Makes the proof of a decision on first use; until then it only stores the decision's knowledge."""

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


def tool_digest(state: CallState) -> str | None:
    """The digest of the tool that the call reached; None if it reached none."""
    return state.tool.tool.digest if state.tool is not None else None


def call_digest(state: CallState, key: bytes, tool: str | None) -> str:
    """A digest of caller, tool (with its digest) and arguments: canonical as far as the stages came."""
    return _digest({**_who(state), "tool_digest": tool, "arguments": state.arguments}, key)


def sent_digest(state: CallState, key: bytes) -> str:
    """A digest of caller, tool and arguments as sent; as text if they are no JSON object."""
    sent: JsonValue = type(state.raw).__name__
    try:
        sent = read_arguments(state.raw)
    except JsonRefused:
        content = state.raw.encode("utf-8", "surrogatepass") if isinstance(state.raw, str) else state.raw
        if isinstance(content, bytes):
            sent = hmac.new(key, b"raw\0" + content, "sha256").hexdigest()
    except Exception:  # noqa: BLE001 a mapping of the host's may raise anything; the stage was a denial then
        pass
    return _digest({**_who(state), "sent": sent}, key)


def _who(state: CallState) -> dict[str, JsonValue]:
    session_id = state.facts.session_id if state.facts is not None else state.session.session_id
    return {
        "agent": _valid(state.agent_id),
        "user": _valid(state.user_id) if state.user_id is not None else None,
        "session": _valid(session_id),
        "tool": _valid(state.tool_name),
    }


def _digest(bound: dict[str, JsonValue], key: bytes) -> str:
    return hmac.new(key, b"call\0" + canonical_json(bound), "sha256").hexdigest()


def _valid(text: str) -> JsonValue:
    """``text`` in a form that JSON can hold; different texts stay different."""
    return text if text.isascii() else ["utf-8", text.encode("utf-8", "surrogatepass").hex()]


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
        if state.facts is None:  # otherwise somebody decides again by former facts
            clock = state.services.clock
            state.facts, state.now_s, state.wall_s = state.session.facts(), clock.monotonic_s(), clock.wall_s()
        self.state = state
        self._force = force
        self._on_stage = on_stage
        self._clock_ns = time.perf_counter_ns()
        self._trace: list[StageTrace] = []
        self._deny: tuple[str, Finding] | None = None
        self._ask: tuple[str, Finding] | None = None
        self._prover: Prover | None = None

    def decide(self) -> Decision:
        """Run the deciding stages until one denies; without an observer, a stage without objections is only noted."""
        state, note, watched = self.state, self._trace.append, self._on_stage is not None
        for stage in DECIDING:
            result = run_stage(stage, state)
            if result.findings or watched or (state.asks and stage is APPROVAL):
                if not self._add(stage.name, result):
                    break
            else:
                ended_ns = time.perf_counter_ns()
                note(StageTrace(stage.name, _ALLOW, result.note, (ended_ns - self._clock_ns) / 1000))
                self._clock_ns = ended_ns
        return self.decision()

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
        """The canonical form of other arguments if the call would be allowed with them unasked; else ToolFailure."""
        state = self.state.instead(arguments, reaching)
        decision = Passage(state, self._force).decide()
        if decision.verdict is not Verdict.ALLOW:
            raise ToolFailure(Message.NOT_INSTEAD, code=decision.code, detail=decision.reason)
        self.state.led_to += tuple(f"{url.host}:{url.port}" for url in (*state.urls, *reaching))
        return decision.arguments

    def decision(self) -> Decision:
        """The decision by the stages so far."""
        state, force, trace = self.state, self._force, tuple(self._trace)
        decided = self._deny or (self._ask if state.asks else None)
        prover = self._prover
        if prover is None or decided is not None:  # an allowed call that is carried out has one decision with one id
            prover = self._prover = Prover(state, force.snapshot, force.keys)
        if decided is None:
            operation = state.operation.name if state.operation else ""
            text = f"`{state.tool_name}.{operation}` is allowed" if operation else f"`{state.tool_name}` is allowed"
            return Decision(
                _ALLOW, _LAST, "allowed", text, trace=trace, arguments=state.arguments, facts=NO_FACTS, prover=prover
            )
        stage, finding = decided
        address, model = finding.address, None
        if finding.verdict is Verdict.DENY:
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
        )

    def _add(self, name: str, result: StageResult) -> bool:
        """Add a stage's result; True if the call continues."""
        findings, reason = result
        verdict, address = _ALLOW, None
        if findings:
            is_asked = (
                name == _LAST and findings[0].verdict is Verdict.ASK
            )  # our own words, and an answer refers to them
            if not is_asked and (self.state.tool is None or self.state.tool.scrub):
                findings = tuple(_spotless(finding) for finding in findings)
            verdict = strictest(*(finding.verdict for finding in findings))
            deciding = next(finding for finding in findings if finding.verdict is verdict)
            reason, address = deciding.reason, deciding.address
            if verdict is Verdict.DENY:
                self._deny = (name, deciding)
            else:
                self._ask = self._ask or (name, deciding)
                self.state.asks = (*self.state.asks, *findings)
        elif name == _LAST and self.state.asks:
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
        return verdict is not Verdict.DENY


def _spotless(finding: Finding) -> Finding:
    """The objection without secrets in its quotations: trace, answers, observers and the log all use it."""
    reason, model = _scrub(finding.reason), _scrub(finding.model or "")
    if (reason, model) == (finding.reason, finding.model or ""):
        return finding
    return replace(finding, reason=reason, model=model or finding.model)


@lru_cache(maxsize=1024)
def _scrub(text: str) -> str:
    return scrub_text(text)[0]


def run_stage(stage: Stage, state: CallState) -> StageResult:
    """Run a stage; any exception becomes a denial, even a panic of a compiled library (no Exception)."""
    try:
        return stage.run(state)
    except (KeyboardInterrupt, SystemExit, aio.CancelledError):
        raise
    except BaseException as error:  # noqa: BLE001 the stage boundary
        return _failure(stage.name, error)


async def _run_effect(stage: EffectStage, state: CallState) -> StageResult:
    try:
        return await stage.run(state)
    except (KeyboardInterrupt, SystemExit, GeneratorExit, aio.CancelledError):
        raise
    except BaseException as error:  # noqa: BLE001 the stage boundary
        return _failure(stage.name, error)


def _failure(name: str, error: BaseException) -> StageResult:
    if type(error) is ForeignStore:
        _log.error("the stage %s was refused memory: %s", name, error)
        return deny(error.code, str(error), Message.FOREIGN)
    trace: str | None = None
    try:
        trace = trace_of(error)
        words = f"{type(error).__name__}: {error}"[:200]
    except Exception:  # noqa: BLE001 a stranger's exception may fail to print
        words = type(error).__name__
    log_error(_log, error, trace, "the stage %s raised", name)
    return deny("internal-error", f"the stage {name} failed: {words}", Message.INTERNAL)
