"""Operations below the root: selector objects, batches, lists of names, unions in a parameter, repeated fields.

A place deeper inside repeats the operation field if it has the field's name and a list of the same operations, or one
of them (as a variant has); or, if the field belongs to the root, some names that look like operations. A call calls
every operation that it names, at whatever depth.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from gatewright.base.frozen import frozen
from gatewright.schema.flat import (
    Candidate,
    field_confidence,
    list_confidence,
    with_required,
    with_restricted_field,
)
from gatewright.schema.operation import (
    EACH,
    EACH_MEMBER,
    Choice,
    Confidence,
    Operation,
    OperationSet,
    Steps,
    choice_of,
    holds_batch,
    path_text,
)
from gatewright.schema.walk import (
    UNIONS,
    Find,
    Schema,
    as_list,
    as_object,
    finder,
    in_place,
    items_of,
    map_children,
    names_required,
    objects,
    properties_of,
    walk,
)

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
    """A field of a place: the schemas that declare it, and the closed list of each.

    If ``name`` is EACH, the place is a list and the field stands for its elements.
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
        """True if the field separates the variants of a union."""
        branches = [b for node in self.place.nodes for key in UNIONS for b in objects(node.get(key))]
        tagged = [b for b in branches if choice_of(properties_of(b).get(self.name))]
        return len(tagged) > 1

    @property
    def description(self) -> str:
        texts = [said.get("description") for node, _ in self.held for said in self.declarations_in(node)]
        return " ".join(text for text in texts if isinstance(text, str))

    @property
    def is_list(self) -> bool:
        """True if the field is every element of a list."""
        return self.name == EACH

    def declarations_in(self, node: Schema) -> list[Schema]:
        """Return the declarations of the field in one schema of the place."""
        return [node, *items_of(node)] if self.is_list else [properties_of(node)[self.name]]


_Reading = tuple[_Field, Confidence | None]


def candidates_below(schema: Schema, field: str | None, seen: frozenset[str]) -> tuple[Candidate, ...]:
    """Return the readings of an inlined schema; ``seen`` are the fields of the root that the other shapes read."""
    found: dict[tuple[str, tuple[str, ...]], list[_Reading]] = {}
    for one in _fields(schema):
        if one.place.steps or one.name not in seen:
            name = one.place.steps[-1] + EACH if one.is_list else one.name
            found.setdefault((name, one.names), []).append((one, _confidence(one)))
    groups = found.values() if field is None else [_field_by_name(rows, field) for rows in found.values()]
    sure: list[list[tuple[_Field, Confidence]]] = [
        [(one, own) for one, own in rows if own is not None] for rows in groups
    ]
    return tuple(_candidate(schema, rows) for rows in sure if rows)


def _field_by_name(rows: list[_Reading], field: str) -> list[_Reading]:
    """Return the named field, and the places that hold the same operations as surely; none if it is missing."""
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
    return field_confidence(one.name, one.names, one.description, holder=holder, is_tag=one.is_tag, is_row=is_row)


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
    by_all = any(one.name in names_required(node) for node in one.place.nodes[:1])
    return by_all or all(one.name in names_required(node) for node, _ in one.held)


def _default(one: _Field) -> str | None:
    given = [] if one.is_list else [properties_of(node)[one.name].get("default") for node, _ in one.held]
    texts = {value for value in given if isinstance(value, str) and value in one.names}
    return next(iter(texts)) if len(texts) == 1 else None


def _operation(schema: Schema, one: _Field, name: str) -> Operation:
    """Return the operation with its parameters: those of the root, and those of the holder as paths."""
    if one.is_list:
        known = [key for key in properties_of(schema) if key != one.place.steps[0]]
        needed = {key for key in known if key in names_required(schema)}
        return Operation(
            name, tuple(filter(needed.__contains__, known)), tuple(key for key in known if key not in needed)
        )
    meant = [node for node, choice in one.held if name in choice.names]
    held = [one.place.nodes[0], *(node for node in meant if node is not one.place.nodes[0])]
    known = [key for node in held for key in properties_of(node) if key != one.name]
    needed = {
        key for key in known if key in names_required(held[0]) or all(key in names_required(node) for node in meant)
    }
    required = tuple(dict.fromkeys(key for key in known if key in needed))
    optional = tuple(dict.fromkeys(key for key in known if key not in needed))
    if not one.place.steps:
        return Operation(name, required, optional)
    root = names_required(schema)
    return Operation(
        name,
        tuple(key for key in properties_of(schema) if key in root),
        tuple(key for key in properties_of(schema) if key not in root),
        inner_required=tuple(path_text((*one.place.steps, key)) for key in required),
        inner_optional=tuple(path_text((*one.place.steps, key)) for key in optional),
    )


