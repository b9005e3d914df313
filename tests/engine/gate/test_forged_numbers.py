"""Rows that somebody put into the log under numbers that no log has: found by verify, survived by every reader."""

from __future__ import annotations

import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from gatewright.gate import AuditLog, AuditUnavailable, Session, Status
from gatewright.gate.audit_index import AuditFilter, AuditIndex
from tests.engine.gate.conftest import MakeWorld
from tests.engine.gate.world import World

COLUMNS = "time, kind, call_id, agent, session, tool, operation, body, mac"
IMPOSSIBLE = (2**63 - 1, 2**63 - 2, 2**62 + 1, 0, -1, -(2**62), -(2**63))
LATE = (100, 50_000, 200_000, 10**15, 2**62)
UNTYPED: tuple[Any, ...] = (None, "9", "x", 2.5, 1e300, float("inf"), b"1", "")
COPIES = ("1", "3", "(SELECT max(seq) FROM rows)")


async def used(make_world: MakeWorld) -> World:
    world = make_world()
    for number in range(3):
        await world.call("echo", {"text": str(number)}, session=Session("chat", "archivist"))
    assert world.audit is not None
    world.audit.close()
    return world


def change(path: Path, *statements: tuple[str, tuple[Any, ...]]) -> None:
    with closing(sqlite3.connect(path)) as file:
        for statement, values in statements:
            file.execute(statement, values)
        file.commit()


def copied(number: Any, source: str) -> tuple[str, tuple[Any, ...]]:
    return f"INSERT INTO rows SELECT ?, {COLUMNS} FROM rows WHERE seq = {source}", (number,)


def read_all(folder: Path) -> int:
    """Everything that lists the log, each to its end; how many rows were gone through in so many steps."""
    index = AuditIndex(folder)
    steps = 0
    try:
        while index.read_older(20):
            steps += 1
            assert steps < 10
        index.read_newer()
        index.tally(0.0)
        index.calls(index.numbers(AuditFilter()))
        index.choices()
        return len([row for row in index.rows(AuditFilter()) if row.to_line()])
    finally:
        index.close()


async def outcome_of(world: World) -> tuple[Status, str]:
    world.decide("echo", {"text": "x"}, session=Session("chat", "archivist"))
    outcome = await world.call("echo", {"text": "x"}, session=Session("chat", "archivist"))
    return outcome.status, outcome.code


@pytest.mark.parametrize("source", COPIES)
@pytest.mark.parametrize("number", IMPOSSIBLE)
async def test_number_that_no_log_has_is_found_and_lets_no_call_through(
    make_world: MakeWorld, number: int, source: str
) -> None:
    world = await used(make_world)
    log = world.audit
    assert log is not None
    change(log.path, copied(number, source))

    problems = log.verify().problems
    assert any(str(number) in problem for problem in problems), problems
    assert read_all(log.path.parent) >= 10
    assert await outcome_of(world) == (Status.DENIED, "audit-unavailable")
    assert log.verify().problems == problems
    with pytest.raises(AuditUnavailable, match=r"damaged|first row"):
        AuditLog(log.path.parent, log.path.parent.parent / "keys", clock=world.clock).append([])


@pytest.mark.parametrize("number", LATE)
async def test_number_behind_the_end_stays_found_whatever_is_written_after(make_world: MakeWorld, number: int) -> None:
    world = await used(make_world)
    log = world.audit
    assert log is not None
    change(log.path, copied(number, "2"))

    assert not log.verify().is_sound
    assert read_all(log.path.parent) >= 10
    await outcome_of(world)
    assert not log.verify().is_sound
    assert read_all(log.path.parent) >= 10


@pytest.mark.parametrize("number", UNTYPED)
async def test_number_that_is_none_is_found_and_raises_nowhere(make_world: MakeWorld, number: Any) -> None:
    world = await used(make_world)
    log = world.audit
    assert log is not None
    change(
        log.path,
        (f"CREATE TABLE other (seq, {COLUMNS})", ()),
        ("INSERT INTO other SELECT * FROM rows", ()),
        ("DROP TABLE rows", ()),
        ("ALTER TABLE other RENAME TO rows", ()),
        copied(number, "2"),
    )

    assert any("no number" in problem or "first row" in problem for problem in log.verify().problems)
    with suppress(AuditUnavailable):  # it may say that this cannot be read
        read_all(log.path.parent)
    in_the_middle = number == 2.5
    assert (await outcome_of(world))[0] is (Status.ALLOWED if in_the_middle else Status.DENIED)
    assert not log.verify().is_sound


async def test_sound_log_is_read_to_its_end_and_goes_on(make_world: MakeWorld) -> None:
    world = await used(make_world)
    assert world.audit is not None
    assert (world.audit.verify().problems, read_all(world.audit.path.parent)) == ((), 10)
    assert (await outcome_of(world))[0] is Status.ALLOWED
