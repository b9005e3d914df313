"""The input of declared tools: one function, one method per operation, or a pydantic model.

The description of the operation field says what each operation needs. ``InputShape`` in ``schemashape`` is the union of
all forms.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any, cast, get_args

from pydantic import BaseModel, TypeAdapter, ValidationError

from gatewright.base.errors import RegistrationError, SchemaError, ToolFailure, WeMustFix
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import copy_value
from gatewright.policy.verdict import SafetyTier
from gatewright.schema import OperationSet, discover_operations, filter_with_lints, schema_of
from gatewright.schema.filter import reduce_schema
from gatewright.schema.prose import clean_text, text_cleaner
from gatewright.schema.walk import Schema, objects, properties_of, walk
from gatewright.tools.context import ToolExecutionContext
from gatewright.tools.declaration import Declaration, kinds_of
from gatewright.tools.operation import ArgumentIssue, OperationSpec, parameter_of
from gatewright.tools.parameter import Mark, Parameter, marks_of_fields
from gatewright.tools.result import awaitable, check_yields
from gatewright.tools.signature import Binding, first_message

Clean = Callable[[str], str]


def cleaner(hidden: frozenset[str], kept: frozenset[str]) -> Clean:
    """Return a function that removes the names of ``hidden`` operations from a text, unless something in ``kept`` has
    the same name.
    """
    return text_cleaner(hidden, kept) if hidden else str


def plain_schema(parameters: Sequence[Parameter]) -> Schema:
    """Return the input schema of a tool without operations."""
    properties = {parameter.name: _property([parameter], str) for parameter in parameters}
    required = [parameter.name for parameter in parameters if parameter.required]
    return _close(properties, required, parameters)


def flat_schema(field: str, operations: Sequence[OperationSpec], hidden: frozenset[str]) -> Schema:
    """Return the input schema for ``operations``, which ``field`` selects; its texts lose the names in ``hidden``."""
    shown = sorted(operations, key=lambda spec: spec.name)
    named = _by_name(shown)
    clean = cleaner(hidden, frozenset([*named, *[spec.name for spec in shown]]))
    lines = "\n".join(["What to do.", *[_line(spec, clean) for spec in shown]])
    properties: Schema = {field: {"type": "string", "enum": [spec.name for spec in shown], "description": lines}}
    required = [field]
    for name, same in named.items():
        properties[name] = _property(same, clean)
        if len(same) == len(shown) and all(one.required for one in same):
            required.append(name)
    return _close(properties, required, [one for same in named.values() for one in same])


def check_parameters(operations: Sequence[OperationSpec], field: str, where: str) -> None:
    """Raise RegistrationError, naming the parameter, if one flat object cannot hold all ``operations``."""
    for name, same in _by_name(operations).items():
        if name == field:
            raise RegistrationError(f"{where}: parameter `{name}` is the operation field")
        if any((other.schema, other.role) != (same[0].schema, same[0].role) for other in same[1:]):
            raise RegistrationError(f"{where}: parameter `{name}` has different types in two operations")
    definitions(where, [parameter for spec in operations for parameter in spec.parameters])


def definitions(where: str, parameters: Iterable[Parameter]) -> Schema:
    """Return the `$defs` of all ``parameters``. Raises RegistrationError if one name stands for two types."""
    found: Schema = {}
    for parameter in parameters:
        for name, schema in parameter.definitions.items():
            if found.setdefault(name, schema) != schema:
                raise RegistrationError(f"{where}: parameter `{parameter.name}` has another type named `{name}`")
    return found


def _by_name(operations: Sequence[OperationSpec]) -> dict[str, list[Parameter]]:
    named: dict[str, list[Parameter]] = {}
    for spec in operations:
        for parameter in spec.parameters:
            named.setdefault(parameter.name, []).append(parameter)
    return named


def _line(spec: OperationSpec, clean: Clean) -> str:
    """Describe one operation: its name, its required and optional parameters, and its sentence."""
    choices = {name for group in spec.one_of for name in group} if spec.one_of else ()
    needs = ", ".join([*spec.required, *[" or ".join(group) for group in spec.one_of]])
    may = ", ".join([one.name for one in spec.parameters if not one.required and one.name not in choices])
    told = f"{needs}; optional: {may}" if needs and may else f"optional: {may}" if may else needs
    takes = f" ({told})" if told else ""
    sentence = clean(spec.description)
    return f"- {spec.name}{takes}: {sentence}" if sentence else f"- {spec.name}{takes}"


def _property(same: Sequence[Parameter], clean: Clean) -> Schema:
    """Return the schema of a parameter that all of ``same`` declare alike, with a default only if all share it."""
    first = same[0]
    schema = copy_value(first.schema)
    for _, node in walk(schema) if clean is not str else ():
        if isinstance(text := node.get("description"), str):
            node["description"] = clean(text)
    for parameter in same:
        if parameter.description and (described := clean(parameter.description)):
            schema["description"] = described
            break
    if first.default is not None and all(not one.required and one.default == first.default for one in same):
        schema["default"] = first.default
    return schema


def _close(properties: Schema, required: list[str], parameters: Sequence[Parameter]) -> Schema:
    schema: Schema = {"type": "object", "properties": properties}
    if required:
        schema["required"] = required
    schema["additionalProperties"] = False
    held = definitions("schema", parameters)
    return {**schema, "$defs": copy_value(held)} if held else schema


PLAIN = ""
"""The policy's name for the only operation of a tool without operations."""

