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
from gatewright_gui.models.filestate import look_of
from gatewright_gui.models.level import LEVELS, mark_of
from gatewright_gui.models.permissionrules import PermissionRuleModel
from gatewright_gui.qt.look import Role, current_look, role_colour
from gatewright_gui.qt.widget import chip_width, paint_chip

Index = QModelIndex | QPersistentModelIndex
_ICON = 16
_PAD = 6
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


class _LevelItems(QStyledItemDelegate):
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

    def hidePopup(self) -> None:  # noqa: N802
        """The list closes: by a choice, by Escape, by a click elsewhere."""
        super().hidePopup()
        self.list_closed.emit()


def level_combo(parent: QWidget) -> LevelCombo:
    """A combo box of all levels; each says in one line what it means. The data of an item is the level's name."""
    combo = LevelCombo(parent)
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


class RuleDelegate(QStyledItemDelegate):
    """Draws and edits rows of rules."""

    pattern_checked = Signal(object)
    """While a pattern is typed: what is wrong with it, or None."""
    pattern_refused = Signal(object, object, object)
    """Row, text and fault of a pattern that was not taken: int, str, str."""
    pattern_typed = Signal(object, object)
    """Row and text of a pattern while it is typed: int, str."""

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        """Chips for levels and dead rules, a mark for the deciding row."""
        cell = _rect(option)
        is_deciding = bool(index.data(permissionrules.DECIDING))
        if is_deciding:
            painter.fillRect(cell, QColor(current_look().palette.accent.soft))
        if index.column() == permissionrules.LEVEL:
            draw_ground(self, painter, option, index)
            look = LEVELS[index.data(permissionrules.LEVEL_ROLE)]
            outlined = is_deciding or _is_selected(option)
            draw_chip(painter, cell, str(index.data()), look.icon, look.role, outlined=outlined)
        elif index.column() == permissionrules.COMMENT and index.data(permissionrules.DEAD_WORDS):
            self._draw_dead(painter, option, index)
        else:
            super().paint(painter, option, index)
        if is_deciding:
            self._mark(painter, cell, index.column())
        if index.row() == index.model().rowCount() - 1 and index.row() > 0:
            painter.fillRect(QRect(cell.left(), cell.top(), cell.width(), 1), QColor(current_look().palette.border))

    @staticmethod
    def _mark(painter: QPainter, cell: QRect, column: int) -> None:
        """Over the ground of a selection too: a bar at the left, a line above and below."""
        colour = role_colour("accent")
        if column == permissionrules.NUMBER:
            painter.fillRect(QRect(cell.left(), cell.top(), 3, cell.height()), colour)
        painter.fillRect(QRect(cell.left(), cell.top(), cell.width(), 1), colour)
        painter.fillRect(QRect(cell.left(), cell.bottom(), cell.width(), 1), colour)

    def _draw_dead(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        """Why the rule decides nothing, then its comment as far as there is room."""
        draw_ground(self, painter, option, index)
        cell = _rect(option)
        words = str(index.data(permissionrules.DEAD_WORDS))
        taken = draw_chip(painter, cell, words, "circle-slash", "blocked", outlined=_is_selected(option)) + 10
        room = cell.adjusted(taken, 0, -4, 0)
        painter.save()
        painter.setPen(role_colour("muted"))
        text = painter.fontMetrics().elidedText(str(index.data() or ""), Qt.TextElideMode.ElideRight, room.width())
        painter.drawText(room, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, text)
        painter.restore()

    def initStyleOption(self, option: QStyleOptionViewItem, index: Index) -> None:  # noqa: N802
        """A monospaced face for patterns, muted words for the default and for comments."""
        super().initStyleOption(option, index)
        item: Any = option
        column = index.column()
        is_default = index.row() == index.model().rowCount() - 1
        if column == permissionrules.PATTERN and not is_default:
            item.font = current_look().mono_font
        if column in {permissionrules.COMMENT, permissionrules.NUMBER} or (
            is_default and column == permissionrules.PATTERN
        ):
            item.palette.setColor(item.palette.ColorRole.Text, role_colour("muted"))
            item.palette.setColor(item.palette.ColorRole.HighlightedText, role_colour("muted"))

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


class FolderDelegate(QStyledItemDelegate):
    """Draws entries of the folder: icon and ground in the colour of the level, its word as a chip."""

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        """Names with their icon, levels as chips."""
        level = index.data(foldertree.PATH_LEVEL)
        if level is not None and index.column() == foldertree.LEVEL:
            draw_ground(self, painter, option, index)
            mark = mark_of(level)
            draw_chip(painter, _rect(option), mark.word, mark.icon, mark.role, outlined=_is_selected(option))
        else:
            super().paint(painter, option, index)

    def initStyleOption(self, option: QStyleOptionViewItem, index: Index) -> None:  # noqa: N802
        """The colours of the level."""
        super().initStyleOption(option, index)
        item: Any = option
        level = index.data(foldertree.PATH_LEVEL)
        standing = index.data(foldertree.STANDING) if index.column() == foldertree.STATE else None
        role: Role = "muted" if level is None or index.column() == foldertree.RULE else mark_of(level).role
        if index.column() == foldertree.STATE:
            role = look_of(standing.state).role if standing is not None else "accent"
        for part in (item.palette.ColorRole.Text, item.palette.ColorRole.HighlightedText):
            item.palette.setColor(part, role_colour(role))
        if index.column() == foldertree.NAME:
            name = {"folder": "folder", "file": "file-text"}.get(index.data(foldertree.KIND), "info")
            item.icon = current_look().icon(name, role)
            item.decorationSize = QSize(_ICON, _ICON)
            item.features |= QStyleOptionViewItem.ViewItemFeature.HasDecoration
        elif standing is not None or (index.column() == foldertree.STATE and index.data()):
            icon = look_of(standing.state).icon if standing is not None else "clock"
            item.icon = current_look().icon(icon, role)
            item.decorationSize = QSize(current_look().tokens.small_icon_size, current_look().tokens.small_icon_size)
            item.features |= QStyleOptionViewItem.ViewItemFeature.HasDecoration


def dead_chip_width(words: str) -> int:
    """Pixels from the left of a cell that the chip of a dead rule takes."""
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
