"""Options, exit codes and output that commands share: JSON when asked, lines otherwise, errors on standard error."""

from __future__ import annotations

import codecs
import getpass
import json
import logging
import os
import sys
from contextlib import suppress
from enum import IntEnum
from pathlib import Path
from typing import Annotated, TextIO

import typer
from typer.exceptions import TyperException

from gatewright.base.errors import GatewrightError, NotSupported, PolicyInvalid, SchemaError, WorkspaceError
from gatewright.base.printable import printable
from gatewright.base.problem import near_hint
from gatewright.policy.verdict import Verdict
from gatewright.workspace import Workspace


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
    """A wrong word on the command line, an unknown agent, an unreadable file: exit 2."""

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
    """Print a text after ``lead`` on stdout; each further line begins with a bar, so that none passes for ours."""
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
    """Read the bytes of a file, or of stdin for ``-``; an unreadable one is a usage problem."""
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
    """Drop the rest of the output, at the exit too, so that the exit code tells the command's result."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    with suppress(OSError):
        os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


PolicyArgument = Annotated[Path, typer.Argument(metavar="POLICY", help="a policy file, or the folder that holds one")]
AgentOption = Annotated[str, typer.Option("--agent", metavar="ID", help="the agent")]
JsonOption = Annotated[bool, typer.Option("--json", help="print JSON")]
StateOption = Annotated[
    Path | None, typer.Option("--state", metavar="DIR", help="state folder (else GATEWRIGHT_STATE, .gatewright)")
]
TrustOption = Annotated[
    bool,
    typer.Option(
        "--trust",
        help="trust the servers, endpoints, and folders and manifests outside the workspace, that the policy names",
    ),
]


def require_agent(workspace: Workspace, agent_id: str) -> str:
    """Return the id itself; an unknown one is a usage problem with a near miss."""
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
