"""Icons and colours for the cells of the tables of the Console."""

from typing import Any

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QSize
from PySide6.QtWidgets import QStyleOptionViewItem

from gatewright_gui.qt.look import Role, VerdictName, current_look, role_colour
from gatewright_gui.qt.widget.chip import VERDICT_ICONS

Index = QModelIndex | QPersistentModelIndex
PAD = 4
"""Pixels beside the words of a cell, as the style has it."""
FAILED: tuple[str, Role] = ("triangle-alert", "ask")
_ICONS: dict[str, tuple[str, Role]] = {
    "working": ("circle-dot", "accent"),
    "waiting": ("circle", "disabled"),
    "skipped": ("minus", "disabled"),
    "cancelled": ("circle-stop", "ask"),
    "failed": FAILED,
}


def verdict_mark(state: str) -> tuple[str, Role]:
    """Icon and colour of a verdict, or of a stage that has none."""
    verdicts: dict[str, VerdictName] = {"allow": "allow", "ask": "ask", "deny": "deny"}
    if state in verdicts:
        name = verdicts[state]
        return VERDICT_ICONS[name], name
    return _ICONS[state]


def tint(item: Any, role: Role) -> None:
    """Words in a colour, whether the row is chosen or not."""
    for part in (item.palette.ColorRole.Text, item.palette.ColorRole.HighlightedText):
        item.palette.setColor(part, role_colour(role))


def put_icon(item: Any, name: str, role: Role) -> None:
    """A small icon before the words."""
    size = current_look().tokens.small_icon_size
    item.icon = current_look().icon(name, role)
    item.decorationSize = QSize(size, size)
    item.features |= QStyleOptionViewItem.ViewItemFeature.HasDecoration
