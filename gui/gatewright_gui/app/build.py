"""Puts a window together: for the app, for tests, for the tour. It runs no event loop."""

from pathlib import Path

from PySide6.QtWidgets import QApplication

from gatewright_gui.qt.widget.button import EnterKey
from gatewright_gui.session.document import Document
from gatewright_gui.session.opening import Opener, demo_policy
from gatewright_gui.settings import TEXT_FACTORS, Preferences
from gatewright_gui.theme import Theme, ThemeChoice
from gatewright_gui.window.main_window import MainWindow


def new_window(
    app: QApplication,
    *,
    preferences: Preferences | None = None,
    theme: ThemeChoice | None = None,
    opener: Opener | None = None,
) -> MainWindow:
    """A window with nothing open yet. Needs a running event loop."""
    kept = preferences or Preferences()
    if app.findChild(EnterKey) is None:
        EnterKey(app)
    look = Theme(app)
    chosen = theme or kept.theme
    look.set_text_size(TEXT_FACTORS[kept.text_size])
    look.prepare(app, chosen)
    window = MainWindow(Document(opener), look, kept, demo_policy)
    look.dress(window)
    return window


async def build_window(
    workspace: Path,
    *,
    preferences: Preferences | None = None,
    theme: ThemeChoice | None = None,
    opener: Opener | None = None,
) -> MainWindow:
    """A window on an open workspace (or on its problems), not shown yet. `await window.shut()` at the end."""
    app = QApplication.instance()
    if not isinstance(app, QApplication):
        raise TypeError("make a QApplication first")
    window = new_window(app, preferences=preferences, theme=theme, opener=opener)
    await window.open(workspace)
    return window
