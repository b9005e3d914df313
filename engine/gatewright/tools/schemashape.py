"""Input given as a JSON Schema: a stranger's definition, or a function whose operations somebody declared.

The schema is kept as it came; what selects operations in it is in ``reading``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import field, replace
from itertools import islice
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
    declared_reading,
    discovered_reading,
    parameters_in,
)
from gatewright.tools.parameter import Parameter
from gatewright.tools.shape import PLAIN, MethodShape, ModelShape, PlainShape

Runner = Callable[[Mapping[str, JsonValue], ToolExecutionContext], Awaitable[object]]
"""Does the work of a tool that is known by its definition; None of it: the tool can be decided, never executed."""


@frozen
class DefinitionShape:
    """A definition without operations: the schema as it came, and whoever runs it."""

    schema: Schema = field(hash=False)
    own_parameters: tuple[Parameter, ...]
    runner: Runner | None = None
    operation_field: None = None
    found: None = None
    operations: tuple[OperationSpec, ...] = ()

    def parameters(self, operation: str) -> tuple[Parameter, ...]:
        """What the root of the schema declares."""
        return self.own_parameters if operation == PLAIN else ()

    def schema_for(self, shown: frozenset[str]) -> Schema | None:
        """The schema as it came."""
        return self.schema if PLAIN in shown else None

    def cleaned(self, text: str, shown: frozenset[str]) -> str:  # noqa: ARG002
        """As it is: nothing is hidden."""
        return text

    def operations_of(self, arguments: Mapping[str, object]) -> tuple[str, ...] | None:  # noqa: ARG002
        """Always the plain one."""
        return (PLAIN,)

    def missing(self, operation: str, arguments: Mapping[str, object]) -> tuple[ArgumentIssue, ...]:  # noqa: ARG002
        """Nothing: the schema says it all."""
        return ()

    async def run(
        self,
        owner: Any,
        operation: str,  # noqa: ARG002
        arguments: Mapping[str, object],
        context: ToolExecutionContext,
    ) -> object:
        """Hand the arguments on. Raises ToolFailure where nobody runs the tool."""
        if self.runner is None:
            raise ToolFailure(f"`{owner.name}` cannot be executed here", code="not-supported")
        return await self.runner(arguments, context)  # pyright: ignore[reportArgumentType]


@frozen
class SelectedShape:
    """A schema with a field that selects operations, over an input that knows nothing of them (``inner``)."""

    reading: Reading = field(hash=False)
    specs: tuple[OperationSpec, ...]
    inner: InputShape
    _last: list[tuple[frozenset[str], FilterResult]] = field(
        default_factory=list[tuple[frozenset[str], FilterResult]], compare=False, repr=False
    )

    @property
    def found(self) -> OperationSet:
        """How the operation stands in the schema."""
        return self.reading.found

    @property
    def operation_field(self) -> str:
        """Where the operation stands."""
        return self.reading.found.field

    @property
    def operations(self) -> tuple[OperationSpec, ...]:
        """In the order of the declaration, or else of the schema."""
        return self.specs

    def parameters(self, operation: str) -> tuple[Parameter, ...]:
        """What the schema ties to the operation, the operation field left out."""
        return next((spec.parameters for spec in self.specs if spec.name == operation), ())

    def schema_for(self, shown: frozenset[str]) -> Schema | None:
        """The schema filtered to the shown operations."""
        return self.filtered(shown).schema

    def filtered(self, shown: frozenset[str]) -> FilterResult:
        """The same with lints, and with what cleans the tool's own texts; the last answer is kept."""
        for held, result in self._last[:1]:
            if held == shown:
                return result
        result = self.reading.filtered(shown & {spec.name for spec in self.specs})
        self._last[:] = [(shown, result)]
        return result

    def cleaned(self, text: str, shown: frozenset[str]) -> str:
        """``text`` cleaned like those inside the schema."""
        return self.filtered(shown).clean(text)

    def operations_of(self, arguments: Mapping[str, object]) -> tuple[str, ...] | None:
        """By the found field, its further places and its default."""
        return self.reading.found.of(arguments)

    def missing(self, operation: str, arguments: Mapping[str, object]) -> tuple[ArgumentIssue, ...]:  # noqa: ARG002
        """What the input itself asks for, whatever the operation."""
        return self.inner.missing(PLAIN, arguments)

    async def run(
        self,
        owner: object,
        operation: str,  # noqa: ARG002
        arguments: Mapping[str, object],
        context: ToolExecutionContext,
    ) -> object:
        """The input's own way: the operation is one of its arguments."""
        return await self.inner.run(owner, PLAIN, arguments, context)


