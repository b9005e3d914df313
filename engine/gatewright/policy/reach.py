"""What an agent's sources let an operation do at best: their levels and their own limits.

A source's ``required_tools`` bind only calls that go to it, so an operation is hidden when no source lets it through.
"""

from __future__ import annotations

from collections.abc import Iterable

from gatewright.base.problem import Address
from gatewright.policy.document import Agent, Source
from gatewright.policy.permission import Action, Permission, verdict_for
from gatewright.policy.right import Layer, OperationFacts, Reason, ToolFacts
from gatewright.policy.rule import AllowedOperations, ArgumentConstraints, RequiresConsent, RuleKind, ToolRule
from gatewright.policy.toolname import names_tool
from gatewright.policy.verdict import STRICTNESS, Verdict, strictest

_NOTHING = frozenset[Verdict]()
_ALLOW = frozenset({Verdict.ALLOW})
_PER_SOURCE: dict[type[RuleKind], Verdict] = {RequiresConsent: Verdict.ASK, ArgumentConstraints: Verdict.DENY}
"""What rules of a source do to calls that go to it."""


def source_rules(source: Source, facts: ToolFacts) -> tuple[tuple[int, ToolRule], ...]:
    """The source's own rules on the tool with their index, highest priority first."""
    if not source.required_tools:
        return ()
    found = [
        (i, rule) for i, rule in enumerate(source.required_tools) if names_tool(rule.tool_name, facts.name, facts.major)
    ]
    return tuple(sorted(found, key=lambda pair: -pair[1].priority))


def level_verdict(source: Source, facts: ToolFacts, op: OperationFacts, level: Permission) -> Verdict:
    """The strictest that calls of the operation may come to at a file of the source with that level."""
    actions = op.actions if facts.needs_source else op.path_actions
    found = _by_action(level, actions)
    if facts.needs_source:
        for _, rule in source_rules(source, facts):
            if isinstance(rule.rule_type, AllowedOperations) and op.name not in rule.rule_type.operations:
                return Verdict.DENY
            if isinstance(rule.rule_type, RequiresConsent) and rule.binds(op.name):
                found |= {Verdict.ASK}
    return strictest(*found)


class Reach:
    """The sources of one agent."""

    def __init__(self, agent: Agent, sources: tuple[Source, ...]) -> None:
        self._agent = agent
        self._sources = sources
        self._levels: dict[tuple[str, tuple[Action, ...]], frozenset[Verdict]] = {}

    def reason(self, facts: ToolFacts, op: OperationFacts) -> Reason | None:
        """Why the sources deny the operation, or make every call of it ask; None when they need not."""
        if not facts.needs_source:
            return None
        if not self._sources:
            agent = self._agent
            address: Address | None = ("agents", agent.agent_id, "sources") if agent.sources is not None else None
            text = f"agent `{agent.agent_id}` has no file source"
            return Reason(Layer.SOURCE, Verdict.DENY, "no-source", text, address)
        limits = [(source, self._limit(source, facts, op)) for source in self._sources]
        open_ones = [source for source, limit in limits if limit is None]
        if not open_ones:
            return limits[0][1]
        best = min(
            (min(self._level(source, op.actions), key=STRICTNESS.__getitem__) for source in open_ones),
            key=STRICTNESS.__getitem__,
        )
        return None if best is Verdict.ALLOW else self._by_level(open_ones, op, best)

    def outcomes(self, facts: ToolFacts, op: OperationFacts) -> tuple[frozenset[Verdict], frozenset[Verdict]]:
        """What calls of the operation may come to by their places: by the path, and by what they do at one place."""
        by_path: set[Verdict] = set()
        held: set[frozenset[Verdict]] = set()
        for source in self._sources:
            if self._limit(source, facts, op) is not None:
                by_path.add(Verdict.DENY)
            else:
                kinds = {type(rule.rule_type) for _, rule in source_rules(source, facts) if rule.binds(op.name)}
                by_path |= {_PER_SOURCE[kind] for kind in kinds & _PER_SOURCE.keys()}
                held |= {_by_action(level, op.actions) for level in source.levels}
        every = frozenset[Verdict]().union(*held)
        return (every | by_path, _NOTHING) if len(held) > 1 else (frozenset(by_path), every)

    def _limit(self, source: Source, facts: ToolFacts, op: OperationFacts) -> Reason | None:
        """The source's rule that leaves the operation out."""
        for index, rule in source_rules(source, facts):
            kind = rule.rule_type
            if isinstance(kind, AllowedOperations) and op.name not in kind.operations:
                listed = ", ".join(f"`{name}`" for name in sorted(kind.operations)) or "no operation at all"
                text = f"source `{source.source_id}` limits `{facts.name}` to {listed}"
                where = ("sources", source.source_id, "required_tools", index)
                return Reason(Layer.SOURCE, Verdict.DENY, "source-operation-not-allowed", text, where, rule.rule_id)
        return None

    def _level(self, source: Source, actions: tuple[Action, ...]) -> frozenset[Verdict]:
        """What the levels of a source say to the actions."""
        key = source.source_id, actions
        found = self._levels.get(key)
        if found is None:
            verdicts = (_by_action(level, actions) for level in source.levels)
            found = self._levels[key] = frozenset[Verdict]().union(*verdicts)
        return found

    def _by_level(self, sources: list[Source], op: OperationFacts, best: Verdict) -> Reason:
        named = ", ".join(f"`{source.source_id}`" for source in sources)
        if best is Verdict.ASK:
            text = f"every level of {named} that permits `{op.name}` asks first"
            return Reason(Layer.SOURCE, best, "level-asks", text)
        text = f"no rule or default of {named} permits `{op.name}`"
        return Reason(Layer.SOURCE, best, "no-level-permits", text, ("sources", sources[0].source_id))


def path_outcomes(sources: Iterable[Source], op: OperationFacts) -> frozenset[Verdict]:
    """What the levels of all sources may come to for calls that name a path as an argument that counts as one."""
    return frozenset(verdict_for(level, act) for one in sources for level in one.levels for act in op.path_actions)


def _by_action(level: Permission, actions: Iterable[Action]) -> frozenset[Verdict]:
    """What a level says to the actions; none of them is nothing that it could refuse."""
    return frozenset(verdict_for(level, action) for action in actions) or _ALLOW