def _fields(schema: Schema) -> Iterator[_Field]:
    # recursive without end: where its lists end cannot be known
    goes_on = any("$ref" in node for _, node in walk(schema))
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
    """Return the closed lists of a list at the place, a property of the root; None if it may be no list."""
    if len(place.steps) != 1:
        return []
    held = [(node, items_of(node)) for node in place.nodes]
    if not all(_is_list(node) or any(key in node for key in ("allOf", *UNIONS)) for node, _ in held):
        return []
    read = [(node, choice_of(items[0]) if len(items) == 1 else None) for node, items in held if items]
    closed = [(node, choice) for node, choice in read if choice is not None]
    return closed if len(closed) == len(read) else []


def _is_list(node: Schema) -> bool:
    """Tell whether a schema itself accepts only a list, or null."""
    kinds = node.get("type")
    return kinds in ("array", "null") or ("array" in (named := as_list(kinds) or []) and {*named} <= {"array", "null"})


def places(schema: Schema) -> Iterator[_Place]:
    """Yield every object that the arguments may hold, outermost first; a recursive definition is entered once."""
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
    """Return the schemas of every member of a map, whatever its key; none if the value may be an object with named
    fields.
    """
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
    """Tell whether the schema may hold objects, so that plain parameters can be skipped."""
    return isinstance(schema.get("additionalProperties"), dict) or any(
        key in schema for key in ("properties", "items", "prefixItems", "allOf", "anyOf", "oneOf", "$ref")
    )


_ELEMENTS = ("unevaluatedItems", "contains")
_OTHERS = ("additionalProperties", "unevaluatedProperties")


@dataclass(frozen=True, slots=True, eq=False)
class Repeats:
    """The places where an inlined ``schema`` repeats the operation field of ``found``."""

    schema: Schema
    found: OperationSet
    _applying: dict[int, list[Schema]] = dataclasses.field(default_factory=dict[int, list[Schema]], repr=False)

    def __reduce__(self) -> tuple[type[Repeats], tuple[Schema, OperationSet]]:
        """Copy the object without its cache, whose keys are identities."""
        return Repeats, (self.schema, self.found)

    def calls(self, arguments: Mapping[str, object], *, left_out: bool = True) -> Iterator[str]:
        """Yield every text at such a place, known or not.

        If ``left_out``, a missing field yields its default, or all its names without a default.
        """
        known = frozenset(self.found.places)
        names = _names_of_field(self.found)
        stack: list[tuple[Steps, object, list[Schema]]] = [((), dict(arguments), [self.schema])]
        while stack:
            steps, value, schemas = stack.pop()
            nodes = self._nodes(schemas)
            table, rows = as_object(value), as_list(value)
            if table is not None:
                for name in names:
                    if (*steps, name) not in known:
                        yield from self._at(table, name, nodes, left_out=left_out)
                is_map = any(place[: len(steps) + 1] == (*steps, EACH_MEMBER) for place in known)
                stack += [
                    ((*steps, EACH_MEMBER if is_map else key), inner, below)
                    for key, inner in table.items()
                    if (below := _member_schemas(nodes, key))
                ]
            elif rows is not None:
                below = _elements(nodes)
                stack += [((*steps, EACH), inner, below) for inner in rows if below]

    def _at(self, table: Schema, name: str, nodes: list[Schema], *, left_out: bool) -> Iterator[str]:
        holding = [node for node in nodes if repeats_in(node, name, self.found)]
        if not holding:
            return
        given = table.get(name)
        if isinstance(given, str):
            yield given
            return
        for node in holding:
            own = as_object(properties_of(node)[name]) or {}
            choice, default = choice_of(own), own.get("default")
            if given is not None:
                yield from self.found.names if choice is not None and choice.others else ()  # any of them may be meant
            elif left_out:
                yield from (default,) if isinstance(default, str) else choice.names if choice else ()

    def _nodes(self, schemas: list[Schema]) -> list[Schema]:
        found: dict[int, Schema] = {}
        for schema in schemas:
            if id(schema) not in self._applying:
                self._applying[id(schema)] = in_place(schema, finder(self.schema))
            found |= {id(node): node for node in self._applying[id(schema)]}
        return list(found.values())


