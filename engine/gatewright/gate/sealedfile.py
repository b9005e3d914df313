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
from contextlib import contextmanager
from typing import TYPE_CHECKING

from gatewright.gate.rowanchor import RowAnchor
from gatewright.record import Database, PrivateFolder

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
        self.key = secrets.token_bytes(_KEY_BYTES) if path is None else None
        self._database = _database(path)
        self._connection: sqlite3.Connection | None = None
        self._path = path
        self._keys = keys
        self._is_anchored = is_anchored
        self._anchor: RowAnchor | None = None

    @property
    def identity(self) -> tuple[int, int]:
        """Differs once another file lies in the place of the one that was open."""
        return self._database.identity

    def connection(self, *, create: bool) -> sqlite3.Connection | None:
        """The open file; None while there is none and ``create`` is not said."""
        connection = self._database.connection(write=create)
        if (
            self._path is not None
            and connection is not None
            and (self.key is None or connection is not self._connection)
        ):
            self._find_key(create=create)
        self._connection = connection
        return connection

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
        self._database.close()
        self._let_go_of_list()
        if self._path is not None:
            self._connection = self.key = None

    def _let_go_of_list(self) -> None:
        if self._anchor is not None:
            self._anchor.close()
            self._anchor = None

    def _find_key(self, *, create: bool) -> None:
        if self._path is None or self._keys is None:
            raise OSError(errno.EINVAL, "there is no key folder")
        key = shared_key(self._keys, create=create)
        folder = os.fsencode(self._path.parent.resolve())
        self.key = None if key is None else hmac.new(key, b"approvals\0" + folder, hashlib.sha256).digest()
        self._let_go_of_list()
        if self.key is not None and self._is_anchored:
            name = f"approvals-{hashlib.sha256(folder).hexdigest()[:16]}.anchor"
            self._anchor = RowAnchor(self._keys / name, self.key)


def _database(path: Path | None) -> Database:
    return Database(
        None if path is None else PrivateFolder(path.parent),
        "" if path is None else path.name,
        busy_s=_BUSY_S,
        pragmas=("synchronous = NORMAL", "secure_delete = ON"),
        make=lambda connection: connection.execute(_TABLE),
    )


def shared_key(folder: Path, *, create: bool) -> bytes | None:
    """The key in that folder that approvals and sessions are sealed with.

    A new one appears whole or not at all, so two processes agree. Raises OSError.
    """
    keys = PrivateFolder(folder)
    if keys.look(KEY_NAME) is None:
        if not create:
            return None
        keys.create(KEY_NAME, secrets.token_bytes(_KEY_BYTES))
    key = keys.read(KEY_NAME, _KEY_BYTES + 1)
    if len(key) != _KEY_BYTES:
        raise OSError(errno.EINVAL, "the key of the approvals is damaged", str(folder / KEY_NAME))
    return key
