"""Nothing a model writes reaches an object outside the base, or a protected one."""

import json
import os
import re
import socket
from pathlib import Path
from typing import Any

import pytest

import gatewright.sources
from gatewright.base.errors import ToolFailure
from gatewright.policy.target import LevelDecision, Located, Refusal
from gatewright.policy.verdict import Action, Permission
from tests.engine.sources.bench import Bench, source_of
from tests.support.unixsocket import bind_at

SECRET = "TOP SECRET"


@pytest.fixture
def maze(bench: Bench, tmp_path: Path) -> Bench:
    """Links, hard links and oddities inside the base that lead to a secret outside."""
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/passwd").write_text(SECRET)
    (tmp_path / "passwd").write_text(SECRET)
    bench.write("docs/a.md", "fine")
    for name, target in [
        ("up", ".."),
        ("etc", "../etc"),
        ("root", tmp_path),  # not the system's own: here operations are called that would delete it
        ("docs/back", "../.."),
        ("passwd", "../passwd"),
    ]:
        (bench.folder / name).symlink_to(target)
    os.link(tmp_path / "passwd", bench.folder / "hard")
    return bench


PATHS = ["up/passwd", "etc/passwd", "root/etc/passwd", "docs/back/passwd", "passwd", "hard", "../passwd"]


@pytest.mark.parametrize("path", PATHS)
async def test_no_operation_reaches_outside_even_without_locate(maze: Bench, tmp_path: Path, path: str) -> None:
    at, port = maze.place(path), maze.manager
    calls = [
        port.read(at),
        port.load(at),
        port.append(at, "x"),
        port.replace(at, "SECRET", "x"),
        port.create(at, "x"),
        port.delete(at, approved=True),
        port.save(at, Action.OVERWRITE),
        port.list_folder(at),
        maze.manager.insert(at, 1, "x"),
        maze.manager.patch(at, "@@ -1 +1 @@\n-TOP SECRET\n+x\n"),
        maze.manager.status(at),
        maze.manager.diff(at),
        maze.manager.reload(at),
        maze.manager.reconcile(at, "theirs"),
        maze.manager.list_tree(at),
        maze.manager.delete(at, recursive=True, asked=True),
    ]
    for call in calls:
        with pytest.raises(ToolFailure) as caught:
            await call
        assert SECRET not in str(caught.value)
    assert (tmp_path / "passwd").read_text() == SECRET
    assert (tmp_path / "etc/passwd").read_text() == SECRET


@pytest.mark.parametrize("path", ["up", "etc", "root", "docs/back"])
async def test_a_linked_folder_is_neither_listed_nor_written_into(maze: Bench, tmp_path: Path, path: str) -> None:
    with pytest.raises(ToolFailure, match="symbolic link"):
        await maze.manager.list_folder(maze.place(path))
    with pytest.raises(ToolFailure, match="symbolic link"):
        await maze.manager.create(maze.place(f"{path}/new"), "x")
    with pytest.raises(ToolFailure, match="symbolic link"):
        await maze.manager.create(maze.place(f"{path}/made/new"), "x")
    assert not (tmp_path / "new").exists()
    assert not (tmp_path / "made").exists()


async def test_attack_payloads_never_reach_the_secret(maze: Bench, tmp_path: Path, corpora: Path) -> None:
    rows: list[dict[str, Any]] = json.loads((corpora / "attack_path_traversal.json").read_text("utf-8"))
    reached: list[str] = []
    for row in rows:
        for file in ("etc/passwd", str(tmp_path / "passwd")):
            payload = row["payload"].replace("{FILE}", file)
            at = maze.manager.locate(payload, source_id=None, allowed=("docs",))
            if not isinstance(at, Located):
                continue
            assert ".." not in at.relative.split("/")
            assert (maze.folder / at.relative).is_relative_to(maze.folder)
            try:
                found = await maze.manager.read(at)
            except ToolFailure:
                continue
            if found.content != "fine":
                reached.append(payload)
    assert reached == []
    assert len(rows) > 1000


async def test_attack_payloads_do_nothing_outside_through_any_operation(
    maze: Bench, tmp_path: Path, corpora: Path
) -> None:
    """What lies inside the base may be changed by them; what lies outside is the same afterwards, and unseen."""
    maze.update(source_of(default=Permission.ADMIN))
    rows: list[dict[str, Any]] = json.loads((corpora / "attack_path_traversal.json").read_text("utf-8"))
    manager = maze.manager
    for row in rows[::3]:
        payload = row["payload"].replace("{FILE}", "etc/passwd")
        at = manager.locate(payload, source_id=None, allowed=("docs",))
        if not isinstance(at, Located) or at.relative == ".":
            continue
        calls = [
            manager.insert(at, 1, "x"),
            manager.patch(at, "@@ -1 +1 @@\n-TOP SECRET\n+x\n"),
            manager.status(at),
            manager.diff(at),
            manager.reconcile(at, "theirs"),
            manager.reload(at),
            manager.list_tree(at),
            manager.delete(at, recursive=True, asked=True),
        ]
        for call in calls:
            try:
                answer = await call
            except ToolFailure as failure:
                answer = str(failure)
            assert SECRET not in str(answer)
    assert (tmp_path / "passwd").read_text() == SECRET
    assert (tmp_path / "etc/passwd").read_text() == SECRET
    assert sorted(path.name for path in (tmp_path / "etc").iterdir()) == ["passwd"]


