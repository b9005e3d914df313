"""What could be typed at a place of the arguments: names of properties, values of a list."""

import json

from gatewright.workspace.api import JsonRefused, JsonValue, frozen, parse_object
from gatewright_gui.pages.trial.call_form import CallForm
from gatewright_gui.pages.trial.json_places import Cursor, JsonPlaces
from gatewright_gui.pages.trial.json_value import NOTHING, Path, value_at
from gatewright_gui.qt.language import tr
from gatewright_gui.session.calls import ShownTool

MAX_OFFERED = 500


@frozen
class Suggestion:
    """`label` to read, `text` to put in; `note` says what it is."""

    label: str
    text: str
    note: str = ""


@frozen
class Completion:
    """The texts that can stand in place of the letters `start` to `end`."""

    start: int
    end: int
    offered: tuple[Suggestion, ...] = ()


def completion_at(tool: ShownTool, text: str, cursor: int) -> Completion:
    """The completion that the schema offers at the cursor, narrowed by what is typed there."""
    places = JsonPlaces(text, cursor)
    at = places.at_cursor
    form = CallForm(tool)
    form.set_values(_values_as_far(text, places))
    typed = text[at.start : cursor].strip().strip('"').casefold()
    offered = _keys(form, at, text) if at.role == "key" else _values(form, at) if at.role == "value" else []
    starting = [one for one in offered if one.label.casefold().startswith(typed)]
    within = [one for one in offered if typed in one.label.casefold() and one not in starting]
    return Completion(at.start, at.end, tuple([*starting, *within][:MAX_OFFERED]))


def _keys(form: CallForm, at: Cursor, text: str) -> list[Suggestion]:
    shape = form.inner(at.path)
    names: dict[str, bool] = {}
    if shape.kind == "object":
        names = {name: field.required for name, field in form.shapes.fields(shape).items()}
    union = form.union(at.path)
    if union is not None and union.tag is not None:
        names.setdefault(union.tag, True)
    has_colon = text[at.end :].lstrip()[:1] == ":"
    made: list[Suggestion] = []
    for name, required in sorted(names.items(), key=lambda row: not row[1]):
        if name in at.keys and name != text[at.start : at.end].strip('"'):
            continue
        if at.path == () and not form.is_taken(name):
            continue
        inner = form.shape((*at.path, name))
        value = ""
        if not has_colon and inner.kind in {"text", "lines"}:
            value = ': ""'  # to be typed
        elif not has_colon:
            value = ": " + (
                json.dumps(form.blank((*at.path, name)), ensure_ascii=False) if inner.kind != "json" else ""
            )
        note = tr("required") if required else ""
        made.append(Suggestion(name, json.dumps(name, ensure_ascii=False) + value, note))
    return made


def _values(form: CallForm, at: Cursor) -> list[Suggestion]:
    shape = form.shape(at.path)
    union = form.union(at.path[:-1]) if at.path else None
    values: list[JsonValue] = []
    if union is not None and at.path[-1] == union.tag:
        values = [tag for branch in union.branches for tag in branch.tags]
    elif shape.kind in {"choice"}:
        values = list(shape.choices)
    elif shape.kind == "boolean":
        values = [True, False]
    elif shape.default is not NOTHING or shape.kind in {"object", "array", "checklist"}:
        values = [form.blank(at.path)]
    if shape.nullable and None not in values:
        values.append(None)
    return [Suggestion(_label(value), json.dumps(value, ensure_ascii=False)) for value in values]


def _label(value: JsonValue) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _values_as_far(text: str, places: JsonPlaces) -> dict[str, JsonValue]:
    """The arguments, of broken text the plain values that can be told: what tells operations and branches."""
    try:
        return parse_object(text)
    except JsonRefused:
        pass
    root: dict[str, JsonValue] = {}
    for path, place in sorted(places.places.items(), key=lambda row: (len(row[0]), row[1].start)):
        part = text[place.start : place.end]
        value: JsonValue = {} if part[:1] == "{" else [] if part[:1] == "[" else _plain(part)
        if path:
            _grow(root, path, value)
    return root


def _grow(root: dict[str, JsonValue], path: Path, value: JsonValue) -> None:
    held, last = value_at(root, path[:-1]), path[-1]
    if isinstance(held, dict) and isinstance(last, str):
        held[last] = value
    elif isinstance(held, list) and isinstance(last, int):
        items = held
        items.extend([None] * (last - len(items)))
        items.append(value)


def _plain(part: str) -> JsonValue:
    try:
        value = json.loads(part)
    except (ValueError, RecursionError):
        return None
    return value if value is None or isinstance(value, str | int | float | bool) else None
