"""The arguments of a tool by name, as its schema says them; and whether a value fits a constraint. It draws nothing.

It looks through whole schemas, so `arguments_of` is not for the GUI thread.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Literal, cast

from gatewright.workspace.api import (
    GatewrightError,
    JsonValue,
    Schema,
    SchemaChecker,
    SchemaError,
    ToolFacts,
    Workspace,
    bare_names,
    frozen,
    inline_references,
)
from gatewright_gui.qt.language import tr

ArgumentKind = Literal["text", "number", "whole", "truth", "list", "any"]
_KINDS: dict[str, ArgumentKind] = {
    "string": "text", "number": "number", "integer": "whole", "boolean": "truth", "array": "list",
}  # fmt: skip
_UNIONS = ("oneOf", "anyOf", "allOf")
Giving = Literal["optional", "required", "defaulted"]
"""Whether calls may leave an argument out, may not, or have a default that counts as given."""


@frozen
class Argument:
    """One top-level field. `choices`: its values, where the schema lists texts; `schema`: as the tool has it.

    `giving`: whether the tool lets calls leave it out.
    """

    name: str
    kind: ArgumentKind = "any"
    choices: tuple[str, ...] = ()
    description: str = ""
    schema: Mapping[str, object] | None = None
    giving: Giving = "optional"


def arguments_of(workspace: Workspace, tool: str) -> Mapping[str, Argument]:
    """Every argument by name; empty for an unknown tool or a schema that cannot be read."""
    schema = workspace.tool_schema(tool)
    if schema is None:
        return {}
    try:
        whole = inline_references(schema)
    except SchemaError:
        return {}
    found: dict[str, Argument] = {}
    for name, field in _properties(whole):
        found[name] = _merge(found.get(name), _argument(name, field))
    return found


def arguments_for(workspace: Workspace, tools: tuple[str, ...] | None) -> Mapping[str, Argument]:
    """The arguments of these tools (None: of all) by name; one that is of several kinds is of any."""
    chosen = None if tools is None else bare_names(tools, workspace.catalog)
    names = [facts.name for facts in workspace.catalog if chosen is None or facts.name in chosen]
    found: dict[str, Argument] = {}
    for tool in dict.fromkeys(names):
        for name, argument in arguments_of(workspace, tool).items():
            held = found.setdefault(name, argument)
            if held.kind != argument.kind:
                found[name] = Argument(name)
    return found


def giving_of(facts: ToolFacts, name: str, operations: frozenset[str] | None) -> Giving:
    """Return whether calls of these operations (None: any) that take the argument may leave it out."""
    rows = [
        row for row in facts.operations if name in row.parameters and (operations is None or row.name in operations)
    ]
    if rows and all(name in row.required for row in rows):
        return "required"
    return "defaulted" if rows and all(name in row.required or name in row.defaulted for row in rows) else "optional"


def example_fault(schema: JsonValue, argument: Argument, text: str, *, check_formats: bool = False) -> str | None:
    """Why the constraint or the tool does not take what was typed; None when both do.

    `check_formats`: texts must be what a known `format` says.
    """
    try:
        value = value_of(argument, text)
        for known, whose in ((schema, ""), (argument.schema, tr("the tool itself: "))):
            if isinstance(known, bool) or known is None:
                if known is False:
                    return tr("nothing fits")
                continue
            errors = SchemaChecker(dict(cast("Schema", known)), check_formats=check_formats).errors(value)
            if errors:
                return f"{whose}{errors[0].message}"
    except (GatewrightError, ValueError) as error:
        return str(error)
    return None


def value_of(argument: Argument, text: str) -> JsonValue:
    """The value typed: text for a text, JSON for everything else. Raises ValueError saying where it is none."""
    if argument.kind == "text":
        return text
    try:
        return cast("JsonValue", json.loads(text))
    except json.JSONDecodeError as error:
        if argument.kind == "any" and not text.startswith(("{", "[", '"')):
            return text
        raise ValueError(tr("column {column}: this is not JSON", column=error.colno)) from None


def _properties(schema: Schema) -> Iterator[tuple[str, Mapping[str, object]]]:
    """Those of the schema itself and of its alternatives."""
    own: object = schema.get("properties")
    if isinstance(own, dict):
        for name, field in cast("dict[str, object]", own).items():
            yield name, cast("dict[str, object]", field) if isinstance(field, dict) else {}
    for union in _UNIONS:
        branches: object = schema.get(union)
        for branch in cast("list[object]", branches) if isinstance(branches, list) else []:
            if isinstance(branch, dict):
                yield from _properties(cast("Schema", branch))


def _argument(name: str, field: Mapping[str, object]) -> Argument:
    values = field.get("enum", [field["const"]] if "const" in field else [])
    texts = (
        [value for value in cast("list[object]", values) if isinstance(value, str)] if isinstance(values, list) else []
    )
    said = field.get("description")
    return Argument(name, _kind(field), tuple(texts), said if isinstance(said, str) else "", field)


def _kind(field: Mapping[str, object]) -> ArgumentKind:
    """The kind of the field's type, or of the one type that it can be beside null."""
    real = {name for name in _types(field) if name != "null"}
    only = real.pop() if len(real) == 1 else None
    return _KINDS.get(only, "any") if only is not None else "any"


def _types(field: Mapping[str, object]) -> set[str]:
    """The names of the types that the field itself or its alternatives say; of listed texts: text."""
    given = field.get("type")
    listed = cast("list[object]", given) if isinstance(given, list) else [given]
    for union in ("anyOf", "oneOf"):
        branches = field.get(union)
        for branch in cast("list[object]", branches) if isinstance(branches, list) else []:
            listed = [*listed, *(_types(cast("Schema", branch)) if isinstance(branch, dict) else ())]
    found = {name for name in listed if isinstance(name, str)}
    values = field.get("enum")
    if not found and isinstance(values, list) and all(isinstance(one, str) for one in cast("list[object]", values)):
        return {"string"}
    return found


def _merge(held: Argument | None, new: Argument) -> Argument:
    """The same name in several alternatives: all that any of them takes; whether a value fits is then not told."""
    if held is None or held == new:
        return new
    kind: ArgumentKind = held.kind if held.kind == new.kind else "any"
    choices = tuple(dict.fromkeys((*held.choices, *new.choices))) if held.choices and new.choices else ()
    return Argument(held.name, kind, choices, held.description or new.description, None)
