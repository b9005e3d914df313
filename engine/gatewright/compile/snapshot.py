"""Policy and registry compiled per agent, immutable to its readers, with proofs that an operation is open to an agent.

An agent is compiled on first use, a tool on its first call. ``renew`` carries over everything that an edit cannot
affect: whole agents, and the rights and plans of an agent's other tools. ``touched_tools`` errs towards too many tools,
since too few would leave a stale right: every tool depends on a part that it does not examine in detail. A proof
computes its details when somebody reads them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, replace
from itertools import accumulate
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from gatewright.base.amount import Clock, SystemClock
from gatewright.base.jsonvalue import JsonValue, digest
from gatewright.base.late import once
from gatewright.compile.agent import AgentDigests, AgentSnapshot, Ground, policy_digest
from gatewright.compile.operation import Key, make_offer
from gatewright.compile.plan import ShapeCache
from gatewright.compile.rule_test import Finding
from gatewright.policy.document import Agent, Policy, Source
from gatewright.policy.observe import concerns, has_observed, in_force, without_observed_rules
from gatewright.policy.right import Reason, ToolFacts, ToolRight
from gatewright.policy.rule import ANY_TOOL, ToolRule
from gatewright.policy.verdict import Permission, SafetyTier, Verdict, bare_names, split_name
from gatewright.tools.registry import ToolRegistry

if TYPE_CHECKING:
    from gatewright.policy.edit import ChangeSet


Cell = Mapping[str, Verdict]
_DENY = Verdict.DENY
_NAMED = 80


class _Compiled(Protocol):
    """The snapshot behind a proof."""

    @property
    def policy_digest(self) -> str: ...
    def agent(self, agent_id: str) -> AgentSnapshot | None: ...


class OperationProof(tuple[Any, ...]):
    """The verdict on one operation; allow and ask mean that the stages lookup and operation let it pass.

    It consists of the snapshot, agent, tool, operation and verdict, in that order, and computes everything else on
    demand. It is a tuple, since Python creates nothing else as fast.
    """

    __slots__ = ()

    agent_id: str = property(itemgetter(1), doc="The agent.")  # pyright: ignore[reportAssignmentType]
    tool: str = property(itemgetter(2), doc="The tool, by its bare name.")  # pyright: ignore[reportAssignmentType]
    operation: str = property(itemgetter(3), doc="The operation; empty for a tool without any.")  # pyright: ignore[reportAssignmentType]
    verdict: Verdict = property(itemgetter(4), doc="Allow, ask or deny.")  # pyright: ignore[reportAssignmentType]

    @property
    def is_open(self) -> bool:
        """True if the agent's model sees the operation."""
        return self[4] is not _DENY

    @property
    def proof_id(self) -> str:
        """A digest of the answer, the policy and the tool; equal answers have equal ids."""
        parts: list[JsonValue] = [self.agent_id, self.tool, self.operation, str(self.verdict)]
        return "op_" + digest([*parts, self.policy_digest, self.tool_digest])[:32]

    @property
    def policy_digest(self) -> str:
        """The digest of the policy behind the answer."""
        return self._snapshot.policy_digest

    @property
    def tool_digest(self) -> str | None:
        """The digest of the tool; None for an unknown one."""
        agent = self._snapshot.agent(self.agent_id)
        plan = agent.plan(self.tool) if agent is not None else None
        return plan.tool_digest if plan is not None else None

    @property
    def code(self) -> str:
        """The code of the finding; ``allowed`` without a finding."""
        finding = self.finding
        return finding.code if finding is not None else "allowed"

    def to_json(self) -> dict[str, JsonValue]:
        """Shape: id, agent, tool, operation, verdict, code, reason, policy_digest, tool_digest."""
        finding = self.finding
        return {
            "id": self.proof_id,
            "agent": self.agent_id,
            "tool": self.tool,
            "operation": self.operation,
            "verdict": str(self.verdict),
            "code": self.code,
            "reason": finding.reason if finding is not None else "",
            "policy_digest": self.policy_digest,
            "tool_digest": self.tool_digest,
        }

    @property
    def finding(self) -> Finding | None:
        """The reason for a denial or ask, with the deciding place of the policy; None for an allow."""
        agent = self._snapshot.agent(self.agent_id)
        if agent is None:
            return Finding(_DENY, "unknown-agent", f"no agent `{self.agent_id[:_NAMED]}` in the policy")
        plan = agent.plan(self.tool)
        if plan is None:
            return Finding(_DENY, "unknown-tool", f"no tool `{self.tool[:_NAMED]}`")
        if plan.closed is not None:
            return plan.closed
        shown = plan.operations.get(self.operation)
        if shown is None:
            unknown = f"`{self.tool}` has no operation `{self.operation[:_NAMED]}`"
            return plan.hidden.get(self.operation) or Finding(_DENY, "operation-unknown", unknown)
        reason = next((reason for reason in shown.right.reasons if reason.verdict is self.verdict), None)
        return reason and Finding(reason.verdict, reason.code, reason.text, reason.address, reason.rule_id)

    @property
    def _snapshot(self) -> _Compiled:
        return self[0]


