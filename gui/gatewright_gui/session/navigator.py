"""Wishes to go somewhere in the window: a page, a line of the policy, a tool of an agent, a level. It knows no page."""

from typing import Literal

from PySide6.QtCore import QObject, Signal

from gatewright.base.problem import Address
from gatewright_gui.session.ruleplace import LevelPlace, LinePlace, RulePlace, ToolPlace

DetailPart = Literal["why", "limits", "agent"]
DEFAULT_LEVEL = -1
"""In place of the index of a permission rule: the source's default level."""


class Navigator(QObject):
    """Pages ask here; the window listens and goes."""

    page_requested = Signal(object)
    """Key of a page: str."""
    line_requested = Signal(object)
    """Line of the policy file, from 1: the TOML page shows it."""
    tool_requested = Signal(object, object, object)
    """Agent id, tool, operation or None: the Agents page shows that row."""
    detail_requested = Signal(object, object)
    """DetailPart: which part is to be shown of the row that was asked for just before; the address of the rule in it
    that is meant, or None."""
    level_requested = Signal(object, object)
    """Id of a source, index of a permission rule from 0 or `DEFAULT_LEVEL`: the Files page shows that row."""
    export_requested = Signal()
    """Let a folder be chosen and export into it."""

    def go_to_page(self, key: str) -> None:
        """Show a page."""
        self.page_requested.emit(key)

    def go_to_line(self, line: int) -> None:
        """Show a line of the policy."""
        self.page_requested.emit("toml")  # first: a page hears nothing before it is there
        self.line_requested.emit(line)

    def go_to_tool(
        self,
        agent_id: str,
        tool: str,
        operation: str | None = None,
        part: DetailPart | None = None,
        rule: Address | None = None,
    ) -> None:
        """Show a row of the tree of tools, a part of what is told of it, and a rule in that part."""
        self.tool_requested.emit(agent_id, tool, operation)
        if part is not None:
            self.detail_requested.emit(part, rule)

    def go_to_level(self, source_id: str, index: int) -> None:
        """Show a row of a source's levels."""
        self.page_requested.emit("files")  # first, as above
        self.level_requested.emit(source_id, index)

    def go_to_rule(self, place: RulePlace) -> None:
        """Show a rule where it is edited."""
        match place:
            case LinePlace():
                self.go_to_line(place.line)
            case LevelPlace():
                self.go_to_level(place.source_id, DEFAULT_LEVEL if place.index is None else place.index)
            case ToolPlace():
                self.go_to_tool(place.agent_id, place.tool, place.operation, place.part, place.rule)
