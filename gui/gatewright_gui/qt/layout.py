"""Rows and columns of widgets, each in one expression, and a widget with its names.

Spaces and margins are counted in steps of the theme's spacing (0 none, 1 to 4: 4, 8, 12, 16 pixels).

    column_of(
        row_of(title, stretch(), named(QPushButton("Close"), "help.close"), space=2),
        stretch(view),
        into=self, space=2, margins=4,
    )
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QBoxLayout, QHBoxLayout, QLayout, QStackedWidget, QVBoxLayout, QWidget

from gatewright_gui.qt.look import current_look

Margins = int | tuple[int, int] | tuple[int, int, int, int]
"""Steps: all around; left and right, then top and bottom; or left, top, right, bottom."""

WidgetT = TypeVar("WidgetT", bound=QWidget)
LayoutT = TypeVar("LayoutT", bound=QBoxLayout)

_DEFAULT = Qt.AlignmentFlag(0)


@dataclass(frozen=True, slots=True)
class Placed:
    """A part that takes what room is left, or is aligned in its own; no part: room and nothing in it."""

    part: QWidget | QLayout | None
    factor: int = 0
    align: Qt.AlignmentFlag = _DEFAULT


@dataclass(frozen=True, slots=True)
class Gap:
    """Steps of room that stay."""

    steps: int


Part = QWidget | QLayout | Placed | Gap


def stretch(part: QWidget | QLayout | None = None, factor: int = 1) -> Placed:
    """Give ``part`` the room that is left, by the factors of its neighbours; without a part the room stays empty."""
    return Placed(part, factor)


def aligned(part: QWidget, align: Qt.AlignmentFlag) -> Placed:
    """``part`` at its own size, at the given edge of its place."""
    return Placed(part, align=align)


def row_of(*parts: Part, into: QWidget | None = None, space: int = 0, margins: Margins = 0) -> QHBoxLayout:
    """The parts from left to right; ``into`` is the widget that they fill."""
    return _fill(QHBoxLayout(into) if into is not None else QHBoxLayout(), parts, space, margins)


def column_of(*parts: Part, into: QWidget | None = None, space: int = 0, margins: Margins = 0) -> QVBoxLayout:
    """The parts from top to bottom; ``into`` is the widget that they fill."""
    return _fill(QVBoxLayout(into) if into is not None else QVBoxLayout(), parts, space, margins)


def holding(layout: QLayout) -> QWidget:
    """A plain widget that holds the layout: for stacks, scroll areas and splitters, which take widgets only."""
    holder = QWidget()
    holder.setLayout(layout)
    return holder


def stack_of(*parts: QWidget) -> QStackedWidget:
    """The parts in one place, of which one is shown: the first, until another is chosen."""
    stack = QStackedWidget()
    for part in parts:
        stack.addWidget(part)
    return stack


def keep_room(widget: WidgetT) -> WidgetT:
    """``widget``, which has its room also while it is hidden: nothing moves when it comes."""
    policy = widget.sizePolicy()
    policy.setRetainSizeWhenHidden(True)
    widget.setSizePolicy(policy)
    return widget


def named(widget: WidgetT, name: str = "", *, spoken: str = "", tip: str = "", kind: str = "") -> WidgetT:
    """``widget`` with its object name, what a screen reader says, its tooltip, and its kind in the style sheet."""
    if name:
        widget.setObjectName(name)
    if spoken:
        widget.setAccessibleName(spoken)
    if tip:
        widget.setToolTip(tip)
    if kind:
        widget.setProperty("kind", kind)
    return widget


def _fill(layout: LayoutT, parts: Sequence[Part], space: int, margins: Margins) -> LayoutT:
    layout.setSpacing(_pixels(space))
    match margins:
        case int():
            around = (margins,) * 4
        case (across, along):
            around = (across, along, across, along)
        case _:
            around = margins
    layout.setContentsMargins(*map(_pixels, around))
    for part in parts:
        _add(layout, part)
    return layout


def _add(layout: QBoxLayout, part: Part) -> None:
    if isinstance(part, Gap):
        layout.addSpacing(_pixels(part.steps))
        return
    placed = part if isinstance(part, Placed) else Placed(part)
    if placed.part is None:
        layout.addStretch(placed.factor)
    elif isinstance(placed.part, QWidget):
        layout.addWidget(placed.part, placed.factor, placed.align)
    else:
        layout.addLayout(placed.part, placed.factor)


def _pixels(steps: int) -> int:
    tokens = current_look().tokens
    return (0, tokens.space_1, tokens.space_2, tokens.space_3, tokens.space_4)[steps]
