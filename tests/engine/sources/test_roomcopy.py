"""Private copies: what a process sees in one, what of it is told, and that the place itself stays as it is."""

import os
import random
import socket
from pathlib import Path

import pytest

from gatewright.base.errors import ToolFailure
from gatewright.policy.document import PermissionRule
from gatewright.policy.target import Confinement, Place, PlaceUse, Tree
from gatewright.policy.verdict import Permission
from gatewright.sources import roomcopy
from gatewright.sources.roomplan import RoomPlanner
from tests.support import bubblewrap, roomtrees
from tests.support.unixsocket import bind_at

pytestmark = pytest.mark.skipif(bool(bubblewrap.why_not()), reason=bubblewrap.why_not())
NONE, READ, WRITE = Permission.NONE, Permission.READ_ONLY, Permission.READ_WRITE


def make(top: Path, *paths: str) -> None:
    for path in paths:
        (top / path).parent.mkdir(parents=True, exist_ok=True)
        (top / path).write_text(path)


def confined(top: Path, default: Permission, **rules: Permission) -> Confinement:
    levels = tuple(PermissionRule(pattern, level) for pattern, level in rules.items())
    return Confinement((Place(str(top), PlaceUse.SNAPSHOT),), (Tree(str(top), default, levels),))


def test_a_process_changes_a_copy_and_the_changes_are_told(top: Path, planner: RoomPlanner) -> None:
    make(top, "a.txt", "b.txt", "c.txt", "ro/r.txt", "x.key", "sub/deep/d.txt", "sub/e.txt", "same.txt", "host.txt")
    (top / "link").symlink_to("a.txt")
    (top / "a.txt").chmod(0o755)
    confinement = confined(top, WRITE, **{"*.key": NONE, "ro/": READ})
    plan = planner.plan(confinement)
    watch = planner.watch(confinement, plan, roomtrees.Nobody())
    make(top, "late.key", "host.txt")
    watch.check()
    assert f"{top}/x.key" not in bubblewrap.seen(watch.plan, str(top))
    script = f"""cd {top}; echo new > a.txt; rm b.txt; mv c.txt f.txt; echo new > ro/r.txt; rm -r sub/deep; rm link
    ln -s /etc/passwd link; mkdir made; echo new > made/g.key; echo new > host.txt; chmod 0 made"""
    bubblewrap.shell(watch.plan, script)
    found = {(one.change.value, one.path[len(str(top)) + 1 :]): one for one in planner.differences(plan)}
    assert list(found)[-4:] == [("removed", f) for f in ("sub/deep/d.txt", "sub/deep", "c.txt", "b.txt")]
    assert set(found) == {
        *(("changed", path) for path in ("a.txt", "link", "host.txt")),
        *(("added", path) for path in ("f.txt", "made", "made/g.key")),
        *(("removed", path) for path in ("b.txt", "c.txt", "sub/deep/d.txt", "sub/deep")),
    }
    assert [path for (_, path), one in found.items() if one.is_stale] == ["host.txt"]
    assert [path for (_, path), one in found.items() if one.is_link] == ["link"]
    assert {path for (_, path), one in found.items() if one.is_folder} == {"made", "sub/deep"}
    assert Path(found["changed", "a.txt"].copy).read_text() == "new\n"
    assert Path(found["changed", "a.txt"].copy).stat().st_mode & 0o777 == 0o755
    assert ((top / "a.txt").read_text(), (top / "ro/r.txt").read_text()) == ("a.txt", "ro/r.txt")
    assert not (top / "made").exists()
    watch.close()
    assert planner.differences(plan) == []
    assert not Path(found["changed", "a.txt"].copy).exists()


@pytest.mark.parametrize("seed", range(15))
def test_a_copy_holds_what_may_be_seen_and_no_difference(seed: int, top: Path, planner: RoomPlanner) -> None:
    dice = random.Random(seed)
    paths = list(roomtrees.grow(dice, top, 3))
    confinement = roomtrees.confine(dice, top, [PlaceUse.SNAPSHOT])
    plan = planner.plan(confinement)
    found = bubblewrap.seen(plan, str(top))
    assert roomtrees.excess(confinement, top, found, set()) == []
    assert roomtrees.lack(confinement, top, found) == []
    assert planner.differences(plan) == []
    assert set(roomtrees.everything(top)) == set(map(str, paths))


def test_what_is_no_file_is_not_copied_and_too_much_is_refused(
    top: Path, planner: RoomPlanner, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(top, "a.txt", "b.txt")
    os.mkfifo(top / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        bind_at(listener, top / "socket")
        plan = planner.plan(confined(top, WRITE))
    assert bubblewrap.seen(plan, str(top)).keys() == {str(top), f"{top}/a.txt", f"{top}/b.txt"}
    monkeypatch.setattr(roomcopy, "MAX_BYTES", 9)
    with pytest.raises(ToolFailure, match="too large") as refused:
        planner.plan(confined(top, WRITE))
    assert refused.value.code == "not-confined"
