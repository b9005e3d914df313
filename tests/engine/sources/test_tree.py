"""Folders as wholes: what is found below one, and what goes with one."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import pytest

from gatewright.base.errors import ToolFailure
from gatewright.base.jsonvalue import JsonValue
from gatewright.policy.target import LevelDecision
from gatewright.policy.verdict import Action, Permission
from gatewright.sources.tree import Doomed, Walk, plan_removal, remove_tree
from tests.engine.sources.bench import Bench, source_of


def paths(rows: list[JsonValue]) -> list[JsonValue]:
    return [row.get("path", row.get("kind")) for row in rows if isinstance(row, dict)]


@pytest.fixture
def tree(bench: Bench, tmp_path: Path) -> Bench:
    for name in ("b.md", "a/x.md", "a/y.txt", "a/deep/z.md", "c/k.key", "shut/in.md"):
        bench.write(name, "text")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/secret.md").write_text("TOP SECRET")
    (bench.folder / "way").symlink_to(tmp_path / "outside")
    (bench.folder / "a/link.md").symlink_to("x.md")
    os.mkfifo(bench.folder / "a/pipe.md")
    rules = (("*.key", Permission.NONE), ("shut/", Permission.NONE), ("*.txt", Permission.READ_ONLY))
    of_folders = (("z.md/", Permission.NONE),)
    bench.update(source_of(rules=(*rules, *of_folders), default=Permission.ADMIN))
    return bench


async def test_everything_that_may_be_read_is_found_in_order(tree: Bench) -> None:
    await tree.manager.load(tree.at("a/x.md"))
    rows = await tree.manager.list_tree(tree.at("."))
    folder = {"kind": "folder", "permission": "admin", "loaded": False}
    file = {"kind": "file", "size": 4, "permission": "admin", "loaded": False}
    assert rows == [
        {"path": "a"} | folder,
        {"path": "a/deep"} | folder,
        {"path": "a/deep/z.md"} | file,
        {"path": "a/x.md"} | file | {"loaded": True},
        {"path": "a/y.txt"} | file | {"permission": "read_only"},
        {"path": "b.md"} | file,
        {"path": "c"} | folder,
    ]
    assert await tree.manager.list_tree(tree.at("a"), recursive=False) == [rows[1], *rows[3:5]]


async def test_a_pattern_finds_files_below_the_folder(tree: Bench) -> None:
    assert paths(await tree.manager.list_tree(tree.at("."), "*.md")) == ["a/deep/z.md", "a/x.md", "b.md"]
    assert paths(await tree.manager.list_tree(tree.at("."), "/a/*.md")) == ["a/x.md"]
    assert paths(await tree.manager.list_tree(tree.at("a"), "/*.md")) == ["a/x.md"]
    assert paths(await tree.manager.list_tree(tree.at("."), "a/**")) == ["a/deep/z.md", "a/x.md", "a/y.txt"]
    for pattern in ("!x", "", "a["):
        with pytest.raises(ToolFailure) as caught:
            await tree.manager.list_tree(tree.at("."), pattern)
        assert caught.value.code == "bad-pattern"


async def test_what_was_left_out_is_told(tree: Bench) -> None:
    rows = await tree.manager.list_tree(tree.at("."), "*.md", 2)
    assert paths(rows) == ["a/deep/z.md", "a/x.md", "more"]
    assert rows[-1] == {"kind": "more", "why": "more than 2 entries"}
    with pytest.raises(ToolFailure, match="not a folder"):
        await tree.manager.list_tree(tree.at("b.md"))


def test_the_walk_ends_in_time(tree: Bench) -> None:
    source = tree.manager.get("docs")
    assert source is not None
    for number in range(600):
        (tree.folder / f"n{number}").touch()
    times = iter(range(100))
    walk = Walk(source, tree.manager.overlay("docs").level_of, clock=lambda: next(times) * 10.0)
    found = sum(1 for _ in walk.below(".", enter=lambda _: True))
    assert walk.stopped is not None
    assert found < 300


def test_what_goes_while_a_folder_is_looked_at_is_passed_over(tree: Bench) -> None:
    source, level_of = tree.manager.get("docs"), tree.manager.overlay("docs").level_of
    assert source is not None
    met: list[str] = []

    def gone_but_one(relative: str, is_folder: bool, identities: Sequence[tuple[int, int]]) -> LevelDecision:
        for path in () if met else (tree.folder / "a").glob("*.*"):
            if path.name != relative.rpartition("/")[2]:
                path.unlink()
        met.append(relative)
        return level_of(relative, is_folder, identities)

    found = [one.relative for one in Walk(source, gone_but_one).below("a", enter=lambda _: False)]
    assert found == sorted({*met, "a/deep"})
    assert len(found) < 4


def test_folders_are_looked_into_two_hundred_deep(tree: Bench) -> None:
    source, level_of = tree.manager.get("docs"), tree.manager.overlay("docs").level_of
    assert source is not None
    tree.write("d/" * 200 + "x", "x")
    walk = Walk(source, level_of)
    found = list(walk.below("d", enter=lambda _: True))
    assert (len(found), found[-1].relative, walk.stopped) == (200, "d/" * 200 + "x", None)
    walk = Walk(source, level_of)
    found = [one for one in walk.below(".", enter=lambda _: True) if one.relative.startswith("d")]
    assert (len(found), walk.stopped) == (200, "folders more than 200 deep")


# deleting


@pytest.mark.parametrize("name", ["shut/in.md", os.fsdecode(b"caf\xe9.md")])
async def test_a_folder_with_something_that_no_call_may_name_stays(tree: Bench, name: str) -> None:
    tree.write(f"d/{name}", "x")
    with pytest.raises(ToolFailure) as told:
        tree.manager.assess_delete(tree.at("d"), recursive=True)
    words = "the folder holds something that may not be removed"
    assert (told.value.code, str(told.value)) == ("not-permitted", words)
    with pytest.raises(ToolFailure, match=words):
        await tree.manager.delete(tree.at("d"), recursive=True, asked=True, approved=True)
    assert (tree.folder / "d" / name).exists()


async def test_a_folder_goes_only_when_that_is_asked_for(tree: Bench) -> None:
    with pytest.raises(ToolFailure) as caught:
        await tree.manager.delete(tree.at("c"))
    assert caught.value.code == "is-a-folder"
    for relative in (".", "."):
        with pytest.raises(ToolFailure, match="top folder"):
            await tree.manager.delete(tree.at(relative), recursive=True)
    assert (tree.folder / "c/k.key").exists()


async def test_a_folder_goes_with_its_files_and_blocks(tree: Bench) -> None:
    at = tree.at("a/deep")
    await tree.manager.load(tree.at("a/deep/z.md"))
    assessed = tree.manager.assess_delete(at, recursive=True)
    assert (assessed.action, assessed.ask, assessed.diff) == (Action.DELETE, None, "-a/deep/z.md")
    assert await tree.manager.delete(at, recursive=True) == {"files": 1, "folders": 1, "blocks": 1}
    assert not (tree.folder / "a/deep").exists()
    assert tree.blocks.labels() == ()


async def test_one_file_that_may_not_be_deleted_keeps_the_whole_folder(tree: Bench) -> None:
    for folder in ("a", "c"):
        before = sorted(path.name for path in (tree.folder / folder).rglob("*"))
        with pytest.raises(ToolFailure, match="may not be removed") as caught:
            await tree.manager.delete(tree.at(folder), recursive=True)
        assert "key" not in str(caught.value)
        with pytest.raises(ToolFailure):
            tree.manager.assess_delete(tree.at(folder), recursive=True)
        assert sorted(path.name for path in (tree.folder / folder).rglob("*")) == before


async def test_files_that_ask_go_only_when_somebody_agreed(tree: Bench) -> None:
    tree.update(source_of(rules=(("*.md", Permission.READ_WRITE),), default=Permission.ADMIN))
    at = tree.at("a/deep")
    await tree.manager.load(tree.at("a/deep/z.md"))
    assert tree.manager.assess_delete(at, recursive=True).ask == "1 of 1 files go only when somebody agrees"
    with pytest.raises(ToolFailure) as caught:
        await tree.manager.delete(at, recursive=True)
    assert caught.value.code == "not-granted"
    assert (tree.folder / "a/deep/z.md").exists()
    await tree.manager.delete(at, recursive=True, asked=True)
    assert not (tree.folder / "a/deep").exists()


async def test_a_protected_file_or_a_link_keeps_its_folder(bench: Bench, tmp_path: Path) -> None:
    bench.update(source_of(default=Permission.ADMIN))
    bench.write("sub/.x/a.md", "x")
    (tmp_path / "outside").mkdir()
    (bench.folder / "sub/.x/way").symlink_to(tmp_path / "outside")
    for path in ("sub", "sub/.x", ".gatewright"):
        with pytest.raises(ToolFailure):
            await bench.manager.delete(bench.place(path), recursive=True)
    (bench.folder / "sub/.x/way").unlink()
    os.link(bench.folder / "policy.toml", bench.folder / "sub/copy.md")
    with pytest.raises(ToolFailure):
        await bench.manager.delete(bench.place("sub"), recursive=True)
    assert (bench.folder / "sub/.x/a.md").exists()
    assert (bench.folder / "policy.toml").read_text() == "secret"


async def test_a_block_whose_file_may_not_be_deleted_keeps_its_folder(tree: Bench) -> None:
    tree.write("d/a.md", "x")
    tree.write("d/b.txt", "x")
    await tree.manager.load(tree.at("d/b.txt"))
    (tree.folder / "d/b.txt").unlink()
    with pytest.raises(ToolFailure, match="may not be removed"):
        await tree.manager.delete(tree.at("d"), recursive=True)
    assert (tree.folder / "d/a.md").exists()


async def test_a_folder_too_deep_to_look_into_hides_nothing_else(tree: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gatewright.sources.tree._MAX_DEPTH", 2)
    rows = await tree.manager.list_tree(tree.at("."), "*.md")
    assert paths(rows) == ["a/x.md", "b.md", "more"]
    assert "deep" in str(rows[-1])
    tree.write("n/m/o/p.md", "x")
    with pytest.raises(ToolFailure, match="too much"):
        await tree.manager.delete(tree.at("n"), recursive=True, asked=True)


async def test_names_that_no_call_could_hold_are_not_listed(bench: Bench) -> None:
    for name in ("plain.md", "~home.md", "c:x.md", "two\nlines.md", "back\\slash.md", "tab\t/inner.md"):
        bench.write(name, "x")
    (bench.folder / os.fsdecode(b"caf\xe9.md")).write_text("x")
    listed = await bench.manager.list_folder(bench.at("."))
    assert [row["name"] for row in listed if isinstance(row, dict) and row["kind"] == "file"] == [
        "c:x.md",
        "plain.md",
        "~home.md",
    ]
    assert paths(await bench.manager.list_tree(bench.at("."), "*.md")) == ["c:x.md", "plain.md", "~home.md"]
    assert "tab\t" not in str(await bench.manager.list_tree(bench.at(".")))


async def test_what_stops_a_removal_on_the_way_is_told_with_what_is_gone(tree: Bench) -> None:
    source, level_of = tree.manager.get("docs"), tree.manager.overlay("docs").level_of
    assert source is not None
    tree.write("d/a.md", "x")
    tree.write("d/b.md", "x")
    going = plan_removal(source, "d", level_of)
    assert going == Doomed(("d/a.md", "d/b.md"), ("d",), (), 0)
    (tree.folder / "d/a.md").unlink()
    late = tree.write("d/new.md", "x")
    with pytest.raises(ToolFailure) as told:
        remove_tree(source, going, level_of)
    assert (told.value.code, str(told.value)) == ("not-empty", "the folder is not empty; 1 of 2 files are gone")
    late.unlink()
    os.link(tree.folder / "policy.toml", tree.write("d/b.md", "x").with_name("a.md"))
    with pytest.raises(ToolFailure, match="may not be removed; 0 of 2 files are gone") as told:
        remove_tree(source, going, level_of)
    assert told.value.code == "not-permitted"
    (tree.folder / "d/a.md").unlink()
    assert remove_tree(source, going, level_of) == {"files": 1, "folders": 1, "blocks": 0}


def test_a_person_is_shown_fifty_files_and_told_of_the_rest() -> None:
    files = tuple(f"f{number}" for number in range(1_051))
    rows = [f"-{path}" for path in files[:50]]
    assert Doomed(files[:50], (), (), 0).summary() == "\n".join(rows)
    assert Doomed(files[:51], (), (), 0).summary() == "\n".join([*rows, "[and 1 more]"])
    assert Doomed(files, (), (), 0).summary() == "\n".join([*rows, "[and 1,001 more]"])


@pytest.mark.parametrize(("name", "most"), [("_MAX_STATES", 2), ("_MAX_SECONDS", -1.0)])
async def test_states_below_a_folder_are_bounded_in_number_and_time(
    tree: Bench, monkeypatch: pytest.MonkeyPatch, name: str, most: float
) -> None:
    for path in ("a/x.md", "a/deep/z.md", "b.md"):
        await tree.manager.load(tree.at(path))
    kept = [f"{path}.md" for path in ("a/deep/z", "a/x", "b")]
    assert paths(cast("list[JsonValue]", await tree.manager.status(tree.at(".")))) == kept
    assert paths(cast("list[JsonValue]", await tree.manager.status(tree.at("a")))) == kept[:2]
    monkeypatch.setattr(f"gatewright.sources.tree.{name}", most)
    rows = cast("list[JsonValue]", await tree.manager.status(tree.at(".")))
    assert paths(rows) == [*kept[: max(int(most), 0)], "more"]
    assert rows[-1] == {"kind": "more", "why": "there is more than can be looked at in one go"}
    if most > 0:
        assert paths(cast("list[JsonValue]", await tree.manager.status(tree.at("a")))) == kept[:2]


def test_a_folder_with_as_much_as_may_go_goes_and_with_more_stays(tree: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(3):
        tree.write(f"d/{number}.md", "x")
    for most, code in ((3, ""), (2, "too-large")):
        monkeypatch.setattr("gatewright.sources.tree.MAX_REMOVED", most)
        told = ""
        try:
            tree.manager.assess_delete(tree.at("d"), recursive=True)
        except ToolFailure as failure:
            told = failure.code
        assert told == code
