"""How a schema is read: which field selects operations, and which of them there are.

Discovered: as `discover_operations` reads it. Declared: with the field or the operations that somebody names. A closed
list that is named is narrowed; a free text becomes a closed list.
"""

from __future__ import annotations

from dataclasses import field

from gatewright.base.errors import SchemaError
from gatewright.base.frozen import frozen
from gatewright.base.problem import near_hint
from gatewright.schema import OperationSet, discover_operations, filter_with_lints
from gatewright.schema.filter import FilterResult
from gatewright.schema.operation import path_text
from gatewright.schema.walk import Schema, properties_of

MAX_OPERATIONS = 1_000
"""A longer list is no list of operations, and nobody could gate by it."""
MAX_NAME = 1_000
"""The longest name of an operation: no saved session, rule or approval holds a longer one."""
_OFF = "low"


@frozen
class Reading:
    """One reading of ``schema``. ``asked``: the field that discovery has to be asked for to find it again.

    ``names``: the operations that count, in their order; ``is_free``: they stand in a text that takes anything.
    """

    schema: Schema = field(hash=False)
    inlined: Schema = field(hash=False)
    found: OperationSet = field(hash=False)
    names: tuple[str, ...]
    asked: str | None = None
    is_free: bool = False

    def filtered(self, shown: frozenset[str]) -> FilterResult:
        """The schema with the ``shown`` operations only. Raises SchemaError."""
        if self.is_free:
            return filter_with_lints(self.schema, shown, field=self.asked, operations=self.names)
        if shown.issuperset(self.found.names):
            return FilterResult(self.schema, (), self.found)
        return filter_with_lints(self.schema, shown, found=self.found)


def discovered_reading(schema: Schema, inlined: Schema) -> Reading | None:
    """What discovery is sure enough of. Raises SchemaError."""
    found = discover_operations(inlined)
    if found is None or found.confidence == _OFF or len(found.names) > MAX_OPERATIONS:
        return None
    reading = _reading(schema, inlined, found)
    return None if reading is None else _bounded(reading)


def declared_reading(schema: Schema, inlined: Schema, asked: str | None, operations: tuple[str, ...] | None) -> Reading:
    """The reading with the field ``asked`` for, or the ``operations`` declared, or both. Raises SchemaError."""
    wanted = None if operations is None else tuple(dict.fromkeys(operations))
    closed = _closed(schema, inlined, asked)
    if wanted is None:
        if closed is None:
            raise SchemaError(_no_operations(inlined, asked))
        return _bounded(closed)
    if not wanted or not all(wanted):
        raise SchemaError("the declared operations hold no name" if not wanted else "an operation without name")
    if closed is not None and (asked is not None or not frozenset(wanted).isdisjoint(closed.names)):
        return _bounded(_narrowed(closed, wanted))
    found = discover_operations(inlined, field=asked, operations=wanted)
    if found is None:
        raise SchemaError(_no_operations(inlined, asked))
    return _bounded(Reading(schema, inlined, found, found.names, found.field, is_free=True))


def _bounded(reading: Reading) -> Reading:
    if len(reading.names) > MAX_OPERATIONS:
        raise SchemaError(f"`{reading.found.field}` lists more than {MAX_OPERATIONS:,} operations")
    if any(len(name) > MAX_NAME for name in reading.names):
        raise SchemaError(f"`{reading.found.field}` lists an operation with a name of over {MAX_NAME:,} characters")
    return reading


def _closed(schema: Schema, inlined: Schema, asked: str | None) -> Reading | None:
    """The closed list at ``asked``; one that stands in several places is read in all of them."""
    found = discover_operations(inlined)
    if asked is not None and (found is None or not found.also or asked not in map(path_text, found.places)):
        found = discover_operations(inlined, field=asked)
        return None if found is None else _reading(schema, inlined, found, asked)
    return None if found is None else _reading(schema, inlined, found)


def _reading(schema: Schema, inlined: Schema, found: OperationSet, asked: str | None = None) -> Reading | None:
    """An empty text is nothing that a policy could name, so it is never shown."""
    names = tuple(name for name in found.names if name)
    return Reading(schema, inlined, found, names, asked) if names else None


def _narrowed(closed: Reading, wanted: tuple[str, ...]) -> Reading:
    names = closed.found.names
    unknown = [name for name in wanted if name not in names]
    if unknown:
        raise SchemaError(f"`{closed.found.field}` takes no `{unknown[0]}`{near_hint(unknown[0], names)}")
    return Reading(closed.schema, closed.inlined, closed.found, wanted, closed.asked)


def _no_operations(inlined: Schema, asked: str | None) -> str:
    if asked is None:
        return "the schema offers no operations"
    if asked in properties_of(inlined):
        return f"`{asked}` lists no operations; declare them"
    return f"the schema has no field `{asked}`{near_hint(asked, properties_of(inlined))}"
