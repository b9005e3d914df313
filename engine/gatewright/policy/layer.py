"""One agent's part of a policy, arranged by tool: what every layer says to each of its operations. It knows no calls.

Made once for a policy and an agent, asked for one tool at a time, so that an edit costs the tools that it concerns.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from gatewright.policy.granted import granted_kinds, lacking
from gatewright.policy.reach import Reach, source_rules
from gatewright.policy.right import Layer, OperationFacts, OperationRight, Reason, ToolFacts, ToolRight
from gatewright.policy.rule import ANY_TOOL, AllowedOperations, ArgumentConstraints, RequiresConsent, ToolRule
from gatewright.policy.rulecheck import misfit, setting_misfit
from gatewright.policy.rulematch import Numbered, certain, rules_for_agent, rules_for_operation, rules_for_tool
from gatewright.policy.setting import overridden
from gatewright.policy.tier import TIER_DEFAULTS, SafetyTier
from gatewright.policy.toolname import names_tool, split_name
from gatewright.policy.verdict import Verdict, strictest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from gatewright.base.problem import Address
    from gatewright.policy.document import Agent, Policy, Source

_ANY_MAJOR: tuple[int | None, ...] = (None,)
_NONE: list[Reason] = []
_Numbered = tuple[int, ToolRule]
_Placed = tuple["Address | None", ToolRule]


class Layers:
    """What the policy says to one agent. ``closed``: what else closes a tool whole, and why."""

    def __init__(
        self,
        policy: Policy,
        agent: Agent,
        sources: tuple[Source, ...] | None = None,
        closed: Callable[[ToolFacts], Reason | None] | None = None,
    ) -> None:
        self.policy = policy
        self.agent = agent
        self.sources = policy.sources_of(agent) if sources is None else sources
        self.granted = granted_kinds(agent.capabilities)
        self._closed = closed
        self._reach = Reach(agent, self.sources)
        self._policy_rules = rules_for_agent(policy, agent.agent_id)
        self._rules = _by_tool(agent.tool_rules)
        self._listed = None if agent.tools is None else _listed_names(agent.tools)

    def rules(self, facts: ToolFacts) -> tuple[_Numbered, ...]:
        """The agent's rules that name the tool (or ``*``) with their index in the file, highest priority first."""
        named, everywhere = self._rules.get(facts.name), self._rules.get(ANY_TOOL)
        if named is None and everywhere is None:
            return ()
        found = [row for row in named or () if names_tool(row[1].tool_name, facts.name, facts.major)]
        if everywhere is None and len(found) < 2:
            return tuple(found)
        found += everywhere or ()
        return tuple(sorted(found, key=lambda row: (-row[1].priority, row[0])))

    def policy_rules(self, facts: ToolFacts) -> tuple[Numbered, ...]:
        """The policy rules that may match a call of the tool, with their index."""
        rules = self._policy_rules
        return rules_for_tool(rules, facts.name, facts.major) if rules else ()

    def right(self, facts: ToolFacts, shut: Reason | None = None) -> ToolRight:
        """The agent's right on one tool; ``shut``: what closes it whole, when that is known already."""
        facts = overridden(self.policy, facts)
        unlisted = self._listing(facts)
        rules = self.rules(facts)
        whole = tuple(reason for reason in (unlisted, shut or self._shut(facts, rules)) if reason is not None)
        rows = _Rows(self, facts, unlisted, rules, whole)
        return ToolRight(facts, unlisted is None, tuple([rows.row(op) for op in facts.operations]), whole)

    def closing(self, facts: ToolFacts) -> Reason | None:
        """What of the policy, as it is written, closes the tool whole."""
        facts = overridden(self.policy, facts)
        return self._shut(facts, self.rules(facts))

    def approval(self, facts: ToolFacts, op: OperationFacts) -> tuple[Verdict, Address | None]:
        """The verdict of the most specific ``approvals`` key and where it stands."""
        own, everyone = self.agent.approvals, self.policy.defaults.approvals
        if own or everyone:
            keys = [f"{facts.name}.{op.name}"] if op.name else []
            for key in (*keys, facts.name, str(op.tier)):
                if key in own:
                    return own[key], ("agents", self.agent.agent_id, "approvals", key)
                if key in everyone:
                    return everyone[key], ("defaults", "approvals", key)
        return TIER_DEFAULTS[op.tier], None

    def reach(self, facts: ToolFacts, op: OperationFacts) -> Reason | None:
        """What the agent's sources say to the operation, whatever the path."""
        return self._reach.reason(facts, op)

    def _listing(self, facts: ToolFacts) -> Reason | None:
        agent = self.agent
        if self._listed is None:
            if self.policy.defaults.unlisted_tools is Verdict.ALLOW:
                return None
            text = f"agent `{agent.agent_id}` lists no tools and the defaults deny unlisted ones"
            return Reason(Layer.TOOLS, Verdict.DENY, "unlisted-tool", text, ("defaults", "unlisted_tools"))
        majors = self._listed.get(facts.name)
        if majors is not None and (None in majors or facts.major in majors):
            return None
        text = f"`{facts.name}` is not among the tools of agent `{agent.agent_id}`"
        return Reason(Layer.TOOLS, Verdict.DENY, "tool-not-listed", text, ("agents", agent.agent_id, "tools"))

    def _shut(self, facts: ToolFacts, rules: tuple[_Numbered, ...]) -> Reason | None:
        """Why the tool cannot be enforced as the policy is written."""
        wrong = next(
            (found for address, rule in self._placed(facts, rules) if (found := misfit(facts, rule, address))), None
        )
        wrong = wrong or setting_misfit(self.policy, facts)
        return wrong or (self._closed(facts) if self._closed is not None else None)

    def _placed(self, facts: ToolFacts, rules: tuple[_Numbered, ...]) -> Iterator[_Placed]:
        """Every rule on the tool with its address: the agent's, those of its sources, the tool's own."""
        for index, rule in rules:
            yield ("agents", self.agent.agent_id, "tool_rules", index), rule
        for source in self.sources:
            if source.required_tools:
                for index, rule in source_rules(source, facts):
                    yield ("sources", source.source_id, "required_tools", index), rule
        for rule in facts.tool_rules:
            if names_tool(rule.tool_name, facts.name, facts.major):
                yield None, rule


