"""What every tool costs in tokens, as a table with the sum above. It does not know how tokens are counted."""

from collections.abc import Sequence
from enum import IntEnum
from typing import Any

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QObject, QPersistentModelIndex, Qt

from gatewright_gui.session.tokens import TokenReport, TokenRow

Index = QModelIndex | QPersistentModelIndex
TOOL, SORT, IS_TOTAL, IS_SHOWN, SHARE = (Qt.ItemDataRole.UserRole + n for n in range(1, 6))
HEADINGS = ("Tool", "Tokens", "Unrestricted", "Saved")
TIPS = (
    "Every tool of the catalog",
    "What the model is sent of it",
    "What it would be sent if nothing were limited",
    "How much less that is; less than nothing where the filtered schema needs more words",
)
_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter


class TokenColumn(IntEnum):
    """From the left."""

    TOOL = 0
    TOKENS = 1
    UNRESTRICTED = 2
    SAVED = 3


class TokenModel(QAbstractTableModel):
    """The first row is the sum. The same tools as before keep their rows."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._report: TokenReport | None = None
        self._rows: tuple[TokenRow, ...] = ()

    def set_report(self, report: TokenReport | None) -> None:
        """Show this; None: nothing is counted yet."""
        rows = (report.total, *report.rows) if report is not None else ()
        same = [row.tool for row in rows] == [row.tool for row in self._rows]
        if same:
            self._report, self._rows = report, rows
            if rows:
                self.dataChanged.emit(self.index(0, 0), self.index(len(rows) - 1, TokenColumn.SAVED))
            return
        self.beginResetModel()
        self._report, self._rows = report, rows
        self.endResetModel()

    def row_of(self, tool: str) -> int | None:
        """The row of a tool."""
        return next((index for index, row in enumerate(self._rows) if index and row.tool == tool), None)

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: N802, B008
        """The sum and the tools."""
        return 0 if parent.isValid() else len(self._rows)

    def columnCount(self, parent: Index = QModelIndex()) -> int:  # noqa: N802, B008
        """Always the same."""
        return 0 if parent.isValid() else len(TokenColumn)

    def headerData(  # noqa: N802
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> Any:
        """Words over the columns; numbers stand at the right."""
        if orientation != Qt.Orientation.Horizontal or not 0 <= section < len(HEADINGS):
            return None
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return HEADINGS[section]
            case Qt.ItemDataRole.ToolTipRole:
                return TIPS[section]
            case Qt.ItemDataRole.TextAlignmentRole if section != TokenColumn.TOOL:
                return int(_RIGHT)
            case _:
                return None

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Cells, and the roles of a row."""
        if not index.isValid() or index.row() >= len(self._rows):
            return None
        row, column = self._rows[index.row()], TokenColumn(index.column())
        match role:
            case Qt.ItemDataRole.DisplayRole | Qt.ItemDataRole.AccessibleTextRole:
                return self._text(row, column)
            case Qt.ItemDataRole.TextAlignmentRole if column is not TokenColumn.TOOL:
                return int(_RIGHT)
            case Qt.ItemDataRole.ToolTipRole:
                return "" if row.is_shown else "the model does not see it"
            case _ if role == TOOL:
                return row.tool
            case _ if role == IS_TOTAL:
                return index.row() == 0
            case _ if role == IS_SHOWN:
                return row.is_shown
            case _ if role == SHARE:
                return self._share(row) if column == TokenColumn.TOKENS and index.row() else None
            case _ if role == SORT:
                return (row.tool.casefold(), row.tokens, row.unrestricted, row.saving)[column]
            case _:
                return None

    def _share(self, row: TokenRow) -> float:
        """Of all tokens that the model is sent, 0 to 1."""
        total = self._rows[0].tokens
        return row.tokens / total if total else 0.0

    def _text(self, row: TokenRow, column: TokenColumn) -> str:
        exact = self._report is not None and self._report.exact
        match column:
            case TokenColumn.TOOL:
                return row.tool or "all tools"
            case TokenColumn.TOKENS:
                return count_words(row.tokens, exact=exact) if row.is_shown else "hidden"
            case TokenColumn.UNRESTRICTED:
                return count_words(row.unrestricted, exact=exact)
            case TokenColumn.SAVED:
                return saving_words(row)


def as_table(report: TokenReport, order: Sequence[str] | None = None) -> str:
    """The table as text to paste into a spreadsheet: tabs between plain numbers, percent for what is saved.

    `order`: the tools as they are sorted now; the sum stands above them.
    """
    rows = {row.tool: row for row in report.rows}
    chosen = [rows[tool] for tool in order if tool in rows] if order is not None else report.rows
    lines = ["\t".join((*HEADINGS[:3], "Saved %"))]
    lines += [
        f"{row.tool or 'all tools'}\t{row.tokens}\t{row.unrestricted}\t{round(row.saving * 100)}"
        for row in (report.total, *chosen)
    ]
    return "\n".join(lines) + "\n"


def count_words(tokens: int, *, exact: bool) -> str:
    """A number of tokens; an estimate is marked."""
    return f"{tokens:,}" if exact else f"~{tokens:,}"


def saving_words(row: TokenRow) -> str:
    """The share that is saved, in whole percent."""
    percent = round(row.saving * 100)
    return f"{percent} %" if percent or row.tokens == row.unrestricted else ("<1 %" if row.saving > 0 else ">-1 %")


def total_words(row: TokenRow, report: TokenReport) -> str:
    """`~433 of ~459 tokens, 6 % saved`."""
    count = count_words(row.tokens, exact=report.exact)
    if row.tokens == row.unrestricted:
        return f"{count} token{'' if row.tokens == 1 else 's'}, nothing saved"
    share = abs(round(row.saving * 100)) or "<1"
    before = count_words(row.unrestricted, exact=report.exact)
    return f"{count} of {before} tokens, {share} % {'saved' if row.saving > 0 else 'more'}"


def rule_words(report: TokenReport) -> str:
    """Whether the count is exact, and by which encoding."""
    return f"{'exact' if report.exact else 'estimate'}, {report.encoding}"
