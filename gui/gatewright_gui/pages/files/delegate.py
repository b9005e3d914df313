"""How rows of rules and of the folder are drawn and edited. It does not know verbs: editors hand values to models."""

from functools import partial
from typing import Any, cast

from PySide6.QtCore import (
    QAbstractItemModel,
    QEvent,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    QRect,
    QRectF,
    QSize,
    Qt,
    QTimer,
    Signal,
)
from PySide6.QtGui import QColor, QFontMetrics, QIcon, QKeyEvent, QPainter
from PySide6.QtWidgets import (
    QAbstractItemView,
    QComboBox,
    QLineEdit,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QWidget,
)

from gatewright_gui.models import foldertree, permissionrules
from gatewright_gui.models.foldertree import FolderRow
from gatewright_gui.models.level import LEVELS
from gatewright_gui.models.permissionrules import PermissionRuleModel, RuleRow
from gatewright_gui.qt.look import Role, current_look, role_colour
from gatewright_gui.qt.plaintext import line_text
from gatewright_gui.qt.widget import chip_width, paint_chip
from gatewright_gui.qt.widget.delegate import Delegate

Index = QModelIndex | QPersistentModelIndex
_ICON = 16
_PAD = 6
CELL_PAD, _TREE_PAD = 9, 7
"""From the edge of a cell to its words, as the style sheet has it: border, padding, margin."""
_MARKED = QStyle.StateFlag.State_Selected | QStyle.StateFlag.State_MouseOver | QStyle.StateFlag.State_HasFocus
_NUMBERS = frozenset({permissionrules.NUMBER, permissionrules.HITS})
_MUTED = frozenset({permissionrules.NUMBER, permissionrules.COMMENT})
_KIND_ICONS = {"folder": "folder", "file": "file-text", "note": "info"}
_DEAD: tuple[str, Role] = ("circle-slash", "ask")
_NO_FILE: tuple[str, Role] = ("clock", "blocked")
_LEFT = "left"
_EXPLANATION = Qt.ItemDataRole.UserRole + 1
_ROLE = Qt.ItemDataRole.UserRole + 2


def draw_ground(delegate: QStyledItemDelegate, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
    """The row without its text: hover, selection and focus as the style draws them. The model is not asked for it."""
    del delegate, index
    view = cast("QWidget | None", option.widget)  # pyright: ignore[reportAttributeAccessIssue]
    if view is not None:
        shown = QStyleOptionViewItem(option)
        item: Any = shown
        item.text, item.icon = "", QIcon()
        view.style().drawControl(QStyle.ControlElement.CE_ItemViewItem, shown, painter, view)


def _rect(option: QStyleOptionViewItem) -> QRect:
    return option.rect  # pyright: ignore[reportAttributeAccessIssue]


def draw_chip(
    painter: QPainter, cell: QRect, word: str, icon: str | None, role: Role, *, outlined: bool = False
) -> int:
    """Draw a chip at the left of a cell; its width. An outline tells it from a ground in a like colour."""
    painter.save()
    painter.setFont(current_look().small_font)
    metrics = painter.fontMetrics()
    height = metrics.height() + 5
    width = min(chip_width(metrics.horizontalAdvance(word), icon is not None), cell.width() - _PAD)
    top = cell.top() + (cell.height() - height) // 2
    place = QRect(cell.left() + 4, top, width, height)
    paint_chip(painter, place, word, icon, role)
    if outlined:
        radius = current_look().tokens.small_radius
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QColor(role_colour(role)))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawRoundedRect(QRectF(place).adjusted(0.5, 0.5, -0.5, -0.5), radius, radius)
    painter.restore()
    return width


def draw_words(
    painter: QPainter,
    place: QRect,
    words: str,
    colour: QColor,
    align: Qt.AlignmentFlag = Qt.AlignmentFlag.AlignLeft,
    mode: Qt.TextElideMode = Qt.TextElideMode.ElideRight,
) -> None:
    """Words in the painter's font, cut where there is no room."""
    painter.setPen(colour)
    cut = line_text(painter.fontMetrics(), words, place.width(), mode)
    painter.drawText(place, Qt.AlignmentFlag.AlignVCenter | align, cut)


def _is_marked(option: QStyleOptionViewItem) -> bool:
    """Whether there is a ground to draw: that of most cells is the view's own."""
    state: QStyle.StateFlag = option.state  # pyright: ignore[reportAttributeAccessIssue]
    return bool(state & _MARKED)


def _is_selected(option: QStyleOptionViewItem) -> bool:
    state: QStyle.StateFlag = option.state  # pyright: ignore[reportAttributeAccessIssue]
    return bool(state & QStyle.StateFlag.State_Selected)


