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

    app = QApplication.instance()
    if not isinstance(app, QApplication):
        app = QApplication(sys.argv[:1])
    app.setApplicationName("Gatewright")
    app.setDesktopFileName("gatewright")
    return loop.run(app, lambda: live(app, workspace, theme))


def has_display(environ: Mapping[str, str], platform: str) -> bool:
    """Whether a window could be shown at all."""
    if platform in {"win32", "darwin"}:
        return True
    return any(environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"))
