"""The levels explained: what each lets an agent do, in a window that goes away by itself."""

from typing import Any

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QObject, QPoint, Qt
from PySide6.QtGui import QPainter
from PySide6.QtWidgets import (
    QAbstractItemView,
    QDialog,
    QHeaderView,
    QPushButton,
    QStyleOptionViewItem,
    QVBoxLayout,
    QWidget,
)

from gatewright.policy.permission import Action, Permission, verdict_for
from gatewright.policy.verdict import Verdict
from gatewright_gui.pages.files.level import LEVELS, Index, draw_chip, draw_ground
from gatewright_gui.qt.look import current_look
from gatewright_gui.qt.widget import TableView
from gatewright_gui.qt.widget.chip import VERDICT_ICONS, VERDICT_WORDS
from gatewright_gui.qt.widget.delegate import Delegate
from gatewright_gui.qt.widget.label import Label

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


_WIDTH = 880


_ASK = (
    "Ask first: the call waits until a person answers it; of a call that you try in the Console that is you."
    " partner and human do the same: they are two names for one level, as policies of Pattern have them."
)


_WHERE = (
    "Levels hold in the folders of sources: for the file and block tools, and for any other tool where an argument is a"
    " path into such a folder. What a program does beside its arguments no level sees. In roots that lie in no source"
    " there are no levels: FsRead and FsWrite of the agents decide there."
)


_APPEND = (
    "Append is also making a new file, and saving one that only grew. Delete is deleting. Whatever else changes a file"
    " is an overwrite."
)


_ORDER = "The first rule that matches a path gives its level; what no rule matches gets the default."


class _Cells(Delegate):
    """Chips for levels and verdicts: a word and an icon, never colour alone."""

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        """A chip, or words."""
        verdict = index.data(VERDICT)
        rect = option.rect  # pyright: ignore[reportAttributeAccessIssue]
        if verdict is not None:
            draw_ground(self, painter, option, index)
            name = Verdict(verdict).value
            draw_chip(painter, rect, VERDICT_WORDS[name], VERDICT_ICONS[name], name)
        elif index.column() == 0:
            draw_ground(self, painter, option, index)
            look = LEVELS[index.data(LEVEL_ROLE)]
            draw_chip(painter, rect, str(index.data()), look.icon, look.role)
        else:
            super().paint(painter, option, index)


class LevelHelp(QDialog):
    """Escape, Return, or a click elsewhere closes it."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent, Qt.WindowType.Popup)
        tokens = current_look().tokens
        self.setObjectName("files.levelhelp")
        self.setWindowTitle("What the levels mean")
        self.setAccessibleName("What the levels mean")
        self.table = TableView("What each level lets an agent do")
        self.table.setObjectName("files.levelhelp.table")
        self.table.setModel(LevelHelpModel(self.table))
        self.table.setItemDelegate(_Cells(self.table))
        self.table.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.table.setTabKeyNavigation(False)
        self.table.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.table.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        header = self.table.horizontalHeader()
        header.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        self.table.setColumnWidth(0, 112)
        for column in range(1, MEANING):
            self.table.setColumnWidth(column, 84)
        self.table.setFixedHeight(header.sizeHint().height() + len(LEVELS) * tokens.row_height + 4)
        heading = Label("What the levels mean")
        heading.setProperty("kind", "heading")
        close = QPushButton("Close")
        close.setObjectName("files.levelhelp.close")
        close.setDefault(True)
        close.clicked.connect(self.accept)
        column = self._column = QVBoxLayout(self)
        column.setContentsMargins(tokens.space_4, tokens.space_3, tokens.space_4, tokens.space_3)
        column.setSpacing(tokens.space_2)
        column.addWidget(heading)
        column.addWidget(self.table)
        for words in (_ASK, _APPEND, _ORDER, _WHERE):
            label = Label(words)
            label.setWordWrap(True)
            label.setProperty("kind", "muted")
            column.addWidget(label)
        column.addWidget(close, 0, Qt.AlignmentFlag.AlignRight)
        self.resize(_WIDTH, self.sizeHint().height())

    def show_at(self, under: QWidget) -> None:
        """Below a control, and inside its window."""
        window = under.window()
        self.setFixedWidth(min(_WIDTH, window.width() - 16))
        self.setFixedHeight(self._column.totalHeightForWidth(self.width()))
        at = under.mapToGlobal(QPoint(under.width() - self.width(), under.height() + 2))
        corner = window.mapToGlobal(QPoint(8, 8))
        end = window.mapToGlobal(QPoint(window.width() - self.width() - 8, window.height() - self.height() - 8))
        at.setX(max(corner.x(), min(at.x(), end.x())))
        at.setY(max(corner.y(), min(at.y(), end.y())))
        self.move(at)
        self.show()
        self.table.setFocus(Qt.FocusReason.PopupFocusReason)
