"""The painting of the rows of the tree: box, switch, name, description, the fact at the right. It decides nothing."""

from collections.abc import Sequence
from enum import StrEnum
from functools import lru_cache

from PySide6.QtCore import QAbstractItemModel, QEvent, QModelIndex, QPoint, QRect, QSize, Qt, Signal
from PySide6.QtGui import QColor, QCursor, QFont, QFontMetrics, QHelpEvent, QMouseEvent, QPainter
from PySide6.QtWidgets import QAbstractItemView, QStyle, QStyleOptionViewItem, QToolTip, QTreeView

from gatewright.workspace.api import Effect
from gatewright_gui.pages.access.tools.row_state import RowState, Switch
from gatewright_gui.pages.access.tools.tool_group import MORE
from gatewright_gui.pages.access.tools.tool_tree import (
    DANGER,
    DESCRIPTION,
    GROUP,
    IDLE,
    IS_TOOL,
    MARK,
    MEND,
    NOTED,
    SHARE,
    STATE,
    SWITCH,
    SWITCH_TIP,
    Column,
    Mend,
)
from gatewright_gui.qt.language import mark, tr
from gatewright_gui.qt.look import CheckState, Role, current_look, role_colour
from gatewright_gui.qt.plaintext import LEFT, line_text, tip_text
from gatewright_gui.qt.table_model import Index
from gatewright_gui.qt.widget.item_view import Delegate, paint_ground
from gatewright_gui.session.tool_groups import ToolGroup

BOX = 16
ICON = 14
_GAP, _PAD = 6, 7
_WIDE, _NAMES = 330, 114
"""From this width of the column on descriptions stand below each other, behind so much room for names."""
_DEEPEST = 36
"""Pixels by which the rows of operations are indented."""
_LEAST_DESCRIPTION = 60
_LONGEST_TEXT = 4_000
"""Characters of a description in which the words of a search are looked for."""
_BOXES = {
    RowState.ON: CheckState.ON,
    RowState.OFF: CheckState.OFF,
    RowState.MIXED: CheckState.MIXED,
    RowState.OVERRULED: CheckState.BLOCKED,
}
_GUESSED: tuple[str, Role] = ("circle-help", "ask")
_MARKS: dict[str, tuple[str, Role]] = {
    "free": ("pencil", "ask"),
    "open": ("terminal", "ask"),
}
DANGERS = {Effect.DELETE: "trash", Effect.SEND: "send", Effect.RUN: "terminal"}
"""The icons before the names of what deletes, sends out and runs commands."""
ON_WORD, ASK_WORD = mark("On"), mark("Ask first")
_MENDS = {Mend.GRANT: mark("Grant…"), Mend.SOURCE: mark("Sources…"), Mend.RULE: mark("Show rule")}


class Part(StrEnum):
    """The part of a row that a click acts on: the box, a half of the switch, the way out, the files behind the fact."""

    BOX = "box"
    ON = "on"
    ASK = "ask"
    MEND = "mend"
    FILES = "files"


