"""Every error and warning with its place; a click goes there. Of a policy that failed to open: what to do about it."""

from PySide6.QtCore import QModelIndex, Qt
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHeaderView,
    QLabel,
    QPushButton,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from gatewright_gui.models.problems import CODE, LINE, MESSAGE, PLACE, ProblemModel
from gatewright_gui.pages.page import Page, PageContext
from gatewright_gui.pages.problems.problem_delegate import ProblemDelegate
from gatewright_gui.qt.look import current_look, tie_icon
from gatewright_gui.qt.widget.empty_state import EmptyState
from gatewright_gui.qt.widget.item_view import TableView
from gatewright_gui.qt.widget.message_bar import MessageBar
from gatewright_gui.qt.widget.section_header import SectionHeader
from gatewright_gui.session.verbs import file as verbs


class ProblemsPage(Page):
    """A table, and Reload at the right."""

    def __init__(self, context: PageContext) -> None:
        super().__init__()
        self.setObjectName("problems")
        self._context = context
        self.model = ProblemModel(self)
        self.header = SectionHeader("Problems")
        self.reload = QPushButton("Reload")
        self.reload.setObjectName("problems.reload")
        self.reload.setToolTip("Read the policy file again (Ctrl+R)")
        tie_icon(self.reload, "refresh-cw")
        self.bar = MessageBar()
        self.bar.setObjectName("problems.bar")
        self.view = self._make_view()
        self.whole = self._make_whole()
        self.empty = EmptyState("shield-check", "No problems", "The policy has no errors and no warnings.")
        self._lay_out()
        document = context.document
        document.problems_changed.connect(self._refresh)
        document.opened.connect(self._refresh)
        self.reload.clicked.connect(self._reload)
        self.bar.action_requested.connect(self._trust)
        self._refresh()

    def _make_view(self) -> TableView:
        view = TableView("Problems")
        view.setObjectName("problems.list")
        view.setModel(self.model)
        view.setItemDelegate(ProblemDelegate(view))
        view.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        view.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        header = view.horizontalHeader()
        header.setStretchLastSection(False)
        header.setSectionResizeMode(MESSAGE, QHeaderView.ResizeMode.Stretch)
        view.setColumnWidth(PLACE, 150)
        view.setColumnWidth(CODE, 170)
        view.clicked.connect(self._go)
        view.activated.connect(self._go)
        return view

    def _make_whole(self) -> QLabel:
        """The current problem's sentence, however long it is."""
        label = QLabel()
        label.setObjectName("problems.whole")
        label.setAccessibleName("The chosen problem")
        label.setWordWrap(True)
        label.setTextFormat(Qt.TextFormat.PlainText)
        label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        label.setMargin(current_look().tokens.space_2)
        self.view.selectionModel().currentChanged.connect(self._tell_whole)
        self.model.modelReset.connect(self._tell_whole)
        return label

    def _tell_whole(self, _now: object = None, _before: object = None) -> None:
        index = self.view.currentIndex().siblingAtColumn(MESSAGE)
        self.whole.setText(str(index.data() or ""))
        self.whole.setVisible(index.isValid())

    def _lay_out(self) -> None:
        self.header.add_control(self.reload)
        self._stack = QStackedWidget()
        self._stack.addWidget(self.view)
        self._stack.addWidget(self.empty)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.header)
        column.addWidget(self.bar)
        column.addWidget(self._stack, 1)
        column.addWidget(self.whole)

    def _refresh(self, _why: object = None) -> None:
        document = self._context.document
        self.model.set_problems(document.problems)
        errors, warnings = self.model.counts
        self.header.set_note(_count_words(errors, warnings))
        self._stack.setCurrentWidget(self.view if errors or warnings else self.empty)
        if self.model.rowCount() and not self.view.currentIndex().isValid():
            self.view.setCurrentIndex(self.model.index(0, MESSAGE))
        self._tell_whole()
        self.reload.setEnabled(document.path is not None)
        if document.failure is None:
            self.bar.hide()
        elif document.failure.needs_only_trust:
            text = "This policy reaches outside its folder. Read the lines below; trust it if that is what you want."
            self.bar.show_message("warning", text, action="Trust and open")
        else:
            text = "This policy has errors, so nothing of it is enforced. Mend the file in an editor, then reload."
            self.bar.show_message("error", text)
        self.bar.close_button.hide()

    def main_view(self) -> QWidget:
        """The table; without a problem the way to look again."""
        return self.view if self._stack.currentWidget() is self.view else self.reload

    def _go(self, index: QModelIndex) -> None:
        line = index.data(LINE)
        if isinstance(line, int):
            self._context.navigator.go_to_line(line)

    def _reload(self) -> None:
        self._context.tasks.start(verbs.reload(self._context.document), "reload")

    def _trust(self) -> None:
        self._context.tasks.start(verbs.reload(self._context.document, trust=True), "reload")


def _count_words(errors: int, warnings: int) -> str:
    words = [
        f"{number} {word}{'' if number == 1 else 's'}"
        for number, word in ((errors, "error"), (warnings, "warning"))
        if number
    ]
    return ", ".join(words)
