"""The steps of a composition as far as they can be told before it is called: its input is known, no result is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gatewright.base.errors import SchemaError
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue
from gatewright.gate.call import CallState, Within
from gatewright.gate.decision import Decision
from gatewright.gate.inforce import InForce
from gatewright.gate.pipeline import Passage
from gatewright.policy.composition import (
    INPUT,
    STEPS,
    CompositionStep,
    NoValue,
    called_operations,
    filled,
    references_in,
)
from gatewright.policy.verdict import Verdict
from gatewright.schema.walk import as_list, as_object
from gatewright.tools.composed import ComposedTool

_NEEDS = "its arguments need results of earlier steps"


@frozen
class StepForecast:
    """A step and what the gate would say to it as the next call of its agent.

    ``applies`` None: that hangs on results. ``verdict`` None: what it would be hangs on them too. ``decision``: where
    all its arguments are known.
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
    """The steps of a call that was decided; none for one that is denied, or that is no composition's."""
    decision = Passage(state, force).decide()
    if decision.verdict is Verdict.DENY or not isinstance(state.plan.tool, ComposedTool):
        return ()
    return tuple(_forecasts(state.plan.tool, state, force))


def _forecasts(tool: ComposedTool, state: CallState, force: InForce) -> Iterator[StepForecast]:
    given = tool.given(state.arguments)
    for number, step in enumerate(tool.composition.steps):
        applies = _applies(tool, number, step, given)
        if applies is False:
            yield StepForecast(number, step.tool, applies, None, "it does not apply to this input")
            continue
        if any(reference.step is not None for reference in references_in(dict(step.arguments))):
            verdict = _closed(state, force, step)
            reason = _NEEDS if verdict is None else f"`{step.tool}` is not open to this agent"
            yield StepForecast(number, step.tool, applies, verdict, reason)
            continue
        try:
            call = filled(step.arguments, given, (), ())
        except NoValue:
            yield StepForecast(number, step.tool, applies, Verdict.DENY, "it needs an argument that is not given")
            continue
        below = state.beneath("", Within(state.call_id, number, 1), step.tool, call)
        decision = Passage(below, force).decide()
        yield StepForecast(number, step.tool, applies, decision.verdict, decision.reason, decision)


def _applies(tool: ComposedTool, number: int, step: CompositionStep, given: JsonValue) -> bool | None:
    """Tell whether a step applies; None where its condition looks at results."""
    if step.is_unconditional:
        return True
    if number and not (isinstance(step.when, bool) or _is_about_input(step.when or {})):
        return None
    try:
        return tool.applies(number, given, [])
    except SchemaError:
        return None


def _is_about_input(when: Mapping[str, JsonValue]) -> bool:
    """Tell whether a condition looks at the input alone; one that may look further counts as doing so."""
    properties, required = as_object(when.get("properties", {})), as_list(when.get("required", []))
    if not when.keys() <= {"properties", "required", "type"} or properties is None or required is None:
        return False
    return properties.keys() <= {INPUT} and all(name in {INPUT, STEPS} for name in required)


def _closed(state: CallState, force: InForce, step: CompositionStep) -> Verdict | None:
    """A denial of the step whatever the results are; None where it hangs on them."""
    plan = state.agent.plan(step.tool) if state.agent is not None else None
    if plan is None:
        return Verdict.DENY
    rows = called_operations(plan.right.facts, step)
    proofs = [force.snapshot.operation(state.agent_id, step.tool, row.name) for row in rows]
    return None if any(proof.is_open for proof in proofs) else Verdict.DENY
