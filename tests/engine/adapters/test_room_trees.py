"""The mounts of random places in the root that rooms have: no more is seen there than may be, and no less."""

import json
import os
import random
import subprocess
from pathlib import Path

import pytest

from gatewright.adapters.bubblewrap import HIDDEN, bubblewrap, python_of_rooms, room_options, why_no_room
from gatewright.policy.document import PermissionRule
from gatewright.policy.target import Confinement, Place, PlaceUse, Tree
from gatewright.policy.verdict import Permission
from gatewright.sources.roomplan import RoomPlan, RoomPlanner
from tests.support import roomtrees
from tests.support.bubblewrap import LOOK

pytestmark = pytest.mark.skipif(bool(why_no_room()), reason=why_no_room())


def seen(plan: RoomPlan, *tops: str) -> dict[str, str]:
    """The views below some paths in a room with these mounts."""
    python = python_of_rooms()
    assert python is not None
    numbers: list[int] = []

    def kept(data: bytes) -> int:
        numbers.append(os.memfd_create("test"))
        os.write(numbers[-1], data)
        os.lseek(numbers[-1], 0, os.SEEK_SET)
        return numbers[-1]

    options = list(room_options(plan.mounts, (), (), python, kept))
    done = subprocess.run(
        [bubblewrap(), *options, "--", *python.words, "-c", LOOK, *tops],
        pass_fds=numbers,
        env={"LD_LIBRARY_PATH": python.library_path},
        capture_output=True,
        check=False,
    )
    for number in numbers:
        os.close(number)
    assert done.returncode == 0, done.stderr.decode("utf-8", "replace")
    found: dict[str, str] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("seed", range(30))
def test_random_places_in_the_root_of_rooms(seed: int, tmp_path: Path) -> None:
    dice = random.Random(seed)
    top = Path(os.path.realpath(tmp_path), "work")
    top.mkdir()
    list(roomtrees.grow(dice, top, 4))
    confinement = roomtrees.confine(dice, top, roomtrees.USES)
    plan = RoomPlanner(top / "state" if seed % 2 else tmp_path / "cache").plan(confinement)
    found = {path: view for path, view in seen(plan, str(top)).items() if path != f"{top}/state"}
    covers = {mount.path for mount in plan.mounts if mount.kind in HIDDEN}
    assert roomtrees.excess(confinement, top, found, covers) == []
    lacking = roomtrees.lack(confinement, top, found)
    assert [path for path in lacking if not path.startswith(f"{top}/state")] == []


@pytest.mark.parametrize("use", roomtrees.USES)
def test_all_there_is_as_a_place(use: PlaceUse, tmp_path: Path) -> None:
    top = Path(os.path.realpath(tmp_path), "work")
    for name in ("a.txt", "x.key", "state/s.txt"):
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_text("some")
    rules = (PermissionRule("*.key", Permission.NONE),)
    confinement = Confinement(
        (Place("/", use),), (Tree(str(top), Permission.READ_WRITE, rules),), closed=(str(top / "state"),)
    )
    found = seen(RoomPlanner(tmp_path / "cache").plan(confinement), str(top), "/etc/hostname", "/usr/bin/env")
    view = "read" if use is PlaceUse.READ else "write"
    assert {path: one for path, one in found.items() if one not in {"folder", "hidden"}} == {
        f"{top}/a.txt": view,
        **{path: found[path] for path in ("/etc/hostname", "/usr/bin/env") if path in found},
    }
    assert "/usr/bin/env" in found
