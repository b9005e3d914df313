"""Schemas of results: joined for several operations, and told to whoever may know some of the operations only."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from typing import cast

from gatewright.schema.walk import Schema, map_children

_PROSE = frozenset({"title", "description", "examples", "default", "$comment"})


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
    """The schema for a model that must not learn of the operations ``hidden``: without its prose where there are any.

    None where a name or a value in it is, or holds as a word, one of them.
    """
    names = [re.escape(name) for name in sorted(hidden) if name]
    if not names:
        return schema
    plain = _without_prose(schema)
    is_named = re.compile(rf"(?<![^\W_])(?:{'|'.join(names)})(?![^\W_])", re.IGNORECASE)
    return None if any(map(is_named.search, _texts(plain))) else plain


def _without_prose(schema: Schema) -> Schema:
    return {key: value for key, value in map_children(schema, _without_prose).items() if key not in _PROSE}


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
