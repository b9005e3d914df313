"""Temporary files of a killed save: shown to nobody, cleared by the next save once they are stale."""

import os
import re
import time
from pathlib import Path

import pytest

from gatewright.policy.verdict import Action
from gatewright.sources.filetext import STALE_S, is_leftover, temporary_name
from tests.engine.sources.bench import Bench

LEFT = ".a.md.0123456789ab.tmp"


def left(bench: Bench, name: str = LEFT, age_s: float = STALE_S + 60) -> Path:
    path = bench.write(name, "half of a te")
    then = time.time() - age_s
    os.utime(path, (then, then))
    return path


def test_name_that_is_made_for_a_long_one_is_recognised() -> None:
    assert is_leftover(temporary_name("a" * 300))
    assert re.fullmatch(r"\.a{60}\.[0-9a-f]{12}\.tmp", temporary_name("a" * 61))


@pytest.mark.parametrize("name", [LEFT, ".x.tmp.ffffffffffff.tmp", "sub/" + LEFT])
def test_name_of_a_temporary_file_is_recognised(name: str) -> None:
    assert is_leftover(name)


@pytest.mark.parametrize(
    "name", ["a.md", "a.tmp", ".a.tmp", ".a.md.0123456789AB.tmp", "a.md.0123456789ab.tmp", LEFT + "/x"]
)
def test_other_names_are_not(name: str) -> None:
    assert not is_leftover(name)


async def test_no_listing_shows_one(bench: Bench) -> None:
    bench.write("sub/a.md", "one\n")
    overlay = bench.manager.overlay("docs")
    entries = overlay.scan().entries
    left(bench)
    left(bench, "sub/.b.md.0123456789ab.tmp")

    listed = [*await bench.manager.list_folder(bench.at(".")), *await bench.manager.list_tree(bench.at("."))]

    assert "tmp" not in str(listed)
    assert overlay.scan().entries == entries


async def test_next_save_in_the_folder_clears_what_is_stale_and_nothing_else(bench: Bench) -> None:
    bench.write("a.md", "one\n")
    stale, fresh = left(bench), left(bench, ".a.md.aaaaaaaaaaaa.tmp", age_s=1)
    other, elsewhere = left(bench, ".notes.tmp"), left(bench, "sub/" + LEFT)
    if os.geteuid() == 0:
        others = left(bench, ".d.md.0123456789ab.tmp")
        os.chown(others, 1234, -1)
        os.utime(others, (1, 1))
    linked = bench.folder / ".b.md.0123456789ab.tmp"
    os.link(other, linked)
    folder = bench.folder / ".c.md.0123456789ab.tmp"
    folder.mkdir()
    at = bench.at("a.md")
    await bench.manager.append(at, "two\n")

    await bench.manager.save(at, Action.OVERWRITE)

    assert not stale.exists()
    assert all(path.exists() for path in (fresh, other, elsewhere, linked, folder))
    assert os.geteuid() != 0 or (bench.folder / ".d.md.0123456789ab.tmp").exists(), "that of somebody else"
    assert (bench.folder / "a.md").read_text() == "one\ntwo\n"


async def test_creating_a_file_clears_them_too(bench: Bench) -> None:
    stale = left(bench)

    await bench.manager.create(bench.at("new.md"), "x")

    assert not stale.exists()


async def test_folder_goes_with_what_was_left_in_it(bench: Bench) -> None:
    bench.write("sub/a.md", "one\n")
    left(bench, "sub/" + LEFT, age_s=1)

    await bench.manager.delete(bench.at("sub"), recursive=True, asked=True)

    assert not (bench.folder / "sub").exists()
