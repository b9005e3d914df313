"""How the app's boxes become edits, so that the file stays readable. It does not know widgets.

One AllowedOperations rule per agent and tool is kept by the app: the only one there is, or the one with its id. Off
means not in that list; a whole tool off means not in ``tools``; all on again keeps the list; *reset* removes the kept
rule and the tool's ``approvals`` keys; *ask first* is an ``approvals`` key. An author's several rules are never merged.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gatewright.base.errors import EditRefused
from gatewright.policy.agentedit import agent_of
from gatewright.policy.edit import AgentChange, Edit
from gatewright.policy.effective import effective_rights
from gatewright.policy.rule import ANY_TOOL, AllowedOperations, ToolRule
from gatewright.policy.tier import TIER_DEFAULTS
from gatewright.policy.toolname import chosen_tools, names_tool
from gatewright.policy.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gatewright.policy.document import Agent, Policy
    from gatewright.policy.right import ToolFacts, ToolRight

APP_RULE_PREFIX = "app:"


def kept_rule(agent: Agent, facts: ToolFacts) -> int | None:
    """The index of the AllowedOperations rule that the app edits, or None when it would write a new one."""
    found = [
        index
        for index, rule in enumerate(agent.tool_rules)
        if isinstance(rule.rule_type, AllowedOperations)
        and rule.tool_name != ANY_TOOL
        and not rule.conditions
        and names_tool(rule.tool_name, facts.name, facts.major)
    ]
    if len(found) == 1:
        return found[0]
    return next((i for i in found if (agent.tool_rules[i].rule_id or "").startswith(APP_RULE_PREFIX)), None)


def tick_operations(
    policy: Policy, catalog: Sequence[ToolFacts], agent_id: str, tool_name: str, operations: Iterable[str], *, on: bool
) -> Edit:
    """Turn operations of one tool on or off. Raises EditRefused when an author's rule stands in the way."""
    agent = agent_of(policy, agent_id)
    right = _right_of(policy, agent_id, catalog, tool_name)
    chosen = frozenset(operations)
    ticked = frozenset(o.operation for o in right.operations if o.ticked)
    wanted = (ticked | chosen) if on else (ticked - chosen)
    named = ", ".join(f"`{name}`" for name in sorted(chosen) if name)
    label = f"turn {'on' if on else 'off'} {named} of `{tool_name}`" if named else _tool_label(tool_name, on=on)
    return _edit(f"{label} for `{agent_id}`", agent, _with_ticked(policy, catalog, agent, right.facts, wanted))


def tick_tool(policy: Policy, catalog: Sequence[ToolFacts], agent_id: str, tool_name: str, *, on: bool) -> Edit:
    """Turn a whole tool on (all its operations) or off."""
    agent = agent_of(policy, agent_id)
    facts = _right_of(policy, agent_id, catalog, tool_name).facts
    wanted = frozenset(o.name for o in facts.operations) if on else frozenset[str]()
    label = f"{_tool_label(tool_name, on=on)} for `{agent_id}`"
    return _edit(label, agent, _with_ticked(policy, catalog, agent, facts, wanted))


def ask_first(
    policy: Policy, catalog: Sequence[ToolFacts], agent_id: str, tool_name: str, operation: str, *, on: bool
) -> Edit:
    """Make a tool (``operation`` = ``""``) or one operation ask first, or stop asking, by an ``approvals`` key."""
    agent = agent_of(policy, agent_id)
    facts = _right_of(policy, agent_id, catalog, tool_name).facts
    key = f"{tool_name}.{operation}" if operation else tool_name
    rest = {k: v for k, v in agent.approvals.items() if k != key}
    if on:
        rest[key] = Verdict.ASK
    elif _asks_without(policy, rest, facts, operation):
        rest[key] = Verdict.ALLOW
    label = f"{'ask first' if on else 'do not ask'} for `{key}` of `{agent_id}`"
    return _edit(label, agent, replace(agent, approvals=rest))


