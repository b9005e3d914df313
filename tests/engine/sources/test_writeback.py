"""The changes that a process made in a private copy: what of them is written back, and where the rest stays."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gatewright.base.errors import NobodyAnswered, ToolFailure
from gatewright.policy.document import PermissionRule, PlaceUse
from gatewright.policy.target import Confinement, Place, Tree
from gatewright.policy.verdict import Action, Permission, Verdict, verdict_for
from gatewright.sources import writeback
from gatewright.sources.roomcopy import remove_tree
from gatewright.sources.roomplan import RoomPlanner
from gatewright.sources.writeback import Change, GivenBack, WriteBack
from tests.support import bubblewrap, roomtrees

pytestmark = pytest.mark.skipif(bool(bubblewrap.why_not()), reason=bubblewrap.why_not())

RULES = (
    PermissionRule("secret/**", Permission.NONE),
    PermissionRule("*.key", Permission.NONE),
    PermissionRule("read/**", Permission.READ_ONLY),
    PermissionRule("log/**", Permission.APPEND),
    PermissionRule("ask/**", Permission.PARTNER),
    PermissionRule("mine/**", Permission.ADMIN),
)
FOLDERS = ("secret", "read", "log", "ask", "mine", "plain")


class Asking:
    """Somebody who is there and answers as ``answer`` does; ``work`` is what would go on while nobody waits."""

    def __init__(self, answer: Callable[[Change], object]) -> None:
        self._answer = answer
        self.work: Coroutine[None, None, None] | None = None

    async def is_attended(self) -> bool:
        return True

    async def __call__(self, change: Change, /) -> str:
        if not self._answer(change):
            raise ToolFailure("its level asks, and dana refused it")
        return "dana"

    def begin(self, work: Coroutine[None, None, None], /) -> None:
        self.work = work


class Bench:
    """A place with a file for each level, and a copy of it as a process gets it."""

    def __init__(self, folder: Path, *, closed: Sequence[str] = (), fixed: Sequence[str] = ()) -> None:
        folder = folder.resolve()
        self.place, self.kept = folder / "place", folder / "state" / "kept"
        for name in FOLDERS:
            (self.place / name).mkdir(parents=True)
            (self.place / name / "file").write_text(f"old {name}\n")
        (self.place / "a.key").write_text("key")
        self.prepare()
        self.held = Confinement(
            (Place(str(self.place), PlaceUse.SNAPSHOT),),
            (Tree(str(self.place), Permission.READ_WRITE, RULES),),
            tuple(f"{self.place}/{one}" for one in closed),
            tuple(f"{self.place}/{one}" for one in fixed),
        )
        self.now: tuple[Confinement, ...] = (self.held,)
        self.planner = RoomPlanner(folder / "state" / "rooms")
        self.plan = self.planner.plan(self.held)
        self.watch = self.planner.watch(self.held, self.plan, roomtrees.Nobody())
        self.copy = next(Path(one.origin) for one in self.plan.mounts if one.path == str(self.place))
        self.words: tuple[list[str], dict[str, str]] = [], {}

    def prepare(self) -> None:
        """Whatever a test wants to stand there before."""

    def files(self) -> dict[str, str]:
        """The files that stand in the place now."""
        return {str(one.relative_to(self.place)): one.read_text() for one in self.place.rglob("*") if one.is_file()}

    async def back(self, ask: Callable[[Change], object] | None = None) -> GivenBack:
        """The outcome of the changes at once; the copy is gone then. `words` has what became of them in the end."""
        told, asker = list[GivenBack](), None if ask is None else Asking(ask)
        write_back = WriteBack(self.held, self.kept, asker, told=told.append, now=lambda: self.now)
        found = await write_back.give_back(self.plan, lambda: self.planner.differences(self.plan))
        self.watch.close()
        assert not self.copy.exists()
        if asker is not None and asker.work is not None:
            kept = {one.change.path for one in found.kept if one.why == "its level asks, and somebody is asked"}
            await asker.work
            later = told[-1]
            assert {one.path for one in later.written} | {one.change.path for one in later.kept} == kept
            assert bool(later.folder) == Path(found.folder or "/none").exists()
        for one in told:
            json.dumps(one.to_json()).encode()
        written = [self.relative(one.path) for each in told for one in each.written]
        why = {self.relative(one.change.path): one.why for each in told for one in each.kept}
        self.words = sorted(written), {path: one for path, one in why.items() if path not in written}
        return found

    def relative(self, path: str) -> str:
        return path.removeprefix(f"{self.place}/")


async def words(bench: Bench, ask: Callable[[Change], object] | None = None) -> tuple[list[str], dict[str, str]]:
    """The paths that were written, and those that were kept back with why."""
    await bench.back(ask)
    return bench.words


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


async def test_nothing_changed_is_nothing_written(bench: Bench) -> None:
    before = bench.files()
    os.utime(bench.copy / "read/file")
    assert await bench.back() == GivenBack()
    assert bench.files() == before
    assert not bench.kept.exists()


@pytest.mark.parametrize("agrees", [None, True, False])
@pytest.mark.parametrize("action", [Action.APPEND, Action.OVERWRITE, Action.DELETE])
async def test_each_change_is_judged_by_the_table_of_levels(bench: Bench, action: Action, agrees: bool | None) -> None:
    levels = dict(zip(FOLDERS[1:], (*(rule.permission for rule in RULES[2:]), Permission.READ_WRITE), strict=True))
    asked: list[Change] = []
    for name in levels:
        file = bench.copy / name / "file"
        match action:
            case Action.APPEND:
                file.write_text(f"old {name}\nmore\n")
                (file.parent / "new").write_text("new")
            case Action.OVERWRITE:
                file.write_text("other\n")
            case _:
                file.unlink()
    found = await bench.back(None if agrees is None else lambda change: (asked.append(change), agrees)[1])
    written, kept = bench.words
    now = bench.files()
    for name, level in levels.items():
        verdict = verdict_for(level, action)
        is_written = verdict is Verdict.ALLOW or (verdict is Verdict.ASK and agrees is True)
        assert (f"{name}/file" in written, f"{name}/file" in kept) == (is_written, not is_written), (name, kept)
        wanted = {Action.APPEND: f"old {name}\nmore\n", Action.OVERWRITE: "other\n"}.get(action)
        assert now.get(f"{name}/file") == (wanted if is_written else f"old {name}\n")
        assert (f"{name}/new" in now) == (is_written and action is Action.APPEND)
    if agrees is not None:
        assert {bench.relative(one.path).split("/")[0] for one in asked} >= {"ask"}
        assert all(one.diff for one in asked)
    if agrees:
        assert set(kept.values()) <= {"its level does not let it be done"}
    if kept and action is not Action.DELETE:
        left = Path(found.folder, str(bench.place)[1:])
        assert {str(one.relative_to(left)) for one in left.rglob("*") if one.is_file()} == set(kept)


async def test_nobody_answering_keeps_it_back(bench: Bench) -> None:
    asked: list[Change] = []
    for name in ("a", "b", "file"):
        (bench.copy / "ask" / name).write_text("x")

    def ask(change: Change) -> bool:
        asked.append(change)
        raise NobodyAnswered

    files = ("ask/a", "ask/b", "ask/file")
    assert await words(bench, ask) == ([], dict.fromkeys(files, "its level asks, and nobody answered"))
    assert len(asked) == 1


async def test_what_somebody_agrees_to_later_leaves_the_kept_files(bench: Bench) -> None:
    (bench.copy / "ask/file").write_text("x")
    (bench.copy / "ask/deep").mkdir()
    (bench.copy / "ask/deep/new").write_text("y")
    found = await bench.back(lambda _: True)
    assert bench.words == (["ask/deep/new", "ask/file"], {})
    assert (bench.files()["ask/file"], bench.files()["ask/deep/new"]) == ("x", "y")
    assert found.folder
    assert list(bench.kept.iterdir()) == []


async def test_nobody_is_asked_about_what_could_not_be_written(bench: Bench) -> None:
    for name in ("file", "new"):
        (bench.copy / "ask" / name).write_text("mine")
        (bench.place / "ask" / name).write_text("theirs")
    asked: list[Change] = []
    written, kept = await words(bench, lambda change: asked.append(change) or True)
    assert (written, asked) == ([], [])
    assert kept == dict.fromkeys(("ask/file", "ask/new"), "somebody else changed it meanwhile")


@pytest.mark.parametrize("moment", ["before", "asked"])
@pytest.mark.parametrize("how", ["level", "fixed", "closed", "place", "all"])
async def test_an_answer_outlives_no_level_and_no_place(bench: Bench, moment: str, how: str) -> None:
    held = bench.held
    narrow = {
        "level": (held, replace(held, trees=(Tree(str(bench.place), Permission.READ_ONLY),))),
        "fixed": (replace(held, fixed=(str(bench.place),)),),
        "closed": (replace(held, closed=(str(bench.place),)), held),
        "place": (held, replace(held, places=(Place(str(bench.place), PlaceUse.READ),))),
        "all": (),
    }[how]
    before = bench.files()
    for name in ("ask/file", "ask/new", "mine/file") if moment == "before" else ("ask/file", "ask/new"):
        (bench.copy / name).write_text("x")

    def ask(_: Change) -> bool:
        bench.now = narrow
        return True

    if moment == "before":
        bench.now = narrow
    written, kept = await words(bench, ask)
    assert written == []
    assert set(kept.values()) == {"its level does not let it be done"}
    assert {name: text for name, text in bench.files().items() if name in before} == before
    assert "ask/new" not in bench.files()


async def test_what_may_not_be_seen_is_neither_written_nor_told_apart(bench: Bench) -> None:
    before = bench.files()
    for name in ("a.key", "b.key", "secret/file", "secret/new"):
        (bench.copy / name).parent.mkdir(exist_ok=True)
        (bench.copy / name).write_text("mine")
    written, kept = await words(bench, lambda _: True)
    assert written == []
    assert set(kept.values()) == {"its level does not let it be done"}
    assert len(kept) == 4
    assert bench.files() == before


async def test_closed_and_fixed_files_stay_whatever_their_level(tmp_path: Path) -> None:
    bench = Bench(tmp_path, closed=("mine/closed",), fixed=("mine/file", "plain"))
    before = bench.files()
    (bench.copy / "mine/closed").mkdir()
    for name in ("mine/closed/x", "mine/file", "plain/file", "plain/new"):
        (bench.copy / name).write_text("mine")
    written, kept = await words(bench, lambda _: True)
    assert (written, len(kept)) == ([], 4)
    assert bench.files() == before


async def test_what_somebody_else_changed_meanwhile_stays_theirs(bench: Bench) -> None:
    for name in ("file", "gone", "new"):
        if name != "new":
            (bench.copy / "mine" / name).write_text("mine")
    (bench.copy / "mine/new").write_text("mine")
    (bench.place / "mine/file").write_text("theirs")
    (bench.place / "mine/new").write_text("theirs")
    (bench.copy / "plain/file").write_text("mine")
    (bench.place / "plain/file").rename(bench.place / "plain/moved")
    written, kept = await words(bench, lambda _: True)
    assert written == ["mine/gone"]
    assert kept == dict.fromkeys(("mine/file", "mine/new", "plain/file"), "somebody else changed it meanwhile")
    assert bench.files()["mine/file"] == bench.files()["mine/new"] == "theirs"


async def test_links_and_other_things_are_kept_back_and_lead_nowhere(tmp_path: Path) -> None:
    class Linked(Bench):
        def prepare(self) -> None:
            (self.place / "mine/in").symlink_to("file")
            (self.place / "mine/out").symlink_to(tmp_path / "outside")
            (self.place / "mine/twice").write_text("twice")
            (tmp_path / "second").hardlink_to(self.place / "mine/twice")

    (tmp_path / "outside").write_text("outside")
    bench = Linked(tmp_path)
    assert (bench.copy / "mine/in").readlink() == Path("file")
    (bench.copy / "mine/file").unlink()
    (bench.copy / "mine/file").symlink_to(tmp_path / "outside")
    (bench.copy / "plain/file").unlink()
    os.mkfifo(bench.copy / "plain/file")
    (bench.copy / "log/second").hardlink_to(bench.copy / "log/file")
    (bench.copy / "mine/twice").write_text("over")
    (bench.copy / "read").rename(bench.copy / "moved")
    (bench.copy / "read").symlink_to(tmp_path)
    written, kept = await words(bench, lambda _: True)
    assert written == ["moved/file"]
    assert {"mine/file", "plain/file", "log/file", "log/second", "mine/twice", "read", "read/file"} == set(kept)
    assert (tmp_path / "outside").read_text() == "outside"
    assert (tmp_path / "second").read_text() == "twice"


async def test_folder_that_became_a_link_meanwhile_is_not_written_through(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (bench.place / "mine").rename(bench.place / "was")
    (bench.place / "mine").symlink_to(tmp_path / "elsewhere")
    (bench.copy / "mine/file").write_text("mine")
    (bench.copy / "mine/new").write_text("mine")
    written, kept = await words(bench, lambda _: True)
    assert (written, len(kept)) == ([], 2)
    assert list((tmp_path / "elsewhere").iterdir()) == []


async def test_copy_that_grew_out_of_all_bounds_is_kept_whole(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    before = bench.files()
    monkeypatch.setattr(writeback, "MAX_CHANGES", 5)
    for number in range(6):
        (bench.copy / f"mine/{number}").write_text("x")
    found = await bench.back()
    assert "more than 5 files" in found.unread
    assert Path(found.folder, str(bench.place)[1:], "mine/5").read_text() == "x"
    assert bench.files() == before


async def test_folders_without_end_and_closed_ones_are_cleared_away(bench: Bench) -> None:
    script = "for i in $(seq 3000); do mkdir d && cd d; done"
    subprocess.run(["sh", "-c", script], cwd=bench.copy / "mine", check=False, stderr=subprocess.DEVNULL)
    (bench.copy / "plain").chmod(0)
    found = await bench.back()
    assert "nested too deeply" in found.unread
    assert Path(found.folder).is_dir()
    remove_tree(found.folder)


async def test_large_files_are_kept_back(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writeback, "MAX_FILE_BYTES", 100)
    (bench.copy / "mine/file").write_text("x" * 101)
    with (bench.copy / "mine/huge").open("wb") as file:
        file.truncate(1 << 40)
    written, kept = await words(bench)
    assert (written, set(kept)) == ([], {"mine/file", "mine/huge"})


async def test_few_folders_are_kept_and_the_oldest_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writeback, "MAX_KEPT", 2)
    folders: list[str] = []
    for number in range(4):
        (tmp_path / f"{number}").mkdir()
        bench = Bench(tmp_path / f"{number}")
        bench.kept = tmp_path / "kept"
        (bench.copy / "read/file").write_text(f"{number}")
        folders.append((await bench.back()).folder)
    assert [Path(one).exists() for one in folders] == [False, False, True, True]
    assert (next(Path(folders[3]).rglob("read/file"))).read_text() == "3"


names = st.sampled_from([f"{folder}/{name}" for folder in FOLDERS for name in ("file", "new", "x.key")])
deeds = st.lists(st.tuples(names, st.sampled_from(["add", "over", "gone"]), st.booleans()), max_size=8)


@settings(max_examples=40)
@given(deeds=deeds)
async def test_whatever_a_process_and_the_host_do_no_level_is_passed(deeds: list[tuple[str, str, bool]]) -> None:
    with TemporaryDirectory() as folder:
        bench = Bench(Path(folder).resolve())
        theirs: dict[str, str | None] = {}
        for number, (name, deed, is_host) in enumerate(deeds):
            file = (bench.place if is_host else bench.copy) / name
            file.parent.mkdir(exist_ok=True)
            if deed == "gone":
                file.unlink(missing_ok=True)
            else:
                with file.open("a" if deed == "add" else "w") as opened:
                    opened.write(f"{number} {'host' if is_host else 'process'}\n")
            if is_host:
                theirs[name] = file.read_text() if file.exists() else None
        before = bench.files()
        await bench.back()
        after = bench.files()
        for name in {*before, *after}:
            if name in theirs or name.startswith(("secret/", "read/", "ask/")) or name.endswith(".key"):
                assert after.get(name) == before.get(name), name
            elif name.startswith("log/") and name in before:
                assert after[name].startswith(before[name]), name
            elif name.startswith("plain/"):
                assert name in after, name
