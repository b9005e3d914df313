"""The legend of the levels and the filter of files in one: chips with counts, a field for paths, what is left."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from PySide6.QtCore import QRect, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QColor, QFocusEvent, QKeyEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QAbstractButton, QPushButton, QWidget

from gatewright.workspace.api import Permission
from gatewright_gui.pages.access.files.file_filter import NO_FILTER, TreeFilter
from gatewright_gui.pages.access.files.level import LEVELS, PROTECTED_ICON, PROTECTED_WORD
from gatewright_gui.qt.language import mark, tr
from gatewright_gui.qt.layout import column_of, holding, named, row_of, stretch
from gatewright_gui.qt.look import Role, current_look, role_pair
from gatewright_gui.qt.plaintext import LEFT
from gatewright_gui.qt.widget import IconButton, SearchField, chip_width
from gatewright_gui.qt.widget.flow_layout import FlowLayout
from gatewright_gui.qt.widget.label import ElidedLabel
from gatewright_gui.session.verdict import permission_words

TYPED_MS = 150
_ICON = 12
_PROTECTED_TIP = mark(
    "protected: belongs to the policy, its state, its keys or a source that was moved: no rule opens it"
)
_LOOKS: Mapping[str, tuple[str, Role]] = {
    **{str(level): (look.icon, look.role) for level, look in LEVELS.items()},
    PROTECTED_WORD: (PROTECTED_ICON, "none"),
}
WORDS = tuple(_LOOKS)
_STEPS = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1}


class LevelChip(QAbstractButton):
    """A level with icon, word and count; pressed in while showing only these files."""

    step_requested = Signal(object)
    """Left or Right was pressed: -1 or 1."""

    def __init__(self, word: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.word = word
        self._count: str = ""
        self.setObjectName(f"files.legend.{word}")
        self.setCheckable(True)
        self.setFont(current_look().small_font)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.toggled.connect(self._tell)
        current_look().changed.connect(self.update)
        self.set_count(None)

    def set_count(self, count: int | None, *, truncated: bool = False) -> None:
        """Files of the level; None while they are counted."""
        self._count = "" if count is None else f"{count:,}{'+' if truncated else ''}"
        self._tell()
        self.updateGeometry()
        self.update()

    def sizeHint(self) -> QSize:  # noqa: N802
        """Icon, word, count."""
        metrics = self.fontMetrics()
        return QSize(chip_width(metrics.horizontalAdvance(self._text()), True) + 2, metrics.height() + 8)

    def minimumSizeHint(self) -> QSize:  # noqa: N802
        """A chip is never cut."""
        return self.sizeHint()

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802
        """Left and Right go to the neighbour; Return presses, as Space does."""
        step = _STEPS.get(Qt.Key(event.key()))
        if step is not None:
            self.step_requested.emit(step)
        elif event.key() in {Qt.Key.Key_Return, Qt.Key.Key_Enter}:
            self.click()
        else:
            super().keyPressEvent(event)

    def focusInEvent(self, event: QFocusEvent) -> None:  # noqa: N802
        """Seen."""
        super().focusInEvent(event)
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802
        """A frame when pressed in; the focus is a second one."""
        del event
        look, rect = current_look(), self.rect().adjusted(1, 1, -1, -1)
        icon, role = _LOOKS[self.word]
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        pair, radius = role_pair(look.palette, role), look.tokens.small_radius
        painter.setPen(QPen(QColor(pair.fg), 1.5) if self.isChecked() else Qt.PenStyle.NoPen)
        painter.setBrush(QColor(pair.soft))
        painter.drawRoundedRect(rect, radius, radius)
        if self.underMouse() and not self.isChecked():
            painter.setPen(QColor(look.palette.border_strong))
            painter.drawRoundedRect(rect, radius, radius)
        mark = "check" if self.isChecked() else icon
        look.icon(mark, role).paint(painter, QRect(7, (self.height() - _ICON) // 2, _ICON, _ICON))
        painter.setPen(QColor(pair.fg))
        words = QRect(23, 0, self.width() - 24, self.height())
        painter.drawText(words, LEFT, self._text())
        if self.hasFocus():
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(QColor(look.palette.focus), 2))
            painter.drawRoundedRect(rect, radius, radius)

    def _text(self) -> str:
        return f"{self._shown_word} {self._count}".rstrip()

    @property
    def _shown_word(self) -> str:
        return tr(self.word) if self.word == PROTECTED_WORD else permission_words(Permission(self.word))

    def _tell(self, _on: bool = False) -> None:
        files = [tr("{count} files", count=self._count)] if self._count else []
        alone = [tr("showing only these files")] if self.isChecked() else []
        self.setAccessibleName(", ".join((self._shown_word, *files, *alone)))
        act = tr("Click to show all again") if self.isChecked() else tr("Click to show only such files")
        told = tr(_PROTECTED_TIP) if self.word == PROTECTED_WORD else LEVELS[Permission(self.word)].tip
        self.setToolTip(f"{told}\n{act}")


class FilterBar(QWidget):
    """Legend, field, and a line that says what is left out."""

    filter_changed = Signal(object)
    """TreeFilter."""
    step_requested = Signal(object)
    """Go to the next fit, or the one before: 1 or -1."""
    leave_requested = Signal()
    """The keys are to go to the tree."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._filter = NO_FILTER
        self._known: set[str] = set()
        self.field = SearchField(tr("Filter by a part of the path"))
        named(self.field, "files.search", spoken=tr("Filter files by path"))
        self.field.setMinimumWidth(90)
        self._typed = QTimer(self, singleShot=True, interval=TYPED_MS)
        self._typed.timeout.connect(self._take_text)
        self.chips = {word: LevelChip(word) for word in WORDS}
        self.shown = named(ElidedLabel(), "files.shown")
        self.previous_button = named(IconButton("chevron-up", tr("Previous match (Shift+F3)")), "files.previous")
        self.next_button = named(IconButton("chevron-down", tr("Next match (F3)")), "files.next")
        self.clear_button = named(
            QPushButton(tr("Show all")), "files.showall", spoken=tr("Show all files again"), kind="link"
        )
        self._lay_out()
        self._connect()
        self.set_levels((), None)

    @property
    def stops(self) -> tuple[QWidget, ...]:
        """The widgets at which Tab stops, in order."""
        return (self.field, *self.chips.values(), self.previous_button, self.next_button, self.clear_button)

    @property
    def filter(self) -> TreeFilter:
        """The filter that is set."""
        return self._filter

    def set_filter(self, wanted: TreeFilter) -> None:
        """Set another one; says so when it differs."""
        if wanted == self._filter:
            return
        self._filter = wanted
        if wanted.text != self.field.text().strip():
            self.field.setText(wanted.text)
        self._typed.stop()
        for word, chip in self.chips.items():
            chip.setChecked(word in wanted.levels)
        self._line.setVisible(wanted.is_on)
        self._keep_seen()
        self.filter_changed.emit(wanted)

    def set_levels(self, levels: Sequence[Permission], counts: Mapping[str, int] | None, *, more: bool = False) -> None:
        """Explain these levels, and those that files have; `counts` None while they are made."""
        self._known = {str(level) for level in levels}
        if counts is not None:
            self._known |= {word for word, count in counts.items() if count}
        for word, chip in self.chips.items():
            chip.set_count(counts.get(word, 0) if counts is not None else None, truncated=more)
        self._keep_seen()

    def show_fitting(self, count: int | None, of: int, *, what: str = "") -> None:
        """Show how much fits; None while that is being found out."""
        told = tr("filtering...") if count is None else tr("{count:,} of {total:,} files", count=count, total=of)
        self.shown.set_text(f"{told}{f', {what}' if what else ''}")
        for button in (self.previous_button, self.next_button):
            button.setEnabled(bool(count))

    def _keep_seen(self) -> None:
        for word, chip in self.chips.items():
            chip.setVisible(word in self._known or word in self._filter.levels)
        self._flow.invalidate()
        self.updateGeometry()

    def _flip(self, word: str, on: bool) -> None:
        levels = self._filter.levels | {word} if on else self._filter.levels - {word}
        self.set_filter(replace(self._filter, levels=levels))

    def _take_text(self) -> None:
        self.set_filter(replace(self._filter, text=self.field.text().strip()))

    def _clear(self) -> None:
        self.set_filter(NO_FILTER)
        self.leave_requested.emit()

    def _step_chip(self, word: str, step: int) -> None:
        seen = [one for one, chip in self.chips.items() if not chip.isHidden()]
        self.chips[seen[(seen.index(word) + step) % len(seen)]].setFocus(Qt.FocusReason.OtherFocusReason)

    def _connect(self) -> None:
        self.field.textChanged.connect(self._typed.start)
        self.field.returnPressed.connect(self._take_text)
        self.field.leave_requested.connect(self.leave_requested)
        self.field.results_requested.connect(self.leave_requested)
        for word, chip in self.chips.items():
            chip.toggled.connect(partial(self._flip, word))
            chip.step_requested.connect(partial(self._step_chip, word))
        self.clear_button.clicked.connect(self._clear)
        self.previous_button.clicked.connect(partial(self.step_requested.emit, -1))
        self.next_button.clicked.connect(partial(self.step_requested.emit, 1))

    def _lay_out(self) -> None:
        line = row_of(stretch(self.shown), self.previous_button, self.next_button, self.clear_button, space=1)
        self._line = holding(line)
        self._line.hide()
        legend = named(QWidget(), spoken=tr("Levels: what the colours mean, and a filter"))
        self._flow = FlowLayout(legend, spacing=current_look().tokens.space_1)
        self._flow.setContentsMargins(0, 0, 0, 0)
        for chip in self.chips.values():
            self._flow.addWidget(chip)
        column_of(self.field, legend, self._line, into=self, space=1, margins=(2, 0, 2, 1))
