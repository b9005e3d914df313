"""The place Access: the agents at the left, and of the chosen one, or of everyone, a tab at a time."""

from collections.abc import Sequence
from functools import partial

from PySide6.QtCore import Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QComboBox, QWidget

from gatewright_gui.pages.access.agent_pane import AgentPane
from gatewright_gui.pages.access.tools.page import ToolsPage
from gatewright_gui.pages.page import Page, PageContext, PageRow, TabbedPage
from gatewright_gui.qt.language import tr
from gatewright_gui.qt.layout import column_of, holding, named, row_of, stretch
from gatewright_gui.qt.look import current_look
from gatewright_gui.qt.plaintext import label_text
from gatewright_gui.qt.widget.splitter import HANDLE_WIDTH, Splitter

_NARROWEST, _PER_TEXT_SIZE = 400, 44
"""Pixels of the page below which the list does not stand beside the tabs: of all texts, and by their size."""


class AccessPage(TabbedPage):
    """The list of agents stands beside all tabs; where that is too narrow, a box in their bar names the agent."""

    def __init__(self, context: PageContext, rows: Sequence[PageRow]) -> None:
        self.agents = AgentPane(context)
        self.box = named(QComboBox(), "access.agent", spoken=tr("Agent"))
        self.box.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.box.setMinimumContentsLength(12)
        self.box.hide()
        self._corner = row_of(self.box, space=1, margins=(0, 0, 1, 0))
        super().__init__(context, "access", rows)
        self.addAction(self.agents.actions_by_key["add"])
        document, selection = context.document, context.selection
        self.box.activated.connect(self._choose)
        for signal in (document.opened, document.policy_changed, selection.agent_changed, selection.everyone_changed):
            signal.connect(self._fill_box)
        current_look().changed.connect(self._choose_place)

    def frame(self) -> QWidget:
        """Put the agents beside the tabs."""
        split = Splitter(Qt.Orientation.Horizontal, "access", self.context.sizes)
        split.addWidget(self.agents)
        split.addWidget(holding(column_of(row_of(stretch(self.bar), self._corner), stretch(self.stack))))
        split.setStretchFactor(0, 0)
        split.setStretchFactor(1, 1)
        split.restore((156, 1038))
        return split

    def _follow_tab(self, button: QWidget, of_tab: str, key: str) -> None:
        button.setVisible(key == of_tab)

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802
        """Show the list, or the box."""
        super().resizeEvent(event)
        self._choose_place()

    def _choose_place(self, _why: object = None) -> None:
        is_narrow = self._is_narrow
        self.agents.setVisible(not is_narrow)
        self.box.setVisible(is_narrow)
        self._fill_box()

    def _fill_box(self, _why: object = None) -> None:
        if self.box.isHidden():
            return
        selection = self.context.selection
        self.box.clear()
        self.box.addItem(tr("Everyone"), "")
        for agent in self.context.document.agents:
            self.box.addItem(label_text(agent.agent_id), agent.agent_id)
        self.box.setCurrentIndex(0 if selection.is_everyone else self.box.findData(selection.agent_id))

    def _choose(self, _at: int) -> None:
        agent_id = str(self.box.currentData())
        self.context.selection.show_everyone(on=not agent_id)
        if agent_id:
            self.context.selection.choose_agent(agent_id)

    def _tab_width(self) -> int:
        """Return the width that a tab will have once the list has come or gone."""
        beside = self.agents.width() + HANDLE_WIDTH
        return self.width() - (0 if self._is_narrow else beside)

    @property
    def _is_narrow(self) -> bool:
        return self.width() < _NARROWEST + _PER_TEXT_SIZE * current_look().tokens.text_size

    def make_tab(self, row: PageRow) -> Page:
        """Make the page of a tab; that of the tools follows what is done in the list."""
        page = super().make_tab(row)
        if isinstance(page, ToolsPage):
            page.room = self._tab_width
            page.agent_wanted.connect(self.agents.add)
            self.agents.describe_requested.connect(lambda: self.show_tab("tools"))
            self.agents.describe_requested.connect(page.describe)
            self._corner.addWidget(page.inspector_button)
            self.tab_changed.connect(partial(self._follow_tab, page.inspector_button, row.key))
        return page
