"""Input given as a pydantic model whose enum field or tagged union selects operations."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import field
from typing import Any, cast, get_args

from pydantic import BaseModel, TypeAdapter, ValidationError

from gatewright.base.errors import RegistrationError, SchemaError, ToolFailure, WeMustFix
from gatewright.base.frozen import frozen
from gatewright.schema import OperationSet, discover_operations, filter_with_lints, schema_of
from gatewright.schema.filter import reduced_schema
from gatewright.schema.walk import Schema, objects, properties_of
from gatewright.tools.branches import parameter_of
from gatewright.tools.context import ToolExecutionContext
from gatewright.tools.declaration import Declaration
from gatewright.tools.needs import kinds_of
from gatewright.tools.operation import ArgumentIssue, OperationSpec, issues_of
from gatewright.tools.parameter import Mark, Parameter
from gatewright.tools.shape import PLAIN
from gatewright.tools.stream import awaitable, check_yields

Run = Callable[[Any, Any, ToolExecutionContext], Awaitable[object]]


@frozen
class ModelShape:
    """One model for all operations; its schema is the model's own, filtered like a stranger's."""

    schema: Schema = field(hash=False)
    found: OperationSet | None
    specs: tuple[OperationSpec, ...]
    adapter: TypeAdapter[Any] = field(hash=False)
    function: Run

    @property
    def operation_field(self) -> str | None:
        """Where the model holds its operation."""
        return self.found.field if self.found else None

    @property
    def operations(self) -> tuple[OperationSpec, ...]:
        """As discovered in the model's schema."""
        return self.specs if self.found else ()

    def parameters(self, operation: str) -> tuple[Parameter, ...]:
        """What the schema ties to the operation."""
        return next((spec.parameters for spec in self.specs if spec.name == operation), ())

    def schema_for(self, shown: frozenset[str]) -> Schema | None:
        """The model's schema reduced to the shown operations."""
        if self.found is None:
            return self.schema if PLAIN in shown else None
        return filter_with_lints(self.schema, shown, found=self.found).schema

    def cleaned(self, text: str, shown: frozenset[str]) -> str:
        """``text`` cleaned like those inside the schema."""
        return text if self.found is None else filter_with_lints(self.schema, shown, found=self.found).clean(text)

    def operations_of(self, arguments: Mapping[str, object]) -> tuple[str, ...] | None:
        """By the model's own field and default."""
        return self.found.of(arguments) if self.found else (PLAIN,)

    def missing(self, operation: str, arguments: Mapping[str, object]) -> tuple[ArgumentIssue, ...]:
        """What the operation's part of the schema requires; other names are the schema's business."""
        spec = next((spec for spec in self.specs if spec.name == operation), None)
        return issues_of(spec, arguments, closed=False) if spec else ()

    async def run(
        self, owner: object, operation: str, arguments: Mapping[str, object], context: ToolExecutionContext
    ) -> object:
        """Build the model and hand it over."""
        from gatewright.tools.signature import first_message

        called = self.operations_of(arguments)
        if called is None or (len(frozenset(called)) == 1 and operation not in called):
            raise WeMustFix(f"the arguments do not call `{operation}`")
        try:
            value = self.adapter.validate_python(dict(arguments))
        except ValidationError as error:
            raise ToolFailure(f"arguments do not fit: {first_message(error)}", code="bad-argument") from None
        return await self.function(owner, value, context)


def model_shape(declared: type[Declaration], where: str) -> ModelShape:
    """Read the input model of a tool, and what the tool says of its operations: their tiers, actions and the like.

    Raises RegistrationError for a model without object schema, and where what is said is of no operation of it.
    """
    run, model, field = getattr(declared, "run", None), declared.input_model, declared.__dict__.get("operation_field")
    if not (inspect.iscoroutinefunction(run) or inspect.isasyncgenfunction(run)):
        raise RegistrationError(f"{where} has an `input_model` and no `async def run(self, arguments, context)`")
    check_yields(run, declared.result_type, f"`run` of {where}")
    try:
        schema = schema_of(model)
        found = discover_operations(schema, field=field)
    except SchemaError as error:
        raise RegistrationError(f"{where}: {error}") from None
    if found is None and field is not None:
        raise RegistrationError(f"{where}: the input model offers no operations at `{field}`")
    found = found if found and (field or found.confidence != "low") else None
    if found is None and schema.get("type") != "object":
        raise RegistrationError(f"{where}: the input model is no object")
    names = found.names if found else (PLAIN,)
    tiers, actions = declared.operation_tiers, declared.operation_actions
    usage_rules, kinds = declared.operation_usage_rules, declared.operation_capabilities
    for name in (*tiers, *actions, *usage_rules, *kinds):
        if found is None or name not in names:
            raise RegistrationError(f"{where}: `{name}` is no operation of the input model")
    marks = _marks(model, where)
    specs = tuple(
        OperationSpec(
            name,
            "",
            tiers.get(name, declared.safety_tier),
            actions.get(name, ()),
            usage_rules.get(name),
            _parameters(schema, found, name, marks),
            capabilities=kinds_of(kinds[name], f"operation `{name}` of {where}") if name in kinds else None,
        )
        for name in names
    )
    return ModelShape(schema, found, specs, TypeAdapter[Any](model), awaitable(run))


def _parameters(
    schema: Schema, found: OperationSet | None, name: str, marks: Mapping[str, tuple[Mark, ...]]
) -> tuple[Parameter, ...]:
    """What the operation ``name`` takes; of a model without operations, all that it has."""
    properties = _all_properties(reduced_schema(schema, found, frozenset({name})) if found else schema)
    required, names = tuple(schema.get("required", ())), tuple(properties)
    if found is not None:
        operation = next(one for one in found.operations if one.name == name)
        required, names = operation.required, (*operation.required, *operation.optional)
    return tuple(parameter_of(one, properties.get(one), one in required, marks.get(one, ())) for one in names)


def _all_properties(schema: Schema) -> dict[str, Schema]:
    """The properties of a schema and of the branches that apply to the same value."""
    found: dict[str, Schema] = {}
    for keyword in ("allOf", "anyOf", "oneOf"):
        for branch in objects(schema.get(keyword)):
            found |= _all_properties(branch)
    return found | {name: cast("Schema", value) for name, value in properties_of(schema).items()}


def _marks(model: Any, where: str) -> dict[str, tuple[Mark, ...]]:
    """The marks of each field. Raises RegistrationError for one field with different ones."""
    from gatewright.tools.mark import marks_of_fields

    marks: dict[str, tuple[Mark, ...]] = {}
    for held in _models(model):
        for name, found in marks_of_fields(held, where).items():
            if marks.setdefault(name, found) != found:
                raise RegistrationError(f"{where}: parameter `{name}` has two roles")
    return marks


def _models(hint: Any) -> Iterator[type[BaseModel]]:
    """The models that ``hint`` is made of: itself, the members of a union, what a root model holds."""
    if isinstance(hint, type) and issubclass(hint, BaseModel):
        yield hint
        root = hint.model_fields.get("root")
        if root is not None:
            yield from _models(root.annotation)
        return
    for argument in get_args(hint):
        yield from _models(argument)
