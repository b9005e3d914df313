"""The changes of a block, the newest first: who, when, what it changed, the value then, and the way back to it."""

from datetime import datetime

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QPushButton, QWidget

from gatewright.workspace.api import Step
from gatewright_gui.pages.access.memory.block_list import ago_words
from gatewright_gui.qt.language import mark, tr
from gatewright_gui.qt.layout import column_of, holding, named, row_of, stretch
from gatewright_gui.qt.look import tie_icon
from gatewright_gui.qt.table_model import RowModel
from gatewright_gui.qt.widget.button import Segmented
from gatewright_gui.qt.widget.code_view import CodeView
from gatewright_gui.qt.widget.item_view import TableView
from gatewright_gui.qt.widget.label import ElidedLabel
from gatewright_gui.qt.widget.splitter import SizeStore, Splitter
from gatewright_gui.session.calls import change_words
from gatewright_gui.session.memory import author_words

NUMBER, WHEN, WHO, WHAT = range(4)


class StepModel(RowModel[Step]):
    """The steps of one block, the newest first."""

    headers = (mark("Step"), mark("Time"), mark("Who"), mark("What"))

    def text(self, row: Step, column: int) -> str:
        """Cells."""
        what = row.kind.replace("_", " ")
        if row.target is not None:
            what = tr("{kind} of step {number}", kind=what, number=row.target)
        return (f"{row.number:,}", ago_words(row.at_s), author_words(row.author), what)[column]

    def tip(self, row: Step, _column: int) -> str:
        """With the whole time."""
        kind, at = row.kind.replace("_", " "), datetime.fromtimestamp(row.at_s).astimezone().isoformat(" ", "seconds")
        who = row.author or tr("nobody said who")
        return tr("step {number}, {kind}, by {author}, {time}", number=row.number, kind=kind, author=who, time=at)


class HistoryPane(QWidget):
    """Asks for what it shows of a step, and is given it by `show_text`."""

    step_requested = Signal(object, object)
    """Step; `difference` or `then`."""
    bring_back_requested = Signal(object)
    """Step."""

    def __init__(self, sizes: SizeStore) -> None:
        super().__init__()
        self.model = StepModel()
        self.view = named(TableView(tr("Changes of the block")), "memory.steps")
        self.view.show_model(self.model, {NUMBER: 60, WHEN: 110, WHAT: 150}, wide=WHO)
        self.part = named(Segmented(tr("What to show of the change")), "memory.step_part")
        self.part.add_segment("difference", tr("Difference"), tooltip=tr("What the step changed"))
        self.part.add_segment("then", tr("Value then"), tooltip=tr("The whole value as it was after the step"))
        self.note = named(ElidedLabel(role="muted"), "memory.step_note")
        self.back_button = named(
            QPushButton(tr("Bring this back")),
            "memory.bring_back",
            tip=tr("Make the value as it was after this step the present one, as a new edit"),
        )
        tie_icon(self.back_button, "rotate-ccw")
        self.code = named(CodeView(tr("The change")), "memory.step_code")
        bar = row_of(self.part, stretch(self.note), self.back_button, space=2, margins=(2, 1))
        splitter = Splitter(Qt.Orientation.Vertical, "memory.history", sizes)
        column_of(stretch(splitter), into=self)
        for pane in (self.view, holding(column_of(bar, stretch(self.code)))):
            splitter.addWidget(pane)
        splitter.restore((200, 260))
        self.view.selectionModel().currentChanged.connect(self._ask)
        self.part.current_changed.connect(self._ask)
        self.back_button.clicked.connect(self._bring_back)

    @property
    def step(self) -> Step | None:
        """The chosen step."""
        index = self.view.currentIndex()
        return self.model.row_at(index.row())

    def show_steps(self, steps: tuple[Step, ...], *, afresh: bool) -> None:
        """Show the steps of a block; ``afresh``: of another one."""
        follows = afresh or self.view.currentIndex().row() <= 0  # who looks at the newest change wants the next one
        self.model.set_rows(reversed(steps))
        if self.model.count() and (follows or not self.view.currentIndex().isValid()):
            self.view.setCurrentIndex(self.model.index(0, NUMBER))
        self._ask()

    def show_text(self, step: Step, part: str, text: str) -> None:
        """Show what was asked for of a step; drop it when another one is chosen by now."""
        if step != self.step or part != self.part.current:
            return
        if part == "then":
            self.code.set_plain(text)
        elif text:
            words, diff = change_words(text, "")
            self.code.set_diff(diff)
            self.note.set_text(f"{_step_words(step)}: {words.partition(' · ')[2]}")
        else:
            self.code.set_plain(tr("The content stayed as it was.") + "\n")

    def show_problem(self, step: Step, problem: str) -> None:
        """Why it cannot be shown."""
        if step == self.step:
            self.code.set_plain(f"{problem}\n")

    def _ask(self, _now: object = None, _before: object = None) -> None:
        step = self.step
        self.back_button.setEnabled(step is not None and self.view.currentIndex().row() > 0)
        if step is not None:
            self.note.set_text(_step_words(step))
            self.step_requested.emit(step, self.part.current)

    def _bring_back(self) -> None:
        if self.step is not None:
            self.bring_back_requested.emit(self.step)


def _step_words(step: Step) -> str:
    return tr("step {number:,} by {author}", number=step.number, author=author_words(step.author))
