"""Approvals that somebody tries to win back from an old file, processes that die on the way, files made at once."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gatewright.compile.rule_test import Rate
from gatewright.gate import Approval, ApprovalStore, AuditEntry, AuditLog, Remember, RowKind
from gatewright.gate.approvalstore import FILE_NAME
from gatewright.gate.history import RateBook
from gatewright.memory.block_store import BlockStore
from gatewright.policy.rule import RateLimit
from tests.engine.gate.asking import a_request, small_store
from tests.engine.gate.test_approval_store import TEN_MINUTES, subject
from tests.support.clock import ManualClock

if TYPE_CHECKING:
    from collections.abc import Callable

ONCE = Approval(True, "dana")


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


def grants_in(folder: Path) -> list[tuple[object, ...]]:
    with sqlite3.connect(folder / "state" / FILE_NAME) as connection:
        return connection.execute("SELECT * FROM sealed WHERE kind = 'grant'").fetchall()


def put_back(folder: Path, rows: list[tuple[object, ...]]) -> None:
    connection = sqlite3.connect(folder / "state" / FILE_NAME)
    connection.executemany("INSERT OR REPLACE INTO sealed VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)
    connection.commit()
    connection.close()


def the_list(folder: Path) -> Path:
    return next((folder / "keys").glob("approvals-*.anchor"))


@pytest.mark.parametrize("approval", [ONCE, TEN_MINUTES, Approval(True, "dana", Remember.SCOPE)])
def test_revoked_grant_that_is_put_back_does_not_count(tmp_path: Path, clock: ManualClock, approval: Approval) -> None:
    store = small_store(tmp_path, clock)
    grant = store.remember(a_request(), approval)
    kept = grants_in(tmp_path)
    assert store.revoke(grant.grant_id) == grant

    put_back(tmp_path, kept)

    for one in (store, small_store(tmp_path, clock)):
        assert one.find(subject()) is None
        assert one.standing() == ()
        assert not one.spend(grant)
    assert store.remember(a_request(), TEN_MINUTES) in store.standing()
    assert any("put back" in note for note in store.notes)
    assert len(store.standing()) == 1


def test_spent_grant_does_not_come_back_with_an_older_file(tmp_path: Path, clock: ManualClock) -> None:
    store = small_store(tmp_path, clock)
    grant, other = store.remember(a_request(), ONCE), store.remember(a_request(), TEN_MINUTES)
    store.close()
    old = tmp_path / "old.sqlite"
    shutil.copy(tmp_path / "state" / FILE_NAME, old)
    assert store.spend(grant)
    store.close()
    for path in (tmp_path / "state").glob(f"{FILE_NAME}*"):
        path.unlink()
    shutil.copy(old, tmp_path / "state" / FILE_NAME)

    assert not store.spend(grant)
    assert store.standing() == (other,)


def test_grant_hidden_while_another_is_made_does_not_come_back(tmp_path: Path, clock: ManualClock) -> None:
    store = small_store(tmp_path, clock)
    hidden = store.remember(a_request(), TEN_MINUTES)
    kept = grants_in(tmp_path)
    connection = sqlite3.connect(tmp_path / "state" / FILE_NAME)
    connection.execute("DELETE FROM sealed")
    connection.commit()
    connection.close()
    fresh = store.remember(a_request(), TEN_MINUTES)

    put_back(tmp_path, kept)

    assert store.standing() == (fresh,)
    assert not store.spend(hidden)


def overwrite(path: Path) -> None:
    path.write_bytes(b"[]")


@pytest.mark.parametrize("spoil", [overwrite, Path.unlink])
def test_list_that_is_damaged_costs_grants_and_locks_nobody_out(
    tmp_path: Path, clock: ManualClock, spoil: Callable[[Path], None]
) -> None:
    store = small_store(tmp_path, clock)
    store.remember(a_request(), TEN_MINUTES)
    spoil(the_list(tmp_path))

    assert store.standing() == ()
    fresh = store.remember(a_request(), TEN_MINUTES)
    assert store.standing() == (fresh,)
    assert small_store(tmp_path, clock).standing() == (fresh,)


_DYING = """
import os, signal, sys
from pathlib import Path
from gatewright.record.sealedtable import AnchorFile
from tests.engine.gate.asking import a_request, small_store
from gatewright.gate import Approval, Remember
from tests.support.clock import ManualClock

folder, how = Path(sys.argv[1]), sys.argv[2]
store = small_store(folder, ManualClock())
written = AnchorFile.write

def dying(anchor, text):
    if how == "after":
        written(anchor, text)
    os.kill(os.getpid(), signal.SIGKILL)

if sys.argv[3] == "add":
    AnchorFile.write = dying
    store.remember(a_request(), Approval(True, "dana", Remember.DURATION, 600.0))
else:
    (grant,) = store.standing()
    AnchorFile.write = dying
    store.revoke(grant.grant_id)
"""


def dies(folder: Path, how: str, what: str) -> None:
    root = Path(__file__).parents[3]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    done = subprocess.run([sys.executable, "-c", _DYING, str(folder), how, what], env=environment, check=False)
    assert done.returncode == -signal.SIGKILL


def test_process_killed_before_it_lists_a_grant_leaves_none(tmp_path: Path, clock: ManualClock) -> None:
    dies(tmp_path, "before", "add")
    store = small_store(tmp_path, clock)

    assert len(grants_in(tmp_path)) == 1
    assert store.standing() == ()
    fresh = store.remember(a_request(), TEN_MINUTES)
    assert store.standing() == (fresh,)


def test_process_killed_while_it_revokes_has_revoked_or_not_begun(tmp_path: Path, clock: ManualClock) -> None:
    store = small_store(tmp_path, clock)
    grant = store.remember(a_request(), TEN_MINUTES)

    dies(tmp_path, "before", "revoke")
    assert store.standing() == (grant,)
    dies(tmp_path, "after", "revoke")
    assert len(grants_in(tmp_path)) == 1
    assert store.standing() == ()


_OPENING: dict[str, Callable[[Path, int], object]] = {
    "audit": lambda folder, at: AuditLog(folder, folder / "keys").append([AuditEntry(RowKind.TOOL_DENIED, str(at))]),
    "approvals": lambda folder, _at: ApprovalStore(folder, folder / "keys").remember(a_request(), TEN_MINUTES),
    "rates": lambda folder, _at: RateBook(folder / "rates.sqlite").take([Rate("k", RateLimit(100, 60.0))], 0.0),
    "blocks": lambda folder, at: BlockStore(folder / "blocks.sqlite").put(
        str(at), source_id="s", snapshot=b"", disk_digest=""
    ),
}


@pytest.mark.parametrize("what", _OPENING)
def test_many_who_begin_a_file_at_once_all_write_to_it(tmp_path: Path, what: str) -> None:
    for number in range(10):
        folder = tmp_path / str(number)
        ready, failed = threading.Barrier(6), list[BaseException]()

        def begin(
            at: int, folder: Path = folder, ready: threading.Barrier = ready, failed: list[BaseException] = failed
        ) -> None:
            ready.wait()
            try:
                _OPENING[what](folder, at)
            except BaseException as error:  # noqa: BLE001 told by the thread that waits
                failed.append(error)

        threads = [threading.Thread(target=begin, args=(at,)) for at in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failed == []