class ToolDelegate(Delegate):
    """Asks for a tick through the model, and for the rest through signals."""

    switched = Signal(object, bool)
    """The index of a row, and whether it is to ask first: a half of its switch was clicked."""
    mend_requested = Signal(object)
    """The index of a row without effect whose button was clicked."""
    files_requested = Signal(object)
    """The index of a row whose calls depend on the file, and whose fact was clicked."""
    searched: tuple[str, ...] = ()
    """The words that are searched for, in small letters: they are marked where they stand."""

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:  # noqa: N802
        """One height for all rows."""
        size = super().sizeHint(option, index)
        return QSize(size.width(), current_look().tokens.row_height)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        """Paint the ground, then the content of the column."""
        rect: QRect = getattr(option, "rect")  # noqa: B009
        ground = QStyleOptionViewItem(option)
        setattr(ground, "state", getattr(option, "state") & ~QStyle.StateFlag.State_HasFocus)  # noqa: B009, B010
        paint_ground(painter, ground)  # the frame of the focus is around the whole row
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if index.column() == Column.NAME:
            self._paint_name(painter, rect, option, index)
        else:
            self._paint_fact(painter, rect, option, index)
        painter.restore()

    def _paint_name(self, painter: QPainter, rect: QRect, option: QStyleOptionViewItem, index: Index) -> None:
        """Paint box, switch, marks and name; the description comes with the row, since it reaches over both cells."""
        look, state, group = current_look(), RowState(index.data(STATE)), index.data(GROUP)
        if isinstance(group, ToolGroup):
            self._paint_group(painter, rect, option, index, group)
            return
        self._paint_box(painter, rect, option, state)
        if (switch := index.data(SWITCH)) is not None:
            self._paint_switch(painter, rect, option, Switch(switch), is_idle=state is RowState.OVERRULED)
        is_quiet = state in {RowState.OFF, RowState.OVERRULED}
        left = name_left(rect)
        place = QRect(left - ICON - 3, rect.top() + (rect.height() - ICON) // 2, ICON, ICON)
        if danger := index.data(DANGER):
            look.icon(DANGERS[Effect(danger)], "muted" if is_quiet else "deny").paint(painter, place)
        elif kind := index.data(MARK):
            look.icon(*_MARKS.get(str(kind), _GUESSED)).paint(painter, place)
        painter.setFont(_name_font(option, index))
        painter.setPen(QColor(look.palette.muted if is_quiet else look.palette.text))
        place = QRect(left, rect.top(), rect.right() - left - 4, rect.height())
        self._draw_words(painter, place, str(index.data()), Qt.TextElideMode.ElideMiddle)

    def _paint_group(
        self, painter: QPainter, rect: QRect, option: QStyleOptionViewItem, index: Index, group: ToolGroup
    ) -> None:
        look, left = current_look(), rect.left() + 3
        if group.origin != MORE:
            self._paint_box(painter, rect, option, RowState(index.data(STATE)))
            left += BOX + _GAP
        font = QFont(getattr(option, "font"))  # noqa: B009
        font.setWeight(QFont.Weight.DemiBold if group.origin != MORE else QFont.Weight.Normal)
        painter.setFont(font)
        painter.setPen(role_colour("text" if group.origin != MORE else "muted"))
        place = QRect(left, rect.top(), rect.right() - left - 4, rect.height())
        wide = self._draw_words(painter, place, str(index.data()), Qt.TextElideMode.ElideMiddle)
        painter.setFont(look.small_font)
        place.setLeft(left + wide + 2 * _GAP)
        if painter.fontMetrics().horizontalAdvance(group.kind) <= place.width():
            painter.setPen(role_colour("muted"))
            _words(painter, place, group.kind)

    def _paint_box(self, painter: QPainter, rect: QRect, option: QStyleOptionViewItem, state: RowState) -> None:
        box = box_rect(rect)
        current_look().check_icon(_BOXES[state], hovered=_is_over(option, box)).paint(painter, box)

    def _paint_switch(
        self, painter: QPainter, rect: QRect, option: QStyleOptionViewItem, switch: Switch, *, is_idle: bool
    ) -> None:
        """Paint both halves on one ground; the lit one in its colour, a closed one with a lock, all pale if idle."""
        look, on, ask = current_look(), on_rect(rect), ask_rect(rect)
        palette = look.palette
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(palette.neutral.soft))
        painter.drawRoundedRect(on.united(ask), look.tokens.radius, look.tokens.radius)
        painter.setFont(look.small_font)
        asks = switch in {Switch.ASK, Switch.LOCKED}
        for half, word, is_lit, pair in (
            (on, ON_WORD, switch is Switch.ON, palette.verdict.allow),
            (ask, ASK_WORD, asks, palette.verdict.ask),
        ):
            is_closed = word == ON_WORD and switch is Switch.LOCKED
            colour = palette.muted
            if is_lit:
                colour = palette.muted if is_idle else pair.fg
                painter.setPen(QColor(palette.border_strong if is_idle else pair.fg))
                painter.setBrush(QColor(palette.surface if is_idle else pair.soft))
                edge = half.toRectF().adjusted(0.5, 0.5, -0.5, -0.5)
                painter.drawRoundedRect(edge, look.tokens.radius, look.tokens.radius)
            elif not is_closed and _is_over(option, half):
                colour = palette.text
                painter.setPen(QColor(palette.border_strong))
                painter.setBrush(QColor(palette.hover))
                edge = half.toRectF().adjusted(0.5, 0.5, -0.5, -0.5)
                painter.drawRoundedRect(edge, look.tokens.radius, look.tokens.radius)
            if is_closed:
                lock = QRect(0, 0, ICON - 2, ICON - 2)
                lock.moveCenter(half.center())
                look.icon("lock", "muted").paint(painter, lock)
            else:
                painter.setPen(QColor(colour))
                painter.drawText(half, Qt.AlignmentFlag.AlignCenter, tr(word))

    def paint_description(self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex) -> None:
        """Paint a line of it behind the name, up to the fact; below each other where the column is wide."""
        view, look = self.parent(), current_look()
        if not isinstance(view, QTreeView) or index.data(GROUP) is not None:
            return
        rect, fact = view.visualRect(index), index.siblingAtColumn(Column.FACT)
        told, cell = str(fact.data() or ""), view.visualRect(fact)
        text, role = str(index.data(DESCRIPTION) or ""), "muted"
        painter.save()
        painter.setFont(look.small_font)
        metrics = painter.fontMetrics()
        end = cell.right() - 8 - metrics.horizontalAdvance(line_text(metrics, told, cell.width() - 12)) - _GAP
        if index.data(IDLE):
            text, role = f"{told[:1].upper()}{told[1:]}", "ask"
            end = mend_rect(cell, fact).left() or cell.right()
        name_end = name_left(rect) + QFontMetrics(_name_font(option, index)).horizontalAdvance(str(index.data()))
        wide = view.columnWidth(Column.NAME)
        aligned = rect.right() - wide + _DEEPEST + name_left(QRect()) + _NAMES if wide >= _WIDE else 0
        start, end = max(name_end + 2 * _GAP, aligned), end - 2 * _GAP
        if end - start >= _LEAST_DESCRIPTION:
            painter.setPen(role_colour(role))
            place = QRect(start, rect.top(), end - start, rect.height())
            self._draw_words(painter, place, _telling_part(metrics, text, place.width(), self.searched))
        painter.restore()

    def _draw_words(
        self, painter: QPainter, place: QRect, text: str, mode: Qt.TextElideMode = Qt.TextElideMode.ElideRight
    ) -> int:
        """Words, marked where they are what is searched for; how wide they are."""
        metrics = painter.fontMetrics()
        shown = line_text(metrics, text, place.width(), mode)
        accent, small = current_look().palette.accent, shown.lower()
        for word in self.searched if len(small) == len(shown) else ():
            start = small.find(word)
            while start >= 0:
                left, end = (metrics.horizontalAdvance(shown[:at]) for at in (start, start + len(word)))
                top = place.center().y() - metrics.height() // 2
                mark = QRect(place.left() + left, top, end - left, metrics.height() + 1)
                painter.fillRect(mark, QColor(accent.soft))
                painter.fillRect(mark.adjusted(0, mark.height() - 2, 0, 0), QColor(accent.fg))
                start = small.find(word, start + len(word))
        painter.drawText(place, LEFT, shown)
        return metrics.horizontalAdvance(shown)

    def _paint_fact(self, painter: QPainter, rect: QRect, option: QStyleOptionViewItem, index: Index) -> None:
        """Paint the fact at the right, as a link where it leads to files; without effect the way out."""
        painter.setFont(current_look().small_font)
        if index.data(IDLE):
            self._paint_mend(painter, rect, option, index)
            return
        state: QStyle.StateFlag = getattr(option, "state")  # noqa: B009
        stands_out = bool(state & (QStyle.StateFlag.State_Selected | QStyle.StateFlag.State_MouseOver))
        role: Role = "accent" if stands_out and index.data(SHARE) is not None else "muted"
        right = rect.right() - 8
        if index.data(NOTED) is not None:
            role = "ask"
        text = line_text(painter.fontMetrics(), str(index.data() or ""), rect.width() - 12)
        painter.setPen(role_colour(role))
        place = QRect(rect.left(), rect.top(), right - rect.left(), rect.height())
        painter.drawText(place, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, text)

    def _paint_mend(self, painter: QPainter, rect: QRect, option: QStyleOptionViewItem, index: Index) -> None:
        place = mend_rect(rect, index)
        if place.isNull():
            return
        look = current_look()
        painter.setPen(QColor(look.palette.border_strong))
        painter.setBrush(QColor(look.palette.hover if _is_over(option, place) else look.palette.surface))
        edge = place.toRectF().adjusted(0.5, 0.5, -0.5, -0.5)
        painter.drawRoundedRect(edge, look.tokens.radius, look.tokens.radius)
        painter.setPen(role_colour("text"))
        painter.drawText(place, Qt.AlignmentFlag.AlignCenter, mend_words(index))

    # clicks

    def part_at(self, cell: QRect, index: Index, at: QPoint) -> Part | None:
        """The part at a point of a cell; a few pixels beside a box count."""
        if index.column() == Column.FACT:
            if mend_rect(cell, index).contains(at):
                return Part.MEND
            return Part.FILES if index.data(SHARE) is not None and not index.data(IDLE) else None
        group = index.data(GROUP)
        if box_rect(cell).adjusted(-3, -5, 3, 5).contains(at):
            return Part.BOX if group is None or group.origin != MORE else None
        if group is not None or index.data(SWITCH) is None:
            return None
        halves = ((on_rect(cell), Part.ON), (ask_rect(cell), Part.ASK))
        return next((part for half, part in halves if half.adjusted(0, -3, 0, 3).contains(at)), None)

    def editorEvent(  # noqa: N802
        self, event: QEvent, model: QAbstractItemModel, option: QStyleOptionViewItem, index: Index
    ) -> bool:
        """Act on the part that was clicked; on the files behind a fact, which is chosen as any row is, at the end."""
        if not isinstance(event, QMouseEvent) or event.button() != Qt.MouseButton.LeftButton:
            return False
        rect: QRect = getattr(option, "rect")  # noqa: B009
        part = self.part_at(rect, index, event.position().toPoint())
        if part is not None and event.type() == QEvent.Type.MouseButtonRelease:
            self._act(model, index, part)
        return part is not None and part is not Part.FILES

    def _act(self, model: QAbstractItemModel, index: Index, part: Part) -> None:
        match part:
            case Part.BOX:
                checked = Qt.CheckState(index.data(Qt.ItemDataRole.CheckStateRole)) == Qt.CheckState.Checked
                wanted = Qt.CheckState.Unchecked if checked else Qt.CheckState.Checked
                model.setData(index, wanted, Qt.ItemDataRole.CheckStateRole)
            case Part.ON | Part.ASK:
                self.switched.emit(index, part is Part.ASK)
            case Part.MEND:
                self.mend_requested.emit(index)
            case Part.FILES:
                self.files_requested.emit(index)

    def helpEvent(  # noqa: N802
        self, event: QHelpEvent, view: QAbstractItemView, option: QStyleOptionViewItem, index: Index
    ) -> bool:
        """Show what a switch says, or the tip of the cell."""
        is_tip = event.type() == QEvent.Type.ToolTip
        if is_tip and self.part_at(view.visualRect(index), index, event.pos()) in {Part.ON, Part.ASK}:
            place = switch_rect(view.visualRect(index))
            QToolTip.showText(event.globalPos(), tip_text(str(index.data(SWITCH_TIP))), view.viewport(), place)
            return True
        return super().helpEvent(event, view, option, index)


