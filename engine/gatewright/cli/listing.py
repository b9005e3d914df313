"""``preview`` of a file of tools: what a model would get of them, in a provider's format."""

from __future__ import annotations

from pathlib import Path

from gatewright.base.frozen import frozen
from gatewright.cli.exit import Exit, UsageProblem
from gatewright.cli.output import print_error, print_json
from gatewright.cli.schema import filter_notes, filtered, reading
from gatewright.cli.toolfile import ToolFile, read_tool_file
from gatewright.cli.toolnote import notes
from gatewright.schema import ToolListing, format_named
from gatewright.schema.filter import told_output
from gatewright.schema.walk import Schema
from gatewright.tools import ToolDefinition

NEEDED = 'give a tool definition, `{"name": "...", "inputSchema": ...}`'


@frozen
class Choice:
    """Which tool of the file, and what of it; None: not said."""

    tool: str | None = None
    allow: str | None = None
    field: str | None = None
    operations: str | None = None

    def words(self) -> list[str]:
        """The options that were given."""
        given = {"tool": self.tool, "allow": self.allow, "field": self.field, "operations": self.operations}
        return [f"--{name}" for name, value in given.items() if value is not None]


def is_tool_file(path: str) -> bool:
    """Whether ``path`` is JSON rather than a policy: by its name, else by how it begins."""
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
    chosen = _chosen(source, choice)
    whole = [ToolListing(tool.name, tool.description, tool.input_schema, _output(tool)) for tool in chosen]
    shown, told = (whole, []) if choice.allow is None else _narrowed(source, choice)
    print_json(format_named(form).render_all(shown))
    if not as_json:
        for line in (*told, *notes(shown, form, whole)):
            print_error(line)
    return Exit.PROBLEMS if source.set_aside else Exit.OK


def _output(tool: ToolDefinition, hidden: frozenset[str] = frozenset()) -> Schema | None:
    output = None if tool.output_schema is None else told_output(tool.output_schema, hidden)
    return output if output is not None and output.get("type") == "object" else None


def _chosen(source: ToolFile, choice: Choice) -> list[ToolDefinition]:
    """All tools, of each name the highest major, or the one that is meant."""
    if choice.allow is None and (choice.field is not None or choice.operations is not None):
        raise UsageProblem("`--field` and `--operations` go with `--allow`")
    if choice.tool is not None or choice.allow is not None:
        return [source.one(choice.tool)]
    return [source.one(name) for name in dict.fromkeys(tool.name for tool in source.tools)] if source.tools else []


def _narrowed(source: ToolFile, choice: Choice) -> tuple[list[ToolListing], list[str]]:
    """The chosen tool with the allowed operations only, and what is to be said of it."""
    tool = source.one(choice.tool)
    result = filtered(*reading(tool, choice.field, choice.operations), choice.allow or "")
    if result is None:
        raise UsageProblem(f"no operations found in `{tool.name}`, so there is nothing to `--allow`")
    if result.schema is None:
        return [], []
    listing = ToolListing(tool.name, result.clean(tool.description), result.schema, _output(tool, result.hidden))
    return [listing], list(filter_notes(result))
