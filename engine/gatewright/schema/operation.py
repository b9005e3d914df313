"""The values that describe which operations a tool's schema offers."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Literal, Protocol

from gatewright.base.frozen import frozen
from gatewright.schema.fieldpath import MISSING, Missing, Steps, Unreadable, path_text, values_at

Confidence = Literal["declared", "high", "medium", "low"]
"""How sure the reading is.

declared: the field was named by the caller; high: name, shape and place agree; medium: two of them do, worth a look;
low: off unless somebody says so.
"""


KEYED = "keyed-union"
"""The shape whose operation is the only key of the arguments."""


@frozen
class Operation:
    """One operation and the parameters that the schema ties to it, the operation field left out.

    ``required`` and ``optional`` are parameters of the call itself; the ``inner`` ones stand beside an operation field
    below the root and are dotted paths.
    """

    name: str
    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    inner_required: tuple[str, ...] = dataclasses.field(default=(), kw_only=True)
    inner_optional: tuple[str, ...] = dataclasses.field(default=(), kw_only=True)

    def to_json(self) -> dict[str, object]:
        """Shape: name, required, optional; inner_required and inner_optional, where there are any."""
        inner = {"inner_required": list(self.inner_required), "inner_optional": list(self.inner_optional)}
        shown = {key: names for key, names in inner.items() if names}
        return {"name": self.name, "required": list(self.required), "optional": list(self.optional), **shown}


class Repeated(Protocol):
    """Places further inside that name operations as well, however deep."""

    def called(self, arguments: Mapping[str, object], *, left_out: bool = True) -> Iterator[str]:
        """Every operation that ``arguments`` call there; ``left_out`` False: that they write there."""
        ...


@frozen
class OperationSet:
    """The operations of one schema, in its order. ``default`` is the one that leaving the field out calls.

    ``field`` is a dotted path, with `[]` for the elements of an array; ``also`` are further places that hold the same
    operations. ``paths`` are all of them in steps, since a name may hold dots; empty stands for the flat ``field``.
    ``repeats`` finds the field further inside, where it says nothing as long as it is not reached.
    """

    field: str
    operations: tuple[Operation, ...]
    shape: str
    confidence: Confidence
    default: str | None = None
    suggested: tuple[str, ...] = ()
    field_required: bool = dataclasses.field(default=True, kw_only=True)
    paths: tuple[Steps, ...] = dataclasses.field(default=(), kw_only=True)
    repeats: Repeated | None = dataclasses.field(default=None, kw_only=True, compare=False, repr=False)

    @property
    def names(self) -> tuple[str, ...]:
        """The names in the schema's order."""
        return tuple(operation.name for operation in self.operations)

    @property
    def places(self) -> tuple[Steps, ...]:
        """Every place of the operation field."""
        return self.paths or ((self.field,),)

    @property
    def also(self) -> tuple[str, ...]:
        """The places besides ``field``."""
        return tuple(path_text(steps) for steps in self.places[1:])

    @property
    def is_flat(self) -> bool:
        """Whether the field is one of the root's own."""
        return all(len(steps) == 1 for steps in self.places) and not self.is_keyed

    @property
    def is_keyed(self) -> bool:
        """Whether the operation is the only key of the arguments rather than a value."""
        return self.shape == KEYED

    def of(
        self, arguments: Mapping[str, object], *, left_out: bool = True, unreadable: bool = False
    ) -> tuple[str, ...] | None:
        """Every operation that ``arguments`` call, exactly as written, known or not; each must be allowed.

        Empty: the call names none and calls none (an empty batch). What is left out, or null, calls the default; where
        the schema states none, it could be any of them, and all are given; ``left_out`` False: it counts as nothing.
        None: nobody can tell. With ``unreadable`` what nobody can tell could be any of them as well.
        """
        if self.is_keyed:
            return tuple(arguments) or None
        called: list[str] = []
        for steps in self.places:
            for value in values_at(dict(arguments), steps):
                if isinstance(value, Unreadable):
                    if not unreadable:
                        return None
                    called += self.names
                elif not isinstance(value, Missing):
                    called.append(value)
                elif left_out:
                    called += self._left_out(value)
        if self.repeats is not None:
            called += self.repeats.called(arguments, left_out=left_out)
        return tuple(called)

    def _left_out(self, what: Missing) -> tuple[str, ...]:
        return (self.default,) if what is MISSING and self.default is not None else self.names

    def to_json(self) -> dict[str, object]:
        """Shape: field, shape, confidence, default, operations, suggested; also, where there are further places."""
        shown: dict[str, object] = {
            "field": self.field,
            "shape": self.shape,
            "confidence": self.confidence,
            "default": self.default,
            "operations": [operation.to_json() for operation in self.operations],
            "suggested": list(self.suggested),
        }
        return {**shown, "also": list(self.also)} if self.also else shown
