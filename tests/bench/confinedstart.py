"""Row "confined start": a program in a room beside the same program without one."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from gatewright.adapters.confine import Confiner
from gatewright.adapters.server_process import Command, ServerProcess
from gatewright.policy.document import PermissionRule
from gatewright.policy.target import Confinement, Place, PlaceUse, Tree
from gatewright.policy.verdict import Permission
from gatewright.sources.roomplan import RoomPlanner
from tests.bench.measure import Effort, quiet
from tests.bench.row import Figure, Measured, Missing, Row, at_most

_FREE, _READ, _WRITTEN, _MORE = "not confined", "confined, to read", "confined, to write", "more at the most"
_TRUE = Command("/bin/true", environment={"PATH": "/usr/bin:/bin"})


def confined_start(effort: Effort) -> Row:
    """From the call to the end of `true`, by the clock, the best of many: rooms stand already, processes do not."""
    figures: dict[str, Measured] = {name: Missing(Confiner.why_not()) for name in (_FREE, _READ, _WRITTEN, _MORE)}
    if not Confiner.why_not():
        with TemporaryDirectory() as name:
            took = asyncio.run(_starts(Path(name).resolve(), 3 if effort.quick else 30))
        figures = {name: Figure(best, None, "ms") for name, best in took.items()}
        figures[_MORE] = Figure(max(took[_READ], took[_WRITTEN]) - took[_FREE], None, "ms")
    return Row(
        "confined start",
        "`true`, in a folder with closed names",
        (_FREE, _READ, _WRITTEN, _MORE),
        figures,
        (at_most(_MORE, figures[_MORE], 30, "ms"),),
        _FREE,
        ("by the clock: what else runs counts against it",),
    )


async def _starts(folder: Path, rounds: int) -> dict[str, float]:
    source = folder / "source"
    source.mkdir()
    for number in range(50):
        (source / f"{number}.key").touch()
    confiner = Confiner(RoomPlanner(folder / "cache"))
    trees = (Tree(str(source), Permission.READ_WRITE, (PermissionRule("*.key", Permission.NONE),)),)
    uses = {_READ: PlaceUse.READ, _WRITTEN: PlaceUse.WRITE}
    confined = {name: Confinement((Place(str(source), use),), trees, folder=str(source)) for name, use in uses.items()}
    rooms = {name: await confiner.room(one) for name, one in confined.items()}
    took: dict[str, list[float]] = {_FREE: [], _READ: [], _WRITTEN: []}
    for _ in range(rounds):
        for name, found in took.items():
            process = rooms[name].process(_TRUE, bytearray()) if name in rooms else ServerProcess(_TRUE, bytearray())
            with quiet():
                began = time.perf_counter()
                async with process:
                    await process.has_ended.wait()
                    found.append((time.perf_counter() - began) * 1e3)
    for room in rooms.values():
        await room.close()
    return {name: min(found) for name, found in took.items()}
