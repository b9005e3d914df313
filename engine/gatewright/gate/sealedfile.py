"""One connection to a file of sealed rows, with the key and the list of ids that go with it. It reads no rows.

The key is bound to the folder of the file. File, key and list appear with the first change.
"""

from __future__ import annotations

import errno
import hashlib
import hmac
import os
import secrets
import sqlite3
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from gatewright.gate.rowanchor import RowAnchor
from gatewright.memory.writeahead import write_ahead

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable
    from pathlib import Path

KEY_NAME = "approvals.key"
_KEY_BYTES = 32
_BUSY_S = 2.0
_TABLE = """CREATE TABLE IF NOT EXISTS sealed (
  kind TEXT NOT NULL, row_id TEXT NOT NULL, agent TEXT NOT NULL, digest TEXT NOT NULL, owner TEXT NOT NULL,
  until_s REAL, body TEXT NOT NULL, mac TEXT NOT NULL, PRIMARY KEY (kind, row_id)
) WITHOUT ROWID
"""


class SealedFile:
    """The file at ``path``, opened anew when it was replaced or the process forked; None: in memory.

    Not safe to use from several threads at once. Methods raise OSError and sqlite3.Error.
    """

    def __init__(self, path: Path | None, keys: Path | None, *, is_anchored: bool) -> None:
        self.key: bytes | None = None
        self.identity = (0, 0)
        self._path = path
        self._keys = keys
        self._is_anchored = is_anchored
        self._connection: sqlite3.Connection | None = None
        self._anchor: RowAnchor | None = None
        self._process = 0
        self._forked: list[object] = []

    def connection(self, *, create: bool) -> sqlite3.Connection | None:
        """The open file; None while there is none and ``create`` is not said."""
        if self._connection is not None and self._process != os.getpid():
            self._forked += [self._connection, self._anchor]  # the parent's: to close them here would disturb it
            self._connection = self._anchor = None
        if self._connection is not None and (self._path is None or _identity(self._path) == self.identity):
            if self.key is None:
                self._find_key(create=create)
            return self._connection
        self.close()
        if self._path is not None and not create and not self._path.exists():
            return None
        self._connection = self._opened(create=create)
        return self._connection

    def listed(self) -> frozenset[str] | None:
        """The ids that count; None where there is no list."""
        return self._anchor.ids() if self._anchor is not None else None

    def list_revision(self) -> int:
        """Grows with every change of the list that is seen."""
        if self._anchor is None:
            return 0
        self._anchor.ids()
        return self._anchor.revision

    @contextmanager
    def holding_list(self) -> Generator[frozenset[str] | None]:
        """The ids that count, which no other process changes meanwhile; None where there is no list."""
        if self._anchor is None:
            yield None
            return
        with self._anchor.held() as listed:
            yield listed

    def write_list(self, ids: Iterable[str]) -> None:
        """Replace the list; only while it is held."""
        if self._anchor is not None:
            self._anchor.write(ids)

    def close(self) -> None:
        """Let go of the file."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        if self._anchor is not None:
            self._anchor.close()
            self._anchor = None

    def _opened(self, *, create: bool) -> sqlite3.Connection:
        if self._path is None:
            self.key = secrets.token_bytes(_KEY_BYTES)
            connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        else:
            self._find_key(create=create)
            connection = _opened_file(self._path)
            self.identity = _identity(self._path)
        self._process = os.getpid()
        try:
            connection.execute(_TABLE)
        except BaseException:
            connection.close()
            raise
        return connection

    def _find_key(self, *, create: bool) -> None:
        if self._path is None or self._keys is None:
            raise OSError(errno.EINVAL, "there is no key folder")
        key = shared_key(self._keys, create=create)
        folder = os.fsencode(self._path.parent.resolve())
        self.key = None if key is None else hmac.new(key, b"approvals\0" + folder, hashlib.sha256).digest()
        if self.key is not None and self._is_anchored:
            name = f"approvals-{hashlib.sha256(folder).hexdigest()[:16]}.anchor"
            self._anchor = RowAnchor(self._keys / name, self.key)


def _identity(path: Path) -> tuple[int, int]:
    try:
        facts = os.stat(path)  # noqa: PTH116 - asked at every decision, and twice as fast
    except FileNotFoundError:
        return (0, 0)
    return facts.st_dev, facts.st_ino


def _opened_file(path: Path) -> sqlite3.Connection:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if path.is_symlink():
        raise OSError(errno.ELOOP, "it is a symbolic link, which is not followed", str(path))
    with suppress(FileExistsError):  # to open and close one that is there would undo SQLite's own locks on it
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    connection = sqlite3.connect(path, timeout=_BUSY_S, isolation_level=None, check_same_thread=False)
    try:
        write_ahead(connection, _BUSY_S)
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA secure_delete = ON")
    except BaseException:
        connection.close()
        raise
    return connection


def shared_key(folder: Path, *, create: bool) -> bytes | None:
    """The key in that folder that approvals and sessions are sealed with.

    A new one appears whole or not at all, so two processes agree. Raises OSError.
    """
    path = folder / KEY_NAME
    if not path.exists():
        if not create:
            return None
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        _make_key(path)
    key = path.read_bytes()
    if len(key) != _KEY_BYTES:
        raise OSError(errno.EINVAL, "the key of the approvals is damaged", str(path))
    return key


def _make_key(path: Path) -> None:
    fresh = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(secrets.token_bytes(_KEY_BYTES))
            stream.flush()
            os.fsync(stream.fileno())
        with suppress(FileExistsError):
            os.link(fresh, path)
    finally:
        fresh.unlink()
