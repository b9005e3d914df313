"""The table of a source's rules: columns, dragging, and what its keys ask for. It does not know the rules."""

from functools import partial
from typing import Any, cast

from PySide6.QtCore import QModelIndex, QPoint, QRect, Qt, Signal
from PySide6.QtGui import (
    QDragLeaveEvent,
    QDragMoveEvent,
    QDropEvent,
    QFont,
    QFontMetrics,
    QKeyEvent,
    QKeySequence,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QResizeEvent,
    QShortcut,
)
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QWidget

from gatewright_gui.models import permissionrules
from gatewright_gui.models.permissionrules import PermissionRuleModel
from gatewright_gui.pages.files.delegate import CELL_PAD, RuleDelegate, idle_chip_width, open_list
from gatewright_gui.qt.look import current_look, role_colour
from gatewright_gui.qt.widget import TableView
from gatewright_gui.session.courtesy import painting

_EDITS = (
    QAbstractItemView.EditTrigger.DoubleClicked
    | QAbstractItemView.EditTrigger.EditKeyPressed
    | QAbstractItemView.EditTrigger.AnyKeyPressed
)
_NARROW = 136
"""Pixels that the column of patterns takes at least."""
_COMMENT = 126
"""Pixels that the last column takes at least; `no file yet` is whole in it."""
_MEASURED = 200
_EDIT_BY_VIEW = 3
"""How many arguments `edit` has when the view calls it: index, trigger, event."""

_KEYS = (
    ("Alt+Up", "move_asked", (-1,)),
    ("Alt+Down", "move_asked", (1,)),
    ("Del", "remove_asked", ()),
    ("Ins", "add_asked", ()),
    ("Ctrl+Return", "files_asked", ()),
)


