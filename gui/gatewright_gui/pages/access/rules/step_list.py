"""The steps of a composition in their order: what each calls and gets, and what it comes to for an agent."""

from collections.abc import Sequence

from PySide6.QtCore import QRect, Qt, Signal
from PySide6.QtGui import QKeyEvent, QPainter
from PySide6.QtWidgets import QAbstractItemView, QStyleOptionViewItem

from gatewright.workspace.api import CompositionStep, Verdict
from gatewright_gui.qt.language import mark, tr
from gatewright_gui.qt.layout import named
from gatewright_gui.qt.look import current_look, role_colour
from gatewright_gui.qt.plaintext import LEFT, line_text
from gatewright_gui.qt.prose import plain
from gatewright_gui.qt.table_model import ROW, Index, OrderedModel
from gatewright_gui.qt.widget.chip import VERDICT_ICONS
from gatewright_gui.qt.widget.item_view import Delegate, OrderedTable, paint_ground, put_icon, tint
from gatewright_gui.session.composing import Picture, StepPicture, flow_of
from gatewright_gui.session.condition import when_words

NUMBER, TOOL, GETS, VERDICT = range(4)


class StepListModel(OrderedModel[CompositionStep]):
    """One row for each step; a row stays itself while it is edited and moved."""

    headers = (mark("Step"), mark("Calls"), mark("What it gets"), mark("For the agent"))

    def __init__(self) -> None:
        super().__init__()
        self._pictures: Sequence[StepPicture] = ()

    def show_picture(self, picture: Picture | None) -> None:
        """Say what the steps come to; None: that is not known yet."""
        self._pictures = () if picture is None or len(picture.steps) != self.count() else picture.steps
        self.tell_changed()

    def verdict(self, at: int) -> Verdict | None:
        """The verdict on a step, where it is known."""
        return self._pictures[at].verdict if at < len(self._pictures) else None

    def key(self, row: CompositionStep) -> object:
        """The step, whatever became of it."""
        return row.identity

    def text(self, row: CompositionStep, column: int) -> str:
        """Words for each part of a step."""
        at = self.find(row.identity)
        match column:
            case 0:
                return str(at + 1)
            case 1:
                return row.tool
            case 2:
                words = "".join(text for text, _ in flow_of(row))
                return words if row.is_unconditional else f"{words}   {tr('only where its condition holds')}"
            case _:
                return self._pictures[at].words if at < len(self._pictures) else ""

    def tip(self, row: CompositionStep, column: int) -> str:
        """All of it, and why."""
        at = self.find(row.identity)
        if column == VERDICT and at < len(self._pictures):
            return plain(self._pictures[at].reason)
        when = "" if row.is_unconditional else f"\n{when_words(row.when)}"
        return self.text(row, column) + (when if column == GETS else "")


class StepDelegate(Delegate):
    """Makes values of the input and of other steps stand out; verdicts have icon and colour."""

    def initStyleOption(self, option: QStyleOptionViewItem, index: Index) -> None:  # noqa: N802
        """Icon and colour."""
        super().initStyleOption(option, index)
        model = index.model()
        if index.column() == VERDICT and isinstance(model, StepListModel):
            verdict = model.verdict(index.row())
            if verdict is not None:
                put_icon(option, VERDICT_ICONS[verdict.value], verdict.value)
                tint(option, "muted" if verdict is Verdict.ALLOW else verdict.value)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        """Paint what a step gets piece by piece."""
        step = index.data(ROW)
        if index.column() != GETS or not isinstance(step, CompositionStep):
            super().paint(painter, option, index)
            return
        self.initStyleOption(option, index)
        paint_ground(painter, option)
        rect: QRect = option.rect  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType]
        left, right = rect.left() + current_look().tokens.space_2, rect.right() - current_look().tokens.space_1
        pieces = [*flow_of(step)]
        if not step.is_unconditional:
            pieces.append((f"   {tr('only where its condition holds')}", False))
        painter.save()
        metrics = painter.fontMetrics()
        for text, is_carried in pieces:
            if left >= right:
                break
            painter.setPen(role_colour("accent" if is_carried else "text"))
            shown = line_text(metrics, text, right - left)
            painter.drawText(QRect(left, rect.top(), right - left, rect.height()), LEFT, shown)
            left += metrics.horizontalAdvance(text)
        painter.restore()


class StepList(OrderedTable):
    """Del removes, Ins adds, Enter edits, Alt+Up and Alt+Down move, as dragging does."""

    remove_requested = Signal()
    add_requested = Signal()
    edit_requested = Signal()

    def __init__(self, model: StepListModel) -> None:
        super().__init__(tr("Steps in order"))
        named(self, "policy.steps")
        self.setItemDelegate(StepDelegate(self))
        self.show_model(model, {NUMBER: 52, TOOL: 120, VERDICT: 130}, wide=GETS)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)

    def move_by(self, by: int) -> None:
        """Ask that the chosen step goes up or down."""
        rows = self.chosen
        if rows and 0 <= rows[0] + by < self.model().rowCount():
            self.move_requested.emit(rows[0] + by)

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802
        """The keys of the list."""
        is_alt = event.modifiers() == Qt.KeyboardModifier.AltModifier
        match event.key():
            case Qt.Key.Key_Up | Qt.Key.Key_Down if is_alt:
                self.move_by(-1 if event.key() == Qt.Key.Key_Up else 1)
            case Qt.Key.Key_Delete | Qt.Key.Key_Backspace:
                self.remove_requested.emit()
            case Qt.Key.Key_Insert:
                self.add_requested.emit()
            case Qt.Key.Key_Return | Qt.Key.Key_Enter | Qt.Key.Key_F2:
                self.edit_requested.emit()
            case _:
                super().keyPressEvent(event)

    def choose(self, row: int) -> None:
        """Make a step the chosen one."""
        self.setCurrentIndex(self.model().index(row, TOOL))
