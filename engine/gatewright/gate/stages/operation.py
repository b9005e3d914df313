"""Operation: every one that the arguments name, exactly as written, is shown to this agent. It checks nothing else.

Unknown and hidden operations get the same words; the operator is told which layer hid it. A call that names several
comes under what each of them comes under; one that names none (an empty batch) under what all shown ones do.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from gatewright.base.jsonvalue import JsonValue
from gatewright.gate.call import CallState, Stage, StageResult, denied
from gatewright.gate.combined import uses_of
from gatewright.gate.violation import KEY, OperationNotAllowed, to_json
from gatewright.schema.fieldpath import EACH, Steps, steps_of

_NAMED = 80
_SHOWN = "shown to this agent"


def _run(state: CallState) -> StageResult:
    plan = state.plan
    called = plan.tool.operations_of(state.arguments)
    if called is None:
        return _unreadable(state)
    if len(called) == 1:
        operation = plan.operations.get(called[0])
        if operation is not None:
            return StageResult(state.having(operation=operation), note=_SHOWN)
    return _several(state, called)


def _several(state: CallState, called: tuple[str, ...]) -> StageResult:
    """A batch: each of its operations must be shown."""
    plan = state.plan
    wrong = next((name for name in called if name not in plan.operations), None)
    if wrong is not None:
        return _refused(state, wrong)
    names = frozenset(called) or frozenset(plan.operations)
    whole = state.having(operation=plan.combined.of(names), uses=uses_of(plan.tool, called))
    return StageResult(whole, note=f"all {len(called)} {_SHOWN}" if called else "names none, so counts as any")


def _refused(state: CallState, name: str) -> StageResult:
    plan, words = state.plan, _words(state, name)
    hidden = plan.hidden.get(name)
    if hidden is not None:
        broken = OperationNotAllowed(plan.tool.name, name, tuple(sorted(plan.operations)))
        return StageResult(state, (replace(hidden, model=words, facts={KEY: to_json(broken)}),))
    return denied(state, "operation-unknown", f"`{plan.tool.name}` has no operation `{name[:_NAMED]}`", words)


def _unreadable(state: CallState) -> StageResult:
    plan, field = state.plan, state.plan.tool.operation_field
    given = state.arguments.get(next(iter(steps_of(field)), field), state.arguments.get(field))
    code = "operation-unknown" if given is not None else "operation-missing"
    return denied(state, code, f"`{field}` does not name an operation", plan.unknown_operation)


def _words(state: CallState, name: str) -> str:
    """Which ones there are; in a batch, for the first element that names this one."""
    plan, field = state.plan, state.plan.tool.operation_field
    if EACH not in field:
        return plan.unknown_operation
    pointer = next(iter(_pointers(state.arguments, steps_of(field), name)), None)
    return (
        plan.unknown_operation if pointer is None else plan.unknown_operation.replace(f"`{field}`", f"`{pointer}`", 1)
    )


def _pointers(value: JsonValue, steps: Steps, name: str) -> Iterable[str]:
    """Where the text stands below ``value``."""
    if not steps:
        if value == name:
            yield ""
        return
    step, rest = steps[0], steps[1:]
    if step == EACH:
        for index, item in enumerate(value if isinstance(value, list) else ()):
            yield from (f"/{index}{below}" for below in _pointers(item, rest, name))
    elif isinstance(value, dict) and step in value:
        yield from (f"/{step}{below}" for below in _pointers(value[step], rest, name))


OPERATION = Stage("operation", _run)
