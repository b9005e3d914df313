"""Schemas put together and taken apart, as far as a form needs it. It knows no shapes and follows no references."""

from collections.abc import Callable, Mapping
from typing import Any, cast

MAX_DEPTH = 8
_TYPES = ("string", "integer", "number", "boolean", "object", "array", "null")


def as_map(value: object) -> Mapping[str, Any]:
    """A JSON object; an empty one for anything else."""
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def as_maps(value: object) -> list[Mapping[str, Any]]:
    """The JSON objects of a JSON array."""
    listed = cast("list[object]", value) if isinstance(value, list) else []
    return [cast("Mapping[str, Any]", one) for one in listed if isinstance(one, Mapping)]


def merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Both at once: properties and what is required of both; else what `over` says counts."""
    made = {**base, **over}
    names = {**as_map(base.get("properties")), **_narrowed(base, over)}
    if names:
        made["properties"] = names
    needed = [*_texts(base.get("required")), *_texts(over.get("required"))]
    if needed:
        made["required"] = list(dict.fromkeys(needed))
    return made


def _narrowed(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """The properties of `over`; one that says nothing (a branch that only names it) leaves the other as it is."""
    known = as_map(base.get("properties"))
    return {name: part if part not in ({}, True) or name not in known else known[name]
            for name, part in as_map(over.get("properties")).items()}  # fmt: skip


def named_types(schema: Mapping[str, Any]) -> list[str]:
    """The types that a schema names, without null."""
    kind = schema.get("type")
    listed = cast("list[object]", kind) if isinstance(kind, list) else [kind]
    return [one for one in listed if isinstance(one, str) and one in _TYPES and one != "null"]


def without_null(
    schema: dict[str, Any], resolved: Callable[[object], dict[str, Any]], depth: int = 0
) -> tuple[dict[str, Any], bool]:
    """The schema beside null, and whether null may stand there."""
    nullable = schema.get("nullable") is True
    kind = schema.get("type")
    if isinstance(kind, list) and "null" in kind and len(cast("list[object]", kind)) > 1:
        kinds = named_types(schema)
        schema, nullable = {**schema, "type": kinds[0] if len(kinds) == 1 else kinds}, True
    for key in ("anyOf", "oneOf"):
        listed = schema.get(key)
        if not isinstance(listed, list):
            continue
        parts = cast("list[object]", listed)
        real = [part for part in parts if not _is_null(resolved(part))]
        rest = {name: value for name, value in schema.items() if name != key}
        if len(real) == 1 and depth < MAX_DEPTH:
            inner, inner_nullable = without_null(merged(resolved(real[0]), rest), resolved, depth + 1)
            return inner, nullable or inner_nullable or len(real) < len(parts)
        if len(real) < len(parts):
            schema, nullable = {**rest, key: real}, True
    return schema, nullable


def _is_null(schema: Mapping[str, Any]) -> bool:
    return (
        schema.get("type") == "null"
        or ("const" in schema and schema["const"] is None)
        or (schema.get("enum") == [None])
    )


def _texts(value: object) -> list[str]:
    return [one for one in cast("list[object]", value) if isinstance(one, str)] if isinstance(value, list) else []
