"""The cells of the matrix: painting, keys, mouse, and the selection in words of agents and tools. It edits nothing.

It paints its cells itself: a delegate that is called for each of hundreds of cells would take longer than a frame.
"""

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QItemSelection, QItemSelectionModel, QModelIndex, QPoint, QRect, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QKeyEvent,
    QKeySequence,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QResizeEvent,
    QShowEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QAbstractItemView, QApplication, QTableView, QWidget

from gatewright.workspace.api import frozen
from gatewright_gui.pages.access.tools.matrix import MatrixModel, Place
from gatewright_gui.pages.access.tools.matrix_paint import BOX, LEAST_NAMED, AgentEdge, CellPainter, ToolEdge, box_rect
from gatewright_gui.pages.access.tools.matrix_words import part_words
from gatewright_gui.pages.access.tools.tool_view import WISH_KEYS
from gatewright_gui.qt.language import tr
from gatewright_gui.qt.look import current_look, role_colour
from gatewright_gui.qt.plaintext import LEFT, line_text
from gatewright_gui.qt.table_model import Index
from gatewright_gui.qt.widget.item_view import Delegate, choose_alone

_OPEN_KEYS = {Qt.Key.Key_Plus.value: True, Qt.Key.Key_Minus.value: False}
_SIDE_KEYS = {Qt.Key.Key_Right.value: True, Qt.Key.Key_Left.value: False}


@frozen
class Block:
    """A rectangle of selected cells: rows and columns from the first to the last, both included."""

    top: int
    bottom: int
    left: int
    right: int


ONE_BY_ONE = 20
"""More tools than these are opened and closed together: each row that is put in moves all that are below."""


