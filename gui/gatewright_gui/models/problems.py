"""Problems of a policy as a table: the reasons of others first, then errors, then by place.

Each with what it is about, as the window calls it, and its line. It does not know how to get to either.
"""

from collections.abc import Callable, Sequence
from pathlib import PurePath
from typing import Any

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QObject, QPersistentModelIndex, Qt

from gatewright.base.problem import Problem
from gatewright_gui.session.causes import causes_of
from gatewright_gui.session.ruleplace import AgentPlace, LevelPlace, LinePlace, RulePlace, ToolPlace

Index = QModelIndex | QPersistentModelIndex
IS_ERROR = Qt.ItemDataRole.UserRole + 1
LINE = Qt.ItemDataRole.UserRole + 2
PROBLEM = Qt.ItemDataRole.UserRole + 3
HEADINGS = ("Problem", "About", "Line", "Code")
MESSAGE, ABOUT, PLACE, CODE = range(4)
PlaceOf = Callable[[Problem], RulePlace | None]


class ProblemModel(QAbstractTableModel):
    """One row per problem."""

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

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: N802, B008
        """How many problems."""
        return 0 if parent.isValid() else len(self._problems)

    def columnCount(self, parent: Index = QModelIndex()) -> int:  # noqa: N802, B008
        """Message, what it is about, line, code."""
        return 0 if parent.isValid() else len(HEADINGS)

    def headerData(  # noqa: N802
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> Any:
        """Words over the columns."""
        fits = orientation == Qt.Orientation.Horizontal and role == Qt.ItemDataRole.DisplayRole
        return HEADINGS[section] if fits and 0 <= section < len(HEADINGS) else None

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Cells, and the roles of a row."""
        if not index.isValid() or index.row() >= len(self._problems):
            return None
        problem = self._problems[index.row()]
        match role:
            case Qt.ItemDataRole.DisplayRole:
                about = self._about[index.row()]
                return (_words(problem), about, _where(problem), problem.code)[index.column()]
            case Qt.ItemDataRole.ToolTipRole:
                return _tip(problem, self._about[index.row()], index.column())
            case Qt.ItemDataRole.AccessibleTextRole if index.column() == MESSAGE:
                return f"{problem.severity}: {_words(problem)}"
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
            return f"{source_id} > level {index + 1}" if index is not None else source_id
        case LinePlace() | None:
            return ""


def _tip(problem: Problem, about: str, column: int) -> str:
    if column == ABOUT and about:
        return f"Show {about} (Enter)"
    if column == PLACE and problem.place is not None:
        return f"Show line {problem.place.line} of the policy file (Ctrl+Enter)"
    return str(problem)


def _order(problem: Problem) -> tuple[bool, str, int, int]:
    place = problem.place
    return (not problem.is_error, place.file, place.line, place.column) if place else (not problem.is_error, "", 0, 0)


def _words(problem: Problem) -> str:
    hint = f" (did you mean `{problem.near_miss}`?)" if problem.near_miss else ""
    return f"{problem.message}{hint}"


def _where(problem: Problem) -> str:
    place = problem.place
    return f"{PurePath(place.file).name}:{place.line}:{place.column}" if place else ""
