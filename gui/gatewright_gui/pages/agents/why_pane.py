"""Why a row is as it is: every reason in order, with its line of the policy. It does not work the reasons out."""

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QRect, QSize, Qt, Signal
from PySide6.QtGui import QColor, QPainter
from PySide6.QtWidgets import (
    QAbstractItemView,
    QLabel,
    QListView,
    QStackedWidget,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QVBoxLayout,
    QWidget,
)

from gatewright_gui.models.reasons import WHY, ReasonModel, Why
from gatewright_gui.pages.agents.agent_delegate import paint_ground
from gatewright_gui.qt.look import Role, current_look
from gatewright_gui.qt.widget.chip import VERDICT_ICONS, chip_width, paint_chip
from gatewright_gui.qt.widget.section_header import SectionHeader

Index = QModelIndex | QPersistentModelIndex


class WhyDelegate(QStyledItemDelegate):
    """Verdict, sentence, and the line at the right."""

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:  # noqa: N802
        """One row."""
        del option, index
        return QSize(200, current_look().tokens.row_height)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        """Chip, words, link."""
        why = index.data(WHY)
        if not isinstance(why, Why):
            return
        paint_ground(painter, option, index)
        look = current_look()
        rect: QRect = getattr(option, "rect")  # noqa: B009
        painter.save()
        left = self._chip(painter, rect, why)
        where = f"line {why.line}" if why.line else ""
        wide = painter.fontMetrics().horizontalAdvance(where)
        painter.setPen(QColor(look.palette.accent.fg if why.line else look.palette.muted))
        painter.drawText(
            QRect(rect.right() - wide - 8, rect.top(), wide + 2, rect.height()), Qt.AlignmentFlag.AlignVCenter, where
        )
        painter.setPen(QColor(look.palette.text))
        words = QRect(left, rect.top(), rect.right() - wide - 18 - left, rect.height())
        cut = painter.fontMetrics().elidedText(why.text.replace("`", ""), Qt.TextElideMode.ElideRight, words.width())
        painter.drawText(words, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, cut)
        painter.restore()

    def _chip(self, painter: QPainter, rect: QRect, why: Why) -> int:
        font = painter.font()
        painter.setFont(current_look().small_font)
        role: Role = {"allow": "allow", "ask": "ask"}.get(why.verdict.value, "deny")  # type: ignore[assignment]
        icon = VERDICT_ICONS[why.verdict.value]
        height = painter.fontMetrics().height() + 5
        wide = chip_width(painter.fontMetrics().horizontalAdvance(why.layer), with_icon=True)
        place = QRect(rect.left() + 8, rect.top() + (rect.height() - height) // 2, wide, height)
        paint_chip(painter, place, why.layer, icon, role)
        painter.setFont(font)
        return place.right() + 9


class WhyPane(QWidget):
    """A click or Enter on a reason goes to its line."""

    line_requested = Signal(object)
    """Line of the policy file."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("agents.why")
        self.model = ReasonModel(self)
        self.header = SectionHeader("Why")
        self.view = QListView()
        self.view.setObjectName("agents.why.list")
        self.view.setAccessibleName("Reasons")
        self.view.setModel(self.model)
        self.view.setItemDelegate(WhyDelegate(self.view))
        self.view.setMouseTracking(True)
        self.view.setUniformItemSizes(True)
        self.view.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.view.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.view.clicked.connect(self._go)
        self.view.activated.connect(self._go)
        self._nothing = QLabel()
        self._nothing.setObjectName("agents.why.none")
        self._nothing.setProperty("kind", "muted")
        self._nothing.setAlignment(Qt.AlignmentFlag.AlignTop | Qt.AlignmentFlag.AlignLeft)
        self._nothing.setWordWrap(True)
        self._nothing.setMargin(8)
        self._stack = QStackedWidget()
        self._stack.addWidget(self.view)
        self._stack.addWidget(self._nothing)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.header)
        column.addWidget(self._stack, 1)

    def set_nothing(self, text: str) -> None:
        """What to say where there is no reason."""
        self._nothing.setText(text)
        self._stack.setCurrentWidget(self._nothing if self.model.rowCount() == 0 else self.view)

    def _go(self, index: QModelIndex) -> None:
        why = self.model.why_at(index.row())
        if why is not None and why.line is not None:
            self.line_requested.emit(why.line)
