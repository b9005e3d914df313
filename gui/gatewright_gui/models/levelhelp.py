"""What each level lets an operation do, as a table: read, append, overwrite, delete. It does not know paths."""

from typing import Any

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QObject, QPersistentModelIndex, Qt

from gatewright.policy.permission import Action, Permission, verdict_for
from gatewright_gui.models.level import LEVELS
from gatewright_gui.qt.widget.chip import VERDICT_WORDS

Index = QModelIndex | QPersistentModelIndex
_LEVELS, _ACTIONS = tuple(LEVELS), tuple(Action)
MEANING = len(_ACTIONS) + 1
HEADERS = ("Level", *(str(action) for action in _ACTIONS), "In words")
LEVEL_ROLE = Qt.ItemDataRole.UserRole + 1
"""Permission of a row."""
VERDICT = Qt.ItemDataRole.UserRole + 2
"""Verdict of a cell; None for a cell that holds none."""


class LevelHelpModel(QAbstractTableModel):
    """One row for each level, the strictest first."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: N802, B008
        """Levels."""
        return 0 if parent.isValid() else len(_LEVELS)

    def columnCount(self, parent: Index = QModelIndex()) -> int:  # noqa: N802, B008
        """The level, what it says to each action, what that means."""
        return 0 if parent.isValid() else len(HEADERS)

    def headerData(  # noqa: N802
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> Any:
        """Names of the columns."""
        is_name = orientation == Qt.Orientation.Horizontal and role == Qt.ItemDataRole.DisplayRole
        return HEADERS[section].capitalize() if is_name else None

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Words, and what is drawn from them."""
        if not index.isValid():
            return None
        level, column = _LEVELS[index.row()], index.column()
        match role:
            case Qt.ItemDataRole.DisplayRole | Qt.ItemDataRole.ToolTipRole:
                return _text(level, column)
            case Qt.ItemDataRole.AccessibleTextRole:
                return f"{level}, {HEADERS[column]}: {_text(level, column)}"
            case _ if role == LEVEL_ROLE:
                return level
            case _ if role == VERDICT and 0 < column < MEANING:
                return verdict_for(level, _ACTIONS[column - 1])
            case _:
                return None


def _text(level: Permission, column: int) -> str:
    if column == 0:
        return str(level)
    if column == MEANING:
        return LEVELS[level].explanation
    return VERDICT_WORDS[verdict_for(level, _ACTIONS[column - 1]).value]
