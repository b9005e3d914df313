"""Schemas of results: joined for several operations, and told to whoever may know some of the operations only."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from typing import cast

from gatewright.schema.walk import Schema, map_children, properties_of, required_of, walk

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
"""Places where a part that says less lets the whole say more, or a name cannot be left out by itself."""


def joined_outputs(schemas: Iterable[Schema]) -> Schema:
    """The schema of a result that fits one of ``schemas`` at least."""
    different: list[Schema] = []
    for schema in schemas:
        if schema not in different:
            different.append(schema)
    if len(different) == 1:
        return different[0]
    root: Schema = {"type": "object"} if all(one.get("type") == "object" for one in different) else {}
    return {**root, "anyOf": different}


def told_output(schema: Schema, hidden: Collection[str]) -> Schema | None:
    """The schema for a model that must not learn of the operations ``hidden``; what fits ``schema`` fits it too.

    It says less: no sentence, field, value or pattern that is, or holds as a word, the name of one. None where such a
    name stands in a place that cannot be left out.
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
    """The schema without the fields that name something; it takes more than before, never less."""
    made = map_children(schema, lambda child: _saying_less(child, is_named))
    fields = properties_of(made)
    kept = {name: field for name, field in fields.items() if is_named.search(name) is None}
    if len(kept) < len(fields):
        made = {key: value for key, value in made.items() if key != "additionalProperties"} | {"properties": kept}
    if "required" in made:
        made = made | {"required": [name for name in required_of(made) if is_named.search(name) is None]}
    if "oneOf" in made:
        made = {key: value for key, value in made.items() if key != "oneOf"} | {"anyOf": made["oneOf"]}
    return made


def _without(schema: Schema, keywords: frozenset[str], is_named: re.Pattern[str]) -> Schema:
    """The schema without those of the keywords that name something, wherever they stand."""
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
