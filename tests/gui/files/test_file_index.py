"""Every file below a source counted by what decides it."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from gatewright.base.errors import WorkspaceError
from gatewright.memory.block_store import BlockStore
from gatewright.policy.verdict import Permission
from gatewright_gui.session.file_index import DEFAULT, ELSEWHERE, PROTECTED, Decided, StoppedError, decide, walk
from tests.engine.sources.bench import Bench, make_bench, source_of

RULES = (("*.key", Permission.NONE), ("sub/", Permission.ADMIN), ("*.never", Permission.APPEND))


@pytest.fixture
def tree(tmp_path: Path) -> Iterator[Bench]:
    base = tmp_path / "base"
    with BlockStore(tmp_path / "blocks.sqlite") as blocks:
        bench = make_bench(base, blocks, (base / "policy.toml", base / ".gatewright"))
        for name in ("policy.toml", ".gatewright/audit", "a.key", "b.md", "sub/c.md", "sub/d.key"):
            bench.write(name, "x")
        (base / "link").symlink_to("sub")
        bench.start(source_of(rules=RULES), base)
        yield bench


def counted(tree: Bench, source_id: str = "docs", limit: int = 1_000) -> Decided:
    source = tree.manager.get(source_id)
    assert source is not None
    index = walk(source, lambda: False, lambda _seen: None, limit=limit)
    return decide(index, tree.manager.overlay(source_id), source.rules, lambda: False)


def test_files_are_counted_by_what_decides_them(tree: Bench) -> None:
    found = counted(tree)
    assert found.counts == {0: 2, 1: 1, DEFAULT: 1, PROTECTED: 2}
    assert (found.index.files, found.index.unreadable, found.index.truncated) == (6, 0, False)


def test_counting_stops_at_its_limit_and_when_nobody_wants_it(tree: Bench) -> None:
    assert counted(tree, limit=3).index.truncated
    for number in range(200):
        tree.write(f"many/{number}", "x")
    source = tree.manager.get("docs")
    assert source is not None
    with pytest.raises(StoppedError):
        walk(source, lambda: True, lambda _seen: None, limit=1_000)


def test_files_that_another_source_over_them_decides_are_counted_apart(tree: Bench) -> None:
    inner = source_of("inner", rules=(("c.md", Permission.NONE),), default=Permission.ADMIN)
    tree.start(inner, tree.folder / "sub")
    found = counted(tree)
    assert sum(count for code, count in found.counts.items() if code <= ELSEWHERE) == 1
    assert sum(found.counts.values()) == found.index.files


def test_what_a_killed_save_left_behind_is_not_counted(tree: Bench) -> None:
    before = counted(tree).counts
    tree.write("sub/.b.md.0123456789ab.tmp", "half of a te")
    assert counted(tree).counts == before


def test_missing_folder_is_told_and_one_below_that_cannot_be_read_is_counted(tree: Bench, tmp_path: Path) -> None:
    tree.start(source_of("gone"), tmp_path / "gone")
    with pytest.raises(WorkspaceError, match="missing"):
        counted(tree, "gone")
    (tree.folder / "sub").chmod(0)
    try:
        assert counted(tree).index.unreadable == (0 if os.geteuid() == 0 else 1)
    finally:
        (tree.folder / "sub").chmod(0o755)
