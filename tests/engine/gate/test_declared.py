"""Tools as the policy declares them: shown and gated so, made once, closed where the declaration does not fit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gatewright.base.jsonvalue import JsonValue
from gatewright.compile.agent import AgentDigests, policy_digest
from gatewright.compile.operation import UNUSABLE
from gatewright.gate import Gate, selfcheck
from gatewright.policy.document import Agent, Catalog, CatalogType, Policy, ToolSettings
from gatewright.policy.rule import AllowedOperations, PolicyRule, ToolRule
from gatewright.policy.verdict import SafetyTier, Verdict
from gatewright.tools.declaration import Normalization, ResultType
from gatewright.tools.defined import DefinedTool
from gatewright.tools.definition import ToolDefinition
from gatewright.tools.registry import ToolRegistry, operation
from gatewright.tools.tool import Tool

FREE: dict[str, Any] = {
    "type": "object",
    "properties": {
        "verb": {"type": "string"},
        "kind": {"type": "string", "enum": ["big", "small"]},
        "path": {"type": "string"},
    },
    "required": ["verb"],
}
VERBS = ToolSettings(operation_field="verb", operations=("get", "put"))
KINDS = ToolSettings(operation_field="kind")


class Own(Tool):
    """Its author declared what it does."""

    name = "own"
    safety_tier = SafetyTier.READ_ONLY
    result_type = ResultType.OBJECT
    normalization = Normalization.JSON

    @operation
    async def look(self) -> JsonValue:
        """Look."""
        return {}


def stranger(name: str, version: str = "1.0.0") -> DefinedTool:
    return DefinedTool(ToolDefinition(name, "Does things.", FREE, version=version), origin="there")


def registry_of(*tools: Tool) -> ToolRegistry:
    registry = ToolRegistry()
    for tool in tools or (stranger("drive"), stranger("other"), Own()):
        registry.register(tool)
    return registry


def policy_of(*rules: ToolRule, **settings: ToolSettings) -> Policy:
    return Policy(agents={name: Agent(name, tool_rules=rules) for name in ("a", "b")}, tools=settings)


def only(*names: str) -> ToolRule:
    return ToolRule("drive", AllowedOperations(frozenset(names)))


def names_of(gate: Gate, tool: str) -> tuple[str, ...]:
    return next(facts.operation_names for facts in gate.snapshot().facts if facts.name == tool)


def verdict(gate: Gate, **arguments: Any) -> Verdict:
    return gate.decide("a", "drive", arguments).verdict


def test_declared_operations_are_shown_and_enforced() -> None:
    gate = Gate(policy_of(only("get"), drive=VERBS), registry_of())
    schema = next(one.schema for one in gate.view("a").listings() if one.name == "drive")

    assert names_of(gate, "drive") == ("get", "put")
    assert schema["properties"]["verb"]["enum"] == ["get"]  # pyright: ignore[reportIndexIssue, reportUnknownVariableType]
    assert verdict(gate, verb="get") is not Verdict.DENY
    for verb in ("put", "GET", "get ", "delete"):
        assert gate.decide("a", "drive", {"verb": verb}).stage == "operation"
    assert selfcheck(gate).differences == ()


def test_settings_of_a_major_come_before_those_of_the_name() -> None:
    gate = Gate(policy_of(**{"drive": VERBS, "drive@2": KINDS}), registry_of(stranger("drive", "2.1.0")))

    assert names_of(gate, "drive") == ("big", "small")


def test_empty_field_takes_the_operations_away() -> None:
    schema = {"type": "object", "properties": {"action": {"type": "string", "enum": ["on", "off"]}}}
    tool = DefinedTool(ToolDefinition("drive", "", schema), origin="there")
    gate = Gate(policy_of(), registry_of(tool))
    assert names_of(gate, "drive") == ("on", "off")

    gate.reload(policy_of(drive=ToolSettings(operation_field="")))
    assert names_of(gate, "drive") == ()
    assert verdict(gate, action="on") is not Verdict.DENY


@pytest.mark.parametrize(
    "settings",
    [{"drive": ToolSettings(operation_field="nowhere")}, {"own": ToolSettings(operations=("look",))}],
)
def test_declaration_that_does_not_fit_closes_its_tool_for_everybody(settings: dict[str, ToolSettings]) -> None:
    (name,) = settings
    gate = Gate(replace(policy_of(only("get")), tools=settings), registry_of())

    for agent in ("a", "b"):
        decision = gate.decide(agent, name, {"verb": "get", "op": "look"})
        assert (decision.verdict, decision.stage, decision.code) == (Verdict.DENY, "lookup", UNUSABLE)
        assert decision.rule is not None
        assert decision.rule.address[:2] == ("tools", name)
        assert name not in {one.name for one in gate.view(agent).listings()}
    assert [one.code for one in gate.problems() if f"`{name}`" in one.text] == [UNUSABLE]
    assert selfcheck(gate).differences == ()


def test_rules_that_name_operations_which_are_gone_close_the_tool() -> None:
    gate = Gate(policy_of(only("get"), drive=VERBS), registry_of())
    assert verdict(gate, verb="get") is not Verdict.DENY

    gate.reload(policy_of(only("get"), drive=KINDS))
    assert gate.decide("a", "drive", {"verb": "get", "kind": "big"}).code == "rule-unknown-operation"
    gate.reload(policy_of(only("get")))
    assert gate.decide("a", "drive", {"verb": "get"}).code == "rule-unknown-operation"


def test_policy_rule_that_names_operations_which_are_gone_closes_all_its_tools() -> None:
    rule = PolicyRule("no puts", Verdict.DENY, tools=("drive", "other"), operations=("put",))
    gate = Gate(replace(policy_of(drive=VERBS), rules=(rule,)), registry_of())
    assert verdict(gate, verb="get") is not Verdict.DENY
    assert gate.decide("a", "other", {"verb": "x"}).verdict is not Verdict.DENY

    gate.reload(replace(gate.policy, tools={"drive": KINDS}))
    assert gate.decide("a", "drive", {"verb": "get", "kind": "big"}).code == "rule-unknown-operation"
    assert gate.decide("a", "other", {"verb": "x"}).code == "rule-unknown-operation"


def test_changed_declaration_touches_just_its_tool() -> None:
    gate = Gate(policy_of(drive=VERBS, other=KINDS), registry_of())
    before = {name: {p.tool.name: p for p in agent.plans()} for name in "ab" if (agent := gate.snapshot().agent(name))}
    gate.reload(replace(gate.policy, tools={"drive": KINDS, "other": KINDS}))

    for name in "ab":
        agent = gate.snapshot().agent(name)
        assert agent is not None
        now = {plan.tool.name: plan for plan in agent.plans()}
        assert now["other"] is before[name]["other"]
        assert now["own"] is before[name]["own"]
        assert set(now["drive"].operations) == {"big", "small"}


def test_declared_tool_is_made_once_and_shared() -> None:
    gate = Gate(policy_of(drive=VERBS), registry_of())
    plans = [agent.plan("drive") for name in "ab" if (agent := gate.snapshot().agent(name)) is not None]
    first, second = plans
    assert first is not None
    assert second is not None
    assert first.tool is second.tool
    assert first.shape is second.shape

    gate.reload(replace(gate.policy, description="other words"))
    gate.reload(replace(gate.policy, tools={"drive": replace(VERBS, timeout_s=3.0)}))
    agent = gate.snapshot().agent("a")
    assert agent is not None
    again = agent.plan("drive")
    assert again is not None
    assert again.tool is first.tool
    assert again.shape is first.shape


def test_declaration_follows_a_tool_that_is_registered_anew() -> None:
    registry = ToolRegistry()
    undo = registry.register(stranger("drive"))
    gate = Gate(policy_of(only("get"), drive=VERBS), registry)
    assert verdict(gate, verb="get") is not Verdict.DENY
    undo()
    other = {"type": "object", "properties": {"verb": {"type": "integer"}}, "required": ["verb"]}
    registry.register(DefinedTool(ToolDefinition("drive", "", other), origin="there"))

    assert gate.decide("a", "drive", {"verb": "get"}).code == UNUSABLE


def test_digest_of_the_policy_covers_declarations_and_catalogs() -> None:
    catalog = Catalog("git", CatalogType.HOST, "git.json")
    policies = [
        Policy(),
        Policy(tools={"drive": ToolSettings()}),
        Policy(tools={"drive": VERBS}),
        Policy(tools={"drive": replace(VERBS, operations=None)}),
        Policy(tools={"drive": replace(VERBS, operations=())}),
        Policy(tools={"drive": ToolSettings(operation_field="")}),
        Policy(tools={"drive": replace(VERBS, operations=("put", "get"))}),
        Policy(catalogs=(catalog,)),
        Policy(catalogs=(replace(catalog, trusted=True),)),
        Policy(catalogs=(replace(catalog, manifest="other.json"),)),
        Policy(catalogs=(replace(catalog, kind=CatalogType.HTTP),)),
    ]

    assert len({policy_digest(policy, AgentDigests()) for policy in policies}) == len(policies)
