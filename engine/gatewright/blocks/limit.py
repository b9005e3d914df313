"""How large a block may become, and whether it has the parts of its schema and no others. It plans nothing.

``char_limit`` counts the characters of texts; of other values those of their JSON and of their field's name. An edit
that makes a block smaller is always let through, also when the block is over a limit that was lowered.
"""

from __future__ import annotations

from typing import assert_never

from gatewright.base.errors import ToolFailure
from gatewright.blocks.field import FieldType
from gatewright.blocks.part import Document, ListOp, Op, counter_name, list_name, map_name, text_name
from gatewright.blocks.schema import MAX_CHARS, MAX_ITEMS, ListSchema, LogSchema, MapSchema, TextSchema


def check_growth(document: Document, ops: tuple[Op, ...], char_limit: int | None) -> None:
    """Raises ToolFailure (``too-large``, ``too-many-items``) when the operations would make the block too large."""
    grown, limit = document.grown(ops), MAX_CHARS if char_limit is None else min(char_limit, MAX_CHARS)
    if grown > 0 and (chars := document.chars() + grown) > limit:
        said = f"the block would have {chars:,} characters, more than its limit of {limit:,}"
        raise ToolFailure(said, code="too-large")
    counts: dict[str, int] = {}
    for op in ops:
        if isinstance(op, ListOp):
            counts[op.name] = counts.get(op.name, 0) + len(op.inserted) - op.removed
    for section, schema in document.parts.items() if counts else ():
        more = counts.get(list_name(section, schema), 0)
        if more <= 0 or not isinstance(schema, ListSchema | LogSchema):
            continue
        count = document.item_count(section) + more
        most = MAX_ITEMS if schema.max_items is None else schema.max_items
        if count > most:
            what = "entries" if isinstance(schema, LogSchema) else "items"
            said = f"there would be {count:,} {what}, more than the limit of {most:,}"
            raise ToolFailure(said, code="too-many-items")


def check_parts(document: Document) -> None:
    """Raises ToolFailure for a part that the schema does not have, and whatever Loro raises for one it cannot read."""
    known: set[str] = set()
    for section, schema in document.parts.items():
        match schema:
            case TextSchema():
                known.add(text_name(section))
            case MapSchema():
                known.add(map_name(section))
                known |= {counter_name(section, one.name) for one in schema.fields if one.type is FieldType.COUNTER}
            case ListSchema() | LogSchema():
                known.add(list_name(section, schema))
            case _:
                assert_never(schema)
        document.part(section)
    held = document.loro.get_value()
    for name in held if isinstance(held, dict) else ():
        if name not in known:
            raise ToolFailure("it holds a part that this block does not have", code="wrong-schema")
