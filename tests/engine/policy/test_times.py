"""The times of policy rules by the clocks of zones: nights, days, the hour that is left out and the one shown twice."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gatewright.policy.document import Policy
from gatewright.policy.rule import DAYS, PolicyRule, Span, Times
from gatewright.policy.rulematch import present
from gatewright.policy.verdict import Verdict

BERLIN = "Europe/Berlin"
ZONES = (BERLIN, "UTC", "America/New_York", "Asia/Kathmandu", "Australia/Lord_Howe", "America/St_Johns", "Pacific/Apia")
START_S = datetime(2026, 1, 1, tzinfo=UTC).timestamp()
A_YEAR_S = 365 * 86_400


def at(text: str, zone: str = BERLIN, fold: int = 0) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone), fold=fold).timestamp()


def shown(wall_s: float, zone: str = BERLIN) -> str:
    return datetime.fromtimestamp(wall_s, ZoneInfo(zone)).isoformat(timespec="minutes")


@pytest.mark.parametrize(
    ("hours", "days", "moment", "holds"),
    [
        ("08:00-18:00", None, "2026-11-27T07:59:59", False),
        ("08:00-18:00", None, "2026-11-27T08:00", True),
        ("08:00-18:00", None, "2026-11-27T17:59:59", True),
        ("08:00-18:00", None, "2026-11-27T18:00", False),
        ("08:00-18:00", ("sat",), "2026-11-27T12:00", False),
        ("00:00-24:00", ("fri",), "2026-11-27T23:59", True),
        (None, ("fri",), "2026-11-28T00:00", False),
        ("22:00-06:00", ("fri",), "2026-11-27T22:00", True),
        ("22:00-06:00", ("fri",), "2026-11-28T05:59", True),
        ("22:00-06:00", ("fri",), "2026-11-28T06:00", False),
        ("22:00-06:00", ("fri",), "2026-11-28T22:00", False),
        ("22:00-06:00", ("fri",), "2026-11-27T05:59", False),
        ("22:00-06:00", ("sun",), "2026-11-30T01:00", True),
    ],
)
def test_a_rule_holds_within_its_hours_on_the_days_on_which_they_begin(
    hours: str | None, days: tuple[str, ...] | None, moment: str, *, holds: bool
) -> None:
    assert Times(BERLIN, hours, days).holds(at(moment)) is holds


def test_hours_in_the_gap_of_the_clock_begin_after_it_or_not_at_all() -> None:
    before = at("2026-03-29T01:59")
    begins = Times(BERLIN, "02:30-05:00").next_change(before)
    assert begins is not None
    assert shown(begins) == "2026-03-29T03:00+02:00"
    whole = Times(BERLIN, "02:00-03:00").next_change(before)
    assert whole is not None
    assert shown(whole) == "2026-03-30T02:00+02:00"  # that night has no such hour
    sundays = Times(BERLIN, "02:00-03:00", ("sun",)).next_change(before)
    assert sundays is not None
    assert shown(sundays) == "2026-04-05T02:00+02:00"


def test_the_hour_that_is_there_twice_counts_both_times() -> None:
    times, moment, seen = Times(BERLIN, "02:30-05:00"), at("2026-10-25T01:00"), list[str]()
    for _ in range(4):
        change = times.next_change(moment)
        assert change is not None
        moment = change
        seen.append(f"{shown(moment)} {times.holds(moment)}")
    assert seen == [
        "2026-10-25T02:30+02:00 True",
        "2026-10-25T02:00+01:00 False",
        "2026-10-25T02:30+01:00 True",
        "2026-10-25T05:00+01:00 False",
    ]


ANY_TIMES = st.builds(
    Times,
    st.sampled_from(ZONES),
    st.tuples(st.integers(0, 24 * 12 - 1), st.integers(0, 24 * 12 - 1))
    .filter(lambda pair: pair[0] != pair[1])
    .map(lambda pair: "-".join(f"{one // 12:02}:{one % 12 * 5:02}" for one in pair))
    | st.none(),
    st.sets(st.sampled_from(DAYS), min_size=1).map(lambda some: tuple(day for day in DAYS if day in some)) | st.none(),
)


@settings(deadline=None, max_examples=120)
@given(ANY_TIMES, st.integers(0, A_YEAR_S))
def test_nothing_changes_before_the_next_change_and_then_it_does(times: Times, after_s: int) -> None:
    moment = START_S + after_s
    now, change = times.holds(moment), times.next_change(moment)
    until_s = change if change is not None else moment + 15 * 86_400
    step_s = moment
    while step_s < until_s:
        assert times.holds(step_s) is now, shown(step_s, times.zone)
        step_s += 300
    if change is None:
        assert times.days is None or set(times.days) == set(DAYS)
        assert times.hours is None
    else:
        assert times.holds(change) is not now
        assert times.holds(change - 0.001) is now


@settings(deadline=None, max_examples=60)
@given(ANY_TIMES, st.integers(0, A_YEAR_S))
def test_a_rule_holds_by_what_the_clock_of_its_zone_shows(times: Times, after_s: int) -> None:
    local = (datetime.fromtimestamp(START_S, UTC) + timedelta(seconds=after_s)).astimezone(ZoneInfo(times.zone))
    days = times.days or DAYS
    if times.hours is None:
        assert times.holds(START_S + after_s) is (DAYS[local.weekday()] in days)
        return
    begin, end = times.hours.split("-")
    now, today, yesterday = f"{local:%H:%M}", DAYS[local.weekday()], DAYS[local.weekday() - 1]
    if begin < end:
        wanted = begin <= now < end and today in days
    else:
        wanted = (now >= begin and today in days) or (now < end and yesterday in days)
    assert times.holds(START_S + after_s) is wanted


def test_a_policy_stays_until_the_first_of_its_rules_changes() -> None:
    rules = (
        PolicyRule("always", Verdict.ASK),
        PolicyRule("work", Verdict.DENY, times=Times(BERLIN, "08:00-18:00")),
        PolicyRule("lunch", Verdict.DENY, agents=("a",), times=Times(BERLIN, "12:00-13:00")),
    )
    now, span = present(Policy(rules=rules), at("2026-11-27T09:00"))
    assert [rule.agents for rule in now.rules] == [None, None, ()]
    assert span == Span(at("2026-11-27T09:00"), at("2026-11-27T12:00"))
    later, _ = present(Policy(rules=rules), at("2026-11-27T12:00"))
    assert later.rules == rules
    plain = Policy(rules=rules[:1])
    assert present(plain, 0.0) == (plain, None)
