"""The table of commands for typer, and the examples that each command shows in its help."""

from __future__ import annotations

import gc
import logging
import os
from collections.abc import Callable, Collection
from importlib import import_module
from importlib.metadata import version as version_of
from typing import Annotated, Any, cast

import typer
from typer.completion import get_completion_inspect_parameters, shell_complete
from typer.core import TyperGroup
from typer.exceptions import TyperException

from gatewright.cli.output import ErrorLog, Exit, UsageProblem, print_error, print_line

EXAMPLES: dict[str, tuple[str, ...]] = {
    "gui": ("gui work",),
    "init": ("init work --template demo", "init desk --example support-bot", "init --machine --undo"),
    "import": ("import .claude/settings.json --out mine", "import agent.toml"),
    "tour": ("tour --out pictures",),
    "check": ("check work", "check work --json"),
    "context": ("context work --agent archivist",),
    "confinement": ("confinement work --agent archivist",),
    "inbox": ("inbox work", "inbox work --agent archivist --take"),
    "preview": (
        "preview work --agent archivist --format openai",
        "preview work/station-tools.json --tool tracker --allow open,list",
    ),
    "rules": ("rules work --agent archivist",),
    "decide": (
        """decide work --agent archivist --tool file --args '{"op": "read", "path": "notes/species.md"}'""",
        """echo '{"op": "list"}' | gatewright decide work --agent archivist --tool file --args - --json""",
    ),
    "call": (
        """call work --agent archivist --tool file --args '{"op": "list"}'""",
        """call work --agent archivist --tool memory_save --args '{"content": "Herons nest late."}' --approve always""",
    ),
    "operations": ("operations work/station-tools.json --tool tracker", "operations - < schema.json"),
    "filter": ("filter work/station-tools.json --tool tracker --allow open,list",),
    "policy-schema": ("policy-schema > policy.schema.json",),
    "permission": (
        "permission work --source archive notes/species.md drafts/",
        "git -C work ls-files | gatewright permission work --source archive -",
    ),
    "export": (
        "export work --team --out handed-over",
        "export handed-over --verify",
        "export work --dialect pattern --agent archivist",
    ),
    "selfcheck": ("selfcheck work",),
    "serve": (
        "serve work --agent archivist",
        "serve work --transport http --port 8000",
        "serve --agent helper -- uvx mcp-server-git",
    ),
    "run": (
        "run work --agent archivist -- ls",
        "run work --agent archivist --place archive=read -- find . -name '*.md'",
    ),
    "stop": ("stop work --because 'it deletes the wrong files'", "stop work --agent archivist"),
    "go": ("go work", "go work --agent archivist"),
    "approvals list": ("approvals list work", "approvals list work --watch"),
    "approvals answer": (
        "approvals answer work ask-0123456789abcdef --once",
        "approvals answer work ask-0123456789abcdef --deny --because 'not today'",
    ),
    "approvals revoke": ("approvals revoke work grant-0123456789abcdef",),
    "audit list": (
        "audit list work --since 2026-01-31 --verdict deny",
        "audit list work --agent archivist --most 20 --json",
        "audit list work --within call-fedcba9876543210",
    ),
    "audit observed": ("audit observed work", "audit observed work --agent archivist --since 2026-01-31 --json"),
    "audit verify": ("audit verify work",),
    "audit export": ("audit export work > log.jsonl", "audit export work --since 2026-01-31T09:30"),
    "block list": ("block list work --agent archivist",),
    "block show": ("block show work logbook",),
    "block create": ("block create work plan --agent archivist --content plan.md",),
    "block set": ("block set work plan --agent archivist --pin --limit 2000",),
    "block edit": (
        "block edit work plan --agent archivist --append 'Count the terns.'",
        "block edit work plan --agent archivist --content - < plan.md",
    ),
    "block archive": ("block archive work plan --agent archivist",),
    "block unarchive": ("block unarchive work plan --agent archivist",),
    "block history": ("block history work plan --agent archivist --limit 5",),
    "block delete": ("block delete work plan --agent archivist",),
    "catalog list": ("catalog list work",),
    "catalog import": (
        "catalog import work --trust --accept -- uvx mcp-server-git",
        "catalog import work --url https://mcp.example.org/mcp",
        "catalog import work --from claude_desktop_config.json",
        "catalog import work --openapi api.yaml --id shop --trust",
        "catalog import work --host claude-code",
    ),
    "catalog accept": ("catalog accept work git", "catalog accept work git --all"),
    "catalog places": (
        "catalog places work git",
        "catalog places work git --accept",
        "catalog places work git --accept --place archive=read --place ./drafts=write",
    ),
    "catalog client-config": ("catalog client-config work --client claude-desktop --agent archivist",),
    "hook install": (
        "hook install claude-code --yes",
        "hook install gemini-cli --project work --policy work --agent archivist --yes",
    ),
    "hook uninstall": ("hook uninstall claude-code --yes", "hook uninstall gemini-cli --project work --yes"),
    "hook status": ("hook status", "hook status codex --json"),
    "hook doctor": ("hook doctor",),
    "memory adopt": ("memory adopt work",),
    "state init": (
        "state init --state postgresql://admin@db/gates",
        "state init --state postgresql://admin@db/gates --member gateway1=gateway --member ada=answer,read",
    ),
    "state migrate": ("state migrate --state postgresql://admin@db/gates",),
    "state status": ("state status --state postgresql:///?service=gatewright",),
    "state enroll": ("state enroll writer-0123456789abcdef --state postgresql://ada@db/gates",),
    "token add": ("token add work --agent archivist --user ada",),
    "token list": ("token list work",),
    "token revoke": ("token revoke work token-0123456789abcdef",),
}
"""Examples by command; `gatewright` goes in front of each line that does not pipe into it."""


