"""One agent's part of a policy, arranged by tool: the verdict of every layer on each of its operations.

It is built once for a policy and an agent, then asked for one tool at a time, so that an edit costs only the tools that
it affects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache

from gatewright.base.errors import Address
from gatewright.base.late import once
from gatewright.policy.capability import FsRead, FsWrite
from gatewright.policy.document import Agent, Policy, Source
from gatewright.policy.reach import (
    NO_SOURCE,
    Reach,
    bounds,
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
from gatewright.policy.rulekind import consent_words
from gatewright.policy.rulematch import (
    Numbered,
    certain,
    misfit,
    outcomes,
    rules_for_agent,
    rules_for_operation,
    rules_for_tool,
    setting_misfit,
    settings_of,
    with_settings,
)
from gatewright.policy.verdict import (
    TIER_DEFAULTS,
    Action,
    Mode,
    SafetyTier,
    Verdict,
    deciding_keys,
    names_tool,
    selector_of,
    split_name,
    stricter,
    strictest,
)

_NOTHING = frozenset[str]()
_DENIALS = frozenset({Verdict.DENY})
_SAME = frozenset[Verdict]()
"""The outcomes of an operation whose calls all get the operation's verdict."""
_NARROW_NOTHING = (AllowedOperations, ContinueLoop)
"""Rules that limit no call: the boxes themselves, and rules that continue the loop."""
_Numbered = tuple[int, ToolRule]
_Placed = tuple["Address | None", ToolRule]


