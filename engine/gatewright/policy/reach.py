"""What an agent's sources let an operation do at best: their levels and their own limits.

A source's ``required_tools`` bind only calls that go to it, so an operation is hidden when no source lets it through.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from posixpath import normpath

from gatewright.base.problem import Address
from gatewright.policy.document import Agent, Policy, Source, SourceType
from gatewright.policy.glob import PermissionRules
from gatewright.policy.permission import Action, Permission, verdict_for
from gatewright.policy.prefix import covers
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
    in_own = facts.needs_source or bool(op.labels)
    found = _by_action(level, op.actions if in_own else op.path_actions | op.disk_actions)
    if in_own:
        for _, rule in source_rules(source, facts):
            if isinstance(rule.rule_type, AllowedOperations) and op.name not in rule.rule_type.operations:
                return Verdict.DENY
            if isinstance(rule.rule_type, RequiresConsent) and rule.binds(op.name):
                found |= {Verdict.ASK}
    return strictest(*found)


def sources_reached(policy: Policy, agent: Agent, facts: ToolFacts, op: OperationFacts) -> tuple[Source, ...]:
    """The sources whose files calls of the operation may come at; texts that nobody takes for paths left aside.

    By the tools on sources and on blocks these are the agent's own, by paths on disk all that there are.
    """
    if facts.source:
        return ()
    if facts.needs_source or op.labels:
        return policy.sources_of(agent)
    if op.path_actions or (op.disk_actions and not op.roots):
        return policy.file_sources
    return reached_from_roots(policy, op) if op.disk_actions else ()


class Reach:
    """The sources of one agent."""

    def __init__(self, agent: Agent, sources: tuple[Source, ...]) -> None:
        self._agent = agent
        self._sources = sources
        self._verdicts: dict[tuple[str, tuple[Action, ...], frozenset[Permission]], frozenset[Verdict]] = {}

    def reason(self, facts: ToolFacts, op: OperationFacts) -> Reason | None:
        """Why the sources deny the operation, or make every call of it ask; None when they need not."""
        if not facts.needs_source:
            return None
        reached = self._reached(facts, op)
        if not reached:
            agent = self._agent
            address: Address | None = ("agents", agent.agent_id, "sources") if agent.sources is not None else None
            what = f"not the source `{facts.source}`" if facts.source else "no file source"
            return Reason(Layer.SOURCE, Verdict.DENY, "no-source", f"agent `{agent.agent_id}` has {what}", address)
        limits = [(source, self._limit(source, facts, op)) for source in reached]
        open_ones = [source for source, limit in limits if limit is None]
        if not open_ones:
            return limits[0][1]
        best = min(
            (min(self._level(source, facts, op), key=STRICTNESS.__getitem__) for source in open_ones),
            key=STRICTNESS.__getitem__,
        )
        return None if best is Verdict.ALLOW else self._by_level(open_ones, op, best)

    def outcomes(self, facts: ToolFacts, op: OperationFacts) -> tuple[frozenset[Verdict], frozenset[Verdict]]:
        """What calls of the operation may come to by their places: by the path, and by what they do at one place."""
        by_path: set[Verdict] = set()
        held: set[frozenset[Verdict]] = set()
        for source in self._reached(facts, op):
            if self._limit(source, facts, op) is not None:
                by_path.add(Verdict.DENY)
            else:
                kinds = {type(rule.rule_type) for _, rule in source_rules(source, facts) if rule.binds(op.name)}
                by_path |= {_PER_SOURCE[kind] for kind in kinds & _PER_SOURCE.keys()}
                held |= {_by_action(level, op.actions) for level in _levels(source, facts, op)}
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

    def _reached(self, facts: ToolFacts, op: OperationFacts) -> list[Source]:
        """The sources of the agent in which calls of the operation may name places."""
        if facts.source:
            return [one for one in self._sources if one.source_id == facts.source and one.kind is SourceType.HOST]
        return [one for one in self._sources if op.labels or one.kind is SourceType.FILE]

    def _level(self, source: Source, facts: ToolFacts, op: OperationFacts) -> frozenset[Verdict]:
        """The verdicts of the levels of a source on the operation."""
        levels = _levels(source, facts, op)
        key = source.source_id, op.actions, levels
        found = self._verdicts.get(key)
        if found is None:
            verdicts = (_by_action(level, op.actions) for level in levels)
            found = self._verdicts[key] = frozenset[Verdict]().union(*verdicts)
        return found

    def _by_level(self, sources: list[Source], op: OperationFacts, best: Verdict) -> Reason:
        named = ", ".join(f"`{source.source_id}`" for source in sources)
        if best is Verdict.ASK:
            text = f"every level of {named} that permits `{op.name}` asks first"
            return Reason(Layer.SOURCE, best, "level-asks", text)
        text = f"no rule or default of {named} permits `{op.name}`"
        return Reason(Layer.SOURCE, best, "no-level-permits", text, ("sources", sources[0].source_id))


def _levels(source: Source, facts: ToolFacts, op: OperationFacts) -> frozenset[Permission]:
    """The levels that calls may come to: what names no key of a program's source has that of the whole source."""
    if facts.source and not op.places:
        return frozenset({PermissionRules(source.permission_rules, source.default_permission).level("")})
    return source.levels


def level_outcomes(sources: Iterable[Source], actions: Collection[Action]) -> frozenset[Verdict]:
    """What the levels of the sources say to the actions."""
    return frozenset(verdict_for(level, action) for one in sources for level in one.levels for action in actions)


def disk_outcomes(policy: Policy, op: OperationFacts) -> frozenset[Verdict]:
    """What the levels of all sources may come to for calls that name a path on disk, marked or found."""
    sources = policy.file_sources
    found = level_outcomes(sources, op.path_actions)
    if op.disk_actions:
        found |= level_outcomes(reached_from_roots(policy, op) if op.roots else sources, op.disk_actions)
    return found


def reached_from_roots(policy: Policy, op: OperationFacts) -> tuple[Source, ...]:
    """The sources that share files with a root in which the operation works; by their names, links left aside."""
    folders = [folder for name, folder in policy.roots.folders.items() if name in op.roots]
    return tuple(one for one in policy.file_sources if any(_overlap(one.base_path, folder) for folder in folders))


def _overlap(one: str, other: str) -> bool:
    """Whether a folder may be the other, in it or above it; of an absolute and a relative one nobody knows."""
    first, second = normpath(one), normpath(other)
    if first.startswith("/") is not second.startswith("/") or first.startswith("..") or second.startswith(".."):
        return True
    return covers(first, second) or covers(second, first)


def label_outcomes(op: OperationFacts) -> frozenset[Verdict]:
    """What the level of a block may come to; each block has its own, and one of a file has the file's."""
    return frozenset(verdict_for(level, action) for level in Permission for action in op.actions)


def _by_action(level: Permission, actions: Iterable[Action]) -> frozenset[Verdict]:
    """What a level says to the actions; none of them is nothing that it could refuse."""
    return frozenset(verdict_for(level, action) for action in actions) or _ALLOW
