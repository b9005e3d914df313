"""A preset, copied rights or a reset for several agents, with every line that would change before it is made."""

from collections.abc import Iterable, Sequence
from functools import partial

from PySide6.QtCore import QRect, QSize
from PySide6.QtGui import QColor, QPainter
from PySide6.QtWidgets import (
    QAbstractItemView,
    QButtonGroup,
    QCheckBox,
    QComboBox,
    QLabel,
    QListView,
    QPushButton,
    QRadioButton,
    QStackedWidget,
    QStyleOptionViewItem,
    QWidget,
)

from gatewright.workspace.api import (
    Agent,
    Along,
    Edit,
    EditRefused,
    Preset,
    RightState,
    Verdict,
    rules_by_name,
)
from gatewright_gui.pages.access.tools.right_changes import (
    AGENT,
    MOST_ROWS,
    NOW,
    THEN,
    WHAT,
    AgentChoiceModel,
    RightChangesModel,
    counts_words,
)
from gatewright_gui.pages.access.tools.right_lines import KIND_WORDS, ChangeRow, lines_of
from gatewright_gui.pages.page import PageContext
from gatewright_gui.qt.dialog import CheckedDialog, run_dialog
from gatewright_gui.qt.language import counted, tr
from gatewright_gui.qt.layout import Gap, Part, column_of, holding, named, row_of, stretch
from gatewright_gui.qt.look import Role, current_look
from gatewright_gui.qt.plaintext import LEFT, line_text, tip_text
from gatewright_gui.qt.table_model import ROW, Index
from gatewright_gui.qt.widget.empty_state import EmptyState
from gatewright_gui.qt.widget.item_view import Delegate, TableView, paint_ground
from gatewright_gui.qt.widget.label import ElidedLabel, Label
from gatewright_gui.qt.widget.message_bar import ProgressStrip
from gatewright_gui.qt.widget.text_field import SearchField
from gatewright_gui.session.verbs import presets as verbs
from gatewright_gui.session.verbs.presets import PRESETS, CopyPlan, Plan, Planned, PresetPlan, ResetPlan

WORK = "agents.rights.lines"
SIZE = (900, 580)
_LEFT = 232
_MANY_AGENTS = 8
"""More agents than these can be searched."""
_NAMED = 12
"""So many tools are named at most."""
_STANDINGS: dict[str, tuple[str, Role]] = {
    RightState.ON: ("circle-check", "allow"),
    RightState.ASKS: ("hand", "ask"),
    RightState.OFF: ("ban", "muted"),
    RightState.OVERRULED: ("triangle-alert", "ask"),
    Verdict.ALLOW: ("circle-check", "allow"),
    Verdict.ASK: ("hand", "ask"),
    Verdict.DENY: ("shield-x", "deny"),
}


