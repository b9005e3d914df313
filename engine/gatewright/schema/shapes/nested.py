"""Operations below the root or in its branches only: selector objects, batches, lists of names, unions in a parameter.

It reads what `property` and `union` do not see; how a schema is filtered there is `reduce`'s business.
"""

from __future__ import annotations

from collections.abc import Iterator

from gatewright.base.frozen import frozen
from gatewright.schema.fieldpath import EACH, EACH_MEMBER, Steps, holds_batch, path_text
from gatewright.schema.operation import Confidence, Operation, OperationSet
from gatewright.schema.shapes.choice import Choice, choice_of
from gatewright.schema.shapes.inplace import UNIONS, Find, finder, in_place, items_of
from gatewright.schema.shapes.naming import list_confidence, nested_confidence
from gatewright.schema.shapes.shape import Candidate
from gatewright.schema.walk import Schema, as_list, as_object, objects, properties_of, required_of, walk

MAX_DEPTH = 6
MAX_PLACES = 500
_SCORES: dict[Confidence, int] = {"declared": 90, "high": 40, "medium": 25, "low": 5}


@frozen
class _Place:
    """An object inside the arguments: its path, and every schema that applies to it."""

    steps: Steps
    nodes: tuple[Schema, ...]


@frozen
class _Field:
    """A field of a place, with the schemas that declare it and the closed list of each.

    ``name`` EACH: the elements of the list that stands at the place, which is no object then.
    """

    place: _Place
    name: str
    held: tuple[tuple[Schema, Choice], ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for _, choice in self.held for name in choice.names))

    @property
    def steps(self) -> Steps:
        return (*self.place.steps, self.name)

    @property
    def is_tag(self) -> bool:
        """Whether the variants of a union are told apart by it."""
        branches = [b for node in self.place.nodes for key in UNIONS for b in objects(node.get(key))]
        tagged = [b for b in branches if choice_of(properties_of(b).get(self.name))]
        return len(tagged) > 1

    @property
    def description(self) -> str:
        texts = [said.get("description") for node, _ in self.held for said in self.declared_in(node)]
        return " ".join(text for text in texts if isinstance(text, str))

    @property
    def is_list(self) -> bool:
        """True where the field is every element of a list."""
        return self.name == EACH

    def declared_in(self, node: Schema) -> list[Schema]:
        """List what a schema of the place says of the field."""
        return [node, *items_of(node)] if self.is_list else [properties_of(node)[self.name]]


_Reading = tuple[_Field, Confidence | None]


def nested_candidates(schema: Schema, field: str | None, seen: frozenset[str]) -> tuple[Candidate, ...]:
    """The readings of an inlined schema; ``seen`` are the fields of the root that the other shapes read."""
    found: dict[tuple[str, tuple[str, ...]], list[_Reading]] = {}
    for one in _fields(schema):
        if one.place.steps or one.name not in seen:
            name = one.place.steps[-1] + EACH if one.is_list else one.name
            found.setdefault((name, one.names), []).append((one, _confidence(one)))
    groups = found.values() if field is None else [_declared(rows, field) for rows in found.values()]
    sure: list[list[tuple[_Field, Confidence]]] = [
        [(one, own) for one, own in rows if own is not None] for rows in groups
    ]
    return tuple(_candidate(schema, rows) for rows in sure if rows)


def _declared(rows: list[_Reading], field: str) -> list[_Reading]:
    """The field that somebody names, and the places that hold the same operations as surely; none without it."""
    named = next(((one, own) for one, own in rows if path_text(one.steps) == field), None)
    if named is None:
        return []
    alike = [one for one, own in rows if one is not named[0] and own is not None and own == named[1]]
    return [(one, "declared") for one in (named[0], *alike)]


def _confidence(one: _Field) -> Confidence | None:
    if one.is_list:
        return list_confidence(one.place.steps[-1], one.names, one.description)
    holder = next((step for step in reversed(one.place.steps) if step not in (EACH, EACH_MEMBER)), "")
    is_row = sum(step in (EACH, EACH_MEMBER) for step in one.place.steps) > 1
    return nested_confidence(one.name, one.names, one.description, holder=holder, is_tag=one.is_tag, is_row=is_row)


def _candidate(schema: Schema, rows: list[tuple[_Field, Confidence]]) -> Candidate:
    held = {own for _, own in rows}
    confidence: Confidence = next(one for one in _SCORES if one in held)
    fields = [one for one, own in rows if own == confidence]
    first = fields[0]
    required = all(one.is_list or _is_required(one) for one in fields)
    defaults = {_default(one) for one in fields}
    default = next(iter(defaults)) if len(defaults) == 1 and not required else None
    found = OperationSet(
        field=path_text(first.steps),
        operations=tuple(_operation(schema, first, name) for name in first.names),
        shape=_shape(first),
        confidence=confidence,
        default=default,
        field_required=required,
        paths=tuple(one.steps for one in fields),
    )
    return Candidate(found, _SCORES[confidence] + 3 * required - len(first.steps))


def _shape(one: _Field) -> str:
    where = "batch" if holds_batch(one.steps) else "nested" if one.place.steps else "branch"
    return f"{where}-{'union' if one.is_tag else 'enum'}"


def _is_required(one: _Field) -> bool:
    by_all = any(one.name in required_of(node) for node in one.place.nodes[:1])
    return by_all or all(one.name in required_of(node) for node, _ in one.held)


