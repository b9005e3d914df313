"""Words on a field that somebody names for the operations and that holds none. It reads schemas and prints nothing."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from gatewright.base.problem import near_miss
from gatewright.schema import Schema, discover_operations, inline_references
from gatewright.schema.operation import EACH, EACH_MEMBER, path_text, steps_of
from gatewright.schema.shapes.nested import places
from gatewright.schema.walk import as_object, finder, in_place, items_of, properties_of

if TYPE_CHECKING:
    from gatewright.schema import Survey


def missing_field(schema: Schema, field: str) -> str | None:
    """Why ``field`` cannot be read; None where it is in the schema. Raises SchemaError."""
    inlined = inline_references(schema)
    if _holds(inlined, field) or discover_operations(schema, field=field) is not None:
        return None
    known = _fields(inlined)
    if field in known:
        return None
    inside = next((name for name in known if name.endswith(f".{field}")), None)
    close = near_miss(field, known) or inside
    return f"the schema has no field `{field}`" + (f" (did you mean `{close}`?)" if close else "")


def unlisted(looked: Survey, field: str) -> str:
    """What to do about a field that is there and lists nothing."""
    free = next((one for one in looked.free if one.field == field), None)
    if free is None:
        return f"`{field}` lists no operations; where it takes a text, declare them with `--operations a,b`"
    usable = [name for name in free.suggested if "," not in name] or ["a", "b"]
    options = f"--operations {shlex.quote(','.join(usable))} --field {shlex.quote(field)}"
    return f"`{field}` is free text: declare its operations with `{options}`"


def _holds(schema: Schema, field: str) -> bool:
    """Whether the steps of ``field`` lead somewhere, however deep, in whatever branches."""
    find, steps = finder(schema), steps_of(field)
    reached: list[object] = [schema]
    for step in steps:
        tables = [table for value in reached if (table := as_object(value)) is not None]
        nodes = {id(node): node for table in tables for node in in_place(table, find)}.values()
        if step == EACH:
            reached = [item for node in nodes for item in items_of(node)]
        elif step == EACH_MEMBER:
            reached = [node["additionalProperties"] for node in nodes if "additionalProperties" in node]
        else:
            reached = [held[step] for node in nodes if step in (held := properties_of(node))]
    return bool(steps and reached)


def _fields(schema: Schema) -> list[str]:
    """The fields of an inlined schema as `--field` spells them, the outermost first; not endlessly deep."""
    found = places(schema)
    names = (path_text((*place.steps, name)) for place in found for node in place.nodes for name in properties_of(node))
    return list(dict.fromkeys(names))
