"""Paths on disk that any tool may be given: what they resolve to, and that nothing outside the roots is reached."""

import json
import os
import socket
import sys
from pathlib import Path
from typing import Any

import pytest

from gatewright.policy.target import FileTarget, Refusal
from tests.engine.sources.bench import Bench, source_of
from tests.engine.sources.test_race import ROUNDS
from tests.support.swapping_process import swapping
from tests.support.unixsocket import bind_at

SECRET = "TOP SECRET"


@pytest.fixture
def maze(bench: Bench, tmp_path: Path) -> Bench:
    """The workspace's folder ``work`` beside the source's base, with links and hard links that lead outside."""
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/passwd").write_text(SECRET)
    (tmp_path / "passwd").write_text(SECRET)
    work = tmp_path / "work"
    (work / "sub").mkdir(parents=True)
    (work / "a.md").write_text("fine")
    (work / "sub/b.md").write_text("fine")
    (work / "inner").symlink_to("sub")
    (work / "to-source").symlink_to(bench.folder)
    (work / "loop").symlink_to("loop")
    (work / "odd").symlink_to(os.fsdecode(b"\xff"))
    for name, target in [("up", ".."), ("etc", "../etc"), ("root", "/"), ("passwd", "../passwd")]:
        (work / name).symlink_to(target)
    os.link(tmp_path / "passwd", work / "hard")
    os.mkfifo(work / "pipe")
    bench.write("a.md", "fine")
    return bench


def find(bench: Bench, path: str, *prefixes: Path, writes: bool = False) -> FileTarget | Refusal:
    work = str(bench.folder.parent / "work")
    roots = tuple(map(str, prefixes))
    return bench.manager.find_file(path, folder=work, prefixes=roots, parameter="path", writes=writes)


def code(found: FileTarget | Refusal) -> str:
    return found.code if isinstance(found, Refusal) else "found"


@pytest.mark.parametrize(
    ("path", "relative"),
    [
        ("a.md", "a.md"),
        ("./sub/../a.md", "a.md"),
        ("sub", "sub"),
        ("sub/", "sub"),
        (".", "."),
        ("inner/b.md", "sub/b.md"),
        ("inner/../a.md", "a.md"),
        ("not/there/yet", "not/there/yet"),
    ],
)
def test_path_in_the_folder_is_resolved_and_relative_to_it(maze: Bench, path: str, relative: str) -> None:
    found = find(maze, path)
    assert isinstance(found, FileTarget), found
    work = maze.folder.parent / "work"
    assert (found.relative, found.source_id) == (relative, None)
    assert found.absolute == str(work if relative == "." else work / relative)
    again = find(maze, found.absolute)
    assert again == found


def test_path_below_a_base_belongs_to_the_source(maze: Bench) -> None:
    for path in (str(maze.folder / "a.md"), "../base/a.md", "to-source/a.md"):
        found = find(maze, path)
        assert isinstance(found, FileTarget), found
        assert (found.source_id, found.relative) == ("docs", "a.md")
        assert found.place is not None
        assert found.place.absolute == str(maze.folder / "a.md")


def test_the_innermost_source_holds_the_path(maze: Bench) -> None:
    (maze.folder / "inner").mkdir()
    maze.start(source_of("inner"), maze.folder / "inner")
    found = find(maze, str(maze.folder / "inner/x"))
    assert isinstance(found, FileTarget)
    assert (found.source_id, found.relative) == ("inner", "x")


def test_granted_prefix_opens_what_lies_below_it_alone(maze: Bench, tmp_path: Path) -> None:
    assert code(find(maze, str(tmp_path / "etc/passwd"))) == "outside-roots"
    found = find(maze, str(tmp_path / "etc/passwd"), tmp_path / "etc")
    assert isinstance(found, FileTarget)
    assert found.relative == "passwd"
    assert code(find(maze, str(tmp_path / "etcetera"), tmp_path / "etc")) == "outside-roots"


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("../passwd", "hard-link"),
        ("up/etc/passwd", "outside-roots"),
        ("etc/passwd", "outside-roots"),
        ("root/etc/passwd", "outside-roots"),
        ("root", "protected"),
        ("..", "protected"),
        ("passwd", "hard-link"),
        ("hard", "hard-link"),
        ("pipe", "special-file"),
        ("/dev/null", "special-file"),
        ("loop", "symlink"),
        ("loop/x", "symlink"),
        ("a.md/x", "not-a-folder"),
        ("to-source/policy.toml", "protected"),
        ("to-source/.gatewright/new", "protected"),
        ("~/x", "path-home"),
        ("a\\b", "path-backslash"),
        ("file:///etc/passwd", "path-scheme"),
        ("a\0b", "path-control"),
        ("odd", "unresolvable"),
        ("", "path-empty"),
    ],
)
def test_path_that_leads_elsewhere_is_refused(maze: Bench, path: str, why: str) -> None:
    assert code(find(maze, path)) == why


