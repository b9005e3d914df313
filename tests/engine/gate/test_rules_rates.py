"""Rates: what they let through over time, over processes, and when their file is in no state to say."""

from __future__ import annotations

import multiprocessing
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatewright.compile.rule_test import Rate
from gatewright.gate.history import RateBook, RatesUnavailable
from gatewright.policy.rule import RateLimit

NOW = 1_700_000_000.0
RULE = RateLimit(3, 60.0)
RATE = Rate("k", RULE)


@pytest.fixture(params=["memory", "file"])
def book(request: pytest.FixtureRequest, tmp_path: Path) -> RateBook:
    return RateBook(tmp_path / "state" / "rates.sqlite" if request.param == "file" else None)


def taken(book: RateBook, rate: Rate, wall_s: float) -> bool:
    return book.take([rate], wall_s) is None


def left(book: RateBook, wall_s: float, rule: RateLimit = RULE) -> int:
    return book.peek("k", rule, wall_s).left


def test_no_stretch_of_the_period_holds_more_starts_than_the_rate(book: RateBook) -> None:
    assert [taken(book, RATE, NOW + at) for at in (0, 20, 20, 30, 59.9)] == [True, True, True, False, False]
    assert [taken(book, RATE, NOW + at) for at in (60, 61, 79.9)] == [True, False, False]
    assert [taken(book, RATE, NOW + at) for at in (80, 80, 80)] == [True, True, False]
    assert left(book, NOW + 10_000) == 3


def test_wait_is_the_time_until_so_many_calls_fit(book: RateBook) -> None:
    for at in (0.0, 20.0, 30.0):
        assert taken(book, RATE, NOW + at)

    window = book.peek("k", RULE, NOW + 40)
    assert [window.wait_s(calls) for calls in (1, 2, 3)] == [20.0, 40.0, 50.0]
    assert window.wait_s(4) > 1e9
    assert [window.after(seconds).left for seconds in (19.0, 20.0, 40.0, 50.0)] == [0, 1, 2, 3]
    assert book.peek("k", RULE, NOW + 60).wait_s() == 0.0


def test_looking_takes_nothing_and_makes_no_file(tmp_path: Path) -> None:
    path = tmp_path / "state" / "rates.sqlite"
    book = RateBook(path)

    assert left(book, NOW) == 3
    assert not path.parent.exists()


def test_start_given_back_can_be_taken_again(book: RateBook) -> None:
    for _ in range(3):
        taken(book, RATE, NOW)
    book.give_back([RATE], NOW, 0.0)

    assert taken(book, RATE, NOW)
    assert not taken(book, RATE, NOW)


def test_giving_back_never_overfills(book: RateBook) -> None:
    book.give_back([RATE], NOW, 0.0)

    assert left(book, NOW) == 3


def test_giving_back_what_is_over_leaves_the_starts_of_others(book: RateBook) -> None:
    taken(book, RATE, NOW)
    taken(book, RATE, NOW + 30)
    book.give_back([RATE], NOW + 61, 61.0)

    assert left(book, NOW + 61) == 2


def test_what_is_given_back_does_not_end_the_start_of_another_sooner(book: RateBook) -> None:
    for at in (0.0, 0.0, 50.0):
        assert taken(book, RATE, NOW + at)
    book.give_back([RATE], NOW + 50, 50.0)

    assert [left(book, NOW + at) for at in (50, 60, 109, 110)] == [1, 2, 2, 3]


def test_two_rates_are_taken_from_together_or_not_at_all(book: RateBook) -> None:
    small = Rate("small", RateLimit(1, 3600.0))
    assert book.take([RATE, small], NOW) is None
    short = book.take([RATE, small], NOW)

    assert short is not None
    assert short[0] == small
    assert left(book, NOW) == 2


def test_clock_that_goes_back_opens_nothing(book: RateBook) -> None:
    for _ in range(3):
        taken(book, RATE, NOW)

    assert left(book, NOW - 30) == 0
    assert not taken(book, RATE, NOW - 30)
    assert not taken(book, RATE, NOW - 1_000_000)


