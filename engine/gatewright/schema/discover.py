"""Which operations a schema offers and which field selects them."""

from __future__ import annotations

from collections.abc import Iterable

from gatewright.schema.declare import with_declared
from gatewright.schema.inline import inline_references
from gatewright.schema.operation import OperationSet
from gatewright.schema.shapes import candidates_of
from gatewright.schema.shapes.repeat import with_repeats
from gatewright.schema.shapes.shape import Candidate
from gatewright.schema.walk import Schema


def discover_operations(
    schema: Schema, *, field: str | None = None, operations: Iterable[str] | None = None
) -> OperationSet | None:
    """The operations of ``schema``, or None when nothing in it selects operations.

    ``field`` names the operation field, as a dotted path, and overrides the guess; ``operations`` declares what a free
    text there may be. Raises SchemaError for references that cannot be resolved and for a field that is not there.
    """
    inlined, readings = _read(schema, field, operations)
    return with_repeats(inlined, readings[0].found) if readings else None


def readings_of(schema: Schema, *, field: str | None, operations: Iterable[str] | None) -> list[Candidate]:
    """Every reading, the likeliest first."""
    return _read(schema, field, operations)[1]


def _read(schema: Schema, field: str | None, operations: Iterable[str] | None) -> tuple[Schema, list[Candidate]]:
    """The schema that was read, inlined and with what is declared, and its readings."""
    inlined = inline_references(schema)
    if operations is not None:
        inlined, field = with_declared(inlined, field, tuple(dict.fromkeys(operations)))
    return inlined, sorted(candidates_of(inlined, field), key=lambda candidate: -candidate.score)
