"""The row of a group of tools in the tree: its box, its counts and its words, summed up of the tools that are shown."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from PySide6.QtCore import Qt

from gatewright.workspace.api import ToolRight, frozen
from gatewright_gui.pages.access.tools.row_state import STATE_WORDS, RowState
from gatewright_gui.pages.access.tools.tool_tree import BOXES, COUNT, GROUP, IS_TOOL, STATE, Column
from gatewright_gui.qt.language import tr
from gatewright_gui.session.tool_groups import ToolGroup


@frozen
class GroupRow:
    """`on` of `every` operations are shown to the model; `held` tools wait to be accepted, and no box is theirs."""

    group: ToolGroup
    on: int
    every: int
    held: int
    state: RowState
    tokens: str = ""

    def value(self, column: Column, role: int) -> Any:
        """What a cell shows, and the roles of the row."""
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return self._text(column)
            case Qt.ItemDataRole.CheckStateRole if column is Column.NAME:
                return BOXES[self.state]
            case Qt.ItemDataRole.ToolTipRole if column is Column.NAME:
                return "\n".join(
                    filter(None, (self.group.words, tr("{count} operations", count=self.count), self._waiting))
                )
            case Qt.ItemDataRole.ToolTipRole:
                return self._text(column)
            case Qt.ItemDataRole.AccessibleTextRole if column is Column.NAME:
                return f"{self.group.words}, {self.count}, {tr(STATE_WORDS[self.state])}"
            case Qt.ItemDataRole.AccessibleTextRole:
                return self._text(column)
            case _:
                return {
                    STATE: self.state,
                    COUNT: tr("{count} on", count=self.count),
                    IS_TOOL: False,
                    GROUP: self.group,
                }.get(role)

    @property
    def count(self) -> str:
        """`14 of 37`."""
        return tr("{count:,} of {every:,}", count=self.on, every=self.every)

    @property
    def _waiting(self) -> str:
        return tr("{count:,} to accept", count=self.held) if self.held else ""

    def _text(self, column: Column) -> str:
        return {Column.NAME: self.group.title, Column.LIMITS: self._waiting, Column.TOKENS: self.tokens}.get(column, "")


def group_row(group: ToolGroup, tools: Sequence[tuple[ToolRight, Sequence[int]]], tokens: str) -> GroupRow:
    """Of these tools, each with the places of the operations that are shown of it."""
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
    return GroupRow(group, on, every, held, state, tokens)


def operations_of(tools: Iterable[tuple[ToolRight, Sequence[int]]]) -> Mapping[str, Sequence[str]]:
    """By tool what the box of a group turns on or off: what is held stays as it is."""
    return {
        right.facts.name: tuple([right.operations[at].operation for at in fitting])
        for right, fitting in tools
        if not right.facts.held
    }
