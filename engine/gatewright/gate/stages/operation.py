"""Operation: every one that the arguments name, exactly as written, is shown to this agent. It checks nothing else.

Unknown and hidden operations get the same words; the operator is told which layer hid it. A call that names several
comes under what each of them comes under; one that names none (an empty batch) under what all shown ones do.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from gatewright.base.jsonvalue import JsonValue
from gatewright.compile.operation_plan import uses_of
from gatewright.gate.call import CallState, Stage, StageResult, denied
from gatewright.gate.violation import KEY, OperationNotAllowed, to_json
from gatewright.schema.fieldpath import EACH, EACH_MEMBER, Missing, Steps, holds_batch, path_text, steps_of, values_at

_NAMED = 80
_SHOWN = "shown to this agent"
_PASSES = StageResult(note=_SHOWN)


def _run(state: CallState) -> StageResult:
    plan = state.plan
    called = plan.tool.operations_of(state.arguments)
    if called is None:
        found = plan.tool.operation_set
        is_fit = plan.shape is not None and plan.shape.checker.is_valid(state.arguments)
        if plan.hidden or found is None or not is_fit:
            return _unreadable(state)
        called = found.of(state.arguments, unreadable=True)  # any may be meant, and none is hidden
    if called is None:
        return _unreadable(state)
    if len(called) == 1:
        operation = plan.operations.get(called[0])
        if operation is not None:
            state.operation = operation
            return _PASSES
    return _several(state, called)


def _several(state: CallState, called: tuple[str, ...]) -> StageResult:
    """A batch: each of its operations must be shown."""
    plan = state.plan
    wrong = next((name for name in called if name not in plan.operations), None)
    if wrong is not None:
        return _refused(state, wrong)
    names = frozenset(called) or frozenset(plan.operations)
    state.operation, state.uses = plan.combined.of(names), uses_of(plan.tool, called)
    return StageResult(note=f"all {len(called)} {_SHOWN}" if called else "names none, so counts as any")


def _refused(state: CallState, name: str) -> StageResult:
    plan, found = state.plan, state.plan.tool.operation_set
    if found is not None and name not in (found.of(state.arguments, left_out=False) or ()):
        return _missing(state)
    hidden, words = plan.hidden.get(name), _words(state, name)
    if hidden is not None:
        broken = OperationNotAllowed(plan.tool.name, name, tuple(sorted(plan.operations)))
        return StageResult((replace(hidden, model=words, facts={KEY: to_json(broken)}),))
    return denied("operation-unknown", f"`{plan.tool.name}` has no operation `{name[:_NAMED]}`", words)


def _unreadable(state: CallState) -> StageResult:
    plan, field = state.plan, state.plan.tool.operation_field
    given = state.arguments.get(next(iter(steps_of(field)), field), state.arguments.get(field))
    if given is None:
        return _missing(state)
    return denied("operation-unknown", f"`{field}` does not name an operation", plan.unknown_operation)


def _missing(state: CallState) -> StageResult:
    """What leaving the field out would call is not named: it may be hidden, and the key is what has to be mended."""
    words = _words(state, None)
    reason = f"the call names no operation of `{state.plan.tool.name}`; {words}"
    return denied("operation-missing", reason, words)


def _words(state: CallState, name: str | None) -> str:
    """Which operations there are, and the place where ``name`` stands instead of one; None: where nothing stands."""
    plan = state.plan
    field = f"`{plan.tool.operation_field}`"
    place = f"`{_place(state, name) or plan.tool.operation_field}`"
    return plan.unknown_operation.replace(field, place if name is not None else f"{place} is missing: it", 1)


def _place(state: CallState, name: str | None) -> str | None:
    """The first place of the operation field that holds ``name``; in a batch, of the first element that does."""
    tool, arguments = state.plan.tool, state.arguments
    places = (steps_of(tool.operation_field),) if tool.operation_set is None else tool.operation_set.places
    for steps in places:
        for value in values_at(arguments, steps):
            if value == name or (name is None and isinstance(value, Missing)):
                return next(iter(_pointers(arguments, steps, name)), None) if holds_batch(steps) else path_text(steps)
    return None


def _pointers(value: JsonValue, steps: Steps, name: str | None) -> Iterable[str]:
    """Where the text stands below ``value``; None: where nothing stands."""
    if not steps:
        if value == name:
            yield ""
        return
    step, rest = steps[0], steps[1:]
    if step == EACH:
        for index, item in enumerate(value if isinstance(value, list) else ()):
            yield from (f"/{index}{below}" for below in _pointers(item, rest, name))
    elif step == EACH_MEMBER:
        for item in value.values() if isinstance(value, dict) else ():  # its key is the model's own text
            yield from (f"/*{below}" for below in _pointers(item, rest, name))
    elif isinstance(value, dict):
        yield from (f"/{step}{below}" for below in _pointers(value.get(step), rest, name))


OPERATION = Stage("operation", _run)