class Layers:
    """The policy for one agent. ``closed``: a further reason that closes a tool whole.

    ``observes``: an observed agent or catalog gets what it would get without the denials and asks that are only noted.
    """

    def __init__(
        self,
        policy: Policy,
        agent: Agent,
        sources: tuple[Source, ...] | None = None,
        closed: Callable[[ToolFacts], Reason | None] | None = None,
        *,
        observes: bool = False,
    ) -> None:
        self.policy = policy
        self.agent = agent
        self.sources = policy.places_of(agent) if sources is None else sources
        self.provides = policy.provides
        self.granted = granted_kinds(agent.capabilities)
        self._closed = closed
        catalogs = policy.catalogs if observes else ()
        self._observed = frozenset(one.catalog_id for one in catalogs if one.mode is Mode.OBSERVE)
        self._is_observed = observes and agent.mode is Mode.OBSERVE
        self.reach = Reach(agent, self.sources)
        self._policy_rules = rules_for_agent(policy, agent.agent_id)
        self.speaks = bool(
            self._policy_rules or policy.default is not Verdict.ALLOW or agent.approvals or policy.defaults.approvals
        )
        """True if policy rules, their default or ``approvals`` may deny an operation, or ask."""
        self.kinds: set[type[RuleKind]] = set()
        """The kinds of the agent's rules."""
        self._texts: dict[Action, frozenset[Verdict]] = {}
        self._rules: dict[str, list[_Numbered]] = {}
        for index, rule in enumerate(agent.tool_rules):
            name = rule.tool_name
            self.kinds.add(type(rule.rule_type))
            self._rules.setdefault(split_name(name)[0] if "@" in name else name, []).append((index, rule))
        self._waiting = frozenset([one.catalog_id for one in policy.catalogs if one.waits_for_places])
        self._listed = None if agent.tools is None else _majors_by_name(agent.tools)

    def passes(self, facts: ToolFacts) -> bool:
        """Tell whether denials and asks on the tool's calls are only noted."""
        return self._is_observed or facts.origin in self._observed

    def text_outcomes(self, action: Action) -> frozenset[Verdict]:
        """The verdicts stricter than allow that the levels of all sources give for the action."""
        found = self._texts.get(action)
        if found is None:
            found = self._texts[action] = stricter(level_outcomes(self.policy.file_sources, (action,)), Verdict.ALLOW)
        return found

    def rules(self, facts: ToolFacts) -> tuple[_Numbered, ...]:
        """The agent's rules for the tool (or ``*``) with their index in the file, highest priority first."""
        named, everywhere = self._rules.get(facts.name, ()), self._rules.get(ANY_TOOL, ())
        found = [row for row in named if names_tool(row[1].tool_name, facts)]
        found += everywhere
        return tuple(sorted(found, key=lambda row: (-row[1].priority, row[0])) if len(found) > 1 else found)

    def policy_rules(self, facts: ToolFacts) -> tuple[Numbered, ...]:
        """The policy rules that may match a call of the tool, with their index."""
        return rules_for_tool(self._policy_rules, facts)

    def right(self, facts: ToolFacts, shut: Reason | None = None) -> ToolRight:
        """The agent's right on one tool; ``shut``: the reason that closes the whole tool, if known already."""
        facts = with_settings(self.policy, facts)
        rules = self.rules_with_address(facts)
        unlisted, shut = self._list_reason(facts), shut or self._shut(facts, rules)
        whole = tuple([reason for reason in (unlisted, shut) if reason is not None]) if unlisted or shut else ()
        rows = _Rows(self, facts, rules, whole, unlisted is None)
        shown = _NOTHING if whole else rows.visible
        return ToolRight(facts, unlisted is None, whole, rows.ticks, shown, rows.all)

    def closing_reason(self, facts: ToolFacts) -> Reason | None:
        """The reason why the policy as written closes the whole tool, if any."""
        facts = with_settings(self.policy, facts)
        return self._shut(facts, self.rules_with_address(facts))

    def rules_with_address(self, facts: ToolFacts) -> list[_Placed]:
        """The agent's rules on the tool with their addresses, then the tool's own rules without."""
        agent_id = self.agent.agent_id
        found: list[_Placed] = [(("agents", agent_id, "tool_rules", index), rule) for index, rule in self.rules(facts)]
        found += [(None, rule) for rule in facts.tool_rules if names_tool(rule.tool_name, facts)]
        return found

    def _list_reason(self, facts: ToolFacts) -> Reason | None:
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
        if selector_of(facts.origin) in self._listed:
            return None
        text = f"`{facts.name}` is not among the tools of agent `{agent.agent_id}`"
        return Reason(Layer.TOOLS, Verdict.DENY, "tool-not-listed", text, ("agents", agent.agent_id, "tools"))

    def _shut(self, facts: ToolFacts, rules: list[_Placed]) -> Reason | None:
        """The reason that hides the tool for now, or that makes the policy on it unenforceable."""
        if facts.held:
            text = f"`{facts.name}` is held until the operator accepts it: {facts.held}"
            return Reason(Layer.TOOLS, Verdict.DENY, "tool-held", text, ("catalogs", facts.origin))
        if facts.origin in self._waiting:
            text = f"`{facts.name}` is held until the places of its server's process are accepted"
            return Reason(Layer.TOOLS, Verdict.DENY, "places-not-accepted", text, ("catalogs", facts.origin))
        theirs = [
            (("sources", source.source_id, "required_tools", index), rule)
            for source in self.sources
            for index, rule in source_rules(source, facts)
        ]
        # the tool's own rules come last
        in_order = sorted((*rules, *theirs), key=lambda one: one[0] is None) if theirs else rules
        for address, rule in in_order:
            if wrong := misfit(facts, rule, address):
                return wrong
        wrong = setting_misfit(self.policy, facts) if self.policy.tools else None
        return wrong or (self._closed(facts) if self._closed is not None else None)


