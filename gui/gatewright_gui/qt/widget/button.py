"""Buttons: with words, as a link, or only an icon, with a name for those who do not see it."""

from collections.abc import Callable

from PySide6.QtCore import QEvent, QObject, QSize, Qt
from PySide6.QtGui import QHelpEvent, QKeyEvent
from PySide6.QtWidgets import QApplication, QPushButton, QStyleOptionButton, QToolButton, QToolTip, QWidget

from gatewright_gui.qt.layout import named
from gatewright_gui.qt.look import Role, tie_icon

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