class OperationIndex:
    """Verdicts by agent, tool and operation; equal cells of different agents and tools share one object."""

    def __init__(self) -> None:
        self.rows: dict[str, dict[str, Cell]] = {}
        self._cells: dict[tuple[tuple[str, Verdict], ...], Cell] = {}

    def add(self, agent_id: str, rights: Mapping[str, ToolRight]) -> dict[str, Cell]:
        """Index the rights of an agent."""
        rows = {name: self._cell(right) for name, right in rights.items()}
        return self.rows.setdefault(agent_id, rows)

    def take(self, agent_id: str, other: OperationIndex) -> None:
        """Carry over another index's rows for an unchanged agent."""
        rows = other.rows.get(agent_id)
        if rows is not None:
            self.rows[agent_id] = rows

    def _cell(self, right: ToolRight) -> Cell:
        key = tuple([(row.operation, row.verdict) for row in right.operations])
        found = self._cells.get(key)
        return found if found is not None else self._cells.setdefault(key, dict(key))


Tools = frozenset[str] | None
_T = TypeVar("_T")
_NO_TOOL: frozenset[str] = frozenset()
_TIERS = frozenset(str(tier) for tier in SafetyTier)


def touched_tools(old: Policy, new: Policy, before: Agent, after: Agent, facts: Iterable[ToolFacts]) -> Tools:
    """The bare names of the tools whose compiled form may differ for the agent, ``after`` under ``new``; None: all."""
    found = _NO_TOOL
    for tools in _parts(old, new, before, after, facts):
        if tools is None:
            return None
        found |= tools
    return found


def _parts(old: Policy, new: Policy, before: Agent, after: Agent, facts: Iterable[ToolFacts]) -> Iterator[Tools]:
    """The tools that each part of the policy affects."""
    yield _NO_TOOL if _for_all(old) == _for_all(new) else None
    yield _settings(old, new)
    yield _policy_rules(old, new, after.agent_id, facts)
    if before is not after:
        yield _tool_rules(before.tool_rules, after.tool_rules)
        yield _list_change(before.tools, after.tools, facts)
        yield _approvals(before.approvals, after.approvals, facts)
        yield _capabilities(before, after, facts)
        if (before.sources is None) != (after.sources is None):
            yield frozenset(row.name for row in facts if row.needs_source)
    if old.sources is not new.sources or before.sources != after.sources:
        yield _sources(old.places_of(before), new.places_of(after), facts)
        yield _paths(old, new, facts)


def differ_in_agents_alone(old: Policy, new: Policy) -> bool:
    """Tell whether everything outside the agents is identical, so that it need not be compared for each agent."""
    return all(getattr(old, part.name) is getattr(new, part.name) for part in fields(old) if part.name != "agents")