class _Rows:
    """The rights on one tool's operations, which share their work. ``whole``: the reasons that deny all operations."""

    def __init__(
        self, layers: Layers, facts: ToolFacts, rules: list[_Placed], whole: tuple[Reason, ...], listed: bool
    ) -> None:
        self._layers = layers
        self._facts = facts
        self._rules = rules
        self._whole = whole
        self._listed = listed
        self._passes = layers.passes(facts)

    @once
    def ticks(self) -> frozenset[str]:
        """The operations with a tick: those that the agent's own list and rules allow."""
        left = self._facts.operations if self._listed else ()
        for address, rule in self._rules:
            kind = rule.rule_type
            if address is not None and isinstance(kind, AllowedOperations):
                left = [op for op in left if op.name in kind.operations]
        return _share(frozenset([op.name for op in left]))

    @once
    def visible(self) -> frozenset[str]:
        """The operations that no layer denies; none if a reason closes the whole tool."""
        left, needy = self._facts.operations, self._layers.speaks or self._facts.needs_source
        for _, rule in self._rules:
            kind = rule.rule_type
            if isinstance(kind, AllowedOperations):
                left = [op for op in left if op.name in kind.operations]
            needy = needy or isinstance(kind, ArgumentConstraints)
        if needy or any(op.capabilities or op.needs for op in left):
            left = [op for op in left if all(reason.verdict is not Verdict.DENY for reason in self._others(op))]
        return _share(frozenset([op.name for op in left]))

    def all(self) -> tuple[OperationRight, ...]:
        """The right on each operation."""
        return tuple([self._row(op) for op in self._facts.operations])

    @once
    def _refusals(self) -> list[tuple[ToolRule, frozenset[str], Reason]]:
        """The constraints on the field that selects operations, each with the operations that it excludes."""
        found: list[tuple[ToolRule, frozenset[str], Reason]] = []
        for address, rule in self._rules:
            kind, selection = rule.rule_type, self._facts.selection
            if isinstance(kind, ArgumentConstraints) and selection is not None:
                for name, schema in kind.fields.items():
                    if refused := selection.refused(name, schema):
                        text = f"a constraint on `{name}` of `{self._facts.name}` refuses {_in_words(refused)}"
                        why = Reason(Layer.RULE, Verdict.DENY, "argument-constraint", text, address, rule.rule_id)
                        found.append((rule, refused, why))
        return found

    @once
    def _lists(self) -> list[tuple[frozenset[str], Reason]]:
        """The operations that each rule allows, and its reason for denying the others."""
        found: list[tuple[frozenset[str], Reason]] = []
        for address, rule in self._rules:
            if isinstance(rule.rule_type, AllowedOperations):
                whose = f" for agent `{self._layers.agent.agent_id}`" if address else " by its own rule"
                text = f"`{self._facts.name}` is limited to {_in_words(rule.rule_type.operations)}{whose}"
                reason = Reason(Layer.RULE, Verdict.DENY, "operation-not-allowed", text, address, rule.rule_id)
                found.append((rule.rule_type.operations, reason))
        return found

    @once
    def _narrowing(self) -> list[ToolRule]:
        """All rules that may limit some call, including those of the sources."""
        rules = [rule for _, rule in self._rules]
        rules += [rule for source in self._layers.sources for _, rule in source_rules(source, self._facts)]
        return [rule for rule in rules if not isinstance(rule.rule_type, _NARROW_NOTHING)]

    @once
    def _policy_rules(self) -> tuple[Numbered, ...]:
        return self._layers.policy_rules(self._facts)

    @once
    def _may_say_more(self) -> bool:
        """True if a layer besides the agent's list and rules may deny a call, or ask."""
        consents = any(isinstance(rule.rule_type, RequiresConsent) for _, rule in self._rules)
        return self._layers.speaks or self._facts.needs_source or consents or bool(self._refusals)

    def _row(self, op: OperationFacts) -> OperationRight:
        """The right on one operation; denials come first, reasons of one verdict in the order of the stages."""
        left_out = tuple([reason for operations, reason in self._lists if op.name not in operations])
        reasons = self._whole + left_out
        if self._passes:
            reasons = (*reasons, *self._others(op))
            if not reasons:
                return _plain(op.name, op.tier, _SAME)
            return OperationRight(op.name, op.name in self.ticks, Verdict.DENY, op.tier, reasons)
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
            limits = (*rules, *conditions, *(bounds(self._layers.agent, op) if op.capabilities else ()))
            by_path, by_value = self._dependent(op, verdict, limits)
            by_block = self._by_block(op, verdict) if op.labels else _SAME
            by_text = stricter(self._by_text(op), verdict)
        if not (reasons or limits or by_path or by_value or by_block):
            return _plain(op.name, op.tier, by_text)
        return OperationRight(
            op.name, op.name in self.ticks, verdict, op.tier, reasons, by_path, by_value, limits, by_block, by_text
        )

    def _dependent(
        self, op: OperationFacts, verdict: Verdict, limits: tuple[Limit, ...]
    ) -> tuple[frozenset[Verdict], frozenset[Verdict]]:
        """The verdicts stricter than the general one: those that depend on files, and those that depend on other
        values.
        """
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
        if op.commands:  # programs outside the list are denied
            by_value |= _DENIALS
        if self._policy_rules or layers.policy.default is not Verdict.ALLOW:
            rules = rules_for_operation(self._policy_rules, op.name)
            if all(rule.is_unconditional or path_condition(rule, op) is not None for _, rule in rules):
                by_path |= outcomes(layers.policy, rules)
            else:
                by_value |= outcomes(layers.policy, rules)
        return stricter(by_path, verdict), stricter(by_value, verdict)

    def _by_block(self, op: OperationFacts, verdict: Verdict) -> frozenset[Verdict]:
        """The verdicts that depend on the call's block, or on the file behind it."""
        by_file, by_level = self._layers.reach.outcomes(self._facts, op)
        return stricter(label_outcomes(op) | by_file | by_level, verdict)

    def _by_text(self, op: OperationFacts) -> frozenset[Verdict]:
        """The verdicts that depend on undeclared texts that may be paths into a source."""
        if op.holds_texts or (op.takes_others and not self._is_closed):
            return self._layers.text_outcomes(op.text_action)
        return _SAME

    @once
    def _is_closed(self) -> bool:
        """True if settings, or a hidden operation, refuse arguments that the schema does not name."""
        facts, settings = self._facts, settings_of(self._layers.policy, self._facts.name, self._facts.major)
        if settings is not None and settings.extra_arguments is not None:
            return settings.extra_arguments is Verdict.DENY
        return facts.extra_arguments is None and len(self.visible) < len(facts.operations)

    def _others(self, op: OperationFacts) -> Iterator[Reason]:
        layers, facts = self._layers, self._facts
        if not self._passes:
            refusals = self._refusals
            yield from (reason for rule, refused, reason in refusals if op.name in refused and rule.binds(op.name))
        if op.needs and op.needs not in layers.provides:
            text = f"{_title(facts, op)} needs an endpoint, and `[workspace] endpoints` has no `{op.name}`"
            yield Reason(Layer.TOOLS, Verdict.DENY, "no-endpoint", text, ("workspace", "endpoints"))
        if self._passes:
            if (reach := layers.reach.reason(facts, op)) and reach.code == NO_SOURCE:
                yield reach
            return
        if op.capabilities and (lack := lacking(layers.agent, layers.granted, facts, op)):
            yield lack
        if self._policy_rules or layers.policy.default is not Verdict.ALLOW:
            rules = rules_for_operation(self._policy_rules, op.name)
            if says := certain(layers.policy, rules, _title(facts, op)):
                yield says
        if reach := layers.reach.reason(facts, op):
            yield reach
        if approval := self._approval(op):
            yield approval
        for address, rule in self._rules:
            if isinstance(rule.rule_type, RequiresConsent) and rule.binds(op.name):
                scope = rule.rule_type.scope
                text = consent_words(f"`{facts.name}`", scope)
                yield Reason(Layer.RULE, Verdict.ASK, "requires-consent", text, address, rule.rule_id)

    def _approval(self, op: OperationFacts) -> Reason | None:
        """The reason from the most specific ``approvals`` key, else from the tier."""
        agent, everyone = self._layers.agent, self._layers.policy.defaults.approvals
        verdict, address = TIER_DEFAULTS[op.tier], None
        for key in deciding_keys(self._facts, op.name, op.tier):
            if key in agent.approvals:
                verdict, address = agent.approvals[key], ("agents", agent.agent_id, "approvals", key)
                break
            if key in everyone:
                verdict, address = everyone[key], ("defaults", "approvals", key)
                break
        if verdict is Verdict.ALLOW:
            return None
        what = _title(self._facts, op)
        why = f"by the approvals key `{address[-1]}`" if address else f"as its tier is {op.tier}"
        if verdict is Verdict.DENY:
            return Reason(Layer.APPROVALS, verdict, "approvals-deny", f"{what} is denied {why}", address)
        return Reason(Layer.APPROVALS, verdict, "approval-needed", f"{what} asks first {why}", address)


@lru_cache(maxsize=16_384)
def _share(names: frozenset[str]) -> frozenset[str]:
    """Share one object among equal sets, since many agents see the same operations of a tool."""
    return names


@lru_cache(maxsize=65_536)
def _plain(name: str, tier: SafetyTier, by_text: frozenset[Verdict]) -> OperationRight:
    """An unlimited right; all who have the same one share one object."""
    return OperationRight(name, ticked=True, verdict=Verdict.ALLOW, tier=tier, by_text=by_text)


@lru_cache(maxsize=512)
def _majors_by_name(tools: tuple[str, ...]) -> Mapping[str, tuple[int | None, ...]]:
    """The listed majors by bare name (None: any); ``catalog:ID`` stands as written."""
    found: dict[str, tuple[int | None, ...]] = {}
    for written in tools:
        name, major = split_name(written)
        found[name] = (*found.get(name, ()), major)
    return found


def _title(facts: ToolFacts, op: OperationFacts) -> str:
    return f"`{facts.name}.{op.name}`" if op.name else f"`{facts.name}`"


def _in_words(names: frozenset[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names)) or "no operation at all"