def test_clock_that_was_far_ahead_stops_a_rate_for_one_period_at_most(book: RateBook) -> None:
    for _ in range(3):
        taken(book, RATE, NOW + 1_000_000)

    assert not taken(book, RATE, NOW)
    assert book.peek("k", RULE, NOW).wait_s() == 60.0
    assert taken(book, Rate("other", RULE), NOW)
    assert taken(book, Rate("k", RateLimit(4, 60.0)), NOW)
    assert left(book, NOW + 60) == 3


@given(st.lists(st.tuples(st.floats(-500, 100), st.booleans()), max_size=60))
def test_no_walk_of_the_clock_gives_more_than_the_time_that_passed(steps: list[tuple[float, bool]]) -> None:
    book, wall_s, latest_s, passed_s, got = RateBook(), NOW, NOW, 0.0, 0
    for seconds, take in steps:
        wall_s += seconds
        passed_s += max(0.0, seconds)
        latest_s = max(latest_s, wall_s)
        got += take and taken(book, RATE, wall_s)

    assert got <= 3 + 3 * (passed_s // 60)


@given(st.integers(1, 500), st.lists(st.floats(0, 30), max_size=80), st.integers(1, 40))
def test_any_stretch_of_any_rate_holds_at_most_its_calls(calls: int, gaps: list[float], burst: int) -> None:
    book, rule, wall_s, started = RateBook(), RateLimit(calls, 60.0), NOW, list[float]()
    for gap in gaps:
        wall_s += gap
        for _ in range(burst):
            if taken(book, Rate("k", rule), wall_s):
                started.append(wall_s)

    assert all(later - first >= 60.0 for first, later in zip(started, started[calls:], strict=False))


def test_a_large_rate_keeps_few_rows_and_waits_hardly_longer(tmp_path: Path) -> None:
    path = tmp_path / "rates.sqlite"
    book, rule = RateBook(path), RateLimit(100_000, 86_400.0)
    for number in range(3000):
        assert book.take([Rate("k", rule, 10)], NOW + number * 20) is None
    with sqlite3.connect(path) as other:
        (rows,) = other.execute("SELECT count(*) FROM starts").fetchone()
    other.close()

    assert rows <= 201
    assert left(book, NOW + 60_000, rule) == 70_000
    assert left(book, NOW + 86_400 + 432, rule) >= 70_010


def test_other_numbers_for_the_same_rate_forget_no_start(book: RateBook) -> None:
    for _ in range(3):
        taken(book, RATE, NOW)

    assert left(book, NOW + 1, RateLimit(3, 61.0)) == 0
    assert left(book, NOW + 1, RateLimit(5, 60.0)) == 2


def test_rate_edited_to_a_shorter_period_and_back_forgets_no_start(book: RateBook) -> None:
    hourly, brief = RateLimit(3, 3600.0), RateLimit(2, 60.0)
    for at, rule in ((0, hourly), (10, hourly), (100, brief), (300, brief), (300, brief)):
        assert taken(book, Rate("k", rule), NOW + at)

    assert book.peek("k", hourly, NOW + 301).wait_s() == 3600 + 100 - 301
    assert not taken(book, Rate("k", hourly), NOW + 3699)
    assert taken(book, Rate("k", hourly), NOW + 3700)
    assert not taken(book, Rate("k", RateLimit(6, 1e9)), NOW + 10_000)


def test_start_given_back_after_an_edit_takes_none_away_that_a_longer_period_counts(book: RateBook) -> None:
    hourly, brief = RateLimit(3, 3600.0), RateLimit(1, 60.0)
    taken(book, Rate("k", hourly), NOW)
    taken(book, Rate("k", brief), NOW + 100)
    book.give_back([Rate("k", brief)], NOW + 101, 1.0)

    assert left(book, NOW + 101, brief) == 1
    assert book.peek("k", RateLimit(1, 3600.0), NOW + 101).wait_s() == 3499.0


EDITED = [RateLimit(2, 60.0), RateLimit(30, 1.0), RateLimit(5, 3600.0), RateLimit(400, 100_000.0), RateLimit(300, 7.0)]


@given(st.lists(st.tuples(st.sampled_from(EDITED), st.floats(0, 2000), st.integers(1, 150)), max_size=12))
def test_any_stretch_of_a_rate_that_was_edited_there_and_back_holds_at_most_its_calls(
    steps: list[tuple[RateLimit, float, int]],
) -> None:
    book, wall_s, started = RateBook(), NOW, list[float]()
    for rule, gap, burst in steps:
        wall_s += gap
        for _ in range(burst):
            wall_s += 0.125
            if taken(book, Rate("k", rule), wall_s):
                started.append(wall_s)
                assert sum(wall_s - rule.per_s < at for at in started) <= rule.calls


def test_starts_that_are_over_are_kept_in_few_rows_and_block_hardly_longer(tmp_path: Path) -> None:
    path = tmp_path / "rates.sqlite"
    book, brief, started = RateBook(path), Rate("k", RateLimit(1, 1.0)), 3000
    assert all(taken(book, brief, NOW + number) for number in range(started))
    with sqlite3.connect(path) as other:
        rows, kept = other.execute("SELECT count(*), sum(count) FROM starts").fetchone()
    other.close()

    assert rows <= 1001
    assert kept == started
    for per_s, exact in ((100.0, 100), (1000.0, 1000), (2900.0, 2900)):
        counted = 5000 - left(book, NOW + started - 1, RateLimit(5000, per_s))
        assert exact <= counted <= exact * 1.05


def test_rate_survives_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "rates.sqlite"
    first = RateBook(path)
    taken(first, RATE, NOW)
    first.close()

    assert left(RateBook(path), NOW) == 2


def test_threads_take_no_more_than_there_is(book: RateBook) -> None:
    rate = Rate("k", RateLimit(50, 3600.0))

    def take(_number: int) -> bool:
        return taken(book, rate, NOW)

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(take, range(400)))

    assert sum(results) == 50


