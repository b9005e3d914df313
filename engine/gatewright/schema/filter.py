"""Reduces a schema to the allowed operations, as the schema offers them or as somebody declares them.

A family of shapes finds the operations; `reduce` removes the hidden ones at every place. Texts and result schemas are
reduced too, so that a model learns nothing of hidden operations.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from typing import cast

from gatewright.base.errors import SchemaError
from gatewright.base.frozen import frozen
from gatewright.schema.flat import PROPERTY_SHAPE, UNION_SHAPE, Candidate, Shape, candidates_by_key, is_operation_name
from gatewright.schema.inline import inline_references
from gatewright.schema.nested import candidates_below, places, with_repeats
from gatewright.schema.operation import EACH, OperationSet, Steps, choice_of, path_text, restrict
from gatewright.schema.prose import bearing_names, clean_text, clean_wording
from gatewright.schema.reduce import reduce
from gatewright.schema.walk import (
    Schema,
    as_list,
    as_object,
    children,
    items_of,
    map_children,
    names_required,
    properties_of,
    walk,
)

ROOT_SHAPES: tuple[Shape, ...] = (UNION_SHAPE, PROPERTY_SHAPE)

__all__ = ["ROOT_SHAPES", "Candidate", "Shape", "candidates_of"]


def candidates_of(schema: Schema, field: str | None) -> list[Candidate]:
    """Return every reading of an inlined schema; ``field`` names the operation field."""
    found = [candidate for shape in ROOT_SHAPES for candidate in shape.find(schema, field)]
    seen = {candidate.found.field for candidate in UNION_SHAPE.find(schema, None)}
    seen |= {name for name, value in properties_of(schema).items() if choice_of(value)}
    return [*found, *candidates_below(schema, field, frozenset(seen)), *candidates_by_key(schema, field)]


def with_declared(schema: Schema, field: str | None, operations: tuple[str, ...]) -> tuple[Schema, str]:
    """Close ``field`` of an inlined schema to the list ``operations``, and return the field's name.

    If the schema lists operations itself, the declared ones narrow that list. Raises SchemaError if the schema lacks
    the field (or, without ``field``, any operation field), or if the field takes no texts.
    """
    steps = _steps(schema, field)
    if (*steps, EACH) in _lists(schema):
        raise SchemaError(f"the operations of a list are declared for its elements, `{path_text((*steps, EACH))}`")
    wanted = frozenset(operations)
    found = _close_field(schema, steps, operations, wanted)
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
    """Return the elements of each list that is a property of the root."""
    return [(name, EACH) for name, value in properties_of(schema).items() if items_of(as_object(value) or {})]


def _close_field(schema: Schema, steps: Steps, operations: tuple[str, ...], wanted: frozenset[str]) -> Schema:
    """Close every declaration of the field along ``steps``, in any branch."""
    if steps[-1] == EACH:
        return _with_elements(schema, steps[0], operations, wanted)
    place = next(place for place in places(schema) if place.steps == steps[:-1])
    holding = [node for node in place.nodes if steps[-1] in properties_of(node)]
    targets = {id(node) for node in holding} | _alike(schema, steps[-1], holding)

    def copy(node: object) -> object:
        table, array = as_object(node), as_list(node)
        if array is not None:
            return [copy(item) for item in array]
        if table is None:
            return node
        result: Schema = {key: copy(value) for key, value in table.items()}
        if id(node) in targets:
            own = as_object(properties_of(table)[steps[-1]]) or {}
            result["properties"] = {**properties_of(result), steps[-1]: close_to(own, operations, wanted)}
        return result

    return as_object(copy(schema)) or schema


def _with_elements(schema: Schema, name: str, operations: tuple[str, ...], wanted: frozenset[str]) -> Schema:
    """Close the elements of a list that is a property of the root."""
    own = as_object(properties_of(schema)[name]) or {}
    items = as_object(own.get("items"))
    if items is None:
        raise SchemaError(f"the elements of `{name}` have no schema in common")
    closed = {**own, "items": close_to(items, operations, wanted)}
    return {**schema, "properties": {**properties_of(schema), name: closed}}


def _alike(schema: Schema, name: str, holding: list[Schema]) -> set[int]:
    """Return schemas deeper inside that hold the same field, as a recursive definition does."""
    known = [properties_of(node)[name] for node in holding]
    return {id(node) for _, node in walk(schema) if name in (held := properties_of(node)) and held[name] in known}


def close_to(own: Schema, operations: tuple[str, ...], wanted: frozenset[str]) -> Schema:
    """Limit a field's schema to ``operations``, and null if it took null."""
    choice = choice_of(own)
    if choice is not None:
        if wanted.isdisjoint(choice.names):
            raise SchemaError("none of the declared operations is one that the schema allows")
        return restrict(own, wanted, keep_null=choice.nullable)
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


def discover_operations(
    schema: Schema, *, field: str | None = None, operations: Iterable[str] | None = None
) -> OperationSet | None:
    """Find the operations of ``schema``; None when nothing in it selects operations.

    ``field`` names the operation field, as a dotted path, and overrides the guess; ``operations`` declares the values
    of a field that takes any text. Raises SchemaError for unresolvable references and for a missing field.
    """
    inlined, readings = _read(schema, field, operations)
    return with_repeats(inlined, readings[0].found) if readings else None


