"""A list of rows that are all of one height: a row that says something else is painted again, and no other."""

from collections.abc import Sequence

from PySide6.QtWidgets import QAbstractItemView, QListView, QWidget

from gatewright_gui.qt.table_model import Index
from gatewright_gui.qt.widget.item_view import choose_alone


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
