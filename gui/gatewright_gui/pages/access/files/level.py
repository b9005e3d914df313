"""How permission levels look: icon, colours, words, chips in cells, and the list to choose one from."""

from collections.abc import Iterable, Mapping
from typing import Any, cast

from PySide6.QtCore import QEvent, QObject, QRect, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QIcon, QPainter
from PySide6.QtWidgets import QComboBox, QStyle, QStyleOptionViewItem, QWidget

from gatewright.workspace.api import Action, Permission, Verdict, frozen
from gatewright_gui.pages.access.files.folder_levels import FilesBelow
from gatewright_gui.qt.language import mark, tr
from gatewright_gui.qt.look import LevelName, Role, VerdictName, current_look, role_colour
from gatewright_gui.qt.plaintext import LEFT, line_text
from gatewright_gui.qt.table_model import Index
from gatewright_gui.qt.widget import chip_width, paint_chip
from gatewright_gui.qt.widget.chip import VERDICT_ICONS, VERDICT_WORDS
from gatewright_gui.qt.widget.item_view import Delegate
from gatewright_gui.session.file_index import PROTECTED_WORD
from gatewright_gui.session.files import PathLevel
from gatewright_gui.session.verdict import permission_words

PROTECTED_ICON = "lock"
OUTSIDE_WORD = mark("outside")
OUTSIDE_ICON = "circle-slash"
UNUSABLE_WORD = mark("unusable")
UNUSABLE_ICON = "ban"
MIXED_WORD = mark("mixed")
MIXED_ICON = "layers"


@frozen
class LevelLook:
    """The look of a level. `role` names its colours."""

    role: LevelName
    icon: str
    explanation: str

    @property
    def meaning(self) -> str:
        """The explanation in the language of the app."""
        return tr(self.explanation)

    @property
    def tip(self) -> str:
        """The words of the level, what it means, and how the policy file has it."""
        level = Permission(self.role)
        words = {"level": permission_words(level), "meaning": self.meaning, "key": level}
        return tr("{level}: {meaning}\nin the policy file: {key}", **words)


LEVELS: Mapping[Permission, LevelLook] = {
    Permission.NONE: LevelLook("none", "eye-off", mark("not even the name is seen")),
    Permission.READ_ONLY: LevelLook("read_only", "eye", mark("read, change nothing")),
    Permission.ASK: LevelLook(
        "ask", "circle-help", mark("every access asks first, reading too; programs do not see it")
    ),
    Permission.PARTNER: LevelLook("partner", "users", mark("read; changes ask first (the same as: ask to change)")),
    Permission.HUMAN: LevelLook("human", "hand", mark("read; changes ask first")),
    Permission.APPEND: LevelLook("append", "plus", mark("read, create, add at the end")),
    Permission.READ_WRITE: LevelLook("read_write", "pencil", mark("read and write; deleting asks first")),
    Permission.ADMIN: LevelLook("admin", "shield", mark("everything, deleting too")),
}
ACTION_WORDS: Mapping[Action, str] = {
    Action.READ: mark("read"),
    Action.APPEND: mark("append"),
    Action.OVERWRITE: mark("overwrite"),
    Action.DELETE: mark("delete"),
}


@frozen
class LevelMark:
    """Word, icon and colours of what a path gets."""

    word: str
    icon: str
    role: Role


def mark_of_verdicts(verdicts: Iterable[Verdict]) -> LevelMark:
    """The mark for what an operation comes to at a file, or at the files of a folder."""
    verdict, *others = set(verdicts)
    if others:
        return LevelMark(tr(MIXED_WORD), MIXED_ICON, "neutral")
    name = _VERDICTS[verdict]
    return LevelMark(tr(VERDICT_WORDS[name]), VERDICT_ICONS[name], name)


_VERDICTS: Mapping[Verdict, VerdictName] = {Verdict.ALLOW: "allow", Verdict.ASK: "ask", Verdict.DENY: "deny"}


