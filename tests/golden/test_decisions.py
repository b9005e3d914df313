"""The decision cases in ``cases``: a policy, a call, what the gate must say and what the log must hold.

``line`` is the text of the policy line that the decision must point to; ``canonical`` the arguments that the tool gets;
``status``, ``output`` and ``rows`` hold for the call as executed, the rest for ``decide``.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gatewright.gate import Session, selfcheck
from tests.engine.gate.world import Operator, World

CASES = Path(__file__).parent / "cases"
KEYS = {"name", "agent", "tool", "arguments", "before", "after_s", "approve", "want"}
WANTED = {"verdict", "stage", "code", "rule", "line", "model", "rows", "status", "output", "canonical"}


def documents() -> list[tuple[str, dict[str, Any]]]:
    return [(path.stem, tomllib.loads(path.read_text("utf-8"))) for path in sorted(CASES.glob("*.toml"))]


def cases() -> list[Any]:
    return [
        pytest.param(document, case, id=f"{stem}: {case['name']}")
        for stem, document in documents()
        for case in document["case"]
    ]


def made(folder: Path, document: dict[str, Any]) -> World:
    for name, text in document.get("files", {}).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return World(folder, document["policy"])


@pytest.fixture
def worlds() -> Iterator[list[World]]:
    opened: list[World] = []
    yield opened
    for world in opened:
        world.close()


@pytest.mark.parametrize(("document", "case"), cases())
async def test_case(document: dict[str, Any], case: dict[str, Any], tmp_path: Path, worlds: list[World]) -> None:
    assert case.keys() <= KEYS
    assert case["want"].keys() <= WANTED
    worlds.append(world := made(tmp_path, document))
    session, want = Session(), case["want"]
    for earlier in case.get("before", []):
        await world.call(earlier["tool"], earlier["arguments"], agent=case["agent"], session=session)
        world.clock.advance(earlier.get("after_s", 0))
    world.clock.advance(case.get("after_s", 0))

    decision = world.decide(case["tool"], case["arguments"], agent=case["agent"], session=session)
    rows_before = len(world.row_kinds())
    approver = Operator(approves=case["approve"]) if "approve" in case else None
    outcome = await world.call(case["tool"], case["arguments"], agent=case["agent"], session=session, approver=approver)

    found: dict[str, Any] = {
        "verdict": str(decision.verdict),
        "stage": decision.stage,
        "code": decision.code,
        "rule": decision.rule.rule_id if decision.rule else None,
        "line": line_of(document["policy"], decision.rule.line if decision.rule else None),
        "model": decision.model_message,
        "canonical": dict(decision.arguments),
        "status": str(outcome.status),
        "output": outcome.output,
        "rows": world.row_kinds()[rows_before:],
    }
    assert {key: found[key] for key in want} == want
    assert world.audit is not None
    assert world.audit.verify().is_sound


def line_of(policy: str, number: int | None) -> str | None:
    return None if number is None else policy.splitlines()[number - 1].strip()


@pytest.mark.parametrize(("stem", "document"), documents())
def test_self_check_of_every_golden_policy_finds_no_difference(
    stem: str, document: dict[str, Any], tmp_path: Path, worlds: list[World]
) -> None:
    worlds.append(world := made(tmp_path, document))
    result = selfcheck(world.gate)

    assert result.checked > 0
    assert (result.differences, result.no_witness) == ((), ())
