"""What the operations of a stranger's tool are: readings of its schema, names for a free text, what follows."""

from PySide6.QtCore import QEvent, QModelIndex, QObject, Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHBoxLayout,
    QLineEdit,
    QListView,
    QPushButton,
    QStackedWidget,
    QWidget,
)

from gatewright.workspace.api import Survey, ToolFacts
from gatewright_gui.pages.access.tools.declaration import (
    Choice,
    ChoiceModel,
    OperationListModel,
    choices_of,
    row_in_force,
)
from gatewright_gui.qt.dialog import CheckedDialog
from gatewright_gui.qt.language import mark, tr
from gatewright_gui.qt.layout import aligned, named, row_of, stretch
from gatewright_gui.qt.look import current_look
from gatewright_gui.qt.table_model import ROW
from gatewright_gui.qt.widget.item_view import Delegate
from gatewright_gui.qt.widget.label import ElidedLabel, IconLabel, Label
from gatewright_gui.session.document import Document
from gatewright_gui.session.verbs import operations as verbs
from gatewright_gui.session.verbs.operations import Declaration

SIZE = (620, 540)
MAX_CHOICES_SEEN = 6
NO_LIST = mark("No operations: one box covers the whole tool.")
NAME_FIRST = mark("tick or add the operations that the tool takes; every other value is refused then")


class DeclarationDialog(CheckedDialog):
    """Says something of a stranger's tool: what would be refused is said in it, and it stays."""

    def __init__(self, parent: QWidget | None, name: str, title: str, document: Document, facts: ToolFacts) -> None:
        super().__init__(parent, name, title, tr("Declare"))
        self._document, self._facts = document, facts

    def refusal(self) -> str:
        """Why what is chosen cannot be written; empty when it can."""
        raise NotImplementedError

    def accept(self) -> None:
        """Close, unless it would be refused: then say why and stay."""
        if not self.accept_button.isEnabled():
            return
        fault = self.refusal()
        self.say(fault)
        if not fault:
            super().accept()

    def heading_row(self) -> QHBoxLayout:
        """The title, and where the tool comes from."""
        origin = ElidedLabel(tr("from {catalog}", catalog=self._facts.origin), role="muted")
        return row_of(self.heading, stretch(), origin)

    def allow(self, *, is_new: bool, is_whole: bool = True) -> None:
        """Say whether there is something to write."""
        self.accept_button.setEnabled(is_new and is_whole)
        self.accept_button.setToolTip("" if is_new else tr("It is so already"))


def declaration_list(name: str, object_name: str) -> QListView:
    """A list whose rows are chosen by the keys."""
    view = named(QListView(), object_name, spoken=name)
    view.setItemDelegate(Delegate(view))
    view.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
    view.setTextElideMode(Qt.TextElideMode.ElideRight)
    view.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)  # it would lie over the last row
    view.ensurePolished()  # rows measured before the style sheet is known would keep a wrong height
    return view


class DeclareDialog(DeclarationDialog):
    """After it was accepted `declaration` holds what was chosen."""

    def __init__(
        self, parent: QWidget | None, document: Document, facts: ToolFacts, survey: Survey, *, wants_free: bool
    ) -> None:
        super().__init__(parent, "declare", tr("Operations of {tool}", tool=facts.name), document, facts)
        self._now = now = verbs.declaration_of(document.policy, facts.name, facts.major)
        self.choices = ChoiceModel(self, choices_of(survey, now))
        self.operations = OperationListModel(self)
        self.choice_view = declaration_list(tr("What selects the operation"), "declare.choices")
        self.choice_view.setModel(self.choices)
        self.operation_view = declaration_list(tr("Operations"), "declare.operations")
        self.operation_view.setModel(self.operations)
        self.name = named(QLineEdit(), "declare.name", spoken=tr("Another operation"))
        self.add_button = named(QPushButton(tr("Add")), "declare.add")
        self.all_button = named(QPushButton(tr("Tick all")), "declare.all", kind="link")
        self.none = named(Label(tr(NO_LIST), wraps=True), "declare.none", kind="muted")
        self.effect = named(Label(wraps=True), "declare.effect", kind="muted")
        self._place = QStackedWidget()
        self._lay_out(survey)
        self._connect()
        row = row_in_force(self.choices.rows, now, wants_free=wants_free)
        self.choice_view.setCurrentIndex(self.choices.index(row, 0))
        self.choice_view.setFocus()
        self.resize(*SIZE)

    @property
    def choice(self) -> Choice:
        """The current choice."""
        found = self.choice_view.currentIndex().data(ROW)
        return found if isinstance(found, Choice) else self.choices.rows[0]

    @property
    def declaration(self) -> Declaration:
        """The declaration that would be written."""
        return self.choice.declaration(self.operations.names)

    # layout

    def _lay_out(self, survey: Survey) -> None:
        for button in (self.all_button, self.add_button):
            button.setAutoDefault(False)
        self.name.setPlaceholderText(tr("another operation, exactly as the tool takes it"))
        self.name.setMaxLength(200)
        self.name.installEventFilter(self)
        self.none.setAlignment(Qt.AlignmentFlag.AlignTop | Qt.AlignmentFlag.AlignLeft)
        self._place.addWidget(self.operation_view)
        self._place.addWidget(self.none)
        rows = min(self.choices.rowCount(), MAX_CHOICES_SEEN)
        self.choice_view.setFixedHeight(rows * current_look().tokens.row_height + 4)
        warnings = [
            row_of(
                aligned(IconLabel("triangle-alert", "ask"), Qt.AlignmentFlag.AlignTop),
                stretch(named(Label(end.reason.replace("`", ""), wraps=True), "declare.open")),
                space=2,
            )
            for end in survey.open_ends
        ]
        self.lay_out(
            self.heading_row(),
            Label(tr("&What selects the operation"), buddy=self.choice_view),
            self.choice_view,
            *warnings,
            row_of(Label(tr("&Operations"), buddy=self.operation_view), stretch(), self.all_button),
            stretch(self._place),
            row_of(stretch(self.name), self.add_button, space=2),
            self.effect,
            self.fault,
        )

    def _connect(self) -> None:
        self.choice_view.selectionModel().currentChanged.connect(self._choose)
        self.operations.changed.connect(self._show)
        self.name.textChanged.connect(self._name_changed)
        self.add_button.clicked.connect(self._add)
        self.all_button.clicked.connect(self.operations.turn_all)
        self.operation_view.installEventFilter(self)

    # what is done in it

    def refusal(self) -> str:
        """Why the declaration cannot be written."""
        return verbs.declare_refusal(self._document, self._facts.name, self._facts.major, self.declaration)

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
        self.say(fault)
        if not fault:
            self.name.clear()
            self.operation_view.scrollToBottom()

    def _name_changed(self, text: str) -> None:
        self.add_button.setEnabled(bool(text) and self.operations.is_free)

    def _show(self) -> None:
        free, names = self.operations.is_free, self.operations.names
        self._place.setCurrentWidget(self.operation_view if free or self.operations.rowCount() else self.none)
        self.name.setVisible(free)
        self.add_button.setVisible(free)
        self._name_changed(self.name.text())
        self.all_button.setVisible(free and self.operations.rowCount() > 0)
        self.all_button.setText(tr("Tick none") if len(names) == self.operations.rowCount() else tr("Tick all"))
        said = verbs.consequences(self._document.policy, self._facts, names) if names or not free else (tr(NAME_FIRST),)
        self.effect.setText(". ".join(said).replace("`", ""))
        self.say("")
        self.allow(is_new=self.declaration != self._now, is_whole=not free or bool(names))
