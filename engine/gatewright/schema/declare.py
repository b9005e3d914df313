"""Operations that somebody declares for a field: a free text becomes a closed list. It guesses nothing."""

from __future__ import annotations

from gatewright.base.errors import SchemaError
from gatewright.schema.fieldpath import EACH, Steps, path_text
from gatewright.schema.shapes.choice import choice_of, restricted
from gatewright.schema.shapes.inplace import items_of
from gatewright.schema.shapes.naming import is_operation_name
from gatewright.schema.shapes.nested import places
from gatewright.schema.walk import Schema, as_list, as_object, properties_of, walk


def with_declared(schema: Schema, field: str | None, operations: tuple[str, ...]) -> tuple[Schema, str]:
    """An inlined schema whose ``field`` is a closed list of ``operations``, and the field's name.

    A list that the schema closes already is narrowed to what is declared. Raises SchemaError where there is no such
    field, none that looks like one, or where it takes no texts.
    """
    steps = _steps(schema, field)
    if (*steps, EACH) in _lists(schema):
        raise SchemaError(f"the operations of a list are declared for its elements, `{path_text((*steps, EACH))}`")
    wanted = frozenset(operations)
    found = _changed(schema, steps, operations, wanted)
    if found is schema:
        raise SchemaError(f"the schema has no field `{path_text(steps)}`")
    return found, path_text(steps)


def _steps(schema: Schema, field: str | None) -> Steps:
    known = [(*place.steps, name) for place in places(schema) for node in place.nodes for name in properties_of(node)]
    known += _lists(schema)
    if field is not None:
        found = next((steps for steps in known if path_text(steps) == field), None)
    else:
        found = next((steps for steps in known if len(steps) == 1 and is_operation_name(steps[0])), None)
    if found is None:
        raise SchemaError(f"the schema has no field `{field}`" if field else "no field of the schema names operations")
    return found


def _lists(schema: Schema) -> list[Steps]:
    """The elements of each list of the root's own."""
    return [(name, EACH) for name, value in properties_of(schema).items() if items_of(as_object(value) or {})]


def _changed(schema: Schema, steps: Steps, operations: tuple[str, ...], wanted: frozenset[str]) -> Schema:
    """Every declaration of the field along ``steps``, in whatever branch, closed."""
    if steps[-1] == EACH:
        return _with_elements(schema, steps[0], operations, wanted)
    place = next(place for place in places(schema) if place.steps == steps[:-1])
    holding = [node for node in place.nodes if steps[-1] in properties_of(node)]
    targets = {id(node) for node in holding} | _alike(schema, steps[-1], holding)

    def copied(node: object) -> object:
        table, array = as_object(node), as_list(node)
        if array is not None:
            return [copied(item) for item in array]
        if table is None:
            return node
        result: Schema = {key: copied(value) for key, value in table.items()}
        if id(node) in targets:
            own = as_object(properties_of(table)[steps[-1]]) or {}
            result["properties"] = {**properties_of(result), steps[-1]: closed_field(own, operations, wanted)}
        return result

    return as_object(copied(schema)) or schema


def _with_elements(schema: Schema, name: str, operations: tuple[str, ...], wanted: frozenset[str]) -> Schema:
    """The list of the root's own whose elements are closed."""
    own = as_object(properties_of(schema)[name]) or {}
    items = as_object(own.get("items"))
    if items is None:
        raise SchemaError(f"the elements of `{name}` have no schema in common")
    closed = {**own, "items": closed_field(items, operations, wanted)}
    return {**schema, "properties": {**properties_of(schema), name: closed}}


def _alike(schema: Schema, name: str, holding: list[Schema]) -> set[int]:
    """Whatever holds the very same field further inside, as a recursive definition does."""
    known = [properties_of(node)[name] for node in holding]
    return {id(node) for _, node in walk(schema) if name in (held := properties_of(node)) and held[name] in known}


def closed_field(own: Schema, operations: tuple[str, ...], wanted: frozenset[str]) -> Schema:
    """A field's schema that takes ``operations`` only; null stays where it was taken."""
    choice = choice_of(own)
    if choice is not None:
        if wanted.isdisjoint(choice.names):
            raise SchemaError("none of the declared operations is one that the schema allows")
        return restricted(own, wanted, keep_null=choice.nullable)
    types = own.get("type")
    listed = [own["const"]] if "const" in own else as_list(own.get("enum"))
    texts = types in (None, "string") or "string" in (as_list(types) or [])
    if not texts or (listed is not None and not any(isinstance(value, str) for value in listed)):
        raise SchemaError("operations can be declared for a text field only")
    branches = as_list(own.get("anyOf")) or as_list(own.get("oneOf")) or []
    nullable = "null" in (as_list(types) or []) or {"type": "null"} in branches
    kept = {key: value for key, value in own.items() if key in ("title", "description", "default")}
    kind: Schema = {"type": ["string", "null"] if nullable else "string"}
    return {**kept, **kind, "enum": [*operations, *([None] if nullable else [])]}
