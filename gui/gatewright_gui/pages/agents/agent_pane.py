"""The list of agents with its keys, buttons and menu. It does not know how an agent is added; it asks verbs."""

from PySide6.QtCore import QModelIndex, QPoint, Qt, Signal
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QAbstractItemView, QListView, QMenu, QVBoxLayout, QWidget

from gatewright_gui.models.agents import AGENT_ID, AgentListModel
from gatewright_gui.pages.agents.agent_delegate import AgentDelegate
from gatewright_gui.pages.page import PageContext
from gatewright_gui.qt.look import tie_icon
from gatewright_gui.qt.widget.button import IconButton
from gatewright_gui.qt.widget.section_header import SectionHeader
from gatewright_gui.session.verbs import agents as verbs

ACTIONS = (
    ("add", "plus", "Add agent", "Ctrl+N"),
    ("duplicate", "copy", "Duplicate agent", "Ctrl+D"),
    ("rename", "pencil", "Rename agent", "F2"),
    ("remove", "trash", "Remove agent", "Del"),
)


class AgentPane(QWidget):
    """Chooses the agent. Names are edited in place; every change can be undone."""

    describe_requested = Signal()

    def __init__(self, context: PageContext, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._document = context.document
        self._selection = context.selection
        self.model = AgentListModel(self._renamed, self)
        self.header = SectionHeader("Agents")
        self.view = self._make_view()
        self.actions_by_key = {key: self._make_action(key, icon, text, keys) for key, icon, text, keys in ACTIONS}
        for key in ("add", "duplicate", "remove"):
            self.header.add_control(self._make_button(key))
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.header)
        column.addWidget(self.view, 1)
        self._document.opened.connect(self._opened)
        self._document.policy_changed.connect(self._refresh)
        self._selection.agent_changed.connect(self._follow_choice)
        self._opened()

    def _make_view(self) -> QListView:
        view = QListView()
        view.setObjectName("agents.list")
        view.setAccessibleName("Agents")
        view.setModel(self.model)
        view.setItemDelegate(AgentDelegate(self._refusal, view))
        view.setUniformItemSizes(True)
        view.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        view.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        view.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        view.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        view.customContextMenuRequested.connect(self._open_menu)
        view.doubleClicked.connect(self._edit)
        view.selectionModel().currentChanged.connect(self._chosen)
        return view

    def _make_action(self, key: str, icon: str, text: str, keys: str) -> QAction:
        action = QAction(text, self)
        tie_icon(action, icon)
        action.setObjectName(f"agents.{key}")
        action.setShortcut(QKeySequence(keys))
        action.setShortcutContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
        action.triggered.connect(
            {"add": self.add, "duplicate": self.duplicate, "rename": self.rename}.get(key, self.remove)
        )
        self.addAction(action)
        return action

    def _make_button(self, key: str) -> IconButton:
        _, icon, text, keys = next(row for row in ACTIONS if row[0] == key)
        button = IconButton(icon, f"{text} ({keys})")
        button.setAccessibleName(text)
        button.setObjectName(f"agents.{key}.button")
        button.clicked.connect(self.actions_by_key[key].trigger)
        return button

    def add(self) -> None:
        """A new agent; its name can be typed at once."""
        self._edit_new(verbs.add_agent(self._document))

    def duplicate(self) -> None:
        """A copy of the chosen agent; its name can be typed at once."""
        if self._selection.agent_id:
            self._edit_new(verbs.duplicate_agent(self._document, self._selection.agent_id))

    def rename(self) -> None:
        """Type another name for the chosen agent."""
        self._edit(self.view.currentIndex())

    def remove(self) -> None:
        """Remove the chosen agent; undo brings it back."""
        agent_id = self._selection.agent_id
        if agent_id and verbs.remove_agent(self._document, agent_id):
            self._document.say("info", f"removed `{agent_id}`; undo brings it back")

    def _edit_new(self, agent_id: str | None) -> None:
        if agent_id is not None:
            self._selection.choose_agent(agent_id)
            self._edit(self.model.index(self.model.row_of(agent_id)))

    def _edit(self, index: QModelIndex) -> None:
        if index.isValid():
            self.view.setFocus(Qt.FocusReason.OtherFocusReason)
            self.view.edit(index)

    def _renamed(self, old: str, new: str) -> bool:
        chosen = self._selection.agent_id == old
        done = verbs.rename_agent(self._document, old, new)
        if done and chosen:
            self._selection.choose_agent(new)
        return done

    def _refusal(self, old: str, new: str) -> str:
        return verbs.rename_refusal(self._document, old, new)

    def _opened(self) -> None:
        self.setEnabled(self._document.is_open)
        self._refresh()

    def _refresh(self, _changes: object = None) -> None:
        row = self.model.row_of(self._selection.agent_id)
        self.model.set_agents(self._document.agents)
        self.header.set_note(str(len(self._document.agents)) if self._document.agents else "")
        if self.model.row_of(self._selection.agent_id) < 0:
            beside = self.model.agent_at(min(max(row, 0), self.model.rowCount() - 1))
            self._selection.choose_agent(beside.agent_id if beside else None)
        self._follow_choice(self._selection.agent_id)
        for key in ("duplicate", "rename", "remove"):
            self.actions_by_key[key].setEnabled(self._selection.agent_id is not None)

    def _chosen(self, current: QModelIndex, _previous: QModelIndex) -> None:
        if current.isValid():
            self._selection.choose_agent(str(current.data(AGENT_ID)))

    def _follow_choice(self, agent_id: object) -> None:
        row = self.model.row_of(agent_id if isinstance(agent_id, str) else None)
        if row != self.view.currentIndex().row():
            self.view.setCurrentIndex(self.model.index(row) if row >= 0 else QModelIndex())

    def _open_menu(self, at: QPoint) -> None:
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.addActions([self.actions_by_key[key] for key, *_ in ACTIONS])
        describe = menu.addAction("Edit description")
        tie_icon(describe, "file-text")
        describe.triggered.connect(self.describe_requested)
        menu.popup(self.view.viewport().mapToGlobal(at))
