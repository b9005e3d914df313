from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from gatewright.base.errors import ToolFailure, WorkspaceError
from gatewright.base.jsonvalue import JsonValue
from gatewright.policy.document import PermissionRule, Source
from gatewright.policy.glob import PermissionRules
from gatewright.policy.target import LevelDecision, Located
from gatewright.policy.verdict import Action, Permission
from gatewright.sources.basefolder import base_folder
from gatewright.sources.ground import Protection
from gatewright.sources.known import strictest_level
from gatewright.sources.manager import SourceManager
from tests.engine.sources.bench import Bench, source_of


def test_the_first_source_registers_the_file_tool_and_the_last_one_withdraws_it(bench: Bench, tmp_path: Path) -> None:
    assert bench.registered == ["on"]
    bench.start(source_of("more"), tmp_path)
    bench.stop("docs")
    assert bench.registered == ["on"]
    bench.stop("more")
    assert bench.registered == ["on", "off"]
    bench.start(source_of("again"), tmp_path)
    assert bench.registered == ["on", "off", "on"]
    assert bench.manager.ids == ("again",)


def test_no_source_needs_no_file_tool(bench: Bench) -> None:
    manager = SourceManager(lambda: pytest.fail("registered"), bench.blocks, Protection())
    manager.follow([])()
    assert manager.ids == ()
    bench.manager.follow([(source_of(), base_folder(bench.folder))])()
    assert bench.registered == ["on"]
    withdraw = bench.manager.follow([])
    assert bench.registered == ["on"]
    withdraw()
    withdraw()
    assert bench.registered == ["on", "off"]


def test_a_bad_pattern_keeps_a_source_from_starting_and_from_changing(bench: Bench, tmp_path: Path) -> None:
    bad = Source("bad", ".", permission_rules=(PermissionRule("!x", Permission.ADMIN),))
    with pytest.raises(ValueError, match="!"):
        bench.start(bad, tmp_path)
    assert bench.manager.ids == ("docs",)


def test_rules_change_from_the_next_call_on(bench: Bench) -> None:
    bench.write("a.md", "x")
    at = bench.at("a.md")
    assert bench.manager.level(at) == LevelDecision(Permission.READ_WRITE)
    bench.update(source_of(rules=(("*.md", Permission.APPEND),)))
    assert bench.manager.level(at) == LevelDecision(Permission.APPEND, 0, "*.md")


async def test_calls_to_a_stopped_source_fail_clearly(bench: Bench) -> None:
    bench.write("a.md", "x")
    at = bench.at("a.md")
    bench.stop("docs")
    with pytest.raises(ToolFailure, match="not attached"):
        await bench.manager.read(at)


def test_folder_rules_hold_for_folders_only(bench: Bench) -> None:
    bench.update(source_of(rules=(("x/", Permission.ADMIN),)))
    at = bench.at("x")
    assert bench.manager.level(at).index is None
    bench.write("x/a", "")
    assert bench.manager.level(at).index == 0
    assert bench.manager.level(bench.at("x/a")).index == 0


def test_where_bases_overlap_the_strictest_level_holds(bench: Bench) -> None:
    inner = bench.folder / "inner"
    bench.write("inner/a.md", "x")
    bench.start(source_of("inner", rules=(("a.md", Permission.READ_ONLY),), default=Permission.ADMIN), inner)
    assert bench.manager.level(bench.at("inner/a.md", "docs")).permission is Permission.READ_ONLY
    assert bench.manager.level(bench.at("a.md", "inner")).permission is Permission.READ_ONLY
    assert bench.manager.level(bench.at("b.md", "inner")).permission is Permission.READ_WRITE


def test_a_link_as_base_does_not_hide_an_overlap(bench: Bench, tmp_path: Path) -> None:
    bench.write("inner/a.md", "x")
    (tmp_path / "elsewhere").symlink_to(bench.folder / "inner")
    bench.start(source_of("inner", default=Permission.NONE), tmp_path / "elsewhere")
    assert bench.manager.level(bench.at("inner/a.md", "docs")).permission is Permission.NONE


def test_levels_that_differ_in_both_ways_give_read_only() -> None:
    append, partner = LevelDecision(Permission.APPEND, 0, "a"), LevelDecision(Permission.PARTNER, 1, "b")
    assert strictest_level([append, partner]) == LevelDecision(Permission.READ_ONLY)
    assert strictest_level([partner, LevelDecision(Permission.ADMIN)]) == partner
    assert strictest_level([append]) == append


def test_place_of_a_source_that_does_not_run_has_no_level(bench: Bench) -> None:
    with pytest.raises(ToolFailure):
        SourceManager(lambda: lambda: None, bench.blocks, Protection()).level(bench.place("a.md"))


def test_the_rules_are_found_where_the_contract_says() -> None:
    rules = PermissionRules([PermissionRule("*.md", Permission.APPEND)], Permission.NONE)
    assert rules.level("a/b.md") is Permission.APPEND
    assert rules.explain("a.txt").permission is Permission.NONE


def test_another_rule_never_moves_the_base_to_where_a_link_leads_now(bench: Bench, tmp_path: Path) -> None:
    outside, base = tmp_path / "outside", tmp_path / "base"
    outside.mkdir()
    base.rename(tmp_path / "moved")
    base.symlink_to(outside)
    bench.update(source_of())

    running = bench.manager.get("docs")
    assert running is not None
    assert running.base == str(base)
    with pytest.raises(WorkspaceError, match="another folder"):
        bench.manager.overlay("docs").scan()


