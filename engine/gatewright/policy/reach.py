"""How far an agent reaches: its capabilities, the best that its sources permit, and the verdict at one file.

A source's ``required_tools`` bind only calls that go to it, so an operation is hidden when no source permits it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from posixpath import normpath
from typing import cast

from gatewright.base.errors import Address
from gatewright.base.jsonvalue import JsonValue
from gatewright.policy.capability import SCOPED, Capability, CapabilityKind, Exec, WasmExec, kind_of
from gatewright.policy.document import Agent, Policy, Source, SourceType
from gatewright.policy.glob import PermissionRules
from gatewright.policy.right import Layer, Limit, OperationFacts, OperationRight, Reason, ToolFacts, ToolRight
from gatewright.policy.rule import (
    AllowedOperations,
    ArgumentConstraints,
    PolicyRule,
    RequiresConsent,
    RuleKind,
    ToolRule,
)
from gatewright.policy.rulematch import Numbered, rules_for_agent, rules_for_operation, rules_for_tool
from gatewright.policy.verdict import (
    STRICTNESS,
    Action,
    Permission,
    Verdict,
    covers,
    names_tool,
    strictest,
    verdict_for,
)


def granted_kinds(capabilities: Iterable[Capability]) -> frozenset[CapabilityKind]:
    """The kinds of which the agent has a real grant; an empty list of hosts, prefixes, tables or names grants
    nothing.
    """
    return frozenset(kind_of(capability) for capability in capabilities if capability.scope != ())


def lacking(agent: Agent, granted: frozenset[CapabilityKind], facts: ToolFacts, op: OperationFacts) -> Reason | None:
    """The reason why the grants permit no call of the operation; None if they may permit some."""
    if missing := op.capabilities - granted:
        code, text = "capability-not-granted", f"needs {_and(missing)}, which agent `{agent.agent_id}` is not granted"
    elif limited := frozenset(kind_of(one) for one in bounds(agent, op)) - op.judgeable:
        code = "capability-unjudgeable"
        text = f"names nothing that {_and(limited)} of agent `{agent.agent_id}` could be judged by"
    else:
        return None
    what = f"`{facts.name}.{op.name}`" if op.name else f"`{facts.name}`"
    where: Address = ("agents", agent.agent_id, "capabilities") if agent.capabilities else ("agents", agent.agent_id)
    return Reason(Layer.CAPABILITY, Verdict.DENY, code, f"{what} {text}", where)


def bounds(agent: Agent, op: OperationFacts) -> tuple[Capability, ...]:
    """The grants that the operation needs and that do not cover everything of their kind."""
    kinds = {kind for kind in op.capabilities & SCOPED if not _is_whole(agent, kind)}
    return tuple(one for one in agent.capabilities if kind_of(one) in kinds)


def exec_limits(capabilities: Iterable[Capability]) -> tuple[float | None, int | None]:
    """The most processor seconds and bytes for each process of an agent; None where its grants set no limit."""
    held = [one for one in capabilities if isinstance(one, Exec)]
    memory = widest([one.mem_limit for one in held])
    return widest([one.cpu_limit for one in held]), None if memory is None else int(memory)


def wasm_fuel(capabilities: Iterable[Capability]) -> int | None:
    """The most fuel units for each module of an agent; None if its grants set no limit."""
    fuel = widest([one.fuel for one in capabilities if isinstance(one, WasmExec)])
    return None if fuel is None else int(fuel)


def widest(limits: Sequence[float | None]) -> float | None:
    """The largest limit among several grants; None if one of them has none, or without grants."""
    known = [limit for limit in limits if limit is not None]
    return max(known) if known and len(known) == len(limits) else None


def _and(kinds: Iterable[CapabilityKind]) -> str:
    return " and ".join(sorted(kinds))


def _is_whole(agent: Agent, kind: CapabilityKind) -> bool:
    """Tell whether a grant of that kind covers everything."""
    return any(one.is_whole for one in agent.capabilities if kind_of(one) is kind)


NO_SOURCE = "no-source"
"""The code of the reason that an agent has no source in which a tool could name a place."""
_NOTHING = frozenset[Verdict]()
_ALLOW = frozenset({Verdict.ALLOW})
_PER_SOURCE: dict[type[RuleKind], Verdict] = {RequiresConsent: Verdict.ASK, ArgumentConstraints: Verdict.DENY}
"""The effect of a source's rules on calls to it."""


