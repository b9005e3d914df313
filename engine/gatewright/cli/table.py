"""The table of commands as typer reads it."""

from __future__ import annotations

import logging
from typing import Annotated

import typer
from typer.exceptions import TyperException

from gatewright.cli import (
    app,
    approvals,
    audit,
    catalog,
    check,
    decide,
    export,
    init,
    permission,
    preview,
    schema,
    selfcheck,
    serve,
    token,
)
from gatewright.cli.exit import Exit
from gatewright.cli.output import ErrorLog, print_error, print_line

COMMANDS = {
    "gui": app.gui,
    "init": init.init,
    "tour": app.tour,
    "check": check.check,
    "preview": preview.preview,
    "rules": preview.rules,
    "decide": decide.decide,
    "call": decide.call,
    "operations": schema.operations,
    "filter": schema.filter,
    "permission": permission.permission,
    "export": export.export,
    "selfcheck": selfcheck.selfcheck,
    "serve": serve.serve,
}
GROUPS = {"approvals": approvals.table, "audit": audit.table, "catalog": catalog.table, "token": token.table}


def run(words: list[str]) -> int:
    """Run the command that the words name; its exit code. Raises what the command raises."""
    logging.lastResort = ErrorLog(logging.WARNING)  # a program that has the engine as a library keeps its own
    try:
        result: object = typer.main.get_command(_typer()).main(words, "gatewright", standalone_mode=False)
    except typer.Exit as error:
        return error.exit_code
    except typer.Abort:
        return Exit.INTERRUPTED
    except TyperException as error:
        print_error(f"gatewright: {error.format_message()}")
        return Exit.USAGE
    return result if isinstance(result, int) else Exit.OK


def _typer() -> typer.Typer:
    table = typer.Typer(
        add_completion=False,
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        help="Decide, see, try and enforce what each LLM agent may do with each tool.",
    )
    for name, function in COMMANDS.items():
        table.command(name)(function)
    for name, group in GROUPS.items():
        table.add_typer(group(), name=name)
    table.callback(invoke_without_command=True)(_top)
    return table


def _top(
    version: Annotated[bool, typer.Option("--version", is_eager=True, help="print the version")] = False,
) -> None:
    if version:
        from importlib.metadata import version as version_of

        print_line(version_of("gatewright"))
        raise typer.Exit(Exit.OK)
