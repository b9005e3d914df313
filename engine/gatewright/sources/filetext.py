"""Bytes of a text file and back, its digest and its line endings. It knows no path.

UTF-8 only; a byte order mark is kept as the text's first character, so that text and bytes are equally exact.
"""

from __future__ import annotations

import hashlib
import re

from gatewright.base.errors import ToolFailure

_BARE_LF = re.compile(r"(?<!\r)\n")


def digest_of(content: bytes) -> str:
    """SHA-256 of the bytes, 64 hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()


def decode_text(content: bytes) -> str:
    """The text of a file. Raises ToolFailure (``not-text``)."""
    if b"\0" in content:
        raise ToolFailure("not a text file: it holds a NUL byte", code="not-text")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ToolFailure(f"not a text file: byte {error.start + 1} is not UTF-8", code="not-text") from None


def encode_text(text: str, limit: int) -> bytes:
    """The bytes of a text. Raises ToolFailure when it is too long or no text."""
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
    """``content`` with CRLF where every line of ``text`` ends so, else as it is."""
    if "\r\n" in text and not _BARE_LF.search(text):
        return _BARE_LF.sub("\r\n", content)
    return content


def with_change(text: str, old: str, new: str) -> str | None:
    """``text`` with ``new`` in the one place of ``old`` (empty: at its end), in its line ending; None for no one place.

    What ``append`` and ``replace`` of a source do, as a value.
    """
    new = in_line_ending_of(text, new)
    if not old:
        return text + new
    if old not in text:
        old = in_line_ending_of(text, old)
    at = text.find(old)
    return None if at < 0 or text.find(old, at + 1) >= 0 else text[:at] + new + text[at + len(old) :]


def line_count(text: str) -> int:
    """The number of lines; a last one without line end counts."""
    return text.count("\n") + (not text.endswith("\n") and bool(text))
