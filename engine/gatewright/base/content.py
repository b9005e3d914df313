"""A guess at what bytes are: plain text, or a kind of file by its first bytes."""

from __future__ import annotations

from gatewright.base.late import late_regex

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


def plain_text(data: bytes) -> str | None:
    """Decode plain UTF-8 text; return None for binary data: other encodings, control characters."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return None
    return text if _CONTROLS.search(text) is None else None


def media_type(data: bytes) -> str:
    """Return the media type that the first bytes suggest, e.g. `image/png`; else `application/octet-stream`."""
    if data[:4] == b"RIFF":
        return {b"WEBP": "image/webp", b"WAVE": "audio/wav"}.get(data[8:12], _ANY_BYTES)
    return next((kind for start, kind in _STARTS.items() if data.startswith(start)), _ANY_BYTES)
