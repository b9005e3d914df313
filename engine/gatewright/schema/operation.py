"""The values that describe which operations a tool's schema offers. They do not know how the schema spells them."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

Confidence = Literal["declared", "high", "low"]
"""declared: the field was named by the caller; high: name, shape and place agree; low: off unless somebody says so."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation and the parameters that the schema ties to it, the operation field left out."""

    name: str
    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()

    def to_json(self) -> dict[str, object]:
        """Shape: name, required, optional."""
        return {"name": self.name, "required": list(self.required), "optional": list(self.optional)}


@dataclass(frozen=True, slots=True)
class OperationSet:
    """The operations of one schema, in its order. ``default`` is the one that leaving the field out calls."""

    field: str
    operations: tuple[Operation, ...]
    shape: str
    confidence: Confidence
    default: str | None = None
    suggested: tuple[str, ...] = ()
    field_required: bool = dataclasses.field(default=True, kw_only=True)

    @property
    def names(self) -> tuple[str, ...]:
        """The names in the schema's order."""
        return tuple(operation.name for operation in self.operations)

    def operation_of(self, arguments: Mapping[str, object]) -> str | None:
        """What ``arguments`` call: the exact text given, the default when the field is missing or null, else None.

        The text is returned as it stands even if it is no known operation; None means that nobody can tell.
        """
        given = arguments.get(self.field)
        if given is None:
            return self.default
        return given if isinstance(given, str) else None

    def to_json(self) -> dict[str, object]:
        """Shape: field, shape, confidence, default, operations, suggested."""
        return {
            "field": self.field,
            "shape": self.shape,
            "confidence": self.confidence,
            "default": self.default,
            "operations": [operation.to_json() for operation in self.operations],
            "suggested": list(self.suggested),
        }
