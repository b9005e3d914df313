"""The contract of rates, over a file, memory and a real database: the same starts fit at the same moments."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from gatewright.compile.rule_test import Rate
from gatewright.gate.history import RateBook
from gatewright.gate.port import Rates
from gatewright.gate.shared import SharedRates
from gatewright.policy.rule import RateLimit
from tests.engine.fleet.conftest import Fleet

RULE = RateLimit(3, 60.0)
LATER = """UPDATE gatewright.starts SET last_s = last_s - %(s)s, step_s = step_s - %(s)s;
  UPDATE gatewright.rates SET latest_s = latest_s - %(s)s"""
"""What was taken lies further back: the only way to let time pass for a database."""


@dataclass
class Book:
    """Rates and a clock that a test sets."""

    rates: Rates
    let_pass: Callable[[float], None] | None = None
    now_s: float = 1_700_000_000.0

    def wait(self, seconds: float) -> None:
        if self.let_pass is None:
            self.now_s += seconds
        else:
            self.let_pass(seconds)

    def take(self, *rates: Rate) -> tuple[Rate, float] | None:
        return self.rates.take(rates, self.now_s)

    def fits(self, key: str = "k", rule: RateLimit = RULE, calls: int = 1) -> bool:
        return self.take(Rate(key, rule, calls)) is None

    def left(self, rule: RateLimit = RULE) -> int:
        return self.rates.peek("k", rule, self.now_s).left

    def give_back(self, rule: RateLimit = RULE, ago_s: float = 0.0, calls: int = 1) -> None:
        self.rates.give_back([Rate("k", rule, calls)], self.now_s, ago_s)


@pytest.fixture(params=["memory", "file", "database"])
def book(request: pytest.FixtureRequest, tmp_path: Path) -> Book:
    if request.param != "database":
        return Book(RateBook(tmp_path / "rates.sqlite" if request.param == "file" else None))
    fleet: Fleet = request.getfixturevalue("fleet")

    def let_pass(seconds: float) -> None:
        with fleet.as_owner() as connection:
            for statement in LATER.split(";"):
                connection.execute(statement.encode(), {"s": seconds})

    return Book(SharedRates(fleet.gateway("one")), let_pass)


def test_no_stretch_of_the_period_holds_more_starts_than_the_rate(book: Book) -> None:
    fitted: list[bool] = []
    for seconds in (0, 20, 0, 10, 25, 10, 1, 15, 10, 0, 0):
        book.wait(seconds)
        fitted.append(book.fits())

    assert fitted == [True, True, True, False, False, True, False, True, True, False, False]
    book.wait(10_000)
    assert book.left() == 3


def test_refused_call_learns_when_it_would_fit(book: Book) -> None:
    for seconds in (0, 20, 10):
        book.wait(seconds)
        assert book.fits()
    book.wait(10)

    refused = [book.take(Rate("k", RULE, calls)) for calls in (1, 2, 3, 4)]
    waits = [one[1] for one in refused if one is not None]
    assert waits == pytest.approx([20, 40, 50, 1e10], abs=5.0)
    assert book.rates.peek("k", RULE, book.now_s).wait_s(2) == pytest.approx(40, abs=5.0)


def test_a_start_counts_under_every_rate_or_under_none(book: Book) -> None:
    tight, wide = Rate("tight", RateLimit(1, 60.0)), Rate("k", RateLimit(5, 60.0))
    assert book.take(wide, tight) is None

    refused = book.take(wide, tight)
    assert refused is not None
    assert refused[0] == tight
    assert book.left(RateLimit(5, 60.0)) == 4


def test_rate_without_a_period_counts_for_ever(book: Book) -> None:
    once = RateLimit(1, 0.0)
    assert book.fits(rule=once)
    book.wait(1e8)

    refused = book.take(Rate("k", once))
    assert refused is not None
    assert refused[1] == 1e10


def test_start_given_back_can_be_taken_again(book: Book) -> None:
    assert [book.fits() for _ in range(4)] == [True, True, True, False]
    book.give_back()
    assert [book.fits() for _ in range(2)] == [True, False]
    book.give_back(ago_s=60.0)
    assert book.left() == 0
    book.give_back(calls=9)
    assert book.left() == 3


def test_giving_back_takes_the_oldest_that_counts(book: Book) -> None:
    assert book.fits()
    book.wait(30)
    assert book.fits()
    book.give_back()
    book.wait(31)

    assert book.left() == 2


def test_large_rate_is_stored_in_steps_and_lets_no_more_through(book: Book) -> None:
    rule = RateLimit(1000, 200.0)
    for _ in range(4):
        assert book.fits(rule=rule, calls=250)
        book.wait(10)
    assert not book.fits(rule=rule)
    book.wait(150)
    assert not book.fits(rule=rule)
    book.wait(13)

    assert book.left(rule) == 250


def test_starts_that_are_over_count_again_under_a_longer_period(book: Book) -> None:
    brief = RateLimit(5_000, 1.0)
    for _ in range(20):
        assert book.fits(rule=brief, calls=100)
        book.wait(2)

    assert book.left(brief) == 5_000
    assert book.left(RateLimit(5_000, 1_000.0)) == 3_000


def test_beyond_a_thousand_starts_that_are_over_merge_and_none_is_lost(fleet: Fleet) -> None:
    rates, key = SharedRates(fleet.gateway("one")), "k"
    assert rates.take([Rate(key, RULE)], 0.0) is None
    with fleet.as_owner() as connection:
        connection.execute(
            "INSERT INTO gatewright.starts SELECT 'main', 'k', latest_s - 100 - one, latest_s - 100 - one, 2 "
            "FROM gatewright.rates, generate_series(1, 1200) AS one"
        )
    assert rates.take([Rate(key, RULE)], 0.0) is None

    ((rows, calls),) = fleet.admin.ask("SELECT count(*), sum(calls)::int FROM gatewright.starts WHERE tenant = 'main'")
    assert (rows < 200, calls) == (True, 2_402)


def test_clock_set_back_lets_nothing_through(fleet: Fleet) -> None:
    rates = SharedRates(fleet.gateway("one"))
    rule = RateLimit(1, 60.0)
    with fleet.as_owner() as connection:
        connection.execute("INSERT INTO gatewright.rates SELECT 'main', 'k', extract(epoch FROM now()) + 3600")
    assert rates.take([Rate("k", rule)], 0.0) is None

    refused = rates.take([Rate("k", rule)], 0.0)
    assert refused is not None
    assert refused[1] == pytest.approx(60)


def test_many_at_one_moment_overrun_nothing(book: Book) -> None:
    rule = RateLimit(20, 3600.0)
    keys = ("b", "a", "k"), ("k", "a", "b")

    def take(number: int) -> bool:
        return book.take(*(Rate(key, rule) for key in keys[number % 2])) is None

    with ThreadPoolExecutor(4) as pool:
        fitted = list(pool.map(take, range(60)))

    assert sum(fitted) == 20
    assert book.left(rule) == 0
