"""Trees and tables with the row height, selection and header of the house.

They paint inside one call of Python: a view of Qt's own takes Python's lock anew for every cell that a delegate paints,
and each time waits for a thread that works. The menu key opens the menu of the current row: Qt says where that is from
the corner of the view, headings and all, while whoever opens a menu looks the row up from the corner of the rows.
"""

from typing import Any

from PySide6.QtCore import Qt
from PySide6.QtGui import QPaintEvent
from PySide6.QtWidgets import QAbstractItemView, QTableView, QTreeView, QWidget

from gatewright_gui.qt.look import current_look
from gatewright_gui.qt.widget.delegate import Delegate


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


class TreeView(QTreeView):
    """Rows of one height, so that large trees stay quick."""

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setUniformRowHeights(True)
        self.header().setHighlightSections(False)
        self.header().setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        _settle(self, name)

    def inputMethodQuery(self, query: Qt.InputMethodQuery) -> Any:  # noqa: N802
        """Where the menu key opens a menu."""
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
        self.verticalHeader().hide()
        self.verticalHeader().setDefaultSectionSize(current_look().tokens.row_height)
        self.horizontalHeader().setHighlightSections(False)
        self.horizontalHeader().setStretchLastSection(True)
        self.horizontalHeader().setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        _settle(self, name)

    def inputMethodQuery(self, query: Qt.InputMethodQuery) -> Any:  # noqa: N802
        """Where the menu key opens a menu."""
        return _place_of(self, query, super().inputMethodQuery(query))

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802
        """In one call."""
        super().paintEvent(event)
