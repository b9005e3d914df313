"""The table of problems: their words, where each stands and what it is about."""

from collections.abc import Callable, Sequence
from pathlib import PurePath
from typing import Any

from PySide6.QtCore import QModelIndex, QObject, QPersistentModelIndex, QRect, Qt, Signal
from PySide6.QtGui import QColor, QKeyEvent, QPainter
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QStyle, QStyleOptionViewItem, QWidget

from gatewright.workspace.api import Problem
from gatewright_gui.qt.language import mark, tr
from gatewright_gui.qt.look import current_look
from gatewright_gui.qt.prose import paint_prose
from gatewright_gui.qt.table_model import FlatModel
from gatewright_gui.qt.widget.delegate import Delegate
from gatewright_gui.qt.widget.item_view import TableView
from gatewright_gui.session.causes import causes_of
from gatewright_gui.session.ruleplace import AgentPlace, LevelPlace, LinePlace, PolicyPlace, RulePlace, ToolPlace

Index = QModelIndex | QPersistentModelIndex
IS_ERROR = Qt.ItemDataRole.UserRole + 1
LINE = Qt.ItemDataRole.UserRole + 2
PROBLEM = Qt.ItemDataRole.UserRole + 3
_SEVERITIES = (mark("warning"), mark("error"))
HEADINGS = (mark("Problem"), mark("About"), mark("Line"), mark("Code"))
MESSAGE, ABOUT, PLACE, CODE = range(4)
PlaceOf = Callable[[Problem], RulePlace | None]


class ProblemModel(FlatModel):
    """One row per problem."""

    headers = HEADINGS

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._problems: tuple[Problem, ...] = ()
        self._about: tuple[str, ...] = ()

    def set_problems(self, problems: Sequence[Problem], place_of: PlaceOf = lambda _: None) -> None:
        """Show these; `place_of`: where each can be looked at."""
        causes = causes_of(problems)
        new = tuple(sorted(problems, key=lambda problem: (problem not in causes, *_order(problem))))
        about = tuple(place_words(place_of(problem)) for problem in new)
        if (new, about) == (self._problems, self._about):
            return
        self.beginResetModel()
        self._problems, self._about = new, about
        self.endResetModel()

    def find(self, problem: object) -> int | None:
        """The row of a problem."""
        return next((row for row, held in enumerate(self._problems) if held == problem), None)

    @property
    def counts(self) -> tuple[int, int]:
        """Errors and warnings."""
        errors = sum(problem.is_error for problem in self._problems)
        return errors, len(self._problems) - errors

    @property
    def has_places(self) -> bool:
        """Whether any can be looked at elsewhere than in the file."""
        return any(self._about)

    def count(self) -> int:
        """How many problems."""
        return len(self._problems)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Cells, and the roles of a row."""
        if not index.isValid() or index.row() >= len(self._problems):
            return None
        problem = self._problems[index.row()]
        match role:
            case Qt.ItemDataRole.DisplayRole:
                about = self._about[index.row()]
                return (problem_words(problem), about, _where(problem), problem.code)[index.column()]
            case Qt.ItemDataRole.ToolTipRole:
                return _tip(problem, self._about[index.row()], index.column())
            case Qt.ItemDataRole.AccessibleTextRole if index.column() == MESSAGE:
                return f"{tr(_SEVERITIES[problem.is_error])}: {problem_words(problem)}"
            case _ if role == IS_ERROR:
                return problem.is_error
            case _ if role == PROBLEM:
                return problem
            case _ if role == LINE:
                return problem.place.line if problem.place else None
            case _:
                return None


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


def _tip(problem: Problem, about: str, column: int) -> str:
    if column == ABOUT and about:
        return tr("Show {place} (Enter)", place=about)
    if column == PLACE and problem.place is not None:
        return tr("Show line {number} of the policy file (Ctrl+Enter)", number=problem.place.line)
    return str(problem)


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
            icon, role = ("circle-alert", "deny") if index.data(IS_ERROR) else ("triangle-alert", "ask")
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
        self.setModel(model)
        self.setItemDelegate(ProblemDelegate(self))
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        header = self.horizontalHeader()
        header.setStretchLastSection(False)
        header.setSectionResizeMode(MESSAGE, QHeaderView.ResizeMode.Stretch)
        for column, width in ((ABOUT, 180), (PLACE, 130), (CODE, 150)):
            self.setColumnWidth(column, width)

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802
        """The second way."""
        if event.key() in _ENTER and event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            self.line_requested.emit()
        else:
            super().keyPressEvent(event)
