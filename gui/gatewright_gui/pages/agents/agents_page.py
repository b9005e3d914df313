"""The main page: agents at the left, their tools in the middle, what the model sees at the right. It only lays out."""

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QVBoxLayout, QWidget

from gatewright_gui.pages.agents.agent_pane import AgentPane
from gatewright_gui.pages.agents.tool_pane import ToolPane
from gatewright_gui.pages.page import Page, PageContext
from gatewright_gui.pages.preview import PreviewPane
from gatewright_gui.qt.widget.splitter import Splitter


class AgentsPage(Page):
    """Three panes side by side."""

    def __init__(self, context: PageContext) -> None:
        super().__init__()
        self.setObjectName("agents")
        self._context = context
        self.agents = AgentPane(context)
        self.tools = ToolPane(context)
        self.preview = PreviewPane(context)
        split = Splitter(Qt.Orientation.Horizontal, "agents", context.sizes)
        for pane in (self.agents, self.tools, self.preview):
            split.addWidget(pane)
        split.setStretchFactor(1, 1)
        split.setStretchFactor(2, 1)
        split.restore((156, 664, 374))
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(split)
        self.agents.describe_requested.connect(self._describe)
        self.preview.tool_requested.connect(self._choose_tool)
        self.preview.tokens_counted.connect(self.tools.show_tokens)
        context.navigator.tool_requested.connect(self._show_tool)

    def focus_search(self) -> None:
        """Into the filter over the tree."""
        self.tools.search.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self.tools.search.selectAll()

    def main_view(self) -> QWidget:
        """The tree; without an agent the list of agents."""
        return self.tools.view if self.tools.isEnabledTo(self) else self.agents.view

    def _describe(self) -> None:
        self.tools.description.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self.tools.description.selectAll()

    def _choose_tool(self, tool: object) -> None:
        if isinstance(tool, str):
            self.tools.choose_tool(tool)

    def _show_tool(self, agent_id: object, tool: object, operation: object) -> None:
        if isinstance(agent_id, str):
            self._context.selection.choose_agent(agent_id)
        if isinstance(tool, str):
            self.tools.show_row(tool, operation if isinstance(operation, str) else None)
