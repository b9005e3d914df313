"""Common parts of the built-in tools: their facts, texts and places of a call, their result (``{success, message,
data?}``), its schema.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from importlib.resources import files
from typing import Any

from gatewright.base.amount import plural
from gatewright.base.errors import ToolFailure
from gatewright.base.jsonvalue import JsonValue
from gatewright.base.late import once
from gatewright.policy.capability import CapabilityKind
from gatewright.policy.right import OperationFacts, PathArgument, ToolFacts
from gatewright.policy.target import Approved, Located, Refusal
from gatewright.policy.verdict import Action, PathUse, SafetyTier, Verdict
from gatewright.schema.selector import Selector
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


class ObjectTool(Tool, abstract=True, late=True):
    """A tool whose result is an object, as ``success`` makes it."""

    result_type = ResultType.OBJECT
    normalization = Normalization.JSON

    @property
    def schema_may_fail(self) -> bool:
        """False for a tool as shipped: the program's tests compile its schema for every choice of operations."""
        return not self._is_as_shipped and super().schema_may_fail

    @once
    def _policy_facts(self) -> ToolFacts:
        """The facts, read from the resources for a tool as shipped: every start needs those of all tools."""
        shipped = _shipped_facts().get(f"{self.name}@{self.major}") if self._is_as_shipped else None
        return super()._policy_facts if shipped is None else replace(shipped, tool_rules=self.tool_rules)


@cache
def _shipped_facts() -> Mapping[str, ToolFacts]:
    """Read the facts of the built-in tools, without their rules; ``python -m tests.facts`` derives and writes them."""
    rows = json.loads((files("gatewright_resources") / "tools.json").read_bytes())
    return {f"{row['name']}@{row['major']}": ToolFacts(**_read(row)) for row in rows}


def _read(row: Mapping[str, Any]) -> dict[str, Any]:
    """Read the fields of shipped facts; those left out have their defaults."""
    return {name: _FIELDS[name](value) if name in _FIELDS else value for name, value in row.items()}


def _selector(names: list[str], places: list[list[str]], schema: Schema, *, repeats: bool = False) -> Selector:
    return Selector(tuple(names), tuple(map(tuple, places)), repeats, schema)


def _each(kind: Callable[[Any], object], into: Callable[[Any], object] = tuple) -> Callable[[Any], object]:
    return lambda values: into(map(kind, values))


_FIELDS: Mapping[str, Callable[[Any], object]] = {
    "tier": SafetyTier,
    "operations": _each(lambda row: OperationFacts(**_read(row))),
    "selection": lambda row: _selector(**row),
    "extra_arguments": Verdict,
    "actions": _each(Action),
    "capabilities": _each(CapabilityKind, frozenset),
    "judged": _each(CapabilityKind, frozenset),
    "disk_actions": _each(Action, frozenset),
    "paths": _each(lambda row: PathArgument(**_read(row))),
    "use": lambda use: None if use is None else PathUse(use),
    **dict.fromkeys(("parameters", "required", "texts"), tuple),
    **dict.fromkeys(("defaulted", "places", "labels", "roots"), frozenset),
}


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
