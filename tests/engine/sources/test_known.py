"""What is worked out once for a place is never older than the rules, the disk or the protection that it stands for."""

import os
from pathlib import Path

from gatewright.policy.target import LevelDecision
from gatewright.policy.verdict import Permission
from gatewright.sources.known import KnownPlaces
from tests.engine.sources.bench import Bench, source_of


def level_of(bench: Bench, path: str) -> LevelDecision:
    """The level that a place carries when it is located, which is the one that the call is decided by."""
    located = bench.at(path)
    level = located.level or bench.manager.level(located)
    assert level == bench.manager.level(located)
    return level


def test_a_located_place_carries_its_level(bench: Bench) -> None:
    bench.write("a.md", "x")
    assert bench.at("a.md").level == LevelDecision(Permission.READ_WRITE)


def test_another_rule_is_seen_by_the_next_call(bench: Bench) -> None:
    bench.write("a.md", "x")
    assert level_of(bench, "a.md").permission is Permission.READ_WRITE
    bench.update(source_of(rules=(("*.md", Permission.APPEND),)))
    assert level_of(bench, "a.md") == LevelDecision(Permission.APPEND, 0, "*.md")
    bench.update(source_of(rules=(("*.md", Permission.NONE),)))
    assert level_of(bench, "a.md") == LevelDecision(Permission.NONE, 0, "*.md")
    bench.update(source_of(default=Permission.READ_ONLY))
    assert level_of(bench, "a.md") == LevelDecision(Permission.READ_ONLY)


def test_a_source_that_comes_over_the_same_files_is_seen_by_the_next_call(bench: Bench) -> None:
    bench.write("sub/a.md", "x")
    assert bench.at("sub/a.md", "docs").level == LevelDecision(Permission.READ_WRITE)
    bench.start(source_of("inner", default=Permission.READ_ONLY), bench.folder / "sub")
    assert bench.at("sub/a.md", "docs").level == LevelDecision(Permission.READ_ONLY, source_id="inner")
    bench.stop("inner")
    assert bench.at("sub/a.md", "docs").level == LevelDecision(Permission.READ_WRITE)


def test_pinned_sources_keep_the_rules_that_they_were_pinned_with(bench: Bench) -> None:
    bench.write("a.md", "x")
    located, pinned = bench.at("a.md"), bench.manager.snapshot()
    bench.update(source_of(default=Permission.READ_ONLY))
    assert pinned.level(located).permission is Permission.READ_WRITE
    assert bench.manager.level(located).permission is Permission.READ_ONLY


def test_a_file_swapped_for_a_link_is_seen_by_the_next_call(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "outside.md").write_text("SECRET")
    path = bench.write("a.md", "x")
    assert level_of(bench, "a.md").permission is Permission.READ_WRITE
    path.unlink()
    path.symlink_to(tmp_path / "outside.md")
    assert bench.refused("a.md").code == "symlink"


def test_a_folder_on_the_way_swapped_for_a_link_is_seen_by_the_next_call(bench: Bench, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a.md").write_text("SECRET")
    bench.write("sub/a.md", "x")
    assert level_of(bench, "sub/a.md").permission is Permission.READ_WRITE
    (bench.folder / "sub").rename(bench.folder / "gone")
    (bench.folder / "sub").symlink_to(outside)
    assert bench.refused("sub/a.md").code == "symlink"
    assert bench.manager.level(bench.place("sub/a.md")).permission is Permission.NONE


def test_a_file_that_becomes_a_folder_has_the_folders_level_in_the_next_call(bench: Bench) -> None:
    bench.update(source_of(rules=(("thing/", Permission.READ_ONLY),)))
    path = bench.write("thing", "x")
    assert level_of(bench, "thing").permission is Permission.READ_WRITE
    path.unlink()
    path.mkdir()
    assert level_of(bench, "thing").permission is Permission.READ_ONLY


def test_a_file_that_becomes_the_protected_one_is_seen_by_the_next_call(bench: Bench) -> None:
    path, protected = bench.write("a.md", "x"), bench.folder / "policy.toml"
    assert level_of(bench, "a.md").permission is Permission.READ_WRITE
    protected.unlink(missing_ok=True)
    os.link(path, protected)
    assert bench.refused("a.md").code == "hard-link"
    assert bench.manager.level(bench.place("a.md")) == LevelDecision(Permission.NONE, protected=True)
    protected.unlink()
    assert level_of(bench, "a.md").permission is Permission.READ_WRITE


def test_what_is_kept_stays_bounded_and_right(bench: Bench) -> None:
    source = bench.manager.get("docs")
    assert source is not None
    places = KnownPlaces({"docs": source}, source.protected)
    for number in range(3_000):
        relative = f"sub/{number}.md"
        assert places.find(source, relative).file.relative == relative
    deep, long = "/".join("d" * 40), "x" * 600
    assert places.find(source, deep).file.relative == deep
    assert places.find(source, long).file.relative == long
    assert len(places) <= 1_024
    places = KnownPlaces({"docs": source}, source.protected)
    for relative, kept in (("x" * 512, 1), ("x" * 513, 1), ("/".join("d" * 15), 2), ("/".join("d" * 16), 2)):
        places.find(source, relative)
        places.find(source, relative)
        assert len(places) == kept
    for number in range(1_022):
        places.find(source, f"{number}.md")
    assert len(places) == 1_024
    places.find(source, "last.md")
    assert len(places) == 1
