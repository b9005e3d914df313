"""The places of a policy that name tools, and their changes when a tool is renamed or removed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace

from gatewright.policy.document import Agent, Policy
from gatewright.policy.edit import AgentChange, Change, FieldChange, SourceChange, ToolSettingsChange
from gatewright.policy.rule import OPERATION_CONDITION, ExclusiveGroups, PolicyRule, ToolRule
from gatewright.policy.verdict import Verdict, split_name

Names = Mapping[str, str | None]
"""The new name of each tool by its bare name, or None for a tool that goes."""


def follow_names(policy: Policy, names: Names, others: Collection[str] = ()) -> Iterator[Change]:
    """The changes for renamed or removed tools, everywhere but in compositions.

    Mentions of a removed tool go with it, except in rules on other tools, which then fail the check. ``others``: the
    names of other tools: where an operation may follow a name, the longest name wins.
    """
    known = (*names, *others)
    for agent in policy.agents.values():
        after = _agent(agent, names, known)
        if after != agent:
            yield AgentChange(agent, after)
    for source in policy.sources:
        required = tuple(_rule(rule, names, known) for rule in source.required_tools)
        if required != source.required_tools:
            yield SourceChange(source, replace(source, required_tools=required))
    approvals = _approvals(policy.defaults.approvals, names, known)
    if approvals != policy.defaults.approvals:
        yield FieldChange("defaults", policy.defaults, replace(policy.defaults, approvals=approvals))
    for name, settings in policy.tools.items():
        new = _new_names((name,), names)
        if new != (name,):
            yield ToolSettingsChange(name, settings, None)
            yield from (ToolSettingsChange(one, None, settings) for one in new)
    rules = tuple(_policy_rules(policy.rules, names))
    if rules != policy.rules:
        yield FieldChange("rules", policy.rules, rules)


def _agent(agent: Agent, names: Names, known: Collection[str]) -> Agent:
    rules = [rule for rule in agent.tool_rules if names.get(split_name(rule.tool_name)[0], "") is not None]
    return replace(
        agent,
        tools=None if agent.tools is None else _new_names(agent.tools, names),
        tool_rules=tuple(_rule(rule, names, known) for rule in rules),
        approvals=_approvals(agent.approvals, names, known),
    )


def _rule(rule: ToolRule, names: Names, known: Collection[str]) -> ToolRule:
    """The rule with the new names of tools; the same object if it mentions none."""
    (tool_name,) = _new_names((rule.tool_name,), names) or (rule.tool_name,)
    conditions = tuple(_new_key(text, names, known) or text for text in rule.conditions)
    kind = rule.rule_type
    if isinstance(kind, ExclusiveGroups):
        groups = tuple(tuple(_new_key(name, names, known) or name for name in group) for group in kind.groups)
        kind = kind if groups == kind.groups else replace(kind, groups=groups)
    after = replace(rule, tool_name=tool_name, conditions=conditions, rule_type=kind)
    return rule if after == rule else after


def _policy_rules(rules: Iterable[PolicyRule], names: Names) -> Iterator[PolicyRule]:
    """Drop rules whose tools are all gone: without a name they would apply to all tools."""
    for rule in rules:
        tools = None if rule.tools is None else _new_names(rule.tools, names)
        if tools == rule.tools:
            yield rule
        elif tools:
            yield replace(rule, tools=tools)


def _approvals(approvals: Mapping[str, Verdict], names: Names, known: Collection[str]) -> dict[str, Verdict]:
    """Rename the tools in ``approvals``, whose keys are a tier, ``tool`` or ``tool.operation``."""
    found = ((_new_key(key, names, known), verdict) for key, verdict in approvals.items())
    return {key: verdict for key, verdict in found if key is not None}


def _new_names(written: tuple[str, ...], names: Names) -> tuple[str, ...]:
    """The new names, without those of removed tools; ``name@major`` keeps its major."""
    found: list[str] = []
    for one in written:
        bare, _ = split_name(one)
        new = names.get(bare, bare)
        if new is not None:
            found.append(new + one[len(bare) :])
    return tuple(found)


def _new_key(written: str, names: Names, known: Collection[str]) -> str | None:
    """The new form of a name that an operation may follow after a dot; a condition on operations stays."""
    if written.startswith(OPERATION_CONDITION):
        return written
    heads = [name for name in known if written == name or written.startswith((f"{name}.", f"{name}@"))]
    head = max(heads, key=len, default="")
    if head not in names:
        return written
    new = names[head]
    return None if new is None else new + written[len(head) :]
