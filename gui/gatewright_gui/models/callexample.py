"""A small value that fits a schema, as JSON text, for what a form has no field of its own. It checks nothing."""

import json
from collections.abc import Mapping
from typing import Any, cast

from gatewright.base.jsonvalue import JsonValue

MAX_DEPTH = 4
MAX_CHARS = 160
_PLAIN: Mapping[str, JsonValue] = {"string": "...", "integer": 1, "number": 1, "boolean": False}


def example_of(shape: Mapping[str, Any]) -> str:
    """`such as [...]`; empty where the schema says too little, or the example would be long."""
    value = _value(shape, MAX_DEPTH)
    if value in (None, {}, []):
        return ""
    text = f"JSON, such as {json.dumps(value, ensure_ascii=False)}"
    return text if len(text) <= MAX_CHARS else ""


def _value(shape: Mapping[str, Any], depth: int) -> JsonValue:
    if "const" in shape:
        return cast("JsonValue", shape["const"])
    if isinstance(choices := shape.get("enum"), list) and choices:
        return cast("list[JsonValue]", choices)[0]
    for key in ("oneOf", "anyOf", "allOf"):
        first = _first(shape.get(key))
        if first is not None:
            return _value(first, depth)
    return _by_type(shape, depth) if depth else None


def _by_type(shape: Mapping[str, Any], depth: int) -> JsonValue:
    kind = shape.get("type")
    if kind == "array" or "items" in shape:
        inner = _value(_object(shape.get("items")), depth - 1)
        return [] if inner is None else [inner]
    if kind == "object" or "properties" in shape:
        required: object = shape.get("required")
        names = [str(name) for name in cast("list[object]", required)] if isinstance(required, list) else []
        properties = _object(shape.get("properties"))
        return {name: _value(_object(properties.get(name)), depth - 1) for name in names}
    return _PLAIN.get(str(kind))


def _first(options: object) -> Mapping[str, Any] | None:
    found = cast("list[object]", options) if isinstance(options, list) else []
    return next((cast("Mapping[str, Any]", one) for one in found if isinstance(one, dict)), None)


def _object(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}
