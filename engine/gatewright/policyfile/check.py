"""What only the whole policy shows: requirements that cannot be met, missing sources, idle rules. It reads no TOML.

A rule on a tool that the agent does not list is no finding: it waits for the tool to be turned on again.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import field, replace

from gatewright.base.frozen import frozen
from gatewright.base.report import RawPath, Report
from gatewright.policy.composition import called_operations, ordinal
from gatewright.policy.document import SHELL, Agent, Dialect, Policy
from gatewright.policy.endpoint import EVERY_ENDPOINT
from gatewright.policy.policyrule import PolicyRule
from gatewright.policy.requirement import Sight, hidden_requirements, majors_of
from gatewright.policy.right import ToolFacts
from gatewright.policy.rule import (
    OPERATION_CONDITION,
    AllowedOperations,
    RequiredBeforeExitIf,
    RequiresPrecedingTools,
    StartConstraint,
    ToolRule,
)
from gatewright.policy.toolname import chosen_tools, split_name
from gatewright.policy.verdict import Verdict
from gatewright.policyfile.checkopen import warn_open_arguments
from gatewright.policyfile.checkpolicy import check_policy_rules
from gatewright.policyfile.checksave import Unsaved
from gatewright.policyfile.known import KnownTools

_SHARED = frozenset({"defaults", "tools", "sources", "catalogs", "compositions", "policy", "workspace"})
"""The tables that the rights of every agent hang on."""


@frozen
class Checked:
    """What only the whole policy shows, by what it hangs on: one agent, all agents together, no agent."""

    agents: Report = field(default_factory=Report)
    together: Report = field(default_factory=Report)
    rules: Report = field(default_factory=Report)

    @property
    def reports(self) -> tuple[Report, ...]:
        """In the order of telling."""
        return self.agents, self.together, self.rules


class PolicyCheck:
    """Checks against one policy. Of its agents nothing is kept: any agent can be asked about that might be in it.

    ``errors``: where reading it found some. What hangs on such a part is not asked, since it could not be built whole
    and what was found of it would only follow from that.
    """

    def __init__(self, policy: Policy, known: KnownTools, errors: Collection[RawPath] = ()) -> None:
        self._policy, self._known = policy, known
        self._faulty = frozenset(path[:2] for path in errors)
        self._tables = frozenset(path[0] for path in errors if path)
        if policy.dialect is Dialect.PATTERN and errors:
            self._tables |= _SHARED
        self._slim, self._majors = replace(policy, rules=_distinct(policy.rules)), majors_of(known.facts)
        self._unsaved = Unsaved(self._slim, self._majors)

    def agent(self, agent: Agent, report: Report) -> None:
        """Add the findings about one agent."""
        # nothing is said of an agent that was not built whole, or whose rights hang on what was not
        own = ("agents", agent.agent_id)
        if not (self._tables.isdisjoint(_SHARED) and self._faulty.isdisjoint({own, ("agents",)})):
            return
        policy = self._policy
        path: RawPath = () if policy.dialect is Dialect.PATTERN else ("agents", agent.agent_id)
        chosen, sight = chosen_tools(self._known.facts, agent.tools), None
        listed = _listed(policy, agent, chosen)
        needing = (name for name, facts in chosen.items() if facts.needs_source and name in listed)
        if not policy.sources_of(agent) and (first := next(needing, None)) is not None:
            message = f"agent `{agent.agent_id}` has the tool `{first}` but no source: it will not see the tool"
            place = (*path, "tools") if agent.tools is not None else path
            report.warning(place, "no-source", message, tools=((first, None),))
        _warn_no_root(policy, agent, self._known, path, report)
        _warn_nothing_left(agent, chosen, listed, path, report)
        for found in hidden_requirements(self._slim, agent, self._majors):
            message = f"agent `{agent.agent_id}` does not see {found.what}, so it could never {found.consequence}"
            report.error((*path, "tool_rules", found.index, "rule_type"), found.code, message)
        if policy.compositions:
            sight = Sight(self._slim, agent, self._majors)
            self._warn_steps(agent, listed, sight, path, report)
        for index, rule in enumerate(agent.tool_rules):
            if isinstance(rule.rule_type, RequiresPrecedingTools | RequiredBeforeExitIf):
                sight = sight or Sight(self._slim, agent, self._majors)
                follows = "called" if isinstance(rule.rule_type, RequiresPrecedingTools) else "required"
                for position, condition in enumerate(rule.conditions):
                    if not condition.startswith(OPERATION_CONDITION) and (what := sight.hides_condition(condition)):
                        so = f"so `{rule.tool_name}` can never be {follows}"
                        place = (*path, "tool_rules", index, "conditions", position)
                        message = f"agent `{agent.agent_id}` does not see {what}, {so}"
                        report.warning(place, "condition-hidden", message, at_value=True)

    def _warn_steps(self, agent: Agent, listed: frozenset[str], sight: Sight, path: RawPath, report: Report) -> None:
        """Steps of the agent's compositions whose tools it does not see: they are denied when their turn comes."""
        for composition in self._policy.compositions:
            if composition.name not in listed or composition.name not in self._majors or sight.hides(composition.name):
                continue
            for index, rule in enumerate(agent.tool_rules):
                if isinstance(rule.rule_type, StartConstraint) and rule.tool_name == composition.name:
                    message = (
                        f"agent `{agent.agent_id}` has to start with `{composition.name}`, whose steps are calls of "
                    )
                    message += "other tools and may not come before it: they are all denied"
                    report.error((*path, "tool_rules", index, "rule_type"), "start-with-composition", message)
            for index, step in enumerate(composition.steps):
                facts = chosen_tools(self._majors.get(step.tool, ()), agent.tools).get(step.tool)
                if facts is None:
                    continue
                names = frozenset(row.name for row in called_operations(facts, step) if row.name)
                what = sight.hides(step.tool, names or None)
                if what is not None:
                    message = f"agent `{agent.agent_id}` has `{composition.name}` but does not see {what}"
                    message += f", which the {ordinal(index)} step calls: that step is denied"
                    place = (*path, "tools") if agent.tools is not None else path
                    report.warning(place, "step-hidden", message, tools=((composition.name, None),))

    def together(self, agents: Collection[Agent], report: Report) -> None:
        """Add what the agents of a policy mean for each other."""
        if not self._faulty and not self._tables:
            self._unsaved.warn(self._policy, agents, report)
            warn_open_arguments(self._policy, agents, self._majors, report)

    def rules(self, report: Report) -> None:
        """Add the findings about policy rules."""
        if self._tables.isdisjoint(_SHARED - {"sources", "defaults"}):
            check_policy_rules(self._policy, self._known.there(self._policy.provides), report)

    def everything(self) -> Checked:
        """All findings of the policy."""
        found = Checked()
        for agent in self._policy.agents.values():
            self.agent(agent, found.agents)
        self.together(self._policy.agents.values(), found.together)
        self.rules(found.rules)
        return found


