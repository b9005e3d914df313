"""The key of one audit log, and its anchor: how far the log had come and where, kept away from the log. It reads no
rows.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import secrets
import struct
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gatewright.base.filelock import lock
from gatewright.record import PrivateFolder

KEY_BYTES = 32
_LOG_ID = re.compile(r"log-[0-9a-f]{16}")
_LOCK_PATIENCE_S = 2.0
_MOST_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class Home:
    """A state folder as a log remembers it: its path, and which folder it lay in, by whatever name ("": unknown).

    A renamed workspace keeps the second; no folder that is made later has the same.
    """

    folder: str
    around: str = ""

    @classmethod
    def of(cls, state: Path) -> Home:
        """That of a state folder; only the folders above it are looked at."""
        around = Path(os.path.realpath(state.parent))
        return cls(str(around / state.name), _identity(around))

    def is_same(self, other: Home) -> bool:
        """Whether it is the same folder, renamed perhaps."""
        renamed = self.around != "" and self.around == other.around
        return self.folder == other.folder or (renamed and Path(self.folder).name == Path(other.folder).name)


@dataclass(frozen=True, slots=True)
class Anchor:
    """The last row written: the log's id, where it is kept, the row's number and its MAC in hexadecimal.

    Number 0 and the MAC of zeros: the log was about to begin.
    """

    log_id: str
    home: Home
    seq: int
    mac: str


class KeyRing:
    """The key folder, as audit sees it. Nothing is made before ``create``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._files = PrivateFolder(folder)

    def key_path(self, log_id: str) -> Path:
        """Where the key of a log lies. Raises ValueError for what is no log id."""
        if not _LOG_ID.fullmatch(log_id):
            raise ValueError("not the id of an audit log")
        return self.folder / f"audit-{log_id}.key"

    def anchor_path(self, log_id: str) -> Path:
        """Where the anchor of a log lies."""
        return self.key_path(log_id).with_suffix(".anchor")

    def create(self, log_id: str, home: Home) -> bytes:
        """A new random key, readable by its owner only, and the anchor of a log that begins there.

        Raises OSError.
        """
        from gatewright.gate.chain import START_MAC

        key = secrets.token_bytes(KEY_BYTES)
        self._files.replace(self.key_path(log_id).name, key)
        self._files.replace(self.anchor_path(log_id).name, _text(Anchor(log_id, home, 0, START_MAC)))
        return key

    def key(self, log_id: str) -> bytes | None:
        """The key of a log, or None when it is not here. Raises OSError when it cannot be read."""
        try:
            key = self._files.read(self.key_path(log_id).name, KEY_BYTES + 1)
        except (FileNotFoundError, ValueError):
            return None
        return key if len(key) == KEY_BYTES else None

    def anchor(self, log_id: str) -> Anchor | None:
        """The anchor of a log, or None when there is none that can be read."""
        try:
            return _read(self._files, self.anchor_path(log_id).name)
        except ValueError:
            return None

    def anchors_of(self, home: Home) -> tuple[Anchor, ...]:
        """Every anchor of a log that had rows in that state folder, by whatever name."""
        names = [name for name in self._files.names() if name.startswith("audit-") and name.endswith(".anchor")]
        found = [_read(self._files, name) for name in names]
        return tuple(one for one in found if one is not None and one.home.is_same(home) and one.seq > 0)


class AnchorFile:
    """The anchor of a log that is being written, held open: one process at a time ``hold``s it, for one commit."""

    def __init__(self, path: Path, log_id: str, home: Home) -> None:
        self._descriptor = PrivateFolder(path.parent).open(path.name, os.O_RDWR)
        self._head, self._middle = _frame(log_id, home)
        self._known = b""

    def hold(self, *, wait: bool = True) -> bool:
        """Keep every other process out; False when another one does so and ``wait`` says not to wait for it.

        Raises OSError; FileNotFoundError when the anchor was removed meanwhile.
        """
        try:
            lock(self._descriptor, _LOCK_PATIENCE_S if wait else 0.0)
        except BlockingIOError:
            if wait:
                raise
            return False
        if not os.fstat(self._descriptor).st_nlink:
            raise FileNotFoundError("its anchor was removed while it was open")
        return True

    def let_go(self) -> None:
        """Let the others in."""
        fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    def is_known(self) -> bool:
        """Whether it still says what was read or written here last."""
        return bool(self._known) and os.pread(self._descriptor, _MOST_BYTES, 0) == self._known

    def read(self) -> Anchor | None:
        """What it says now; None when it cannot be read."""
        self._known = os.pread(self._descriptor, _MOST_BYTES, 0)
        return _parsed(self._known)

    def write(self, seq: int, mac: str) -> None:
        """Move it, in one write over what was there, which is never longer. Raises OSError."""
        text = b"%s%19d%s%s%s" % (self._head, seq, self._middle, mac.encode(), _END)
        text = text.ljust(len(self._known))
        os.pwrite(self._descriptor, text, 0)
        self._known = text

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._descriptor)


_END = b'"}'


_GET_GENERATION = 0x80087601
"""FS_IOC_GETVERSION of Linux (ioctl_iflags(2)): tells a folder from an earlier one that had the same inode."""


def _identity(folder: Path) -> str:
    """Device, inode and, where the file system has one, generation; empty when there is no such folder."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        facts, generation = os.fstat(descriptor), 0
        with suppress(OSError):
            (generation,) = struct.unpack("q", fcntl.ioctl(descriptor, _GET_GENERATION, bytes(8)))
        return f"{facts.st_dev}:{facts.st_ino}:{generation}"
    finally:
        os.close(descriptor)


def _frame(log_id: str, home: Home) -> tuple[bytes, bytes]:
    head = json.dumps({"log": log_id, "folder": home.folder, "around": home.around})[:-1] + ', "seq": '
    return head.encode(), b', "mac": "'


def _text(anchor: Anchor) -> bytes:
    head, middle = _frame(anchor.log_id, anchor.home)
    return b"%s%19d%s%s%s" % (head, anchor.seq, middle, anchor.mac.encode(), _END)


def _read(keys: PrivateFolder, name: str) -> Anchor | None:
    """The anchor in a file, read while nobody moves it."""
    try:
        descriptor = keys.open(name)
    except OSError:
        return None
    try:
        lock(descriptor, _LOCK_PATIENCE_S, shared=True)
        return _parsed(os.pread(descriptor, _MOST_BYTES, 0))
    except OSError:
        return None
    finally:
        os.close(descriptor)


def _parsed(text: bytes) -> Anchor | None:
    try:
        fields: Any = json.loads(text)
        home = Home(str(fields["folder"]), str(fields.get("around", "")))
        return Anchor(str(fields["log"]), home, int(fields["seq"]), str(fields["mac"]))
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
