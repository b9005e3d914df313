"""One line of a sentence of the engine, cut where there is no room for it."""

from PySide6.QtGui import QPainter, QPaintEvent

from gatewright_gui.qt.look import role_colour
from gatewright_gui.qt.prose import paint_prose, plain
from gatewright_gui.qt.widget.elided_label import ElidedLabel


class ProseLine(ElidedLabel):
    """One line, cut at its end. Its name for assistive technology has no backticks."""

    def set_text(self, text: str, detail: str = "") -> None:
        """Show another sentence."""
        super().set_text(text, detail)
        self.setAccessibleName(plain(self.text))

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802
        """Draw what fits."""
        del event
        painter = QPainter(self)
        painter.setPen(role_colour("muted" if self.isEnabled() else "disabled"))
        paint_prose(painter, self.rect(), self.text)
