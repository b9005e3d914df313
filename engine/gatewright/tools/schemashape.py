"""Input in the form of a JSON Schema: a foreign definition, or a function with declared operations.

The schema stays as it came; ``reading`` holds the selection of operations.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import field, replace
from itertools import islice
from types import MappingProxyType
from typing import Any, TypeAlias, cast

from gatewright.base.errors import RegistrationError, SchemaError, ToolFailure
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue
from gatewright.policy.verdict import SafetyTier
from gatewright.schema import OperationSet, inline_references
from gatewright.schema.filter import FilterResult
from gatewright.schema.walk import Schema
from gatewright.tools.context import ToolExecutionContext
from gatewright.tools.declaration import check_operation_name
from gatewright.tools.operation import (
    MAX_OPERATIONS,
    ArgumentIssue,
    Branches,
    OperationSpec,
    Reading,
    discover_reading,
    parameters_in,
    read_declaration,
)
from gatewright.tools.parameter import Mark, Parameter
from gatewright.tools.shape import PLAIN, MethodShape, ModelShape, PlainShape

Runner = Callable[[Mapping[str, JsonValue], ToolExecutionContext], Awaitable[object]]
"""Does the work of a tool that its definition describes; without one the gate decides calls, but none runs."""


@frozen
class DefinitionShape:
    """A definition without operations: the schema as received, and its runner."""

    schema: Schema = field(hash=False)
    own_parameters: tuple[Parameter, ...]
    runner: Runner | None = None
    operation_field: None = None
    found: None = None
    operations: tuple[OperationSpec, ...] = ()

    def parameters(self, operation: str) -> tuple[Parameter, ...]:
        """Return the parameters that the root of the schema declares."""
        return self.own_parameters if operation == PLAIN else ()

    def schema_for(self, shown: frozenset[str]) -> Schema | None:
        """Return the schema as received."""
        return self.schema if PLAIN in shown else None

    def clean(self, text: str, shown: frozenset[str]) -> str:  # noqa: ARG002
        """Return the text as it is: nothing is hidden."""
        return text

    def operations_of(self, arguments: Mapping[str, object]) -> tuple[str, ...] | None:  # noqa: ARG002
        """Return the plain operation."""
        return (PLAIN,)

    def missing(self, operation: str, arguments: Mapping[str, object]) -> tuple[ArgumentIssue, ...]:  # noqa: ARG002
        """Return nothing: the schema covers everything."""
        return ()

    async def run(
        self,
        owner: Any,
        operation: str,  # noqa: ARG002
        arguments: Mapping[str, object],
        context: ToolExecutionContext,
    ) -> object:
        """Pass the arguments to the runner. Raises ToolFailure if the tool has none."""
        if self.runner is None:
            raise ToolFailure(f"`{owner.name}` cannot be executed here", code="not-supported")
        return await self.runner(arguments, context)  # pyright: ignore[reportArgumentType]


@frozen
class SelectedShape:
    """A schema with a field that selects operations, around an input without one (``inner``)."""

    reading: Reading = field(hash=False)
    specs: tuple[OperationSpec, ...]
    inner: InputShape
    _last: list[tuple[frozenset[str], FilterResult]] = field(
        default_factory=list[tuple[frozenset[str], FilterResult]], compare=False, repr=False
    )

    @property
    def found(self) -> OperationSet:
        """The place of the operation in the schema."""
        return self.reading.found

    @property
    def operation_field(self) -> str:
        """The field that holds the operation."""
        return self.reading.found.field

    @property
    def operations(self) -> tuple[OperationSpec, ...]:
        """The operations in the order of the declaration, or else of the schema."""
        return self.specs

    def parameters(self, operation: str) -> tuple[Parameter, ...]:
        """Return the parameters that the schema ties to the operation, without the operation field."""
        return next((spec.parameters for spec in self.specs if spec.name == operation), ())

    def schema_for(self, shown: frozenset[str]) -> Schema | None:
        """Return the schema with the shown operations only."""
        return self.filter_to(shown).schema

    def filter_to(self, shown: frozenset[str]) -> FilterResult:
        """Return the same schema with lints, and the cleaner of the tool's own texts; the last answer is cached."""
        for held, result in self._last[:1]:
            if held == shown:
                return result
        result = self.reading.filter_to(shown & {spec.name for spec in self.specs})
        self._last[:] = [(shown, result)]
        return result

    def clean(self, text: str, shown: frozenset[str]) -> str:
        """Clean ``text`` like the texts inside the schema."""
        return self.filter_to(shown).clean(text)

    def operations_of(self, arguments: Mapping[str, object]) -> tuple[str, ...] | None:
        """Read the operations from the field, its further places and its default."""
        return self.reading.found.of(arguments)

    def missing(self, operation: str, arguments: Mapping[str, object]) -> tuple[ArgumentIssue, ...]:  # noqa: ARG002
        """Return the faults that the input itself finds, whatever the operation."""
        return self.inner.missing(PLAIN, arguments)

    async def run(
        self,
        owner: object,
        operation: str,  # noqa: ARG002
        arguments: Mapping[str, object],
        context: ToolExecutionContext,
    ) -> object:
        """Run the input itself: the operation is one of its arguments."""
        return await self.inner.run(owner, PLAIN, arguments, context)


