"""The mark by which a window notices what others wrote: it is another as soon as that can be read, and no sooner."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from gatewright.blocks.schema import Append
from gatewright.memory.block_store import FILE_NAME
from gatewright.policy.verdict import Action
from gatewright.workspace import Workspace
from tests.engine.gate.blockbench import BlockBench, opened

ROUNDS = 12


@dataclass(frozen=True)
class Kind:
    """One kind of memory: another program writes, a window reads, and looks at a mark to know when."""

    write: Callable[[Workspace, str], object]
    read: Callable[[Workspace], str]
    mark: Callable[[Workspace], object] = Workspace.memory_mark


KINDS = {
    "block": Kind(
        lambda other, text: other.blocks("ann").edit("log", Append(text), author="other", granted=Action.APPEND),
        lambda own: str(own.blocks("ann").value("log")),
    ),
    "archive": Kind(
        lambda other, text: other.archive("ann").insert(text),
        lambda own: own.archive("ann").list(limit=1)[0].content,
    ),
    "conversation": Kind(
        lambda other, text: other.conversations("ann").append("user", text),
        lambda own: own.conversations("ann").list(limit=1)[0].content,
    ),
    "notes": Kind(
        lambda other, text: other.notes.of("dana").save(text),
        lambda own: own.notes.of("dana").list(limit=1)[0].content,
        lambda own: own.notes.of("dana").mark(),
    ),
}


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[BlockBench]:
    made = opened(tmp_path)
    made.own().create("log", author="operator")
    yield made
    made.workspace.close()


@pytest.fixture
def other(bench: BlockBench) -> Iterator[Workspace]:
    with Workspace.open(bench.folder, keys=bench.workspace.key_folder) as found:
        yield found


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_whoever_reads_at_each_new_mark_has_read_what_was_written_last(
    bench: BlockBench, other: Workspace, kind: Kind
) -> None:
    kind.write(other, "first\n")
    own, mark, text = bench.workspace, kind.mark(bench.workspace), ""
    with ThreadPoolExecutor(1) as beside:
        for number in range(ROUNDS):
            wanted, is_last = f"{'x' * 700 * number} {number}\n", False
            writing = beside.submit(kind.write, other, wanted)
            while not is_last:
                is_last = writing.done()
                now = kind.mark(own)
                if now != mark:
                    mark, text = now, kind.read(own)
            writing.result()
            assert text.split()[-1] == str(number)
            assert kind.mark(own) == mark


def test_mark_waits_for_the_end_of_a_change_of_which_the_log_has_a_part(bench: BlockBench) -> None:
    store, own = bench.workspace.state_folder / FILE_NAME, bench.workspace
    log = store.with_name(f"{store.name}-wal")
    mark, size = own.memory_mark(), log.stat().st_size
    with closing(sqlite3.connect(store, isolation_level=None)) as connection:
        connection.execute("PRAGMA cache_size = 1")
        connection.execute("BEGIN IMMEDIATE")
        for _ in range(50):
            connection.execute("UPDATE block SET snapshot = snapshot || zeroblob(20000)")
        assert log.stat().st_size > size
        assert own.memory_mark() == mark
        connection.execute("ROLLBACK")
        assert own.memory_mark() == mark
        connection.execute("UPDATE block SET updated_at = updated_at + 1")
        assert own.memory_mark() != mark


def test_mark_tells_a_change_that_leaves_size_and_time_of_the_files(bench: BlockBench, other: Workspace) -> None:
    store, own = bench.workspace.state_folder / FILE_NAME, bench.workspace
    files, states, marks = (store, store.with_name(f"{store.name}-wal")), list[object](), list[object]()
    for number in range(4):
        with closing(sqlite3.connect(store, isolation_level=None)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        other.blocks("ann").edit("log", Append(f"{number}\n"), author="other", granted=Action.APPEND)
        for file in files:
            os.utime(file, (1, 1))
        states.append([(facts.st_ino, facts.st_size, facts.st_mtime_ns) for facts in map(os.stat, files)])
        marks.append(own.memory_mark())
    assert states[-1] in states[:-1]
    assert len(set(marks)) == len(marks)
