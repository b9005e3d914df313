"""Durations in words: how the app says one, ``1 min 30 s``, and how people type one."""

from __future__ import annotations

import re

from gatewright.base.duration import parse_duration
from gatewright.base.regex import late_regex

_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"))
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
    for size, unit in _UNITS:
        count, rest = divmod(rest, size)
        parts += [f"{int(count)} {unit}"] if count else []
    parts += [f"{round(rest, 3):g} s"] if rest or not parts else []
    return " ".join(parts)


def rate_words(calls: int, per_s: float) -> str:
    """What a rate of ``calls`` per ``per_s`` means."""
    return f"never more than {calls:,} in any {duration_words(per_s)}" if calls > 0 else "none at all"


def parse_duration_words(text: str) -> float:
    """Seconds that ``text`` says; a bare number is seconds.

    Raises ValueError naming where the text cannot be read, and what is accepted.
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