_PLAIN_ONLY = (PLAIN,)


@frozen
class PlainShape:
    """One function, no operations."""

    binding: Binding
    operation_field: None = None
    found: None = None
    operations: tuple[OperationSpec, ...] = ()

    def parameters(self, operation: str) -> tuple[Parameter, ...]:
        """Return the parameters of the function."""
        return self.binding.parameters if operation == PLAIN else ()

    def schema_for(self, shown: frozenset[str]) -> Schema | None:
        """Return the parameters object, closed."""
        return plain_schema(self.binding.parameters) if PLAIN in shown else None

    def clean(self, text: str, shown: frozenset[str]) -> str:  # noqa: ARG002
        """Return the text as it is: nothing is hidden."""
        return text

    def operations_of(self, arguments: Mapping[str, object]) -> tuple[str, ...] | None:  # noqa: ARG002
        """Return the plain operation."""
        return _PLAIN_ONLY

    def missing(self, operation: str, arguments: Mapping[str, object]) -> tuple[ArgumentIssue, ...]:
        """Return missing parameters, and names that are not parameters."""
        spec = OperationSpec(PLAIN, "", SafetyTier.PRIVILEGED, parameters=self.binding.parameters)
        return _issues_of(spec, arguments) if operation == PLAIN else ()

    async def run(
        self,
        owner: object,  # noqa: ARG002
        operation: str,
        arguments: Mapping[str, object],
        context: ToolExecutionContext,
    ) -> object:
        """Call the function."""
        if operation != PLAIN:
            raise WeMustFix(f"a tool without operations was asked for `{operation}`")
        return await _call(self.binding, arguments, context)


