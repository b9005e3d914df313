"""Problems of a policy as a table: the reasons of others first, then errors, then by place.

It does not know how to get to a place.
"""

from collections.abc import Sequence
from pathlib import PurePath
from typing import Any

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QObject, QPersistentModelIndex, Qt

from gatewright.base.problem import Problem
from gatewright_gui.session.causes import causes_of

Index = QModelIndex | QPersistentModelIndex
IS_ERROR = Qt.ItemDataRole.UserRole + 1
LINE = Qt.ItemDataRole.UserRole + 2
HEADINGS = ("Problem", "Place", "Code")
MESSAGE, PLACE, CODE = range(3)


class ProblemModel(QAbstractTableModel):
    """One row per problem."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._problems: tuple[Problem, ...] = ()

    def set_problems(self, problems: Sequence[Problem]) -> None:
        """Show these."""
        causes = causes_of(problems)
        new = tuple(sorted(problems, key=lambda problem: (problem not in causes, *_order(problem))))
        if new == self._problems:
            return
        self.beginResetModel()
        self._problems = new
        self.endResetModel()

    @property
    def counts(self) -> tuple[int, int]:
        """Errors and warnings."""
        errors = sum(problem.is_error for problem in self._problems)
        return errors, len(self._problems) - errors

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: N802, B008
        """How many problems."""
        return 0 if parent.isValid() else len(self._problems)

    def columnCount(self, parent: Index = QModelIndex()) -> int:  # noqa: N802, B008
        """Message, place, code."""
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
                return (_words(problem), _where(problem), problem.code)[index.column()]
            case Qt.ItemDataRole.ToolTipRole:
                return str(problem)
            case Qt.ItemDataRole.AccessibleTextRole if index.column() == MESSAGE:
                return f"{problem.severity}: {_words(problem)}"
            case _ if role == IS_ERROR:
                return problem.is_error
            case _ if role == LINE:
                return problem.place.line if problem.place else None
            case _:
                return None


def _order(problem: Problem) -> tuple[bool, str, int, int]:
    place = problem.place
    return (not problem.is_error, place.file, place.line, place.column) if place else (not problem.is_error, "", 0, 0)


def _words(problem: Problem) -> str:
    hint = f" (did you mean `{problem.near_miss}`?)" if problem.near_miss else ""
    return f"{problem.message}{hint}"


def _where(problem: Problem) -> str:
    place = problem.place
    return f"{PurePath(place.file).name}:{place.line}:{place.column}" if place else ""
