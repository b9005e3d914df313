"""A small file in the key folder that says which rows of a store count: whoever can write the store alone cannot change
what it says. One process at a time holds it, for one change of the store.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Generator
from contextlib import contextmanager

from gatewright.base.filelock import MOMENT_S, lock, unlock
from gatewright.record.folder import PrivateFolder
from gatewright.record.fork import renew_after_fork

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

    def read(self) -> bytes:
        """What it says now; empty when there is none."""
        try:
            descriptor, facts = self._open(os.O_RDWR if self._is_writable else os.O_RDONLY)
        except FileNotFoundError:
            self.text = b""
            return b""
        text = _text(descriptor, facts.st_size)
        if text != self.text and not (self._is_whole and self._is_whole(text)):
            lock(descriptor, _PATIENCE_S, shared=True)
            text = _text(descriptor, os.fstat(descriptor).st_size)
            unlock(descriptor)
        self.text = text
        return text

    @contextmanager
    def held(self, *, wait: bool = True, create: bool = False) -> Generator[bool]:
        """Nobody else holds it meanwhile, and ``text`` is what it says; False when somebody does for more than a moment
        and ``wait`` is not said.

        Raises BlockingIOError when somebody does for too long, FileNotFoundError when there is none to hold.
        """
        while True:
            descriptor, _ = self._open(os.O_RDWR | (os.O_CREAT if create else 0))
            try:
                lock(descriptor, _PATIENCE_S if wait else MOMENT_S)
            except BlockingIOError:
                if wait:
                    raise
                yield False
                return
            facts = os.fstat(descriptor)
            if facts.st_nlink:
                break
        try:
            self.text = _text(descriptor, facts.st_size)
            yield True
        finally:
            unlock(descriptor)

    def write(self, text: bytes) -> None:
        """Put this over what it says, in one write as a rule; only while it is held."""
        text = text.ljust(len(self.text))
        assert self._descriptor is not None
        at = os.lseek(self._descriptor, 0, os.SEEK_SET)
        while at < len(text):
            at += os.write(self._descriptor, text[at:])
        self.text = text

    def close(self) -> None:
        """Let go of the file."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _open(self, how: int) -> tuple[int, os.stat_result]:
        """The file and its facts, opened anew when it was removed."""
        is_writable = how != os.O_RDONLY
        if self._descriptor is not None and is_writable <= self._is_writable:
            facts = os.fstat(self._descriptor)
            if facts.st_nlink:
                return self._descriptor, facts
        was_there = self._descriptor is not None
        self.close()
        try:
            self._descriptor, self._is_writable = self._folder.open(self._name, how), is_writable
        except FileNotFoundError:
            if was_there:
                raise FileNotFoundError(errno.ENOENT, "its anchor was removed while it was open") from None
            raise
        return self._descriptor, os.fstat(self._descriptor)


def _text(descriptor: int, most_bytes: int) -> bytes:
    os.lseek(descriptor, 0, os.SEEK_SET)
    return os.read(descriptor, most_bytes)
