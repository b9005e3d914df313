"""Every exit code that is documented, by calls that end with it; what is printed where."""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from gatewright.cli.output import Exit
from tests.engine.cli.test_edges import MAIN

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.engine.cli.conftest import Runner

ARCHIVIST = ("demo", "--agent", "archivist", "--tool", "file", "--args")
OPERATOR = ("demo", "--agent", "operator", "--tool", "file", "--args")
READ = '{"op": "read", "path": "notes/species.md"}'
DELETE = '{"op": "delete", "path": "drafts/outline.md"}'
CALLS: list[tuple[Exit, str, tuple[str, ...]]] = [
    (Exit.OK, "", ("check", "demo")),
    (Exit.OK, "", ("decide", *ARCHIVIST, READ)),
    (Exit.OK, "", ("call", *ARCHIVIST, READ)),
    (Exit.OK, "", ("selfcheck", "demo")),
    (Exit.OK, "", ("audit", "verify", "demo")),
    (Exit.PROBLEMS, "", ("check", "broken.toml")),
    (Exit.PROBLEMS, "did you mean `file`?", ("preview", "broken.toml", "--agent", "a")),
    (Exit.PROBLEMS, "no operations", ("filter", "schema.json", "--allow", "a")),
    (Exit.PROBLEMS, "", ("audit", "verify", "spoiled")),
    (Exit.USAGE, "no command and no workspace `nothere`\n", ("nothere",)),
    (Exit.USAGE, "no command and no workspace `chek` (did you mean `check`?)", ("chek",)),
    (Exit.USAGE, "No such option: --jsn", ("check", "demo", "--jsn")),
    (Exit.USAGE, "--agent", ("preview", "demo")),
    (Exit.USAGE, "\n\nCommands:\n  list ", ("block",)),
    (Exit.USAGE, "does not exist", ("check", "missing-folder")),
    (Exit.USAGE, "`nothere` does not exist", ("gui", "nothere")),
    (Exit.USAGE, "no `policy.toml` in", ("gui", "demo/workspace")),
    (Exit.USAGE, "not UTF-8", ("check", "bytes.toml")),
    (Exit.USAGE, "cannot read", ("filter", "missing.json", "--allow", "a")),
    (Exit.USAGE, "did you mean `archivist`", ("decide", "demo", "--agent", "archivst", "--tool", "file")),
    (Exit.USAGE, "did you mean `archive`", ("permission", "demo", "--source", "archiv", "a")),
    (Exit.USAGE, "no format `yaml`", ("preview", "demo", "--agent", "archivist", "--format", "yaml")),
    (Exit.USAGE, "no catalog `git`", ("catalog", "accept", "demo", "git")),
    (Exit.USAGE, "exists already", ("init", "demo", "--template", "demo")),
    (Exit.ASK_UNANSWERED, "", ("decide", *OPERATOR, DELETE)),
    (Exit.ASK_UNANSWERED, "", ("call", *OPERATOR, DELETE, "--approve", "never")),
    (Exit.DENIED, "", ("decide", *ARCHIVIST, DELETE)),
    (Exit.DENIED, "", ("call", *ARCHIVIST, DELETE)),
    (Exit.DENIED, "", ("decide", *ARCHIVIST, "{not json")),
    (Exit.DENIED, "", ("decide", "demo", "--agent", "archivist", "--tool", "fille")),
    (Exit.DENIED, "", ("decide", "demo", "--agent", "newcomer", "--tool", "file", "--args", READ)),
    (Exit.TOOL_FAILED, "", ("call", *ARCHIVIST, '{"op": "read", "path": "notes/none.md"}')),
]
"""By exit code: what stands on stderr, and the words; an interrupted command has a test of its own."""


@pytest.fixture
def folder(tmp_path: Path, run: Runner, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    assert run("init", "demo", "--template", "demo").status == 0
    (tmp_path / "spoiled").mkdir()
    (tmp_path / "spoiled/policy.toml").write_text("gatewright = 1\n[agents.a]\ntools = []\n", "utf-8")
    assert run("call", "spoiled", "--agent", "a", "--tool", "file").status == Exit.DENIED
    with closing(sqlite3.connect("spoiled/.gatewright/audit.sqlite3")) as log:
        log.execute("UPDATE rows SET tool = 'block' WHERE seq = 3")
        log.commit()
    (tmp_path / "broken.toml").write_text('gatewright = 1\n[agents.a]\ntools = ["fil"]\n', "utf-8")
    (tmp_path / "bytes.toml").write_bytes(b"\xff\n")
    (tmp_path / "schema.json").write_text('{"type": "object", "properties": {"n": {"type": "integer"}}}', "utf-8")
    return tmp_path


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Processes that are started hear SIGINT, also where this one was started in the background, deaf to it."""
    kept = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, kept)


def test_calls_end_with_the_documented_codes_and_print_json_alone(folder: Path, run: Runner) -> None:
    assert {status for status, _, _ in CALLS} | {Exit.INTERRUPTED} == set(Exit)
    for status, told, words in CALLS:
        ran = run(*words) if status is Exit.USAGE else run(*words, "--json")

        assert (ran.status, words) == (status, words)
        assert told in ran.err
        if status is Exit.USAGE:
            assert not ran.out
        else:
            json.loads(ran.out)


def test_an_interrupted_question_ends_with_130_and_does_nothing(folder: Path, interruptible: None) -> None:
    words = [*MAIN, "call", *OPERATOR, DELETE, "--approve", "prompt"]
    with subprocess.Popen(
        words, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as asked:
        assert asked.stderr is not None
        said = b""
        while not said.endswith(b"[y/N] ") and (byte := asked.stderr.read(1)):
            said += byte
        asked.send_signal(signal.SIGINT)
        out, err = asked.communicate()

    assert (asked.returncode, out, err) == (130, b"", b"")
    assert (folder / "demo/workspace/drafts/outline.md").exists()
