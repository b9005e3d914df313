"""An SQLite file in a private folder: created whole, opened without following links, reopened after a fork.

Every file uses a write-ahead log, and gets its name only when it is complete. So no process finds an incomplete file,
and no file of ours ever has a rollback journal: SQLite would obey a planted journal, which may make it delete another
file.
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

_PAGES = 256

_LOG, _INDEX, _JOURNAL = "-wal", "-shm", "-journal"
_MOST_BYTES = 1 << 28
Identity = tuple[int, int]
Connection = sqlite3.Connection
FAILURES = (sqlite3.Error, OSError, ValueError, OverflowError)
"""The errors of a faulty file.

ValueError: sqlite3 may fail to describe the fault; OverflowError: a number exceeds sqlite3's range.
"""
_TRIES = 3
_of_parents: list[object] = []
_opening = cache(fork_safe_lock)
"""Held while any file is being opened, so that no fork interrupts it."""


class _ReplacedError(FileNotFoundError):
    """Another file took the place of the one that was being opened."""


class Database:
    """The file at ``path``, which the first write creates; None means in memory.

    Threads use it one at a time, within `reading` and `writing`; faults of the file become ``refusal`` there, whose
    text begins with ``what``, the name of the file's kind. ``make`` creates the tables, or updates older ones.
    ``pragmas`` are set before writing. ``most_bytes``: the longest text or blob in it. ``virtual``: the permitted
    virtual tables, each by name with its exact statement. ``home_seal``: the seal that it must have.
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
        """Abandon the parent's connection: closing it here would disturb the parent."""
        if self._is_file:
            _of_parents.append(self._connection)
            self._connection = None

    @contextmanager
    def reading(self) -> Generator[Connection | None]:
        """The open file, read-only and for this thread alone; None if it does not exist."""
        with self.lock:
            try:
                yield self._connection_for(write=False)
            except FAILURES as error:
                raise self.refusal_of("read", error) from error

    @contextmanager
    def writing(self) -> Generator[Connection]:
        """A transaction that excludes other writers, and writes all or nothing; the body may end it early."""
        with self.lock:
            try:
                connection = self._connection_for(write=True)
                assert connection is not None
                connection.execute("BEGIN IMMEDIATE")
                try:
                    yield connection
                    if connection.in_transaction:
                        connection.execute("COMMIT")
                finally:
                    if connection.in_transaction:
                        connection.execute("ROLLBACK")
            except FAILURES as error:
                raise self.refusal_of("written", error) from error

    @contextmanager
    def failing(self, how: str) -> Generator[None]:
        """Turn faults of the file, or of another file that belongs to it, into a refusal that says what cannot be done
        (``how``).
        """
        try:
            yield
        except FAILURES as error:
            raise self.refusal_of(how, error) from error

    def refusal_of(self, how: str, error: Exception) -> WorkspaceError:
        """Close the file, and return the refusal for its fault; ``how`` says what cannot be done."""
        self.close()
        words = str(error)
        if isinstance(error, OSError) and error.strerror:
            words = error.strerror.lower() + (f" (`{error.filename}`)" if error.filename else "")
        return self._refusal(f"{self.what} cannot be {how}: {words}")

    def _connection_for(self, *, write: bool) -> Connection | None:
        """The connection, reopened if another file has taken its place; None for a missing file that nobody writes."""
        if not self._is_file:
            return self._in_memory()
        if self._connection is not None and not (write and self._is_read_only):
            with suppress(FileNotFoundError):
                facts = os.lstat(self._address)  # every decision asks this; `Path.lstat` takes three times as long
                if (facts.st_dev, facts.st_ino) == self.identity:
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
            self._connection = self._open_settled(write=write)
        return self._connection

    def mark(self) -> tuple[int, ...]:
        """A value that changes exactly when a new change becomes readable, whoever made it; () without a file.

        Time and size of the files would change too early: the log grows before anybody can read its content. Use a
        Database for marks alone: a fault closes the file, and each opening changes the mark.
        """
        with self.reading() as connection:
            return () if connection is None else self.version(connection)

    def version(self, connection: Connection) -> tuple[int, ...]:
        """A value that changes with each change of the open file, whoever makes it, and with each opening."""
        seen: tuple[int] = connection.execute("PRAGMA data_version").fetchone()  # each opening counts from the start
        return (*self.identity, self._openings, *seen, connection.total_changes)

    def close(self) -> None:
        """Close the file; data in memory stays."""
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
        """Create the file under the folder's lock, so that no process replaces the file of another."""
        fresh = f".{self._name}.{secrets.token_hex(6)}.tmp"
        path = self._folder.path / fresh
        put_seal = None if self._home_seal is None else self._home_seal.maker()
        with self._folder.exclusive():
            if self._folder.look(self._name) is not None:
                return
            # left by a removed file: SQLite would take them for those of this file
            for side in (_LOG, _INDEX, _JOURNAL):
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

    def _open_settled(self, *, write: bool) -> Connection:
        """Open the file that lies there, once more if another took its place meanwhile: that is no fault of either."""
        for _ in range(_TRIES):
            with suppress(_ReplacedError):
                return self._open(write=write)
        return self._open(write=write)

    def _open(self, *, write: bool) -> Connection:
        identity = self._identify()
        connection = self._connect("rw" if write else "ro")
        try:
            if self._identify() != identity:
                raise _ReplacedError(f"`{self.path}` was replaced during opening")
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
        """Raise ForeignStore for a file made with another user's keys, or for another workspace."""
        seal = self._home_seal
        why = "" if seal is None or seal.adopts else seal.why_foreign(connection)
        if why:
            raise ForeignStore(
                f"{self.what} is foreign, so Gatewright ignores it: {why}. Move it away to begin anew; or, if you "
                "trust what it holds, take it over with `gatewright memory adopt`"
            )

    def _identify(self) -> Identity:
        """Check the file and its companions, and return the identity of the file."""
        if self._folder.look(self._name + _JOURNAL) is not None:
            raise sqlite3.DatabaseError(f"`{self._name}{_JOURNAL}` lies beside it and is not ours")
        for side in (_LOG, _INDEX):
            self._folder.look(self._name + side)
        facts = self._folder.look(self._name)
        if facts is None:
            raise FileNotFoundError(f"`{self.path}` is gone")
        return facts.st_dev, facts.st_ino

    def _connect(self, mode: str) -> Connection:
        return sqlite3.connect(
            _address(self.path, mode), uri=True, timeout=self._busy_s, isolation_level=None, check_same_thread=False
        )

    def _readable(self, connection: Connection) -> Connection:
        """The connection itself or, where even a lock is impossible, an immutable view of the file."""
        try:
            connection.execute("PRAGMA schema_version").fetchone()
        except sqlite3.OperationalError:
            log = self._folder.look(self._name + _LOG)
            if log is not None and log.st_size:
                raise
            connection.close()
            return self._connect("ro&immutable=1")
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
"""Views, triggers, indexes on expressions; tables with conditions; computed columns and defaults."""
_SPECIAL = (
    "SELECT one.name, one.type, sql FROM pragma_table_list AS one LEFT JOIN sqlite_schema AS made "
    "ON made.name = one.name WHERE one.schema = 'main' AND one.type <> 'table'"
)


