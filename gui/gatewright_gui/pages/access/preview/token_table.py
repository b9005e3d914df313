"""The tokens of every tool as a table under its sum, sorted as one likes."""

from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from typing import Any

from PySide6.QtCore import QModelIndex, QObject, QRect, Qt, Signal
from PySide6.QtGui import QColor, QPainter, QResizeEvent
from PySide6.QtWidgets import QStyleOptionViewItem, QWidget

from gatewright_gui.qt.language import mark, tr
from gatewright_gui.qt.look import current_look
from gatewright_gui.qt.table_model import ROW, Index, RowModel
from gatewright_gui.qt.widget.item_view import Delegate, TableView, embolden, tint
from gatewright_gui.session.tokens import TokenReport, TokenRow, count_words

SHARE = Qt.ItemDataRole.UserRole + 1
"""Of the tokens of the largest tool, 0 to 1."""
HEADINGS = (mark("Tool"), mark("Tokens"), mark("Unrestricted"), mark("Saved"))
TIPS = (
    mark("Every tool of the catalog"),
    mark("What the model is sent of it"),
    mark("What it would be sent if nothing were limited"),
    mark("How much less that is; less than nothing where the filtered schema needs more words"),
)


class TokenColumn(IntEnum):
    """From the left."""

    TOOL = 0
    TOKENS = 1
    UNRESTRICTED = 2
    SAVED = 3


_SORT_KEYS: Mapping[int, Callable[[TokenRow], Any]] = {
    TokenColumn.TOOL: lambda row: row.tool.casefold(),
    TokenColumn.TOKENS: lambda row: row.tokens,
    TokenColumn.UNRESTRICTED: lambda row: row.unrestricted,
    TokenColumn.SAVED: lambda row: row.saving,
}


class TokenModel(RowModel[TokenRow]):
    """The first row is the sum, however the others are sorted.

    It sorts itself: a proxy asks for the cells of 1,000 tools pair by pair, which takes a tenth of a second.
    """

    headers = HEADINGS
    header_tips = TIPS
    numeric = frozenset(TokenColumn) - {TokenColumn.TOOL}

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._report: TokenReport | None = None
        self._largest = 0
        self._column = -1
        self._is_down = False

    def set_report(self, report: TokenReport | None) -> None:
        """Show this; None: nothing is counted yet."""
        self._report = report
        self._largest = max((row.tokens for row in report.rows), default=0) if report is not None else 0
        self._arrange(self._rows_in_order())

    def sort(self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder) -> None:
        """Sort the tools by a column; -1: as the catalog has them."""
        self._column, self._is_down = column, order == Qt.SortOrder.DescendingOrder
        self._arrange(self._rows_in_order())

    def _rows_in_order(self) -> tuple[TokenRow, ...]:
        if self._report is None:
            return ()
        rows, column = self._report.rows, self._column
        if column >= 0:
            rows = sorted(rows, key=_SORT_KEYS[column], reverse=self._is_down)
        return (self._report.total, *rows)

    def _arrange(self, rows: tuple[TokenRow, ...]) -> None:
        """Show these; of the same tools in another order what is chosen stays chosen."""
        before = [row.tool for row in self.rows]
        places = {row.tool: place for place, row in enumerate(rows)}
        if before == list(places) or set(before) != set(places):
            self.set_rows(rows)
            return
        self.layoutAboutToBeChanged.emit()
        held = self.persistentIndexList()
        moved = [self.index(places[before[index.row()]], index.column()) for index in held]
        self.rows = rows
        self.changePersistentIndexList(held, moved)
        self.layoutChanged.emit()

    def key(self, row: TokenRow, /) -> str:
        """The tool."""
        return row.tool

    def cell(self, row: TokenRow, column: int, role: int) -> Any:
        """Texts, and what is drawn from."""
        match role:
            case Qt.ItemDataRole.DisplayRole | Qt.ItemDataRole.AccessibleTextRole:
                return self._text(row, TokenColumn(column))
            case Qt.ItemDataRole.ToolTipRole:
                return "" if row.is_shown else tr("the model does not see it")
            case _ if role == SHARE:
                return self._share(row) if column == TokenColumn.TOKENS and row is not self.rows[0] else None
            case _:
                return None

    def _share(self, row: TokenRow) -> float:
        """Of the tokens of the largest tool, 0 to 1."""
        return row.tokens / self._largest if self._largest else 0.0

    def _text(self, row: TokenRow, column: TokenColumn) -> str:
        exact = self._report is not None and self._report.exact
        match column:
            case TokenColumn.TOOL:
                return row.tool or tr("all tools")
            case TokenColumn.TOKENS:
                return count_words(row.tokens, exact=exact) if row.is_shown else tr("hidden")
            case TokenColumn.UNRESTRICTED:
                return count_words(row.unrestricted, exact=exact)
            case TokenColumn.SAVED:
                return saving_words(row)


