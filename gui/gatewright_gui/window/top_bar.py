"""The bar over the pages: workspace menu, where one is, search, undo, save, stop, publish. It decides nothing."""

from functools import partial

from PySide6.QtCore import Qt
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QFrame, QHBoxLayout, QMenu, QToolButton

from gatewright_gui.qt.language import tr
from gatewright_gui.qt.look import current_look, tie_icon
from gatewright_gui.qt.plaintext import button_text, line_text, tip_text
from gatewright_gui.qt.widget.label import ElidedLabel
from gatewright_gui.qt.widget.tight_row import TightRow

_WIDEST = 240
"""Of the name, in pixels."""


class TopBar(TightRow):
    """Buttons are the window's actions; where room is short some have their icon alone, the widest first."""

    def __init__(self, actions: dict[str, QAction], menu: QMenu) -> None:
        super().__init__()
        self.setProperty("kind", "bar")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        tokens = current_look().tokens
        self.workspace = QToolButton()
        self.workspace.setObjectName("top.workspace")
        self.workspace.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.workspace.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.workspace.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.workspace.setMenu(menu)
        tie_icon(self.workspace, "shield")
        self.breadcrumb = ElidedLabel(role="muted")
        self.breadcrumb.setObjectName("top.breadcrumb")
        row = QHBoxLayout(self)
        row.setContentsMargins(tokens.space_2, tokens.space_1, tokens.space_2, tokens.space_1)
        row.setSpacing(tokens.space_1)
        row.addWidget(self.workspace)
        row.addSpacing(tokens.space_2)
        row.addWidget(self.breadcrumb, 1)
        palette = _button(actions["palette"], "top.palette", words=True)
        row.addWidget(palette)
        row.addWidget(_line())
        for key in ("undo", "redo"):
            row.addWidget(_button(actions[key], f"top.{key}", words=False))
        row.addWidget(_line())
        save, publish = (_button(actions[key], f"top.{key}", words=True) for key in ("save", "publish"))
        row.addWidget(save)
        row.addWidget(_line())
        stop = _button(actions["stop"], "top.stop", words=True)
        row.addWidget(stop)
        row.addWidget(_line())
        for key in ("theme", "help"):
            row.addWidget(_button(actions[key], f"top.{key}", words=False))
        row.addWidget(_line())
        row.addWidget(publish)
        self.set_workspace("", "")
        self.give_way(*(partial(_set_brief, button) for button in (palette, publish, save, stop)))

    def set_workspace(self, name: str, path: str) -> None:
        """Name the open workspace."""
        words = line_text(
            self.workspace.fontMetrics(), name or tr("No workspace"), _WIDEST, Qt.TextElideMode.ElideMiddle
        )
        self.workspace.setText(f"{button_text(words)} ")
        self.workspace.setToolTip(tip_text(path) or tr("Open a workspace"))
        self.workspace.setAccessibleName(tr("Workspace menu, {workspace}", workspace=name or tr("none open")))
        self.refit()

    def set_trail(self, *parts: str | None) -> None:
        """Say where one is, the widest first."""
        self.breadcrumb.set_text("  ›  ".join(part for part in parts if part))


def _button(action: QAction, name: str, *, words: bool) -> QToolButton:
    button = QToolButton()
    button.setObjectName(name)
    button.setDefaultAction(action)
    button.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
    _set_brief(button, not words)
    return button


def _set_brief(button: QToolButton, is_brief: bool) -> None:
    style = Qt.ToolButtonStyle.ToolButtonIconOnly if is_brief else Qt.ToolButtonStyle.ToolButtonTextBesideIcon
    button.setToolButtonStyle(style)


def _line() -> QFrame:
    line = QFrame()
    line.setProperty("kind", "vline")
    line.setFixedHeight(20)
    return line
