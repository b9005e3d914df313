"""Buttons: with words, as a link, only an icon, to copy a text, or a few in a row of which one is chosen."""

from collections.abc import Callable
from functools import partial
from typing import Protocol

from PySide6.QtCore import QEvent, QObject, QRect, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QColor, QGuiApplication, QHelpEvent, QKeyEvent, QPainter, QPainterPath, QPaintEvent
from PySide6.QtWidgets import QApplication, QHBoxLayout, QPushButton, QStyleOptionButton, QToolButton, QToolTip, QWidget

from gatewright_gui.qt.language import tr
from gatewright_gui.qt.layout import named
from gatewright_gui.qt.look import Role, current_look, role_colour, tie_icon
from gatewright_gui.qt.plaintext import LEFT

Act = Callable[[], object]
_SMALLEST = 24


class EnterKey(QObject):
    """Enter presses the button that has the keys, as Space does, in every window and dialog of the application.

    Qt has that for push buttons of dialogs alone, and there Enter on any other button presses the default one.
    """

    def __init__(self, app: QApplication) -> None:
        super().__init__(app)
        self.setObjectName("enter")
        app.focusChanged.connect(self._follow)
        self._follow(None, app.focusWidget())

    def _follow(self, _before: QWidget | None, now: QWidget | None) -> None:
        if isinstance(now, QPushButton | QToolButton):
            now.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802
        """A key that is held down presses once."""
        if not isinstance(event, QKeyEvent) or event.key() not in {Qt.Key.Key_Return, Qt.Key.Key_Enter}:
            return super().eventFilter(watched, event)
        plain = event.modifiers() in {Qt.KeyboardModifier.NoModifier, Qt.KeyboardModifier.KeypadModifier}
        if event.type() != QEvent.Type.KeyPress or not plain or not isinstance(watched, QPushButton | QToolButton):
            return super().eventFilter(watched, event)
        if not event.isAutoRepeat():
            watched.click()
        return True


class IconButton(QToolButton):
    """A flat button with a tooltip and an accessible name."""

    def __init__(self, icon: str, name: str, *, role: Role = "muted", parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setToolTip(name)
        self.setAccessibleName(name)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMinimumSize(_SMALLEST, _SMALLEST)
        tie_icon(self, icon, role)

    def set_icon(self, icon: str, name: str, role: Role = "muted") -> None:
        """Show another icon and name."""
        self.setToolTip(name)
        self.setAccessibleName(name)
        tie_icon(self, icon, role)


class WordButton(QPushButton):
    """A button with icon and words that has its icon alone while it is brief, for rows that are short of room."""

    def __init__(self, text: str = "", parent: QWidget | None = None) -> None:
        super().__init__(text, parent)
        self._is_brief = False

    @property
    def is_brief(self) -> bool:
        """True where the icon stands alone."""
        return self._is_brief

    def set_brief(self, is_brief: bool) -> None:
        """Leave the words out, or say them again; without an icon they stay."""
        is_brief = is_brief and not self.icon().isNull()
        if is_brief != self._is_brief:
            self._is_brief = is_brief
            self.updateGeometry()
            self.update()

    def sizeHint(self) -> QSize:  # noqa: N802
        """Without the words while it is brief."""
        hint = super().sizeHint()
        words = self.fontMetrics().horizontalAdvance(self.text().replace("&", "")) if self._is_brief else 0
        return QSize(hint.width() - words, hint.height())

    def minimumSizeHint(self) -> QSize:  # noqa: N802
        """No narrower."""
        return self.sizeHint()

    def initStyleOption(self, option: QStyleOptionButton) -> None:  # noqa: N802
        """Say what is drawn."""
        super().initStyleOption(option)
        if self._is_brief:
            option.text = ""  # pyright: ignore[reportAttributeAccessIssue]

    def event(self, event: QEvent) -> bool:
        """Its tooltip begins with the words that are left out."""
        if event.type() == QEvent.Type.ToolTip and self._is_brief and isinstance(event, QHelpEvent):
            words = "\n".join(filter(None, (self.text().replace("&", ""), self.toolTip())))
            QToolTip.showText(event.globalPos(), words, self)
            return True
        return super().event(event)


def text_button(text: str, name: str, act: Act, tip: str = "", *, spoken: str = "", kind: str = "") -> WordButton:
    """`name`: of the object; `spoken`: its accessible name where the text alone says too little; `kind`: its style."""
    button = named(WordButton(text), name, spoken=spoken or text, tip=tip, kind=kind)
    button.setAutoDefault(False)
    button.clicked.connect(lambda _=False: act())
    return button


def icon_button(icon: str, words: str, name: str, act: Act) -> IconButton:
    """A flat button without text; `words` are its tooltip and its accessible name."""
    button = named(IconButton(icon, words), name)
    button.clicked.connect(lambda _=False: act())
    return button


COPIED_MS = 1500


class CopyButton(IconButton):
    """`text` is asked when the button is pressed; nothing is copied where it is empty."""

    def __init__(self, name: str, text: Callable[[], str], parent: QWidget | None = None) -> None:
        super().__init__("copy", name, parent=parent)
        self._name, self._text = name, text
        self._copied = QTimer(self, singleShot=True, interval=COPIED_MS)
        self._copied.timeout.connect(self._reset)
        self.clicked.connect(self.copy)

    def copy(self) -> None:
        """Put the text on the clipboard."""
        text = self._text()
        if text:
            QGuiApplication.clipboard().setText(text)
            self.set_icon("check", tr("Copied"), "allow")
            self._copied.start()

    def set_name(self, name: str) -> None:
        """Say what is copied."""
        self._name = name
        self._reset()

    def _reset(self) -> None:
        self._copied.stop()
        self.set_icon("copy", self._name)


_ICON = 14
_PAD, _DENSE_PAD = 10, 7
_GAP = 5
_GROUP_GAP = 10
"""Pixels between groups of segments."""
_BAR = 3
"""Below the chosen one: its soft ground alone hardly differs from that of the others."""
_STEPS = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1}


