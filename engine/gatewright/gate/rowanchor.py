"""Which rows of a shared file count: their ids, kept in the key folder, away from the file. It reads no rows.

Whoever can write the file but not the key folder can put back a row that was deleted, MAC and all; here it is not
listed any more. An id is written after its row and removed before it, so that a process that dies in between loses the
row and never gains one. A list that is gone or damaged is empty, and the next change begins a new one.
"""

from __future__ import annotations

import fcntl
import hashlib
import hmac
import json
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, cast

from gatewright.base.filelock import lock
from gatewright.record import PrivateFolder

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable
    from pathlib import Path

_PATIENCE_S = 2.0
_NONE: frozenset[str] = frozenset()


class RowAnchor:
    """The list of one file. ``key`` tells a whole list from half a one. ``revision`` grows with every change seen.

    Not safe to use from several threads at once. Methods raise OSError.
    """

    def __init__(self, path: Path, key: bytes) -> None:
        self._path = path
        self._key = key
        self._descriptor: int | None = None
        self._text = b""
        self._ids = _NONE
        self.revision = 0

    def ids(self) -> frozenset[str]:
        """The ids that count now; makes no file."""
        text = self._read()
        if text != self._text and _parsed(text, self._key) is None and self._descriptor is not None:
            with _locked(self._descriptor, shared=True):  # perhaps it is being written
                text = self._read()
        return self._taken(text)

    @contextmanager
    def held(self) -> Generator[frozenset[str]]:
        """The ids that count, and no other process changes them meanwhile. Raises BlockingIOError when one does."""
        while True:
            descriptor = self._opened(create=True)
            with _locked(descriptor):
                if os.fstat(descriptor).st_nlink:
                    yield self._taken(self._read())
                    return
            self.close()

    def write(self, ids: Iterable[str]) -> None:
        """Replace the list; only while it is held."""
        text = json.dumps(sorted(ids)).encode()
        data = (_mac(self._key, text) + text).ljust(len(self._text))
        descriptor, at = self._opened(create=True), 0
        while at < len(data):
            at += os.pwrite(descriptor, data[at:], at)
        self._taken(data)

    def close(self) -> None:
        """Let go of the file."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _taken(self, text: bytes) -> frozenset[str]:
        if text != self._text:
            self._text, self._ids = text, _parsed(text, self._key) or _NONE
            self.revision += 1
        return self._ids

    def _read(self) -> bytes:
        if self._descriptor is not None and not os.fstat(self._descriptor).st_nlink:
            self.close()
        try:
            descriptor = self._opened(create=False)
        except FileNotFoundError:
            return b""
        return os.pread(descriptor, os.fstat(descriptor).st_size, 0)

    def _opened(self, *, create: bool) -> int:
        if self._descriptor is None:
            how = os.O_RDWR | (os.O_CREAT if create else 0)
            self._descriptor = PrivateFolder(self._path.parent).open(self._path.name, how)
        return self._descriptor


@contextmanager
def _locked(descriptor: int, *, shared: bool = False) -> Generator[None]:
    lock(descriptor, _PATIENCE_S, shared=shared)
    try:
        yield
    finally:
        fcntl.flock(descriptor, fcntl.LOCK_UN)


def _parsed(text: bytes, key: bytes) -> frozenset[str] | None:
    mac, listed = text[:_MAC_BYTES], text[_MAC_BYTES:].rstrip()
    if not hmac.compare_digest(mac, _mac(key, listed)):
        return None
    return frozenset(cast("list[str]", json.loads(listed)))


def _mac(key: bytes, text: bytes) -> bytes:
    return hmac.new(key, b"rows\0" + text, hashlib.sha256).hexdigest().encode()


_MAC_BYTES = 64
