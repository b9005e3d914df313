"""Which arguments a call may leave out so that a ``when`` no longer matches it. It checks no values.

A schema is judged with some parameters known to be absent and others known to be there: it is then certainly true,
certainly false, or open (None). ``properties`` alone says nothing of a missing field; ``required`` does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import reduce

from gatewright.base.errors import SchemaError
from gatewright.base.frozen import frozen
from gatewright.schema.inline import inline_references
from gatewright.schema.walk import Schema, as_list, as_object, objects, properties_of, required_of

Judged = bool | None
_OPEN = (
    "patternProperties",
    "additionalProperties",
    "propertyNames",
    "minProperties",
    "maxProperties",
    "dependentRequired",
    "dependentSchemas",
    "dependencies",
    "unevaluatedProperties",
    "const",
    "enum",
    "$ref",
)
"""Keywords that may go either way, whatever is known here."""
_UNDEMANDING = frozenset({"properties", "title", "description", "$comment"})
"""A schema with no other keyword at its root holds when its fields are left out."""


@frozen
class Known:
    """What is known of a call's arguments."""

    absent: frozenset[str]
    present: frozenset[str]

    def without(self, *names: str) -> Known:
        """The same with those absent too."""
        return Known(self.absent.union(names), self.present)


class Condition:
    """One ``when``, read for what it demands."""

    def __init__(self, when: Mapping[str, object]) -> None:
        schema = dict(when)
        try:
            self._schema: Schema = inline_references(schema)
        except SchemaError:
            self._schema = schema
        self.fields = frozenset(_mentioned(self._schema))
        self.holds_without_fields = bool(self.fields) and judge(self._schema, Known(self.fields, frozenset())) is True
        self._demands = not self._schema.keys() <= _UNDEMANDING
        self._escapes: dict[Known, tuple[str, ...]] = {}

    def is_about_given(self, parameters: Iterable[str]) -> bool:
        """Whether it says itself that every parameter it speaks of must be given: leaving one out is no way around."""
        return self.fields.intersection(parameters) <= frozenset(required_of(self._schema))

    def escapes(self, parameters: Iterable[str], required: Iterable[str]) -> tuple[str, ...]:
        """The mentioned parameters that a call may leave out and so come past the condition; several only together."""
        if not self._demands:
            return ()
        always = Known(self.fields.difference(parameters), self.fields.intersection(required))
        if always not in self._escapes:
            self._escapes[always] = self._escaping(always)
        return self._escapes[always]

    def _escaping(self, always: Known) -> tuple[str, ...]:
        optional = sorted(self.fields - always.present - always.absent)
        if not optional or judge(self._schema, always) is False:
            return ()
        single = [name for name in optional if judge(self._schema, always.without(name)) is False]
        if single:
            return tuple(single)
        return tuple(optional) if judge(self._schema, always.without(*optional)) is False else ()

    def lacks(self, parameters: Iterable[str], required: Iterable[str]) -> tuple[str, ...]:
        """The mentioned fields that are no parameters, where for want of them the condition never holds."""
        others = self.fields.difference(parameters) if self._demands else frozenset[str]()
        known = Known(others, self.fields.intersection(required))
        return tuple(sorted(others)) if others and judge(self._schema, known) is False else ()


def judge(schema: object, known: Known) -> Judged:
    """Whether an object of which that is known fits ``schema``: True, False, or None when it depends."""
    if isinstance(schema, bool):
        return schema
    node = as_object(schema)
    return None if node is None else _all(_parts(node, known))


def _parts(node: Schema, known: Known) -> Iterator[Judged]:
    kind = node.get("type")
    yield kind is None or kind == "object" or "object" in (as_list(kind) or ())
    yield from (False if name in known.absent else (name in known.present or None) for name in required_of(node))
    for name, schema in properties_of(node).items():
        yield True if name in known.absent or schema is True or schema == {} else _value(schema, name, known)
    for schema in as_list(node.get("allOf")) or ():
        yield judge(schema, known)
    if (branches := as_list(node.get("anyOf"))) is not None:
        yield _any(judge(schema, known) for schema in branches)
    if (branches := as_list(node.get("oneOf"))) is not None:
        yield _one([judge(schema, known) for schema in branches])
    if "not" in node:
        yield _not(judge(node["not"], known))
    if "if" in node:
        yield _conditional(node, known)
    yield from (None for keyword in _OPEN if keyword in node)


def _value(schema: object, name: str, known: Known) -> Judged:
    return False if schema is False and name in known.present else None


def _conditional(node: Schema, known: Known) -> Judged:
    then, otherwise = judge(node.get("then", True), known), judge(node.get("else", True), known)
    test = judge(node["if"], known)
    if test is None:
        return then if then == otherwise else None
    return then if test else otherwise


def _all(parts: Iterable[Judged]) -> Judged:
    return reduce(_and, parts, True)


def _and(one: Judged, other: Judged) -> Judged:
    if one is False or other is False:
        return False
    return True if one and other else None


def _any(parts: Iterable[Judged]) -> Judged:
    return _not(_all(_not(part) for part in parts))


def _one(parts: list[Judged]) -> Judged:
    if parts.count(True) > 1 or (None not in parts and True not in parts):
        return False
    return True if None not in parts else None


def _not(part: Judged) -> Judged:
    return None if part is None else not part


def _mentioned(node: Schema) -> Iterator[str]:
    """The names of arguments that the schema speaks of, at the root of the arguments only."""
    yield from properties_of(node)
    yield from required_of(node)
    for keyword in ("allOf", "anyOf", "oneOf"):
        for branch in objects(node.get(keyword)):
            yield from _mentioned(branch)
    for keyword in ("not", "if", "then", "else"):
        if (branch := as_object(node.get(keyword))) is not None:
            yield from _mentioned(branch)
