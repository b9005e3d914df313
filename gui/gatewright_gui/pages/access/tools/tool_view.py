"""The tree itself: its keys, its selection in words of tools and operations. It does not change anything."""

from collections.abc import Collection, Iterable, Sequence
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, cast

from PySide6.QtCore import (
    QItemSelection,
    QItemSelectionModel,
    QItemSelectionRange,
    QModelIndex,
    QPersistentModelIndex,
    QPoint,
    QRect,
    Qt,
    Signal,
)
from PySide6.QtGui import QColor, QKeyEvent, QMouseEvent, QPainter, QResizeEvent
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QStyleOptionViewItem, QWidget

from gatewright_gui.pages.access.tools.tool_delegate import Part, ToolDelegate
from gatewright_gui.pages.access.tools.tool_filter import ToolFilterModel
from gatewright_gui.pages.access.tools.tool_group import MORE
from gatewright_gui.pages.access.tools.tool_tree import IDLE, OPERATION, TOOL, Column, ToolTreeModel
from gatewright_gui.qt.language import tr
from gatewright_gui.qt.look import current_look
from gatewright_gui.qt.widget.item_view import TreeView

if TYPE_CHECKING:
    from gatewright_gui.session.verbs.rights import Target, Wish


WISH_KEYS: "dict[int, Wish]" = {Qt.Key.Key_A.value: "allow", Qt.Key.Key_K.value: "ask", Qt.Key.Key_D.value: "deny"}
_IDLE_ALPHA = 120
"""The strength of the ground under a tick that has no effect, of 255."""
LEAST_FACT, MOST_FACT = 120, 300
"""Pixels of the column of facts; between them 30 of 100 of the tree."""


