"""A list of rows that are all of one height: a row that says something else is painted again, and no other."""

from collections.abc import Sequence

from PySide6.QtWidgets import QAbstractItemView, QListView, QWidget

from gatewright_gui.qt.table_model import Index


class RowList(QListView):
    """Qt's own list lays out every row anew when one changes, as another text might need another height."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setUniformItemSizes(True)

    def dataChanged(self, first: Index, last: Index, roles: Sequence[int] = ()) -> None:  # noqa: N802
        """Paint what changed."""
        QAbstractItemView.dataChanged(self, first, last, list(roles))
