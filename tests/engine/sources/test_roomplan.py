"""The view that a process in a room has of the files that are there: by real mounts, asked from inside."""

import json
import os
import random
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from gatewright.base.errors import ToolFailure
from gatewright.policy.document import PermissionRule
from gatewright.policy.target import Confinement, Place, PlaceUse, Tree, View
from gatewright.policy.verdict import Permission
from gatewright.sources import roomplan
from gatewright.sources.roomplan import MAX_MOUNTS, MountKind, RoomPlanner
from tests.support import bubblewrap, roomtrees
from tests.support.unixsocket import bind_at

pytestmark = pytest.mark.skipif(bool(bubblewrap.why_not()), reason=bubblewrap.why_not())
NONE, READ, WRITE = Permission.NONE, Permission.READ_ONLY, Permission.READ_WRITE


def make(top: Path, *paths: str) -> None:
    """Files that hold their own names; those ending in ``/`` are folders."""
    for path in paths:
        if path.endswith("/"):
            (top / path).mkdir(parents=True, exist_ok=True)
        else:
            (top / path).parent.mkdir(parents=True, exist_ok=True)
            (top / path).write_text(path)


def tree(top: Path, default: Permission, **rules: Permission) -> Tree:
    return Tree(str(top), default, tuple(PermissionRule(pattern, level) for pattern, level in rules.items()))


def confined(
    use: PlaceUse, *trees: Tree, top: Path, closed: tuple[str, ...] = (), fixed: tuple[str, ...] = ()
) -> Confinement:
    return Confinement((Place(str(top), use),), trees, closed, fixed)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def seen(planner: RoomPlanner, confinement: Confinement, top: Path) -> dict[str, str]:
    """The views below the folder, folders left out."""
    found = bubblewrap.seen(planner.plan(confinement), str(top))
    return {path[len(str(top)) + 1 :]: view for path, view in found.items() if view != "folder"}


def test_closed_names_are_neither_listed_nor_opened_and_may_come_later(top: Path, planner: RoomPlanner) -> None:
    make(top, "a.txt", "secret/s.txt", "b/x.key", "b/y.txt", "c/")
    rules = tree(top, READ, **{"secret/": NONE, "*.key": NONE, "c/later.txt": NONE})
    plan = planner.plan(confined(PlaceUse.READ, rules, top=top))
    make(top, "c/later.txt", "c/open.txt")
    assert bubblewrap.seen(plan, str(top)) == {
        str(top): "folder",
        f"{top}/a.txt": "read",
        f"{top}/b": "folder",
        f"{top}/b/y.txt": "read",
        f"{top}/c": "folder",
        f"{top}/c/open.txt": "read",
    }
    said = bubblewrap.shell(plan, f"cat {top}/secret/s.txt {top}/b/x.key {top}/c/later.txt; stat {top}/secret")
    assert said.count("No such file or directory") == 4


def test_a_writable_folder_covers_what_is_closed_and_keeps_it_where_it_is(top: Path, planner: RoomPlanner) -> None:
    make(top, "a.txt", "ro.txt", "deep/er/x.key", "deep/er/y.txt", "secret/s.txt")
    rules = tree(top, WRITE, **{"secret/": NONE, "*.key": NONE, "ro.txt": READ})
    plan = planner.plan(confined(PlaceUse.WRITE, rules, top=top))
    assert plan.windows == (str(top),)
    script = f"""cd {top}; echo new > a.txt; echo new > made.txt; echo new > ro.txt; cat deep/er/x.key; ls -A secret
    for one in deep deep/er secret ro.txt; do perl -e 'print rename($ARGV[0], "other") ? "moved" : "stays"' $one; done
    rm deep/er/x.key; echo $?"""
    said = bubblewrap.shell(plan, script)
    assert (top / "a.txt").read_text() == "new\n"
    assert (top / "made.txt").read_text() == "new\n"
    assert (top / "ro.txt").read_text() == "ro.txt"
    assert (top / "deep/er/x.key").read_text() == "deep/er/x.key"
    assert names(top) == ["a.txt", "deep", "made.txt", "ro.txt", "secret"]
    assert "x.key" not in said.replace(f"{top}/", "").replace("deep/er/x.key", "")
    assert said.count("stays") == 4, said
    assert said.endswith("1\n")


