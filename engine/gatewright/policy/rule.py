"""Rules as rows: tool rules and policy rules, each with a lasting identity, and the times at which a policy rule holds.

A tool rule has a kind with its value (`policy/rulekind.py`), a tool, and operations. Among the policy rules that match
a call the strictest effect wins: deny before ask before allow, before the default. `dataclasses.replace` and pickling
carry a row's identity along; equal rows may differ in it.

A policy rule holds while the clock of its zone shows a time within its hours on one of its days. Hours over midnight
belong to the day on which they begin. Where the clock goes forward, a time that it leaves out is never shown: hours
that begin in the gap begin after it. Where it goes back, it shows a time twice, and the rule holds both times. Instants
are seconds since 1970, as the wall clock counts them.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from functools import lru_cache
from itertools import count
from typing import Protocol, get_args

from gatewright.base.errors import AuthorMustFix, EditRefused, Report, shown
from gatewright.base.frozen import frozen
from gatewright.base.jsonvalue import JsonValue
from gatewright.base.row import json_table, name_error, whole_number
from gatewright.policy.rulekind import (
    AfterOutside,
    AllowedOperations,
    ArgumentConstraints,
    ContinueLoop,
    Cooldown,
    ExclusiveGroups,
    ExitLoop,
    MaxCalls,
    Needed,
    Periodic,
    RateLimit,
    RequiredBeforeExit,
    RequiredBeforeExitIf,
    RequiresConsent,
    RequiresFollowingTools,
    RequiresPrecedingTools,
    StartConstraint,
)
from gatewright.policy.verdict import ANY_TOOL, Mode, Verdict

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
HOURS_PATTERN = r"^([01]\d|2[0-3]):[0-5]\d-(([01]\d|2[0-3]):[0-5]\d|24:00)$"
_HOURS = re.compile(HOURS_PATTERN)
_DAY_S = 86_400
_AHEAD = 15
"""The days to look ahead for a change: a week, and a second one, since the clock may leave out hours of the first."""


class Identified(Protocol):
    """A value with an identity."""

    @property
    def identity(self) -> int:
        """The number that identifies the row through edits."""
        ...


new_identity = count(os.getpid() << 40).__next__
"""A number that is unique in this process and among the numbers that other processes pass on."""


def place_in(rows: Sequence[Identified], row: Identified, what: str) -> int:
    """The place of a row among others, found by its identity; ``what`` names the row in the error.

    Raises EditRefused if the rows lack it: somebody removed it, or it belongs to another policy.
    """
    for at, one in enumerate(rows):
        if one.identity == row.identity:
            return at
    raise EditRefused(f"{what} no longer exists")


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
    """The minutes of the day at which hours begin and end; the end of hours over midnight is the smaller number.

    Raises ValueError for anything but hours.
    """
    if hours is None:
        return 0, 24 * 60
    if not _HOURS.match(hours):
        raise ValueError('hours are written `"08:00-18:00"`, in the order of the clock, from 00:00 to 24:00')
    start, end = (int(one[:2]) * 60 + int(one[3:]) for one in hours.split("-"))
    if start == end:
        raise ValueError("hours that begin and end at the same minute never hold: for the whole day leave them out")
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


@frozen
class PolicyRule:
    """One rule of ``[policy]``. ``agents``, ``tools``, ``operations`` None: all. ``when``: a JSON Schema over the
    canonical arguments; None: always. ``times`` None: at any time.

    ``message`` is for the operator and, on a denial, for the model too. ``mode``: observe until ``observe_until_s``
    (seconds since 1970) notes its denials and asks instead of enforcing them.
    """

    name: str
    effect: Verdict
    agents: tuple[str, ...] | None = None
    tools: tuple[str, ...] | None = None
    operations: tuple[str, ...] | None = None
    when: Mapping[str, JsonValue] | bool | None = field(default=None, hash=False)
    message: str | None = None
    times: Times | None = None
    mode: Mode = Mode.ENFORCE
    observe_until_s: float | None = None
    identity: int = field(default_factory=new_identity, compare=False, repr=False, kw_only=True)

    @property
    def is_unconditional(self) -> bool:
        """True if the rule holds whatever the arguments are."""
        return self.when is None or self.when is True or self.when == {}


DEFAULT_PRIORITY = 5
MAX_PRIORITY = 255
OPERATION_CONDITION = "operation:"

RuleKind = (
    AllowedOperations
    | ContinueLoop
    | ExitLoop
    | StartConstraint
    | RequiresPrecedingTools
    | RequiresFollowingTools
    | ExclusiveGroups
    | RequiredBeforeExit
    | RequiredBeforeExitIf
    | MaxCalls
    | Cooldown
    | RateLimit
    | Periodic
    | RequiresConsent
    | ArgumentConstraints
    | AfterOutside
    | Needed
)

RULE_KINDS: dict[str, type[RuleKind]] = {kind.__name__: kind for kind in get_args(RuleKind)}


@frozen
class ToolRule:
    """One rule on one tool. ``tool_name`` may be ``*`` or ``name@major``; a higher ``priority`` is reported first."""

    tool_name: str
    rule_type: RuleKind
    conditions: tuple[str, ...] = ()
    priority: int = DEFAULT_PRIORITY
    rule_id: str | None = None
    metadata: Mapping[str, JsonValue] | None = field(default=None, hash=False)
    identity: int = field(default_factory=new_identity, compare=False, repr=False, kw_only=True)

    @property
    def kind(self) -> str:
        """The spelling of the kind in the policy file."""
        return type(self.rule_type).__name__

    @property
    def operations(self) -> frozenset[str] | None:
        """The operations that the conditions name; None if they name none, so that the rule is for all."""
        prefix = OPERATION_CONDITION
        named = frozenset(text.removeprefix(prefix) for text in self.conditions if text.startswith(prefix))
        return named or None

    def binds(self, operation: str) -> bool:
        """True if the rule applies to calls of that operation."""
        return self.operations is None or operation in self.operations

    def check(self, report: Report) -> None:
        """Report faults that make it invalid in any file, whatever tools exist."""
        for key, text in (("tool_name", self.tool_name), ("id", self.rule_id)):
            if text is not None and (why := name_error(text)):
                report.error((key,), "bad-value", f"`{key}` {why}")
        self.rule_type.check(("rule_type", self.kind), report)
        whole_number(self.priority, ("priority",), report, "`priority`", 0, MAX_PRIORITY)
        for index, code, message in condition_faults(self.conditions, self.tool_name, self.rule_type):
            report.error(("conditions",) if index is None else ("conditions", index), code, message)
        if self.metadata is not None:
            json_table(dict(self.metadata), ("metadata",), report)


def condition_faults(
    conditions: Sequence[str], tool_name: str | None, kind: RuleKind | None
) -> Iterator[tuple[int | None, str, str]]:
    """The faults of conditions, whatever tools exist: the index (None for all together), a code, a message.

    ``tool_name`` or ``kind`` is None if unreadable in this rule.
    """
    seen: set[str] = set()
    for index, condition in enumerate(conditions):
        if why := name_error(condition.removeprefix(OPERATION_CONDITION)):
            yield index, "bad-condition", f"{shown(condition)} is no condition here: the name {why}"
        elif condition in seen:
            yield index, "duplicate", f"{shown(condition)} stands here twice"
        elif condition.startswith(OPERATION_CONDITION):
            if tool_name == ANY_TOOL:
                message = f"{shown(condition)} names an operation of one tool: it cannot stand with `*`"
                yield index, "operations-on-plain-tool", message
        elif kind is not None and not kind.names_tools:
            message = f"{shown(condition)} is no condition here: `{type(kind).__name__}` takes only `operation:NAME`"
            yield index, "bad-condition", message
        elif kind is not None and condition == ANY_TOOL:
            message = f"`*` is no condition: name the tools that `{type(kind).__name__}` speaks of"
            yield index, "bad-condition", message
        seen.add(condition)
    if kind is not None and kind.names_tools and all(text.startswith(OPERATION_CONDITION) for text in conditions):
        example = "such as `tool` or `tool.operation`"
        yield None, "bad-condition", f"`{type(kind).__name__}` means nothing without a tool in `conditions`, {example}"
