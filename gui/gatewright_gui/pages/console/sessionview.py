"""The conversation of the chosen agent as a short table, with the answers that were remembered. It revokes nothing."""

from PySide6.QtCore import QModelIndex, Qt, QTimer, Signal
from PySide6.QtGui import QHideEvent, QShowEvent
from PySide6.QtWidgets import QAbstractItemView, QStyleOptionViewItem, QVBoxLayout, QWidget

from gatewright_gui.models import conversation
from gatewright_gui.models.conversation import ConversationModel
from gatewright_gui.pages.console.delegate import put_icon, tint
from gatewright_gui.qt.widget import TableView
from gatewright_gui.qt.widget.delegate import Delegate
from gatewright_gui.session.conversation import SessionState

TICK_MS = 200


class _Delegate(Delegate):
    """An icon for the kind; what holds calls back stands out."""

    def initStyleOption(self, option: QStyleOptionViewItem, index: conversation.Index) -> None:  # noqa: N802
        super().initStyleOption(option, index)
        holds = bool(index.data(conversation.HOLDS))
        if index.column() == conversation.WHAT:
            put_icon(option, str(index.data(conversation.ICON)), "ask" if holds else "muted")
        elif holds:
            tint(option, "ask")


class SessionView(QWidget):
    """Enter or a double click on a row goes to its rule; counts down only while it is seen."""

    rule_requested = Signal(object)
    """RuleLink."""
    chosen = Signal()
    """Another row is the current one."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.model = ConversationModel(self)
        self.table = TableView("Session")
        self.table.setObjectName("console.sessionstate")
        self.table.setModel(self.model)
        self.table.setItemDelegate(_Delegate(self.table))
        self.table.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.table.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.table.setTabKeyNavigation(False)
        self.table.setColumnWidth(conversation.WHAT, 214)
        self.table.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.table.activated.connect(self._go)
        self.table.selectionModel().currentChanged.connect(self._moved)
        self.model.modelReset.connect(self.chosen)
        self._tick = QTimer(self, interval=TICK_MS)
        self._tick.timeout.connect(self._count)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(self.table)

    @property
    def grant_id(self) -> str | None:
        """The remembered answer of the current row."""
        standing = self.model.standing_at(self.table.currentIndex().row())
        return standing.grant_id if standing is not None else None

    def show_state(self, state: SessionState | None) -> None:
        """Show where a conversation stands."""
        self.model.set_state(state)
        self._count()
        self.chosen.emit()

    def _count(self) -> None:
        self.model.tick()
        if self.isVisible() and self.model.counts_down:
            if not self._tick.isActive():
                self._tick.start()
        else:
            self._tick.stop()

    def _moved(self, _current: QModelIndex, _before: QModelIndex) -> None:
        self.chosen.emit()

    def _go(self, index: QModelIndex) -> None:
        rule = self.model.rule_at(index.row())
        if rule is not None:
            self.rule_requested.emit(rule)

    def showEvent(self, event: QShowEvent) -> None:  # noqa: N802
        """Count from now on."""
        super().showEvent(event)
        self._count()

    def hideEvent(self, event: QHideEvent) -> None:  # noqa: N802
        """Nothing counts unseen."""
        super().hideEvent(event)
        self._tick.stop()