LEVELS_NOW = """
level      append overwrite delete
none       deny   deny      deny
read_only  deny   deny      deny
partner    ask    ask       ask
human      ask    ask       ask
append     allow  deny      deny
read_write allow  allow     ask
admin      allow  allow     allow
"""
CHANGES: dict[str, tuple[str, Callable[[SourceManager, Located, bool], Awaitable[JsonValue]]]] = {
    "append": ("append", lambda manager, at, yes: manager.append(at, "x\n", approved=yes)),
    "replace": ("overwrite", lambda manager, at, yes: manager.replace(at, "one", "1", approved=yes)),
    "insert": ("overwrite", lambda manager, at, yes: manager.insert(at, 1, "x\n", approved=yes)),
    "patch": ("overwrite", lambda manager, at, yes: manager.patch(at, "@@ -1 +1 @@\n-one\n+1\n", approved=yes)),
    "extending save": ("append", lambda manager, at, yes: manager.save(at, Action.APPEND, approved=yes)),
    "save": ("overwrite", lambda manager, at, yes: manager.save(at, Action.OVERWRITE, approved=yes)),
    "create": ("append", lambda manager, at, yes: manager.create(at, "x\n", approved=yes)),
    "delete": ("delete", lambda manager, at, yes: manager.delete(at, approved=yes)),
    "delete of a folder": ("delete", lambda manager, at, yes: manager.delete(at, recursive=True, approved=yes)),
}
CELLS = [
    (level, name, said[["append", "overwrite", "delete"].index(action)])
    for level, *said in (line.split() for line in LEVELS_NOW.strip().splitlines()[1:])
    for name, (action, _) in CHANGES.items()
]


async def prepared(bench: Bench, name: str) -> Located:
    """What the change has to find, made while everything was allowed."""
    if name == "create":
        return bench.at("new.md")
    if name == "delete of a folder":
        (bench.folder / "sub").mkdir()
        return bench.at("sub")
    bench.write("a.md", "one\n")
    at = bench.at("a.md")
    await bench.manager.load(at)
    if name == "extending save":
        await bench.manager.append(at, "two\n")
    elif name == "save":
        await bench.manager.replace(at, "one", "1")
    return at


def held(bench: Bench) -> object:
    """Everything on disk and in the blocks, past all levels."""
    files = {str(path): path.read_bytes() if path.is_file() else None for path in bench.folder.rglob("*")}
    source = bench.manager.get("docs")
    assert source is not None
    return files, {path: source.read(path).content for path in source.block_places()}


@pytest.mark.parametrize(("level", "name", "said"), CELLS, ids=str)
async def test_a_change_gets_what_the_level_says_at_the_moment_of_acting(
    bench: Bench, level: str, name: str, said: str
) -> None:
    at, change = await prepared(bench, name), CHANGES[name][1]
    bench.update(source_of(default=Permission(level)))
    before = held(bench)
    if said != "allow":
        with pytest.raises(ToolFailure) as refused:
            await change(bench.manager, at, said == "deny")
        code = "not-available" if level == "none" else {"deny": "not-permitted", "ask": "not-granted"}[said]
        assert refused.value.code == code
        assert {level, name}.isdisjoint(str(refused.value).split())
        assert held(bench) == before
    if said != "deny":
        await change(bench.manager, at, said == "ask")
        assert held(bench) != before


@pytest.mark.parametrize("level", list(Permission))
async def test_taking_the_text_from_disk_again_is_reading_at_every_level(bench: Bench, level: Permission) -> None:
    at = await prepared(bench, "save")
    bench.update(source_of(default=level))
    before = held(bench)
    if level is Permission.NONE:
        with pytest.raises(ToolFailure, match="not available"):
            await bench.manager.reload(at, asked=True)
        assert held(bench) == before
    else:
        await bench.manager.reload(at, asked=True)
        assert held(bench) != before


async def test_the_level_is_asked_after_waiting_for_the_file(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.write("a.md", "one\n")
    at, blocks = bench.at("a.md"), bench.blocks
    exclusive = blocks.exclusive

    def changed_meanwhile() -> AbstractContextManager[None]:
        bench.update(source_of(default=Permission.READ_ONLY))
        return exclusive()

    monkeypatch.setattr(blocks, "exclusive", changed_meanwhile)
    with pytest.raises(ToolFailure, match="may not be changed in this way"):
        await bench.manager.append(at, "two\n", approved=True)
    assert (await bench.manager.read(at)).origin == "disk"


async def test_a_call_that_waited_while_its_source_was_moved_does_nothing(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    at, blocks = bench.at("a.md"), bench.blocks
    exclusive = blocks.exclusive

    def moved_meanwhile() -> AbstractContextManager[None]:
        bench.manager.follow([(source_of(), base_folder(tmp_path))])
        return exclusive()

    monkeypatch.setattr(blocks, "exclusive", moved_meanwhile)
    with pytest.raises(ToolFailure) as refused:
        await bench.manager.create(at, "x")
    words = "the source of this path is not attached any more"
    assert (refused.value.code, str(refused.value)) == ("no-source", words)
    bench.manager.follow([])
    with pytest.raises(ToolFailure) as refused:
        bench.manager.level(at)
    assert (refused.value.code, str(refused.value)) == ("no-source", words)
    assert not (tmp_path / "a.md").exists()
    assert not (bench.folder / "a.md").exists()


async def test_pinned_sources_act_by_the_rules_that_they_were_pinned_with(bench: Bench) -> None:
    bench.write("a.md", "one\n")
    at, pinned = bench.at("a.md"), bench.manager.snapshot()
    bench.update(source_of(default=Permission.READ_ONLY))
    await pinned.append(at, "two\n")
    with pytest.raises(ToolFailure, match="may not be changed in this way"):
        await bench.manager.append(at, "three\n")
    assert (await bench.manager.read(at)).content == "one\ntwo\n"
