"""A small table of rules below the tree: Enter edits, Del removes, Ins adds, a click on a link goes to its line.

It does not know what its rows are. One column gets the room that the others, as wide as what they show, leave over.
"""

from collections.abc import Mapping
from typing import Any, cast

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent, QMouseEvent, QResizeEvent
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QWidget

from gatewright_gui.qt.widget.item_view import TableView

_PAD = 10
_SHARE = 0.66
"""Of the width, for all columns but the one that is stretched."""


class RuleTable(TableView):
    """`bounds`: least and most width of the other columns, in pixels."""

    add_requested = Signal()
    remove_requested = Signal()
    edit_requested = Signal()
    line_clicked = Signal(object)
    """Row: int."""

    def __init__(
        self, name: str, bounds: Mapping[int, tuple[int, int]], link_column: int, parent: QWidget | None = None
    ) -> None:
        super().__init__(name, parent)
        self._bounds = bounds
        self._link_column = link_column
        triggers = QAbstractItemView.EditTrigger
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setEditTriggers(triggers.DoubleClicked | triggers.SelectedClicked)
        self.setTabKeyNavigation(False)

    def settle(self, stretched: int) -> None:
        """Once there is a model: the column that gets the rest."""
        header = self.horizontalHeader()
        header.setStretchLastSection(False)
        header.setSectionResizeMode(stretched, QHeaderView.ResizeMode.Stretch)
        self.fit()

    def fit(self) -> None:
        """Give each column the width of its contents, less where the table is narrow; for tables of few rows."""
        wide = {column: self._wanted(column) for column in self._bounds}
        over = sum(wide.values()) - int(self.viewport().width() * _SHARE)
        spare = sum(width - self._bounds[column][0] for column, width in wide.items())
        for column, width in wide.items():
            least = self._bounds[column][0]
            cut = (width - least) * min(over, spare) // spare if over > 0 and spare else 0
            self.setColumnWidth(column, width - cut)

    def show_row(self, row: int | None, column: int) -> None:
        """Make a row the current one and bring the keys to it; None: leave all as it is."""
        if row is not None:
            self.setCurrentIndex(self.model().index(row, column))
            self.scrollTo(self.currentIndex())
            self.setFocus()

    def keep_keys(self) -> None:
        """Once an editor is gone: take the keys back, unless one has gone elsewhere with them."""
        held = self.window().focusWidget()
        if not held or self.isAncestorOf(held):
            self.setFocus()

    def _wanted(self, column: int) -> int:
        least, most = self._bounds[column]
        shown = max(self.sizeHintForColumn(column), self.horizontalHeader().sectionSizeHint(column)) + _PAD
        return min(max(shown, least), most)

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802
        """Another width, other shares."""
        super().resizeEvent(event)
        self.fit()

    def edit(self, *asked: Any) -> Any:
        """Open an editor at once, also right after a click that would open one a little later."""
        if len(asked) == 1:
            asked = (asked[0], QAbstractItemView.EditTrigger.DoubleClicked, None)
        return cast("bool | None", super().edit(*asked))

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802
        """The keys of the list; Enter in an editor that leaves it to others belongs to the editor all the same."""
        if self.state() == QAbstractItemView.State.EditingState:
            super().keyPressEvent(event)
            return
        match event.key():
            case Qt.Key.Key_Insert:
                self.add_requested.emit()
            case Qt.Key.Key_Delete | Qt.Key.Key_Backspace:
                self.remove_requested.emit()
            case Qt.Key.Key_Return | Qt.Key.Key_Enter | Qt.Key.Key_F2:
                self.edit_requested.emit()
            case _:
                super().keyPressEvent(event)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:  # noqa: N802
        """A click on a link goes to the line."""
        super().mouseReleaseEvent(event)
        index = self.indexAt(event.position().toPoint())
        if event.button() == Qt.MouseButton.LeftButton and index.isValid() and index.column() == self._link_column:
            self.line_clicked.emit(index.row())
