"""Common parts of the built-in tools: texts and places of a call, their result (``{success, message, data?}``), its
schema.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from gatewright.base.amount import plural
from gatewright.base.errors import ToolFailure
from gatewright.base.jsonvalue import JsonValue
from gatewright.policy.target import Approved, Located, Refusal
from gatewright.schema.walk import Schema
from gatewright.tools.context import ToolExecutionContext
from gatewright.tools.declaration import Normalization, ResultType
from gatewright.tools.tool import Tool

TEXT: Schema = {"type": "string"}
FLAG: Schema = {"type": "boolean"}
COUNT: Schema = {"type": "integer"}
NUMBER: Schema = {"type": "number"}


def fields(needed: Mapping[str, Schema], more: Mapping[str, Schema] | None = None) -> Schema:
    """Return the schema of an object that has the ``needed`` fields, may have ``more``, and nothing else."""
    return {
        "type": "object",
        "properties": {**needed, **(more or {})},
        "required": list(needed),
        "additionalProperties": False,
    }


def rows(of: Schema) -> Schema:
    """Return the schema of a list of values of one schema."""
    return {"type": "array", "items": of}


def either(*schemas: Schema) -> Schema:
    """Return the schema of a value that fits at least one of the schemas."""
    return {"anyOf": list(schemas)}


def answer(data: Schema | None = None) -> Schema:
    """Return the schema of ``success`` with such data; None: without data."""
    return fields({"success": {"type": "boolean", "const": True}, "message": TEXT, **({"data": data} if data else {})})


class ObjectTool(Tool, abstract=True):
    """A tool whose result is an object, as ``success`` makes it."""

    result_type = ResultType.OBJECT
    normalization = Normalization.JSON


def text_argument(arguments: Mapping[str, JsonValue], name: str) -> str | None:
    """Return an argument that is a text; None for any other."""
    value = arguments.get(name)
    return value if isinstance(value, str) else None


def text_of(arguments: Mapping[str, JsonValue], name: str) -> str:
    """Return an argument that is a text; an empty one for any other."""
    return text_argument(arguments, name) or ""


def success(message: str, data: JsonValue = None) -> JsonValue:
    """Return a success; ``data`` only if it has any. Failures are raised as ToolFailure instead."""
    result: dict[str, JsonValue] = {"success": True, "message": message}
    return result if data is None else {**result, "data": data}


def search_result(hits: JsonValue) -> JsonValue:
    """Return the hits of a search with their number."""
    many = hits.get("hits") if isinstance(hits, dict) else None
    count = len(many) if isinstance(many, list) else 0
    return success("nothing was found" if not count else plural(count, "hit"), hits)


def place(found: Located | Refusal) -> Located:
    """Return a found place. Raises ToolFailure, with the hint that is safe to show, for a refused one."""
    if isinstance(found, Refusal):
        raise ToolFailure(found.hint, code=found.code)
    return found


def place_of_label(context: ToolExecutionContext, label: str, source_id: str | None) -> Located:
    """Return the place of the file whose block has that label. Raises ToolFailure, also if another source has it."""
    at = place(context.require_sources().locate_label(label, allowed=context.source_ids))
    if source_id not in (None, at.source_id):
        raise ToolFailure("the label belongs to another source", code="bad-argument")
    return at


def agreement(context: ToolExecutionContext, now: Callable[[], str | None]) -> Approved:
    """Return the approval of the call; one for a change holds only for that change, which ``now`` works out again."""
    if not context.approved or context.approved_change is None:
        return context.approved
    shown = context.approved_change()
    return lambda: now() == shown
