"""A PostgreSQL database as the state that many gateways share, by psycopg 3 and its pool (the extra ``fleet``).

Runtime roles own nothing and touch no table: they call the functions of the schema ``gatewright``, which
`gatewright_resources/state` defines. The tenant comes from the login role, which `session_user` names. Whatever the
database does not answer within `LIMIT_S` is refused; then its connection is closed, since nobody knows what it holds.
"""

from __future__ import annotations

import os
import select
import threading
import time
from collections.abc import Collection, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import astuple
from importlib.util import find_spec
from typing import Any, TypeVar
from urllib.parse import parse_qsl, urlsplit

from gatewright.base.amount import new_id
from gatewright.base.errors import NotSupported, WorkspaceError
from gatewright.record.process import Releasing, fork_safe_lock, renew_after_fork, require_whole
from gatewright.record.sealedtable import FaultNotes, SealedRow, Version

if find_spec("psycopg") is None or find_spec("psycopg_pool") is None:
    raise NotSupported("a shared state needs the extra `fleet`: pip install 'gatewright[fleet]'")

import psycopg
from psycopg.abc import PQGen
from psycopg.conninfo import conninfo_to_dict
from psycopg_pool import ConnectionPool, PoolTimeout

LIMIT_S = 1.5
"""The time for one use of the database; after it the call is denied."""
VERSION = 1
"""The version of the schema that this program needs."""
_MOST_CONNECTIONS = 4
_INTERVAL_S = 0.1
_FAILURES = (psycopg.Error, PoolTimeout, OSError, ValueError)
_of_parents: list[object] = []
T = TypeVar("T")

Params = Sequence[object]
Row = tuple[Any, ...]


def require_plain_url(url: str) -> str:
    """Return the URL if it holds no password, which other users could see in the list of processes.

    Raises WorkspaceError; its text repeats nothing of the URL.
    """
    try:
        parts = urlsplit(url)
        named = parts.password is not None or "password" in dict(parse_qsl(parts.query))
        conninfo_to_dict(url)
    except (ValueError, psycopg.Error):
        raise WorkspaceError("the URL of the state cannot be read: postgresql://ROLE@HOST/DATABASE") from None
    if named:
        raise WorkspaceError(
            "the URL of the state holds a password; put it into a password file (PGPASSFILE) or a service file "
            "(postgresql:///?service=NAME)"
        )
    return url


class SharedConnection(psycopg.Connection[Row]):
    """A connection whose every wait ends at ``deadline_s``, a moment of the monotonic clock."""

    deadline_s = float("inf")

    def wait(self, gen: PQGen[T], interval: float = _INTERVAL_S, *rest: Any, **more: Any) -> T:
        """Wait as psycopg does, but not after the deadline. Raises OperationalError."""
        return super().wait(self._until(gen), min(interval, _INTERVAL_S), *rest, **more)

    def _until(self, gen: PQGen[T]) -> PQGen[T]:
        ready: Any = None
        while True:
            try:
                wanted = gen.send(ready)
            except StopIteration as end:
                return end.value
            ready = yield wanted
            if not ready and time.monotonic() > self.deadline_s:
                gen.close()
                self.close()
                raise psycopg.OperationalError("it did not answer in time")

    def is_alive(self) -> bool:
        """Tell whether the connection may be used; what the server says unasked is mostly its last word."""
        with suppress(psycopg.Error, OSError, ValueError):
            waiting = select.poll()
            waiting.register(self.pgconn.socket, select.POLLIN)
            return not self.closed and not waiting.poll(0)
        return False


