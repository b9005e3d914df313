"""The key of one audit log, and its anchor: how far the log had come, kept away from the log. It reads no rows."""

from __future__ import annotations

import fcntl
import json
import os
import re
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gatewright.base.filelock import lock

KEY_BYTES = 32
_LOG_ID = re.compile(r"log-[0-9a-f]{16}")
_LOCK_PATIENCE_S = 2.0
_MOST_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class Anchor:
    """The last row written: the log's id, its state folder, the row's number and its MAC in hexadecimal.

    Number 0 and the MAC of zeros: the log was about to begin.
    """

    log_id: str
    folder: str
    seq: int
    mac: str


class KeyRing:
    """The key folder, as audit sees it. Nothing is made before ``create``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def key_path(self, log_id: str) -> Path:
        """Where the key of a log lies. Raises ValueError for what is no log id."""
        if not _LOG_ID.fullmatch(log_id):
            raise ValueError("not the id of an audit log")
        return self.folder / f"audit-{log_id}.key"

    def anchor_path(self, log_id: str) -> Path:
        """Where the anchor of a log lies."""
        return self.key_path(log_id).with_suffix(".anchor")

    def create(self, log_id: str, state: str) -> bytes:
        """A new random key, readable by its owner only, and the anchor of a log that begins in the folder ``state``.

        Raises OSError.
        """
        from gatewright.gate.chain import START_MAC

        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        key = secrets.token_bytes(KEY_BYTES)
        _write_new(self.key_path(log_id), key)
        _write_new(self.anchor_path(log_id), _text(Anchor(log_id, state, 0, START_MAC)))
        return key

    def key(self, log_id: str) -> bytes | None:
        """The key of a log, or None when it is not here. Raises OSError when it cannot be read."""
        try:
            key = self.key_path(log_id).read_bytes()
        except (FileNotFoundError, ValueError):
            return None
        return key if len(key) == KEY_BYTES else None

    def anchor(self, log_id: str) -> Anchor | None:
        """The anchor of a log, or None when there is none that can be read."""
        try:
            return _read(self.anchor_path(log_id))
        except ValueError:
            return None

    def anchors_of(self, state: str) -> tuple[Anchor, ...]:
        """Every anchor of a log that had rows in that state folder."""
        found = [_read(path) for path in sorted(self.folder.glob("audit-*.anchor"))]
        return tuple(anchor for anchor in found if anchor is not None and anchor.folder == state and anchor.seq > 0)


class AnchorFile:
    """The anchor of a log that is being written, held open: one process at a time ``hold``s it, for one commit."""

    def __init__(self, path: Path, log_id: str, state: str) -> None:
        self._descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        self._head, self._middle = _frame(log_id, state)
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


def _frame(log_id: str, state: str) -> tuple[bytes, bytes]:
    head = json.dumps({"log": log_id, "folder": state})[:-1] + ', "seq": '
    return head.encode(), b', "mac": "'


def _text(anchor: Anchor) -> bytes:
    head, middle = _frame(anchor.log_id, anchor.folder)
    return b"%s%19d%s%s%s" % (head, anchor.seq, middle, anchor.mac.encode(), _END)


def _write_new(path: Path, content: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())


def _read(path: Path) -> Anchor | None:
    """The anchor in a file, read while nobody moves it."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
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
        return Anchor(str(fields["log"]), str(fields["folder"]), int(fields["seq"]), str(fields["mac"]))
    except (ValueError, TypeError, KeyError):
        return None
