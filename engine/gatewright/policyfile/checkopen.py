"""Tools that take arguments which their schema does not name although the policy means to close them."""

from __future__ import annotations

from collections.abc import Collection

from gatewright.base.report import RawPath, Report
from gatewright.policy.document import Agent, Policy
from gatewright.policy.requirement import Majors
from gatewright.policy.right import ToolFacts
from gatewright.policy.rule import ANY_TOOL, ArgumentConstraints
from gatewright.policy.toolname import chosen_tools, names_tool
from gatewright.policy.verdict import Verdict


def warn_open_arguments(policy: Policy, agents: Collection[Agent], majors: Majors, report: Report) -> None:
    """Warn once of each such tool: at its own setting, else at the first rule that constrains it."""
    rules = [
        (agent, index, rule.tool_name, rule.rule_type.arguments)
        for agent in agents
        for index, rule in enumerate(agent.tool_rules)
        if isinstance(rule.rule_type, ArgumentConstraints)
    ]
    said: set[RawPath] = set()
    for facts in (one for several in majors.values() for one in several):
        table = f"{facts.name}@{facts.major}"
        table = table if table in policy.tools else facts.name
        setting = policy.tools[table].extra_arguments if table in policy.tools else None
        is_open = facts.extra_arguments is Verdict.ALLOW
        if not is_open and (facts.extra_arguments is Verdict.DENY or setting is not Verdict.ALLOW):
            continue
        taken = {name for operation in facts.operations for name in operation.parameters}
        place: RawPath | None = next(
            (
                ("agents", agent.agent_id, "tool_rules", index, "rule_type")
                for agent, index, written, arguments in rules
                if names_tool(written, facts.name, facts.major)
                and (written != ANY_TOOL or not taken.isdisjoint(arguments))
                and _lists(policy, agent, facts, majors)
            ),
            None,
        )
        if setting is Verdict.DENY or (setting is not None and place is not None):
            place = ("tools", table, "extra_arguments")
        if place is None or place in said:
            continue
        said.add(place)
        why = "its schema itself lets them through" if is_open else "this setting lets them through"
        message = f"calls of `{facts.name}` may give arguments that its schema does not name: {why}"
        report.warning(place, "arguments-open", message, at_value=True, tools=((facts.name, None),))


def _lists(policy: Policy, agent: Agent, facts: ToolFacts, majors: Majors) -> bool:
    if agent.tools is None and policy.defaults.unlisted_tools is not Verdict.ALLOW:
        return False
    if agent.tools is not None and not any(names_tool(one, facts.name, facts.major) for one in agent.tools):
        return False
    return chosen_tools(majors[facts.name], agent.tools)[facts.name] is facts