class ChangeDelegate(Delegate):
    """A standing with its picture before the words."""

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:  # noqa: N802
        """One height for all rows."""
        return QSize(super().sizeHint(option, index).width(), current_look().tokens.row_height)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        """Ground, picture, words."""
        paint_ground(painter, option)
        rect: QRect = getattr(option, "rect")  # noqa: B009
        look, left = current_look(), rect.left() + 6
        row: ChangeRow = index.data(ROW)
        standing = {NOW: row.before, THEN: row.after}.get(index.column())
        painter.save()
        if standing:
            icon, role = _STANDINGS[str(standing)]
            look.icon(icon, role).paint(painter, QRect(left, rect.top() + (rect.height() - 14) // 2, 14, 14))
            left += 20
        quiet = index.column() in {AGENT, NOW}
        painter.setPen(QColor(look.palette.muted if quiet else look.palette.text))
        room = QRect(left, rect.top(), rect.right() - left - 4, rect.height())
        cut = line_text(painter.fontMetrics(), str(index.data()), room.width())
        painter.drawText(room, LEFT, cut)
        painter.restore()


def set_up_changes(table: TableView, model: RightChangesModel, *, then_width: int = 172) -> None:
    """Show changes in a table, what changes in the widest column."""
    table.show_model(model, {AGENT: 110, NOW: 150, THEN: then_width}, wide=WHAT)
    table.setItemDelegate(ChangeDelegate(table))


class RightsDialog(CheckedDialog):
    """A subclass lays out its choice and says the plan; what a plan changes is worked out beside the window."""

    def __init__(
        self,
        parent: QWidget | None,
        context: PageContext,
        title: str,
        accept_text: str,
        agents: Sequence[Agent],
        chosen: Iterable[str] = (),
    ) -> None:
        super().__init__(parent, "rights", title, accept_text)
        self._context = context
        self.agents = AgentChoiceModel(agents, chosen, self)
        self.changes = RightChangesModel(self)
        self.edit: Edit | None = None
        """What is made when it is accepted; None while that is not known, or where nothing would change."""
        self._is_known = False
        self.agent_search = named(SearchField(tr("Filter agents")), "rights.agents.search")
        self.agent_view = named(QListView(), "rights.agents", spoken=tr("Agents"))
        self.agents_label = Label(tr("&Agents"), buddy=self.agent_view)
        self.all_button = named(QPushButton(tr("All")), "rights.all", kind="link")
        self.summary = named(ElidedLabel(), "rights.summary")
        self.search = named(SearchField(tr("Filter the changes")), "rights.search")
        self.kind = named(QComboBox(), "rights.kind", spoken=tr("Kind of change"))
        self.table = named(TableView(tr("What would change")), "rights.changes")
        self.nothing = EmptyState("check", tr("Nothing would change"), "")
        self.progress = ProgressStrip()
        self._place = QStackedWidget()
        self.resize(*SIZE)

    def plan(self) -> Plan:
        """The plan that is chosen now."""
        raise NotImplementedError

    # layout

    def lay_out_choice(self, *choice: Part, has_agents: bool = True) -> None:
        """Put the parts in place, the choice at the left above the agents."""
        self.all_button.setAutoDefault(False)
        self.agent_search.setVisible(self.agents.every > _MANY_AGENTS)
        self.agent_view.setItemDelegate(Delegate(self.agent_view))
        self.agent_view.setModel(self.agents)
        self.agent_view.setUniformItemSizes(True)
        self.agent_view.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.agent_view.setMinimumHeight(3 * current_look().tokens.row_height)
        self.agent_view.ensurePolished()
        self.accept_button.setEnabled(False)  # until it is known what would be made
        agents: tuple[Part, ...] = (
            row_of(self.agents_label, stretch(), self.all_button),
            self.agent_search,
            stretch(self.agent_view),
        )
        left = holding(column_of(*choice, Gap(2), *(agents if has_agents else (stretch(),)), space=2))
        left.setFixedWidth(_LEFT)
        self.kind.setMinimumWidth(170)
        set_up_changes(self.table, self.changes)
        self._place.addWidget(self.table)
        self._place.addWidget(self.nothing)
        searches = row_of(stretch(self.search), self.kind, space=2)
        changes = column_of(self.summary, searches, stretch(self._place), self.progress, space=2)
        self.lay_out(stretch(row_of(left, stretch(changes), space=4)), self.fault)
        self._connect()

    def _connect(self) -> None:
        self.agents.chosen_changed.connect(self.choose)
        self.agent_search.search_changed.connect(self._filter_agents)
        self.agent_search.results_requested.connect(self.agent_view.setFocus)
        self.all_button.clicked.connect(self.agents.turn_shown)
        self.search.search_changed.connect(self._filter)
        self.search.results_requested.connect(self.table.setFocus)
        self.search.leave_requested.connect(self.reject)
        self.agent_search.leave_requested.connect(self.reject)
        self.kind.currentIndexChanged.connect(self._filter)
        self.progress.cancel_requested.connect(self.reject)

    # what is chosen

    async def ask(self) -> None:
        """Show it until it is answered, and make the edit that was accepted."""
        document = self._context.document
        document.policy_changed.connect(self._work_out_anew)
        try:
            self.choose()
            accepted = await run_dialog(self)
        finally:
            document.policy_changed.disconnect(self._work_out_anew)
            self._context.tasks.cancel(WORK)
        if accepted and self.edit is not None:
            verbs.make(document, self.edit)

    def choose(self, _why: object = None) -> None:
        """The plan is another one."""
        chosen = len(self.agents.chosen)
        self.agents_label.setText(tr("&Agents  {count:,} of {every:,}", count=chosen, every=self.agents.every))
        self.all_button.setText(tr("None") if self.agents.are_all_shown_chosen else tr("All"))
        self._work_out_anew()

    def _filter_agents(self, text: str) -> None:
        self.agents.set_filter(text)
        self.all_button.setText(tr("None") if self.agents.are_all_shown_chosen else tr("All"))

    # what would change

    def _work_out_anew(self, _why: object = None) -> None:
        self._context.tasks.start(self._work_out(), WORK, replace=True)

    async def _work_out(self) -> None:
        """Agent by agent, so that lines come early and another choice ends it soon."""
        plan, deriver = self.plan(), self._context.deriver
        self._begin()
        if not plan.agent_ids:
            self._finish(None)
            return
        try:
            for done, agent_id in enumerate(plan.agent_ids, 1):
                tell = partial(lines_of, room=self.changes.room)
                lines = await deriver.derive(verbs.difference, plan, agent_id, tell)
                if lines is None:
                    return  # the policy is another one: it is worked out anew
                self.changes.add(lines)
                said = tr(
                    "Working out what would change: {count:,} of {every:,} agents",
                    count=done,
                    every=len(plan.agent_ids),
                )
                self.progress.set_progress(done / len(plan.agent_ids), said)
                self._show()
            planned = await deriver.derive(verbs.plan_edit, plan)
        except EditRefused as error:  # an agent of the plan is gone
            planned = Planned(verbs.NO_EDIT, str(error))
        if planned is not None:
            self._finish(planned)

    def _begin(self) -> None:
        self.edit, self._is_known = None, False
        self.changes.clear()
        self.fault.hide()
        self.table.setColumnHidden(AGENT, len(self.agents.chosen) == 1)
        self.progress.start(tr("Working out what would change"))
        self._show()

    def _finish(self, planned: Planned | None) -> None:
        """All lines are there; None when nothing is chosen."""
        self.progress.stop()
        self._is_known = True
        if planned is not None:
            self.edit = None if planned.refusal or planned.edit.is_empty else planned.edit
            self.fault.setText(planned.refusal.replace("`", ""))
            self.fault.setVisible(bool(planned.refusal))
        self._show()
        before = self.kind.currentData()
        self.kind.blockSignals(True)
        self.kind.clear()
        self.kind.addItem(tr("all changes ({count:,})", count=self.changes.counts_total), "")
        for kind in map(str, KIND_WORDS):
            if count := self.changes.counts.get(kind):
                self.kind.addItem(f"{tr(KIND_WORDS[kind])} ({count:,})", kind)
        self.kind.setCurrentIndex(max(self.kind.findData(before), 0))
        self.kind.blockSignals(False)
        self._filter()

    def accept(self) -> None:
        """Only what was shown can be made."""
        if self.edit is not None:
            super().accept()

    def _filter(self, _why: object = None) -> None:
        self.changes.set_filter(self.search.text().strip(), self.kind.currentData() or "")
        self._show()

    def _show(self) -> None:
        words = counts_words(self.changes.counts)
        cut = tr("the first {count:,} lines are listed", count=MOST_ROWS)
        self.summary.set_text((f"{words}; {cut}" if self.changes.is_cut else words) or tr("What would change"))
        empty = self.changes.rowCount() == 0
        self._place.setCurrentWidget(self.nothing if empty and self._is_known else self.table)
        if empty and self._is_known:
            self.nothing.set_state(*self._why_empty())
        self.accept_button.setEnabled(self.edit is not None)
        self.accept_button.setToolTip("" if self.edit is not None else tr("There is nothing to change"))

    def _why_empty(self) -> tuple[str, str, str]:
        if not self.agents.chosen:
            return "users", tr("No agent is chosen"), tr("Tick the agents that it is for.")
        if self.changes.counts:
            return "search", tr("Nothing fits"), tr("No change fits the filter.")
        if self.edit is not None:
            return "check", tr("Nothing would change for the model"), tr("Only how the file says it differs.")
        if self.fault.text():
            return "ban", tr("It cannot be done"), tr("The reason is below.")
        return "check", tr("Nothing would change"), tr("It is so already.")


class PresetDialog(RightsDialog):
    """A preset for one or several agents; one is chosen at first."""

    def __init__(self, parent: QWidget | None, context: PageContext, agent_ids: Iterable[str], preset: Preset) -> None:
        super().__init__(parent, context, tr("Preset"), tr("Apply"), context.document.agents, agent_ids)
        self._buttons: dict[Preset, QRadioButton] = {}
        group = QButtonGroup(self)
        parts: list[Part] = []
        for one, text, says in PRESETS:
            button = self._buttons[one] = named(QRadioButton(tr(text)), f"rights.preset.{one.name.lower()}")
            button.setAccessibleDescription(tr(says))
            button.setChecked(one is preset)
            group.addButton(button)
            note = _note_label(tr(says), wraps=False)
            note.setIndent(22)
            parts += (button, note, Gap(1))
        self.lay_out_choice(column_of(*parts, _note_label(tr("Limits and every other rule stay."), wraps=False)))
        group.buttonClicked.connect(self.choose)
        self._buttons[preset].setFocus()

    @property
    def preset(self) -> Preset:
        """The chosen one."""
        return next(preset for preset, button in self._buttons.items() if button.isChecked())

    def plan(self) -> PresetPlan:
        """The chosen preset for the chosen agents."""
        return PresetPlan(self.preset, self.agents.chosen)


class CopyDialog(RightsDialog):
    """To whom the rights of an agent are copied, and what goes along; nobody is chosen at first."""

    def __init__(self, parent: QWidget | None, context: PageContext, source_id: str) -> None:
        others = [agent for agent in context.document.agents if agent.agent_id != source_id]
        super().__init__(parent, context, tr("Copy the rights of {agent}", agent=source_id), tr("Copy"), others)
        self._source_id = source_id
        told = _note_label(
            tr("Tools, operations and what asks first are copied from {agent}. Also copy:", agent=source_id), kind=""
        )
        self.limits = named(QCheckBox(tr("&Limits and other rules on tools")), "rights.along.limits")
        self.limits.setChecked(True)
        self.sources = named(QCheckBox(tr("&Sources")), "rights.along.sources")
        self.capabilities = named(QCheckBox(tr("&Capabilities")), "rights.along.capabilities")
        boxes = (self.limits, self.sources, self.capabilities)
        for box in boxes:
            box.toggled.connect(self.choose)
        parts: list[QWidget] = [told, *boxes]
        # what binds the agent by its name and nobody else: without a word one would think that it goes along
        if stay := [rule.name for rule in rules_by_name(context.document.policy, source_id)]:
            rules = counted(len(stay), "policy rule is", "policy rules are")
            said = tr("Not copied: {rules} for {agent} by name.", rules=rules, agent=source_id)
            parts.append(named(_note_label(said), "rights.not_copied", tip=tip_text("\n".join(stay))))
        self.lay_out_choice(column_of(*parts, space=1))
        self.agent_view.setFocus()

    def plan(self) -> CopyPlan:
        """The rights with what goes along, for the chosen agents."""
        along = Along(self.limits.isChecked(), self.sources.isChecked(), self.capabilities.isChecked())
        return CopyPlan(self._source_id, along, self.agents.chosen)


class ResetDialog(RightsDialog):
    """Tools of one agent as they are by themselves; nothing else is asked."""

    def __init__(self, parent: QWidget | None, context: PageContext, agent_id: str, tools: Sequence[str]) -> None:
        agent = context.document.policy.agents[agent_id]
        super().__init__(parent, context, tr("Clear overrides"), tr("Clear"), [agent], [agent_id])
        self._tools = tuple(tools)
        named_tools = ", ".join(tools[:_NAMED])
        if len(tools) > _NAMED:
            named_tools = tr("{tools}, and {count} more", tools=named_tools, count=len(tools) - _NAMED)
        self.lay_out_choice(
            _note_label(tr("For {agent}:", agent=agent_id), kind=""),
            named(_note_label(named_tools, kind=""), "rights.tools"),
            _note_label(tr("This removes the operation list and the ask-first settings.")),
            _note_label(
                tr("A tool that is on has every operation on then, so far as no other layer turns it off. Limits stay.")
            ),
            has_agents=False,
        )

    def plan(self) -> ResetPlan:
        """The tools of the agent."""
        return ResetPlan(self._tools, self.agents.chosen)


def _note_label(text: str, *, kind: str = "small", wraps: bool = True) -> QLabel:
    label = named(Label(text), kind=kind)
    label.setWordWrap(wraps)
    return label
