"""One line of text that gives way: shortened in the middle for paths, at the end otherwise, whole in the tooltip."""

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from gatewright_gui.qt.look import Role, current_look, role_colour
from gatewright_gui.qt.plaintext import LEFT, LONGEST_LINE, label_text, tip_text


class ElidedLabel(QWidget):
    """Takes the width it wants when there is room, and any smaller one otherwise."""

    def __init__(
        self,
        text: str = "",
        *,
        path: bool = False,
        mono: bool = False,
        role: Role = "text",
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._text = self._detail = ""
        self._mode = Qt.TextElideMode.ElideMiddle if path else Qt.TextElideMode.ElideRight
        self._role: Role = role
        if mono:
            self.setFont(current_look().mono_font)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        current_look().changed.connect(self.update)
        self.set_text(text)

    @property
    def text(self) -> str:
        """The whole text."""
        return self._text

    @property
    def shown_text(self) -> str:
        """The text that fits; nothing where even that would be cut, as Qt does with a single letter."""
        metrics = self.fontMetrics()
        cut = metrics.elidedText(self._text, self._mode, self.width())
        return cut if metrics.horizontalAdvance(cut) <= self.width() else ""

    def set_text(self, text: str, detail: str = "") -> None:
        """Show another text; line breaks become spaces. ``detail`` stands in the tooltip in its place."""
        self._text, self._detail = label_text(" ".join(text.splitlines()), LONGEST_LINE), tip_text(detail)
        self.setAccessibleName(self._text)
        self.updateGeometry()
        self._refresh()

    def sizeHint(self) -> QSize:  # noqa: N802
        """Room for the whole text."""
        metrics = self.fontMetrics()
        return QSize(metrics.horizontalAdvance(self._text) + 1, metrics.height())

    def minimumSizeHint(self) -> QSize:  # noqa: N802
        """Room for a few letters."""
        metrics = self.fontMetrics()
        return QSize(min(metrics.averageCharWidth() * 6, self.sizeHint().width()), metrics.height())

    def resizeEvent(self, event: object) -> None:  # noqa: N802
        """The tooltip holds the whole text only where it is cut."""
        del event
        self._refresh()

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802
        """Draw what fits."""
        del event
        painter = QPainter(self)
        colour: QColor = role_colour(self._role if self.isEnabled() else "disabled")
        painter.setPen(colour)
        flags = LEFT
        painter.drawText(self.rect(), flags, self.shown_text)

    def _refresh(self) -> None:
        self.setToolTip(self._detail or (self._text if self.shown_text != self._text else ""))
        self.update()
