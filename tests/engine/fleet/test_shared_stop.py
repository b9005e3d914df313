"""The stop of a shared state: pulled at one gateway, it stops the others, until somebody with that duty lifts it."""

from __future__ import annotations

from pathlib import Path

import pytest

from gatewright.base.errors import WorkspaceError
from gatewright.gate import Status
from gatewright.gate.shared import SharedStops
from gatewright.record.shared import SharedState
from tests.engine.fleet.conftest import Fleet
from tests.engine.gate.world import World
from tests.support.patience import until
from tests.support.postgres import Cluster

TEXT = 'gatewright = 1\n\n[agents.archivist]\ntools = ["echo"]\n\n[agents.other]\ntools = ["echo"]\n'


def world_of(fleet: Fleet, state: SharedState, folder: Path) -> World:
    folder.mkdir()
    log = fleet.log(state, folder.name)
    return World(folder, TEXT, log=log, stops=SharedStops(state, audit=log))


async def test_stop_pulled_at_one_gateway_stops_every_other_until_it_is_lifted(fleet: Fleet, tmp_path: Path) -> None:
    states = [fleet.gateway("one"), fleet.gateway("two")]
    worlds = [world_of(fleet, state, tmp_path / name) for state, name in zip(states, ("one", "two"), strict=True)]
    operator = SharedStops(fleet.member("ada", "answer", "gateway"), audit=None)

    async def status(agent: str = "archivist") -> Status:
        return (await worlds[1].call("echo", {"text": "x"}, agent=agent)).status

    assert await status() is Status.ALLOWED
    worlds[0].gate.stops.pull("ada", "it deletes the wrong files", "archivist")
    await until(lambda: worlds[1].gate.stops.find("archivist") is not None)
    assert [await status(), await status("other")] == [Status.DENIED, Status.ALLOWED]

    with pytest.raises(WorkspaceError, match="the role one may not let stopped agents go on"):
        worlds[0].gate.stops.lift("bob", "archivist")
    assert await status() is Status.DENIED
    assert [one.why for one in operator.lift("ada", "archivist")] == ["it deletes the wrong files"]
    await until(lambda: worlds[1].gate.stops.find("archivist") is None)
    assert await status() is Status.ALLOWED
    assert worlds[0].log is not None
    assert [row.kind for row in worlds[0].log.rows()].count("StopPulled") == 1
    for world in worlds:
        world.gate.stops.close()
        world.close()
    operator.close()


async def test_stop_that_nobody_can_read_stops_all(own_fleet: Fleet, own_cluster: Cluster) -> None:
    stops = SharedStops(own_fleet.gateway("one"))
    assert stops.find("archivist") is None
    own_cluster.stop()
    await until(lambda: stops.find("archivist") is not None)
    found = stops.find("archivist")
    assert found is not None
    assert "cannot be read" in found.why
    own_cluster.start()
    await until(lambda: stops.find("archivist") is None)
    stops.close()


def test_row_that_says_no_stop_stops_all(fleet: Fleet) -> None:
    stops = SharedStops(fleet.gateway("one"))
    stops.pull("ada", "", "archivist")
    with fleet.as_owner() as connection:
        connection.execute("UPDATE gatewright.items SET body = '{}'")
    again = SharedStops(fleet.state("one"))

    assert again.find("other") is not None
    for one in (stops, again):
        one.close()