@frozen
class MethodShape:
    """One method per operation; the schema is one flat object."""

    operation_field: str
    operations: tuple[OperationSpec, ...]
    bindings: Mapping[str, Binding] = field(hash=False)
    found: None = None

    def parameters(self, operation: str) -> tuple[Parameter, ...]:
        """Return the parameters of the operation's method."""
        return self.bindings[operation].parameters if operation in self.bindings else ()

    def schema_for(self, shown: frozenset[str]) -> Schema | None:
        """Write the schema for the shown operations; nothing in it comes from a hidden one."""
        rows = [spec for spec in self.operations if spec.name in shown]
        return flat_schema(self.operation_field, rows, frozenset(self.bindings) - shown) if rows else None

    def clean(self, text: str, shown: frozenset[str]) -> str:
        """Remove hidden names, unless a shown operation or one of its parameters has the same name."""
        hidden = self.bindings.keys() - shown
        if not hidden:
            return text
        kept = [parameter.name for name in shown for parameter in self.parameters(name)]
        return clean_text(text, hidden, shown.union(kept))

    def operations_of(self, arguments: Mapping[str, object]) -> tuple[str, ...] | None:
        """Return the text in the operation field."""
        given = arguments.get(self.operation_field)
        return (given,) if isinstance(given, str) else None

    def missing(self, operation: str, arguments: Mapping[str, object]) -> tuple[ArgumentIssue, ...]:
        """Check the arguments by the operation's own signature and its choices."""
        for spec in self.operations:
            if spec.name == operation:
                return _issues_of(spec, arguments, ignored=(self.operation_field,))
        return ()

    async def run(
        self, owner: object, operation: str, arguments: Mapping[str, object], context: ToolExecutionContext
    ) -> object:
        """Call the operation's method."""
        binding = self.bindings.get(operation)
        if binding is None:
            raise WeMustFix(f"no operation `{operation}`")
        given = dict(arguments)
        given.pop(self.operation_field, None)
        return await _call(binding, given, context, owner)


async def _call(
    binding: Binding, arguments: Mapping[str, object], context: ToolExecutionContext, *owner: object
) -> object:
    """Call the function, or method of ``owner``, with ``arguments`` converted to its types.

    Raises ToolFailure if one does not fit.
    """
    values: dict[str, object] = {}
    for name, value in arguments.items():
        adapter = binding.adapters.get(name)
        if adapter is None:
            raise ToolFailure(f"`{name}` is not taken here", code="bad-argument")
        try:
            values[name] = adapter.validate_python(value)
        except ValidationError as error:
            from gatewright.tools.signature import first_message

            raise ToolFailure(f"`{name}`: {first_message(error)}", code="bad-argument") from None
    if binding.context_name is not None:
        values[binding.context_name] = context
    return await binding.function(*owner, **values)


def _issues_of(
    spec: OperationSpec, arguments: Mapping[str, object], *, ignored: Sequence[str] = (), closed: bool = True
) -> tuple[ArgumentIssue, ...]:
    """Return missing and superfluous ``arguments``; ``ignored`` are names that belong to no operation.

    ``closed``: report names that the operation does not take as well.
    """
    taken = spec.taken
    fits = not closed or taken.issuperset(arguments.keys() - ignored)
    if fits and not spec.one_of and all(map(arguments.__contains__, spec.required)):
        return ()
    subject = f"`{spec.name}`" if spec.name else "the call"
    found = [_issue(name, f"{subject} needs `{name}`") for name in spec.required if name not in arguments]
    for group in spec.one_of:
        names, chosen = " or ".join(f"`{name}`" for name in group), [name for name in group if name in arguments]
        if not chosen:
            found.append(ArgumentIssue("", f"{subject} needs {names}"))
        found += [_issue(name, f"{subject} takes {names}, only one of them") for name in chosen[1:]]
    if closed:
        found += [
            _issue(name, f"{subject} does not take this argument")
            for name in arguments
            if name not in taken and name not in ignored
        ]
    return tuple(found)


def _issue(name: str, message: str) -> ArgumentIssue:
    return ArgumentIssue("/" + name.replace("~", "~0").replace("/", "~1"), message)


Run = Callable[[Any, Any, ToolExecutionContext], Awaitable[object]]


