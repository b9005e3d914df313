import os
import signal
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from gatewright.base.errors import WorkspaceError
from gatewright.memory.block_store import BlockStore, StoredBlock
from tests.support.clock import ManualClock


def put(store: BlockStore, label: str, snapshot: bytes = b"s", source_id: str = "docs") -> None:
    store.put(label, source_id=source_id, snapshot=snapshot, disk_digest="d")


def test_a_block_is_found_again_by_another_store(tmp_path: Path) -> None:
    path = tmp_path / "state" / "blocks.sqlite"
    with BlockStore(path, clock=ManualClock(50.0)) as store:
        put(store, "file:1:a", b"\0\xff")
    with BlockStore(path) as store:
        assert store.get("file:1:a") == StoredBlock("file:1:a", "docs", b"\0\xff", "d", 50.0)
        assert store.get("file:1:b") is None


def test_a_put_takes_the_place_of_the_old_block_and_delete_forgets_it(tmp_path: Path) -> None:
    with BlockStore(tmp_path / "b.sqlite") as store:
        put(store, "x", b"1")
        put(store, "x", b"2")
        found = store.get("x")
        assert found is not None
        assert found.snapshot == b"2"
        assert store.delete("x")
        assert not store.delete("x")
        assert store.labels() == ()


def test_labels_are_those_of_one_source_or_of_all(tmp_path: Path) -> None:
    with BlockStore(tmp_path / "b.sqlite") as store:
        put(store, "b", source_id="one")
        put(store, "a", source_id="two")
        assert store.labels() == ("a", "b")
        assert store.labels("one") == ("b",)


def test_asking_an_absent_store_makes_no_file(tmp_path: Path) -> None:
    path = tmp_path / "none" / "b.sqlite"
    with BlockStore(path) as store:
        assert store.get("x") is None
        assert store.labels() == ()
        assert not store.delete("x")
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_file_is_told_with_its_path(tmp_path: Path) -> None:
    path = tmp_path / "b.sqlite"
    path.write_bytes(b"this is no database" * 100)
    with BlockStore(path) as store, pytest.raises(WorkspaceError, match=r"b\.sqlite"):
        store.get("x")


def test_a_file_of_a_newer_version_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "b.sqlite"
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with BlockStore(path) as store, pytest.raises(WorkspaceError, match="newer"):
        put(store, "x")


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with BlockStore(tmp_path / "file" / "b.sqlite") as store, pytest.raises(WorkspaceError, match="cannot be written"):
        put(store, "x")


def test_a_store_that_cannot_be_written_is_still_read(tmp_path: Path) -> None:
    path = tmp_path / "b.sqlite"
    with BlockStore(path) as store:
        put(store, "x")
    path.chmod(0o444)
    tmp_path.chmod(0o555)
    try:
        with BlockStore(path) as store:
            assert store.get("x") is not None
    finally:
        tmp_path.chmod(0o755)


def test_many_threads_use_one_store(tmp_path: Path) -> None:
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for turn in range(20):
                put(store, f"{number}", f"{turn}".encode())
                assert store.get(f"{number}") is not None
        except BaseException as error:
            failures.append(error)
            raise

    with BlockStore(tmp_path / "b.sqlite") as store:
        threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []
        assert len(store.labels()) == 6


WRITER = """
import sys
from pathlib import Path
from gatewright.memory.block_store import BlockStore
from tests.support.clock import ManualClock
store = BlockStore(Path(sys.argv[1]))
number = 0
while True:
    store.put("x", source_id="s", snapshot=b"%d" % number, disk_digest=str(number))
    print(number, flush=True)
    number += 1
"""


def test_what_was_acknowledged_survives_a_kill(tmp_path: Path) -> None:
    path = tmp_path / "b.sqlite"
    with subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        acknowledged = -1
        for line in writer.stdout:
            acknowledged = int(line)
            if acknowledged >= 20:
                break
        os.kill(writer.pid, signal.SIGKILL)
    with BlockStore(path) as store:
        found = store.get("x")
    assert found is not None
    assert int(found.disk_digest) >= acknowledged
    assert found.snapshot == found.disk_digest.encode()


def test_a_store_that_another_process_holds_is_refused_in_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gatewright.memory.block_store._BUSY_S", 0.01)
    first, second = BlockStore(tmp_path / "b.sqlite"), BlockStore(tmp_path / "b.sqlite")
    with first.exclusive():
        assert second.get("file:1:a") is None
        with pytest.raises(WorkspaceError, match="locked by another process"), second.exclusive():
            pass
    with second.exclusive():
        put(second, "file:1:a")
    assert first.get("file:1:a") is not None


def test_a_link_to_a_strangers_database_is_not_opened(tmp_path: Path) -> None:
    foreign = tmp_path / "foreign.sqlite"
    with sqlite3.connect(foreign) as connection:
        connection.execute("CREATE TABLE cookies (value TEXT)")
    connection.close()
    before = foreign.read_bytes()
    (tmp_path / "b.sqlite").symlink_to(foreign)
    with BlockStore(tmp_path / "b.sqlite") as store:
        with pytest.raises(WorkspaceError, match="symbolic link"):
            store.get("x")
        with pytest.raises(WorkspaceError, match="symbolic link"):
            put(store, "x")
    assert foreign.read_bytes() == before


def test_a_store_that_came_with_views_is_refused_instead_of_run(tmp_path: Path) -> None:
    path = tmp_path / "b.sqlite"
    with sqlite3.connect(path) as connection:
        endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x FROM n) SELECT * FROM n"
        connection.execute(f"CREATE VIEW block AS {endless}")
    connection.close()
    with BlockStore(path) as store, pytest.raises(WorkspaceError, match="it is not ours"):
        store.get("x")
