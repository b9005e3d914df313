"""The tokens of every tool as a table under its sum, sorted as one likes. It counts nothing."""

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QRect, QSortFilterProxyModel, Qt, Signal
from PySide6.QtGui import QColor, QFont, QPainter
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QStyleOptionViewItem, QWidget

from gatewright_gui.models.tokens import IS_SHOWN, IS_TOTAL, SHARE, SORT, TOOL, TokenColumn, TokenModel
from gatewright_gui.qt.look import current_look
from gatewright_gui.qt.widget.delegate import Delegate
from gatewright_gui.qt.widget.item_view import TableView

Index = QModelIndex | QPersistentModelIndex


_BAR, _SIDE = 2, 6
"""Height of the bar of a share, and the room beside it."""


class _Sorted(QSortFilterProxyModel):
    """The sum stays at the top, whatever is sorted."""

    def lessThan(self, left: Index, right: Index) -> bool:  # noqa: N802
        down = self.sortOrder() == Qt.SortOrder.DescendingOrder
        if left.data(IS_TOTAL) or right.data(IS_TOTAL):
            return bool(left.data(IS_TOTAL)) != down
        one, other = left.data(SORT), right.data(SORT)
        return bool(one < other)


class _Delegate(Delegate):
    """The sum stands out; what the model does not see is quiet; a bar below a number is its share of the sum."""

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        """The cell, and its bar."""
        super().paint(painter, option, index)
        share = index.data(SHARE)
        if isinstance(share, float) and share > 0:
            rect: QRect = getattr(option, "rect")  # noqa: B009
            room = rect.adjusted(_SIDE, rect.height() - _BAR - 1, -_SIDE, -1)
            painter.fillRect(room, QColor(current_look().palette.border))
            room.setLeft(room.right() - max(1, round(room.width() * share)) + 1)
            painter.fillRect(room, QColor(current_look().palette.accent.fg))

    def initStyleOption(self, option: QStyleOptionViewItem, index: Index) -> None:  # noqa: N802
        super().initStyleOption(option, index)
        look = current_look()
        if index.data(IS_TOTAL):
            font = QFont(getattr(option, "font"))  # noqa: B009
            font.setWeight(QFont.Weight.DemiBold)
            setattr(option, "font", font)  # noqa: B010
        quiet = not index.data(IS_SHOWN)
        colour = QColor(look.palette.muted if quiet else look.palette.text)
        palette = getattr(option, "palette")  # noqa: B009
        for role in (palette.ColorRole.Text, palette.ColorRole.HighlightedText):
            palette.setColor(role, colour)


class TokenTable(TableView):
    """A click or Enter on a row asks for its tool."""

    tool_requested = Signal(object)
    """Name of a tool: str."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("Tokens by tool", parent)
        self.setObjectName("preview.tokens.table")
        self.tokens = TokenModel(self)
        self.sorted = _Sorted(self)
        self.sorted.setDynamicSortFilter(True)
        self.sorted.setSourceModel(self.tokens)
        self.setModel(self.sorted)
        self.setItemDelegate(_Delegate(self))
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setTabKeyNavigation(False)
        header = self.horizontalHeader()
        header.setStretchLastSection(False)
        header.setSortIndicatorClearable(True)
        header.setSectionResizeMode(TokenColumn.TOOL, QHeaderView.ResizeMode.Stretch)
        for column, width in ((TokenColumn.TOKENS, 74), (TokenColumn.UNRESTRICTED, 98), (TokenColumn.SAVED, 62)):
            self.setColumnWidth(column, width)
        header.setSortIndicator(-1, Qt.SortOrder.AscendingOrder)
        self.setSortingEnabled(True)
        self.clicked.connect(self._go)
        self.activated.connect(self._go)

    @property
    def order(self) -> list[str]:
        """The tools as they are sorted now."""
        return [str(self.sorted.index(row, 0).data(TOOL)) for row in range(1, self.sorted.rowCount())]

    def choose_tool(self, tool: str | None) -> None:
        """Make the row of a tool the current one."""
        row = self.tokens.row_of(tool) if tool is not None else 0
        index = self.sorted.mapFromSource(self.tokens.index(row or 0, 0))
        if index.isValid() and index.row() != self.currentIndex().row():
            self.setCurrentIndex(index)

    def _go(self, index: QModelIndex) -> None:
        tool = index.data(TOOL)
        if tool:
            self.tool_requested.emit(tool)
