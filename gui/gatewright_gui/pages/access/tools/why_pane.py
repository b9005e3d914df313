"""The tab *Why*: the effect on the row in a sentence, what mends it, its files as a bar, the steps that lead there."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from PySide6.QtCore import QModelIndex, QObject, QRect, QSize, Qt, Signal
from PySide6.QtGui import QColor, QFontMetrics, QPainter, QPaintEvent
from PySide6.QtWidgets import QAbstractItemView, QPushButton, QSizePolicy, QStyleOptionViewItem, QWidget

from gatewright.workspace.api import Address, CapabilityKind
from gatewright_gui.pages.access.tools.notes import Note, notes_of, observation_notes, problem_notes, reading_notes
from gatewright_gui.pages.access.tools.share_counter import paint_share
from gatewright_gui.pages.access.tools.tool_group import MORE, OF_MORE
from gatewright_gui.pages.access.tools.why import (
    DETAILS,
    Mark,
    ShownRow,
    Step,
    details_of,
    only_operation,
    places_of,
    sentence_of,
    steps_of,
)
from gatewright_gui.pages.page import PageContext
from gatewright_gui.qt.language import counted, mark, tr
from gatewright_gui.qt.layout import column_of, holding, named, row_of, stack_of, stretch
from gatewright_gui.qt.look import Role, VerdictName, current_look, tie_icon
from gatewright_gui.qt.plaintext import button_text, label_text, line_text, tip_text
from gatewright_gui.qt.table_model import ROW, Index, RowModel
from gatewright_gui.qt.widget.button import WordButton
from gatewright_gui.qt.widget.flow_layout import FlowLayout
from gatewright_gui.qt.widget.item_view import Delegate, paint_ground
from gatewright_gui.qt.widget.label import ElidedLabel, Label
from gatewright_gui.qt.widget.note_list import NoteList
from gatewright_gui.session.filetext import lines_of
from gatewright_gui.session.path_share import Share
from gatewright_gui.session.place import place_of
from gatewright_gui.session.verbs import agents
from gatewright_gui.session.verbs.file import server_of

OF_GROUP = mark(
    "The box is for all tools of the group that are shown; those that wait to be accepted stay as they are."
)
TASK = "agents.lines"
MARKS: dict[Mark, tuple[str, Role]] = {
    "on": ("circle-check", "allow"),
    "off": ("circle-slash", "muted"),
    "stop": ("circle-x", "deny"),
    "ask": ("hand", "ask"),
    "level": ("funnel", "accent"),
    "limit": ("hash", "accent"),
    "rest": ("minus", "muted"),
    "note": ("info", "muted"),
    "observed": ("eye", "ask"),
    "problem": ("triangle-alert", "ask"),
}
_ICON, _LEFT, _GAP = 16, 8, 8
_WRAPPED = Qt.AlignmentFlag.AlignLeft | Qt.TextFlag.TextWordWrap


class StepModel(RowModel[Step]):
    """The steps in order, then the details."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._steps: tuple[Step, ...] = ()
        self._lines: Mapping[Address, int] = {}
        self._file = ""

    @property
    def addresses(self) -> tuple[Address, ...]:
        """The places whose lines are wanted."""
        return tuple(step.address for step in self._steps if step.address is not None)

    def set_steps(self, steps: Sequence[Step]) -> None:
        """Show these; lines that were known stay until others come."""
        self._steps = tuple(steps)
        self.set_rows(map(self._step_with_line, self._steps))

    def set_lines(self, lines: Mapping[Address, int], file: str = "") -> None:
        """Take in where the places stand now, and in which file."""
        self._lines, self._file = lines, file
        self.refresh_rows(tuple(map(self._step_with_line, self._steps)), stay=True)

    def _step_with_line(self, step: Step) -> Step:
        line = self._lines.get(step.address) if step.address is not None else None
        return replace(step, line=line, file=self._file if line else "")

    def key(self, row: Step) -> Hashable:
        """The words: lines may still come."""
        return row.mark, row.text

    def cell(self, row: Step, column: int, role: int) -> Any:
        """The words; the tip names the file."""
        del column
        if role in {Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.AccessibleTextRole}:
            return f"{words_of(row)}, {row.where}" if row.where else words_of(row)
        if role == Qt.ItemDataRole.ToolTipRole:
            return tip_text(f"{words_of(row)} ({row.file}:{row.line})" if row.line else words_of(row))
        return None


