"""Validation errors in words that a model can act on. It finds no errors itself and never repeats what was sent."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from jsonschema_rs import ValidationError as Error
from jsonschema_rs import ValidationErrorKind as Kind

from gatewright.schema.tagged import Tagged, Unions, value_at
from gatewright.schema.walk import as_object, pointer_text

MAX_MESSAGE = 400
MAX_NAMED = 30
MAX_INNER = 20
_MAX_DEPTH = 4
_PLAIN_KEY = re.compile(r"[A-Za-z_$@][\w.$@-]{0,63}")


@dataclass(frozen=True, slots=True)
class ArgumentError:
    """One thing to mend: the RFC 6901 pointer into the arguments and what is expected there."""

    pointer: str
    message: str

    def __str__(self) -> str:
        return f"{self.pointer or '/'}: {self.message}"


def phrase_errors(errors: Iterable[Error], unions: Unions, value: object) -> tuple[ArgumentError, ...]:
    """The errors in words, without repetitions, shallow ones first."""
    found = [phrased for error in errors for phrased in _phrased(error, unions, value, 0)]
    return tuple(dict.fromkeys(sorted(found, key=lambda error: error.pointer.count("/"))))


def _phrased(error: Error, unions: Unions, value: object, depth: int) -> list[ArgumentError]:
    kind = error.kind
    if isinstance(kind, (Kind.AnyOf, Kind.OneOfNotValid)):
        return _union(kind.context, error, unions, value, depth)
    if isinstance(kind, Kind.PropertyNames):
        return [ArgumentError(_place(error), "a key of this object is not allowed")]
    if isinstance(kind, (Kind.AdditionalProperties, Kind.UnevaluatedProperties)):
        return [
            ArgumentError(_place(error), _clipped(_unexpected(len(kind.unexpected), unions.keys_at(error.schema_path))))
        ]
    return [ArgumentError(_place(error), _clipped(_message(kind)))]


def _place(error: Error) -> str:
    """The pointer; a key that is no plain word is the model's own text and becomes `*`."""
    steps = [step if isinstance(step, int) or _PLAIN_KEY.fullmatch(step) else "*" for step in error.instance_path[:32]]
    return pointer_text(tuple(steps))


def _message(kind: Kind) -> str:
    match kind:
        case Kind.Required(property=name):
            return f"the required key `{name}` is missing"
        case Kind.Enum(options=options):
            return f"must be one of {_listed(options)}"
        case Kind.Constant(expected_value=expected):
            return f"must be {_shown(expected)}"
        case Kind.Type(types=types):
            return f"must be {_article(list(types))}"
        case Kind.OneOfMultipleValid():
            return "fits more than one of the alternatives; leave out what belongs to the other"
        case Kind.Pattern(pattern=pattern):
            return f"must match the pattern `{pattern[:200]}`"
        case Kind.UniqueItems():
            return "must not hold the same item twice"
        case Kind.Not():
            return "is excluded by the schema"
        case Kind.FalseSchema():
            return "must not be given"
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


def _unexpected(count: int, accepted: list[str]) -> str:
    """How many keys do not exist here, and which do; the keys that were sent are not repeated."""
    said = "a key that was sent does not exist here" if count == 1 else f"{count} keys that were sent do not exist here"
    if not accepted:
        return said
    named = ", ".join(f"`{name}`" for name in accepted[:MAX_NAMED])
    more = f" and {len(accepted) - MAX_NAMED} more" if len(accepted) > MAX_NAMED else ""
    return f"{said}; the keys are {named}{more}"


def _listed(options: list[Any]) -> str:
    shown = ", ".join(_shown(option) for option in options[:MAX_NAMED])
    return shown if len(options) <= MAX_NAMED else f"{shown} and {len(options) - MAX_NAMED} more"


def _shown(value: Any) -> str:
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


def _clipped(text: str) -> str:
    return text if len(text) <= MAX_MESSAGE else text[: MAX_MESSAGE - 1] + "…"


def _union(context: list[list[Error]], error: Error, unions: Unions, value: object, depth: int) -> list[ArgumentError]:
    """The errors of the branch that was meant: by its tag, else by the kind of value sent, else all in one line."""
    path = error.instance_path
    tagged, table = unions.at(error.schema_path), as_object(value_at(value, path))
    if tagged is not None and table is not None:
        chosen = tagged.chosen(table.get(tagged.field))
        if chosen is None or chosen >= len(context):
            return [_untold(tagged, _place(error), is_missing=tagged.field not in table)]
        return _inner(context[chosen], unions, value, depth)
    fitting = [errors for errors in context if not _is_other_type(errors, path)]
    if len(fitting) == 1:
        return _inner(fitting[0], unions, value, depth)
    if not fitting or all(_is_plain(errors, path) for errors in context):
        said = [_message(inner.kind) for errors in context for inner in errors if _names_something(inner)]
        return [ArgumentError(_place(error), _clipped(_alternatives(said)))] if said else [_vague(_place(error))]
    deepest = {id(errors): max((len(inner.instance_path) for inner in errors), default=0) for errors in fitting}
    return _inner(min(fitting, key=lambda errors: (len(errors), -deepest[id(errors)])), unions, value, depth)


def _untold(tagged: Tagged, place: str, *, is_missing: bool) -> ArgumentError:
    names = _listed(tagged.names)
    if is_missing:
        return ArgumentError(place, _clipped(f"the required key `{tagged.field}` is missing; it is one of {names}"))
    return ArgumentError(place + pointer_text((tagged.field,)), _clipped(f"must be one of {names}"))


def _inner(errors: list[Error], unions: Unions, value: object, depth: int) -> list[ArgumentError]:
    if depth >= _MAX_DEPTH:
        return [_vague(_place(errors[0]))] if errors else []
    return [phrased for inner in errors[:MAX_INNER] for phrased in _phrased(inner, unions, value, depth + 1)]


def _vague(place: str) -> ArgumentError:
    return ArgumentError(place, "fits none of the alternatives that the schema gives")


def _alternatives(said: list[str]) -> str:
    texts = list(dict.fromkeys(said))
    prefix = "must be "
    if all(text.startswith(prefix) for text in texts):
        return prefix + ", or ".join(text.removeprefix(prefix) for text in texts)
    return ", or ".join(texts)


def _names_something(error: Error) -> bool:
    return not isinstance(error.kind, (Kind.AnyOf, Kind.OneOfNotValid, Kind.OneOfMultipleValid))


def _is_other_type(errors: list[Error], path: list[str | int]) -> bool:
    return any(isinstance(error.kind, Kind.Type) and error.instance_path == path for error in errors)


def _is_plain(errors: list[Error], path: list[str | int]) -> bool:
    return all(error.instance_path == path and not isinstance(error.kind, Kind.Required) for error in errors)
