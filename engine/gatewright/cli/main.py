"""The command ``gatewright``: its table of commands, and how errors become messages and exit codes.

Exit codes: 0 fine or allow; 1 problems, failed verification or self-check; 2 usage, unreadable, unknown agent; 3 ask
unanswered; 4 deny; 5 the tool itself failed; 130 interrupted.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Annotated

import typer
from typer.exceptions import TyperException

from gatewright.base.errors import GatewrightError, PolicyInvalid
from gatewright.cli import app, approvals, audit, check, decide, export, init, permission, preview, schema, selfcheck
from gatewright.cli.exit import Exit, exit_of
from gatewright.cli.output import print_error, print_json, print_line

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

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
}
PLANNED = frozenset({"catalog", "serve", "token"})


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code and never raises."""
    words = _with_command(list(sys.argv[1:] if arguments is None else arguments))
    try:
        return _run(words)
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except OSError as error:
        print_error(f"gatewright: {error.strerror or error}" + (f": `{error.filename}`" if error.filename else ""))
        return Exit.USAGE
    except Exception as error:
        if os.environ.get("GATEWRIGHT_DEBUG"):
            raise
        print_error(f"gatewright: internal error, {type(error).__name__}: {error} (GATEWRIGHT_DEBUG=1 shows where)")
        return Exit.PROBLEMS


def _run(words: list[str]) -> int:
    try:
        result: object = typer.main.get_command(_typer()).main(words, "gatewright", standalone_mode=False)
    except PolicyInvalid as error:
        _report_problems(error, as_json="--json" in words)
        return Exit.PROBLEMS
    except GatewrightError as error:
        print_error(f"gatewright: {error}")
        return exit_of(error)
    except typer.Exit as error:
        return error.exit_code
    except typer.Abort:
        return Exit.INTERRUPTED
    except TyperException as error:
        print_error(f"gatewright: {error.format_message()}")
        return Exit.USAGE
    return result if isinstance(result, int) else Exit.OK


def _report_problems(error: PolicyInvalid, *, as_json: bool) -> None:
    if as_json:
        print_json({"ok": False, "problems": [problem.to_json() for problem in error.problems]})
    for problem in error.problems:
        print_error(str(problem))


def _with_command(words: list[str]) -> list[str]:
    """Without a command the app starts: ``gatewright`` and ``gatewright WORKSPACE`` mean ``gui``."""
    if not words:
        return ["gui"]
    if words[0] in {*COMMANDS, *PLANNED, "approvals", "audit"} or words[0].startswith("-"):
        return words
    return ["gui", *words]


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
    table.add_typer(approvals.table(), name="approvals")
    table.add_typer(audit.table(), name="audit")
    for name in sorted(PLANNED):
        table.command(name, hidden=True, context_settings={"ignore_unknown_options": True})(_planned(name))
    table.callback(invoke_without_command=True)(_top)
    return table


def _planned(name: str) -> Callable[..., None]:
    def command(words: Annotated[list[str] | None, typer.Argument()] = None) -> None:  # noqa: ARG001
        print_error(f"gatewright: `{name}` is not supported yet")
        raise typer.Exit(Exit.USAGE)

    return command


def _top(
    version: Annotated[bool, typer.Option("--version", is_eager=True, help="print the version")] = False,
) -> None:
    if version:
        from importlib.metadata import version as version_of

        print_line(version_of("gatewright"))
        raise typer.Exit(Exit.OK)


def script() -> None:
    """The console script."""
    sys.exit(main())
