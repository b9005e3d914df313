"""A plan for the rights of several agents, with every line that it would change before it is made.

It knows neither presets nor copies: who opens it gives the choice, and works the lines out.
"""

from PySide6.QtCore import QRect, QSize, Qt, Signal
from PySide6.QtGui import QColor, QPainter
from PySide6.QtWidgets import (
    QAbstractItemView,
    QComboBox,
    QDialog,
    QHBoxLayout,
    QHeaderView,
    QListView,
    QPushButton,
    QStackedWidget,
    QStyleOptionViewItem,
    QVBoxLayout,
    QWidget,
)

from gatewright.policy.edit import Edit
from gatewright.policy.rightsdiff import ChangeKind, Standing
from gatewright_gui.models.agentchoice import AgentChoiceModel
from gatewright_gui.models.rightchanges import (
    AFTER,
    AGENT,
    BEFORE,
    MOST_ROWS,
    NOW,
    OTHER,
    THEN,
    WHAT,
    AgentLines,
    RightChangesModel,
    counts_words,
)
from gatewright_gui.pages.agents.agent_delegate import Index, paint_ground
from gatewright_gui.qt.look import Role, current_look
from gatewright_gui.qt.plaintext import line_text, title_text
from gatewright_gui.qt.widget.delegate import Delegate
from gatewright_gui.qt.widget.elided_label import ElidedLabel
from gatewright_gui.qt.widget.empty_state import EmptyState
from gatewright_gui.qt.widget.item_view import TableView
from gatewright_gui.qt.widget.label import Label
from gatewright_gui.qt.widget.progress_strip import ProgressStrip
from gatewright_gui.qt.widget.search_field import SearchField
from gatewright_gui.session.verbs.presets import Plan, Planned

SIZE = (900, 580)
_LEFT = 232
_KINDS = (*map(str, ChangeKind), OTHER)
_STANDINGS: dict[Standing, tuple[str, Role]] = {
    Standing.ON: ("circle-check", "allow"),
    Standing.ASKS: ("hand", "ask"),
    Standing.OFF: ("ban", "deny"),
    Standing.OVERRULED: ("layers", "blocked"),
}


