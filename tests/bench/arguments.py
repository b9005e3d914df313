"""Row "argument check": arguments against a schema of eight properties with a choice of three branches."""

from __future__ import annotations

from collections.abc import Callable

import jsonschema_rs

from gatewright.schema.check import SchemaChecker
from gatewright.schema.walk import Schema
from tests.bench.measure import Effort, race_calls
from tests.bench.row import Bar, Measured, Met, Row, at_most, times_at_most

_SHARED: Schema = {
    "path": {"type": "string", "minLength": 1, "maxLength": 200},
    "source": {"type": "string"},
    "limit": {"type": "integer", "minimum": 1, "maximum": 500},
    "recursive": {"type": "boolean"},
    "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 10},
}
SCHEMA: Schema = {
    "type": "object",
    "properties": {
        **_SHARED,
        "op": {"type": "string", "enum": ["read", "write", "move"]},
        "content": {"type": "string"},
        "to": {"type": "string"},
    },
    "required": ["op", "path"],
    "additionalProperties": False,
    "oneOf": [
        {"properties": {"op": {"const": "read"}, "content": False, "to": False}},
        {"properties": {"op": {"const": "write"}, "to": False}, "required": ["content"]},
        {"properties": {"op": {"const": "move"}, "content": False}, "required": ["to"]},
    ],
}
_VALID = {"op": "write", "path": "notes/a.md", "content": "some text", "limit": 3, "tags": ["a", "b"]}
_INVALID = {"op": "move", "path": "notes/a.md", "limit": 3, "tags": ["a", "b"]}
_OURS_VALID, _OURS_INVALID = "valid", "invalid, with words for it"
_THEIRS_VALID, _THEIRS_INVALID = "jsonschema-rs: valid", "jsonschema-rs: invalid, its errors"


def argument_check(effort: Effort) -> Row:
    """Valid ones as fast as the engine below, invalid ones with words that a model can act on."""
    ours, theirs = SchemaChecker(SCHEMA), jsonschema_rs.validator_for(SCHEMA)
    valid: dict[str, Callable[[object], object]] = {_OURS_VALID: ours.errors, _THEIRS_VALID: theirs.is_valid}
    figures: dict[str, Measured] = dict(race_calls(valid, [_VALID], effort))
    invalid: dict[str, Callable[[object], object]] = {
        _OURS_INVALID: ours.errors,
        _THEIRS_INVALID: lambda value: list(theirs.iter_errors(value)),
    }
    figures |= race_calls(invalid, [_INVALID], effort.scaled(0.25))
    found = ours.errors(_INVALID)
    named = not ours.errors(_VALID) and any("`to`" in error.message for error in found)
    return Row(
        "argument check",
        "8 properties, a oneOf of 3 branches told apart by `op`",
        (_OURS_VALID, _OURS_INVALID),
        figures,
        (
            times_at_most("valid, of jsonschema-rs", figures[_OURS_VALID], figures[_THEIRS_VALID], 2),
            at_most("invalid", figures[_OURS_INVALID], 30),
            Bar("the missing field of the right branch is named", found[0].message, Met.YES if named else Met.NO),
        ),
        _THEIRS_VALID,
    )
