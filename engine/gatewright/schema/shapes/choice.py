"""A closed list of texts as one property spells it: `enum`, `const`, a pattern of alternatives, a union of those."""

from __future__ import annotations

import re
from typing import Any

from gatewright.base.frozen import frozen
from gatewright.schema.walk import Schema, as_list, as_object

_WORDS = frozenset({"title", "description"})
_UNIONS = ("oneOf", "anyOf")
_NAME_LISTS = (
    "enumNames",
    "enumDescriptions",
    "x-enumNames",
    "x-enum-varnames",
    "x-enumDescriptions",
    "x-enum-descriptions",
)
_LITERAL = r"(?:[^\\^$.|?*+()\[\]{}\n]|\\[^\w\s<>])+"
_ALTERNATIVES = re.compile(rf"\^\((?:\?:)?{_LITERAL}(?:\|{_LITERAL})*\)\$|\^{_LITERAL}\$(?:\|\^{_LITERAL}\$)*")


@frozen
class Choice:
    """The texts in order, the keyword that held them, and whether null, or something that is no text, is a value too.

    A value that is no text names no operation: it goes with the first operation that is hidden.
    """

    names: tuple[str, ...]
    keyword: str
    nullable: bool = False
    others: bool = False


def choice_of(value: object) -> Choice | None:
    """The closed list that ``value`` (a property's schema) allows, or None when it is open or not of texts."""
    schema = as_object(value)
    if schema is None:
        return None
    const = schema.get("const")
    said = (
        _enum(schema),
        Choice((const,), "const") if isinstance(const, str) else None,
        *(_union(schema, keyword) for keyword in _UNIONS),
        *(choice_of(branch) for branch in as_list(schema.get("allOf")) or ()),
        _pattern(schema),
    )
    found = [choice for choice in said if choice]
    types = _types(schema)
    if not found or (types and "string" not in types):
        return None
    others = [frozenset(other.names) for other in found[1:]]
    names = tuple([name for name in found[0].names if all(name in other for other in others)])
    nullable = all(choice.nullable for choice in found) or schema.get("nullable") is True
    others = all(choice.others for choice in found) and (not types or not {*types} <= {"string", "null"})
    return Choice(names, found[0].keyword, nullable, others) if names else None


def restricted(schema: Schema, allowed: frozenset[str], *, keep_null: bool) -> Schema:
    """A copy of a property's schema that accepts the ``allowed`` texts only, and null when ``keep_null``."""
    result = {key: value for key, value in schema.items() if not _is_lost(key, value, allowed, keep_null=keep_null)}
    values = as_list(schema.get("enum"))
    pattern = _pattern(schema)
    if pattern is not None:
        del result["pattern"]
        allowed &= frozenset(pattern.names)
        if values is None:
            values = [*pattern.names, *([None] if pattern.nullable else [])]
    if values is not None:
        _restrict_enum(result, values, allowed, keep_null=keep_null)
    for keyword in (*_UNIONS, "allOf"):
        branches = as_list(schema.get(keyword))
        if branches is not None:
            kept = [branch for branch in branches if keyword == "allOf" or not is_other(branch)]
            rest = _restricted_branches(kept, allowed, keep_null=keep_null)
            only = as_object(rest[0]) if len(rest) == 1 else None
            if only is not None and not any(key in result for key in only if key not in _WORDS):
                del result[keyword]
                result = {**only, **result}
            else:
                result[keyword] = rest
    types = as_list(schema.get("type"))
    if types is not None and not keep_null:
        rest = [name for name in types if name != "null"]
        result["type"] = rest[0] if len(rest) == 1 else rest
    examples = as_list(schema.get("examples"))
    if examples is not None:
        result["examples"] = [example for example in examples if example in allowed]
    return {key: value for key, value in result.items() if key != "examples" or value}


def _is_lost(key: str, value: object, allowed: frozenset[str], *, keep_null: bool) -> bool:
    if key == "default":
        return not (isinstance(value, str) and value in allowed) and not (value is None and keep_null)
    if key == "example":
        return not (isinstance(value, str) and value in allowed)
    return key == "nullable" and not keep_null


def _restrict_enum(result: Schema, values: list[Any], allowed: frozenset[str], *, keep_null: bool) -> None:
    wanted = {*allowed, None} if keep_null else allowed
    kept = [index for index, value in enumerate(values) if isinstance(value, str | None) and value in wanted]
    result["enum"] = [values[index] for index in kept]
    for keyword in _NAME_LISTS:
        labels, table = as_list(result.get(keyword)), as_object(result.get(keyword))
        if labels is not None and len(labels) == len(values):
            result[keyword] = [labels[index] for index in kept]
        elif labels is not None:
            del result[keyword]
        elif table is not None:
            result[keyword] = {name: text for name, text in table.items() if name in allowed}


def _restricted_branches(branches: list[Any], allowed: frozenset[str], *, keep_null: bool) -> list[Any]:
    result: list[Any] = []
    for branch in branches:
        choice, schema = choice_of(branch), as_object(branch)
        if schema is not None and choice is not None:
            if any(name in allowed for name in choice.names):
                result.append(restricted(schema, allowed, keep_null=keep_null))
        elif keep_null or not _is_null(branch):
            result.append(branch)
    return result


def _types(schema: Schema) -> list[Any]:
    given = schema.get("type")
    return [given] if isinstance(given, str) else as_list(given) or []


def _enum(schema: Schema) -> Choice | None:
    values = as_list(schema.get("enum"))
    if not values or not any(value is None or isinstance(value, str) for value in values):
        return None
    names = tuple(dict.fromkeys(value for value in values if isinstance(value, str)))
    return Choice(names, "enum", None in values, not all(value is None or isinstance(value, str) for value in values))


def _union(schema: Schema, keyword: str) -> Choice | None:
    branches = as_list(schema.get(keyword))
    if not branches:
        return None
    read = [choice_of(branch) for branch in branches if not _is_null(branch) and not is_other(branch)]
    choices = [choice for choice in read if choice is not None]
    if not choices or len(choices) < len(read):
        return None
    names = dict.fromkeys(name for choice in choices for name in choice.names)
    nullable = any(map(_is_null, branches)) or any(choice.nullable for choice in choices)
    others = any(map(is_other, branches)) or any(choice.others for choice in choices)
    return Choice(tuple(names), choices[0].keyword if len(choices) == 1 else keyword, nullable, others)


def _pattern(schema: Schema) -> Choice | None:
    """The alternatives of a pattern that takes nothing else (`^(read|write)$`), where nothing but texts fits."""
    pattern = schema.get("pattern")
    if not isinstance(pattern, str) or not _ALTERNATIVES.fullmatch(pattern):
        return None
    types = _types(schema)
    if "string" not in types or not {*types} <= {"string", "null"}:
        return None
    names = [re.sub(r"\\(.)", r"\1", name) for name in re.findall(_LITERAL, pattern.replace("^(?:", "^(", 1))]
    return Choice(tuple(dict.fromkeys(names)), "pattern", "null" in types)


def is_other(branch: object) -> bool:
    """Tell whether a schema lists values of which none is a text, and not null alone."""
    schema = as_object(branch)
    if schema is None or _is_null(branch):
        return False
    values = [schema["const"]] if "const" in schema else as_list(schema.get("enum"))
    return bool(values) and not any(isinstance(value, str) for value in values or ())


def _is_null(branch: object) -> bool:
    schema = as_object(branch)
    if schema is None:
        return False
    return (
        schema.get("type") == "null" or ("const" in schema and schema["const"] is None) or schema.get("enum") == [None]
    )
