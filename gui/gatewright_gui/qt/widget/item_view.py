"""Views of items in the manner of the house, and what paints their cells: the words of strangers as plain text."""

from collections.abc import Mapping, Sequence
from typing import Any

from PySide6.QtCore import QAbstractItemModel, QEvent, QItemSelectionModel, QLocale, QRect, QSize, Qt, Signal
from PySide6.QtGui import QDragLeaveEvent, QDragMoveEvent, QDropEvent, QFont, QHelpEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QApplication,
    QHeaderView,
    QListView,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTableView,
    QToolTip,
    QTreeView,
    QWidget,
)

from gatewright_gui.qt.look import Role, current_look, role_colour
from gatewright_gui.qt.plaintext import LONGEST_LINE, label_text, tip_text
from gatewright_gui.qt.table_model import Index


class Delegate(QStyledItemDelegate):
    """A delegate that passes what it paints by itself through `plaintext`."""

    def displayText(self, value: object, locale: QLocale | QLocale.Language) -> str:  # noqa: N802
        """The text of a cell."""
        return label_text(value, LONGEST_LINE) if isinstance(value, str) else super().displayText(value, locale)

    def helpEvent(  # noqa: N802
        self, event: QHelpEvent, view: QAbstractItemView, option: QStyleOptionViewItem, index: Index
    ) -> bool:
        """The tooltip of a cell."""
        text = index.data(Qt.ItemDataRole.ToolTipRole) if event.type() == QEvent.Type.ToolTip else None
        if not isinstance(text, str):
            return super().helpEvent(event, view, option, index)
        QToolTip.showText(event.globalPos(), tip_text(text), view.viewport(), view.visualRect(index))
        return True


def paint_ground(painter: QPainter, option: QStyleOptionViewItem) -> None:
    """The ground of a cell: hover, selection, focus, as the style sheet says."""
    widget: QWidget | None = getattr(option, "widget", None)
    if widget is not None:
        widget.style().drawPrimitive(QStyle.PrimitiveElement.PE_PanelItemViewItem, option, painter, widget)


def tint(item: Any, role: Role) -> None:
    """Words in a colour, whether the row is chosen or not. `item`: of the style, its members are untyped."""
    for part in (item.palette.ColorRole.Text, item.palette.ColorRole.HighlightedText):
        item.palette.setColor(part, role_colour(role))


def put_icon(item: Any, name: str, role: Role, size: int = 0) -> None:
    """An icon before the words, a small one unless its `size` in pixels is given."""
    size = size or current_look().tokens.small_icon_size
    item.icon = current_look().icon(name, role)
    item.decorationSize = QSize(size, size)
    item.features |= QStyleOptionViewItem.ViewItemFeature.HasDecoration


def embolden(item: Any) -> None:
    """Words that stand out."""
    item.font = QFont(item.font)
    item.font.setWeight(QFont.Weight.DemiBold)


def _settle(view: QAbstractItemView, name: str) -> None:
    view.setAccessibleName(name)
    view.setItemDelegate(Delegate(view))
    view.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
    view.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
    view.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
    view.setTextElideMode(Qt.TextElideMode.ElideRight)
    view.ensurePolished()  # rows laid out before the style sheet is known would keep a wrong height


def _place_of(view: QAbstractItemView, query: Qt.InputMethodQuery, answer: Any) -> Any:
    """The current row, from the corner of the rows, while no cell is edited; else Qt's own answer."""
    is_place = query == Qt.InputMethodQuery.ImCursorRectangle
    if not is_place or view.state() == QAbstractItemView.State.EditingState:
        return answer
    return view.visualRect(view.currentIndex())


_Flag = QItemSelectionModel.SelectionFlag


def choose_alone(view: QAbstractItemView, index: Index) -> bool:
    """Choose a row in a view where many can be, although keys are down; False where there is no need.

    Qt takes the Ctrl of a shortcut for that of a click, and would leave the row before chosen too.
    """
    is_many = view.selectionMode() == QAbstractItemView.SelectionMode.ExtendedSelection
    if not (is_many and index.isValid() and QApplication.keyboardModifiers()):
        return False
    is_row = view.selectionBehavior() == QAbstractItemView.SelectionBehavior.SelectRows
    flags = _Flag.ClearAndSelect | _Flag.Rows if is_row else _Flag.ClearAndSelect
    view.selectionModel().setCurrentIndex(index, flags)
    return True


class TreeView(QTreeView):
    """Rows of one height, so that large trees stay quick."""

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setUniformRowHeights(True)
        self.header().setHighlightSections(False)
        self.header().setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        _settle(self, name)

    def setCurrentIndex(self, index: Index) -> None:  # noqa: N802
        """Choose this row and no other, whatever keys are down."""
        if not choose_alone(self, index):
            super().setCurrentIndex(index)

    def inputMethodQuery(self, query: Qt.InputMethodQuery) -> Any:  # noqa: N802
        """The place where the menu key opens a menu."""
        return _place_of(self, query, super().inputMethodQuery(query))

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802
        """In one call."""
        super().paintEvent(event)


