"""The bar over the pages: workspace menu, where one is, search, undo, save, export, theme. It does nothing itself."""

from PySide6.QtCore import Qt
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QFrame, QHBoxLayout, QMenu, QToolButton, QWidget

from gatewright_gui.qt.language import tr
from gatewright_gui.qt.look import current_look, tie_icon
from gatewright_gui.qt.plaintext import button_text, line_text, tip_text
from gatewright_gui.qt.widget.elided_label import ElidedLabel

_WIDEST = 240
"""Of the name, in pixels."""


class TopBar(QWidget):
    """Buttons are the window's actions."""

    def __init__(self, actions: dict[str, QAction], menu: QMenu, parent: QWidget | None = None) -> None:
        super().__init__(parent)
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
        row.addWidget(_button(actions["palette"], "top.palette", words=True))
        row.addWidget(_line())
        for key in ("undo", "redo"):
            row.addWidget(_button(actions[key], f"top.{key}", words=False))
        row.addWidget(_line())
        for key in ("save", "export"):
            row.addWidget(_button(actions[key], f"top.{key}", words=True))
        row.addWidget(_line())
        for key in ("theme", "help"):
            row.addWidget(_button(actions[key], f"top.{key}", words=False))
        self.set_workspace("", "")

    def set_workspace(self, name: str, path: str) -> None:
        """Name the open workspace."""
        words = line_text(
            self.workspace.fontMetrics(), name or tr("No workspace"), _WIDEST, Qt.TextElideMode.ElideMiddle
        )
        self.workspace.setText(f"{button_text(words)} ")
        self.workspace.setToolTip(tip_text(path) or tr("Open a workspace"))
        self.workspace.setAccessibleName(tr("Workspace menu, {workspace}", workspace=name or tr("none open")))

    def set_trail(self, *parts: str | None) -> None:
        """Say where one is: agent, tool, operation."""
        self.breadcrumb.set_text("  ›  ".join(part for part in parts if part))


def _button(action: QAction, name: str, *, words: bool) -> QToolButton:
    button = QToolButton()
    button.setObjectName(name)
    button.setDefaultAction(action)
    button.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
    style = Qt.ToolButtonStyle.ToolButtonTextBesideIcon if words else Qt.ToolButtonStyle.ToolButtonIconOnly
    button.setToolButtonStyle(style)
    return button


def _line() -> QFrame:
    line = QFrame()
    line.setProperty("kind", "vline")
    line.setFixedHeight(20)
    return line
