"""Schema: the arguments fit the schema that the model was shown. Every error is told, one per line with its pointer.

The shown schema says constraints too: what fails by them alone is told with the rule that asks for it.
"""

from __future__ import annotations

from dataclasses import replace

from gatewright.compile.finding import Finding
from gatewright.compile.rule_test import report_order
from gatewright.compile.shape import ToolShape
from gatewright.gate.call import CallState, Stage, StageResult, denied
from gatewright.gate.constrained import SAID, broken_fields, said

_PASSES = StageResult(note="fits the shown schema")


def _run(state: CallState) -> StageResult:
    shape = state.plan.shape
    if shape is None:
        raise LookupError("a shown tool has no schema")
    errors = shape.checker.errors(state.arguments)
    if not errors:
        return _PASSES
    limits = _limits(state, shape)
    if limits:
        return StageResult(limits)
    lines = "\n".join(str(error) for error in errors)
    model = f"the arguments do not fit the schema:\n{lines}"
    return denied("schema-mismatch", lines, model, facts={"errors": len(errors)})


def _limits(state: CallState, shape: ToolShape) -> tuple[Finding, ...]:
    """The constraints that a call breaks which would fit without them, the first with the words of all."""
    if not shape.narrowed or not shape.whole.checker.is_valid(state.arguments):
        return ()
    found = [
        pair
        for one in state.chosen.constraints
        if one.source_id is None
        for pair in broken_fields(state, one, state.arguments, shape.narrowed)
    ]
    found.sort(key=lambda pair: report_order(pair[0]))
    findings = [finding for _, finding in found]
    if len(findings) > 1:
        lines = "\n".join(dict.fromkeys(line for one in findings for line in one.reason.split("\n")))
        told = (line for one in findings for line in (one.model or "").removeprefix(SAID).split("\n"))
        findings[0] = replace(findings[0], reason=lines, model=said(told))
    return tuple(findings)


SCHEMA = Stage("schema", _run)