def _name_font(option: QStyleOptionViewItem, index: Index) -> QFont:
    font = QFont(getattr(option, "font"))  # noqa: B009
    if index.data(IS_TOOL):
        font.setWeight(QFont.Weight.DemiBold)
    return font


def box_rect(cell: QRect) -> QRect:
    """The place of the box of a name cell."""
    return QRect(cell.left() + 3, cell.top() + (cell.height() - BOX) // 2, BOX, BOX)


def switch_rect(cell: QRect) -> QRect:
    """The place of the switch of a name cell."""
    return on_rect(cell).united(ask_rect(cell))


def on_rect(cell: QRect) -> QRect:
    """The half *On* of the switch."""
    return _half(cell, cell.left() + 3 + BOX + _GAP, ON_WORD)


def ask_rect(cell: QRect) -> QRect:
    """The half *Ask first* of the switch."""
    return _half(cell, on_rect(cell).right() + 1, ASK_WORD)


def _half(cell: QRect, left: int, word: str) -> QRect:
    wide, high = _half_size(tr(word), current_look().small_font)
    return QRect(left, cell.top() + (cell.height() - high) // 2, wide, high)


@lru_cache(maxsize=16)
def _half_size(words: str, font: QFont) -> tuple[int, int]:
    """Return the width and height of a half in pixels; every row asks for it a dozen times."""
    metrics = QFontMetrics(font)
    return metrics.horizontalAdvance(words) + 2 * _PAD, metrics.height() + 4


def name_left(cell: QRect) -> int:
    """The left edge of the name, which stands behind box, switch and the room of a mark."""
    font = current_look().small_font
    switch = _half_size(tr(ON_WORD), font)[0] + _half_size(tr(ASK_WORD), font)[0]
    return cell.left() + 3 + BOX + _GAP + switch + _GAP + ICON


def mend_words(index: Index) -> str:
    """The words on the button of a row without effect; empty where there is no way out."""
    way = index.data(MEND)
    return tr(_MENDS[Mend(way)]) if way else ""


def mend_rect(cell: QRect, index: Index) -> QRect:
    """The place of that button; null where there is none."""
    words = mend_words(index)
    if not words:
        return QRect()
    metrics = QFontMetrics(current_look().small_font)
    wide, high = metrics.horizontalAdvance(words) + 2 * _PAD, metrics.height() + 5
    return QRect(cell.right() - 5 - wide, cell.top() + (cell.height() - high) // 2, wide, high)


def _telling_part(metrics: QFontMetrics, text: str, width: int, searched: Sequence[str]) -> str:
    """The first line; where what is searched for cannot be seen there, its line, from a little before it."""
    first = next((line for line in text[:_LONGEST_TEXT].splitlines() if line.strip()), "").strip()
    word = next((word for word in searched if word in text[:_LONGEST_TEXT].lower()), "")
    if not word or word in line_text(metrics, first, width).lower():
        return first
    line = next((one for one in text[:_LONGEST_TEXT].splitlines() if word in one.lower()), "").strip()
    at = line.lower().find(word)
    start = line.rfind(" ", 0, max(at - 6, 0)) + 1
    if word not in line_text(metrics, f"… {line[start:]}", width).lower():
        start = at
    return f"… {line[start:]}" if start else line


def _is_over(option: QStyleOptionViewItem, place: QRect) -> bool:
    state: QStyle.StateFlag = getattr(option, "state")  # noqa: B009
    view: object = getattr(option, "widget")  # noqa: B009
    if not state & QStyle.StateFlag.State_MouseOver or not isinstance(view, QAbstractItemView):
        return False
    return place.contains(view.viewport().mapFromGlobal(QCursor.pos()))


def _words(painter: QPainter, place: QRect, text: str, mode: Qt.TextElideMode = Qt.TextElideMode.ElideRight) -> None:
    """Names of many tools begin alike: those are cut in the middle."""
    cut = line_text(painter.fontMetrics(), text, place.width(), mode)
    painter.drawText(place, LEFT, cut)