class ChangeDelegate(Delegate):
    """A standing with its picture before the words."""

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:  # noqa: N802
        """One height for all rows."""
        return QSize(super().sizeHint(option, index).width(), current_look().tokens.row_height)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        """Ground, picture, words."""
        paint_ground(painter, option, index)
        rect: QRect = getattr(option, "rect")  # noqa: B009
        look, left = current_look(), rect.left() + 6
        standing = index.data(BEFORE if index.column() == NOW else AFTER) if index.column() >= NOW else None
        painter.save()
        if standing:
            icon, role = _STANDINGS[Standing(standing)]
            look.icon(icon, role).paint(painter, QRect(left, rect.top() + (rect.height() - 14) // 2, 14, 14))
            left += 20
        quiet = index.column() in {AGENT, NOW}
        painter.setPen(QColor(look.palette.muted if quiet else look.palette.text))
        room = QRect(left, rect.top(), rect.right() - left - 4, rect.height())
        cut = line_text(painter.fontMetrics(), str(index.data()), room.width())
        painter.drawText(room, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, cut)
        painter.restore()


class RightsDialog(QDialog):
    """After it was accepted `edit` holds what was shown. Every `plan_changed` wants `begin`, `add`s and `finish`."""

    plan_changed = Signal()
    """Another plan is to be worked out: `plan`."""

    def __init__(self, parent: QWidget | None, title: str, accept_text: str, agents: AgentChoiceModel) -> None:
        super().__init__(parent)
        self.setObjectName("rights")
        self.setWindowTitle(title_text(title))
        self.setAccessibleName(title)
        self.agents = agents
        self.agents.setParent(self)
        self.changes = RightChangesModel(self)
        self.edit: Edit | None = None
        self._is_known = False
        self.agent_search = SearchField("Filter agents")
        self.agent_view = QListView()
        self.agent_view.setItemDelegate(Delegate(self.agent_view))
        self.all_button = QPushButton("All")
        self.search = SearchField("Filter the changes")
        self.kind = QComboBox()
        self.table = TableView("What would change")
        self.nothing = EmptyState("check", "Nothing would change", "")
        self.progress = ProgressStrip()
        self.fault = Label()
        self.accept_button = QPushButton(accept_text)
        self.accept_button.setEnabled(False)  # until it is known what would be made
        self.cancel_button = QPushButton("Cancel")
        self.resize(*SIZE)

    def plan(self) -> Plan:
        """What is chosen now."""
        raise NotImplementedError

    # layout

    def lay_out(self, choice: QWidget) -> None:
        """Put the parts in place, the choice at the left above the agents."""
        space = current_look().tokens
        halves = QHBoxLayout()
        halves.setSpacing(space.space_4)
        self._left = left = QVBoxLayout()
        left.setSpacing(space.space_2)
        left.addWidget(choice)
        left.addSpacing(space.space_2)
        self._lay_out_agents(left)
        holder = QWidget()
        holder.setFixedWidth(_LEFT)
        left.setContentsMargins(0, 0, 0, 0)
        holder.setLayout(left)
        halves.addWidget(holder)
        halves.addLayout(self._changes_half(), 1)
        column = QVBoxLayout(self)
        column.setContentsMargins(space.space_4, space.space_4, space.space_4, space.space_4)
        column.setSpacing(space.space_2)
        column.addLayout(halves, 1)
        column.addWidget(self.fault)
        column.addLayout(self._buttons())
        self._connect()

    def _lay_out_agents(self, column: QVBoxLayout) -> None:
        space = current_look().tokens
        heading = QHBoxLayout()
        self.agents_label = Label("&Agents")
        self.agents_label.setBuddy(self.agent_view)
        heading.addWidget(self.agents_label)
        heading.addStretch(1)
        self.all_button.setObjectName("rights.all")
        self.all_button.setProperty("kind", "link")
        self.all_button.setAutoDefault(False)
        heading.addWidget(self.all_button)
        column.addLayout(heading)
        self.agent_search.setObjectName("rights.agents.search")
        self.agent_search.setVisible(self.agents.every > 8)
        column.addWidget(self.agent_search)
        self.agent_view.setObjectName("rights.agents")
        self.agent_view.setAccessibleName("Agents")
        self.agent_view.setModel(self.agents)
        self.agent_view.setUniformItemSizes(True)
        self.agent_view.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.agent_view.setMinimumHeight(3 * space.row_height)
        self.agent_view.ensurePolished()
        column.addWidget(self.agent_view, 1)

    def hide_agents(self) -> None:
        """There is no choice of agents."""
        for part in (self.agents_label, self.all_button, self.agent_search, self.agent_view):
            part.hide()
        self._left.addStretch(1)

    def _changes_half(self) -> QVBoxLayout:
        space = current_look().tokens
        column = QVBoxLayout()
        column.setSpacing(space.space_2)
        self.summary = ElidedLabel()
        self.summary.setObjectName("rights.summary")
        column.addWidget(self.summary)
        row = QHBoxLayout()
        row.setSpacing(space.space_2)
        self.search.setObjectName("rights.search")
        self.kind.setObjectName("rights.kind")
        self.kind.setAccessibleName("Kind of change")
        self.kind.setMinimumWidth(170)
        row.addWidget(self.search, 1)
        row.addWidget(self.kind)
        column.addLayout(row)
        self.table.setObjectName("rights.changes")
        self.table.setModel(self.changes)
        self.table.setItemDelegate(ChangeDelegate(self.table))
        self.table.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.table.setTabKeyNavigation(False)
        header = self.table.horizontalHeader()
        for at, width in ((AGENT, 110), (NOW, 150), (THEN, 172)):
            self.table.setColumnWidth(at, width)
        header.setStretchLastSection(False)
        header.setSectionResizeMode(WHAT, QHeaderView.ResizeMode.Stretch)
        self._place = QStackedWidget()
        self._place.addWidget(self.table)
        self._place.addWidget(self.nothing)
        column.addWidget(self._place, 1)
        column.addWidget(self.progress)
        return column

    def _buttons(self) -> QHBoxLayout:
        row = QHBoxLayout()
        row.setSpacing(current_look().tokens.space_2)
        row.addStretch(1)
        self.fault.setObjectName("rights.fault")
        self.fault.setProperty("kind", "error")
        self.fault.setWordWrap(True)
        self.fault.hide()
        self.cancel_button.setObjectName("rights.cancel")
        self.cancel_button.setAutoDefault(False)
        self.accept_button.setObjectName("rights.accept")
        self.accept_button.setProperty("kind", "primary")
        self.accept_button.setDefault(True)
        row.addWidget(self.cancel_button)
        row.addWidget(self.accept_button)
        return row

    def _connect(self) -> None:
        self.agents.chosen_changed.connect(self.choose)
        self.agent_search.search_changed.connect(self._filter_agents)
        self.agent_search.results_requested.connect(self.agent_view.setFocus)
        self.all_button.clicked.connect(self._choose_all)
        self.search.search_changed.connect(self._filter)
        self.search.results_requested.connect(self.table.setFocus)
        self.search.leave_requested.connect(self.reject)
        self.agent_search.leave_requested.connect(self.reject)
        self.kind.currentIndexChanged.connect(self._filter)
        self.progress.cancel_requested.connect(self.reject)
        self.cancel_button.clicked.connect(self.reject)
        self.accept_button.clicked.connect(self.accept)

    # what is chosen

    def choose(self, _why: object = None) -> None:
        """The plan is another one."""
        chosen = len(self.agents.chosen)
        self.agents_label.setText(f"&Agents  {chosen:,} of {self.agents.every:,}")
        self.all_button.setText("None" if self.agents.are_all_shown_chosen else "All")
        self.plan_changed.emit()

    def _choose_all(self) -> None:
        self.agents.choose_shown(on=not self.agents.are_all_shown_chosen)

    def _filter_agents(self, text: str) -> None:
        self.agents.set_filter(text)
        self.all_button.setText("None" if self.agents.are_all_shown_chosen else "All")

    # what would change

    def begin(self) -> None:
        """A new plan is being worked out."""
        self.edit, self._is_known = None, False
        self.changes.clear()
        self.fault.hide()
        self.table.setColumnHidden(AGENT, len(self.agents.chosen) == 1)
        self.progress.start("Working out what would change")
        self._show()

    def add(self, lines: AgentLines, done: int, every: int) -> None:
        """What changes of one more agent."""
        self.changes.add(lines)
        self.progress.set_progress(done / every, f"Working out what would change: {done:,} of {every:,} agents")
        self._show()

    def finish(self, planned: Planned | None) -> None:
        """All lines are there; None when nothing is chosen."""
        self.progress.stop()
        self._is_known = True
        if planned is not None:
            self.edit = None if planned.refusal or planned.edit.is_empty else planned.edit
            self.fault.setText(planned.refusal.replace("`", ""))
            self.fault.setVisible(bool(planned.refusal))
        self._show()
        self._show_kinds()

    def accept(self) -> None:
        """Only what was shown can be made."""
        if self.edit is not None:
            super().accept()

    def _filter(self, _why: object = None) -> None:
        self.changes.set_filter(self.search.text().strip(), self.kind.currentData() or "")
        self._show()

    def _show_kinds(self) -> None:
        before = self.kind.currentData()
        self.kind.blockSignals(True)
        self.kind.clear()
        self.kind.addItem(f"all changes ({self.changes.counts_total:,})", "")
        for kind in _KINDS:
            if count := self.changes.counts.get(kind):
                self.kind.addItem(f"{kind} ({count:,})", kind)
        self.kind.setCurrentIndex(max(self.kind.findData(before), 0))
        self.kind.blockSignals(False)
        self._filter()

    def _show(self) -> None:
        words = counts_words(self.changes.counts)
        cut = f"; the first {MOST_ROWS:,} lines are listed" if self.changes.is_cut else ""
        self.summary.set_text(f"{words}{cut}" if words else "What would change")
        empty = self.changes.rowCount() == 0
        self._place.setCurrentWidget(self.nothing if empty and self._is_known else self.table)
        if empty and self._is_known:
            self._say_nothing()
        self.accept_button.setEnabled(self.edit is not None)
        self.accept_button.setToolTip("" if self.edit is not None else "There is nothing to change")

    def _say_nothing(self) -> None:
        if not self.agents.chosen:
            self.nothing.set_state("users", "No agent is chosen", "Tick the agents that it is for.")
        elif self.changes.counts:
            self.nothing.set_state("search", "Nothing fits", "No change fits the filter.")
        elif self.edit is not None:
            self.nothing.set_state("check", "Nothing would change for the model", "Only how the file says it differs.")
        elif self.fault.text():
            self.nothing.set_state("ban", "It cannot be done", "The reason is below.")
        else:
            self.nothing.set_state("check", "Nothing would change", "It is so already.")
