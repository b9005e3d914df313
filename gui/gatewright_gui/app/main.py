"""Starts the app: is there a display, which application, which event loop.

Qt is loaded here, before anything that imports it by itself.
"""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from gatewright_gui.qt.plainimport import load_qt

if TYPE_CHECKING:
    from PySide6.QtWidgets import QApplication

    from gatewright_gui.theme import ThemeChoice

NO_DISPLAY = 2


def run(workspace: Path | None = None, *, theme: "ThemeChoice | None" = None) -> int:
    """Show the window and stay until it is closed; the exit code."""
    if not has_display(os.environ, sys.platform):
        sys.stderr.write("no display: set DISPLAY or WAYLAND_DISPLAY, or run `gatewright tour --out DIR`\n")
        return NO_DISPLAY
    load_qt()
    from PySide6.QtWidgets import QApplication

    from gatewright_gui.app.living import live
    from gatewright_gui.qt import loop
    from gatewright_gui.settings import Preferences

    app = QApplication.instance()
    if not isinstance(app, QApplication):
        app = QApplication(sys.argv[:1])
    app.setApplicationName("Gatewright")
    app.setDesktopFileName("gatewright")
    preferences = Preferences()
    _speak(app, preferences.language)
    return loop.run(app, lambda: live(app, workspace, theme, preferences))


def _speak(app: "QApplication", chosen: str) -> None:
    """Take the language that is chosen, or that of the system, unless the environment names one."""
    from PySide6.QtCore import QLibraryInfo, QLocale, QTranslator

    from gatewright_gui.qt.language import VARIABLE

    language = os.environ.setdefault(VARIABLE, chosen or QLocale.system().name())[:2]
    texts_of_qt = QTranslator(app)
    if texts_of_qt.load(f"qtbase_{language}", QLibraryInfo.path(QLibraryInfo.LibraryPath.TranslationsPath)):
        app.installTranslator(texts_of_qt)


def has_display(environ: Mapping[str, str], platform: str) -> bool:
    """Whether a window could be shown at all."""
    if platform in {"win32", "darwin"}:
        return True
    return any(environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"))
