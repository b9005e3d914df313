"""Durations, near misses, linear patterns, atomic writing."""

from __future__ import annotations

import os
import re
import runpy
import stat
import sys
from pathlib import Path

import pytest

import gatewright.base.file as filelock
from gatewright.base.amount import format_duration, parse_duration, plural
from gatewright.base.errors import Place, Problem, Severity, near_miss
from gatewright.base.file import write_atomically
from gatewright.base.late import late_regex
from gatewright.base.pattern import compile_linear
from tests.support.like_windows import locks_of_windows


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        (30, 30.0),
        ("1.5s", 1.5),
        ("2m", 120.0),
        ("100ms", 0.1),
        ({"secs": 1, "nanos": 500_000_000}, 1.5),
        ({"secs": 4}, 4.0),
    ],
)
def test_durations_are_read_in_every_spelling(written: object, seconds: float) -> None:
    assert parse_duration(written) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "written", [True, -1, "2", "fast", {}, {"secs": 1, "more": 2}, {"secs": "1"}, float("nan"), None]
)
def test_other_things_are_no_durations(written: object) -> None:
    with pytest.raises(ValueError, match="a duration is"):
        parse_duration(written)


@pytest.mark.parametrize(
    ("seconds", "text"), [(120.0, "2m"), (1.5, "1.5s"), (3600.0, "1h"), (90.0, "90s"), (0.1, "0.1s")]
)
def test_durations_are_written_shortest(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text
    assert parse_duration(text) == pytest.approx(seconds)


def test_a_near_miss_is_offered_only_when_it_is_near() -> None:
    assert near_miss("apend", ["append", "delete"]) == "append"
    assert near_miss("DELETE", ["append", "delete"]) == "delete"
    assert near_miss("frobnicate", ["append", "delete"]) is None


def test_a_problem_reads_as_one_line_with_its_place() -> None:
    problem = Problem(Severity.ERROR, "unknown-tool", "no tool `fil`", Place("p.toml", 3, 8), "file")
    assert str(problem) == "p.toml:3:8: error: no tool `fil` (did you mean `file`?) [unknown-tool]"


def test_a_pattern_that_could_explode_runs_in_linear_time_or_is_refused() -> None:
    assert compile_linear("(a+)+$").search("a" * 50_000 + "b") is None
    with pytest.raises(ValueError, match="invalid"):
        compile_linear(r"(a)\1")


def test_writing_keeps_the_mode_and_leaves_no_temporary_behind(tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_bytes(b"old")
    path.chmod(0o640)
    write_atomically(path, b"new")
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert os.listdir(tmp_path) == ["policy.toml"]  # noqa: PTH208


def test_writing_through_a_link_keeps_the_link(tmp_path: Path) -> None:
    real = tmp_path / "real.toml"
    real.write_bytes(b"old")
    link = tmp_path / "link.toml"
    link.symlink_to(real)
    write_atomically(link, b"new")
    assert link.is_symlink()
    assert real.read_bytes() == b"new"


def test_regular_expression_that_is_made_late_answers_like_one_made_at_once() -> None:
    late, at_once = late_regex("a(b+)", re.IGNORECASE), re.compile("a(b+)", re.IGNORECASE)
    for _ in range(2):
        assert [match.groups() for match in late.finditer("abb xAB")] == [("bb",), ("B",)]
        assert late.sub("-", "abb xAB") == at_once.sub("-", "abb xAB") == "- x-"
        assert late.fullmatch("ac") is None
    assert (late.pattern, late.flags) == (at_once.pattern, at_once.flags)


def test_late_regular_expression_that_is_wrong_says_so_when_it_is_used() -> None:
    with pytest.raises(re.error):
        late_regex("(").match("a")


def test_numbers_of_things_are_told_in_words() -> None:
    assert [plural(1, "file"), plural(0, "file"), plural(2_000, "file")] == ["1 file", "0 files", "2,000 files"]
    assert plural(2, "entry", "entries") == "2 entries"


@pytest.mark.parametrize("platform", ["linux", "win32"])
def test_a_locked_file_is_held_alone_until_it_is_let_go(
    platform: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.platform", platform)
    monkeypatch.setitem(sys.modules, "msvcrt", locks_of_windows())
    module = runpy.run_path(filelock.__file__)
    lock, unlock = module["lock"], module["unlock"]
    one, other = (os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT) for _ in range(2))
    try:
        lock(one, 0)
        with pytest.raises(BlockingIOError):
            lock(other, 0.002)
        unlock(one)
        lock(other, 0)
    finally:
        os.close(one)
        os.close(other)
