"""The reach of agents by effect: read, change, delete, send, run. For the worker process: it loads nothing of Qt."""

import time
from collections import Counter, defaultdict
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from itertools import islice
from weakref import WeakKeyDictionary

from gatewright.workspace.api import (
    Agent,
    AgentView,
    Effect,
    OperationFacts,
    SafetyTier,
    ToolRight,
    Verdict,
    Workspace,
    frozen,
    kind_of,
    sources_reached,
)
from gatewright_gui.qt.language import counted, tr

AT_A_TIME_S = 0.03
"""Limit on the time of one question; then the answers so far are shown, and the next is asked."""
MOST_RISKS, MOST_PLACES, MOST_UNUSED = 200, 3, 2_000
DANGEROUS = frozenset({Effect.DELETE, Effect.SEND, Effect.RUN})
_SEVERITY = {Effect.DELETE: 0, Effect.RUN: 1, Effect.CHANGE: 2, Effect.READ: 3, Effect.SEND: 4}
Used = Collection[tuple[str, str, str]]
"""Agents, tools and operations that the log has calls of."""


@frozen
class Count:
    """Operations that an agent may call without asking (``free``), and those that ask first."""

    free: int = 0
    asks: int = 0

    @property
    def every(self) -> int:
        """All that its model sees."""
        return self.free + self.asks

    def __add__(self, other: "Count") -> "Count":
        return Count(self.free + other.free, self.asks + other.asks)


@frozen
class Danger:
    """An operation that is on without asking, and deletes, runs, sends or is privileged; ``places``: where it acts."""

    tool: str
    operation: str
    effect: Effect
    places: tuple[str, ...]

    @property
    def called(self) -> str:
        """Tool and operation."""
        return f"{self.tool}.{self.operation}" if self.operation else self.tool


@frozen
class Risk:
    """An operation in danger of doing harm, with the agents that may call it without asking."""

    danger: Danger
    agents: tuple[str, ...]


@frozen
class AgentReach:
    """The reach of an agent. ``dangers``: the number of dangerous operations that do not ask; ``off``: of those that
    are off; ``blocked``: of those that are on without effect.
    """

    effects: Mapping[Effect, Count] = field(default_factory=dict[Effect, Count])
    dangers: int = 0
    off: int = 0
    blocked: int = 0

    @property
    def shown(self) -> int:
        """The operations that its model sees."""
        return sum(count.every for count in self.effects.values())

    @property
    def harm(self) -> int:
        """The number of operations that delete or run without asking, a measure to rank agents by."""
        return self.free(Effect.DELETE) + self.free(Effect.RUN)

    def free(self, effect: Effect) -> int:
        """The operations with that effect that do not ask."""
        return self.effects.get(effect, Count()).free

    @property
    def changes(self) -> bool:
        """True if it can do more than read, with or without asking."""
        return any(count.every for effect, count in self.effects.items() if effect is not Effect.READ)


Reaches = Mapping[str, AgentReach]
"""By agent, in the order of the file."""

Effects = Mapping[Effect, Count]


@frozen
class OriginReach:
    """The operations of the tools of one origin (a server, a coding agent, the built-in ones), and who may call them.

    ``effects``: the number of operations, without those that nobody accepted yet; ``agents``: what each agent's model
    sees of them.
    """

    effects: Mapping[Effect, int] = field(default_factory=dict[Effect, int])
    agents: Mapping[str, Effects] = field(default_factory=dict[str, Effects])

    def free(self, effect: Effect) -> tuple[str, ...]:
        """List the agents that may call operations with that effect without asking."""
        return tuple(name for name, effects in self.agents.items() if effects.get(effect, Count()).free)


_Found = tuple[AgentReach, tuple[Danger, ...], Mapping[str, Effects]]
_reaches: WeakKeyDictionary[AgentView, _Found] = WeakKeyDictionary()
"""By the view that each was read off: an edit makes a new view for the agents that it concerns."""


def reaches_of(workspace: Workspace, agent_ids: Iterable[str]) -> dict[str, AgentReach]:
    """Return what these agents can do: the first at least, the others while there is time."""
    found: dict[str, AgentReach] = {}
    until = time.monotonic() + AT_A_TIME_S
    for agent_id in agent_ids:
        if agent_id in workspace.policy.agents:
            found[agent_id] = _reach(workspace, agent_id)[0]
        if time.monotonic() > until:
            break
    return found


def _reach(workspace: Workspace, agent_id: str) -> _Found:
    view = workspace.view(agent_id)
    if view in _reaches:
        return _reaches[view]
    agent = workspace.policy.agents[agent_id]
    states = Counter[str]()
    origins: dict[str, dict[Effect, Count]] = {}
    dangers: list[Danger] = []
    for name, right in view.rights.items():
        for op, row in zip(right.facts.operations, right.operations, strict=True):
            if not row.ticked or row.verdict is Verdict.DENY:
                states["blocked" if row.ticked else "off"] += 1
                continue
            effects = origins.setdefault(right.facts.origin, {})
            effects[op.effect] = effects.get(op.effect, Count()) + (
                Count(asks=1) if row.verdict is Verdict.ASK else Count(free=1)
            )
            is_dangerous = op.effect in DANGEROUS or row.tier is SafetyTier.PRIVILEGED
            if row.verdict is Verdict.ALLOW and is_dangerous:
                dangers.append(Danger(name, op.name, op.effect, tuple(_places(workspace, agent, right, op))))
    reach = AgentReach(together(origins.values()), len(dangers), states["off"], states["blocked"])
    found = _reaches[view] = reach, tuple(dangers), origins
    return found