def examples_of(name: str) -> str:
    """Return the examples of a command as a text for the end of its help."""
    return "\n\n".join(("Examples:", "\b\n" + "\n".join(f"  {line_of(example)}" for example in EXAMPLES[name])))


def line_of(example: str) -> str:
    """Return an example as people type it."""
    return example if " | gatewright " in example else f"gatewright {example}"


EXITS = (
    "Exit status: 0 fine, or the call is allowed; 1 problems found; 2 a wrong word, nothing to read, no such agent; "
    "3 the call asks and nobody answered; 4 the call is denied; 5 the tool itself failed; 130 interrupted."
)


COMMANDS = {
    "gui": ("policy", "gui"),
    "init": ("policy", "init"),
    "import": ("policy", "import_"),
    "tour": ("policy", "tour"),
    "check": ("policy", "check"),
    "context": ("memory", "context"),
    "confinement": ("confinement", "confinement"),
    "inbox": ("memory", "inbox"),
    "preview": ("serve", "preview"),
    "rules": ("serve", "rules"),
    "decide": ("decide", "decide"),
    "call": ("decide", "call"),
    "operations": ("schema", "operations"),
    "filter": ("schema", "filter"),
    "policy-schema": ("schema", "policy_schema"),
    "permission": ("decide", "permission"),
    "export": ("policy", "export"),
    "selfcheck": ("decide", "selfcheck"),
    "serve": ("serve", "serve"),
    "run": ("confinement", "run"),
    "stop": ("approvals", "stop"),
    "go": ("approvals", "go"),
}
"""Module and function by name."""
GROUPS = {
    "approvals": (
        "Questions to the operator.",
        {"list": ("approvals", "list_questions"), "answer": ("approvals", "answer"), "revoke": ("approvals", "revoke")},
    ),
    "audit": (
        "The audit log.",
        {
            "list": ("approvals", "list_calls"),
            "observed": ("approvals", "observed"),
            "verify": ("approvals", "verify"),
            "export": ("approvals", "export"),
        },
    ),
    "block": (
        "Blocks of memory.",
        {
            "list": ("memory", "list_"),
            "show": ("memory", "show"),
            "create": ("memory", "create"),
            "set": ("memory", "set_"),
            "edit": ("memory", "edit"),
            "archive": ("memory", "archive"),
            "unarchive": ("memory", "unarchive"),
            "history": ("memory", "history"),
            "delete": ("memory", "delete"),
        },
    ),
    "catalog": (
        "MCP servers and their clients.",
        {
            "list": ("catalog", "list_"),
            "import": ("catalog", "import_"),
            "accept": ("catalog", "accept"),
            "places": ("confinement", "places"),
            "client-config": ("catalog", "client_config"),
        },
    ),
    "hook": (
        "The gate in coding agents.",
        {
            "install": ("hook", "install"),
            "uninstall": ("hook", "uninstall"),
            "status": ("hook", "status"),
            "doctor": ("hook", "doctor"),
        },
    ),
    "memory": ("What a workspace remembers.", {"adopt": ("memory", "adopt")}),
    "state": (
        "One state for many gateways, in PostgreSQL.",
        {
            "init": ("state", "init"),
            "migrate": ("state", "move"),
            "status": ("state", "status"),
            "enroll": ("state", "enroll_writer"),
        },
    ),
    "token": (
        "Tokens for clients over HTTP.",
        {"add": ("serve", "add"), "list": ("serve", "list_"), "revoke": ("serve", "revoke")},
    ),
}
"""Subject and commands of a group, by name."""


