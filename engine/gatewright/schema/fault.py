"""Faults of the schemas that people write: keywords that nobody checks, and contradictions to a tool's own schema.

Each distinct schema is compiled once. Every contradiction is certain: a keyword for another type, or a place that no
value can fit; patterns and other keywords that only a search could settle count as compatible.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any, Final, cast

from gatewright.base.errors import RawPath, Report, SchemaError, near_miss, shown
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue, canonical_json
from gatewright.base.pattern import IN_FOLDER, folder_fault, folder_of
from gatewright.schema.check import SchemaChecker, check_schema
from gatewright.schema.inline import check_expansion
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

NOT_CHECKED = frozenset({"format", "contentEncoding", "contentMediaType", "contentSchema"})
"""Mere notes in draft 2020-12: a condition that relies on one would hold for every text."""
MAX_FAULTS = 20

Kinds = frozenset[str]
ALL: Final[Kinds] = frozenset({"null", "boolean", "number", "string", "array", "object"})
_UNIONS = ("anyOf", "oneOf")
_MOST_BRANCHES = 32
_DEPTH = 8
_KEYWORDS = {
    "string": "minLength maxLength pattern",
    "number": "minimum maximum exclusiveMinimum exclusiveMaximum multipleOf",
    "array": "items prefixItems additionalItems contains minContains maxContains minItems maxItems uniqueItems "
    "unevaluatedItems",
    "object": "properties patternProperties additionalProperties propertyNames required minProperties maxProperties "
    "dependentRequired dependentSchemas dependencies unevaluatedProperties",
}
KIND_OF: Final = {keyword: kind for kind, words in _KEYWORDS.items() for keyword in words.split()}
_OF_ANY_TYPE = (
    "$schema $id $anchor $ref $defs $comment definitions allOf anyOf oneOf not if then else type enum const "
    "title description default examples deprecated readOnly writeOnly"
)
KEYWORDS = KIND_OF.keys() | set(_OF_ANY_TYPE.split())
"""The type that a keyword speaks of; values of any other type ignore it."""
_BOUNDS = {
    "string": ("minLength", "maxLength"),
    "array": ("minItems", "maxItems"),
    "object": ("minProperties", "maxProperties"),
    "number": ("minimum", "maximum"),
}
_WORDS = {
    "string": "a string",
    "number": "a number",
    "boolean": "true or false",
    "array": "an array",
    "object": "an object",
    "null": "null",
}


@frozen
class Fault:
    """A fault of a schema: its place (``at_key``: the key rather than its value), and the word that was probably meant.

    ``keyword-not-applicable``, ``unknown-field`` and ``no-value-left`` mean that no value can meet the constraint;
    after ``unknown-value`` other values remain.
    """

    pointer: Pointer
    code: str
    message: str
    near: str | None = None
    at_key: bool = False


def contradictions(own: Sequence[object], constraint: object) -> Iterator[Fault]:
    """Yield the parts of ``constraint`` that no value of any schema in ``own`` could meet; one for each cause."""
    yield from _contradictions(list(own), constraint, (), 0)


def is_off(schema: object) -> bool:
    """Tell whether the schema explicitly allows no value."""
    return schema is False or schema == {"not": {}}


def kinds_of(schema: object) -> Kinds:
    """Return the JSON types that a value may have; integers are numbers."""
    table = as_object(schema)
    if table is None:
        return frozenset() if schema is False else ALL
    found = ALL
    for named in _kinds_by_keyword(table):
        found &= named
    for branch in as_list(table.get("allOf")) or ():
        found &= kinds_of(branch)
    for keyword in _UNIONS:
        if (branches := as_list(table.get(keyword))) is not None:
            found &= frozenset[str]().union(*(kinds_of(branch) for branch in branches))
    return found


def kinds_named(table: Schema) -> Kinds:
    """Return the types that `type`, `const` and `enum` of the schema name."""
    return frozenset[str]().union(*_kinds_by_keyword(table))


def is_empty(schemas: Sequence[object], depth: int = 0) -> bool:
    """Tell whether certainly no value fits all of the schemas."""
    if any(map(is_off, schemas)):
        return True
    parts = [part for schema in schemas if (table := as_object(schema)) is not None for part in _conjuncts(table)]
    values = next((found for part in parts if (found := _values(part)) is not None), None)
    if values is not None:
        checkers = [checker for schema in schemas if (checker := _checker(schema)) is not None]
        return not any(all(checker.is_valid(value) for checker in checkers) for value in values)
    kinds = ALL
    for part in parts:
        kinds &= kinds_of(part)
    if all(_is_bound_away(kind, parts, depth) for kind in kinds):
        return True
    return depth < _DEPTH and any(_no_branch_fits(part, parts, depth) for part in parts)


def kind_words(kinds: Kinds) -> str:
    """Write the types in words, for a message."""
    return " or ".join(words for kind, words in _WORDS.items() if kind in kinds) or "nothing"


def _contradictions(own: list[object], constraint: object, at: Pointer, depth: int) -> Iterator[Fault]:
    table = as_object(constraint)
    if not own or table is None or depth > _DEPTH or not all(isinstance(one, dict) for one in own):
        return
    kinds = frozenset[str]().union(*(kinds_of(one) for one in own))
    wrong = [keyword for keyword in table if KIND_OF.get(keyword, "") not in {*kinds, ""}]
    for word in wrong:
        kind = KIND_OF[word]
        keyword = IN_FOLDER if word == "pattern" and folder_of(table[word]) is not None else word
        message = f"`{keyword}` is for {kind}s and the value is {kind_words(kinds)}: it would hold for every one"
        if "array" in kinds and kind in {"string", "number"}:
            message += f"; of its items it is said by `items = {{ {keyword} = ... }}`"
        yield Fault((*at, keyword), "keyword-not-applicable", message, at_key=True)
    below = list(_below(own, table, at, depth))
    yield from below
    if not wrong and not below:
        if table != {"not": {}} and all(is_empty([one, table]) for one in own):
            asked, said = kinds_of(table), "none fits both this and the tool's own schema"
            if kinds.isdisjoint(asked):
                said = f"it is {kind_words(kinds)}, and this asks for {kind_words(asked)}"
            yield Fault(at, "no-value-left", f"no value is left: {said}")
        else:
            yield from _strange_values(own, table, at)


def _below(own: list[object], table: Schema, at: Pointer, depth: int) -> Iterator[Fault]:
    tables = [part for one in own if (held := as_object(one)) is not None for part in _parts(held, 0)]
    for index, branch in enumerate(as_list(table.get("allOf")) or ()):
        yield from _contradictions(own, branch, (*at, "allOf", index), depth + 1)
    if as_object(table.get("items")) is not None:
        items = [part["items"] for part in tables if isinstance(part.get("items"), dict | bool)]
        if not any("prefixItems" in part or as_list(part.get("items")) is not None for part in tables):
            yield from _contradictions(items, table["items"], (*at, "items"), depth + 1)
    known: dict[str, list[object]] = {}
    for part in tables:
        for name, declared in properties_of(part).items():
            known.setdefault(name, []).append(declared)
    is_closed = bool(known) and not any(_is_open(part) for part in tables if "properties" in part)
    for name, held in properties_of(table).items():
        if name in known:
            yield from _contradictions(known[name], held, (*at, "properties", name), depth + 1)
        elif is_closed and held is not False:
            yield _unknown((*at, "properties", name), name, known)
    for index, name in enumerate(names_required(table) if is_closed else ()):
        if name not in known:
            yield _unknown((*at, "required", index), name, known)


def _unknown(at: Pointer, name: str, known: dict[str, list[object]]) -> Fault:
    message = f"there is no field `{name[:80]}` here"
    return Fault(at, "unknown-field", message, near_miss(name, known), at_key=isinstance(at[-1], str))


def _strange_values(own: list[object], table: Schema, at: Pointer) -> Iterator[Fault]:
    """Yield listed values that none of the own schemas accepts, if one of them accepts others in the list."""
    checkers = [checker for one in own if (checker := _checker(one)) is not None]
    listed = as_list(table.get("enum")) if len(checkers) == len(own) else None
    known = [value for one in own for value in _values(as_object(one) or {}) or () if isinstance(value, str)]
    for index, value in enumerate(listed or ()):
        if not any(checker.is_valid(value) for checker in checkers):
            near = near_miss(value, known) if isinstance(value, str) else None
            yield Fault((*at, "enum", index), "unknown-value", "the tool never takes this value", near)


def _parts(table: Schema, depth: int) -> Iterator[Schema]:
    """Yield the schema, the schemas that hold together with it, and its variants."""
    yield table
    if depth < _DEPTH:
        for keyword in ("allOf", *_UNIONS):
            for branch in objects(table.get(keyword)):
                yield from _parts(branch, depth + 1)


def _conjuncts(table: Schema) -> Iterator[Schema]:
    yield table
    for branch in objects(table.get("allOf")):
        yield from _conjuncts(branch)


def _is_open(table: Schema) -> bool:
    return table.get("additionalProperties", True) is not False or "patternProperties" in table or "$ref" in table


def _is_bound_away(kind: str, parts: list[Schema], depth: int) -> bool:
    if kind not in _BOUNDS:
        return False
    least, most = _BOUNDS[kind]
    low = max((part[least] for part in parts if _is_number(part.get(least))), default=None)
    high = min((part[most] for part in parts if _is_number(part.get(most))), default=None)
    if low is not None and high is not None and low > high:
        return True
    if kind == "object" and depth < _DEPTH:
        needed = {name for part in parts for name in names_required(part)}
        held = {name: [p[name] for part in parts if name in (p := properties_of(part))] for name in needed}
        return any(len(schemas) > 1 and is_empty(schemas, depth + 1) for schemas in held.values())
    return False


def _no_branch_fits(part: Schema, parts: list[Schema], depth: int) -> bool:
    others = [one for one in parts if one is not part]
    for keyword in _UNIONS:
        branches = as_list(part.get(keyword))
        few = branches if branches and others and len(branches) <= _MOST_BRANCHES else ()
        if few and all(is_empty([branch, *others], depth + _DEPTH // 2) for branch in few):
            return True
    return False


def _checker(schema: object) -> SchemaChecker | None:
    table = as_object(schema)
    try:
        return None if table is None else SchemaChecker(table)
    except SchemaError:
        return None


def _values(table: Schema) -> list[Any] | None:
    return [table["const"]] if "const" in table else as_list(table.get("enum"))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _kinds_by_keyword(table: Schema) -> Iterator[Kinds]:
    if "type" in table:
        yield frozenset({_kind(name) for name in as_list(table["type"]) or [table["type"]]})
    if (values := _values(table)) is not None:
        yield frozenset({_kind_of_value(value) for value in values})


def _kind(name: object) -> str:
    return "number" if name == "integer" else str(name)


def _kind_of_value(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    return "string" if isinstance(value, str) else "array" if isinstance(value, list) else "object"


def check_json_schema(schema: JsonValue, path: RawPath, report: Report) -> None:
    """Report the faults of ``schema`` (a JSON object or a boolean) at ``path``."""
    if isinstance(schema, bool):
        return
    for fault in faults_of(canonical_json(schema)):
        place = (*path, *fault.pointer)
        report.error(place, fault.code, fault.message, near=fault.near, at_value=not fault.at_key)


@lru_cache(maxsize=8192)
def faults_of(canonical: bytes) -> tuple[Fault, ...]:
    """The faults of the schema with this canonical JSON; empty if the schema can be enforced."""
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
                yield _unknown_keyword(pointer, key, node[key])
    for one in pattern_problems(root):
        yield Fault(one.pointer, one.code, f"{shown(one.pattern)} cannot be checked: {one.message}", at_key=one.at_key)


def _unknown_keyword(pointer: Pointer, key: str, value: object) -> Fault:
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