def test_folder_that_holds_something_protected_is_refused(maze: Bench) -> None:
    why = "protected, or in the folder of a moved source: no tool reaches it"
    for path, how in ((maze.folder, "holds what is"), (maze.folder / "policy.toml", "is")):
        found = find(maze, str(path))
        assert isinstance(found, Refusal)
        assert (found.code, found.reason) == ("protected", f"`{path}` {how} {why}")


def test_protected_file_is_refused_under_any_name(maze: Bench) -> None:
    work = maze.folder.parent / "work"
    os.link(maze.folder / "policy.toml", work / "copy.toml")
    assert code(find(maze, "copy.toml")) == "protected"
    maze.stop("docs")
    assert code(find(maze, "to-source/policy.toml", maze.folder)) == "protected"


def test_refusals_that_tell_of_the_disk_have_one_wording_for_the_model(maze: Bench) -> None:
    paths = ["up/etc/passwd", "hard", "pipe", "loop", "a.md/x", "to-source/policy.toml", "/nowhere/at/all"]
    found = [find(maze, path) for path in paths]
    assert len({one.hint for one in found if isinstance(one, Refusal)}) == 1
    assert all(isinstance(one, Refusal) for one in found)


def test_relative_path_without_a_folder_is_refused(maze: Bench) -> None:
    assert code(maze.manager.find_file("a.md", folder=None)) == "no-folder"


def test_sockets_are_refused_without_opening_them(maze: Bench, tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        bind_at(listening, tmp_path / "work/sock")
        assert code(find(maze, "sock")) == "special-file"


def test_attack_payloads_never_lead_outside_the_roots(maze: Bench, tmp_path: Path, corpora: Path) -> None:
    rows: list[dict[str, Any]] = json.loads((corpora / "attack_path_traversal.json").read_text("utf-8"))
    work, escaped = tmp_path / "work", list[str]()
    for row in rows:
        for file in ("etc/passwd", "passwd", str(tmp_path / "passwd")):
            for before in ("", "up/", "inner/", "etc/", "root/"):
                payload = before + row["payload"].replace("{FILE}", file)
                found = find(maze, payload, writes=True)
                if isinstance(found, Refusal):
                    continue
                real = Path(found.absolute).resolve()
                inside = real.is_relative_to(work) or real.is_relative_to(maze.folder)
                if not inside or (real.is_file() and real.read_text() == SECRET):
                    escaped.append(payload)
    assert escaped == []
    assert len(rows) > 1000


def test_benign_paths_pass(maze: Bench, corpora: Path) -> None:
    rows: list[dict[str, Any]] = json.loads((corpora / "benign_paths.json").read_text("utf-8"))
    assert [row["payload"] for row in rows if code(find(maze, row["payload"])) != "found"] == []
    assert len(rows) > 100


@pytest.mark.skipif(sys.platform != "linux", reason="the exchange of two names is Linux's renameat2")
def test_swapped_names_never_resolve_outside(maze: Bench, tmp_path: Path) -> None:
    work = tmp_path / "work"
    (work / "twin").symlink_to(tmp_path / "etc")
    (work / "sub/passwd").write_text("fine")
    seen: set[str] = set()
    with swapping(work / "sub", work / "twin"):
        for _ in range(20 * ROUNDS):
            found = find(maze, "sub/passwd")
            seen.add(found.absolute if isinstance(found, FileTarget) else found.code)
    inside = {str(work / "sub/passwd"), str(work / "twin/passwd")}
    assert seen <= inside | {"outside-roots", "unresolvable", "symlink", "not-found", "not-a-folder"}
    assert seen & inside
