"""An SQLite file in a private folder: made whole, opened without following anything, anew after a fork.

All of ours use a write-ahead log. A file is built under another name and only then gets its own, so no process ever
finds one half made, and none of ours ever has a rollback journal beside it: SQLite would obey one that somebody put
there, and may delete a file that it names.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from functools import cache
from pathlib import Path
from types import MappingProxyType
from urllib.parse import quote

from gatewright.base.errors import ForeignStore, WorkspaceError
from gatewright.record.folder import HomeSeal, PrivateFolder
from gatewright.record.process import fork_safe_lock, renew_after_fork, require_whole

_LOG, _INDEX, _JOURNAL = "-wal", "-shm", "-journal"
_MOST_BYTES = 1 << 28
Identity = tuple[int, int]
Connection = sqlite3.Connection
_FAILURES = (sqlite3.Error, OSError, ValueError, OverflowError)
"""ValueError: sqlite3 may not even be able to say what is wrong with a file; OverflowError: a number in it is past what
it holds."""
_of_parents: list[object] = []
_opening = cache(fork_safe_lock)
"""Held while any file is opened: a fork never comes in the middle of it."""


class Database:
    """The file at ``path``, which appears when it is first written; None: in memory.

    Any thread may use it, one at a time: within `reading` and `writing`. What goes wrong with the file there is raised
    as ``refusal``, with a text that begins with ``what`` it is. ``make``: has the tables in a file that may have them
    already, or older ones. ``pragmas``: set where it is written. ``most_bytes``: the longest text or blob in it.
    ``virtual``: the virtual tables that it may have, by name, each with the very statement that made it.
    ``home_seal``: the one that it has to bear.
    """

    def __init__(
        self,
        path: Path | None,
        *,
        what: str,
        busy_s: float,
        refusal: Callable[[str], WorkspaceError] = WorkspaceError,
        pragmas: Sequence[str] = (),
        make: Callable[[Connection], object] | None = None,
        most_bytes: int = _MOST_BYTES,
        virtual: Mapping[str, str] = MappingProxyType({}),
        home_seal: HomeSeal | None = None,
    ) -> None:
        self.identity: Identity = (0, 0)
        self.lock = fork_safe_lock()
        self.what = f"{what} memory" if path is None else f"{what} `{path}`"
        self.path = path or Path(":memory:")
        self._is_file = path is not None
        self._folder = PrivateFolder(self.path.parent)
        self._name = self.path.name
        self._address = str(self.path)
        self._busy_s = busy_s
        self._refusal = refusal
        self._pragmas = pragmas
        self._make = make
        self._most_bytes = most_bytes
        self._virtual = virtual
        self._home_seal = home_seal
        self._connection: Connection | None = None
        self._openings = 0
        self._is_read_only = False
        renew_after_fork(self)

    def renew(self) -> None:
        """The connection is the parent's; to close it here would disturb the parent."""
        if self._is_file:
            _of_parents.append(self._connection)
            self._connection = None

    @contextmanager
    def reading(self) -> Generator[Connection | None]:
        """The open file, for this thread alone; None while there is none. Nothing of it is changed."""
        with self.lock:
            try:
                yield self._opened_for(write=False)
            except _FAILURES as error:
                raise self._refused("read", error) from error

    @contextmanager
    def writing(self) -> Generator[Connection]:
        """A transaction that no other process writes beside: all of it or nothing. The body may end it."""
        with self.lock:
            try:
                connection = self._opened_for(write=True)
                assert connection is not None
                connection.execute("BEGIN IMMEDIATE")
                try:
                    yield connection
                    if connection.in_transaction:
                        connection.execute("COMMIT")
                finally:
                    if connection.in_transaction:
                        connection.execute("ROLLBACK")
            except _FAILURES as error:
                raise self._refused("written", error) from error

    @contextmanager
    def failing(self, how: str) -> Generator[None]:
        """What goes wrong with the file, or with another that belongs to it, is a refusal: it cannot be ``how``."""
        try:
            yield
        except _FAILURES as error:
            raise self._refused(how, error) from error

    def _refused(self, how: str, error: Exception) -> WorkspaceError:
        self.close()
        words = str(error)
        if isinstance(error, OSError) and error.strerror:
            words = error.strerror.lower() + (f" (`{error.filename}`)" if error.filename else "")
        return self._refusal(f"{self.what} cannot be {how}: {words}")

    def _opened_for(self, *, write: bool) -> Connection | None:
        """The open file, opened anew when another one lies in its place; None while there is none and nothing is to be
        written.
        """
        if not self._is_file:
            return self._in_memory()
        if self._connection is not None and self.is_current() and not (write and self._is_read_only):
            return self._connection
        require_whole()
        with _opening():
            self.close()
            if write:
                self._folder.make()
            if self._folder.look(self._name) is None:
                if not write:
                    return None
                self._create()
            self._connection = self._open(write=write)
        return self._connection

    def is_current(self) -> bool:
        """Whether the file that is open still is the one of that name."""
        try:
            facts = os.lstat(self._address)  # asked at every decision; `Path.lstat` takes three times as long
        except FileNotFoundError:
            return False
        return (facts.st_dev, facts.st_ino) == self.identity

    def mark(self) -> tuple[int, ...]:
        """A value that is another once a change can be read, whoever made it, and no sooner; () where there is no file.

        Facts of the files would be too early: the log grows before anybody can read what is in it. A failure closes
        the file, and with each opening the mark is another: keep a Database that does nothing else.
        """
        with self.reading() as connection:
            return () if connection is None else self.version(connection)

    def version(self, connection: Connection) -> tuple[int, ...]:
        """A value that is another after each change of the open file, by anybody, and with each opening."""
        seen: tuple[int] = connection.execute("PRAGMA data_version").fetchone()  # of each opening it begins anew
        return (*self.identity, self._openings, *seen, connection.total_changes)

    def close(self) -> None:
        """Let go of the file; what is in memory stays."""
        with self.lock:
            if self._connection is not None and self._is_file:
                self._connection.close()
                self._connection = None

    def _in_memory(self) -> Connection:
        require_whole()
        if self._connection is None:
            self._connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
            if self._make is not None:
                self._make(self._connection)
        return self._connection

    def _create(self) -> None:
        """Under the folder's lock, so that nobody replaces the file of another."""
        fresh = f".{self._name}.{secrets.token_hex(6)}.tmp"
        path = self._folder.path / fresh
        put_seal = None if self._home_seal is None else self._home_seal.maker()
        with self._folder.locked():
            if self._folder.look(self._name) is not None:
                return
            for side in (_LOG, _INDEX, _JOURNAL):  # of a file that was removed: they would be taken for this one's
                self._folder.delete(self._name + side)
            try:
                os.close(self._folder.open(fresh, os.O_RDWR | os.O_CREAT | os.O_EXCL))
                with closing(sqlite3.connect(_address(path, "rw"), uri=True, isolation_level=None)) as connection:
                    connection.execute("PRAGMA synchronous = OFF")
                    connection.execute("PRAGMA journal_mode = WAL").fetchone()
                    if self._make is not None:
                        self._make(connection)
                    if put_seal is not None:
                        put_seal(connection)
                _sync(path)
                path.rename(self.path)
            except BaseException:
                for side in ("", _LOG, _INDEX, _JOURNAL):
                    with suppress(OSError):
                        self._folder.delete(fresh + side)
                raise

    def _open(self, *, write: bool) -> Connection:
        identity = self._checked()
        connection = self._connected("rw" if write else "ro")
        try:
            if self._checked() != identity:
                raise FileNotFoundError(f"`{self.path}` was replaced while it was opened")
            if not write:
                connection = self._readable(connection)
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, self._most_bytes)
            _require_plain(connection, self._virtual)
            self._require_own(connection)
            if write:
                if connection.execute("PRAGMA journal_mode").fetchone() != ("wal",):
                    connection.execute("PRAGMA journal_mode = WAL").fetchone()
                for pragma in self._pragmas:
                    connection.execute(f"PRAGMA {pragma}")
                if self._make is not None:
                    self._make(connection)
                if self._home_seal is not None and self._home_seal.is_of_another_name(connection):
                    self._home_seal.maker()(connection)
        except BaseException:
            connection.close()
            raise
        self.identity, self._is_read_only = identity, not write
        self._openings += 1
        return connection

    def _require_own(self, connection: Connection) -> None:
        """Raises ForeignStore for what was made with the keys of somebody else, or for another workspace."""
        seal = self._home_seal
        why = "" if seal is None or seal.adopts else seal.why_foreign(connection)
        if why:
            raise ForeignStore(
                f"{self.what} is foreign and nothing of it is used: {why}. Move it away to begin anew; or, if you "
                "trust what it holds, take it over with `gatewright memory adopt`"
            )

    def _checked(self) -> Identity:
        """Which file it is, once it and those beside it are what they have to be."""
        if self._folder.look(self._name + _JOURNAL) is not None:
            raise sqlite3.DatabaseError(f"`{self._name}{_JOURNAL}` lies beside it, which is none of ours")
        for side in (_LOG, _INDEX):
            self._folder.look(self._name + side)
        facts = self._folder.look(self._name)
        if facts is None:
            raise FileNotFoundError(f"`{self.path}` is gone")
        return facts.st_dev, facts.st_ino

    def _connected(self, mode: str) -> Connection:
        return sqlite3.connect(
            _address(self.path, mode), uri=True, timeout=self._busy_s, isolation_level=None, check_same_thread=False
        )

    def _readable(self, connection: Connection) -> Connection:
        """Itself; where not even a lock can be made, the file as it was left."""
        try:
            connection.execute("PRAGMA schema_version").fetchone()
        except sqlite3.OperationalError:
            log = self._folder.look(self._name + _LOG)
            if log is not None and log.st_size:
                raise
            connection.close()
            return self._connected("ro&immutable=1")
        return connection


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _address(path: Path, mode: str) -> str:
    return f"file:{quote(str(path.absolute()))}?mode={mode}"