def _require_plain(connection: Connection, virtual: Mapping[str, str]) -> None:
    """Raise DatabaseError unless the file holds only plain tables and our own virtual ones.

    SQLite would run anything else, such as a view, without a limit of time.
    """
    connection.execute("PRAGMA trusted_schema = OFF")
    special = connection.execute(_SPECIAL).fetchall()
    inner = tuple(f"{name}_" for name in virtual)
    if any(connection.execute(question).fetchone() for question in _STRANGE) or any(
        not name.startswith(inner) if kind == "shadow" else virtual.get(name) != made for name, kind, made in special
    ):
        raise sqlite3.DatabaseError("it holds more than plain tables, so it is not ours")


def copy_database(
    database: Database,
    target: HomeSeal,
    stop_if_cancelled: Callable[[], None],
    finish: Callable[[sqlite3.Connection], object] = bool,
) -> bool:
    """Copy the file to the path in ``target``, put that seal on the copy and close it; False if there is no file.

    ``finish`` receives the copy. Raises WorkspaceError.
    """

    def goes_on(_status: int, _rest: int, _all: int) -> None:
        stop_if_cancelled()

    with closing(database), database.reading() as source, database.failing("copied"):
        if source is None:
            return False
        target.path.parent.mkdir(parents=True, exist_ok=True)
        put_seal = target.maker()
        with closing(sqlite3.connect(target.path)) as copy:
            source.backup(copy, pages=_PAGES, progress=goes_on, sleep=0)
            finish(copy)
            with copy:
                put_seal(copy)
    return True
