"""What the operations of a stranger's tool are: every reading of its schema, the names for a free text, what follows.

It writes nothing: who opened it makes the edit; a refusal is said here and the dialog stays.
"""

from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtCore import QEvent, QModelIndex, QObject, Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QDialog,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QListView,
    QPushButton,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from gatewright.policy.right import ToolFacts
from gatewright.schema import Survey
from gatewright_gui.pages.agents.declaration import (
    CHOICE,
    Choice,
    ChoiceModel,
    OperationListModel,
    choices_of,
    chosen_row,
)
from gatewright_gui.qt.look import current_look
from gatewright_gui.qt.plaintext import title_text
from gatewright_gui.qt.widget.delegate import Delegate
from gatewright_gui.qt.widget.elided_label import ElidedLabel
from gatewright_gui.qt.widget.icon_label import IconLabel
from gatewright_gui.qt.widget.label import Label
from gatewright_gui.session.verbs.operations import Declaration

SIZE = (620, 540)
MAX_CHOICES_SEEN = 6
NO_LIST = "There is no list: one box in the tree stands for the whole tool."
NAME_FIRST = "tick or add the operations that the tool takes; every other value is refused then"


@dataclass(frozen=True, slots=True)
class Answers:
    """What the dialog asks: why a declaration is refused (empty: it is not), and what the names would mean."""

    refusal: Callable[[Declaration], str]
    consequences: Callable[[tuple[str, ...]], tuple[str, ...]]


