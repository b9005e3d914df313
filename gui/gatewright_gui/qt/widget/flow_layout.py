"""A layout that breaks a row of small widgets into as many lines as it needs."""

from PySide6.QtCore import QPoint, QRect, QSize, Qt
from PySide6.QtWidgets import QLayout, QLayoutItem, QWidget


class FlowLayout(QLayout):
    """From the left, line by line; what is hidden takes no room."""

    def __init__(self, parent: QWidget | None = None, *, spacing: int = 4) -> None:
        super().__init__(parent)
        self._items: list[QLayoutItem] = []
        self.setSpacing(spacing)

    def addItem(self, item: QLayoutItem) -> None:  # noqa: N802
        """Put something at the end."""
        self._items.append(item)

    def count(self) -> int:
        """The number of items."""
        return len(self._items)

    def itemAt(self, index: int) -> QLayoutItem | None:  # noqa: N802  # pyright: ignore[reportIncompatibleMethodOverride]
        """One of them."""
        return self._items[index] if 0 <= index < len(self._items) else None

    def takeAt(self, index: int) -> QLayoutItem | None:  # noqa: N802  # pyright: ignore[reportIncompatibleMethodOverride]
        """Take one out."""
        return self._items.pop(index) if 0 <= index < len(self._items) else None

    def expandingDirections(self) -> Qt.Orientation:  # noqa: N802
        """It takes what it needs."""
        return Qt.Orientation(0)

    def hasHeightForWidth(self) -> bool:  # noqa: N802
        """A narrow one is higher."""
        return True

    def heightForWidth(self, width: int) -> int:  # noqa: N802
        """The height at that width."""
        return self._place(QRect(0, 0, width, 0), only_measure=True)

    def setGeometry(self, rect: QRect) -> None:  # noqa: N802
        """Place all."""
        super().setGeometry(rect)
        self._place(rect, only_measure=False)

    def sizeHint(self) -> QSize:  # noqa: N802
        """At least the widest of them."""
        return self.minimumSize()

    def minimumSize(self) -> QSize:  # noqa: N802
        """The widest of them."""
        size = QSize()
        for item in self._items:
            if not item.isEmpty():
                size = size.expandedTo(item.minimumSize())
        margins = self.contentsMargins()
        return size + QSize(margins.left() + margins.right(), margins.top() + margins.bottom())

    def _place(self, rect: QRect, *, only_measure: bool) -> int:
        margins, space = self.contentsMargins(), self.spacing()
        inside = rect.adjusted(margins.left(), margins.top(), -margins.right(), -margins.bottom())
        x, y, line = inside.x(), inside.y(), 0
        for item in self._items:
            if item.isEmpty():
                continue
            size = item.sizeHint()
            if x > inside.x() and x + size.width() > inside.right() + 1:
                x, y, line = inside.x(), y + line + space, 0
            if not only_measure:
                item.setGeometry(QRect(QPoint(x, y), size))
            x, line = x + size.width() + space, max(line, size.height())
        return y + line - rect.y() + margins.bottom()
