"""Checks and reads the definition of a tool class, when Python creates the class."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

from gatewright.base.errors import RegistrationError, near_hint
from gatewright.base.frozen import frozen
from gatewright.policy.verdict import Action, SafetyTier, split_name
from gatewright.schema.check import SchemaChecker
from gatewright.schema.walk import Schema
from gatewright.tools.declaration import (
    Declaration,
    Normalization,
    ResultType,
    check_conduct,
    check_operation_name,
    check_tool_name,
    kinds_of,
    major_of,
)
from gatewright.tools.operation import ArgumentIssue, OperationSpec, any_output
from gatewright.tools.result import check_yields
from gatewright.tools.schemashape import InputShape
from gatewright.tools.shape import PLAIN, MethodShape, check_parameters, model_shape
from gatewright.tools.signature import Binding, Made, bind, return_annotation, return_schema

if TYPE_CHECKING:
    from gatewright.schema.phrase import ArgumentError

MARK = "__gatewright_operation__"


@frozen
class OperationMark:
    """The arguments of ``@operation`` on a method; None means that the method or the tool gives the value."""

    name: str | None = None
    description: str | None = None
    tier: SafetyTier | None = None
    actions: Collection[Action] = ()
    usage_rule: str | None = None
    one_of: Collection[Collection[str]] = ()
    capabilities: Collection[str] | None = None
    output_schema: Schema | None = None


def outputs_of(declared: type[Declaration], shape: InputShape) -> Schema | None:
    """Return the result schema that the operations, or the method ``run``, declare; None without one."""
    if (joined := any_output(spec.output_schema for spec in shape.operations)) is not None:
        return joined
    own = declared.__dict__.get("run")
    if own is None or declared.result_type is ResultType.STREAM:
        return None
    with suppress(RegistrationError):
        return return_schema(return_annotation(own, f"tool `{declared.name}`"))
    return None


def marked_outputs(declared: type[Declaration], base: type[Any]) -> Schema | None:
    """Return the result schema that the marks of all operations give, without a look at their parameters."""
    methods = _operation_methods(declared, base, f"tool `{declared.name}`")
    return any_output(getattr(method, MARK).output_schema for method in methods.values())


def check_declaration(declared: Declaration | type[Declaration], base: type[Any]) -> None:
    """Check what every tool must declare; ``base`` is ``Tool``. Raises RegistrationError."""
    if not declared.name:
        raise RegistrationError(f"`{getattr(declared, '__name__', type(declared).__name__)}` declares no `name`")
    check_tool_name(declared.name)
    where = f"tool `{declared.name}`"
    major_of(declared.version, declared.name)
    if declared.needs_description and not declared.description.strip():
        raise RegistrationError(f"{where} has no `description`")
    kind, normal = declared.result_type, declared.normalization
    if kind is None:
        raise RegistrationError(f"{where} declares no `result_type`")
    if normal is None:
        raise RegistrationError(f"{where} declares no `normalization`")
    own: type[Any] = declared if isinstance(declared, type) else type(declared)
    if normal is Normalization.CUSTOM:
        if own.normalize is base.normalize:
            raise RegistrationError(f"{where}: a custom `normalization` needs a method `normalize`")
    elif kind is not ResultType.STREAM and (kind is ResultType.BINARY) != (normal is Normalization.BINARY):
        raise RegistrationError(f"{where}: `normalization` {normal} does not fit `result_type` {kind}")
    if declared.required_capabilities is not None:
        kinds_of(declared.required_capabilities, where)
    check_conduct(
        where,
        declared.resource_bounds,
        declared.determinism,
        declared.side_effects,
        enforces_bounds=declared.enforces_bounds,
    )
    for rule in declared.tool_rules:
        if split_name(rule.tool_name)[0] != declared.name:
            raise RegistrationError(f"{where}: its `tool_rules` hold a rule for `{rule.tool_name}`")


def check_texts(declared: Declaration | type[Declaration], shape: InputShape) -> None:
    """Raise RegistrationError if a declared text is not an argument of the tool, or has a marker."""
    if not declared.texts:
        return
    where = f"tool `{declared.name}`"
    names = [spec.name for spec in shape.operations] or [PLAIN]
    known = {one.name: one for name in names for one in shape.parameters(name)}
    for name in declared.texts:
        if name not in known:
            raise RegistrationError(f"{where}: `{name}` of its `texts` is no argument{near_hint(name, known)}")
        if known[name].marks:
            raise RegistrationError(f"{where}: `{name}` of its `texts` has a marker, which says what it is")


def check_examples(declared: Declaration | type[Declaration], shape: InputShape) -> None:
    """Raise RegistrationError for the first example that is not a valid call of the tool."""
    if not declared.examples:
        return
    names = frozenset(spec.name for spec in shape.operations) or frozenset({PLAIN})
    checker = SchemaChecker(shape.schema_for(names) or {})
    for number, example in enumerate(declared.examples, 1):
        wrong: Sequence[ArgumentIssue | ArgumentError] = checker.errors(example)
        if not wrong:
            wrong = [one for name in shape.operations_of(example) or () for one in shape.missing(name, example)]
        if wrong:
            place = f" at `{wrong[0].pointer}`" if wrong[0].pointer else ""
            raise RegistrationError(
                f"tool `{declared.name}`: example {number} is no call of it{place}: {wrong[0].message}"
            )


def listing_of(given: Any, where: str) -> Any:
    """Return the function ``operations`` as a class keeps it: a function of the tool, or of nothing.

    Raises RegistrationError.
    """
    function = cast("Any", given.__func__ if isinstance(given, staticmethod) else given)
    if not callable(function) or inspect.iscoroutinefunction(function):
        raise RegistrationError(
            f"{where}: `operations` is a plain function that lists their names, or is not set: the methods with"
            " `@operation` or the `input_model` say which there are"
        )
    taken = len(inspect.signature(function).parameters)
    if taken > 1:
        raise RegistrationError(f"{where}: `operations` takes nothing, or the tool")
    return cast("Any", given if taken else staticmethod(function))


def shape_of(declared: type[Declaration], base: type[Any]) -> InputShape:
    """Read the operations of ``declared`` from its methods or its model. Raises RegistrationError."""
    where = f"tool `{declared.name}`"
    methods = _operation_methods(declared, base, where)
    if methods and declared.input_model is not None:
        raise RegistrationError(f"{where} has both `input_model` and methods with `@operation`")
    if methods:
        return _method_shape(declared, methods, where)
    if declared.input_model is not None:
        return model_shape(declared, where)
    raise RegistrationError(f"{where} has no operations: mark methods with `@operation`, or set `input_model`")


def _operation_methods(declared: type[Declaration], base: type[Any], where: str) -> dict[str, Callable[..., Any]]:
    """Return the methods with ``@operation`` by attribute, inherited ones first."""
    found: dict[str, Callable[..., Any]] = {}
    for owner in reversed(declared.__mro__):
        for attribute, value in vars(owner).items():
            if hasattr(value, MARK):
                if hasattr(base, attribute):
                    raise RegistrationError(f"{where}: method `{attribute}` hides one of every tool; give it a `name`")
                found[attribute] = value
            elif attribute in found:
                raise RegistrationError(f"{where}: `{attribute}` replaces an operation without being one")
    return found


def _method_shape(declared: type[Declaration], methods: Mapping[str, Callable[..., Any]], where: str) -> MethodShape:
    bindings: dict[str, Binding] = {}
    made: Made = {}
    specs: list[OperationSpec] = []
    for attribute, method in methods.items():
        mark = cast("OperationMark", getattr(method, MARK))
        name = attribute if mark.name is None else mark.name
        check_operation_name(name, declared.name)
        if name in bindings:
            raise RegistrationError(f"{where} has two operations named `{name}`")
        bindings[name] = bind(method, f"operation `{name}` of {where}", is_method=True, made=made)
        check_yields(method, declared.result_type, f"operation `{name}` of {where}")
        specs.append(_spec(declared, name, mark, bindings[name], where))
    check_parameters(specs, declared.operation_field, where)
    for name in declared.operation_capabilities:
        if name not in bindings:
            raise RegistrationError(f"{where}: `{name}` of `operation_capabilities` is no operation")
    return MethodShape(declared.operation_field, tuple(specs), bindings)


def _output(declared: type[Declaration], mark: OperationMark, binding: Binding) -> Schema | None:
    """Return the schema of an operation's results, if it declares one."""
    says_none = declared.output_schema is None and declared.result_type is not ResultType.STREAM
    return return_schema(binding.returns) if mark.output_schema is None and says_none else mark.output_schema


def _spec(declared: type[Declaration], name: str, mark: OperationMark, binding: Binding, where: str) -> OperationSpec:
    optional = {parameter.name for parameter in binding.parameters if not parameter.required}
    for parameter in (parameter for group in mark.one_of for parameter in group):
        if parameter not in optional:
            raise RegistrationError(f"operation `{name}` of {where}: `{parameter}` in `one_of` has to have a default")
    description = mark.description or binding.docstring.description
    if not description:
        raise RegistrationError(f"operation `{name}` of {where} has no description")
    tier = mark.tier or declared.safety_tier
    said = declared.operation_capabilities.get(name) if mark.capabilities is None else mark.capabilities
    kinds = None if said is None else kinds_of(said, f"operation `{name}` of {where}")
    actions, one_of = tuple(mark.actions), tuple(map(tuple, mark.one_of))
    output = _output(declared, mark, binding)
    return OperationSpec(name, description, tier, actions, mark.usage_rule, binding.parameters, one_of, kinds, output)
