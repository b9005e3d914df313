"""Durations as people and seeds write them: ``30``, ``"1.5s"``, ``"2m"``, ``{secs, nanos}``. It does not wait."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import cast

_UNIT_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_TEXT = re.compile(r"^(\d{1,12}(?:\.\d{1,9})?)\s?(ms|s|m|h|d)$")
_MAX_S = 10 * 365 * 86400.0


def parse_duration(value: object) -> float:
    """Seconds (0 up to ten years) from a number, ``"2m"`` or ``{secs, nanos}``.

    Raises ValueError with a message that says what is accepted.
    """
    seconds = _seconds(value)
    if seconds is None or not math.isfinite(seconds) or seconds < 0 or seconds > _MAX_S:
        msg = 'a duration is seconds (`30`), text with a unit (`"1.5s"`, `"2m"`, `"1h"`) or `{ secs, nanos }`'
        raise ValueError(msg)
    return seconds


def _seconds(value: object) -> float | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float(value)
    if isinstance(value, str):
        found = _TEXT.match(value)
        return float(found[1]) * _UNIT_S[found[2]] if found else None
    if isinstance(value, Mapping):
        parts = cast("Mapping[str, object]", value)
        if not parts or not set(parts) <= {"secs", "nanos"}:
            return None
        secs, nanos = parts.get("secs", 0), parts.get("nanos", 0)
        if type(secs) is not int or type(nanos) is not int or not 0 <= nanos < 1_000_000_000:
            return None
        return secs + nanos / 1e9
    return None


def format_duration(seconds: float) -> str:
    """The shortest unit form that keeps the value, e.g. ``1.5s``, ``2m``, ``1h``."""
    for unit in ("d", "h", "m"):
        size = _UNIT_S[unit]
        if seconds >= size and seconds % size == 0:
            return f"{int(seconds // size)}{unit}"
    return f"{seconds:g}s"


def plain_duration(seconds: float) -> object:
    """``"2m"`` where that says exactly the same, else the number of seconds."""
    text = format_duration(seconds)
    try:
        return text if parse_duration(text) == seconds else plain_number(seconds)
    except ValueError:
        return plain_number(seconds)


def plain_number(seconds: float) -> int | float:
    """A whole number where it is one."""
    return int(seconds) if seconds == int(seconds) else seconds
