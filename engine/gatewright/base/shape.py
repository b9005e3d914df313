"""Shapes of values in the policy file, as pieces of its JSON Schema (draft 7, which TOML editors read).

The tables of `policyfile/table.py` and the kinds of rules and capabilities make their schemas of them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TypeAlias

from gatewright.base.amount import MAX_BYTES
from gatewright.base.jsonvalue import JsonValue

Shape: TypeAlias = "dict[str, JsonValue]"

TEXT: Shape = {"type": "string"}
NAME: Shape = {"type": "string", "pattern": r"\S"}
FLAG: Shape = {"type": "boolean"}
JSON_TABLE: Shape = {"type": "object"}
JSON_SCHEMA: Shape = {"type": ["object", "boolean"]}
DURATION: Shape = {
    "anyOf": [
        {"type": "number", "minimum": 0},
        {"type": "string", "pattern": r"^\d{1,12}(\.\d{1,9})?\s?(ms|s|m|h|d)$"},
        {
            "type": "object",
            "properties": {
                "secs": {"type": "integer", "minimum": 0},
                "nanos": {"type": "integer", "minimum": 0, "maximum": 999_999_999},
            },
            "additionalProperties": False,
            "minProperties": 1,
        },
    ]
}
SIZE: Shape = {
    "anyOf": [
        {"type": "integer", "minimum": 1, "maximum": MAX_BYTES},
        {"type": "string", "pattern": r"^\d{1,12}(\.\d{1,6})? ?([Bb]|[KMGkmg][Ii]?[Bb])$"},
    ]
}


def whole(least: int | None = None, most: int | None = None) -> Shape:
    """Return the shape of a whole number within the limits."""
    limits = {"minimum": least, "maximum": most}
    return {"type": "integer", **{key: limit for key, limit in limits.items() if limit is not None}}


def one_of(options: Collection[str]) -> Shape:
    """Return the shape of a choice among texts."""
    return {"enum": [*options]}


def several(entry: Shape, least: int = 0, most: int | None = None) -> Shape:
    """Return the shape of a list of such entries."""
    shape: Shape = {"type": "array", "items": entry}
    if least:
        shape["minItems"] = least
    return shape if most is None else {**shape, "maxItems": most}


def table(keys: Mapping[str, Shape], *required: str) -> Shape:
    """Return the shape of a table with exactly these keys."""
    return {
        "type": "object",
        "properties": {**keys},
        "additionalProperties": False,
        **({"required": [*required]} if required else {}),
    }


def by_name(entry: Shape) -> Shape:
    """Return the shape of a table of such entries under names that the author chooses."""
    return {"type": "object", "additionalProperties": entry}


def told(shape: Shape, description: str, default: JsonValue = None) -> Shape:
    """Add the description that an editor shows, and the value that holds if the key is absent."""
    return {**shape, "description": description, **({} if default is None else {"default": default})}
