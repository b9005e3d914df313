"""The driver's mouse meets what it is sent to, however the window is laid out meanwhile."""

from collections.abc import Iterator

import pytest
from PySide6.QtCore import QModelIndex, QObject, Qt
from PySide6.QtGui import QMouseEvent, QStandardItem, QStandardItemModel
from PySide6.QtWidgets import QApplication, QHBoxLayout, QLabel, QListView, QPushButton, QSplitter, QVBoxLayout, QWidget

from gatewright_gui.app.driver import DriveError, Driver

LONG = "a text that takes much more room than what stood here before, and pushes aside what is beside it"


class Panes(QWidget):
    """Two panes: what the left one says pushes aside what stands in the right one."""

    def __init__(self) -> None:
        super().__init__()
        self.said = QLabel("short")
        self.button = QPushButton("here")
        self.clicks = 0
        self.button.clicked.connect(self._count)
        left, right = QWidget(), QWidget()
        QHBoxLayout(left).addWidget(self.said)
        inner = QVBoxLayout(right)
        inner.addWidget(self.button, 0, Qt.AlignmentFlag.AlignLeft)
        split = QSplitter()
        split.addWidget(left)
        split.addWidget(right)
        QVBoxLayout(self).addWidget(split)
        self.resize(900, 200)

    def _count(self) -> None:
        self.clicks += 1


@pytest.fixture
def panes(qapp: QApplication) -> Iterator[Panes]:
    made = Panes()
    made.show()
    made.activateWindow()
    qapp.processEvents()
    assert made.isActiveWindow()
    yield made
    made.close()
    made.deleteLater()


def test_click_meets_what_a_layout_that_is_half_made_will_move(panes: Panes) -> None:
    before = panes.button.mapTo(panes, panes.button.rect().topLeft())
    panes.said.setText(LONG)
    QApplication.processEvents()  # the pane has asked the splitter for room, which has not given it yet
    assert panes.button.mapTo(panes, panes.button.rect().topLeft()) == before

    Driver(panes).click(panes.button)

    assert panes.clicks == 1
    assert panes.button.mapTo(panes, panes.button.rect().topLeft()).x() > before.x() + panes.button.width()


def test_click_follows_what_moves_when_the_mouse_comes_to_it(panes: Panes) -> None:
    class Growing(QObject):
        def eventFilter(self, watched: QObject, event: object) -> bool:  # noqa: N802
            if isinstance(event, QMouseEvent) and event.type() == QMouseEvent.Type.MouseMove:
                panes.said.setText(LONG)
            return super().eventFilter(watched, event)  # pyright: ignore[reportArgumentType]

    panes.button.setMouseTracking(True)
    growing = Growing()
    panes.button.installEventFilter(growing)

    Driver(panes).click(panes.button)

    assert panes.said.text() == LONG
    assert panes.clicks == 1


def test_what_never_holds_still_is_said(panes: Panes) -> None:
    class Fleeing(QObject):
        def eventFilter(self, watched: QObject, event: object) -> bool:  # noqa: N802
            if isinstance(event, QMouseEvent) and event.type() == QMouseEvent.Type.MouseMove:
                panes.button.move(panes.button.x() + 1, panes.button.y())
            return super().eventFilter(watched, event)  # pyright: ignore[reportArgumentType]

    panes.button.setMouseTracking(True)
    fleeing = Fleeing()
    panes.button.installEventFilter(fleeing)

    with pytest.raises(DriveError, match="does not hold still"):
        Driver(panes).click(panes.button)
    assert panes.clicks == 0


def test_click_meets_a_row_that_moved_below_rows_that_came(qapp: QApplication) -> None:
    view, model = QListView(), QStandardItemModel()
    model.appendRow(QStandardItem("wanted"))
    view.setModel(model)
    view.setMouseTracking(True)

    def put_first(_index: QModelIndex) -> None:
        if model.rowCount() == 1:
            model.insertRow(0, QStandardItem("another"))

    view.entered.connect(put_first)
    view.resize(300, 300)
    view.show()
    qapp.processEvents()

    Driver(view).click_cell(view, model.index(0, 0))

    assert model.rowCount() > 1
    assert view.currentIndex().data() == "wanted"
    view.close()
    view.deleteLater()
