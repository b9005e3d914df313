"""That every row still runs and measures what it says; how fast anything is, no test asks."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from tests.bench.imported import CORPUS
from tests.bench.matrix import matrix, plain_dict, wrong_answers
from tests.bench.measure import QUICK, Ask, race
from tests.bench.row import Figure, Met, Missing, at_least, at_most, none_wrong, times_at_most, times_faster
from tests.bench.rows import ROWS
from tests.bench.table import summary, text_of
from tests.support.manyoperations import SIX

TINY = replace(QUICK, calls=40, block=20, peers=False)


@pytest.mark.parametrize("name", ROWS)
def test_row_measures_its_own_side_and_answers_right(name: str) -> None:
    row = ROWS[name](TINY)
    if name == "imported tools" and not CORPUS.is_file():
        pytest.skip("the corpora are not here: they lie in `shared/corpora` beside the checkout")

    assert row.name == name
    assert row.bars
    assert row.ours
    for ours in row.ours:
        found = row.figures[ours]
        assert isinstance(found, Figure)
        assert found.median > 0
    assert not [f for f in row.figures.values() if isinstance(f, Figure) and f.wrong]
    assert json.loads(json.dumps(row.to_json()))["name"] == name
    assert all(ours in text_of(row) for ours in row.ours)


def test_matrix_is_the_same_every_time() -> None:
    assert matrix(20).allowed == matrix(20).allowed
    assert matrix(20).queries(50) == matrix(20).queries(50)


def test_wrong_answers_are_counted() -> None:
    truth = matrix(5, 10)
    every = [(agent, tool, operation) for agent in truth.agents for tool in truth.tools for operation in SIX]
    allowed = sum(truth.truth(*query) for query in every)

    assert wrong_answers(truth, plain_dict(truth), every) == 0
    assert wrong_answers(truth, lambda _agent, _tool, _operation: False, every) == allowed > 0


def test_race_asks_every_contestant_the_same() -> None:
    asked: dict[str, list[tuple[str, str, str]]] = {"one": [], "two": []}
    queries = matrix(5).queries(30)

    def noting(name: str) -> Ask:
        return lambda agent, tool, operation: asked[name].append((agent, tool, operation))

    race({name: noting(name) for name in asked}, queries, TINY)

    assert asked["one"] == asked["two"]
    assert len(asked["one"]) >= TINY.calls


def test_bars_compare_as_they_read() -> None:
    fast, slow = Figure(1.0), Figure(10.0)

    assert times_at_most("x", fast, slow, 3).met is Met.YES
    assert times_at_most("x", slow, fast, 3).met is Met.NO
    assert times_faster("x", fast, slow, 10).met is Met.YES
    assert times_faster("x", slow, fast, 1).met is Met.NO
    assert at_most("x", slow, 9).met is Met.NO
    assert at_least("x", slow, 9, "paths/s").met is Met.YES
    assert times_faster("x", fast, Missing(), 10).met is Met.UNKNOWN
    assert none_wrong({"one": replace(fast, wrong=2)}).met is Met.NO


def test_summary_names_every_missed_bar() -> None:
    row = replace(ROWS["argument check"](TINY), bars=(at_most("too slow", Figure(10.0), 9),))

    assert "1 missed" in summary([row])
    assert "too slow <= 9 us, found 10 us" in summary([row])