class ChoiceStore(Protocol):
    """Keeps what was chosen last."""

    def choice(self, key: str) -> str:
        """The choice that was made last; empty when nobody has chosen."""
        ...

    def set_choice(self, key: str, chosen: str) -> None:
        """Keep what was chosen."""
        ...


class _Segment(QToolButton):
    """One of the joined buttons; the group draws the frame."""

    def __init__(self, text: str, icon: str | None, pad: int) -> None:
        super().__init__()
        self._icon = icon
        self.setText(text)
        self.setCheckable(True)
        self.setAutoExclusive(True)
        self.setAccessibleName(text)
        self._pad = pad
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        current_look().changed.connect(self.update)

    def sizeHint(self) -> QSize:  # noqa: N802
        icon = _ICON + _GAP if self._icon else 0
        height = current_look().tokens.control_height - 2
        return QSize(self.fontMetrics().horizontalAdvance(self.text()) + icon + 2 * self._pad, height)

    def minimumSizeHint(self) -> QSize:  # noqa: N802
        return self.sizeHint()

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802
        """Moving keys are the group's."""
        if Qt.Key(event.key()) in _STEPS:
            event.ignore()
        else:
            super().keyPressEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802
        del event
        look = current_look()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if self.isChecked():
            painter.fillRect(self.rect(), QColor(look.palette.accent.soft))
            painter.fillRect(self.rect().adjusted(0, self.height() - _BAR, 0, 0), QColor(look.palette.accent.fg))
        elif self.underMouse() and self.isEnabled():
            painter.fillRect(self.rect(), QColor(look.palette.hover))
        role: Role = "disabled" if not self.isEnabled() else "accent" if self.isChecked() else "text"
        left = self._pad
        if self._icon:
            look.icon(self._icon, role).paint(painter, QRect(left, (self.height() - _ICON) // 2, _ICON, _ICON))
            left += _ICON + _GAP
        painter.setPen(role_colour(role))
        words = QRect(left, 0, self.width() - left, self.height())
        painter.drawText(words, LEFT, self.text())
        if self.hasFocus():
            painter.setPen(QColor(look.palette.focus))
            painter.drawRoundedRect(self.rect().adjusted(1, 1, -2, -2), 2, 2)


class Segmented(QWidget):
    """Left and Right move; the keys are the caller's. ``is_dense``: many segments in little room."""

    current_changed = Signal(object)
    """Key of the segment that was chosen: str."""

    def __init__(self, name: str, parent: QWidget | None = None, *, is_dense: bool = False) -> None:
        super().__init__(parent)
        self._pad = _DENSE_PAD if is_dense else _PAD
        self._segments: dict[str, _Segment] = {}
        self._firsts: list[_Segment] = []
        """The first segment of each group."""
        self.setAccessibleName(name)
        self._row = QHBoxLayout(self)
        self._row.setContentsMargins(1, 1, 1, 1)
        self._row.setSpacing(1)
        self._row.setSizeConstraint(QHBoxLayout.SizeConstraint.SetFixedSize)
        current_look().changed.connect(self.update)

    def add_segment(
        self, key: str, text: str, *, icon: str | None = None, tooltip: str = "", apart: bool = False
    ) -> None:
        """Add a button at the right; the first one is chosen. ``apart``: behind a gap, the first of a group."""
        segment = _Segment(text, icon, self._pad)
        if apart:
            self._row.addSpacing(_GROUP_GAP)
        if apart or not self._segments:
            self._firsts.append(segment)
        segment.setToolTip(tooltip)
        self._segments[key] = segment
        self._row.addWidget(segment)
        segment.setChecked(len(self._segments) == 1)
        segment.toggled.connect(partial(self._take_choice, key))

    def keep(self, name: str, store: ChoiceStore) -> None:
        """Begin with the segment that was chosen last, and keep what is chosen from now on."""
        kept = store.choice(name)
        if kept in self._segments:
            self.set_current(kept)
        self.current_changed.connect(partial(store.set_choice, name))

    def _take_choice(self, key: str, on: bool) -> None:
        if on:
            self.current_changed.emit(key)

    @property
    def keys(self) -> tuple[str, ...]:
        """Keys from the left."""
        return tuple(self._segments)

    @property
    def current(self) -> str | None:
        """Key of the chosen segment."""
        return next((key for key, segment in self._segments.items() if segment.isChecked()), None)

    def set_current(self, key: str) -> None:
        """Choose a segment. Raises KeyError for an unknown one."""
        self._segments[key].setChecked(True)

    def set_segment_enabled(self, key: str, enabled: bool) -> None:
        """Let a segment be chosen or not. Raises KeyError for an unknown one."""
        self._segments[key].setEnabled(enabled)

    def button(self, key: str) -> QToolButton:
        """The button of a segment. Raises KeyError for an unknown one."""
        return self._segments[key]

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802
        """Left and Right choose the neighbour."""
        step = _STEPS.get(Qt.Key(event.key()))
        enabled = [key for key, segment in self._segments.items() if segment.isEnabled()]
        if step is None or self.current not in enabled:
            super().keyPressEvent(event)
            return
        index = enabled.index(self.current) + step
        key = enabled[min(max(index, 0), len(enabled) - 1)]
        self.set_current(key)
        self._segments[key].setFocus(Qt.FocusReason.OtherFocusReason)

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802
        """One frame around each group, a line between its buttons."""
        del event
        palette = current_look().palette
        painter = QPainter(self)
        lefts = [0, *(first.x() - 1 for first in self._firsts[1:])]
        rights = [*(left - _GROUP_GAP for left in lefts[1:]), self.width()]
        path = QPainterPath()
        for left, right in zip(lefts, rights, strict=True):
            path.addRoundedRect(left + 0.5, 0.5, right - left - 1, self.height() - 1, 3, 3)
        painter.fillPath(path, QColor(palette.raised))
        for segment in [one for one in self._segments.values() if not one.isHidden() and one not in self._firsts]:
            painter.fillRect(segment.x() - 1, 1, 1, self.height() - 2, QColor(palette.border_strong))
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QColor(palette.border_strong))
        painter.drawPath(path)
