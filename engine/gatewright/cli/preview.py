"""``preview`` and ``rules``: what the model of one agent sees, or would see of a file of tools."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer

from gatewright.base.frozen import frozen
from gatewright.cli.output import (
    AgentOption,
    Exit,
    JsonOption,
    PolicyArgument,
    StateOption,
    TrustOption,
    UsageProblem,
    print_error,
    print_json,
    print_text,
    require_agent,
)
from gatewright.cli.schema import ChosenToolOption, FieldOption, OperationsOption, filter_notes, reading, reduce_schema
from gatewright.cli.toolfile import ToolFile, read_tool_file
from gatewright.schema import ToolListing, format_named
from gatewright.schema.filter import output_without
from gatewright.schema.formats import ProviderLint
from gatewright.schema.tokens import count_tokens
from gatewright.schema.walk import Schema
from gatewright.tools import ToolDefinition
from gatewright.workspace import Workspace, format_names

LEVELS = ("refused", "looser", "narrower", "note")


def notes(listings: Sequence[ToolListing], form: str, unrestricted: Sequence[ToolListing]) -> Iterator[str]:
    """Yield the tokens of each tool and in all, then the lints, the gravest first, a repeated note once."""
    count = count_tokens(listings, form, unrestricted)
    about = "" if count.exact else "about "
    for name, tokens in count.per_tool.items():
        yield f"{name}: {about}{tokens:,} tokens"
    how = "exact" if count.exact else "an estimate"
    saving = f"{count.saving or 0:.0%} less than unrestricted"
    yield f"{about}{count.total:,} tokens in all ({count.encoding}), {how}, {saving}"
    found = [(name, lint) for name, lints in format_named(form).lints_all(listings).items() for lint in lints]
    noted: dict[str, list[str]] = {}
    for name, lint in sorted(found, key=lambda row: LEVELS.index(row[1].level)):
        if lint.level == "note":
            noted.setdefault(lint.message, []).append(_line(name, lint))
        else:
            yield _line(name, lint)
    for message, lines in noted.items():
        yield lines[0] if len(lines) == 1 else f"note: {len(lines):,} times: {message}"


def _line(name: str, lint: ProviderLint) -> str:
    where = f" at {lint.pointer}" if lint.pointer else ""
    return f"{lint.level}: {name or 'all tools'}{where}: {lint.message}"


NEEDED = 'give a tool definition, `{"name": "...", "inputSchema": ...}`'


@frozen
class Choice:
    """The choice of a tool in the file, and of its parts; None: open."""

    tool: str | None = None
    allow: str | None = None
    field: str | None = None
    operations: str | None = None

    def words(self) -> list[str]:
        """Return the given options."""
        given = {"tool": self.tool, "allow": self.allow, "field": self.field, "operations": self.operations}
        return [f"--{name}" for name, value in given.items() if value is not None]


def is_tool_file(path: str) -> bool:
    """Tell whether ``path`` is JSON rather than a policy: by its name, else by its beginning."""
    if path == "-" or path.endswith(".json"):
        return True
    if path.endswith(".toml"):
        return False
    try:
        with Path(path).open("rb") as file:
            start = file.read(4096).removeprefix(b"\xef\xbb\xbf").lstrip()
    except (OSError, ValueError):
        return False
    return start.startswith(b"{") or (start.startswith(b"[") and start[1:].lstrip().startswith((b"{", b"]")))


def preview_file(path: str, form: str, choice: Choice, *, as_json: bool) -> Exit:
    """Print the tools of a file as a provider gets them; what was set aside, cost and lost on stderr."""
    source = read_tool_file(path)
    if source.kind == "schema" and choice.tool is None and choice.allow is None:
        raise UsageProblem(f"{source.what} is a bare schema and has no name: {NEEDED}")
    source.print_warnings()
    chosen = _choose(source, choice)
    whole = [ToolListing(tool.name, tool.description, tool.input_schema, _output(tool)) for tool in chosen]
    shown, told = (whole, []) if choice.allow is None else _narrow(source, choice)
    print_json(format_named(form).render_all(shown))
    if not as_json:
        for line in (*told, *notes(shown, form, whole)):
            print_error(line)
    return Exit.PROBLEMS if source.set_aside else Exit.OK


def _output(tool: ToolDefinition, hidden: frozenset[str] = frozenset()) -> Schema | None:
    output = None if tool.output_schema is None else output_without(tool.output_schema, hidden)
    return output if output is not None and output.get("type") == "object" else None


def _choose(source: ToolFile, choice: Choice) -> list[ToolDefinition]:
    """Return all tools, of each name the highest major, or the chosen one."""
    if choice.allow is None and (choice.field is not None or choice.operations is not None):
        raise UsageProblem("`--field` and `--operations` go with `--allow`")
    if choice.tool is not None or choice.allow is not None:
        return [source.one(choice.tool)]
    return [source.one(name) for name in dict.fromkeys(tool.name for tool in source.tools)] if source.tools else []


def _narrow(source: ToolFile, choice: Choice) -> tuple[list[ToolListing], list[str]]:
    """Return the chosen tool with the allowed operations only, and notes about it."""
    tool = source.one(choice.tool)
    result = reduce_schema(*reading(tool, choice.field, choice.operations), choice.allow or "")
    if result is None:
        raise UsageProblem(f"no operations found in `{tool.name}`, so there is nothing to `--allow`")
    if result.schema is None:
        return [], []
    listing = ToolListing(tool.name, result.clean(tool.description), result.schema, _output(tool, result.hidden))
    return [listing], list(filter_notes(result))


def preview(
    source: Annotated[
        str, typer.Argument(metavar="POLICY|FILE", help="a policy (or its folder), or JSON: a tool list, a definition")
    ],
    agent: Annotated[str | None, typer.Option("--agent", metavar="ID", help="the agent, with a policy")] = None,
    format: Annotated[  # noqa: A002
        str, typer.Option("--format", help="mcp, openai, openai-responses, anthropic, gemini or genai")
    ] = "mcp",
    tool: ChosenToolOption = None,
    allow: Annotated[
        str | None, typer.Option("--allow", metavar="A,B", help="with JSON: the operations of one tool to keep")
    ] = None,
    field: FieldOption = None,
    operations: OperationsOption = None,
    json: JsonOption = False,
    state: StateOption = None,
    trust: TrustOption = False,
) -> None:
    """Print the tools that a model gets, as JSON: those of an agent, or of a file; cost and losses on stderr."""
    if format not in format_names():
        raise UsageProblem(f"no format `{format}` (known are {', '.join(format_names())})")
    choice = Choice(tool, allow, field, operations)
    if is_tool_file(source):
        if agent is not None:
            raise UsageProblem(f"`{source}` is no policy, so it has no `--agent`")
        raise typer.Exit(preview_file(source, format, choice, as_json=json))
    if agent is None:
        raise UsageProblem("a policy needs `--agent`, to say whose tools are meant")
    if words := choice.words():
        raise UsageProblem(f"`{words[0]}` is for JSON; what an agent sees of a policy is what the policy says")
    with Workspace.open(Path(source), state=state, trust=trust) as workspace:
        view = workspace.view(require_agent(workspace, agent))
        print_json(view.tools(format))
        if not json:
            for line in notes(view.listings(), format, view.full_listings()):
                print_error(line)


def rules(
    policy: PolicyArgument,
    agent: AgentOption,
    json: JsonOption = False,
    state: StateOption = None,
    trust: TrustOption = False,
) -> None:
    """Print the usage rules that the model of one agent gets, and what the servers of its tools say, as Markdown."""
    with Workspace.open(policy, state=state, trust=trust) as workspace:
        text = workspace.view(require_agent(workspace, agent)).instructions
    if json:
        print_json({"rules": text})
    else:
        print_text(text.rstrip("\n"))
