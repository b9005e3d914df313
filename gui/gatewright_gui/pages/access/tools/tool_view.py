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
    Qt,
    Signal,
)
from PySide6.QtGui import QColor, QKeyEvent, QMouseEvent, QPainter, QResizeEvent
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QStyleOptionViewItem, QWidget

from gatewright_gui.pages.access.tools.tool_delegate import ToolDelegate, hit_of
from gatewright_gui.pages.access.tools.tool_filter import ToolFilterModel
from gatewright_gui.pages.access.tools.tool_tree import HEADINGS, OPERATION, TOOL, Column, ToolTreeModel
from gatewright_gui.qt.language import tr
from gatewright_gui.qt.look import current_look
from gatewright_gui.qt.widget.item_view import TreeView

if TYPE_CHECKING:
    from gatewright_gui.session.verbs.rights import Target, Wish


WISH_KEYS: "dict[int, Wish]" = {Qt.Key.Key_A.value: "allow", Qt.Key.Key_K.value: "ask", Qt.Key.Key_D.value: "deny"}
WIDTHS = {
    Column.VERDICT: 134,
    Column.ASK: 36,
    Column.TIER: 90,
    Column.LIMITS: 92,
    Column.ORIGIN: 60,
    Column.TOKENS: 54,
}
USUAL_TEXT = 13
"""The size of text that the widths are for; larger texts get wider columns."""
NARROWEST_NAME = 150
_HEADING_PAD = 14
NAME_WISH = 230
"""Where the name would have less, columns that seldom say something are left out, in the order of `SPARED`."""
SPARED = (Column.LIMITS, Column.TIER)


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
    left_out = Signal(object)
    """Headings of the columns that have no room now: tuple[str, ...]."""

    def __init__(self, tree: ToolTreeModel, rows: ToolFilterModel, parent: QWidget | None = None) -> None:
        super().__init__(tr("Tools and operations"), parent)
        self.setObjectName("agents.tree")
        self._tree = tree
        self._rows = rows
        self._is_fitting = False
        self._sized_for = 0
        self._left_out: tuple[str, ...] = ()
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
        tree.many_changed.connect(self.viewport().update)
        self.selectionModel().currentChanged.connect(self._moved)
        self.collapsed.connect(partial(self._folded, closed=True))
        self.expanded.connect(partial(self._folded, closed=False))
        # the header would ask for every selected cell whenever it is painted, though it shows no selection
        self.header().setSelectionModel(QItemSelectionModel(rows, self.header()))

    def _moved(self, _current: QModelIndex, _previous: QModelIndex) -> None:
        self.current_changed.emit()

    def _size_columns(self) -> None:
        header = self.header()
        header.setStretchLastSection(False)
        header.setMinimumSectionSize(32)
        header.setSectionsMovable(False)
        header.setSectionResizeMode(Column.NAME, QHeaderView.ResizeMode.Fixed)
        for column in WIDTHS:
            header.setSectionResizeMode(column, QHeaderView.ResizeMode.Interactive)
        self._follow_text_size()
        current_look().changed.connect(self._follow_text_size)
        header.sectionResized.connect(self._fit_name)

    def _follow_text_size(self, _why: object = None) -> None:
        """Columns as wide as their texts want it; those that somebody made wider stay so until texts change."""
        size = current_look().tokens.text_size
        if size == self._sized_for:
            return
        self._sized_for = size
        metrics = self.fontMetrics()
        for column, width in WIDTHS.items():
            heading = metrics.horizontalAdvance(tr(HEADINGS[column][0])) + _HEADING_PAD
            self.setColumnWidth(column, max(width * size // USUAL_TEXT, heading))
        self._fit_name()

    def _fit_name(self, changed: int = -1) -> None:
        """The name takes what the others leave; in a narrow window some are left out, and the name's tip has them."""
        if changed == Column.NAME or self._is_fitting:
            return
        self._is_fitting = True
        for column in SPARED:
            self.setColumnHidden(column, False)
        for column in SPARED:
            self.setColumnHidden(column, self._room < NAME_WISH)
        self.setColumnWidth(Column.NAME, max(NARROWEST_NAME, self._room))
        self._is_fitting = False
        left_out = tuple(tr(HEADINGS[column][0]) for column in reversed(SPARED) if self.isColumnHidden(column))
        if left_out != self._left_out:
            self._left_out = left_out
            self.left_out.emit(left_out)

    @property
    def _room(self) -> int:
        """What the columns that are shown leave for the name."""
        return self.viewport().width() - sum(self.columnWidth(column) for column in WIDTHS)

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
        """The row of a group stands on a ground of its own."""
        if self._rows.group_at(index) is not None:
            painter.fillRect(getattr(options, "rect"), QColor(current_look().palette.raised))  # noqa: B009
        super().drawRow(painter, options, index)

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802
        """Keep the name readable."""
        super().resizeEvent(event)
        self._fit_name()

    @property
    def current_row(self) -> tuple[str | None, str | None]:
        """Tool and operation of the current row."""
        index = self.currentIndex()
        return index.data(TOOL), index.data(OPERATION)

    @property
    def selected_count(self) -> int:
        """How many rows are selected."""
        return sum(piece.height() for piece in cast(list[QItemSelectionRange], self.selectionModel().selection()))

    def targets(self) -> "tuple[Target, ...]":
        """The selected rows; a tool stands for all its operations, of which only those that the filter shows count."""
        from gatewright_gui.session.verbs.rights import Target

        chosen = self._chosen()
        if not chosen:
            return ()
        shown = self._rows.shown_operations() if self._rows.is_filtering else None
        found: list[Target] = []
        for right in self._tree.rights:
            name = right.facts.name
            if name not in chosen:
                continue
            wanted, left = chosen[name], None if shown is None else shown.get(name)
            names = tuple([row.operation for row in right.operations if wanted is None or row.operation in wanted])
            found.append(Target(name, names if left is None else tuple([one for one in names if one in left])))
        return tuple([target for target in found if target.operations])

    def _chosen(self) -> dict[str, set[str] | None]:
        """Tool -> its selected operations; None when the tool's own row is selected."""
        chosen: dict[str, set[str] | None] = {}
        rows, groups = self._rows, list[int]()
        for piece in cast(list[QItemSelectionRange], self.selectionModel().selection()):
            first, selected = piece.topLeft(), range(piece.top(), piece.bottom() + 1)
            if rows.group_at(first) is not None:
                groups += selected
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
            rights = [rows.tool_at(place) for place in rows.places_in(group)]
            if not any(right.facts.name in chosen for right in rights):
                chosen.update((right.facts.name, None) for right in rights if not right.facts.held)
        return chosen

    def invert_selection(self) -> None:
        """Select what is shown and was not selected: whole tools by their row, parts of others by their operations."""
        chosen, rows = self._chosen(), self._rows
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
        return {rows.tool_at(rows.place_of(top)).facts.name for top in rows.held_tools() if self.isExpanded(top)}

    def open_tools(self, names: Iterable[str]) -> None:
        """Open these tools and no others."""
        differing = self.open_names() ^ set(names)
        if len(differing) > 1:
            self.scheduleDelayedItemsLayout()  # rows are laid out once, not for each tool
        for name in differing:
            index = self._rows.mapFromSource(self._tree.index_of(name, None))
            if index.isValid():
                self.setExpanded(index, not self.isExpanded(index))

    def _folded(self, index: QModelIndex, *, closed: bool) -> None:
        group = self._rows.group_at(index)
        if group is None:
            return
        if closed and index in {self.currentIndex().parent(), self.currentIndex().parent().parent()}:
            self.setCurrentIndex(index)  # what one works on is in view
        self.group_folded.emit(group.origin, closed)

    def show_groups(self, closed: Collection[str]) -> None:
        """Close these groups and open the others; where there are groups, they say where tools come from."""
        self.setColumnHidden(Column.ORIGIN, self._rows.is_grouped)
        rows = [self._rows.index(row, 0) for row in range(self._rows.rowCount() if self._rows.is_grouped else 0)]
        groups = [(index, self._rows.group_at(index)) for index in rows]
        opened = [(index, group is None or group.origin not in closed) for index, group in groups]
        changed = [(index, is_open) for index, is_open in opened if self.isExpanded(index) != is_open]
        if changed:  # all in one layout; none for the group that somebody just opened by hand
            self.scheduleDelayedItemsLayout()
        for index, is_open in changed:
            self.setExpanded(index, is_open)

    def choose_first(self) -> None:
        """Make the first tool the current one; its group where that is closed."""
        top = self._rows.index(0, 0)
        is_closed = self._rows.is_grouped and not self.isExpanded(top)
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


def _select(into: QItemSelection, indexes: Sequence[QModelIndex]) -> None:
    """Put rows of one parent in, neighbours as one range."""
    for _, run in groupby(enumerate(indexes), key=lambda pair: (pair[1].row() - pair[0], pair[1].parent().row())):
        rows = [index for _, index in run]
        into.append(QItemSelectionRange(rows[0], rows[-1]))