def source_rules(source: Source, facts: ToolFacts) -> tuple[tuple[int, ToolRule], ...]:
    """The source's own rules on the tool with their index, highest priority first."""
    if not source.required_tools:
        return ()
    found = [(i, rule) for i, rule in enumerate(source.required_tools) if names_tool(rule.tool_name, facts)]
    return tuple(sorted(found, key=lambda pair: -pair[1].priority))


def level_verdict(source: Source, facts: ToolFacts, op: OperationFacts, level: Permission) -> Verdict:
    """The strictest verdict on the operation at a file of the source with that level."""
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
    """The sources whose files calls of the operation may reach, apart from undeclared texts.

    Tools on sources and blocks reach the agent's own sources; paths on disk reach all sources.
    """
    if facts.source:
        return ()
    if facts.needs_source or op.labels:
        return policy.sources_of(agent)
    if op.path_actions or (op.disk_actions and not op.roots):
        return policy.file_sources
    return sources_at_roots(policy, op) if op.disk_actions else ()


class Reach:
    """The sources of one agent."""

    def __init__(self, agent: Agent, sources: tuple[Source, ...]) -> None:
        self._agent = agent
        self._sources = sources
        self._verdicts: dict[tuple[str, tuple[Action, ...], frozenset[Permission]], frozenset[Verdict]] = {}

    def reason(self, facts: ToolFacts, op: OperationFacts) -> Reason | None:
        """The reason why the sources deny the operation, or why every call of it asks; None otherwise."""
        if not facts.needs_source:
            return None
        reached = self._own_sources(facts, op)
        if not reached:
            agent = self._agent
            address: Address | None = ("agents", agent.agent_id, "sources") if agent.sources is not None else None
            what = f"not the source `{facts.source}`" if facts.source else "no file source"
            return Reason(Layer.SOURCE, Verdict.DENY, NO_SOURCE, f"agent `{agent.agent_id}` has {what}", address)
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
        """The verdicts that depend on the place: on its path, and on the action there."""
        by_path: set[Verdict] = set()
        held: set[frozenset[Verdict]] = set()
        for source in self._own_sources(facts, op):
            if self._limit(source, facts, op) is not None:
                by_path.add(Verdict.DENY)
            else:
                kinds = {type(rule.rule_type) for _, rule in source_rules(source, facts) if rule.binds(op.name)}
                by_path |= {_PER_SOURCE[kind] for kind in kinds & _PER_SOURCE.keys()}
                held |= {_by_action(level, op.actions) for level in _levels(source, facts, op)}
        every = frozenset[Verdict]().union(*held)
        return (every | by_path, _NOTHING) if len(held) > 1 else (frozenset(by_path), every)

    def _limit(self, source: Source, facts: ToolFacts, op: OperationFacts) -> Reason | None:
        """The source's rule that excludes the operation, as a reason."""
        for index, rule in source_rules(source, facts):
            kind = rule.rule_type
            if isinstance(kind, AllowedOperations) and op.name not in kind.operations:
                listed = ", ".join(f"`{name}`" for name in sorted(kind.operations)) or "no operation at all"
                text = f"source `{source.source_id}` limits `{facts.name}` to {listed}"
                where = ("sources", source.source_id, "required_tools", index)
                return Reason(Layer.SOURCE, Verdict.DENY, "source-operation-not-allowed", text, where, rule.rule_id)
        return None

    def _own_sources(self, facts: ToolFacts, op: OperationFacts) -> list[Source]:
        """The agent's sources in which calls of the operation may name places."""
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
    """The levels that calls may meet; an operation without keys meets the level of the whole source."""
    if facts.source and not op.places:
        return frozenset({PermissionRules(source.permission_rules, source.default_permission).level("")})
    return source.levels


def level_outcomes(sources: Iterable[Source], actions: Collection[Action]) -> frozenset[Verdict]:
    """The verdicts of the levels of the sources on the actions."""
    return frozenset(verdict_for(level, action) for one in sources for level in one.levels for action in actions)


def disk_outcomes(policy: Policy, op: OperationFacts) -> frozenset[Verdict]:
    """The verdicts of the levels of all sources on calls that name a path on disk, marked or found."""
    sources = policy.file_sources
    found = level_outcomes(sources, op.path_actions)
    if op.needs_grant:
        found |= {Verdict.DENY}
    if op.disk_actions:
        found |= level_outcomes(sources_at_roots(policy, op) if op.roots else sources, op.disk_actions)
    return found


def sources_at_roots(policy: Policy, op: OperationFacts) -> tuple[Source, ...]:
    """The sources that share files with a root of the operation, judged by name, without following links."""
    folders = [folder for name, folder in policy.roots.folders.items() if name in op.roots]
    return tuple(one for one in policy.file_sources if any(_overlap(one.base_path, folder) for folder in folders))