def test_open_folders_in_a_closed_one_are_all_that_stands_there(top: Path, planner: RoomPlanner) -> None:
    make(top, "s.txt", "docs/a.txt", "docs/private/b.txt", "src/c.txt", "notes/d.txt")
    rules = tree(top, NONE, **{"docs/private/": NONE, "docs/": READ, "src/": WRITE})
    plan = planner.plan(confined(PlaceUse.WRITE, rules, top=top))
    make(top, "t.txt", "more/u.txt")
    assert bubblewrap.seen(plan, str(top)) == {
        str(top): "folder",
        f"{top}/docs": "folder",
        f"{top}/docs/a.txt": "read",
        f"{top}/src": "folder",
        f"{top}/src/c.txt": "write",
    }


def test_the_strictest_of_several_trees_counts_and_the_innermost_place(top: Path, planner: RoomPlanner) -> None:
    make(top, "a/x.txt", "a/b/y.txt", "a/b/z.key", "c.txt", "policy.toml", "state/log", "a/b/one")
    trees = (tree(top, WRITE, **{"*.key": NONE}), tree(top / "a/b", READ, one=WRITE))
    places = (Place(str(top), PlaceUse.READ), Place(f"{top}/a", PlaceUse.WRITE))
    confinement = Confinement(places, trees, closed=(f"{top}/state",), fixed=(f"{top}/policy.toml",))
    assert seen(planner, confinement, top) == {
        "a/x.txt": "write",
        "a/b/y.txt": "read",
        "a/b/one": "write",
        "c.txt": "read",
        "policy.toml": "read",
    }


def test_what_is_protected_cannot_be_made_where_it_is_missing(top: Path, planner: RoomPlanner) -> None:
    make(top, "a.txt", "sub/b.txt")
    confinement = confined(PlaceUse.WRITE, top=top, closed=(f"{top}/state",), fixed=(f"{top}/sub/policy.toml",))
    said = bubblewrap.shell(
        planner.plan(confinement),
        f"cd {top}; mkdir state; touch sub/policy.toml; echo new > a.txt; echo new > sub/b.txt; rm -f a.txt; mv sub s",
    )
    assert names(top) == ["a.txt", "sub"], said
    assert (names(top / "sub"), (top / "sub/b.txt").read_text()) == (["b.txt"], "new\n")


