"""What a field shows of a JSON value, and the value that its text sends.

A field is taken only where it holds the value; any value can be edited as JSON. What is filled in is sent, fitting or
not: a number field that holds words sends them as a text.
"""

import json
import math
import re
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Final, Literal, cast

from gatewright.workspace.api import JsonValue
from gatewright_gui.pages.trial.json_value import NOTHING, Path, Value, json_text
from gatewright_gui.pages.trial.schema_shape import Shape, Shapes, Union
from gatewright_gui.qt.language import mark, tr

_NUMBER = re.compile(r"-?(?:0|[1-9]\d{0,4000})(?:\.\d+)?(?:[eE][-+]?\d{1,4})?")
_UNHELD = re.compile("[\x00-\x08\x0b-\x1f\x7f\x85\xa0\u2028\u2029\ufdd0\ufdd1\ud800-\udfff]")
"""Characters that a text field would change or not show."""
_FORMATS: Mapping[str, tuple[str, str]] = {
    "date": (mark("date"), "2026-07-15"),
    "date-time": (mark("time"), "2026-07-15T09:30:00Z"),
    "time": (mark("time of day"), "09:30:00Z"),
    "duration": (mark("duration"), "PT1H30M"),
    "email": (mark("address"), "name@example.org"),
    "uri": ("URL", "https://example.org/page"),
    "url": ("URL", "https://example.org/page"),
    "uri-reference": (mark("URL or a part of one"), ""),
    "hostname": (mark("host name"), "example.org"),
    "ipv4": (mark("address"), "192.0.2.1"),
    "ipv6": (mark("address"), "2001:db8::1"),
    "uuid": ("UUID", "123e4567-e89b-42d3-a456-426614174000"),
    "regex": (mark("regular expression"), ""),
    "json-pointer": (mark("JSON pointer"), "/a/0"),
    "byte": ("base64", ""),
    "binary": ("base64", ""),
}
"""For each format what it is called, and a text that has it; empty where none says more."""


def format_of(schema: Mapping[str, Any]) -> tuple[str, str]:
    """The name of the format of a text, and an example of it; both empty where none that is known is named."""
    words, example = _FORMATS.get(str(schema.get("format") or ""), ("", ""))
    return tr(words), example


def same(one: object, other: object) -> bool:
    """Tell whether two values are the same JSON: `1`, `1.0` and `true` are not."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def number_of(text: str) -> JsonValue:
    """The number that a text is; the text itself where it is none."""
    found = text.strip()
    if not _NUMBER.fullmatch(found):
        return text
    value = json.loads(found)
    return text if isinstance(value, float) and not math.isfinite(value) else value


def value_of(shape: Shape, text: str) -> JsonValue:
    """The value that a text field of this shape sends."""
    return number_of(text) if shape.kind in {"integer", "number"} else text


def text_of(shape: Shape, value: JsonValue) -> str | None:
    """The text that stands for a value in a field of this shape; None where the field cannot hold it."""
    if shape.kind in {"integer", "number"}:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        text = json.dumps(value) if is_number else value if isinstance(value, str) and value else None
        held = text is not None and "\n" not in text and not _UNHELD.search(text)
        return text if text is not None and held and same(number_of(text), value) else None
    return value if isinstance(value, str) and not _UNHELD.search(value) else None


def value_line(value: object, limit: int = 60) -> str:
    """A value to read on one line: a text as it is, anything else as JSON."""
    text = value if isinstance(value, str) and value else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= limit else f"{text[:limit]}..."


def placeholder(shape: Shape) -> str:
    """The text in a blank field: the default, an example, or what is wanted."""
    if shape.default is not NOTHING:
        return tr("default: {value}", value=value_line(shape.default))
    examples = shape.schema.get("examples")
    wanted = hint(shape.schema, shape.kind)
    if isinstance(examples, list) and examples and not wanted:
        first = cast("list[JsonValue]", examples)[0]
        return tr("such as {value}", value=value_line(first))
    return wanted


def hint(schema: Mapping[str, Any], kind: str) -> str:
    """A hint at what a field wants, in few words; empty for a plain text."""
    if kind in {"integer", "number"}:
        word = tr("whole number") if kind == "integer" else tr("number")
        return f"{word}{_bounds(schema)}"
    word, example = format_of(schema)
    if word:
        return tr("{what}, such as {example}", what=word, example=example) if example else word
    low, high = schema.get("minLength"), schema.get("maxLength")
    if isinstance(high, int) and high <= 200:
        if isinstance(low, int) and low:
            return tr("text, {low} to {high} characters", low=low, high=high)
        return tr("text, at most {high} characters", high=high)
    pattern = schema.get("pattern")
    return tr("text like {pattern}", pattern=pattern) if isinstance(pattern, str) and len(pattern) <= 60 else ""


def _bounds(schema: Mapping[str, Any]) -> str:
    low, high = schema.get("minimum"), schema.get("maximum")
    above, below = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    if low is not None and high is not None:
        return tr(", {low:,} to {high:,}", low=low, high=high)
    said = [
        words.format(bound=bound)
        for words, bound in (
            (tr("at least {bound:,}"), low),
            (tr("at most {bound:,}"), high),
            (tr("more than {bound:,}"), above),
            (tr("less than {bound:,}"), below),
        )
        if isinstance(bound, int | float) and not isinstance(bound, bool)
    ]
    step = schema.get("multipleOf")
    said += [tr("a multiple of {step}", step=step)] if step not in (None, 1) else []
    return f", {', '.join(said)}" if said else ""


Editor = Literal["line", "lines", "choice", "boolean", "checklist", "object", "array", "union", "json"]
LONG_LINE = 500
"""Characters of a text from which on it gets a field of several lines."""


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """The view of a place. `text`: of a field with text. `is_declared`: the schema knows the place."""

    path: Path
    shape: Shape
    editor: Editor
    value: Value
    text: str = ""
    required: bool = False
    is_declared: bool = True
    is_raw: bool = False
    fault: str | None = None

    @property
    def name(self) -> str:
        """The name of the place."""
        last = self.path[-1] if self.path else ""
        return tr("item {number}", number=last + 1) if isinstance(last, int) else last

    @property
    def is_given(self) -> bool:
        """Tell whether something is sent."""
        return self.value is not NOTHING or bool(self.text)


def editor_of(shape: Shape, value: Value, *, has_branch: bool) -> tuple[Editor, str]:
    """The editor that holds the value, and its text. `has_branch`: a branch of the union is known to fit."""
    match shape.kind:
        case "text" | "lines" | "integer" | "number":
            text = "" if value is NOTHING or value == "" else text_of(shape, value)
            if text is None or (shape.kind in {"integer", "number"} and value == ""):
                return "json", _as_json(value)
            return ("lines" if shape.kind == "lines" or "\n" in text or len(text) > LONG_LINE else "line"), text
        case "json":
            return "json", _as_json(value)
        case kind:
            return (kind, "") if _holds(shape, value, has_branch=has_branch) else ("json", _as_json(value))


def number_fault(shape: Shape, value: Value) -> str | None:
    """Why what stands in a field of a number is none."""
    if shape.kind not in {"integer", "number"}:
        return None
    if isinstance(value, str):
        is_whole = shape.kind == "integer"
        return tr("no whole number; sent as a text") if is_whole else tr("no number; sent as a text")
    is_broken = shape.kind == "integer" and isinstance(value, float) and not value.is_integer()
    return tr("no whole number") if is_broken else None


def _holds(shape: Shape, value: Value, *, has_branch: bool) -> bool:
    if value is NOTHING:
        return True
    match shape.kind:
        case "choice":
            return any(same(value, one) for one in shape.choices) or (value is None and shape.nullable)
        case "boolean":
            return isinstance(value, bool) or (value is None and shape.nullable)
        case "checklist":
            if not isinstance(value, list):
                return False
            found = [next((at for at, one in enumerate(shape.choices) if same(one, item)), None) for item in value]
            return None not in found and len(set(found)) == len(found)
        case "object":
            return isinstance(value, dict)
        case "array":
            return isinstance(value, list)
        case _:
            return has_branch


def _as_json(value: Value) -> str:
    return "" if value is NOTHING else json_text(value)


_HELD: Final = 100
"""A value of the branch's own kind; keys that both know add to it."""
_MAX_DEPTH = 3


