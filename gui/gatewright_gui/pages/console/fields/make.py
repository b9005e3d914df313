"""Which field fills in a place of one value. It knows no places with parts."""

from typing import TypeAlias

from gatewright_gui.models.placeview import View
from gatewright_gui.pages.console.fields.host import FieldHost
from gatewright_gui.pages.console.fields.simple import ChecklistField, ChoiceField, LineField, TextField

SimpleField: TypeAlias = LineField | TextField | ChoiceField | ChecklistField
PARTED = frozenset({"object", "array", "union"})
"""Editors of places with parts."""


def simple_of(host: FieldHost, view: View) -> SimpleField:
    """The field of one value."""
    match view.editor:
        case "line":
            return LineField(host, view)
        case "choice" | "boolean":
            return ChoiceField(host, view)
        case "checklist":
            return ChecklistField(host, view)
        case _:
            return TextField(host, view)
