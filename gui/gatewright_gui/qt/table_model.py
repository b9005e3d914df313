"""A table whose rows have no children, under columns that have names."""

from typing import Any

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QPersistentModelIndex, Qt

from gatewright_gui.qt.language import tr

Index = QModelIndex | QPersistentModelIndex


class FlatModel(QAbstractTableModel):
    """A subclass names the columns, counts its rows and says what the cells show."""

    headers: tuple[str, ...] = ()
    """In English; of texts in the code, `mark`ed ones."""

    def count(self) -> int:
        """How many rows there are."""
        raise NotImplementedError

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: N802, B008
        """How many rows there are; none below a row."""
        return 0 if parent.isValid() else self.count()

    def columnCount(self, parent: Index = QModelIndex()) -> int:  # noqa: N802, B008
        """As many columns as have a name."""
        return 0 if parent.isValid() else len(self.headers)

    def headerData(  # noqa: N802
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> Any:
        """Names of the columns, in the language of the app."""
        fits = orientation == Qt.Orientation.Horizontal and role == Qt.ItemDataRole.DisplayRole
        return tr(self.headers[section]) if fits and 0 <= section < len(self.headers) else None

    def flags(self, index: Index) -> Qt.ItemFlag:
        """Rows can be chosen, and have nothing below them."""
        flags = super().flags(index)
        return flags | Qt.ItemFlag.ItemNeverHasChildren if index.isValid() else flags
