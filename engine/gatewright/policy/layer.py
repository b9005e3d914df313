"""One agent's part of a policy, arranged by tool: what every layer says to each of its operations.

Made once for a policy and an agent, asked for one tool at a time, so that an edit costs the tools that it concerns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache

from gatewright.base.problem import Address
from gatewright.policy.document import Agent, Policy, Source
from gatewright.policy.granted import bounded, granted_kinds, lacking
from gatewright.policy.kinds.capability import FsRead, FsWrite
from gatewright.policy.place_right import path_condition
from gatewright.policy.policyrule import PolicyRule
from gatewright.policy.reach import Reach, path_outcomes, source_rules
from gatewright.policy.right import Layer, Limit, OperationFacts, OperationRight, Reason, ToolFacts, ToolRight
from gatewright.policy.rule import (
    ANY_TOOL,
    AllowedOperations,
    ArgumentConstraints,
    ContinueLoop,
    RequiresConsent,
    ToolRule,
)
from gatewright.policy.rulecheck import misfit, setting_misfit
from gatewright.policy.rulematch import (
    Numbered,
    certain,
    outcomes,
    rules_for_agent,
    rules_for_operation,
    rules_for_tool,
)
from gatewright.policy.setting import overridden
from gatewright.policy.tier import TIER_DEFAULTS, SafetyTier, deciding_keys
from gatewright.policy.toolname import names_tool, split_name
from gatewright.policy.verdict import Verdict, stricter, strictest

_NOTHING = frozenset[str]()
_DENIALS = frozenset({Verdict.DENY})
_SAME = frozenset[Verdict]()
"""No call comes to anything stricter than the verdict."""
_NARROW_NOTHING = (AllowedOperations, ContinueLoop)
"""Rules that no call runs into: the boxes themselves, and what goes without saying."""
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
        self.provides = policy.provides
        self.granted = granted_kinds(agent.capabilities)
        self._closed = closed
        self._reach = Reach(agent, self.sources)
        self._policy_rules = rules_for_agent(policy, agent.agent_id)
        self._rules = _by_tool(agent.tool_rules)
        self._listed = None if agent.tools is None else _listed_names(agent.tools)

    def rules(self, facts: ToolFacts) -> tuple[_Numbered, ...]:
        """The agent's rules that name the tool (or ``*``) with their index in the file, highest priority first."""
        named, everywhere = self._rules.get(facts.name, ()), self._rules.get(ANY_TOOL, ())
        found = [row for row in named if names_tool(row[1].tool_name, facts.name, facts.major)]
        found += everywhere
        return tuple(sorted(found, key=lambda row: (-row[1].priority, row[0])))

    def policy_rules(self, facts: ToolFacts) -> tuple[Numbered, ...]:
        """The policy rules that may match a call of the tool, with their index."""
        return rules_for_tool(self._policy_rules, facts.name, facts.major)

    def right(self, facts: ToolFacts, shut: Reason | None = None) -> ToolRight:
        """The agent's right on one tool; ``shut``: what closes it whole, when that is known already."""
        facts = overridden(self.policy, facts)
        unlisted = self._listing(facts)
        rules = self.rules(facts)
        whole = tuple([reason for reason in (unlisted, shut or self._shut(facts, rules)) if reason is not None])
        rows = _Rows(self, facts, unlisted, rules, whole)
        return ToolRight(facts, unlisted is None, whole, rows.shown(), rows.all)

    def closing(self, facts: ToolFacts) -> Reason | None:
        """What of the policy, as it is written, closes the tool whole."""
        facts = overridden(self.policy, facts)
        return self._shut(facts, self.rules(facts))

    def approval(self, facts: ToolFacts, op: OperationFacts) -> tuple[Verdict, Address | None]:
        """The verdict of the most specific ``approvals`` key and where it stands."""
        own, everyone = self.agent.approvals, self.policy.defaults.approvals
        for key in deciding_keys(facts.name, op.name, op.tier):
            if key in own:
                return own[key], ("agents", self.agent.agent_id, "approvals", key)
            if key in everyone:
                return everyone[key], ("defaults", "approvals", key)
        return TIER_DEFAULTS[op.tier], None

    def reach(self, facts: ToolFacts, op: OperationFacts) -> Reason | None:
        """What the agent's sources say to the operation, whatever the path."""
        return self._reach.reason(facts, op)

    def outcomes(self, facts: ToolFacts, op: OperationFacts) -> tuple[frozenset[Verdict], frozenset[Verdict]]:
        """What the agent's sources make of calls of the operation: by their path, by what they do there."""
        return self._reach.outcomes(facts, op)

    def _listing(self, facts: ToolFacts) -> Reason | None:
        agent = self.agent
        if self._listed is None:
            if self.policy.defaults.unlisted_tools is Verdict.ALLOW:
                if not facts.outmoded:
                    return None
                text = f"`{facts.name}` is outmoded: only an agent that lists it in its `tools` has it"
                return Reason(Layer.TOOLS, Verdict.DENY, "outmoded-tool", text, ("agents", agent.agent_id))
            text = f"agent `{agent.agent_id}` lists no tools and the defaults deny unlisted ones"
            return Reason(Layer.TOOLS, Verdict.DENY, "unlisted-tool", text, ("defaults", "unlisted_tools"))
        majors = self._listed.get(facts.name)
        if majors is not None and (None in majors or facts.major in majors):
            return None
        text = f"`{facts.name}` is not among the tools of agent `{agent.agent_id}`"
        return Reason(Layer.TOOLS, Verdict.DENY, "tool-not-listed", text, ("agents", agent.agent_id, "tools"))

    def _shut(self, facts: ToolFacts, rules: tuple[_Numbered, ...]) -> Reason | None:
        """Why nobody may see the tool yet, or why it cannot be enforced as the policy is written."""
        if facts.held:
            text = f"`{facts.name}` is held until the operator accepts it: {facts.held}"
            return Reason(Layer.TOOLS, Verdict.DENY, "tool-held", text, ("catalogs", facts.origin))
        for address, rule in self._placed(facts, rules):
            if wrong := misfit(facts, rule, address):
                return wrong
        return setting_misfit(self.policy, facts) or (self._closed(facts) if self._closed is not None else None)

    def _placed(self, facts: ToolFacts, rules: tuple[_Numbered, ...]) -> Iterator[_Placed]:
        """Every rule on the tool with its address: the agent's, those of its sources, the tool's own."""
        for index, rule in rules:
            yield ("agents", self.agent.agent_id, "tool_rules", index), rule
        for source in self.sources:
            for index, rule in source_rules(source, facts):
                yield ("sources", source.source_id, "required_tools", index), rule
        for rule in facts.tool_rules:
            if names_tool(rule.tool_name, facts.name, facts.major):
                yield None, rule


