"""What all agents may do, as the Overview tells it. For the worker process: nothing of Qt is loaded."""

import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from weakref import WeakKeyDictionary

from gatewright.workspace.api import (
    Agent,
    AgentView,
    OperationFacts,
    OperationRight,
    Policy,
    SafetyTier,
    ToolRight,
    Verdict,
    Workspace,
    frozen,
    level_verdict,
    sources_reached,
)
from gatewright_gui.qt.language import tr
from gatewright_gui.session.tool_groups import by_origin, group_of

AT_A_TIME_S = 0.03
"""How long one question may take; then what is known is shown, and the next is asked."""
MOST_RISKS = 200
MOST_AGENTS, MOST_TOOLS, MOST_SOURCES = 8, 12, 6
"""What a picture shows one by one, the most dangerous first where they are more; the others stand together."""
MOST_GROUPS = 4
"""Groups of tools whose others stand together each; those of further groups stand together as one."""
AGENT, TOOL, SOURCE = range(3)
"""The columns of the picture."""


@frozen
class RightShare:
    """How many operations of an agent are on without asking, ask first, are blocked, and are off.

    `privileged`: how many of those that are on or ask.
    """

    on: int
    asks: int
    blocked: int
    off: int
    privileged: int

    @property
    def shown(self) -> int:
        """Those that the model sees."""
        return self.on + self.asks

    @property
    def every(self) -> int:
        """All of them."""
        return self.shown + self.blocked + self.off


@frozen
class Risk:
    """An operation that is privileged or deletes, and is on without asking; `agents`: for which."""

    tool: str
    operation: str
    is_privileged: bool
    agents: tuple[str, ...]


@frozen
class Node:
    """An agent, a tool or a source, or several that stand together (``name`` is empty then, ``members`` how many).

    ``size``: its operations that are on, asking ones included, of all agents; ``group``: where a tool comes from.
    """

    column: int
    name: str
    size: int
    members: int = 1
    group: str = ""

    @property
    def title(self) -> str:
        """What it is called."""
        return self.name or tr("and {count} more", count=f"{self.members:,}")


@frozen
class Flow:
    """Operations of a tool that are on for an agent (``source`` None), or by which it comes at a source.

    The parts are numbers of nodes; ``allow`` operations are on without asking, ``ask`` ones ask first.
    """

    agent: int
    tool: int
    source: int | None
    allow: int
    ask: int


@frozen
class RightsPicture:
    """Who may do how much with what: agents, tools and sources, each column from the top down."""

    nodes: tuple[Node, ...] = ()
    flows: tuple[Flow, ...] = ()


class _Count(Counter[Verdict]):
    """Operations by verdict."""

    @property
    def pair(self) -> tuple[int, int]:
        return self[Verdict.ALLOW], self[Verdict.ASK]


@frozen
class _Reach:
    """What is kept of an agent: its share, its risks as (tool, operation, privileged), and its operations that are on.

    Those are counted by tool, and by tool and source.
    """

    share: RightShare
    risks: tuple[tuple[str, str, bool], ...]
    tools: Mapping[str, tuple[int, int]]
    sources: Mapping[tuple[str, str], tuple[int, int]]


_reaches: WeakKeyDictionary[AgentView, _Reach] = WeakKeyDictionary()
"""By the view that it was read off: an edit gives another one to the agents that it concerns, and to no others."""


def shares_of(workspace: Workspace, agent_ids: Iterable[str]) -> dict[str, RightShare]:
    """The shares of these agents: of the first at least, of the others while there is time."""
    found: dict[str, RightShare] = {}
    until = time.monotonic() + AT_A_TIME_S
    for agent_id in agent_ids:
        if agent_id in workspace.policy.agents:
            found[agent_id] = _reach(workspace, agent_id).share
        if time.monotonic() > until:
            break
    return found


def rights_together(workspace: Workspace) -> tuple[tuple[Risk, ...], RightsPicture]:
    """The riskiest operations, privileged ones and those of most agents first, and the picture of all rights."""
    reaches = {agent_id: _reach(workspace, agent_id) for agent_id in workspace.policy.agents}
    agents: defaultdict[tuple[str, str, bool], list[str]] = defaultdict(list)
    for agent_id, reach in reaches.items():
        for risk in reach.risks:
            agents[risk].append(agent_id)
    ranked = sorted(agents, key=lambda risk: (not risk[2], -len(agents[risk]), risk))
    risks = tuple(Risk(*risk, tuple(agents[risk])) for risk in ranked[:MOST_RISKS])
    return risks, _picture(workspace, reaches)


# what is read off the view of an agent


def _reach(workspace: Workspace, agent_id: str) -> _Reach:
    view = workspace.view(agent_id)
    if view in _reaches:
        return _reaches[view]
    policy = workspace.policy
    agent = policy.agents[agent_id]
    share, risks = Counter[str](), list[tuple[str, str, bool]]()
    tools: defaultdict[str, _Count] = defaultdict(_Count)
    places: defaultdict[tuple[str, str], _Count] = defaultdict(_Count)
    for name, right in view.rights.items():
        for op, row in zip(right.facts.operations, right.operations, strict=True):
            if not row.ticked or row.verdict is Verdict.DENY:
                share["blocked" if row.ticked else "off"] += 1
                continue
            is_privileged = row.tier is SafetyTier.PRIVILEGED
            share["privileged"] += is_privileged
            share["on" if row.verdict is Verdict.ALLOW else "asks"] += 1
            if row.verdict is Verdict.ALLOW and (is_privileged or op.destroys):
                risks.append((name, op.name, is_privileged))
            tools[name][row.verdict] += 1
            for source_id, verdict in _places(right, op, row, policy, agent):
                places[name, source_id][verdict] += 1
    found = _reaches[view] = _Reach(
        RightShare(*(share[name] for name in ("on", "asks", "blocked", "off", "privileged"))),
        tuple(risks),
        {name: count.pair for name, count in tools.items()},
        {place: count.pair for place, count in places.items()},
    )
    return found


