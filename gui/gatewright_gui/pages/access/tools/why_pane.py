"""Why a row is as it is: the verdict in a sentence, what each layer says with its line of the policy file, and then
what depends on the call.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from PySide6.QtCore import QModelIndex, QObject, QRect, QSize, Qt, Signal
from PySide6.QtGui import QColor, QFontMetrics, QPainter
from PySide6.QtWidgets import (
    QAbstractItemView,
    QStackedWidget,
    QStyleOptionViewItem,
    QWidget,
)

from gatewright.workspace.api import Address, Layer, OperationRight, Reason, ToolRight, Verdict, frozen
from gatewright_gui.pages.access.tools.notes import OBSERVED, PROBLEM, Note
from gatewright_gui.pages.access.tools.row_state import reasons_of
from gatewright_gui.qt.language import mark, tr
from gatewright_gui.qt.layout import column_of, holding, named, stretch
from gatewright_gui.qt.look import Role, current_look
from gatewright_gui.qt.plaintext import label_text
from gatewright_gui.qt.table_model import ROW, Index, RowModel
from gatewright_gui.qt.widget.chip import VERDICT_ICONS, chip_width, paint_chip
from gatewright_gui.qt.widget.delegate import Delegate, paint_ground
from gatewright_gui.qt.widget.label import Label
from gatewright_gui.qt.widget.note_list import NoteList
from gatewright_gui.qt.widget.section_header import SectionHeader

LAYER_WORDS = {
    Layer.TOOLS: mark("tick"),
    Layer.RULE: mark("tool rule"),
    Layer.CAPABILITY: mark("capability"),
    Layer.SOURCE: mark("source"),
    Layer.POLICY: mark("policy"),
    Layer.APPROVALS: mark("approval"),
}
"""In the order of the ladder."""
_UNLISTED = frozenset({"tool-not-listed", "unlisted-tool", "outmoded-tool"})
"""Codes of the reasons by which the box of a whole tool is off."""
_OFF = mark("the box is off")
_SAID = {"passed": mark("passed"), "stopped": mark("stopped"), "not reached": mark("not reached")}


@frozen
class Step:
    """A layer that says nothing of its own about a row: it lets it through, is not reached, or is a box that is off."""

    layer: Layer
    said: Literal["passed", "stopped", "not reached"]
    address: Address | None = None
    text: str = ""


def ladder(tool: ToolRight, operation: OperationRight | None, tick: Address) -> tuple[Reason | Step, ...]:
    """Every layer in turn: its reasons, or that it was passed or not reached. `tick`: where the tick stands.

    Of a whole tool a layer is reached where it is for one of its operations.
    """
    rows: list[Reason | Step] = []
    reasons = reasons_of(tool, operation)
    going = [operation] if operation else list(tool.operations)
    is_off = not any(op.ticked for op in going)
    for layer in LAYER_WORDS:
        own = [reason for reason in reasons if reason.layer is layer]
        if layer is Layer.TOOLS and is_off:
            rows += _box_off(own, reasons, tick)
            going = []
            continue
        rows += own or [Step(layer, "passed" if going else "not reached", tick if layer is Layer.TOOLS else None)]
        going = [
            op for op in going if not any(one.layer is layer and one.verdict is Verdict.DENY for one in op.reasons)
        ]
    return tuple(rows)


def _box_off(own: Sequence[Reason], reasons: Sequence[Reason], tick: Address) -> Sequence[Reason | Step]:
    """That a box is off and why: its tool is not listed, or a tool rule leaves it out."""
    if any(reason.code in _UNLISTED for reason in own):
        return [replace(one, text=f"{tr(_OFF)}: {one.text}") if one.code in _UNLISTED else one for one in own]
    rule = next((one for one in reasons if one.code == "operation-not-allowed" and one.address), None)
    left_out = tr("{box_is_off}: the tool rule below leaves it out", box_is_off=tr(_OFF))
    text, address = (left_out, rule.address) if rule else (tr(_OFF), tick)
    return [Step(Layer.TOOLS, "stopped", address, text), *own]


@frozen
class Why:
    """One reason; `line` of the policy file, None when it follows from no line (a default).

    `verdict` None: a note, what it says depends on the call, or a step of the ladder that says nothing.
    """

    verdict: Verdict | None
    layer: str
    text: str
    line: int | None
    file: str = ""
    step: Literal["", "passed", "stopped", "not reached"] = ""

    @property
    def is_problem(self) -> bool:
        """Whether it says that something is wrong with the policy."""
        return self.verdict is None and self.layer == PROBLEM

    @property
    def where(self) -> str:
        """File and line; empty when it follows from no line."""
        if not self.line:
            return ""
        return f"{self.file}:{self.line}" if self.file else tr("line {line}", line=self.line)


class ReasonModel(RowModel[Why]):
    """Reasons in the order in which they decide, then the notes."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._reasons: tuple[Reason | Step | Note, ...] = ()
        self._lines: Mapping[Address, int] = {}
        self._file = ""

    @property
    def addresses(self) -> tuple[Address, ...]:
        """The places whose lines are wanted."""
        return tuple(reason.address for reason in self._reasons if reason.address is not None)

    def set_reasons(self, reasons: Sequence[Reason | Step], notes: Sequence[Note] = ()) -> None:
        """Show these; lines that were known stay until others come."""
        new = (*reasons, *notes)
        if new == self._reasons:
            return
        self._reasons = new
        self.set_rows(map(self._why, new))

    def set_lines(self, lines: Mapping[Address, int], file: str = "") -> None:
        """Where the places stand now, and in which file."""
        self._lines, self._file = lines, file
        self.refresh_rows(tuple(map(self._why, self._reasons)), stay=True)

    def _why(self, reason: Reason | Step | Note) -> Why:
        line = self._lines.get(reason.address) if reason.address is not None else None
        file = self._file if line else ""
        if isinstance(reason, Note):
            return Why(None, reason.layer, reason.text, line, file)
        if isinstance(reason, Step):
            return Why(None, LAYER_WORDS[reason.layer], reason.text or tr(_SAID[reason.said]), line, file, reason.said)
        return Why(reason.verdict, LAYER_WORDS[reason.layer], reason.text, line, file)

    def cell(self, row: Why, column: int, role: int) -> Any:
        """The sentence."""
        del column
        if role in {Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.ToolTipRole, Qt.ItemDataRole.AccessibleTextRole}:
            layer, said = tr(row.layer), tr(row.verdict or "note")
            where = ", " + tr("line {line}", line=row.line) if row.line else ""
            return f"{layer}: {row.text}" if row.step else f"{said}, {layer}: {row.text}{where}"
        return None