def readings_of(schema: Schema, *, field: str | None, operations: Iterable[str] | None) -> list[Candidate]:
    """Return every reading, the likeliest first."""
    return _read(schema, field, operations)[1]


def _read(schema: Schema, field: str | None, operations: Iterable[str] | None) -> tuple[Schema, list[Candidate]]:
    """Return the schema, inlined and with the declared operations, and its readings."""
    inlined = inline_references(schema)
    if operations is not None:
        inlined, field = with_declared(inlined, field, tuple(dict.fromkeys(operations)))
    return inlined, sorted(candidates_of(inlined, field), key=lambda candidate: -candidate.score)


@frozen
class FilterLint:
    """A fact about a filtered schema, for the operator; ``code`` is stable and kebab-case."""

    code: str
    message: str


@frozen
class FilterResult:
    """A filtered schema (None: no operation is left), and the findings of filtering.

    ``hidden``: the removed operations; ``kept``: names that the schema still needs.
    """

    schema: Schema | None
    lints: tuple[FilterLint, ...] = ()
    operations: OperationSet | None = None
    hidden: frozenset[str] = frozenset()
    kept: frozenset[str] = frozenset()

    def clean(self, text: str) -> str:
        """Clean a text outside the schema, such as the tool's description, in the same way."""
        if not self.hidden or self.operations is None:
            return text
        allowed = frozenset(self.operations.names) - self.hidden
        return clean_text(text, self.hidden, self.kept, operations=allowed)


def filter_operations(
    schema: Schema, allowed: Iterable[str], *, field: str | None = None, operations: Iterable[str] | None = None
) -> Schema | None:
    """Reduce ``schema`` to the ``allowed`` operations: the same object for all of them, None for none.

    ``field`` names the operation field (a dotted path); ``operations`` declares the values of a field that takes any
    text; they appear as a closed list even if all are allowed. The input stays unchanged. Raises SchemaError when the
    schema offers no operations.
    """
    return filter_with_lints(schema, allowed, field=field, operations=operations).schema


def filter_with_lints(
    schema: Schema,
    allowed: Iterable[str],
    *,
    field: str | None = None,
    operations: Iterable[str] | None = None,
    found: OperationSet | None = None,
) -> FilterResult:
    """Filter like `filter_operations`, and also return lints and the names that other texts must lose.

    ``found``: the earlier result of `discover_operations`, if any.
    """
    declared = None if operations is None else tuple(dict.fromkeys(operations))
    source = schema
    if declared is not None:
        source, field = with_declared(inline_references(schema), field, declared)
    found = found or discover_operations(source, field=field)
    if found is None:
        where = f" at `{field}`" if field else ""
        raise SchemaError(f"the schema offers no operations{where}")
    given = frozenset(allowed)
    wanted = given & frozenset(found.names)
    lints = tuple(
        FilterLint("unknown-operation", f"`{name}` is no operation of `{found.field}`")
        for name in sorted(given - wanted)
    )
    undeclared = _names_to_hide(schema, field) - frozenset(declared) if declared is not None else frozenset[str]()
    hidden = (frozenset(found.names) - wanted) | undeclared
    if not hidden:
        return FilterResult(schema if declared is None else source, lints, found)
    if not wanted:
        return FilterResult(None, lints, found, hidden)
    shaped = reduce_schema(source, found, wanted)
    kept = bearing_names(shaped) | wanted
    cleaned = clean_wording(shaped, found, hidden, kept)
    notes = [*lints, *_lints(cleaned, found, hidden & kept)]
    return FilterResult(_without_draft_name(cleaned, hidden - kept), tuple(notes), found, hidden, kept)


def reduce_schema(schema: Schema, found: OperationSet, wanted: frozenset[str]) -> Schema:
    """Reduce the structure of ``schema`` to the operations ``wanted``; its texts stay as they are."""
    return without_unused_definitions(reduce(inline_references(schema), found, wanted))


def _names_to_hide(schema: Schema, field: str | None) -> frozenset[str]:
    """Return the names that the schema itself lists at the declared field: besides these, only declared names may
    appear.
    """
    found = discover_operations(schema, field=field)
    return frozenset(found.names) if found else frozenset()


def _lints(schema: Schema, found: OperationSet, borne: frozenset[str]) -> list[FilterLint]:
    notes = [FilterLint("kept-word", f"`{name}` stays since something allowed bears it") for name in sorted(borne)]
    if found.confidence == "low":
        notes.append(FilterLint("uncertain-field", f"`{found.field}` may be an ordinary parameter"))
    if schema.get("additionalProperties") is True:
        notes.append(FilterLint("open-properties", "the schema accepts parameters that it does not name"))
    return notes


