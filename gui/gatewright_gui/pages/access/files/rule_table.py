"""The table of a source's rules: how rows are drawn, edited and dragged."""

from functools import partial
from typing import Any, cast

from PySide6.QtCore import QAbstractItemModel, QEvent, QModelIndex, QObject, QPoint, QRect, Qt, QTimer, Signal
from PySide6.QtGui import (
    QColor,
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
from PySide6.QtWidgets import (
    QAbstractItemView,
    QComboBox,
    QHeaderView,
    QLineEdit,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QWidget,
)

from gatewright_gui.pages.access.files import rule_model
from gatewright_gui.pages.access.files.level import (
    LEVELS,
    LevelCombo,
    draw_chip,
    draw_ground,
    draw_words,
    is_marked,
    is_selected,
    level_combo,
    rect_of,
)
from gatewright_gui.pages.access.files.new_rule_bar import PatternEdit
from gatewright_gui.pages.access.files.rule_model import PermissionRuleModel, RuleRow
from gatewright_gui.qt.language import tr
from gatewright_gui.qt.look import Role, current_look, role_colour
from gatewright_gui.qt.table_model import Index
from gatewright_gui.qt.widget import chip_width
from gatewright_gui.qt.widget.item_view import Delegate, OrderedTable
from gatewright_gui.session.courtesy import painting

_NUMBERS = frozenset({rule_model.NUMBER, rule_model.HITS})
_MUTED = frozenset({rule_model.NUMBER, rule_model.COMMENT})
_DEAD: tuple[str, Role] = ("circle-slash", "ask")
_NO_FILE: tuple[str, Role] = ("clock", "neutral")
_LEFT = "left"
CELL_PAD = 9
"""From the edge of a cell to its words, as the style sheet has it: border, padding, margin."""


class RuleDelegate(Delegate):
    """Draws and edits rows of rules."""

    pattern_checked = Signal(object)
    """While a pattern is typed: what is wrong with it, or None."""
    pattern_refused = Signal(object, object, object)
    """Row, text and fault of a pattern that was not taken: int, str, str."""
    pattern_typed = Signal(object, object)
    """Row and text of a pattern while it is typed: int, str."""

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        """Words, chips for levels and for rules without files, a mark for the deciding row."""
        cell, column = rect_of(option), index.column()
        row = cast("RuleRow", index.data(rule_model.SHOWN))
        if row.is_deciding:
            painter.fillRect(cell, QColor(current_look().palette.accent.soft))
        marked = is_marked(option)
        if marked:
            draw_ground(painter, option)
        left = 0
        if column == rule_model.LEVEL:
            look = LEVELS[row.level]
            outlined = row.is_deciding or is_selected(option)
            draw_chip(painter, cell, row.words[column], look.icon, look.role, outlined=outlined)
        else:
            if column == rule_model.COMMENT and row.idle_words:
                outlined = marked and is_selected(option)
                icon, role = _DEAD if row.is_dead else _NO_FILE
                left = draw_chip(painter, cell, row.idle_words, icon, role, outlined=outlined) + 1
            self._draw_words(painter, cell.adjusted(left + CELL_PAD, 0, -CELL_PAD, 0), row, column)
        if row.is_deciding:
            self._mark(painter, cell, column)
        if row.is_default and index.row() > 0:
            painter.fillRect(QRect(cell.left(), cell.top(), cell.width(), 1), QColor(current_look().palette.border))

    @staticmethod
    def _draw_words(painter: QPainter, place: QRect, row: RuleRow, column: int) -> None:
        """A monospaced face for patterns, muted words for the default and for comments."""
        words, is_pattern = row.words[column], column == rule_model.PATTERN
        if not words:
            return
        is_muted = column in _MUTED or (is_pattern and row.is_default)
        painter.save()
        if is_pattern and not row.is_default:
            painter.setFont(current_look().mono_font)
        align = Qt.AlignmentFlag.AlignRight if column in _NUMBERS else Qt.AlignmentFlag.AlignLeft
        mode = Qt.TextElideMode.ElideMiddle if is_pattern else Qt.TextElideMode.ElideRight
        draw_words(painter, place, words, role_colour("muted" if is_muted else "text"), align, mode)
        painter.restore()

    @staticmethod
    def _mark(painter: QPainter, cell: QRect, column: int) -> None:
        """Over the ground of a selection too: a bar at the left, a line above and below."""
        colour = role_colour("accent")
        if column == rule_model.NUMBER:
            painter.fillRect(QRect(cell.left(), cell.top(), 3, cell.height()), colour)
        painter.fillRect(QRect(cell.left(), cell.top(), cell.width(), 1), colour)
        painter.fillRect(QRect(cell.left(), cell.bottom(), cell.width(), 1), colour)

    def createEditor(self, parent: QWidget, option: QStyleOptionViewItem, index: Index) -> QWidget:  # noqa: N802
        """A combo box for levels, a checked field for patterns, a plain one for comments."""
        if index.column() == rule_model.LEVEL:
            combo = level_combo(parent)
            combo.activated.connect(partial(self._finish, combo))
            # a closed list leaves no editor behind in which a key would choose; what was chosen is handed on first
            combo.list_closed.connect(lambda: QTimer.singleShot(0, combo, partial(self._leave, combo)))
            return combo
        if index.column() == rule_model.PATTERN:
            edit = PatternEdit(parent)
            edit.checked.connect(self.pattern_checked)
            edit.textEdited.connect(partial(self.pattern_typed.emit, index.row()))
            return edit
        return super().createEditor(parent, option, index)

    def updateEditorGeometry(self, editor: QWidget, option: QStyleOptionViewItem, index: Index) -> None:  # noqa: N802
        """In its cell; the word of a level is never cut."""
        super().updateEditorGeometry(editor, option, index)
        if isinstance(editor, LevelCombo):
            editor.resize(max(editor.width(), editor.sizeHint().width()), editor.height())

    def setEditorData(self, editor: QWidget, index: Index) -> None:  # noqa: N802
        """Show what the cell holds; a list of levels opens at once."""
        if isinstance(editor, QComboBox):
            editor.setCurrentIndex(editor.findData(str(index.data(Qt.ItemDataRole.EditRole))))
        elif isinstance(editor, QLineEdit) and not editor.isModified():
            editor.setText(str(index.data(Qt.ItemDataRole.EditRole) or ""))

    def setModelData(self, editor: QWidget, model: QAbstractItemModel, index: Index) -> None:  # noqa: N802
        """Hand the value to the model; a pattern that cannot be used is told, not handed on."""
        if isinstance(editor, QComboBox):
            model.setData(_plain(index), editor.currentData())
        elif isinstance(editor, PatternEdit) and editor.fault is not None:
            self.pattern_refused.emit(index.row(), editor.text(), editor.fault)
        elif isinstance(editor, QLineEdit):
            model.setData(_plain(index), editor.text())

    def eventFilter(self, editor: QObject, event: QEvent) -> bool:  # noqa: N802
        """Return does not leave a pattern that cannot be used: its editor stays, with what was typed."""
        if isinstance(editor, PatternEdit) and isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress:
            leaving = event.key() in {Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Tab, Qt.Key.Key_Backtab}
            if leaving and editor.fault is not None:
                return True
        return super().eventFilter(editor, event)

    def _leave(self, editor: QWidget) -> None:
        if not editor.property(_LEFT):
            editor.setFocus()  # the view takes the keys back from an editor that has them
            self.closeEditor.emit(editor, QStyledItemDelegate.EndEditHint.RevertModelCache)

    def _finish(self, editor: QWidget, _row: int) -> None:
        editor.setProperty(_LEFT, True)
        self.commitData.emit(editor)
        self.closeEditor.emit(editor, QStyledItemDelegate.EndEditHint.NoHint)


def _plain(index: Index) -> QModelIndex:
    return index.model().index(index.row(), index.column())


def idle_chip_width(words: str) -> int:
    """Pixels from the left of a cell that the chip of a rule without files takes."""
    return 4 + chip_width(QFontMetrics(current_look().small_font).horizontalAdvance(words), True)


def edit_at_once(view: QAbstractItemView, index: QModelIndex) -> None:
    """Open the editor of a cell, and the list of a combo box with it."""
    view.setCurrentIndex(index)
    view.edit(index)
    open_list(view, index)


def open_list(view: QAbstractItemView, index: Index) -> bool:
    """Open the list of the combo box that edits a cell; False where none does."""
    editor = view.indexWidget(index)
    if not isinstance(editor, LevelCombo):
        return False
    if not editor.view().isVisible():
        editor.showPopup()
    return True


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


class RuleTable(OrderedTable):
    """Rules are dropped between rows; a list of levels opens with its editor, whichever way that is begun."""

    returned = Signal(object)
    """Return was pressed on this cell: QModelIndex."""
    move_asked = Signal(object)
    """The chosen rules are to go up or down: -1 or 1."""
    remove_asked = Signal()
    add_asked = Signal()
    files_asked = Signal()
    fixed_rows = 1

    def __init__(self, model: PermissionRuleModel, parent: QWidget | None = None) -> None:
        super().__init__(tr("Levels in order"), parent)
        self.pressed_at = QPoint()
        self._pattern_width = self._comment_width = self._chip_width = self._given_width = 0
        self.setObjectName("files.rules")
        self.setModel(model)
        self.delegate = RuleDelegate(self)
        self.setItemDelegate(self.delegate)
        self.setEditTriggers(_EDITS)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self._set_columns()
        for keys, asked, words in _KEYS:
            shortcut = QShortcut(QKeySequence(keys), self, context=Qt.ShortcutContext.WidgetShortcut)
            shortcut.activated.connect(partial(getattr(self, asked).emit, *words))

    def fit(self) -> None:
        """Make room for the last number, and for the longest pattern as far as the comments leave it."""
        wide = self.fontMetrics().horizontalAdvance("0" * len(str(self.model().rowCount() - 1)))
        self.setColumnWidth(rule_model.NUMBER, max(34, wide + 22))
        self._pattern_width = self._longest(rule_model.PATTERN, current_look().mono_font)
        self._comment_width = self._longest(rule_model.COMMENT, self.font())
        rows, model = range(min(self.model().rowCount(), _MEASURED)), self.model()
        chips = {model.index(row, 0).data(rule_model.SHOWN).idle_words for row in rows}
        self._chip_width = max((idle_chip_width(words) for words in chips if words), default=0) + CELL_PAD
        self._share()

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802
        """Patterns and comments share what there is."""
        super().resizeEvent(event)
        self._share()

    def _share(self) -> None:
        """Patterns come first, comments keep up to a third of what both have. A dragged width stays if it can."""
        others = (rule_model.NUMBER, rule_model.LEVEL, rule_model.HITS)
        both = self.viewport().width() - sum(map(self.columnWidth, others))
        comments = max(_COMMENT, self._chip_width, min(self._comment_width, both // 3))
        now = self.columnWidth(rule_model.PATTERN)
        wanted = self._pattern_width if now == self._given_width else now
        self._given_width = max(_NARROW, min(wanted, both - comments))
        self.setColumnWidth(rule_model.PATTERN, self._given_width)

    def _longest(self, column: int, font: QFont) -> int:
        """Pixels that the text of a column with the most characters takes."""
        model = self.model()
        texts = (str(model.index(row, column).data()) for row in range(min(model.rowCount(), _MEASURED)))
        return QFontMetrics(font).horizontalAdvance(max(texts, key=len, default="")) + 2 * CELL_PAD + 2

    def edit(self, *asked: Any) -> Any:
        """Open an editor. A key that would be handed to a list of levels opens it and chooses nothing."""
        index: QModelIndex = asked[0]
        if len(asked) == _EDIT_BY_VIEW and index.column() == rule_model.LEVEL:
            asked = (index, asked[1], None)
        done = cast("bool | None", super().edit(*asked))
        open_list(self, index)
        return done

    def mousePressEvent(self, event: QMouseEvent) -> None:  # noqa: N802
        """Kept: a cell can hold more than one thing to click."""
        self.pressed_at = event.position().toPoint()
        super().mousePressEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802
        """Threads of this page wait while it is painted."""
        with painting():
            super().paintEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802
        """Return on a row says so."""
        is_return = event.key() in {Qt.Key.Key_Return, Qt.Key.Key_Enter} and not event.modifiers()
        if is_return and self.currentIndex().isValid() and self.state() != QAbstractItemView.State.EditingState:
            self.returned.emit(self.currentIndex())
            return
        super().keyPressEvent(event)

    def _set_columns(self) -> None:
        header = self.horizontalHeader()
        for column, width in ((rule_model.NUMBER, 34), (rule_model.LEVEL, 112), (rule_model.HITS, 58)):
            header.setSectionResizeMode(column, QHeaderView.ResizeMode.Interactive)
            self.setColumnWidth(column, max(width, header.sectionSizeHint(column)))
        self._given_width = _NARROW
        self.setColumnWidth(rule_model.PATTERN, _NARROW)
        header.setMinimumSectionSize(30)
        header.moveSection(rule_model.NUMBER, 0)
