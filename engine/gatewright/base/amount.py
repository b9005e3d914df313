"""Times and amounts: the clock, fresh identifiers, durations, sizes and counts as people write and read them.

``KB``, ``MB``, ``GB`` are powers of 1000, ``KiB``, ``MiB``, ``GiB`` powers of 1024 (IEC 80000-13).
"""

from __future__ import annotations

import math
import re
import secrets
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Protocol, cast

from gatewright.base.late import late_regex


class Clock(Protocol):
    """Two readings: seconds that only go forward, and the wall clock in seconds since 1970."""

    def monotonic_s(self) -> float:
        """Seconds since an arbitrary start, never going back."""
        ...

    def wall_s(self) -> float:
        """Seconds since 1970-01-01 UTC."""
        ...


class SystemClock:
    """The machine's clocks."""

    monotonic_s = staticmethod(time.monotonic)
    wall_s = staticmethod(time.time)


def iso_utc(wall_s: float) -> str:
    """RFC 3339 in UTC with milliseconds, e.g. ``2026-01-31T09:30:00.000Z``."""
    moment = datetime.fromtimestamp(wall_s, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def parse_moment(value: object) -> float:
    """Seconds since 1970 from a date and time with an offset, as RFC 3339 text or as TOML reads it.

    Raises ValueError for anything else.
    """
    try:
        moment = (
            value if isinstance(value, datetime) else datetime.fromisoformat(value if isinstance(value, str) else "")
        )
        if moment.tzinfo is not None:
            return moment.timestamp()
    except (ValueError, OverflowError):
        pass
    raise ValueError("a moment is a date and time with its offset, such as `2026-01-31T18:00:00Z`")


def plain_moment(wall_s: float) -> str:
    """The moment as RFC 3339 text in UTC, without a fraction that is zero."""
    return datetime.fromtimestamp(wall_s, UTC).isoformat().replace("+00:00", "Z")


def new_id(prefix: str) -> str:
    """``prefix-`` and 16 random hexadecimal digits."""
    return f"{prefix}-{secrets.token_hex(8)}"


def plural(count: int, one: str, many: str = "") -> str:
    """Return ``1 file`` or ``2,000 files``; ``many`` is an irregular plural."""
    return f"{count:,} {one if count == 1 else many or f'{one}s'}"


_UNIT_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION = re.compile(r"^(\d{1,12}(?:\.\d{1,9})?)\s?(ms|s|m|h|d)$")
_MAX_S = 10 * 365 * 86400.0


def parse_duration(value: object) -> float:
    """Seconds (0 up to ten years) from a number, ``"2m"`` or ``{secs, nanos}``.

    Raises ValueError, whose message names the accepted forms.
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
        found = _DURATION.match(value)
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
    """Return the shortest text with a unit that keeps the value, e.g. ``1.5s``, ``2m``, ``1h``."""
    for unit in ("d", "h", "m"):
        size = _UNIT_S[unit]
        if seconds >= size and seconds % size == 0:
            return f"{int(seconds // size)}{unit}"
    return f"{seconds:g}s"


def plain_duration(seconds: float) -> object:
    """Return ``"2m"`` if this is exactly the same duration, else the number of seconds."""
    text = format_duration(seconds)
    try:
        return text if parse_duration(text) == seconds else plain_number(seconds)
    except ValueError:
        return plain_number(seconds)


def plain_number(seconds: float) -> int | float:
    """Return a whole number as an int, any other as a float."""
    return int(seconds) if seconds == int(seconds) else seconds


_WORDS = ((86_400, "d"), (3_600, "h"), (60, "min"))
_SECONDS = {
    **dict.fromkeys(("ms", "millisecond", "milliseconds"), 0.001),
    **dict.fromkeys(("", "s", "sec", "secs", "second", "seconds"), 1.0),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), 60.0),
    **dict.fromkeys(("h", "hour", "hours"), 3600.0),
    **dict.fromkeys(("d", "day", "days"), 86400.0),
}
_PART = late_regex(r"(\d{1,12}(?:\.\d{1,9})?)\s*([a-z]*)\s*", re.ASCII)
EXAMPLES = "`30`, `1.5 s`, `2 min`, `100 ms` or `1 h 30 min`"


def duration_words(seconds: float) -> str:
    """A duration as people say it, e.g. ``30 s``, ``1 min 30 s``, ``500 ms``."""
    if 0 < seconds < 1:
        return f"{seconds * 1000:g} ms"
    parts: list[str] = []
    rest = seconds
    for size, unit in _WORDS:
        count, rest = divmod(rest, size)
        parts += [f"{int(count)} {unit}"] if count else []
    parts += [f"{round(rest, 3):g} s"] if rest or not parts else []
    return " ".join(parts)


def rate_words(calls: int, per_s: float) -> str:
    """Describe a rate of ``calls`` per ``per_s`` seconds."""
    return f"never more than {calls:,} in any {duration_words(per_s)}" if calls > 0 else "none at all"


def parse_duration_words(text: str) -> float:
    """Seconds from a text such as ``1 h 30 min``; a bare number counts seconds.

    Raises ValueError with the unreadable column and the accepted forms.
    """
    rest, total, at = text.strip().lower(), 0.0, 0
    if not rest:
        raise ValueError(f"a duration is {EXAMPLES}")
    while at < len(rest):
        found = _PART.match(rest, at)
        if found is None:
            raise ValueError(f"column {at + 1}: a duration is {EXAMPLES}")
        unit = found[2]
        if unit not in _SECONDS:
            raise ValueError(f"column {found.start(2) + 1}: no unit `{unit}`; a duration is {EXAMPLES}")
        total += float(found[1]) * _SECONDS[unit]
        at = found.end()
    return parse_duration(round(total, 9))


_BYTES = {
    "b": 1,
    "kb": 1000,
    "mb": 1000**2,
    "gb": 1000**3,
    "kib": 1024,
    "mib": 1024**2,
    "gib": 1024**3,
}
_SIZE = late_regex(r"(\d{1,12}(?:\.\d{1,6})?) ?(B|[KMG]i?B)", re.IGNORECASE)
_WRITTEN = (("GiB", 1024**3), ("MiB", 1024**2), ("KiB", 1024), ("GB", 1000**3), ("MB", 1000**2), ("KB", 1000))
MAX_BYTES = 2**50


def parse_size(value: object) -> int:
    """Bytes (at least one) from a whole number or text with a unit.

    Raises ValueError, which names the accepted forms.
    """
    size: float = 0
    if type(value) is int:
        size = value
    elif isinstance(value, str) and (found := _SIZE.fullmatch(value)):
        size = float(found[1]) * _BYTES[found[2].lower()]
    if not 1 <= size <= MAX_BYTES or size != int(size):
        msg = 'a size is bytes (`65536`) or text with a unit (`"64MiB"`, `"500KB"`), from one byte up'
        raise ValueError(msg)
    return int(size)


def format_size(size: int) -> str | int:
    """Return the shortest text with a unit that is exactly this size, or the number of bytes."""
    return next((f"{size // unit}{name}" for name, unit in _WRITTEN if size % unit == 0), size)
