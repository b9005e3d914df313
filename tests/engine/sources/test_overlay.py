import os
from pathlib import Path

import pytest

from gatewright.base.errors import WorkspaceError
from gatewright.policy.verdict import Permission
from gatewright.sources.tree import FIRST, Entry, Listing
from tests.engine.sources.bench import Bench, source_of

RULES = (("*.key", Permission.NONE), ("sub/", Permission.ADMIN), ("*.never", Permission.APPEND))


@pytest.fixture
def tree(bench: Bench) -> Bench:
    bench.update(source_of(rules=RULES))
    bench.write("a.key", "x")
    bench.write("b.md", "x")
    bench.write("sub/c.md", "x")
    bench.write("sub/d.key", "x")
    (bench.folder / "link").symlink_to("sub")
    return bench


def test_a_folder_is_scanned_with_levels_and_reasons_folders_first(tree: Bench) -> None:
    listing = tree.manager.overlay("docs").scan()
    linked = "the path leads through a symbolic link, which is not followed"
    entries = (
        Entry(".gatewright", ".gatewright", True, Permission.NONE, None, None, True),
        Entry("sub", "sub", True, Permission.ADMIN, 1, "sub/", False),
        Entry("a.key", "a.key", False, Permission.NONE, 0, "*.key", False),
        Entry("b.md", "b.md", False, Permission.READ_WRITE, None, None, False),
        Entry("link", "link", False, Permission.READ_WRITE, None, None, False, linked),
        Entry("policy.toml", "policy.toml", False, Permission.NONE, None, None, True),
    )
    assert listing == Listing(entries, truncated=False)


def test_a_folder_below_is_scanned_by_its_relative_path(tree: Bench) -> None:
    entries = tree.manager.overlay("docs").scan("sub").entries
    assert entries == (
        Entry("c.md", "sub/c.md", False, Permission.ADMIN, 1, "sub/", False),
        Entry("d.key", "sub/d.key", False, Permission.NONE, 0, "*.key", False),
    )
    assert tree.manager.overlay("docs").scan("./sub/").entries == entries
    (tree.folder / "sub" / os.fsdecode(b"caf\xe9")).touch()
    shown = tree.manager.overlay("docs").scan("sub").entries[1]
    assert shown == Entry("caf\ufffd", os.fsdecode(b"sub/caf\xe9"), False, Permission.ADMIN, 1, "sub/", False)


def test_a_scan_stops_at_its_limit_and_when_cancelled(tree: Bench) -> None:
    overlay = tree.manager.overlay("docs")
    short = overlay.scan(limit=2)
    assert (len(short.entries), short.truncated) == (2, True)
    assert overlay.scan(cancelled=lambda: True).entries == ()
    looks = iter([False] * 6)
    assert overlay.scan(cancelled=lambda: next(looks, True)) == Listing((), truncated=True)
    whole = overlay.scan(limit=6)
    assert (len(whole.entries), whole.truncated) == (6, False)


def test_beginning_of_a_large_folder_is_told_before_the_rest_of_it_is_looked_at(tree: Bench) -> None:
    for number in range(FIRST + 40):
        tree.write(f"sub/{number:04}.{'key' if number % 2 else 'md'}", "x")
    told: list[Listing] = []
    whole = tree.manager.overlay("docs").scan("sub", first=told.append)
    assert [len(one.entries) for one in told] == [FIRST]
    assert told[0].truncated
    assert not whole.truncated
    assert told[0].entries == whole.entries[:FIRST]
    assert [entry.name for entry in whole.entries] == sorted(entry.name for entry in whole.entries)
    tree.manager.overlay("docs").scan(first=told.append)
    assert len(told) == 1


@pytest.mark.parametrize("at_once", [True, False])
def test_what_is_gone_before_it_is_looked_at_can_be_used_by_nobody(tree: Bench, at_once: bool) -> None:
    for number in range(FIRST + 1):
        tree.write(f"sub/{number:04}.md", "x")
    overlay, last = tree.manager.overlay("docs"), f"{FIRST:04}.md"
    if not at_once:
        overlay.plain = None
    whole = overlay.scan("sub", first=lambda _: (tree.folder / "sub" / last).unlink(missing_ok=True))
    found = {entry.name: entry for entry in whole.entries}
    assert found[last] == Entry(
        last, f"sub/{last}", False, Permission.NONE, None, None, False, "it cannot be looked at"
    )


def test_limit_keeps_the_first_names_whatever_their_case(tree: Bench) -> None:
    for name in ("Zeta.md", "alpha.md", "Beta.md", "gamma.md"):
        tree.write(f"large/{name}", "x")
    listing = tree.manager.overlay("docs").scan("large", limit=3)
    assert [entry.name for entry in listing.entries] == ["alpha.md", "Beta.md", "gamma.md"]
    assert listing.truncated


def test_levels_asked_for_at_once_are_those_asked_for_one_by_one(tree: Bench) -> None:
    overlay = tree.manager.overlay("docs")
    at_once = overlay.scan("sub").entries
    overlay.plain = None
    assert overlay.scan("sub").entries == at_once
    assert {entry.permission for entry in at_once} == {Permission.ADMIN, Permission.NONE}


def test_what_is_protected_is_shown_so_below_it_and_after_it_was_replaced(tree: Bench) -> None:
    overlay = tree.manager.overlay("docs")
    tree.write("new", "newer").replace(tree.folder / "policy.toml")
    audit = Entry("audit", ".gatewright/audit", False, Permission.NONE, None, None, True)
    assert overlay.scan(".gatewright").entries == (audit,)
    assert [entry.protected for entry in overlay.scan().entries] == [True, False, False, False, False, True]


def test_a_missing_folder_is_told_with_its_path(tree: Bench, tmp_path: Path) -> None:
    overlay = tree.manager.overlay("docs")
    with pytest.raises(WorkspaceError, match="none"):
        overlay.scan("none")
    with pytest.raises(WorkspaceError, match="above"):
        overlay.scan("../x")
    with pytest.raises(WorkspaceError, match="link"):
        overlay.scan("link")
    with pytest.raises(WorkspaceError, match="other"):
        tree.manager.overlay("other")
    tree.start(source_of("gone"), tmp_path / "gone")
    with pytest.raises(WorkspaceError, match="missing"):
        tree.manager.overlay("gone").scan()


def test_the_overlay_says_what_the_gate_will_say(tree: Bench) -> None:
    inner = tree.folder / "sub"
    tree.start(source_of("inner", default=Permission.PARTNER), inner)
    for entry in tree.manager.overlay("docs").scan("sub").entries:
        assert tree.manager.level(tree.at(entry.relative, "docs")).permission is entry.permission
    assert tree.manager.overlay("docs").scan("sub").entries[0].permission is Permission.PARTNER


def test_files_that_another_source_over_them_decides_are_named_apart(tree: Bench) -> None:
    many = tuple((f"none-{number}", Permission.ADMIN) for number in range(9))
    inner = source_of("inner", rules=(*many, ("c.md", Permission.NONE)), default=Permission.ADMIN)
    tree.start(inner, tree.folder / "sub")
    overlay = tree.manager.overlay("docs")
    entry = next(entry for entry in overlay.scan("sub").entries if entry.name == "c.md")
    assert (entry.permission, entry.index, entry.pattern, entry.decided_by) == (
        Permission.NONE,
        None,
        "c.md",
        "inner",
    )
