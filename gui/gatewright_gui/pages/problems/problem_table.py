"""The table of problems: their words, where each stands and what it is about."""

from collections.abc import Callable, Sequence
from pathlib import PurePath

from PySide6.QtCore import QRect, Qt, Signal
from PySide6.QtGui import QColor, QKeyEvent, QPainter
from PySide6.QtWidgets import QStyle, QStyleOptionViewItem, QWidget

from gatewright.workspace.api import Problem, frozen
from gatewright_gui.qt.language import mark, tr
from gatewright_gui.qt.look import current_look
from gatewright_gui.qt.prose import paint_prose
from gatewright_gui.qt.table_model import ROW, Index, RowModel
from gatewright_gui.qt.widget.delegate import Delegate
from gatewright_gui.qt.widget.item_view import TableView
from gatewright_gui.session.causes import causes_of
from gatewright_gui.session.ruleplace import AgentPlace, LevelPlace, LinePlace, PolicyPlace, RulePlace, ToolPlace

MESSAGE, ABOUT, PLACE, CODE = range(4)
PlaceOf = Callable[[Problem], RulePlace | None]


@frozen
class ProblemRow:
    """A problem, and what it is about, in words."""

    problem: Problem
    about: str


class ProblemModel(RowModel[ProblemRow]):
    """One row per problem."""

    headers = (mark("Problem"), mark("About"), mark("Line"), mark("Code"))

    def set_problems(self, problems: Sequence[Problem], place_of: PlaceOf = lambda _: None) -> None:
        """Show these; `place_of`: where each can be looked at."""
        causes = causes_of(problems)
        new = sorted(problems, key=lambda problem: (problem not in causes, *_order(problem)))
        self.set_rows(ProblemRow(problem, place_words(place_of(problem))) for problem in new)

    def key(self, row: ProblemRow) -> object:
        """The problem."""
        return row.problem

    @property
    def counts(self) -> tuple[int, int]:
        """Errors and warnings."""
        errors = sum(row.problem.is_error for row in self.rows)
        return errors, len(self.rows) - errors

    def text(self, row: ProblemRow, column: int) -> str:
        """Cells."""
        problem = row.problem
        return (problem_words(problem), row.about, _where(problem), problem.code)[column]

    def tip(self, row: ProblemRow, column: int) -> str:
        """Where a click leads, else all of the problem."""
        if column == ABOUT and row.about:
            return tr("Show {place} (Enter)", place=row.about)
        if column == PLACE and row.problem.place is not None:
            return tr("Show line {number} of the policy file (Ctrl+Enter)", number=row.problem.place.line)
        return str(row.problem)

    def spoken(self, row: ProblemRow, column: int) -> str:
        """With how bad it is."""
        severity = tr("error") if row.problem.is_error else tr("warning")
        return "" if column != MESSAGE else f"{severity}: {problem_words(row.problem)}"


def place_words(place: RulePlace | None) -> str:
    """A place in the window as a trail; empty for a line of the file."""
    match place:
        case ToolPlace(agent_id, tool, operation):
            return " > ".join(filter(None, (agent_id, tool, operation)))
        case AgentPlace(agent_id):
            return agent_id
        case LevelPlace(source_id, index):
            level = None if index is None else tr("level {number}", number=index + 1)
            return f"{source_id} > {level}" if level is not None else source_id
        case PolicyPlace(index):
            return tr("policy rule {name}", name=index + 1)
        case LinePlace() | None:
            return ""


def _order(problem: Problem) -> tuple[bool, str, int, int]:
    place = problem.place
    return (not problem.is_error, place.file, place.line, place.column) if place else (not problem.is_error, "", 0, 0)


def problem_words(problem: Problem) -> str:
    """The sentence of a problem, with the name that was meant perhaps."""
    if not problem.near_miss:
        return problem.message
    return tr("{problem} (did you mean `{name}`?)", problem=problem.message, name=problem.near_miss)


def _where(problem: Problem) -> str:
    place = problem.place
    return f"{PurePath(place.file).name}:{place.line}:{place.column}" if place else ""


class ProblemDelegate(Delegate):
    """Icon and words; what one can go to in the colour of links."""

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        """Ground, icon, words."""
        look = current_look()
        rect: QRect = getattr(option, "rect")  # noqa: B009
        widget: QWidget | None = getattr(option, "widget", None)
        if widget is not None:
            widget.style().drawPrimitive(QStyle.PrimitiveElement.PE_PanelItemViewItem, option, painter, widget)
        painter.save()
        left = rect.left() + 8
        if index.column() == MESSAGE:
            icon, role = ("circle-alert", "deny") if index.data(ROW).problem.is_error else ("triangle-alert", "ask")
            look.icon(icon, role).paint(painter, QRect(left, rect.top() + (rect.height() - 16) // 2, 16, 16))
            left += 24
        colours = {MESSAGE: look.palette.text, ABOUT: look.palette.accent.fg, PLACE: look.palette.accent.fg}
        painter.setPen(QColor(colours.get(index.column(), look.palette.muted)))
        words = QRect(left, rect.top(), rect.right() - left - 4, rect.height())
        paint_prose(painter, words, str(index.data() or ""))
        painter.restore()


_ENTER = (Qt.Key.Key_Return, Qt.Key.Key_Enter)


class ProblemView(TableView):
    """Enter goes to what the problem is about, Ctrl+Enter to its line; clicked or activated, a row is chosen."""

    line_requested = Signal()

    def __init__(self, spoken: str, model: ProblemModel) -> None:
        super().__init__(spoken)
        self.setItemDelegate(ProblemDelegate(self))
        self.show_model(model, {ABOUT: 180, PLACE: 130, CODE: 150}, wide=MESSAGE)

    @property
    def problem(self) -> Problem | None:
        """The current one."""
        row = self.currentIndex().data(ROW)
        return row.problem if isinstance(row, ProblemRow) else None

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802
        """The second way."""
        if event.key() in _ENTER and event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            self.line_requested.emit()
        else:
            super().keyPressEvent(event)
