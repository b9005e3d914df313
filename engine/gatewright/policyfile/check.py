"""What only the whole policy shows: hidden start tools, missing sources, idle rules. It does not read TOML."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gatewright.policy.document import Agent, Dialect, Policy
from gatewright.policy.effective import hidden_starts
from gatewright.policy.rule import ANY_TOOL
from gatewright.policy.toolname import chosen_tools, split_name
from gatewright.policy.verdict import Verdict

if TYPE_CHECKING:
    from gatewright.policy.right import ToolFacts
    from gatewright.policyfile.known import KnownTools
    from gatewright.policyfile.report import Report
    from gatewright.policyfile.scan import RawPath


def check_policy(policy: Policy, known: KnownTools, report: Report) -> None:
    """Add the findings; effective rights are asked only of a policy that has no error so far."""
    for agent in policy.agents.values():
        path: RawPath = () if policy.dialect is Dialect.PATTERN else ("agents", agent.agent_id)
        chosen = chosen_tools(known.facts, agent.tools)
        _warn_no_source(policy, agent, chosen, path, report)
        _warn_without_effect(agent, path, report)
        if not report.has_errors:
            _check_starts(policy, agent, known, path, report)


def _warn_no_source(policy: Policy, agent: Agent, chosen: dict[str, ToolFacts], path: RawPath, report: Report) -> None:
    if policy.sources_of(agent):
        return
    listed = _listed(policy, agent, chosen)
    needing = next((name for name, facts in chosen.items() if facts.needs_source and name in listed), None)
    if needing is not None:
        message = f"agent `{agent.agent_id}` has the tool `{needing}` but no source: it will not see the tool"
        place = (*path, "tools") if agent.tools is not None else path
        report.warning(place, "no-source", message)


def _warn_without_effect(agent: Agent, path: RawPath, report: Report) -> None:
    if agent.tools is None:
        return
    listed = {split_name(name)[0] for name in agent.tools}
    for index, rule in enumerate(agent.tool_rules):
        if rule.tool_name != ANY_TOOL and split_name(rule.tool_name)[0] not in listed:
            message = f"`{rule.tool_name}` is not among the tools of agent `{agent.agent_id}`: the rule has no effect"
            report.warning((*path, "tool_rules", index), "rule-without-effect", message)


def _check_starts(policy: Policy, agent: Agent, known: KnownTools, path: RawPath, report: Report) -> None:
    for index in hidden_starts(policy, agent, known.facts):
        name = agent.tool_rules[index].tool_name
        message = f"agent `{agent.agent_id}` does not see `{name}`, so it could never start with it"
        report.error((*path, "tool_rules", index, "rule_type"), "start-constraint-hidden", message)


def _listed(policy: Policy, agent: Agent, chosen: dict[str, ToolFacts]) -> frozenset[str]:
    if agent.tools is not None:
        return frozenset(split_name(name)[0] for name in agent.tools)
    return frozenset(chosen) if policy.defaults.unlisted_tools is Verdict.ALLOW else frozenset()