@frozen
class ModelShape:
    """One model for all operations; its schema is filtered like that of a foreign tool."""

    schema: Schema = field(hash=False)
    found: OperationSet | None
    specs: tuple[OperationSpec, ...]
    adapter: TypeAdapter[Any] = field(hash=False)
    function: Run

    @property
    def operation_field(self) -> str | None:
        """The field of the model that holds its operation."""
        return self.found.field if self.found else None

    @property
    def operations(self) -> tuple[OperationSpec, ...]:
        """The operations, as discovered in the model's schema."""
        return self.specs if self.found else ()

    def parameters(self, operation: str) -> tuple[Parameter, ...]:
        """Return the parameters that the schema ties to the operation."""
        return next((spec.parameters for spec in self.specs if spec.name == operation), ())

    def schema_for(self, shown: frozenset[str]) -> Schema | None:
        """Return the model's schema with the shown operations only."""
        if self.found is None:
            return self.schema if PLAIN in shown else None
        return filter_with_lints(self.schema, shown, found=self.found).schema

    def clean(self, text: str, shown: frozenset[str]) -> str:
        """Clean ``text`` like the texts inside the schema."""
        return text if self.found is None else filter_with_lints(self.schema, shown, found=self.found).clean(text)

    def operations_of(self, arguments: Mapping[str, object]) -> tuple[str, ...] | None:
        """Read the operations from the model's own field and default."""
        return self.found.of(arguments) if self.found else (PLAIN,)

    def missing(self, operation: str, arguments: Mapping[str, object]) -> tuple[ArgumentIssue, ...]:
        """Return the arguments that the operation's part of the schema requires; the schema itself refuses unknown
        names.
        """
        spec = next((spec for spec in self.specs if spec.name == operation), None)
        return _issues_of(spec, arguments, closed=False) if spec else ()

    async def run(
        self, owner: object, operation: str, arguments: Mapping[str, object], context: ToolExecutionContext
    ) -> object:
        """Build the model and pass it to the tool."""
        called = self.operations_of(arguments)
        if called is None or (len(frozenset(called)) == 1 and operation not in called):
            raise WeMustFix(f"the arguments do not call `{operation}`")
        try:
            value = self.adapter.validate_python(dict(arguments))
        except ValidationError as error:
            raise ToolFailure(f"arguments do not fit: {first_message(error)}", code="bad-argument") from None
        return await self.function(owner, value, context)


def model_shape(declared: type[Declaration], where: str) -> ModelShape:
    """Read the input model of a tool, and what the tool declares for its operations: tiers, actions and the like.

    Raises RegistrationError for a model without an object schema, and for declarations about an unknown operation.
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
    """Return the parameters of the operation ``name``, or of the whole model without operations."""
    properties = _all_properties(reduce_schema(schema, found, frozenset({name})) if found else schema)
    required, names = tuple(schema.get("required", ())), tuple(properties)
    if found is not None:
        operation = next(one for one in found.operations if one.name == name)
        required, names = operation.required, (*operation.required, *operation.optional)
    return tuple(parameter_of(one, properties.get(one), one in required, marks.get(one, ())) for one in names)


def _all_properties(schema: Schema) -> dict[str, Schema]:
    """Return the properties of a schema and of the branches that apply to the same value."""
    found: dict[str, Schema] = {}
    for keyword in ("allOf", "anyOf", "oneOf"):
        for branch in objects(schema.get(keyword)):
            found |= _all_properties(branch)
    return found | {name: cast("Schema", value) for name, value in properties_of(schema).items()}


def _marks(model: Any, where: str) -> dict[str, tuple[Mark, ...]]:
    """Return the marks of each field. Raises RegistrationError for a field with two different ones."""
    marks: dict[str, tuple[Mark, ...]] = {}
    for held in _models(model):
        for name, found in marks_of_fields(held, where).items():
            if marks.setdefault(name, found) != found:
                raise RegistrationError(f"{where}: parameter `{name}` has two roles")
    return marks


def _models(hint: Any) -> Iterator[type[BaseModel]]:
    """Yield the models inside ``hint``: itself, the members of a union, the content of a root model."""
    if isinstance(hint, type) and issubclass(hint, BaseModel):
        yield hint
        root = hint.model_fields.get("root")
        if root is not None:
            yield from _models(root.annotation)
        return
    for argument in get_args(hint):
        yield from _models(argument)
