"""The inspector beside the tree, in one place: why the current row is as it is, what the model sees of it, its limits,
and a call to try.
"""

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from PySide6.QtCore import Qt
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QStackedWidget, QWidget

from gatewright.workspace.api import Address, ToolFacts, pick_tools
from gatewright_gui.pages.access.preview import PreviewPane
from gatewright_gui.pages.access.tools.why import ShownRow
from gatewright_gui.pages.access.tools.why_pane import WhyPane
from gatewright_gui.pages.page import PageContext
from gatewright_gui.qt.language import mark, tr
from gatewright_gui.qt.layout import column_of, holding, named, row_of, stretch
from gatewright_gui.qt.look import current_look
from gatewright_gui.qt.plaintext import label_text, line_text, tip_text
from gatewright_gui.qt.widget.button import Segmented
from gatewright_gui.qt.widget.empty_state import EmptyState
from gatewright_gui.qt.widget.label import ElidedLabel, Label
from gatewright_gui.session.document import ChangeSet

if TYPE_CHECKING:
    from gatewright_gui.pages.access.tools.limits_pane import LimitsPane
    from gatewright_gui.pages.access.tools.try_pane import TryPane

WidgetT = TypeVar("WidgetT", bound=QWidget)
TABS = (
    ("why", mark("Why"), mark("The effect on the row, and the steps that lead to it")),
    ("sees", mark("What the model sees"), mark("Schema, rules, tokens and differences, in every format")),
    ("limits", mark("Limits"), mark("Calls, pauses, rates and arguments of the row, edited in place")),
    ("try", mark("Try"), mark("A call of the row, decided and not run")),
)
_KEYS = tuple(key for key, _, _ in TABS)
_LATE = frozenset({"limits", "try"})
"""Tabs that are made when they are first wanted, and worked out while somebody looks at them."""


MOST_NAME = 220
"""Pixels for the name of the row."""
MOST_WHOSE = 40
"""Letters of the name of the agent whose right is shown."""


