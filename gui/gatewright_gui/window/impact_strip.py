"""The dark line at the foot of the window: what the last edit changes for the agents, with *Undo*.

It keeps its room from the start, so that nothing moves. The worker process works the numbers out; until they are known
the line has the edit's own words.
"""

from collections.abc import Sequence

from PySide6.QtCore import QRect, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QAccessible,
    QAccessibleAnnouncementEvent,
    QColor,
    QEnterEvent,
    QFont,
    QFontMetrics,
    QKeyEvent,
    QPainter,
    QPaintEvent,
)
from PySide6.QtWidgets import QAbstractButton, QHBoxLayout, QSizePolicy, QWidget

from gatewright.workspace.api import GatewrightError
from gatewright_gui.pages.access.tools.right_lines import limit_words
from gatewright_gui.qt.language import counted, tr
from gatewright_gui.qt.layout import named
from gatewright_gui.qt.look import current_look
from gatewright_gui.qt.plaintext import LEFT, LONGEST_LINE, label_text, line_text, tip_text
from gatewright_gui.qt.task import TaskOwner
from gatewright_gui.session.derive import Deriver
from gatewright_gui.session.document import Document, Step
from gatewright_gui.session.impact import CallImpact, Impact, ModelImpact

WORK = "impact"
HEIGHT = 40
_BETWEEN = "  \N{MIDDLE DOT}  "
_STRONG, _DANGER, _QUIET, _LINK = range(4)
"""How a piece of text is painted."""
Piece = tuple[int, str]


class StripText(QAbstractButton):
    """Pieces of text in one line, cut at the end where they do not fit; the whole is in the tooltip."""

    def __init__(self, name: str) -> None:
        super().__init__()
        named(self, name)
        self._pieces: tuple[Piece, ...] = ()
        self.is_quiet = True
        """Whether it stands on the ground of the window."""
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Expanding)
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)

    def set_pieces(self, pieces: Sequence[Piece], spoken: str) -> None:
        """Show another text."""
        self._pieces = tuple((kind, label_text(text, LONGEST_LINE)) for kind, text in pieces if text)
        self.setText("".join(text for _, text in self._pieces))
        self.setAccessibleName(spoken)
        self.updateGeometry()
        self._tell_cut()
        self.update()

    def sizeHint(self) -> QSize:  # noqa: N802
        """Room for all of it."""
        width = sum(self._metrics(kind).horizontalAdvance(text) for kind, text in self._pieces)
        return QSize(width + 2 * current_look().tokens.space_2, HEIGHT - 8)

    def minimumSizeHint(self) -> QSize:  # noqa: N802
        """It gives way."""
        return QSize(40, HEIGHT - 8)

    def resizeEvent(self, event: object) -> None:  # noqa: N802
        """The tooltip holds the whole text where it is cut."""
        del event
        self._tell_cut()

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802
        """Enter is a click, as on every button."""
        if event.key() in {Qt.Key.Key_Return, Qt.Key.Key_Enter}:
            self.click()
        else:
            super().keyPressEvent(event)

    def enterEvent(self, event: QEnterEvent) -> None:  # noqa: N802
        """A hand where a click does something."""
        self.setCursor(Qt.CursorShape.PointingHandCursor if self.isEnabled() else Qt.CursorShape.ArrowCursor)
        super().enterEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802
        """Piece by piece, and a frame for the focus."""
        del event
        look, space = current_look(), current_look().tokens.space_2
        strip, palette = look.palette.strip, look.palette
        colours = {_STRONG: strip.text, _DANGER: strip.danger, _QUIET: strip.muted, _LINK: strip.link}
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        left, right = space, self.width() - space
        for kind, text in self._pieces:
            metrics = self._metrics(kind)
            cut = line_text(metrics, text, right - left)
            painter.setFont(self._font(kind, underlined=kind == _LINK and self.underMouse()))
            painter.setPen(QColor(palette.muted if self.is_quiet else colours[kind]))
            painter.drawText(QRect(left, 0, right - left, self.height()), LEFT, cut)
            left += metrics.horizontalAdvance(text)
            if cut != text:
                break
        if self.hasFocus():
            painter.setPen(QColor(palette.focus if self.is_quiet else strip.link))
            painter.drawRoundedRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5), 3, 3)

    def _tell_cut(self) -> None:
        self.setToolTip(tip_text(self.text()) if self.sizeHint().width() > self.width() else "")

    def _font(self, kind: int, *, underlined: bool = False) -> QFont:
        font = QFont(self.font())
        font.setWeight(QFont.Weight.Normal if kind == _QUIET else QFont.Weight.DemiBold)
        font.setUnderline(underlined)
        return font

    def _metrics(self, kind: int) -> QFontMetrics:
        return QFontMetrics(self._font(kind))


