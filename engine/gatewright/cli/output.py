"""What all commands share: options, the reader of tool files, exit codes, output as lines or as JSON.

A file of tools loses the same unusable tools as in an import; a single tool is shown as far as possible.
"""

from __future__ import annotations

import codecs
import getpass
import json
import logging
import os
import sys
from collections.abc import Iterable
from contextlib import suppress
from enum import IntEnum
from itertools import islice
from pathlib import Path
from typing import Annotated, Literal, TextIO, cast

import typer
from typer.exceptions import TyperException

from gatewright.base.amount import iso_utc
from gatewright.base.errors import GatewrightError, NotSupported, PolicyInvalid, SchemaError, WorkspaceError, near_hint
from gatewright.base.frozen import frozen
from gatewright.base.printable import printable
from gatewright.memory.archive import Received
from gatewright.policy.verdict import Verdict
from gatewright.schema import Schema, check_schema
from gatewright.schema.walk import linear_part, pattern_problems, pointer_text
from gatewright.tools import DefinitionProblem, ToolDefinition, read_definitions
from gatewright.workspace import Workspace
from gatewright.workspace.manifest import parse_json


class Exit(IntEnum):
    """The meanings of the exit status for scripts."""

    OK = 0
    PROBLEMS = 1
    USAGE = 2
    ASK_UNANSWERED = 3
    DENIED = 4
    TOOL_FAILED = 5
    INTERRUPTED = 130


VERDICT_EXIT = {Verdict.ALLOW: Exit.OK, Verdict.ASK: Exit.ASK_UNANSWERED, Verdict.DENY: Exit.DENIED}


class UsageProblem(TyperException):
    """A wrong word on the command line, an unknown agent, an unreadable file; exit code 2."""

    exit_code = Exit.USAGE


def exit_of(error: GatewrightError) -> Exit:
    """Return the exit code for an error that reached the top."""
    if isinstance(error, PolicyInvalid | SchemaError):
        return Exit.PROBLEMS
    if isinstance(error, WorkspaceError | NotSupported):
        return Exit.USAGE
    return Exit.PROBLEMS


def print_json(value: object) -> None:
    """Print indented JSON on stdout, with terminal controls escaped."""
    _write(sys.stdout, printable(json.dumps(value, indent=2, ensure_ascii=False), keep="\n"))


def print_line(text: str) -> None:
    """Print one line on stdout, with tabs, but with terminal controls and unencodable characters escaped."""
    _write(sys.stdout, printable(text, keep="\t"))


def print_passage(lead: str, text: str) -> None:
    """Print a text after ``lead`` on stdout; each further line begins with a bar, so that none looks like ours."""
    first, *more = text.replace("\r\n", "\n").split("\n")
    for line in (lead + first, *(f"  | {line}" for line in more)):
        print_line(line)


def print_error(text: str, *, keep: str = "\t") -> None:
    """Print one line on stderr, escaped in the same way; ``keep``: characters to leave alone."""
    _write(sys.stderr, printable(text, keep=keep))


def print_text(text: str) -> None:
    """Print a result of several lines on stdout: unchanged into a pipe or a file, escaped on a terminal."""
    shown = printable(text.replace("\r\n", "\n"), keep="\n\t") if sys.stdout.isatty() else text
    _write(sys.stdout, shown)


class ErrorLog(logging.Handler):
    """A handler that prints log lines as errors."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print one record."""
        print_error(self.format(record), keep="\n\t")


def read_argument(value: str) -> str | bytes:
    """Return the value itself, or all of stdin for ``-``, unchanged: the gate judges the text."""
    return sys.stdin.buffer.read().removeprefix(codecs.BOM_UTF8) if value == "-" else value


def read_content(path: str) -> bytes:
    """Read the bytes of a file, or of stdin for ``-``; an unreadable file is a usage problem."""
    if path == "-":
        return sys.stdin.buffer.read()
    try:
        return Path(path).read_bytes()
    except (OSError, ValueError) as error:
        why = (error.strerror if isinstance(error, OSError) else None) or error
        raise UsageProblem(f"cannot read `{path}`: {why}") from None