_STRANGE = (
    "SELECT 1 FROM sqlite_schema WHERE type NOT IN ('table', 'index') OR (type = 'index' AND sql LIKE '%(%(%')",
    "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND sql LIKE '%check%(%'",
    "SELECT 1 FROM pragma_table_list AS one, pragma_table_xinfo(one.name) WHERE hidden AND one.type <> 'virtual'",
    "SELECT 1 FROM pragma_table_list AS one, pragma_table_xinfo(one.name) WHERE dflt_value LIKE '%(%'",
)
"""Views, triggers, indexes of expressions; conditions of tables; columns and defaults that are worked out."""
_SPECIAL = (
    "SELECT one.name, one.type, sql FROM pragma_table_list AS one LEFT JOIN sqlite_schema AS made "
    "ON made.name = one.name WHERE one.schema = 'main' AND one.type <> 'table'"
)


def _require_plain(connection: Connection, virtual: Mapping[str, str]) -> None:
    """Tables of plain columns and our own virtual ones alone: whatever else came with a file would run, for as long as
    it likes.
    """
    connection.execute("PRAGMA trusted_schema = OFF")
    special = connection.execute(_SPECIAL).fetchall()
    inner = tuple(f"{name}_" for name in virtual)
    if any(connection.execute(question).fetchone() for question in _STRANGE) or any(
        not name.startswith(inner) if kind == "shadow" else virtual.get(name) != made for name, kind, made in special
    ):
        raise sqlite3.DatabaseError("it holds more than plain tables: it is none of ours")
