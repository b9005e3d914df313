"""The operation field once more, further inside: steps that hold steps, maps of commands, a request with its own `op`.

A place repeats the field where it has the same name and a list of the same operations; or one of them, as a variant
has; or, where the field is the root's own, of some that look like operations by themselves. However deep a call nests,
each operation that it names there is called.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from gatewright.schema.fieldpath import EACH, EACH_MEMBER, Steps
from gatewright.schema.operation import OperationSet
from gatewright.schema.shapes.choice import choice_of
from gatewright.schema.shapes.inplace import UNIONS, finder, in_place, items_of
from gatewright.schema.shapes.naming import nested_confidence
from gatewright.schema.shapes.nested import places
from gatewright.schema.shapes.property import with_required, with_restricted_field
from gatewright.schema.walk import Schema, as_list, as_object, map_children, properties_of, required_of, walk

_ELEMENTS = ("unevaluatedItems", "contains")
_OTHERS = ("additionalProperties", "unevaluatedProperties")


@dataclass(frozen=True, slots=True, eq=False)
class Repeats:
    """Where an inlined ``schema`` repeats the field of ``found``."""

    schema: Schema
    found: OperationSet
    _applying: dict[int, list[Schema]] = dataclasses.field(default_factory=dict[int, list[Schema]], repr=False)

    def __reduce__(self) -> tuple[type[Repeats], tuple[Schema, OperationSet]]:
        """A copy finds out anew what applies, since that is kept by identity."""
        return Repeats, (self.schema, self.found)

    def called(self, arguments: Mapping[str, object], *, left_out: bool = True) -> Iterator[str]:
        """Every text at such a place, known or not; where the field is left out there, its default or all its names.

        With ``left_out`` False only what is written.
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
                    if (below := _below(nodes, key))
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
                yield from self.found.names if choice is not None and choice.others else ()  # any may be meant
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
    """``found`` with the further places of an inlined ``schema`` that repeat its field, where there are any."""
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
    """Whether one of the schemas that hold the field is at none of its known places."""
    known = {id(node) for node in in_place(schema, finder(schema))} if found.is_flat else set[int]()
    if all(id(node) in known for node in held):
        return False
    holders = {steps[:-1] for steps in found.places}
    known |= {id(node) for place in places(schema) if place.steps in holders for node in place.nodes}
    return any(id(node) not in known for node in held)


def repeats_in(node: Schema, name: str, found: OperationSet) -> bool:
    """Whether ``node`` declares the field ``name`` with operations of ``found`` only."""
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
    return nested_confidence(name, choice.names, words, holder="", is_tag=False) in {"high", "medium"}


def without_hidden_repeats(schema: Schema, found: OperationSet, allowed: frozenset[str]) -> Schema:
    """``schema`` that takes the ``allowed`` operations only, wherever it repeats the field."""
    names = _names_of_field(found)

    def changed(node: Schema) -> Schema:
        result = map_children(node, changed)
        for name in names:
            if repeats_in(result, name, found):
                result = _restricted(result, name, found, allowed)
        return _without_dead_variants(result, names)

    return changed(schema)


def _restricted(node: Schema, name: str, found: OperationSet, allowed: frozenset[str]) -> Schema:
    choice = choice_of(properties_of(node)[name])
    if choice is None or (allowed.issuperset(choice.names) and not choice.others):
        return node
    if allowed.isdisjoint(choice.names):
        dead = {**properties_of(node), name: False}
        return {**node, "properties": dead, "required": with_required(node, name)}
    given = (as_object(properties_of(node)[name]) or {}).get("default")
    default = given if isinstance(given, str) and name not in required_of(node) else None
    return with_restricted_field(node, dataclasses.replace(found, field=name, default=default, paths=()), allowed)


def _without_dead_variants(node: Schema, names: frozenset[str]) -> Schema:
    """Variants that nothing can be any more go, unless all would."""
    result = node
    for keyword in UNIONS:
        branches = as_list(node.get(keyword)) or []
        alive = [b for b in branches if not any(properties_of(as_object(b) or {}).get(n) is False for n in names)]
        if alive and len(alive) < len(branches):
            result = {**result, keyword: alive}
    return result


def _names_of_field(found: OperationSet) -> frozenset[str]:
    return frozenset(steps[-1] for steps in found.places if steps and steps[-1] != EACH)


def _below(nodes: list[Schema], key: str) -> list[Schema]:
    """What may apply to the member ``key``: patterns are not compared, so that it errs to more."""
    found: list[object] = []
    for node in nodes:
        found.append(properties_of(node).get(key))
        found += (as_object(node.get("patternProperties")) or {}).values()
        found += [node.get(keyword) for keyword in _OTHERS if key not in properties_of(node)]
    return [held for item in found if (held := as_object(item)) is not None]


def _elements(nodes: list[Schema]) -> list[Schema]:
    more = [held for node in nodes for keyword in _ELEMENTS if (held := as_object(node.get(keyword))) is not None]
    return [held for node in nodes for held in items_of(node)] + more
