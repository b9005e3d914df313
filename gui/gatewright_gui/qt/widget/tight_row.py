"""A row of parts that say less, one after the other, while there is no room for all that they can say."""

from collections.abc import Callable

from PySide6.QtCore import QSize
from PySide6.QtGui import QResizeEvent, QShowEvent
from PySide6.QtWidgets import QWidget

from gatewright_gui.qt.look import current_look

Part = Callable[[bool], None]
"""Is called with whether it is to be brief."""


class TightRow(QWidget):
    """Needs a layout. Call `refit` when what a part says has changed."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._parts: tuple[Part, ...] = ()
        self._least = 0
        current_look().changed.connect(self.refit)

    def give_way(self, *parts: Part) -> None:
        """These are brief where room is short, the first of them first."""
        self._parts = parts
        self.refit()

    def refit(self, _why: object = None) -> None:
        """Say as much as there is room for."""
        layout = self.layout()
        if layout is None or not self._parts:
            return
        for part in self._parts:
            part(True)
        self._least = layout.totalMinimumSize().width()
        for part in self._parts:
            part(False)
        for part in self._parts:
            if layout.totalMinimumSize().width() <= self.width():
                break
            part(True)
        self.updateGeometry()

    def minimumSizeHint(self) -> QSize:  # noqa: N802
        """Room for all parts while they are brief."""
        least = super().minimumSizeHint()
        return QSize(self._least, least.height()) if self._parts else least

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802
        """Say more, or less."""
        super().resizeEvent(event)
        self.refit()

    def showEvent(self, event: QShowEvent) -> None:  # noqa: N802
        """Fonts are known from now on."""
        super().showEvent(event)
        self.refit()
