"""Closed names stay closed in rooms while the host goes on with its files."""

import json
import os
import random
import shutil
import subprocess
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gatewright.base.errors import ToolFailure
from gatewright.policy.document import PermissionRule
from gatewright.policy.target import Confinement, Place, PlaceUse, Tree
from gatewright.policy.verdict import Permission
from gatewright.sources import roomwatch
from gatewright.sources.roomplan import Mount, MountKind, RoomPlan, RoomPlanner
from tests.support import bubblewrap, roomtrees

pytestmark = pytest.mark.skipif(bool(bubblewrap.why_not()), reason=bubblewrap.why_not())
NONE, READ, WRITE = Permission.NONE, Permission.READ_ONLY, Permission.READ_WRITE


class Heard:
    """A listener that notes what it is told."""

    def __init__(self) -> None:
        self.mounts: list[Mount] = []
        self.anew = 0
        self.failures: list[str] = []

    def hide(self, mounts: tuple[Mount, ...], *, anew: bool) -> None:
        self.mounts += mounts
        self.anew += anew

    def fail(self, why: str) -> None:
        self.failures.append(why)

    def overlays(self) -> list[str]:
        """The overlays whose names are others than before."""
        return [mount.path for mount in self.mounts if mount.kind is MountKind.OVERLAY]

    def take(self) -> set[tuple[str, str]]:
        """The kinds and names of the mounts since the last time."""
        found = {(mount.kind.value, Path(mount.path).name) for mount in self.mounts}
        self.mounts.clear()
        return found


def confined(top: Path, use: PlaceUse, default: Permission, **rules: Permission) -> Confinement:
    levels = tuple(PermissionRule(pattern, level) for pattern, level in rules.items())
    return Confinement((Place(str(top), use),), (Tree(str(top), default, levels),))


