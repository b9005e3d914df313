"""Two schemas as one that accepts exactly what both accept, and unions whose members exclude each other.

Where no single schema says the same, there is no answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, cast

from gatewright.schema.walk import Schema, as_list, as_object, properties_of, required_of

ANNOTATIONS = frozenset(
    {"title", "description", "default", "examples", "example", "deprecated", "readOnly", "writeOnly", "$comment"}
    | {"discriminator", "contentEncoding", "contentMediaType", "$schema", "$id", "$anchor"}
)
_CLOSING = ("additionalProperties", "patternProperties", "unevaluatedProperties", "propertyNames")
_LOWER = frozenset({"minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"})
_UPPER = frozenset({"maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"})
_GROUPS = (
    ("anyOf",),
    ("oneOf",),
    ("allOf",),
    ("not",),
    ("if", "then", "else"),
    ("contains", "minContains", "maxContains"),
    ("items", "prefixItems", "unevaluatedItems"),
    ("dependentRequired",),
    ("dependentSchemas",),
    ("pattern",),
    ("format",),
    ("multipleOf",),
    ("$ref",),
    ("propertyNames",),
    ("patternProperties",),
)
_ALONE = frozenset(keyword for group in _GROUPS for keyword in group)
MISSING: Any = object()


def same_json(first: Any, second: Any) -> bool:
    """Equality as JSON has it: `true` is not 1."""
    if isinstance(first, bool) != isinstance(second, bool):
        return False
    if isinstance(first, dict) and isinstance(second, dict):
        one, other = cast("Schema", first), cast("Schema", second)
        return one.keys() == other.keys() and all(same_json(one[key], other[key]) for key in one)
    if isinstance(first, list) and isinstance(second, list):
        ones, others = cast("list[Any]", first), cast("list[Any]", second)
        return len(ones) == len(others) and all(map(same_json, ones, others))
    return first == second


def values_of(schema: Schema) -> list[Any] | None:
    """The values that `const` and `enum` leave; None when neither is there."""
    listed, const = as_list(schema.get("enum")), schema.get("const", MISSING)
    if const is MISSING:
        return listed
    return [const] if listed is None or any(same_json(const, value) for value in listed) else []


def types_of(schema: Schema) -> list[str] | None:
    """The types under `type` as a list; None when any is allowed."""
    kind = schema.get("type")
    return [kind] if isinstance(kind, str) else kind if isinstance(kind, list) else None  # pyright: ignore[reportUnknownVariableType]


def merged(first: Schema, second: Schema) -> Schema | None:
    """One schema for both, or None where it cannot be said in one."""
    if not _groups_apart(first, second) or not _can_close(first, second):
        return None
    result: Schema = {}
    for keyword in dict.fromkeys([*first, *second]):
        left, right = first.get(keyword, MISSING), second.get(keyword, MISSING)
        if left is MISSING or right is MISSING or same_json(left, right):
            result[keyword] = right if left is MISSING else left
            continue
        value = _joined(keyword, left, right, first, second)
        if value is MISSING:
            return None
        result[keyword] = value
    left, right = values_of(first), values_of(second)
    if left is None or right is None:
        return result
    kept = [value for value in left if any(same_json(value, other) for other in right)]
    if not kept:
        return None
    return {**{key: value for key, value in result.items() if key not in ("const", "enum")}, "enum": kept}


def _joined(keyword: str, left: Any, right: Any, first: Schema, second: Schema) -> Any:
    match keyword:
        case "description":
            return f"{left} {right}" if str(right) not in str(left) else left
        case "const" | "enum":
            return left
        case "type":
            return _both_types(types_of(first) or [], types_of(second) or [])
        case "properties":
            return _both_properties(properties_of(first), properties_of(second))
        case "required":
            return list(dict.fromkeys([*required_of(first), *required_of(second)]))
        case "additionalProperties" | "unevaluatedProperties":
            return False if left is False or right is False else MISSING
        case "uniqueItems":
            return bool(left or right)
        case _ if keyword in _LOWER | _UPPER:
            return max(left, right) if keyword in _LOWER else min(left, right)
        case _:
            return left if keyword in ANNOTATIONS else MISSING


def _groups_apart(first: Schema, second: Schema) -> bool:
    """Keywords that read each other, or that cannot stand twice, must come from one side or be the same on both."""
    for group in _GROUPS:
        left = {keyword: first[keyword] for keyword in group if keyword in first}
        right = {keyword: second[keyword] for keyword in group if keyword in second}
        if left and right and not same_json(left, right):
            return False
    return True


def _can_close(first: Schema, second: Schema) -> bool:
    """Whether what one side says of undeclared keys still holds beside the other side's keys."""
    if "unevaluatedProperties" in first or "unevaluatedProperties" in second:
        return False
    closings = [[side.get(keyword, MISSING) for keyword in _CLOSING[:2]] for side in (first, second)]
    if all(value is MISSING for side in closings for value in side):
        return True
    keys = [set(properties_of(side)) for side in (first, second)]
    if keys[0] == keys[1]:
        return "patternProperties" not in first and "patternProperties" not in second
    for index, (said, other) in enumerate(((first, second), (second, first))):
        if "additionalProperties" in said or "patternProperties" in said:
            undeclared = {key for key in keys[1 - index] if key not in keys[index]}
            if undeclared or "patternProperties" in said or _CLOSING[0] in other:
                return False
    return True


def _both_types(left: list[str], right: list[str]) -> Any:
    kept = [kind for kind in left if kind in right or (kind == "integer" and "number" in right)]
    kept += [kind for kind in right if kind == "integer" and "number" in left and kind not in kept]
    return MISSING if not kept else kept[0] if len(kept) == 1 else kept


def _both_properties(left: Schema, right: Schema) -> Any:
    result = dict(left)
    for name, value in right.items():
        one, other = as_object(result.get(name)), as_object(value)
        if name not in result or same_json(result[name], value):
            result[name] = value
        elif one is None or other is None or (joined := merged(one, other)) is None:
            return MISSING
        else:
            result[name] = joined
    return result


def exclude_each_other(branches: Iterable[Any]) -> bool:
    """Whether no value can fit two of ``branches``, seen from their types, values and required tags."""
    known = list(branches)
    return all(_apart(one, other) for index, one in enumerate(known) for other in known[index + 1 :])


def _apart(first: Any, second: Any) -> bool:
    one, other = as_object(first), as_object(second)
    if one is None or other is None:
        return first is False or second is False
    values = values_of(one), values_of(other)
    if values[0] is not None and values[1] is not None:
        return not any(same_json(value, item) for value in values[0] for item in values[1])
    kinds = types_of(one), types_of(other)
    if kinds[0] is not None and kinds[1] is not None and _both_types(kinds[0], kinds[1]) is MISSING:
        return True
    if kinds != (["object"], ["object"]):
        return False
    shared = set(required_of(one)) & set(required_of(other))
    tags = [(properties_of(one).get(name), properties_of(other).get(name)) for name in shared]
    return any(
        as_object(left) is not None and as_object(right) is not None and _apart(left, right) for left, right in tags
    )


def mapped(branches: Iterable[Any], change: Callable[[Schema], Schema]) -> list[Any]:
    """The branches that are objects, changed; the others as they are."""
    return [branch if (table := as_object(branch)) is None else change(table) for branch in branches]