class _Rows:
    """The rows of one tool; what is the same for all its operations is looked up once."""

    def __init__(
        self,
        layers: Layers,
        facts: ToolFacts,
        unlisted: Reason | None,
        rules: tuple[_Numbered, ...],
        whole: tuple[Reason, ...],
    ) -> None:
        self._layers = layers
        self._facts = facts
        self._unlisted = unlisted
        self._whole = whole
        agent_id = layers.agent.agent_id
        placed: list[_Placed] = [(("agents", agent_id, "tool_rules", index), rule) for index, rule in rules]
        placed += [(None, rule) for rule in facts.tool_rules if names_tool(rule.tool_name, facts.name, facts.major)]
        self._limits = [
            (address, rule, rule.rule_type.operations)
            for address, rule in placed
            if isinstance(rule.rule_type, AllowedOperations)
        ]
        self._limiting: dict[int, Reason] = {}
        self._refusals = list(_refusals(facts, placed)) if facts.selection is not None else []
        self._consents = [row for row in placed if isinstance(row[1].rule_type, RequiresConsent)]
        self._policy_rules = layers.policy_rules(facts)
        self._policy_speaks = bool(self._policy_rules) or layers.policy.default is not Verdict.ALLOW
        self._has_approvals = bool(layers.agent.approvals or layers.policy.defaults.approvals)
        speaks = self._policy_speaks or self._has_approvals or facts.needs_source
        self._may_say_more = speaks or bool(self._consents) or bool(self._refusals)

    def row(self, op: OperationFacts) -> OperationRight:
        """The right on one operation; reasons that deny come first, each kind in the order of the stages."""
        limits = list(self._limited(op)) if self._limits else _NONE
        more = self._may_say_more or op.capabilities or TIER_DEFAULTS[op.tier] is not Verdict.ALLOW
        reasons = (*self._whole, *limits, *self._others(op)) if more else (*self._whole, *limits)
        if not reasons:
            return _plain(op.name, op.tier)
        if len(reasons) > 1:
            reasons = tuple(sorted(reasons, key=_denies_not))
        ticked = self._unlisted is None and all(reason.address is None for reason in limits)
        verdict = reasons[0].verdict if len(reasons) == 1 else strictest(*(reason.verdict for reason in reasons))
        return OperationRight(op.name, ticked, verdict, op.tier, reasons)

    def _others(self, op: OperationFacts) -> Iterator[Reason]:
        layers, facts = self._layers, self._facts
        yield from (reason for rule, refused, reason in self._refusals if op.name in refused and rule.binds(op.name))
        if op.capabilities and (lack := lacking(layers.agent, layers.granted, facts, op)):
            yield lack
        if self._policy_speaks:
            rules = rules_for_operation(self._policy_rules, op.name)
            if says := certain(layers.policy, rules, _called(facts, op)):
                yield says
        if facts.needs_source and (reach := layers.reach(facts, op)):
            yield reach
        if approval := self._approval(op):
            yield approval
        for address, rule in self._consents:
            if rule.binds(op.name) and isinstance(rule.rule_type, RequiresConsent):
                scope = f" (scope {rule.rule_type.scope})" if rule.rule_type.scope else ""
                text = f"`{facts.name}` requires consent{scope}"
                yield Reason(Layer.RULE, Verdict.ASK, "requires-consent", text, address, rule.rule_id)

    def _limited(self, op: OperationFacts) -> Iterator[Reason]:
        for index, (address, rule, operations) in enumerate(self._limits):
            if op.name not in operations:
                yield self._limiting.get(index) or self._limit(index, address, rule, operations)

    def _limit(self, index: int, address: Address | None, rule: ToolRule, operations: frozenset[str]) -> Reason:
        """What a rule says to all that it leaves out: one object, put into words once."""
        whose = f" for agent `{self._layers.agent.agent_id}`" if address else " by its own rule"
        text = f"`{self._facts.name}` is limited to {_listed(operations)}{whose}"
        reason = Reason(Layer.RULE, Verdict.DENY, "operation-not-allowed", text, address, rule.rule_id)
        return self._limiting.setdefault(index, reason)

    def _approval(self, op: OperationFacts) -> Reason | None:
        verdict, address = self._layers.approval(self._facts, op)
        if verdict is Verdict.ALLOW:
            return None
        what = _called(self._facts, op)
        why = f"by the approvals key `{address[-1]}`" if address else f"as its tier is {op.tier}"
        if verdict is Verdict.DENY:
            return Reason(Layer.APPROVALS, verdict, "approvals-deny", f"{what} is denied {why}", address)
        return Reason(Layer.APPROVALS, verdict, "approval-needed", f"{what} asks first {why}", address)


