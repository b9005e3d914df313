"""The text of one field and the JSON value that it sends, both ways. It knows no widgets and no other fields.

What is filled in is sent, fitting or not: a number field that holds words sends them as a text.
"""

import json
import math
import re
from collections.abc import Mapping
from typing import Any, cast

from gatewright.base.jsonvalue import JsonValue
from gatewright_gui.models.formshape import Shape
from gatewright_gui.models.jsonpath import NOTHING

_NUMBER = re.compile(r"-?(?:0|[1-9]\d{0,4000})(?:\.\d+)?(?:[eE][-+]?\d{1,4})?")
_UNHELD = re.compile("[\x00-\x08\x0b-\x1f\x7f\x85\xa0\u2028\u2029\ufdd0\ufdd1\ud800-\udfff]")
"""Characters that a text field would change or not show."""
_FORMATS: Mapping[str, str] = {
    "date": "date, such as 2026-07-15",
    "date-time": "time, such as 2026-07-15T09:30:00Z",
    "time": "time of day, such as 09:30:00Z",
    "duration": "duration, such as PT1H30M",
    "email": "address, such as name@example.org",
    "uri": "URL, such as https://example.org/page",
    "url": "URL, such as https://example.org/page",
    "uri-reference": "URL or a part of one",
    "hostname": "host name, such as example.org",
    "ipv4": "address, such as 192.0.2.1",
    "ipv6": "address, such as 2001:db8::1",
    "uuid": "UUID, such as 123e4567-e89b-42d3-a456-426614174000",
    "regex": "regular expression",
    "json-pointer": "JSON pointer, such as /a/0",
    "byte": "base64",
    "binary": "base64",
}


def same(one: object, other: object) -> bool:
    """Whether two values are the same JSON: `1`, `1.0` and `true` are not."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def number_of(text: str) -> JsonValue:
    """The number that a text is; the text itself where it is none."""
    found = text.strip()
    if not _NUMBER.fullmatch(found):
        return text
    value = json.loads(found)
    return text if isinstance(value, float) and not math.isfinite(value) else value


def value_of(shape: Shape, text: str) -> JsonValue:
    """What a text field of this shape sends."""
    return number_of(text) if shape.kind in {"integer", "number"} else text


def text_of(shape: Shape, value: JsonValue) -> str | None:
    """The text that stands for a value in a field of this shape; None where the field cannot hold it."""
    if shape.kind in {"integer", "number"}:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        text = json.dumps(value) if is_number else value if isinstance(value, str) and value else None
        held = text is not None and "\n" not in text and not _UNHELD.search(text)
        return text if text is not None and held and same(number_of(text), value) else None
    return value if isinstance(value, str) and not _UNHELD.search(value) else None


def shown_value(value: object, limit: int = 60) -> str:
    """A value to read on one line: a text as it is, anything else as JSON."""
    text = value if isinstance(value, str) and value else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= limit else f"{text[:limit]}..."


def placeholder(shape: Shape) -> str:
    """What stands in a blank field: the default, an example, or what is wanted."""
    if shape.default is not NOTHING:
        return f"default: {shown_value(shape.default)}"
    examples = shape.schema.get("examples")
    wanted = hint(shape.schema, shape.kind)
    if isinstance(examples, list) and examples and not wanted:
        first = cast("list[JsonValue]", examples)[0]
        return f"such as {shown_value(first)}"
    return wanted


def hint(schema: Mapping[str, Any], kind: str) -> str:
    """What a field wants, in few words; empty for a plain text."""
    if kind in {"integer", "number"}:
        word = "whole number" if kind == "integer" else "number"
        return f"{word}{_bounds(schema)}"
    named = _FORMATS.get(str(schema.get("format") or ""))
    if named:
        return named
    low, high = schema.get("minLength"), schema.get("maxLength")
    if isinstance(high, int) and high <= 200:
        return (
            f"text, {low} to {high} characters" if isinstance(low, int) and low else f"text, at most {high} characters"
        )
    pattern = schema.get("pattern")
    return f"text like {pattern}" if isinstance(pattern, str) and len(pattern) <= 60 else ""


def _bounds(schema: Mapping[str, Any]) -> str:
    low, high = schema.get("minimum"), schema.get("maximum")
    above, below = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    if low is not None and high is not None:
        return f", {low:,} to {high:,}"
    said = [
        f"{word} {bound:,}"
        for word, bound in (("at least", low), ("at most", high), ("more than", above), ("less than", below))
        if isinstance(bound, int | float) and not isinstance(bound, bool)
    ]
    step = schema.get("multipleOf")
    said += [f"a multiple of {step}"] if step not in (None, 1) else []
    return f", {', '.join(said)}" if said else ""
