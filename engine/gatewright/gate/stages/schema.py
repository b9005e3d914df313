"""Schema: the arguments fit the schema that the model was shown. Every error is told, one per line with its pointer."""

from __future__ import annotations

from gatewright.gate.call import CallState, Stage, StageResult, denied


def _run(state: CallState) -> StageResult:
    shape = state.plan.shape
    if shape is None:
        raise LookupError("a shown tool has no schema")
    errors = shape.checker.errors(state.arguments)
    if not errors:
        return StageResult(state, note="fits the shown schema")
    lines = "\n".join(str(error) for error in errors)
    model = f"the arguments do not fit the schema:\n{lines}"
    return denied(state, "schema-mismatch", lines, model, facts={"errors": len(errors)})


SCHEMA = Stage("schema", _run)