def test_sockets_pipes_and_links_lead_nowhere_else(top: Path, planner: RoomPlanner, tmp_path: Path) -> None:
    make(top, "a.txt", "deep/b.txt")
    (tmp_path / "outside").write_text("outside")
    (top / "link").symlink_to(tmp_path / "outside")
    (top / "deep/l.key").symlink_to("b.txt")
    os.mkfifo(top / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        bind_at(listener, top / "deep/socket")
        for use in (PlaceUse.READ, PlaceUse.WRITE):
            rules = tree(top, WRITE, **{"*.key": NONE})
            plan = planner.plan(confined(use, rules, top=top))
            script = f"cd {top}; cat link; test -p pipe || test -S deep/socket || echo gone; ls deep"
            said = bubblewrap.shell(plan, script)
            assert "outside" not in said.replace(str(tmp_path / "outside"), "")
            assert "gone" in said
            assert "l.key" not in said


def test_a_file_closed_under_one_name_is_closed_under_all(top: Path, planner: RoomPlanner) -> None:
    make(top, "secret/s.txt", "open/a.txt", "state/key")
    os.link(top / "secret/s.txt", top / "open/hard.txt")
    os.link(top / "state/key", top / "open/key")
    rules = tree(top, READ, **{"/secret/": NONE})
    closed = (f"{top}/state",)
    assert seen(planner, confined(PlaceUse.READ, rules, top=top, closed=closed), top) == {"open/a.txt": "read"}
    only = Confinement((Place(f"{top}/open", PlaceUse.READ),), (rules,), closed=closed)
    assert seen(planner, only, top / "open") == {"a.txt": "read"}
    with pytest.raises(ToolFailure) as refused:
        planner.plan(Confinement((Place(f"{top}/open", PlaceUse.WRITE),), (tree(top, WRITE, **{"/secret/": NONE}),)))
    assert refused.value.code == "not-confined"


def test_a_file_that_is_read_under_one_name_is_written_under_none(top: Path, planner: RoomPlanner) -> None:
    make(top, "ro/s.txt", "rw/a.txt", "policy.toml")
    os.link(top / "ro/s.txt", top / "rw/hard.txt")
    os.link(top / "policy.toml", top / "rw/policy")
    rules = tree(top, READ, **{"rw/": WRITE})
    confinement = confined(PlaceUse.WRITE, rules, top=top, fixed=(f"{top}/policy.toml",))
    assert seen(planner, confinement, top) == {
        "ro/s.txt": "read",
        "rw/a.txt": "write",
        "rw/hard.txt": "read",
        "rw/policy": "read",
        "policy.toml": "read",
    }


def test_names_of_any_bytes_and_lengths(top: Path, planner: RoomPlanner) -> None:
    odd = ["n\udce9.key", "n\udce9.txt", "a\nb.key", "a\nb.txt", "sp ace.key", "sp ace.txt", "c,o:l\\on.txt"]
    odd.append("x" * 251 + ".key")
    for name in odd:
        (top / "d,e:e\\p").mkdir(exist_ok=True)
        (top / "d,e:e\\p" / name).write_text("some")
    for use, view in ((PlaceUse.READ, "read"), (PlaceUse.WRITE, "write")):
        found = seen(planner, confined(use, tree(top, WRITE, **{"*.key": NONE}), top=top), top)
        there = {path.split("/", 1)[1] for path, one in found.items() if one == view}
        assert there == {name for name in odd if not name.endswith(".key")}


def test_more_exceptions_than_can_be_mounted_are_refused(top: Path, planner: RoomPlanner) -> None:
    make(top, *(f"{number}.key" for number in range(MAX_MOUNTS + 1)))
    rules = tree(top, WRITE, **{"*.key": NONE})
    assert len(planner.plan(confined(PlaceUse.READ, rules, top=top)).mounts) == 1
    with pytest.raises(ToolFailure, match="at most 1,000") as refused:
        planner.plan(confined(PlaceUse.WRITE, rules, top=top))
    assert refused.value.code == "not-confined"


def test_rules_without_wildcards_need_no_walk(top: Path, planner: RoomPlanner) -> None:
    make(top, *(f"{number}/{inner}/f.txt" for number in range(30) for inner in range(3)), "7/1/s.txt")
    rules = tree(top, READ, **{"7/1/s.txt": NONE, "/nowhere/x": NONE})
    layout = planner.layout(confined(PlaceUse.READ, rules, top=top))
    assert set(layout.regions) == {str(top), f"{top}/7", f"{top}/7/1"}


@pytest.mark.parametrize("seed", range(60))
def test_every_path_is_seen_as_the_definition_says(seed: int, top: Path, planner: RoomPlanner) -> None:
    dice = random.Random(seed)
    paths = list(roomtrees.grow(dice, top, 4))
    confinement = roomtrees.confine(dice, top, roomtrees.USES)
    plan = planner.plan(confinement)
    found = bubblewrap.seen(plan, str(top))
    covers = {mount.path for mount in plan.mounts if mount.kind in {MountKind.HIDE_FILE, MountKind.HIDE_FOLDER}}
    assert roomtrees.excess(confinement, top, found, covers) == []
    assert roomtrees.lack(confinement, top, found) == []
    if MountKind.WRITE not in {mount.kind for mount in plan.mounts}:
        assert "hidden" not in found.values()
        for name in found:
            is_closed = roomtrees.by_definition(confinement, name, folder=True) is View.ABSENT
            new = roomtrees.by_definition(confinement, f"{name}/\x7fnew", folder=False)
            if is_closed and new is View.ABSENT and Path(name).is_dir() and not Path(name).is_symlink():
                assert any(other.startswith(f"{name}/") for other in found), name
    assert set(roomtrees.everything(top)) == set(map(str, paths))


_MOUNTED = """
import json, subprocess, sys
from pathlib import Path
from gatewright.policy.target import Confinement, Place, PlaceUse, Tree
from gatewright.policy.document import PermissionRule
from gatewright.policy.verdict import Permission
from gatewright.sources.roomplan import RoomPlanner
from tests.support import bubblewrap

top, use = Path(sys.argv[1]), PlaceUse(sys.argv[2])
work = top / "work"
for words in (
    ["--bind", top / "state", work / "alias"],
    ["--bind", top / "elsewhere", work / "bound"],
    ["--bind", top / "elsewhere/y.txt", work / "file.txt"],
    ["-t", "tmpfs", "none", work / "disk"],
    ["-t", "proc", "none", work / "processes"],
):
    subprocess.run(["mount", *map(str, words)], check=True)
(work / "disk/x.key").write_text("some")
(work / "disk/y.txt").write_text("some")
rules = (PermissionRule("*.key", Permission.NONE),)
confinement = Confinement(
    (Place(str(work), use),), (Tree(str(work), Permission.READ_WRITE, rules),), closed=(str(top / "state"),)
)
planner = RoomPlanner(top / "cache")
found = bubblewrap.seen(planner.plan(confinement), str(work))
print(json.dumps({path[len(str(work)) + 1 :]: view for path, view in found.items()}))
"""


def test_closed_names_that_others_may_make_unnoticed_are_refused(
    top: Path, planner: RoomPlanner, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(top, "x.key", "secret/s.txt", "a.txt")
    mounted = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    kinds = {line.split(" - ")[1].split()[0] for line in mounted}
    monkeypatch.setattr(roomplan, "_REMOTE", tuple(kinds))  # as if every file system were on another machine
    fixed = tree(top, READ, **{"/secret/": NONE})
    assert seen(planner, confined(PlaceUse.READ, fixed, top=top), top).keys() == {"x.key", "a.txt"}
    for use, rules in ((PlaceUse.READ, tree(top, READ, **{"*.key": NONE})), (PlaceUse.WRITE, tree(top, WRITE, x=NONE))):
        with pytest.raises(ToolFailure, match="another machine"):
            planner.plan(confined(use, rules, top=top))


@pytest.mark.parametrize(("use", "view"), [(PlaceUse.READ, "read"), (PlaceUse.WRITE, "write")])
def test_what_is_mounted_in_a_place_is_seen_by_its_rules_and_not_what_lies_below(
    top: Path, use: PlaceUse, view: str
) -> None:
    make(top, "alias/", "bound/below.txt", "file.txt", "disk/below.txt", "processes/")
    make(top.parent, "state/s.txt", "elsewhere/y.txt", "elsewhere/x.key")
    command = [
        "unshare",
        "--user",
        "--map-root-user",
        "--mount",
        "--pid",
        "--fork",
        bubblewrap.python(),
        "-c",
        _MOUNTED,
    ]
    done = subprocess.run(
        [*command, str(top.parent), use.value],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    found: dict[str, str] = json.loads(done.stdout)
    shown = {path: one for path, one in found.items() if one not in {"folder", "hidden"}}
    assert shown == {"bound/y.txt": view, "file.txt": view, "disk/y.txt": view}
    assert not [path for path in found if path.startswith(("alias/", "processes/"))]


def test_whiteouts_lie_in_no_place_and_no_process_sees_them(
    top: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(top, "a.txt", "x.key")
    rules = tree(top, READ, **{"*.key": NONE})
    for runtime, temporary in ((tmp_path, tmp_path), (top, tmp_path), (top, top)):
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
        monkeypatch.setattr("tempfile.tempdir", str(temporary))
        for use in (PlaceUse.READ, PlaceUse.WRITE):
            found = seen(RoomPlanner(top / "state"), confined(use, rules, top=top), top)
            assert {path: view for path, view in found.items() if view != "hidden"} == {"a.txt": "read"}
    (squatted := tmp_path / "squatted").mkdir()
    (squatted / "gatewright-rooms").mkdir(mode=0o777)
    (squatted / "gatewright-rooms").chmod(0o777)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(squatted))
    seen(RoomPlanner(tmp_path / "cache"), confined(PlaceUse.READ, rules, top=top), top)
    assert not names(squatted / "gatewright-rooms")


@pytest.mark.parametrize("seed", range(25))
def test_a_file_with_several_names_is_seen_as_its_strictest(seed: int, top: Path, planner: RoomPlanner) -> None:
    dice = random.Random(seed)
    paths = list(roomtrees.grow(dice, top, 3))
    files = [path for path in paths if path.is_file() and not path.is_symlink()]
    folders = [top, *(path for path in paths if path.is_dir() and not path.is_symlink())]
    confinement = roomtrees.confine(dice, top, roomtrees.USES)
    for number in range(min(len(files), 4)):
        os.link(dice.choice(files), dice.choice(folders) / f"link{number}{dice.choice(['', '.key', '.txt'])}")
    views: dict[int, set[View]] = {}
    every = {path: os.lstat(path) for path in roomtrees.everything(top)}
    every = {path: status for path, status in every.items() if stat.S_ISREG(status.st_mode)}
    for path, status in every.items():
        view = roomtrees.by_definition(confinement, path, folder=False)
        views.setdefault(status.st_ino, set()).add(view)
    try:
        found = bubblewrap.seen(planner.plan(confinement), str(top))
    except ToolFailure:
        assert any({View.ABSENT, View.WRITE} <= one for one in views.values())
        return
    for path, status in every.items():
        meant = views[status.st_ino]
        view = next(one for one in View if one in meant)
        assert found.get(path, "hidden") == ("hidden" if view is View.ABSENT else view), path


def test_what_cannot_be_looked_into_is_hidden(top: Path, planner: RoomPlanner) -> None:
    make(top, "a.txt", "x.key")
    descriptor = os.open(top, os.O_RDONLY)
    for _ in range(30):  # a path that is longer than any that the kernel takes
        os.mkdir("y" * 200, dir_fd=descriptor)
        inner = os.open("y" * 200, os.O_RDONLY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = inner
    os.close(os.open("deep.key", os.O_CREAT | os.O_WRONLY, dir_fd=descriptor))
    os.close(descriptor)
    (top / "/".join(["z"] * 200)).mkdir(parents=True)
    make(top, "/".join(["z"] * 200) + "/deep.key")
    for use in (PlaceUse.READ, PlaceUse.WRITE):
        plan = planner.plan(confined(use, tree(top, READ, **{"*.key": NONE}), top=top))
        said = bubblewrap.shell(plan, f"cd {top} && find . -name '*.key'; ls")
        assert "deep.key" not in said
        assert "a.txt" in said


def test_several_processes_use_one_cache_at_once(top: Path, tmp_path: Path) -> None:
    make(top, *(f"{number}/x.key" for number in range(50)), "a.txt")
    script = """
import sys
from pathlib import Path
from gatewright.policy.target import Confinement, Place, PlaceUse, Tree
from gatewright.policy.document import PermissionRule
from gatewright.policy.verdict import Permission
from gatewright.sources.roomplan import RoomPlanner
rules = (PermissionRule("*.key", Permission.NONE),)
tree = Tree(sys.argv[1], Permission.READ_ONLY, rules)
for _ in range(10):
    planner = RoomPlanner(Path(sys.argv[2]))
    plan = planner.plan(Confinement((Place(sys.argv[1], PlaceUse.READ),), (tree,)))
    assert len(list(Path(plan.mounts[0].whiteouts).rglob("x.key"))) == 50
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "XDG_RUNTIME_DIR": str(tmp_path)}
    command = [sys.executable, "-c", script, str(top), str(tmp_path / "cache")]
    processes = [subprocess.Popen(command, env=environment, stderr=subprocess.PIPE) for _ in range(3)]
    for process in processes:
        _, said = process.communicate()
        assert process.returncode == 0, said.decode()
