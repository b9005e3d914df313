"""The tab Tools: the tree of the chosen agent or the matrix of everyone, and beside it the inspector.

The matrix is made when it is first wanted.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QAction, QKeySequence, QResizeEvent
from PySide6.QtWidgets import QFrame, QStackedWidget, QWidget

from gatewright.workspace.api import Address
from gatewright_gui.pages.access.tools.inspector import Inspector
from gatewright_gui.pages.access.tools.tool_pane import ToolPane
from gatewright_gui.pages.page import Page, PageContext
from gatewright_gui.qt.language import tr
from gatewright_gui.qt.layout import column_of, holding, named, row_of, stretch
from gatewright_gui.qt.look import current_look, tie_icon
from gatewright_gui.qt.widget.button import IconButton
from gatewright_gui.qt.widget.empty_state import EmptyState
from gatewright_gui.qt.widget.splitter import HANDLE_WIDTH, Splitter

if TYPE_CHECKING:
    from gatewright_gui.pages.access.tools.matrix import Place
    from gatewright_gui.pages.access.tools.matrix_pane import MatrixPane


MODE_KEY, INSPECTOR_KEY = "agents.mode", "agents.inspector"
_NARROWEST, _PER_TEXT_SIZE = 224, 44
"""Pixels of the page below which its panes do not stand side by side: of all texts, and by their size."""
_LEFT_FREE = 200
"""Pixels of the page that the drawer does not cover."""


class ToolsPage(Page):
    """Two panes side by side.

    Where they do not fit side by side the inspector is a drawer at the right, over the tree, and closed at first.
    """

    agent_wanted = Signal()
    """The first agent is to be added."""

    def __init__(self, context: PageContext) -> None:
        super().__init__()
        self.setObjectName("agents")
        self._context = context
        self.tools = ToolPane(context)
        self.inspector = Inspector(context)
        self.preview = self.inspector.sees
        self._matrix: MatrixPane | None = None
        self._is_choosing = False
        self.room: Callable[[], int] = self.width
        """The width that the page will have: while a window is resized that comes before its own."""
        self.switch = QAction(tr("Switch between an agent and everyone"), self)
        tip = tr("Show or hide the inspector")
        self.inspector_button = named(IconButton("panel-right", tip), "agents.inspector.shown")
        self._dock_row = column_of(stretch(self.inspector))
        self._dock = holding(self._dock_row)
        self._drawer = named(QWidget(self), "agents.drawer")
        self._is_narrow = False
        self._middle = QStackedWidget()
        self.nobody = EmptyState(
            "users",
            tr("No agents yet"),
            tr("An agent is one program with rights of its own. Add the first, then tick what it may do."),
            action=tr("Add an agent"),
        )
        self._lay_out()
        self._connect()
        self.inspector_button.setCheckable(True)
        self.inspector_button.toggled.connect(self._show_inspector)
        current_look().changed.connect(self._choose_place)
        self.inspector_button.setChecked(True)
        self.inspector_button.setChecked(context.sizes.choice(INSPECTOR_KEY) != "hidden")
        context.selection.show_everyone(on=context.sizes.choice(MODE_KEY) == "matrix")

    def _lay_out(self) -> None:
        self._middle.addWidget(self.tools)
        self._middle.addWidget(self.nobody)
        split = Splitter(Qt.Orientation.Horizontal, "agents", self._context.sizes)
        for pane in (self._middle, self._dock):
            split.addWidget(pane)
        split.setStretchFactor(0, 1)
        split.restore((650, 388))
        column_of(split, into=self)
        edge = named(QFrame(), kind="vline")
        edge.setFixedWidth(1)
        self._drawer_row = row_of(edge, into=self._drawer)
        self._drawer.setAutoFillBackground(True)
        self._drawer.hide()

    def _connect(self) -> None:
        context = self._context
        self.switch.setObjectName("agents.switch")
        self.switch.setShortcut(QKeySequence("Ctrl+M"))
        tie_icon(self.switch, "layers")
        self.switch.triggered.connect(self._switch)
        self.addAction(self.switch)
        context.selection.everyone_changed.connect(self._show_mode)
        self.nobody.action_requested.connect(self.agent_wanted)
        for signal in (context.document.closed, context.document.opened, context.document.policy_changed):
            signal.connect(self._show_middle)
        self._show_middle()
        self.inspector.why.add_mend(self.tools.declaring.button)
        self.tools.row_shown.connect(self.inspector.show_row)
        self.tools.tell_row()
        self.preview.tool_requested.connect(self.tools.choose_tool)
        self.preview.tokens_counted.connect(self.tools.show_tokens)
        context.navigator.tool_requested.connect(self._show_tool)
        context.navigator.detail_requested.connect(self._show_detail)
        context.selection.agent_changed.connect(self._into_matrix)
        context.selection.tool_changed.connect(self._into_matrix)

    def page_shown(self) -> None:
        """Files may have come and gone meanwhile."""
        self.tools.shares.look_again()

    # tree and matrix

    @property
    def matrix(self) -> "MatrixPane":
        """The matrix, made at the first use."""
        from gatewright_gui.pages.access.tools.matrix_pane import MatrixPane

        if self._matrix is None:
            self._matrix = MatrixPane(self._context)
            self._matrix.cell_chosen.connect(self._choose_cell)
            self._matrix.row_requested.connect(self._show_row)
            self._middle.addWidget(self._matrix)
        return self._matrix

    @property
    def shows_matrix(self) -> bool:
        """Tell whether the matrix is in the place of the tree."""
        return self._context.selection.is_everyone

    def _switch(self, _checked: bool = False) -> None:
        self._context.selection.show_everyone(on=not self.shows_matrix)
        if self.shows_matrix:  # the row of the tree stays the one that is spoken of
            self._show_cell()
        self.focus_main()

    def _show_inspector(self, on: bool) -> None:
        """Hidden, it leaves its room to the tree or the matrix. A drawer is open for now: that is not kept."""
        (self._drawer if self._is_narrow else self._dock).setVisible(on)
        if not self._is_narrow:
            self._context.sizes.set_choice(INSPECTOR_KEY, "" if on else "hidden")

    # the drawer

    def minimumSizeHint(self) -> QSize:  # noqa: N802
        """Room for the panes without the inspector."""
        size = super().minimumSizeHint()
        return size if self._dock.isHidden() else size - QSize(self._dock.minimumSizeHint().width() + HANDLE_WIDTH, 0)

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802
        """Side by side, or in a drawer."""
        super().resizeEvent(event)
        self._choose_place()

    def _choose_place(self, _why: object = None) -> None:
        """By the size of the page and its texts alone, whatever is chosen: nothing jumps."""
        self._set_narrow(self.room() < _NARROWEST + _PER_TEXT_SIZE * current_look().tokens.text_size)
        wide = min(max(self.inspector.minimumSizeHint().width(), self.width() // 2), self.width() - _LEFT_FREE)
        self._drawer.setGeometry(self.width() - wide, 0, wide, self.height())

    def _set_narrow(self, is_narrow: bool) -> None:
        if is_narrow == self._is_narrow:
            return
        self._is_narrow = is_narrow
        self._dock.hide()
        self._drawer.hide()
        (self._drawer_row if is_narrow else self._dock_row).addWidget(self.inspector, 1)
        self._drawer.raise_()
        is_shown = not is_narrow and self._context.sizes.choice(INSPECTOR_KEY) != "hidden"
        self.inspector_button.setChecked(is_shown)
        self._show_inspector(is_shown)

    def show_schema(self) -> None:
        """Show what the model gets and give it the keys, where there is something."""
        self._show_part("sees")
        self.preview.part.set_current("schema")
        if self.preview.code.isVisible():
            self.preview.code.editor.setFocus(Qt.FocusReason.OtherFocusReason)

    def _show_mode(self, is_everyone: bool) -> None:
        self._context.sizes.set_choice(MODE_KEY, "matrix" if is_everyone else "")
        self._context.selection.choose_cell(on=False)
        self._show_middle()
        if is_everyone:
            self.matrix.choose_none()

    def _show_middle(self, _why: object = None) -> None:
        """The tree or the matrix; without an agent, what to do. Of the matrix the way back to the tree stays."""
        is_empty = self._context.document.is_open and not self._context.document.agents
        if self.shows_matrix:
            self._middle.setCurrentWidget(self.matrix)
        else:
            self._middle.setCurrentWidget(self.nobody if is_empty else self.tools)

    def _into_matrix(self, _what: object = None) -> None:
        """Make what was chosen elsewhere the current cell too, where a cell is chosen."""
        if self.shows_matrix and not self._is_choosing and not self._context.selection.is_nobody:
            self._show_cell()

    def _show_cell(self) -> None:
        from gatewright_gui.pages.access.tools.matrix import Place

        selection = self._context.selection
        place = Place(selection.tool, selection.operation) if selection.tool is not None else None
        self.matrix.show_cell(selection.agent_id, place)

    def _choose_cell(self, agent_id: str, place: "Place") -> None:
        """The tree follows out of sight, so that preview, why and the tree speak of the same."""
        self._is_choosing = True  # the selected cells stay selected
        try:
            self._context.selection.choose_agent(agent_id)
            if place.tool:
                self.tools.choose_row(place.tool, place.operation)
            else:
                self.tools.show_group(place.origin)
            self._context.selection.choose_cell(on=True)
        finally:
            self._is_choosing = False

    def _show_row(self, agent_id: str, place: "Place") -> None:
        self._show_tool(agent_id, place.tool or None, place.operation)
        if not place.tool:
            self.tools.show_group(place.origin)
            self.tools.view.setFocus()

    # what the window asks for

    def focus_search(self) -> None:
        """Into the filter over the tree or the matrix."""
        field = self.matrix.search if self.shows_matrix else self.tools.search
        field.setFocus(Qt.FocusReason.ShortcutFocusReason)
        field.selectAll()

    def focus_main(self) -> None:
        """To the cells: one of them is current then."""
        if self.shows_matrix:
            self.matrix.focus_cells()
        else:
            super().focus_main()

    def main_view(self) -> QWidget:
        """Return the matrix, or the tree; without an agent the button that adds one."""
        if self.shows_matrix:
            return self.matrix.view
        if self._middle.currentWidget() is self.nobody:
            return self.nobody.action_button
        return self.tools.view

    def describe(self) -> None:
        """Give the keys to the description of the agent."""
        self.tools.description.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self.tools.description.selectAll()

    def _show_tool(self, agent_id: str, tool: str | None, operation: str | None) -> None:
        self._context.selection.show_everyone(on=False)
        self._context.selection.choose_agent(agent_id)
        if tool is not None:
            self.tools.show_row(tool, operation)

    def _show_detail(self, part: str, rule: Address | None) -> None:
        """Of the row that was asked for just before."""
        self._show_part(part)
        if rule is not None:
            self.inspector.show_rule(rule)

    def _show_part(self, part: str) -> None:
        """In a drawer that is closed nobody would see it."""
        self.inspector_button.setChecked(True)
        self.inspector.show_part(part)