def complete(variable: str) -> int:
    """Print the possible next words for a shell, which passes the words so far in variables; return the exit code."""
    get_completion_inspect_parameters()  # registers the shells with typer
    table = command_line(COMMANDS.keys() | GROUPS.keys())
    return shell_complete(table, {}, "gatewright", variable, os.environ[variable])


def run(words: list[str]) -> int:
    """Run the command that the words name and return its exit code. Raises the command's errors."""
    logging.lastResort = ErrorLog(logging.WARNING)  # programs that import the engine keep their own handler
    if words[:1] == ["serve"]:
        from gatewright.cli.serve import with_command

        words = with_command(words)
    known = COMMANDS.keys() | GROUPS.keys()
    table = command_line(words[:1] if words and words[0] in known else known)  # loads only the command that runs
    if not gc.isenabled():  # in a process of our own: modules stay loaded, so the collector need not visit them
        gc.freeze()
        gc.enable()
    try:
        result: object = table.main(words, "gatewright", standalone_mode=False)
    except typer.Exit as error:
        return error.exit_code
    except typer.Abort:
        return Exit.INTERRUPTED
    except SystemExit:  # typer exits so when the reader of its help closes the pipe
        return Exit.OK
    except TyperException as error:
        text = error.format_message()
        is_help = text.startswith("Usage: ") and not isinstance(error, UsageProblem)  # a group called without a command
        print_error(text if is_help else f"gatewright: {text}", keep="\n" if is_help else "\t")
        return Exit.USAGE
    return result if isinstance(result, int) else Exit.OK


def _load(place: tuple[str, str]) -> Callable[..., Any]:
    module, name = place
    return getattr(import_module(f"gatewright.cli.{module}"), name)


def command_line(names: Collection[str]) -> TyperGroup:
    """Return these commands and groups as a tree."""
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
            table.command(name, epilog=examples_of(name))(_load(place))
    for name, (about, commands) in GROUPS.items():
        if name in names:
            group = typer.Typer(add_completion=False, no_args_is_help=True, rich_markup_mode=None, help=about)
            for word, place in commands.items():
                group.command(word, epilog=examples_of(f"{name} {word}"))(_load(place))
            table.add_typer(group, name=name)
    table.callback(invoke_without_command=True)(_top)
    return cast("TyperGroup", typer.main.get_command(table))


def _top(
    version: Annotated[bool, typer.Option("--version", is_eager=True, help="print the version")] = False,
) -> None:
    if version:
        print_line(version_of("gatewright"))
        raise typer.Exit(Exit.OK)
