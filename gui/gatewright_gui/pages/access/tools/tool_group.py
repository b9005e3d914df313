"""The row of a group of tools in the tree: its box, its counts and its words, summed up of the tools that are shown."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from PySide6.QtCore import Qt

from gatewright.workspace.api import ToolRight, frozen
from gatewright_gui.pages.access.tools.row_state import STATE_WORDS, RowState
from gatewright_gui.pages.access.tools.tool_tree import BOXES, GROUP, IS_TOOL, STATE, Column
from gatewright_gui.qt.language import counted, mark, tr
from gatewright_gui.session.tool_groups import ToolGroup

MORE = "*"
"""The origin, of no catalog, that stands for the row of the tools of any origin with nothing on."""


@frozen
class GroupRow:
    """`on` of `every` operations are shown to the model; `held` tools wait to be accepted, and no box is theirs.

    `tools` counts the tools of the row of what is off, which has no box.
    """

    group: ToolGroup
    on: int
    every: int
    held: int
    state: RowState
    tools: int = 0

    def value(self, column: Column, role: int) -> Any:
        """The content of a cell, and the roles of the row."""
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return self._text(column)
            case Qt.ItemDataRole.CheckStateRole if column is Column.NAME and self.group.origin != MORE:
                return BOXES[self.state]
            case Qt.ItemDataRole.ToolTipRole:
                told = (self.group.words, tr("{count} operations", count=self.count), self._waiting)
                return "\n".join(filter(None, told)) if self.group.origin != MORE else tr(OF_MORE)
            case Qt.ItemDataRole.AccessibleTextRole if column is Column.NAME and self.group.origin != MORE:
                return f"{self.group.words}, {self.count}, {tr(STATE_WORDS[self.state])}"
            case Qt.ItemDataRole.AccessibleTextRole:
                return self._text(column)
            case _:
                return {STATE: self.state, IS_TOOL: False, GROUP: self.group}.get(role)

    @property
    def count(self) -> str:
        """`14 of 37`."""
        return tr("{count:,} of {every:,}", count=self.on, every=self.every)

    @property
    def _waiting(self) -> str:
        return tr("{count:,} to accept", count=self.held) if self.held else ""

    def _text(self, column: Column) -> str:
        if self.group.origin == MORE:
            return self._more if column is Column.NAME else ""
        return self.group.title if column is Column.NAME else ", ".join(filter(None, (self.count, self._waiting)))

    @property
    def _more(self) -> str:
        tools = counted(self.tools, "more tool", "more tools")
        if self.on:
            return tr("{tools}, {count:,} on", tools=tools, count=self.on)
        return tr("{tools}, all off", tools=tools) if self.state is RowState.OFF else tools


OF_MORE = mark("Tools of which nothing is on. Enter, or a click on the arrow, opens the list.")


def group_row(group: ToolGroup, tools: Sequence[tuple[ToolRight, Sequence[int]]]) -> GroupRow:
    """The row of these tools, each with the places of the operations that are shown of it."""
    on, every, boxes, held = 0, 0, 0, 0
    for right, fitting in tools:
        every += len(fitting)
        if right.facts.held:
            held += 1
            continue
        boxes += len(fitting)
        whole = len(fitting) == len(right.facts.operations)  # then it need not be worked out which operation is what
        on += len(right.shown) if whole else sum(not right.operations[at].is_hidden for at in fitting)
    if on:
        state = RowState.ON if on == boxes else RowState.MIXED
    else:
        free = ((right, fitting) for right, fitting in tools if right.listed and not right.facts.held)
        ticked = any(right.operations[at].ticked for right, fitting in free for at in fitting)
        state = RowState.OVERRULED if ticked else RowState.OFF
    return GroupRow(group, on, every, held, state, len(tools))


def operations_of(tools: Iterable[tuple[ToolRight, Sequence[int]]]) -> Mapping[str, Sequence[str]]:
    """The operations that the box of a group turns on or off, by tool: what is held stays as it is."""
    return {
        right.facts.name: tuple([right.operations[at].operation for at in fitting])
        for right, fitting in tools
        if not right.facts.held
    }