def decode(content: bytes, what: str) -> str:
    """Decode UTF-8 text; anything else is a usage problem."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageProblem(f"{what} is not UTF-8 at byte {error.start}") from None


def _write(stream: TextIO, text: str) -> None:
    encoding = stream.encoding or "utf-8"
    safe = text.encode(encoding, "backslashreplace").decode(encoding)
    try:
        print(safe, file=stream, flush=True)
    except BrokenPipeError:
        _silence(stream)
    except OSError:
        _silence(stream)
        raise


def _silence(stream: TextIO) -> None:
    """Drop the rest of the output, even at exit, so that the exit code reports the command's result."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    with suppress(OSError):
        os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


PolicyArgument = Annotated[Path, typer.Argument(metavar="POLICY", help="a policy file, or the folder that holds one")]
AgentOption = Annotated[str, typer.Option("--agent", metavar="ID", help="the agent")]
JsonOption = Annotated[bool, typer.Option("--json", help="print JSON")]
StateOption = Annotated[
    str | None,
    typer.Option(
        "--state", metavar="DIR", help="state folder, or URL of a shared state (else GATEWRIGHT_STATE, .gatewright)"
    ),
]
TrustOption = Annotated[
    bool,
    typer.Option(
        "--trust",
        help="trust the servers, endpoints, and folders and manifests outside the workspace, that the policy names",
    ),
]


def require_agent(workspace: Workspace, agent_id: str) -> str:
    """Return the id if the agent exists; else raise a usage problem with a near miss."""
    agents = workspace.policy.agents
    if agent_id in agents:
        return agent_id
    near = near_hint(agent_id, agents, listed=True)
    raise UsageProblem(f"no agent `{agent_id}` in {workspace.policy_path}{near}")


def user_name() -> str:
    """Name the user of the command, as the system knows them."""
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):  # the system may lack a name for a container's user
        return "command line"


MAX_BYTES = 64 * 1024 * 1024
MAX_DEPTH = 128
_SCHEMA_KEYS = ("inputSchema", "input_schema", "parameters")
_ROOT_KEYS = frozenset({"properties", "$defs", "$ref", "allOf", "anyOf", "oneOf"})
_MANY = 12


@frozen
class ToolFile:
    """``tools`` are the usable ones, ``set_aside`` the others; ``what`` names the file in messages.

    A bare schema becomes a tool with the file's name. ``doubts``: why an import would refuse a tool that is here
    nevertheless.
    """

    what: str
    kind: Literal["schema", "tool", "list"]
    tools: tuple[ToolDefinition, ...]
    set_aside: tuple[DefinitionProblem, ...] = ()
    doubts: tuple[DefinitionProblem, ...] = ()

    def one(self, name: str | None) -> ToolDefinition:
        """Return the tool of that name, or the only one. Raises UsageProblem."""
        if self.kind == "schema" and name is not None:
            raise UsageProblem(f"{self.what} is one schema, so there is no `--tool` to choose")
        names = [tool.name for tool in self.tools]
        if name is None:
            if len(names) == 1:
                return self.tools[0]
            raise UsageProblem(f"{self.what} holds {len(names)} tools: choose one with `--tool`{_name_list(names)}")
        found = [tool for tool in self.tools if tool.name == name]
        if found:
            return max(found, key=lambda tool: int(tool.version.partition(".")[0]))
        refused = next((problem for problem in self.set_aside if problem.name == name), None)
        if refused is not None:
            raise UsageProblem(f"`{name}` of {self.what} at {refused.pointer}: {refused.message}")
        raise UsageProblem(f"no tool `{name}` in {self.what}{near_hint(name, names) or _name_list(names)}")

    def print_warnings(self) -> None:
        """Print the unusable tools with the reasons on stderr."""
        for problem in self.set_aside:
            print_error(f"warning: set aside {_name_of(problem)}{_at(problem)}: {problem.message}")
        for problem in self.doubts:
            print_error(f"warning: the gate would not take {_name_of(problem)}{_at(problem)}: {problem.message}")
        found = ((tool, one) for tool in self.tools for one in pattern_problems(tool.input_schema))
        for tool, one in islice(found, _MANY):
            place = f"the pattern of `{tool.name}` at {pointer_text(one.pointer)}"
            print_error(f"warning: the gate neither shows nor checks {place}: {one.message}")


