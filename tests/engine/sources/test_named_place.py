"""Where any text of a call may lead: every place with its level, and what is in a folder."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from gatewright.memory.block_store import BlockStore
from gatewright.policy.target import NamedPlace
from gatewright.policy.verdict import Action, Permission
from gatewright.sources import route
from tests.engine.sources.bench import Bench, make_bench, source_of

LEVELS = (("*.key", Permission.NONE), ("shut/", Permission.NONE), ("*.txt", Permission.READ_ONLY))
Row = tuple[str, str | None, str, str, str]


@pytest.fixture
def open_bench(tmp_path: Path) -> Iterator[Bench]:
    """One source ``docs`` on ``base`` with nothing protected; beside it a folder ``work`` of nobody."""
    for path in ("base/sub/deep", "work"):
        (tmp_path / path).mkdir(parents=True)
    for name in ("base/a.md", "base/sub/b.txt", "base/sub/deep/c.md", "work/own.md"):
        (tmp_path / name).write_text("x")
    with BlockStore(tmp_path / "blocks.sqlite") as blocks:
        made = make_bench(tmp_path / "base", blocks)
        made.start(source_of(rules=LEVELS), tmp_path / "base")
        yield made


def rows(
    bench: Bench,
    text: str,
    action: Action = Action.READ,
    *,
    folders: tuple[str, ...] | None = None,
    bases: bool = False,
    contents: bool = False,
) -> list[Row]:
    """Path below the folder of the test, source, path in it, level, what in it has the level."""
    top = str(bench.folder.parent)
    found = bench.manager.places_named(
        text.replace("TOP", top), action, folders=folders and tuple(f"{top}/{one}" for one in folders), bases=bases,
        contents=contents,
    )  # fmt: skip
    assert found is not None
    return [
        (one.absolute.removeprefix(top + "/"), one.source_id, one.relative, level(one), one.inside) for one in found
    ]


def level(place: NamedPlace) -> str:
    if place.level is None:
        return "-"
    return "protected" if place.level.protected else str(place.level.permission)


@pytest.mark.parametrize(
    ("text", "action", "contents", "wanted"),
    [
        ("TOP/base/a.md", Action.READ, True, ("base/a.md", "docs", "a.md", "read_write", "")),
        ("TOP/base/new.md", Action.READ, True, ("base/new.md", "docs", "new.md", "read_write", "")),
        ("TOP/base/new.key", Action.READ, True, ("base/new.key", "docs", "new.key", "none", "")),
        ("TOP/base/shut", Action.READ, True, ("base/shut", "docs", "shut", "none", "")),
        ("TOP/base/a.md/x.txt", Action.READ, True, ("base/a.md/x.txt", "docs", "a.md/x.txt", "read_only", "")),
        ("TOP/base", Action.READ, True, ("base", "docs", ".", "read_write", "")),
        ("TOP/base", Action.OVERWRITE, True, ("base", "docs", ".", "read_only", "sub/b.txt")),
        ("TOP/base", Action.OVERWRITE, False, ("base", "docs", ".", "read_write", "")),
        ("TOP/base/sub", Action.OVERWRITE, True, ("base/sub", "docs", "sub", "read_only", "sub/b.txt")),
        ("TOP/base/sub/deep", Action.OVERWRITE, True, ("base/sub/deep", "docs", "sub/deep", "read_write", "")),
        ("TOP/work/own.md", Action.READ, True, ("work/own.md", None, ".", "-", "")),
        ("TOP/work/new.md", Action.READ, True, ("work/new.md", None, ".", "-", "")),
    ],
)
def test_a_path_has_the_level_of_what_stands_there_or_could(
    open_bench: Bench, text: str, action: Action, contents: bool, wanted: Row
) -> None:
    assert rows(open_bench, text, action, contents=contents) == [wanted]


@pytest.mark.parametrize("action", [Action.READ, Action.OVERWRITE])
def test_a_folder_is_shut_where_something_in_it_is(open_bench: Bench, action: Action) -> None:
    open_bench.write("sub/deep/k.key", "x")
    for path, relative in (("base", "."), ("base/sub", "sub")):
        assert rows(open_bench, f"TOP/{path}", action, contents=True) == [
            (path, "docs", relative, "none", "sub/deep/k.key")
        ]


@pytest.mark.parametrize("default", [Permission.APPEND, Permission.READ_WRITE])
def test_a_folder_with_what_only_grows_and_what_asks_is_as_strict_as_both(
    open_bench: Bench, default: Permission
) -> None:
    open_bench.write("sub/d.md", "x")
    open_bench.update(source_of(rules=(("*.txt", Permission.PARTNER), ("*.md", Permission.APPEND)), default=default))
    (place,) = rows(open_bench, "TOP/base", Action.OVERWRITE, contents=True)
    assert (place[:4], place[4] != "") == (("base", "docs", ".", "read_only"), True)


def test_a_pattern_means_the_folder_that_it_is_in(open_bench: Bench) -> None:
    pattern = ("base/sub/*.txt", "docs", "sub/*.txt", "read_only", "")
    assert rows(open_bench, "TOP/base/sub/*.txt", contents=False) == [pattern]
    assert rows(open_bench, "TOP/base/sub/*.txt", Action.OVERWRITE, contents=True) == [
        ("base/sub", "docs", "sub", "read_only", "sub/b.txt"),
        pattern,
    ]
    open_bench.write("sub/*.txt", "x")
    assert rows(open_bench, "TOP/base/sub/*.txt", Action.OVERWRITE, contents=True) == [pattern]


@pytest.mark.parametrize(
    ("text", "bases", "wanted"),
    [
        ("a.md", False, [("work/a.md", None, "work")]),
        ("a.md", True, [("work/a.md", None, "work"), ("base/a.md", "docs", "base")]),
        ("base/a.md", True, [("work/base/a.md", None, "work"), ("base/a.md", "docs", "")]),
        ("nowhere/a.md", True, [("work/nowhere/a.md", None, "work")]),
    ],
)
def test_a_relative_path_starts_from_every_folder_that_it_may(
    open_bench: Bench, text: str, bases: bool, wanted: list[tuple[str, str | None, str]]
) -> None:
    top = str(open_bench.folder.parent)
    found = open_bench.manager.places_named(text, Action.READ, folders=(f"{top}/work",), bases=bases, contents=True)
    assert [
        (one.absolute.removeprefix(top + "/"), one.source_id, (one.start or "").removeprefix(top).strip("/"))
        for one in found or ()
    ] == wanted
    if bases:  # they count where nothing else is said
        assert found == open_bench.manager.places_named(text, Action.READ, folders=(f"{top}/work",), contents=True)
    assert rows(open_bench, text, bases=bases) == []


def test_a_folder_above_a_base_has_what_is_in_the_base(open_bench: Bench) -> None:
    above = (str(open_bench.folder.parent), None, ".", "-", "")
    within = ("base", "docs", ".", "read_only", "sub/b.txt")
    assert rows(open_bench, "TOP", Action.OVERWRITE, folders=(), contents=True) == [above, within]
    assert rows(open_bench, "TOP", Action.OVERWRITE, folders=(), contents=False) == [above]
    assert rows(open_bench, "TOP", Action.OVERWRITE, contents=True) == [above]
    assert rows(open_bench, ".", Action.OVERWRITE, folders=("",), contents=True)[1:] == [within]


def test_a_folder_that_cannot_be_listed_hides_nothing_of_the_others(
    open_bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_bench.write("deaf/a.md", "x")
    os.link(open_bench.folder / "sub/b.txt", open_bench.folder.parent / "work/twin")
    scandir = os.scandir

    def refuse(path: str) -> object:
        if str(path).endswith("/deaf"):
            raise PermissionError
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    within = ("base", "docs", ".", "read_only", "sub/b.txt")
    assert rows(open_bench, "TOP/base", Action.OVERWRITE, contents=True) == [within]
    second = ("base/sub/b.txt", "docs", "sub/b.txt", "read_only", "")
    assert rows(open_bench, "TOP/work/twin") == [("work/twin", None, ".", "-", ""), second]


def test_a_text_that_no_path_can_be_names_nothing(open_bench: Bench) -> None:
    for text in ("a\0b", "x\0y/b", "base/a\0b", "TOP/base/a\0b", "TOP/base/\ud800", "TOP/base/\udcff"):
        found = rows(open_bench, text, folders=("work",), bases=True, contents=True)
        assert [row for row in found if not row[0].isascii() or "\0" in row[0]] == []


def test_a_second_name_of_a_file_has_the_level_of_each(open_bench: Bench) -> None:
    os.link(open_bench.write("sub/k.key", "x"), open_bench.folder.parent / "work/twin")
    hidden = ("base/sub/k.key", "docs", "sub/k.key", "none", "")
    assert rows(open_bench, "TOP/work/twin") == [("work/twin", None, ".", "-", ""), hidden]
    assert rows(open_bench, "TOP/base/sub/k.key") == [hidden]


@pytest.mark.parametrize(("most", "is_told"), [(7, True), (6, False)])
def test_a_folder_too_large_to_look_through_is_as_strict_as_it_could_be(
    open_bench: Bench, monkeypatch: pytest.MonkeyPatch, most: int, is_told: bool
) -> None:
    """There are seven entries in the base."""
    os.link(open_bench.folder / "a.md", open_bench.folder.parent / "work/twin")
    for name in ("m.md", "n.md"):
        open_bench.write(f"sub/{name}", "x")
    monkeypatch.setattr(route, "MAX_ENTRIES", most)
    open_bench.update(source_of(rules=LEVELS[2:]))
    where = "sub/b.txt" if is_told else ""
    assert rows(open_bench, "TOP/base", Action.OVERWRITE, contents=True) == [("base", "docs", ".", "read_only", where)]
    open_bench.update(source_of(rules=LEVELS))
    shut = ("read_only", where) if is_told else ("none", "")
    assert rows(open_bench, "TOP/base", Action.OVERWRITE, contents=True) == [("base", "docs", ".", *shut)]
    twins = rows(open_bench, "TOP/work/twin")
    assert twins[0] == ("work/twin", None, ".", "-", "")
    assert ("none" in {row[3] for row in twins}) is not is_told


def test_what_is_protected_is_in_no_source_under_any_name(bench: Bench) -> None:
    outside = bench.folder.parent / "twin.toml"
    os.link(bench.folder / "policy.toml", outside)
    for path in ("base/policy.toml", "base/.gatewright/audit", "base/.gatewright/new", "twin.toml"):
        assert rows(bench, f"TOP/{path}", contents=True) == [(path, None, ".", "protected", "")]
    outside.unlink()
    os.link(bench.folder / "policy.toml", bench.write("sub/x", "").with_name("y"))
    assert rows(bench, "TOP/base/sub", contents=True) == [("base/sub", "docs", "sub", "protected", "sub/y")]
    assert rows(bench, "/proc/self/cwd", contents=True)[0][3] == "protected"
    assert rows(bench, "/proc/self/fd/*", contents=True)[-1][3] == "protected"


def test_a_base_that_is_not_there_keeps_its_levels_and_another_in_its_place_has_none(open_bench: Bench) -> None:
    assert rows(open_bench, "TOP/base/x.txt")[0][3] == "read_only"
    away = open_bench.folder.rename(open_bench.folder.with_name("away"))
    assert rows(open_bench, "TOP/base/x.txt")[0][3] == "read_only"
    assert rows(open_bench, "TOP/base/shut")[0][3] == "none", "it could be the folder that is shut"
    open_bench.folder.mkdir()
    assert rows(open_bench, "TOP/base/x.txt")[0][3] == "none"
    shutil.rmtree(open_bench.folder)
    away.rename(open_bench.folder)
    assert rows(open_bench, "TOP/base/x.txt")[0][3] == "read_only"


def test_the_innermost_source_holds_a_path_and_the_strictest_level_holds_for_it(open_bench: Bench) -> None:
    open_bench.start(source_of("inner"), open_bench.folder / "sub")
    assert rows(open_bench, "TOP/base/sub/b.txt") == [("base/sub/b.txt", "inner", "b.txt", "read_only", "")]
    assert rows(open_bench, "TOP/base/a.md") == [("base/a.md", "docs", "a.md", "read_write", "")]