def without_unused_definitions(schema: Schema) -> Schema:
    """Drop the `$defs` that no reference needs any more."""
    names = [keyword for keyword in ("$defs", "definitions") if keyword in schema]
    if not names:
        return schema
    used: set[tuple[str, str]] = set()
    stack = [child for step, child in children(schema) if step[0] not in names] + [{"$ref": schema.get("$ref")}]
    while stack:
        for _, node in walk(stack.pop()):
            target = _definition(node.get("$ref"))
            if target is not None and target not in used:
                used.add(target)
                held = as_object((as_object(schema.get(target[0])) or {}).get(target[1]))
                stack.extend([held] if held is not None else [])
    result = {key: value for key, value in schema.items() if key not in names}
    for keyword in names:
        rest = {name: value for name, value in (as_object(schema[keyword]) or {}).items() if (keyword, name) in used}
        result |= {keyword: rest} if rest else {}
    return result


def _definition(reference: object) -> tuple[str, str] | None:
    """Return keyword and name of the definition that a reference within the document leads to."""
    parts = reference.split("/") if isinstance(reference, str) else []
    if len(parts) < 3:
        return None
    return parts[1], parts[2].replace("%25", "%").replace("~1", "/").replace("~0", "~")


_DRAFT_BOUND = frozenset({"additionalItems", "dependencies", "$recursiveRef", "id", "$ref", "definitions"})


def _without_draft_name(schema: Schema, hidden: frozenset[str]) -> Schema:
    """Drop `$schema` if its address happens to hold a hidden name and the schema means the same without it."""
    address = schema.get("$schema")
    tokens = re.findall(r"\w+", address) if isinstance(address, str) else []
    if hidden.isdisjoint(tokens):
        return schema
    bound = any(_DRAFT_BOUND & node.keys() or isinstance(node.get("items"), list) for _, node in walk(schema))
    return schema if bound else {key: value for key, value in schema.items() if key != "$schema"}


_PROSE = frozenset({"title", "description", "examples", "default", "$comment"})
_SAID = frozenset({"enum", "const", "pattern", "format"})
_NARROWING = frozenset(
    {"not", "if", "contains", "patternProperties", "propertyNames", "dependencies", "$dynamicRef"}
) | {
    "dependentSchemas",
    "dependentRequired",
    "unevaluatedProperties",
    "unevaluatedItems",
}
"""Keywords under which a looser part would tighten the whole, or from which a name cannot be taken out alone."""


def any_of_outputs(schemas: Iterable[Schema]) -> Schema:
    """Return the schema of a result that fits at least one of ``schemas``."""
    different: list[Schema] = []
    for schema in schemas:
        if schema not in different:
            different.append(schema)
    if len(different) == 1:
        return different[0]
    root: Schema = {"type": "object"} if all(one.get("type") == "object" for one in different) else {}
    return {**root, "anyOf": different}


def output_without(schema: Schema, hidden: Collection[str]) -> Schema | None:
    """Loosen a result schema for a model that must not learn of the operations ``hidden``.

    The result accepts all that ``schema`` accepts, without any sentence, field, value or pattern that equals a hidden
    name or holds one as a word. It is None if such a name cannot be taken out of its place.
    """
    names = [re.escape(name) for name in sorted(hidden) if name]
    if not names:
        return schema
    is_named = re.compile(rf"(?<![^\W_])(?:{'|'.join(names)})(?![^\W_])", re.IGNORECASE)
    plain = _without(schema, _PROSE, is_named)
    if not _names(plain, is_named):
        return plain
    if any(_NARROWING & node.keys() or node.keys() >= {"anyOf", "oneOf"} for _, node in walk(plain)):
        return None
    less = _saying_less(_without(plain, _SAID, is_named), is_named)
    return None if _names(less, is_named) else less


def _saying_less(schema: Schema, is_named: re.Pattern[str]) -> Schema:
    """Drop the fields that name something hidden, so that the schema accepts more, never less."""
    made = map_children(schema, lambda child: _saying_less(child, is_named))
    fields = properties_of(made)
    kept = {name: field for name, field in fields.items() if is_named.search(name) is None}
    if len(kept) < len(fields):
        made = {key: value for key, value in made.items() if key != "additionalProperties"} | {"properties": kept}
    if "required" in made:
        made = made | {"required": [name for name in names_required(made) if is_named.search(name) is None]}
    if "oneOf" in made:
        made = {key: value for key, value in made.items() if key != "oneOf"} | {"anyOf": made["oneOf"]}
    return made


def _without(schema: Schema, keywords: frozenset[str], is_named: re.Pattern[str]) -> Schema:
    """Drop each of the keywords that names something hidden, at every place."""
    made = map_children(schema, lambda child: _without(child, keywords, is_named))
    return {key: held for key, held in made.items() if key not in keywords or not _names(held, is_named)}


def _names(value: object, is_named: re.Pattern[str]) -> bool:
    return any(map(is_named.search, _texts(value)))


def _texts(value: object) -> Iterator[str]:
    stack = [value]
    while stack:
        one = stack.pop()
        if isinstance(one, str):
            yield one
        elif isinstance(one, dict):
            table = cast("dict[str, object]", one)
            yield from table
            stack += table.values()
        elif isinstance(one, list):
            stack += cast("list[object]", one)
