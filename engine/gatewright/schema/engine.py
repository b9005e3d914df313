"""The engine that checks values against JSON Schemas, and the patterns that it cannot run in linear time.

All of Gatewright uses its one set of options, which bounds how large a pattern may grow when it is compiled. A long
repetition of one sort of character, such as `^[a-z ]{1,4000}$`, becomes `^[a-z ]*$` and a length of the text, which
takes exactly the same texts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

import jsonschema_rs

from gatewright.base.frozen import frozen
from gatewright.schema.walk import Pointer, Schema, as_list, as_object, map_children, walk

_PATTERNS = jsonschema_rs.RegexOptions(size_limit=1_000_000, dfa_size_limit=1_000_000)


CHECKED_FORMATS = frozenset({"date-time", "date", "email", "uri", "uuid", "ipv4", "ipv6"})
"""The kinds of `format` that can be checked; every other is a note."""
_NEWEST = "https://json-schema.org/draft/2020-12/schema"
_IS_UUID = jsonschema_rs.validator_for({"$schema": _NEWEST, "format": "uuid"}, validate_formats=True).is_valid
_IS_UUID("")  # the first check of all looks up types behind a lock: here nobody else does, and no fork comes meanwhile


def compile_schema(schema: Schema, *, check_formats: bool = False) -> jsonschema_rs.Validator:
    """Compile the validator of ``schema``; it fetches nothing and runs patterns in linear time. Raises ValueError.

    ``check_formats``: check each `format` that the engine knows; else all are notes.
    """
    return jsonschema_rs.validator_for(
        schema,
        pattern_options=_PATTERNS,
        offline=True,
        mask="value",
        validate_formats=check_formats,
        formats={"uuid": _IS_UUID} if check_formats else None,  # draft 7 does not know it
    )


_ATOM = r"(?:\.|\[\^?(?:\\.|[^\[\]\\])+\]|\\[dDwWsS]|\\[pP]\{\w+(?:=\w+)?\}|[A-Za-z0-9 _:/@#%=-])"
_TOKEN = re.compile(rf"({_ATOM}|\((?:\?:)?{_ATOM}\))(\{{\d{{1,6}}(?:,\d{{0,6}})?\}}|[*+?])?")
_ESCAPED_OR_CLASS = re.compile(r"\\[^1-9k]|\[\^?\]?(?:\\.|[^\]\\])*(?:\]|$)", re.DOTALL)
_FEW = 65
"""An atom that stands exactly that often, or oftener, is worth a length of its own."""
_COUNT = re.compile(r"\{\d+(,\d*)?\}")


@frozen
class PatternProblem:
    """A pattern that cannot run: its place (``at_key``: as a key), and the code and words for the reason."""

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
    """Replace long repetitions by lengths where the engine needs it; the same object where it does not."""
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
    """Drop the parts of ``schema`` that cannot be checked in linear time; it takes at least the same values.

    The same object when it has no such part.
    """
    found = list(pattern_problems(schema))
    if not found:
        return schema
    return _loosen(schema, names_go=any(problem.at_key or "if" in problem.pointer for problem in found))


def _loosen(schema: Schema, *, names_go: bool) -> Schema:
    """Drop or widen a keyword that would turn narrower when a pattern inside it goes.

    ``names_go``: the rest may name fewer properties, so that nothing asks for those that nothing names.
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
    """Return the same texts by an unbounded pattern and a length; None where that cannot say it."""
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
    """Return the repetitions of the atom before it: at least, and at most (None: without bound)."""
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
