"""What every shape family provides. It knows none of them."""

from __future__ import annotations

from collections.abc import Callable

from gatewright.base.frozen import frozen
from gatewright.schema.operation import OperationSet
from gatewright.schema.walk import Schema


@frozen
class Candidate:
    """A reading of a schema; among several the highest ``score`` wins."""

    found: OperationSet
    score: int


@frozen
class Shape:
    """One family that stands at the root; ``names`` are the values of `OperationSet.shape` that it gives.

    ``find(schema, field)`` reads an inlined schema (``field`` None: by name and place).
    """

    names: frozenset[str]
    find: Callable[[Schema, str | None], tuple[Candidate, ...]]