class Inspector(QWidget):
    """One tab at a time, below a bar that never moves."""

    def __init__(self, context: PageContext, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("inspector")
        self._context = context
        self._stale = set(_LATE)
        self.tabs = named(Segmented(tr("Inspector"), is_dense=True), "inspector.tabs")
        self.name = named(Label(), "inspector.name", kind="heading")
        self.ground = named(ElidedLabel(role="muted"), "inspector.ground")
        self.why = WhyPane(context)
        self.sees = PreviewPane(context)
        self._bodies = QStackedWidget()
        self._controls = {key: QWidget() for key in _KEYS}
        """At the right of the name, of each tab its own."""
        self._row = ShownRow()
        self._lay_out()
        self._connect()
        self.tabs.keep("inspector.tab", context.sizes)
        self._refresh()

    def _lay_out(self) -> None:
        for key, text, tip in TABS:
            self.tabs.add_segment(key, tr(text), tooltip=tr(tip))
            self._bodies.addWidget({"why": self.why, "sees": self.sees}.get(key) or QWidget())
        self.ground.setMinimumWidth(1)
        tokens = current_look().tokens
        self._head = holding(
            row_of(self.name, stretch(self.ground), *self._controls.values(), space=2, margins=(2, 0, 0, 0))
        )
        self._head.setFixedHeight(tokens.control_height + tokens.space_2)
        parts = row_of(self.tabs, stretch(), margins=(1, 1, 1, 0)), self._head, stretch(self._bodies)
        self._whole = holding(column_of(*parts))
        self._nobody = EmptyState(
            "circle-help",
            tr("Choose a cell"),
            tr("Here stands why an agent may use a tool or not, what its model sees of it, and what limits it."),
        )
        column_of(stretch(self._whole), stretch(self._nobody), into=self)
        self._show_whom()

    def _show_whom(self, _what: object = None) -> None:
        """Show no agent where none is chosen."""
        is_nobody = self._context.selection.is_nobody
        self._whole.setVisible(not is_nobody)
        self._nobody.setVisible(is_nobody)

    def _connect(self) -> None:
        context = self._context
        self.tabs.current_changed.connect(self._show_tab)
        self.why.part_requested.connect(self.show_part)
        context.document.closed.connect(self._let_go)
        context.document.opened.connect(self._all_stale)
        context.document.policy_changed.connect(self._policy_changed)
        context.selection.agent_changed.connect(self._all_stale)
        context.selection.tool_changed.connect(self._all_stale)
        for moved in (context.selection.everyone_changed, context.selection.cell_changed):
            moved.connect(self._show_whom)

    # tabs

    @cached_property
    def limits(self) -> "LimitsPane":
        """The limits of the row; made when they are first wanted."""
        from gatewright_gui.pages.access.tools.limits_pane import LimitsPane

        made = LimitsPane(self._context)
        made.line_requested.connect(self._context.navigator.go_to_line)
        return self._put_in("limits", made, made.header)

    @cached_property
    def trial(self) -> "TryPane":
        """A call to try; made when it is first wanted."""
        from gatewright_gui.pages.access.tools.try_pane import TryPane

        return self._put_in("try", TryPane(self._context))

    def _put_in(self, key: str, made: WidgetT, header: QWidget | None = None) -> WidgetT:
        """In place of what kept its place, in the order of the Tab key as well."""
        at = _KEYS.index(key)
        empty = self._bodies.widget(at)
        self._bodies.insertWidget(at, made)
        if empty is not None:
            _follow_with_tab(empty, made)
            self._bodies.removeWidget(empty)
            empty.deleteLater()
        layout = self._head.layout()
        if header is not None and layout is not None:
            empty, self._controls[key] = self._controls[key], header
            layout.replaceWidget(empty, header)
            header.setVisible(self.part == key)  # without a place it would be a window that takes the keys
            _follow_with_tab(empty, header)
            empty.deleteLater()
        return made

    # what is shown

    @property
    def part(self) -> str:
        """Key of the tab that is shown."""
        return self.tabs.current or "why"

    def show_part(self, key: str) -> None:
        """Show a tab: `why`, `sees`, `limits` or `try`."""
        self.tabs.set_current(key)

    def show_rule(self, address: Address) -> None:
        """Make a rule of the limits, while they are shown, the current one, ready to be edited."""
        if self.part == "limits":
            self.limits.show_rule(address)

    def show_row(self, row: ShownRow) -> None:
        """Another row of the tree is current, or more is known of it."""
        self._row = row
        self._show_name()
        self.why.show_row(row)

    def _show_name(self) -> None:
        name = self._row.name
        self.name.setText(line_text(self.name.fontMetrics(), name, MOST_NAME, Qt.TextElideMode.ElideMiddle))
        self.name.setToolTip(tip_text(name))
        whose = self._row.agent.agent_id if self._row.agent is not None else ""
        self.ground.set_text(" · ".join(filter(None, (label_text(whose, MOST_WHOSE, keep=""), self._row.ground))))

    def _show_tab(self, key: str) -> None:
        self._refresh()
        for tab, controls in self._controls.items():
            controls.setVisible(tab == key)
        self._bodies.setCurrentIndex(_KEYS.index(key))

    def showEvent(self, event: QShowEvent) -> None:  # noqa: N802
        """Do what was put off while nobody looked."""
        super().showEvent(event)
        self._refresh()

    def _policy_changed(self, changes: ChangeSet) -> None:
        if changes.everything or changes.sources or self._context.selection.agent_id in changes.agents:
            self._all_stale()

    def _let_go(self) -> None:
        """Of a workspace that is gone nothing stays, in what is not shown either."""
        self.show_row(ShownRow())
        for tab in _LATE & {"try" if key == "trial" else key for key in self.__dict__}:
            self._fill(tab, None)
        self._all_stale()

    def _all_stale(self, _why: object = None) -> None:
        self._stale |= _LATE
        self._refresh()

    def _refresh(self) -> None:
        if self.part in self._stale:
            self._stale.discard(self.part)
            self._fill(self.part, self._context.selection.tool)

    def _fill(self, tab: str, tool: str | None) -> None:
        selection = self._context.selection
        agent = self._context.document.policy.agents.get(selection.agent_id or "")
        operation = selection.operation if tool is not None else None
        fill: dict[str, Callable[[], None]] = {
            "limits": lambda: self.limits.show_row(agent, self._facts(tool), operation),
            "try": lambda: self.trial.show_row(agent.agent_id if agent is not None else None, tool, operation),
        }
        fill[tab]()

    def _facts(self, tool: str | None) -> ToolFacts | None:
        """The tool in the major that the agent has; its rights are not wanted, which can take long."""
        document = self._context.document
        agent = document.policy.agents.get(self._context.selection.agent_id or "")
        of_name = [facts for facts in document.catalog if facts.name == tool]
        return pick_tools(of_name, agent.tools).get(tool) if agent is not None and tool is not None else None


def _follow_with_tab(place: QWidget, part: QWidget) -> None:
    """Let Tab reach what a tab holds where its place is; Qt orders only widgets that take the focus."""
    before = place.previousInFocusChain()
    while before is not None and before is not place and before.focusPolicy() == Qt.FocusPolicy.NoFocus:
        before = before.previousInFocusChain()
    for widget in part.findChildren(QWidget):
        if before is not None and widget.focusPolicy() != Qt.FocusPolicy.NoFocus:
            QWidget.setTabOrder(before, widget)
            before = widget