def _refusals(facts: ToolFacts, placed: list[_Placed]) -> Iterator[tuple[ToolRule, frozenset[str], Reason]]:
    """The constraints on what carries the operation, with the operations that no call under them can name."""
    for address, rule in placed:
        kind, selection = rule.rule_type, facts.selection
        if not isinstance(kind, ArgumentConstraints) or selection is None:
            continue
        for name, schema in kind.fields.items():
            if refused := selection.refused(name, schema):
                text = f"a constraint on `{name}` of `{facts.name}` refuses {_listed(refused)}"
                yield (
                    rule,
                    refused,
                    Reason(Layer.RULE, Verdict.DENY, "argument-constraint", text, address, rule.rule_id),
                )


def _denies_not(reason: Reason) -> bool:
    return reason.verdict is not Verdict.DENY


@lru_cache(maxsize=65_536)
def _plain(name: str, tier: SafetyTier) -> OperationRight:
    """The right that nothing limits, one object for everybody who has it."""
    return OperationRight(name, ticked=True, verdict=Verdict.ALLOW, tier=tier)


def _by_tool(rules: tuple[ToolRule, ...]) -> dict[str, list[_Numbered]]:
    found: dict[str, list[_Numbered]] = {}
    for index, rule in enumerate(rules):
        written = rule.tool_name
        bare = split_name(written)[0] if "@" in written else written
        found.setdefault(bare, []).append((index, rule))
    return found


@lru_cache(maxsize=512)
def _listed_names(tools: tuple[str, ...]) -> Mapping[str, tuple[int | None, ...]]:
    """The listed majors by bare name (None: any of them)."""
    found: dict[str, tuple[int | None, ...]] = {}
    for written in tools:
        name, major = split_name(written) if "@" in written else (written, None)
        if name != ANY_TOOL:
            found[name] = (*found[name], major) if name in found else _ANY_MAJOR if major is None else (major,)
    return found


def _called(facts: ToolFacts, op: OperationFacts) -> str:
    return f"`{facts.name}.{op.name}`" if op.name else f"`{facts.name}`"


def _listed(names: frozenset[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names)) or "no operation at all"
