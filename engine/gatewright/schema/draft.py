"""Which draft a schema is written in, and whether it would mean the same in another. It checks no values."""

from __future__ import annotations

from gatewright.base.errors import SchemaError
from gatewright.schema.walk import Schema, walk

_OLD_ONLY = frozenset({"additionalItems", "dependencies"})
NEW_ONLY = frozenset(
    {"prefixItems", "dependentRequired", "dependentSchemas", "unevaluatedProperties", "unevaluatedItems"}
    | {"minContains", "maxContains", "$dynamicRef", "$recursiveRef"}
)
"""Keywords that say nothing in draft 7."""


def is_draft_7(schema: Schema) -> bool:
    """Whether ``schema`` says that it is written in draft 7."""
    return "draft-07" in str(schema.get("$schema", ""))


def at_one_draft(schema: Schema, added: Schema) -> tuple[Schema, Schema]:
    """Both in one draft, the one of ``schema`` where it can stay, without the name of the draft in ``added``.

    Raises SchemaError where each says something that the other's draft does not know.
    """
    bare = {key: value for key, value in added.items() if key != "$schema"}
    if is_draft_7(schema) == is_draft_7(added) or _means_the_same(bare):
        return schema, bare
    if _means_the_same(schema):
        address = added.get("$schema", "https://json-schema.org/draft/2020-12/schema")
        return {**schema, "$schema": address}, bare
    raise SchemaError("a constraint is written in another draft than the tool's schema, and neither fits the other")


def _means_the_same(schema: Schema) -> bool:
    """Whether ``schema`` may be read in either draft alike."""
    for _, node in walk(schema):
        if (NEW_ONLY | _OLD_ONLY) & node.keys() or isinstance(node.get("items"), list):
            return False
        if "$ref" in node and node.keys() - {"$ref", "$schema", "$defs", "definitions", "title", "description"}:
            return False
    return True
