"""Operation: the one that the arguments name, exactly as written, is shown to this agent. It checks nothing else.

Unknown and hidden operations get the same words; the operator is told which layer hid it.
"""

from __future__ import annotations

from dataclasses import replace

from gatewright.gate.call import CallState, Stage, StageResult, denied
from gatewright.gate.violation import KEY, OperationNotAllowed, to_json

_NAMED = 80


def _run(state: CallState) -> StageResult:
    plan = state.plan
    name = plan.tool.operation_of(state.arguments)
    operation = plan.operations.get(name) if name is not None else None
    if operation is not None:
        return StageResult(state.having(operation=operation), note="shown to this agent")
    field = plan.tool.operation_field
    if name is None:
        code = "operation-unknown" if state.arguments.get(field) is not None else "operation-missing"
        return denied(state, code, f"`{field}` does not name an operation", plan.unknown_operation)
    hidden = plan.hidden.get(name)
    if hidden is not None:
        broken = OperationNotAllowed(plan.tool.name, name, tuple(sorted(plan.operations)))
        return StageResult(state, (replace(hidden, model=plan.unknown_operation, facts={KEY: to_json(broken)}),))
    reason = f"`{plan.tool.name}` has no operation `{name[:_NAMED]}`"
    return denied(state, "operation-unknown", reason, plan.unknown_operation)


OPERATION = Stage("operation", _run)
