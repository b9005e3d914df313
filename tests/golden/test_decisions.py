"""The decision cases in ``cases``: a policy, a call, what the gate must say and what the log must hold.

In a case, ``before`` are calls that were made earlier (``answer``: what the operator said to them), ``approve`` is the
operator's answer now, ``while_asked`` what happens while the operator thinks. In ``want``, ``line`` is the text of the
policy line that the decision must point to, ``canonical`` the arguments that the tool gets; verdict, stage, code, rule,
line, model, violation and canonical are what ``decide`` says, the rest is of the call as it was made. A row is a kind,
or a table with the fields that it must have. ``said`` is all that the stages say but for the routine, word for word,
with the facts of the decision and what was checked of capabilities. ``shows`` says what the model of an agent is given,
``no_witness`` for what the self-check finds no call that passes.

Beside what a case wants, nothing hidden from its agent may be named to the model, anywhere, and ``decide`` must say
what ``call`` does.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gatewright.gate import Status, selfcheck
from tests.golden.harness import KEYS, WANTED, Stage, documents, fits
from tests.golden.hidden import hidden_from, shown_to

ALL = documents()
TOP = {"title", "policy", "no_witness", "files", "shows", "case"}


def cases() -> list[Any]:
    return [
        pytest.param(document, case, id=f"{stem}: {case['name']}")
        for stem, document in ALL
        for case in document["case"]
    ]


def shows() -> list[Any]:
    return [
        pytest.param(document, shown, id=f"{stem}: {shown['agent']}")
        for stem, document in ALL
        for shown in document.get("shows", [])
    ]


@pytest.fixture
def stages() -> Iterator[list[Stage]]:
    opened: list[Stage] = []
    yield opened
    for stage in opened:
        stage.close()


@pytest.mark.parametrize(("document", "case"), cases())
async def test_case(document: dict[str, Any], case: dict[str, Any], tmp_path: Path, stages: list[Stage]) -> None:
    want = dict(case["want"])
    assert case.keys() <= KEYS
    assert want.keys() <= WANTED
    stages.append(stage := Stage(tmp_path, document))
    hidden = hidden_from(stage.world.gate, case["agent"]) if case["agent"] in stage.world.gate.policy.agents else None
    played = await stage.play(case)
    wanted_rows = want.pop("rows", None)
    found = stage.found(played)

    assert {key: found[key] for key in want} == want
    assert case.get("said", stage.said(played)) == stage.said(played)
    assert wanted_rows is None or fits(played.rows, wanted_rows), played.rows
    assert [row[:3] for row in played.first_trace] == [row[:3] for row in played.decision.trace]
    told = [played.decision.model_message or "", *played.reminders]
    if played.outcome.status is not Status.ALLOWED:
        told.append(played.outcome.output)
    assert hidden is None or {text: hidden.named_in(text) for text in told if hidden.named_in(text)} == {}
    assert stage.world.audit is not None
    assert stage.world.audit.verify().is_sound


@pytest.mark.parametrize(("document", "shown"), shows())
def test_model_is_given_what_the_policy_shows(
    document: dict[str, Any], shown: dict[str, Any], tmp_path: Path, stages: list[Stage]
) -> None:
    stages.append(stage := Stage(tmp_path, document))
    gate = stage.world.gate
    agent = gate.snapshot().agent(shown["agent"])
    assert agent is not None
    listed: list[str] = []
    for tool in gate.view(shown["agent"]).tools("mcp"):
        plan = agent.plan(tool["name"])
        operations = sorted(filter(None, plan.operations)) if plan else []
        listed.append(f"{tool['name']}: {', '.join(operations)}" if operations else tool["name"])
    usage = [line for line in gate.view(shown["agent"]).usage_rules.splitlines() if line.startswith("- ")]

    assert sorted(listed) == sorted(shown["tools"])
    assert usage == shown.get("usage", usage)


@pytest.mark.parametrize(("stem", "document"), ALL, ids=[stem for stem, _ in ALL])
def test_every_golden_policy_shows_nothing_hidden_and_agrees_with_itself(
    stem: str, document: dict[str, Any], tmp_path: Path, stages: list[Stage]
) -> None:
    assert document.keys() <= TOP
    stages.append(stage := Stage(tmp_path, document))
    gate = stage.world.gate
    result = selfcheck(gate)

    assert gate.problems() == ()
    assert result.checked > 0
    assert result.differences == ()
    unproved = [f"{row.agent_id} {row.tool} {row.operation}".strip() for row in result.no_witness]
    assert sorted(unproved) == sorted(document.get("no_witness", []))
    for agent_id in gate.policy.agents:
        hidden = hidden_from(gate, agent_id)
        for place, text in shown_to(gate, agent_id).items():
            assert (place, hidden.named_in(text)) == (place, set())


def test_cases_have_names_of_their_own() -> None:
    names = [(stem, case["name"]) for stem, document in ALL for case in document["case"]]

    assert len(names) == len(set(names))
