"""Two schemas for one value as one: their keywords together where that is exact, `allOf` where it is not."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

from gatewright.base.errors import SchemaError
from gatewright.schema.check import SchemaChecker
from gatewright.schema.contradiction import ALL, KIND_OF, Kinds, kinds_of
from gatewright.schema.walk import Schema, as_list, as_object, objects, walk

NOTHING: Final[Schema] = {"not": {}}
"""What no value fits."""

ANNOTATIONS = frozenset(
    {"title", "description", "default", "examples", "example", "deprecated", "readOnly", "writeOnly", "$comment"}
    | {"$schema", "$id", "$defs", "definitions", "$anchor"}
)
_ALONE = frozenset(
    {"type", "enum", "const", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength"}
    | {"maxLength", "pattern", "minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties", "required"}
    | {"allOf", "anyOf", "oneOf", "not", "format", "propertyNames", "dependentRequired", "dependentSchemas"}
)
"""Keywords that mean the same whatever stands beside them."""
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
    """What of ``schema`` asks for something."""
    return {key: value for key, value in schema.items() if key not in ANNOTATIONS}


def both(own: Schema, added: Schema, checker: SchemaChecker, root: Schema) -> Schema:
    """``own`` narrowed by ``added``, which ``checker`` checks too; a default that no longer fits goes.

    ``root`` is the document of ``own``, for its draft and its definitions.
    """
    own = _of_kinds(_fitting_samples(own, checker), kinds_of(added))
    closed = _closed_list(own, added, checker, root)
    if closed is not None:
        return closed
    words = own_words(added)
    if (branches := _plain_branches(own)) is not None:
        return _distributed(own, branches, added, checker, root)
    merged = _merged(own, words, root) if _stand_apart(own, words) else None
    if merged is not None:
        return merged
    if "$ref" in own or any(key.startswith("unevaluated") for key in own):  # it would see into `allOf`, or hide it
        annotations = {key: value for key, value in own.items() if key in ANNOTATIONS}
        return {**annotations, "allOf": [own_words(own), words]}
    return {**own, "allOf": [*(as_list(own.get("allOf")) or []), words]}


def _of_kinds(own: Schema, kinds: Kinds) -> Schema:
    """``own`` without the types, and the alternatives of its unions, that no value of these types fits."""
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
    """The one union of a schema that says nothing else, where no branch has parts of its own."""
    keywords = [keyword for keyword in ("anyOf", "oneOf") if keyword in own]
    if len(keywords) != 1 or own_words(own).keys() != set(keywords):
        return None
    keyword = keywords[0]
    found = [branch for branch in objects(own[keyword]) if "$ref" not in branch and not _has_parts(branch)]
    return (keyword, found) if found and len(found) == len(as_list(own[keyword]) or []) else None


def _distributed(
    own: Schema, union: tuple[str, list[Schema]], added: Schema, checker: SchemaChecker, root: Schema
) -> Schema:
    """Every branch of the union narrowed; those that nothing fits any more go."""
    keyword, branches = union
    narrowed = [both(branch, added, checker, root) for branch in branches]
    kept = [branch for branch in narrowed if branch.get("not") != {}]
    if len(kept) > 1:
        return {**own, keyword: kept}
    rest = {key: value for key, value in own.items() if key != keyword}
    return {**(kept[0] if kept else NOTHING), **rest}


def _has_parts(schema: Schema) -> bool:
    """Whether it says what the parts of a value are; that stays beside a closed list of whole values."""
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


def _closed_list(own: Schema, added: Schema, checker: SchemaChecker, root: Schema) -> Schema | None:
    """Where either is a closed list, the members that fit both."""
    values = _values(own)
    if values is not None:
        fits = [checker.is_valid(value) for value in values]
        return own if all(fits) else _listed(own, values, fits)
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
    annotations = {key: value for key, value in own.items() if key in ANNOTATIONS}
    kind = {"type": own["type"]} if "type" in own else {}
    return {**annotations, **kind, "enum": kept} if kept else {**annotations, **NOTHING}


def _values(schema: Schema) -> list[Any] | None:
    if "const" in schema:
        return [schema["const"]]
    return as_list(schema.get("enum"))


def _listed(own: Schema, values: list[Any], fits: list[bool]) -> Schema:
    kept = [value for value, fit in zip(values, fits, strict=True) if fit]
    result = {key: value for key, value in own.items() if key not in ("const", "enum")}
    for keyword in _LABELS:
        labels = as_list(own.get(keyword))
        if labels is not None and len(labels) == len(values):
            result[keyword] = [label for label, fit in zip(labels, fits, strict=True) if fit]
    return {**result, "enum": kept} if kept else {**result, **NOTHING}


def _stand_apart(own: Schema, words: Schema) -> bool:
    """Whether the keywords of both may stand in one schema."""
    if "$ref" in own or "$ref" in words or any(key.startswith("unevaluated") for key in (*own, *words)):
        return False
    both_name = "properties" in own and "properties" in words and not (_OF_OBJECTS - {"properties"}) & words.keys()
    both_list = "items" in own and "items" in words and not (_OF_ARRAYS - {"items"}) & {*own, *words}
    for group, joins in ((_OF_OBJECTS, both_name), (_OF_ARRAYS, both_list)):
        if group & words.keys() and group & own.keys() and not joins:
            return False
    return words.keys() <= _ALONE | _OF_OBJECTS | _OF_ARRAYS


def _merged(own: Schema, words: Schema, root: Schema) -> Schema | None:
    result = dict(own)
    for key, value in words.items():
        if key not in own:
            result[key] = value
            continue
        joint = _one(key, own, value, root)
        if joint is None:
            return None
        if key == "type" and not joint:
            return {**{name: item for name, item in own.items() if name in ANNOTATIONS}, **NOTHING}
        result[key] = joint
    return result


def _one(key: str, own: Schema, theirs: Any, root: Schema) -> Any:
    """One value for a keyword that both have; None where only `allOf` says both."""
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
    """Name by name; None where what one schema declares the other sees among the undeclared ones."""
    known: Schema = own["properties"]
    new = theirs.keys() - known.keys()
    if new and own.get("additionalProperties", True) is not True:
        return None
    found = {name: _joint(known[name], value, root) if name in known else value for name, value in theirs.items()}
    return None if None in found.values() else {**known, **found}


def _joint(ours: Any, theirs: Any, root: Schema) -> Any:
    """Two schemas as one, either of which may be true or false."""
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
