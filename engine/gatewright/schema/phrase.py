"""Tests a value against one schema's own demands, and words each fault so that a model can act on it.

The words never repeat the input.
"""

from __future__ import annotations

import json
import re
from itertools import islice
from typing import Any, cast

import jsonschema_rs
from jsonschema_rs import ValidationErrorKind as Kind

from gatewright.base.frozen import frozen
from gatewright.base.late import once
from gatewright.base.pattern import folder_of, folder_words
from gatewright.schema.operation import choice_of
from gatewright.schema.walk import Pointer, Schema, as_list, as_object, compile_schema, pointer_text, properties_of


@frozen
class Tagged:
    """A union: the property that separates its branches, and the values of each branch."""

    field: str
    values: tuple[tuple[str, ...], ...]

    @property
    def names(self) -> list[str]:
        """Return every value in order."""
        return [name for names in self.values for name in names]

    def index_of(self, given: object) -> int | None:
        """Return the index of the branch that ``given`` selects."""
        return next((index for index, names in enumerate(self.values) if given in names), None)


def find_tag(branches: list[Schema]) -> Tagged | None:
    """Find a property whose value every branch for an object fixes; a branch without it is never the intended one."""
    objects = [branch for branch in branches if _takes_objects(branch)]
    for field in properties_of(objects[0]) if objects else ():
        choices = [choice_of(properties_of(branch).get(field)) for branch in objects]
        values = [choice.names if choice and not choice.others else () for choice in choices]
        names = [name for part in values for name in part]
        if all(values) and len(set(names)) == len(names):
            rest = iter(values)
            return Tagged(field, tuple(next(rest) if _takes_objects(branch) else () for branch in branches))
    return None


def _takes_objects(branch: Schema) -> bool:
    kind = branch.get("type", "object")
    return kind == "object" or "object" in (as_list(kind) or ())


MAX_MESSAGE = 400
MAX_NAMED = 30
_MAX_PLACE = 32
_FORMATS = {
    "date-time": "a date and time with its zone, such as `2026-05-01T12:00:00Z`",
    "date": "a date such as `2026-05-01`",
    "email": "an e-mail address",
    "uri": "a whole URI, such as `https://example.org/a`",
    "uuid": "a UUID",
    "ipv4": "an IPv4 address",
    "ipv6": "an IPv6 address",
}
_PLAIN_KEY = re.compile(r"[A-Za-z_$@][\w.$@-]{0,63}")


@frozen
class ArgumentError:
    """One argument to correct: the RFC 6901 pointer into the arguments, and the expected value."""

    pointer: str
    message: str

    def __str__(self) -> str:
        return f"{self.pointer or '/'}: {self.message}"


def argument_error(place: Pointer, message: str) -> ArgumentError:
    """Return the error at ``place``; a key that is not a plain word comes from the model and becomes `*`."""
    steps = [step if isinstance(step, int) or _PLAIN_KEY.fullmatch(step) else "*" for step in place[:_MAX_PLACE]]
    steps += ["…"] if len(place) > _MAX_PLACE else []
    said = message if len(message) <= MAX_MESSAGE else message[: MAX_MESSAGE - 1] + "…"
    return ArgumentError(pointer_text(tuple(steps)), said)


def message(kind: Kind) -> str:
    """Word the fault that the validator found in a value itself."""
    match kind:
        case Kind.Required(property=name):
            return f"the required key `{name}` is missing"
        case Kind.Enum(options=options):
            return f"must be one of {_list_words(options)}"
        case Kind.Constant(expected_value=expected):
            return f"must be {_quote(expected)}"
        case Kind.Type(types=types):
            return f"must be {_article(list(types))}"
        case Kind.OneOfMultipleValid():
            return "fits more than one of the alternatives; leave out what belongs to the other"
        case Kind.Pattern(pattern=pattern):
            folder = folder_of(pattern)
            return f"must match the pattern `{pattern[:200]}`" if folder is None else folder_words(folder)
        case Kind.UniqueItems():
            return "must not hold the same item twice"
        case Kind.Not():
            return "is excluded by the schema"
        case Kind.FalseSchema():
            return "must not be given"
        case Kind.Format(format=name):
            return f"must be {_FORMATS.get(name, f'a text of the format `{name}`')}"
        case Kind.Contains():
            return "holds too few or too many of the items asked for"
        case _:
            return _bound(kind)


def _bound(kind: Kind) -> str:
    details = kind.as_dict()
    limit = details.get("limit", details.get("multiple_of"))
    texts = {
        "minimum": "must be at least {}",
        "maximum": "must be at most {}",
        "exclusiveMinimum": "must be more than {}",
        "exclusiveMaximum": "must be less than {}",
        "minLength": "must have at least {} characters",
        "maxLength": "must have at most {} characters",
        "minItems": "must have at least {} items",
        "maxItems": "must have at most {} items",
        "additionalItems": "must have at most {} items",
        "minProperties": "must have at least {} keys",
        "maxProperties": "must have at most {} keys",
        "multipleOf": "must be a multiple of {}",
    }
    text = texts.get(kind.name)
    return text.format(limit) if text else f"does not fit `{kind.name}` of the schema"


def unknown_keys(count: int, accepted: list[str]) -> str:
    """Count the unknown keys, and name the known ones, without repeating the input."""
    said = "a key that was sent does not exist here" if count == 1 else f"{count} keys that were sent do not exist here"
    if not accepted:
        return said
    named = ", ".join(f"`{name}`" for name in accepted[:MAX_NAMED])
    more = f" and {len(accepted) - MAX_NAMED} more" if len(accepted) > MAX_NAMED else ""
    return f"{said}; the keys are {named}{more}"