def _overlap(one: str, other: str) -> bool:
    """Tell whether one folder may contain the other; a relative and an absolute folder may."""
    first, second = normpath(one), normpath(other)
    if first.startswith("/") is not second.startswith("/") or first.startswith("..") or second.startswith(".."):
        return True
    return covers(first, second) or covers(second, first)


def label_outcomes(op: OperationFacts) -> frozenset[Verdict]:
    """The verdicts on calls that name a block, which may have any level, its own or its file's."""
    return frozenset(verdict_for(level, action) for level in Permission for action in op.actions)


def _by_action(level: Permission, actions: Iterable[Action]) -> frozenset[Verdict]:
    """The verdicts of a level on the actions; allow for no action."""
    return frozenset(verdict_for(level, action) for action in actions) or _ALLOW


PathCondition = Mapping[str, "JsonValue"]
"""A JSON Schema of arguments that says something only about paths in sources."""


def path_condition(limit: Limit, op: OperationFacts) -> PathCondition | None:
    """The condition that a limit puts on the paths of a call; None if the limit depends on other arguments too."""
    match limit:
        case ToolRule(rule_type=ArgumentConstraints(fields, required)):
            condition: PathCondition = {"properties": dict(fields)}
        case PolicyRule(when=Mapping() as when) if when.keys() <= {"properties", "required"}:
            condition, required = when, cast("Sequence[str]", when.get("required", ()))
        case _:
            return None
    spoken = cast("Mapping[str, object]", condition.get("properties", {}))
    return condition if spoken and op.places.issuperset((*spoken, *required)) else None


class PlaceRight:
    """The verdicts on one operation of an agent, file by file.

    ``rules``: the policy rules that may match a call of the tool. Conditions on other arguments are ignored.
    """

    def __init__(
        self, policy: Policy, rules: tuple[Numbered, ...], facts: ToolFacts, op: OperationFacts, right: OperationRight
    ) -> None:
        self._facts, self._op, self._right = facts, op, right
        self._default = policy.default
        conditions: list[PathCondition] = []
        self._rules: list[tuple[Verdict, int | None]] = []
        """The effects, each with the number of its condition; None for an unconditional one."""
        for _, rule in rules_for_operation(rules, op.name):
            if rule.is_unconditional:
                self._rules.append((rule.effect, None))
            elif (condition := path_condition(rule, op)) is not None:
                self._rules.append((rule.effect, len(conditions)))
                conditions.append(condition)
            else:
                self._default = Verdict.ALLOW  # the rule may match a call with any path
        own = {id(rule): one.source_id for one in policy.file_sources for _, rule in source_rules(one, facts)}
        self._constraints: list[tuple[str | None, int]] = []
        """The source of each constraint, None for the agent's and the tool's own; the number of its condition."""
        for limit in right.limits:
            if isinstance(limit, ToolRule) and (condition := path_condition(limit, op)) is not None:
                self._constraints.append((own.get(id(limit)), len(conditions)))
                conditions.append(condition)
        self.conditions = tuple(conditions)
        """All conditions on paths."""

    def verdict(self, source: Source, level: Permission, met: Sequence[bool]) -> Verdict:
        """The verdict at a file of the source with that level; ``met``: which of `conditions` its path meets."""
        found = [self._right.verdict, level_verdict(source, self._facts, self._op, level)]
        if not all(met[at] for owner, at in self._constraints if owner in {None, source.source_id}):
            found.append(Verdict.DENY)
        matching = [effect for effect, at in self._rules if at is None or met[at]]
        return strictest(*found, *(matching or (self._default,)))

    def block_verdict(self, level: Permission) -> Verdict:
        """The verdict at a block of memory with that level."""
        found = [verdict_for(level, action) for action in self._op.actions]
        matching = [effect for effect, at in self._rules if at is None]
        return strictest(self._right.verdict, *found, *(matching or (self._default,)))


def place_rights(policy: Policy, agent_id: str, tool: ToolRight) -> dict[str, PlaceRight]:
    """The place rights of the visible operations whose verdict depends on the path or block."""
    facts = tool.facts
    rules = rules_for_tool(rules_for_agent(policy, agent_id), facts)
    rows = zip(facts.operations, tool.operations, strict=True)
    return {
        op.name: PlaceRight(policy, rules, facts, op, right)
        for op, right in rows
        if (right.by_path or right.by_block) and not right.is_hidden
    }
