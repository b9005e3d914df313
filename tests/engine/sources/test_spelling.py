"""Names that a file system takes for the same: only the spelling on disk is taken, and it costs nothing elsewhere."""

from __future__ import annotations

import os
import unicodedata
from pathlib import Path

import pytest

from gatewright.base.errors import ToolFailure
from gatewright.policy.target import FileTarget, Refusal
from gatewright.policy.verdict import Action, Permission
from gatewright.sources import basefolder, descriptor
from gatewright.sources.basefolder import base_folder, differs_by_process
from tests.engine.sources.bench import Bench, source_of
from tests.engine.sources.folding import fold_below

COMPOSED = "caf\u00e9.md"
DECOMPOSED = unicodedata.normalize("NFD", COMPOSED)


@pytest.fixture
def folding(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """A source over a folder that folds; ``key.md`` is closed."""
    for name in ("Open.md", "Docs/inner.md", COMPOSED, "123", "Docs/key.md"):
        bench.write(name, "one\n")
    fold_below(bench.folder, monkeypatch)
    bench.update(source_of(rules=(("key.md", Permission.NONE), ("policy.toml", Permission.ADMIN))))
    return bench


@pytest.mark.parametrize("path", ["Open.md", "Docs/inner.md", COMPOSED, "123", "Docs", "new.md", "New/deep/er.md"])
async def test_the_spelling_on_disk_and_new_names_are_taken(folding: Bench, path: str) -> None:
    assert folding.at(path).relative == path


@pytest.mark.parametrize(
    "path",
    ["open.md", "OPEN.MD", "docs/inner.md", "Docs/Inner.md", "docs", DECOMPOSED, "Docs/KEY.md", "docs/new.md"],
)
async def test_another_spelling_of_what_is_there_is_refused_before_any_level_is_asked(
    folding: Bench, path: str
) -> None:
    refusal = folding.refused(path)
    assert refusal.code == "other-spelling"
    assert "Docs" not in refusal.hint
    assert "key.md" not in refusal.hint


@pytest.mark.parametrize("path", ["Docs/KEY.md", "docs/key.md", "POLICY.toml", ".GateWright/audit"])
async def test_no_operation_takes_another_spelling_that_did_not_pass_the_check(folding: Bench, path: str) -> None:
    manager, at = folding.manager, folding.place(path)
    for work in (
        manager.read(at),
        manager.load(at),
        manager.append(at, "x\n", approved=True),
        manager.create(at, "x\n", approved=True),
        manager.delete(at, approved=True),
        manager.delete(at, recursive=True, asked=True, approved=True),
    ):
        with pytest.raises(ToolFailure) as refused:
            await work
        assert refused.value.code in {"other-spelling", "not-available"}
    assert (folding.folder / "Docs" / "key.md").read_text() == "one\n"
    assert (folding.folder / "policy.toml").read_text() == "secret"


async def test_a_path_of_any_tool_is_taken_in_the_spelling_on_disk_alone(folding: Bench) -> None:
    def found(path: str) -> FileTarget | Refusal:
        return folding.manager.find_file(path, folder=str(folding.folder))

    inner = FileTarget("", "Docs/inner.md", str(folding.folder / "Docs/inner.md"), False, "docs")
    assert found("Docs/inner.md") == inner
    other = found("docs/INNER.md")
    assert isinstance(other, Refusal)
    assert other.code == "other-spelling"


async def test_two_spellings_of_one_base_are_one_folder_and_the_stricter_level_holds(folding: Bench) -> None:
    folding.start(source_of("first", default=Permission.ADMIN), folding.folder / "Docs")
    folding.start(source_of("second", default=Permission.READ_ONLY), folding.folder / "dOCS")
    bases = [source.base for name in ("first", "second") if (source := folding.manager.get(name))]
    assert bases == [str(folding.folder / "Docs")] * 2
    assert folding.manager.level(folding.at("inner.md", "first")).permission is Permission.READ_ONLY


def test_another_spelling_of_a_base_names_what_is_in_it(folding: Bench) -> None:
    folding.stop("docs")
    folding.start(source_of("inner", (("key.md", Permission.NONE),)), folding.folder / "Docs")
    for text, name in (("dOCS/KEY.md", "key.md"), ("docs/new.md", "new.md"), ("DOCS", ".")):
        found = folding.manager.places_named(f"{folding.folder}/{text}", Action.READ, folders=None, contents=False)
        assert found is not None
        assert [(one.source_id, one.relative) for one in found] == [("inner", name)]


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="this system has no such paths")
def test_a_path_that_means_something_else_in_each_process_is_known_through_links_too(tmp_path: Path) -> None:
    names = {"fds": "/dev/fd", "near": "./../x/./fds/3", "own": "/proc/self", "fine": "nowhere/cwd", "n0": "target"}
    names |= {f"n{number + 1}": f"n{number}" for number in range(40)}
    (tmp_path / "x").mkdir()
    for name, target in names.items():
        (tmp_path / "x" / name).symlink_to(target)
    for path, differs in (
        ("/dev/stdin", False),
        ("/dev/stdout", False),
        ("/dev/stderr", False),
        ("/dev/./stderr", True),
        ("/dev/fd/0", True),
        ("/dev/null", False),
        ("/proc/self", False),
        ("/proc/self/status", False),
        ("/proc/self/cwd", True),
        ("/proc/self/root/etc", True),
        ("/proc/thread-self/exe", True),
        ("/proc/self/task/1/fd/7", True),
        ("/proc/self/map_files/0-1", True),
        ("/proc/self/fd", False),
        ("/proc/self/../self/fd/7", True),
        ("/proc/self/fd/../status", False),
        ("x/fds/3", True),
        ("x/near", True),
        ("x/own/cwd", True),
        ("x/fine", False),
        ("x/n39", False),
        ("x/n40", True),
    ):
        assert differs_by_process(path if path.startswith("/") else f"{tmp_path}/{path}") is differs, path


