"""``operations``, ``filter``, ``policy-schema``: JSON Schemas of tools and the policy. They open no workspace."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

import typer

from gatewright.base.errors import SchemaError
from gatewright.base.problem import near_hint
from gatewright.cli.exit import Exit, UsageProblem
from gatewright.cli.fieldnote import missing_field, unlisted
from gatewright.cli.operationreport import OperationReport, report_of
from gatewright.cli.option import JsonOption
from gatewright.cli.output import print_error, print_json, print_line
from gatewright.cli.toolfile import ToolFile, read_tool_file
from gatewright.policyfile import policy_schema as schema_of_policies
from gatewright.schema import FilterResult, discover_operations, filter_with_lints, survey
from gatewright.tools import ToolDefinition

FileArgument = Annotated[
    str, typer.Argument(metavar="FILE", help="a JSON Schema, a tool definition or a list of tools, or - for stdin")
]
FieldOption = Annotated[
    str | None, typer.Option("--field", metavar="F", help="the field that chooses the operation, a dotted path")
]
OperationsOption = Annotated[
    str | None, typer.Option("--operations", metavar="A,B", help="the operations of a field that takes any text")
]
ChosenToolOption = Annotated[str | None, typer.Option("--tool", metavar="NAME", help="one tool of a list")]


def policy_schema(json: JsonOption = False) -> None:  # noqa: ARG001 -- it is JSON either way
    """Print the JSON Schema of the policy file, for editors and validators."""
    print_json(schema_of_policies())


def operations(
    file: FileArgument,
    field: FieldOption = None,
    operations: OperationsOption = None,
    tool: ChosenToolOption = None,
    json: JsonOption = False,
) -> None:
    """Find the operations of a tool, or of each tool of a list, by its JSON Schema."""
    source = read_tool_file(file)
    source.print_warnings()
    if source.kind == "list" and tool is None:
        if field is not None or operations is not None:
            raise UsageProblem("`--field` and `--operations` are for one tool: choose it with `--tool`")
        raise typer.Exit(_print_list(source, as_json=json))
    chosen = source.one(tool)
    try:
        report = report_of(*reading(chosen, field, operations))
    except SchemaError as error:
        raise unusable(chosen, error) from None
    if json:
        print_json(report.to_json())
    else:
        _print_reports([report])


def filter(  # noqa: A001 - the command's name
    file: FileArgument,
    allow: Annotated[str, typer.Option("--allow", metavar="A,B", help="the operations to keep")],
    field: FieldOption = None,
    operations: OperationsOption = None,
    tool: ChosenToolOption = None,
    json: JsonOption = False,
) -> None:
    """Print the schema with only the allowed operations, or null when none is left; notes on stderr."""
    source = read_tool_file(file)
    source.print_warnings()
    chosen = reading(source.one(tool), field, operations)
    result = filtered(*chosen, allow)
    if result is None:
        print_json(None)
        print_error("no operations found in this schema")
        looked = survey(chosen[0].input_schema, chosen[0].description)
        for name in [one.field for one in looked.free] if chosen[1] is None else [chosen[1]]:
            if name:  # where its operations could be declared
                print_error(unlisted(looked, name))
        raise typer.Exit(Exit.PROBLEMS)
    print_json(result.schema)
    if not json:
        for line in filter_notes(result):
            print_error(line)


def reading(
    tool: ToolDefinition, field: str | None, operations: str | None
) -> tuple[ToolDefinition, str | None, tuple[str, ...] | None]:
    """The tool with the field and operations that the caller names, or, if he names none, its own definition does.

    Raises UsageProblem for a field that the schema does not have.
    """
    if field is None and operations is None:
        return tool, tool.operation_field, tool.operations
    if field:
        try:
            missing = missing_field(tool.input_schema, field)
        except (SchemaError, RecursionError) as error:
            raise unusable(tool, error) from None
        if missing is not None:
            raise UsageProblem(f"`{tool.name}`: {missing}")
    return tool, field, None if operations is None else names_in(operations)


def filtered(
    tool: ToolDefinition, field: str | None, operations: tuple[str, ...] | None, allow: str
) -> FilterResult | None:
    """The tool's schema reduced to ``allow``; None when it has no operations. Raises UsageProblem."""
    allowed = names_in(allow)
    try:
        if field == "" or discover_operations(tool.input_schema, field=field, operations=operations) is None:
            return None
        result = filter_with_lints(tool.input_schema, allowed, field=field, operations=operations)
    except (SchemaError, RecursionError) as error:
        raise unusable(tool, error) from None
    known = result.operations.names if result.operations else ()
    for name in sorted(set(allowed) - set(known)):
        raise UsageProblem(f"no operation `{name}`{near_hint(name, known)}")
    return result


def unusable(tool: ToolDefinition, error: Exception) -> UsageProblem:
    """A schema, or a reading of it, that cannot be used."""
    why = "its schema is nested too deeply" if isinstance(error, RecursionError) else str(error)
    return UsageProblem(f"`{tool.name}`: {why}")


def filter_notes(result: FilterResult) -> Iterable[str]:
    """What the operator should know of a filtered schema, one line each."""
    return [f"note: {lint.message} [{lint.code}]" for lint in result.lints]


def names_in(text: str) -> tuple[str, ...]:
    """The names between commas, exactly as written."""
    return tuple(dict.fromkeys(name for name in text.split(",") if name))


def _print_list(source: ToolFile, *, as_json: bool) -> Exit:
    reports: list[OperationReport] = []
    refused = bool(source.set_aside)
    for tool in source.tools:
        try:
            reports.append(report_of(tool, tool.operation_field, tool.operations))
        except SchemaError as error:
            refused = True
            print_error(f"warning: set aside `{tool.name}`: {error}")
    if as_json:
        print_json([report.to_row() for report in reports])
    elif not source.tools and not source.set_aside:
        print_line("no tools in this list")
    else:
        _print_reports(reports)
    return Exit.PROBLEMS if refused else Exit.OK


def _print_reports(reports: list[OperationReport]) -> None:
    for report in reports:
        for line in report.lines():
            print_line(line)
