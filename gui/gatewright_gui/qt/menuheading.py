"""A heading in a menu. Qt's own sections are only drawn as lines under a style sheet."""

from PySide6.QtGui import QAction
from PySide6.QtWidgets import QMenu


def add_heading(menu: QMenu, text: str) -> QAction:
    """Quiet words that cannot be chosen, behind a line where something stands above."""
    if menu.actions():
        menu.addSeparator()
    heading = menu.addAction(text.replace("&", "&&"))
    heading.setEnabled(False)
    return heading
