"""Rows and columns of widgets in one expression."""

import pytest
from PySide6.QtCore import QMargins
from PySide6.QtWidgets import QPushButton, QWidget
from pytestqt.qtbot import QtBot

from gatewright_gui.qt.layout import Gap, column_of, holding, named, row_of, stretch

pytestmark = pytest.mark.usefixtures("theme")


def test_parts_stand_in_order_with_the_spaces_and_margins_of_the_theme(qtbot: QtBot) -> None:
    window = QWidget()
    qtbot.addWidget(window)
    first, second, below = QPushButton(), QPushButton(), QWidget()
    top = row_of(first, Gap(4), second, stretch(), space=2)
    layout = column_of(top, stretch(below), into=window, space=1, margins=(4, 0, 4, 2))
    window.resize(600, 400)
    window.show()
    qtbot.waitExposed(window)
    assert window.layout() is layout
    assert layout.contentsMargins() == QMargins(16, 0, 16, 8)
    assert first.x() == 16
    assert second.x() == first.geometry().right() + 1 + 8 + 16  # the gap stands beside the space of the row
    assert below.geometry().bottom() == 400 - 8 - 1
    assert below.width() == 600 - 32


def test_a_layout_in_a_holder_can_stand_where_only_widgets_can(qtbot: QtBot) -> None:
    button = named(QPushButton("Go"), "go", spoken="Go on", tip="Goes on", kind="primary")
    holder = holding(row_of(button))
    qtbot.addWidget(holder)
    assert holder.findChild(QPushButton, "go") is button
    assert (button.accessibleName(), button.toolTip(), button.property("kind")) == ("Go on", "Goes on", "primary")
