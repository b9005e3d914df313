"""A normalised result as the text that a model gets. It cuts nothing and takes nothing out."""

from __future__ import annotations

from gatewright.base.jsonvalue import JsonValue
from gatewright.base.regex import late_regex

_CONTROLS = late_regex(r"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f\x7f]")

_ANY_BYTES = "application/octet-stream"
_STARTS = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
    b"ID3": "audio/mpeg",
    b"OggS": "audio/ogg",
    b"fLaC": "audio/flac",
    b"%PDF-": "application/pdf",
    b"PK\x03\x04": "application/zip",
}


def shown_text(value: JsonValue | bytes, normal: bytes) -> str:
    """A text as it stands, anything else as the canonical JSON in ``normal``."""
    return value if isinstance(value, str) else normal.decode()


def plain_text(data: bytes) -> str | None:
    """The bytes as the UTF-8 text that they are; None for binary data: no UTF-8, or with control characters."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return None
    return text if _CONTROLS.search(text) is None else None


def media_type(data: bytes) -> str:
    """The kind of file that the bytes begin like, as `image/png`; else `application/octet-stream`."""
    if data[:4] == b"RIFF":
        return {b"WEBP": "image/webp", b"WAVE": "audio/wav"}.get(data[8:12], _ANY_BYTES)
    return next((kind for start, kind in _STARTS.items() if data.startswith(start)), _ANY_BYTES)


def binary_text(data: bytes, digest: str) -> str:
    """What a model is told of a result that it cannot read."""
    return f"[binary result of {len(data):,} bytes, SHA-256 {digest}; its content is not shown]"


def valid(text: str) -> str:
    """``text`` as valid UTF-8 can hold it: halves of surrogate pairs become question marks."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