class RuleTable(TableView):
    """Rules are dropped between rows; a list of levels opens with its editor, whichever way that is begun."""

    returned = Signal(object)
    """Return was pressed on this cell: QModelIndex."""
    move_asked = Signal(object)
    """The chosen rules are to go up or down: -1 or 1."""
    remove_asked = Signal()
    add_asked = Signal()
    files_asked = Signal()

    def __init__(self, model: PermissionRuleModel, parent: QWidget | None = None) -> None:
        super().__init__("Levels in order", parent)
        self.pressed_at = QPoint()
        self.drop_at: int | None = None
        """The row before which what is dragged would be dropped."""
        self._pattern_width = self._comment_width = self._chip_width = self._given_width = 0
        self.setObjectName("files.rules")
        self.setModel(model)
        self.delegate = RuleDelegate(self)
        self.setItemDelegate(self.delegate)
        self.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.setEditTriggers(_EDITS)
        self.setDragDropMode(QAbstractItemView.DragDropMode.InternalMove)
        self.setDropIndicatorShown(False)  # the table draws its own, through all columns
        self.setDragDropOverwriteMode(False)
        self.setTabKeyNavigation(False)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self._set_columns()
        for keys, asked, words in _KEYS:
            shortcut = QShortcut(QKeySequence(keys), self, context=Qt.ShortcutContext.WidgetShortcut)
            shortcut.activated.connect(partial(getattr(self, asked).emit, *words))

    def fit_numbers(self) -> None:
        """Room for the last number: it is never cut."""
        wide = self.fontMetrics().horizontalAdvance("0" * len(str(self.model().rowCount() - 1)))
        self.setColumnWidth(permissionrules.NUMBER, max(34, wide + 22))

    def fit_patterns(self) -> None:
        """Room for the longest pattern, as far as the comments leave it; what is cut is seen in the tooltip."""
        self._pattern_width = self._longest(permissionrules.PATTERN, current_look().mono_font)
        self._comment_width = self._longest(permissionrules.COMMENT, self.font())
        rows, model = range(min(self.model().rowCount(), _MEASURED)), self.model()
        chips = {str(model.index(row, 0).data(permissionrules.IDLE_WORDS)) for row in rows}
        self._chip_width = max((idle_chip_width(words) for words in chips if words), default=0) + CELL_PAD
        self._share()

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802
        """Patterns and comments share what there is."""
        super().resizeEvent(event)
        self._share()

    def _share(self) -> None:
        """Patterns come first, comments keep up to a third of what both have. A dragged width stays if it can."""
        others = (permissionrules.NUMBER, permissionrules.LEVEL, permissionrules.HITS)
        both = self.viewport().width() - sum(map(self.columnWidth, others))
        comments = max(_COMMENT, self._chip_width, min(self._comment_width, both // 3))
        now = self.columnWidth(permissionrules.PATTERN)
        wanted = self._pattern_width if now == self._given_width else now
        self._given_width = max(_NARROW, min(wanted, both - comments))
        self.setColumnWidth(permissionrules.PATTERN, self._given_width)

    def _longest(self, column: int, font: QFont) -> int:
        """Pixels that the text of a column with the most characters takes."""
        model = self.model()
        texts = (str(model.index(row, column).data()) for row in range(min(model.rowCount(), _MEASURED)))
        return QFontMetrics(font).horizontalAdvance(max(texts, key=len, default="")) + 2 * CELL_PAD + 2

    def edit(self, *asked: Any) -> Any:
        """Open an editor. A key that would be handed to a list of levels opens it and chooses nothing."""
        index: QModelIndex = asked[0]
        if len(asked) == _EDIT_BY_VIEW and index.column() == permissionrules.LEVEL:
            asked = (index, asked[1], None)
        done = cast("bool | None", super().edit(*asked))
        open_list(self, index)
        return done

    def mousePressEvent(self, event: QMouseEvent) -> None:  # noqa: N802
        """Kept: a cell can hold more than one thing to click."""
        self.pressed_at = event.position().toPoint()
        super().mousePressEvent(event)

    def dragMoveEvent(self, event: QDragMoveEvent) -> None:  # noqa: N802
        """Show where it would be dropped; the view scrolls at its edges by itself."""
        super().dragMoveEvent(event)
        is_ours = self.is_own(event)
        self._show_drop(self._drop_row(event) if is_ours else None)
        if is_ours:
            event.setDropAction(Qt.DropAction.MoveAction)
            event.accept()

    def dragLeaveEvent(self, event: QDragLeaveEvent) -> None:  # noqa: N802
        """It is elsewhere."""
        self._show_drop(None)
        super().dragLeaveEvent(event)

    def dropEvent(self, event: QDropEvent) -> None:  # noqa: N802
        """The model moves by a verb; the view must not take the dragged row away."""
        place = self._drop_row(event)
        self._show_drop(None)
        if self.is_own(event):
            self.model().dropMimeData(event.mimeData(), Qt.DropAction.MoveAction, place, 0, QModelIndex())
        event.setDropAction(Qt.DropAction.IgnoreAction)
        event.accept()
        self.setState(QAbstractItemView.State.NoState)
        self.viewport().update()

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802
        """With a line where what is dragged would be dropped."""
        with painting():
            super().paintEvent(event)
        if self.drop_at is None:
            return
        place = self.visualRect(self.model().index(self.drop_at, 0))
        top = max(place.top() - 1, 0)
        painter = QPainter(self.viewport())
        painter.fillRect(QRect(0, top, self.viewport().width(), 2), role_colour("accent"))
        painter.fillRect(QRect(0, top - 3, 4, 8), role_colour("accent"))

    def is_own(self, event: QDropEvent) -> bool:
        """Whether what is dragged are rows of this table."""
        return event.source() is self and event.mimeData().hasFormat(permissionrules.MIME)

    def _show_drop(self, row: int | None) -> None:
        if row != self.drop_at:
            self.drop_at = row
            self.viewport().update()

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802
        """Return on a row says so."""
        is_return = event.key() in {Qt.Key.Key_Return, Qt.Key.Key_Enter} and not event.modifiers()
        if is_return and self.currentIndex().isValid() and self.state() != QAbstractItemView.State.EditingState:
            self.returned.emit(self.currentIndex())
            return
        super().keyPressEvent(event)

    def _drop_row(self, event: QDropEvent) -> int:
        """The row before which it is dropped; the default stays the last."""
        last = self.model().rowCount() - 1
        point = event.position().toPoint()
        index = self.indexAt(point)
        if not index.isValid():
            return last
        return min(index.row() + (point.y() > self.visualRect(index).center().y()), last)

    def _set_columns(self) -> None:
        header = self.horizontalHeader()
        for column, width in ((permissionrules.NUMBER, 34), (permissionrules.LEVEL, 112), (permissionrules.HITS, 58)):
            header.setSectionResizeMode(column, QHeaderView.ResizeMode.Interactive)
            self.setColumnWidth(column, width)
        self._given_width = _NARROW
        self.setColumnWidth(permissionrules.PATTERN, _NARROW)
        header.setMinimumSectionSize(30)
        header.moveSection(permissionrules.NUMBER, 0)
