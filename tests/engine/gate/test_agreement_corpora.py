"""Real tools: shown schema and gate agree on generated calls, as they stand and through every provider's format.

A part of what `python -m tests.agreement` compares, the same in every run.
"""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path

import pytest

from tests.agreement.compare import Tally, compared
from tests.agreement.world import Stranger, strangers

PARTS = 4
VIEWS, CALLS_EACH = 190, 8


@cache
def known(corpora: Path) -> tuple[Stranger, ...]:
    return tuple(strangers(corpora))


def chosen(corpora: Path, part: int) -> list[tuple[Stranger, int]]:
    """Views at random, half of them of tools with operations, none in two parts."""
    tools = known(corpora)[part::PARTS]
    plain = [(tool, 0) for tool in tools if not tool.tool.has_operations]
    rich = [(tool, number) for tool in tools if tool.tool.has_operations for number in range(len(tool.limits))]
    narrowed = [(tool, len(tool.limits) - 1) for tool in tools if len(tool.limits) > 1]
    dice = random.Random(f"part {part}")
    return [
        *dice.sample(plain, VIEWS // 4),
        *dice.sample(rich, min(VIEWS // 2, len(rich))),
        *dice.sample(narrowed, VIEWS // 4),
    ]


@pytest.mark.parametrize("part", range(PARTS))
def test_what_real_tools_show_is_what_the_gate_lets_through_in_every_format(corpora: Path, part: int) -> None:
    tally: Tally = compared(chosen(corpora, part), CALLS_EACH)

    assert tally.disagreements == []
    assert tally.calls >= 1_400
    assert tally.calls * 0.25 < tally.valid < tally.calls * 0.75
    assert tally.through_formats > tally.calls * 10
    assert tally.valid_in_a_format > tally.calls


def test_a_gate_that_lets_more_through_is_found(corpora: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.agreement.compare.STAGES", ())

    tally = compared(chosen(corpora, 0)[:20], CALLS_EACH)

    assert len(tally.disagreements) > 20
