"""What keeps a value from fitting a schema, in words that a model can act on; what was sent is never repeated."""

from __future__ import annotations

import json
import re
from typing import Any

from jsonschema_rs import ValidationErrorKind as Kind

from gatewright.base.folder import folder_of, folder_words
from gatewright.base.frozen import frozen
from gatewright.schema.tagged import Tagged
from gatewright.schema.walk import Pointer, pointer_text

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
    """One thing to mend: the RFC 6901 pointer into the arguments and what is expected there."""

    pointer: str
    message: str

    def __str__(self) -> str:
        return f"{self.pointer or '/'}: {self.message}"


def argument_error(place: Pointer, message: str) -> ArgumentError:
    """The error at ``place``; a key that is no plain word is the model's own text and becomes `*`."""
    steps = [step if isinstance(step, int) or _PLAIN_KEY.fullmatch(step) else "*" for step in place[:_MAX_PLACE]]
    steps += ["…"] if len(place) > _MAX_PLACE else []
    said = message if len(message) <= MAX_MESSAGE else message[: MAX_MESSAGE - 1] + "…"
    return ArgumentError(pointer_text(tuple(steps)), said)


def message(kind: Kind) -> str:
    """What the engine found wrong with a value itself."""
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


def alternatives(said: list[str]) -> str:
    """What each of several kinds of value must be, in one line."""
    texts = list(dict.fromkeys(said))
    prefix = "must be "
    if not texts:
        return "fits none of the alternatives that the schema gives"
    if all(text.startswith(prefix) for text in texts):
        return prefix + ", or ".join(text.removeprefix(prefix) for text in texts)
    return ", or ".join(texts)


def missing_tag(tagged: Tagged) -> str:
    """That the key is missing which tells the branches of a union apart."""
    return f"the required key `{tagged.field}` is missing; it is one of {_listed(tagged.names)}"


def unknown_tag(tagged: Tagged) -> str:
    """That the value which tells the branches of a union apart names none of them."""
    return f"must be one of {_listed(tagged.names)}"
