"""The rail at the left of the window: one icon with a word for each page, one of them chosen, counts on top."""

from functools import partial
from typing import Literal

from PySide6.QtCore import QRect, QSize, Qt, Signal
from PySide6.QtGui import QColor, QKeyEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QToolButton, QVBoxLayout, QWidget

from gatewright_gui.qt.look import Role, current_look, role_pair

BadgeTone = Literal["accent", "ask", "deny", "neutral"]
_CONTENT = 37
"""How high icon and word are together."""
_STEPS = {Qt.Key.Key_Up: "up", Qt.Key.Key_Down: "down", Qt.Key.Key_Home: "first", Qt.Key.Key_End: "last"}


class RailButton(QToolButton):
    """An icon over a word, with a count at its corner."""

    def __init__(self, key: str, icon: str, label: str) -> None:
        super().__init__()
        self.key = key
        self.label = label
        self._icon = icon
        self._count = 0
        self._tone: BadgeTone = "accent"
        self._beside: BadgeTone | None = None
        self.setCheckable(True)
        self.setAutoExclusive(True)
        self.setText(label)
        self.setToolTip(label)
        self.setAccessibleName(label)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Maximum)
        current_look().changed.connect(self.update)

    @property
    def count(self) -> int:
        """The count at its corner; 0 shows none."""
        return self._count

    def set_badge(self, count: int, tone: BadgeTone, words: str = "", beside: BadgeTone | None = None) -> None:
        """Show a count, which `words` tell; 0 takes it away. `beside`: a dot for what it does not count."""
        self._count, self._tone, self._beside = count, tone, beside
        self.setAccessibleName(f"{self.label}, {words or count}" if count else self.label)
        self.setToolTip(f"{self.label}: {words}" if count and words else self.label)
        self.update()

    def sizeHint(self) -> QSize:  # noqa: N802
        """A size as wide as the rail."""
        return QSize(current_look().tokens.rail_width, 52)

    def minimumSizeHint(self) -> QSize:  # noqa: N802
        """Closer together in a low window: all pages stay in view."""
        return QSize(current_look().tokens.rail_width, _CONTENT + 3)

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802
        """Ground, bar at the left when chosen, icon, word, count, focus."""
        del event
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        self._paint_ground(painter)
        role: Role = "disabled" if not self.isEnabled() else "accent" if self.isChecked() else "muted"
        look = current_look()
        top = (self.height() - _CONTENT) // 2
        look.icon(self._icon, role).paint(painter, QRect((self.width() - 20) // 2, top, 20, 20))
        painter.setFont(look.small_font)
        words = "disabled" if not self.isEnabled() else "text" if self.isChecked() else "muted"
        painter.setPen(QColor(role_pair(look.palette, words).fg))
        painter.drawText(QRect(0, top + 22, self.width(), 16), Qt.AlignmentFlag.AlignCenter, self.label)
        if self._count:
            self._paint_count(painter, top)

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802
        """Moving keys are the rail's."""
        if Qt.Key(event.key()) in _STEPS:
            event.ignore()
        else:
            super().keyPressEvent(event)

    def _paint_ground(self, painter: QPainter) -> None:
        palette = current_look().palette
        if self.isChecked():
            painter.fillRect(self.rect(), QColor(palette.selection_inactive))
            painter.fillRect(0, 0, 3, self.height(), QColor(palette.accent.fg))
        elif self.underMouse() and self.isEnabled():
            painter.fillRect(self.rect(), QColor(palette.hover))
        if self.hasFocus():
            painter.setPen(QColor(palette.focus))
            painter.drawRoundedRect(self.rect().adjusted(4, 1, -2, -2), 4, 4)

    def _paint_count(self, painter: QPainter, top: int) -> None:
        pair = role_pair(current_look().palette, self._tone)
        text = str(self._count) if self._count < 100 else "99+"
        width = max(16, painter.fontMetrics().horizontalAdvance(text) + 8)
        badge = QRect(self.width() // 2 + 4, max(top - 5, 0), width, 15)
        painter.setPen(QColor(pair.fg))
        painter.setBrush(QColor(pair.soft))
        painter.drawRoundedRect(badge, 7, 7)
        painter.drawText(badge, Qt.AlignmentFlag.AlignCenter, text)
        if self._beside is not None:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(role_pair(current_look().palette, self._beside).fg))
            painter.drawEllipse(badge.right() + 3, badge.center().y() - 2, 5, 5)


class IconRail(QWidget):
    """Arrow keys move between the buttons, Tab leaves the rail."""

    current_changed = Signal(object)
    """Key of the page that was chosen: str."""

    def __init__(self, name: str = "Pages", parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._buttons: dict[str, RailButton] = {}
        self._at_foot = 0
        self.setAccessibleName(name)
        self.setFixedWidth(current_look().tokens.rail_width)
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 1, 0)
        self._column.setSpacing(0)
        self._column.addStretch(1)
        current_look().changed.connect(self.update)

    def add_page(self, key: str, icon: str, label: str, *, at_foot: bool = False) -> RailButton:
        """Add a button below the others, or at the foot; the first one is chosen."""
        button = RailButton(key, icon, label)
        self._buttons[key] = button
        self._column.insertWidget(self._column.count() - (0 if at_foot else 1 + self._at_foot), button)
        self._at_foot += at_foot
        button.setChecked(len(self._buttons) == 1)
        button.toggled.connect(partial(self._take_choice, key))
        return button

    def _take_choice(self, key: str, on: bool) -> None:
        if on:
            self.current_changed.emit(key)

    @property
    def keys(self) -> tuple[str, ...]:
        """Keys of the pages, from the top."""
        return tuple(self._buttons)

    @property
    def current(self) -> str | None:
        """Key of the chosen page."""
        return next((key for key, button in self._buttons.items() if button.isChecked()), None)

    def set_current(self, key: str) -> None:
        """Choose a page. Raises KeyError for an unknown one."""
        self._buttons[key].setChecked(True)

    def set_badge(
        self, key: str, count: int, tone: BadgeTone = "accent", words: str = "", beside: BadgeTone | None = None
    ) -> None:
        """Show a count on a page's button; 0 takes it away. Raises KeyError for an unknown one."""
        self._buttons[key].set_badge(count, tone, words, beside)

    def button(self, key: str) -> RailButton:
        """The button of a page. Raises KeyError for an unknown one."""
        return self._buttons[key]

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802
        """Up, Down, Home and End choose."""
        key = Qt.Key(event.key())
        enabled = [key for key, button in self._buttons.items() if button.isEnabled()]
        if key not in _STEPS or self.current not in enabled:
            super().keyPressEvent(event)
            return
        step = _STEPS[key]
        at = {"up": enabled.index(self.current) - 1, "down": enabled.index(self.current) + 1, "first": 0, "last": -1}
        self._go(enabled[at[step] % len(enabled)])

    def _go(self, key: str) -> None:
        self.set_current(key)
        self._buttons[key].setFocus(Qt.FocusReason.OtherFocusReason)

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802
        """Ground and a line at the right."""
        del event
        palette = current_look().palette
        painter = QPainter(self)
        painter.fillRect(self.rect(), QColor(palette.background))
        painter.fillRect(self.width() - 1, 0, 1, self.height(), QColor(palette.border))
