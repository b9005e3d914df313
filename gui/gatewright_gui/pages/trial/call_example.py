"""What a form begins with: an example of a call, or what goes on from another tool."""

import json
from collections.abc import Mapping
from copy import deepcopy
from typing import Any, cast

from gatewright.workspace.api import JsonValue
from gatewright_gui.pages.trial.call_form import CallForm
from gatewright_gui.pages.trial.field_value import fit, format_of
from gatewright_gui.pages.trial.json_value import NOTHING
from gatewright_gui.pages.trial.schema_shape import Shape, Shapes
from gatewright_gui.session.calls import ShownTool

MAX_DEPTH = 4
MAX_CHARS = 160
ANY_TEXT = "..."
"""Stands for a text of which the schema says nothing."""


def example_of(shape: Mapping[str, Any]) -> str:
    """`such as [...]`; empty where the schema says too little, or the example would be long."""
    shapes = Shapes(shape)
    value = _value(shapes, shapes.of(shape), MAX_DEPTH)
    if value in (None, {}, []):
        return ""
    text = f"JSON, such as {json.dumps(value, ensure_ascii=False)}"
    return text if len(text) <= MAX_CHARS else ""


def example_values(form: CallForm) -> dict[str, JsonValue]:
    """Arguments for the chosen operation: the tool's own example, else what it needs, as far as the schema tells."""
    for given in form.tool.examples:
        if form.selector is None or given.get(form.selector) == form.operation:
            return deepcopy(dict(given))
    shapes, inner = form.shapes, form.inner(())
    made: dict[str, JsonValue] = {}
    union, chosen = form.union(()), form.branch(())
    if union is not None:
        branch = union.branches[chosen or 0]
        found = _value(shapes, shapes.of(branch.schema), MAX_DEPTH + 1)
        return found if isinstance(found, dict) else {}
    if form.selector is not None and form.operation is not None:
        made[form.selector] = form.operation
    for name, field in shapes.fields(inner).items():
        if name not in made and form.is_needed(name):
            made[name] = _value(shapes, shapes.of(field.schema, name), MAX_DEPTH)
    return made


def carry_form(tool: ShownTool, before: CallForm, operation: str | None = None) -> CallForm:
    """The form of another tool, with what fits it of the form before, but never what selects an operation.

    It begins with the operation, or with one that changes nothing.
    """
    form = CallForm(tool)
    fields = form.shapes.fields(form.inner(()))
    names = fields.keys() - {before.selector, form.selector}
    values = before.values_as_far().items()
    form.set_values({name: one for name, one in values if name in names and fit(form.shapes, fields[name].schema, one)})
    first = tool.first_operation(operation)
    if first is not None:
        form.choose_operation(first)
    return form


def _value(shapes: Shapes, shape: Shape, depth: int) -> JsonValue:
    examples = shape.schema.get("examples")
    if isinstance(examples, list) and examples:
        return cast("list[JsonValue]", examples)[0]
    if shape.default is not NOTHING and shape.default is not None:
        return cast("JsonValue", shape.default)
    match shape.kind:
        case "choice":
            return shape.choices[0]
        case "union":
            return _value(shapes, shapes.of(shapes.union(shape).branches[0].schema), depth - 1) if depth else None
        case "checklist":
            return [shape.choices[0]]
        case "array":
            return _items(shapes, shape, depth - 1) if depth else None
        case "object":
            needed = [field for field in shapes.fields(shape).values() if field.required] if depth else []
            return {field.name: _value(shapes, shapes.of(field.schema, field.name), depth - 1) for field in needed}
        case "boolean":
            return False
        case "integer" | "number":
            return _number(shape.schema)
        case "text" | "lines":
            return _text(shape.schema)
        case "json":
            return None


def _items(shapes: Shapes, shape: Shape, depth: int) -> list[JsonValue]:
    inner = _value(shapes, shapes.of(shapes.item(shape, 0)), depth)
    least = shape.schema.get("minItems")
    count = min(least, 5) if isinstance(least, int) and least > 1 else 1
    return [] if inner is None else [deepcopy(inner) for _ in range(count)]


def _number(schema: Mapping[str, Any]) -> JsonValue:
    low, high, above = schema.get("minimum"), schema.get("maximum"), schema.get("exclusiveMinimum")
    step = schema.get("multipleOf")
    if isinstance(low, int | float) and low > 1:
        return low
    if isinstance(above, int | float) and not isinstance(above, bool) and above >= 1:
        return above + 1
    if isinstance(high, int | float) and high < 1:
        return high
    return step if isinstance(step, int | float) and step > 0 else 1


def _text(schema: Mapping[str, Any]) -> str:
    least, most = schema.get("minLength"), schema.get("maxLength")
    text = format_of(schema)[1] or ANY_TEXT
    if isinstance(least, int) and 0 < len(text) < least <= 200:
        text = text + "." * (least - len(text))
    return text[:most] if isinstance(most, int) and 0 <= most < len(text) else text
