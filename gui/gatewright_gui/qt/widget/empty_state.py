"""What an empty place shows: an icon, what is missing, what to do about it; grey bars until it is known to be empty."""

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QResizeEvent, QShowEvent
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from gatewright_gui.qt.language import tr
from gatewright_gui.qt.look import current_look
from gatewright_gui.qt.widget.label import IconLabel, Label

_LINE_WIDTH = 360
_NARROWEST = 180
_BARS, _BAR_HEIGHT = (0.5, 1.0, 0.75), 8
"""The widths of the bars that stand for what is not known yet, of that of a line."""


class EmptyState(QWidget):
    """Centred in the room it gets. Says nothing and offers nothing while it is not known (`set_unknown`)."""

    action_requested = Signal()
    other_requested = Signal()

    def __init__(
        self,
        icon: str,
        title: str,
        advice: str,
        *,
        action: str | None = None,
        other: str | None = None,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        tokens = current_look().tokens
        self._is_known = True
        self._said: tuple[str | None, ...] = ()
        self._icon = IconLabel(icon, "muted", size=32)
        self._title = Label(wraps=True)
        self._title.setProperty("kind", "title")
        self._advice = Label(wraps=True)
        self._advice.setProperty("kind", "muted")
        for label in (self._title, self._advice):
            label.setAlignment(Qt.AlignmentFlag.AlignHCenter)
        self.action_button = QPushButton()
        self.action_button.clicked.connect(self.action_requested)
        self.other_button = QPushButton()
        self.other_button.clicked.connect(self.other_requested)
        buttons = QHBoxLayout()
        buttons.setSpacing(tokens.space_2)
        buttons.addWidget(self.action_button)
        buttons.addWidget(self.other_button)
        self._icon_room = self._icon.sizeHint().height() + tokens.space_2
        column = QVBoxLayout(self)
        column.setSpacing(tokens.space_2)
        column.addStretch(1)
        for part in (self._icon, self._title, self._advice):
            column.addWidget(part, 0, Qt.AlignmentFlag.AlignHCenter)
        column.addLayout(buttons)
        column.setAlignment(buttons, Qt.AlignmentFlag.AlignHCenter)
        column.addStretch(1)
        self.set_state(icon, title, advice, action=action, other=other)

    def set_state(
        self, icon: str, title: str, advice: str, *, action: str | None = None, other: str | None = None
    ) -> None:
        """Say something else, with one or two ways on."""
        said = icon, title, advice, action, other
        if self._is_known and said == self._said:
            return
        self._is_known, self._said = True, said
        for part in (self._icon, self._title):
            part.show()
        self._icon.set_icon(icon, "muted")
        self._title.setText(title)
        self._advice.setText(advice)
        self._fit()
        self.action_button.setText(action or "")
        self.action_button.setVisible(action is not None)
        self.other_button.setText(other or "")
        self.other_button.setVisible(other is not None)
        self.setAccessibleName(title)
        self.setAccessibleDescription(advice)

    @property
    def is_known(self) -> bool:
        """Tell whether it says something."""
        return self._is_known

    def set_unknown(self) -> None:
        """Show that it is not known yet what there is."""
        self._is_known = False
        for part in (self._icon, self._title, self._advice, self.action_button, self.other_button):
            part.hide()
        self.setAccessibleName(tr("Not known yet"))
        self.setAccessibleDescription("")
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802
        """Grey bars where nothing is known."""
        super().paintEvent(event)
        if self._is_known:
            return
        look, painter = current_look(), QPainter(self)
        width, step = min(_LINE_WIDTH, self.width() // 2), _BAR_HEIGHT + look.tokens.space_2
        top = (self.height() - step * len(_BARS)) // 2
        for number, share in enumerate(_BARS):
            length = int(width * share)
            bar = ((self.width() - length) // 2, top + number * step, length, _BAR_HEIGHT)
            painter.fillRect(*bar, QColor(look.palette.border))
        painter.end()

    def showEvent(self, event: QShowEvent) -> None:  # noqa: N802
        """Measure the advice again: the style may have changed the font."""
        super().showEvent(event)
        self._fit()

    def minimumSizeHint(self) -> QSize:  # noqa: N802
        """Narrower than its text, and without the icon: an empty place must not push its neighbours aside."""
        return QSize(_NARROWEST, super().minimumSizeHint().height() - (0 if self._icon.isHidden() else self._icon_room))

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802
        """Wrap the advice to the room there is; where that is low the icon goes."""
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        self._advice.setVisible(self._is_known and bool(self._advice.text()))
        for label in (self._title, self._advice):
            self._fit_words(label)
        self._icon.setVisible(self._is_known and self.height() >= self.minimumSizeHint().height() + self._icon_room)

    def _fit_words(self, label: Label) -> None:
        """Give a text the width that it needs, or that there is, and the height that it has at that width."""
        if label.isHidden():
            return
        label.ensurePolished()
        whole = label.fontMetrics().horizontalAdvance(label.text()) + 4
        width = min(_LINE_WIDTH, whole, max(_NARROWEST, self.width() - 2 * current_look().tokens.space_3))
        label.setFixedSize(width, max(label.heightForWidth(width), label.fontMetrics().height()))