class ToolView(TreeView):
    """Alt with A, K and D says allow, ask and deny, letters alone find a row by its name.

    Space toggles, Enter opens a tool, Ctrl+A selects all that is shown.
    """

    wish_requested = Signal(object)
    """`allow`, `ask` or `deny` for the selection."""
    toggle_requested = Signal()
    """Space."""
    current_changed = Signal()
    """Another row is the current one."""
    group_folded = Signal(str, bool)
    """The origin of a group that somebody closed (True) or opened."""

    def __init__(self, tree: ToolTreeModel, rows: ToolFilterModel, parent: QWidget | None = None) -> None:
        super().__init__(tr("Tools and operations"), parent)
        self.setObjectName("agents.tree")
        self._tree = tree
        self._rows = rows
        self._hot: tuple[QPersistentModelIndex, Part] | None = None
        self._is_arranging = False
        self.delegate = ToolDelegate(self)
        self.setModel(rows)
        self.setItemDelegate(self.delegate)
        self.setMouseTracking(True)
        self.setIndentation(18)
        self.setExpandsOnDoubleClick(False)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setHeaderHidden(True)
        self.header().setStretchLastSection(False)
        self.header().setMinimumSectionSize(1)
        self.header().setSectionResizeMode(Column.NAME, QHeaderView.ResizeMode.Stretch)
        self.header().setSectionResizeMode(Column.FACT, QHeaderView.ResizeMode.Fixed)
        tree.many_changed.connect(self.viewport().update)
        self.selectionModel().currentChanged.connect(self._follow_current)
        self.collapsed.connect(partial(self._tell_fold, closed=True))
        self.expanded.connect(partial(self._tell_fold, closed=False))
        # the header would ask for every selected cell whenever it is painted, though it shows no selection
        self.header().setSelectionModel(QItemSelectionModel(rows, self.header()))

    def _follow_current(self, current: QModelIndex, previous: QModelIndex) -> None:
        for one in (current, previous):
            self.viewport().update(self._row_rect(one))
        self.current_changed.emit()

    def _row_rect(self, index: QModelIndex) -> QRect:
        """Return the place of a row from its name on."""
        rect = self.visualRect(index.siblingAtColumn(Column.NAME))
        return rect.united(self.visualRect(index.siblingAtColumn(Column.FACT))) if index.isValid() else QRect()

    def _fit_columns(self) -> None:
        """Give the facts their share of the tree, and the names the rest."""
        self.setColumnWidth(Column.FACT, min(max(LEAST_FACT, self.viewport().width() * 3 // 10), MOST_FACT))

    def scrollContentsBy(self, dx: int, dy: int) -> None:  # noqa: N802
        """Move what stays in view; Qt takes pixels for rows here and would paint everything anew."""
        if dx or abs(dy) >= self.viewport().height():
            super().scrollContentsBy(dx, dy)
            return
        if not self.viewport().autoFillBackground():  # a style sheet takes it away; only what is opaque can be moved
            self.viewport().setAutoFillBackground(True)
        self.scrollDirtyRegion(0, dy)
        self.viewport().scroll(0, dy)

    def drawRow(  # noqa: N802
        self, painter: QPainter, options: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        """Paint the grounds of the row of a group, and of a tick that has no effect."""
        palette, rect = current_look().palette, getattr(options, "rect")  # noqa: B009
        group = self._rows.group_at(index)
        if group is not None and group.origin != MORE:
            painter.fillRect(rect, QColor(palette.raised))
        elif group is None and index.data(IDLE):
            ground = QColor(palette.verdict.ask.soft)
            ground.setAlpha(_IDLE_ALPHA)
            painter.fillRect(rect, ground)
        super().drawRow(painter, options, index)
        self.delegate.paint_description(painter, options, index.sibling(index.row(), Column.NAME))
        current = self.currentIndex()
        if self.hasFocus() and current.isValid() and (current.row(), current.parent()) == (index.row(), index.parent()):
            painter.setPen(QColor(palette.focus))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRect(self._row_rect(current).adjusted(0, 0, -1, -1))

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802
        """Share the room between the columns."""
        self._fit_columns()
        super().resizeEvent(event)

    @property
    def current_row(self) -> tuple[str | None, str | None]:
        """Tool and operation of the current row."""
        index = self.currentIndex()
        return index.data(TOOL), index.data(OPERATION)

    @property
    def selected_count(self) -> int:
        """The number of rows that are selected."""
        return sum(piece.height() for piece in cast(list[QItemSelectionRange], self.selectionModel().selection()))

    def targets(self) -> "tuple[Target, ...]":
        """The selected rows; a tool stands for all its operations, of which only those that the filter shows count."""
        from gatewright_gui.session.verbs.rights import Target

        chosen = self._choice()
        if not chosen:
            return ()
        shown = self._rows.operations_that_fit() if self._rows.is_filtering else None
        found: list[Target] = []
        for right in self._tree.rights:
            name = right.facts.name
            if name not in chosen:
                continue
            wanted, left = chosen[name], None if shown is None else shown.get(name)
            names = tuple([row.operation for row in right.operations if wanted is None or row.operation in wanted])
            found.append(Target(name, names if left is None else tuple([one for one in names if one in left])))
        return tuple([target for target in found if target.operations])

    def _choice(self) -> dict[str, set[str] | None]:
        """Tool -> its selected operations; None when the tool's own row is selected."""
        chosen: dict[str, set[str] | None] = {}
        rows, groups = self._rows, list[str]()
        for piece in cast(list[QItemSelectionRange], self.selectionModel().selection()):
            first, selected = piece.topLeft(), range(piece.top(), piece.bottom() + 1)
            if rows.group_at(first) is not None:
                found = (rows.group_at(first.sibling(row, 0)) for row in selected)
                groups += [group.origin for group in found if group is not None]
            elif (place := rows.place_of(first)) >= 0:
                chosen.update((rows.tool_at(place + at).facts.name, None) for at in range(len(selected)))
            else:
                above = rows.place_of(piece.parent())
                held = chosen.setdefault(rows.tool_at(above).facts.name, set())
                if held is not None:
                    operations = rows.operations_at(above)
                    held.update(operations[row].operation for row in selected)
        for group in groups:
            # Its row stands for all that can be ticked, but for nothing where some of it is selected itself: a
            # selection that runs over the row of a group on its way does not take in what comes after its end.
            rights = [rows.tool_at(place) for place in rows.members(group)]
            if not any(right.facts.name in chosen for right in rights):
                chosen.update((right.facts.name, None) for right in rights if not right.facts.held)
        return chosen

    def invert_selection(self) -> None:
        """Select what is shown and was not selected: whole tools by their row, parts of others by their operations."""
        chosen, rows = self._choice(), self._rows
        selection = QItemSelection()
        free: list[QModelIndex] = []
        for place in range(rows.tool_count):
            top, taken = rows.tool_index(place), chosen.get(rows.tool_at(place).facts.name, ())
            if taken is None:
                continue
            if not taken:
                free.append(top)
                continue
            left = [at for at, row in enumerate(rows.operations_at(place)) if row.operation not in taken]
            if left:
                self.expand(top)
            _select(selection, [rows.index(at, 0, top) for at in left])
        _select(selection, free)
        flag = QItemSelectionModel.SelectionFlag
        self.selectionModel().select(selection, flag.ClearAndSelect | flag.Rows)

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
        rows = self._rows
        return {rows.tool_at(rows.place_of(top)).facts.name for top in rows.persistent_tools() if self.isExpanded(top)}

    def open_tools(self, names: Iterable[str]) -> None:
        """Open these tools and no others."""
        differing = self.open_names() ^ set(names)
        if len(differing) > 1:
            self.scheduleDelayedItemsLayout()  # rows are laid out once, not for each tool
        for name in differing:
            index = self._rows.mapFromSource(self._tree.index_of(name, None))
            if index.isValid():
                self.setExpanded(index, not self.isExpanded(index))

    def _tell_fold(self, index: QModelIndex, *, closed: bool) -> None:
        group = self._rows.group_at(index)
        if group is None:
            return
        if not self._is_arranging:
            self._leave_closed()
        self.group_folded.emit(group.origin, closed)

    def show_groups(self, closed: Collection[str]) -> None:
        """Close these groups and open the others."""
        opened = [(index, group.origin not in closed) for index, group in self._rows.groups]
        changed = [(index, is_open) for index, is_open in opened if self.isExpanded(index) != is_open]
        if changed:  # all in one layout; none for the group that somebody just opened by hand
            self.scheduleDelayedItemsLayout()
        self._is_arranging = True
        for index, is_open in changed:
            self.setExpanded(index, is_open)
        self._is_arranging = False
        self._leave_closed()

    def _leave_closed(self) -> None:
        """Go to the row of a closed group from one in it: what one works on is in view."""
        top = self.currentIndex()
        while top.parent().isValid():
            top = top.parent()
        if top != self.currentIndex() and self._rows.group_at(top) is not None and not self.isExpanded(top):
            self.setCurrentIndex(top)

    def choose_first(self) -> None:
        """Make the first tool the current one; its group where that is closed."""
        top = self._rows.index(0, 0)
        is_closed = self._rows.group_at(top) is not None and not self.isExpanded(top)
        self.setCurrentIndex(top if is_closed or not self._rows.tool_count else self._rows.tool_index(0))

    def open_tool(self, tool: str) -> None:
        """Open this tool too."""
        self.expand(self._rows.mapFromSource(self._tree.index_of(tool, None)))

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802
        """Alt with A, K, D; Space, Enter, Ctrl+I; the rest is the tree's."""
        plain = event.modifiers() in {Qt.KeyboardModifier.NoModifier, Qt.KeyboardModifier.KeypadModifier}
        control = event.modifiers() == Qt.KeyboardModifier.ControlModifier
        if control and event.key() == Qt.Key.Key_I:
            self.invert_selection()
        elif event.modifiers() == Qt.KeyboardModifier.AltModifier and event.key() in WISH_KEYS:
            self.wish_requested.emit(WISH_KEYS[event.key()])
        elif plain and event.key() == Qt.Key.Key_Space:
            self.toggle_requested.emit()
        elif plain and event.key() in {Qt.Key.Key_Return, Qt.Key.Key_Enter}:
            index = self.currentIndex().siblingAtColumn(0)
            self.setExpanded(index, not self.isExpanded(index))
        else:
            super().keyPressEvent(event)

    def part_at(self, at: QPoint) -> Part | None:
        """The part of a row that a click there acts on."""
        index = self.indexAt(at)
        return self.delegate.part_at(self.visualRect(index), index, at) if index.isValid() else None

    def mouseMoveEvent(self, event: QMouseEvent) -> None:  # noqa: N802
        """Have the part under the mouse painted as such, and the one that was."""
        super().mouseMoveEvent(event)
        at = event.position().toPoint()
        index, part = self.indexAt(at), self.part_at(at)
        hot = (QPersistentModelIndex(index), part) if part is not None else None
        if hot != self._hot:
            held, self._hot = self._hot, hot
            for one in filter(None, (held, hot)):
                self.viewport().update(self.visualRect(one[0]))

    def mousePressEvent(self, event: QMouseEvent) -> None:  # noqa: N802
        """Choose the row of a box or a switch that is clicked too, so that why and preview speak of it."""
        at = event.position().toPoint()
        if self.part_at(at) is not None:
            flag = QItemSelectionModel.SelectionFlag
            self.selectionModel().setCurrentIndex(self.indexAt(at), flag.ClearAndSelect | flag.Rows)
        super().mousePressEvent(event)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:  # noqa: N802
        """Take twice on a box as two ticks, twice on a name as a wish to open the tool."""
        at = event.position().toPoint()
        index = self.indexAt(at)
        if self.part_at(at) is not None:
            self.mousePressEvent(event)
            return
        super().mouseDoubleClickEvent(event)
        first = index.siblingAtColumn(0)
        if first.isValid() and event.button() == Qt.MouseButton.LeftButton:
            self.setExpanded(first, not self.isExpanded(first))


def _select(into: QItemSelection, indexes: Sequence[QModelIndex]) -> None:
    """Put rows of one parent in, neighbours as one range."""
    for _, run in groupby(enumerate(indexes), key=lambda pair: (pair[1].row() - pair[0], pair[1].parent().row())):
        rows = [index for _, index in run]
        into.append(QItemSelectionRange(rows[0], rows[-1]))
