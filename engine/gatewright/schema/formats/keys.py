"""Parameter names that a provider refuses, renamed wherever a step can name them back.

Inside `not`, `if`, `allOf` and the like, and where keys are described by pattern, a name stays and is told.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gatewright.schema.formats.name import NameRule, fit_names
from gatewright.schema.formats.step import KEEP, Branch, Step, either, fields, items
from gatewright.schema.walk import Pointer, Schema, as_list, as_object, pointer_text, properties_of, required_of, walk

_BESIDE = frozenset(
    {"allOf", "not", "if", "then", "else", "dependentRequired", "dependentSchemas", "patternProperties"}
) | {
    "propertyNames",
    "unevaluatedProperties",
    "$ref",
    "enum",
    "const",
}
Tell = Callable[[str, str, bool], None]
"""Takes the pointer of a parameter, its name, and whether it could be renamed."""


def all_fit(schema: Schema, rule: NameRule) -> bool:
    """Whether nothing has to be renamed."""
    return all(rule.fits(name) for _, node in walk(schema) for name in properties_of(node))


def with_fit_keys(schema: Schema, rule: NameRule, tell: Tell, place: Pointer = ()) -> tuple[Schema, Step]:
    """``schema`` with names that fit ``rule`` and the step that undoes it."""
    if all_fit(schema, rule):
        return schema, KEEP
    unions = [keyword for keyword in ("anyOf", "oneOf") if keyword in schema]
    properties = properties_of(schema)
    if properties and (_BESIDE & set(schema) or unions):
        return _told(schema, rule, tell, place), KEEP
    if unions:
        return (
            _union(schema, unions[0], rule, tell, place)
            if len(unions) == 1
            else (_told(schema, rule, tell, place), KEEP)
        )
    if properties:
        return _object(schema, rule, tell, place)
    inner = as_object(schema.get("items"))
    if inner is not None and "prefixItems" not in schema:
        sent, step = with_fit_keys(inner, rule, tell, (*place, "items"))
        return {**schema, "items": sent}, items(step)
    return _told(schema, rule, tell, place), KEEP


def _object(schema: Schema, rule: NameRule, tell: Tell, place: Pointer) -> tuple[Schema, Step]:
    properties = properties_of(schema)
    names = fit_names(properties, rule)
    sent: Schema = {}
    steps: dict[str, Step] = {}
    for name, value in properties.items():
        here = (*place, "properties", name)
        if names[name] != name:
            tell(pointer_text(here), name, True)
        inner = as_object(value)
        sent[names[name]], steps[name] = (value, KEEP) if inner is None else with_fit_keys(inner, rule, tell, here)
    result = {**schema, "properties": sent}
    if "required" in schema:
        result["required"] = [names.get(name, name) for name in required_of(schema)]
    return result, fields(names, steps)


def _union(schema: Schema, keyword: str, rule: NameRule, tell: Tell, place: Pointer) -> tuple[Schema, Step]:
    branches = as_list(schema[keyword]) or []
    sent: list[Any] = []
    known: list[Branch] = []
    for index, branch in enumerate(branches):
        own = as_object(branch)
        if own is None:
            return _told(schema, rule, tell, place), KEEP
        written, step = with_fit_keys(own, rule, tell, (*place, keyword, index))
        sent.append(written)
        known.append(Branch(written, own, step))
    return {**schema, keyword: sent}, either(known)


def _told(schema: Schema, rule: NameRule, tell: Tell, place: Pointer) -> Schema:
    for pointer, node in walk(schema, place):
        for name in properties_of(node):
            if not rule.fits(name):
                tell(pointer_text((*pointer, "properties", name)), name, False)
    return schema
