"""Messages to the user: a bar that stays, a note that goes away by itself, a line while something is under way."""

from collections.abc import Sequence
from typing import Literal

from PySide6.QtCore import QEvent, QObject, Qt, QTimer, Signal
from PySide6.QtGui import QColor, QKeyEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QSizePolicy, QStyle, QVBoxLayout, QWidget
from shiboken6 import isValid

from gatewright_gui.qt.language import tr
from gatewright_gui.qt.look import Role, current_look, role_pair
from gatewright_gui.qt.prose import ProseLabel, plain
from gatewright_gui.qt.widget.button import IconButton
from gatewright_gui.qt.widget.label import ElidedLabel, IconLabel

Tone = Literal["info", "warning", "error"]
NO_LIMIT = 16_777_215
"""QWIDGETSIZE_MAX of Qt, the height that limits no widget."""
_TONES: dict[Tone, tuple[str, Role]] = {
    "info": ("info", "accent"),
    "warning": ("triangle-alert", "ask"),
    "error": ("circle-alert", "deny"),
}


class MessageBar(QWidget):
    """Hidden until `show_message`."""

    action_requested = Signal()
    other_requested = Signal()
    more_requested = Signal()
    closed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        tokens = current_look().tokens
        self._tone: Tone = "info"
        self._icon = IconLabel("info", "accent", parent=self)
        self._text = ProseLabel()
        self._text.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        self.action_button = QPushButton()
        self.action_button.clicked.connect(self.action_requested)
        self.other_button = QPushButton()
        self.other_button.clicked.connect(self.other_requested)
        self.more_button = QPushButton()
        self.more_button.clicked.connect(self.more_requested)
        self.close_button = IconButton("x", tr("Close message"))
        self.close_button.clicked.connect(self.dismiss)
        row = self._row = QHBoxLayout(self)
        row.setContentsMargins(tokens.space_3, 1, tokens.space_1, 1)
        row.setSpacing(tokens.space_2)
        row.addWidget(self._icon)
        row.addWidget(self._text, 1)
        row.addWidget(self.more_button)
        row.addWidget(self.action_button)
        row.addWidget(self.other_button)
        row.addWidget(self.close_button)
        self.setMinimumHeight(tokens.control_height + tokens.space_1)
        current_look().changed.connect(self.update)
        self.hide()

    @property
    def text(self) -> str:
        """The text that it says."""
        return self._text.text()

    @property
    def is_error(self) -> bool:
        """Tell whether it says that something went wrong."""
        return self._tone == "error" and not self.isHidden()

    def add_button(self, button: QPushButton) -> None:
        """One way more, before the others; whoever adds it shows and hides it."""
        self._row.insertWidget(self._row.indexOf(self.action_button), button)

    def show_message(
        self,
        tone: Tone,
        text: str,
        *,
        action: str | None = None,
        other: str | None = None,
        more: str | None = None,
    ) -> None:
        """Say something, with one or two ways on, and one to know more; the bar shows itself."""
        self._tone = tone
        self._icon.set_icon(*_TONES[tone])
        self._text.setText(text)
        self.action_button.setText(action or "")
        self.action_button.setVisible(action is not None)
        self.other_button.setText(other or "")
        self.other_button.setVisible(other is not None)
        self.more_button.setText(more or "")
        self.more_button.setVisible(more is not None)
        self.setAccessibleName(f"{tone}: {plain(text)}")
        self.show()
        self.update()

    def dismiss(self) -> None:
        """Hide the bar and say so."""
        if not self.isHidden():
            self.hide()
            self.closed.emit()

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802
        """Escape closes."""
        if event.key() == Qt.Key.Key_Escape:
            self.dismiss()
        else:
            super().keyPressEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802
        """A soft ground and a line below."""
        del event
        palette = current_look().palette
        pair = role_pair(palette, _TONES[self._tone][1])
        painter = QPainter(self)
        painter.fillRect(self.rect(), QColor(pair.soft))
        painter.fillRect(0, self.height() - 1, self.width(), 1, QColor(palette.border))
        painter.fillRect(0, 0, 3, self.height(), QColor(pair.fg))


class FootBars(QWidget):
    """Bars over the lower edge of `host`, above each other: nothing moves when one comes or goes.

    `views`: pages of the host, a stack, that end above the bars, so that their last rows can be scrolled into sight.
    """

    def __init__(self, host: QWidget, *bars: QWidget, views: Sequence[QWidget] = ()) -> None:
        super().__init__(host)
        self._host, self.views = host, views
        column = self._column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        for bar in bars:
            column.addWidget(bar)
        host.installEventFilter(self)
        self._place()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802
        """Stay at the foot of the host when its size changes."""
        if event.type() == QEvent.Type.Resize:
            self._place()
        return super().eventFilter(watched, event)

    def event(self, event: QEvent) -> bool:
        """Stay as high as the bars that are shown."""
        if event.type() == QEvent.Type.LayoutRequest:
            self._place()
        return super().event(event)

    def _place(self) -> None:
        column, width = self._column, self._host.width()
        high = 0 if column.isEmpty() else max(column.totalHeightForWidth(width), column.totalMinimumSize().height())
        self.setGeometry(0, self._host.height() - high, width, high)
        self.raise_()
        for view in self.views:
            view.setMaximumHeight(self._host.height() - high if high else NO_LIMIT)


STAY_MS = 5000


