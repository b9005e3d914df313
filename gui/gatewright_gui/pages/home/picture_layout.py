"""The layout of the picture of reach: boxes of agents at the left, of effects at the right, bands between them."""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence

from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QPainterPath

from gatewright.workspace.api import Effect, frozen
from gatewright_gui.qt.language import counted, mark, tr
from gatewright_gui.session.effects import Count, Reaches, Used

LEAST_BOX, GAP, HEADING = 18, 4, 18
MOST_SCALE = 12
"""Limit of pixels for an operation: few operations make no wall of colour."""
MOST_AGENTS = 9
"""Boxes of agents that a ranked picture has; the last one stands for all others together."""
MOST_SOLID, LEAST_COVER = 40, 0.4
"""Of more lit bands each covers less, down to this share: one sees through the bundle."""
_WIDTHS, _WIDEST = (0.3, 0.28), (240, 200)
EFFECTS: dict[Effect, str] = {
    Effect.READ: mark("Reads"),
    Effect.CHANGE: mark("Changes"),
    Effect.DELETE: mark("Deletes"),
    Effect.SEND: mark("Sends out"),
    Effect.RUN: mark("Runs commands"),
}
Part = tuple[int, ...]
"""A choice: a node, or the two nodes of a band."""


@frozen
class Node:
    """An agent, several others together, or an effect. ``size``: its operations that are on, asking ones included."""

    agents: tuple[str, ...]
    effect: Effect | None
    size: int

    @property
    def title(self) -> str:
        """Its name on screen."""
        if self.effect is not None:
            return tr(EFFECTS[self.effect])
        return self.agents[0] if len(self.agents) == 1 else tr("and {count:,} more", count=len(self.agents))


@frozen
class Flow:
    """The operations of an agent's node with an effect; ``agent`` and ``effect`` are numbers of nodes."""

    agent: int
    effect: int
    count: Count


@frozen
class Picture:
    """The reach of all agents: nodes of agents, then of effects."""

    nodes: tuple[Node, ...] = ()
    flows: tuple[Flow, ...] = ()


def by_risk(reaches: Reaches, _used: Used) -> list[str]:
    """Rank agents by what they may delete or run without asking, then by all they can do but read."""
    rank: Callable[[str], tuple[int, int]] = lambda name: (reaches[name].harm, reaches[name].dangers)  # noqa: E731
    return sorted(reaches, key=rank, reverse=True)


def by_use(reaches: Reaches, used: Used) -> list[str]:
    """Rank agents by how many of their rights calls have used."""
    counts = Counter(agent_id for agent_id, _, _ in used)
    return sorted(reaches, key=lambda name: -counts[name])


def picture_of(reaches: Reaches, ranked: Sequence[str]) -> Picture:
    """Make the picture: the agents in that order; what is beyond ``MOST_AGENTS`` boxes stands together at the end.

    ``ranked`` empty: every agent, in the order of the file.
    """
    names = list(ranked or reaches)
    alone = len(names) if not ranked or len(names) <= MOST_AGENTS else MOST_AGENTS - 1
    groups = [(name,) for name in names[:alone]] + ([tuple(names[alone:])] if names[alone:] else [])
    counts: list[dict[Effect, Count]] = []
    for group in groups:
        held: defaultdict[Effect, Count] = defaultdict(Count)
        for name in group:
            for effect, count in reaches[name].effects.items():
                held[effect] += count
        counts.append(held)
    nodes = [
        Node(group, None, sum(one.every for one in held.values())) for group, held in zip(groups, counts, strict=True)
    ]
    sizes = {effect: sum(held.get(effect, Count()).every for held in counts) for effect in Effect}
    nodes += [Node((), effect, size) for effect, size in sizes.items()]
    flows = [
        Flow(at, len(groups) + number, held[effect])
        for at, held in enumerate(counts)
        for number, effect in enumerate(Effect)
        if held.get(effect, Count()).every
    ]
    return Picture(tuple(nodes), tuple(flows))


@frozen
class Box:
    """A node with its place."""

    number: int
    node: Node
    rect: QRectF


@frozen
class Band:
    """A flow with its two ends, which have no width. ``cover``: the share of its colour that it has, if it is lit."""

    flow: Flow
    effect: Effect
    begin: QRectF
    end: QRectF
    is_lit: bool
    cover: float

    @property
    def part(self) -> Part:
        """The choice that a click on it makes."""
        return self.flow.agent, self.flow.effect

    def path(self, first: float = 0.0, last: float = 1.0) -> QPainterPath:
        """Its outline, or that of a share of its thickness."""
        path = self.line(first)
        path.connectPath(self.line(last).toReversed())
        path.closeSubpath()
        return path

    def line(self, at: float) -> QPainterPath:
        """From one end to the other, at a share of its thickness."""
        left, right = self.begin.x(), self.end.x()
        bend = (right - left) / 2
        high, low = (rect.y() + rect.height() * at for rect in (self.begin, self.end))
        path = QPainterPath(QPointF(left, high))
        path.cubicTo(left + bend, high, right - bend, low, right, low)
        return path


