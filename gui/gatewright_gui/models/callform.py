"""The fields of a form for a tool's arguments, made from its schema; texts to JSON values and back.

It does not know widgets, nor whether a call is allowed.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from gatewright.base.errors import JsonRefused
from gatewright.base.jsonvalue import JsonValue, parse_object
from gatewright_gui.models.callexample import example_of
from gatewright_gui.session.calls import OperationShape, ShownTool

FieldKind = Literal["text", "lines", "choice", "boolean", "integer", "number", "json"]
MAX_FIELDS = 60
"""Larger schemas are filled in as JSON: nobody finds their way in a longer form."""
_LONG_WORDS = ("content", "text", "body", "old", "new", "code", "query", "message", "description", "diff", "patch")


@dataclass(frozen=True, slots=True)
class FormField:
    """One argument. `choices` are JSON values as text: what a choice sends is read back from it."""

    name: str
    kind: FieldKind
    required: bool
    description: str = ""
    choices: tuple[JsonValue, ...] = field(default=(), hash=False)
    example: str = ""

    @property
    def is_empty_kind(self) -> bool:
        """Whether a blank field means that the argument is not given."""
        return self.kind not in {"choice", "boolean"}


class FieldFault(ValueError):
    """A field's text that is no value of its kind; the message names the field."""


def form_fields(schema: Mapping[str, Any]) -> tuple[FormField, ...]:
    """The fields of an object schema, required ones as the schema says; empty when it has no plain properties."""
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        return ()
    listed = cast("Mapping[str, Any]", properties)
    required = set(cast("Sequence[str]", schema.get("required") or ()))
    return tuple(_field(name, part, name in required) for name, part in listed.items())


def _field(name: str, part: object, required: bool) -> FormField:
    shape: Mapping[str, Any] = {}
    if isinstance(part, Mapping):
        shape = _without_null(cast("Mapping[str, Any]", part))
    described = str(shape.get("description") or "")
    choices = shape.get("enum")
    if isinstance(choices, list) and choices:
        return FormField(name, "choice", required, described, tuple(cast("list[JsonValue]", choices)))
    kind = _kind(name, shape)
    return FormField(name, kind, required, described, example=example_of(shape) if kind == "json" else "")


def _without_null(part: Mapping[str, Any]) -> Mapping[str, Any]:
    """The shape beside null, where a property is one shape or null."""
    for key in ("anyOf", "oneOf"):
        options = part.get(key)
        if isinstance(options, list):
            shapes = [cast("Mapping[str, Any]", o) for o in cast("list[object]", options) if isinstance(o, Mapping)]
            real = [shape for shape in shapes if shape.get("type") != "null"]
            if len(real) == 1:
                return {**{k: v for k, v in part.items() if k != key}, **real[0]}
    return part


def _kind(name: str, shape: Mapping[str, Any]) -> FieldKind:
    kinds: Any = shape.get("type")
    kind: Any = kinds
    if isinstance(kinds, list):
        real = [one for one in cast("list[object]", kinds) if one != "null"]
        kind = real[0] if len(real) == 1 else None
    match kind:
        case "string":
            return "lines" if name.casefold() in _LONG_WORDS or shape.get("maxLength", 0) > 400 else "text"
        case "boolean" | "integer" | "number":
            return cast("FieldKind", kind)
        case _:
            return "json"


def operation_of(tool: ShownTool, name: str | None) -> OperationShape | None:
    """The operation of that name, if the agent sees it."""
    return next((shape for shape in tool.operations if shape.name == name), None)


def value_of(field: FormField, text: str) -> JsonValue:
    """What a field's text sends. Raises FieldFault."""
    try:
        return _read(field, text)
    except JsonRefused as error:
        raise FieldFault(f"`{field.name}`: {error}") from None
    except ValueError:
        raise FieldFault(f"`{field.name}` is no {_WORDS.get(field.kind, field.kind)}") from None


_WORDS: Mapping[FieldKind, str] = {"integer": "whole number", "number": "number", "json": "JSON"}


def _read(field: FormField, text: str) -> JsonValue:
    match field.kind:
        case "text" | "lines":
            return text
        case "integer":
            return int(text.strip())
        case "number":
            return parse_object(f'{{"v": {text.strip()}}}')["v"]
        case "boolean" | "choice" | "json":
            return parse_object(f'{{"v": {text}}}')["v"]


def text_of(field: FormField, value: JsonValue) -> str | None:
    """The text that stands for a value in a field; None when the field cannot hold it."""
    match field.kind:
        case "text" | "lines":
            return value if isinstance(value, str) and (field.kind == "lines" or "\n" not in value) else None
        case "integer":
            return str(value) if isinstance(value, int) and not isinstance(value, bool) else None
        case "number":
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            return json.dumps(value) if is_number else None
        case "boolean":
            return json.dumps(value) if isinstance(value, bool) else None
        case "choice":
            return choice_text(value) if value in field.choices else None
        case "json":
            return json.dumps(value, ensure_ascii=False)


def choice_text(value: JsonValue) -> str:
    """A choice as JSON text."""
    return json.dumps(value, ensure_ascii=False)


def json_fault(text: str) -> str | None:
    """Why a text is no arguments of a call, with line and column where they are known; None when it is."""
    try:
        parse_object(text)
    except JsonRefused as error:
        return str(error)
    return None


def parsed(text: str) -> dict[str, JsonValue]:
    """The arguments that a text holds. Raises JsonRefused."""
    return parse_object(text)


def to_text(values: Mapping[str, JsonValue]) -> str:
    """Arguments as JSON to read and edit."""
    return json.dumps(dict(values), ensure_ascii=False, indent=2)
