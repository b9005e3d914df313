"""The schema of declared parameters: one flat object, written anew for exactly the operations that are shown.

What each operation needs is told in the description of the operation field.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from gatewright.base.errors import RegistrationError
from gatewright.base.json_copy import copied
from gatewright.schema.prose import text_cleaner
from gatewright.schema.walk import Schema, walk
from gatewright.tools.operation import OperationSpec
from gatewright.tools.parameter import Parameter

Clean = Callable[[str], str]


def cleaner(hidden: frozenset[str], kept: frozenset[str]) -> Clean:
    """What takes the names of ``hidden`` operations out of a text, unless something in ``kept`` bears them."""
    return text_cleaner(hidden, kept) if hidden else str


def plain_schema(parameters: Sequence[Parameter]) -> Schema:
    """The input schema of a tool without operations."""
    properties = {parameter.name: _property([parameter], str) for parameter in parameters}
    required = [parameter.name for parameter in parameters if parameter.required]
    return _closed(properties, required, parameters)


def flat_schema(field: str, operations: Sequence[OperationSpec], hidden: frozenset[str]) -> Schema:
    """The input schema for ``operations``, selected by ``field``; texts lose the names in ``hidden``."""
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
    return _closed(properties, required, [one for same in named.values() for one in same])


def check_parameters(operations: Sequence[OperationSpec], field: str, where: str) -> None:
    """Raises RegistrationError, naming the parameter, where one flat object cannot hold all ``operations``."""
    for name, same in _by_name(operations).items():
        if name == field:
            raise RegistrationError(f"{where}: parameter `{name}` is the operation field")
        if any((other.schema, other.role) != (same[0].schema, same[0].role) for other in same[1:]):
            raise RegistrationError(f"{where}: parameter `{name}` has different types in two operations")
    definitions(where, [parameter for spec in operations for parameter in spec.parameters])


def definitions(where: str, parameters: Iterable[Parameter]) -> Schema:
    """The `$defs` of all ``parameters``. Raises RegistrationError for one name that stands for two things."""
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
    """One operation: its name, what it needs, what it may be given, and its sentence."""
    choices = {name for group in spec.one_of for name in group} if spec.one_of else ()
    needs = ", ".join([*spec.required, *[" or ".join(group) for group in spec.one_of]])
    may = ", ".join([one.name for one in spec.parameters if not one.required and one.name not in choices])
    told = f"{needs}; optional: {may}" if needs and may else f"optional: {may}" if may else needs
    takes = f" ({told})" if told else ""
    sentence = clean(spec.description)
    return f"- {spec.name}{takes}: {sentence}" if sentence else f"- {spec.name}{takes}"


def _property(same: Sequence[Parameter], clean: Clean) -> Schema:
    """The schema of a parameter that all of ``same`` declare alike; a default only if it holds for all."""
    first = same[0]
    schema = copied(first.schema)
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


def _closed(properties: Schema, required: list[str], parameters: Sequence[Parameter]) -> Schema:
    schema: Schema = {"type": "object", "properties": properties}
    if required:
        schema["required"] = required
    schema["additionalProperties"] = False
    held = definitions("schema", parameters)
    return {**schema, "$defs": copied(held)} if held else schema