@frozen
class Drawing:
    """Everything with its place; ``headings``: words over a column; ``lit``: numbers of lit nodes."""

    boxes: tuple[Box, ...] = ()
    bands: tuple[Band, ...] = ()
    headings: tuple[tuple[QRectF, str], ...] = ()
    lit: frozenset[int] = frozenset()


def lit_flows(picture: Picture, chosen: Part) -> list[Flow]:
    """Return the flows that what is chosen concerns."""
    return [flow for flow in picture.flows if {flow.agent, flow.effect}.issuperset(chosen)]


def height_for(nodes: Sequence[Node], scale: int = 0) -> int:
    """The height of the picture if every box holds a word, and each operation ``scale`` pixels besides."""
    columns = [[node for node in nodes if (node.effect is None) == is_agent] for is_agent in (True, False)]
    boxes = (_gap_height(column) + sum(LEAST_BOX + scale * node.size for node in column) for column in columns)
    return max(boxes, default=0) + GAP


def _gap_height(nodes: Sequence[Node]) -> int:
    """The height of a column's gaps and heading."""
    return HEADING + GAP * len(nodes)


def drawing_of(picture: Picture, width: float, height: float, chosen: Part) -> Drawing:
    """Lay everything out in so much room, or in less where there is little to show."""
    height = min(height, height_for(picture.nodes, MOST_SCALE))
    wide = [min(share * width, most) for share, most in zip(_WIDTHS, _WIDEST, strict=True)]
    lefts = (0.0, width - wide[1])
    boxes: list[Box] = []
    headings: list[tuple[QRectF, str]] = []
    for column, words in enumerate((mark("Agents"), mark("Can do"))):
        numbered = [one for one in enumerate(picture.nodes) if (one[1].effect is not None) == bool(column)]
        room = max(height - _gap_height([node for _, node in numbered]) - LEAST_BOX * len(numbered), 0)
        size = sum(node.size for _, node in numbered)
        scale = min(room / max(size, 1), MOST_SCALE)
        top = HEADING + (room - scale * size) / 2
        for number, node in numbered:
            high = LEAST_BOX + scale * node.size
            boxes.append(Box(number, node, QRectF(lefts[column], top, wide[column], high)))
            top += high + GAP
        headings.append((QRectF(lefts[column], 0, wide[column], HEADING), tr(words)))
    lit = lit_flows(picture, chosen)
    is_lit = {number for flow in lit for number in (flow.agent, flow.effect)}
    bands = _bands(picture, set(map(id, lit)), {box.number: box.rect for box in boxes})
    every = frozenset(range(len(picture.nodes)))
    return Drawing(tuple(boxes), bands, tuple(headings), frozenset(is_lit | set(chosen)) if chosen else every)


def _bands(picture: Picture, lit: set[int], places: dict[int, QRectF]) -> tuple[Band, ...]:
    """Put the ends of the flows one below the other along each box; lit ones lie over the others."""
    ends: tuple[dict[int, QRectF], dict[int, QRectF]] = ({}, {})
    for side, found in enumerate(ends):
        done: defaultdict[int, float] = defaultdict(float)
        for flow in picture.flows:  # by agent, then by effect: no two bands between the same boxes cross
            at = (flow.agent, flow.effect)[side]
            rect, size = places[at], picture.nodes[at].size
            thick = rect.height() * flow.count.every / max(size, 1)
            found[id(flow)] = QRectF(rect.left() if side else rect.right(), rect.top() + done[at], 0, thick)
            done[at] += thick
    cover = min(1.0, max(LEAST_COVER, MOST_SOLID / max(len(lit), 1)))
    made = (
        Band(
            flow,
            picture.nodes[flow.effect].effect or Effect.READ,
            ends[0][id(flow)],
            ends[1][id(flow)],
            id(flow) in lit,
            cover,
        )
        for flow in picture.flows
    )
    return tuple(sorted(made, key=lambda band: band.is_lit))


def words_of(picture: Picture, part: Part) -> str:
    """Say in a sentence what a box or a band means."""
    total = Count()
    for flow in lit_flows(picture, part):
        total += flow.count
    operations = counted(total.every, "operation", "operations")
    if total.asks:
        operations = tr("{operations} ({ask:,} ask first)", operations=operations, ask=total.asks)
    nodes = [picture.nodes[number] for number in part]
    names = [
        node.title if node.effect is not None or len(node.agents) == 1 else counted(len(node.agents), "agent", "agents")
        for node in nodes
    ]
    if len(names) == 2:
        return tr("{agent}, {effect}: {operations}", agent=names[0], effect=names[1], operations=operations)
    return f"{names[0]}: {operations}"