class PatternEdit(QLineEdit):
    """A field that knows at each key whether its pattern can be used."""

    checked = Signal(object)
    """What is wrong with the text, or None: str | None."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("files.pattern")
        self.setAccessibleName("Pattern")
        self.setFont(current_look().mono_font)
        self.setFrame(False)
        self.fault: str | None = None
        self.textChanged.connect(self._check)

    def _check(self, text: str) -> None:
        self.fault = PermissionRuleModel.fault_of(text)
        self.setProperty("kind", "error" if self.fault else None)
        self.style().unpolish(self)
        self.style().polish(self)
        self.setToolTip(self.fault or "")
        self.checked.emit(self.fault)


class _LevelItems(Delegate):
    """The rows of the list of levels: chip and explanation."""

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:  # noqa: N802
        metrics = current_look()
        width = 118 + option.fontMetrics.horizontalAdvance(str(index.data(_EXPLANATION)))  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownArgumentType]
        return QSize(int(cast("float", width)) + 16, metrics.tokens.row_height + 2)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        draw_ground(self, painter, option, index)
        cell = _rect(option)
        draw_chip(painter, QRect(cell.left(), cell.top(), 112, cell.height()), str(index.data()), *_look_of(index))
        painter.save()
        painter.setPen(role_colour("muted"))
        words = cell.adjusted(118, 0, -4, 0)
        painter.drawText(
            words, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, str(index.data(_EXPLANATION))
        )
        painter.restore()


def _look_of(index: Index) -> tuple[str, Role]:
    look = LEVELS[index.data(_ROLE)]
    return look.icon, look.role


class LevelCombo(QComboBox):
    """Says when its list closes."""

    list_closed = Signal()
    """By a choice, by Escape, by a click elsewhere."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.view().window().installEventFilter(self)  # a list that Escape closes does not ask the box to hide it

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802
        """The list goes."""
        if event.type() == QEvent.Type.Hide and watched is self.view().window():
            self.list_closed.emit()
        return super().eventFilter(watched, event)


def level_combo(parent: QWidget) -> LevelCombo:
    """A combo box of all levels; each says in one line what it means. The data of an item is the level's name."""
    combo = LevelCombo(parent)
    combo.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
    combo.setObjectName("files.level")
    combo.setAccessibleName("Level")
    for level, look in LEVELS.items():
        combo.addItem(current_look().icon(look.icon, look.role), str(level), str(level))
        row = combo.count() - 1
        combo.setItemData(row, look.explanation, _EXPLANATION)
        combo.setItemData(row, level, _ROLE)
        combo.setItemData(row, f"{level}: {look.explanation}", Qt.ItemDataRole.ToolTipRole)
        combo.setItemData(row, f"{level}, {look.explanation}", Qt.ItemDataRole.AccessibleTextRole)
    items = _LevelItems(combo)
    combo.setItemDelegate(items)
    combo.setMaxVisibleItems(len(LEVELS))
    combo.view().setMinimumWidth(500)
    return combo


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
        cell, column = _rect(option), index.column()
        row = cast("RuleRow", index.data(permissionrules.SHOWN))
        if row.is_deciding:
            painter.fillRect(cell, QColor(current_look().palette.accent.soft))
        is_marked = _is_marked(option)
        if is_marked:
            draw_ground(self, painter, option, index)
        left = 0
        if column == permissionrules.LEVEL:
            look = LEVELS[row.level]
            outlined = row.is_deciding or _is_selected(option)
            draw_chip(painter, cell, row.words[column], look.icon, look.role, outlined=outlined)
        else:
            if column == permissionrules.COMMENT and row.idle_words:
                outlined = is_marked and _is_selected(option)
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
        words, is_pattern = row.words[column], column == permissionrules.PATTERN
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
        if column == permissionrules.NUMBER:
            painter.fillRect(QRect(cell.left(), cell.top(), 3, cell.height()), colour)
        painter.fillRect(QRect(cell.left(), cell.top(), cell.width(), 1), colour)
        painter.fillRect(QRect(cell.left(), cell.bottom(), cell.width(), 1), colour)

    def createEditor(self, parent: QWidget, option: QStyleOptionViewItem, index: Index) -> QWidget:  # noqa: N802
        """A combo box for levels, a checked field for patterns, a plain one for comments."""
        if index.column() == permissionrules.LEVEL:
            combo = level_combo(parent)
            combo.activated.connect(partial(self._finish, combo))
            combo.list_closed.connect(partial(self._leave_soon, combo))
            return combo
        if index.column() == permissionrules.PATTERN:
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

    def _leave_soon(self, editor: QWidget) -> None:
        """A closed list leaves no editor behind in which a key would choose; what was chosen is handed on first."""
        QTimer.singleShot(0, editor, partial(self._leave, editor))

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


class FolderDelegate(Delegate):
    """Draws entries of the folder: icon and name in the colour of the level, its word as a chip."""

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        """Names with their icon, levels as chips."""
        cell, column = _rect(option), index.column()
        row = cast("FolderRow", index.data(foldertree.SHOWN))
        if _is_marked(option):
            draw_ground(self, painter, option, index)
        mark = row.mark
        if column == foldertree.NAME:
            role: Role = mark.role if mark is not None else "muted"
            self._draw_named(painter, cell, _KIND_ICONS[row.kind], role, row.name, _ICON)
        elif mark is None:
            return
        elif column == foldertree.LEVEL:
            draw_chip(painter, cell, mark.word, mark.icon, mark.role, outlined=_is_selected(option))
        elif column == foldertree.RULE:
            draw_words(painter, cell.adjusted(_TREE_PAD, 0, -_TREE_PAD, 0), row.rule_word, role_colour("muted"))
        elif row.state:
            role = row.state_role or "accent"
            size = current_look().tokens.small_icon_size
            self._draw_named(painter, cell, row.state_icon or "clock", role, row.state, size)

    @staticmethod
    def _draw_named(painter: QPainter, cell: QRect, icon: str, role: Role, words: str, size: int) -> None:
        """An icon and words behind it."""
        place = QRect(cell.left() + _TREE_PAD, cell.top() + (cell.height() - size) // 2, size, size)
        current_look().icon(icon, role).paint(painter, place)
        room = cell.adjusted(2 * _TREE_PAD + size - 1, 0, -_TREE_PAD, 0)
        draw_words(painter, room, words, role_colour(role))


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