def _take_many(path: Path, gate: Barrier, answers: Queue[int]) -> None:
    book, rate = RateBook(path), Rate("k", RateLimit(100, 3600.0))
    gate.wait()
    answers.put(sum(taken(book, rate, NOW) for _ in range(200)))


def test_two_processes_share_one_rate(tmp_path: Path) -> None:
    spawn = multiprocessing.get_context("spawn")
    answers: Queue[int] = spawn.Queue()
    gate = spawn.Barrier(2)
    path = tmp_path / "rates.sqlite"
    workers = [spawn.Process(target=_take_many, args=(path, gate, answers)) for _ in range(2)]
    for worker in workers:
        worker.start()
    got = [answers.get() for _ in workers]
    for worker in workers:
        worker.join()

    assert sum(got) == 100


@pytest.mark.parametrize(
    "content", [b"this is no database, and long enough to be looked at" * 40, b"SQLite format 3\0" * 99]
)
def test_file_that_is_no_database_closes_the_rate(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "rates.sqlite"
    path.write_bytes(content)
    book = RateBook(path)

    with pytest.raises(RatesUnavailable, match="cannot be read"):
        book.peek("k", RULE, NOW)
    with pytest.raises(RatesUnavailable):
        book.take([RATE], NOW)


def test_row_that_is_no_number_closes_the_rate(tmp_path: Path) -> None:
    path = tmp_path / "rates.sqlite"
    book = RateBook(path)
    taken(book, RATE, NOW)
    with sqlite3.connect(path) as other:
        other.execute("UPDATE starts SET last_s = 'long ago'")
    other.close()

    with pytest.raises(RatesUnavailable):
        book.peek("k", RULE, NOW)


def test_rate_opens_again_once_its_file_is_well(tmp_path: Path) -> None:
    path = tmp_path / "rates.sqlite"
    path.mkdir()
    book = RateBook(path)
    with pytest.raises(RatesUnavailable):
        book.take([RATE], NOW)
    path.rmdir()

    assert taken(book, RATE, NOW)


def test_file_that_another_process_locks_closes_the_rate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gatewright.gate.history._BUSY_S", 0.01)
    path = tmp_path / "rates.sqlite"
    book = RateBook(path)
    taken(book, RATE, NOW)
    book.close()
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        with pytest.raises(RatesUnavailable, match="locked"):
            book.take([RATE], NOW)
    finally:
        other.close()

    assert taken(book, RATE, NOW)


@pytest.mark.parametrize("rule", [RateLimit(0, 60.0), RateLimit(2, 0.0)])
def test_rate_that_makes_no_sense_never_opens_again(rule: RateLimit) -> None:
    book, rate = RateBook(), Rate("k", rule)
    for _ in range(rule.calls):
        assert taken(book, rate, NOW)

    assert not taken(book, rate, NOW + 1e9)
