"""The generator of JSON Schema 2020-12 for a pydantic model or type, in the plain form that providers take."""

from __future__ import annotations

from typing import Any, cast

from pydantic import BaseModel, TypeAdapter
from pydantic.errors import PydanticInvalidForJsonSchema, PydanticSchemaGenerationError, PydanticUserError
from pydantic.json_schema import JsonSchemaMode

from gatewright.base.errors import SchemaError
from gatewright.schema.inline import inline_references
from gatewright.schema.walk import Schema, map_children

_PLATFORM_FORMATS = frozenset(
    {"int", "int8", "int16", "int32", "int64", "uint", "uint8", "uint16", "uint32", "uint64", "float", "double"}
)


def schema_of(model_or_type: Any, mode: JsonSchemaMode = "validation") -> Schema:
    """Generate the schema of ``model_or_type`` with references inlined. Raises SchemaError when it has none.

    ``mode``: `validation` for input, `serialization` for output. Titles that pydantic makes up from field names go, and
    so do number formats of one platform.
    """
    try:
        raw = cast("Schema", _raw(model_or_type, mode))
    except (PydanticInvalidForJsonSchema, PydanticSchemaGenerationError, PydanticUserError) as error:
        name = getattr(model_or_type, "__name__", str(model_or_type))
        raise SchemaError(f"`{name}` has no JSON Schema: {str(error).splitlines()[0]}") from None
    return _plain(inline_references(raw))


def _raw(model_or_type: Any, mode: JsonSchemaMode) -> object:
    if isinstance(model_or_type, TypeAdapter):
        adapter = cast("TypeAdapter[Any]", model_or_type)
        return adapter.json_schema(mode=mode)
    if isinstance(model_or_type, type) and issubclass(model_or_type, BaseModel):
        return model_or_type.model_json_schema(mode=mode)
    adapter = TypeAdapter[Any](cast("Any", model_or_type))
    return adapter.json_schema(mode=mode)


def _plain(schema: Schema) -> Schema:
    kept = {
        key: value
        for key, value in schema.items()
        if key != "title" and not (key == "format" and isinstance(value, str) and value in _PLATFORM_FORMATS)
    }
    return map_children(kept, _plain)