class TableView(QTableView):
    """Rows without grid lines and numbers."""

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setShowGrid(False)
        self.setWordWrap(False)
        self.setTabKeyNavigation(False)  # Tab leaves the table, arrows walk in it
        self.verticalHeader().hide()
        self.verticalHeader().setDefaultSectionSize(current_look().tokens.row_height)
        self.horizontalHeader().setHighlightSections(False)
        self.horizontalHeader().setStretchLastSection(True)
        self.horizontalHeader().setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        _settle(self, name)

    def show_model(self, model: QAbstractItemModel, widths: Mapping[int, int], *, wide: int) -> None:
        """Show rows to choose one of: columns of these widths in pixels, and a ``wide`` one that takes the rest."""
        self.setModel(model)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.horizontalHeader().setStretchLastSection(False)
        self.horizontalHeader().setSectionResizeMode(wide, QHeaderView.ResizeMode.Stretch)
        for column, width in widths.items():
            self.setColumnWidth(column, width)

    def setCurrentIndex(self, index: Index) -> None:  # noqa: N802
        """Choose this row and no other, whatever keys are down."""
        if not choose_alone(self, index):
            super().setCurrentIndex(index)

    def inputMethodQuery(self, query: Qt.InputMethodQuery) -> Any:  # noqa: N802
        """The place where the menu key opens a menu."""
        return _place_of(self, query, super().inputMethodQuery(query))

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802
        """In one call."""
        super().paintEvent(event)


class OrderedTable(TableView):
    """Rows in an order: the chosen ones are dragged between others, and a line through all columns shows where to."""

    move_requested = Signal(object)
    """Where the first of the chosen rows shall stand, the others right below it: int. The view itself moves none."""

    fixed_rows = 0
    """So many rows at the end stay the last."""

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(name, parent)
        self.drop_at: int | None = None
        """The row before which what is dragged would be dropped."""
        self.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.setDragDropMode(QAbstractItemView.DragDropMode.InternalMove)
        self.setDropIndicatorShown(False)
        self.setDragDropOverwriteMode(False)

    @property
    def chosen(self) -> tuple[int, ...]:
        """The chosen rows that can be moved, from the top."""
        rows = {index.row() for index in self.selectionModel().selectedRows()}
        return tuple(sorted(row for row in rows if row < self.model().rowCount() - self.fixed_rows))

    def is_own(self, event: QDropEvent) -> bool:
        """Tell whether what is dragged are rows of this table."""
        return event.source() is self

    def dragMoveEvent(self, event: QDragMoveEvent) -> None:  # noqa: N802
        """Show where it would be dropped; the view scrolls at its edges by itself."""
        super().dragMoveEvent(event)
        is_ours = self.is_own(event)
        self._show_drop(self._drop_row(event) if is_ours else None)
        if is_ours:
            event.setDropAction(Qt.DropAction.MoveAction)
            event.accept()

    def dragLeaveEvent(self, event: QDragLeaveEvent) -> None:  # noqa: N802
        """It is elsewhere."""
        self._show_drop(None)
        super().dragLeaveEvent(event)

    def dropEvent(self, event: QDropEvent) -> None:  # noqa: N802
        """Ask for the move; the view must not take the dragged rows away."""
        place = self._drop_row(event)
        self._show_drop(None)
        if self.is_own(event):
            rows = self.chosen
            to = place - sum(row < place for row in rows)
            if rows != tuple(range(to, to + len(rows))):
                self.move_requested.emit(to)
        event.setDropAction(Qt.DropAction.IgnoreAction)
        event.accept()
        self.setState(QAbstractItemView.State.NoState)
        self.viewport().update()

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802
        """With a line where what is dragged would be dropped."""
        super().paintEvent(event)
        if self.drop_at is None:
            return
        rows = self.model().rowCount()
        place = self.visualRect(self.model().index(min(self.drop_at, rows - 1), 0))
        top = max((place.top() if self.drop_at < rows else place.bottom()) - 1, 0)
        painter = QPainter(self.viewport())
        painter.fillRect(QRect(0, top, self.viewport().width(), 2), role_colour("accent"))
        painter.fillRect(QRect(0, top - 3, 4, 8), role_colour("accent"))

    def _show_drop(self, row: int | None) -> None:
        if row != self.drop_at:
            self.drop_at = row
            self.viewport().update()

    def _drop_row(self, event: QDropEvent) -> int:
        last = self.model().rowCount() - self.fixed_rows
        point = event.position().toPoint()
        index = self.indexAt(point)
        if not index.isValid():
            return last
        return min(index.row() + (point.y() > self.visualRect(index).center().y()), last)


class RowList(QListView):
    """Qt's own list lays out every row anew when one changes, as another text might need another height."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setUniformItemSizes(True)

    def setCurrentIndex(self, index: Index) -> None:  # noqa: N802
        """Choose this row and no other, whatever keys are down."""
        if not choose_alone(self, index):
            super().setCurrentIndex(index)

    def dataChanged(self, first: Index, last: Index, roles: Sequence[int] = ()) -> None:  # noqa: N802
        """Paint what changed."""
        QAbstractItemView.dataChanged(self, first, last, list(roles))