def _places(
    right: ToolRight, op: OperationFacts, row: OperationRight, policy: Policy, agent: Agent
) -> Iterator[tuple[str, Verdict]]:
    """The sources that calls of an operation come at, and what these come to there at best."""
    for source in sources_reached(policy, agent, right.facts, op):
        said = {level_verdict(source, right.facts, op, level) for level in source.levels}
        if said != {Verdict.DENY}:
            is_free = Verdict.ALLOW in said and row.verdict is Verdict.ALLOW
            yield source.source_id, Verdict.ALLOW if is_free else Verdict.ASK


# the picture


def _picture(workspace: Workspace, reaches: Mapping[str, _Reach]) -> RightsPicture:
    """Every agent and source that there is room for, and every tool of which an operation is on."""
    sizes: Counter[str] = Counter()
    at_source: Counter[str] = Counter()
    for reach in reaches.values():
        for name, pair in reach.tools.items():
            sizes[name] += sum(pair)
        for (_, source_id), pair in reach.sources.items():
            at_source[source_id] += sum(pair)
    agents = {agent_id: sum(map(sum, reach.tools.values())) for agent_id, reach in reaches.items()}
    sources = {source.source_id: at_source[source.source_id] for source in workspace.policy.file_sources}
    nodes: list[Node] = []
    dangers = {agent_id: len(reach.risks) for agent_id, reach in reaches.items()}
    node_of_agent = _place(nodes, AGENT, agents, MOST_AGENTS, dangers=dangers)
    node_of_tool = _place_tools(
        nodes, workspace, sizes, Counter(risk[0] for reach in reaches.values() for risk in reach.risks)
    )
    node_of_source = _place(nodes, SOURCE, sources, MOST_SOURCES)
    flows: defaultdict[tuple[int, int, int | None], list[int]] = defaultdict(lambda: [0, 0])
    for agent_id, reach in reaches.items():
        agent = node_of_agent[agent_id]
        for name, pair in reach.tools.items():
            _add(flows[agent, node_of_tool[name], None], pair)
        for (name, source_id), pair in reach.sources.items():
            _add(flows[agent, node_of_tool[name], node_of_source[source_id]], pair)
    return RightsPicture(tuple(nodes), tuple(Flow(*place, *count) for place, count in flows.items()))


def _add(count: list[int], pair: tuple[int, int]) -> None:
    count[0] += pair[0]
    count[1] += pair[1]


def _place(
    nodes: list[Node],
    column: int,
    sizes: Mapping[str, int],
    most: int,
    group: str = "",
    *,
    keeps_order: bool = True,
    dangers: Mapping[str, int] | None = None,
) -> dict[str, int]:
    """Add nodes for these; the number of the node of each.

    Where they are too many, one by one those that can do most harm without asking (`dangers`), then the largest.
    """
    harm = dangers or {}
    if len(sizes) <= most and keeps_order:
        shown, rest = list(sizes), list[str]()
    else:
        ranked = sorted(sizes, key=lambda name: (-harm.get(name, 0), -sizes[name]))
        alone = most if len(ranked) <= most else max(most - 1, 0)
        shown, rest = ranked[:alone], ranked[alone:]
    found: dict[str, int] = {}
    for name in shown:
        found[name] = len(nodes)
        nodes.append(Node(column, name, sizes[name], 1, group))
    if rest:
        found |= dict.fromkeys(rest, len(nodes))
        nodes.append(Node(column, "", sum(sizes[name] for name in rest), len(rest), group))
    return found


def _place_tools(
    nodes: list[Node], workspace: Workspace, sizes: Mapping[str, int], dangers: Mapping[str, int]
) -> dict[str, int]:
    """Tools stand by where they come from; what there is no room for stands at the end of its group."""
    origins = {facts.name: facts.origin for facts in workspace.catalog}
    catalogs = workspace.policy.catalogs
    groups = by_origin((name for name in origins if name in sizes), origins.__getitem__, catalogs)
    largest = set(sorted(sizes, key=lambda name: (-dangers.get(name, 0), -sizes[name]))[:MOST_TOOLS])
    ordered = sorted(groups, key=lambda origin: -sum(sizes[name] for name in groups[origin]))
    own, others = set(ordered[:MOST_GROUPS]), dict[str, int]()
    found: dict[str, int] = {}
    for origin, names in groups.items():
        if origin in own:
            alone = sum(name in largest for name in names)
            most = alone if alone == len(names) else alone + 1
            title = group_of(origin, catalogs).title
            found |= _place(nodes, TOOL, {name: sizes[name] for name in names}, most, title, dangers=dangers)
        else:
            others |= {name: sizes[name] for name in names}
    return found | (_place(nodes, TOOL, others, 1, tr("Other catalogs"), keeps_order=False) if others else {})
