"""JSON Schemas in a policy (``when``, ArgumentConstraints): their faults, and the calls that may evade them.

Each distinct schema is compiled once. To find evasive calls, a schema is judged with some parameters known to be absent
and others known to be present: it is then certainly true, certainly false, or open (None). ``properties`` alone says
nothing about a missing field; ``required`` does.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache, reduce
from itertools import islice
from typing import cast

from gatewright.base.errors import RawPath, Report, SchemaError, near_miss, shown
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue, canonical_json
from gatewright.base.pattern import IN_FOLDER, folder_fault
from gatewright.policy.rule import ArgumentConstraints
from gatewright.schema.check import SchemaChecker, check_schema
from gatewright.schema.contradiction import Fault
from gatewright.schema.inline import check_expansion, inline_references
from gatewright.schema.walk import (
    Pointer,
    Schema,
    as_list,
    as_object,
    names_required,
    objects,
    pattern_problems,
    properties_of,
    walk,
)

_CORE = "$schema $id $anchor $ref $defs $comment definitions allOf anyOf oneOf not if then else"
_OBJECT = (
    "properties patternProperties additionalProperties propertyNames required minProperties maxProperties "
    "dependentRequired dependentSchemas dependencies unevaluatedProperties"
)
_ARRAY = (
    "items prefixItems additionalItems contains minContains maxContains minItems maxItems uniqueItems unevaluatedItems"
)
_VALUE = "type enum const minLength maxLength pattern minimum maximum exclusiveMinimum exclusiveMaximum multipleOf"
_NOTE = "title description default examples deprecated readOnly writeOnly"
KEYWORDS = frozenset(f"{_CORE} {_OBJECT} {_ARRAY} {_VALUE} {_NOTE}".split())
NOT_CHECKED = frozenset({"format", "contentEncoding", "contentMediaType", "contentSchema"})
"""Notes in draft 2020-12: a condition that relies on one would hold for every text."""
MAX_FAULTS = 20


def check_schemas(kind: ArgumentConstraints, path: RawPath, report: Report) -> None:
    """Report the faults of the constraints at ``path``; the reader has reported those that are no schema."""
    for name, schema in kind.fields.items():
        if isinstance(schema, dict | bool):
            check_json_schema(schema, (*path, name), report)


def check_json_schema(schema: JsonValue, path: RawPath, report: Report) -> None:
    """Report the faults of ``schema`` (a JSON object or a boolean) at ``path``."""
    if isinstance(schema, bool):
        return
    for fault in faults_of(canonical_json(schema)):
        place = (*path, *fault.pointer)
        report.error(place, fault.code, fault.message, near=fault.near, at_value=not fault.at_key)


@lru_cache(maxsize=8192)
def faults_of(canonical: bytes) -> tuple[Fault, ...]:
    """The faults of the schema with this canonical JSON; empty for an enforceable one."""
    schema = as_object(json.loads(canonical))
    if schema is None:
        return (Fault((), "bad-schema", "a JSON Schema is a table"),)
    found = tuple(islice(_faults(schema), MAX_FAULTS))
    return found or _uncompilable(schema)


def _faults(root: Schema) -> Iterator[Fault]:
    for pointer, node in walk(root):
        for key in node:
            if key in NOT_CHECKED:
                message = f"`{key}` is only a note in JSON Schema and is not checked: say it with `pattern`"
                yield Fault((*pointer, key), "not-checked", message, at_key=True)
            elif key == IN_FOLDER:
                message = folder_fault(node) or "`in_folder` is for ArgumentConstraints: say it with `pattern` here"
                yield Fault((*pointer, key), "bad-value", message)
            elif key not in KEYWORDS and not key.startswith("x-"):
                yield _unknown(pointer, key, node[key])
    for one in pattern_problems(root):
        yield Fault(one.pointer, one.code, f"{shown(one.pattern)} cannot be checked: {one.message}", at_key=one.at_key)


def _unknown(pointer: Pointer, key: str, value: object) -> Fault:
    near = near_miss(key[:64], KEYWORDS)
    message = f"JSON Schema has no keyword {shown(key)}: it would be passed over"
    if near is None and isinstance(value, dict):
        example = f"`{{ properties = {{ {shown(key)[1:-1]} = ... }} }}`"
        message += f"; an argument of that name stands under `properties`: {example}"
    return Fault((*pointer, key), "unknown-keyword", message, near, at_key=True)


def _uncompilable(schema: Schema) -> tuple[Fault, ...]:
    dialect = schema.get("$schema")
    try:
        check_expansion(schema)
    except SchemaError as error:
        return (Fault((), "bad-schema", str(error)),)
    try:
        SchemaChecker(schema)
    except SchemaError as error:
        problems = check_schema(schema)
        found = [Fault(_steps(schema, problem.pointer), "bad-schema", problem.message) for problem in problems]
        return tuple(found) or (Fault((), "bad-schema", str(error)),)
    if dialect is None:
        return ()
    problems = [problem for problem in check_schema(schema) if problem.pointer == "/$schema"]
    return tuple(Fault(("$schema",), "bad-schema", problem.message) for problem in problems)


def _steps(schema: Schema, pointer: str) -> Pointer:
    """The steps of a JSON pointer, with numbers for places in lists."""
    steps: list[str | int] = []
    current: object = schema
    for raw in pointer.split("/")[1:]:
        step = raw.replace("~1", "/").replace("~0", "~")
        as_array, as_map = as_list(current), as_object(current)
        if as_array is not None and step.isdecimal() and int(step) < len(as_array):
            steps.append(int(step))
            current = cast("object", as_array[int(step)])
        else:
            steps.append(step)
            current = as_map.get(step) if as_map is not None else None
    return tuple(steps)


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
"""Keywords whose result is open whatever is known here."""
_UNDEMANDING = frozenset({"properties", "title", "description", "$comment"})
"""A schema with no other keyword at its root holds when its fields are missing."""


@frozen
class Known:
    """The known facts about a call's arguments."""

    absent: frozenset[str]
    present: frozenset[str]

    def without(self, *names: str) -> Known:
        """The same with these absent too."""
        return Known(self.absent.union(names), self.present)