InputShape: TypeAlias = PlainShape | MethodShape | ModelShape | DefinitionShape | SelectedShape
"""The forms of a tool's input, all with the same attributes.

``operation_field``: the field that selects the operation, ``operations``: in their declared order (None and empty for a
tool without operations); ``found``: the place of the operation in the schema, None for declared ones. ``parameters``:
the parameters of an operation. ``schema_for``: the schema for the shown operations, None without any. ``clean``:
removes the names of hidden operations from a text of the tool. ``operations_of``: every operation that arguments call,
known or not, None if nobody can tell. ``missing``: missing and superfluous arguments of an operation. ``run`` does the
work for its ``owner``, the tool; it raises ToolFailure for arguments that do not fit.
"""


def definition_shape(
    schema: Schema,
    tier: SafetyTier,
    tiers: Mapping[str, SafetyTier],
    runner: Runner | None,
    marks: Mapping[str, tuple[Mark, ...]] = MappingProxyType({}),
) -> InputShape:
    """Return the shape of a definition, with the operations that discovery is sure enough about. Raises SchemaError.

    ``marks``: those of its parameters, by name.
    """
    inlined = inline_references(schema)
    plain = DefinitionShape(schema, parameters_in(inlined, marks), runner)
    reading = discover_reading(schema, inlined)
    return plain if reading is None else _select(reading, plain, tier, tiers)


def select(
    shape: InputShape,
    field_name: str | None,
    operations: tuple[str, ...] | None,
    tier: SafetyTier,
    tiers: Mapping[str, SafetyTier],
) -> InputShape:
    """Read ``shape`` by the operation field, or the operations, that somebody names. Raises SchemaError.

    An empty ``field_name`` means that no field selects operations. Without a field, the operations belong to the field
    that was found before, if any.
    """
    inner = shape.inner if isinstance(shape, SelectedShape) else shape
    if field_name == "":
        if operations:
            raise SchemaError("operations are declared for a tool without operation field")
        return inner
    if field_name is None and isinstance(shape, SelectedShape):
        field_name = shape.operation_field
    schema = inner.schema_for(frozenset({PLAIN}))
    if schema is None:
        raise SchemaError("the tool shows no schema")
    reading = read_declaration(schema, inline_references(schema), field_name, operations)
    _refuse_marked(reading, inner)
    return _select(reading, inner, tier, tiers)