_ROW = 22
_CHIP_LEFT = 8
_GAP = 8
_WHERE_ROOM = 18
_WRAPPED = Qt.AlignmentFlag.AlignLeft | Qt.TextFlag.TextWordWrap


class WhyDelegate(Delegate):
    """Verdict, sentence, and the line at the right."""

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:  # noqa: N802
        """As many lines as the sentence needs."""
        why, view = index.data(ROW), getattr(option, "widget", None)
        if not isinstance(why, Why) or not isinstance(view, QAbstractItemView):
            return QSize(200, _ROW)
        metrics: QFontMetrics = getattr(option, "fontMetrics")  # noqa: B009
        small = QFontMetrics(current_look().small_font)
        left = _CHIP_LEFT + _chip_room(small, tr(why.layer)) + _GAP
        room = view.viewport().width() - left - metrics.horizontalAdvance(why.where) - _WHERE_ROOM
        words = QRect(0, 0, max(room, 60), 10_000)
        needed = metrics.boundingRect(words, _WRAPPED, _words_of(why)).height()
        return QSize(200, max(_ROW, needed + current_look().tokens.space_1))

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        """Chip, words, link."""
        why = index.data(ROW)
        if not isinstance(why, Why):
            return
        paint_ground(painter, option)
        look = current_look()
        rect: QRect = getattr(option, "rect")  # noqa: B009
        painter.save()
        left = self._chip(painter, rect, why)
        where = why.where
        wide = painter.fontMetrics().horizontalAdvance(where)
        painter.setPen(QColor(look.palette.accent.fg if why.line else look.palette.muted))
        first = QRect(rect.right() - wide - 8, rect.top(), wide + 2, _ROW)
        painter.drawText(first, Qt.AlignmentFlag.AlignVCenter, where)
        is_quiet = why.step in {"passed", "not reached"}
        painter.setPen(QColor(look.palette.muted if is_quiet else look.palette.text))
        words = QRect(left, rect.top(), rect.right() + 1 - wide - _WHERE_ROOM - left, rect.height())
        painter.drawText(words, _WRAPPED | Qt.AlignmentFlag.AlignVCenter, _words_of(why))
        painter.restore()

    def _chip(self, painter: QPainter, rect: QRect, why: Why) -> int:
        font = painter.font()
        painter.setFont(current_look().small_font)
        icon, role = _chip_look(why)
        height, wide = painter.fontMetrics().height() + 5, _chip_room(painter.fontMetrics(), tr(why.layer))
        place = QRect(rect.left() + _CHIP_LEFT, rect.top() + (_ROW - height) // 2, wide, height)
        paint_chip(painter, place, tr(why.layer), icon, role)
        painter.setFont(font)
        return place.right() + 1 + _GAP


def _chip_room(metrics: QFontMetrics, layer: str) -> int:
    """Chips of the ladder are equally wide, so that its words stand below each other."""
    return chip_width(
        max(metrics.horizontalAdvance(one) for one in (layer, *map(tr, LAYER_WORDS.values()))), with_icon=True
    )


def _chip_look(why: Why) -> tuple[str, Role]:
    """What nobody ticked is quiet; what is ticked and stopped by another layer calls for a look."""
    if why.step == "passed":
        return "check", "allow"
    if why.step:
        return "circle-slash" if why.step == "stopped" else "minus", "neutral"
    if why.verdict is None and why.layer == OBSERVED:
        return "eye", "ask"
    if why.verdict is None:
        return ("triangle-alert", "ask") if why.is_problem else ("info", "neutral")
    if why.verdict is not Verdict.DENY:
        return VERDICT_ICONS[why.verdict.value], why.verdict.value
    by_box = why.layer in {LAYER_WORDS[Layer.TOOLS], LAYER_WORDS[Layer.RULE]}
    return ("circle-slash", "neutral") if by_box else ("triangle-alert", "ask")


def _words_of(why: Why) -> str:
    return label_text(why.text.replace("`", ""))


class WhyPane(QWidget):
    """A click or Enter on a reason goes to its line; the header may be laid out elsewhere."""

    line_requested = Signal(object)
    """Line of the policy file."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("agents.why")
        self.model = ReasonModel(self)
        self.header = SectionHeader(tr("Why"))
        self.view = named(NoteList(tr("Reasons")), "agents.why.list")
        self.view.setModel(self.model)
        self.view.setItemDelegate(WhyDelegate(self.view))
        self.view.chosen.connect(self._go)
        self._nothing = named(Label(wraps=True), "agents.why.none", kind="muted")
        self._nothing.setAlignment(Qt.AlignmentFlag.AlignTop | Qt.AlignmentFlag.AlignLeft)
        self._nothing.setMargin(8)
        self.sentence = named(Label(wraps=True), "agents.why.sentence", kind="heading")
        self.sentence.setContentsMargins(8, 2, 8, 4)
        self._stack = QStackedWidget()
        self._stack.addWidget(holding(column_of(self.sentence, stretch(self.view))))
        self._stack.addWidget(self._nothing)
        column_of(self.header, stretch(self._stack), into=self)

    def set_nothing(self, text: str) -> None:
        """What to say where there is no reason."""
        self._nothing.setText(text)
        self._stack.setCurrentIndex(int(self.model.rowCount() == 0))

    def _go(self, index: QModelIndex) -> None:
        why = self.model.row_at(index.row())
        if why is not None and why.line is not None:
            self.line_requested.emit(why.line)
