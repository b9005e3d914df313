"""Combines two schemas for one value into one that accepts exactly the values that both accept.

Where no single keyword can express that, `both` uses `allOf`; `merge`, for formats without `allOf`, returns None.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any, Final, cast

from gatewright.base.errors import SchemaError
from gatewright.schema.check import SchemaChecker
from gatewright.schema.fault import ALL, KIND_OF, Kinds, kinds_of
from gatewright.schema.walk import Schema, as_list, as_object, names_required, objects, properties_of, walk

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
MISSING: Any = object()


def same_json(first: Any, second: Any) -> bool:
    """Compare two values as JSON does: `true` is not 1."""
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
    """Return the values that `const` and `enum` permit; None without either."""
    listed, const = as_list(schema.get("enum")), schema.get("const", MISSING)
    if const is MISSING:
        return listed
    return [const] if listed is None or any(same_json(const, value) for value in listed) else []


def types_of(schema: Schema) -> list[str] | None:
    """Return the types under `type` as a list; None if any type is allowed."""
    kind = schema.get("type")
    return [kind] if isinstance(kind, str) else kind if isinstance(kind, list) else None  # pyright: ignore[reportUnknownVariableType]


def merge(first: Schema, second: Schema) -> Schema | None:
    """Merge two schemas into one; None if one schema cannot express both."""
    if not _groups_apart(first, second) or not _can_close(first, second):
        return None
    result: Schema = {}
    for keyword in dict.fromkeys([*first, *second]):
        left, right = first.get(keyword, MISSING), second.get(keyword, MISSING)
        if left is MISSING or right is MISSING or same_json(left, right):
            result[keyword] = right if left is MISSING else left
            continue
        value = _join(keyword, left, right, first, second)
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


def _join(keyword: str, left: Any, right: Any, first: Schema, second: Schema) -> Any:
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
            return list(dict.fromkeys([*names_required(first), *names_required(second)]))
        case "additionalProperties" | "unevaluatedProperties":
            return False if left is False or right is False else MISSING
        case "uniqueItems":
            return bool(left or right)
        case _ if keyword in _LOWER | _UPPER:
            return max(left, right) if keyword in _LOWER else min(left, right)
        case _:
            return left if keyword in ANNOTATIONS else MISSING


def _groups_apart(first: Schema, second: Schema) -> bool:
    """Refuse to mix keywords that depend on each other or cannot stand twice, unless one side has none or both
    agree.
    """
    for group in _GROUPS:
        left = {keyword: first[keyword] for keyword in group if keyword in first}
        right = {keyword: second[keyword] for keyword in group if keyword in second}
        if left and right and not same_json(left, right):
            return False
    return True


def _can_close(first: Schema, second: Schema) -> bool:
    """Tell whether one side's rule for undeclared keys keeps its meaning beside the other side's keys."""
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
        elif one is None or other is None or (joined := merge(one, other)) is None:
            return MISSING
        else:
            result[name] = joined
    return result


def exclude_each_other(branches: Iterable[Any]) -> bool:
    """Tell from types, values and required tags whether no value can fit two of ``branches``."""
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
    shared = set(names_required(one)) & set(names_required(other))
    tags = [(properties_of(one).get(name), properties_of(other).get(name)) for name in shared]
    return any(
        as_object(left) is not None and as_object(right) is not None and _apart(left, right) for left, right in tags
    )


NOTHING: Final[Schema] = {"not": {}}
"""The schema that accepts no value."""

_REMARKS = frozenset(
    {"title", "description", "default", "examples", "example", "deprecated", "readOnly", "writeOnly", "$comment"}
    | {"$schema", "$id", "$defs", "definitions", "$anchor"}
)
_ALONE = frozenset(
    {"type", "enum", "const", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength"}
    | {"maxLength", "pattern", "minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties", "required"}
    | {"allOf", "anyOf", "oneOf", "not", "format", "propertyNames", "dependentRequired", "dependentSchemas"}
)
"""Keywords whose meaning does not depend on their neighbours."""
_OF_OBJECTS = frozenset({"properties", "patternProperties", "additionalProperties"})
_OF_ARRAYS = frozenset({"items", "prefixItems", "additionalItems"})
_LABELS = ("enumNames", "enumDescriptions", "x-enumNames", "x-enum-varnames", "x-enumDescriptions")
_NUMBERS: dict[str, Callable[[Any, Any], Any]] = {
    "minimum": max,
    "exclusiveMinimum": max,
    "minLength": max,
    "minItems": max,
    "minProperties": max,
    "maximum": min,
    "exclusiveMaximum": min,
    "maxLength": min,
    "maxItems": min,
    "maxProperties": min,
}


def own_words(schema: Schema) -> Schema:
    """Return the part of ``schema`` that restricts values."""
    return {key: value for key, value in schema.items() if key not in _REMARKS}


def both(own: Schema, added: Schema, checker: SchemaChecker, root: Schema) -> Schema:
    """Narrow ``own`` by ``added``, and drop a default that no longer fits.

    ``checker`` is the compiled ``added``; ``root`` is the document of ``own``, for its draft and its definitions.
    """
    own = _of_kinds(_fitting_samples(own, checker), kinds_of(added))
    closed = _common_list(own, added, checker, root)
    if closed is not None:
        return closed
    words = own_words(added)
    if (branches := _plain_branches(own)) is not None:
        return _distribute(own, branches, added, checker, root)
    merge = _merge_words(own, words, root) if _stand_apart(own, words) else None
    if merge is not None:
        return merge
    if "$ref" in own or any(key.startswith("unevaluated") for key in own):  # it would look into `allOf`, or hide it
        annotations = {key: value for key, value in own.items() if key in _REMARKS}
        return {**annotations, "allOf": [own_words(own), words]}
    return {**own, "allOf": [*(as_list(own.get("allOf")) or []), words]}


def _of_kinds(own: Schema, kinds: Kinds) -> Schema:
    """Drop the types of ``own``, and the branches of its unions, that accept no value of these types."""
    if kinds == ALL:
        return own
    result = dict(own)
    for keyword in ("anyOf", "oneOf"):
        branches = as_list(own.get(keyword)) or []
        kept = [branch for branch in branches if kinds_of(branch) & kinds]
        if kept and len(kept) < len(branches):
            result[keyword] = kept
            if len(kept) == 1 and as_object(kept[0]) is not None and own_words(own).keys() == {keyword}:
                del result[keyword]
                return {**kept[0], **result}
    if as_list(own.get("type")) is not None:
        closed = {keyword for keyword, kind in KIND_OF.items() if kind not in kinds}
        result = {keyword: value for keyword, value in result.items() if keyword not in closed}
    return result


def _plain_branches(own: Schema) -> tuple[str, list[Schema]] | None:
    """Return the branches of a schema that is nothing but a union, if none of them has parts."""
    keywords = [keyword for keyword in ("anyOf", "oneOf") if keyword in own]
    if len(keywords) != 1 or own_words(own).keys() != set(keywords):
        return None
    keyword = keywords[0]
    found = [branch for branch in objects(own[keyword]) if "$ref" not in branch and not _has_parts(branch)]
    return (keyword, found) if found and len(found) == len(as_list(own[keyword]) or []) else None


def _distribute(
    own: Schema, union: tuple[str, list[Schema]], added: Schema, checker: SchemaChecker, root: Schema
) -> Schema:
    """Narrow every branch of the union, and drop those that no value fits any more."""
    keyword, branches = union
    narrowed = [both(branch, added, checker, root) for branch in branches]
    kept = [branch for branch in narrowed if branch.get("not") != {}]
    if len(kept) > 1:
        return {**own, keyword: kept}
    rest = {key: value for key, value in own.items() if key != keyword}
    return {**(kept[0] if kept else NOTHING), **rest}


def _has_parts(schema: Schema) -> bool:
    """Tell whether the schema describes parts of a value, which a closed list of whole values does not replace."""
    return any("properties" in node or "items" in node or "prefixItems" in node for _, node in walk(schema))


def _fitting_samples(own: Schema, checker: SchemaChecker) -> Schema:
    result = dict(own)
    if "default" in own and not checker.is_valid(own["default"]):
        del result["default"]
    samples = as_list(own.get("examples"))
    if samples is not None:
        result["examples"] = [sample for sample in samples if checker.is_valid(sample)]
        if not result["examples"]:
            del result["examples"]
    return result


def _common_list(own: Schema, added: Schema, checker: SchemaChecker, root: Schema) -> Schema | None:
    """Return the members that fit both schemas, if either of them is a closed list."""
    values = _values(own)
    if values is not None:
        fits = [checker.is_valid(value) for value in values]
        return own if all(fits) else _keep_values(own, values, fits)
    values = _values(added)
    if values is None or any("$ref" in node for _, node in walk(own)):
        return None
    try:
        ours = SchemaChecker({**own, **({"$schema": root["$schema"]} if "$schema" in root else {})})
    except SchemaError:
        return None
    kept = [value for value in values if checker.is_valid(value) and ours.is_valid(value)]
    if _has_parts(own):
        return {**own, **({"enum": kept} if kept else NOTHING)}
    annotations = {key: value for key, value in own.items() if key in _REMARKS}
    kind = {"type": own["type"]} if "type" in own else {}
    return {**annotations, **kind, "enum": kept} if kept else {**annotations, **NOTHING}


def _values(schema: Schema) -> list[Any] | None:
    if "const" in schema:
        return [schema["const"]]
    return as_list(schema.get("enum"))


def _keep_values(own: Schema, values: list[Any], fits: list[bool]) -> Schema:
    kept = [value for value, fit in zip(values, fits, strict=True) if fit]
    result = {key: value for key, value in own.items() if key not in ("const", "enum")}
    for keyword in _LABELS:
        labels = as_list(own.get(keyword))
        if labels is not None and len(labels) == len(values):
            result[keyword] = [label for label, fit in zip(labels, fits, strict=True) if fit]
    return {**result, "enum": kept} if kept else {**result, **NOTHING}


def _stand_apart(own: Schema, words: Schema) -> bool:
    """Tell whether the keywords of both can stand in one schema."""
    if "$ref" in own or "$ref" in words or any(key.startswith("unevaluated") for key in (*own, *words)):
        return False
    both_name = "properties" in own and "properties" in words and not (_OF_OBJECTS - {"properties"}) & words.keys()
    both_list = "items" in own and "items" in words and not (_OF_ARRAYS - {"items"}) & {*own, *words}
    for group, joins in ((_OF_OBJECTS, both_name), (_OF_ARRAYS, both_list)):
        if group & words.keys() and group & own.keys() and not joins:
            return False
    return words.keys() <= _ALONE | _OF_OBJECTS | _OF_ARRAYS


def _merge_words(own: Schema, words: Schema, root: Schema) -> Schema | None:
    result = dict(own)
    for key, value in words.items():
        if key not in own:
            result[key] = value
            continue
        joint = _one(key, own, value, root)
        if joint is None:
            return None
        if key == "type" and not joint:
            return {**{name: item for name, item in own.items() if name in _REMARKS}, **NOTHING}
        result[key] = joint
    return result


def _one(key: str, own: Schema, theirs: Any, root: Schema) -> Any:
    """Return one value for a keyword that both have; None if only `allOf` can express both."""
    ours = own[key]
    if key in _NUMBERS:
        return _NUMBERS[key](ours, theirs)
    match key:
        case "properties":
            return _properties(own, theirs, root)
        case "items":
            return _joint(ours, theirs, root)
        case "type":
            return _types(ours, theirs)
        case "required":
            return list(dict.fromkeys([*ours, *theirs]))
        case "allOf":
            return [*ours, *theirs]
        case "uniqueItems":
            return ours or theirs
        case _:
            return ours if json.dumps(ours, sort_keys=True) == json.dumps(theirs, sort_keys=True) else None


def _properties(own: Schema, theirs: Schema, root: Schema) -> Schema | None:
    """Join the properties by name; None if one schema declares a property that the other treats as undeclared."""
    known: Schema = own["properties"]
    new = theirs.keys() - known.keys()
    if new and own.get("additionalProperties", True) is not True:
        return None
    found = {name: _joint(known[name], value, root) if name in known else value for name, value in theirs.items()}
    return None if None in found.values() else {**known, **found}


def _joint(ours: Any, theirs: Any, root: Schema) -> Any:
    """Join two schemas; each may be true or false."""
    if ours is False or theirs is False:
        return False
    if ours is True or theirs is True:
        return theirs if ours is True else ours
    shared = {name: root[name] for name in ("$schema", "$defs", "definitions") if name in root}
    return both(ours, theirs, SchemaChecker({**shared, **theirs}), root) if own_words(theirs) else ours


def _types(ours: Any, theirs: Any) -> Any:
    own, added = as_list(ours) or [ours], as_list(theirs) or [theirs]
    kept = [name for name in own if name in added or (name == "integer" and "number" in added)]
    kept += ["integer" for name in added if name == "integer" and "number" in own and "integer" not in kept]
    return kept[0] if len(kept) == 1 else kept
