"""What an edit carries over, seen from outside: after any edits everything is as a new gate would have it."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import replace

import pytest

from gatewright.base.jsonvalue import JsonValue
from gatewright.gate import Gate, selfcheck
from gatewright.gate.call import CallState
from gatewright.policy.document import Agent, Policy, Source, ToolSettings
from gatewright.policy.edit import AgentChange, Edit, apply, change_set
from gatewright.policy.rule import (
    AllowedOperations,
    ArgumentConstraints,
    ExclusiveGroups,
    MaxCalls,
    RequiresPrecedingTools,
    ToolRule,
)
from gatewright.policy.verdict import Permission, Verdict
from gatewright.tools import Tool, ToolRegistry, operation
from gatewright.tools.declaration import Normalization, ResultType

NAMES = tuple(f"tool_{number}" for number in range(8))
OPERATIONS = ("read", "write", "wipe")
ONE, OTHER = "one", "other"


class _Three(Tool, abstract=True):
    result_type = ResultType.STRING
    normalization = Normalization.JSON

    @operation
    async def read(self, path: str) -> str:
        """Read one."""
        return path

    @operation
    async def write(self, path: str, content: str) -> str:
        """Write one."""
        return path + content

    @operation
    async def wipe(self, path: str) -> str:
        """Empty one."""
        return path


def _registry() -> ToolRegistry:
    made = ToolRegistry()
    for at, name in enumerate(NAMES):
        other = NAMES[at - 1]
        kind = type(
            name,
            (_Three,),
            {"name": name, "description": f"{name}.", "usage_rule": f"Reads well. After `{other}`, look again."},
        )
        made.register(kind())
    return made


REGISTRY = _registry()
DOCS = Source("docs", "memory", default_permission=Permission.ADMIN)
BASE = Policy(agents={ONE: Agent(ONE), OTHER: Agent(OTHER, tools=NAMES[:5])}, sources=(DOCS,))


def _rule(draw: random.Random) -> ToolRule:
    name, others = draw.choice((*NAMES, "*")), tuple(draw.sample(NAMES, 3))
    some = frozenset(draw.sample(OPERATIONS, draw.randint(0, 3)))
    kinds = (
        ToolRule(name, AllowedOperations(some)),
        ToolRule(name, MaxCalls(draw.randint(1, 3)), priority=draw.randint(1, 3)),
        ToolRule(name, ExclusiveGroups((others,)), priority=draw.randint(1, 3)),
        ToolRule(name, RequiresPrecedingTools(), conditions=others[:1]),
        ToolRule(name, ArgumentConstraints({"path": {"enum": [draw.choice("abc")]}})),
        ToolRule(name, AllowedOperations(frozenset({"nothing"}))),
    )
    return draw.choice(kinds)


def _other_agent(agent: Agent, draw: random.Random) -> Agent:
    rules = list(agent.tool_rules)
    match draw.randint(0, 5):
        case 0 if rules:
            rules.pop(draw.randrange(len(rules)))
        case 1 if rules:
            rules[draw.randrange(len(rules))] = _rule(draw)
        case 2 if len(rules) > 1:
            draw.shuffle(rules)
        case 3:
            return replace(agent, tools=tuple(draw.sample(NAMES, draw.randint(1, len(NAMES)))))
        case 4:
            return replace(agent, approvals={draw.choice(NAMES): draw.choice(list(Verdict))})
        case _:
            rules.insert(draw.randint(0, len(rules)), _rule(draw))
    return replace(agent, tool_rules=tuple(rules[:6]))


def _other_policy(policy: Policy, draw: random.Random) -> Policy:
    if draw.random() < 0.15:
        return replace(policy, tools={draw.choice(NAMES): ToolSettings(description=draw.choice(("Say.", "Do.")))})
    if draw.random() < 0.15:
        rules = tuple(_rule(draw) for _ in range(draw.randint(0, 2)))
        return replace(policy, sources=(replace(DOCS, required_tools=rules),))
    return policy.with_agent(_other_agent(policy.agents[draw.choice((ONE, OTHER))], draw))


def _everything(gate: Gate, asked: Iterable[str]) -> dict[str, object]:
    views = {agent_id: gate.view(agent_id) for agent_id in (ONE, OTHER)}
    ask = {
        "rights": lambda: [dict(view.rights) for view in views.values()],
        "order": lambda: [list(view.rights) for view in views.values()],
        "tools": lambda: [view.tools(form) for view in views.values() for form in ("openai", "mcp")],
        "usage": lambda: [view.usage_rules for view in views.values()],
        "whole": lambda: [view.full_listings() for view in views.values()],
        "problems": gate.problems,
        "selfcheck": lambda: selfcheck(gate),
    }
    return {name: ask[name]() for name in asked}


ALL = ("rights", "order", "tools", "usage", "whole", "problems", "selfcheck")


@pytest.mark.parametrize("seed", range(12))
def test_after_any_edits_everything_is_as_a_new_gate_has_it(seed: int) -> None:
    draw = random.Random(seed)
    gate = Gate(BASE, REGISTRY)
    for _ in range(25):
        gate.reload(_other_policy(gate.policy, draw))
        asked = draw.sample(ALL, draw.randint(0, len(ALL)))

        assert _everything(gate, asked) == _everything(Gate(gate.policy, REGISTRY), asked)


def _edited(gate: Gate, *rules: ToolRule) -> None:
    agent = gate.policy.agents[ONE]
    edit = Edit("rules", (AgentChange(agent, replace(agent, tool_rules=rules)),))
    gate.reload(apply(gate.policy, edit), change_set(edit))


def test_group_that_another_tool_joins_is_told_at_all_of_its_members() -> None:
    gate = Gate(BASE, REGISTRY)
    _edited(gate, ToolRule("tool_0", ExclusiveGroups((("tool_0", "tool_1"),))))
    first = gate.view(ONE).usage_rules
    _edited(gate, ToolRule("tool_0", ExclusiveGroups((("tool_0", "tool_1", "tool_5"),))))
    bullets = {line.split("`")[1]: line for line in gate.view(ONE).usage_rules.splitlines() if line.startswith("- ")}

    assert "tool_5` can" not in first
    assert all("`tool_5` can be used" in bullets[name] for name in ("tool_0", "tool_1", "tool_5"))


def test_selfcheck_after_an_edit_asks_the_stages_about_the_edited_tool_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    gate = Gate(BASE, REGISTRY)
    before = selfcheck(gate)
    _edited(gate, ToolRule("tool_3", AllowedOperations(frozenset({"read"}))))
    asked: set[tuple[str, str]] = set()
    really = gate.state

    def noting(agent_id: str, tool: str, arguments: dict[str, JsonValue]) -> CallState:
        asked.add((agent_id, tool))
        return really(agent_id, tool, arguments)

    monkeypatch.setattr(gate, "state", noting)
    after = selfcheck(gate)

    assert asked == {(ONE, "tool_3")}
    assert after.checked == before.checked
    assert after == selfcheck(Gate(gate.policy, REGISTRY))


def test_selfcheck_after_an_edit_still_finds_what_is_wrong_with_the_edited_tool() -> None:
    gate = Gate(BASE, REGISTRY)
    selfcheck(gate)
    _edited(gate, ToolRule("tool_3", AllowedOperations(frozenset({"read"}))))
    agent = gate.snapshot().agent(ONE)
    plan = agent.plan("tool_3") if agent is not None else None
    assert plan is not None
    object.__setattr__(plan, "operations", {**plan.operations, "wipe": plan.operations["read"]})

    assert [(row.tool, row.operation) for row in selfcheck(gate).differences] == [("tool_3", "wipe")]


def test_list_is_the_callers_own_and_changes_nobody_elses() -> None:
    gate = Gate(BASE, REGISTRY)
    mine = gate.view(ONE).tools("openai")
    mine[0]["name"] = "changed"
    mine.pop()

    assert gate.view(ONE).tools("openai") == Gate(BASE, REGISTRY).view(ONE).tools("openai")


def test_view_says_on_how_many_tools_the_right_has_still_to_be_worked_out() -> None:
    agent = Agent(ONE, tools=NAMES)
    policy = Policy(agents={ONE: agent})
    gate = Gate(policy, _registry())
    lacking = [gate.view(ONE).rights_lacking]
    assert len(gate.view(ONE).rights) == len(NAMES)
    lacking.append(gate.view(ONE).rights_lacking)
    edit = Edit("fewer", (AgentChange(agent, replace(agent, tools=NAMES[2:])),))

    gate.reload(apply(policy, edit), change_set(edit))
    lacking.append(gate.view(ONE).rights_lacking)
    assert not gate.view(ONE).rights[NAMES[0]].shown

    assert [*lacking, gate.view(ONE).rights_lacking] == [len(NAMES), 0, 2, 0]