def reset_tool(policy: Policy, catalog: Sequence[ToolFacts], agent_id: str, tool_name: str) -> Edit:
    """Remove the kept rule and the ``approvals`` keys of one tool, so that its own defaults hold again."""
    agent = agent_of(policy, agent_id)
    facts = _right_of(policy, agent_id, catalog, tool_name).facts
    index = kept_rule(agent, facts)
    rules = tuple(rule for i, rule in enumerate(agent.tool_rules) if i != index)
    approvals = {k: v for k, v in agent.approvals.items() if k != tool_name and not k.startswith(f"{tool_name}.")}
    return _edit(f"reset `{tool_name}` for `{agent_id}`", agent, replace(agent, tool_rules=rules, approvals=approvals))


def _right_of(policy: Policy, agent_id: str, catalog: Sequence[ToolFacts], tool_name: str) -> ToolRight:
    """The right on one tool, so that a tick in a large catalog costs one tool."""
    return effective_rights(policy, agent_id, [facts for facts in catalog if facts.name == tool_name])[tool_name]


def _with_ticked(
    policy: Policy, catalog: Sequence[ToolFacts], agent: Agent, facts: ToolFacts, wanted: frozenset[str]
) -> Agent:
    listed = _listed(policy, catalog, agent)
    others = tuple(name for name in listed if not names_tool(name, facts.name, facts.major))
    if not wanted:
        return replace(agent, tools=others)
    standing = any(names_tool(name, facts.name, facts.major) for name in listed)
    tools = agent.tools if standing and agent.tools is not None else (*others, facts.name)
    if standing and agent.tools is None:
        tools = None
    _refuse_if_limited(agent, facts, wanted)
    return replace(agent, tools=tools, tool_rules=_rules_with(agent, facts, wanted))


def _listed(policy: Policy, catalog: Sequence[ToolFacts], agent: Agent) -> tuple[str, ...]:
    if agent.tools is not None:
        return agent.tools
    return tuple(chosen_tools(catalog, None)) if policy.defaults.unlisted_tools is Verdict.ALLOW else ()


def _rules_with(agent: Agent, facts: ToolFacts, wanted: frozenset[str]) -> tuple[ToolRule, ...]:
    index = kept_rule(agent, facts)
    if not facts.has_operations or (index is None and wanted == frozenset(facts.operation_names)):
        return agent.tool_rules
    if index is None:
        name = f"{APP_RULE_PREFIX}{facts.name}" if _is_limited(agent, facts) else None
        return (*agent.tool_rules, ToolRule(facts.name, AllowedOperations(wanted), rule_id=name))
    kept = replace(agent.tool_rules[index], rule_type=AllowedOperations(wanted))
    return (*agent.tool_rules[:index], kept, *agent.tool_rules[index + 1 :])


def _is_limited(agent: Agent, facts: ToolFacts) -> bool:
    return any(
        isinstance(rule.rule_type, AllowedOperations) and names_tool(rule.tool_name, facts.name, facts.major)
        for rule in agent.tool_rules
    )


def _refuse_if_limited(agent: Agent, facts: ToolFacts, wanted: frozenset[str]) -> None:
    kept = kept_rule(agent, facts)
    for index, rule in enumerate(agent.tool_rules):
        kind = rule.rule_type
        if index == kept or not isinstance(kind, AllowedOperations):
            continue
        if names_tool(rule.tool_name, facts.name, facts.major) and (missing := wanted - kind.operations):
            named = ", ".join(f"`{name}`" for name in sorted(missing))
            raise EditRefused(f"{named} of `{facts.name}` is turned off by tool rule {index + 1} of `{agent.agent_id}`")


def _asks_without(policy: Policy, approvals: dict[str, Verdict], facts: ToolFacts, operation: str) -> bool:
    """Whether the operation would still ask once its own key is gone."""
    tier = next((op.tier for op in facts.operations if op.name == operation), facts.tier)
    for key in (facts.name, str(tier)) if operation else (str(tier),):
        for table in (approvals, policy.defaults.approvals):
            if key in table:
                return table[key] is Verdict.ASK
    return TIER_DEFAULTS[tier] is Verdict.ASK


def _tool_label(tool_name: str, *, on: bool) -> str:
    return f"turn {'on' if on else 'off'} `{tool_name}`"


def _edit(name: str, before: Agent, after: Agent) -> Edit:
    return Edit(name, (AgentChange(before, after),))