def _distinct(rules: tuple[PolicyRule, ...]) -> tuple[PolicyRule, ...]:
    """One of all rules that are alike but for what ``when`` says: rights depend on no more."""
    found: dict[object, PolicyRule] = {}
    for rule in rules:
        found.setdefault((rule.effect, rule.agents, rule.tools, rule.operations, rule.is_unconditional), rule)
    return tuple(found.values())


def _warn_nothing_left(
    agent: Agent, chosen: dict[str, ToolFacts], listed: frozenset[str], path: RawPath, report: Report
) -> None:
    """AllowedOperations rules of one tool that leave nothing of it."""
    limits: dict[str, list[int]] = {}
    for index, rule in enumerate(agent.tool_rules):
        if isinstance(rule.rule_type, AllowedOperations):
            limits.setdefault(split_name(rule.tool_name)[0], []).append(index)
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


def _warn_no_root(policy: Policy, agent: Agent, known: KnownTools, path: RawPath, report: Report) -> None:
    """A tool that the agent names, and that is not there without a root."""
    lacking = {one.facts.name: group for one in known.rooted if (group := one.lacks(policy.provides)) is not None}
    for index, written in enumerate(agent.tools or ()):
        name = split_name(written)[0]
        if name in lacking and len(known.of(name)) == 1:
            wanted = " or ".join(f"`{root}`" for root in lacking[name])
            message = f"`[workspace] roots` has no folder for {wanted}: agent `{agent.agent_id}` will not see `{name}`"
            if lacking[name] == (SHELL,):
                message = f"`[workspace] shell` has no backend: agent `{agent.agent_id}` will not see `{name}`"
            elif lacking[name] == EVERY_ENDPOINT:
                message = f"`[workspace] endpoints` names none: agent `{agent.agent_id}` will not see `{name}`"
            report.warning((*path, "tools", index), "no-root", message, at_value=True)


def _listed(policy: Policy, agent: Agent, chosen: dict[str, ToolFacts]) -> frozenset[str]:
    if agent.tools is not None:
        return frozenset(split_name(name)[0] for name in agent.tools)
    return frozenset(chosen) if policy.defaults.unlisted_tools is Verdict.ALLOW else frozenset()
