"""Exit codes of every command, and how an error becomes one. It does not print."""

from __future__ import annotations

from enum import IntEnum

from typer.exceptions import TyperException

from gatewright.base.errors import GatewrightError, NotSupported, PolicyInvalid, SchemaError, WorkspaceError
from gatewright.policy.verdict import Verdict


class Exit(IntEnum):
    """What a script can tell from the exit status."""

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
    """The exit code for an error that reached the top."""
    if isinstance(error, PolicyInvalid | SchemaError):
        return Exit.PROBLEMS
    if isinstance(error, WorkspaceError | NotSupported):
        return Exit.USAGE
    return Exit.PROBLEMS
