"""``operations``, ``filter`` and ``policy-schema``: JSON Schemas of tools and of the policy."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Iterator
from typing import Annotated

import typer

from gatewright.base.errors import SchemaError, near_hint, near_miss
from gatewright.base.frozen import frozen
from gatewright.cli.output import (
    Exit,
    JsonOption,
    ToolFile,
    UsageProblem,
    print_error,
    print_json,
    print_line,
    read_tool_file,
)
from gatewright.policyfile import policy_schema as schema_of_policies
from gatewright.schema import (
    FilterResult,
    OperationSet,
    PathCandidate,
    Schema,
    Survey,
    discover_operations,
    discover_paths,
    filter_with_lints,
    inline_references,
    survey,
)
from gatewright.schema.nested import places
from gatewright.schema.operation import EACH, EACH_MEMBER, path_text, steps_of
from gatewright.schema.walk import as_object, finder, in_place, items_of, properties_of
from gatewright.tools import ToolDefinition


def missing_field(schema: Schema, field: str) -> str | None:
    """Explain why ``field`` cannot be read; None if the schema has it. Raises SchemaError."""
    inlined = inline_references(schema)
    if _holds(inlined, field) or discover_operations(schema, field=field) is not None:
        return None
    known = _fields(inlined)
    if field in known:
        return None
    inside = next((name for name in known if name.endswith(f".{field}")), None)
    close = near_miss(field, known) or inside
    return f"the schema has no field `{field}`" + (f" (did you mean `{close}`?)" if close else "")


def advice_without_list(looked: Survey, field: str) -> str:
    """Advise on a field that exists but lists nothing."""
    free = next((one for one in looked.free if one.field == field), None)
    if free is None:
        return f"`{field}` lists no operations; where it takes a text, declare them with `--operations a,b`"
    usable = [name for name in free.suggested if "," not in name] or ["a", "b"]
    options = f"--operations {shlex.quote(','.join(usable))} --field {shlex.quote(field)}"
    return f"`{field}` is free text: declare its operations with `{options}`"


def _holds(schema: Schema, field: str) -> bool:
    """Tell whether the steps of ``field`` lead somewhere, at any depth, in any branch."""
    find, steps = finder(schema), steps_of(field)
    reached: list[object] = [schema]
    for step in steps:
        tables = [table for value in reached if (table := as_object(value)) is not None]
        nodes = {id(node): node for table in tables for node in in_place(table, find)}.values()
        if step == EACH:
            reached = [item for node in nodes for item in items_of(node)]
        elif step == EACH_MEMBER:
            reached = [node["additionalProperties"] for node in nodes if "additionalProperties" in node]
        else:
            reached = [held[step] for node in nodes if step in (held := properties_of(node))]
    return bool(steps and reached)


def _fields(schema: Schema) -> list[str]:
    """List the fields of an inlined schema in the spelling of `--field`, the outermost first, down to a limit."""
    found = places(schema)
    names = (path_text((*place.steps, name)) for place in found for node in place.nodes for name in properties_of(node))
    return list(dict.fromkeys(names))


OPEN_ENDED = "open-ended"
FREE = "free-string"
_USES = {"read": "reading", "write": "writing", "delete": "deleting"}
_BARE = re.compile(r"[A-Za-z0-9_-]+")


@frozen
class OperationReport:
    """``found``: the reading for the JSON, even a doubtful or open one; ``survey``: everything else.

    ``is_named``: the caller says what to read, so nothing is guessed; ``field``: the field that the caller names.
    """

    name: str
    found: OperationSet | None
    survey: Survey
    is_named: bool = False
    field: str | None = None
    paths: tuple[PathCandidate, ...] = ()

    @property
    def is_enforced(self) -> bool:
        """Tell whether ``found`` counts without a word in the policy, or because the caller chose it."""
        return self.found is not None and bool(self.found.operations) and self.found.confidence != "low"

    def to_json(self) -> dict[str, object] | None:
        """Shape: field, shape, confidence, default, operations, suggested; open_ended and paths, if any; or None."""
        if self.found is None:
            return None
        shown = {**self.found.to_json(), **({"open_ended": self.open_ended()} if self.survey.open_ends else {})}
        return {**shown, "paths": self.path_rows()} if self.paths else shown

    def to_row(self) -> dict[str, object]:
        """Shape: name, operations (as `to_json`), open_ended, free, paths."""
        free = [one.to_json() for one in self.survey.free]
        row = {"name": self.name, "operations": self.to_json(), "open_ended": self.open_ended(), "free": free}
        return {**row, "paths": self.path_rows()}

    def path_rows(self) -> list[dict[str, object]]:
        """Shape of each: argument, use (null: nothing says), confidence."""
        return [{"argument": one.argument, "use": one.use(), "confidence": one.confidence} for one in self.paths]

    def open_ended(self) -> list[dict[str, str]]:
        """Shape of each: field, kind, reason."""
        return [{"field": end.field, "kind": end.kind, "reason": end.reason} for end in self.survey.open_ends]

    def lines(self) -> Iterator[str]:
        """Yield lines for a person."""
        told = False
        if self.is_enforced and self.found is not None:
            yield from _table(self.name, self.found, "")
            told = True
        elif self.field:
            yield f"{self.name}: {advice_without_list(self.survey, self.field)}"
            told = True
        for end in self.survey.open_ends:
            yield f"{self.name}: {OPEN_ENDED}: {end.reason}"
            told = True
        guessed = [] if self.is_named else list(self._guesses())
        yield from guessed
        if not told and not guessed:
            yield f"{self.name}: no operations"
        for one in self.paths:
            use = one.use()
            done = f"for {_USES[use]}" if use else "for what its tier allows"
            sure = "" if one.confidence == "high" else ": not judged as one unless `[tools.NAME] paths` says so"
            yield f"{self.name}: `{one.argument}` looks like a path, {done} (confidence {one.confidence}){sure}"

    def _guesses(self) -> Iterator[str]:
        """Yield readings that count only if the policy says so."""
        for free in self.survey.free:
            names = ", ".join(free.suggested)
            yield f"{self.name}: `{free.field}` is free text" + (f"; its description names: {names}" if names else "")
            yield from _advice("to enforce a list", self.name, free.field, free.suggested or ("...",))
        doubtful = None if self.is_enforced else next((one for one in self.survey.readings if one.operations), None)
        if doubtful is not None:
            yield from _table(self.name, doubtful, ": off by default, since it may be an ordinary parameter")
            yield from _advice("to take it for operations all the same", self.name, doubtful.field, None)


def report_of(tool: ToolDefinition, field: str | None, operations: tuple[str, ...] | None) -> OperationReport:
    """Read ``tool`` with the field or the operations that the caller names. Raises SchemaError."""
    try:
        looked = survey(tool.input_schema, tool.description)
        paths = discover_paths(tool.input_schema, tool=tool.name, description=tool.description)
        if field is None and operations is None:
            # the reading that would be enforced, else the first one to look at
            told = [one for one in looked.free if one.suggested]
            ends = [OperationSet(end.field, (), OPEN_ENDED, "low") for end in looked.open_ends]
            likeliest = looked.found or next(iter((*told, *ends, *looked.readings, *looked.free)), None)
            return OperationReport(tool.name, likeliest, looked, paths=paths)
        found = None if field == "" else discover_operations(tool.input_schema, field=field, operations=operations)
    except RecursionError:
        raise SchemaError(f"the schema of `{tool.name}` is nested too deeply") from None
    return OperationReport(tool.name, found, looked, is_named=True, field=field, paths=paths)


def _table(name: str, found: OperationSet, note: str) -> Iterator[str]:
    default = f", left out means `{found.default}`" if found.default else ""
    also = f", also `{'`, `'.join(found.also)}`" if found.also else ""
    yield f"{name}: field `{found.field}`{also} ({found.shape}, confidence {found.confidence}{default}){note}"
    width = max((len(operation.name) for operation in found.operations), default=0)
    for operation in found.operations:
        required = ", ".join((*operation.required, *operation.inner_required)) or "nothing"
        optional = ", ".join((*operation.optional, *operation.inner_optional)) or "nothing"
        yield f"  {operation.name.ljust(width)}  needs {required}; may take {optional}"


def _advice(why: str, name: str, field: str, operations: tuple[str, ...] | None) -> Iterator[str]:
    """Yield lines to write into a policy."""
    yield f"  {why}, write into the policy:"
    yield f"    [tools.{_key(name)}]"
    yield f"    operation_field = {_text(field)}"
    if operations is not None:
        yield f"    operations = [{', '.join(map(_text, operations))}]"


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _text(name)


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)


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
    result = reduce_schema(*chosen, allow)
    if result is None:
        print_json(None)
        print_error("no operations found in this schema")
        looked = survey(chosen[0].input_schema, chosen[0].description)
        for name in [one.field for one in looked.free] if chosen[1] is None else [chosen[1]]:
            if name:  # where a policy could declare its operations
                print_error(advice_without_list(looked, name))
        raise typer.Exit(Exit.PROBLEMS)
    print_json(result.schema)
    if not json:
        for line in filter_notes(result):
            print_error(line)


def reading(
    tool: ToolDefinition, field: str | None, operations: str | None
) -> tuple[ToolDefinition, str | None, tuple[str, ...] | None]:
    """Return the tool with the field and operations that the caller names, else with those of its own definition.

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


def reduce_schema(
    tool: ToolDefinition, field: str | None, operations: tuple[str, ...] | None, allow: str
) -> FilterResult | None:
    """Reduce the tool's schema to ``allow``; None without operations. Raises UsageProblem."""
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
    """Report an unusable schema, or an unusable reading of it."""
    why = "its schema is nested too deeply" if isinstance(error, RecursionError) else str(error)
    return UsageProblem(f"`{tool.name}`: {why}")


def filter_notes(result: FilterResult) -> Iterable[str]:
    """Note facts about a filtered schema for the operator, one line each."""
    return [f"note: {lint.message} [{lint.code}]" for lint in result.lints]


def names_in(text: str) -> tuple[str, ...]:
    """Split the names at commas, exactly as written."""
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