def answering(shape: InputShape, outputs: Mapping[str, Schema]) -> InputShape:
    """Give the operations of ``shape`` the results that ``outputs`` describes. Raises SchemaError."""
    unknown = outputs.keys() - {spec.name for spec in shape.operations}
    if unknown or not isinstance(shape, SelectedShape):
        raise SchemaError(f"`operation_outputs` names `{min(unknown, default='')[:80]}`, which it does not have")
    return replace(shape, specs=tuple(replace(spec, output_schema=outputs.get(spec.name)) for spec in shape.specs))


def check_listed_names(given: object, tool_name: str) -> tuple[str, ...]:
    """Check the answer of a function ``operations``, and return its names. Raises RegistrationError."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise RegistrationError("its function `operations` answered no list of names")
    names = tuple(islice(cast("Iterable[object]", given), MAX_OPERATIONS + 1))
    if not names or len(names) > MAX_OPERATIONS:
        raise RegistrationError(f"its function `operations` answered {'no' if not names else 'too many'} names")
    for name in names:
        if not isinstance(name, str):
            raise RegistrationError("its function `operations` answered something that is no name")
        check_operation_name(name, tool_name)
    return tuple(dict.fromkeys(cast("tuple[str, ...]", names)))


def limit_shape(shape: InputShape, field_name: str, names: tuple[str, ...], tier: SafetyTier) -> InputShape:
    """Limit ``shape`` to the operations ``names``: some of its own, or any names for a function. Raises SchemaError."""
    if not isinstance(shape, (MethodShape, ModelShape)):
        return select(shape, field_name, names, tier, {})
    unknown = next((name for name in names if name not in {spec.name for spec in shape.operations}), None)
    if unknown is not None:
        raise SchemaError(f"its function `operations` names `{unknown}`, which it does not have")
    specs = tuple(spec for spec in shape.operations if spec.name in names)
    return replace(shape, operations=specs) if isinstance(shape, MethodShape) else replace(shape, specs=specs)


def _refuse_marked(reading: Reading, inner: InputShape) -> None:
    """Refuse an operation field that the gate treats as a path, an address or the like."""
    fields = {steps[0] for steps in reading.found.places}
    for parameter in inner.parameters(PLAIN):
        if parameter.marks and parameter.name in fields:
            raise SchemaError(f"`{parameter.name}` is a {parameter.role} and cannot select operations")


def _select(reading: Reading, inner: InputShape, tier: SafetyTier, tiers: Mapping[str, SafetyTier]) -> SelectedShape:
    taken = _Taken(reading, inner)
    specs = (OperationSpec(name, "", tiers.get(name, tier), parameters=taken.of(name)) for name in reading.names)
    return SelectedShape(reading, tuple(specs), inner)


class _Taken:
    """The parameters of each operation; equal lists are shared, since a schema may offer many operations."""

    def __init__(self, reading: Reading, inner: InputShape) -> None:
        found = reading.found
        self._is_keyed = found.is_keyed
        self._operations = {operation.name: operation for operation in found.operations}
        self._known = {parameter.name: parameter for parameter in inner.parameters(PLAIN)}
        self._same: dict[tuple[tuple[str, ...], tuple[str, ...]], tuple[Parameter, ...]] = {}
        self._reading = reading
        self._branches: Branches | None = None

    def of(self, name: str) -> tuple[Parameter, ...]:
        """Return the parameters of the operation ``name``; that key itself if operations are keys."""
        if self._is_keyed:
            return (self._parameter(name, name, required=True),)
        operation = self._operations[name]
        key = operation.required, operation.optional
        if key in self._same:
            return self._same[key]
        required = frozenset(operation.required)
        names = (*operation.required, *operation.optional)
        taken = tuple(self._parameter(one, name, required=one in required) for one in names)
        if self._known.keys() >= set(names):
            self._same[key] = taken
        return taken

    def _parameter(self, name: str, operation: str, *, required: bool) -> Parameter:
        known = self._known.get(name)
        if known is not None:
            return known if known.required == required else replace(known, required=required)
        if self._branches is None:
            self._branches = Branches(self._reading.inlined, self._reading.found.field)
        return self._branches.parameter(name, operation, required=required)
