"""Foreign stores of memory in a state folder, and taking them over: an operator who trusts them says so."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from gatewright.base.errors import ForeignStore, WorkspaceError
from gatewright.memory import entrytable, notes
from gatewright.memory.block_store import FILE_NAME
from gatewright.record.database import Database
from gatewright.record.folder import HomeSeal, PrivateFolder

_BUSY_S = 5.0


def foreign_stores(state: Path, keys: Path) -> Iterator[Path]:
    """The files of memory in the folder ``state`` that do not bear the seal of this user and this workspace."""
    for name in _names(state):
        try:
            with closing(_database(HomeSeal(state, keys, name))) as database, database.reading():
                pass
        except WorkspaceError:
            yield state / name


def adopt_memory(state: Path, keys: Path) -> tuple[Path, ...]:
    """Take over every foreign store with all that it holds; the files. Raises WorkspaceError for a damaged one."""
    adopted: list[Path] = []
    for name in _names(state):
        try:
            with closing(_database(HomeSeal(state, keys, name))) as database, database.reading():
                pass
        except ForeignStore:
            with closing(_database(HomeSeal(state, keys, name, adopts=True))) as database, database.writing():
                adopted.append(state / name)
    return tuple(adopted)


def _names(state: Path) -> list[str]:
    folder = PrivateFolder(state)
    try:
        found = [FILE_NAME] * (folder.look(FILE_NAME) is not None)
        kept = [name for name in folder.folder(notes.FOLDER).names() if name.endswith(notes.SUFFIX)]
    except OSError as error:
        raise WorkspaceError(f"the memory in `{state}` cannot be read: {error.strerror or error}") from None
    return found + [f"{notes.FOLDER}/{name}" for name in kept]


def _database(seal: HomeSeal) -> Database:
    virtual = {**entrytable.VIRTUAL, **notes.VIRTUAL}
    return Database(seal.path, what="the memory", busy_s=_BUSY_S, virtual=virtual, home_seal=seal)
