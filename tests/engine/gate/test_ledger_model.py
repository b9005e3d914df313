"""Random schedules of named calls against a model: nothing happens twice, is lost or is misused, whoever dies when."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gatewright.base.amount import new_id
from gatewright.base.jsonvalue import JsonValue
from gatewright.gate.call import CallState
from gatewright.gate.ledger import Claim, Past
from tests.engine.gate.ledgermodel import DEATHS, run_all, run_each

SCHEDULES, AT_ONCE = 100, 20


@pytest.mark.parametrize("first", range(0, SCHEDULES, AT_ONCE))
def test_no_effect_twice_no_answer_misused_and_no_question_lost(tmp_path: Path, first: int) -> None:
    run_all(first, AT_ONCE, tmp_path)


def test_a_process_dies_at_twelve_points_at_least() -> None:
    assert len(DEATHS) >= 12


def test_the_model_notices_a_log_that_begins_a_call_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(_claim: Claim, _past: Past) -> bool:
        return False

    monkeypatch.setattr(Claim, "_counts", never)
    with pytest.raises(AssertionError, match=r"made again|happened 2 times|an answer was used twice|comes to no end"):
        run_all(0, AT_ONCE, tmp_path)


def test_the_model_notices_an_answer_for_another_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(_claim: Claim, _state: CallState) -> dict[str, JsonValue]:
        return {}

    monkeypatch.setattr(Claim, "bound", nothing)
    assert any("was used for" in failure for failure in run_each(0, 2 * AT_ONCE, tmp_path))


def test_the_model_notices_steps_that_nobody_recognises(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Claim.step

    def step(claim: Claim, number: int) -> Claim:
        below = whole(claim, number)
        below.scope = new_id("scope")
        return below

    monkeypatch.setattr(Claim, "step", step)
    assert any(re.search("`[cd]` comes to no end", failure) for failure in run_each(0, 4, tmp_path))