def together(parts: Iterable[Effects]) -> dict[Effect, Count]:
    """Add up counts, in the order of the effects."""
    found: dict[Effect, Count] = {}
    for part in parts:
        for effect, count in part.items():
            found[effect] = found.get(effect, Count()) + count
    return {effect: found[effect] for effect in Effect if effect in found}


def origins_of(workspace: Workspace) -> Generator[int, None, dict[str, OriginReach]]:
    """Return what the tools of every origin do, and what each agent may do with them."""
    offered: defaultdict[str, Counter[Effect]] = defaultdict(Counter)
    for facts in workspace.catalog:
        offered[facts.origin].update(op.effect for op in facts.operations if not facts.held)
    agents: defaultdict[str, dict[str, Effects]] = defaultdict(dict)
    for done, agent_id in enumerate(workspace.policy.agents):
        for origin, effects in _reach(workspace, agent_id)[2].items():
            agents[origin][agent_id] = effects
        yield done + 1
    return {
        origin: OriginReach({effect: effects[effect] for effect in Effect if effects[effect]}, agents[origin])
        for origin, effects in offered.items()
    }


def _places(workspace: Workspace, agent: Agent, right: ToolRight, op: OperationFacts) -> Iterator[str]:
    """Yield the hosts that an operation may reach, else its roots, else its sources."""
    if op.effect is Effect.SEND:
        for one in agent.capabilities:
            if kind_of(one) in op.capabilities:
                yield from one.scope or ()
    elif op.roots:
        yield from sorted(op.roots)
    else:
        yield from (source.source_id for source in sources_reached(workspace.policy, agent, right.facts, op))


# of all agents together


def risks_of(workspace: Workspace) -> tuple[Risk, ...]:
    """Rank the operations that could do harm without asking: by effect, then by how many agents may call them."""
    agents: defaultdict[tuple[str, str, Effect], list[str]] = defaultdict(list)
    places: defaultdict[tuple[str, str, Effect], dict[str, None]] = defaultdict(dict)
    for agent_id in workspace.policy.agents:
        for one in _reach(workspace, agent_id)[1]:
            key = one.tool, one.operation, one.effect
            agents[key].append(agent_id)
            places[key] |= dict.fromkeys(one.places)
    ranked = sorted(agents, key=lambda key: (_SEVERITY[key[2]], -len(agents[key]), key))
    return tuple(Risk(Danger(*key, tuple(places[key])), tuple(agents[key])) for key in ranked[:MOST_RISKS])


@frozen
class Unused:
    """The number of operations that an agent's model sees, and of those that calls have used."""

    used: int
    shown: int


def count_unused(workspace: Workspace, used: Used, agent_ids: Sequence[str]) -> dict[str, Unused]:
    """Count the used rights of these agents: of the first at least, of the others while there is time."""
    found: dict[str, Unused] = {}
    until = time.monotonic() + AT_A_TIME_S
    for agent_id in agent_ids:
        if agent_id in workspace.policy.agents:
            rights = list(_visible_rights(workspace, agent_id))
            found[agent_id] = Unused(sum((agent_id, *right) in used for right in rights), len(rights))
        if time.monotonic() > until:
            break
    return found


def list_unused(workspace: Workspace, used: Used, agent_ids: Sequence[str]) -> tuple[tuple[str, str, str], ...]:
    """List agents, tools and operations that no call has used, at most ``MOST_UNUSED``."""
    rights = (
        (agent_id, *right)
        for agent_id in agent_ids
        if agent_id in workspace.policy.agents
        for right in _visible_rights(workspace, agent_id)
    )
    return tuple(islice((right for right in rights if right not in used), MOST_UNUSED))


def _visible_rights(workspace: Workspace, agent_id: str) -> Iterator[tuple[str, str]]:
    """Yield the tools and operations that the agent's model sees."""
    for name, right in workspace.view(agent_id).rights.items():
        for row in right.operations:
            if row.ticked and row.verdict is not Verdict.DENY:
                yield name, row.operation


def headline(reaches: Reaches, ungated: Sequence[str]) -> str:
    """Say in a few words who can do harm; first who asks no gate at all."""
    told: list[str] = []
    if len(ungated) == 1:
        told.append(tr("Nobody decides what {agent} may do: it can do all that you can.", agent=ungated[0]))
    elif ungated:
        *most, last = ungated
        agents = tr("{names} and {last}", names=", ".join(most), last=last)
        told.append(tr("Nobody decides what {agents} may do: they can do all that you can.", agents=agents))
    changing = sum(reach.changes for reach in reaches.values())
    if changing:
        told.append(counted(changing, "agent can change things here.", "agents can change things here."))
        deleting, running = (
            sum(reach.free(effect) > 0 for reach in reaches.values()) for effect in (Effect.DELETE, Effect.RUN)
        )
        if deleting and running:
            words = tr(
                "{deleting:,} can delete and {running:,} can run commands without asking.",
                deleting=deleting,
                running=running,
            )
            told.append(words)
        elif deleting:
            told.append(tr("{count:,} can delete without asking.", count=deleting))
        elif running:
            told.append(tr("{count:,} can run commands without asking.", count=running))
        else:
            told.append(tr("None can delete or run commands without asking."))
    elif reaches:
        told.append(tr("No agent can change anything here."))
    return "\n".join((*told[: bool(ungated)], " ".join(told[bool(ungated) :]))).rstrip()
