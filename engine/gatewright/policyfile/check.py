"""What only the whole policy shows: requirements that cannot be met, missing sources, idle rules. It reads no TOML."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gatewright.policy.document import Agent, Dialect, Policy
from gatewright.policy.requirement import Majors, Sight, hidden_requirements, majors_of
from gatewright.policy.rule import (
    ANY_TOOL,
    OPERATION_CONDITION,
    AllowedOperations,
    RequiredBeforeExitIf,
    RequiresPrecedingTools,
    ToolRule,
)
from gatewright.policy.toolname import chosen_tools, split_name
from gatewright.policy.verdict import Verdict
from gatewright.policyfile.checkpolicy import check_policy_rules
from gatewright.policyfile.checksave import warn_unsaved

if TYPE_CHECKING:
    from gatewright.policy.policyrule import PolicyRule
    from gatewright.policy.right import ToolFacts
    from gatewright.policyfile.known import KnownTools
    from gatewright.policyfile.report import Report
    from gatewright.policyfile.scan import RawPath


def check_policy(policy: Policy, known: KnownTools, report: Report) -> None:
    """Add the findings; effective rights are asked only of a policy that had no error before."""
    sound = not report.has_errors
    slim, majors = replace(policy, rules=_distinct(policy.rules)), majors_of(known.facts)
    for agent in policy.agents.values():
        path: RawPath = () if policy.dialect is Dialect.PATTERN else ("agents", agent.agent_id)
        chosen = chosen_tools(known.facts, agent.tools)
        _warn_no_source(policy, agent, chosen, path, report)
        _warn_no_root(policy, agent, known, path, report)
        _warn_without_effect(agent, path, report)
        if sound:
            _warn_nothing_left(policy, agent, chosen, path, report)
            _check_hidden(slim, agent, majors, path, report)
    if sound:
        warn_unsaved(policy, slim, majors, report)
        check_policy_rules(policy, known.there(policy.roots), report)


def _distinct(rules: tuple[PolicyRule, ...]) -> tuple[PolicyRule, ...]:
    """One of all rules that are alike but for what ``when`` says: rights depend on no more."""
    found: dict[object, PolicyRule] = {}
    for rule in rules:
        found.setdefault((rule.effect, rule.agents, rule.tools, rule.operations, rule.is_unconditional), rule)
    return tuple(found.values())


def _check_hidden(policy: Policy, agent: Agent, majors: Majors, path: RawPath, report: Report) -> None:
    for found in hidden_requirements(policy, agent, majors):
        message = f"agent `{agent.agent_id}` does not see {found.what}, so it could never {found.consequence}"
        report.error((*path, "tool_rules", found.index, "rule_type"), found.code, message)
    sight: Sight | None = None
    for index, rule in enumerate(agent.tool_rules):
        if isinstance(rule.rule_type, RequiresPrecedingTools | RequiredBeforeExitIf):
            sight = sight or Sight(policy, agent, majors)
            _warn_hidden_conditions(agent, rule, sight, (*path, "tool_rules", index, "conditions"), report)


def _warn_hidden_conditions(agent: Agent, rule: ToolRule, sight: Sight, place: RawPath, report: Report) -> None:
    follows = "never be called" if isinstance(rule.rule_type, RequiresPrecedingTools) else "never be required"
    for position, condition in enumerate(rule.conditions):
        if condition.startswith(OPERATION_CONDITION) or (what := sight.hides_condition(condition)) is None:
            continue
        message = f"agent `{agent.agent_id}` does not see {what}, so `{rule.tool_name}` can {follows}"
        report.warning((*place, position), "condition-hidden", message, at_value=True)


def _warn_nothing_left(
    policy: Policy, agent: Agent, chosen: dict[str, ToolFacts], path: RawPath, report: Report
) -> None:
    """AllowedOperations rules of one tool that leave nothing of it."""
    limits: dict[str, list[int]] = {}
    for index, rule in enumerate(agent.tool_rules):
        if isinstance(rule.rule_type, AllowedOperations):
            limits.setdefault(split_name(rule.tool_name)[0], []).append(index)
    listed = _listed(policy, agent, chosen) if limits else frozenset[str]()
    for name, indexes in limits.items():
        rules = [agent.tool_rules[index] for index in indexes]
        if name in listed and name in chosen and not any(_passes(op, rules) for op in chosen[name].operation_names):
            message = f"these operations leave nothing of `{name}`: agent `{agent.agent_id}` will not see the tool"
            report.warning((*path, "tool_rules", indexes[-1], "rule_type"), "tool-not-shown", message, at_value=True)


def _passes(operation: str, rules: list[ToolRule]) -> bool:
    return all(
        operation in rule.rule_type.operations
        for rule in rules
        if isinstance(rule.rule_type, AllowedOperations) and rule.binds(operation)
    )


def _warn_no_source(policy: Policy, agent: Agent, chosen: dict[str, ToolFacts], path: RawPath, report: Report) -> None:
    if policy.sources_of(agent):
        return
    listed = _listed(policy, agent, chosen)
    needing = next((name for name, facts in chosen.items() if facts.needs_source and name in listed), None)
    if needing is not None:
        message = f"agent `{agent.agent_id}` has the tool `{needing}` but no source: it will not see the tool"
        place = (*path, "tools") if agent.tools is not None else path
        report.warning(place, "no-source", message)


def _warn_no_root(policy: Policy, agent: Agent, known: KnownTools, path: RawPath, report: Report) -> None:
    """A tool that the agent names, and that is not there without a root."""
    lacking = {one.facts.name: group for one in known.rooted if (group := one.lacks(policy.roots)) is not None}
    for index, written in enumerate(agent.tools or ()):
        name = split_name(written)[0]
        if name in lacking and len(known.of(name)) == 1:
            wanted = " or ".join(f"`{root}`" for root in lacking[name])
            message = f"`[workspace] roots` has no folder for {wanted}: agent `{agent.agent_id}` will not see `{name}`"
            report.warning((*path, "tools", index), "no-root", message, at_value=True)


def _warn_without_effect(agent: Agent, path: RawPath, report: Report) -> None:
    if agent.tools is None:
        return
    listed = {split_name(name)[0] for name in agent.tools}
    for index, rule in enumerate(agent.tool_rules):
        if rule.tool_name != ANY_TOOL and split_name(rule.tool_name)[0] not in listed:
            message = f"`{rule.tool_name}` is not among the tools of agent `{agent.agent_id}`: the rule has no effect"
            report.warning((*path, "tool_rules", index), "rule-without-effect", message)


def _listed(policy: Policy, agent: Agent, chosen: dict[str, ToolFacts]) -> frozenset[str]:
    if agent.tools is not None:
        return frozenset(split_name(name)[0] for name in agent.tools)
    return frozenset(chosen) if policy.defaults.unlisted_tools is Verdict.ALLOW else frozenset()