def save(path: Path, text: str) -> None:
    """Save as editors do: beside it, then over it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f"{path.name}.new")
    beside.write_text(text)
    beside.replace(path)


@contextmanager
def running(plan: RoomPlan) -> Generator["Inside"]:
    """A shell that stays in a room."""
    told, tells = os.pipe()
    process = subprocess.Popen(
        bubblewrap.command(plan, ["/bin/sh"], "--info-fd", str(tells)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        pass_fds=(tells,),
    )
    os.close(tells)
    try:
        with os.fdopen(told) as stream:
            yield Inside(process, json.load(stream)["child-pid"])
    finally:
        process.communicate()


class Inside:
    """The shell; it says what a script says."""

    def __init__(self, process: subprocess.Popen[bytes], pid: int) -> None:
        self._process, self.pid = process, pid

    def say(self, script: str) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{script}\necho; echo the end\n".encode())
        self._process.stdin.flush()
        return b"".join(iter(self._process.stdout.readline, b"the end\n")).decode("utf-8", "replace")


def test_the_host_saves_files_while_a_process_runs(top: Path, planner: RoomPlanner) -> None:
    save(top / "open.txt", "old")
    save(top / "sub/x.key", "secret one")
    confinement, heard = confined(top, PlaceUse.READ, READ, **{"*.key": NONE}), Heard()
    plan = planner.plan(confinement)
    watch = planner.watch(confinement, plan, heard)
    with running(plan) as inside:
        assert "old" in inside.say(f"cat {top}/open.txt; cat {top}/sub/x.key")
        save(top / "open.txt", "new")
        save(top / "sub/x.key", "secret two")
        save(top / "sub/y.key", "secret three")
        save(top / "fresh/deep/z.key", "secret four")
        save(top / "fresh/deep/z.txt", "open")
        watch.check()
        bubblewrap.mount_again(inside.pid, *heard.overlays())
        said = inside.say(f"cat {top}/open.txt; cat {top}/sub/*.key {top}/fresh/deep/*; ls -R {top}")
        assert "new" in said
        assert "open" in said
        assert "secret" not in said
        assert ".key\n" not in said
        assert heard.anew
    watch.close()
    assert not heard.failures


def test_names_of_a_new_folder_are_hidden_whenever_they_come(top: Path, planner: RoomPlanner) -> None:
    confinement, heard = confined(top, PlaceUse.READ, READ, **{"*.key": NONE}), Heard()
    plan = planner.plan(confinement)
    watch = planner.watch(confinement, plan, heard)
    for number in range(200):
        folder = top / f"a{number}/b"
        folder.mkdir(parents=True)
        (folder / "x.key").write_text("secret")
        (folder / "y.txt").write_text("open")
        if number % 3 == 0:
            folder.parent.rename(top / f"moved{number}")
            (top / f"moved{number}/b/late.key").write_text("secret")
    watch.check()
    assert not [
        path for path, view in bubblewrap.seen(plan, str(top)).items() if path.endswith(".key") or view == "hidden"
    ]
    assert len(bubblewrap.seen(plan, str(top))) == 1 + 3 * 200
    watch.close()


def test_a_folder_that_goes_and_comes_shows_as_it_is(top: Path, planner: RoomPlanner) -> None:
    save(top / "build/private.txt", "secret")
    save(top / "build/x.key", "secret")
    save(top / "build/open.txt", "open")
    save(top / "other/deep/x.key", "secret")
    confinement, heard = confined(top, PlaceUse.READ, READ, **{"/build/private.txt": NONE, "*.key": NONE}), Heard()
    plan = planner.plan(confinement)
    watch = planner.watch(confinement, plan, heard)
    for _ in range(2):
        (top / "build").rename(top.with_name("away"))
        (top / "other/deep").rename(top / "other/moved")
        watch.check()
        assert set(bubblewrap.seen(plan, str(top))) == {str(top), f"{top}/other", f"{top}/other/moved"}
        top.with_name("away").rename(top / "build")
        (top / "other/moved").rename(top / "other/deep")
        watch.check()
        folders = {str(top), f"{top}/other", f"{top}/other/deep", f"{top}/build"}
        assert set(bubblewrap.seen(plan, str(top))) == {*folders, f"{top}/build/open.txt"}
    watch.close()
    assert not heard.failures


def test_a_writable_folder_has_what_appears_covered(top: Path, planner: RoomPlanner) -> None:
    save(top / "x.key", "secret")
    confinement, heard = confined(top, PlaceUse.WRITE, WRITE, **{"*.key": NONE, "*.md": READ, "ro/": READ}), Heard()
    plan = planner.plan(confinement)
    watch = planner.watch(confinement, plan, heard)
    watch.check()
    assert heard.take() == set()
    (top / "x.key").write_text("changed in place")
    watch.check()
    assert heard.take() == set()
    save(top / "x.key", "replaced")
    save(top / "new/y.key", "secret")
    save(top / "new/z.md", "read")
    save(top / "ro/a.txt", "read")
    os.mkfifo(top / "pipe")
    watch.check()
    assert heard.take() >= {("hide_file", "x.key"), ("hide_file", "y.key"), ("read", "z.md"), ("hide_file", "pipe")}
    (top / "new/y.key").unlink()
    watch.check()
    late = watch.plan
    assert f"{top}/new/y.key" not in {mount.path for mount in late.mounts}
    found = bubblewrap.seen(late, str(top))
    assert (found[f"{top}/x.key"], found[f"{top}/new/z.md"], found[f"{top}/ro/a.txt"]) == ("hidden", "read", "read")
    watch.close()
    assert not (top / "new/y.key").exists()


def test_a_folder_that_came_to_be_read_later_has_what_appears_covered(top: Path, planner: RoomPlanner) -> None:
    save(top / "closed/s.txt", "secret")
    rules = {"*.key": NONE, "open.txt": READ, "closed/": NONE, "ro/": READ}
    for use, default in ((PlaceUse.WRITE, WRITE), (PlaceUse.READ, NONE)):
        confinement, heard = confined(top, use, default, **rules), Heard()
        watch = planner.watch(confinement, planner.plan(confinement), heard)
        save(top / "ro/a.txt", "read")
        save(top / "closed/open.txt", "read")
        watch.check()
        for name in ("ro/x.key", "ro/deep/y.key", "closed/t.txt", "closed/deep/u.txt"):
            save(top / name, "secret")
            watch.check()
            save(top / name, "secret again")
        (top / "ro/link.key").symlink_to("a.txt")
        watch.check()
        found = bubblewrap.seen(watch.plan, str(top))
        shown = {path[len(str(top)) + 1 :] for path, view in found.items() if view in {"read", "write"}}
        assert shown <= {"ro/a.txt", "closed/open.txt"}
        watch.close()
        for name in ("ro", "closed/deep"):
            shutil.rmtree(top / name)
        (top / "closed/t.txt").unlink()


def test_a_closed_file_that_gets_another_name_is_closed_there_too(top: Path, planner: RoomPlanner) -> None:
    save(top / "secret/s.txt", "secret")
    (top / "open").mkdir()
    confinement, heard = confined(top, PlaceUse.READ, READ, **{"/secret/": NONE, "*.key": NONE}), Heard()
    plan = planner.plan(confinement)
    watch = planner.watch(confinement, plan, heard)
    os.link(top / "secret/s.txt", top / "open/hard.txt")
    watch.check()
    assert f"{top}/open/hard.txt" not in bubblewrap.seen(plan, str(top))
    watch.close()
    confinement = confined(top, PlaceUse.WRITE, WRITE, **{"/secret/": NONE})
    (top / "open/hard.txt").unlink()
    watch = planner.watch(confinement, planner.plan(confinement), heard)
    os.link(top / "secret/s.txt", top / "open/hard.txt")
    with pytest.raises(ToolFailure):
        watch.check()
    watch.close()
    assert len(heard.failures) == 1


def test_what_the_kernel_did_not_tell_is_found_by_walking_again(
    top: Path, planner: RoomPlanner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(roomwatch, "MANY_EVENTS", 10)
    confinement, heard = confined(top, PlaceUse.READ, READ, **{"*.key": NONE}), Heard()
    plan = planner.plan(confinement)
    watch = planner.watch(confinement, plan, heard)
    for number in range(3_000):
        (top / f"{number}.{'key' if number % 10 else 'txt'}").touch()
    watch.check()
    (top / "after.key").touch()
    watch.check()
    assert len(bubblewrap.seen(plan, str(top))) == 301
    watch.close()


def test_a_watcher_that_wakes_by_itself_while_it_is_closed_frees_nothing_too_early(
    top: Path, planner: RoomPlanner, monkeypatch: pytest.MonkeyPatch
) -> None:
    confinement, heard, write = confined(top, PlaceUse.WRITE, WRITE), Heard(), os.write
    watch = planner.watch(confinement, planner.plan(confinement), heard)
    watch.check()

    def write_late(descriptor: int, data: bytes) -> int:
        if data == b".":  # the watcher is told to end, and a file wakes it before
            save(top / "new.txt", "x")
            time.sleep(0.1)
        return write(descriptor, data)

    monkeypatch.setattr(os, "write", write_late)
    watch.close()
    watch.close()
    assert heard.failures == []


def test_a_slow_or_dead_watcher_closes(top: Path, planner: RoomPlanner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(roomwatch, "BEHIND_S", 0.05)
    confinement = confined(top, PlaceUse.READ, READ, **{"*.key": NONE})
    may_go_on = threading.Event()

    class Slow(Heard):
        def hide(self, mounts: tuple[Mount, ...], *, anew: bool) -> None:
            may_go_on.wait()

    watch = planner.watch(confinement, planner.plan(confinement), Slow())
    (top / "x.key").touch()
    with pytest.raises(ToolFailure) as refused:
        watch.check()
    assert refused.value.code == "not-confined"
    may_go_on.set()
    watch.close()
    with pytest.raises(ToolFailure):
        watch.check()

    class Broken(Heard):
        def hide(self, mounts: tuple[Mount, ...], *, anew: bool) -> None:
            raise OSError("no")

    monkeypatch.setattr(roomwatch, "BEHIND_S", 60.0)
    broken = Broken()
    watch = planner.watch(confinement, planner.plan(confinement), broken)
    (top / "y.key").touch()
    with pytest.raises(ToolFailure):
        watch.check()
    assert broken.failures
    watch.close()


def test_another_folder_in_the_place_of_one_closes(top: Path, planner: RoomPlanner) -> None:
    confinement = confined(top, PlaceUse.READ, READ, **{"*.key": NONE})
    watch = planner.watch(confinement, planner.plan(confinement), Heard())
    watch.check()
    top.rename(top.with_name("away"))
    top.mkdir()
    with pytest.raises(ToolFailure, match="another folder"):
        watch.check()
    watch.close()


def test_nothing_is_left_of_rooms_that_ended_or_were_killed(
    top: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    home = tmp_path / "gatewright-rooms"
    (top / "x.key").touch()
    confinement, cache = confined(top, PlaceUse.READ, READ, **{"*.key": NONE}), tmp_path / "cache"
    planner = RoomPlanner(cache)
    plans = [planner.plan(confinement) for _ in range(3)]
    assert len({plan.mounts[0].whiteouts for plan in plans}) == 1
    watches = [planner.watch(confinement, plan, Heard()) for plan in plans]
    for watch in watches:
        assert Path(plans[0].mounts[0].whiteouts, "x.key").is_char_device()
        watch.close()
    assert not Path(plans[0].mounts[0].whiteouts).exists()
    run, *others = home.glob("run-*")
    assert not others
    (left := home / "run-left").mkdir()
    (left / "x").touch()
    RoomPlanner(cache).plan(confinement)
    assert not left.exists()
    assert run.exists()


def test_a_name_that_came_between_plan_and_watch_is_hidden(top: Path, planner: RoomPlanner) -> None:
    confinement, heard = confined(top, PlaceUse.READ, READ, **{"*.key": NONE}), Heard()
    plan = planner.plan(confinement)
    (top / "x.key").touch()
    watch = planner.watch(confinement, plan, heard)
    assert bubblewrap.seen(watch.plan, str(top)) == {str(top): "folder"}
    assert (heard.mounts, heard.anew) == ([], 0)
    assert watch.plan.mounts[0].kind is MountKind.OVERLAY
    watch.close()


@pytest.mark.parametrize("seed", range(40))
def test_whatever_is_done_to_the_files_no_more_is_seen_than_may_be(seed: int, top: Path, planner: RoomPlanner) -> None:
    dice = random.Random(seed)
    list(roomtrees.grow(dice, top, 3))
    confinement, heard = roomtrees.confine(dice, top, roomtrees.USES), Heard()
    watch = planner.watch(confinement, planner.plan(confinement), heard)
    for _ in range(6):
        for _ in range(dice.randint(1, 12)):
            roomtrees.change(dice, top)
        try:
            watch.check()
        except ToolFailure:  # a place is another folder now
            watch.close()
            watch = planner.watch(confinement, planner.plan(confinement), heard)
        plan = watch.plan
        found = bubblewrap.seen(plan, str(top))
        covers = {mount.path for mount in plan.mounts if mount.kind in {MountKind.HIDE_FILE, MountKind.HIDE_FOLDER}}
        assert roomtrees.excess(confinement, top, found, covers) == []
    assert not heard.failures
    assert roomtrees.lack(confinement, top, bubblewrap.seen(planner.plan(confinement), str(top))) == []
    watch.close()