def _list_change(before: tuple[str, ...] | None, after: tuple[str, ...] | None, facts: Iterable[ToolFacts]) -> Tools:
    if before == after:
        return _NO_TOOL
    if before is None or after is None:
        return None
    return bare_names(frozenset(before) ^ frozenset(after), facts)


def _tool_rules(before: tuple[ToolRule, ...], after: tuple[ToolRule, ...]) -> Tools:
    names = {split_name(rule.tool_name)[0] for rule in _changes(before, after)}
    return None if ANY_TOOL in names else frozenset(names)


def _approvals(before: Mapping[str, object], after: Mapping[str, object], facts: Iterable[ToolFacts]) -> Tools:
    keys = [key for key in before.keys() | after.keys() if before.get(key) != after.get(key)]
    if not _TIERS.isdisjoint(keys):
        return None
    return bare_names((name for key in keys for name in _heads(key)), facts)


def _heads(key: str) -> Iterable[str]:
    """Every tool name with which an ``approvals`` key may begin; names may contain dots."""
    return accumulate(key.split("."), "{}.{}".format)


def _capabilities(before: Agent, after: Agent, facts: Iterable[ToolFacts]) -> frozenset[str]:
    """The tools that need a changed grant, since its bounds are part of their rights."""
    if before.capabilities == after.capabilities:
        return _NO_TOOL
    return frozenset(row.name for row in facts if any(op.capabilities for op in row.operations))


def _sources(before: tuple[Source, ...], after: tuple[Source, ...], facts: Iterable[ToolFacts]) -> Tools:
    if [_reach(source) for source in before] == [_reach(source) for source in after]:
        return _NO_TOOL
    named = {split_name(rule.tool_name)[0] for source in (*before, *after) for rule in source.required_tools}
    if ANY_TOOL in named:
        return None
    return frozenset(named) | frozenset(row.name for row in facts if row.needs_source)


def _paths(old: Policy, new: Policy, facts: Iterable[ToolFacts]) -> Tools:
    """The tools with arguments that are or may be paths: any source may set their level."""
    before, after = ({one.source_id: one.levels for one in policy.sources} for policy in (old, new))
    if before == after:
        return _NO_TOOL
    texts = frozenset[Permission]().union(*before.values()) != frozenset[Permission]().union(*after.values())
    declared = {split_name(name)[0] for name, settings in new.tools.items() if settings.paths}
    return frozenset(declared).union(row.name for row in facts if _names_paths(row, texts=texts))


def _names_paths(facts: ToolFacts, *, texts: bool) -> bool:
    """Tell whether a call names places; ``texts``: count texts that may be paths too."""
    return any(
        op.paths or op.disk_actions or (texts and (op.holds_texts or op.takes_others)) for op in facts.operations
    )


def _for_all(policy: Policy) -> tuple[object, ...]:
    """The parts of a policy that may affect every tool of every agent."""
    shared = policy.roots, policy.web, policy.shell, policy.endpoints, policy.closed
    return policy.defaults, policy.default, policy.catalogs, policy.compositions, *shared


def _reach(source: Source) -> tuple[object, ...]:
    """The compiled part of a source; the gate looks up the level of a path when a call comes."""
    return source.source_id, source.levels, source.required_tools


def _settings(old: Policy, new: Policy) -> frozenset[str]:
    names = old.tools.keys() | new.tools.keys()
    return frozenset(split_name(name)[0] for name in names if old.tools.get(name) != new.tools.get(name))


def _policy_rules(old: Policy, new: Policy, agent_id: str, facts: Iterable[ToolFacts]) -> Tools:
    found: set[str] = set()
    for rule in _changes(old.rules, new.rules):
        if rule.agents is None or agent_id in rule.agents:
            if rule.tools is None:
                return None
            found |= bare_names(rule.tools, facts)
    return frozenset(found)


