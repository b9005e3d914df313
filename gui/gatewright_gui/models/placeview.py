"""What a place of the form shows: its editor, its text, what is wrong with it. It knows neither widgets nor places.

An editor is taken only where it holds the value; any value can be edited as JSON.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from gatewright.base.jsonvalue import JsonValue
from gatewright_gui.models.fieldtext import same, text_of
from gatewright_gui.models.formshape import Shape
from gatewright_gui.models.jsonpath import NOTHING, Path, Value
from gatewright_gui.models.jsontext import json_text

Editor = Literal["line", "lines", "choice", "boolean", "checklist", "object", "array", "union", "json"]
LONG_LINE = 500
"""Characters of a text from which on it gets a field of several lines."""


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """What a place shows. `text`: of a field with text. `is_declared`: the schema knows the place."""

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
        """What the place is called."""
        last = self.path[-1] if self.path else ""
        return f"item {last + 1}" if isinstance(last, int) else last

    @property
    def is_given(self) -> bool:
        """Whether something is sent."""
        return self.value is not NOTHING or bool(self.text)


def editor_of(shape: Shape, value: Value, *, has_branch: bool) -> tuple[Editor, str]:
    """The editor that holds the value, and its text. `has_branch`: a branch of the union is known to fit."""
    match shape.kind:
        case "text" | "lines" | "integer" | "number":
            return _text_editor(shape, value)
        case "json":
            return "json", _as_json(value)
        case kind:
            return (kind, "") if _holds(shape, value, has_branch=has_branch) else ("json", _as_json(value))


def number_fault(shape: Shape, value: Value) -> str | None:
    """Why what stands in a field of a number is none."""
    if shape.kind not in {"integer", "number"}:
        return None
    wanted = "whole number" if shape.kind == "integer" else "number"
    if isinstance(value, str):
        return f"no {wanted}; sent as a text"
    is_broken = shape.kind == "integer" and isinstance(value, float) and not value.is_integer()
    return f"no {wanted}" if is_broken else None


def _text_editor(shape: Shape, value: Value) -> tuple[Editor, str]:
    is_number = shape.kind in {"integer", "number"}
    text = "" if value is NOTHING or value == "" else text_of(shape, value)
    if text is None or (is_number and value == ""):
        return "json", _as_json(value)
    return ("lines" if shape.kind == "lines" or "\n" in text or len(text) > LONG_LINE else "line"), text


def _holds(shape: Shape, value: Value, *, has_branch: bool) -> bool:
    if value is NOTHING:
        return True
    match shape.kind:
        case "choice":
            return any(same(value, one) for one in shape.choices) or (value is None and shape.nullable)
        case "boolean":
            return isinstance(value, bool) or (value is None and shape.nullable)
        case "checklist":
            return isinstance(value, list) and _is_checked(shape, value)
        case "object":
            return isinstance(value, dict)
        case "array":
            return isinstance(value, list)
        case _:
            return has_branch


def _is_checked(shape: Shape, items: Sequence[JsonValue]) -> bool:
    """Whether every item is one of the choices, and none is there twice."""
    found = [next((at for at, one in enumerate(shape.choices) if same(one, item)), None) for item in items]
    return None not in found and len(set(found)) == len(found)


def _as_json(value: Value) -> str:
    return "" if value is NOTHING else json_text(value)
