"""Where the boxes and bands of the picture of rights stand, and which are lit by what was chosen. It draws nothing."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QPainterPath

from gatewright.workspace.api import frozen
from gatewright_gui.qt.language import counted, mark, tr
from gatewright_gui.session.rights_picture import AGENT, SOURCE, TOOL, Flow, Node, RightsPicture

LEAST_BOX, GAP, HEADING = 16, 4, 18
MOST_SCALE = 12
"""How many pixels an operation gets at most: few operations make no wall of colour."""
MOST_SOLID, LEAST_COVER = 40, 0.4
"""Of more lit bands between two columns each covers less, down to this share: one sees through the bundle."""
_WIDTHS = (0.23, 0.27, 0.2)
_WIDEST = (210, 250, 190)
COLUMNS = (mark("Agents"), mark("Tools"), mark("Sources"))
Part = tuple[int, ...]
"""What can be chosen: a node, or the two nodes of a band."""


@frozen
class Box:
    """A node with its place."""

    number: int
    node: Node
    rect: QRectF


@frozen
class Band:
    """Operations between two boxes, by verdict; `lit_allow` and `lit_ask`: how many of them what is chosen concerns.

    `cover`: the share of its colour that it has, if it is lit.
    """

    part: Part
    begin: QRectF
    end: QRectF
    """Its two ends, without width."""
    allow: int
    ask: int
    lit_allow: int
    lit_ask: int
    cover: float

    def path(self, first: float = 0.0, last: float = 1.0) -> QPainterPath:
        """Its outline, or that of a share of its thickness."""
        path = self.line(first)
        feet = self.line(last).toReversed()
        path.connectPath(feet)
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
    """Everything with its place; `headings`: words over a column or a group of tools; `lit`: numbers of lit nodes."""

    boxes: tuple[Box, ...] = ()
    bands: tuple[Band, ...] = ()
    headings: tuple[tuple[QRectF, str], ...] = ()
    lit: frozenset[int] = frozenset()


def lit_flows(picture: RightsPicture, chosen: Part) -> list[Flow]:
    """The flows that what is chosen concerns; a right concerns a source where its tool comes at it for the agent."""
    wanted = {picture.nodes[number].column: number for number in chosen}
    agent, tool, source = (wanted.get(column) for column in (AGENT, TOOL, SOURCE))
    reaching = {(flow.agent, flow.tool) for flow in picture.flows if flow.source == source}
    return [
        flow
        for flow in picture.flows
        if (agent is None or flow.agent == agent)
        and (tool is None or flow.tool == tool)
        and (source is None or flow.source == source or (flow.source is None and (flow.agent, flow.tool) in reaching))
    ]


def height_for(nodes: Sequence[Node], scale: int = 0) -> int:
    """How high the picture is where every box holds a word, and each operation so many pixels besides."""
    columns = [[node for node in nodes if node.column == column] for column in (AGENT, TOOL, SOURCE)]
    boxes = (_taken(column) + sum(LEAST_BOX + scale * node.size for node in column) for column in columns)
    return max(boxes, default=0) + GAP


def _taken(nodes: Sequence[Node]) -> int:
    """What gaps and headings take of a column."""
    groups = len(dict.fromkeys(node.group for node in nodes if node.group))
    return HEADING + GAP * len(nodes) + (HEADING * groups if groups > 1 else 0)


def drawing_of(picture: RightsPicture, width: float, height: float, chosen: Part) -> Drawing:
    """Lay everything out in so much room, or in less where there is little to show."""
    height = min(height, height_for(picture.nodes, MOST_SCALE))
    wide = [min(share * width, most) for share, most in zip(_WIDTHS, _WIDEST, strict=True)]
    lefts = (0.0, (width - wide[TOOL]) * 0.52, width - wide[SOURCE])
    boxes: list[Box] = []
    headings: list[tuple[QRectF, str]] = []
    scale = 0.0
    for column in (AGENT, TOOL, SOURCE):
        numbered = [(number, node) for number, node in enumerate(picture.nodes) if node.column == column]
        room = height - _taken([node for _, node in numbered]) - LEAST_BOX * len(numbered)
        own = max(room, 0) / max(sum(node.size for _, node in numbered), 1)
        scale = min(own, scale) if column == SOURCE else own  # a source looks no larger than an agent of its size
        top = HEADING + (max(room, 0) - scale * sum(node.size for _, node in numbered)) / 2
        found, above = _column(numbered, QPointF(lefts[column], top), wide[column], scale)
        boxes += found
        headings += [(QRectF(lefts[column], 0, wide[column], HEADING), tr(COLUMNS[column])), *above]
    lit = lit_flows(picture, chosen) if chosen else list(picture.flows)
    is_lit = {number for flow in lit for number in (flow.agent, flow.tool, flow.source) if number is not None}
    bands = _bands(picture.flows, lit, {box.number: box.rect for box in boxes})
    every = frozenset(range(len(picture.nodes)))
    return Drawing(tuple(boxes), bands, tuple(headings), frozenset(is_lit | set(chosen)) if chosen else every)


def _column(
    numbered: Sequence[tuple[int, Node]], corner: QPointF, width: float, scale: float
) -> tuple[list[Box], list[tuple[QRectF, str]]]:
    is_grouped = len({node.group for _, node in numbered}) > 1
    left, top, group = corner.x(), corner.y(), ""
    boxes: list[Box] = []
    headings: list[tuple[QRectF, str]] = []
    for number, node in numbered:
        if is_grouped and node.group != group:
            group = node.group
            headings.append((QRectF(left, top, width, HEADING), group))
            top += HEADING
        high = LEAST_BOX + scale * node.size
        boxes.append(Box(number, node, QRectF(left, top, width, high)))
        top += high + GAP
    return boxes, headings


def _bands(flows: Iterable[Flow], lit: Iterable[Flow], places: dict[int, QRectF]) -> tuple[Band, ...]:
    counts: defaultdict[Part, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    for some, at in ((flows, 0), (lit, 2)):
        for flow in some:
            count = counts[(flow.agent, flow.tool) if flow.source is None else (flow.tool, flow.source)]
            count[at] += flow.allow
            count[at + 1] += flow.ask
    ordered = sorted(counts, key=lambda part: (places[part[0]].y(), places[part[1]].y()))
    ends: tuple[dict[Part, QRectF], dict[Part, QRectF]] = ({}, {})
    for side, found in enumerate(ends):  # one below the other along each box
        whole: defaultdict[int, int] = defaultdict(int)
        done: defaultdict[int, float] = defaultdict(float)
        for part, count in counts.items():
            whole[part[side]] += count[0] + count[1]
        for part in ordered:
            edge, rect = part[side], places[part[side]]
            thick = rect.height() * (counts[part][0] + counts[part][1]) / max(whole[edge], 1)
            x = rect.right() if side == 0 else rect.left()
            found[part] = QRectF(x, rect.top() + done[edge], 0, thick)
            done[edge] += thick
    beside = Counter(ends[0][part].x() for part in ordered if any(counts[part][2:]))
    covers = {x: min(1.0, max(LEAST_COVER, MOST_SOLID / count)) for x, count in beside.items()}
    bands = (
        Band(part, begin := ends[0][part], ends[1][part], *counts[part], cover=covers.get(begin.x(), 1.0))
        for part in ordered
    )
    return tuple(sorted(bands, key=lambda band: band.lit_allow + band.lit_ask > 0))  # lit ones over the others


def words_of(picture: RightsPicture, part: Part) -> str:
    """What a box or a band says, in a sentence."""
    flows = lit_flows(picture, part)
    rights = _counted([flow for flow in flows if flow.source is None])
    places = _counted([flow for flow in flows if flow.source is not None])
    nodes = [picture.nodes[number] for number in part]
    names, columns = [_called(node) for node in nodes], [node.column for node in nodes]
    if columns == [AGENT]:
        return f"{names[0]}: {rights}"
    if columns == [TOOL]:
        agents = sum(picture.nodes[number].members for number in {flow.agent for flow in flows})
        who = counted(agents, "agent", "agents")
        return tr("{tool}: {rights}, counted for {agents}", tool=names[0], rights=rights, agents=who)
    if columns == [SOURCE]:
        return tr("{source}: {operations} come at it", source=names[0], operations=places)
    if columns == [TOOL, SOURCE]:
        return tr("{tool} comes at {source}: {operations}", tool=names[0], source=names[1], operations=places)
    return tr("{agent} may use {tool}: {operations}", agent=names[0], tool=names[1], operations=rights)


def _called(node: Node) -> str:
    if node.name:
        return node.name
    if node.column == AGENT:
        return counted(node.members, "other agent", "other agents")
    if node.column == TOOL:
        return counted(node.members, "other tool", "other tools")
    return counted(node.members, "other source", "other sources")


def _counted(flows: Sequence[Flow]) -> str:
    ask = sum(flow.ask for flow in flows)
    every = sum(flow.allow for flow in flows) + ask
    operations = counted(every, "operation", "operations")
    return tr("{operations} ({ask:,} ask first)", operations=operations, ask=ask) if ask else operations
