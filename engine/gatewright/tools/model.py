"""Input given as a pydantic model whose enum field or tagged union selects operations."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import field
from typing import Any, cast, get_args

from pydantic import BaseModel, TypeAdapter, ValidationError

from gatewright.base.errors import RegistrationError, SchemaError, ToolFailure, WeMustFix
from gatewright.base.frozen import frozen
from gatewright.policy.kinds.capability import CapabilityKind
from gatewright.policy.permission import Action
from gatewright.policy.tier import SafetyTier
from gatewright.schema import OperationSet, discover_operations, filter_with_lints, schema_of
from gatewright.schema.filter import reduced_schema
from gatewright.schema.walk import Schema, objects, properties_of
from gatewright.tools.branches import parameter_of
from gatewright.tools.context import ToolExecutionContext
from gatewright.tools.operation import ArgumentIssue, OperationSpec, issues_of
from gatewright.tools.parameter import Mark, Parameter
from gatewright.tools.shape import PLAIN

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


@frozen
class OperationFactsOf:
    """What a model cannot say about its operations: tiers and actions by name, and the tier of the rest."""

    tier: SafetyTier
    tiers: Mapping[str, SafetyTier]
    actions: Mapping[str, tuple[Action, ...]]
    usage_rules: Mapping[str, str]
    capabilities: Mapping[str, frozenset[CapabilityKind]]


def model_shape(
    model: Any, function: Run, where: str, *, declared_field: str | None, say: OperationFactsOf
) -> ModelShape:
    """Read ``model``. Raises RegistrationError for one without object schema, and for facts on unknown operations."""
    try:
        schema = schema_of(model)
        found = discover_operations(schema, field=declared_field)
    except SchemaError as error:
        raise RegistrationError(f"{where}: {error}") from None
    if found is None and declared_field is not None:
        raise RegistrationError(f"{where}: the input model offers no operations at `{declared_field}`")
    found = found if found and (declared_field or found.confidence != "low") else None
    if found is None and schema.get("type") != "object":
        raise RegistrationError(f"{where}: the input model is no object")
    _check_known(found, say, where)
    marks = _marks(model, where)
    names = found.names if found else (PLAIN,)
    specs = tuple(_spec(schema, found, name, marks, say) for name in names)
    return ModelShape(schema, found, specs, TypeAdapter[Any](model), function)


def _check_known(found: OperationSet | None, say: OperationFactsOf, where: str) -> None:
    known = found.names if found else ()
    for name in (*say.tiers, *say.actions, *say.usage_rules, *say.capabilities):
        if name not in known:
            raise RegistrationError(f"{where}: `{name}` is no operation of the input model")


def _spec(
    schema: Schema,
    found: OperationSet | None,
    name: str,
    marks: Mapping[str, tuple[Mark, ...]],
    say: OperationFactsOf,
) -> OperationSpec:
    properties = _all_properties(reduced_schema(schema, found, frozenset({name})) if found else schema)
    operation = next((one for one in found.operations if one.name == name), None) if found else None
    required = operation.required if operation else tuple(schema.get("required", ()))
    names = (*required, *operation.optional) if operation else tuple(properties)
    parameters = tuple(parameter_of(one, properties.get(one), one in required, marks.get(one, ())) for one in names)
    tier = say.tiers.get(name, say.tier)
    actions, usage_rule, kinds = say.actions.get(name, ()), say.usage_rules.get(name), say.capabilities.get(name)
    return OperationSpec(name, "", tier, actions, usage_rule, parameters, capabilities=kinds)


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
