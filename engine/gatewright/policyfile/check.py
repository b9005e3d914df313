"""Checks of a policy as a whole: impossible requirements, missing sources, idle rules, agents that cannot save.

If a rule requires a call of a tool that its agent does not see, neither loading nor an edit accepts the rule. A rule on
a tool outside the agent's list has no effect until somebody turns the tool on again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace

from gatewright.base.errors import Address, RawPath, Report
from gatewright.base.frozen import frozen
from gatewright.policy.composition import ordinal, step_operations
from gatewright.policy.document import SHELL, Agent, Dialect, Policy
from gatewright.policy.layer import Layers
from gatewright.policy.right import ToolFacts, ToolRight
from gatewright.policy.rule import (
    ANY_TOOL,
    OPERATION_CONDITION,
    AfterOutside,
    AllowedOperations,
    ArgumentConstraints,
    PolicyRule,
    RequiredBeforeExit,
    RequiredBeforeExitIf,
    RequiresPrecedingTools,
    StartConstraint,
    ToolRule,
)
from gatewright.policy.rulematch import timeless
from gatewright.policy.verdict import EVERY_ENDPOINT, Verdict, bare_names, names_tool, pick_tools, split_name
from gatewright.policyfile.names import KnownTools
from gatewright.policyfile.readpolicy import check_policy_rules

_REQUIRED = (StartConstraint, RequiredBeforeExit, RequiredBeforeExitIf)
Majors = dict[str, list["ToolFacts"]]


@frozen
class HiddenRequirement:
    """A rule (its index among the agent's) that demands a hidden tool; ``what`` names the tool or the operations."""

    index: int
    rule: ToolRule
    what: str

    @property
    def code(self) -> str:
        """The code of its problem."""
        start = isinstance(self.rule.rule_type, StartConstraint)
        return "start-constraint-hidden" if start else "exit-requirement-hidden"

    @property
    def consequence(self) -> str:
        """A verb phrase for the effect: what can never happen."""
        return "start with it" if isinstance(self.rule.rule_type, StartConstraint) else "end"

    @property
    def demand(self) -> str:
        """A verb phrase for what the rule demands of the agent."""
        start = isinstance(self.rule.rule_type, StartConstraint)
        return "has to start with it" if start else "has to call it before it ends"


class Sight:
    """The tools that one agent sees, computed on demand; policy rules with times hide none for good.

    ``majors``: see ``majors_of``.
    """

    def __init__(self, policy: Policy, agent: Agent, majors: Mapping[str, list[ToolFacts]]) -> None:
        self._agent, self._majors = agent, majors
        self._layers = Layers(timeless(policy), agent)
        self._rights: dict[str, ToolRight] = {}

    def hides(self, written: str, operations: frozenset[str] | None = None) -> str | None:
        """The name of the tool, or of its operations, if the agent sees nothing of what is named; None otherwise."""
        name = split_name(written)[0]
        if name not in self._majors:
            return None
        right = self.right(name)
        if right.is_hidden:
            return f"`{name}`"
        if operations and operations.isdisjoint(right.shown):
            return " or ".join(f"`{name}.{operation}`" for operation in sorted(operations))
        return None

    def hides_condition(self, condition: str) -> str | None:
        """The same for a condition ``tool`` or ``tool.operation``; the longest registered name counts."""
        end = len(condition)
        while end > 0:
            if split_name(condition[:end])[0] in self._majors:
                operation = condition[end + 1 :]
                return self.hides(condition[:end], frozenset({operation}) if operation else None)
            end = condition.rfind(".", 0, end)
        return None

    def is_marked(self) -> bool:
        """Tell whether the agent sees a tool whose results come from outside."""
        return any(self.right(name).facts.outside and not self.right(name).is_hidden for name in self._majors)

    def right(self, name: str) -> ToolRight:
        """The agent's right on a registered tool, in the major that the agent has."""
        if name not in self._rights:
            held = self._majors[name]
            facts = held[0] if len(held) == 1 else pick_tools(held, self._agent.tools)[name]
            self._rights[name] = self._layers.right(facts)
        return self._rights[name]


def majors_of(catalog: Iterable[ToolFacts]) -> Majors:
    """The registered majors by bare name."""
    found: Majors = {}
    for facts in catalog:
        found.setdefault(facts.name, []).append(facts)
    return found


def has_requirement(agent: Agent) -> bool:
    """Tell whether a rule of the agent demands a call."""
    return any(isinstance(rule.rule_type, _REQUIRED) for rule in agent.tool_rules)


def hidden_requirements(
    policy: Policy, agent: Agent, majors: Mapping[str, list[ToolFacts]]
) -> Iterator[HiddenRequirement]:
    """The start and exit requirements that the agent can never meet, since it does not see the tool or its
    operations.
    """
    if not has_requirement(agent):
        return
    sight = Sight(policy, agent, majors)
    for index, rule in enumerate(agent.tool_rules):
        if isinstance(rule.rule_type, _REQUIRED) and rule.tool_name != ANY_TOOL:
            what = sight.hides(rule.tool_name, rule.operations)
            if what is not None:
                yield HiddenRequirement(index, rule, what)


def warn_open_arguments(policy: Policy, agents: Collection[Agent], majors: Majors, report: Report) -> None:
    """Warn once about each tool whose constrained calls may give other arguments, at its setting, else at the first
    such rule.
    """
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
                if names_tool(written, facts)
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
        why = "its schema itself permits them" if is_open else "this setting permits them"
        message = f"calls of `{facts.name}` may give arguments that its schema does not name: {why}"
        report.warning(place, "arguments-open", message, at_value=True, tools=((facts.name, None),))


def _lists(policy: Policy, agent: Agent, facts: ToolFacts, majors: Majors) -> bool:
    if agent.tools is None and policy.defaults.unlisted_tools is not Verdict.ALLOW:
        return False
    if agent.tools is not None and not any(names_tool(one, facts) for one in agent.tools):
        return False
    return pick_tools(majors[facts.name], agent.tools)[facts.name] is facts


_TOOL, _SAVE = "file", "save"
_EDITS = ("append", "insert", "replace", "patch")
"""The operations that change only a block; creating and deleting also reach the disk."""


def warn_unsaved(policy: Policy, slim: Policy, agents: Collection[Agent], majors: Majors, report: Report) -> None:
    """Warn about each agent that may edit files as blocks but not save them.

    ``slim``: the policy without those policy rules that do not affect rights.
    """
    if not any(facts.origin == "built-in" and facts.needs_source for facts in majors.get(_TOOL, ())):
        return
    rights = {agent.agent_id: Sight(slim, agent, majors).right(_TOOL) for agent in agents}
    savers = [agent for agent in agents if _SAVE in rights[agent.agent_id].shown]
    for agent in agents:
        right = rights[agent.agent_id]
        edits = [name for name in _EDITS if name in right.shown]
        if not edits or _SAVE in right.shown:
            continue
        own = {source.source_id for source in policy.sources_of(agent)}  # agents share the blocks of these files
        saver = next((one for one in savers if any(s.source_id in own for s in policy.sources_of(one))), None)
        end = "reaches the disk" if saver is None else f"reaches the disk unless agent `{saver.agent_id}` saves it"
        may = " and ".join(f"`{name}`" for name in edits)
        message = f"agent `{agent.agent_id}` may {may} with `{_TOOL}` but not `{_SAVE}`: nothing of it {end}"
        place, about = _place(policy, slim, agent, right), ((_TOOL, _SAVE),)
        report.warning(place, "edits-never-saved", message, at_value=True, agent_id=agent.agent_id, tools=about)


def _place(policy: Policy, slim: Policy, agent: Agent, right: ToolRight) -> RawPath:
    """The place of the policy that hides the operation, else that of the agent."""
    row = next((row for row in right.operations if row.operation == _SAVE), None)
    address: Address = next((reason.address for reason in row.reasons if reason.address), ()) if row else ()
    own: RawPath = () if policy.dialect is Dialect.PATTERN else ("agents", agent.agent_id)
    match address:
        case ("agents", _, "tool_rules", int(index)):
            return (*own, "tool_rules", index, "rule_type")
        case ("agents", _, *rest):
            return (*own, *rest)
        case ("policy", "rules", int(index)):
            return ("policy", "rules", next(at for at, rule in enumerate(policy.rules) if rule is slim.rules[index]))
        case ("sources", str(source_id), *rest) if policy.dialect is Dialect.GATEWRIGHT:
            return ("sources", [source.source_id for source in policy.sources].index(source_id), *rest)
        case ("sources", *_):
            return own
        case _:
            return address or own


_SHARED = frozenset({"defaults", "tools", "sources", "catalogs", "compositions", "policy", "workspace"})
"""The tables on which the rights of every agent depend."""


class PolicyCheck:
    """Checks of one policy.

    ``errors``: the places of errors found in reading. A check that depends on such a part is skipped, since its
    findings would only repeat the error.
    """

    def __init__(self, policy: Policy, known: KnownTools, errors: Collection[RawPath] = ()) -> None:
        self._policy, self._known = policy, known
        self._faulty = frozenset(path[:2] for path in errors)
        self._tables = frozenset(path[0] for path in errors if path)
        if policy.dialect is Dialect.PATTERN and errors:
            self._tables |= _SHARED
        self._slim, self._majors = replace(policy, rules=_one_of_each(policy.rules)), majors_of(known.facts)

    def run(self, report: Report) -> None:
        """Add all findings about the policy."""
        agents = self._policy.agents.values()
        for agent in agents:
            self._agent(agent, report)
        if not self._faulty and not self._tables:
            warn_unsaved(self._policy, self._slim, agents, self._majors, report)
            warn_open_arguments(self._policy, agents, self._majors, report)
        if self._tables.isdisjoint(_SHARED - {"sources", "defaults"}):
            check_policy_rules(self._policy, self._known.there(self._policy.provides), report)

    def _agent(self, agent: Agent, report: Report) -> None:
        """Add the findings about one agent."""
        # skip an incomplete agent, and one whose rights depend on an incomplete part
        own = ("agents", agent.agent_id)
        if not (self._tables.isdisjoint(_SHARED) and self._faulty.isdisjoint({own, ("agents",)})):
            return
        policy = self._policy
        path: RawPath = () if policy.dialect is Dialect.PATTERN else ("agents", agent.agent_id)
        chosen, sight = pick_tools(self._known.facts, agent.tools), None
        listed = _list_of(policy, agent, chosen)
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
            if isinstance(rule.rule_type, AfterOutside):
                sight = sight or Sight(self._slim, agent, self._majors)
                if not sight.is_marked():
                    message = f"agent `{agent.agent_id}` sees no tool with results from outside: the rule has no effect"
                    report.warning((*path, "tool_rules", index, "rule_type"), "nothing-outside", message, at_value=True)
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
        """Warn about steps of the agent's compositions whose tools the agent does not see: such steps are denied."""
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
                facts = pick_tools(self._majors.get(step.tool, ()), agent.tools).get(step.tool)
                if facts is None:
                    continue
                names = frozenset(row.name for row in step_operations(facts, step) if row.name)
                what = sight.hides(step.tool, names or None)
                if what is not None:
                    message = f"agent `{agent.agent_id}` has `{composition.name}` but does not see {what}"
                    message += f", which the {ordinal(index)} step calls: that step is denied"
                    place = (*path, "tools") if agent.tools is not None else path
                    report.warning(place, "step-hidden", message, tools=((composition.name, None),))


def _one_of_each(rules: tuple[PolicyRule, ...]) -> tuple[PolicyRule, ...]:
    """One of all rules that differ only in ``when``, on which rights do not depend."""
    found: dict[object, PolicyRule] = {}
    for rule in rules:
        key = rule.effect, rule.agents, rule.tools, rule.operations, rule.is_unconditional, rule.times is None
        found.setdefault(key, rule)
    return tuple(found.values())


def _warn_nothing_left(
    agent: Agent, chosen: dict[str, ToolFacts], listed: frozenset[str], path: RawPath, report: Report
) -> None:
    """Warn about AllowedOperations rules that together leave nothing of a tool."""
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
    """Warn about tools in the agent's list that do not exist without a root."""
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


def _list_of(policy: Policy, agent: Agent, chosen: dict[str, ToolFacts]) -> frozenset[str]:
    if agent.tools is not None:
        return bare_names(agent.tools, chosen.values())
    return frozenset(chosen) if policy.defaults.unlisted_tools is Verdict.ALLOW else frozenset()