def nearest(shapes: Shapes, union: Union, value: JsonValue) -> int | None:
    """The first of the branches that fit best; None where none does."""
    fits = [fit(shapes, branch.schema, value) for branch in union.branches]
    return fits.index(max(fits)) if max(fits) > 0 else None


def fit(shapes: Shapes, schema: object, value: JsonValue, depth: int = 0) -> int:
    """The fit of a value in a branch; 0: not at all."""
    shape = shapes.of(schema)
    match shape.kind:
        case "object":
            if not isinstance(value, dict):
                return 0
            names = shapes.fields(shape)
            known = sum(key in names for key in value)
            missing = sum(field.required and field.name not in value for field in names.values())
            return max(1, _HELD + 2 * known - 3 * missing - 2 * (len(value) - known))
        case "array":
            return _HELD if isinstance(value, list) else 0
        case "union":
            inner = shapes.union(shape).branches if depth < _MAX_DEPTH else ()
            return max((fit(shapes, one.schema, value, depth + 1) for one in inner), default=0)
        case "json":
            return 1
        case "integer":
            return _HELD + 1 if isinstance(value, int) and not isinstance(value, bool) else 0
        case "number":
            return _HELD if isinstance(value, int | float) and not isinstance(value, bool) else 0
        case _:
            return _HELD if editor_of(shape, value, has_branch=False)[0] != "json" else 0


def blank(shapes: Shapes, shape: Shape, depth: int = 0) -> JsonValue:
    """The fixed value, the one that holds when nothing is given, else the empty value of its kind.

    Of an object what is needed and can be nothing else.
    """
    if "const" in shape.schema:
        return deepcopy(shape.schema["const"])
    if shape.default is not NOTHING:
        return deepcopy(shape.default)
    match shape.kind:
        case "object":
            needed = [field for field in shapes.fields(shape).values() if field.required]
            schemas = {field.name: shapes.resolve(field.schema) for field in needed}
            return {name: deepcopy(schema["const"]) for name, schema in schemas.items() if "const" in schema}
        case "array" | "checklist":
            return []
        case "boolean":
            return False
        case "choice":
            return deepcopy(shape.choices[0])
        case "integer" | "number":
            low = shape.schema.get("minimum")
            return low if isinstance(low, int | float) and not isinstance(low, bool) else 0
        case "union":
            first = shapes.of(shapes.union(shape).branches[0].schema)
            return None if depth > _MAX_DEPTH else blank(shapes, first, depth + 1)
        case "text" | "lines":
            return ""
        case "json":
            return None
