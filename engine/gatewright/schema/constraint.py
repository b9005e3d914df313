"""A constraint on an argument as it is meant: references inlined, and every type closed of which it says nothing.

To JSON Schema a `pattern` says nothing of a list, so every list meets it. A constraint speaks of the types that its
keywords are for and of those that it names (`type`, `const`, `enum`); its branches, and the places inside, each of
their own. What comes out takes nothing that the constraint as written does not take.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any, Final, Literal, cast

from gatewright.base.errors import SchemaError
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import canonical_json
from gatewright.schema.combine import own_words
from gatewright.schema.contradiction import ALL, KIND_OF, Kinds, kinds_named
from gatewright.schema.inline import inline_references
from gatewright.schema.shapes.inplace import UNIONS, finder
from gatewright.schema.walk import Schema, as_list, as_object, definition, map_children

Way = Literal["asked", "part", "refused", "refused part", "raw"]
"""How a schema stands in a constraint: a value must fit it, by itself or together with what stands beside it, or must
not fit it; raw: fitting it only decides what else is asked."""

_NONE: Final[Kinds] = frozenset()
_NULL: Final[Kinds] = frozenset({"null"})
_BESIDE = frozenset({"allOf", "dependentSchemas", "dependencies"})
_TESTS = frozenset({"if", "propertyNames"})


def closed_constraint(constraint: object) -> Schema:
    """The schema that a constraint (a JSON Schema, true or false) comes to. Raises SchemaError."""
    if isinstance(constraint, bool):
        return {} if constraint else {"not": {}}
    if as_object(constraint) is None:
        raise SchemaError("a constraint must be a JSON Schema")
    try:
        return _closed(canonical_json(constraint))
    except (ValueError, TypeError, RecursionError) as error:
        raise SchemaError(f"the constraint is no JSON: {error}") from None


@lru_cache(maxsize=8192)
def _closed(canonical: bytes) -> Schema:
    return _Closing(inline_references(cast("Schema", json.loads(canonical)))).result()


@frozen
class _Said:
    """The types that a schema speaks of; ``rest``: those that it leaves where it only says what a value is not."""

    kinds: Kinds = _NONE
    rest: Kinds = ALL

    @property
    def all(self) -> Kinds:
        return self.kinds or (_NONE if self.rest == ALL else self.rest)


class _Closing:
    """One constraint, inlined; a recursive definition is written once for each way in which it stands."""

    def __init__(self, root: Schema) -> None:
        self._root = root
        self._find = finder(root)
        self._names: dict[tuple[str, Way], str] = {}
        self._left: list[tuple[str, Way]] = []
        self._known: dict[int, tuple[Schema, _Said]] = {}

    def result(self) -> Schema:
        closed = self._turned(_without_definitions(self._root), "asked")
        made: Schema = {}
        while self._left:
            reference, way = self._left.pop()
            target = self._find(reference)
            made[self._names[reference, way]] = (
                {} if target is None else self._turned(_without_definitions(target), way)
            )
        return {**closed, "$defs": made} if made else closed

    def _turned(self, node: Schema, way: Way) -> Schema:
        result: Schema = {}
        for keyword, value in node.items():
            inner = _way_inside(keyword, way, counts="maxContains" in node)
            result |= map_children({keyword: value}, lambda child, inner=inner: self._turned(child, inner))
        if "oneOf" in node and way in {"asked", "part"}:
            # Fewer branches fit a value when they are closed: exactly one as written, and one that is closed
            closed = [self._turned(one, "asked") if as_object(one) is not None else one for one in node["oneOf"]]
            if closed != result["oneOf"]:
                result["allOf"] = [*(as_list(result.get("allOf")) or []), {"anyOf": closed}]
        if isinstance(reference := node.get("$ref"), str):
            result["$ref"] = self._reference(reference, way)
        kinds = self._said(node).kinds
        if not kinds or kinds == ALL:
            return result
        if way == "asked" and {"type", "const", "enum"}.isdisjoint(node) and not own_words(node).keys() <= {*UNIONS}:
            return {"type": _type_of(kinds), **result}
        if way == "refused" and kinds != _NULL and not _is_type_alone(node):
            return {"anyOf": [result, {"not": {"type": _type_of(kinds)}}]}
        return result

    def _reference(self, reference: str, way: Way) -> str:
        if (reference, way) not in self._names:
            name = f"{reference.rsplit('/', 1)[-1].strip('#') or 'constraint'}_{way.replace(' ', '_')}"
            while name in self._names.values():
                name += "_"
            self._names[reference, way] = name
            self._left.append((reference, way))
        return definition(self._names[reference, way])

    def _said(self, node: object) -> _Said:
        table = as_object(node)
        if table is None:
            return _Said()
        if id(table) not in self._known:
            self._known[id(table)] = table, _Said()  # what refers back to itself adds nothing
            self._known[id(table)] = table, self._said_by(table)
        return self._known[id(table)][1]

    def _said_by(self, table: Schema) -> _Said:
        kinds: Kinds = kinds_named(table) | {kind for word in table if (kind := KIND_OF.get(word)) is not None}
        rest = ALL
        beside: list[object] = [*(as_list(table.get("allOf")) or ())]
        if isinstance(reference := table.get("$ref"), str):
            beside.append(self._find(reference))
        for said in map(self._said, beside):
            kinds, rest = kinds | said.kinds, rest & said.rest
        branches = [one for keyword in UNIONS for one in as_list(table.get(keyword)) or ()]
        for one in (*branches, *(table.get(keyword) for keyword in ("if", "then", "else"))):
            kinds |= self._said(one).all
        if (refused := as_object(table.get("not"))) is not None:
            said = self._said(refused).all
            if _is_type_alone(refused) or said == _NULL:
                rest -= said
            else:
                kinds |= said
        return _Said(kinds, rest)


def _way_inside(keyword: str, way: Way, *, counts: bool) -> Way:
    """How the schemas under a keyword stand; ``counts``: how many items fit `contains` is bounded from above."""
    if way == "raw" or keyword in _TESTS:
        return "raw"
    if way in {"asked", "part"}:
        if keyword == "oneOf" or (keyword == "contains" and counts):
            return "raw"
        return "refused part" if keyword == "not" else "part" if keyword in _BESIDE else "asked"
    if keyword in {"oneOf", "contains"}:
        return "raw"
    if keyword == "not":
        return "part"
    return "refused part" if keyword in {*_BESIDE, "anyOf", "then", "else"} else "refused"


def _is_type_alone(schema: Schema) -> bool:
    return own_words(schema).keys() == {"type"}


def _type_of(kinds: Kinds) -> Any:
    names = sorted(kinds)
    return names[0] if len(names) == 1 else names


def _without_definitions(schema: Schema) -> Schema:
    return {key: value for key, value in schema.items() if key not in {"$defs", "definitions"}}
