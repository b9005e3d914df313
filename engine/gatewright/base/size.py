"""Sizes as people write them: ``65536``, ``"64 KiB"``, ``"1.5GB"``. It measures nothing.

``KB``, ``MB``, ``GB`` are powers of 1000, ``KiB``, ``MiB``, ``GiB`` powers of 1024 (IEC 80000-13).
"""

from __future__ import annotations

import re

from gatewright.base.regex import late_regex

_UNITS = {
    "b": 1,
    "kb": 1000,
    "mb": 1000**2,
    "gb": 1000**3,
    "kib": 1024,
    "mib": 1024**2,
    "gib": 1024**3,
}
_TEXT = late_regex(r"(\d{1,12}(?:\.\d{1,6})?) ?(B|[KMG]i?B)", re.IGNORECASE)
_WRITTEN = (("GiB", 1024**3), ("MiB", 1024**2), ("KiB", 1024), ("GB", 1000**3), ("MB", 1000**2), ("KB", 1000))
MAX_BYTES = 2**50


def parse_size(value: object) -> int:
    """Bytes (at least one) from a whole number or text with a unit. Raises ValueError saying what is accepted."""
    size: float = 0
    if type(value) is int:
        size = value
    elif isinstance(value, str) and (found := _TEXT.fullmatch(value)):
        size = float(found[1]) * _UNITS[found[2].lower()]
    if not 1 <= size <= MAX_BYTES or size != int(size):
        msg = 'a size is bytes (`65536`) or text with a unit (`"64MiB"`, `"500KB"`), from one byte up'
        raise ValueError(msg)
    return int(size)


def format_size(size: int) -> str | int:
    """The shortest text with a unit that says exactly the same, or the number of bytes."""
    return next((f"{size // unit}{name}" for name, unit in _WRITTEN if size % unit == 0), size)
