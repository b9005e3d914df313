"""A list of equal rows paints what changed and nothing else."""

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QStringListModel
from PySide6.QtGui import QPainter
from PySide6.QtWidgets import QStyledItemDelegate, QStyleOptionViewItem
from pytestqt.qtbot import QtBot

from gatewright_gui.qt.widget.item_view import RowList
from tests.gui.session.opened import turn_until


class _Painted(QStyledItemDelegate):
    """Notes the rows."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: set[int] = set()

    def paint(
        self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        self.rows.add(index.row())
        super().paint(painter, option, index)


def test_a_row_that_changes_is_painted_and_the_others_are_not(qtbot: QtBot) -> None:
    model, painted, view = QStringListModel([f"row {number}" for number in range(12)]), _Painted(), RowList()
    qtbot.addWidget(view)
    view.setModel(model)
    view.setItemDelegate(painted)
    view.resize(200, 400)
    view.show()
    turn_until(lambda: len(painted.rows) >= 12, "the rows")
    painted.rows.clear()

    model.setData(model.index(4), "other")
    turn_until(lambda: 4 in painted.rows, "the row")

    assert painted.rows == {4}