class MatrixView(QTableView):
    """Alt with A, K and D says allow, ask and deny; Space toggles; Enter goes to the tree; + and - open and close."""

    wish_requested = Signal(object)
    """`allow`, `ask` or `deny` for the selection."""
    toggle_requested = Signal()
    """Space, or a click on a box."""
    row_requested = Signal()
    """Enter: the current cell's row in the tree of its agent."""
    current_changed = Signal()
    """Another cell is the current one."""
    view_changed = Signal()
    """Other rows or columns may be seen."""

    def __init__(self, table: MatrixModel, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("agents.matrix")
        self.setAccessibleName(tr("Tools by agents"))
        self._table = table
        self._painter = CellPainter()
        self.setItemDelegate(Delegate(self))
        self._fitted: tuple[object, ...] = ()
        """The sizes and rows to which the edges were fitted."""
        self._pressed = self._mouse = QPoint(-1, -1)
        self._before_line = (-1, -1)
        self.agent_edge, self.tool_edge = AgentEdge(), ToolEdge()
        self.setModel(table)
        self.setHorizontalHeader(self.agent_edge)
        self.setVerticalHeader(self.tool_edge)
        self.setCornerButtonEnabled(False)
        self.setShowGrid(False)
        self.setWordWrap(False)
        self.setTabKeyNavigation(False)
        self.setMouseTracking(True)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.ensurePolished()
        self._connect()

    def _connect(self) -> None:
        current_look().changed.connect(self._painter.forget)
        self.tool_edge.open_requested.connect(self._turn_open)
        self.tool_edge.pinned = self.rows_on_top
        self.selectionModel().currentChanged.connect(self._follow_current)
        for bar in (self.horizontalScrollBar(), self.verticalScrollBar()):
            bar.valueChanged.connect(self.view_changed)
        self._table.rowsInserted.connect(self.view_changed)
        for edge, choose in ((self.agent_edge, self._choose_agent), (self.tool_edge, self._choose_row)):
            edge.about_to_choose.connect(self._keep_cross)
            edge.sectionPressed.connect(choose)
        self._table.modelReset.connect(self.fit)
        self._table.headerDataChanged.connect(self.view_changed)

    def setCurrentIndex(self, index: Index) -> None:  # noqa: N802
        """Choose this cell and no other, whatever keys are down."""
        if not choose_alone(self, index):
            super().setCurrentIndex(index)

    # what is shown

    def fit(self) -> None:
        """Size both edges, for what is shown now; while nobody looks that is left until somebody does."""
        table = self._table
        if not self.isVisible() or not table.agents:
            return
        wanted = (self.width(), table.agents, table.rowCount(), table.tool_at(0), self.font().key())
        if wanted != self._fitted:
            self._fitted = wanted  # first: other sizes lead here again
            self.tool_edge.fit(self.width())
            scroll = self.verticalScrollBar().sizeHint().width()
            self.agent_edge.fit(self.width() - self.tool_edge.sizeHint().width() - scroll - 2)
        self.view_changed.emit()

    def showEvent(self, event: QShowEvent) -> None:  # noqa: N802
        """Fit what came while nobody looked."""
        super().showEvent(event)
        self.fit()

    def agents_in_view(self) -> tuple[str, ...]:
        """The agents whose columns are seen, and a few beside them."""
        count = len(self._table.agents)
        if not count:
            return ()
        first = max(self.columnAt(0), 0)
        last = self.columnAt(self.viewport().width() - 1)
        last = count - 1 if last < 0 else last
        seen = range(first, last + 1)
        beside = (*range(last + 1, min(last + 4, count)), *range(max(first - 3, 0), first))
        return tuple(self._table.agents[column].agent_id for column in (*seen, *beside))

    def tools_in_view(self) -> frozenset[str]:
        """The tools of the rows that are seen, but for those that only stand for their operations."""
        rows = _lines(self.rowAt(0), self.rowAt(self.viewport().height() - 1), self._table.rowCount())
        return frozenset(
            place.tool for row in rows if (place := self._table.place_at(row)) and not self._table.can_open(row)
        )

    @property
    def current_place(self) -> Place | None:
        """The row of the current cell."""
        return self._table.place_at(self.currentIndex().row())

    @property
    def current_agent(self) -> str | None:
        """The agent of the current cell."""
        agent = self._table.agent_at(self.currentIndex().column())
        return agent.agent_id if agent is not None else None

    def show_cell(self, agent_id: str | None, place: Place | None) -> bool:
        """Make a cell the current one and bring it into view; False when it is not shown."""
        row = self._table.row_of(place) if place is not None else 0
        column = self._table.column_of(agent_id)
        index = self._table.index(row, column)
        if not index.isValid():
            return False
        if index != self.currentIndex():
            self.setCurrentIndex(index)
        self.scrollTo(index)
        return True

    def blocks(self) -> tuple[Block, ...]:
        """The blocks that are selected; the current cell when nothing is."""
        chosen = self.selectionModel().selection()
        parts = [chosen.at(number) for number in range(chosen.count())]
        found = tuple(Block(part.top(), part.bottom(), part.left(), part.right()) for part in parts)
        here = self.currentIndex()
        return found or ((Block(here.row(), here.row(), here.column(), here.column()),) if here.isValid() else ())

    def _follow_current(self, current: QModelIndex, _previous: QModelIndex) -> None:
        self._tell_edges()
        self.viewport().update()
        if current.isValid():
            self.current_changed.emit()

    def _tell_edges(self) -> None:
        here, over = self.currentIndex(), self.indexAt(self._mouse)
        self.agent_edge.set_lines(over.column(), here.column())
        self.tool_edge.set_lines(over.row(), here.row())

    # painting

    def rows_on_top(self) -> tuple[int, ...]:
        """Return the rows that stay at the top: of the first row its group, of the next its tool, while that is open.

        They lie above what is seen, and stand there nevertheless.
        """
        high, table, found = self.tool_edge.defaultSectionSize(), self._table, list[int]()
        for holder in (table.group_row_of, table.top_of):
            row = holder(self.rowAt(len(found) * high + high // 2))  # the half of a row may lie below those that stay
            is_above = row >= 0 and self.rowViewportPosition(row) < len(found) * high
            if is_above and row not in found and table.can_open(row) and table.is_open(row):
                found.append(row)
        return tuple(found)

    def indexAt(self, point: QPoint) -> QModelIndex:  # noqa: N802
        """Return the cell under a point; of a row that stays before the one that it covers."""
        place, pinned = point.y() // self.tool_edge.defaultSectionSize(), self.rows_on_top()
        if 0 <= place < len(pinned):
            return self._table.index(pinned[place], self.columnAt(point.x()))
        return super().indexAt(point)

    def cell_rect(self, index: Index) -> QRect:
        """Return where a cell is drawn: one of a row that stays is at the top."""
        pinned, rect = self.rows_on_top(), self.visualRect(index)
        if index.row() in pinned:
            rect.moveTop(pinned.index(index.row()) * rect.height())
        return rect

    def scrollTo(  # noqa: N802
        self, index: Index, hint: QAbstractItemView.ScrollHint = QAbstractItemView.ScrollHint.EnsureVisible
    ) -> None:
        """Bring a cell into view, below the rows that stay there."""
        super().scrollTo(index, hint)
        table, row = self._table, index.row()
        above = {table.group_row_of(row), table.top_of(row)} - {row, -1}
        covered = len(above) * self.tool_edge.defaultSectionSize() - self.rowViewportPosition(row)
        if index.isValid() and covered > 0:
            self.verticalScrollBar().setValue(self.verticalScrollBar().value() - covered)

    def scrollContentsBy(self, dx: int, dy: int) -> None:  # noqa: N802
        """Scroll, and paint anew where rows stay and where their pictures were moved to."""
        super().scrollContentsBy(dx, dy)
        if dy:
            high = 2 * self.tool_edge.defaultSectionSize() + abs(dy)
            for part in (self.viewport(), self.tool_edge.viewport()):
                part.update(0, 0, part.width(), high)

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802
        """The cells that are to be painted: ground, selection, what they show, the frame of the current one."""
        place = event.rect()
        rows = _lines(self.rowAt(place.top()), self.rowAt(place.bottom()), self._table.rowCount())
        across = _lines(self.columnAt(place.left()), self.columnAt(place.right()), self._table.columnCount())
        painter = QPainter(self.viewport())
        painter.setFont(current_look().small_font)
        painter.fillRect(place, QColor(current_look().palette.surface))
        columns = [(c, self.columnViewportPosition(c), self.columnWidth(c)) for c in across]
        over, here = self.indexAt(self._mouse), self.currentIndex()
        if columns:
            for row in rows:
                self._paint_row(painter, row, self.rowViewportPosition(row), columns, over)
        pinned, high = self.rows_on_top(), self.tool_edge.defaultSectionSize()
        if here.isValid() and self.hasFocus() and here.row() not in pinned:
            self._paint_frame(painter, here)
        for at, row in enumerate(pinned if columns else ()):
            painter.fillRect(columns[0][1], at * high, self.width(), high, QColor(current_look().palette.surface))
            self._paint_row(painter, row, at * high, columns, over)
        if here.isValid() and self.hasFocus() and here.row() in pinned:
            self._paint_frame(painter, here)
        painter.end()

    def _paint_frame(self, painter: QPainter, index: QModelIndex) -> None:
        painter.setPen(QColor(current_look().palette.focus))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawRect(self.cell_rect(index).adjusted(0, 0, -2, -2))

    def _paint_row(
        self, painter: QPainter, row: int, top: int, columns: Sequence[tuple[int, int, int]], over: QModelIndex
    ) -> None:
        palette, high = current_look().palette, self.rowHeight(row)
        left, right = columns[0][1], columns[-1][1] + columns[-1][2]
        if self._table.group_at(row) is not None:
            painter.fillRect(left, top, right - left, high, QColor(palette.raised))
        if over.row() == row:
            painter.fillRect(left, top, right - left, high, QColor(palette.hover))
        chosen = QColor(palette.selection if self.hasFocus() else palette.selection_inactive)
        selection, model, scale = self.selectionModel(), self._table, self.devicePixelRatioF()
        painter.setPen(role_colour("muted"))
        any_chosen = selection.rowIntersectsSelection(row, QModelIndex())
        for column, at, wide in columns:
            if any_chosen and selection.isSelected(model.index(row, column)):
                painter.fillRect(at, top, wide, high, chosen)
            elif over.column() == column:
                painter.fillRect(at, top, wide, high, QColor(palette.hover))
            painter.fillRect(at + wide - 1, top, 1, high, QColor(palette.border))
            place, cell = QRect(at, top, wide, high), model.cell(row, column)
            self._painter.paint(painter, place, cell, scale)
            if wide >= LEAST_NAMED and (words := part_words(cell)):
                room = place.adjusted((wide + BOX) // 2 + 6, 0, 0, 0)
                painter.drawText(room, LEFT, line_text(painter.fontMetrics(), words, room.width()))
        painter.fillRect(left, top + high - 1, right - left, 1, QColor(palette.border))

    # keys and mouse

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802
        """Alt with A, K, D; Space, Enter, + and -, copy; Right and Left with Ctrl open and close too."""
        plain = event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier == Qt.KeyboardModifier.NoModifier
        ctrl = event.modifiers() == Qt.KeyboardModifier.ControlModifier
        if event.modifiers() == Qt.KeyboardModifier.AltModifier and event.key() in WISH_KEYS:
            self.wish_requested.emit(WISH_KEYS[event.key()])
        elif plain and event.key() == Qt.Key.Key_Space:
            self.toggle_requested.emit()
        elif plain and event.key() in {Qt.Key.Key_Return, Qt.Key.Key_Enter}:
            self.row_requested.emit()
        elif event.text() in {"+", "-"} and event.key() in _OPEN_KEYS:
            self._open_chosen(on=_OPEN_KEYS[event.key()])
        elif ctrl and event.key() in _SIDE_KEYS:
            self._open_chosen(on=_SIDE_KEYS[event.key()])
        elif event.matches(QKeySequence.StandardKey.Copy):
            self.copy_chosen()
        else:
            super().keyPressEvent(event)

    def copy_chosen(self) -> None:
        """Put the selected cells with their headers on the clipboard."""
        blocks = self.blocks()
        rows = sorted({row for block in blocks for row in range(block.top, block.bottom + 1)})
        columns = sorted({column for block in blocks for column in range(block.left, block.right + 1)})
        QApplication.clipboard().setText(self._table.text_of(rows, columns))

    def _open_chosen(self, *, on: bool) -> None:
        """Open or close the tools of the selected rows, or groups where those alone are; a tool stays current."""
        here = self.currentIndex()
        blocks, table = self.blocks(), self._table
        rows = {row for block in blocks for row in range(block.top, block.bottom + 1)}
        every = sorted({top for row in rows if (top := table.top_of(row)) >= 0}, reverse=True)
        tops = [top for top in every if table.group_at(top) is None] or every
        if not on and here.isValid() and table.top_of(here.row()) in tops:
            self.setCurrentIndex(here.siblingAtRow(table.top_of(here.row())))
        if len(tops) <= ONE_BY_ONE:
            for row in tops:
                table.set_open(row, on)
            return
        # the rows are others at a stroke; the same tools stay selected
        ends = [[table.place_at(table.top_of(row)) for row in (block.top, block.bottom)] for block in blocks]
        table.set_many_open(tops, on)
        chosen = QItemSelection()
        for block, (first, last) in zip(blocks, ends, strict=True):
            if first is not None and last is not None:
                top, bottom = table.row_of(first), table.row_of(last)
                chosen.select(table.index(top, block.left), table.index(bottom, block.right))
        self.selectionModel().select(chosen, QItemSelectionModel.SelectionFlag.ClearAndSelect)

    def _turn_open(self, row: object) -> None:
        if isinstance(row, int):
            self._table.set_open(row, not self._table.is_open(row))

    def mousePressEvent(self, event: QMouseEvent) -> None:  # noqa: N802
        """Remember where it began: a click on a box is a press and a release there."""
        self._pressed = event.position().toPoint()
        super().mousePressEvent(event)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:  # noqa: N802
        """A click on a mark turns it on or off."""
        super().mouseReleaseEvent(event)
        plain = event.modifiers() == Qt.KeyboardModifier.NoModifier and event.button() == Qt.MouseButton.LeftButton
        at = event.position().toPoint()
        if plain and self._box_at(at) is not None and self._box_at(at) == self._box_at(self._pressed):
            self.toggle_requested.emit()

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:  # noqa: N802
        """Twice on a mark is two ticks; twice beside that of a tool opens the tool."""
        at = event.position().toPoint()
        index = self.indexAt(at)
        self.mousePressEvent(event)
        is_open = event.button() == Qt.MouseButton.LeftButton and index.isValid() and self._box_at(at) is None
        if is_open and self._table.can_open(index.row()):
            self._turn_open(index.row())

    def _box_at(self, at: QPoint) -> QModelIndex | None:
        index = self.indexAt(at)
        if not index.isValid() or self._table.cell(index.row(), index.column()) is None:
            return None
        return index if box_rect(self.cell_rect(index)).adjusted(-4, -4, 4, 4).contains(at) else None

    def mouseMoveEvent(self, event: QMouseEvent) -> None:  # noqa: N802
        """Row and column under the mouse stand out."""
        super().mouseMoveEvent(event)
        self._hover(event.position().toPoint())

    def wheelEvent(self, event: QWheelEvent) -> None:  # noqa: N802
        """Note that another cell is under the mouse now."""
        super().wheelEvent(event)
        self._hover(event.position().toPoint())

    def viewportEvent(self, event: QEvent) -> bool:  # noqa: N802
        """The mouse left: nothing stands out."""
        if event.type() == QEvent.Type.Leave:
            self._hover(QPoint(-1, -1))
        return super().viewportEvent(event)

    def _hover(self, at: QPoint) -> None:
        before, self._mouse = self.indexAt(self._mouse), at
        after = self.indexAt(at)
        if (before.row(), before.column()) == (after.row(), after.column()):
            return
        self._tell_edges()
        view = self.viewport()
        for index in (before, after):
            if index.isValid():
                cell = self.cell_rect(index)
                view.update(0, cell.top(), view.width(), cell.height())
                view.update(cell.left(), 0, cell.width(), view.height())

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802
        """More or fewer names fit, once the view has another width."""
        super().resizeEvent(event)
        self.fit()

    def _keep_cross(self) -> None:
        """An edge is about to be pressed: where the current cell is."""
        self._before_line = (self.currentIndex().row(), self.currentIndex().column())

    def _choose_agent(self, column: int) -> None:
        """A whole column is chosen; the current cell stays in its row."""
        self._cross(self._table.index(max(self._before_line[0], 0), column))

    def _choose_row(self, row: int) -> None:
        """A whole row is chosen; the current cell stays in its column."""
        self._cross(self._table.index(row, max(self._before_line[1], 0)))

    def _cross(self, index: QModelIndex) -> None:
        if index.isValid():
            self.selectionModel().setCurrentIndex(index, QItemSelectionModel.SelectionFlag.NoUpdate)


def _lines(first: int, last: int, count: int) -> range:
    """Lines from the first to the last; -1 as the last: to the end."""
    return range(0) if first < 0 else range(first, (count - 1 if last < 0 else last) + 1)
