"""The places of a policy that name tools, followed when a tool gets another name or goes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace

from gatewright.policy.document import Agent, Policy
from gatewright.policy.edit import AgentChange, Change, FieldChange, SourceChange, ToolSettingsChange
from gatewright.policy.rule import OPERATION_CONDITION, ExclusiveGroups, PolicyRule, ToolRule
from gatewright.policy.verdict import Verdict, split_name

Names = Mapping[str, str | None]
"""By the bare name of a tool the one that it gets, or None where it goes."""


def follow_names(policy: Policy, names: Names, others: Collection[str] = ()) -> Iterator[Change]:
    """The changes of all that the policy says of tools which get other names or go, but for compositions.

    What is said of a tool that goes goes with it; a rule that only looks at it stays, and is refused then. ``others``:
    the names of other tools, since of two the longer one is meant where a name may be followed by an operation.
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
        new = _listed((name,), names)
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
        tools=None if agent.tools is None else _listed(agent.tools, names),
        tool_rules=tuple(_rule(rule, names, known) for rule in rules),
        approvals=_approvals(agent.approvals, names, known),
    )


def _rule(rule: ToolRule, names: Names, known: Collection[str]) -> ToolRule:
    """The rule with the new names of tools; a rule that says nothing of them is the very same."""
    (tool_name,) = _listed((rule.tool_name,), names) or (rule.tool_name,)
    conditions = tuple(_dotted(text, names, known) or text for text in rule.conditions)
    kind = rule.rule_type
    if isinstance(kind, ExclusiveGroups):
        groups = tuple(tuple(_dotted(name, names, known) or name for name in group) for group in kind.groups)
        kind = kind if groups == kind.groups else replace(kind, groups=groups)
    after = replace(rule, tool_name=tool_name, conditions=conditions, rule_type=kind)
    return rule if after == rule else after


def _policy_rules(rules: Iterable[PolicyRule], names: Names) -> Iterator[PolicyRule]:
    """Without those that were about tools that go, and nothing else: without a name they would be about all."""
    for rule in rules:
        tools = None if rule.tools is None else _listed(rule.tools, names)
        if tools == rule.tools:
            yield rule
        elif tools:
            yield replace(rule, tools=tools)


def _approvals(approvals: Mapping[str, Verdict], names: Names, known: Collection[str]) -> dict[str, Verdict]:
    """Keys are a tier, ``tool`` or ``tool.operation``."""
    found = ((_dotted(key, names, known), verdict) for key, verdict in approvals.items())
    return {key: verdict for key, verdict in found if key is not None}


def _listed(written: tuple[str, ...], names: Names) -> tuple[str, ...]:
    """The names as they are then, without those that go; ``name@major`` keeps its major."""
    found: list[str] = []
    for one in written:
        bare, _ = split_name(one)
        new = names.get(bare, bare)
        if new is not None:
            found.append(new + one[len(bare) :])
    return tuple(found)


def _dotted(written: str, names: Names, known: Collection[str]) -> str | None:
    """The same of a name that an operation may follow after a dot; a condition that names operations stays."""
    if written.startswith(OPERATION_CONDITION):
        return written
    heads = [name for name in known if written == name or written.startswith((f"{name}.", f"{name}@"))]
    head = max(heads, key=len, default="")
    if head not in names:
        return written
    new = names[head]
    return None if new is None else new + written[len(head) :]
