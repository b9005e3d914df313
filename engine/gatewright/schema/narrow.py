"""A schema narrowed by constraints on its fields: what comes out accepts exactly what both accept.

References of a constraint are its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gatewright.base.errors import SchemaError
from gatewright.schema.check import SchemaChecker
from gatewright.schema.combine import NOTHING, both, own_words
from gatewright.schema.draft import at_one_draft
from gatewright.schema.inline import inline_references, rehomed
from gatewright.schema.shapes.inplace import UNIONS
from gatewright.schema.walk import (
    Schema,
    as_list,
    as_object,
    properties_of,
    required_of,
)

When = tuple[str, Iterable[str]]
"""The operation field and the operations that a narrowing is for."""


def narrow(
    schema: Schema,
    constraints: Mapping[str, object],
    *,
    when: When | None = None,
    defaults: Mapping[str, object] | None = None,
    required: Iterable[str] = (),
) -> Schema:
    """``schema`` whose top-level fields also satisfy ``constraints`` (field = JSON Schema); ``required`` must be there.

    A field that is left out is bound by its default only: ``defaults``, or the one that the schema declares; where it
    does not satisfy the constraint the field becomes required. ``when`` limits the narrowing to some operations.
    The input is never changed; the same object comes back when nothing is constrained. Raises SchemaError for a
    constraint that cannot be compiled, or that means something else in the draft of ``schema``.
    """
    result = schema
    for name in required:
        field = _Field(name, {}, SchemaChecker({}), needed=True)
        result = _conditional(result, field, when) if when is not None else _with_needed(result, name)
    for name, given in constraints.items():
        constraint = _own(given)
        if constraint is None:
            continue
        checker = SchemaChecker(constraint)
        result, constraint = at_one_draft(result, constraint)
        result, constraint = rehomed(result, constraint)
        if defaults is not None:
            held = [defaults[name]] if name in defaults else []
        else:
            held = [own["default"] for own in _declarations(result, name) if "default" in own][:1]
        field = _Field(name, constraint, checker, any(not checker.is_valid(default) for default in held))
        result = _conditional(result, field, when) if when is not None else _bound(result, field)
    return result


class _Field:
    """One constrained field; ``needed``: leaving it out would break the constraint."""

    __slots__ = ("checker", "constraint", "name", "needed")

    def __init__(self, name: str, constraint: Schema, checker: SchemaChecker, needed: bool) -> None:
        self.name, self.constraint, self.checker, self.needed = name, constraint, checker, needed


def _own(given: object) -> Schema | None:
    """The constraint with its references inlined; None when it asks for nothing."""
    if isinstance(given, bool):
        return None if given else dict(NOTHING)
    table = as_object(given)
    if table is None:
        raise SchemaError("a constraint must be a JSON Schema")
    inlined = inline_references(table)
    return inlined if own_words(inlined) else None


def _declarations(schema: Schema, name: str) -> list[Schema]:
    held = [schema, *(b for keyword in UNIONS for item in as_list(schema.get(keyword)) or [] if (b := as_object(item)))]
    return [own for node in held if (own := as_object(properties_of(node).get(name))) is not None]


def _conditional(schema: Schema, field: _Field, when: When) -> Schema:
    """The constraint for some operations only, beside everything else; it evaluates no property where that counts."""
    selector, operations = when
    names = list(operations)
    default = next((own.get("default") for own in _declarations(schema, selector)), None)
    condition: Schema = {"properties": {selector: {"enum": names}}}
    if default not in names:
        condition["required"] = [selector]
    bound: Schema = {"properties": {field.name: field.constraint}} if field.constraint else {}
    if field.needed:
        bound["required"] = [field.name]
    said: Schema = {"if": condition, "then": bound}
    if "unevaluatedProperties" in schema:
        said = {"not": {**condition, "not": bound}}
    return {**schema, "allOf": [*(as_list(schema.get("allOf")) or []), said]}


def _bound(schema: Schema, field: _Field) -> Schema:
    result = _constrained(schema, field)
    return _with_needed(result, field.name) if field.needed else result


def _with_needed(schema: Schema, name: str) -> Schema:
    named = required_of(schema)
    return schema if name in named else {**schema, "required": [*named, name]}


def _constrained(schema: Schema, field: _Field) -> Schema:
    name, known = field.name, properties_of(schema)
    if name in known:
        own = as_object(known[name])
        narrowed = known[name] if own is None and known[name] is False else _narrowed(schema, own or {}, field)
        return {**schema, "properties": {**known, name: narrowed}}
    inside = _in_variants(schema, field)
    if inside is not None:
        return inside
    if "unevaluatedProperties" in schema:
        # Said without declaring the field, so that `unevaluatedProperties` still sees what it saw
        refused = {"not": {"required": [field.name], "properties": {field.name: {"not": field.constraint}}}}
        return {**schema, "allOf": [*(as_list(schema.get("allOf")) or []), refused]}
    if not _takes(schema, name):
        return schema
    others = as_object(schema.get("additionalProperties"))
    plain = not _matches(schema, name) and others is not None
    added = _narrowed(schema, others, field) if plain and others is not None else field.constraint
    return {**schema, "properties": {**known, name: added}}


def _narrowed(root: Schema, own: Schema, field: _Field) -> Schema:
    return both(own, field.constraint, field.checker, root)


def _in_variants(schema: Schema, field: _Field) -> Schema | None:
    """Narrowed where a union's variants declare the field; None where one might take it undeclared."""
    for keyword in UNIONS:
        branches = [as_object(branch) for branch in as_list(schema.get(keyword)) or []]
        variants = [branch for branch in branches if branch is not None]
        if not variants or len(variants) < len(branches):
            continue
        declaring = [field.name in properties_of(variant) for variant in variants]
        if any(declaring) and all(d or not _takes(v, field.name) for d, v in zip(declaring, variants, strict=True)):
            return {**schema, keyword: [_constrained(variant, field) for variant in variants]}
    return None


def _takes(schema: Schema, name: str) -> bool:
    """Whether an object may have ``name`` although no property says so."""
    return schema.get("additionalProperties") is not False or "$ref" in schema or _matches(schema, name)


def _matches(schema: Schema, name: str) -> bool:
    patterns = as_object(schema.get("patternProperties")) or {}
    return bool(patterns) and not SchemaChecker({"patternProperties": dict.fromkeys(patterns, False)}).is_valid(
        {name: 0}
    )
