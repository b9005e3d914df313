"""Output: the result is of the kind that the tool declared and fits its output schema. It changes no result.

A result that does not fit fails the call (the operator reads what is wrong, the model a general sentence), or is taken
and noted in trace and log, or is not looked at, as the policy says of the tool.
"""

from __future__ import annotations

from gatewright.base.jsonvalue import JsonValue
from gatewright.gate import message
from gatewright.gate.call import CallState, EffectStage, StageResult, Status
from gatewright.gate.heavy import apart
from gatewright.policy.document import OutputCheck
from gatewright.tools.result import kind_problem
from gatewright.tools.tool import Tool

_SHOWN = 5


async def _run(state: CallState) -> StageResult:
    if state.status is not Status.ALLOWED:
        return StageResult(note="the call failed")
    if state.reused:
        return StageResult(note="reused")
    tool, check = state.plan.tool, state.plan.output
    problem = kind_problem(state.result, tool.result_type)
    if problem is None and tool.output_checker_of(state.chosen.name) is None:
        return StageResult(note="no output schema")
    if problem is None and check is OutputCheck.OFF:
        return StageResult(note="not checked: output is off")
    if problem is None:
        problem = await apart(state.result, _problem, tool, state.chosen.name, state.result)
        if problem is not None and check is OutputCheck.WARN:
            state.misfit = problem
            return StageResult(note=f"taken as it is: {problem}")
    if problem is None:
        return StageResult(note="fits")
    state.end(Status.FAILED, "output-mismatch", message.to_model(message.MISMATCH), problem)
    return StageResult(note=state.detail)


def _problem(tool: Tool, operation: str, result: JsonValue | bytes) -> str | None:
    """What is wrong with the result, or None."""
    checker = tool.output_checker_of(operation)
    if checker is None or isinstance(result, bytes):
        return None
    part = tool.output_part(result)
    if checker.is_valid(part):
        return None
    errors = [f"`{error.pointer or '/'}`: {error.message}" for error in checker.errors(part)[:_SHOWN]]
    return "the result does not fit the output schema: " + "; ".join(errors)


OUTPUT = EffectStage("output", _run)
"""
Acts, because a large result is checked in a thread.
"""
