"""One agent's part of a policy, arranged by tool: what every layer says to each of its operations.

Made once for a policy and an agent, asked for one tool at a time, so that an edit costs the tools that it concerns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache

from gatewright.base.late import once
from gatewright.base.problem import Address
from gatewright.policy.document import Agent, Policy, Source
from gatewright.policy.kinds.capability import FsRead, FsWrite
from gatewright.policy.reach import (
    Reach,
    bounded,
    disk_outcomes,
    granted_kinds,
    label_outcomes,
    lacking,
    level_outcomes,
    path_condition,
    source_rules,
)
from gatewright.policy.right import Layer, Limit, OperationFacts, OperationRight, Reason, ToolFacts, ToolRight
from gatewright.policy.rule import (
    ANY_TOOL,
    AllowedOperations,
    ArgumentConstraints,
    ContinueLoop,
    PolicyRule,
    RequiresConsent,
    RuleKind,
    ToolRule,
)
from gatewright.policy.rulematch import (
    Numbered,
    certain,
    misfit,
    outcomes,
    overridden,
    rules_for_agent,
    rules_for_operation,
    rules_for_tool,
    setting_misfit,
    settings_of,
)
from gatewright.policy.verdict import (
    TIER_DEFAULTS,
    Action,
    SafetyTier,
    Verdict,
    deciding_keys,
    names_tool,
    split_name,
    stricter,
    strictest,
)

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
        self.sources = policy.places_of(agent) if sources is None else sources
        self.provides = policy.provides
        self.granted = granted_kinds(agent.capabilities)
        self._closed = closed
        self.reach = Reach(agent, self.sources)
        self._policy_rules = rules_for_agent(policy, agent.agent_id)
        self.speaks = bool(
            self._policy_rules or policy.default is not Verdict.ALLOW or agent.approvals or policy.defaults.approvals
        )
        """Whether policy rules, their default or keys of ``approvals`` may deny some operation, or ask."""
        self.kinds: set[type[RuleKind]] = set()
        """The kinds of the agent's rules."""
        self._texts: dict[Action, frozenset[Verdict]] = {}
        self._rules: dict[str, list[_Numbered]] = {}
        for index, rule in enumerate(agent.tool_rules):
            name = rule.tool_name
            self.kinds.add(type(rule.rule_type))
            self._rules.setdefault(split_name(name)[0] if "@" in name else name, []).append((index, rule))
        self._waiting = frozenset([one.catalog_id for one in policy.catalogs if one.waits_for_places])
        self._listed = None if agent.tools is None else _listed_names(agent.tools)

    def text_outcomes(self, action: Action) -> frozenset[Verdict]:
        """What levels of all sources say that is stricter than allowing the action."""
        found = self._texts.get(action)
        if found is None:
            found = self._texts[action] = stricter(level_outcomes(self.policy.file_sources, (action,)), Verdict.ALLOW)
        return found

    def rules(self, facts: ToolFacts) -> tuple[_Numbered, ...]:
        """The agent's rules that name the tool (or ``*``) with their index in the file, highest priority first."""
        named, everywhere = self._rules.get(facts.name, ()), self._rules.get(ANY_TOOL, ())
        found = [row for row in named if names_tool(row[1].tool_name, facts.name, facts.major)]
        found += everywhere
        return tuple(sorted(found, key=lambda row: (-row[1].priority, row[0])) if len(found) > 1 else found)

    def policy_rules(self, facts: ToolFacts) -> tuple[Numbered, ...]:
        """The policy rules that may match a call of the tool, with their index."""
        return rules_for_tool(self._policy_rules, facts.name, facts.major)

    def right(self, facts: ToolFacts, shut: Reason | None = None) -> ToolRight:
        """The agent's right on one tool; ``shut``: what closes it whole, when that is known already."""
        facts = overridden(self.policy, facts)
        rules = self.placed(facts)
        unlisted, shut = self._unlisted(facts), shut or self._shut(facts, rules)
        whole = tuple([reason for reason in (unlisted, shut) if reason is not None]) if unlisted or shut else ()
        rows = _Rows(self, facts, rules, whole, unlisted is None)
        shown = _NOTHING if whole else rows.shown
        return ToolRight(facts, unlisted is None, whole, rows.ticked, shown, rows.all)

    def closing(self, facts: ToolFacts) -> Reason | None:
        """What of the policy, as it is written, closes the tool whole."""
        facts = overridden(self.policy, facts)
        return self._shut(facts, self.placed(facts))

    def placed(self, facts: ToolFacts) -> list[_Placed]:
        """The agent's rules on the tool, then the tool's own, each with its address."""
        agent_id = self.agent.agent_id
        found: list[_Placed] = [(("agents", agent_id, "tool_rules", index), rule) for index, rule in self.rules(facts)]
        found += [(None, rule) for rule in facts.tool_rules if names_tool(rule.tool_name, facts.name, facts.major)]
        return found

    def _unlisted(self, facts: ToolFacts) -> Reason | None:
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

    def _shut(self, facts: ToolFacts, rules: list[_Placed]) -> Reason | None:
        """Why nobody may see the tool yet, or why it cannot be enforced as the policy is written."""
        if facts.held:
            text = f"`{facts.name}` is held until the operator accepts it: {facts.held}"
            return Reason(Layer.TOOLS, Verdict.DENY, "tool-held", text, ("catalogs", facts.origin))
        if facts.origin in self._waiting:
            text = f"`{facts.name}` is held until it was accepted what the process of its server gets"
            return Reason(Layer.TOOLS, Verdict.DENY, "places-not-accepted", text, ("catalogs", facts.origin))
        theirs = [
            (("sources", source.source_id, "required_tools", index), rule)
            for source in self.sources
            for index, rule in source_rules(source, facts)
        ]
        in_order = sorted((*rules, *theirs), key=lambda one: one[0] is None) if theirs else rules  # the tool's own last
        for address, rule in in_order:
            if wrong := misfit(facts, rule, address):
                return wrong
        wrong = setting_misfit(self.policy, facts) if self.policy.tools else None
        return wrong or (self._closed(facts) if self._closed is not None else None)


