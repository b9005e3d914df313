"""Root shapes that providers refuse, rewritten to one flat object where that means the same. It knows no provider.

A root union of objects told apart by a tag becomes one object with an enum of the tag's values; the parameters keep
their schemas. That is looser (which parameters belong to which value is said in words), so a lint tells, and the gate
checks against the exact schema as before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gatewright.schema.discover import discover_operations
from gatewright.schema.formats.format import ProviderLint
from gatewright.schema.operation import OperationSet
from gatewright.schema.shapes.union import tagged_variants
from gatewright.schema.walk import Schema, as_object, properties_of, required_of

REFUSED_AT_ROOT = ("oneOf", "anyOf", "allOf", "not", "enum")


@dataclass(frozen=True, slots=True)
class FlatRoot:
    """A schema with an object at its root; ``refused`` are the keywords that could not be rewritten."""

    schema: Schema
    refused: tuple[str, ...] = ()
    flattened: bool = False


def flat_root(schema: Schema) -> FlatRoot:
    """``schema`` in a form with nothing refused at the root, as far as that is possible."""
    refused = tuple(keyword for keyword in REFUSED_AT_ROOT if keyword in schema)
    if not refused:
        return FlatRoot(schema if "type" in schema else {"type": "object", **schema})
    found = discover_operations(schema)
    if refused in (("oneOf",), ("anyOf",)) and found is not None and found.shape == "tagged-union":
        flat = _flattened(schema, refused[0], found)
        if flat is not None:
            return FlatRoot(flat, flattened=True)
    return FlatRoot(schema, refused)


def _flattened(schema: Schema, keyword: str, found: OperationSet) -> Schema | None:
    variants = tagged_variants(schema, keyword, found.field) or []
    properties: Schema = {found.field: _tag(variants, found), **properties_of(schema)}
    properties[found.field] = _tag(variants, found)
    for variant, _ in variants:
        for name, value in properties_of(variant).items():
            if name != found.field and properties.setdefault(name, value) != value:
                merged = _either(properties[name], value)
                properties[name] = merged
    required = [found.field] if found.field_required else []
    for name in properties:
        everywhere = all(name in required_of(variant) for variant, _ in variants)
        if name != found.field and (everywhere or name in required_of(schema)):
            required.append(name)
    kept = {
        key: value for key, value in schema.items() if key not in (keyword, "discriminator", "properties", "required")
    }
    open_ended = any(variant.get("additionalProperties", True) is not False for variant, _ in variants)
    result: Schema = {**kept, "type": "object", "properties": properties, "required": required}
    if not open_ended and "additionalProperties" not in kept:
        result["additionalProperties"] = False
    return result


def _either(first: Any, second: Any) -> Schema:
    branches: list[Any] = list((as_object(first) or {}).get("anyOf", [first])) if _is_either(first) else [first]
    return {"anyOf": branches if second in branches else [*branches, second]}


def _is_either(value: Any) -> bool:
    schema = as_object(value)
    return schema is not None and set(schema) == {"anyOf"}


def _tag(variants: list[tuple[Schema, tuple[str, ...]]], found: OperationSet) -> Schema:
    lines = [_line(operation.name, operation.required) for operation in found.operations]
    texts = [text for variant, _ in variants if isinstance(text := _own(variant, found.field).get("description"), str)]
    parts = list(dict.fromkeys(texts)) + [line for line in lines if line]
    tag: Schema = {"type": "string", "enum": list(found.names)}
    return {**tag, "description": " ".join(parts)} if parts else tag


def _own(variant: Schema, field: str) -> Schema:
    return as_object(properties_of(variant).get(field)) or {}


def _line(name: str, required: tuple[str, ...]) -> str:
    if not required:
        return ""
    return f"`{name}` needs {', '.join(f'`{parameter}`' for parameter in required)}."


def root_lints(schema: Schema, provider: str) -> tuple[ProviderLint, ...]:
    """What `flat_root` had to loosen or could not mend, for a provider that refuses such roots."""
    flat = flat_root(schema)
    lints = [
        ProviderLint(
            "root-keyword", f"{provider} refuses `{keyword}` at the root of a schema; split the tool", f"/{keyword}"
        )
        for keyword in flat.refused
    ]
    if flat.flattened:
        message = (
            f"{provider} refuses a union at the root: one flat object is sent, and the gate checks the exact schema"
        )
        lints.append(ProviderLint("root-flattened", message))
    return tuple(lints)
