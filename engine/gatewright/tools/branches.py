"""Parameters as a schema declares them: at its root, or in the branches that hold for one operation."""

from __future__ import annotations

from collections.abc import Iterator

from gatewright.schema.operation import choice_of
from gatewright.schema.walk import Schema, as_object, objects, properties_of, required_of
from gatewright.tools.parameter import Mark, Parameter

_UNIONS = ("allOf", "anyOf", "oneOf")
_Held = frozenset[str] | None
"""The operations for which a branch holds; None: whatever the operation."""


def parameters_in(schema: Schema) -> tuple[Parameter, ...]:
    """The root's own properties, in its order."""
    required = frozenset(required_of(schema))
    return tuple(parameter_of(name, value, name in required) for name, value in properties_of(schema).items())


def parameter_of(name: str, value: object, required: bool, marks: tuple[Mark, ...] = ()) -> Parameter:
    """The parameter whose schema is ``value``."""
    own = as_object(value) or {}
    said = own.get("description")
    return Parameter(
        name,
        {key: held for key, held in own.items() if key != "description"},
        required,
        description=said if isinstance(said, str) else "",
        default=own.get("default"),
        marks=marks,
        has_default="default" in own,
    )


class Branches:
    """An inlined schema and its branches, told apart by the operations that ``field`` may name in them."""

    def __init__(self, schema: Schema, field: str) -> None:
        self._common: list[Schema] = []
        self._own: dict[str, list[Schema]] = {}
        for node, held in _applying(schema, field):
            if held is None:
                self._common.append(node)
            for name in held or ():
                self._own.setdefault(name, []).append(node)

    def parameter(self, name: str, operation: str, *, required: bool) -> Parameter:
        """The parameter as the first branch of ``operation`` declares it that does, or else as any does."""
        for node in (*self._own.get(operation, ()), *self._common):
            if name in properties_of(node):
                return parameter_of(name, properties_of(node)[name], required)
        return Parameter(name, {}, required)


def _applying(schema: Schema, field: str) -> Iterator[tuple[Schema, _Held]]:
    stack: list[tuple[Schema, _Held]] = [(schema, None)]
    while stack:
        node, outer = stack.pop()
        held = _both(outer, _names(node, field)) if node is not schema else None
        yield node, held
        below = [(branch, held) for keyword in _UNIONS for branch in objects(node.get(keyword))]
        stack += reversed([*below, *_conditional(node, field, held)])


def _conditional(node: Schema, field: str, held: _Held) -> list[tuple[Schema, _Held]]:
    """What an `if` decides; nothing is known of what holds otherwise."""
    condition = as_object(node.get("if"))
    names = None if condition is None else _names(condition, field)
    rows = (("then", _both(held, names)), ("else", held))
    return [(branch, own) for keyword, own in rows if (branch := as_object(node.get(keyword))) is not None]


def _both(first: _Held, second: _Held) -> _Held:
    if first is None or second is None:
        return first if second is None else second
    return first & second


def _names(node: Schema, field: str) -> _Held:
    choice = choice_of(properties_of(node).get(field))
    return frozenset(choice.names) if choice is not None else None