class Toast(QWidget):
    """One per window, over its lower edge and the `bars` there; a new note takes the place of the old one."""

    action_requested = Signal()

    def __init__(self, window: QWidget, bars: QWidget | None = None) -> None:
        super().__init__(window)
        self._bars = bars
        tokens = current_look().tokens
        self._icon = IconLabel("info", "accent")
        self._text = ElidedLabel()
        self.action_button = QPushButton()
        self.action_button.setProperty("kind", "link")
        self.action_button.clicked.connect(self.action_requested)
        self.action_button.clicked.connect(self.hide)
        row = QHBoxLayout(self)
        row.setContentsMargins(tokens.space_3, 0, tokens.space_3, 0)
        row.setSpacing(tokens.space_2)
        for part in (self._icon, self._text, self.action_button):
            row.addWidget(part)
        self._timer = QTimer(self, singleShot=True, interval=STAY_MS)
        self._timer.timeout.connect(self.hide)
        window.installEventFilter(self)
        self.hide()

    @property
    def text(self) -> str:
        """The text that it says."""
        return self._text.text

    def show_note(self, text: str, *, icon: str = "info", role: Role = "accent", action: str | None = None) -> None:
        """Say something for a few seconds; the mouse over it keeps it."""
        self._icon.set_icon(icon, role)
        self._text.set_text(text)
        self.action_button.setText(action or "")
        self.action_button.setVisible(action is not None)
        self.setAccessibleName(text)
        self._place()
        self.show()
        self.raise_()
        self._timer.start()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802
        """Stay at the foot of the window when its size changes."""
        if event.type() == QEvent.Type.Resize:
            self._place()
        return super().eventFilter(watched, event)

    def enterEvent(self, event: QEvent) -> None:  # noqa: N802
        """Stay while the mouse is here."""
        del event
        self._timer.stop()

    def leaveEvent(self, event: QEvent) -> None:  # noqa: N802
        """Go away after the usual time."""
        del event
        self._timer.start()

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802
        """A raised ground with a frame."""
        del event
        look = current_look()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QColor(look.palette.border_strong))
        painter.setBrush(QColor(look.palette.raised))
        painter.drawRoundedRect(self.rect().adjusted(0, 0, -1, -1), look.tokens.radius, look.tokens.radius)

    def _place(self) -> None:
        window = self.parentWidget()
        if window is not None:
            tokens = current_look().tokens
            width = min(self.sizeHint().width(), window.width() * 2 // 3)
            self.resize(width, tokens.row_height - 2)
            below = self._bars.height() if self._bars is not None else 0
            self.move(window.width() - width - tokens.space_2, window.height() - below - self.height() - 1)


_LINE = 2
_TICK_MS = 40
DELAY_MS = 500


class ProgressStrip(QWidget):
    """Shows itself when work takes longer than half a second. Moves only where the system lets things move."""

    cancel_requested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        tokens = current_look().tokens
        self._fraction: float | None = None
        self._phase = 0.0
        self._label = ElidedLabel(role="muted")
        self.cancel_button = QPushButton(tr("Cancel"))
        self.cancel_button.setProperty("kind", "link")
        self.cancel_button.clicked.connect(self.cancel_requested)
        row = QHBoxLayout(self)
        row.setContentsMargins(tokens.space_2, _LINE + 1, tokens.space_2, 1)
        row.addWidget(self._label, 1)
        row.addWidget(self.cancel_button)
        self._appear = QTimer(self, singleShot=True, interval=DELAY_MS)
        self._appear.timeout.connect(self.show)
        self._motion = QTimer(self, interval=_TICK_MS)
        self._motion.timeout.connect(self._move)
        current_look().changed.connect(self.update)
        self.hide()

    def start(self, text: str, *, at_once: bool = False, can_cancel: bool = True) -> None:
        """Work began."""
        self._fraction = None
        self._label.set_text(text)
        self.setAccessibleName(text)
        self.cancel_button.setVisible(can_cancel)
        if at_once:
            self.show()
        elif self.isHidden():
            self._appear.start()

    def set_progress(self, fraction: float | None, text: str | None = None) -> None:
        """Set how much is done, 0 to 1; None when nobody knows."""
        self._fraction = None if fraction is None else min(max(fraction, 0.0), 1.0)
        if text is not None:
            self._label.set_text(text)
        self.update()

    def stop(self) -> None:
        """Work ended; it may be told so after its window is gone."""
        if not isValid(self):
            return
        self._appear.stop()
        self.hide()

    def showEvent(self, event: object) -> None:  # noqa: N802
        """Start moving, where motion is on."""
        del event
        if self.style().styleHint(QStyle.StyleHint.SH_Widget_Animation_Duration, None, self) > 0:
            self._motion.start()

    def hideEvent(self, event: object) -> None:  # noqa: N802
        """Stop moving."""
        del event
        self._motion.stop()

    def _move(self) -> None:
        self._phase = (self._phase + 0.02) % 1.0
        if self._fraction is None:
            self.update(0, 0, self.width(), _LINE)

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802
        """A line along the top: as long as what is done, or a piece of it that wanders."""
        del event
        palette = current_look().palette
        painter = QPainter(self)
        painter.fillRect(self.rect(), QColor(palette.background))
        painter.fillRect(0, 0, self.width(), _LINE, QColor(palette.border))
        width = self.width()
        if self._fraction is not None:
            start, length = 0, round(width * self._fraction)
        else:
            length = width // 4
            start = round(self._phase * (width + length)) - length
        painter.fillRect(start, 0, length, _LINE, QColor(palette.accent.fg))
