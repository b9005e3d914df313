from pathlib import Path

import pytest

from gatewright.base.errors import AlreadyRegistered, ToolFailure, WorkspaceError
from gatewright.policy.document import PermissionRule, Source
from gatewright.policy.permission import Permission
from gatewright.policy.target import LevelDecision
from gatewright.sources import PermissionRules, Protection, SourceManager
from gatewright.sources.level import strictest_level
from gatewright.tools.port import SourcePort
from tests.engine.sources.bench import Bench, source_of


def test_the_first_source_registers_the_file_tool_and_the_last_one_withdraws_it(bench: Bench, tmp_path: Path) -> None:
    assert bench.registered == ["on"]
    bench.manager.start(source_of("more"), tmp_path)
    bench.manager.stop("docs")
    bench.manager.stop("docs")
    assert bench.registered == ["on"]
    bench.manager.stop("more")
    assert bench.registered == ["on", "off"]
    bench.manager.start(source_of("again"), tmp_path)
    assert bench.registered == ["on", "off", "on"]
    assert bench.manager.ids == ("again",)


def test_a_source_is_attached_once(bench: Bench, tmp_path: Path) -> None:
    with pytest.raises(AlreadyRegistered, match="docs"):
        bench.manager.start(source_of(), tmp_path)
    with pytest.raises(WorkspaceError, match="nothing"):
        bench.manager.update(source_of("nothing"))


def test_a_bad_pattern_keeps_a_source_from_starting_and_from_changing(bench: Bench, tmp_path: Path) -> None:
    bad = Source("bad", ".", permission_rules=(PermissionRule("!x", Permission.ADMIN),))
    with pytest.raises(ValueError, match="!"):
        bench.manager.start(bad, tmp_path)
    assert bench.manager.ids == ("docs",)


def test_rules_change_from_the_next_call_on(bench: Bench) -> None:
    bench.write("a.md", "x")
    at = bench.at("a.md")
    assert bench.manager.level(at) == LevelDecision(Permission.READ_WRITE)
    bench.manager.update(source_of(rules=(("*.md", Permission.APPEND),)))
    assert bench.manager.level(at) == LevelDecision(Permission.APPEND, 0, "*.md")


async def test_calls_to_a_stopped_source_fail_clearly(bench: Bench) -> None:
    bench.write("a.md", "x")
    at = bench.at("a.md")
    bench.manager.stop("docs")
    with pytest.raises(ToolFailure, match="not attached"):
        await bench.port.read(at)


def test_folder_rules_hold_for_folders_only(bench: Bench) -> None:
    bench.manager.update(source_of(rules=(("x/", Permission.ADMIN),)))
    at = bench.at("x")
    assert bench.manager.level(at).index is None
    bench.write("x/a", "")
    assert bench.manager.level(at).index == 0
    assert bench.manager.level(bench.at("x/a")).index == 0


def test_where_bases_overlap_the_strictest_level_holds(bench: Bench) -> None:
    inner = bench.folder / "inner"
    bench.write("inner/a.md", "x")
    bench.manager.start(source_of("inner", rules=(("a.md", Permission.READ_ONLY),), default=Permission.ADMIN), inner)
    assert bench.manager.level(bench.at("inner/a.md", "docs")).permission is Permission.READ_ONLY
    assert bench.manager.level(bench.at("a.md", "inner")).permission is Permission.READ_ONLY
    assert bench.manager.level(bench.at("b.md", "inner")).permission is Permission.READ_WRITE


def test_a_link_as_base_does_not_hide_an_overlap(bench: Bench, tmp_path: Path) -> None:
    bench.write("inner/a.md", "x")
    (tmp_path / "elsewhere").symlink_to(bench.folder / "inner")
    bench.manager.start(source_of("inner", default=Permission.NONE), tmp_path / "elsewhere")
    assert bench.manager.level(bench.at("inner/a.md", "docs")).permission is Permission.NONE


def test_levels_that_differ_in_both_ways_give_read_only() -> None:
    append, partner = LevelDecision(Permission.APPEND, 0, "a"), LevelDecision(Permission.PARTNER, 1, "b")
    assert strictest_level([append, partner]) == LevelDecision(Permission.READ_ONLY)
    assert strictest_level([partner, LevelDecision(Permission.ADMIN)]) == partner
    assert strictest_level([append]) == append


def test_the_manager_answers_the_port_of_the_tools(bench: Bench) -> None:
    port: SourcePort = SourceManager(lambda: lambda: None, bench.blocks, Protection())
    with pytest.raises(ToolFailure):
        port.level(bench.place("a.md"))


def test_the_rules_are_found_where_the_contract_says() -> None:
    rules = PermissionRules([PermissionRule("*.md", Permission.APPEND)], Permission.NONE)
    assert rules.level("a/b.md") is Permission.APPEND
    assert rules.explain("a.txt").permission is Permission.NONE


def test_another_rule_never_moves_the_base_to_where_a_link_leads_now(bench: Bench, tmp_path: Path) -> None:
    outside, base = tmp_path / "outside", tmp_path / "base"
    outside.mkdir()
    base.rename(tmp_path / "moved")
    base.symlink_to(outside)
    bench.manager.update(source_of())

    running = bench.manager.get("docs")
    assert running is not None
    assert running.base == str(base)
    with pytest.raises(WorkspaceError, match="not a folder"):
        bench.manager.overlay("docs").scan()
