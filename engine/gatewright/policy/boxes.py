"""The boxes of one agent while they are changed: its list of tools, kept rules and ``approvals``. It makes no edit.

Arranged by tool, so that a thousand tools cost a thousand small steps. The file stays readable: one AllowedOperations
rule per tool is kept, the only one there is or the one with the app's id; an author's several rules are never merged.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from gatewright.base.errors import EditRefused
from gatewright.policy.document import Agent, Policy
from gatewright.policy.right import OperationFacts, ToolFacts
from gatewright.policy.rule import ANY_TOOL, AllowedOperations, ToolRule
from gatewright.policy.rulematch import overridden
from gatewright.policy.verdict import (
    TIER_DEFAULTS,
    SafetyTier,
    Verdict,
    chosen_tools,
    deciding_keys,
    names_tool,
    split_name,
)

APP_RULE_PREFIX = "app:"
TIERS = tuple(str(tier) for tier in SafetyTier)


class Boxes:
    """What an agent's own list, rules and ``approvals`` say; ``agent`` is the agent with everything that was set.

    Each tool is ticked once at most: rules that are written meanwhile are not looked at again.
    """

    def __init__(self, policy: Policy, agent: Agent, catalog: Iterable[ToolFacts]) -> None:
        self._policy, self._agent = policy, agent
        self._catalog = tuple(catalog)
        self._facts = chosen_tools(self._catalog, agent.tools)
        self._listed: dict[str, list[str]] | None = None if agent.tools is None else _by_name(agent.tools)
        self._rules: dict[int, ToolRule] = dict(enumerate(agent.tool_rules))
        self._new_rules: list[ToolRule] = []
        self._limits: dict[str, list[int]] = {}
        for index, rule in enumerate(agent.tool_rules):
            if isinstance(rule.rule_type, AllowedOperations):
                self._limits.setdefault(split_name(rule.tool_name)[0], []).append(index)
        self._approvals = dict(agent.approvals)

    @property
    def agent(self) -> Agent:
        """The agent as it is now; the very one it was while nothing differs."""
        tools = None if self._listed is None else tuple(name for held in self._listed.values() for name in held)
        before = self._agent.tools
        if tools is not None and before is not None and sorted(tools) == sorted(before):
            tools = before  # only the place of further majors of a tool differs
        rules = (*self._rules.values(), *self._new_rules)
        after = replace(self._agent, tools=tools, tool_rules=rules, approvals=self._approvals)
        return self._agent if after == self._agent else after

    @property
    def tools(self) -> tuple[ToolFacts, ...]:
        """The tools that the agent could have, each as the policy's settings change it."""
        return tuple(overridden(self._policy, facts) for facts in self._facts.values())

    def facts(self, tool: str) -> ToolFacts:
        """One of ``tools``. Raises EditRefused when there is none of that name."""
        found = self._facts.get(tool)
        if found is None:
            raise EditRefused(f"no tool `{tool}`")
        return overridden(self._policy, found)

    # boxes

    def ticked(self, facts: ToolFacts) -> frozenset[str]:
        """The operations whose box is ticked."""
        return self._left_by(self._limits_on(facts), facts) if self._is_listed(facts) else frozenset()

    def could(self, facts: ToolFacts) -> frozenset[str]:
        """The operations that no rule of an author leaves out: those whose box can be ticked."""
        kept = self.kept(facts)
        return self._left_by([index for index in self._limits_on(facts) if index != kept], facts)

    def waiting(self, facts: ToolFacts) -> frozenset[str]:
        """What ticking the whole tool leaves on: of a tool that is off what its rules, which wait, list; else all."""
        every = frozenset(operation.name for operation in facts.operations)
        return every if self._is_listed(facts) else self._left_by(self._limits_on(facts), facts) or every

    def kept(self, facts: ToolFacts) -> int | None:
        """The index of the AllowedOperations rule that the app edits, or None when it would write a new one."""
        found = [i for i in self._limits_on(facts) if not self._rules[i].conditions]
        found = [i for i in found if self._rules[i].tool_name != ANY_TOOL]
        if len(found) == 1:
            return found[0]
        return next((i for i in found if (self._rules[i].rule_id or "").startswith(APP_RULE_PREFIX)), None)

    def tick(self, facts: ToolFacts, wanted: frozenset[str]) -> None:
        """Leave exactly these operations on. Raises EditRefused when an author's rule stands in the way."""
        if wanted:
            self._refuse_if_limited(facts, wanted)
        self.tick_what_can_be(facts, wanted)

    def tick_what_can_be(self, facts: ToolFacts, wanted: frozenset[str]) -> frozenset[str]:
        """Leave these operations on as far as an author's rules let them be; those that cannot be."""
        can = wanted & self.could(facts)
        if not can:
            self._take_off(facts)
        elif can != self.ticked(facts):
            if not self._is_listed(facts):
                self._written_list().setdefault(facts.name, []).append(facts.name)
            self._keep(facts, can)
        return wanted - can

    def forget(self, facts: ToolFacts) -> None:
        """Remove the kept rule and the ``approvals`` keys of the tool itself."""
        index = self.kept(facts)
        if index is not None:
            del self._rules[index]
            self._limits[facts.name].remove(index)
        for key in (facts.name, *(f"{facts.name}.{name}" for name in facts.operation_names)):
            self._approvals.pop(key, None)

    # approvals

    def approval(self, facts: ToolFacts, operation: OperationFacts) -> Verdict:
        """What the most specific ``approvals`` key says of an operation."""
        return self._approval(facts, operation.name, operation.tier)

    def own_approval(self, facts: ToolFacts, operation: OperationFacts) -> str | None:
        """The agent's own key that decides it; None when another place does."""
        own, everyone = self._approvals, self._policy.defaults.approvals
        for key in deciding_keys(facts.name, operation.name, operation.tier):
            if key in own:
                return key
            if key in everyone:
                return None
        return None

    def ask(self, facts: ToolFacts, operation: str, *, on: bool) -> None:
        """Write the key of an operation (``""``: of the tool) that makes it ask, or one that stops it, if need be.

        What ``[defaults]`` deny stays denied: where one key of the tool would open that too, its other operations get
        keys of their own.
        """
        held, denied = dict(self._approvals), [op for op in facts.operations if self._stays_denied(facts, op)]
        key = f"{facts.name}.{operation}" if operation else facts.name
        self._approvals.pop(key, None)
        tier = next((op.tier for op in facts.operations if op.name == operation), facts.tier)
        if on:
            self._approvals[key] = Verdict.ASK
        elif self._approval(facts, operation, tier) is Verdict.ASK:
            self._approvals[key] = Verdict.ALLOW
        if not all(self._stays_denied(facts, op) for op in denied):
            self._approvals = held
            for op in () if operation else facts.operations:
                if op.name and op not in denied:
                    self.ask(facts, op.name, on=on)

    def set_approvals(self, approvals: Mapping[str, Verdict]) -> None:
        """These keys and no others."""
        self._approvals = dict(approvals)

    def _stays_denied(self, facts: ToolFacts, operation: OperationFacts) -> bool:
        """Whether ``[defaults]`` deny it, were the agent's own denials gone."""
        everyone = self._policy.defaults.approvals
        for key in deciding_keys(facts.name, operation.name, operation.tier):
            if self._approvals.get(key, Verdict.DENY) is not Verdict.DENY:
                return False
            if key in everyone:
                return everyone[key] is Verdict.DENY
        return False

    def _approval(self, facts: ToolFacts, operation: str, tier: SafetyTier) -> Verdict:
        own, everyone = self._approvals, self._policy.defaults.approvals
        for key in deciding_keys(facts.name, operation, tier):
            if key in own:
                return own[key]
            if key in everyone:
                return everyone[key]
        return TIER_DEFAULTS[tier]

    # the list of tools

    def _is_listed(self, facts: ToolFacts) -> bool:
        if self._listed is None:
            return self._policy.defaults.unlisted_tools is Verdict.ALLOW and not facts.outmoded
        return any(names_tool(name, facts.name, facts.major) for name in self._listed.get(facts.name, ()))

    def _written_list(self) -> dict[str, list[str]]:
        """The list as it has to be written down; an agent without one may have held every tool."""
        if self._listed is None:
            held = self._policy.defaults.unlisted_tools is Verdict.ALLOW
            chosen = chosen_tools(self._catalog, None).values() if held else ()
            self._listed = _by_name(facts.name for facts in chosen if not facts.outmoded)
        return self._listed

    def _take_off(self, facts: ToolFacts) -> None:
        listed = self._written_list()
        rest = [name for name in listed.pop(facts.name, ()) if not names_tool(name, facts.name, facts.major)]
        if rest:
            listed[facts.name] = rest

    # the kept rules

    def _limits_on(self, facts: ToolFacts) -> list[int]:
        """The AllowedOperations rules that concern the tool, in the order of the file."""
        named = self._limits.get(facts.name, ())
        found = [i for i in named if names_tool(self._rules[i].tool_name, facts.name, facts.major)]
        return sorted((*found, *self._limits.get(ANY_TOOL, ())))

    def _left_by(self, limits: Iterable[int], facts: ToolFacts) -> frozenset[str]:
        left = frozenset(operation.name for operation in facts.operations)
        for index in limits:
            left &= self._allowed_by(index)
        return left

    def _allowed_by(self, index: int) -> frozenset[str]:
        kind = self._rules[index].rule_type
        assert isinstance(kind, AllowedOperations)
        return kind.operations

    def _keep(self, facts: ToolFacts, wanted: frozenset[str]) -> None:
        if not facts.has_operations:
            return
        index = self.kept(facts)
        if index is not None:
            self._rules[index] = replace(self._rules[index], rule_type=AllowedOperations(wanted))
        elif wanted != self.could(facts):
            limited = bool(self._limits_on(facts))
            name = f"{APP_RULE_PREFIX}{facts.name}" if limited else None
            self._new_rules.append(ToolRule(facts.name, AllowedOperations(wanted), rule_id=name))

    def _refuse_if_limited(self, facts: ToolFacts, wanted: frozenset[str]) -> None:
        kept = self.kept(facts)
        for index in self._limits_on(facts):
            if index != kept and (missing := wanted - self._allowed_by(index)):
                named = ", ".join(f"`{name}`" for name in sorted(missing))
                where = f"tool rule {index + 1} of `{self._agent.agent_id}`"
                raise EditRefused(f"{named} of `{facts.name}` is turned off by {where}")


def _by_name(tools: Iterable[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for written in tools:
        found.setdefault(split_name(written)[0], []).append(written)
    return found
