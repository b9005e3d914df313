"""The table of commands as typer reads it."""

from __future__ import annotations

import gc
import logging
import os
from collections.abc import Callable, Collection
from importlib import import_module
from typing import Annotated, Any, cast

import typer
from typer.completion import get_completion_inspect_parameters, shell_complete
from typer.core import TyperGroup
from typer.exceptions import TyperException

from gatewright.cli.example import EXITS, shown
from gatewright.cli.exit import Exit, UsageProblem
from gatewright.cli.output import ErrorLog, print_error, print_line

COMMANDS = {
    "gui": ("app", "gui"),
    "init": ("init", "init"),
    "import": ("migrate", "import_"),
    "tour": ("app", "tour"),
    "check": ("check", "check"),
    "context": ("block", "context"),
    "confinement": ("confinement", "confinement"),
    "inbox": ("inbox", "inbox"),
    "preview": ("preview", "preview"),
    "rules": ("preview", "rules"),
    "decide": ("decide", "decide"),
    "call": ("decide", "call"),
    "operations": ("schema", "operations"),
    "filter": ("schema", "filter"),
    "policy-schema": ("schema", "policy_schema"),
    "permission": ("permission", "permission"),
    "export": ("export", "export"),
    "selfcheck": ("selfcheck", "selfcheck"),
    "serve": ("serve", "serve"),
    "run": ("run", "run"),
}
"""By name: the module and the function."""
GROUPS = {
    "approvals": (
        "Questions to the operator.",
        {"list": ("approvals", "list_"), "answer": ("approvals", "answer"), "revoke": ("approvals", "revoke")},
    ),
    "audit": (
        "The audit log.",
        {"list": ("audit", "list_"), "verify": ("audit", "verify"), "export": ("audit", "export")},
    ),
    "block": (
        "Blocks of memory.",
        {
            "list": ("block", "list_"),
            "show": ("block", "show"),
            "create": ("block", "create"),
            "set": ("block", "set_"),
            "edit": ("block", "edit"),
            "archive": ("block", "archive"),
            "unarchive": ("block", "unarchive"),
            "history": ("block", "history"),
            "delete": ("block", "delete"),
        },
    ),
    "catalog": (
        "MCP servers and their clients.",
        {
            "list": ("acceptance", "list_"),
            "import": ("catalog", "import_"),
            "accept": ("acceptance", "accept"),
            "places": ("place", "places"),
            "client-config": ("catalog", "client_config"),
        },
    ),
    "memory": ("What a workspace remembers.", {"adopt": ("memory", "adopt")}),
    "token": (
        "Tokens for clients over HTTP.",
        {"add": ("token", "add"), "list": ("token", "list_"), "revoke": ("token", "revoke")},
    ),
}
"""By name: what the group is about, and its commands."""


def complete(variable: str) -> int:
    """Print what may follow the words that a shell has put beside this variable; the exit code."""
    get_completion_inspect_parameters()  # makes the shells known
    table = command_line(COMMANDS.keys() | GROUPS.keys())
    return shell_complete(table, {}, "gatewright", variable, os.environ[variable])


def run(words: list[str]) -> int:
    """Run the command that the words name; its exit code. Raises what the command raises."""
    logging.lastResort = ErrorLog(logging.WARNING)  # a program that has the engine as a library keeps its own
    if words[:1] == ["serve"]:
        from gatewright.cli.serve import with_command

        words = with_command(words)
    known = COMMANDS.keys() | GROUPS.keys()
    table = command_line(words[:1] if words and words[0] in known else known)  # the others need not be loaded
    if not gc.isenabled():  # a process of its own: what was read in stays
        gc.freeze()
        gc.enable()
    try:
        result: object = table.main(words, "gatewright", standalone_mode=False)
    except typer.Exit as error:
        return error.exit_code
    except typer.Abort:
        return Exit.INTERRUPTED
    except SystemExit:  # so typer leaves when the reader of its help has gone
        return Exit.OK
    except TyperException as error:
        text = error.format_message()
        is_help = text.startswith("Usage: ") and not isinstance(error, UsageProblem)  # of a group without a command
        print_error(text if is_help else f"gatewright: {text}", keep="\n" if is_help else "\t")
        return Exit.USAGE
    return result if isinstance(result, int) else Exit.OK


def _load(place: tuple[str, str]) -> Callable[..., Any]:
    module, name = place
    return getattr(import_module(f"gatewright.cli.{module}"), name)


def command_line(names: Collection[str]) -> TyperGroup:
    """These commands and groups as a tree."""
    table = typer.Typer(
        add_completion=False,
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        help="Decide, see, try and enforce what each LLM agent may do with each tool.",
        epilog=EXITS,
    )
    for name, place in COMMANDS.items():
        if name in names:
            table.command(name, epilog=shown(name))(_load(place))
    for name, (about, commands) in GROUPS.items():
        if name in names:
            group = typer.Typer(add_completion=False, no_args_is_help=True, rich_markup_mode=None, help=about)
            for word, place in commands.items():
                group.command(word, epilog=shown(f"{name} {word}"))(_load(place))
            table.add_typer(group, name=name)
    table.callback(invoke_without_command=True)(_top)
    return cast("TyperGroup", typer.main.get_command(table))


def _top(
    version: Annotated[bool, typer.Option("--version", is_eager=True, help="print the version")] = False,
) -> None:
    if version:
        from importlib.metadata import version as version_of

        print_line(version_of("gatewright"))
        raise typer.Exit(Exit.OK)
