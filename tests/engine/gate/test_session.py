"""Counting in a session: slots, gaps, phases, and what is left of it on disk."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatewright.base.errors import AuthorMustFix, WorkspaceError
from gatewright.gate import Phase, Session, sessiondata
from gatewright.gate.session import Reservation, SessionFacts
from tests.support.clock import ManualClock


def at_most(calls: int, operations: frozenset[str] | None = None) -> Callable[[SessionFacts], str | None]:
    return lambda facts: "full" if facts.calls("t", operations) >= calls else None


def taken(session: Session, now_s: float = 0.0, operation: str = "", **more: Any) -> Reservation:
    result = session.reserve("t", operation, now_s, **more)
    assert isinstance(result, Reservation)
    return result


def test_id_is_kept_as_it_is_or_as_its_beginning_and_a_digest_when_it_is_too_long() -> None:
    long = "s" * 1_001
    assert Session(long[1:]).session_id == long[1:]
    assert Session(long).session_id == f"{long[:64]}-{hashlib.sha256(long.encode()).hexdigest()}"
    assert Session("half \ud800").session_id == "half \\ud800"
    assert Session().session_id.startswith("session-")


def test_session_is_told_the_time_once_and_by_its_first_call_where_nobody_did() -> None:
    told, called = Session(), Session()
    told.begin(3.0)
    told.begin(4.0)
    taken(told, 5.0)
    taken(called, 5.0)
    taken(called, 6.0)

    assert (told.facts().began_s, called.facts().began_s) == (3.0, 5.0)


def test_call_that_ends_later_starts_no_earlier() -> None:
    session = Session()
    taken(session, 4.0)
    late = taken(session, 2.0)
    session.add_success("t", "")

    assert late.start_s == 2.0
    assert (session.facts().last_start_s("t"), session.facts().last_success_s("t")) == (4.0, 4.0)
    assert session.facts().last_success_s("other") is None


def test_operations_that_succeeded_or_may_yet_are_told_without_those_of_single_sources() -> None:
    session = Session()
    for operation in ("flies", "failed", "done"):
        slot = taken(session, operation=operation, sources=["docs"])
        if operation != "flies":
            session.settle(slot)
    session.add_success("t", "done", sources=["docs"])

    assert sorted(session.facts().operations_called("t")) == ["done", "flies"]
    assert list(session.facts().operations_called("other")) == []


def test_released_slot_can_be_taken_again() -> None:
    session = Session()
    taken(session)
    session.release(taken(session, test=at_most(2)))
    taken(session, test=at_most(2))

    assert session.reserve("t", "", 0.0, test=at_most(2)) == "full"


def test_batch_takes_all_its_uses_at_once_or_none() -> None:
    session = Session()
    assert session.reserve("t", {"a": 2, "b": 1}, 0.0, test=at_most(1)) != "full"
    assert session.reserve("t", {"a": 1}, 0.0, test=at_most(3)) == "full"

    assert {row.name: row.calls for row in session.facts().rows()} == {"t.a": 2, "t.b": 1}


def test_batch_gives_back_all_its_uses_once_and_lands_as_a_whole() -> None:
    session = Session()
    slot = session.reserve("t", {"a": 2, "b": 1}, 5.0)
    assert isinstance(slot, Reservation)
    kept = session.reserve("t", {"a": 3}, 7.0)
    assert isinstance(kept, Reservation)
    session.release(slot)
    session.release(slot)
    assert (session.calls("t"), session.facts().last_start_s("t")) == (3, 7.0)

    session.settle(kept)
    session.settle(kept)
    session.add_success("t", {"a": 3})
    assert session.facts().uses["t"]["a", ""][:3] == (3, 0, 1)


def test_call_of_nobody_knows_which_operation_counts_for_limits_and_fulfils_nothing() -> None:
    session = Session()
    slot = session.reserve("t", {"": 1}, 5.0)
    assert isinstance(slot, Reservation)
    facts, a = session.facts(), frozenset({"a"})
    assert (facts.calls("t", a), facts.calls("t"), facts.is_flying("t", a), facts.last_start_s("t", a)) == (
        1,
        1,
        True,
        5,
    )

    session.settle(slot)
    session.add_success("t", {"": 1})
    facts = session.facts()
    assert facts.may_have_succeeded("t", a)
    assert not facts.has_succeeded("t", a)
    assert facts.has_succeeded("t")


def test_slot_is_released_once_however_often_one_asks() -> None:
    session = Session()
    taken(session)
    slot = taken(session)
    session.release(slot)
    session.release(slot)
    session.settle(slot)

    assert session.calls("t") == 1
    assert session.facts().uses["t"]["", ""].flying == 1


def test_slot_of_an_ended_execution_cannot_be_given_back() -> None:
    session = Session()
    slot = taken(session)
    session.settle(slot)
    session.release(slot)

    assert session.calls("t") == 1
    assert not session.facts().is_flying("t")


def test_released_slot_restores_the_start_before_it() -> None:
    session = Session()
    for operation in ("", "up"):
        taken(session, 1.0, operation, sources=["docs"])
        session.release(taken(session, 4.0, operation, sources=["docs"]))

        assert session.facts().last_start_s("t") == session.facts().last_start_s("t", source="docs") == 1.0


def test_released_slot_leaves_the_start_of_another_one() -> None:
    session = Session()
    first = taken(session, 4.0)
    taken(session, 4.0)
    session.release(first)

    assert session.facts().last_start_s("t") == 4.0


def test_operations_are_counted_apart() -> None:
    session = Session()
    taken(session, operation="b")

    assert session.calls("t", frozenset({"a"})) == 0
    taken(session, operation="a")
    assert session.calls("t", frozenset({"a"})) == 1
    assert session.calls("t") == 2


def test_calls_to_a_source_are_counted_for_it_too() -> None:
    session = Session()
    taken(session, 1.0, sources=["docs"])
    taken(session, 2.0, sources=["notes"])

    assert session.calls("t") == 2
    assert session.facts().calls("t", source="docs") == 1
    assert session.facts().last_start_s("t", source="docs") == 1.0


def test_facts_taken_earlier_do_not_change() -> None:
    session = Session()
    taken(session)
    facts = session.facts()
    taken(session)

    assert facts.calls("t") == 1
    assert session.facts().calls("t") == 2


def test_facts_cost_nothing_until_something_changes() -> None:
    session = Session()
    taken(session)

    assert session.facts() is session.facts()


def test_threads_cannot_take_more_slots_than_there_are() -> None:
    session = Session()

    def take(_number: int) -> object:
        return session.reserve("t", "", 0.0, test=at_most(50))

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(take, range(400)))

    assert sum(isinstance(result, Reservation) for result in results) == 50
    assert session.calls("t") == 50


def test_phase_follows_success_and_end() -> None:
    session = Session()
    phases = [session.phase]
    session.add_success("t", "")
    phases.append(session.phase)
    session.add_success("t", "", ends_loop=True)
    phases.append(session.phase)
    assert not session.should_continue
    session.begin_turn()

    assert phases == [Phase.START, Phase.OPEN, Phase.ENDED] == ["start", "open", "ended"]
    assert session.should_continue
    assert session.has_succeeded("t")


def test_app_is_shown_calls_and_successes_by_name_wherever_they_went() -> None:
    session = Session("s")
    for sources in (["docs"], []):
        taken(session, operation="up", sources=sources)
        session.add_success("t", "up", sources=sources)

    assert session.to_json() == {
        "session": "s",
        "phase": "open",
        "should_continue": True,
        "calls": {"t.up": 2},
        "successes": {"t.up": 2},
    }


NAMES = st.sampled_from(["a", "b.c", "d@2"])
STEPS = st.lists(
    st.tuples(
        NAMES,
        st.sampled_from(["", "up", "down"]),
        st.sampled_from([(), ("docs",), ("docs", "notes")]),
        st.sampled_from(["fly", "release", "fail", "succeed", "end"]),
    ),
    max_size=12,
)


def lived(steps: list[tuple[str, str, tuple[str, ...], str]], clock: ManualClock) -> Session:
    session = Session("s")
    for tool, operation, sources, fate in steps:
        clock.advance(1)
        slot = session.reserve(tool, operation, clock.monotonic_s(), sources=sources)
        assert isinstance(slot, Reservation)
        if fate == "release":
            session.release(slot)
        elif fate != "fly":
            if fate != "fail":
                session.add_success(tool, operation, ends_loop=fate == "end", sources=sources)
            session.settle(slot)
    return session


@given(STEPS)
def test_facts_survive_json(steps: list[tuple[str, str, tuple[str, ...], str]]) -> None:
    facts = lived(steps, ManualClock()).facts()

    assert SessionFacts.from_json(json.loads(json.dumps(facts.to_json()))) == facts


@given(STEPS)
def test_resumed_session_remembers_everything_but_what_was_under_way(
    steps: list[tuple[str, str, tuple[str, ...], str]],
) -> None:
    clock = ManualClock()
    session = lived(steps, clock)
    again = Session.resume(json.loads(json.dumps(session.to_saved(clock))), clock)

    assert again.to_json() == session.to_json()
    assert [row.land() for row in session.facts().rows()] == again.facts().rows()


def test_gap_goes_on_while_the_process_is_away() -> None:
    clock = ManualClock()
    session = Session()
    taken(session, clock.monotonic_s())
    data = session.to_saved(clock)
    later = ManualClock(clock.wall_s() + 20)
    again = Session.resume(data, later)

    assert again.facts().last_start_s("t") == again.facts().began_s == later.monotonic_s() - 20


def test_wall_clock_that_went_back_makes_no_start_lie_in_the_future() -> None:
    clock = ManualClock()
    session = Session()
    clock.advance(100)
    taken(session, clock.monotonic_s())
    earlier = ManualClock(clock.wall_s() - 1000)

    facts = Session.resume(session.to_saved(clock), earlier).facts()
    assert facts.last_start_s("t") == facts.began_s == earlier.monotonic_s()


def test_call_under_way_when_saved_counts_as_made_and_ended() -> None:
    session = Session()
    taken(session)
    again = Session.resume(session.to_saved())

    assert again.calls("t") == 1
    assert not again.facts().is_flying("t")


def spoilt(**changes: object) -> dict[str, object]:
    session = Session("s")
    taken(session)
    data = cast("dict[str, object]", session.to_saved(ManualClock()))
    return {key: value for key, value in {**data, **changes}.items() if value is not ...}


ROW: list[object] = ["t", "", "", 1, 0, 0, 1.0, None]


def rows_with(at: int, *values: object) -> dict[str, object]:
    return spoilt(uses=[[*ROW[:at], *values, *ROW[at + len(values) :]]])


NO_COUNT, NO_TIME = "a count must be a whole number, 0 or more", "a time must be a number of seconds or null"


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (None, "it must be one JSON object"),
        ([], "it must be one JSON object"),
        ({}, "its keys must be `began_s`, `ended`, `format`, `session`, `uses`"),
        (spoilt(format=...), "its keys must be `began_s`, `ended`, `format`, `session`, `uses`"),
        (spoilt(more=1), "its keys must be `began_s`, `ended`, `format`, `session`, `uses`"),
        (spoilt(format="other"), "`format` must be `gatewright-session-1`"),
        (spoilt(session=""), "a session must be text of at most 1,000 characters"),
        (spoilt(session=7), "a session must be text of at most 1,000 characters"),
        (spoilt(session="x" * 1_001), "a session must be text of at most 1,000 characters"),
        (spoilt(ended=0), "`ended` must be true or false"),
        (spoilt(began_s="now"), NO_TIME),
        (spoilt(began_s=True), NO_TIME),
        (spoilt(began_s=float("nan")), NO_TIME),
        (spoilt(began_s=float("inf")), NO_TIME),
        (spoilt(uses={}), "`uses` must be a list of at most 100,000 rows"),
        (spoilt(uses=["eight888"]), "a row of `uses` must be a list of 8"),
        (spoilt(uses=[ROW[:7]]), "a row of `uses` must be a list of 8"),
        (spoilt(uses=[[*ROW, None]]), "a row of `uses` must be a list of 8"),
        (spoilt(uses=[ROW, ROW]), "`uses` contains a row twice"),
        (rows_with(0, ""), "a row of `uses` contradicts itself"),
        (rows_with(0, 1), "a tool must be text of at most 1,000 characters"),
        (rows_with(1, "x" * 1_001), "an operation must be text of at most 1,000 characters"),
        (rows_with(2, None), "a source must be text of at most 1,000 characters"),
        (rows_with(3, -1), NO_COUNT),
        (rows_with(3, True), NO_COUNT),
        (rows_with(3, 1.5), NO_COUNT),
        (rows_with(3, 2**53 + 1), NO_COUNT),
        (rows_with(4, 2), "a row of `uses` contradicts itself"),
        (rows_with(4, -1), NO_COUNT),
        (rows_with(5, -1), NO_COUNT),
        (rows_with(6, "soon"), NO_TIME),
        (rows_with(7, float("nan")), NO_TIME),
    ],
)
def test_data_that_is_no_session_is_refused_whole_with_the_reason(data: object, why: str) -> None:
    with pytest.raises(WorkspaceError) as caught:
        Session.resume(data)

    assert str(caught.value) == f"this is not a saved session: {why}"
    assert isinstance(caught.value, AuthorMustFix)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
)


@given(st.fixed_dictionaries({"session": JSON, "ended": JSON, "began_s": JSON, "uses": JSON}) | JSON)
def test_any_json_is_a_session_or_a_plain_refusal(data: object) -> None:
    try:
        facts = SessionFacts.from_json(data)
    except WorkspaceError:
        return
    assert facts.to_json()["uses"] is not None


def test_bounds_of_a_saved_session_are_its_last_good_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessiondata, "MAX_ROWS", 2)
    rows = [[f"t{number}", *ROW[1:]] for number in range(3)]
    names = [["t" * 1_000, *ROW[1:]], ["t" * 1_001, *ROW[1:]]]
    counts = [[*ROW[:3], 2**53, *ROW[4:]], [*ROW[:3], 2**53 + 1, *ROW[4:]]]
    for good, bad in ((rows[:2], rows), (names[:1], names[1:]), (counts[:1], counts[1:]), ([ROW], [[*ROW, None]])):
        assert Session.resume(spoilt(uses=good)).to_saved()["uses"]
        with pytest.raises(WorkspaceError, match=r"at most|must be"):
            Session.resume(spoilt(uses=bad))
