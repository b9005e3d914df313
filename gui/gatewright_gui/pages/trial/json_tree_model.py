"""A JSON value as a tree of keys and values.

Rows are made when they are asked for, and no row holds more than a few hundred: what is longer is put into spans such
as `[200 ... 399]`. So a megabyte of JSON costs its parsing and what is on the screen.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, cast

from PySide6.QtCore import QAbstractItemModel, QModelIndex, QObject, Qt

from gatewright_gui.qt.language import counted, mark, tr
from gatewright_gui.qt.table_model import Index
from gatewright_gui.session.calls import visible

Step = str | int
KEY, VALUE = range(2)
HEADERS = (mark("Name"), mark("Value"))
KIND = Qt.ItemDataRole.UserRole + 1
"""`object`, `array`, `string`, `number`, `boolean`, `null`."""
MAX_ROWS = 200
"""Rows in a row."""
MAX_CELL = 300
"""Characters of a text that a cell shows; the whole is told by `text_at`."""
_MAX_END = 24
"""Characters of the keys between which a span goes."""
ROOT = "result"
_KINDS: dict[type, str] = {
    dict: "object",
    list: "array",
    str: "string",
    bool: "boolean",
    int: "number",
    float: "number",
    type(None): "null",
}


def is_open(value: Any) -> bool:
    """Tell whether a value holds others."""
    return isinstance(value, dict | list)


@dataclass(eq=False, slots=True)
class Node:
    """One value at its place, or a span of the values in it: from `start` up to `stop`. `children`: those looked at."""

    number: int
    step: Step
    value: Any
    parent: "Node | None"
    row: int
    start: int
    stop: int
    is_span: bool = False
    keys: tuple[str, ...] | None = None
    children: "dict[int, Node]" = field(default_factory=dict["int", "Node"])

    @property
    def count(self) -> int:
        """The number of values in it."""
        return self.stop - self.start

    @property
    def width(self) -> int:
        """The number of values behind one of its rows: 1, or as many as make its rows few."""
        width = 1
        while self.count > width * MAX_ROWS:
            width *= MAX_ROWS
        return width

    @property
    def rows(self) -> int:
        """The number of rows below it."""
        return -(-self.count // self.width)

    @property
    def part(self) -> Any:
        """Its value; of a span only what is in it."""
        if not self.is_span:
            return self.value
        if isinstance(self.value, list):
            return cast("list[Any]", self.value)[self.start : self.stop]
        return {key: self.value[key] for key in map(self.step_at, range(self.start, self.stop))}

    def step_at(self, position: int) -> Step:
        """The key or the number of a value in it."""
        if not isinstance(self.value, dict):
            return position
        if self.keys is None:
            above = self.parent if self.is_span else None
            above_keys = above.keys if above is not None else None
            self.keys = above_keys or tuple(cast("dict[str, Any]", self.value))
        return self.keys[position]


class JsonTreeModel(QAbstractItemModel):
    """One root row, below it what is in the value."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._root: Node | None = None
        self._nodes: dict[int, Node] = {}
        self._made = 0

    def set_value(self, value: Any, root: str = ROOT) -> None:
        """Show another value; `root`: what it is called."""
        self.beginResetModel()
        self._nodes.clear()
        self._root = self._make(root, value, None, 0)
        self.endResetModel()

    def clear(self) -> None:
        """Show nothing."""
        self.beginResetModel()
        self._nodes.clear()
        self._root = None
        self.endResetModel()

    # what is told of a place

    def path_at(self, index: Index) -> str:
        """The place as `$.items[3].name`."""
        text = ""
        node = self._node(index)
        while node is not None and node.parent is not None:
            text = f"{'' if node.is_span else _step(node.step)}{text}"
            node = node.parent
        return f"${text}"

    def text_at(self, index: Index) -> str:
        """The whole value: a text as it is, anything else as JSON; takes time when it is large."""
        node = self._node(index)
        return "" if node is None else whole_text(node.part)

    def part_at(self, index: Index) -> Any:
        """The value itself, of a span what is in it; None where there is none."""
        node = self._node(index)
        return None if node is None else node.part

    def is_text(self, index: Index) -> bool:
        """Tell whether the value is a text."""
        node = self._node(index)
        return node is not None and isinstance(node.value, str)

    def index_of(self, positions: tuple[int, ...]) -> QModelIndex:
        """The place that is reached from the root by these positions, through all spans."""
        index = self.index(0, 0)
        for position in positions:
            node = self._node(index)
            while node is not None and node.width > 1:
                index = self.index((position - node.start) // node.width, 0, index)
                node = self._node(index)
            index = self.index(position - (node.start if node is not None else 0), 0, index)
        return index

    def find(self, text: str) -> Iterator[tuple[int, ...] | None]:
        """The places of a text in a key or a value, in order; None between, so that one may stop to breathe."""
        wanted = text.casefold()
        if self._root is None or not wanted:
            return
        # no recursion: as deep as JSON goes
        stack: list[tuple[Any, tuple[int, ...], Iterator[tuple[int, Step]]]] = []
        value, rows = self._root.value, ()
        if not is_open(value) and wanted in _scalar(value).casefold():
            yield rows
        stack.append((value, rows, _steps(value)))
        while stack:
            value, rows, steps = stack[-1]
            step = next(steps, None)
            if step is None:
                stack.pop()
                continue
            row, key = step
            inner, place = value[key], (*rows, row)
            in_key = isinstance(key, str) and wanted in key.casefold()
            yield place if in_key or (not is_open(inner) and wanted in _scalar(inner).casefold()) else None
            if is_open(inner):
                stack.append((inner, place, _steps(inner)))

    # the model

    def index(self, row: int, column: int, parent: Index = QModelIndex()) -> QModelIndex:  # noqa: B008
        """The place of a cell."""
        if self._root is None or not self.hasIndex(row, column, parent):
            return QModelIndex()
        node = self._node(parent)
        return self.createIndex(row, column, (self._root if node is None else self._child(node, row)).number)

    def parent(self, index: Index | None = None) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The row that a row is in."""
        if index is None:
            return super().parent()
        node = self._node(index)
        if node is None or node.parent is None:
            return QModelIndex()
        return self.createIndex(node.parent.row, 0, node.parent.number)

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: N802, B008
        """The number of values or spans in a value."""
        if parent.isValid() and parent.column() != 0:
            return 0
        node = self._node(parent)
        if node is None:
            return 0 if parent.isValid() or self._root is None else 1
        return node.rows

    def columnCount(self, parent: Index = QModelIndex()) -> int:  # noqa: N802, B008
        """Key and value."""
        del parent
        return len(HEADERS)

    def headerData(  # noqa: N802
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> Any:
        """Names of the columns."""
        if orientation == Qt.Orientation.Horizontal and role == Qt.ItemDataRole.DisplayRole:
            return tr(HEADERS[section])
        return None

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Texts, and the kind of the value."""
        node = self._node(index)
        if node is None:
            return None
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return _key(node) if index.column() == KEY else _value_words(node)
            case Qt.ItemDataRole.AccessibleTextRole:
                return f"{_key(node)}: {_value_words(node)}"
            case Qt.ItemDataRole.ToolTipRole:
                return self.path_at(index)
            case _ if role == KIND:
                return next(kind for known, kind in _KINDS.items() if isinstance(node.value, known))
            case _:
                return None

    def _node(self, index: Index) -> Node | None:
        return self._nodes.get(index.internalId()) if index.isValid() else None

    def _make(self, step: Step, value: Any, parent: Node | None, row: int, span: tuple[int, int] | None = None) -> Node:
        self._made += 1
        start, stop = span or (0, len(value) if is_open(value) else 0)
        node = Node(self._made, step, value, parent, row, start, stop, span is not None)
        self._nodes[self._made] = node
        return node

    def _child(self, node: Node, row: int) -> Node:
        found = node.children.get(row)
        if found is None:
            width, start = node.width, node.start + row * node.width
            step = node.step_at(start)
            if width == 1:
                found = self._make(step, node.value[step], node, row)
            else:
                found = self._make(step, node.value, node, row, (start, min(start + width, node.stop)))
            node.children[row] = found
        return found


def whole_text(value: Any) -> str:
    """A text as it is, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)


def is_small(value: Any, limit: int = 1_000) -> bool:
    """Tell whether a value holds no more than so many others, however deep."""
    stack = [value]
    for _ in range(limit):
        if not stack:
            return True
        inner = stack.pop()
        if is_open(inner) and len(inner) <= limit:
            stack += inner.values() if isinstance(inner, dict) else inner
        elif is_open(inner):
            return False
    return not stack


def _steps(value: Any) -> Iterator[tuple[int, Step]]:
    if isinstance(value, dict):
        yield from enumerate(cast("dict[str, Any]", value))
    elif isinstance(value, list):
        yield from ((row, row) for row in range(len(cast("list[Any]", value))))


def _step(step: Step) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    return f".{step}" if step.isidentifier() else f"[{json.dumps(step, ensure_ascii=False)}]"


def _key(node: Node) -> str:
    if node.is_span and isinstance(node.value, list):
        return f"[{node.start:,} ... {node.stop - 1:,}]"
    if node.is_span:
        ends = (str(node.step_at(at))[:_MAX_END] for at in (node.start, node.stop - 1))
        return visible(" ... ".join(ends))
    return str(node.step) if isinstance(node.step, int) else visible(node.step[:MAX_CELL])


def _value_words(node: Node) -> str:
    count = node.count
    if isinstance(node.value, dict):
        return "{}" if not count else counted(count, "key", "keys")
    if isinstance(node.value, list):
        return "[]" if not count else counted(count, "item", "items")
    if isinstance(node.value, str):
        head = visible(node.value[:MAX_CELL].replace("\n", "\u21b5").replace("\t", "\u21e5"))
        more = len(node.value) - MAX_CELL
        return f'"{head}"' if more <= 0 else f'"{head}... {counted(more, "more character", "more characters")}'
    return _scalar(node.value)


def _scalar(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