class SharedState:
    """The state at ``url``, a URL of libpq without a password. Nothing connects before the first use.

    Any thread may use it. Every method that asks the database raises ``refusal``, a WorkspaceError, if that fails.
    """

    def __init__(self, url: str) -> None:
        self.url = require_plain_url(url)
        known = conninfo_to_dict(url)
        self.place = _place(known)
        """The database in words, without its role."""
        self._lock = fork_safe_lock()
        self._pool: ConnectionPool[SharedConnection] | None = None
        renew_after_fork(self)

    def renew(self) -> None:
        """Abandon the parent's connections in a child."""
        if self._pool is not None:
            _of_parents.append(self._pool)
            self._pool = None

    def ask(self, question: str, params: Params = (), *, refusal: type[WorkspaceError] = WorkspaceError) -> list[Row]:
        """The rows that one statement yields, in a transaction of its own."""
        with self.failing(refusal), self._borrowed() as connection:
            return connection.execute(question.encode(), params).fetchall()

    @contextmanager
    def transaction(self, *, refusal: type[WorkspaceError] = WorkspaceError) -> Generator[SharedConnection]:
        """A transaction, all or nothing. If its commit fails, nobody knows whether it happened."""
        with self.failing(refusal), self._borrowed() as connection, connection.transaction():
            yield connection

    def table(self, kinds: Collection[str], name: str) -> tuple[SharedTable, SharedLifeline, SharedPresence]:
        """The table of that name with rows of these kinds, the life of this process, and who is there to answer."""
        return SharedTable(self, kinds, name), SharedLifeline(self, name), SharedPresence(self)

    def close(self) -> None:
        """Close every connection."""
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.close(LIMIT_S)

    @contextmanager
    def failing(self, refusal: type[WorkspaceError]) -> Generator[None]:
        """Turn faults of the database into ``refusal``, in one sentence."""
        try:
            yield
        except _FAILURES as error:
            raise refusal(f"the database `{self.place}` {_words(error)}") from error

    @contextmanager
    def _borrowed(self) -> Generator[SharedConnection]:
        """A connection that the server has not ended, for this thread alone."""
        deadline_s = time.monotonic() + LIMIT_S
        pool = self._opened(deadline_s)
        connection = _take(pool, deadline_s)
        try:
            connection.deadline_s = deadline_s
            yield connection
        finally:
            connection.deadline_s = float("inf")
            pool.putconn(connection)

    def _opened(self, deadline_s: float) -> ConnectionPool[SharedConnection]:
        require_whole()
        if not self._lock.acquire(timeout=max(0.0, deadline_s - time.monotonic())):
            raise PoolTimeout  # others wait for the first connection, each no longer than its time
        try:
            if self._pool is not None:
                return self._pool
            pool = ConnectionPool(
                self.url,
                connection_class=SharedConnection,
                kwargs=_settings(),
                min_size=1,
                max_size=_MOST_CONNECTIONS,
                timeout=LIMIT_S,
                reconnect_timeout=LIMIT_S,
                open=False,
            )
            try:
                # the first one by itself: the pool would not say why it fails
                with SharedConnection.connect(self.url, **_settings()) as first:
                    first.deadline_s = deadline_s
                    require_version(first)
                pool.open()
            except BaseException:
                pool.close(LIMIT_S)
                raise
            self._pool = pool
            return pool
        finally:
            self._lock.release()


def _settings() -> dict[str, Any]:
    limit_ms = round(LIMIT_S * 1000)
    return {
        "autocommit": True,
        "prepare_threshold": None,  # behind a pooler the next statement may reach another server process
        "connect_timeout": 2,
        "application_name": "gatewright",
        "options": f"-c statement_timeout={limit_ms} -c lock_timeout={limit_ms}",
    }


def _take(pool: ConnectionPool[SharedConnection], deadline_s: float) -> SharedConnection:
    while True:
        connection = pool.getconn(max(0.01, deadline_s - time.monotonic()))
        if connection.is_alive():
            return connection
        connection.close()
        pool.putconn(connection)


def require_version(connection: psycopg.Connection[Row]) -> None:
    """Raise ValueError unless the database holds a state of the version that this program needs."""
    version = version_of(connection)
    if version == VERSION:
        return
    if version is None:
        raise ValueError("holds no state of Gatewright; `gatewright state init` makes one")
    if version > VERSION:
        raise ValueError(f"has version {version}, and this program knows versions up to {VERSION}: update the program")
    raise ValueError(f"has version {version}, and this program needs {VERSION}: run `gatewright state migrate`")


def version_of(connection: psycopg.Connection[Row]) -> int | None:
    """The version of the schema in the database; None without one."""
    (there,) = connection.execute("SELECT to_regclass('gatewright.versions')").fetchone() or (None,)
    if there is None:
        return None
    (version,) = connection.execute("SELECT max(version) FROM gatewright.versions").fetchone() or (None,)
    return None if version is None else int(version)


def _place(known: Mapping[str, Any]) -> str:
    """The database in words, for messages."""
    if known.get("service"):
        return f"service {known['service']}"
    host = known.get("host") or os.environ.get("PGHOST") or "local"
    return f"{known.get('dbname') or os.environ.get('PGDATABASE') or 'default'} on {host}"


def _words(error: Exception) -> str:
    """The fault as the end of a sentence that begins with the database."""
    if isinstance(error, ValueError):
        return str(error)
    if isinstance(error, PoolTimeout):
        return "cannot be reached in time"
    if isinstance(error, psycopg.Error):
        code, text = error.sqlstate or "", " ".join(str(error).split())
        if code.startswith("GW") and error.diag.message_primary:
            return f"refused: {error.diag.message_primary}"
        if code == "42501":
            return f"refused: {error.diag.message_primary}; the role has no duty that allows it"
        if code == "57014":
            return "did not answer in time"
        if isinstance(error, psycopg.OperationalError) and not code:
            return f"cannot be used: {text}"
        return f"cannot be used: {error.diag.message_primary or text}"
    return f"cannot be used: {error}"


_BEAT_S = 10.0
_LIVING_S = 0.5
_LIVING = "SELECT * FROM gatewright.living(%s)"
_PUT = "SELECT gatewright.put_row(%s, %s, %s, %s, %s, %s, %s, %s)"


class SharedChange:
    """An open transaction on a table; ``rows``: the rows at its start."""

    def __init__(self, connection: SharedConnection, name: str, rows: tuple[SealedRow, ...]) -> None:
        self.rows = rows
        self._connection = connection
        self._name = name

    def put(self, row: SealedRow) -> None:
        """Add a row, or replace the one of the same kind and id."""
        self._connection.execute(_PUT, (self._name, *astuple(row)))

    def delete(self, rows: Iterable[SealedRow]) -> None:
        """Delete rows."""
        for row in list(rows):
            self._connection.execute("SELECT gatewright.delete_row(%s, %s, %s)", (self._name, row.kind, row.row_id))