def as_table(report: TokenReport | None, order: Sequence[str] | None = None) -> str:
    """The table as text to paste into a spreadsheet: tabs between plain numbers, percent for what is saved; empty
    while nothing is counted.

    `order`: the tools as they are sorted now; the sum stands above them.
    """
    if report is None:
        return ""
    rows = {row.tool: row for row in report.rows}
    chosen = [rows[tool] for tool in order if tool in rows] if order is not None else report.rows
    lines = ["\t".join((*HEADINGS[:3], tr("Saved %")))]
    lines += [
        f"{row.tool or tr('all tools')}\t{row.tokens}\t{row.unrestricted}\t{round(row.saving * 100)}"
        for row in (report.total, *chosen)
    ]
    return "\n".join(lines) + "\n"


def saving_words(row: TokenRow) -> str:
    """The share that is saved, in whole percent."""
    percent = round(row.saving * 100)
    return f"{percent} %" if percent or row.tokens == row.unrestricted else ("<1 %" if row.saving > 0 else ">-1 %")


def total_words(row: TokenRow, report: TokenReport) -> str:
    """`~433 of ~459 tokens, 6 % less`."""
    count = count_words(row.tokens, exact=report.exact)
    if row.tokens == row.unrestricted:
        tokens = tr("{count} token", count=count) if row.tokens == 1 else tr("{count} tokens", count=count)
        return tr("{tokens}, no reduction", tokens=tokens)
    share = abs(round(row.saving * 100)) or "<1"
    before = count_words(row.unrestricted, exact=report.exact)
    less = tr("{count} of {every} tokens, {percent} % less", count=count, every=before, percent=share)
    more = tr("{count} of {every} tokens, {percent} % more", count=count, every=before, percent=share)
    return less if row.saving > 0 else more


CONTEXT_WINDOW = 200_000
"""Tokens that a model of today can take at once, for comparison."""


def context_words(tokens: int) -> str:
    """The share of a model's context that the tools take: `1.2 % of a context of 200,000 tokens`."""
    share = 100 * tokens / CONTEXT_WINDOW
    said = "<0.1" if 0 < share < 0.1 else f"{share:.1f}"
    return tr("{percent} % of a context of {count:,} tokens", percent=said, count=CONTEXT_WINDOW)


def rule_words(report: TokenReport) -> str:
    """Words for whether the count is exact, and by which encoding."""
    return ", ".join((tr("exact") if report.exact else tr("estimate"), report.encoding))


_NARROW = 320
"""Pixels; a narrower table leaves a column out."""
_BAR, _SIDE = 2, 6
"""Height of the bar of a share, and the room beside it."""


class _Delegate(Delegate):
    """The sum stands out; what the model does not see is quiet; a bar below a number compares it with the largest."""

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
        if index.row() == 0:
            embolden(option)
        tint(option, "text" if index.data(ROW).is_shown else "muted")


class TokenTable(TableView):
    """A click or Enter on a row asks for its tool."""

    tool_requested = Signal(object)
    """Name of a tool: str."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(tr("Tokens by tool"), parent)
        self.setObjectName("preview.tokens.table")
        self.tokens = TokenModel(self)
        widths: dict[int, int] = {TokenColumn.TOKENS: 74, TokenColumn.UNRESTRICTED: 98, TokenColumn.SAVED: 62}
        self.show_model(self.tokens, widths, wide=TokenColumn.TOOL)
        self.setItemDelegate(_Delegate(self))
        header = self.horizontalHeader()
        header.setSortIndicatorClearable(True)
        header.setSortIndicator(TokenColumn.TOKENS, Qt.SortOrder.DescendingOrder)
        self.setSortingEnabled(True)
        self.clicked.connect(self._go)
        self.activated.connect(self._go)

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802
        """Names of tools before what could be: that is said of what is saved."""
        super().resizeEvent(event)
        self.setColumnHidden(TokenColumn.UNRESTRICTED, self.viewport().width() < _NARROW)

    @property
    def order(self) -> list[str]:
        """The tools as they are sorted now."""
        return [row.tool for row in self.tokens.rows[1:]]

    def choose_tool(self, tool: str | None) -> None:
        """Make the row of a tool the current one."""
        index = self.tokens.index(max(self.tokens.find(tool), 0), 0)
        if index.isValid() and index.row() != self.currentIndex().row():
            self.setCurrentIndex(index)

    def _go(self, index: QModelIndex) -> None:
        tool = self.tokens.rows[index.row()].tool
        if tool:
            self.tool_requested.emit(tool)
