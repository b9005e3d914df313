"""A splitter with a thin line for a handle, that keeps its sizes between two starts."""

from collections.abc import Sequence
from typing import Protocol

from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QColor, QEnterEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QSplitter, QSplitterHandle, QWidget

from gatewright_gui.qt.look import current_look

HANDLE_WIDTH = 5


class SizeStore(Protocol):
    """Keeps sizes under a key."""

    def splitter_sizes(self, key: str) -> tuple[int, ...] | None:
        """Sizes in pixels, or None."""
        ...

    def set_splitter_sizes(self, key: str, sizes: tuple[int, ...]) -> None:
        """Keep sizes in pixels."""
        ...


class _Handle(QSplitterHandle):
    """One line, thicker under the mouse."""

    def __init__(self, orientation: Qt.Orientation, parent: QSplitter) -> None:
        super().__init__(orientation, parent)
        self._hovered = False

    def enterEvent(self, event: QEnterEvent) -> None:  # noqa: N802
        del event
        self._hovered = True
        self.update()

    def leaveEvent(self, event: QEvent) -> None:  # noqa: N802
        del event
        self._hovered = False
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802
        del event
        palette = current_look().palette
        painter = QPainter(self)
        painter.fillRect(self.rect(), QColor(palette.background))
        thick = 3 if self._hovered else 1
        colour = QColor(palette.accent.fg if self._hovered else palette.border)
        if self.orientation() == Qt.Orientation.Horizontal:
            painter.fillRect((self.width() - thick) // 2, 0, thick, self.height(), colour)
        else:
            painter.fillRect(0, (self.height() - thick) // 2, self.width(), thick, colour)


class Splitter(QSplitter):
    """Add the panes, then call `restore`; moves are kept from then on."""

    def __init__(
        self,
        orientation: Qt.Orientation,
        key: str,
        store: SizeStore | None = None,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(orientation, parent)
        self._key = key
        self._store = store
        self.setHandleWidth(HANDLE_WIDTH)
        self.setChildrenCollapsible(False)
        self.setAccessibleName(key)
        self.splitterMoved.connect(self._keep)

    def createHandle(self) -> QSplitterHandle:  # noqa: N802
        """Our thin handle."""
        return _Handle(self.orientation(), self)

    def restore(self, default: tuple[int, ...]) -> None:
        """Take the kept sizes, or the default ones where none fit the number of panes."""
        kept = self._store.splitter_sizes(self._key) if self._store else None
        fits = kept is not None and len(kept) == self.count() and sum(kept) > 0
        self.setSizes(list(kept if kept is not None and fits else default))

    def _keep(self) -> None:
        if self._store is not None:
            self._store.set_splitter_sizes(self._key, tuple(self.sizes()))


def split_of(
    along: Qt.Orientation,
    key: str,
    store: SizeStore,
    panes: Sequence[QWidget],
    sizes: tuple[int, ...],
    grows: int | None = None,
) -> Splitter:
    """Panes with handles between them, of these sizes at first; ``grows``: which grows with the window."""
    split = Splitter(along, key, store)
    for pane in panes:
        split.addWidget(pane)
    if grows is not None:
        split.setStretchFactor(grows, 1)
    split.restore(sizes)
    return split
