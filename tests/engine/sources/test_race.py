"""Another party swaps names while we work: nothing outside is read or written."""

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from gatewright.base.errors import ToolFailure
from gatewright.policy.verdict import Action, Permission
from gatewright.sources.held import Strategy
from gatewright.sources.tree import Doomed, list_tree, plan_removal, remove_tree
from tests.engine.sources.bench import Bench, source_of
from tests.support.swapping_process import swapping

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the exchange of two names is Linux's renameat2")

ROUNDS = 150


def tried(work: Callable[[], object]) -> object:
    try:
        return work()
    except ToolFailure:
        return None


def test_a_folder_swapped_for_a_link_gives_nothing_away(bench: Bench, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a.md").write_text("SECRET")
    bench.write("sub/a.md", "fine")
    (bench.folder / "twin").symlink_to(outside)
    source = bench.manager.get("docs")
    assert source is not None
    with swapping(bench.folder / "sub", bench.folder / "twin"):
        found = {getattr(tried(partial(source.read, "sub/a.md")), "content", None) for _ in range(ROUNDS)}
        for number in range(ROUNDS):
            tried(partial(source.create, f"sub/new{number}", "x"))
            tried(partial(source.create, f"sub/deep{number}/new", "x"))
            tried(partial(source.delete, "sub/gone"))
    assert "SECRET" not in found
    assert [entry.name for entry in outside.iterdir()] == ["a.md"]


def test_a_file_swapped_for_a_link_is_not_read(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "outside.md").write_text("SECRET")
    path = bench.write("a.md", "fine")
    (bench.folder / "twin").symlink_to(tmp_path / "outside.md")
    source = bench.manager.get("docs")
    assert source is not None
    with swapping(path, bench.folder / "twin"):
        found = {getattr(tried(partial(source.read, "a.md")), "content", None) for _ in range(60 * ROUNDS)}
    assert found <= {"fine", None}


def test_a_file_swapped_for_a_link_is_not_written(bench: Bench, tmp_path: Path) -> None:
    outside = tmp_path / "outside.md"
    outside.write_text("SECRET")
    path = bench.write("a.md", "fine")
    (bench.folder / "twin").symlink_to(outside)
    source = bench.manager.get("docs")
    assert source is not None
    source.append("a.md", " x")
    with swapping(path, bench.folder / "twin"):
        for _ in range(ROUNDS):
            told = tried(partial(source.load, "a.md"))
            assert told is None or source.read("a.md").content.startswith("fine")
            tried(partial(source.append, "a.md", " x"))
            tried(partial(source.save, "a.md", Action.OVERWRITE))
    assert outside.read_text() == "SECRET"
    assert outside.stat().st_nlink == 1


def test_a_folder_swapped_for_a_link_gives_nothing_away_to_whole_folders_and_edits(
    bench: Bench, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    (outside / "deep").mkdir(parents=True)
    (outside / "a.md").write_text("SECRET")
    (outside / "deep/b.md").write_text("SECRET")
    bench.update(source_of(default=Permission.ADMIN))
    bench.write("sub/a.md", "fine")
    bench.write("sub/deep/b.md", "fine")
    (bench.folder / "twin").symlink_to(outside)
    source = bench.manager.get("docs")
    assert source is not None
    level_of = bench.manager.overlay("docs").level_of
    seen: list[str] = []
    with swapping(bench.folder / "sub", bench.folder / "twin"):
        for number in range(ROUNDS):
            seen.append(str(tried(partial(source.insert, "sub/a.md", 1, "x"))))
            seen.append(str(tried(partial(source.patch, "sub/a.md", "@@ -1 +1 @@\n-SECRET\n+x\n"))))
            seen.append(str(tried(partial(source.status, "sub/a.md"))))
            seen.append(str(tried(partial(source.diff, "sub/a.md"))))
            seen.append(str(tried(partial(source.reconcile, "sub/a.md", Strategy.THEIRS))))
            seen.append(str(tried(partial(source.take_in, "sub/a.md"))))
            seen.append(
                str(tried(partial(list_tree, source, ".", level_of, pattern="secret*", limit=9, recursive=True)))
            )
            if number % 10 == 9:
                going = tried(partial(plan_removal, source, "sub/deep", level_of))
                if isinstance(going, Doomed):
                    tried(partial(remove_tree, source, going, level_of))
    assert not any("SECRET" in one for one in seen)
    assert {path.name: path.read_text() for path in outside.rglob("*.md")} == {"a.md": "SECRET", "b.md": "SECRET"}
