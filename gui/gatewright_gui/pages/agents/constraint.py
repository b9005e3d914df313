"""A constraint as a small form: what most people want to say of an argument, and JSON Schema."""

import json
from collections.abc import Mapping
from dataclasses import fields
from typing import cast

from gatewright.workspace.api import JsonValue, folder_of, folder_pattern, frozen, with_folder, with_pattern

_WORDS = {
    "one_of": "enum",
    "pattern": "pattern",
    "min_length": "minLength",
    "max_length": "maxLength",
    "minimum": "minimum",
    "maximum": "maximum",
    "multiple_of": "multipleOf",
    "min_items": "minItems",
    "max_items": "maxItems",
    "truth": "const",
}
_COUNTS = frozenset({"min_length", "max_length", "min_items", "max_items"})


@frozen
class ConstraintForm:
    """What the form can say; None: nothing is said of it."""

    one_of: tuple[str, ...] | None = None
    below: str | None = None
    pattern: str | None = None
    min_length: int | None = None
    max_length: int | None = None
    minimum: float | None = None
    maximum: float | None = None
    multiple_of: float | None = None
    min_items: int | None = None
    max_items: int | None = None
    truth: bool | None = None


def form_of(schema: JsonValue) -> ConstraintForm | None:
    """The form that says the same as the schema; None where it says more than the form can."""
    if not isinstance(schema, dict):
        return None
    found: dict[str, object] = {}
    for name, word in _WORDS.items():
        if word not in schema:
            continue
        value = schema[word]
        if not _fits(name, value):
            return None
        found[name] = tuple(cast("list[str]", value)) if name == "one_of" else value
    if (folder := folder_of(found.get("pattern"))) is not None:
        found["below"] = folder
        del found["pattern"]
    if isinstance(found.get("truth"), str):
        found.pop("truth")
    if isinstance(schema.get("const"), str) and "enum" not in schema:
        found["one_of"] = (str(schema["const"]),)
    form = ConstraintForm(**found)  # pyright: ignore[reportArgumentType]
    return form if schema_of(form) == schema else None


def schema_of(form: ConstraintForm) -> dict[str, JsonValue]:
    """The schema that the form says; empty when it says nothing."""
    found: dict[str, JsonValue] = {}
    for one in fields(form):
        value: object = getattr(form, one.name)
        if value is None:
            continue
        if one.name == "below":
            found["pattern"] = folder_pattern(str(value))
        elif one.name == "one_of":
            texts = list(cast("tuple[JsonValue, ...]", value))
            found.update({"const": texts[0]} if len(texts) == 1 else {"enum": texts})
        else:
            found[_WORDS[one.name]] = cast("JsonValue", value)
    return found


def constraint_words(schema: JsonValue, *, required: bool = False) -> str:
    """A constraint in a few words; JSON where it says more than the form can. None: nothing is said of the value."""
    if required:
        return "must be given" if schema is None else f"must be given, {constraint_words(schema)}"
    form = form_of(schema)
    if form is None:
        return "never" if schema is False else json_text(schema, indent=None)
    said = [
        _listed(form.one_of),
        f"only in {form.below}/" if form.below is not None else "",
        f"matches {form.pattern}" if form.pattern is not None else "",
        _span(form.min_length, form.max_length, "characters"),
        _range(form.minimum, form.maximum),
        f"a multiple of {form.multiple_of:g}" if form.multiple_of is not None else "",
        _span(form.min_items, form.max_items, "items"),
        f"is {'true' if form.truth else 'false'}" if form.truth is not None else "",
    ]
    return ", ".join(text for text in said if text) or "anything"


def _fits(name: str, value: JsonValue) -> bool:
    if name == "one_of":
        return isinstance(value, list) and bool(value) and all(isinstance(text, str) for text in value)
    if name == "truth":
        return isinstance(value, bool | str)
    if name == "pattern":
        return isinstance(value, str)
    if name in _COUNTS:
        return type(value) is int
    return type(value) in {int, float}


def _listed(texts: tuple[str, ...] | None) -> str:
    if texts is None:
        return ""
    return f"is {texts[0]}" if len(texts) == 1 else f"one of {', '.join(texts)}"


def _span(low: int | None, high: int | None, unit: str) -> str:
    if low is not None and high is not None:
        return f"{low:,} to {high:,} {unit}"
    if high is not None:
        return f"at most {high:,} {unit}"
    return f"at least {low:,} {unit}" if low is not None else ""


def _range(low: float | None, high: float | None) -> str:
    if low is not None and high is not None:
        return f"from {low:g} to {high:g}"
    if high is not None:
        return f"at most {high:g}"
    return f"at least {low:g}" if low is not None else ""


def json_text(schema: JsonValue, indent: int | None = 2) -> str:
    """The schema as JSON, with `in_folder` as in the policy file."""
    return json.dumps(with_folder(schema), indent=indent, ensure_ascii=False)


def json_schema(text: str) -> JsonValue:
    """The schema that a JSON text says."""
    return with_pattern(cast("JsonValue", json.loads(text)))


def json_fault(text: str) -> str:
    """Where a text is no JSON Schema, with line and column; empty when it may be one."""
    try:
        value: object = json.loads(text)
    except json.JSONDecodeError as error:
        said = error.msg.lower().removesuffix(" at")
        return f"line {error.lineno}, column {error.colno}: {said}"
    except RecursionError:
        return "this is nested too deep"
    return "" if isinstance(value, Mapping | bool) else "a constraint is a JSON object, or true or false"
