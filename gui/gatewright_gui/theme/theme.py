"""The theme that is on: applies light, dark or the system's to the application and tells widgets when it changed."""

import sys
from pathlib import Path
from typing import Literal
from weakref import WeakSet

from PySide6.QtCore import QObject, Qt, QTemporaryDir, Signal, SignalInstance
from PySide6.QtGui import QFont, QIcon
from PySide6.QtWidgets import QApplication, QStyleFactory, QWidget
from shiboken6 import isValid

from gatewright_gui.qt.look import CheckState, Palette, Role, Tokens, install_look
from gatewright_gui.theme import typography
from gatewright_gui.theme.icons import IconShelf
from gatewright_gui.theme.style import qt_palette, style_sheet, write_indicators
from gatewright_gui.theme.tokens import DARK, LIGHT, tokens_for

ThemeName = Literal["light", "dark"]
ThemeChoice = Literal["light", "dark", "system"]
_USUAL_DPI = 96.0
_LARGEST = 1.3
"""More than this and words do not fit their rows."""


class Theme(QObject):
    """Satisfies `Look`. Make one per application, before any widget, and keep it."""

    theme_changed = Signal(object)
    """Carries the ThemeName that is on now."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._choice: ThemeChoice = "light"
        self._current: ThemeName = "light"
        self._folder = QTemporaryDir()
        self._shelves: dict[ThemeName, IconShelf] = {}
        self._app: QApplication | None = None
        self._fonts: tuple[QFont, QFont, QFont] | None = None
        self._tokens = tokens_for(1.0)
        self._factor = 1.0
        self._dressed: WeakSet[QWidget] = WeakSet()

    @property
    def current(self) -> ThemeName:
        """The theme that is on; never `system`."""
        return self._current

    @property
    def choice(self) -> ThemeChoice:
        """The theme that was asked for."""
        return self._choice

    @property
    def tokens(self) -> Tokens:
        """Sizes."""
        return self._tokens

    @property
    def palette(self) -> Palette:
        """Colours of the theme that is on."""
        return DARK if self._current == "dark" else LIGHT

    @property
    def changed(self) -> SignalInstance:
        """`theme_changed`, under the name that widgets know."""
        return self.theme_changed

    @property
    def ui_font(self) -> QFont:
        """The face of the window."""
        return QFont(self._font_set()[0])

    @property
    def small_font(self) -> QFont:
        """The smaller of the two text sizes."""
        return QFont(self._font_set()[1])

    @property
    def mono_font(self) -> QFont:
        """The monospaced face."""
        return QFont(self._font_set()[2])

    def icon(self, name: str, role: Role = "text", *, gap: bool = False) -> QIcon:
        """A bundled icon tinted for the theme that is on; `gap`: with room behind it, for words that follow.

        Raises MissingResourceError for an unknown name.
        """
        return self._shelf().icon(name, role, gap=gap)

    def check_icon(self, state: CheckState, *, hovered: bool = False, focused: bool = False) -> QIcon:
        """The picture of a box, 16 px; its disabled mode is in the same icon."""
        return self._shelf().check_icon(state, hovered, focused)

    def apply(self, app: QApplication, choice: ThemeChoice) -> None:
        """Put a theme on: style, palette, font, and the style sheet of dressed windows.

        With `system` it follows the desktop from now on.
        """
        self.prepare(app, choice)
        for window in [*self._dressed]:
            if isValid(window):
                self.dress(window)
        self.theme_changed.emit(self._current)

    def dress(self, window: QWidget) -> None:
        """Put the style sheet of each theme from now on on a window, and so on what is and comes into it or below it.

        Under a sheet of the application Qt would style a part anew each time it is put into a larger one, which makes
        a page three times as expensive. A popup without a parent has to be dressed by itself.
        """
        self._dressed.add(window)
        window.setStyleSheet(style_sheet(self._tokens, self.palette, self._files()))

    def prepare(self, app: QApplication, choice: ThemeChoice) -> None:
        """Put a theme on but for the style sheets."""
        if self._app is None:
            self._app = app
            app.setStyle(QStyleFactory.create("Fusion"))
            self._size_texts()
            app.styleHints().colorSchemeChanged.connect(self._system_changed)
        install_look(self)
        self._choice = choice
        is_dark = app.styleHints().colorScheme() == Qt.ColorScheme.Dark
        self._current = ("dark" if is_dark else "light") if choice == "system" else choice
        app.setPalette(qt_palette(self.palette))

    def set_text_size(self, factor: float) -> None:
        """Make all texts larger or smaller than usual; what the desktop wants of texts comes on top."""
        if factor == self._factor:
            return
        self._factor = factor
        if self._app is not None:
            self._size_texts()
            self.apply(self._app, self._choice)

    def _size_texts(self) -> None:
        screen = self._app.primaryScreen() if self._app is not None else None
        desktop = screen.logicalDotsPerInch() / _USUAL_DPI if screen is not None and sys.platform != "darwin" else 1.0
        self._tokens, self._fonts = tokens_for(min(self._factor * max(desktop, 1.0), _LARGEST)), None
        if self._app is not None:
            self._app.setFont(self.ui_font)

    def _system_changed(self, _scheme: Qt.ColorScheme) -> None:
        if self._app is not None and self._choice == "system":
            self.apply(self._app, "system")

    def _shelf(self) -> IconShelf:
        if self._current not in self._shelves:
            self._shelves[self._current] = IconShelf(self.palette, self._files())
        return self._shelves[self._current]

    def _files(self) -> Path:
        """The folder of the SVG files of the theme that is on, filled with what the style sheet names."""
        if not self._folder.isValid():
            raise OSError(f"no place for the icons of the running program: {self._folder.errorString()}")
        folder = Path(self._folder.path()) / self._current
        if not folder.is_dir():
            folder.mkdir()
            write_indicators(self.palette, folder)
        return folder

    def _font_set(self) -> tuple[QFont, QFont, QFont]:
        if self._fonts is None:
            tokens = self._tokens
            fonts = (typography.ui_font(tokens), typography.small_font(tokens), typography.mono_font(tokens))
            self._fonts = fonts
        return self._fonts