class DeclareDialog(QDialog):
    """After it was accepted `declaration` holds what was chosen."""

    def __init__(
        self,
        parent: QWidget | None,
        facts: ToolFacts,
        survey: Survey,
        now: Declaration,
        answers: Answers,
        *,
        wants_free: bool,
    ) -> None:
        super().__init__(parent)
        self.setObjectName("declare")
        self._now, self._answers = now, answers
        self.choices = ChoiceModel(choices_of(survey, now), self)
        self.operations = OperationListModel(self)
        title = f"Operations of {facts.name}"
        self.setWindowTitle(title_text(title))
        self.setAccessibleName(title)
        self.choice_view = _list("What selects the operation", "declare.choices")
        self.choice_view.setModel(self.choices)
        self.operation_view = _list("Operations", "declare.operations")
        self.operation_view.setModel(self.operations)
        self.name = QLineEdit()
        self.add_button = QPushButton("Add")
        self.all_button = QPushButton("Tick all")
        self.effect = _text("declare.effect", "muted")
        self.fault = _text("declare.fault", "error")
        self.accept_button = QPushButton("Declare")
        self.cancel_button = QPushButton("Cancel")
        self._lay_out(title, facts, survey)
        self._connect()
        self.choice_view.setCurrentIndex(
            self.choices.index(chosen_row(self.choices.choices, now, wants_free=wants_free))
        )
        self.choice_view.setFocus()
        self.resize(*SIZE)

    @property
    def choice(self) -> Choice:
        """The current choice."""
        found = self.choice_view.currentIndex().data(CHOICE)
        return found if isinstance(found, Choice) else self.choices.choices[0]

    @property
    def declaration(self) -> Declaration:
        """What would be written."""
        return self.choice.declaration(self.operations.names)

    # layout

    def _lay_out(self, title: str, facts: ToolFacts, survey: Survey) -> None:
        space = current_look().tokens
        column = QVBoxLayout(self)
        column.setContentsMargins(space.space_4, space.space_4, space.space_4, space.space_4)
        column.setSpacing(space.space_2)
        heading = QHBoxLayout()
        name = Label(title)
        name.setProperty("kind", "heading")
        heading.addWidget(name)
        heading.addStretch(1)
        heading.addWidget(ElidedLabel(f"from {facts.origin}", role="muted"))
        column.addLayout(heading)
        column.addWidget(_label("&What selects the operation", self.choice_view))
        rows = min(self.choices.rowCount(), MAX_CHOICES_SEEN)
        self.choice_view.setFixedHeight(rows * space.row_height + 4)
        column.addWidget(self.choice_view)
        for end in survey.open_ends:
            column.addLayout(_warning(end.reason))
        column.addLayout(self._operations_row())
        column.addWidget(self._operations_place(), 1)
        column.addLayout(self._name_row())
        column.addWidget(self.effect)
        column.addWidget(self.fault)
        column.addLayout(self._buttons())

    def _operations_row(self) -> QHBoxLayout:
        row = QHBoxLayout()
        row.addWidget(_label("&Operations", self.operation_view))
        row.addStretch(1)
        self.all_button.setProperty("kind", "link")
        self.all_button.setObjectName("declare.all")
        self.all_button.setAutoDefault(False)
        row.addWidget(self.all_button)
        return row

    def _operations_place(self) -> QStackedWidget:
        """The list, or why there is none."""
        self.none = _text("declare.none", "muted")
        self.none.setText(NO_LIST)
        self.none.setAlignment(Qt.AlignmentFlag.AlignTop | Qt.AlignmentFlag.AlignLeft)
        self._place = QStackedWidget()
        self._place.addWidget(self.operation_view)
        self._place.addWidget(self.none)
        return self._place

    def _name_row(self) -> QHBoxLayout:
        row = QHBoxLayout()
        row.setSpacing(current_look().tokens.space_2)
        self.name.setObjectName("declare.name")
        self.name.setPlaceholderText("another operation, exactly as the tool takes it")
        self.name.setAccessibleName("Another operation")
        self.name.setMaxLength(200)
        self.name.installEventFilter(self)
        self.add_button.setObjectName("declare.add")
        self.add_button.setAutoDefault(False)
        row.addWidget(self.name, 1)
        row.addWidget(self.add_button)
        return row

    def _buttons(self) -> QHBoxLayout:
        row = QHBoxLayout()
        row.setSpacing(current_look().tokens.space_2)
        row.addStretch(1)
        self.cancel_button.setObjectName("declare.cancel")
        self.cancel_button.setAutoDefault(False)
        self.accept_button.setObjectName("declare.accept")
        self.accept_button.setProperty("kind", "primary")
        self.accept_button.setDefault(True)
        row.addWidget(self.cancel_button)
        row.addWidget(self.accept_button)
        return row

    def _connect(self) -> None:
        self.choice_view.selectionModel().currentChanged.connect(self._choose)
        self.operations.changed.connect(self._show)
        self.name.textChanged.connect(self._name_changed)
        self.add_button.clicked.connect(self._add)
        self.all_button.clicked.connect(self._tick_all)
        self.cancel_button.clicked.connect(self.reject)
        self.accept_button.clicked.connect(self.accept)
        self.operation_view.installEventFilter(self)

    # what is done in it

    def accept(self) -> None:
        """Close, unless the declaration would be refused: then say why and stay."""
        if not self.accept_button.isEnabled():
            return
        fault = self._answers.refusal(self.declaration)
        self._say(fault)
        if not fault:
            super().accept()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802
        """Return in the field adds; Delete in the list takes a name away."""
        if isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress:
            is_return = event.key() in {Qt.Key.Key_Return, Qt.Key.Key_Enter}
            if watched is self.name and is_return and self.name.text():
                self._add()
                return True
            if watched is self.operation_view and event.key() == Qt.Key.Key_Delete:
                return self.operations.remove(self.operation_view.currentIndex().row())
        return super().eventFilter(watched, event)

    def _choose(self, _current: QModelIndex, _previous: QModelIndex) -> None:
        choice = self.choice
        ticked = self._now.operations or () if choice.field == self._now.field else ()
        self.operations.show(choice, ticked)

    def _add(self) -> None:
        fault = self.operations.add(self.name.text())
        self._say(fault)
        if not fault:
            self.name.clear()
            self.operation_view.scrollToBottom()

    def _tick_all(self) -> None:
        on = len(self.operations.names) < self.operations.rowCount()
        self.operations.tick_all(on=on)

    def _name_changed(self, text: str) -> None:
        self.add_button.setEnabled(bool(text) and self.operations.is_free)

    def _show(self) -> None:
        free, names = self.operations.is_free, self.operations.names
        self._place.setCurrentWidget(self.operation_view if free or self.operations.rowCount() else self.none)
        self.name.setVisible(free)
        self.add_button.setVisible(free)
        self._name_changed(self.name.text())
        self.all_button.setVisible(free and self.operations.rowCount() > 0)
        self.all_button.setText("Tick none" if len(names) == self.operations.rowCount() else "Tick all")
        said = (NAME_FIRST,) if free and not names else self._answers.consequences(names)
        self.effect.setText(". ".join(said).replace("`", ""))
        self._say("")
        is_new = self.declaration != self._now
        self.accept_button.setEnabled(is_new and (not free or bool(names)))
        self.accept_button.setToolTip("" if is_new else "It is so already")

    def _say(self, fault: str) -> None:
        self.fault.setText(fault.replace("`", ""))
        self.fault.setVisible(bool(fault))


def _list(name: str, object_name: str) -> QListView:
    view = QListView()
    view.setItemDelegate(Delegate(view))
    view.setObjectName(object_name)
    view.setAccessibleName(name)
    view.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
    view.setTextElideMode(Qt.TextElideMode.ElideRight)
    view.ensurePolished()  # rows measured before the style sheet is known would keep a wrong height
    return view


def _text(object_name: str, kind: str) -> QLabel:
    label = Label()
    label.setObjectName(object_name)
    label.setProperty("kind", kind)
    label.setWordWrap(True)
    return label


def _label(text: str, buddy: QWidget) -> QLabel:
    label = Label(text)
    label.setBuddy(buddy)
    return label


def _warning(reason: str) -> QHBoxLayout:
    row = QHBoxLayout()
    row.setSpacing(current_look().tokens.space_2)
    row.addWidget(IconLabel("triangle-alert", "ask"), 0, Qt.AlignmentFlag.AlignTop)
    words = _text("declare.open", "")
    words.setText(reason.replace("`", ""))
    row.addWidget(words, 1)
    return row
