"""The common result of built-in tools (``{success, message, data?}``), and what they were agreed to."""

from __future__ import annotations

from collections.abc import Callable

from gatewright.base.errors import ToolFailure
from gatewright.base.jsonvalue import JsonValue
from gatewright.base.plural import plural
from gatewright.policy.target import Approved, Located, Refusal
from gatewright.tools.context import ToolExecutionContext
from gatewright.tools.declaration import Normalization, ResultType
from gatewright.tools.tool import Tool


class ObjectTool(Tool, abstract=True):
    """A tool whose result is an object, as ``done`` makes it."""

    result_type = ResultType.OBJECT
    normalization = Normalization.JSON


def done(message: str, data: JsonValue = None) -> JsonValue:
    """A success; ``data`` is left out when there is none. Failures are raised as ToolFailure instead."""
    result: dict[str, JsonValue] = {"success": True, "message": message}
    return result if data is None else {**result, "data": data}


def found(hits: JsonValue) -> JsonValue:
    """What a search answered, with how many hits it has."""
    many = hits.get("hits") if isinstance(hits, dict) else None
    count = len(many) if isinstance(many, list) else 0
    return done("nothing was found" if not count else plural(count, "hit"), hits)


def place(found: Located | Refusal) -> Located:
    """The place that was found. Raises ToolFailure with the hint that is safe to show when it was refused."""
    if isinstance(found, Refusal):
        raise ToolFailure(found.hint, code=found.code)
    return found


def agreed(context: ToolExecutionContext, now: Callable[[], str | None]) -> Approved:
    """Whether somebody agreed to the call; where they were shown a change, to that one, which ``now`` gives again."""
    if not context.approved or context.approved_change is None:
        return context.approved
    shown = context.approved_change()
    return lambda: now() == shown
