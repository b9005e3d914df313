"""The flat shapes: one property of the root whose values are the operations."""

from __future__ import annotations

from gatewright.schema.operation import Confidence, Operation, OperationSet
from gatewright.schema.shapes.choice import Choice, choice_of, restricted
from gatewright.schema.shapes.inplace import Find, in_place
from gatewright.schema.shapes.naming import property_confidence
from gatewright.schema.shapes.shape import Candidate, Shape
from gatewright.schema.walk import Schema, as_object, properties_of, required_of

_SCORES: dict[Confidence, int] = {"declared": 100, "high": 50, "medium": 30, "low": 10}
_SHAPE_NAMES = {
    "enum": "property-enum",
    "const": "property-const",
    "oneOf": "property-union",
    "anyOf": "property-union",
    "pattern": "property-pattern",
}


def _find(schema: Schema, field: str | None) -> tuple[Candidate, ...]:
    candidates: list[Candidate] = []
    for name, value in properties_of(schema).items():
        choice = choice_of(value)
        if choice is not None and field in (None, name):
            confidence = "declared" if field else _confidence(schema, name, choice)
            if confidence is not None:
                candidates.append(_candidate(schema, name, choice, confidence))
    return tuple(candidates)


def _confidence(schema: Schema, name: str, choice: Choice) -> Confidence | None:
    own = properties_of(schema)
    said = own[name].get("description")
    has_parts = all("properties" in (as_object(own.get(value)) or {}) for value in choice.names)
    return property_confidence(name, choice.names, said if isinstance(said, str) else "", has_parts=has_parts)


def _candidate(schema: Schema, name: str, choice: Choice, confidence: Confidence) -> Candidate:
    required = required_of(schema)
    default = properties_of(schema)[name].get("default")
    found = OperationSet(
        field=name,
        operations=tuple(_operation(schema, name, operation) for operation in choice.names),
        shape=_SHAPE_NAMES[choice.keyword],
        confidence=confidence,
        default=default if name not in required and isinstance(default, str) and default in choice.names else None,
        field_required=name in required,
    )
    return Candidate(found, _SCORES[confidence] + (5 if name in required else 0))


def _operation(schema: Schema, field: str, name: str) -> Operation:
    required = required_of(schema)
    names = [parameter for parameter in properties_of(schema) if parameter != field]
    return Operation(
        name,
        tuple(parameter for parameter in names if parameter in required),
        tuple(parameter for parameter in names if parameter not in required),
    )


def with_restricted_field(schema: Schema, found: OperationSet, allowed: frozenset[str]) -> Schema:
    """``schema`` whose operation property accepts the allowed names only, required unless its default is allowed."""
    keeps_default = found.default in allowed
    own = restricted(properties_of(schema)[found.field], allowed, keep_null=keeps_default)
    result: Schema = {**schema, "properties": {**properties_of(schema), found.field: own}}
    if not keeps_default:
        result["required"] = with_required(schema, found.field)
    return result


def with_required(schema: Schema, field: str) -> list[str]:
    """The required names with ``field`` among them."""
    required = list(required_of(schema))
    return required if field in required else [*required, field]


def closed(schema: Schema, find: Find | None = None) -> Schema:
    """``schema`` with `additionalProperties: false` unless it says something itself.

    Names that only branches declare are named at the root too, since the keyword sees no other place; ``find`` gives
    what a reference among the branches names.
    """
    if "additionalProperties" in schema or "unevaluatedProperties" in schema:
        return schema
    declared = properties_of(schema)
    elsewhere: Schema = {
        name: {} for branch in in_place(schema, find)[1:] for name in properties_of(branch) if name not in declared
    }
    result = {**schema, "additionalProperties": False}
    return {**result, "properties": {**declared, **elsewhere}} if elsewhere else result


PROPERTY_SHAPE = Shape(frozenset(_SHAPE_NAMES.values()), _find)
