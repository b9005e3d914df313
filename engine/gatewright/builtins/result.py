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
    """An object that has what is ``needed``, may have ``more``, and nothing else."""
    return {
        "type": "object",
        "properties": {**needed, **(more or {})},
        "required": list(needed),
        "additionalProperties": False,
    }


def rows(of: Schema) -> Schema:
    """A list of values of one schema."""
    return {"type": "array", "items": of}


def either(*schemas: Schema) -> Schema:
    """Something that fits one of the schemas at least."""
    return {"anyOf": list(schemas)}


def answer(data: Schema | None = None) -> Schema:
    """The schema of what ``done`` gives with such data; None: without."""
    return fields({"success": {"type": "boolean", "const": True}, "message": TEXT, **({"data": data} if data else {})})


class ObjectTool(Tool, abstract=True):
    """A tool whose result is an object, as ``done`` makes it."""

    result_type = ResultType.OBJECT
    normalization = Normalization.JSON


def text_argument(arguments: Mapping[str, JsonValue], name: str) -> str | None:
    """An argument that is a text; None for any other."""
    value = arguments.get(name)
    return value if isinstance(value, str) else None


def text_of(arguments: Mapping[str, JsonValue], name: str) -> str:
    """An argument that is a text; of any other kind, none."""
    return text_argument(arguments, name) or ""


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


def place_of_label(context: ToolExecutionContext, label: str, source_id: str | None) -> Located:
    """The place of the file whose block has that label. Raises ToolFailure, also where another source has it."""
    at = place(context.require_sources().locate_label(label, allowed=context.source_ids))
    if source_id not in (None, at.source_id):
        raise ToolFailure("the label belongs to another source", code="bad-argument")
    return at


def agreed(context: ToolExecutionContext, now: Callable[[], str | None]) -> Approved:
    """Whether somebody agreed to the call; where they were shown a change, to that one, which ``now`` gives again."""
    if not context.approved or context.approved_change is None:
        return context.approved
    shown = context.approved_change()
    return lambda: now() == shown