def mark_below(below: FilesBelow) -> LevelMark:
    """The mark for a folder: the level that its files have, or that they have several."""
    word, *others = below.words
    if others:
        return LevelMark(tr(MIXED_WORD), MIXED_ICON, "neutral")
    if word == PROTECTED_WORD:
        return LevelMark(tr(PROTECTED_WORD), PROTECTED_ICON, "none")
    look = LEVELS[Permission(word)]
    return LevelMark(permission_words(Permission(word)), look.icon, look.role)


def mark_of(level: PathLevel) -> LevelMark:
    """The mark for a path: its level, or that it is protected or outside."""
    if level.protected:
        return LevelMark(tr(PROTECTED_WORD), PROTECTED_ICON, "none")
    if level.outside:
        return LevelMark(tr(OUTSIDE_WORD), OUTSIDE_ICON, "none")
    if level.unusable is not None:
        return LevelMark(tr(UNUSABLE_WORD), UNUSABLE_ICON, "none")
    look = LEVELS[level.permission]
    return LevelMark(permission_words(level.permission), look.icon, look.role)


_PAD = 6
_MARKED = QStyle.StateFlag.State_Selected | QStyle.StateFlag.State_MouseOver | QStyle.StateFlag.State_HasFocus
_EXPLANATION = Qt.ItemDataRole.UserRole + 1
_ROLE = Qt.ItemDataRole.UserRole + 2


def draw_ground(painter: QPainter, option: QStyleOptionViewItem) -> None:
    """The row without its text: hover, selection and focus as the style draws them. The model is not asked for it."""
    view = cast("QWidget | None", option.widget)  # pyright: ignore[reportAttributeAccessIssue]
    if view is not None:
        shown = QStyleOptionViewItem(option)
        item: Any = shown
        item.text, item.icon = "", QIcon()
        view.style().drawControl(QStyle.ControlElement.CE_ItemViewItem, shown, painter, view)


def rect_of(option: QStyleOptionViewItem) -> QRect:
    """The cell that is drawn."""
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
    painter.drawText(place, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignAbsolute | align, cut)


def is_marked(option: QStyleOptionViewItem) -> bool:
    """Tell whether there is a ground to draw: that of most cells is the view's own."""
    state: QStyle.StateFlag = option.state  # pyright: ignore[reportAttributeAccessIssue]
    return bool(state & _MARKED)


def is_selected(option: QStyleOptionViewItem) -> bool:
    """Tell whether the cell is part of the selection."""
    state: QStyle.StateFlag = option.state  # pyright: ignore[reportAttributeAccessIssue]
    return bool(state & QStyle.StateFlag.State_Selected)


class _LevelItems(Delegate):
    """The rows of the list of levels: chip and explanation."""

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:  # noqa: N802
        metrics = current_look()
        width = 118 + option.fontMetrics.horizontalAdvance(str(index.data(_EXPLANATION)))  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownArgumentType]
        return QSize(int(cast("float", width)) + 16, metrics.tokens.row_height + 2)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        draw_ground(painter, option)
        cell, look = rect_of(option), LEVELS[index.data(_ROLE)]
        draw_chip(painter, QRect(cell.left(), cell.top(), 112, cell.height()), str(index.data()), look.icon, look.role)
        painter.save()
        painter.setPen(role_colour("muted"))
        words = cell.adjusted(118, 0, -4, 0)
        painter.drawText(words, LEFT, str(index.data(_EXPLANATION)))
        painter.restore()


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
    combo.setAccessibleName(tr("Level"))
    for level, look in LEVELS.items():
        combo.addItem(current_look().icon(look.icon, look.role), permission_words(level), str(level))
        row = combo.count() - 1
        combo.setItemData(row, look.meaning, _EXPLANATION)
        combo.setItemData(row, level, _ROLE)
        combo.setItemData(row, look.tip, Qt.ItemDataRole.ToolTipRole)
        combo.setItemData(row, f"{permission_words(level)}, {look.meaning}", Qt.ItemDataRole.AccessibleTextRole)
    items = _LevelItems(combo)
    combo.setItemDelegate(items)
    combo.setMaxVisibleItems(len(LEVELS))
    combo.view().setMinimumWidth(500)
    return combo