class ImpactStrip(QWidget):
    """Follows the document; a click on its words asks for the whole list."""

    details_requested = Signal()
    undo_requested = Signal()
    redo_requested = Signal()
    told = Signal()
    """Emits after what it says may have changed."""

    def __init__(self, document: Document, deriver: Deriver, tasks: TaskOwner) -> None:
        super().__init__()
        named(self, "impact")
        self._document, self._deriver, self._tasks = document, deriver, tasks
        self._step: Step | None = None
        self._impact: Impact | None = None
        self._model: ModelImpact | None = None
        self._calls: CallImpact | None = None
        self._fault = ""
        self._note = ""
        self._before_note: Step | None = None
        space = current_look().tokens.space_2
        self.words = StripText("impact.words")
        self.words.clicked.connect(self.details_requested)
        self.undo_button = StripText("impact.undo")
        self.undo_button.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Expanding)
        self.undo_button.clicked.connect(self._take_back)
        row = QHBoxLayout(self)
        row.setContentsMargins(space, 2, space, 2)
        row.setSpacing(space)
        row.addWidget(self.words, 1)
        row.addWidget(self.undo_button)
        self.setFixedHeight(HEIGHT)
        current_look().changed.connect(self.update)
        document.opened.connect(self._begin)
        document.closed.connect(self._begin)
        document.policy_changed.connect(self._follow)
        document.noted.connect(self._take_note)
        self._begin()

    @property
    def text(self) -> str:
        """The whole line."""
        return self.words.text()

    @property
    def says_something(self) -> bool:
        """Tell whether something was edited or changed."""
        return self._step is not None or bool(self._note)

    @property
    def is_counting(self) -> bool:
        """Tell whether numbers are still to come."""
        return self._step is not None and not self._fault and None in {self._impact, self._model, self._calls}

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802
        """A dark ground once something was edited."""
        del event
        if self.says_something:
            look = current_look()
            painter = QPainter(self)
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(look.palette.strip.ground))
            room = QRectF(self.rect()).adjusted(look.tokens.space_2, 2, -look.tokens.space_2, -2)
            painter.drawRoundedRect(room, look.tokens.radius, look.tokens.radius)

    def _begin(self) -> None:
        """Nothing is edited yet."""
        self._tasks.cancel(WORK)
        self._step = self._impact = self._model = self._calls = None
        self._fault = self._note = ""
        self._show()

    def _take_note(self, words: str) -> None:
        """Something else than the policy was changed: the line says it until the next edit."""
        self._tasks.cancel(WORK)
        self._step = self._impact = self._model = self._calls = None
        self._note, self._before_note = words, self._document.last_step
        self._show()
        QAccessible.updateAccessibility(QAccessibleAnnouncementEvent(self.words, words))

    def _follow(self, _changes: object) -> None:
        step = self._document.last_step
        if self._note and (step is None or step is self._before_note):
            return  # tools came in, and nobody edited anything
        self._step = step
        self._impact = self._model = self._calls = None
        self._fault = self._note = ""
        self._show()
        if self._step is None:
            self._tasks.cancel(WORK)
        else:
            self._tasks.start(self._count(self._step), WORK, replace=True)

    async def _count(self, step: Step) -> None:
        from gatewright_gui.session.comparison import call_impact, impact, model_impact, without_text

        since = without_text(step.edit)
        try:
            self._impact = await self._deriver.derive_in_pieces(impact, _ignore, since, limit_words)
            self._show_answer(step)
            self._model = await self._deriver.derive(model_impact, since)
            self._show_answer(step)
            self._calls = await self._deriver.derive_in_pieces(call_impact, _ignore, since)
            self._show_answer(step)
            if self._impact is not None:
                event = QAccessibleAnnouncementEvent(self.words, self.words.accessibleName())
                QAccessible.updateAccessibility(event)
        except GatewrightError as error:
            if self._step is step:
                self._fault = str(error).replace("`", "")
                self._show()

    def _show_answer(self, step: Step) -> None:
        """Show what is known by now; an answer of an older edit was dropped on its way."""
        if self._step is step:
            self._show()

    def _take_back(self) -> None:
        (self.undo_requested if self._step is not None and self._step.way >= 0 else self.redo_requested).emit()

    def _show(self) -> None:
        step = self._step
        is_edited = step is not None
        self.words.is_quiet = not self.says_something
        self.words.setEnabled(is_edited)
        self.words.setFocusPolicy(Qt.FocusPolicy.StrongFocus if is_edited else Qt.FocusPolicy.NoFocus)
        self.undo_button.is_quiet = False
        self.undo_button.setVisible(is_edited)
        waits = tr("What an edit changes for the agents shows here.") if self._document.is_open else ""
        said = (_STRONG, self._note) if self._note else (_QUIET, waits)
        pieces = self._pieces() if is_edited else [said]
        spoken = "".join(text for _, text in pieces)
        self.words.set_pieces(pieces, tr("Last edit: {words}", words=spoken) if is_edited else spoken)
        if step is not None:
            word = tr("Undo") if step.way >= 0 else tr("Redo")
            name = step.edit.name.replace("`", "")
            self.undo_button.set_pieces([(_LINK, word)], f"{word}: {name}")
        self.update()
        self.told.emit()

    def _pieces(self) -> list[Piece]:
        if self._impact is None:
            waits = tr("not counted: {reason}", reason=self._fault) if self._fault else tr("counting...")
            return [(_STRONG, self._edit_words), (_QUIET, f"{_BETWEEN}{waits}")]
        lines = self._impact.lines
        pieces: list[Piece] = [(_STRONG, self._impact.nothing)]
        if lines:
            before, verb, after = lines[0].parts
            pieces = [(_STRONG, before), (_DANGER if lines[0].is_dangerous else _STRONG, verb), (_STRONG, after)]
        more = len(lines) - 1 + self._impact.cut
        if self._step is not None and self._step.way < 0:
            pieces = [(_QUIET, f"{tr('After undo:')} "), *pieces]
        said = [counted(more, "more change", "more changes")] if more > 0 else []
        said += [one.words for one in (self._model, self._calls) if one is not None and one.words]
        said += [self._fault] if self._fault else [tr("counting...")] if self._calls is None else []
        return [*pieces, *((_QUIET, f"{_BETWEEN}{words}") for words in said)]

    @property
    def _edit_words(self) -> str:
        step = self._step
        if step is None:
            return ""
        name = step.edit.name.replace("`", "")
        words = {-1: tr("undone: {edit}", edit=name), 1: tr("redone: {edit}", edit=name)}.get(step.way, name)
        return words[:1].upper() + words[1:]


def _ignore(_progress: object) -> None:
    """Ignore how far it is: the line says that it counts."""
