"""The tagged union at the root: object variants told apart by a property with constant values."""

from __future__ import annotations

from gatewright.schema.operation import Confidence, Operation, OperationSet
from gatewright.schema.shapes.choice import choice_of, restricted
from gatewright.schema.shapes.naming import tag_score
from gatewright.schema.shapes.property import closed, with_required, with_restricted_field
from gatewright.schema.shapes.shape import Candidate, Shape
from gatewright.schema.walk import Schema, as_list, as_object, objects, properties_of, required_of

_UNIONS = ("oneOf", "anyOf")
_NAME = "tagged-union"


def tagged_variants(schema: Schema, keyword: str, tag: str) -> list[tuple[Schema, tuple[str, ...]]] | None:
    """Each variant under ``keyword`` with the values of ``tag`` it stands for; None unless every variant has some."""
    branches = as_list(schema.get(keyword))
    if not branches:
        return None
    result: list[tuple[Schema, tuple[str, ...]]] = []
    for branch in objects(branches):
        choice = choice_of(properties_of(branch).get(tag))
        if choice is None or choice.nullable or branch.get("type", "object") != "object":
            return None
        result.append((branch, choice.names))
    return result if len(result) == len(branches) else None


def _find(schema: Schema, field: str | None) -> tuple[Candidate, ...]:
    candidates: list[Candidate] = []
    for keyword in _UNIONS:
        first = (objects(schema.get(keyword)) or [{}])[0]
        for tag in properties_of(first):
            if field in (None, tag) and (variants := tagged_variants(schema, keyword, tag)):
                candidate = _candidate(schema, tag, variants, declared=field is not None)
                candidates.extend([candidate] if candidate else [])
    return tuple(candidates)


def _candidate(
    schema: Schema, tag: str, variants: list[tuple[Schema, tuple[str, ...]]], *, declared: bool
) -> Candidate | None:
    names = tuple(dict.fromkeys(name for _, values in variants for name in values))
    named = (as_object(schema.get("discriminator")) or {}).get("propertyName") == tag
    required = tag in required_of(schema) or all(tag in required_of(variant) for variant, _ in variants)
    distinct = sum(len(values) for _, values in variants) == len(names)
    if not declared and not named and (not distinct or len(names) < 2):
        return None
    sure = named or (required and distinct) or tag_score(tag) == 3
    confidence: Confidence = "declared" if declared else "high" if sure else "low"
    operations = tuple(_operation(schema, tag, name, variants) for name in names)
    found = OperationSet(tag, operations, _NAME, confidence, field_required=required)
    return Candidate(found, 60 + 50 * named + 10 * tag_score(tag) + 5 * required + 100 * declared)


def _operation(schema: Schema, tag: str, name: str, variants: list[tuple[Schema, tuple[str, ...]]]) -> Operation:
    meant = [variant for variant, values in variants if name in values]
    shared = required_of(schema)
    known = dict.fromkeys([*properties_of(schema), *(key for variant in meant for key in properties_of(variant))])
    known.pop(tag, None)
    required = [key for key in known if key in shared or all(key in required_of(variant) for variant in meant)]
    return Operation(name, tuple(required), tuple(key for key in known if key not in required))


def with_allowed_variants(schema: Schema, found: OperationSet, allowed: frozenset[str], *, seal: bool = True) -> Schema:
    """``schema`` with the variants of allowed operations only, each with its tag required, and closed if ``seal``."""
    result = dict(schema)
    if choice_of(properties_of(schema).get(found.field)):
        result = with_restricted_field(result, found, allowed)
    for keyword in _UNIONS:
        variants = tagged_variants(schema, keyword, found.field)
        if variants:
            kept = _kept(variants, found.field, allowed)
            result = _with_variants(result, keyword, kept) if seal else {**result, keyword: kept}
    discriminator = as_object(result.get("discriminator"))
    mapping = as_object(discriminator.get("mapping")) if discriminator else None
    if discriminator is not None and mapping is not None:
        rest = {name: target for name, target in mapping.items() if name in allowed}
        result["discriminator"] = {**discriminator, "mapping": rest}
    return result


def _kept(variants: list[tuple[Schema, tuple[str, ...]]], tag: str, allowed: frozenset[str]) -> list[Schema]:
    kept: list[Schema] = []
    for variant, values in variants:
        if allowed.isdisjoint(values):
            continue
        own = restricted(properties_of(variant)[tag], allowed, keep_null=False)
        properties = {**properties_of(variant), tag: own}
        kept.append({**variant, "properties": properties, "required": with_required(variant, tag)})
    return kept


def _with_variants(schema: Schema, keyword: str, variants: list[Schema]) -> Schema:
    """Put the variants in; a single one is merged into the root where nothing clashes."""
    rest = {key: value for key, value in schema.items() if key != keyword}
    if len(variants) == 1 and (merged := _merged(rest, variants[0])) is not None:
        return closed(merged)
    if "additionalProperties" in schema or "unevaluatedProperties" in schema:
        return {**rest, keyword: variants}
    # Each open variant becomes closed; it then has to name the shared properties of the root as well
    shared = properties_of(rest)
    result: list[Schema] = []
    for variant in variants:
        if "additionalProperties" in variant or "unevaluatedProperties" in variant:
            result.append(variant)
        else:
            result.append(closed({**variant, "properties": {**shared, **properties_of(variant)}}))
    return {**rest, keyword: result}


def _merged(root: Schema, variant: Schema) -> Schema | None:
    """Root and variant as one object; None when that could change the meaning."""
    if any(key in ("additionalProperties", "unevaluatedProperties", "patternProperties") for key in root):
        return None
    if "additionalProperties" in variant and properties_of(root):
        return None
    own, shared = properties_of(variant), properties_of(root)
    if any(own[name] != shared[name] and not choice_of(own[name]) for name in own if name in shared):
        return None
    free = {"properties", "required", "type", "title", "description", "discriminator"}
    if any(key in root and root[key] != variant[key] for key in variant if key not in free):
        return None
    required = list(dict.fromkeys([*required_of(root), *required_of(variant)]))
    result = {key: value for key, value in root.items() if key != "discriminator"}
    result |= {key: value for key, value in variant.items() if key not in root}
    result |= {"type": "object", "properties": {**shared, **own}, "required": required}
    return result


UNION_SHAPE = Shape(frozenset({_NAME}), _find)
