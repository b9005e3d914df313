"""The arguments of a call as a form: a view over one JSON value, so that nothing of it is lost.

A place is told by its path. The schema says which editor a place gets; a value that this editor cannot hold is edited
as JSON. Nothing is refused here: what is filled in is sent. Over 450 lines: every
way to read or change a place is a short method of the form.
"""

import json
from collections.abc import Mapping
from copy import deepcopy
from typing import TypeVar

from gatewright.workspace.api import JsonRefused, JsonValue
from gatewright_gui.pages.trial.field_value import (
    Editor,
    View,
    blank,
    editor_of,
    nearest,
    number_fault,
    value_of,
)
from gatewright_gui.pages.trial.json_value import (
    NOTHING,
    Path,
    Value,
    json_text,
    parse_value,
    path_words,
    put,
    take_out,
    to_text,
    value_at,
    value_fault,
)
from gatewright_gui.pages.trial.schema_shape import Field, Shape, Shapes, Union
from gatewright_gui.qt.language import tr
from gatewright_gui.session.calls import OperationShape, ShownTool

T = TypeVar("T")


class FormMemory:
    """`drafts`: broken JSON as it was typed. `raw`: places that are edited as JSON. `branches`: those that were chosen.

    `implied`: what came into being only to hold another place. `parked`: what waits in case its branch (by its number)
    or an operation that takes it (by the argument's name) comes back.
    """

    def __init__(self) -> None:
        self.drafts: dict[Path, str] = {}
        self.raw: set[Path] = set()
        self.branches: dict[Path, int] = {}
        self.implied: set[Path] = set()
        self.parked: dict[tuple[Path, str | int], JsonValue] = {}

    def is_drafted_below(self, path: Path) -> bool:
        """Tell whether a place, or one in it, holds broken JSON."""
        return any(draft[: len(path)] == path for draft in self.drafts)

    def forget(self, path: Path) -> None:
        """The place is left out."""
        self.forget_below(path)
        self.drafts.pop(path, None)
        self.raw.discard(path)

    def forget_below(self, path: Path) -> None:
        """The place holds something else now."""
        self.drafts = {at: kept for at, kept in self.drafts.items() if not _is_below(at, path)}
        self.branches = {at: kept for at, kept in self.branches.items() if not _is_below(at, path)}
        self.raw = {at for at in self.raw if not _is_below(at, path)}

    def move_items(self, held: Path, moves: Mapping[int, int | None]) -> None:
        """Move along what is known of the items of a list; None: it is forgotten."""
        self.drafts = _move_keys(self.drafts, held, moves)
        self.branches = _move_keys(self.branches, held, moves)
        self.raw = {to for at in self.raw if (to := _path_after(at, held, moves)) is not None}
        self.implied = {to for at in self.implied if (to := _path_after(at, held, moves)) is not None}
        parked = [(_path_after(at, held, moves), key, kept) for (at, key), kept in self.parked.items()]
        self.parked = {(at, key): kept for at, key, kept in parked if at is not None}


def _is_below(path: Path, held: Path) -> bool:
    return len(path) > len(held) and path[: len(held)] == held


def _path_after(path: Path, held: Path, moves: Mapping[int, int | None]) -> Path | None:
    at = path[len(held)] if _is_below(path, held) else None
    if not isinstance(at, int):
        return path
    to = moves.get(at, at)
    return None if to is None else (*held, to, *path[len(held) + 1 :])


def _move_keys(known: dict[Path, T], held: Path, moves: Mapping[int, int | None]) -> dict[Path, T]:
    return {to: kept for at, kept in known.items() if (to := _path_after(at, held, moves)) is not None}


class FieldFault(ValueError):
    """A field's text that is no JSON; the message names the field."""


