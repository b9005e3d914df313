"""The rows of a text document: only those that differ are replaced, and many of them a slice at a time."""

from collections.abc import Sequence

from PySide6.QtCore import QObject, QTimer, Signal
from PySide6.QtGui import QTextCursor, QTextDocument

SLICE = 400
"""Rows that are put in at once: a few milliseconds. The window gets its turn before the next ones."""
AROUND = 150
"""Rows behind a needed one that come with it: more than a window has."""
_FEW = 50
"""So few rows that stay are put in again, where all others go: emptying a document is quicker than taking rows out."""


class RowFiller(QObject):
    """The filler of a document: rows not in it yet are a gap between two blocks; those behind it are in their places.

    Who else changes the document, once all rows are in, says what it holds then (`keep`).
    """

    grew = Signal()
    """More of many rows are in."""

    def __init__(self, document: QTextDocument) -> None:
        super().__init__(document)
        self._document = document
        self._held: list[str] = []
        self._wanted: Sequence[str] = ()
        self._gap = self._missing = 0
        self._turn = QTimer(self, interval=0)
        self._turn.timeout.connect(self._go_on)

    @property
    def is_filling(self) -> bool:
        """Tell whether rows are still to come."""
        return self._missing > 0

    def show(self, rows: Sequence[str], needed: int = 0) -> range:
        """Show these instead, those up to `needed` at once; says which of the former rows are gone."""
        head, tail = common_ends(self._held, rows)
        if head + tail < _FEW and len(self._held) > SLICE:
            self._document.clear()
            self._held.clear()
            head = tail = 0
        gone = range(self.row_of(head), len(self._wanted) - tail)
        together = QTextCursor(self._document)
        together.beginEditBlock()
        self._take_out(head, len(self._held) - tail)
        self._wanted, self._gap, self._missing = rows, head, len(rows) - head - tail
        if not tail and self._missing:
            self._put_in(rows[-1:])  # the end is the end from the beginning
            self._missing -= 1
        self._fill(max(SLICE, needed + AROUND - head))
        together.endEditBlock()
        return gone

    def keep(self, rows: Sequence[str]) -> None:
        """The document holds these by now."""
        self._held, self._wanted, self._gap = list(rows), rows, len(rows)

    def reach(self, row: int) -> None:
        """Put in what is missing up to a row."""
        if self._gap <= row < self._gap + self._missing:
            self._fill(row + AROUND - self._gap)

    def row_of(self, block: int) -> int:
        """The row of a block, by its number."""
        return block if block < self._gap else block + self._missing

    def block_of(self, row: int) -> int:
        """The number of the block of a row; -1 where it is not in yet."""
        if row < self._gap:
            return row
        return row - self._missing if row >= self._gap + self._missing else -1

    def _go_on(self) -> None:
        self._fill(SLICE)
        self.grew.emit()

    def _fill(self, count: int) -> None:
        rows = self._wanted[self._gap : self._gap + min(count, self._missing)]
        self._put_in(rows)
        self._gap += len(rows)
        self._missing -= len(rows)
        if not self._missing:
            self._turn.stop()
        elif not self._turn.isActive():
            self._turn.start()

    def _put_in(self, rows: Sequence[str]) -> None:
        if not rows:
            return
        cursor, text = QTextCursor(self._document), "\n".join(rows)
        if self._gap < len(self._held):
            cursor.setPosition(self._begin_of(self._gap))
            cursor.insertText(f"{text}\n")
        else:
            cursor.movePosition(QTextCursor.MoveOperation.End)
            cursor.insertText(f"\n{text}" if self._held else text)
        self._held[self._gap : self._gap] = rows

    def _take_out(self, first: int, after: int) -> None:
        if first >= after:
            return
        cursor = QTextCursor(self._document)
        if after < len(self._held):
            cursor.setPosition(self._begin_of(first))
            cursor.setPosition(self._begin_of(after), QTextCursor.MoveMode.KeepAnchor)
        else:
            cursor.setPosition(max(self._begin_of(first) - 1, 0))
            cursor.movePosition(QTextCursor.MoveOperation.End, QTextCursor.MoveMode.KeepAnchor)
        cursor.removeSelectedText()
        del self._held[first:after]

    def _begin_of(self, block: int) -> int:
        return self._document.findBlockByNumber(block).position()


def common_ends(old: Sequence[str], new: Sequence[str]) -> tuple[int, int]:
    """The number of rows that are the same in both at the beginning, and of the others at the end."""
    shorter = min(len(old), len(new))
    head = _same(old, new, shorter)
    return head, _same(old[::-1], new[::-1], shorter - head)


def _same(one: Sequence[str], other: Sequence[str], most: int) -> int:
    """The number of equal rows from the first on, by halving: slices compare far quicker than rows one by one."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
