"""The key of one audit log, and its anchor: how far the log had come, kept away from the log. It reads no rows."""

from __future__ import annotations

import json
import os
import re
import secrets
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gatewright.base.filelock import lock

KEY_BYTES = 32
_LOG_ID = re.compile(r"log-[0-9a-f]{16}")
_LOCK_PATIENCE_S = 2.0


@dataclass(frozen=True, slots=True)
class Anchor:
    """The last row written: the log's id, its state folder, the row's number and its MAC in hexadecimal."""

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

    def create(self, log_id: str) -> bytes:
        """A new random key, readable by its owner only. Raises OSError."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        key = secrets.token_bytes(KEY_BYTES)
        descriptor = os.open(self.key_path(log_id), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(key)
            stream.flush()
            os.fsync(stream.fileno())
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
            return _parsed(self.anchor_path(log_id).read_bytes())
        except (OSError, ValueError):
            return None

    def anchors_of(self, folder: str) -> tuple[Anchor, ...]:
        """Every anchor of a log that lay in that state folder."""
        found = [_read(path) for path in sorted(self.folder.glob("audit-*.anchor"))]
        return tuple(anchor for anchor in found if anchor is not None and anchor.folder == folder)

    @contextmanager
    def locked(self, log_id: str) -> Generator[int]:
        """The descriptor of the anchor, held by this process alone while a row and its anchor are written.

        Another process holds it for the length of one row; one that died has let go of it.
        """
        descriptor = os.open(self.anchor_path(log_id), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            lock(descriptor, _LOCK_PATIENCE_S)
            yield descriptor
        finally:
            os.close(descriptor)


def write_anchor(descriptor: int, anchor: Anchor) -> None:
    """Replace the anchor's text in place. Raises OSError."""
    fields = {"log": anchor.log_id, "folder": anchor.folder, "seq": anchor.seq, "mac": anchor.mac}
    text = json.dumps(fields).encode()
    os.pwrite(descriptor, text, 0)
    os.ftruncate(descriptor, len(text))


def _read(path: Path) -> Anchor | None:
    try:
        return _parsed(path.read_bytes())
    except (OSError, ValueError):
        return None


def _parsed(text: bytes) -> Anchor | None:
    fields: Any = json.loads(text)
    try:
        return Anchor(str(fields["log"]), str(fields["folder"]), int(fields["seq"]), str(fields["mac"]))
    except (TypeError, KeyError):
        return None