def words_of(step: Step) -> str:
    """The step as a sentence without code marks."""
    plain = step.text.replace("`", "")
    return label_text(plain if step.text.startswith("`") or step.mark == "note" else f"{plain[:1].upper()}{plain[1:]}")


class StepDelegate(Delegate):
    """An icon, the words, and the place at the right; a line leads from step to step."""

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:  # noqa: N802
        """A size of as many lines as the words need."""
        step, view = index.data(ROW), getattr(option, "widget", None)
        least = current_look().tokens.row_height
        if not isinstance(step, Step) or not isinstance(view, QAbstractItemView):
            return QSize(200, least)
        metrics: QFontMetrics = getattr(option, "fontMetrics")  # noqa: B009
        room = QRect(0, 0, max(_room(view.viewport().width(), metrics, step), 60), 10_000)
        needed = metrics.boundingRect(room, _WRAPPED, words_of(step)).height()
        return QSize(200, max(least, needed + 2 * current_look().tokens.space_1))

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        """Icon, words, link."""
        step = index.data(ROW)
        if not isinstance(step, Step):
            return
        paint_ground(painter, option)
        look = current_look()
        rect: QRect = getattr(option, "rect")  # noqa: B009
        painter.save()
        first = look.tokens.row_height
        icon, role = MARKS[step.mark]
        place = QRect(rect.left() + _LEFT, rect.top() + (first - _ICON) // 2, _ICON, _ICON)
        look.icon(icon, role).paint(painter, place)
        following: object = index.model().index(index.row() + 1, 0).data(ROW)
        if isinstance(following, Step) and step.mark not in DETAILS and following.mark not in DETAILS:
            below = place.bottom() + 3
            painter.fillRect(place.center().x(), below, 1, rect.bottom() + 1 - below, QColor(look.palette.border))
        metrics = painter.fontMetrics()
        wide = metrics.horizontalAdvance(step.where)
        painter.setPen(QColor(look.palette.accent.fg))
        top = QRect(rect.right() - wide - _LEFT, rect.top(), wide + 2, first)
        painter.drawText(top, Qt.AlignmentFlag.AlignVCenter, step.where)
        painter.setPen(QColor(look.palette.muted if step.mark == "note" else look.palette.text))
        words = QRect(place.right() + 1 + _GAP, rect.top(), _room(rect.width(), metrics, step), rect.height())
        painter.drawText(words, _WRAPPED | Qt.AlignmentFlag.AlignVCenter, words_of(step))
        painter.restore()


def _room(width: int, metrics: QFontMetrics, step: Step) -> int:
    """Pixels for the words."""
    where = metrics.horizontalAdvance(step.where) + _GAP if step.where else 0
    return width - 2 * _LEFT - _ICON - _GAP - where


class ShareBar(QWidget):
    """The files of the row by their verdicts: how many there are, a bar, and a word for each colour."""

    def __init__(self) -> None:
        super().__init__()
        self._share: Share | None = None
        self._bar = _Bar(self)
        self._every = named(Label(), kind="small")
        self._unknown = named(Label(wraps=True), kind="small")
        verdicts: tuple[VerdictName, ...] = ("deny", "ask", "allow")  # as the bar has them
        self.counts = {name: named(ElidedLabel(role=name), f"agents.why.files.{name}") for name in verdicts}
        self.files_button = named(QPushButton(tr("Show files")), "agents.why.files", kind="link")
        legend = row_of(*self.counts.values(), stretch(), self.files_button, space=3)
        column_of(self._every, self._bar, legend, self._unknown, into=self, space=1, margins=(2, 1, 2, 1))

    def show_share(self, share: Share | None) -> None:
        """Show the counts; hidden where nothing is counted."""
        self._share = share
        self.setVisible(share is not None)
        if share is None:
            return
        self.setAccessibleName(share.words)
        every = _files_words(share)
        self._every.setText(tr("the first {files}", files=every) if share.is_partial else every)
        for name, (count, words) in share.parts.items():
            self.counts[name].set_text(words)
            self.counts[name].setVisible(count > 0)
        self._bar.setVisible(share.tells)
        self._bar.share = share
        self._bar.update()
        self._unknown.setText(tr("Files in no source are not counted, and no level denies them."))
        self._unknown.setVisible(share.elsewhere)
        self.files_button.setVisible(share.files > share.blocks)


def _files_words(share: Share) -> str:
    files = share.files - share.blocks
    parts = (
        (files or not share.blocks, counted(files, "file", "files")),
        (share.blocks, counted(share.blocks, "block", "blocks")),
    )
    return tr(" and ").join(words for count, words in parts if count)


class _Bar(QWidget):
    """The bar itself."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.share: Share | None = None
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.setFixedHeight(current_look().tokens.space_3)

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802
        del event
        if self.share is not None:
            paint_share(QPainter(self), self.rect(), self.share)


class WhyPane(QWidget):
    """A click or Enter on a step goes to its place."""

    part_requested = Signal(object)
    """Key of another tab: str."""

    def __init__(self, context: PageContext) -> None:
        super().__init__()
        self.setObjectName("agents.why")
        self._context = context
        self._row = ShownRow()
        self._kind: CapabilityKind | None = None
        self.model = StepModel(self)
        self.view = named(NoteList(tr("Reasons")), "agents.why.list")
        self.view.setModel(self.model)
        self.view.setItemDelegate(StepDelegate(self.view))
        self.view.chosen.connect(self._go)
        self.sentence = named(Label(wraps=True), "agents.why.sentence")
        self.sentence.setContentsMargins(8, 4, 8, 4)
        self.share = ShareBar()
        self.share.files_button.clicked.connect(self._show_files)
        self.grant_button = named(QPushButton(), "agents.grant", spoken=tr("Grant what lacks"), kind="primary")
        self.grant_button.clicked.connect(self._grant)
        tip = tr("See exactly what would be started or connected to for these tools, and trust it")
        self.trust_button = named(WordButton(tr("Trust...")), "agents.trust", tip=tip, kind="link")
        tie_icon(self.trust_button, "lock-open")
        self.trust_button.clicked.connect(self._ask_trust)
        self._mends = QWidget()
        self._flow = FlowLayout(self._mends, spacing=current_look().tokens.space_2)
        self._flow.setContentsMargins(8, 0, 8, 4)
        for button in (self.grant_button, self.trust_button):
            self._flow.addWidget(button)
        self._nothing = named(Label(tr("Choose a tool or an operation."), wraps=True), "agents.why.none", kind="muted")
        self._nothing.setAlignment(Qt.AlignmentFlag.AlignTop | Qt.AlignmentFlag.AlignLeft)
        self._nothing.setMargin(8)
        reasons = column_of(self.sentence, self._mends, self.share, stretch(self.view))
        self._stack = stack_of(holding(reasons), self._nothing)
        column_of(stretch(self._stack), into=self)
        for signal in (context.document.problems_changed, context.document.policy_changed):
            signal.connect(self._show_trust)
        self.show_row(ShownRow())

    def add_mend(self, button: QWidget) -> None:
        """Put in a button that mends something of the row."""
        self._flow.addWidget(button)

    def show_row(self, row: ShownRow) -> None:
        """Say why a row is as it is."""
        self._row = row
        policy, agent, tool = self._context.document.policy, row.agent, row.tool
        only = only_operation(row)
        places = places_of(policy, agent, tool, only) if agent is not None and tool is not None and only else None
        of_group = tr(OF_MORE if row.origin == MORE else OF_GROUP)
        self.sentence.setText(of_group if row.group else sentence_of(row, places))
        self.share.show_share(row.share if only is not None and not only.is_hidden else None)
        self._show_grant()
        self._show_trust()
        self.model.set_steps((*steps_of(row, policy, places), *details_of(tuple(self._notes()))))
        if self.model.addresses:
            self._context.tasks.start(self._find_lines(), TASK, replace=True)
        self._stack.setCurrentIndex(int(tool is None and not row.group))

    def _notes(self) -> Iterator[Note]:
        """Everything that limits the row without hiding it."""
        row, document = self._row, self._context.document
        if row.agent is None or row.tool is None:
            return
        policy, facts, name = document.policy, row.tool.facts, row.operation and row.operation.operation
        yield from observation_notes(policy, row.agent, facts, row.noted)
        yield from problem_notes(document.problems, row.agent.agent_id, row.tool, name)
        yield from notes_of(policy, row.agent, row.tool, name)
        yield from reading_notes(policy, facts, row.reading)

    async def _find_lines(self) -> None:
        lines = await self._context.deriver.derive(lines_of, self.model.addresses)
        if lines is not None:
            path = self._context.document.path
            self.model.set_lines(lines, path.name if path else "")

    # what mends it

    def _show_grant(self) -> None:
        """Offer the first grant that a ticked operation of the row lacks."""
        row, document = self._row, self._context.document
        self._kind = None
        if row.agent is not None and row.tool is not None:
            rows = (row.operation,) if row.operation is not None else row.tool.operations
            self._kind = agents.lacking_kind(document, row.agent.agent_id, row.tool, rows)
        self.grant_button.setVisible(self._kind is not None)
        if self._kind is not None:
            scope = agents.ready_scope(document, self._kind)
            what = tr(agents.ACCESS_WORDS[self._kind])
            words = tr("Grant {what}", what=what)
            if scope is None:
                words = tr("Grant {what}...", what=what)
            elif scope:
                words = tr("Grant {what} in {folders}", what=what, folders=scope)
            room = max(self.width() - 64, 160)
            self.grant_button.setText(button_text(line_text(self.grant_button.fontMetrics(), words, room)))
            named(self.grant_button, spoken=words, tip=tip_text(words))

    def _grant(self, _checked: bool = False) -> None:
        kind, agent = self._kind, self._row.agent
        if kind is None or agent is None:
            return
        scope = agents.ready_scope(self._context.document, kind)
        if scope is None:
            self._context.navigator.ask_for_grant(agent.agent_id, kind)
        else:
            agents.grant(self._context.document, agent.agent_id, kind, scope)

    def _show_trust(self, _why: object = None) -> None:
        """Offer trust while the server of the row's tools waits for it."""
        place, document = ("catalogs", self._row.origin), self._context.document
        about = (one for one in document.problems if one.subject is not None and one.subject.address == place)
        self.trust_button.setVisible(any(server_of(document, one) for one in about))

    def _ask_trust(self, _checked: bool = False) -> None:
        self._context.navigator.ask_for_trust(self._row.origin)

    # where it leads

    def _show_files(self, _checked: bool = False) -> None:
        row = self._row
        if row.agent is not None and row.tool is not None:
            name = row.operation.operation if row.operation is not None else ""
            self._context.navigator.go_to_files(row.agent.agent_id, row.tool.facts.name, name)

    def _go(self, index: QModelIndex) -> None:
        """To the level that a rule of files is, else to the line of the policy file, else to the tab."""
        step, policy = self.model.row_at(index.row()), self._context.document.policy
        if step is None:
            return
        if step.link and step.address is not None:
            place = place_of(policy, step.address, step.line)
            if place is not None:
                self._context.navigator.go_to_rule(place)
        elif step.line is not None:
            self._context.navigator.go_to_line(step.line)
        elif step.part == "memory":
            self._context.navigator.go_to_page(step.part)
        elif step.part:
            self.part_requested.emit(step.part)