def _changes(before: tuple[_T, ...], after: tuple[_T, ...]) -> list[_T]:
    """Every entry that came, went, or moved to another index, since reasons name a rule's place."""
    if len(before) == len(after):
        return [one for pair in zip(before, after, strict=True) if pair[0] != pair[1] for one in pair]
    shared = min(len(before), len(after))
    start = next((i for i in range(shared) if before[i] != after[i]), shared)
    return [*before[start:], *after[start:]]


class Snapshot:
    """One policy and one revision of the registry. All values read from it belong together.

    ``facts``: of every tool, as the policy declares it. ``known``: the tools that the policy's author knew; None: all
    present ones. ``agents``: those compiled so far. ``policy`` is the whole one, ``present`` what of it is in force at
    ``wall_s`` (None: now, by ``clock``); ``span``: for how long that is right; None: always.
    """

    def __init__(
        self,
        policy: Policy,
        registry: ToolRegistry,
        shapes: ShapeCache | None = None,
        before: Snapshot | None = None,
        known: frozenset[Key] | None = None,
        clock: Clock | None = None,
        wall_s: float | None = None,
    ) -> None:
        self.policy = policy
        self.clock = clock or (before.clock if before is not None else SystemClock())
        self.present, self.span = in_force(policy, self.clock.wall_s() if wall_s is None else wall_s)
        self.registry = registry
        self.revision = registry.revision
        self.shapes = shapes or ShapeCache()
        same = before is not None and before.revision == self.revision and before.policy.tools == policy.tools
        self._offer = before._offer if before and same else make_offer(policy, registry, self.shapes.declared)
        self.facts = self._offer.facts
        there = frozenset(self._offer.tools)
        self.known = there if known is None else known
        self._held = there - self.known if policy.defaults.new_tools == "hold" else _NO_KEY
        self._ground = Ground(self.present, self._offer, self.shapes, self._held)
        is_observed = has_observed(self.present)  # then the material of agents of which something is observed
        self._observing = replace(self._ground, policy=without_observed_rules(self.present)) if is_observed else None
        self.agents: dict[str, AgentSnapshot] = {}
        self._digests = AgentDigests()
        self._index = OperationIndex()
        self.rows = self._index.rows

    @property
    def is_current(self) -> bool:
        """The registry still holds the tools that this was compiled from, and the same is in force."""
        if self.revision != self.registry.revision:
            return False
        return self.span is None or self.span.covers(self.clock.wall_s())

    def at(self, wall_s: float) -> Snapshot:
        """The same policy and tools with the rules that hold at another instant; this one if they are the same."""
        if self.span is None or self.span.covers(wall_s):
            return self
        return self.renew(self.policy, None, wall_s=wall_s)

    @property
    def is_digested(self) -> bool:
        """True if the digest takes no noticeable time: it is known, or the policy is small."""
        if "policy_digest" in self.__dict__:
            return True
        agents = self.policy.agents.values()
        return len(agents) + len(self.policy.rules) + sum(len(agent.tool_rules) for agent in agents) < SMALL_RULES

    @once
    def policy_digest(self) -> str:
        """SHA-256 of all that the policy says, 64 hexadecimal digits."""
        return policy_digest(self.policy, self._digests)

    @once
    def problems(self) -> tuple[Reason, ...]:
        """The parts of the policy that misfit the present tools; each closes the tools that it names."""
        agents = (self.agent(agent_id) for agent_id in self.policy.agents)
        found = [
            reason for agent in agents if agent is not None for reasons in agent.problems.values() for reason in reasons
        ]
        return tuple(dict.fromkeys(found))

    def agent(self, agent_id: str) -> AgentSnapshot | None:
        """The agent, compiled on first use; None for an unknown id."""
        found = self.agents.get(agent_id)
        if found is not None:
            return found
        agent = self.present.agents.get(agent_id)
        if agent is None:
            return None
        return self.agents.setdefault(agent_id, self._observe(AgentSnapshot(self._ground, agent)))

    def operation(self, agent_id: str, tool: str, operation: str = "") -> OperationProof:
        """The proof of whether the agent's model sees the operation, whatever the arguments; a few look-ups."""
        try:
            verdict = self.rows[agent_id][tool][operation]
        except KeyError:
            verdict = self._cells_of(agent_id).get(tool, _NO_CELL).get(operation, _DENY)
        return OperationProof((self, agent_id, tool, operation, verdict))

    def renew(
        self,
        policy: Policy,
        changed: ChangeSet | None,  # noqa: ARG002 worked out anew, so that a wrong set leaves nothing stale
        *,
        known: frozenset[Key] | None = None,
        wall_s: float | None = None,
    ) -> Snapshot:
        """The snapshot of another policy over the present tools; ``known``: those that are not new; None: as before."""
        known = self.known if known is None else known
        fresh = Snapshot(policy, self.registry, self.shapes, self, known, wall_s=wall_s)
        policy = fresh.present
        as_held = fresh._held == self._held
        if as_held and fresh.facts == self.facts:
            fresh._ground.choices.update(self._ground.choices)
        fresh._digests = self._digests
        same = fresh.revision == self.revision and as_held and policy.tools == self.policy.tools
        swapped = frozenset[str]() if same else self._swaps(fresh)
        before = {agent_id: held.enforced or held for agent_id, held in list(self.agents.items())}
        compiled_by = {id(one.policy): one.policy for one in before.values()}
        alike = {key for key, one in compiled_by.items() if same and differ_in_agents_alone(one, policy)}
        for agent_id, compiled in before.items():
            agent = policy.agents.get(agent_id)
            if agent is compiled.agent and id(compiled.policy) in alike:
                fresh._take(compiled, self)
                continue
            if agent is None:
                continue
            tools = touched_tools(compiled.policy, policy, compiled.agent, agent, fresh.facts)
            if tools is None:
                continue
            touched = tools | swapped
            if touched or agent != compiled.agent or policy.places_of(agent) != compiled.sources:
                fresh.agents[agent_id] = fresh._observe(AgentSnapshot(fresh._ground, agent, compiled, touched))
            elif fresh.revision == self.revision:
                fresh._take(compiled, self)
        return fresh

    def _take(self, compiled: AgentSnapshot, before: Snapshot) -> None:
        """Carry over an agent that the edit does not concern."""
        agent_id = compiled.agent.agent_id
        self.agents[agent_id] = fresh = self._observe(compiled, before.agents[agent_id])
        if fresh is before.agents[agent_id]:
            self._index.take(agent_id, before._index)

    def _observe(self, compiled: AgentSnapshot, held: AgentSnapshot | None = None) -> AgentSnapshot:
        """The agent as it acts while something of it is observed, ``held`` if that is the same; else ``compiled``."""
        ground = self._observing
        if ground is None or not concerns(self.present, compiled.agent):
            return compiled
        if held is not None and held.enforced is compiled and differ_in_agents_alone(held.policy, ground.policy):
            return held
        return AgentSnapshot(ground, compiled.agent, enforced=compiled)

    def _swaps(self, fresh: Snapshot) -> frozenset[str]:
        """The names of the tools that came, went or changed, or whose bars or misfits differ."""
        before, now = self._offer.tools, fresh._offer.tools
        names = {key[0] for key in before.keys() | now.keys() if before.get(key) is not now.get(key)}
        names |= {name for name, _ in self._held ^ fresh._held}
        misfits = self._ground.misfits.keys() | fresh._ground.misfits.keys()
        names |= {name for name in misfits if self._ground.misfits.get(name) != fresh._ground.misfits.get(name)}
        return frozenset(names)

    def _cells_of(self, agent_id: str) -> Mapping[str, Cell]:
        rows = self.rows.get(agent_id)
        if rows is not None:
            return rows
        agent = self.agent(agent_id)
        return {} if agent is None else self._index.add(agent_id, agent.rights_unkept())


SMALL_RULES = 200
"""The most rules and agents for a digest that takes a few milliseconds; 100,000 take a second."""
_NO_KEY: frozenset[Key] = frozenset()
_NO_CELL: Mapping[str, Verdict] = {}
