"""Usage rules after an edit: what is kept from before says what a fresh gate says, and only what changed is made."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatewright.compile import view as usage
from gatewright.compile.view import UsageRow, UsageSection
from gatewright.gate import Gate
from gatewright.policy.document import Agent, Policy, Source
from gatewright.policy.edit import AgentChange, Edit, apply, change_set
from gatewright.policy.rule import AllowedOperations, MaxCalls, ToolRule
from tests.engine.gate.test_rules_hidden import LATER, RULES, registry

LISTS = st.lists(st.sampled_from(["echo", "counter", "vault", "fail", "crash"]), min_size=1, unique=True).map(tuple)
OPERATIONS = st.sampled_from([frozenset({"up"}), frozenset({"down"}), frozenset({"up", "down"})])


@given(RULES, st.lists(st.tuples(LISTS, RULES, OPERATIONS), min_size=1, max_size=4))
def test_usage_rules_after_edits_are_those_of_a_fresh_gate(
    of_source: tuple[ToolRule, ...], edits: list[tuple[tuple[str, ...], tuple[ToolRule, ...], frozenset[str]]]
) -> None:
    source = Source("docs", "docs", required_tools=of_source)
    gate = Gate(
        Policy(agents={"a": Agent("a", tools=("echo", "counter"))}, sources=(source,)), registry(), absent=LATER
    )
    for tools, rules, operations in edits:
        agent = gate.policy.agents["a"]
        changed = replace(agent, tools=tools, tool_rules=(*rules, ToolRule("counter", AllowedOperations(operations))))
        edit = Edit("change", (AgentChange(agent, changed),))
        gate.reload(apply(gate.policy, edit), change_set(edit))

        assert gate.view("a").usage_rules == Gate(gate.policy, registry(), absent=LATER).view("a").usage_rules


def test_only_the_bullet_that_changed_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    sentence = usage.rule_sentence

    def counted(rule: ToolRule, shown: usage.Shown, *, tool_name: str | None = None) -> str | None:
        made.append(rule.tool_name)
        return sentence(rule, shown, tool_name=tool_name)

    monkeypatch.setattr(usage, "rule_sentence", counted)
    one = frozenset({""})
    rows = [UsageRow(f"t{number}", one, None, (ToolRule(f"t{number}", MaxCalls(3)),)) for number in range(100)]
    before = UsageSection(rows)
    made.clear()
    rows[7] = replace(rows[7], rules=(ToolRule("t7", MaxCalls(4)),))

    after = UsageSection(rows, before)
    assert made == ["t7"]
    assert after.text == UsageSection(rows).text != before.text


def test_hidden_tool_leaves_a_tools_own_usage_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    tools = registry()
    echo = next(one for one in tools.tools() if one.name == "echo")
    monkeypatch.setattr(type(echo), "usage_rule", "Short texts only; for long ones use `vault`.")
    gate = Gate(Policy(agents={"a": Agent("a", tools=("echo",))}), tools)

    assert gate.view("a").usage_rules == "## Tool Usage Rules\n\n- `echo`: Short texts only\n"
