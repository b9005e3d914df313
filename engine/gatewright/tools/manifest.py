"""Writing tools down as definitions, so that they can be read back where nobody can run them. It reads nothing."""

from __future__ import annotations

import json
from collections.abc import Iterable
from copy import deepcopy
from pathlib import Path

from gatewright.base.atomicfile import write_atomically
from gatewright.base.errors import SchemaError
from gatewright.schema.walk import Schema
from gatewright.tools.definition import EXTRAS
from gatewright.tools.schemashape import definition_shape
from gatewright.tools.tool import Tool


def manifest_of(tools: Iterable[Tool]) -> dict[str, object]:
    """What `read_definitions` reads back as the same tools; JSON values only, the tools in the given order."""
    return {"tools": [definition_of(tool) for tool in tools]}


def write_manifest(tools: Iterable[Tool], path: Path) -> None:
    """Replace the file at ``path`` by the manifest of ``tools``, whole or not at all. Raises OSError."""
    text = json.dumps(manifest_of(tools), indent=2, ensure_ascii=False, allow_nan=False)
    write_atomically(path, f"{text}\n".encode())


def definition_of(tool: Tool) -> Schema:
    """One tool as MCP lists it, with what only we know under ``_meta``."""
    written: Schema = {"name": tool.name}
    if tool.description:
        written["description"] = tool.description
    written["inputSchema"] = deepcopy(tool.input_schema())
    if tool.output_schema is not None:
        written["outputSchema"] = deepcopy(tool.output_schema)
    return {**written, "_meta": {EXTRAS: _extras(tool)}}


def _extras(tool: Tool) -> Schema:
    said: Schema = {"version": tool.version, "safety_tier": str(tool.safety_tier)}
    if tool.destroys is not None:
        said["destroys"] = tool.destroys
    if tool.has_operations:
        said["operation_tiers"] = {spec.name: str(spec.tier) for spec in tool.operations}
    if not tool.declares_operations and _is_discovered(tool):
        return said
    names = [spec.name for spec in tool.operations]
    declared = {"operation_field": tool.operation_field, "operations": names} if names else {"operation_field": ""}
    return {**said, **declared}


def _is_discovered(tool: Tool) -> bool:
    """Whether the schema alone is read in the same way."""
    try:
        shape = definition_shape(tool.input_schema(), tool.safety_tier, {}, None)
    except SchemaError:
        return False
    found, own = shape.found, tool.operation_set
    if found is None or own is None:
        return found is own
    return (found.names, found.places, found.default) == (own.names, own.places, own.default)