def _list_words(options: list[Any]) -> str:
    shown = ", ".join(_quote(option) for option in options[:MAX_NAMED])
    return shown if len(options) <= MAX_NAMED else f"{shown} and {len(options) - MAX_NAMED} more"


def _quote(value: Any) -> str:
    return f"`{json.dumps(value, ensure_ascii=False, default=str)[:80]}`"


def _article(types: list[str]) -> str:
    words = {
        "null": "null",
        "integer": "an integer",
        "object": "an object",
        "array": "an array",
        "boolean": "true or false",
    }
    return " or ".join(words.get(name, f"a {name}") for name in types)


def alternatives(said: list[str]) -> str:
    """Word the demands of several branches in one line."""
    texts = list(dict.fromkeys(said))
    prefix = "must be "
    if not texts:
        return "fits none of the alternatives that the schema gives"
    if all(text.startswith(prefix) for text in texts):
        return prefix + ", or ".join(text.removeprefix(prefix) for text in texts)
    return ", or ".join(texts)


def missing_tag(tagged: Tagged) -> str:
    """Say that the key which separates the branches of a union is missing."""
    return f"the required key `{tagged.field}` is missing; it is one of {_list_words(tagged.names)}"


def unknown_tag(tagged: Tagged) -> str:
    """Say that the value which separates the branches of a union is unknown."""
    return f"must be one of {_list_words(tagged.names)}"


MAX_HELD = 500
"""The most items of a list, or keys of an object, to look at."""

_OWN = (
    *("type", "enum", "const", "multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
    *("minLength", "maxLength", "pattern", "minItems", "maxItems", "uniqueItems"),
    *("minProperties", "maxProperties", "required", "dependentRequired"),
)
_DEEP = ("enum", "const", "uniqueItems")
_TOO_FEW = ("minItems", "minProperties", "required", "dependentRequired", "dependencies")


@frozen
class Fault:
    """A fault at a place; ``is_kind``: the value has the wrong type."""

    at: Pointer
    message: str
    is_kind: bool = False
    is_missing: bool = False
    is_union: bool = False


class Assertion:
    """The keywords of one schema that test the value alone, compiled once; any thread may use it."""

    def __init__(self, schema: Schema, dialect: Schema, *, check_formats: bool = False) -> None:
        """``dialect``: the keywords that name the draft. ``check_formats``: test `format` too. Raises ValueError."""
        own = {key: schema[key] for key in (*_OWN, *(("format",) if check_formats else ())) if key in schema}
        lists = {key: value for key, value in (as_object(schema.get("dependencies")) or {}).items() if as_list(value)}
        own |= ({"dependencies": lists} if lists else {}) | _closing_words(schema)
        self._schema = schema
        self._validator = compile_schema({**dialect, **own}, check_formats=check_formats) if own else None
        self._is_deep = any(key in own for key in _DEEP)
        self._is_closed = schema.get("additionalProperties") is False

    @once
    def patterns(self) -> list[tuple[jsonschema_rs.Validator, object]]:
        """Return the schemas of members by the pattern of their keys."""
        patterns = as_object(self._schema.get("patternProperties")) or {}
        return [(compile_schema({"pattern": pattern}), held) for pattern, held in patterns.items()]

    def faults(self, value: object, at: Pointer) -> tuple[list[Fault], bool]:
        """Return the faults of ``value`` itself, and True if it may have more."""
        found: list[Fault] = []
        is_unknown = False
        seen = value if self._is_deep else _hollow(value)
        if self._validator is not None and not self._validator.is_valid(seen):
            found = self._errors_of(self._validator, seen, at)
            is_unknown = not found
        if self._is_closed and isinstance(value, dict):
            keys = properties_of(self._schema)
            table = cast("Schema", value)
            count = sum(key not in keys and not any(one.is_valid(key) for one, _ in self.patterns) for key in table)
            found += [Fault(at, unknown_keys(count, list(keys)))] if count else []
        return found, is_unknown

    @staticmethod
    def _errors_of(validator: jsonschema_rs.Validator, value: object, at: Pointer) -> list[Fault]:
        """Return the validator's errors for the first part of a long value, without errors that only the cut causes."""
        part = _part(value)
        kinds = [error.kind for error in validator.iter_errors(part)]
        if part is not value:
            held = cast("Schema", value)  # of an object, where the missing key may come later
            kinds = [
                kind
                for kind in kinds
                if kind.name not in _TOO_FEW or (isinstance(kind, Kind.Required) and kind.property not in held)
            ]
        return [
            Fault(at, message(kind), isinstance(kind, Kind.Type), isinstance(kind, Kind.Required)) for kind in kinds
        ]


def _closing_words(schema: Schema) -> Schema:
    """Return the keyword that forbids further items, with the keywords that it depends on."""
    result: Schema = {}
    for keyword, rest in (("prefixItems", "items"), ("items", "additionalItems")):
        array = as_list(schema.get(keyword))
        if array is not None and schema.get(rest) is False:
            result |= {keyword: [True] * len(array), rest: False}
    if schema.get("items") is False and "prefixItems" not in schema:
        result["items"] = False
    return result


def _hollow(value: object) -> object:
    if isinstance(value, dict):
        return dict.fromkeys(cast("Schema", value))
    return [None] * len(cast("list[object]", value)) if isinstance(value, list) else value


def _part(value: object) -> object:
    table, array = as_object(value), as_list(value)
    if table is not None and len(table) > MAX_HELD:
        return dict(islice(table.items(), MAX_HELD))
    return array[:MAX_HELD] if array is not None and len(array) > MAX_HELD else value
