"""A row that the program chooses is the only one that is chosen, whatever keys are down meanwhile."""

import pytest
from PySide6.QtCore import QItemSelectionModel, QKeyCombination, QStringListModel, Qt
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractItemView
from pytestqt.qtbot import QtBot

from gatewright_gui.qt.widget.item_view import OrderedTable, RowList, TableView, TreeView
from tests.gui.session.opened import turn_until

VIEWS = {
    "list": RowList,
    "tree": lambda: TreeView("rows"),
    "table": lambda: TableView("rows"),
    "ordered": lambda: OrderedTable("rows"),
}
_Modifier = Qt.KeyboardModifier
KEYS = (
    (Qt.Key.Key_D, _Modifier.ControlModifier),
    (Qt.Key.Key_F6, _Modifier.ShiftModifier),
    (Qt.Key.Key_P, _Modifier.ControlModifier | _Modifier.ShiftModifier),
    (Qt.Key.Key_D, _Modifier.AltModifier),
    (Qt.Key.Key_F4, _Modifier.NoModifier),
)


@pytest.mark.parametrize(("key", "modifiers"), KEYS)
@pytest.mark.parametrize("kind", VIEWS)
def test_a_row_chosen_by_a_shortcut_is_chosen_alone(
    qtbot: QtBot, kind: str, key: Qt.Key, modifiers: Qt.KeyboardModifier
) -> None:
    view, model = VIEWS[kind](), QStringListModel([f"row {number}" for number in range(6)])
    qtbot.addWidget(view)
    view.setModel(model)
    view.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
    view.show()
    view.activateWindow()
    turn_until(view.isActiveWindow, "the view to have the keys")
    view.selectionModel().setCurrentIndex(model.index(0, 0), QItemSelectionModel.SelectionFlag.ClearAndSelect)
    wanted = iter((3, 5, 1))
    shortcut = QShortcut(QKeySequence(QKeyCombination(modifiers, key)), view)
    shortcut.activated.connect(lambda: view.setCurrentIndex(model.index(next(wanted), 0)))

    for row in (3, 5, 1):
        QTest.keyClick(view, key, modifiers)

        assert [index.row() for index in view.selectionModel().selectedIndexes()] == [row]
        assert view.currentIndex().row() == row


def test_rows_are_chosen_together_by_keys_and_clicks_as_before(qtbot: QtBot) -> None:
    view, model = RowList(), QStringListModel([f"row {number}" for number in range(6)])
    qtbot.addWidget(view)
    view.setModel(model)
    view.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
    view.show()
    view.activateWindow()
    turn_until(view.isActiveWindow, "the view to have the keys")
    view.setCurrentIndex(model.index(1, 0))

    QTest.keyClick(view, Qt.Key.Key_Down, Qt.KeyboardModifier.ShiftModifier)

    assert sorted(index.row() for index in view.selectionModel().selectedIndexes()) == [1, 2]