class CallForm:
    """Use `set_values`, `set`, `set_text`, `unset`; ask `view`, `values`, `text`."""

    def __init__(self, tool: ShownTool) -> None:
        self.tool = tool
        field = tool.operation_field
        self.shapes = Shapes(tool.schema, field.replace("[]", "").split(".")[-1] if field else None)
        self._root: dict[str, JsonValue] = {}
        self._known = FormMemory()

    # the whole

    def set_values(self, values: Mapping[str, JsonValue]) -> None:
        """Hold these arguments and nothing else."""
        self._root = deepcopy(dict(values))
        self._known = FormMemory()

    def values(self) -> dict[str, JsonValue]:
        """The values that the form sends. Raises FieldFault for a field with broken JSON."""
        for path in self._known.drafts:
            fault = self._draft_fault(path)
            if fault is not None:
                where = path_words(path)
                raise FieldFault(tr("`{path}`: {fault}; the JSON side sends it as it is", path=where, fault=fault))
        return deepcopy(self._root)

    @property
    def is_begun(self) -> bool:
        """True once any argument but the operation is given."""
        return not self._root.keys() <= {self.selector}

    def values_as_far(self) -> dict[str, JsonValue]:
        """The values that can be sent; fields with broken JSON are left out, items with it null."""
        root = deepcopy(self._root)
        for path in self._known.drafts:
            take_out(root, path)
        return root

    def text(self) -> str:
        """The arguments as JSON to read and edit; broken JSON of a field stands in it as it was typed."""
        if not self._known.drafts:
            return to_text(self._root)
        root = deepcopy(self._root)
        marks: dict[str, str] = {}
        for number, (path, draft) in enumerate(self._known.drafts.items()):
            mark = f"\x00draft {number}\x00"
            put(root, path, mark)
            marks[json.dumps(mark)] = draft
        text = to_text(root)
        for mark, draft in marks.items():
            text = text.replace(mark, draft)
        return text

    # one place

    def value(self, path: Path) -> Value:
        """The value at a place."""
        return value_at(self._root, path)

    def view(self, path: Path) -> View:
        """The view of a place."""
        field = self._field(path)
        shape = self.shape(path)
        value = self.value(path)
        required, is_declared = (field.required, True) if field is not None else (False, self._is_known(path))
        if path in self._known.drafts or path in self._known.raw:
            text = self._known.drafts.get(path, "" if value is NOTHING else json_text(value))
            return View(path, shape, "json", value, text, required, is_declared, True, self._draft_fault(path))
        editor, text = self._editor(path, shape, value)
        is_raw = editor == "json" and shape.kind != "json"
        fault = number_fault(shape, value) if editor == "line" else None
        return View(path, shape, editor, value, text, required, is_declared, is_raw, fault)

    def inner_view(self, path: Path) -> View:
        """The view of a place inside its union; as `view` where it is none."""
        view = self.view(path)
        if view.editor != "union":
            return view
        shape, value = self.inner(path), view.value
        editor, text = self._editor(path, shape, value)
        fault = number_fault(shape, value) if editor == "line" else None
        return View(path, shape, editor, value, text, view.required, view.is_declared, fault=fault)

    def shape(self, path: Path) -> Shape:
        """The shape of a place."""
        shape = self.shapes.root()
        for at, step in enumerate(path):
            shape = self.shapes.inside(self._inside(shape, path[:at]), step)
        return shape

    def inner(self, path: Path) -> Shape:
        """The shape of a place; of a union that of its chosen branch."""
        return self._inside(self.shape(path), path)

    def fields(self, path: Path) -> tuple[str, ...]:
        """The declared properties of an object; the tag of a union is told by its branch."""
        union = self.union(path)
        names = self.shapes.fields(self.inner(path))
        return tuple(name for name in names if union is None or name != union.tag)

    def extras(self, path: Path) -> tuple[str, ...]:
        """The keys of an object that are not declared but given."""
        value = self.value(path)
        if not isinstance(value, dict):
            return ()
        names, union = self.shapes.fields(self.inner(path)), self.union(path)
        drafts = [p[-1] for p in self._known.drafts if p[:-1] == path and p[-1] not in value]
        keys = [*value, *(key for key in drafts if isinstance(key, str))]
        return tuple(key for key in keys if key not in names and (union is None or key != union.tag))

    def takes_extras(self, path: Path) -> bool:
        """Tell whether the schema lets other properties be added."""
        return self.shapes.extra(self.inner(path)) is not None

    def set(self, path: Path, value: JsonValue) -> None:
        """Put a value at a place; what holds it comes into being."""
        self._known.drafts.pop(path, None)
        self._known.forget_below(path)
        self._make_room(path)
        put(self._root, path, deepcopy(value))
        self._known.implied.discard(path)

    def unset(self, path: Path) -> None:
        """Leave a place out; what held it only for its sake goes too."""
        self._known.forget(path)
        take_out(self._root, path)
        held = path[:-1]
        if held in self._known.implied and self.value(held) in ({}, []) and not self._known.is_drafted_below(held):
            self._known.implied.discard(held)
            self.unset(held)

    def set_text(self, path: Path, text: str) -> None:
        """Set what was typed into a field; nothing left in it leaves the place out."""
        if path in self._known.raw or self.inner_view(path).editor == "json":
            self._set_json(path, text)
        elif text:
            self.set(path, value_of(self.inner(path), text))
        else:
            self.unset(path)

    def edit_as_json(self, path: Path, *, raw: bool) -> None:
        """Say whether a place is edited as JSON though it has a field of its own; broken JSON stays as it is."""
        if raw:
            self._known.raw.add(path)
        elif path not in self._known.drafts:
            self._known.raw.discard(path)

    def can_be_field(self, path: Path) -> bool:
        """Tell whether the place's own field holds what is there now."""
        if path in self._known.drafts:
            return False
        return self._editor(path, self.shape(path), self.value(path))[0] != "json"

    # unions and operations

    def union(self, path: Path) -> Union | None:
        """The branches of a place."""
        shape = self.shape(path)
        return self.shapes.union(shape) if shape.kind == "union" else None

    def branch(self, path: Path) -> int | None:
        """The branch that is filled in: chosen, told by the value, or the nearest; None where nothing is given."""
        union = self.union(path)
        return None if union is None else self._branch_of(union, path)

    def choose_branch(self, path: Path, index: int | None) -> None:
        """Fill in another branch; what both know stays, the rest waits in case one comes back."""
        union = self.union(path)
        if union is None:
            return
        before, value = self.branch(path), self.value(path)
        if before is not None and value is not NOTHING:
            self._known.parked[(path, before)] = value
        self._known.forget_below(path)
        if index is None:
            self._known.branches.pop(path, None)
            self.unset(path) if path else self._root.clear()
            return
        self._known.branches[path] = index
        made = self._value_in_branch(path, union, index, value)
        if made is NOTHING:
            take_out(self._root, path)
        elif path:
            self._make_room(path)
            put(self._root, path, made)
        else:
            self._root = made if isinstance(made, dict) else {}

    @property
    def selector(self) -> str | None:
        """The property of the arguments themselves that selects the operation."""
        field = self.tool.operation_field
        if field is None or "." in field or "[]" in field:
            return None
        return field if field in self.shapes.names() else None

    @property
    def operation(self) -> str | None:
        """The operation that is chosen."""
        name = self.selector
        value = self._root.get(name) if name is not None else None
        return value if isinstance(value, str) else None

    def choose_operation(self, name: str | None) -> None:
        """Choose the operation; what it does not take waits in case one comes back."""
        field = self.selector
        if field is None:
            return
        union = self.union(())
        if union is not None and union.tag == field:
            at = next((at for at, branch in enumerate(union.branches) if name in branch.tags), None)
            self.choose_branch((), at)
            if name is not None:
                self._root[field] = name
            return
        if name is None:
            self._root.pop(field, None)
            return
        self._root = {field: name, **{key: value for key, value in self._root.items() if key != field}}
        for key in self.shapes.names():
            if not self.is_taken(key) and key in self._root:
                self._known.forget((key,))
                self._known.parked[((), key)] = self._root.pop(key)
            elif self.is_taken(key) and key not in self._root and ((), key) in self._known.parked:
                self._root[key] = self._known.parked.pop(((), key))

    def shape_of_operation(self) -> OperationShape | None:
        """The shape that the chosen operation takes, where that is known for one."""
        if self.selector is None or self.union(()) is not None:
            return None
        return next((shape for shape in self.tool.operations if shape.name == self.operation), None)

    def is_taken(self, name: str) -> bool:
        """Tell whether the chosen operation takes an argument."""
        shape = self.shape_of_operation()
        return shape is None or name == self.selector or name in shape.takes or name not in self.shapes.names()

    def is_needed(self, name: str) -> bool:
        """Tell whether the chosen operation needs an argument."""
        shape = self.shape_of_operation()
        field = self._field((name,))
        is_required = field is not None and field.required
        return is_required if shape is None or name == self.selector else name in shape.required

    # lists

    def add_item(self, path: Path) -> Path:
        """Add an item at the end; the path of it. It holds what its shape asks for at least."""
        value = self.value(path)
        index = len(value) if isinstance(value, list) else 0
        if not isinstance(value, list):
            self.set(path, [])
        item = (*path, index)
        shape = self.shapes.of(self.shapes.item(self.inner(path), index))
        put(self._root, item, blank(self.shapes, shape))
        return item

    def remove_item(self, path: Path) -> None:
        """Take an item out of its list; those after it move up."""
        held, index = path[:-1], path[-1]
        items = self.value(held)
        if isinstance(items, list) and isinstance(index, int) and index < len(items):
            del items[index]
            self._known.move_items(held, {at: at - 1 for at in range(index + 1, len(items) + 1)} | {index: None})

    def move_item(self, path: Path, step: int) -> Path | None:
        """Move an item up or down; its new path, or None at an end."""
        held, index = path[:-1], path[-1]
        items = self.value(held)
        if not isinstance(items, list) or not isinstance(index, int) or not 0 <= index + step < len(items):
            return None
        items[index], items[index + step] = items[index + step], items[index]
        self._known.move_items(held, {index: index + step, index + step: index})
        return (*held, index + step)

    def blank(self, path: Path) -> JsonValue:
        """The least that can be sent at a place."""
        return blank(self.shapes, self.shape(path))

    # inside

    def _field(self, path: Path) -> Field | None:
        if not path or not isinstance(path[-1], str):
            return None
        return self.shapes.fields(self.inner(path[:-1])).get(path[-1])

    def _is_known(self, path: Path) -> bool:
        if not path or isinstance(path[-1], int):
            return True
        return self.shapes.extra(self.inner(path[:-1])) is not None

    def _editor(self, path: Path, shape: Shape, value: Value) -> tuple[Editor, str]:
        is_union = shape.kind == "union"
        return editor_of(shape, value, has_branch=is_union and (not path or self.branch(path) is not None))

    def _branch_of(self, union: Union, path: Path) -> int | None:
        value = self.value(path)
        tagged = union.branch_of(value)
        if tagged is not None:
            return tagged
        if path in self._known.branches:
            return self._known.branches[path]
        return None if value is NOTHING or (not path and not value) else nearest(self.shapes, union, value)

    def _inside(self, shape: Shape, path: Path) -> Shape:
        """Through the chosen branch of a union; its own union is what a branch has no field for."""
        if shape.kind != "union":
            return shape
        union = self.shapes.union(shape)
        chosen = self._branch_of(union, path)
        if chosen is None:
            return Shape("object" if not path else "json", shape.schema)
        inner = self.shapes.of(union.branches[chosen].schema)
        return Shape("json", inner.schema, inner.nullable) if inner.kind == "union" else inner

    def _set_json(self, path: Path, text: str) -> None:
        if not text.strip():
            was_raw = path in self._known.raw
            self.unset(path)
            self._known.raw |= {path} if was_raw else set[Path]()
            return
        try:
            self.set(path, parse_value(text))
        except JsonRefused:
            self._known.drafts[path] = text
            self._make_room(path)
        self._known.raw.add(path)

    def _draft_fault(self, path: Path) -> str | None:
        draft = self._known.drafts.get(path)
        return None if draft is None else value_fault(draft)

    def _make_room(self, path: Path) -> None:
        for length in range(1, len(path)):
            held = path[:length]
            value = self.value(held)
            wanted = list if isinstance(path[length], int) else dict
            if not isinstance(value, wanted):
                put(self._root, held, [] if wanted is list else {})
                self._tag(held)
                if value is NOTHING:
                    self._known.implied.add(held)

    def _tag(self, path: Path) -> None:
        """An object that came into being inside a chosen branch gets the branch's tag."""
        union, chosen = self.union(path), self._known.branches.get(path)
        if union is not None and union.tag is not None and chosen is not None:
            put(self._root, (*path, union.tag), deepcopy(union.branches[chosen].tags[0]))

    def _value_in_branch(self, path: Path, union: Union, index: int, value: Value) -> Value:
        branch = union.branches[index]
        shape = self.shapes.of(branch.schema)
        parked = self._known.parked.get((path, index), NOTHING)
        if shape.kind != "object":
            return parked if parked is not NOTHING else NOTHING if not path else blank(self.shapes, shape)
        names = self.shapes.fields(shape)
        kept: dict[str, JsonValue] = dict(parked) if isinstance(parked, dict) else {}
        if isinstance(value, dict):
            kept |= {key: one for key, one in value.items() if key in names}
        if union.tag is not None and union.branch_of(kept) != index:
            kept = {union.tag: deepcopy(branch.tags[0]), **{k: v for k, v in kept.items() if k != union.tag}}
        return kept
