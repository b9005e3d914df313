"""What a script runs into: pipes that close, disks that are full, bytes that are no text, sources that overlap."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.engine.cli.conftest import Runner
from tests.support.checkout import ROOT

OVERLAPPING = """\
gatewright = 1

[agents.a]
tools = ["file"]
sources = ["all"]

[[sources]]
id = "all"
type = "file"
base_path = "."
default_permission = "admin"

[[sources]]
id = "docs"
type = "file"
base_path = "docs"
default_permission = "admin"

[[sources.permission_rules]]
pattern = "secret/"
permission = "none"
"""
NO_SOURCE = """\
[[tool_rules]]
tool_name = "file"
rule_type = { AllowedOperations = ["read", "append"] }
priority = 0
"""
MAIN = (sys.executable, "-c", "from gatewright.cli.main import script; script()")
READ = '{"op": "read", "path": "docs/secret/key.txt"}'


@pytest.fixture
def overlapping(tmp_path: Path) -> Path:
    (tmp_path / "docs/secret").mkdir(parents=True)
    (tmp_path / "docs/secret/key.txt").write_text("x\n", encoding="utf-8")
    (tmp_path / "policy.toml").write_text(OVERLAPPING, encoding="utf-8")
    return tmp_path


def run(*words: str | Path, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([*MAIN, *map(str, words)], input=given, capture_output=True, check=False)


def decide(folder: Path, arguments: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return run("decide", folder, "--agent", "a", "--tool", "file", "--args", arguments, "--json", given=given)


def test_the_rule_of_an_overlapping_source_is_named_with_its_own_line(overlapping: Path) -> None:
    ran = decide(overlapping, READ)
    answer = json.loads(ran.stdout)
    assert (ran.returncode, answer["stage"], answer["code"]) == (4, "permission", "level-none")
    assert answer["rule"]["id"] == "sources.docs.permission_rules[0]"
    assert OVERLAPPING.splitlines()[answer["rule"]["line"] - 1] == "[[sources.permission_rules]]"
    assert "of `docs`, which overlaps it" in answer["reason"]
    assert "docs" not in answer["model_message"]


def test_arguments_that_are_no_utf_8_are_denied_by_the_gate(overlapping: Path) -> None:
    ran = decide(overlapping, "-", given=b'{"op": "\xff"}')
    assert ran.returncode == 4
    assert json.loads(ran.stdout)["stage"] == "parse"


def test_ten_megabytes_of_arguments_are_denied_at_parse(overlapping: Path) -> None:
    ran = decide(overlapping, "-", given=b'{"op": "' + b"x" * 10_000_000 + b'"}')
    assert ran.returncode == 4
    assert (json.loads(ran.stdout)["stage"], json.loads(ran.stdout)["code"]) == ("parse", "too-large")


def test_a_byte_order_mark_before_the_arguments_is_no_fault(overlapping: Path) -> None:
    assert decide(overlapping, "-", given=b'\xef\xbb\xbf{"op": "list", "path": "docs"}').returncode == 0


@pytest.mark.parametrize(
    ("words", "status"),
    [(("decide", ".", "--agent", "a", "--tool", "file", "--args", READ), 4), (("block", "--help"), 0)],
)
def test_the_exit_code_stays_although_the_reader_has_gone(
    overlapping: Path, words: tuple[str, ...], status: int
) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        ran = subprocess.run([*MAIN, *words], cwd=overlapping, stdout=writing, stderr=subprocess.PIPE, check=False)
    finally:
        os.close(writing)
    assert (ran.returncode, ran.stderr) == (status, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_an_output_that_cannot_be_written_is_said_without_a_traceback(overlapping: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        words = [*MAIN, "check", str(overlapping)]
        ran = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, check=False)
    assert ran.returncode == 2
    assert b"No space left on device" in ran.stderr
    assert b"Traceback" not in ran.stderr


def test_the_version_is_printed() -> None:
    ran = run("--version")
    assert ran.returncode == 0
    assert ran.stdout.strip()


def test_a_call_of_file_without_a_source_says_to_the_operator_why_there_is_none(tmp_path: Path, run: Runner) -> None:
    (tmp_path / "limited.toml").write_text(NO_SOURCE, encoding="utf-8")
    words = ("--agent", "limited", "--args", "{}", "--json")
    hidden = run("decide", tmp_path / "limited.toml", "--tool", "file", *words).json
    unknown = run("decide", tmp_path / "limited.toml", "--tool", "frobnicate", *words).json
    assert (hidden["stage"], hidden["code"]) == ("lookup", "not-available")
    assert "source" in hidden["reason"]
    assert hidden["model_message"] == unknown["model_message"]
    assert unknown["code"] == "unknown-tool"


@pytest.mark.parametrize(
    ("roots", "errors"),
    [
        ("shared = 'x', tmp = 'x/y'", 1),
        ("shared = 'x', tmp = './x/', vault = 'x'", 2),
        ("shared = 'x', tmp = 'linked'", 1),
        ("shared = '.', tmp = 'linked', vault = 'x'", 2),
        ("shared = 'x', tmp = 'y'", 0),
    ],
)
def test_roots_that_overlap_are_told_once_each_by_their_text_or_on_disk(
    tmp_path: Path, run: Runner, roots: str, errors: int
) -> None:
    for name in ("x/y", "y"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "linked").symlink_to(tmp_path / "x")
    (tmp_path / "policy.toml").write_text(f"gatewright = 1\n[workspace]\nroots = {{ {roots} }}\n", encoding="utf-8")
    told = [problem["subject"] for problem in run("check", tmp_path, "--json").json["problems"]]
    assert len(told) == errors
    assert len({json.dumps(subject) for subject in told}) == errors


def test_counts_are_written_as_people_write_them(overlapping: Path, run: Runner) -> None:
    assert "fine, 1 agent, 0 warnings" in run("check", overlapping).out


@pytest.mark.skipif(sys.platform == "win32", reason="the real one is at hand")
def test_on_a_system_like_windows_policies_are_decided_and_recorded_and_files_are_refused_plainly(
    tmp_path: Path,
) -> None:
    note, save = '{"op": "read", "path": "notes/species.md"}', '{"content": "Herons nest late."}'
    agent = ("demo", "--agent", "archivist")
    lines = (
        ("init", "demo", "--template", "demo"),
        ("check", "demo"),
        ("call", *agent, "--tool", "file", "--args", note),
        ("call", *agent, "--tool", "memory_save", "--args", save),
        ("audit", "verify", "demo"),
    )
    words = (sys.executable, "-m", "tests.support.like_windows", json.dumps(lines))
    place = {"PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    ran = subprocess.run(words, cwd=tmp_path, env=os.environ | place, capture_output=True, check=False)
    told = json.loads(ran.stdout)

    assert [status for status, _, _ in told] == [0, 0, 4, 0, 0], told
    assert "files cannot be used on this system, which cannot hold a folder open" in told[2][1]
    assert "0 problems" in told[4][1]
    assert not told[4][1].startswith("0 rows")
