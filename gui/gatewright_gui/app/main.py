"""Starts the app: is there a display, which application, which event loop.

Qt is loaded here, before anything that imports it by itself.
"""

import os
import sys
from collections.abc import Callable, Mapping
from ctypes import CDLL
from pathlib import Path
from typing import TYPE_CHECKING

from gatewright_gui.qt.language import VARIABLE
from gatewright_gui.qt.plainimport import load_qt

if TYPE_CHECKING:
    from PySide6.QtWidgets import QApplication

    from gatewright_gui.theme import ThemeChoice

NO_DISPLAY = 2
X11_LIBRARIES = {
    "libxcb-cursor.so.0": "libxcb-cursor0",
    "libxcb-icccm.so.4": "libxcb-icccm4",
    "libxcb-image.so.0": "libxcb-image0",
    "libxcb-keysyms.so.1": "libxcb-keysyms1",
    "libxcb-randr.so.0": "libxcb-randr0",
    "libxcb-render-util.so.0": "libxcb-render-util0",
    "libxcb-shape.so.0": "libxcb-shape0",
    "libxcb-shm.so.0": "libxcb-shm0",
    "libxcb-sync.so.1": "libxcb-sync1",
    "libxcb-xfixes.so.0": "libxcb-xfixes0",
    "libxcb-xkb.so.1": "libxcb-xkb1",
    "libxkbcommon-x11.so.0": "libxkbcommon-x11-0",
    "libX11-xcb.so.1": "libx11-xcb1",
}
"""The libraries that Qt's part for X11 is linked with, and the packages of Debian that have them."""


def run(workspace: Path | None = None, *, theme: "ThemeChoice | None" = None) -> int:
    """Show the window and stay until it is closed; the exit code."""
    if not has_display(os.environ, sys.platform):
        sys.stderr.write("no display: set DISPLAY or WAYLAND_DISPLAY, or run `gatewright tour --out DIR`\n")
        return NO_DISPLAY
    if not getattr(sys, "frozen", False) and (missing := missing_packages(os.environ, sys.platform)):
        sys.stderr.write(f"the window needs libraries that are not here; on Debian: apt install {' '.join(missing)}\n")
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

    language = os.environ.setdefault(VARIABLE, chosen or QLocale.system().name())[:2]
    texts_of_qt = QTranslator(app)
    if texts_of_qt.load(f"qtbase_{language}", QLibraryInfo.path(QLibraryInfo.LibraryPath.TranslationsPath)):
        app.installTranslator(texts_of_qt)


def missing_packages(environ: Mapping[str, str], platform: str, load: Callable[[str], object] = CDLL) -> list[str]:
    """Debian's packages of libraries that Qt needs for a window of X11 and ends the process without."""
    chosen = environ.get("QT_QPA_PLATFORM", "")
    on_x11 = chosen.startswith("xcb") if chosen else bool(environ.get("DISPLAY") and not environ.get("WAYLAND_DISPLAY"))
    if platform != "linux" or not on_x11:
        return []
    missing: list[str] = []
    for library, package in X11_LIBRARIES.items():
        try:
            load(library)
        except OSError:
            missing.append(package)
    return missing


def has_display(environ: Mapping[str, str], platform: str) -> bool:
    """Tell whether a window could be shown at all."""
    if platform in {"win32", "darwin"}:
        return True
    return any(environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"))
