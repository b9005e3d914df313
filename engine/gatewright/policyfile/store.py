"""A policy's text on disk: read, digest, replace.

Messages begin with what is wrong and name the file; a write never lands on content that nobody has seen.
"""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path

from gatewright.base.atomicfile import write_atomically
from gatewright.base.errors import WorkspaceError
from gatewright.policyfile.reader import MAX_BYTES


def read_policy_text(path: Path) -> str:
    """The text of the file, line endings and BOM as they are. Raises WorkspaceError with the reason."""
    content = _read(path)
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise WorkspaceError(f"`{path}` is not UTF-8 text (line {line})") from None


def digest_of(text: str) -> str:
    """SHA-256 (FIPS 180-4) of the text in UTF-8, 64 hexadecimal digits."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def write_policy_text(path: Path, text: str, *, expected: str | None) -> None:
    """Replace the file's content, whole or not at all. ``expected`` is the text it must hold now, None: no such file.

    Raises WorkspaceError when the disk says otherwise, or cannot be written; then the file is as it was.
    """
    _check_unchanged(path, expected)
    _write(path, text)


def overwrite_policy_text(path: Path, text: str, *, seen: str | None) -> None:
    """Replace whatever the file holds, whole or not at all; what is no ordinary file stays. Raises WorkspaceError.

    ``seen`` is the text that the decision was made on, None when there was none to read: then it is not compared.
    """
    if seen is not None:
        _check_unchanged(path, seen)
    elif os.path.lexists(path):
        _read(path)
        if not os.access(path, os.W_OK):
            raise WorkspaceError(f"`{path}` was not saved: the file is read-only")
    _write(path, text)


def _write(path: Path, text: str) -> None:
    try:
        write_atomically(path, text.encode("utf-8"))
    except UnicodeEncodeError:
        raise WorkspaceError(f"`{path}` was not saved: the text is not UTF-8") from None
    except OSError as error:
        raise WorkspaceError(f"`{path}` was not saved: {_reason(error)}") from None


def _check_unchanged(path: Path, expected: str | None) -> None:
    if expected is None:
        if os.path.lexists(path):
            raise WorkspaceError(f"`{path}` was not saved: a file of that name is there already")
        return
    if not os.path.exists(path):  # noqa: PTH110 -- Path.exists raises when the folder may not be searched
        raise WorkspaceError(f"`{path}` was not saved: the file is gone from the disk")
    if _read(path) != expected.encode("utf-8", "surrogatepass"):
        raise WorkspaceError(f"`{path}` was not saved: it was changed by another program meanwhile")
    if not os.access(path, os.W_OK):
        raise WorkspaceError(f"`{path}` was not saved: the file is read-only")


def _read(path: Path) -> bytes:
    try:
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            raise WorkspaceError(f"`{path}` is a folder, not a policy file")
        if not stat.S_ISREG(mode):
            raise WorkspaceError(f"`{path}` is no ordinary file")
        at_once = getattr(os, "O_NONBLOCK", 0)  # opening a pipe that took the name meanwhile must not wait for a writer
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | at_once)) as stream:
            if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
                raise WorkspaceError(f"`{path}` is no ordinary file")
            content = stream.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        raise WorkspaceError(f"`{path}` cannot be read: {_reason(error)}") from None
    if len(content) > MAX_BYTES:
        raise WorkspaceError(f"`{path}` is larger than {MAX_BYTES // 1024 // 1024} MiB: it is no policy file")
    return content


def _reason(error: OSError | ValueError) -> str:
    if isinstance(error, FileNotFoundError):
        return "there is no such file or folder"
    if isinstance(error, PermissionError):
        return "permission denied"
    said = error.strerror if isinstance(error, OSError) else str(error)
    return (said or type(error).__name__).lower()
