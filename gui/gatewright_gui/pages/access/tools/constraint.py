"""A constraint as a small form: what most people want to say of an argument, and JSON Schema."""

import json
from collections.abc import Mapping
from dataclasses import fields
from typing import cast

from gatewright.workspace.api import JsonValue, folder_of, folder_pattern, frozen, with_folder, with_pattern
from gatewright_gui.qt.language import tr

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
    """The parts that the form can say; None: nothing is said of it."""

    one_of: tuple[str, ...] | None = None
    below: str | None = None
    items_below: str | None = None
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
    if isinstance(items := schema.get("items"), dict):
        found["items_below"] = folder_of(items.get("pattern"))
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
        elif one.name == "items_below":
            found["items"] = {"pattern": folder_pattern(str(value))}
        elif one.name == "one_of":
            texts = list(cast("tuple[JsonValue, ...]", value))
            found.update({"const": texts[0]} if len(texts) == 1 else {"enum": texts})
        else:
            found[_WORDS[one.name]] = cast("JsonValue", value)
    return found


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


def json_text(schema: JsonValue) -> str:
    """The schema as JSON, with `in_folder` as in the policy file."""
    return json.dumps(with_folder(schema), indent=2, ensure_ascii=False)


def json_schema(text: str) -> JsonValue:
    """The schema that a JSON text says."""
    return with_pattern(cast("JsonValue", json.loads(text)))


def json_fault(text: str) -> str:
    """The place where a text is no JSON Schema, with line and column; empty when it may be one."""
    try:
        value: object = json.loads(text)
    except json.JSONDecodeError as error:
        said = error.msg.lower().removesuffix(" at")
        return tr("line {line}, column {column}: {fault}", line=error.lineno, column=error.colno, fault=said)
    except RecursionError:
        return tr("this is nested too deep")
    return "" if isinstance(value, Mapping | bool) else tr("a constraint is a JSON object, or true or false")
