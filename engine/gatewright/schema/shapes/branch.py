"""Conditional branches that a flat operation property chooses between."""

from __future__ import annotations

from typing import Any

from gatewright.schema.shapes.choice import choice_of, is_other, restricted
from gatewright.schema.walk import Schema, as_list, as_object, properties_of


def without_hidden_branches(schema: Schema, field: str, hidden: frozenset[str]) -> Schema:
    """A copy of ``schema`` without the `if`/`then` and union branches that only hidden operations can reach."""
    result = _without_dead_condition(schema, field, hidden)
    for keyword in ("allOf", "anyOf", "oneOf"):
        branches = as_list(result.get(keyword))
        if branches is None:
            continue
        if keyword != "allOf":
            branches = [branch for branch in branches if not _names_none(branch, field)]
        kept = [pruned for branch in branches if (pruned := _pruned(branch, field, hidden)) not in (None, {})]
        result = {**result, keyword: kept}
        if not kept and keyword == "allOf":
            del result[keyword]
    return result


def _names_none(branch: Any, field: str) -> bool:
    """Tell whether an alternative takes values that are no texts, which nothing can be while an operation is hidden."""
    schema = as_object(branch)
    return schema is not None and is_other(properties_of(schema).get(field))


def _pruned(branch: Any, field: str, hidden: frozenset[str]) -> Any:
    schema = as_object(branch)
    if schema is None:
        return branch
    names = _names(schema, field)
    if names and names <= hidden:
        return None
    return without_hidden_branches(_trimmed(schema, field, hidden), field, hidden)


def _without_dead_condition(schema: Schema, field: str, hidden: frozenset[str]) -> Schema:
    condition = as_object(schema.get("if"))
    if condition is None:
        return dict(schema)
    names = _names(condition, field)
    if not names <= hidden or not names:
        return {**schema, "if": _trimmed(condition, field, hidden)}
    rest = {key: value for key, value in schema.items() if key not in ("if", "then", "else")}
    otherwise = as_object(schema.get("else"))
    if otherwise is None:
        return rest
    return {**rest, "allOf": [*(as_list(rest.get("allOf")) or []), without_hidden_branches(otherwise, field, hidden)]}


def _names(schema: Schema, field: str) -> frozenset[str]:
    choice = choice_of(properties_of(schema).get(field))
    return frozenset(choice.names) if choice else frozenset()


def _trimmed(schema: Schema, field: str, hidden: frozenset[str]) -> Schema:
    names = _names(schema, field)
    if not names & hidden:
        return schema
    own = restricted(properties_of(schema)[field], names - hidden, keep_null=False)
    return {**schema, "properties": {**properties_of(schema), field: own}}