class _Rows:
    """The rows of one tool; what is the same for all its operations is looked up once. ``whole``: what denies all."""

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
        self._lists: list[tuple[frozenset[str], Reason]] = []
        """The operations that each rule allows, and what it says to the others."""
        self._consents: list[tuple[Address | None, ToolRule, str | None]] = []
        self._narrowing_rules: list[ToolRule] = []
        for address, rule in placed:
            if isinstance(rule.rule_type, AllowedOperations):
                whose = f" for agent `{agent_id}`" if address else " by its own rule"
                text = f"`{facts.name}` is limited to {_listed(rule.rule_type.operations)}{whose}"
                reason = Reason(Layer.RULE, Verdict.DENY, "operation-not-allowed", text, address, rule.rule_id)
                self._lists.append((rule.rule_type.operations, reason))
            elif not isinstance(rule.rule_type, ContinueLoop):
                self._narrowing_rules.append(rule)
                if isinstance(rule.rule_type, RequiresConsent):
                    self._consents.append((address, rule, rule.rule_type.scope))
        theirs = [rule for source in layers.sources for _, rule in source_rules(source, facts)]
        self._narrowing_rules += [rule for rule in theirs if not isinstance(rule.rule_type, _NARROW_NOTHING)]
        self._refusals = list(_refusals(facts, placed))
        self._policy_rules = layers.policy_rules(facts)
        self._policy_speaks = bool(self._policy_rules) or layers.policy.default is not Verdict.ALLOW
        self._may_say_more = bool(
            self._policy_speaks
            or layers.agent.approvals
            or layers.policy.defaults.approvals
            or facts.needs_source
            or self._consents
            or self._refusals
        )

    def shown(self) -> frozenset[str]:
        """The operations that no layer denies."""
        if self._whole:
            return _NOTHING
        return _shared(frozenset([op.name for op in self._facts.operations if not self._is_denied(op)]))

    def all(self) -> tuple[OperationRight, ...]:
        """The right on each operation."""
        return tuple([self._row(op) for op in self._facts.operations])

    def _is_denied(self, op: OperationFacts) -> bool:
        for operations, _ in self._lists:
            if op.name not in operations:
                return True
        return self._says_more(op) and any(reason.verdict is Verdict.DENY for reason in self._others(op))

    def _says_more(self, op: OperationFacts) -> bool:
        """Whether any layer but the agent's list and rules may deny some call of it or ask."""
        on_disk = op.paths and self._layers.policy.file_sources
        asks = TIER_DEFAULTS[op.tier] is not Verdict.ALLOW
        return bool(self._may_say_more or op.capabilities or on_disk or asks or op.needs)

    def _row(self, op: OperationFacts) -> OperationRight:
        """The right on one operation; reasons that deny come first, each kind in the order of the stages."""
        left_out = tuple([reason for operations, reason in self._lists if op.name not in operations])
        reasons = self._whole + left_out
        ticked = self._unlisted is None and all(reason.address is None for reason in left_out)
        more = self._says_more(op)
        if not (more or reasons or self._narrowing_rules):
            return _plain(op.name, op.tier)
        if more:
            reasons = tuple(sorted((*reasons, *self._others(op)), key=_denies_not))
        verdict = strictest(*(reason.verdict for reason in reasons))
        if verdict is Verdict.DENY:
            limits, by_path, by_value = (), _SAME, _SAME
        else:
            limits = self._limits_of(op)
            by_path, by_value = self._depending(op, verdict, limits)
        if not reasons and not limits and not by_path and not by_value:
            return _plain(op.name, op.tier)
        return OperationRight(op.name, ticked, verdict, op.tier, reasons, by_path, by_value, limits)

    def _limits_of(self, op: OperationFacts) -> tuple[Limit, ...]:
        """All that narrows the calls of an operation that is not denied."""
        rules = [rule for rule in self._narrowing_rules if rule.binds(op.name)]
        asked = rules_for_operation(self._policy_rules, op.name)
        conditions = [rule for _, rule in asked if not rule.is_unconditional]
        return (*rules, *conditions, *(bounded(self._layers.agent, op) if op.capabilities else ()))

    def _depending(
        self, op: OperationFacts, verdict: Verdict, limits: tuple[Limit, ...]
    ) -> tuple[frozenset[Verdict], frozenset[Verdict]]:
        """What is stricter than the verdict for some calls: by the files they name, by anything else in them."""
        layers, facts = self._layers, self._facts
        by_path, by_value = layers.outcomes(facts, op) if facts.needs_source else (_SAME, _SAME)
        for limit in limits:
            match limit:
                case FsRead() | FsWrite():
                    by_path |= _DENIALS
                case ToolRule(rule_type=kind) if not isinstance(kind, ArgumentConstraints):
                    pass
                case PolicyRule():
                    pass
                case _ if path_condition(limit, op) is not None:
                    by_path |= _DENIALS
                case _:
                    by_value |= _DENIALS
        if op.paths:
            by_path |= path_outcomes(layers.policy.file_sources, op)
        if self._policy_speaks:
            rules = rules_for_operation(self._policy_rules, op.name)
            if all(rule.is_unconditional or path_condition(rule, op) is not None for _, rule in rules):
                by_path |= outcomes(layers.policy, rules)
            else:
                by_value |= outcomes(layers.policy, rules)
        return stricter(by_path, verdict), stricter(by_value, verdict)

    def _others(self, op: OperationFacts) -> Iterator[Reason]:
        layers, facts = self._layers, self._facts
        yield from (reason for rule, refused, reason in self._refusals if op.name in refused and rule.binds(op.name))
        if op.needs and op.needs not in layers.provides:
            text = f"{_called(facts, op)} needs an endpoint, and `[workspace] endpoints` has no `{op.name}`"
            yield Reason(Layer.TOOLS, Verdict.DENY, "no-endpoint", text, ("workspace", "endpoints"))
        if op.capabilities and (lack := lacking(layers.agent, layers.granted, facts, op)):
            yield lack
        if self._policy_speaks:
            rules = rules_for_operation(self._policy_rules, op.name)
            if says := certain(layers.policy, rules, _called(facts, op)):
                yield says
        if reach := layers.reach(facts, op):
            yield reach
        if approval := self._approval(op):
            yield approval
        for address, rule, scope in self._consents:
            if rule.binds(op.name):
                text = f"`{facts.name}` requires consent{f' (scope {scope})' if scope else ''}"
                yield Reason(Layer.RULE, Verdict.ASK, "requires-consent", text, address, rule.rule_id)

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


