"""Contradictions between two schemas: keywords for another type, and places that no value can fit.

Every finding is certain; patterns and other keywords that only a search could settle count as compatible.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from gatewright.base.errors import SchemaError, near_miss
from gatewright.base.frozen import frozen
from gatewright.base.pattern import IN_FOLDER, folder_of
from gatewright.schema.check import SchemaChecker
from gatewright.schema.walk import Pointer, Schema, as_list, as_object, names_required, objects, properties_of

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
    """A fault of a schema, its place (``at_key``: at the key, not its value), and the probably intended word.

    The codes of a constraint that no value could meet are ``keyword-not-applicable``, ``unknown-field`` and
    ``no-value-left``; ``unknown-value`` leaves other values.
    """

    pointer: Pointer
    code: str
    message: str
    near: str | None = None
    at_key: bool = False


def contradictions(own: Sequence[object], constraint: object) -> Iterator[Fault]:
    """Yield the parts of ``constraint`` that no value of any of the schemas ``own`` could meet; one for each cause."""
    yield from _contradictions(list(own), constraint, (), 0)


def is_off(schema: object) -> bool:
    """Tell whether it explicitly allows no value."""
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
    """Tell whether certainly no value fits all of them."""
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
    """Yield listed values that none of the own schemas takes, beside others that one does."""
    checkers = [checker for one in own if (checker := _checker(one)) is not None]
    listed = as_list(table.get("enum")) if len(checkers) == len(own) else None
    known = [value for one in own for value in _values(as_object(one) or {}) or () if isinstance(value, str)]
    for index, value in enumerate(listed or ()):
        if not any(checker.is_valid(value) for checker in checkers):
            near = near_miss(value, known) if isinstance(value, str) else None
            yield Fault((*at, "enum", index), "unknown-value", "the tool never takes this value", near)


def _parts(table: Schema, depth: int) -> Iterator[Schema]:
    """Yield the schema, the schemas that hold beside it, and its variants."""
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
