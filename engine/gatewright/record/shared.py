"""A PostgreSQL database as the state that many gateways share, by psycopg 3 and its pool (the extra ``fleet``).

Runtime roles own nothing and touch no table: they call the functions of the schema ``gatewright``, which
`gatewright_resources/state` defines. The tenant comes from the login role, which `session_user` names. Whatever the
database does not answer within `LIMIT_S` is refused; then its connection is closed, since nobody knows what it holds.
"""

from __future__ import annotations

import os
import select
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from typing import Any, TypeVar
from urllib.parse import parse_qsl, urlsplit

from gatewright.base.errors import NotSupported, WorkspaceError
from gatewright.record.folder import STATE_VARIABLE, URLS
from gatewright.record.process import fork_safe_lock, renew_after_fork, require_whole

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
        with self._lock:
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
    """Raise WorkspaceError unless the database holds a state of the version that this program needs."""
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


def shared_url(explicit: object = None) -> str | None:
    """The URL of a shared state: ``explicit``, else GATEWRIGHT_STATE; None if neither is such a URL."""
    named = str(explicit or os.environ.get(STATE_VARIABLE) or "")
    return named if named.startswith(URLS) else None