class Condition:
    """One ``when``, with its demands."""

    def __init__(self, when: Mapping[str, object]) -> None:
        schema = dict(when)
        try:
            self._schema: Schema = inline_references(schema)
        except SchemaError:
            self._schema = schema
        self.fields = frozenset(_mentions(self._schema))
        self.holds_without_fields = bool(self.fields) and judge(self._schema, Known(self.fields, frozenset())) is True
        self._demands = not self._schema.keys() <= _UNDEMANDING
        self._escapes: dict[Known, tuple[str, ...]] = {}

    def is_about_given(self, parameters: Iterable[str]) -> bool:
        """It requires every parameter that it mentions: no call can evade it by an omission."""
        return self.fields.intersection(parameters) <= frozenset(names_required(self._schema))

    def escapes(self, parameters: Iterable[str], required: Iterable[str]) -> tuple[str, ...]:
        """The mentioned parameters that a call can omit to evade the condition; several only together."""
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
        """The mentioned fields that are no parameters, if the condition can never hold without them."""
        others = self.fields.difference(parameters) if self._demands else frozenset[str]()
        known = Known(others, self.fields.intersection(required))
        return tuple(sorted(others)) if others and judge(self._schema, known) is False else ()


def judge(schema: object, known: Known) -> Judged:
    """Judge whether an object with these known facts fits ``schema``: True, False, or None if it depends."""
    if isinstance(schema, bool):
        return schema
    node = as_object(schema)
    return None if node is None else _all(_parts(node, known))


def _parts(node: Schema, known: Known) -> Iterator[Judged]:
    kind = node.get("type")
    yield kind is None or kind == "object" or "object" in (as_list(kind) or ())
    yield from (False if name in known.absent else (name in known.present or None) for name in names_required(node))
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


def _mentions(node: Schema) -> Iterator[str]:
    """The names of arguments that the schema mentions, at the root of the arguments only."""
    yield from properties_of(node)
    yield from names_required(node)
    for keyword in ("allOf", "anyOf", "oneOf"):
        for branch in objects(node.get(keyword)):
            yield from _mentions(branch)
    for keyword in ("not", "if", "then", "else"):
        if (branch := as_object(node.get(keyword))) is not None:
            yield from _mentions(branch)
