"""The examples that the help of each command ends with."""

import io
import shlex
from pathlib import Path
from typing import cast

import psycopg
import pytest
from typer.core import TyperGroup

from gatewright.cli.output import Exit
from gatewright.cli.table import COMMANDS, EXAMPLES, GROUPS, command_line, line_of
from tests.engine.cli.conftest import Runner

NAMES = (*COMMANDS, *(f"{group} {word}" for group, (_, words) in GROUPS.items() for word in words))
ENDLESS = ("gui", "tour", "serve", "approvals list work --watch")
"""They open a window or wait; the tutorials and tests of their own run them."""
ELSEWHERE = ("uvx", "accept work git", "0123456789abcdef", "example.org")
"""What is not here: programs that are to be installed, ids, a server."""
FILES = {
    ".claude/settings.json": '{"permissions": {"allow": ["Read(src/**)"]}}',
    "agent.toml": 'name = "helper"\n[[tool_rules]]\ntool_name = "file"\nrule_type = { AllowedOperations = ["read"] }\n',
    "schema.json": '{"type": "object", "properties": {"op": {"enum": ["a", "b"]}}}',
    "claude_desktop_config.json": '{"mcpServers": {"git": {"command": "git-server"}}}',
    "plan.md": "Count the gulls.\n",
    "api.yaml": "openapi: 3.0.3\ninfo: {title: Shop, version: '1'}\nservers: [{url: 'https://shop.example.com'}]\npaths:\n"
    "  /orders: {get: {operationId: list, responses: {'200': {description: All}}}}\n",
}


def test_the_help_of_every_command_ends_with_examples_and_the_help_of_all_with_the_exit_codes(run: Runner) -> None:
    assert tuple(EXAMPLES) == NAMES
    table = command_line(COMMANDS.keys() | GROUPS.keys())
    for name in NAMES:
        group, _, word = name.rpartition(" ")
        about = cast("TyperGroup", table.commands[group] if group else table).commands[word].epilog or ""
        assert all(line_of(example) in about for example in EXAMPLES[name]), name
    assert run("audit", "list", "--help").out.endswith(f"  {line_of(EXAMPLES['audit list'][-1])}\n")
    codes = " ".join(run("--help").out.split()).partition("Exit status: ")[2]
    assert all(f"{int(code)} " in codes for code in Exit)


def test_the_examples_run_one_after_the_other(
    tmp_path: Path, run: Runner, monkeypatch: pytest.MonkeyPatch, database: str
) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("CREATE ROLE gateway1 LOGIN; CREATE ROLE ada LOGIN")
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, "utf-8")
    monkeypatch.chdir(tmp_path)
    wrong: list[object] = []
    for example in (one for examples in EXAMPLES.values() for one in examples if not one.startswith(ENDLESS)):
        given, _, line = line_of(example).rpartition("gatewright ")
        words = [database if word.startswith("postgresql:") else word for word in shlex.split(line)]
        text = '{"op": "list"}' if given.startswith("echo") else "notes/species.md\n"
        if "<" in words:
            text = FILES[words[-1]]
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))

        ran = run(*words[: -2 if {"<", ">"} & set(words) else None])

        if ran.status != (Exit.USAGE if any(mark in example for mark in ELSEWHERE) else Exit.OK):
            wrong.append((example, ran))
    assert not wrong