def with_repeats(schema: Schema, found: OperationSet) -> OperationSet:
    """Add the deeper places where an inlined ``schema`` repeats the operation field to ``found``, if it has any."""
    if found.is_keyed:
        return found
    names = _names_of_field(found)
    held = [node for _, node in walk(schema) if any(repeats_in(node, name, found) for name in names)]
    if not held:
        return found
    is_recursive = any("$ref" in node for _, node in walk(schema))
    if not is_recursive and not _are_elsewhere(held, schema, found):
        return found
    return dataclasses.replace(found, repeats=Repeats(schema, found))


def _are_elsewhere(held: list[Schema], schema: Schema, found: OperationSet) -> bool:
    """Tell whether one of the schemas that declare the field lies outside its known places."""
    known = {id(node) for node in in_place(schema, finder(schema))} if found.is_flat else set[int]()
    if all(id(node) in known for node in held):
        return False
    holders = {steps[:-1] for steps in found.places}
    known |= {id(node) for place in places(schema) if place.steps in holders for node in place.nodes}
    return any(id(node) not in known for node in held)


def repeats_in(node: Schema, name: str, found: OperationSet) -> bool:
    """Tell whether ``node`` declares the field ``name`` with operations of ``found`` only."""
    own = as_object(properties_of(node).get(name))
    choice = choice_of(own)
    if own is None or choice is None or not frozenset(choice.names) <= frozenset(found.names):
        return False
    if len(choice.names) in (1, len(found.names)):
        return True
    if not found.is_flat:
        return False
    said = own.get("description")
    words = said if isinstance(said, str) else ""
    return field_confidence(name, choice.names, words, holder="", is_tag=False) in {"high", "medium"}


def without_hidden_repeats(schema: Schema, found: OperationSet, allowed: frozenset[str]) -> Schema:
    """Limit ``schema`` to the ``allowed`` operations, wherever it repeats the field."""
    names = _names_of_field(found)

    def change(node: Schema) -> Schema:
        result = map_children(node, change)
        for name in names:
            if repeats_in(result, name, found):
                result = _restrict(result, name, found, allowed)
        return _without_dead_variants(result, names)

    return change(schema)


def _restrict(node: Schema, name: str, found: OperationSet, allowed: frozenset[str]) -> Schema:
    choice = choice_of(properties_of(node)[name])
    if choice is None or (allowed.issuperset(choice.names) and not choice.others):
        return node
    if allowed.isdisjoint(choice.names):
        dead = {**properties_of(node), name: False}
        return {**node, "properties": dead, "required": with_required(node, name)}
    given = (as_object(properties_of(node)[name]) or {}).get("default")
    default = given if isinstance(given, str) and name not in names_required(node) else None
    return with_restricted_field(node, dataclasses.replace(found, field=name, default=default, paths=()), allowed)


def _without_dead_variants(node: Schema, names: frozenset[str]) -> Schema:
    """Drop variants that no value fits any more, unless none would remain."""
    result = node
    for keyword in UNIONS:
        branches = as_list(node.get(keyword)) or []
        alive = [b for b in branches if not any(properties_of(as_object(b) or {}).get(n) is False for n in names)]
        if alive and len(alive) < len(branches):
            result = {**result, keyword: alive}
    return result


def _names_of_field(found: OperationSet) -> frozenset[str]:
    return frozenset(steps[-1] for steps in found.places if steps and steps[-1] != EACH)


def _member_schemas(nodes: list[Schema], key: str) -> list[Schema]:
    """Return the schemas that may apply to the member ``key``; as patterns are not compared, these may be too many."""
    found: list[object] = []
    for node in nodes:
        found.append(properties_of(node).get(key))
        found += (as_object(node.get("patternProperties")) or {}).values()
        found += [node.get(keyword) for keyword in _OTHERS if key not in properties_of(node)]
    return [held for item in found if (held := as_object(item)) is not None]


def _elements(nodes: list[Schema]) -> list[Schema]:
    more = [held for node in nodes for keyword in _ELEMENTS if (held := as_object(node.get(keyword))) is not None]
    return [held for node in nodes for held in items_of(node)] + more
