"""The stages in their order, and a call's passage through them.

``decide`` runs the stages up to approval, ``call`` runs all of them: one tuple, one order, one code.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping

from gatewright.base import aio
from gatewright.base.errors import ToolFailure
from gatewright.base.jsonvalue import JsonValue
from gatewright.compile.finding import Finding
from gatewright.compile.redactor import EMPTY
from gatewright.gate import message
from gatewright.gate.call import CallState, EffectStage, Stage, StageResult
from gatewright.gate.decision import Decision, RuleRef, StageTrace, dotted
from gatewright.gate.inforce import InForce
from gatewright.gate.prover import Prover
from gatewright.gate.stages.approval import APPROVAL
from gatewright.gate.stages.arguments import ARGUMENTS
from gatewright.gate.stages.capability import CAPABILITY
from gatewright.gate.stages.execute import EXECUTE
from gatewright.gate.stages.lookup import LOOKUP
from gatewright.gate.stages.normalise import NORMALISE
from gatewright.gate.stages.operation import OPERATION
from gatewright.gate.stages.output import OUTPUT
from gatewright.gate.stages.parse import PARSE
from gatewright.gate.stages.permission import PERMISSION
from gatewright.gate.stages.policy import POLICY
from gatewright.gate.stages.rules import RULES
from gatewright.gate.stages.schema import SCHEMA
from gatewright.gate.stages.truncate import TRUNCATE
from gatewright.policy.verdict import Verdict, strictest

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
    """One call's way through the stages: the state as it stands, the trace, and the objection that decides."""

    def __init__(self, state: CallState, force: InForce, on_stage: OnStage | None = None) -> None:
        if state.facts is None:  # else somebody decides again by what was known then
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
        """Run the deciding stages until one denies."""
        self._run(DECIDING)
        return self.decision()

    def _run(self, stages: Iterable[Stage]) -> None:
        """Run stages until one denies; one that finds nothing to object to, unwatched, is only noted."""
        state, then, note = self.state, self._clock_ns, self._trace.append
        watched, now = self._on_stage is not None, time.perf_counter_ns
        for stage in stages:
            result = run_stage(stage, state)
            findings, reason = result
            if findings or watched or (state.asks and stage.name == _LAST):
                self._clock_ns = then
                if not self._passed(stage.name, result):
                    return
                then = self._clock_ns
                continue
            ended = now()
            note(StageTrace(stage.name, _ALLOW, reason, (ended - then) / 1000))
            then = ended
        self._clock_ns = then

    async def act(self) -> Decision:
        """Run the acting stages of a call that is allowed."""
        self.state.again = self._again
        self._clock_ns = time.perf_counter_ns()
        for stage in ACTING:
            if isinstance(stage, Stage):
                result = run_stage(stage, self.state)
            else:
                result = await _run_effect(stage, self.state)
            if not self._passed(stage.name, result):
                break
        return self.decision()

    def _again(self, arguments: Mapping[str, JsonValue]) -> Mapping[str, JsonValue]:
        """The canonical form of other arguments with which the call would be carried out too, unasked."""
        state = self.state.instead(arguments)
        decision = Passage(state, self._force).decide()
        if decision.verdict is not Verdict.ALLOW:
            raise ToolFailure(message.NOT_INSTEAD, code=decision.code, detail=decision.reason)
        self.state.led_to += tuple(f"{url.host}:{url.port}" for url in state.urls)
        return decision.arguments

    def decision(self) -> Decision:
        """What the stages so far amount to."""
        ask = self._ask if self.state.asks else None
        decided = self._deny or ask
        if decided is None and self._prover is not None:
            prover = self._prover  # what was allowed and is carried out is one decision, and has one id
        else:
            prover = self._prover = Prover(self.state, self._force.snapshot, self._force.keys)
        trace = tuple(self._trace)
        if decided is None:
            return Decision(
                _ALLOW,
                APPROVAL.name,
                "allowed",
                _allowed(self.state),
                None,
                None,
                trace,
                self.state.arguments,
                prover=prover,
            )
        stage, finding = decided
        return Decision(
            finding.verdict,
            stage,
            finding.code,
            finding.reason,
            self._rule(finding),
            message.to_model(finding.model or EMPTY) if finding.verdict is Verdict.DENY else None,
            trace,
            self.state.arguments,
            finding.facts,
            prover,
        )

    def _passed(self, name: str, result: StageResult) -> bool:
        """Take a stage's result in; whether the call goes on."""
        findings, reason = result
        verdict, address = Verdict.ALLOW, None
        if findings:
            verdict = strictest(*(finding.verdict for finding in findings))
            deciding = next(finding for finding in findings if finding.verdict is verdict)
            reason, address = deciding.reason, deciding.address
            self._object(name, verdict, deciding, findings)
        elif name == _LAST and self.state.asks:
            verdict = Verdict.ASK
        ended_ns = time.perf_counter_ns()
        row = StageTrace(name, verdict, reason, (ended_ns - self._clock_ns) / 1000, address)
        self._clock_ns = ended_ns
        self._trace.append(row)
        if self._on_stage is not None:
            self._tell(self._on_stage, row)
        return verdict is not Verdict.DENY

    def _tell(self, on_stage: OnStage, row: StageTrace) -> None:
        """Show a stage to whoever watches; a watcher that fails stops no call."""
        try:
            on_stage(row)
        except Exception:  # noqa: BLE001 the watcher is the host's code
            _log.exception("a watcher of stages failed")

    def _object(self, name: str, verdict: Verdict, deciding: Finding, findings: tuple[Finding, ...]) -> None:
        if verdict is Verdict.DENY:
            self._deny = (name, deciding)
            return
        self._ask = self._ask or (name, deciding)
        self.state.asks = (*self.state.asks, *findings)

    def _rule(self, finding: Finding) -> RuleRef | None:
        if finding.address is None:
            return None
        return RuleRef(finding.rule_id or dotted(finding.address), finding.address, self._force.places)


def run_stage(stage: Stage, state: CallState) -> StageResult:
    """What the stage says; whatever it raises is a denial, a panic of a compiled library (no Exception) too."""
    try:
        return stage.run(state)
    except (KeyboardInterrupt, SystemExit, aio.CancelledError):
        raise
    except BaseException as error:  # noqa: BLE001 the stage boundary
        return _broken(stage.name, error)


async def _run_effect(stage: EffectStage, state: CallState) -> StageResult:
    try:
        return await stage.run(state)
    except (KeyboardInterrupt, SystemExit, GeneratorExit, aio.CancelledError):
        raise
    except BaseException as error:  # noqa: BLE001 the stage boundary
        return _broken(stage.name, error)


def _broken(name: str, error: BaseException) -> StageResult:
    _log.error("the stage %s raised", name, exc_info=error)
    reason = f"the stage {name} failed: {_words(error)}"
    finding = Finding(Verdict.DENY, "internal-error", reason, model=message.INTERNAL)
    return StageResult((finding,))


def _words(error: BaseException) -> str:
    try:
        return f"{type(error).__name__}: {error}"[:200]
    except Exception:  # noqa: BLE001 somebody else's exception may not even print
        return type(error).__name__


def _allowed(state: CallState) -> str:
    operation = state.operation.name if state.operation else ""
    return f"`{state.tool_name}.{operation}` is allowed" if operation else f"`{state.tool_name}` is allowed"
