"""The boxes of one agent during an edit: its list of tools, AllowedOperations rules and ``approvals``.

The values are arranged by tool, so that each of a thousand tools costs one small step. The file stays readable: the app
edits one AllowedOperations rule per tool, the only one or the one with the app's id, and leaves an author's several
rules alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from gatewright.base.errors import EditRefused
from gatewright.policy.document import Agent, Policy
from gatewright.policy.right import OperationFacts, ToolFacts
from gatewright.policy.rule import ANY_TOOL, AllowedOperations, ToolRule
from gatewright.policy.rulematch import with_settings
from gatewright.policy.verdict import (
    TIER_DEFAULTS,
    SafetyTier,
    Verdict,
    deciding_keys,
    names_tool,
    pick_tools,
    split_name,
)

APP_RULE_PREFIX = "app:"
TIERS = tuple(str(tier) for tier in SafetyTier)


class Boxes:
    """The agent's own list, rules and ``approvals``; ``agent`` is the agent with all changes so far.

    Tick each tool at most once: ``tick`` ignores the rules that an earlier tick added.
    """

    def __init__(self, policy: Policy, agent: Agent, catalog: Iterable[ToolFacts]) -> None:
        self._policy, self._agent = policy, agent
        self._catalog = tuple(catalog)
        self._facts = pick_tools(self._catalog, agent.tools)
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
        """The agent with all changes; the same object if nothing differs."""
        tools = None if self._listed is None else tuple(name for held in self._listed.values() for name in held)
        before = self._agent.tools
        if tools is not None and before is not None and sorted(tools) == sorted(before):
            tools = before  # only further majors of a tool moved
        rules = (*self._rules.values(), *self._new_rules)
        after = replace(self._agent, tools=tools, tool_rules=rules, approvals=self._approvals)
        return self._agent if after == self._agent else after

    @property
    def tools(self) -> tuple[ToolFacts, ...]:
        """The tools that the agent could have, with the policy's own settings for them."""
        return tuple(with_settings(self._policy, facts) for facts in self._facts.values())

    def facts(self, tool: str) -> ToolFacts:
        """The facts of one of ``tools``. Raises EditRefused for an unknown name."""
        found = self._facts.get(tool)
        if found is None:
            raise EditRefused(f"no tool `{tool}`")
        return with_settings(self._policy, found)

    # boxes

    def ticks(self, facts: ToolFacts) -> frozenset[str]:
        """The operations with a tick."""
        return self._rest_after(self._limits_on(facts), facts) if self._is_listed(facts) else frozenset()

    def could(self, facts: ToolFacts) -> frozenset[str]:
        """The operations that can get a tick: no rule of an author leaves them out."""
        app_rule = self.app_rule(facts)
        return self._rest_after([index for index in self._limits_on(facts) if index != app_rule], facts)

    def waiting(self, facts: ToolFacts) -> frozenset[str]:
        """The operations to turn on with the whole tool: those that its dormant rules list, else all."""
        every = frozenset(operation.name for operation in facts.operations)
        return every if self._is_listed(facts) else self._rest_after(self._limits_on(facts), facts) or every

    def app_rule(self, facts: ToolFacts) -> int | None:
        """The index of the AllowedOperations rule that the app edits; None if it would add one."""
        found = [i for i in self._limits_on(facts) if not self._rules[i].conditions]
        found = [i for i in found if self._rules[i].tool_name != ANY_TOOL]
        if len(found) == 1:
            return found[0]
        return next((i for i in found if (self._rules[i].rule_id or "").startswith(APP_RULE_PREFIX)), None)

    def tick(self, facts: ToolFacts, wanted: frozenset[str]) -> None:
        """Leave exactly these operations on. Raises EditRefused if an author's rule forbids one."""
        if wanted:
            self._refuse_if_limited(facts, wanted)
        self.tick_what_can_be(facts, wanted)

    def tick_what_can_be(self, facts: ToolFacts, wanted: frozenset[str]) -> frozenset[str]:
        """Leave on those operations that an author's rules permit; return the others."""
        can = wanted & self.could(facts)
        if not can:
            self._take_off(facts)
        elif can != self.ticks(facts):
            if not self._is_listed(facts):
                self._explicit_list().setdefault(facts.name, []).append(facts.name)
            self._keep(facts, can)
        return wanted - can

    def forget(self, facts: ToolFacts) -> None:
        """Remove the app's rule and the ``approvals`` keys of the tool."""
        index = self.app_rule(facts)
        if index is not None:
            del self._rules[index]
            self._limits[facts.name].remove(index)
        for key in (facts.name, *(f"{facts.name}.{name}" for name in facts.operation_names)):
            self._approvals.pop(key, None)

    # approvals

    def approval(self, facts: ToolFacts, operation: OperationFacts) -> Verdict:
        """The verdict of the most specific ``approvals`` key, else of the tier."""
        return self._approval(facts, operation.name, operation.tier)

    def own_approval(self, facts: ToolFacts, operation: OperationFacts) -> str | None:
        """The agent's own key that decides the operation; None if another place decides."""
        own, everyone = self._approvals, self._policy.defaults.approvals
        for key in deciding_keys(facts.name, operation.name, operation.tier):
            if key in own:
                return key
            if key in everyone:
                return None
        return None

    def ask(self, facts: ToolFacts, operation: str, *, on: bool) -> None:
        """Set or clear *ask first* for an operation (``""``: for the tool), with as few keys as possible.

        A denial by ``[defaults]`` survives: where one key for the tool would lift it, the other operations get keys of
        their own.
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
        """Replace all keys."""
        self._approvals = dict(approvals)

    def _stays_denied(self, facts: ToolFacts, operation: OperationFacts) -> bool:
        """Tell whether ``[defaults]`` deny the operation even without the agent's own denials."""
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

    def _explicit_list(self) -> dict[str, list[str]]:
        """The list of tools in writing; an agent without one may have had every tool."""
        if self._listed is None:
            held = self._policy.defaults.unlisted_tools is Verdict.ALLOW
            chosen = pick_tools(self._catalog, None).values() if held else ()
            self._listed = _by_name(facts.name for facts in chosen if not facts.outmoded)
        return self._listed

    def _take_off(self, facts: ToolFacts) -> None:
        listed = self._explicit_list()
        rest = [name for name in listed.pop(facts.name, ()) if not names_tool(name, facts.name, facts.major)]
        if rest:
            listed[facts.name] = rest

    # the app's rules

    def _limits_on(self, facts: ToolFacts) -> list[int]:
        """The AllowedOperations rules for the tool, in file order."""
        named = self._limits.get(facts.name, ())
        found = [i for i in named if names_tool(self._rules[i].tool_name, facts.name, facts.major)]
        return sorted((*found, *self._limits.get(ANY_TOOL, ())))

    def _rest_after(self, limits: Iterable[int], facts: ToolFacts) -> frozenset[str]:
        left = frozenset(operation.name for operation in facts.operations)
        for index in limits:
            left &= self._operations_of(index)
        return left

    def _operations_of(self, index: int) -> frozenset[str]:
        kind = self._rules[index].rule_type
        assert isinstance(kind, AllowedOperations)
        return kind.operations

    def _keep(self, facts: ToolFacts, wanted: frozenset[str]) -> None:
        if not facts.has_operations:
            return
        index = self.app_rule(facts)
        if index is not None:
            self._rules[index] = replace(self._rules[index], rule_type=AllowedOperations(wanted))
        elif wanted != self.could(facts):
            limited = bool(self._limits_on(facts))
            name = f"{APP_RULE_PREFIX}{facts.name}" if limited else None
            self._new_rules.append(ToolRule(facts.name, AllowedOperations(wanted), rule_id=name))

    def _refuse_if_limited(self, facts: ToolFacts, wanted: frozenset[str]) -> None:
        app_rule = self.app_rule(facts)
        for index in self._limits_on(facts):
            if index != app_rule and (missing := wanted - self._operations_of(index)):
                named = ", ".join(f"`{name}`" for name in sorted(missing))
                where = f"tool rule {index + 1} of `{self._agent.agent_id}`"
                raise EditRefused(f"{named} of `{facts.name}` is turned off by {where}")


def _by_name(tools: Iterable[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for written in tools:
        found.setdefault(split_name(written)[0], []).append(written)
    return found
