"""The log of a shared state: chains that nobody changes unseen, commits that get lost, calls that begin once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest

from gatewright.gate import AuditEntry, Log, Outcome, RowKind, Session, Status
from gatewright.gate.session import Reservation
from gatewright.gate.shared import SharedRates
from gatewright.gate.shared_log import SharedLog
from gatewright.record.sealedtable import AnchorFile
from tests.engine.fleet.conftest import Fleet
from tests.engine.gate.world import World
from tests.support.slow_database import Loss, slow_database

Tamper = Callable[[psycopg.Connection[Any]], object]

CUT = """DELETE FROM gatewright.rows WHERE seq > 4; UPDATE gatewright.heads SET seq = 4, hash = rows.hash,
  signature = rows.signature FROM gatewright.rows WHERE rows.seq = 4"""
SWAP = """UPDATE gatewright.rows SET seq = 100 WHERE seq = 5; UPDATE gatewright.rows SET seq = 5 WHERE seq = 6;
  UPDATE gatewright.rows SET seq = 6 WHERE seq = 100"""


def entry(kind: RowKind, call_id: str, session: str = "s", **body: Any) -> AuditEntry:
    return AuditEntry(kind, call_id, "ann", session, "file", "read", body)


def fill(log: SharedLog, calls: int = 3) -> None:
    for number in range(calls):
        log.append([entry(RowKind.TOOL_INVOKED, f"call-{number}"), entry(RowKind.POLICY_DECISION, f"call-{number}")])
        log.append([entry(RowKind.TOOL_COMPLETED, f"call-{number}")])


def test_untouched_log_is_sound_and_names_calls_without_an_end(fleet: Fleet) -> None:
    log = fleet.log(fleet.gateway("one"))
    fill(log)
    log.append([entry(RowKind.TOOL_INVOKED, "call-open")])

    report = log.verify()
    assert (report.rows, report.problems) == (11, ())
    assert [row.call_id for row in report.unended] == ["call-open"]
    assert [row.kind for row in log.rows()][:4] == ["LogOpened", "ToolInvoked", "PolicyDecision", "ToolCompleted"]


def test_gateways_write_chains_of_their_own_into_one_log(fleet: Fleet) -> None:
    logs = [fleet.log(fleet.gateway(name), name) for name in ("one", "two")]
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(fill, logs))

    assert [log.verify().rows for log in logs] == [20, 20]
    assert logs[0].digest({"a": 1}) == logs[1].digest({"a": 1})
    assert logs[0].proof_key() == logs[1].proof_key()


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ("UPDATE gatewright.rows SET body = '{\"n\": 2}' WHERE seq = 4", "was changed at row 4"),
        ("UPDATE gatewright.rows SET time = '2020' WHERE seq = 2", "was changed at row 2"),
        ("DELETE FROM gatewright.rows WHERE seq = 3", "lacks rows before row 4"),
        ("DELETE FROM gatewright.rows WHERE seq = 1", "lacks rows before row 2"),
        ("DELETE FROM gatewright.rows WHERE seq = 10", "ends at row 9, but its head is at row 10"),
        ("UPDATE gatewright.heads SET seq = 7", "ends at row 10, but its head is at row 7"),
        (
            CUT,
            "ends at row 4, but the key folder knows row 10",
        ),
        ("UPDATE gatewright.rows SET signature = '\\x00' WHERE seq = 4", "has a false signature at row 4"),
        ("UPDATE gatewright.writers SET public_key = decode(repeat('07', 32), 'hex')", "has the key of another writer"),
        (
            SWAP,
            "was changed at row 5",
        ),
    ],
)
def test_whoever_rules_the_database_changes_nothing_unseen(fleet: Fleet, change: str, problem: str) -> None:
    log = fleet.log(fleet.gateway("one"))
    fill(log)
    with fleet.as_owner() as connection:
        for statement in change.split(";"):
            connection.execute(statement.encode())

    assert problem in log.verify().problems[0]


def test_limits_and_rates_of_a_session_hold_over_two_gateways(fleet: Fleet, tmp_path: Path) -> None:
    text = policy(rule("counter", "{ MaxCalls = 7 }"), rule("echo", '{ RateLimit = { calls = 5, per = "1h" } }'))
    for name in ("one", "two"):
        fleet.gateway(name)
    worlds = [world_of(fleet, fleet.url_of(name), tmp_path, text) for name in ("one", "two")]

    async def call(number: int) -> tuple[str, bool]:
        world, session = worlds[number % 2], Session("both")
        name, arguments = [("counter", {"op": "up"}), ("echo", {"text": "x"})][number // 2 % 2]
        outcome = await world.gate.call("archivist", name, arguments, session=session)
        return name, outcome.status is Status.ALLOWED

    async def call_all() -> list[tuple[str, bool]]:
        return await asyncio.gather(*map(call, range(40)))

    ended = asyncio.run(call_all())

    assert [sum(is_allowed for one, is_allowed in ended if one == name) for name in ("counter", "echo")] == [7, 5]
    assert sum(world.counter.value for world in worlds) == 7
    report = log_of(worlds[0]).verify()
    assert (report.problems, report.unended) == ((), ())
    for world in worlds:
        world.close()


def test_gateways_that_serve_the_same_sessions_never_wait_for_each_other(fleet: Fleet) -> None:
    logs = [fleet.log(fleet.gateway(name), name) for name in ("one", "two")]

    def append_all(log: SharedLog) -> None:
        mine, others = ("s1", "s2") if log is logs[0] else ("s2", "s1")
        for number in range(60):
            slot = Reservation(Session(mine), "file", {"read": 1}, (), 0.0, number)
            slot.test = lambda _: None
            begun = AuditEntry(RowKind.TOOL_INVOKED, f"call-{mine}-{number}", "ann", mine, "file", "read", slot=slot)
            ended = AuditEntry(RowKind.TOOL_COMPLETED, f"call-{others}-{number}", "ann", others, "file", "read")
            log.append([begun, ended])

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(append_all, logs))

    assert logs[0].verify().problems == ()


@pytest.mark.parametrize(
    ("loss", "ends"), [(Loss.ANSWER, ["ToolAbandoned", "ToolDenied"]), (Loss.REQUEST, ["ToolDenied"])]
)
def test_commit_that_gets_lost_starts_nothing_and_the_log_says_so(
    fleet: Fleet, tmp_path: Path, loss: Loss, ends: list[str]
) -> None:
    fleet.gateway("one")
    with slow_database(fleet.url, 0.0, "append") as proxy:
        world = world_of(fleet, proxy.through(fleet.url_of("one")), tmp_path, policy())
        proxy.loss = loss
        denied = asyncio.run(world.gate.call("archivist", "counter", {"op": "up"}))
        allowed = asyncio.run(world.gate.call("archivist", "counter", {"op": "up"}))
        report = log_of(world).verify()
        kinds = [row.kind for row in log_of(world).rows() if row.call_id == denied.call_id]
        world.close()

    assert [denied.status, allowed.status, world.counter.value] == [Status.DENIED, Status.ALLOWED, 1]
    assert denied.decision.code == "audit-unavailable"
    assert (report.problems, report.unended) == ((), ())
    assert [kind for kind in kinds if kind in {"ToolAbandoned", "ToolDenied"}] == ends


def test_calls_under_way_share_commits(fleet: Fleet, tmp_path: Path) -> None:
    fleet.gateway("one")
    with slow_database(fleet.url, 0.05, "append") as proxy:
        world = world_of(fleet, proxy.through(fleet.url_of("one")), tmp_path, policy())
        before = proxy.commits

        async def call_all() -> list[Outcome]:
            calls = (world.gate.call("archivist", "echo", {"text": str(number)}) for number in range(40))
            return await asyncio.gather(*calls)

        ended = asyncio.run(call_all())
        commits = proxy.commits - before
        report = log_of(world).verify()
        world.close()

    assert {one.status for one in ended} == {Status.ALLOWED}
    assert report.is_sound
    assert commits < 20


def policy(*rules: str) -> str:
    return f'gatewright = 1\n\n[agents.archivist]\ntools = ["echo", "counter"]\n{"".join(rules)}'


def rule(tool: str, kind: str) -> str:
    return f'\n[[agents.archivist.tool_rules]]\ntool_name = "{tool}"\nrule_type = {kind}\n'


def world_of(fleet: Fleet, url: str, folder: Path, text: str) -> World:
    """A gate over the shared log and rates, as the gateway of that address."""
    state, place = fleet.state_at(url), folder / f"world-{len(list(folder.iterdir()))}"
    place.mkdir()
    return World(place, text, log=fleet.log(state, place.name), rates=SharedRates(state))


def log_of(world: World) -> Log:
    assert world.log is not None
    return world.log


def test_head_that_the_key_folder_cannot_keep_starts_nothing_and_the_log_says_so(
    fleet: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet.gateway("one")
    world = world_of(fleet, fleet.url_of("one"), tmp_path, policy())
    write, failed = AnchorFile.write, list[bytes]()

    def refuses_once(self: AnchorFile, text: bytes) -> None:
        if not failed:
            failed.append(text)
            raise OSError(28, "no room")
        write(self, text)

    monkeypatch.setattr(AnchorFile, "write", refuses_once)
    denied = asyncio.run(world.gate.call("archivist", "counter", {"op": "up"}))
    allowed = asyncio.run(world.gate.call("archivist", "counter", {"op": "up"}))
    report = log_of(world).verify()
    world.close()

    assert [denied.status, allowed.status, world.counter.value] == [Status.DENIED, Status.ALLOWED, 1]
    assert (report.problems, report.unended) == ((), ())
