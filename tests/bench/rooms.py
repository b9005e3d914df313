"""Row "rooms": the mounts of a room over a large tree with closed names in it."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from gatewright.policy.document import PermissionRule
from gatewright.policy.target import Confinement, Place, PlaceUse, Tree
from gatewright.policy.verdict import Permission
from gatewright.sources.roomplan import Mount, RoomPlanner
from tests.bench.measure import Effort, quiet
from tests.bench.row import Figure, Measured, Row, at_most

_FIRST, _INDEX, _FIXED, _WATCH = "first time", "from the index", "rules without wildcards", "begin to watch"
_WRITTEN = "from the index, to be written"
_FOLDER_FILES, _CLOSED = 20, 50


class _Nobody:
    def hide(self, mounts: tuple[Mount, ...], *, anew: bool) -> None:
        raise AssertionError((mounts, anew))

    def fail(self, why: str) -> None:
        raise AssertionError(why)


def rooms(effort: Effort) -> Row:
    """Plans of one source, in milliseconds of processor time; of each but the first the best of a few."""
    count = 2_000 if effort.quick else 200_000
    with tempfile.TemporaryDirectory() as name:
        folder = Path(os.path.realpath(name))
        top = folder / "source"
        _fill(top, count)
        walked = _confined(top, PlaceUse.READ, "*.key", "drafts/*/private", ".env*")
        planner = RoomPlanner(folder / "cache")
        figures: dict[str, Measured] = {_FIRST: _figure(lambda: planner.plan(walked), 1)}
        planner.plan(walked)  # what was made a moment before the first time is listed again
        figures[_INDEX] = _figure(lambda: RoomPlanner(folder / "cache").plan(walked), 5)
        plan = planner.plan(walked)
        figures[_WATCH] = _figure(lambda: planner.watch(walked, plan, _Nobody()).close(), 1)
        written = _confined(top, PlaceUse.WRITE, "*.key")
        planner.plan(written)
        figures[_WRITTEN] = _figure(lambda: RoomPlanner(folder / "cache").plan(written), 5)
        fixed = _confined(top, PlaceUse.READ, "/a0/b0/f7.key", "/a1/secret/", "/none/such")
        figures[_FIXED] = _figure(lambda: RoomPlanner(folder / "other").plan(fixed), 5)
    return Row(
        "rooms",
        f"a source of {count:,} files, {_FOLDER_FILES} in a folder, with {_CLOSED} closed ones",
        (_FIRST, _INDEX, _WRITTEN, _FIXED, _WATCH),
        figures,
        (
            at_most(_FIRST, figures[_FIRST], 3_000, "ms"),
            at_most(_INDEX, figures[_INDEX], 300, "ms"),
            at_most(_FIXED, figures[_FIXED], 30, "ms"),
        ),
        None,
        ("the disk's own time is not in it",),
    )


def _confined(top: Path, use: PlaceUse, *closed: str) -> Confinement:
    rules = tuple(PermissionRule(pattern, Permission.NONE) for pattern in closed)
    return Confinement((Place(str(top), use),), (Tree(str(top), Permission.READ_WRITE, rules),))


def _fill(top: Path, count: int) -> None:
    step = count // _CLOSED
    for number in range(0, count, _FOLDER_FILES):
        at = number // _FOLDER_FILES
        folder = top / f"a{at % 20}" / f"b{at // 20}"
        folder.mkdir(parents=True)
        for one in range(number, number + _FOLDER_FILES):
            (folder / f"f{one - number}.{'key' if one % step == 7 else 'txt'}").touch()


def _figure(action: Callable[[], object], rounds: int) -> Figure:
    took: list[float] = []
    for _ in range(rounds):
        with quiet():
            began = time.process_time()
            action()
            took.append((time.process_time() - began) * 1e3)
    return Figure(min(took), None, "ms")