InputShape: TypeAlias = PlainShape | MethodShape | ModelShape | DefinitionShape | SelectedShape
"""How a tool takes its input. All of them answer the same questions.

``operation_field``: the field that selects the operation, ``operations``: in their declared order (None and empty for a
tool without operations); ``found``: how the operation stands in the schema, None for declared ones. ``parameters``:
what an operation takes. ``schema_for``: the schema for the shown operations, None when nothing is shown. ``cleaned``: a
text of the tool's own without the names of operations that are not shown. ``operations_of``: every operation that
arguments call, known or not, None when nobody can tell. ``missing``: what an operation needs and was not given, or was
given and does not take. ``run`` does it for its ``owner``, the tool; raises ToolFailure for arguments that do not fit.
"""


def definition_shape(
    schema: Schema, tier: SafetyTier, tiers: Mapping[str, SafetyTier], runner: Runner | None
) -> InputShape:
    """The shape of a definition, with the operations that discovery is sure enough of. Raises SchemaError."""
    inlined = inline_references(schema)
    plain = DefinitionShape(schema, parameters_in(inlined), runner)
    reading = discovered_reading(schema, inlined)
    return plain if reading is None else _selected(reading, plain, tier, tiers)


def selected(
    shape: InputShape,
    field_name: str | None,
    operations: tuple[str, ...] | None,
    tier: SafetyTier,
    tiers: Mapping[str, SafetyTier],
) -> InputShape:
    """``shape`` read with the operation field, or the operations, that somebody names. Raises SchemaError.

    An empty ``field_name`` says that no field selects operations. Operations without a field are those of the field
    that was read before, if there is one.
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
    reading = declared_reading(schema, inline_references(schema), field_name, operations)
    _refuse_marked(reading, inner)
    return _selected(reading, inner, tier, tiers)


def answering(shape: InputShape, outputs: Mapping[str, Schema]) -> InputShape:
    """``shape`` whose operations have the results that ``outputs`` describes. Raises SchemaError."""
    unknown = outputs.keys() - {spec.name for spec in shape.operations}
    if unknown or not isinstance(shape, SelectedShape):
        raise SchemaError(f"`operation_outputs` names `{min(unknown, default='')[:80]}`, which it does not have")
    return replace(shape, specs=tuple(replace(spec, output_schema=outputs.get(spec.name)) for spec in shape.specs))


def listed_names(given: object, tool_name: str) -> tuple[str, ...]:
    """What a function ``operations`` answered, as names. Raises RegistrationError."""
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


def listed_shape(shape: InputShape, field_name: str, names: tuple[str, ...], tier: SafetyTier) -> InputShape:
    """``shape`` with the operations ``names`` only: some of those it has, or of a function any. Raises SchemaError."""
    if not isinstance(shape, (MethodShape, ModelShape)):
        return selected(shape, field_name, names, tier, {})
    unknown = next((name for name in names if name not in {spec.name for spec in shape.operations}), None)
    if unknown is not None:
        raise SchemaError(f"its function `operations` names `{unknown}`, which it does not have")
    specs = tuple(spec for spec in shape.operations if spec.name in names)
    return replace(shape, operations=specs) if isinstance(shape, MethodShape) else replace(shape, specs=specs)


def _refuse_marked(reading: Reading, inner: InputShape) -> None:
    """What the gate judges as a path, an address or the like stays that."""
    fields = {steps[0] for steps in reading.found.places}
    for parameter in inner.parameters(PLAIN):
        if parameter.marks and parameter.name in fields:
            raise SchemaError(f"`{parameter.name}` is a {parameter.role} and cannot select operations")


def _selected(reading: Reading, inner: InputShape, tier: SafetyTier, tiers: Mapping[str, SafetyTier]) -> SelectedShape:
    taken = _Taken(reading, inner)
    specs = (OperationSpec(name, "", tiers.get(name, tier), parameters=taken.of(name)) for name in reading.names)
    return SelectedShape(reading, tuple(specs), inner)


class _Taken:
    """What each operation takes; equal lists are one, since a schema may offer many operations."""

    def __init__(self, reading: Reading, inner: InputShape) -> None:
        found = reading.found
        self._is_keyed = found.is_keyed
        self._operations = {operation.name: operation for operation in found.operations}
        self._known = {parameter.name: parameter for parameter in inner.parameters(PLAIN)}
        self._same: dict[tuple[tuple[str, ...], tuple[str, ...]], tuple[Parameter, ...]] = {}
        self._reading = reading
        self._branches: Branches | None = None

    def of(self, name: str) -> tuple[Parameter, ...]:
        """The parameters of the operation ``name``; where it is a key, that key."""
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
