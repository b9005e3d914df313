"""The contract of saved sessions, over a folder and a real database: one holder at a time, no save lost."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from gatewright.base.errors import SessionConflict, WorkspaceError
from gatewright.gate import Session, SessionStore, Status
from gatewright.gate.shared import SharedSessions
from tests.engine.fleet.conftest import Fleet
from tests.engine.gate.world import World
from tests.support.clock import ManualClock

Opens = Callable[[], SessionStore]
TEXT = 'gatewright = 1\n\n[agents.archivist]\ntools = ["counter"]\n'
LIMIT = '\n[[agents.archivist.tool_rules]]\ntool_name = "counter"\nrule_type = { MaxCalls = 5 }\n'


@pytest.fixture(params=["folder", "database"])
def opens(request: pytest.FixtureRequest, tmp_path: Path) -> Opens:
    """Open the same sessions once more, as another process would."""
    if request.param == "folder":
        return lambda: SessionStore(tmp_path / "state" / "sessions", tmp_path / "keys", ManualClock())
    fleet: Fleet = request.getfixturevalue("fleet")
    fleet.gateway("one")
    return lambda: SessionStore(SharedSessions(fleet.state("one")), clock=ManualClock())


def test_saved_session_is_loaded_listed_and_deleted_anywhere(opens: Opens) -> None:
    here, there = opens(), opens()
    here.save(Session("Talk.1"))
    here.save(Session("Talk.1", "ann"))

    assert (there.list(), there.list(agent_id="ann"), there.list(agent_id="bob")) == (("Talk.1",), ("Talk.1",), ())
    assert (there.load("Talk.1").version, there.load("Talk.1", agent_id="ann").agent_id) == (1, "ann")
    assert [there.delete("Talk.1"), here.delete("Talk.1"), there.delete("never")] == [True, False, False]
    with pytest.raises(WorkspaceError, match="no session"):
        here.load("Talk.1")
    assert here.list(agent_id="ann") == ("Talk.1",)


def test_save_over_the_save_of_another_is_refused(opens: Opens) -> None:
    here, there = opens(), opens()
    here.save(Session("talk"))
    mine, other = here.load("talk"), there.load("talk")
    there.save(other)

    with pytest.raises(SessionConflict, match="saved by somebody else since it was loaded"):
        here.save(mine)
    there.delete("talk")
    with pytest.raises(SessionConflict, match="deleted since it was loaded"):
        there.save(other)


async def test_session_has_one_holder_at_a_time_everywhere(opens: Opens) -> None:
    stores, inside, most = [opens() for _ in range(3)], 0, 0

    async def hold(store: SessionStore) -> None:
        nonlocal inside, most
        async with store.hold("talk"):
            inside += 1
            most = max(most, inside)
            await asyncio.sleep(0.02)
            inside -= 1

    await asyncio.gather(*(hold(store) for store in stores for _ in range(2)))
    assert (most, stores[0].load("talk").version) == (1, 6)


async def hold_once(store: SessionStore) -> None:
    async with store.hold("talk", patience_s=0.0):
        pass


async def test_who_does_not_wait_is_refused_while_another_holds_the_session(opens: Opens) -> None:
    here, there = opens(), opens()
    async with here.hold("talk"):
        with pytest.raises(SessionConflict, match="held by somebody else"):
            await asyncio.create_task(hold_once(there))
        with pytest.raises(SessionConflict, match="this task holds the session"):
            await hold_once(here)
    await hold_once(there)


async def test_lease_that_ran_out_lets_another_hold_and_one_save(fleet: Fleet) -> None:
    fleet.gateway("one")
    here, there = (SessionStore(SharedSessions(fleet.state("one")), clock=ManualClock()) for _ in range(2))
    async with here.hold("talk") as mine:
        with fleet.as_owner() as connection:
            connection.execute("UPDATE gatewright.sessions SET until = now() - interval '1 s'")
        await asyncio.create_task(hold_once(there))
        with pytest.raises(SessionConflict, match="saved by somebody else"):
            here.save(mine)
        mine.version = 1  # what it would be if it were loaded anew
    assert there.load("talk").version == 2


def test_tenants_have_sessions_of_their_own(fleet: Fleet) -> None:
    here, there = (SessionStore(SharedSessions(fleet.gateway(name, tenant=name))) for name in ("main", "branch"))
    here.save(Session("talk"))

    assert (there.list(), there.delete("talk"), here.list()) == ((), False, ("talk",))


async def test_session_that_two_gateways_serve_keeps_its_limit(fleet: Fleet, tmp_path: Path) -> None:
    worlds: list[World] = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        worlds.append(World(tmp_path / name, TEXT + LIMIT, log=fleet.log(fleet.gateway(name), name)))
    stores = [
        SessionStore(SharedSessions(fleet.state(name)), clock=world.clock, log=world.log)
        for world, name in zip(worlds, ("one", "two"), strict=True)
    ]

    async def call(number: int) -> Status:
        async with stores[number % 2].hold("talk", agent_id="archivist") as session:
            return (await worlds[number % 2].call("counter", {"op": "up"}, session=session)).status

    ended = await asyncio.gather(*map(call, range(8)))
    assert [ended.count(status) for status in (Status.ALLOWED, Status.DENIED)] == [5, 3]
    assert sum(world.counter.value for world in worlds) == 5
    for world in worlds:
        world.close()