def _default(one: _Field) -> str | None:
    given = [] if one.is_list else [properties_of(node)[one.name].get("default") for node, _ in one.held]
    texts = {value for value in given if isinstance(value, str) and value in one.names}
    return next(iter(texts)) if len(texts) == 1 else None


def _operation(schema: Schema, one: _Field, name: str) -> Operation:
    """The parameters of the root, and those of the holder with its path."""
    if one.is_list:
        known = [key for key in properties_of(schema) if key != one.place.steps[0]]
        needed = {key for key in known if key in required_of(schema)}
        return Operation(
            name, tuple(filter(needed.__contains__, known)), tuple(key for key in known if key not in needed)
        )
    meant = [node for node, choice in one.held if name in choice.names]
    held = [one.place.nodes[0], *(node for node in meant if node is not one.place.nodes[0])]
    known = [key for node in held for key in properties_of(node) if key != one.name]
    needed = {key for key in known if key in required_of(held[0]) or all(key in required_of(node) for node in meant)}
    required = tuple(dict.fromkeys(key for key in known if key in needed))
    optional = tuple(dict.fromkeys(key for key in known if key not in needed))
    if not one.place.steps:
        return Operation(name, required, optional)
    root = required_of(schema)
    return Operation(
        name,
        tuple(key for key in properties_of(schema) if key in root),
        tuple(key for key in properties_of(schema) if key not in root),
        inner_required=tuple(path_text((*one.place.steps, key)) for key in required),
        inner_optional=tuple(path_text((*one.place.steps, key)) for key in optional),
    )


def _fields(schema: Schema) -> Iterator[_Field]:
    goes_on = any("$ref" in node for _, node in walk(schema))  # for ever: where lists end in it cannot be told
    for place in places(schema):
        held: dict[str, list[tuple[Schema, Choice]]] = {}
        for node in place.nodes:
            for name, value in properties_of(node).items():
                if (choice := choice_of(value)) is not None:
                    held.setdefault(name, []).append((node, choice))
        for name, rows in held.items():
            yield _Field(place, name, tuple(rows))
        if not goes_on and (lists := _lists(place)):
            yield _Field(place, EACH, tuple(lists))


def _lists(place: _Place) -> list[tuple[Schema, Choice]]:
    """The closed lists of what a list at the place, one of the root's own, may hold.

    None where something else than a list may stand there.
    """
    if len(place.steps) != 1:
        return []
    held = [(node, items_of(node)) for node in place.nodes]
    if not all(_is_list(node) or any(key in node for key in ("allOf", *UNIONS)) for node, _ in held):
        return []
    read = [(node, choice_of(items[0]) if len(items) == 1 else None) for node, items in held if items]
    closed = [(node, choice) for node, choice in read if choice is not None]
    return closed if len(closed) == len(read) else []


def _is_list(node: Schema) -> bool:
    """Tell whether a list, or null, is all that a schema takes, by what it says itself."""
    kinds = node.get("type")
    return kinds in ("array", "null") or ("array" in (named := as_list(kinds) or []) and {*named} <= {"array", "null"})


def places(schema: Schema) -> Iterator[_Place]:
    """Every object that the arguments may hold, outermost first; a recursive definition is entered once."""
    find = finder(schema)
    queue: list[tuple[Steps, tuple[Schema, ...], frozenset[int]]] = [((), (schema,), frozenset())]
    count = 0
    while queue and count < MAX_PLACES:
        steps, roots, seen = queue.pop(0)
        nodes = tuple(node for root in roots for node in in_place(root, find) if id(node) not in seen)
        if not nodes:
            continue
        count += 1
        yield _Place(steps, nodes)
        if len(steps) < MAX_DEPTH:
            inner = seen | {id(node) for node in nodes}
            queue.extend((below, held, inner) for below, held in _below(steps, nodes, find))


def _below(steps: Steps, nodes: tuple[Schema, ...], find: Find) -> list[tuple[Steps, tuple[Schema, ...]]]:
    found: dict[Steps, list[Schema]] = {}
    for node in nodes:
        for name, value in properties_of(node).items():
            if (child := as_object(value)) is not None:
                found.setdefault((*steps, name), []).append(child)
        if items := items_of(node):
            found.setdefault((*steps, EACH), []).extend(items)
    if steps and (members := _members(nodes, find)):
        found[(*steps, EACH_MEMBER)] = members
    return [(below, tuple(held)) for below, held in found.items() if any(map(_may_hold, held))]


def _members(nodes: tuple[Schema, ...], find: Find) -> list[Schema]:
    """What every member of a map is, whatever its key; nothing where the value may be an object with fields instead."""
    maps = [node for node in nodes if isinstance(node.get("additionalProperties"), dict) and not _names_fields(node)]
    if not maps:
        return []
    alternatives = [branch for node in nodes for keyword in UNIONS for branch in objects(node.get(keyword))]
    apart = {id(node): node for branch in alternatives for node in in_place(branch, find)}
    if all(id(node) in apart for node in maps) and any(map(_names_fields, apart.values())):
        return []
    return [node["additionalProperties"] for node in maps]


def _names_fields(node: Schema) -> bool:
    return "properties" in node or "patternProperties" in node


def _may_hold(schema: Schema) -> bool:
    """Whether objects may be in there; spares the many plain parameters."""
    return isinstance(schema.get("additionalProperties"), dict) or any(
        key in schema for key in ("properties", "items", "prefixItems", "allOf", "anyOf", "oneOf", "$ref")
    )
