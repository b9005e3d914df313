"""Whatever rules an agent has, nothing hidden is named to its model, nothing raises, and values say what was broken."""

from __future__ import annotations

import re
from functools import cache
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatewright.compile.rule_test import ToolRef
from gatewright.compile.rulebook import resolve
from gatewright.gate import Gate, Session
from gatewright.gate.breach import Violation, from_json, to_json, violation_of
from gatewright.policy.document import Agent, Policy, Source
from gatewright.policy.right import OperationFacts, ToolFacts
from gatewright.policy.rule import (
    AllowedOperations,
    ArgumentConstraints,
    ContinueLoop,
    Cooldown,
    ExclusiveGroups,
    ExitLoop,
    MaxCalls,
    Periodic,
    RateLimit,
    RequiredBeforeExit,
    RequiredBeforeExitIf,
    RequiresFollowingTools,
    RequiresPrecedingTools,
    StartConstraint,
    ToolRule,
)
from gatewright.policy.verdict import SafetyTier
from gatewright.tools.registry import ToolRegistry
from tests.engine.gate.world import CounterTool, crash, echo, fail, vault
from tests.support.clock import ManualClock

HIDDEN = re.compile(r"vault|crash|down", re.IGNORECASE)
NAMES = st.sampled_from(
    ["echo", "counter", "counter.up", "counter.down", "vault", "crash", "fail", "vault@7", "no.such"]
)
PLAIN = st.sampled_from(
    [
        ExitLoop(),
        ContinueLoop(),
        StartConstraint(),
        RequiresPrecedingTools(),
        RequiresFollowingTools(),
        RequiredBeforeExit(),
        RequiredBeforeExitIf(),
        MaxCalls(1),
        Cooldown(5),
        RateLimit(1, 60),
        Periodic(1),
        ArgumentConstraints({"by": {"maximum": 0}}),
    ]
)
GROUPS = st.lists(st.lists(NAMES, min_size=2, max_size=3).map(tuple), min_size=1, max_size=2)
KINDS = PLAIN | GROUPS.map(lambda groups: ExclusiveGroups(tuple(groups)))
CONDITIONS = st.lists(NAMES | st.sampled_from(["operation:up", "operation:down"]), max_size=3).map(tuple)
TOOLS = st.sampled_from(["echo", "counter", "vault", "crash", "fail", "*"])
RULES = st.lists(
    st.builds(ToolRule, TOOLS, KINDS, CONDITIONS, st.integers(0, 9)),
    max_size=6,
).map(tuple)
KINDS_OF_VIOLATION: tuple[type[Violation], ...] = get_args(Violation)
OPEN = ToolRule("counter", AllowedOperations(frozenset({"up"})))
LATER = {"vault": "another version may come", "no.such": "it may come"}
CALLS = [("echo", {"text": "t"}), ("counter", {"op": "up"}), ("fail", {"text": "t"})]


@cache
def registry() -> ToolRegistry:
    found = ToolRegistry()
    for tool in (echo, fail, crash, vault, CounterTool()):
        found.register(tool)
    return found


@given(RULES, RULES, st.lists(st.sampled_from(["echo", "counter", "vault", "fail"]), max_size=4))
def test_no_rule_names_anything_hidden_to_the_model(
    rules: tuple[ToolRule, ...], of_source: tuple[ToolRule, ...], happened: list[str]
) -> None:
    agent = Agent("a", tools=("echo", "counter", "fail"), tool_rules=(*rules, OPEN))
    policy = Policy(agents={"a": agent}, sources=(Source("docs", "docs", required_tools=of_source),))
    clock, session = ManualClock(), Session()
    gate = Gate(policy, registry(), clock=clock, absent=LATER)
    for tool in happened:
        session.reserve(tool, "up" if tool == "counter" else "", clock.monotonic_s())
        session.add_success(tool, "up" if tool == "counter" else "")
    told = [gate.view("a").usage_rules, *gate.reminders("a", session)]
    for tool, given_arguments in CALLS:
        decision = gate.decide("a", tool, given_arguments, session=session)
        assert decision.code != "internal-error", decision.reason
        told.append(decision.model_message or "")
        violation = violation_of(decision)
        assert (violation is not None) == (decision.stage == "rules" or decision.code == "argument-constraint")
    clock.advance(10)
    told += gate.reminders("a", session)

    assert not [text for text in told if HIDDEN.search(text)]


@given(st.one_of([st.from_type(kind) for kind in KINDS_OF_VIOLATION]))
def test_violation_survives_json(violation: Violation) -> None:
    assert from_json(to_json(violation)) == violation


@pytest.mark.parametrize(
    "data",
    [
        None,
        "MaxCallsExceeded",
        {},
        {"kind": "Nothing", "tool": "t"},
        {"kind": "MaxCallsExceeded", "tool": "t", "max": 1},
        {"kind": "MaxCallsExceeded", "tool": "t", "max": True, "current": 1},
        {"kind": "MaxCallsExceeded", "tool": "t", "max": 1, "current": 1, "more": 1},
        {"kind": "CooldownActive", "tool": 1, "remaining_s": 1.0},
        {"kind": "ExitRequirementsPending", "tool": "t", "pending": [1]},
    ],
)
def test_other_json_is_no_violation(data: object) -> None:
    assert from_json(data) is None


def facts(name: str, major: int, *operations: str) -> ToolFacts:
    rows = tuple(OperationFacts(operation, SafetyTier.READ_ONLY) for operation in operations or ("",))
    return ToolFacts(name, major, rows, SafetyTier.READ_ONLY)


TABLE = {
    row.name: row for row in (facts("audit", 1, "log", "log.search"), facts("audit.log", 2, "search"), facts("x", 3))
}


@pytest.mark.parametrize(
    ("written", "tool", "operation"),
    [
        ("x", "x", None),
        ("x@3", "x", None),
        ("audit", "audit", None),
        ("audit.log", "audit.log", None),
        ("audit.log@2", "audit.log", None),
        ("audit.log.search", "audit.log", "search"),
        ("audit.log@2.search", "audit.log", "search"),
        ("audit@1.log", "audit", "log"),
        ("x@2", "x@2", None),
        ("audit.log@1.search", "audit.log@1.search", None),
        ("audit.log.purge", "audit.log.purge", None),
        ("audit.purge", "audit.purge", None),
        ("x.any", "x.any", None),
        ("unknown", "unknown", None),
        ("", "", None),
    ],
)
def test_longest_registered_name_wins_and_an_unknown_one_matches_nothing(
    written: str, tool: str, operation: str | None
) -> None:
    assert resolve(written, TABLE) == ToolRef(tool, frozenset({operation}) if operation else None)
