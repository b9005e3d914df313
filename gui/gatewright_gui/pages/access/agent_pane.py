"""The list of agents with its keys, buttons and menu, drawn with what each model sees.

Over 450 lines, because its delegate, menu and list all answer for the same rows.
"""

import time
from collections.abc import Callable, Sequence
from functools import partial

from PySide6.QtCore import QEvent, QModelIndex, QObject, QPoint, QRect, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QAction, QColor, QFont, QKeyEvent, QKeySequence, QPainter, QResizeEvent, QShowEvent
from PySide6.QtWidgets import (
    QAbstractItemDelegate,
    QAbstractItemView,
    QListView,
    QPushButton,
    QStyle,
    QStyleOptionViewItem,
    QWidget,
)

from gatewright_gui.pages.access.agents import (
    AGENT_ID,
    COUNT,
    DESCRIPTION,
    PROBLEMS,
    AgentCounts,
    AgentFilterModel,
    AgentListModel,
    agents_with_problems,
)
from gatewright_gui.pages.access.tools.rights_menu import RightsMenu
from gatewright_gui.pages.page import PageContext
from gatewright_gui.qt.language import counted, mark, tr
from gatewright_gui.qt.layout import column_of, named, row_of, stretch
from gatewright_gui.qt.look import current_look, tie_icon
from gatewright_gui.qt.menu import add_action, add_heading, popup_menu
from gatewright_gui.qt.plaintext import LEFT, line_text
from gatewright_gui.qt.table_model import Index
from gatewright_gui.qt.widget.button import IconButton
from gatewright_gui.qt.widget.empty_state import EmptyState
from gatewright_gui.qt.widget.item_view import Delegate, RowList, paint_ground
from gatewright_gui.qt.widget.label import SectionHeader
from gatewright_gui.qt.widget.text_field import SearchField, ValueField
from gatewright_gui.session.selection import Selection

ROW_HEIGHT = 44
_PAD = 10