class _Rows:
    """The rows of one tool; what is the same for all its operations is looked up once. ``whole``: what denies all."""

    def __init__(
        self, layers: Layers, facts: ToolFacts, rules: list[_Placed], whole: tuple[Reason, ...], listed: bool
    ) -> None:
        self._layers = layers
        self._facts = facts
        self._rules = rules
        self._whole = whole
        self._listed = listed

    @once
    def ticked(self) -> frozenset[str]:
        """The operations whose box is ticked: what the agent's own list and rules allow."""
        left = self._facts.operations if self._listed else ()
        for address, rule in self._rules:
            kind = rule.rule_type
            if address is not None and isinstance(kind, AllowedOperations):
                left = [op for op in left if op.name in kind.operations]
        return _shared(frozenset([op.name for op in left]))

    @once
    def shown(self) -> frozenset[str]:
        """The operations that no layer denies, of a tool that none closes whole."""
        left, needy = self._facts.operations, self._layers.speaks or self._facts.needs_source
        for _, rule in self._rules:
            kind = rule.rule_type
            if isinstance(kind, AllowedOperations):
                left = [op for op in left if op.name in kind.operations]
            needy = needy or isinstance(kind, ArgumentConstraints)
        if needy or any(op.capabilities or op.needs for op in left):
            left = [op for op in left if all(reason.verdict is not Verdict.DENY for reason in self._others(op))]
        return _shared(frozenset([op.name for op in left]))

    def all(self) -> tuple[OperationRight, ...]:
        """The right on each operation."""
        return tuple([self._row(op) for op in self._facts.operations])

    @once
    def _refusals(self) -> list[tuple[ToolRule, frozenset[str], Reason]]:
        """The constraints on what carries the operation, with the operations that no call under them can name."""
        found: list[tuple[ToolRule, frozenset[str], Reason]] = []
        for address, rule in self._rules:
            kind, selection = rule.rule_type, self._facts.selection
            if isinstance(kind, ArgumentConstraints) and selection is not None:
                for name, schema in kind.fields.items():
                    if refused := selection.refused(name, schema):
                        text = f"a constraint on `{name}` of `{self._facts.name}` refuses {_listed(refused)}"
                        why = Reason(Layer.RULE, Verdict.DENY, "argument-constraint", text, address, rule.rule_id)
                        found.append((rule, refused, why))
        return found

    @once
    def _lists(self) -> list[tuple[frozenset[str], Reason]]:
        """The operations that each rule allows, and what it says to the others."""
        found: list[tuple[frozenset[str], Reason]] = []
        for address, rule in self._rules:
            if isinstance(rule.rule_type, AllowedOperations):
                whose = f" for agent `{self._layers.agent.agent_id}`" if address else " by its own rule"
                text = f"`{self._facts.name}` is limited to {_listed(rule.rule_type.operations)}{whose}"
                reason = Reason(Layer.RULE, Verdict.DENY, "operation-not-allowed", text, address, rule.rule_id)
                found.append((rule.rule_type.operations, reason))
        return found

    @once
    def _narrowing(self) -> list[ToolRule]:
        """All rules that some call may run into, those of the sources too."""
        rules = [rule for _, rule in self._rules]
        rules += [rule for source in self._layers.sources for _, rule in source_rules(source, self._facts)]
        return [rule for rule in rules if not isinstance(rule.rule_type, _NARROW_NOTHING)]

    @once
    def _policy_rules(self) -> tuple[Numbered, ...]:
        return self._layers.policy_rules(self._facts)

    @once
    def _may_say_more(self) -> bool:
        """Whether any layer but the agent's list and rules may deny some call of any operation, or ask."""
        consents = any(isinstance(rule.rule_type, RequiresConsent) for _, rule in self._rules)
        return self._layers.speaks or self._facts.needs_source or consents or bool(self._refusals)

    def _row(self, op: OperationFacts) -> OperationRight:
        """The right on one operation; reasons that deny come first, each kind in the order of the stages."""
        left_out = tuple([reason for operations, reason in self._lists if op.name not in operations])
        reasons = self._whole + left_out
        asks = TIER_DEFAULTS[op.tier] is not Verdict.ALLOW
        if self._may_say_more or op.capabilities or op.paths or op.needs or asks:
            reasons = tuple(sorted((*reasons, *self._others(op)), key=lambda one: one.verdict is not Verdict.DENY))
        elif not reasons and not self._narrowing and not op.labels and not op.disk_actions:
            return _plain(op.name, op.tier, self._by_text(op))
        verdict = strictest(*[reason.verdict for reason in reasons])
        limits, by_path, by_value, by_block, by_text = (), _SAME, _SAME, _SAME, _SAME
        if verdict is not Verdict.DENY:
            rules = [rule for rule in self._narrowing if rule.binds(op.name)]
            asked = rules_for_operation(self._policy_rules, op.name)
            conditions = [rule for _, rule in asked if not rule.is_unconditional]
            limits = (*rules, *conditions, *(bounded(self._layers.agent, op) if op.capabilities else ()))
            by_path, by_value = self._depending(op, verdict, limits)
            by_block = self._by_block(op, verdict) if op.labels else _SAME
            by_text = stricter(self._by_text(op), verdict)
        if not (reasons or limits or by_path or by_value or by_block):
            return _plain(op.name, op.tier, by_text)
        return OperationRight(
            op.name, op.name in self.ticked, verdict, op.tier, reasons, by_path, by_value, limits, by_block, by_text
        )

    def _depending(
        self, op: OperationFacts, verdict: Verdict, limits: tuple[Limit, ...]
    ) -> tuple[frozenset[Verdict], frozenset[Verdict]]:
        """What is stricter than the verdict for some calls: by the files they name, by anything else in them."""
        layers, facts = self._layers, self._facts
        by_path, by_value = layers.reach.outcomes(facts, op) if facts.needs_source else (_SAME, _SAME)
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
        if op.paths or op.disk_actions:
            by_path |= disk_outcomes(layers.policy, op)
        if op.commands:  # programs that no list has are denied
            by_value |= _DENIALS
        if self._policy_rules or layers.policy.default is not Verdict.ALLOW:
            rules = rules_for_operation(self._policy_rules, op.name)
            if all(rule.is_unconditional or path_condition(rule, op) is not None for _, rule in rules):
                by_path |= outcomes(layers.policy, rules)
            else:
                by_value |= outcomes(layers.policy, rules)
        return stricter(by_path, verdict), stricter(by_value, verdict)

    def _by_block(self, op: OperationFacts, verdict: Verdict) -> frozenset[Verdict]:
        """What calls come to by the block that they name, or by the file that it is of."""
        by_file, by_level = self._layers.reach.outcomes(self._facts, op)
        return stricter(label_outcomes(op) | by_file | by_level, verdict)

    def _by_text(self, op: OperationFacts) -> frozenset[Verdict]:
        """What calls come to in which a text that nobody declared is a path into a source."""
        if op.holds_texts or (op.takes_others and not self._is_closed):
            return self._layers.text_outcomes(op.text_action)
        return _SAME

    @once
    def _is_closed(self) -> bool:
        """Whether settings, or something hidden, close a tool to arguments that its schema does not name."""
        facts, settings = self._facts, settings_of(self._layers.policy, self._facts.name, self._facts.major)
        if settings is not None and settings.extra_arguments is not None:
            return settings.extra_arguments is Verdict.DENY
        return facts.extra_arguments is None and len(self.shown) < len(facts.operations)

    def _others(self, op: OperationFacts) -> Iterator[Reason]:
        layers, facts = self._layers, self._facts
        yield from (reason for rule, refused, reason in self._refusals if op.name in refused and rule.binds(op.name))
        if op.needs and op.needs not in layers.provides:
            text = f"{_called(facts, op)} needs an endpoint, and `[workspace] endpoints` has no `{op.name}`"
            yield Reason(Layer.TOOLS, Verdict.DENY, "no-endpoint", text, ("workspace", "endpoints"))
        if op.capabilities and (lack := lacking(layers.agent, layers.granted, facts, op)):
            yield lack
        if self._policy_rules or layers.policy.default is not Verdict.ALLOW:
            rules = rules_for_operation(self._policy_rules, op.name)
            if says := certain(layers.policy, rules, _called(facts, op)):
                yield says
        if reach := layers.reach.reason(facts, op):
            yield reach
        if approval := self._approval(op):
            yield approval
        for address, rule in self._rules:
            if isinstance(rule.rule_type, RequiresConsent) and rule.binds(op.name):
                scope = rule.rule_type.scope
                text = f"`{facts.name}` requires consent{f' (scope {scope})' if scope else ''}"
                yield Reason(Layer.RULE, Verdict.ASK, "requires-consent", text, address, rule.rule_id)

    def _approval(self, op: OperationFacts) -> Reason | None:
        """What the most specific ``approvals`` key says, else the tier."""
        agent, everyone = self._layers.agent, self._layers.policy.defaults.approvals
        verdict, address = TIER_DEFAULTS[op.tier], None
        for key in deciding_keys(self._facts.name, op.name, op.tier):
            if key in agent.approvals:
                verdict, address = agent.approvals[key], ("agents", agent.agent_id, "approvals", key)
                break
            if key in everyone:
                verdict, address = everyone[key], ("defaults", "approvals", key)
                break
        if verdict is Verdict.ALLOW:
            return None
        what = _called(self._facts, op)
        why = f"by the approvals key `{address[-1]}`" if address else f"as its tier is {op.tier}"
        if verdict is Verdict.DENY:
            return Reason(Layer.APPROVALS, verdict, "approvals-deny", f"{what} is denied {why}", address)
        return Reason(Layer.APPROVALS, verdict, "approval-needed", f"{what} asks first {why}", address)


@lru_cache(maxsize=16_384)
def _shared(names: frozenset[str]) -> frozenset[str]:
    """The same set for equal ones, since many agents see the same of a tool."""
    return names


@lru_cache(maxsize=65_536)
def _plain(name: str, tier: SafetyTier, by_text: frozenset[Verdict]) -> OperationRight:
    """The right that nothing else limits, one object for everybody who has it."""
    return OperationRight(name, ticked=True, verdict=Verdict.ALLOW, tier=tier, by_text=by_text)


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