class SharedTable(FaultNotes):
    """A table of rows that come and go, as `SealedTable` is one in a file; roles protect it in place of seals."""

    def __init__(self, state: SharedState, kinds: Collection[str], name: str) -> None:
        super().__init__()
        self._state = state
        self._kinds = frozenset(kinds)
        self._name = name
        self._read: tuple[Version, tuple[SealedRow, ...]] = (), ()

    def version(self) -> Version:
        """A value that changes with any change of a row; empty before the first."""
        ((version,),) = self._state.ask("SELECT gatewright.table_version(%s)", (self._name,))
        return (int(version),) if version else ()

    def rows(self) -> tuple[SealedRow, ...]:
        """Every row, read once for each version."""
        version = self.version()
        known, rows = self._read
        if known != version:
            rows = self._known(self._state.ask("SELECT * FROM gatewright.table_rows(%s)", (self._name,)))
            self._read = version, rows
        return rows

    @contextmanager
    def changing(self) -> Generator[SharedChange]:
        """A transaction that excludes other writers of the table, and writes all or nothing."""
        with self._state.transaction() as connection:
            connection.execute("SELECT gatewright.hold_table(%s)", (self._name,))
            found = connection.execute("SELECT * FROM gatewright.table_rows(%s)", (self._name,)).fetchall()
            yield SharedChange(connection, self._name, self._known(found))

    def close(self) -> None:
        """Close nothing: the state is closed by whoever opened it."""

    def _known(self, found: Iterable[Row]) -> tuple[SealedRow, ...]:
        return tuple(SealedRow(*fields) for fields in found if fields[0] in self._kinds)


class SharedLifeline(Releasing):
    """Shows other processes that this one lives, while anything depends on it, as `Lifeline` does by a file.

    A thread says so every ten seconds; `gatewright_resources/state` says when others take it for gone. ``role``: what
    the process is alive as.
    """

    def __init__(self, state: SharedState, role: str) -> None:
        self._state, self._role = state, role
        self._lock = fork_safe_lock()
        self._living: tuple[float, frozenset[str]] = float("-inf"), frozenset()
        self.renew()
        renew_after_fork(self)

    def renew(self) -> None:
        """Become another owner in a child, without dependents."""
        self._owner = new_id("owner")
        self._hanging: set[str] = set()
        self._ends = threading.Event()
        self._beats: threading.Thread | None = None

    def hold(self, what: str) -> str:
        """Return the owner, on whose life ``what`` depends from now on. Raises WorkspaceError."""
        with self._lock:
            if self._beats is None:
                self._beat()
                self._ends = threading.Event()
                self._beats = threading.Thread(target=self._go_on, args=(self._ends,), name="alive", daemon=True)
                self._beats.start()
            self._hanging.add(what)
            return self._owner

    def let_go(self, what: str) -> None:
        """Release ``what``; with the last dependent the process counts as gone."""
        with self._lock:
            self._hanging.discard(what)
            if not self._hanging:
                self._end()

    def lives(self, owner: str) -> bool:
        """Tell whether the process of that owner lives. Raises WorkspaceError."""
        return owner in self.living()

    def living(self) -> frozenset[str]:
        """The owners that live, as of the last half second. Raises WorkspaceError."""
        at_s, living = self._living
        if time.monotonic() - at_s > _LIVING_S:
            living = frozenset(str(owner) for (owner,) in self._state.ask(_LIVING, (self._role,)))
            self._living = time.monotonic(), living
        return living

    def close(self) -> None:
        """Release everything."""
        with self._lock:
            self._hanging.clear()
            self._end()

    def _beat(self) -> None:
        self._state.ask("SELECT gatewright.beat(%s, %s)", (self._owner, self._role))

    def _go_on(self, ends: threading.Event) -> None:
        while not ends.wait(_BEAT_S):
            with suppress(WorkspaceError):  # the next beat may get through
                self._beat()

    def _end(self) -> None:
        if self._beats is not None:
            self._ends.set()
            self._beats = None
            with suppress(WorkspaceError):  # then others wait until it counts as gone
                self._state.ask("SELECT gatewright.end_process(%s)", (self._owner,))


class SharedPresence:
    """The operators of a shared state, who are present while their process lives."""

    def __init__(self, state: SharedState) -> None:
        self._lifeline = SharedLifeline(state, "operator")

    def begin(self, operator: str) -> None:
        """Announce the operator, until ``end``, ``close`` or the end of the process. Raises WorkspaceError."""
        self._lifeline.hold(operator)

    def end(self, operator: str) -> None:
        """Withdraw the operator."""
        self._lifeline.let_go(operator)

    def is_anybody(self) -> bool:
        """Tell whether an operator is present, in any process. Raises WorkspaceError."""
        return bool(self._lifeline.living())

    def close(self) -> None:
        """Withdraw every operator of this object."""
        self._lifeline.close()
