"""The stages in their order, and a call's passage through them. It does not know what any stage checks.

``decide`` runs the stages up to approval, ``call`` runs all of them: one tuple, one order, one code.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable

from gatewright.gate import message
from gatewright.gate.call import CallState, EffectStage, Finding, Stage, StageResult
from gatewright.gate.decision import Decision, Places, RuleRef, StageTrace, dotted
from gatewright.gate.stages.approval import APPROVAL
from gatewright.gate.stages.arguments import ARGUMENTS
from gatewright.gate.stages.execute import EXECUTE
from gatewright.gate.stages.lookup import LOOKUP
from gatewright.gate.stages.operation import OPERATION
from gatewright.gate.stages.parse import PARSE
from gatewright.gate.stages.permission import PERMISSION
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
    PERMISSION,
    APPROVAL,
    EXECUTE,
    TRUNCATE,
)
DECIDING = tuple(stage for stage in STAGES[: STAGES.index(APPROVAL) + 1] if isinstance(stage, Stage))
ACTING = STAGES[len(DECIDING) :]

OnStage = Callable[[StageTrace], None]
_log = logging.getLogger(__name__)


class Passage:
    """One call's way through the stages: the state as it stands, the trace, and the objection that decides."""

    def __init__(self, state: CallState, places: Places, on_stage: OnStage | None = None) -> None:
        self.state = state
        self._places = places
        self._on_stage = on_stage
        self._trace: list[StageTrace] = []
        self._deny: tuple[str, Finding] | None = None
        self._ask: tuple[str, Finding] | None = None

    def decide(self) -> Decision:
        """Run the deciding stages until one denies."""
        for stage in DECIDING:
            began = time.perf_counter_ns()
            if not self._passed(stage.name, run_stage(stage, self.state), began):
                break
        return self.decision()

    async def act(self) -> Decision:
        """Run the acting stages of a call that is allowed."""
        for stage in ACTING:
            began = time.perf_counter_ns()
            if isinstance(stage, Stage):
                result = run_stage(stage, self.state)
            else:
                result = await _run_effect(stage, self.state)
            if not self._passed(stage.name, result, began):
                break
        return self.decision()

    def decision(self) -> Decision:
        """What the stages so far amount to."""
        ask = self._ask if self.state.asks else None
        decided = self._deny or ask
        trace = tuple(self._trace)
        if decided is None:
            return Decision(
                Verdict.ALLOW, APPROVAL.name, "allowed", _allowed(self.state), None, None, trace, self.state.arguments
            )
        stage, finding = decided
        return Decision(
            finding.verdict,
            stage,
            finding.code,
            finding.reason,
            self._rule(finding),
            message.to_model(finding.model or message.EMPTY) if finding.verdict is Verdict.DENY else None,
            trace,
            self.state.arguments,
            finding.facts,
        )

    def _passed(self, name: str, result: StageResult, began: int) -> bool:
        """Take a stage's result in; whether the call goes on."""
        self.state, findings = result.state, result.findings
        verdict, reason = Verdict.ALLOW, result.note
        if findings:
            verdict = strictest(*(finding.verdict for finding in findings))
            deciding = next(finding for finding in findings if finding.verdict is verdict)
            reason = deciding.reason
            self._object(name, verdict, deciding, findings)
        waits = name == APPROVAL.name and bool(self.state.asks) and verdict is Verdict.ALLOW
        row = StageTrace(name, Verdict.ASK if waits else verdict, reason, (time.perf_counter_ns() - began) / 1000)
        self._trace.append(row)
        self._tell(row)
        return verdict is not Verdict.DENY

    def _tell(self, row: StageTrace) -> None:
        """Show a stage to whoever watches; a watcher that fails stops no call."""
        if self._on_stage is None:
            return
        try:
            self._on_stage(row)
        except Exception:  # noqa: BLE001 the watcher is the host's code
            _log.exception("a watcher of stages failed")

    def _object(self, name: str, verdict: Verdict, deciding: Finding, findings: tuple[Finding, ...]) -> None:
        if verdict is Verdict.DENY:
            self._deny = (name, deciding)
            return
        self._ask = self._ask or (name, deciding)
        self.state = self.state.having(asks=(*self.state.asks, *findings))

    def _rule(self, finding: Finding) -> RuleRef | None:
        if finding.address is None:
            return None
        return RuleRef(finding.rule_id or dotted(finding.address), finding.address, self._places)


def run_stage(stage: Stage, state: CallState) -> StageResult:
    """What the stage says; whatever it raises is a denial, a panic of a compiled library (no Exception) too."""
    try:
        return stage.run(state)
    except (KeyboardInterrupt, SystemExit, asyncio.CancelledError):
        raise
    except BaseException as error:  # noqa: BLE001 the stage boundary
        return _broken(stage.name, state, error)


async def _run_effect(stage: EffectStage, state: CallState) -> StageResult:
    try:
        return await stage.run(state)
    except Exception as error:  # noqa: BLE001 the stage boundary
        return _broken(stage.name, state, error)


def _broken(name: str, state: CallState, error: BaseException) -> StageResult:
    _log.debug("stage %s raised", name, exc_info=error)
    reason = f"the stage {name} failed: {_words(error)}"
    finding = Finding(Verdict.DENY, "internal-error", reason, model=message.INTERNAL)
    return StageResult(state, (finding,))


def _words(error: BaseException) -> str:
    try:
        return f"{type(error).__name__}: {error}"[:200]
    except Exception:  # noqa: BLE001 somebody else's exception may not even print
        return type(error).__name__


def _allowed(state: CallState) -> str:
    operation = state.operation.name if state.operation else ""
    return f"`{state.tool_name}.{operation}` is allowed" if operation else f"`{state.tool_name}` is allowed"
