"""Menus: their rows and headings. Qt's own headings are only drawn as lines under a style sheet."""

from collections.abc import Callable

from PySide6.QtCore import Qt
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QMenu, QWidget

from gatewright_gui.qt.look import Role, tie_icon


def popup_menu(parent: QWidget, name: str = "") -> QMenu:
    """A menu that is gone once it is closed."""
    menu = QMenu(parent)
    menu.setObjectName(name)
    menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    return menu


def add_action(
    menu: QMenu,
    text: str,
    act: Callable[[], object] | None,
    *,
    name: str = "",
    icon: str = "",
    role: Role = "text",
    tip: str = "",
    can: bool = True,
    ticked: bool | None = None,
) -> QAction:
    """A row of a menu; `act` None: words that cannot be chosen; `ticked`: it has a box, and `act` is to change it."""
    action = menu.addAction(text)
    action.setObjectName(name)
    action.setEnabled(can and act is not None)
    if icon:
        tie_icon(action, icon, role)
    if tip:
        action.setToolTip(tip)
    if ticked is not None:
        action.setCheckable(True)
        action.setChecked(ticked)
    if act is not None:
        action.triggered.connect(lambda: act())  # noqa: PLW0108  # a partial would be given the tick
    return action


def add_heading(menu: QMenu, text: str) -> QAction:
    """Quiet words that cannot be chosen, behind a line where something stands above."""
    if menu.actions():
        menu.addSeparator()
    return add_action(menu, text.replace("&", "&&"), None)