async def test_a_folder_that_tells_spellings_apart_is_asked_once_until_it_changes(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.write("a.md", "lower\n")
    bench.write("A.md", "upper\n")
    assert (await bench.manager.read(bench.at("A.md"))).content == "upper\n"
    assert (await bench.manager.read(bench.at("a.md"))).content == "lower\n"
    looked: list[str] = []
    lstat = os.lstat

    def noted(path: str) -> os.stat_result:
        looked.append(path)
        return lstat(path)

    monkeypatch.setattr(os, "lstat", noted)

    base, steps = base_folder(bench.folder), descriptor.steps_of(str(bench.folder), ("a.md",))
    looked.clear()
    descriptor.look_along(steps, base)
    assert looked == list(steps)

    before = bench.folder.stat().st_ctime_ns
    while bench.folder.stat().st_ctime_ns == before:  # times of files go on by some milliseconds at once
        os.utime(bench.folder, ns=(1, 1))
    descriptor.look_along(steps, base)
    assert looked[2:] == [*steps, str(bench.folder / "A.MD")]

    bench.write("\u00fc/a.md", "x")
    steps = descriptor.steps_of(str(bench.folder), ("\u00fc", "a.md"))
    descriptor.look_along(steps, base)
    looked.clear()
    descriptor.look_along(steps, base)
    others = [str(bench.folder / name) for name in ("\u00dc", "u\u0308")]
    assert looked == [*steps[:2], *others, steps[2]], "a name in ASCII is asked no more"


def test_what_is_remembered_of_folders_stays_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(basefolder, "_KEPT", 3)
    for number in range(9):
        (tmp_path / f"d{number}").mkdir()
        (tmp_path / f"d{number}" / "a").touch()
        descriptor.look(base_folder(tmp_path), (f"d{number}", "a"))
        assert len(basefolder.plain) <= 3