class AgentDelegate(Delegate):
    """Two lines per agent; the name is edited in place, and what is wrong with it is said there.

    `refusal` gets the old name and the new one and says why not; empty when nothing is wrong.
    """

    def __init__(self, refusal: Callable[[str, str], str], selection: Selection, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._refusal, self._selection = refusal, selection

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:  # noqa: N802
        """Room for two lines."""
        del option, index
        return QSize(120, ROW_HEIGHT)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        """Ground, name, description."""
        look = current_look()
        rect: QRect = getattr(option, "rect")  # noqa: B009
        if self._selection.is_everyone:
            option.state &= ~QStyle.StateFlag.State_Selected  # pyright: ignore[reportAttributeAccessIssue]
        paint_ground(painter, option)
        painter.save()
        words = rect.adjusted(_PAD, 5, -6, -5)
        bold = QFont(painter.font())
        bold.setWeight(QFont.Weight.DemiBold)
        painter.setFont(bold)
        painter.setPen(QColor(look.palette.text))
        first = QRect(words.left(), words.top(), words.width(), 18)
        taken = _mark(painter, first, index)
        painter.setFont(bold)
        _line(painter, first.adjusted(0, 0, -taken, 0), str(index.data()))
        painter.setFont(look.small_font)
        painter.setPen(QColor(look.palette.muted))
        second = QRect(words.left(), words.top() + 18, words.width(), 15)
        _line(painter, second, str(index.data(DESCRIPTION) or tr("no description")))
        painter.restore()

    def createEditor(self, parent: QWidget, option: QStyleOptionViewItem, index: Index) -> QWidget:  # noqa: N802
        """A field over the name."""
        del option
        name = str(index.data())
        field = ValueField(lambda text: "" if text.strip() == name else self._refusal(name, text.strip()), parent)
        field.setMaxLength(64)
        field.setFrame(True)
        return named(field, "agents.list.name", spoken=tr("Agent name"))

    def setEditorData(self, editor: QWidget, index: Index) -> None:  # noqa: N802
        """The name, ready to be typed over; what is told of the row meanwhile leaves the field alone."""
        if isinstance(editor, ValueField) and not editor.property("filled"):
            editor.setText(str(index.data()))
            editor.selectAll()
            editor.setProperty("filled", True)

    def eventFilter(self, editor: QObject, event: QEvent) -> bool:  # noqa: N802
        """Enter with a name that would be refused stays in the field; a field that is left says why it is refused."""
        is_enter = isinstance(event, QKeyEvent) and event.key() in {Qt.Key.Key_Return, Qt.Key.Key_Enter}
        if is_enter and event.type() == QEvent.Type.KeyPress and isinstance(editor, ValueField) and editor.refused:
            editor.tell()
            return True
        return super().eventFilter(editor, event)

    def updateEditorGeometry(self, editor: QWidget, option: QStyleOptionViewItem, index: Index) -> None:  # noqa: N802
        """Over the whole row."""
        del index
        rect: QRect = getattr(option, "rect")  # noqa: B009
        editor.setGeometry(QRect(rect.left() + 4, rect.top() + 8, rect.width() - 8, 28))


def _mark(painter: QPainter, line: QRect, index: Index) -> int:
    """The number of operations that are on, of how many if the name leaves room, and a sign if something is wrong."""
    look, taken = current_look(), 0
    count = str(index.data(COUNT) or "")
    if count:
        free = line.width() - painter.fontMetrics().horizontalAdvance(str(index.data())) - 6
        painter.save()
        painter.setFont(look.small_font)
        painter.setPen(QColor(look.palette.muted))
        if painter.fontMetrics().horizontalAdvance(count) > free:
            count = count.partition(" ")[0]
        taken = painter.fontMetrics().horizontalAdvance(count) + 6
        painter.drawText(line, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, count)
        painter.restore()
    if index.data(PROBLEMS):
        place = QRect(line.right() - taken - 14, line.top() + 2, 14, 14)
        look.icon("triangle-alert", "ask").paint(painter, place)
        taken += 18
    return taken


def _line(painter: QPainter, place: QRect, text: str) -> None:
    cut = line_text(painter.fontMetrics(), text.replace("\n", " "), place.width())
    painter.drawText(place, LEFT, cut)


ACTIONS = (
    ("add", "plus", mark("Add agent"), "Ctrl+N"),
    ("duplicate", "copy", mark("Duplicate agent"), "Ctrl+D"),
    ("rename", "pencil", mark("Rename agent"), "F2"),
    ("remove", "trash", mark("Remove agent"), "Del"),
    ("preset", "list", mark("Preset…"), "Ctrl+Shift+P"),
)
MANY = 12
"""From more agents on they can be filtered."""


class AgentPane(QWidget):
    """Chooses the agent. Names are edited in place; every change can be undone."""

    describe_requested = Signal()

    def __init__(self, context: PageContext, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._context = context
        self._document = context.document
        self._selection = context.selection
        self._gone: tuple[str | None, str | None] = (None, None)
        """The chosen agent that went away last, and which one is chosen since."""
        self._new = 0
        """How many edits there were with the agent that was just added and has no name of its own yet; 0: none."""
        self.model = AgentListModel(self._give_name, self)
        self.rows = AgentFilterModel(self.model, self)
        self.search = named(SearchField(tr("Filter agents")), "agents.list.search")
        self.nothing = EmptyState("search", tr("No agent fits"), "", action=tr("Show all"))
        self.rights_menu = RightsMenu(context, self)
        self.header = SectionHeader(tr("Agents"))
        tip = tr("All agents side by side, and what holds for all of them (Ctrl+M)")
        self.everyone = named(QPushButton(tr("Everyone")), "access.everyone", tip=tip, kind="row")
        tie_icon(self.everyone, "users")
        self.everyone.setCheckable(True)
        self.view = self._make_view()
        self.actions_by_key: dict[str, QAction] = {}
        self._make_actions()
        self.nothing.hide()
        search = row_of(self.search, margins=(1, 0, 1, 1))
        everyone = row_of(stretch(self.everyone), margins=(1, 0, 1, 1))
        column_of(self.header, everyone, search, stretch(self.nothing), stretch(self.view), into=self)
        self.counts = AgentCounts(context.document, context.deriver, context.tasks, self._agents_in_view, self)
        self._connect()
        self._follow_document()

    def _connect(self) -> None:
        self.search.search_changed.connect(self._filter)
        self.search.results_requested.connect(self._focus_rows)
        self.search.leave_requested.connect(self.view.setFocus)
        self.nothing.action_requested.connect(self.search.clear)
        self.counts.counted.connect(self.model.set_count)
        self.view.verticalScrollBar().valueChanged.connect(self._look)
        self._document.problems_changed.connect(self._show_problems)
        self._document.closed.connect(self._follow_document)
        self._document.opened.connect(self._follow_document)
        self._document.policy_changed.connect(self._refresh)
        self._selection.agent_changed.connect(self._follow_choice)
        self._selection.everyone_changed.connect(self._show_everyone)
        self.everyone.clicked.connect(lambda: self._selection.show_everyone(on=True))
        self.view.clicked.connect(lambda: self._selection.show_everyone(on=False))
        self._show_everyone(self._selection.is_everyone)

    def _make_view(self) -> QListView:
        view = named(RowList(), "agents.list", spoken=tr("Agents"))
        view.setModel(self.rows)
        view.setItemDelegate(AgentDelegate(self._refusal, self._selection, view))
        view.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        view.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        view.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        view.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        view.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        view.customContextMenuRequested.connect(self._open_menu)
        view.doubleClicked.connect(self._edit)
        view.itemDelegate().closeEditor.connect(self._editor_closed)
        view.selectionModel().currentChanged.connect(self._follow_current)
        view.selectionModel().selectionChanged.connect(self._show_chosen)
        return view

    def _make_actions(self) -> None:
        """Make the actions on agents; three of them have a button in the header too."""
        runs = (self.add, self.duplicate, self.rename, self.remove, self.preset)
        for (key, icon, marked, keys), run in zip(ACTIONS, runs, strict=True):
            text = tr(marked)
            action = self.actions_by_key[key] = QAction(text, self)
            tie_icon(action, icon)
            action.setObjectName(f"agents.{key}")
            action.setShortcut(QKeySequence(keys))
            action.setShortcutContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
            action.triggered.connect(run)
            self.addAction(action)
            if key in {"add", "duplicate", "remove"}:
                button = named(IconButton(icon, f"{text} ({keys})"), f"agents.{key}.button", spoken=text)
                button.clicked.connect(action.trigger)
                self.header.add_control(button)

    def add(self) -> None:
        """A new agent; its name can be typed at once."""
        from gatewright_gui.session.verbs import agents as verbs

        self._edit_new(verbs.add_agent(self._document))

    def duplicate(self) -> None:
        """A copy of the chosen agent; its name can be typed at once."""
        from gatewright_gui.session.verbs import agents as verbs

        if self._selection.agent_id:
            self._edit_new(verbs.duplicate_agent(self._document, self._selection.agent_id))

    def rename(self) -> None:
        """Type another name for the chosen agent."""
        self._edit(self.view.currentIndex())

    def remove(self) -> None:
        """Remove the selected agents; undo brings them back."""
        from gatewright_gui.session.verbs import agents as verbs

        chosen = self.choice()
        if verbs.remove_agents(self._document, chosen):
            what = f"`{chosen[0]}`" if len(chosen) == 1 else counted(len(chosen), "agent", "agents")
            self._document.say("info", tr("removed {agents}", agents=what), can_undo=True)

    def preset(self) -> None:
        """Choose a preset for the selected agents."""
        if chosen := self.choice():
            self.rights_menu.open_presets(chosen)

    def choice(self) -> tuple[str, ...]:
        """The selected agents in the order of the list; the current one when none is selected."""
        rows = sorted(index.row() for index in self.view.selectionModel().selectedIndexes())
        selected = tuple(agent.agent_id for row in rows if (agent := self.rows.agent_at(row)) is not None)
        current = self._selection.agent_id
        return selected or ((current,) if current else ())

    def _edit_new(self, agent_id: str | None) -> None:
        if agent_id is not None:
            if self.rows.row_of(agent_id) < 0:
                self.search.clear()
            self._selection.choose_agent(agent_id)
            self._new = self._document.undo_stack.index()
            self._edit(self.rows.index(self.rows.row_of(agent_id), 0))

    def _edit(self, index: QModelIndex) -> None:
        if index.isValid():
            self.view.setFocus(Qt.FocusReason.OtherFocusReason)
            self.view.edit(index)

    def _editor_closed(self, _editor: object, hint: QAbstractItemDelegate.EndEditHint) -> None:
        """Escape in the name of a new agent: it was not meant."""
        new, self._new = self._new, 0
        escaped = hint == QAbstractItemDelegate.EndEditHint.RevertModelCache
        if new and escaped and self._document.undo_stack.index() == new:
            QTimer.singleShot(0, self, self._document.undo)  # once the view is done with the field

    def _give_name(self, old: str, new: str) -> bool:
        from gatewright_gui.session.verbs import agents as verbs

        chosen = self._selection.agent_id == old
        done = verbs.rename_agent(self._document, old, new)
        if done and chosen:
            self._selection.choose_agent(new)
        return done

    def _refusal(self, old: str, new: str) -> str:
        from gatewright_gui.session.verbs import agents as verbs

        return verbs.rename_refusal(self._document, old, new)

    def _follow_document(self) -> None:
        self.setEnabled(self._document.is_open)
        self.search.clear()
        self._refresh()

    def _refresh(self, _changes: object = None) -> None:
        chosen = self._selection.agent_id
        row = self.model.find(chosen)
        self.model.set_rows(self._document.agents)
        self.search.setVisible(len(self._document.agents) > MANY)
        if self.model.find(chosen) < 0:
            beside = self.model.row_at(min(max(row, 0), self.model.rowCount() - 1))
            instead = beside.agent_id if beside else None
            self._gone = (chosen, instead)
            self._selection.choose_agent(instead)
        elif chosen == self._gone[1] and self.model.find(self._gone[0]) >= 0:
            self._selection.choose_agent(self._gone[0])  # it is back, and nobody chose another one meanwhile
        self._follow_choice(self._selection.agent_id)
        self._show_problems()
        self._show_chosen()
        self._look()

    def _show_chosen(self, _one: object = None, _other: object = None) -> None:
        """Show what can be done with so many, and how many there are."""
        every, chosen = len(self._document.agents), len(self.view.selectionModel().selectedIndexes())
        of_every = tr("{count:,} of {every:,}", count=chosen, every=every)
        self.header.set_note(of_every if chosen > 1 else str(every) if every else "")
        one = self._selection.agent_id is not None
        for key in ("remove", "preset"):
            self.actions_by_key[key].setEnabled(one)
        for key in ("duplicate", "rename"):
            self.actions_by_key[key].setEnabled(one and chosen <= 1)

    def _show_problems(self, _problems: object = None) -> None:
        self.model.set_problems(agents_with_problems(self._document.problems, self._document.policy.agents))

    def _observe(self, agent_ids: Sequence[str], *, on: bool) -> None:
        """Only note for a week what is denied or asked, or enforce it again."""
        from gatewright.workspace.api import Observed, ObservedKind
        from gatewright_gui.session.verbs.policy import OBSERVE_S, set_observed

        until_s = float(round(time.time() + OBSERVE_S))
        parts = [Observed(ObservedKind.AGENT, one, until_s) for one in agent_ids]
        set_observed(self._document, parts, until_s if on else None)

    def _show_room(self, agent_id: str) -> None:
        from gatewright_gui.pages.servers.room_pane import RoomDialog  # not for the first painting
        from gatewright_gui.qt.dialog import run_dialog

        context = self._context
        dialog = RoomDialog(self, self._document, context.tasks, context.sizes, agent_id)
        context.tasks.start(run_dialog(dialog), "agents.room", replace=True)

    # what one looks at

    def _filter(self, text: str) -> None:
        self.rows.set_search(text)
        empty = self.rows.rowCount() == 0 and self.model.rowCount() > 0
        self.nothing.setVisible(empty)
        self.view.setVisible(not empty)
        self._follow_choice(self._selection.agent_id)
        self._look()

    def _focus_rows(self) -> None:
        self.view.setFocus()
        if not self.view.currentIndex().isValid():
            self.view.setCurrentIndex(self.rows.index(0, 0))

    def _look(self, _why: object = None) -> None:
        if self._document.is_open:
            self.counts.look()

    def _agents_in_view(self) -> tuple[str, ...]:
        first = self.view.indexAt(QPoint(2, 2)).row()
        last = first + self.view.viewport().height() // ROW_HEIGHT + 1
        if first < 0 or not self.view.isVisible():
            return ()
        return tuple(agent.agent_id for row in range(first, last) if (agent := self.rows.agent_at(row)) is not None)

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802
        """More of the list may be in view."""
        super().resizeEvent(event)
        self._look()

    def showEvent(self, event: QShowEvent) -> None:  # noqa: N802
        """It is looked at."""
        super().showEvent(event)
        self._look()

    def _show_everyone(self, is_everyone: bool) -> None:
        self.everyone.setChecked(is_everyone)
        self.view.viewport().update()

    def _follow_current(self, current: QModelIndex, _previous: QModelIndex) -> None:
        if not current.isValid():
            return
        agent_id = str(current.data(AGENT_ID))
        if agent_id != self._selection.agent_id and self.view.hasFocus():  # chosen here, by keys or mouse
            self._selection.show_everyone(on=False)
        self._selection.choose_agent(agent_id)

    def _follow_choice(self, agent_id: object) -> None:
        row = self.rows.row_of(agent_id if isinstance(agent_id, str) else None)
        unmarked = row >= 0 and not self.view.selectionModel().hasSelection()  # Qt moves on without selecting
        if row != self.view.currentIndex().row() or unmarked:
            self.view.setCurrentIndex(self.rows.index(row, 0) if row >= 0 else QModelIndex())

    def _stop(self, agent_id: str, is_stopped: bool) -> None:
        """Stop an agent at once, or let it go on."""
        stops = self._document.stops
        work = stops.go(agent_id) if is_stopped else stops.stop(agent_id)
        self._context.tasks.start(work, "stop", stays=True)

    def _open_menu(self, at: QPoint) -> None:
        menu = popup_menu(self)
        menu.setToolTipsVisible(True)
        chosen = self.choice()
        menu.addActions([self.actions_by_key[key] for key, *_ in ACTIONS if key != "preset"])
        describe = self.describe_requested.emit
        add_action(menu, tr("Edit description"), describe, icon="file-text", can=len(chosen) == 1)
        if len(chosen) == 1:
            look = partial(self._show_room, chosen[0])
            add_action(menu, tr("What its shell commands can see..."), look, name="agents.room", icon="eye")
            is_stopped = self._document.stops.of(chosen[0]) is not None
            text, icon = (tr("Let it go on"), "play") if is_stopped else (tr("Stop this agent"), "circle-stop")
            add_action(menu, text, partial(self._stop, chosen[0], is_stopped), name="agents.stop", icon=icon)
        if chosen:
            agents = [self._document.policy.agents[one] for one in chosen]
            is_observed = all(one.observe_until_s is not None for one in agents)
            words = tr("Enforce") if is_observed else tr("Observe for 7 days, without enforcing")
            add_action(
                menu, words, partial(self._observe, chosen, on=not is_observed), name="agents.observe", icon="eye"
            )
        if chosen:
            several = tr("Preset for {count} agents", count=len(chosen))
            add_heading(menu, tr("Preset") if len(chosen) == 1 else several)
            self.rights_menu.fill(menu, chosen)
        menu.popup(self.view.viewport().mapToGlobal(at))
