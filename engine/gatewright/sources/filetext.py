"""Turns the bytes of a text file into text and back; digests, line endings, temporary files of killed saves.

Text is UTF-8; a byte order mark stays as the first character, so that text and bytes correspond exactly. Line ends stay
as they are: added text gets CRLF if every line of the text has it, and is not changed in a mixed text. The end of the
last line stays too, unless lines follow it.

A temporary name is ``.{name}.{12 hexadecimal digits}.tmp``. Listings skip such names, and the next save in the folder
removes those that are too old for a save still to use.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import stat
import time
from contextlib import suppress

from gatewright import blocks
from gatewright.base.errors import ToolFailure
from gatewright.base.late import late_regex

_MARKS = (
    (b"\xff\xfe\0\0", "UTF-32 text (little endian)"),
    (b"\0\0\xfe\xff", "UTF-32 text (big endian)"),
    (b"\xff\xfe", "UTF-16 text (little endian)"),
    (b"\xfe\xff", "UTF-16 text (big endian)"),
    (b"\x89PNG", "a PNG picture"),
    (b"\xff\xd8\xff", "a JPEG picture"),
    (b"GIF8", "a GIF picture"),
    (b"%PDF-", "a PDF document"),
    (b"PK\x03\x04", "a ZIP archive or office document"),
    (b"\x1f\x8b", "gzip data"),
    (b"\xfd7zXZ", "xz data"),
    (b"\x28\xb5\x2f\xfd", "zstd data"),
    (b"\x7fELF", "a program (ELF)"),
    (b"MZ", "a program (Windows)"),
    (b"SQLite format 3", "an SQLite database"),
)
_BARE_LF = re.compile(r"(?<!\r)\n")


BYTE_ORDER_MARK = "\ufeff"


def digest_of(content: bytes) -> str:
    """Return SHA-256 of the bytes, 64 hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()


def decode_text(content: bytes) -> str:
    """Decode the text of a file. Raises ToolFailure (``not-text``) that names the kind found."""
    nul = content.find(b"\0")
    if nul >= 0:
        raise _no_text(_kind(content) or f"byte {nul + 1:,} is NUL, so it is binary data")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        byte = f"byte {error.start + 1:,} (0x{content[error.start]:02x}) is not UTF-8"
        raise _no_text(_kind(content) or f"{byte}, perhaps Latin-1 or Windows-1252") from None


def _kind(content: bytes) -> str | None:
    return next((f"it begins like {words}" for mark, words in _MARKS if content.startswith(mark)), None)


def _no_text(words: str) -> ToolFailure:
    return ToolFailure(f"not a text file in UTF-8: {words}", code="not-text")


def encode_text(text: str, limit: int) -> bytes:
    """Encode a text. Raises ToolFailure if it is too long or not text."""
    if "\0" in text:
        raise ToolFailure("the text holds a NUL character", code="not-text")
    try:
        content = text.encode("utf-8")
    except UnicodeEncodeError:
        raise ToolFailure("the text holds half of a surrogate pair", code="not-text") from None
    if len(content) > limit:
        raise ToolFailure(
            f"the text would have {len(content):,} bytes, more than the limit of {limit:,}", code="too-large"
        )
    return content


def in_line_ending_of(text: str, content: str) -> str:
    """Return ``content`` with CRLF if every line of ``text`` has it, else unchanged."""
    if "\r\n" in text and not _BARE_LF.search(text):
        return _BARE_LF.sub("\r\n", content)
    return content


def with_change(text: str, old: str, new: str) -> str:
    """Replace ``old``, which must occur exactly once in ``text``, by ``new`` in the text's line ending.

    Raises ToolFailure (``no-match``, ``many-matches``, ``empty-match``), with the number of places.
    """
    if not old:
        raise ToolFailure("the old text is empty; give the text that is to go", code="empty-match")
    old = in_line_ending_of(text, old)
    at, count = text.find(old), 0
    first = at
    while at >= 0:
        count += 1
        at = text.find(old, at + 1)
    if count == 0:
        raise ToolFailure("the old text does not stand in the file (0 places)", code="no-match")
    if count > 1:
        words = f"the old text stands in the file at {count:,} places: give more of its surroundings"
        raise ToolFailure(words, code="many-matches")
    return text[:first] + in_line_ending_of(text, new) + text[first + len(old) :]


def with_lines(text: str, line: int, content: str) -> str:
    """Insert ``content`` as whole lines before line ``line`` (from 1; one past the last: at the end).

    If lines follow, the content gets a line end unless it has one; a last line without an end gets one before the
    content. A byte order mark stays first. Raises ToolFailure (``no-line``).
    """
    if text.startswith(BYTE_ORDER_MARK):
        return BYTE_ORDER_MARK + with_lines(text[1:], line, content)
    last = line_count(text)
    if not 1 <= line <= last + 1:
        raise ToolFailure(f"there is no line {line:,}: lines count from 1, and the last is {last:,}", code="no-line")
    content = in_line_ending_of(text, content)
    before = text.split("\n", line - 1)[: line - 1]
    at, end = min(len(text), sum(map(len, before)) + len(before)), in_line_ending_of(text, "\n")
    if not content:
        return text
    if at < len(text):
        return text[:at] + content + ("" if content.endswith("\n") else end) + text[at:]
    return text + ("" if not text or text.endswith("\n") else end) + content


def with_patch(text: str, patch: str) -> str:
    """Apply a unified diff to ``text``, all of it or (ToolFailure, naming the line) nothing.

    A byte order mark belongs to the first line only if the patch has it there.
    """
    if text.startswith(BYTE_ORDER_MARK) and BYTE_ORDER_MARK not in patch:
        return BYTE_ORDER_MARK + with_patch(text[1:], patch)
    return blocks.with_splices(text, blocks.patch_splices(text, patch))


def line_count(text: str) -> int:
    """Count the lines; a last line counts without a line end."""
    return text.count("\n") + (not text.endswith("\n") and bool(text))


STALE_S = 600.0
_NAME = late_regex(r"\..+\.[0-9a-f]{12}\.tmp", re.DOTALL)
_SUFFIX = ".tmp"
_LOOKED_AT = 20_000


def temporary_name(name: str) -> str:
    """Return a fresh temporary name for a file of that name."""
    return f".{name[:60]}.{secrets.token_hex(6)}{_SUFFIX}"


def is_leftover(path: str) -> bool:
    """Tell whether the last component of a path is a temporary name."""
    return path.endswith(_SUFFIX) and _NAME.fullmatch(path.rpartition("/")[2]) is not None


def sweep(folder: int) -> None:
    """Remove the files that killed saves left in a folder (a descriptor, perhaps one to pass through only).

    It removes only our own regular files with one name that nobody touched for ten minutes. Files that cannot be
    removed stay.
    """
    with suppress(OSError):
        descriptor = os.open(".", os.O_RDONLY, dir_fd=folder)
        try:
            with os.scandir(descriptor) as entries:
                names = [
                    entry.name for _, entry in zip(range(_LOOKED_AT), entries, strict=False) if is_leftover(entry.name)
                ]
            for name in names:
                with suppress(OSError):
                    status = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
                    plain = stat.S_ISREG(status.st_mode) and status.st_nlink == 1 and status.st_uid == os.geteuid()
                    if plain and time.time() - status.st_mtime > STALE_S:
                        os.unlink(name, dir_fd=descriptor)
        finally:
            os.close(descriptor)