@lru_cache(maxsize=16_384)
def _shared(names: frozenset[str]) -> frozenset[str]:
    """The same set for equal ones, since many agents see the same of a tool."""
    return names


@lru_cache(maxsize=65_536)
def _plain(name: str, tier: SafetyTier) -> OperationRight:
    """The right that nothing limits, one object for everybody who has it."""
    return OperationRight(name, ticked=True, verdict=Verdict.ALLOW, tier=tier)


def _by_tool(rules: tuple[ToolRule, ...]) -> dict[str, list[_Numbered]]:
    found: dict[str, list[_Numbered]] = {}
    for index, rule in enumerate(rules):
        found.setdefault(split_name(rule.tool_name)[0], []).append((index, rule))
    return found


@lru_cache(maxsize=512)
def _listed_names(tools: tuple[str, ...]) -> Mapping[str, tuple[int | None, ...]]:
    """The listed majors by bare name (None: any of them)."""
    found: dict[str, tuple[int | None, ...]] = {}
    for written in tools:
        name, major = split_name(written)
        found[name] = (*found.get(name, ()), major)
    return found


def _called(facts: ToolFacts, op: OperationFacts) -> str:
    return f"`{facts.name}.{op.name}`" if op.name else f"`{facts.name}`"


def _listed(names: frozenset[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names)) or "no operation at all"
