"""A log under attack: whoever changes it without its key is found, and whoever is killed leaves one that verifies."""

from __future__ import annotations

import fcntl
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import closing
from dataclasses import astuple, fields, replace
from pathlib import Path

import pytest

from gatewright.base.late import last_of
from gatewright.gate import AuditEntry, AuditLog, AuditReport, AuditRow, AuditUnavailable, RowKind
from gatewright.gate.chain import KeyRing, verify
from gatewright.record.folder import Home
from tests.engine.gate.world import World

ROOT = Path(__file__).parents[3]


@pytest.fixture
async def log(world: World) -> AuditLog:
    """A log of real calls: allowed, denied, failed."""
    assert world.audit is not None
    world.docs.joinpath("note.md").write_text("one\n", "utf-8")
    await world.call("file", {"op": "read", "path": "note.md"})
    await world.call("file", {"op": "delete", "path": "note.md"})
    await world.call("counter", {"op": "up", "by": 3})
    await world.call("echo", {"text": "swordfish and trout"})
    await world.call("teleport", {})
    world.audit.close()
    with closing(sqlite3.connect(world.audit.path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return world.audit


class Proved:
    """The rows of a log in memory, with what is needed to verify others in their place."""

    def __init__(self, log: AuditLog) -> None:
        self.rows = list(log.rows())
        ring = KeyRing(log.path.parent.parent / "keys")
        log_id = self.rows[0].body.split('"')[3]
        key, self._anchor = ring.key(log_id), ring.anchor(log_id)
        assert key is not None
        self._key = key

    def verify(self, rows: list[AuditRow]) -> AuditReport:
        return last_of(verify(iter(rows), self._key, self._anchor, []))


def test_every_changed_character_of_every_field_is_found(log: AuditLog) -> None:
    proved = Proved(log)
    assert proved.verify(proved.rows).is_sound
    tried = 0
    for index, row in enumerate(proved.rows):
        for changed in _changed(row):
            rows = [*proved.rows[:index], changed, *proved.rows[index + 1 :]]
            assert not proved.verify(rows).is_sound, (row, changed)
            tried += 1
    assert tried > 3000


def _changed(row: AuditRow) -> Iterator[AuditRow]:
    for name in (field.name for field in fields(row) if field.name != "seq"):
        text: str = getattr(row, name)
        yield replace(row, **{name: text + "x"})
        yield replace(row, **{name: None})
        for at, character in enumerate(text):
            yield replace(row, **{name: text[:at] + chr(ord(character) ^ 1) + text[at + 1 :]})


def test_every_removed_swapped_doubled_and_forged_row_is_found(log: AuditLog) -> None:
    proved = Proved(log)
    rows = proved.rows
    for at in range(len(rows)):
        assert not proved.verify(rows[:at] + rows[at + 1 :]).is_sound
        assert not proved.verify(_renumbered(rows[:at] + rows[at + 1 :])).is_sound
        assert not proved.verify(rows[:at]).is_sound
        assert not proved.verify(_renumbered([*rows[:at], rows[at], *rows[at:]])).is_sound
        forged = replace(rows[at], agent="mallory", mac="0" * 64)
        assert not proved.verify(_renumbered([*rows[:at], forged, *rows[at:]])).is_sound
        for other in range(at):
            swapped = list(rows)
            swapped[at], swapped[other] = rows[other], rows[at]
            assert not proved.verify(_renumbered(swapped)).is_sound
    resumed = AuditRow(len(rows) + 1, "", "LogOpened", "", "", "", "", "", '{"anchor":1,"previous":""}', "0" * 64)
    assert not proved.verify([*rows, resumed]).is_sound


def _renumbered(rows: list[AuditRow]) -> list[AuditRow]:
    return [replace(row, seq=number) for number, row in enumerate(rows, 1)]


def test_changed_bytes_of_the_file_are_found_or_change_no_row(log: AuditLog) -> None:
    """Sampled over the whole file: a byte that no row is made of may change, a row may not."""
    before, content = list(log.rows()), log.path.read_bytes()
    chance = random.Random(20260101)
    found = 0
    for _ in range(400):
        at = chance.randrange(len(content))
        changed = bytearray(content)
        changed[at] ^= chance.randrange(1, 256)
        log.path.write_bytes(changed)
        report = log.verify()
        if report.is_sound:
            assert list(log.rows()) == before, at
        found += not report.is_sound
    log.path.write_bytes(content)
    assert found > 50
    assert log.verify().is_sound


def test_later_rows_stay_proved_after_a_changed_one(log: AuditLog) -> None:
    count = log.verify().rows
    with closing(sqlite3.connect(log.path)) as connection:
        connection.execute("UPDATE rows SET agent = 'b' WHERE seq IN (3, 5)")
        connection.commit()
    report = log.verify()

    assert report.problems == ("row 3 was changed, moved or added", "row 5 was changed, moved or added")
    assert report.rows == count - 2


def test_cut_is_still_found_after_the_log_was_continued(log: AuditLog) -> None:
    count = len(list(log.rows()))
    with closing(sqlite3.connect(log.path)) as connection:
        connection.execute("DELETE FROM rows WHERE seq > 4")
        connection.commit()
    log.append([AuditEntry(RowKind.TOOL_INVOKED, "later")])
    log.append([AuditEntry(RowKind.TOOL_INVOKED, "later still")])
    report = log.verify()
    log.close()

    assert report.problems == (f"row {count + 1} continues from an anchor at row {count} beyond the end of the log",)
    assert report.rows == 4 + 3


def test_forged_rows_at_the_end_are_still_found_after_the_log_was_continued(log: AuditLog) -> None:
    with closing(sqlite3.connect(log.path)) as connection:
        last = connection.execute("SELECT max(seq) FROM rows").fetchone()[0]
        columns = "time, kind, 'x', agent, session, tool, operation, body, mac"
        connection.execute(f"INSERT INTO rows SELECT {last + 1}, {columns} FROM rows WHERE seq = 3")
        connection.commit()
    log.append([AuditEntry(RowKind.TOOL_INVOKED, "later")])
    report = log.verify()
    log.close()

    assert report.problems[0] == f"row {last + 1} was changed, moved or added"


def test_log_without_its_anchor_is_not_continued(log: AuditLog) -> None:
    anchor = next((log.path.parent.parent / "keys").glob("*.anchor"))
    anchor.unlink()

    with pytest.raises(AuditUnavailable, match="its anchor is not in"):
        log.append([AuditEntry(RowKind.TOOL_INVOKED)])
    assert log.verify().problems == ("the anchor of the log is missing",)


def test_anchor_removed_while_the_log_is_open_stops_it(log: AuditLog) -> None:
    log.append([AuditEntry(RowKind.TOOL_INVOKED)])
    shutil.rmtree(log.path.parent.parent / "keys")

    with pytest.raises(AuditUnavailable, match="its anchor was removed"):
        log.append([AuditEntry(RowKind.TOOL_INVOKED)])


def test_workspace_that_was_renamed_keeps_its_log(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "a-long-name-of-a-folder" / "state", tmp_path / "keys")
    log.append([AuditEntry(RowKind.TOOL_INVOKED)])
    log.close()
    for name in ("b", "a-very-much-longer-name-of-a-folder-than-before"):
        log.path.parent.parent.rename(tmp_path / name)
        log = AuditLog(tmp_path / name / "state", tmp_path / "keys")
        log.append([AuditEntry(RowKind.TOOL_INVOKED)])
        log.close()
        assert log.verify().problems == ()
    assert log.verify().rows == 4


WRITER = """
import sys
from pathlib import Path
from gatewright.base.late import last_of
from gatewright.gate import AuditEntry, AuditLog, RowKind
folder = Path(sys.argv[1])
log = AuditLog(folder / "state", folder / "keys")
number = 0
while True:
    number += 1
    log.append([AuditEntry(RowKind.TOOL_INVOKED, f"{sys.argv[2]}-{number}-{part}") for part in range(number % 3 + 1)])
    print(number, flush=True)
"""


def writer(folder: Path, name: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(folder), name], stdout=subprocess.PIPE, text=True, cwd=ROOT
    )


def killed_after(process: subprocess.Popen[str], lines: int) -> int:
    assert process.stdout is not None
    with process.stdout as stream:
        said = [stream.readline() for _ in range(lines)]
        os.kill(process.pid, signal.SIGKILL)
        said += stream.readlines()
    process.wait()
    return max(int(line) for line in said if line.endswith("\n"))


def test_killed_writers_leave_a_log_that_verifies_and_holds_every_acknowledged_row(tmp_path: Path) -> None:
    chance = random.Random(7)
    acknowledged: dict[str, int] = {}
    log = AuditLog(tmp_path / "state", tmp_path / "keys")
    for turn in range(2):
        both = [writer(tmp_path, f"{turn}a"), writer(tmp_path, f"{turn}b")]
        for name, process in zip("ab", both, strict=True):
            acknowledged[f"{turn}{name}"] = killed_after(process, chance.randrange(1, 60))
        assert log.verify().problems == ()
    kept = {row.call_id for row in log.rows()}
    for name, last in acknowledged.items():
        assert all(f"{name}-{number}-{number % 3}" in kept for number in range(1, last + 1))


def test_log_that_died_before_its_first_row_is_begun_anew(tmp_path: Path) -> None:
    ring = KeyRing(tmp_path / "keys")
    (tmp_path / "state").mkdir()
    ring.create("log-0123456789abcdef", Home.of(tmp_path / "state"))
    sqlite3.connect(tmp_path / "state" / "audit.sqlite3").close()
    log = AuditLog(tmp_path / "state", tmp_path / "keys")
    assert log.verify().problems == ()
    log.append([AuditEntry(RowKind.TOOL_INVOKED)])
    report = log.verify()
    log.close()

    assert (report.rows, report.problems) == (2, ())


def test_forked_process_continues_the_chain(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "state", tmp_path / "keys")
    log.append([AuditEntry(RowKind.TOOL_INVOKED, "parent")])
    child = os.fork()
    if child == 0:
        log.append([AuditEntry(RowKind.TOOL_INVOKED, "child")])
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    log.append([AuditEntry(RowKind.TOOL_INVOKED, "parent again")])
    report = log.verify()

    assert [row.call_id for row in log.rows()] == ["", "parent", "child", "parent again"]
    assert report.is_sound
    log.close()


DENIED = """
import asyncio, sys, os, resource
from pathlib import Path
from tests.engine.gate.world import World
folder = Path(sys.argv[1])
folder.mkdir(exist_ok=True)
world = World(folder)
first = asyncio.run(world.call("counter", {"op": "up"}))
HOW
for _ in range(1000):
    before = world.counter.value
    outcome = asyncio.run(world.call("counter", {"op": "up"}))
    if outcome.code == "audit-unavailable" and outcome.status == "denied":
        break
    assert world.counter.value == before + 1
print(first.code, outcome.code, world.counter.value == before)
"""
FULL = "resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))"
READ_ONLY = """
world.audit.close()
for path in folder.rglob("*"):
    os.chown(path, 65534, 65534) if os.getuid() == 0 else None
for path in (folder / "state").iterdir():
    path.chmod(0o444)
(folder / "state").chmod(0o555)
if os.getuid() == 0:
    os.setuid(65534)
"""


@pytest.mark.parametrize("how", ["full", "read-only"])
def test_call_is_denied_when_the_disk_takes_no_row(how: str, world_folder: Path) -> None:
    script = textwrap.dedent(DENIED).replace("HOW", FULL if how == "full" else READ_ONLY)
    done = subprocess.run(
        [sys.executable, "-c", script, str(world_folder)], capture_output=True, text=True, cwd=ROOT, check=False
    )

    assert done.stdout.split() == ["allowed", "audit-unavailable", "True"], done.stderr


@pytest.fixture
def world_folder() -> Iterator[Path]:
    """A folder that another user may enter, unlike those that pytest makes."""
    import tempfile

    folder = Path(tempfile.mkdtemp(prefix="gatewright-test-"))
    folder.chmod(0o755)
    yield folder / "world"
    shutil.rmtree(folder)


def test_durable_log_asks_for_every_commit_to_reach_the_disk(tmp_path: Path) -> None:
    for durable, level in ((False, 1), (True, 2)):
        log = AuditLog(tmp_path / str(durable), tmp_path / "keys", durable=durable)
        log.append([AuditEntry(RowKind.TOOL_INVOKED)])
        with log._database.writing() as connection:  # pyright: ignore[reportPrivateUsage]
            assert connection.execute("PRAGMA synchronous").fetchone() == (level,)
        log.close()


def test_busy_log_is_left_to_who_can_wait(tmp_path: Path) -> None:
    log, other = (AuditLog(tmp_path / "state", tmp_path / "keys") for _ in range(2))
    for one in (log, other):
        one.append([AuditEntry(RowKind.TOOL_INVOKED)])
    with next((tmp_path / "keys").glob("*.anchor")).open() as anchor:
        fcntl.flock(anchor, fcntl.LOCK_EX)
        assert log.append([AuditEntry(RowKind.TOOL_INVOKED)], wait=False) is False
    assert log.append([AuditEntry(RowKind.TOOL_INVOKED)], wait=False) is True
    assert [astuple(row)[0] for row in log.rows()] == [1, 2, 3, 4]
    log.close()
    other.close()


def test_child_of_a_fork_does_not_read_on_where_its_parent_was(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "state", tmp_path / "keys")
    log.append([AuditEntry(RowKind.TOOL_INVOKED)] * 1200)
    rows = log.rows()
    next(rows)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            list(rows)
        except AuditUnavailable:
            code = 0 if len(list(log.rows())) == 1201 else 2
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    assert len(list(rows)) == 1200
    log.close()


def test_log_whose_key_is_damaged_is_not_continued_and_says_so(log: AuditLog) -> None:
    key = next((log.path.parent.parent / "keys").glob("audit-*.key"))
    key.write_bytes(key.read_bytes()[:7])

    with pytest.raises(AuditUnavailable, match="the key is damaged"):
        log.append([AuditEntry(RowKind.TOOL_INVOKED)])
    assert "the key is damaged" in log.verify().problems[0]
    assert log.proof_key() is None
    moved = log.path.parent.rename(log.path.parent.parent / "moved")
    with pytest.raises(AuditUnavailable, match="the key is damaged"):
        AuditLog(moved, log.path.parent.parent / "keys").accept_move("dana")
