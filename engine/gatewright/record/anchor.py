"""A small file in the key folder that says which rows of a store count: whoever can write the store alone cannot change
what it says. One process at a time holds it, for one change of the store.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from gatewright.base.filelock import lock
from gatewright.record.fork import renew_after_fork

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from gatewright.record.folder import PrivateFolder

_PATIENCE_S = 2.0


class AnchorFile:
    """The anchor of that name. ``is_whole`` tells its text from half of it; without, reading waits for who writes.

    Not safe to use from several threads at once. Methods raise OSError.
    """

    def __init__(self, folder: PrivateFolder, name: str, is_whole: Callable[[bytes], bool] | None = None) -> None:
        self.text = b""
        """What it said when it was read, held or written here last."""
        self._folder = folder
        self._name = name
        self._is_whole = is_whole
        self._descriptor: int | None = None
        self._is_writable = False
        renew_after_fork(self)

    def renew(self) -> None:
        """A child that used this descriptor would hold the anchor together with its parent."""
        self.close()

    def is_there(self) -> bool:
        """Whether the file that is open still is the one of that name."""
        return self._descriptor is not None and os.fstat(self._descriptor).st_nlink > 0

    def read(self) -> bytes:
        """What it says now; empty when there is none."""
        try:
            descriptor = self._open(os.O_RDWR if self._is_writable else os.O_RDONLY)
        except FileNotFoundError:
            self.text = b""
            return b""
        text = _content(descriptor)
        if text != self.text and not (self._is_whole and self._is_whole(text)):
            lock(descriptor, _PATIENCE_S, shared=True)
            text = _content(descriptor)
            fcntl.flock(descriptor, fcntl.LOCK_UN)
        self.text = text
        return text

    @contextmanager
    def held(self, *, wait: bool = True, create: bool = False) -> Generator[bool]:
        """Nobody else holds it meanwhile, and ``text`` is what it says; False when somebody does and ``wait`` is not
        said.

        Raises BlockingIOError when somebody does for too long, FileNotFoundError when there is none to hold.
        """
        descriptor = self._lock(wait=wait, create=create)
        if descriptor is None:
            yield False
            return
        try:
            self.text = _content(descriptor)
            yield True
        finally:
            fcntl.flock(descriptor, fcntl.LOCK_UN)

    def write(self, text: bytes) -> None:
        """Put this over what it says, in one write as a rule; only while it is held."""
        text = text.ljust(len(self.text))
        assert self._descriptor is not None
        at = 0
        while at < len(text):
            at += os.pwrite(self._descriptor, text[at:], at)
        self.text = text

    def close(self) -> None:
        """Let go of the file."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _lock(self, *, wait: bool, create: bool) -> int | None:
        while True:
            descriptor = self._open(os.O_RDWR | (os.O_CREAT if create else 0))
            try:
                lock(descriptor, _PATIENCE_S if wait else 0.0)
            except BlockingIOError:
                if wait:
                    raise
                return None
            if os.fstat(descriptor).st_nlink:
                return descriptor
            self.close()

    def _open(self, how: int) -> int:
        is_writable = how != os.O_RDONLY
        if self._descriptor is not None and (
            is_writable > self._is_writable or not os.fstat(self._descriptor).st_nlink
        ):
            self.close()
        if self._descriptor is None:
            self._descriptor, self._is_writable = self._folder.open(self._name, how), is_writable
        return self._descriptor


def _content(descriptor: int) -> bytes:
    return os.pread(descriptor, os.fstat(descriptor).st_size, 0)
