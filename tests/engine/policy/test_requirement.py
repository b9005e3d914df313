"""Requirements on what an agent does not see."""

from __future__ import annotations

from gatewright.policy.document import Agent, Policy
from gatewright.policy.right import OperationFacts, ToolFacts
from gatewright.policy.rule import (
    AllowedOperations,
    MaxCalls,
    PolicyRule,
    RequiredBeforeExit,
    RequiredBeforeExitIf,
    StartConstraint,
    ToolRule,
)
from gatewright.policy.verdict import SafetyTier, Verdict
from gatewright.policyfile.check import HiddenRequirement, Sight, hidden_requirements, majors_of

TIER = SafetyTier.READ_ONLY
CLOCK = ToolFacts("clock", 1, (OperationFacts("", TIER),), TIER)
NEW_CLOCK = ToolFacts("clock", 2, (OperationFacts("tell", TIER), OperationFacts("set", TIER)), TIER)
NOTE = ToolFacts("my.note", 1, (OperationFacts("read", TIER), OperationFacts("write", TIER)), TIER)
CATALOG = majors_of((CLOCK, NEW_CLOCK, NOTE))


def found(agent: Agent, *rules: PolicyRule) -> list[HiddenRequirement]:
    policy = Policy(agents={agent.agent_id: agent}, rules=rules)
    return list(hidden_requirements(policy, agent, CATALOG))


def agent_with(*rules: ToolRule, tools: tuple[str, ...] | None = None) -> Agent:
    return Agent("a", tools=tools, tool_rules=rules)


def test_start_and_exit_on_unlisted_tools_are_found_with_the_index_of_their_rule() -> None:
    agent = agent_with(
        ToolRule("my.note", MaxCalls(3)),
        ToolRule("my.note", RequiredBeforeExit()),
        ToolRule("clock", StartConstraint()),
        ToolRule("clock", RequiredBeforeExitIf(), conditions=("my.note",)),
        tools=("my.note",),
    )

    rules = agent.tool_rules
    hidden = found(agent)
    assert hidden == [HiddenRequirement(2, rules[2], "`clock`"), HiddenRequirement(3, rules[3], "`clock`")]
    assert [(one.code, one.consequence, one.demand) for one in hidden] == [
        ("start-constraint-hidden", "start with it", "has to start with it"),
        ("exit-requirement-hidden", "end", "has to call it before it ends"),
    ]


def test_requirement_bound_to_operations_is_hidden_with_all_of_them() -> None:
    limits = ToolRule("my.note", AllowedOperations(frozenset({"read"})))
    write = ToolRule("my.note", RequiredBeforeExit(), conditions=("operation:write",))
    either = ToolRule("my.note", RequiredBeforeExit(), conditions=("operation:write", "operation:read"))

    assert [one.what for one in found(agent_with(limits, write))] == ["`my.note.write`"]
    assert not found(agent_with(limits, either))


def test_policy_rule_that_hides_a_required_tool_is_found() -> None:
    agent = agent_with(ToolRule("my.note", StartConstraint()))

    assert not found(agent)
    assert found(agent, PolicyRule("no notes", Verdict.DENY, tools=("my.note",)))


def test_the_major_that_the_agent_lists_is_what_it_sees() -> None:
    rule = ToolRule("clock", RequiredBeforeExit(), conditions=("operation:tell",))
    limits = ToolRule("clock", AllowedOperations(frozenset({"set"})))

    assert found(agent_with(rule, limits))
    assert not found(agent_with(ToolRule("clock", RequiredBeforeExit()), tools=("clock@1",)))


def test_unknown_tool_and_every_tool_are_no_hidden_requirement() -> None:
    assert not found(agent_with(ToolRule("later", StartConstraint()), ToolRule("*", RequiredBeforeExit()), tools=()))


def test_condition_with_dots_is_the_longest_registered_name() -> None:
    agent = agent_with(ToolRule("my.note", AllowedOperations(frozenset({"read"}))))
    sight = Sight(Policy(agents={"a": agent}), agent, CATALOG)

    assert sight.hides_condition("my.note.write") == "`my.note.write`"
    assert sight.hides_condition("my.note.read") is None
    assert sight.hides_condition("my") is None
    assert sight.hides_condition("my.note") is None
    assert sight.hides("my.note", frozenset({"write", "burn"})) == "`my.note.burn` or `my.note.write`"
    none = Sight(Policy(agents={"a": agent}), agent_with(tools=()), CATALOG)
    assert [none.hides_condition(one) for one in ("my.note", "my.note.read", "clock@2", "later")] == [
        *("`my.note`", "`my.note`", "`clock`", None)
    ]
