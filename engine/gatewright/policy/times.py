"""The times of a policy rule, by the clock of a zone, and the stretches between its boundaries.

A rule holds while that clock shows a time within its hours on one of its days. Hours over midnight belong to the day on
which they begin. Where the clock goes forward, a time that it leaves out is never shown: hours that begin in the gap
begin after it. Where it goes back, it shows a time twice, and the rule holds both times. Instants are seconds since
1970, as the wall clock counts them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from functools import lru_cache

from gatewright.base.errors import AuthorMustFix, shown
from gatewright.base.frozen import frozen

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
HOURS_PATTERN = r"^([01]\d|2[0-3]):[0-5]\d-(([01]\d|2[0-3]):[0-5]\d|24:00)$"
_HOURS = re.compile(HOURS_PATTERN)
_DAY_S = 86_400
_AHEAD = 15
"""The days in which every rule that ever changes does so: a week, and one whose hours the clock leaves out."""


@frozen
class Times:
    """The key ``times`` of a policy rule. ``hours``: ``08:00-18:00``, None: all day; ``days`` None: every day."""

    zone: str
    hours: str | None = None
    days: tuple[str, ...] | None = None

    def holds(self, wall_s: float) -> bool:
        """Tell whether a rule with these times holds at the instant."""
        shown = datetime.fromtimestamp(wall_s, zone_of(self.zone))
        minute, today = shown.hour * 60 + shown.minute, shown.weekday()
        start, end = minutes_of(self.hours)
        if start < end:
            return start <= minute < end and self._is_on(today)
        return (minute >= start and self._is_on(today)) or (minute < end and self._is_on(today - 1))

    def next_change(self, wall_s: float) -> float | None:
        """The first later instant at which a rule with these times begins or ceases to hold; None: it never does."""
        now = self.holds(wall_s)
        later = sorted({instant for instant in _instants(self, wall_s) if instant > wall_s})
        return next((instant for instant in later if self.holds(instant) is not now), None)

    def __str__(self) -> str:
        """The times in words: ``22:00-06:00 on fri, sat (Europe/Berlin)``."""
        days = f" on {', '.join(self.days)}" if self.days is not None else ""
        return f"{self.hours or 'all day'}{days} ({self.zone})"

    def _is_on(self, weekday: int) -> bool:
        return self.days is None or DAYS[weekday % 7] in self.days


@frozen
class Span:
    """The stretch of time for which a policy stays as it is: from one instant until another; None: for good."""

    since_s: float
    until_s: float | None

    def covers(self, wall_s: float) -> bool:
        """Tell whether the policy of this stretch is the one of that instant."""
        return self.since_s <= wall_s and (self.until_s is None or wall_s < self.until_s)

    def nearest(self, wall_s: float) -> float:
        """The instant of the stretch that is nearest."""
        if self.until_s is not None and wall_s >= self.until_s:
            return math.nextafter(self.until_s, 0)
        return max(wall_s, self.since_s)


def minutes_of(hours: str | None) -> tuple[int, int]:
    """The first minute of the day, and the one after the last; the second is the smaller one of hours over midnight.

    Raises ValueError for anything but hours.
    """
    if hours is None:
        return 0, 24 * 60
    if not _HOURS.match(hours):
        raise ValueError('hours are written `"08:00-18:00"`, in the order of the clock, from 00:00 to 24:00')
    start, end = (int(one[:2]) * 60 + int(one[3:]) for one in hours.split("-"))
    if start == end:
        raise ValueError("hours that begin and end at the same minute hold never: for the whole day leave them out")
    return start, end


@lru_cache(maxsize=64)
def zone_of(name: str) -> tzinfo:
    """The zone of that name. Raises UnknownZone."""
    from zoneinfo import ZoneInfo

    try:
        return ZoneInfo(name)
    except (ValueError, OSError, KeyError) as error:
        raise UnknownZone(f"no time zone is named {shown(name)}") from error


def available_zones() -> set[str]:
    """The names of the zones that the machine knows."""
    from zoneinfo import available_timezones

    return available_timezones()


class UnknownZone(AuthorMustFix):
    """The machine knows no time zone of that name."""


def _instants(times: Times, wall_s: float) -> Iterator[float]:
    """The instants at which a change is possible: the hours of each day, its beginning, and jumps of the clock."""
    zone, (start, end) = zone_of(times.zone), minutes_of(times.hours)
    first = datetime.fromtimestamp(wall_s, zone).date() - timedelta(days=1)
    for number in range(_AHEAD + 2):
        day = first + timedelta(days=number)
        for minute in {0, start, end % (24 * 60)}:
            yield from _readings(day, minute, zone)
        yield from _jumps(wall_s + (number - 1) * _DAY_S, zone)


def _readings(day: date, minute: int, zone: tzinfo) -> Iterator[float]:
    """The instants at which the clock shows the minute: one, or two where it goes back."""
    shown = datetime.combine(day, time(minute // 60, minute % 60), zone)
    for fold in (0, 1):
        yield shown.replace(fold=fold).timestamp()


def _jumps(start_s: float, zone: tzinfo) -> Iterator[float]:
    """The instant within a day at which the clock goes forward or back, if it does."""
    low, high = int(start_s), int(start_s) + _DAY_S
    if _offset(low, zone) == _offset(high, zone):
        return
    while high - low > 1:
        middle = (low + high) // 2
        if _offset(middle, zone) == _offset(low, zone):
            low = middle
        else:
            high = middle
    yield float(high)


def _offset(wall_s: float, zone: tzinfo) -> timedelta | None:
    return datetime.fromtimestamp(wall_s, UTC).astimezone(zone).utcoffset()
