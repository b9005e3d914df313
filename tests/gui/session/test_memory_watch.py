"""The watch over memory tells each thing that whoever reads would tell anew, also why memory cannot be read."""

import sqlite3
from contextlib import closing
from pathlib import Path

from gatewright.memory.block_store import FILE_NAME
from gatewright.workspace import Workspace
from gatewright_gui.qt.task import TaskOwner
from gatewright_gui.session.watch import MemoryWatch
from tests.gui.session.opened import demo, opened_document, until


def damaged(file: Path) -> None:
    file.write_bytes(b"no database")


def strange(file: Path) -> None:
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("CREATE VIEW seen AS SELECT 1")


def nameless(file: Path) -> None:
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("CREATE TABLE plain (one)")


async def test_each_reason_why_memory_cannot_be_read_is_told_once(tmp_path: Path) -> None:
    policy = demo(tmp_path)
    with Workspace.open(policy) as own:
        own.blocks("").create("log", author="operator")
        store = own.state_folder / FILE_NAME
    told, looks, failures = list[int](), list[object](), list[BaseException]()

    def mark(workspace: Workspace) -> object:
        looks.append(workspace)
        return workspace.memory_mark()

    async with opened_document(policy) as document:
        tasks = TaskOwner(lambda _, error: failures.append(error))
        watch = MemoryWatch(document, tasks, lambda: True, mark)
        watch.changed.connect(lambda: told.append(len(looks)))
        await until(lambda: told)
        for make, is_new in ((damaged, True), (damaged, False), (strange, True), (nameless, True), (nameless, False)):
            before, seen, fresh = len(told), len(looks), store.with_name("fresh")
            make(fresh)
            fresh.chmod(0o600)
            fresh.replace(store)
            await until(lambda seen=seen: len(looks) > seen + 2)
            assert len(told) == before + is_new
        await tasks.close()
    assert not failures
