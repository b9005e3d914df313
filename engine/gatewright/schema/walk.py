"""A JSON Schema as a tree: its inner schemas, its draft, and the validator that checks values against it.

The tables are those of drafts 7 and 2020-12 together: https://json-schema.org/draft/2020-12/json-schema-core section 10
and https://json-schema.org/draft-07/json-schema-validation. The walk never enters data (`enum`, `const`, `default`,
`examples`).

All of Gatewright compiles schemas here, with one set of options, which bounds the size of a compiled pattern. A long
repetition of one class of characters, such as `^[a-z ]{1,4000}$`, becomes `^[a-z ]*$` with limits for the length, which
accepts exactly the same texts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, cast

import jsonschema_rs

from gatewright.base.errors import SchemaError
from gatewright.base.frozen import frozen

Schema = dict[str, Any]
Pointer = tuple[str | int, ...]

MAPS = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"})
LISTS = frozenset({"allOf", "anyOf", "oneOf", "prefixItems", "items"})
SINGLES = frozenset(
    {
        "additionalItems",
        "additionalProperties",
        "contains",
        "contentSchema",
        "else",
        "if",
        "items",
        "not",
        "propertyNames",
        "then",
        "unevaluatedItems",
        "unevaluatedProperties",
    }
)
_HOLDERS = MAPS | LISTS | SINGLES


def as_object(value: object) -> Schema | None:
    """Return ``value`` if it is a JSON object, else None."""
    return cast("Schema", value) if isinstance(value, dict) else None


def as_list(value: object) -> list[Any] | None:
    """Return ``value`` if it is a JSON array, else None."""
    return cast("list[Any]", value) if isinstance(value, list) else None


def objects(value: object) -> list[Schema]:
    """Return the JSON objects in a JSON array; empty for anything else."""
    return [item for item in map(as_object, as_list(value) or []) if item is not None]


def properties_of(schema: Schema) -> Schema:
    """Return the ``properties`` map, empty without one."""
    return as_object(schema.get("properties")) or {}


def names_required(schema: Schema) -> tuple[str, ...]:
    """Return the names under ``required``."""
    return tuple(name for name in as_list(schema.get("required")) or [] if isinstance(name, str))


def children(schema: Schema) -> Iterator[tuple[Pointer, Schema]]:
    """Yield each schema directly inside ``schema``, with its pointer from there."""
    for keyword, value in schema.items():
        if keyword in _HOLDERS:
            yield from _inner(keyword, value)


def _inner(keyword: str, value: object) -> list[tuple[Pointer, Schema]]:
    if isinstance(value, dict):
        if keyword in MAPS:
            table = cast("Schema", value)
            return [((keyword, name), item) for name, item in table.items() if isinstance(item, dict)]
        return [((keyword,), cast("Schema", value))] if keyword in SINGLES else []
    if isinstance(value, list) and keyword in LISTS:
        array = cast("list[Any]", value)
        return [((keyword, index), item) for index, item in enumerate(array) if isinstance(item, dict)]
    return []


def walk(schema: Schema, pointer: Pointer = ()) -> Iterator[tuple[Pointer, Schema]]:
    """Yield ``schema`` and every schema inside it, outermost first, without recursion."""
    stack = [(pointer, schema)]
    while stack:
        place, current = stack.pop()
        yield place, current
        for keyword, value in current.items():
            if keyword in _HOLDERS:
                stack += [(place + step, child) for step, child in _inner(keyword, value)]


def map_children(schema: Schema, change: Callable[[Schema], Any]) -> Schema:
    """Copy ``schema`` with each direct sub-schema changed by ``change``; the rest is shared."""

    def change_item(item: Any) -> Any:
        child = as_object(item)
        return item if child is None else change(child)

    result: Schema = {}
    for keyword, value in schema.items():
        if keyword not in _HOLDERS:
            result[keyword] = value
            continue
        as_map, as_array = as_object(value), as_list(value)
        if keyword in MAPS and as_map is not None:
            result[keyword] = {name: change_item(item) for name, item in as_map.items()}
        elif keyword in LISTS and as_array is not None:
            result[keyword] = [change_item(item) for item in as_array]
        elif keyword in SINGLES and as_map is not None:
            result[keyword] = change(as_map)
        else:
            result[keyword] = value
    return result


def definition(name: str) -> str:
    """Return the reference to a definition of that name."""
    return "#/$defs/" + name.replace("~", "~0").replace("/", "~1").replace("%", "%25")


def pointer_text(pointer: Pointer) -> str:
    """Write a pointer as RFC 6901 text; the empty text is the whole value."""
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in pointer)


_OLD_ONLY = frozenset({"additionalItems", "dependencies"})
NEW_ONLY = frozenset(
    {"prefixItems", "dependentRequired", "dependentSchemas", "unevaluatedProperties", "unevaluatedItems"}
    | {"minContains", "maxContains", "$dynamicRef", "$recursiveRef"}
)
"""Keywords without a meaning in draft 7."""


def is_draft_7(schema: Schema) -> bool:
    """Tell whether ``schema`` names draft 7."""
    return "draft-07" in str(schema.get("$schema", ""))


def at_one_draft(schema: Schema, added: Schema) -> tuple[Schema, Schema]:
    """Bring two schemas to one draft, if possible that of ``schema``; ``added`` comes back without a draft.

    Raises SchemaError if each uses words unknown to the other's draft.
    """
    bare = {key: value for key, value in added.items() if key != "$schema"}
    if is_draft_7(schema) == is_draft_7(added) or _means_the_same(bare):
        return schema, bare
    if _means_the_same(schema):
        address = added.get("$schema", "https://json-schema.org/draft/2020-12/schema")
        return {**schema, "$schema": address}, bare
    raise SchemaError("a constraint is written in another draft than the tool's schema, and neither fits the other")


def _means_the_same(schema: Schema) -> bool:
    """Tell whether ``schema`` means the same in both drafts."""
    for _, node in walk(schema):
        if (NEW_ONLY | _OLD_ONLY) & node.keys() or isinstance(node.get("items"), list):
            return False
        if "$ref" in node and node.keys() - {"$ref", "$schema", "$defs", "definitions", "title", "description"}:
            return False
    return True


Find = Callable[[str], Schema | None]
"""Returns the target of a reference, or None."""

UNIONS = ("anyOf", "oneOf")
_BRANCHING = frozenset({"$ref", "allOf", *UNIONS, "if", "then", "else", "dependentSchemas"})
_HOLDING_ITEMS = frozenset({"items", "prefixItems", "additionalItems"})


def finder(root: Schema) -> Find:
    """Return the function that finds the targets of references in an inlined schema: `#` and its definitions."""

    def find(reference: str) -> Schema | None:
        if reference == "#":
            return root
        name = reference.removeprefix("#/$defs/").replace("%25", "%").replace("~1", "/").replace("~0", "~")
        return as_object((as_object(root.get("$defs")) or {}).get(name))

    return find


def target_of(node: Schema, find: Find | None) -> Schema | None:
    """Return the target of the reference in ``node``, if it has one."""
    reference = node.get("$ref")
    return find(reference) if find and isinstance(reference, str) else None


def in_place(schema: Schema, find: Find | None = None, *, tests: bool = True) -> list[Schema]:
    """Return ``schema``, then every schema that applies to the same value, each reference followed once.

    ``tests``: also the schema of an `if`, which the value need not fit.
    """
    conditional = ("if", "then", "else") if tests else ("then", "else")
    found: list[Schema] = []
    stack = [schema]
    seen: set[int] = set()
    while stack:
        node = stack.pop(0)
        if id(node) in seen:
            continue
        seen.add(id(node))
        found.append(node)
        if _BRANCHING.isdisjoint(node):
            continue
        target = target_of(node, find)
        stack.extend([target] if target is not None else [])
        for keyword in ("allOf", *UNIONS):
            stack.extend(objects(node.get(keyword)))
        stack.extend(branch for keyword in conditional if (branch := as_object(node.get(keyword))))
        stack.extend(objects(list((as_object(node.get("dependentSchemas")) or {}).values())))
    return found


def items_of(schema: Schema) -> list[Schema]:
    """Return the schemas for the elements of an array."""
    if _HOLDING_ITEMS.isdisjoint(schema):
        return []
    own = as_object(schema.get("items"))
    lists = [*(as_list(schema.get("items")) or []), *(as_list(schema.get("prefixItems")) or [])]
    rest = as_object(schema.get("additionalItems"))
    return [*([own] if own else []), *objects(lists), *([rest] if rest else [])]


_PATTERNS = jsonschema_rs.RegexOptions(size_limit=1_000_000, dfa_size_limit=1_000_000)


CHECKED_FORMATS = frozenset({"date-time", "date", "email", "uri", "uuid", "ipv4", "ipv6"})
"""The kinds of `format` that can be checked; any other is a note."""
_NEWEST = "https://json-schema.org/draft/2020-12/schema"
_IS_UUID = jsonschema_rs.validator_for({"$schema": _NEWEST, "format": "uuid"}, validate_formats=True).is_valid
# the very first check looks up types behind a lock: at import time nobody else runs, and no fork can happen
_IS_UUID("")


def compile_schema(schema: Schema, *, check_formats: bool = False) -> jsonschema_rs.Validator:
    """Compile the validator of ``schema``; it fetches nothing and runs patterns in linear time. Raises ValueError.

    ``check_formats``: check each `format` that the validator knows; else all are notes.
    """
    return jsonschema_rs.validator_for(
        schema,
        pattern_options=_PATTERNS,
        offline=True,
        mask="value",
        validate_formats=check_formats,
        formats={"uuid": _IS_UUID} if check_formats else None,  # draft 7 does not know this keyword
    )


_ATOM = r"(?:\.|\[\^?(?:\\.|[^\[\]\\])+\]|\\[dDwWsS]|\\[pP]\{\w+(?:=\w+)?\}|[A-Za-z0-9 _:/@#%=-])"
_TOKEN = re.compile(rf"({_ATOM}|\((?:\?:)?{_ATOM}\))(\{{\d{{1,6}}(?:,\d{{0,6}})?\}}|[*+?])?")
_ESCAPED_OR_CLASS = re.compile(r"\\[^1-9k]|\[\^?\]?(?:\\.|[^\]\\])*(?:\]|$)", re.DOTALL)
_FEW = 65
"""The number of repetitions from which an atom is worth a length of its own."""
_COUNT = re.compile(r"\{\d+(,\d*)?\}")


@frozen
class PatternProblem:
    """A pattern that cannot run: its place (``at_key``: it is a key), and code and words for the reason."""

    pointer: Pointer
    pattern: str
    code: str
    message: str
    at_key: bool = False


def pattern_problems(root: Schema) -> Iterator[PatternProblem]:
    """Yield every pattern in the schema that cannot be checked."""
    for pointer, node in walk(root):
        if isinstance(pattern := node.get("pattern"), str) and (fault := pattern_fault(pattern)):
            yield PatternProblem((*pointer, "pattern"), pattern, *fault)
        for key in as_object(node.get("patternProperties")) or {}:
            if fault := pattern_fault(key, as_key=True):
                yield PatternProblem((*pointer, "patternProperties", key), key, *fault, at_key=True)


@lru_cache(maxsize=4096)
def pattern_fault(pattern: str, *, as_key: bool = False) -> tuple[str, str] | None:
    """Return code and words if the pattern cannot run, else None; ``as_key``: no length can stand beside it."""
    if _compiles(pattern) or (not as_key and _with_length(pattern) is not None):
        return None
    bare = _ESCAPED_OR_CLASS.sub("", pattern)
    if re.search(r"\(\?<?[=!]", bare):
        return "pattern-not-linear", "it uses look-around, which cannot run in linear time"
    if re.search(r"\\[1-9k]", bare):
        return "pattern-not-linear", "it uses a back-reference, which cannot run in linear time"
    if _compiles(_COUNT.sub("{1}", pattern)):
        return "pattern-not-linear", "its repetitions are too long: it grows beyond what may run"
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError):
        return "bad-pattern", "it is no regular expression"
    return "pattern-not-linear", "it is too large, or written in a way that the linear engine does not know"


def with_lengths(schema: Schema) -> Schema:
    """Replace long repetitions by lengths if the validator needs that; else return the same object."""
    needy = any(
        isinstance(pattern := node.get("pattern"), str) and not _compiles(pattern) and _with_length(pattern) is not None
        for _, node in walk(schema)
    )
    return _use_lengths(schema) if needy else schema


def _use_lengths(schema: Schema) -> Schema:
    result = map_children(schema, _use_lengths)
    pattern = result.get("pattern")
    if not isinstance(pattern, str) or _compiles(pattern) or (said := _with_length(pattern)) is None:
        return result
    rest = {key: value for key, value in result.items() if key != "pattern"}
    return {**rest, "allOf": [*(as_list(result.get("allOf")) or []), said]}


def linear_part(schema: Schema) -> Schema:
    """Drop the parts of ``schema`` that cannot be checked in linear time, so that it accepts at least the same values.

    A schema without such parts comes back as the same object.
    """
    found = list(pattern_problems(schema))
    if not found:
        return schema
    return _loosen(schema, names_go=any(problem.at_key or "if" in problem.pointer for problem in found))


def _loosen(schema: Schema, *, names_go: bool) -> Schema:
    """Drop or widen a keyword that would become narrower if a pattern inside it is dropped.

    ``names_go``: the rest may name fewer properties, so nothing may demand those that it no longer names.
    """
    result = map_children(schema, lambda child: _loosen(child, names_go=names_go))
    touched = {word for word in ("not", "if", "oneOf", "contains") if word in schema and _has_problem(schema, word)}
    gone = {"not"} & touched
    gone |= {"if", "then", "else"} if "if" in touched else set[str]()
    gone |= {"maxContains"} if "contains" in touched else set[str]()
    gone |= {"unevaluatedProperties", "unevaluatedItems"} if names_go else set[str]()
    if isinstance(pattern := schema.get("pattern"), str) and pattern_fault(pattern):
        gone.add("pattern")
    by_name = as_object(result.get("patternProperties")) or {}
    if linear := {key: value for key, value in by_name.items() if not pattern_fault(key, as_key=True)}:
        result["patternProperties"] = linear
    if len(linear) < len(by_name):
        gone |= {"additionalProperties"} | ({"patternProperties"} if not linear else set[str]())
    if "oneOf" in touched:
        wider, taken = {"anyOf": result.pop("oneOf")}, as_list(result.get("allOf")) or []
        result |= {"allOf": [*taken, wider]} if "anyOf" in result else wider
    return {keyword: value for keyword, value in result.items() if keyword not in gone}


def _has_problem(schema: Schema, keyword: str) -> bool:
    return next(pattern_problems({keyword: schema[keyword]}), None) is not None


def _with_length(pattern: str) -> Schema | None:
    """Return an unbounded pattern and a length that accept the same texts; None if that is impossible."""
    if not (pattern.startswith("^") and pattern.endswith("$")):
        return None
    at, fixed = 1, 0
    varying: list[tuple[int, int | None]] = []
    written: list[str] = []
    while at < len(pattern) - 1:
        token = _TOKEN.match(pattern, at, len(pattern) - 1)
        if token is None:
            return None
        least, most = _counts(token[2])
        if least == most and least < _FEW:
            fixed += least
            written.append(token[0])
        else:
            varying.append((least, most))
            written.append(f"{token[1]}*")
        at = token.end()
    if len(varying) != 1:
        return None
    ((least, most),) = varying
    said: Schema = {"pattern": f"^{''.join(written)}$", "minLength": fixed + least}
    if most is not None:
        said["maxLength"] = fixed + most
    return said if _compiles(said["pattern"]) else None


def _counts(quantifier: str | None) -> tuple[int, int | None]:
    """Return how often the atom before the quantifier may repeat: at least, and at most (None: without bound)."""
    match quantifier:
        case None:
            return 1, 1
        case "*":
            return 0, None
        case "+":
            return 1, None
        case "?":
            return 0, 1
        case _:
            least, comma, most = quantifier[1:-1].partition(",")
            return int(least), (int(most) if most else None) if comma else int(least)


@lru_cache(maxsize=4096)
def _compiles(pattern: str) -> bool:
    try:
        compile_schema({"pattern": pattern})
    except ValueError:
        return False
    return True
