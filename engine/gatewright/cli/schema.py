"""``operations`` and ``filter``: any JSON Schema from a file or stdin. It opens no workspace."""

from __future__ import annotations

import json as jsonlib
from typing import TYPE_CHECKING, Annotated, cast

import typer

from gatewright.base.problem import near_miss
from gatewright.cli.exit import Exit, UsageProblem
from gatewright.cli.opening import JsonOption
from gatewright.cli.output import print_error, print_json, print_line, read_file
from gatewright.schema import discover_operations, filter_operations

if TYPE_CHECKING:
    from gatewright.base.jsonvalue import JsonValue
    from gatewright.schema import OperationSet

SchemaArgument = Annotated[
    str, typer.Argument(metavar="SCHEMA", help="a JSON Schema or a tool definition, or - for stdin")
]
FieldOption = Annotated[str | None, typer.Option("--field", help="the field that chooses the operation")]


def operations(schema: SchemaArgument, field: FieldOption = None, json: JsonOption = False) -> None:
    """Find the operations of a tool by its JSON Schema."""
    found = discover_operations(_read(schema), field=field)
    if json:
        print_json(found.to_json() if found else None)
    elif found is None:
        print_line("no operations found")
    else:
        _print_operations(found)


def filter(  # noqa: A001 - the command's name
    schema: SchemaArgument,
    allow: Annotated[str, typer.Option("--allow", metavar="A,B", help="the operations to keep")],
    field: FieldOption = None,
    json: JsonOption = False,  # noqa: ARG001 - the schema is JSON anyway
) -> None:
    """Print the schema with only the allowed operations, or null when none is left."""
    source = _read(schema)
    found = discover_operations(source, field=field)
    if found is None:
        print_json(None)
        print_error("no operations found in this schema")
        raise typer.Exit(Exit.PROBLEMS)
    allowed = frozenset(name for name in allow.split(",") if name)
    for name in sorted(allowed - set(found.names)):
        close = near_miss(name, found.names)
        raise UsageProblem(f"no operation `{name}`" + (f" (did you mean `{close}`?)" if close else ""))
    print_json(filter_operations(source, allowed, field=field))


def _read(path: str) -> dict[str, JsonValue]:
    try:
        value: object = jsonlib.loads(read_file(path))
    except jsonlib.JSONDecodeError as error:
        raise UsageProblem(f"`{path}` is not JSON: {error.msg} at line {error.lineno} column {error.colno}") from None
    except (RecursionError, ValueError):
        raise UsageProblem(f"`{path}` is not usable JSON") from None
    if not isinstance(value, dict):
        raise UsageProblem(f"`{path}` holds no JSON object")
    schema = cast("dict[str, JsonValue]", value)
    for key in ("inputSchema", "input_schema", "parameters"):
        inner = schema.get(key)
        if "name" in schema and isinstance(inner, dict):
            return inner
    return schema


def _print_operations(found: OperationSet) -> None:
    default = f", left out means {found.default}" if found.default else ""
    print_line(f"field {found.field} ({found.shape}, confidence {found.confidence}{default})")
    for operation in found.operations:
        required = ", ".join(operation.required) or "nothing"
        print_line(f"  {operation.name}: needs {required}; may take {', '.join(operation.optional) or 'nothing'}")