async def test_pipes_sockets_and_devices_do_not_block(bench: Bench) -> None:
    os.mkfifo(bench.folder / "pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        bind_at(listening, bench.folder / "sock")
        for name in ("pipe", "sock"):
            at = bench.place(name)
            calls = [
                bench.manager.read(at),
                bench.manager.load(at),
                bench.manager.delete(at, approved=True),
                bench.manager.insert(at, 1, "x"),
                bench.manager.status(at),
            ]
            for call in calls:
                with pytest.raises(ToolFailure) as caught:
                    await call
                assert caught.value.code == "special-file"
    assert (bench.folder / "pipe").exists()


@pytest.mark.parametrize("path", ["policy.toml", ".gatewright/audit", ".gatewright/new", ".gatewright"])
async def test_protected_places_have_level_none_whatever_the_globs_say(bench: Bench, path: str) -> None:
    bench.update(source_of(rules=(("**", Permission.ADMIN),), default=Permission.ADMIN))
    level = bench.manager.level(bench.at(path))
    assert (level.permission, level.protected) == (Permission.NONE, True)
    calls = [bench.manager.read, bench.manager.load, bench.manager.delete, bench.manager.list_folder]
    for call in calls:
        with pytest.raises(ToolFailure, match="not available"):
            await call(bench.place(path))
    with pytest.raises(ToolFailure, match="not available"):
        await bench.manager.create(bench.place(path), "x")
    assert await bench.manager.list_folder(bench.at(".")) == []
    assert (bench.folder / "policy.toml").read_text() == "secret"


async def test_a_protected_file_under_another_name_is_protected_by_identity(bench: Bench) -> None:
    os.link(bench.folder / "policy.toml", bench.folder / "copy.md")
    assert bench.manager.level(bench.place("copy.md")).protected
    with pytest.raises(ToolFailure, match="not available"):
        await bench.manager.read(bench.place("copy.md"))


async def test_a_protected_file_that_was_replaced_stays_protected(bench: Bench) -> None:
    (bench.folder / "new").write_text("newer")
    (bench.folder / "new").rename(bench.folder / "policy.toml")
    assert bench.manager.level(bench.at("policy.toml")).protected


async def test_the_folder_of_a_source_that_was_moved_is_closed_wherever_it_is_met(bench: Bench, tmp_path: Path) -> None:
    moved = bench.folder / "moved"
    (tmp_path / "other").mkdir()
    (tmp_path / "other/a.md").write_text(SECRET)
    bench.start(source_of("other"), tmp_path / "other")
    (tmp_path / "other").rename(moved)
    shut = LevelDecision(Permission.NONE, protected=True)
    assert [bench.manager.level(bench.place(path)) for path in ("moved", "moved/a.md", "moved/new.md")] == [shut] * 3
    with pytest.raises(ToolFailure, match="not available"):
        await bench.manager.read(bench.place("moved/a.md"))
    listed = [*await bench.manager.list_folder(bench.at(".")), *await bench.manager.list_tree(bench.at("."))]
    assert "moved" not in str(listed)
    assert [entry.protected for entry in bench.manager.overlay("docs").scan().entries if entry.name == "moved"] == [
        True
    ]
    found = bench.manager.find_file(str(moved / "a.md"), folder=None)
    assert isinstance(found, Refusal)
    assert found.code == "protected"
    named = bench.manager.places_named(str(moved / "a.md"), Action.READ, folders=None, contents=True)
    assert [(one.source_id, one.level) for one in named or ()] == [(None, shut)]
    bench.stop("other")
    assert bench.manager.level(bench.place("moved/a.md")) == LevelDecision(Permission.READ_WRITE)


def test_the_manager_says_what_is_protected_by_any_way_to_it(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "way").symlink_to(bench.folder)
    (bench.folder / "copy.md").hardlink_to(bench.folder / "policy.toml")
    protected = ["policy.toml", ".gatewright/new", "x/../policy.toml", "copy.md"]
    assert [path for path in protected if not bench.manager.protects(bench.folder / path)] == []
    assert bench.manager.protects(tmp_path / "way" / "policy.toml")
    assert not bench.manager.protects(bench.folder / "policy.toml.md")
    assert not bench.manager.protects(bench.folder)


async def test_a_level_of_none_holds_without_the_gate(bench: Bench) -> None:
    bench.update(source_of(rules=(("*.key", Permission.NONE),)))
    bench.write("a.key", "x")
    with pytest.raises(ToolFailure) as caught:
        await bench.manager.read(bench.at("a.key"))
    assert caught.value.code == "not-available"


async def test_a_place_that_is_not_canonical_is_refused(bench: Bench) -> None:
    for relative in ("a//b", "./a", "../a", "/etc/passwd", "a/../..", ""):
        with pytest.raises(ToolFailure):
            await bench.manager.read(bench.place(relative))


def test_messages_to_the_model_name_no_operation() -> None:
    """A hidden operation may not be named; the words for a conflict are given, the gate puts others in their place."""
    names = re.compile(
        "read|load|save|create|delete|append|insert|replace|patch|list|status|diff|reload", re.IGNORECASE
    )
    texts: list[str] = []
    for module in Path(gatewright.sources.__file__).parent.glob("*.py"):
        texts += re.findall(r'ToolFailure\(\s*f?"([^"]*)"', module.read_text("utf-8"))
    assert len(texts) > 20
    assert [text for text in texts if names.search(text)] == []
