"""A normalised result as the text that a model gets. It cuts nothing and takes nothing out."""

from __future__ import annotations

from gatewright.base.jsonvalue import JsonValue


def shown_text(value: JsonValue | bytes, normal: bytes) -> str:
    """A text as it stands, anything else as the canonical JSON in ``normal``."""
    return value if isinstance(value, str) else normal.decode()


def binary_text(data: bytes, digest: str) -> str:
    """What a model is told of a result that it cannot read."""
    return f"[binary result of {len(data):,} bytes, SHA-256 {digest}; its content is not shown]"


def valid(text: str) -> str:
    """``text`` as valid UTF-8 can hold it: halves of surrogate pairs become question marks."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
