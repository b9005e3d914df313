"""Which tools of an agent a change of the policy concerns: those, no more, and all where it can be any."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gatewright.compile.snapshot import differ_in_agents_alone, touched_tools
from gatewright.policy.capability import CapabilityKind, ClockRead
from gatewright.policy.document import (
    Agent,
    Catalog,
    CatalogType,
    Defaults,
    PermissionRule,
    Policy,
    Roots,
    ShellSettings,
    Source,
    ToolSettings,
    Web,
)
from gatewright.policy.right import OperationFacts, PathArgument, ToolFacts
from gatewright.policy.rule import MaxCalls, PolicyRule, ToolRule
from gatewright.policy.verdict import Endpoints, PathUse, Permission, SafetyTier, Verdict

TIER = SafetyTier.READ_ONLY
CLOCKS = frozenset({CapabilityKind.CLOCK_READ})
PATH = PathArgument("p", None, "high")
FACTS = (
    ToolFacts("file", 1, (OperationFacts("read", TIER),), TIER, needs_source=True),
    ToolFacts("clock", 1, (OperationFacts("", TIER, capabilities=CLOCKS),), TIER),
    ToolFacts("copy", 1, (OperationFacts("", TIER), OperationFacts("x", TIER, paths=(PATH,))), TIER),
    ToolFacts("note", 1, (OperationFacts("", TIER),), TIER),
)
X, Y = Source("x", "x"), Source("y", "y")
ONE, TWO, THREE = (ToolRule(name, MaxCalls(3)) for name in ("file", "clock@2", "note"))
ASK = PolicyRule("r", Verdict.ASK, tools=("file", "note@1"))
LIMITED = replace(X, required_tools=(THREE,))
EVERY = None
NOTHING: set[str] = set()


def test_nothing_that_differs_concerns_no_tool() -> None:
    policy = Policy(agents={"a": Agent("a", tools=("file",))}, sources=(X,))
    other = replace(policy, name="n", description="d", agents={**policy.agents, "b": Agent("b")})
    assert touched_tools(policy, other, policy.agents["a"], other.agents["a"], FACTS) == frozenset()
    again = replace(policy.agents["a"], description="d", user_id="u")
    assert touched_tools(policy, policy, policy.agents["a"], again, FACTS) == frozenset()
    assert (differ_in_agents_alone(policy, replace(policy, agents={})), differ_in_agents_alone(policy, other)) == (
        True,
        False,
    )


@pytest.mark.parametrize(
    ("before", "after", "tools"),
    [
        ({"tools": ("a@1", "b", "c")}, {"tools": ("b", "d", "c")}, {"a", "d"}),
        ({}, {"tools": ()}, EVERY),
        ({"tools": ()}, {}, EVERY),
        ({"tool_rules": (ONE, TWO)}, {"tool_rules": (ONE,)}, {"clock"}),
        ({"tool_rules": (ONE, TWO, THREE)}, {"tool_rules": (ONE, THREE)}, {"clock", "note"}),
        ({"tool_rules": (ONE, TWO)}, {"tool_rules": (ONE, THREE)}, {"clock", "note"}),
        ({"tool_rules": ()}, {"tool_rules": (ToolRule("*", MaxCalls(1)),)}, EVERY),
        ({"approvals": {}}, {"approvals": {"a.b.c": Verdict.ASK}}, {"a", "a.b", "a.b.c"}),
        ({"approvals": {"a": Verdict.ASK}}, {"approvals": {"a": Verdict.DENY}}, {"a"}),
        ({"approvals": {"a": Verdict.ASK}}, {"approvals": {"read_only": Verdict.ASK}}, EVERY),
        ({}, {"capabilities": (ClockRead(),)}, {"clock"}),
        ({}, {"sources": ("x",)}, {"file"}),
        ({}, {"sources": ("x", "y")}, {"file"}),
        ({"sources": ("x",)}, {"sources": ("x", "gone")}, NOTHING),
        ({"sources": ("x",)}, {"sources": ("y",)}, {"file"}),
    ],
)
def test_change_of_an_agent_concerns_what_it_is_about(
    before: dict[str, Any], after: dict[str, Any], tools: set[str] | None
) -> None:
    old, new = Agent("a", **before), Agent("a", **after)
    was = Policy(agents={"a": old}, sources=(X, Y))
    assert touched_tools(was, replace(was, agents={"a": new}), old, new, FACTS) == tools


@pytest.mark.parametrize(
    ("before", "after", "tools"),
    [
        ({}, {"defaults": Defaults(timeout_s=1.0)}, EVERY),
        ({}, {"default": Verdict.ASK}, EVERY),
        ({}, {"catalogs": (Catalog("c", CatalogType.HOST),)}, EVERY),
        ({}, {"roots": Roots("x")}, EVERY),
        ({}, {"web": Web(allow_private=True)}, EVERY),
        ({}, {"shell": ShellSettings(allow=("ls",))}, EVERY),
        ({}, {"endpoints": Endpoints(user=True)}, EVERY),
        ({"tools": {"a@1": ToolSettings(), "b": ToolSettings()}}, {"tools": {"b": ToolSettings()}}, {"a"}),
        ({"tools": {"b": ToolSettings()}}, {"tools": {"b": ToolSettings(scrub=False)}}, {"b"}),
        ({}, {"rules": (ASK,)}, {"file", "note"}),
        ({"rules": (ASK,)}, {"rules": (replace(ASK, agents=("b",)),)}, {"file", "note"}),
        ({"rules": (replace(ASK, agents=("b",)),)}, {"rules": ()}, NOTHING),
        ({"rules": ()}, {"rules": (replace(ASK, agents=("a",)),)}, {"file", "note"}),
        ({"rules": ()}, {"rules": (replace(ASK, tools=None),)}, EVERY),
        ({}, {"sources": (X,)}, {"file", "copy"}),
        ({"sources": (X,)}, {"sources": (replace(X, base_path="z"),)}, NOTHING),
        ({"sources": (X,)}, {"sources": (LIMITED,)}, {"file", "note"}),
        ({"sources": (LIMITED,)}, {"sources": ()}, {"file", "note", "copy"}),
        ({"sources": (X,)}, {"sources": (replace(X, required_tools=(ToolRule("*", MaxCalls(1)),)),)}, EVERY),
        (
            {"sources": (X,)},
            {"sources": (replace(X, permission_rules=(PermissionRule("p", Permission.ADMIN),)),)},
            {"file", "copy"},
        ),
    ],
)
def test_change_beside_the_agents_concerns_what_it_is_about(
    before: dict[str, Any], after: dict[str, Any], tools: set[str] | None
) -> None:
    agent = Agent("a")
    old, new = (Policy(agents={"a": agent}, **one) for one in (before, after))
    assert touched_tools(old, new, agent, agent, FACTS) == tools


def test_tool_whose_arguments_are_declared_as_paths_is_concerned_by_sources() -> None:
    agent = Agent("a")
    policy = Policy(agents={"a": agent}, tools={"note@1": ToolSettings(paths={"p": PathUse.READ})})
    assert touched_tools(policy, replace(policy, sources=(X,)), agent, agent, FACTS) == {"file", "copy", "note"}
