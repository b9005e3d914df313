"""The tree itself: its keys, its selection in words of tools and operations. It does not change anything."""

from collections.abc import Iterable

from PySide6.QtCore import QItemSelectionModel, QModelIndex, Qt, Signal
from PySide6.QtGui import QKeyEvent, QMouseEvent, QResizeEvent
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QWidget

from gatewright_gui.models.toolfilter import ToolFilterModel
from gatewright_gui.models.tooltree import OPERATION, TOOL, Column, ToolTreeModel
from gatewright_gui.pages.agents.tool_delegate import ToolDelegate, hit_of
from gatewright_gui.qt.widget.item_view import TreeView
from gatewright_gui.session.verbs.rights import Target, Wish

WISH_KEYS: dict[int, Wish] = {Qt.Key.Key_A.value: "allow", Qt.Key.Key_K.value: "ask", Qt.Key.Key_D.value: "deny"}
WIDTHS = {
    Column.VERDICT: 88,
    Column.ASK: 36,
    Column.TIER: 90,
    Column.LIMITS: 88,
    Column.ORIGIN: 60,
    Column.TOKENS: 54,
}
NARROWEST_NAME = 150


class ToolView(TreeView):
    """A, K and D say allow, ask and deny; Space toggles; Enter opens a tool."""

    wish_requested = Signal(object)
    """`allow`, `ask` or `deny` for the selection."""
    toggle_requested = Signal()
    """Space."""
    current_changed = Signal()
    """Another row is the current one."""

    def __init__(self, tree: ToolTreeModel, rows: ToolFilterModel, parent: QWidget | None = None) -> None:
        super().__init__("Tools and operations", parent)
        self.setObjectName("agents.tree")
        self._tree = tree
        self._rows = rows
        self.delegate = ToolDelegate(self)
        self.setModel(rows)
        self.setItemDelegate(self.delegate)
        self.setMouseTracking(True)
        self.setIndentation(18)
        self.setExpandsOnDoubleClick(False)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAsNeeded)
        self._size_columns()
        self.selectionModel().currentChanged.connect(self._moved)

    def _moved(self, _current: QModelIndex, _previous: QModelIndex) -> None:
        self.current_changed.emit()

    def _size_columns(self) -> None:
        header = self.header()
        header.setStretchLastSection(False)
        header.setMinimumSectionSize(32)
        header.setSectionsMovable(False)
        header.setSectionResizeMode(Column.NAME, QHeaderView.ResizeMode.Fixed)
        for column, width in WIDTHS.items():
            header.setSectionResizeMode(column, QHeaderView.ResizeMode.Interactive)
            self.setColumnWidth(column, width)
        header.sectionResized.connect(self._fit_name)

    def _fit_name(self, changed: int = -1) -> None:
        """The name takes what the others leave, and never less than a name needs: then the tree scrolls."""
        if changed != Column.NAME:
            room = self.viewport().width() - sum(self.columnWidth(column) for column in WIDTHS)
            self.setColumnWidth(Column.NAME, max(NARROWEST_NAME, room))

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802
        """Keep the name readable."""
        super().resizeEvent(event)
        self._fit_name()

    @property
    def current_row(self) -> tuple[str | None, str | None]:
        """Tool and operation of the current row."""
        index = self.currentIndex()
        return index.data(TOOL), index.data(OPERATION)

    def targets(self) -> tuple[Target, ...]:
        """The selected rows; a tool stands for all its operations."""
        chosen: dict[str, set[str] | None] = {}
        for index in self.selectionModel().selectedRows():
            tool, operation = str(index.data(TOOL)), index.data(OPERATION)
            if operation is None:
                chosen[tool] = None
            elif (held := chosen.setdefault(tool, set())) is not None:
                held.add(str(operation))
        return tuple(
            self._target(right.facts.name, chosen) for right in self._tree.rights if right.facts.name in chosen
        )

    def _target(self, tool: str, chosen: dict[str, set[str] | None]) -> Target:
        found = self._tree.right_of(self._tree.index_of(tool, None))
        every = [op.operation for op in found[0].operations] if found else []
        wanted = chosen[tool]
        return Target(tool, tuple(name for name in every if wanted is None or name in wanted))

    def show_row(self, tool: str, operation: str | None) -> bool:
        """Make a row the current one and bring it into view; False when the filter hides it."""
        index = self._rows.mapFromSource(self._tree.index_of(tool, operation))
        if not index.isValid():
            return False
        if operation is not None:
            self.expand(index.parent())
        self.setCurrentIndex(index)
        self.scrollTo(index)
        return True

    def open_names(self) -> set[str]:
        """The tools that are open now."""
        return {str(index.data(TOOL)) for index in self._tools() if self.isExpanded(index)}

    def open_tools(self, names: Iterable[str]) -> None:
        """Open these tools and no others."""
        wanted = set(names)
        for index in self._tools():
            self.setExpanded(index, index.data(TOOL) in wanted)

    def open_tool(self, tool: str) -> None:
        """Open this tool too."""
        self.expand(self._rows.mapFromSource(self._tree.index_of(tool, None)))

    def _tools(self) -> list[QModelIndex]:
        return [self._rows.index(row, 0) for row in range(self._rows.rowCount())]

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802
        """A, K, D, Space, Enter; the rest is the tree's."""
        plain = event.modifiers() in {Qt.KeyboardModifier.NoModifier, Qt.KeyboardModifier.KeypadModifier}
        if plain and event.key() in WISH_KEYS:
            self.wish_requested.emit(WISH_KEYS[event.key()])
        elif plain and event.key() == Qt.Key.Key_Space:
            self.toggle_requested.emit()
        elif plain and event.key() in {Qt.Key.Key_Return, Qt.Key.Key_Enter}:
            index = self.currentIndex().siblingAtColumn(0)
            self.setExpanded(index, not self.isExpanded(index))
        else:
            super().keyPressEvent(event)

    def mousePressEvent(self, event: QMouseEvent) -> None:  # noqa: N802
        """A click on a box chooses its row too, so that why and preview speak of it."""
        at = event.position().toPoint()
        index = self.indexAt(at)
        if index.isValid() and hit_of(self.visualRect(index), Column(index.column()), at):
            flag = QItemSelectionModel.SelectionFlag
            self.selectionModel().setCurrentIndex(index, flag.ClearAndSelect | flag.Rows)
        super().mousePressEvent(event)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:  # noqa: N802
        """Twice on a box is two ticks; twice on a name opens the tool."""
        at = event.position().toPoint()
        index = self.indexAt(at)
        if index.isValid() and hit_of(self.visualRect(index), Column(index.column()), at):
            self.mousePressEvent(event)
            return
        super().mouseDoubleClickEvent(event)
        first = index.siblingAtColumn(0)
        if first.isValid() and event.button() == Qt.MouseButton.LeftButton:
            self.setExpanded(first, not self.isExpanded(first))