def read_tool_file(path: str) -> ToolFile:
    """Read ``path``, or stdin for ``-``. Raises UsageProblem or WorkspaceError."""
    what = "stdin" if path == "-" else f"`{path}`"
    content = read_content(path)
    if len(content) > MAX_BYTES:
        raise UsageProblem(f"{what} is larger than {MAX_BYTES // 1024 // 1024} MiB")
    stem = "tool" if path == "-" else Path(path).stem
    return tool_file(parse_json(content, what), what, stem)


def tool_file(value: object, what: str, stem: str) -> ToolFile:
    """Read a parsed value; ``stem`` names a schema without a name. Raises UsageProblem."""
    if isinstance(value, list):
        return _list(cast("object", value), what)
    if not isinstance(value, dict):
        raise UsageProblem(f"{what} holds no JSON object and no list of tools")
    table = cast("Schema", value)
    if isinstance(table.get("tools"), list) and not table.keys() & {"properties", "$defs", "allOf", "anyOf"}:
        return _list(table, what)
    wrapped = table.get("function")
    tool = cast("Schema", wrapped) if isinstance(wrapped, dict) and "properties" not in table else table
    held = [tool[key] for key in _SCHEMA_KEYS if key in tool]
    has_schema = any(isinstance(one, dict) for one in held) or (bool(held) and not tool.keys() & _ROOT_KEYS)
    is_tool = tool is wrapped or (has_schema and isinstance(tool.get("name"), str))
    return _tool(table, tool, what) if is_tool else _schema(table, what, stem)


def _list(value: object, what: str) -> ToolFile:
    tools, problems = read_definitions(value)
    return ToolFile(what, "list", tools, problems)


def _tool(outer: Schema, table: Schema, what: str) -> ToolFile:
    tools, problems = read_definitions([outer])
    if tools:
        return ToolFile(what, "tool", tools)
    _refuse_deep(outer, what)
    doubts = tuple(DefinitionProblem(p.pointer.removeprefix("/0"), p.name, p.message) for p in problems)
    schema = next((table[key] for key in _SCHEMA_KEYS if isinstance(table.get(key), dict)), None)
    name, said = table.get("name"), table.get("description")
    if schema is None or not isinstance(name, str):
        raise UsageProblem(f"{what} is no tool definition{_at(doubts[0])}: {doubts[0].message}")
    definition = ToolDefinition(name, said if isinstance(said, str) else "", cast("Schema", schema))
    return ToolFile(what, "tool", (definition,), doubts=doubts)


def _schema(schema: Schema, what: str, stem: str) -> ToolFile:
    _refuse_deep(schema, what)
    definition = ToolDefinition(stem, "", schema)
    doubts = tuple(
        DefinitionProblem(problem.pointer, "", problem.message) for problem in check_schema(linear_part(schema))[:1]
    )
    return ToolFile(what, "schema", (definition,), doubts=doubts)


def _refuse_deep(root: object, what: str) -> None:
    stack: list[tuple[object, int]] = [(root, 1)]
    while stack:
        value, depth = stack.pop()
        if depth > MAX_DEPTH:
            raise UsageProblem(f"{what} is nested deeper than {MAX_DEPTH} levels")
        if isinstance(value, dict | list):
            children = cast("dict[str, object] | list[object]", value)
            stack += [(child, depth + 1) for child in (children.values() if isinstance(children, dict) else children)]


def _name_list(names: list[str]) -> str:
    if not names:
        return ""
    more = f" and {len(names) - _MANY} more" if len(names) > _MANY else ""
    return f" (there are: {', '.join(names[:_MANY])}{more})"


def _name_of(problem: DefinitionProblem) -> str:
    return f"`{problem.name}`" if problem.name else "this"


def _at(problem: DefinitionProblem) -> str:
    return f" at {problem.pointer}" if problem.pointer else ""


def print_messages(messages: Iterable[Received]) -> None:
    """Print each message with its sender and time; its further lines begin with a bar, so that none passes for ours."""
    for message in messages:
        group = f" to {message.group}" if message.group else ""
        print_passage(f"{iso_utc(message.sent_at)}  {message.sender}{group}: ", message.content)
