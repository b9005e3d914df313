"""A bar that says something and goes away again, and its place at the foot of the window; it never blocks."""

from collections.abc import Sequence
from typing import Literal

from PySide6.QtCore import QEvent, QObject, Qt, Signal
from PySide6.QtGui import QColor, QKeyEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QSizePolicy, QVBoxLayout, QWidget

from gatewright_gui.qt.language import tr
from gatewright_gui.qt.look import Role, current_look, role_pair
from gatewright_gui.qt.prose import ProseLabel, plain
from gatewright_gui.qt.widget.button import IconButton
from gatewright_gui.qt.widget.icon_label import IconLabel

Tone = Literal["info", "warning", "error"]
_NO_LIMIT = 16_777_215
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
            view.setMaximumHeight(self._host.height() - high if high else _NO_LIMIT)
