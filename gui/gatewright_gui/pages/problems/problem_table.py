"""The table of problems: their words, where each stands and what it is about; many of one kind below one heading."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import PurePath

from PySide6.QtCore import QObject, QRect, Qt, Signal
from PySide6.QtGui import QColor, QKeyEvent, QPainter
from PySide6.QtWidgets import QStyle, QStyleOptionViewItem, QWidget

from gatewright.workspace.api import Problem, frozen
from gatewright_gui.qt.language import counted, mark, tr
from gatewright_gui.qt.look import current_look
from gatewright_gui.qt.prose import paint_prose
from gatewright_gui.qt.table_model import ROW, Index, RowModel
from gatewright_gui.qt.widget.delegate import Delegate
from gatewright_gui.qt.widget.item_view import TableView
from gatewright_gui.session.causes import causes_of
from gatewright_gui.session.ruleplace import AgentPlace, LevelPlace, LinePlace, PolicyPlace, RulePlace, ToolPlace

MESSAGE, ABOUT, PLACE, CODE = range(4)
PlaceOf = Callable[[Problem], RulePlace | None]
FEWEST = 3
"""So many problems of one kind have a heading."""
MOST_OPEN = 8
"""More of them are folded at first."""
_NAME = re.compile(r"`[^`]*`(, `[^`]*`)*( and `[^`]*`)?")


@frozen
class ProblemRow:
    """A problem, and what it is about, in words; or the heading over `count` of them, of which it is the first."""

    problem: Problem
    about: str
    count: int = 0
    is_open: bool = False
    is_below: bool = False
    said: str = ""
    """The words of a heading."""

    @property
    def kind(self) -> tuple[bool, str]:
        """What problems below one heading have in common."""
        return self.problem.is_error, self.problem.code


class ProblemModel(RowModel[ProblemRow]):
    """One row per problem that fits the search, errors first; those of one kind can be folded."""

    headers = (mark("Problem"), mark("About"), mark("Line"), mark("Code"))

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._every: tuple[ProblemRow, ...] = ()
        self._sought: tuple[str, ...] = ()
        self._kinds: dict[tuple[bool, str], list[ProblemRow]] = {}
        """Those that fit the search."""
        self._turned: frozenset[tuple[bool, str]] = frozenset()
        """Kinds that are not as they are at first: open, or folded."""

    def set_problems(self, problems: Sequence[Problem], place_of: PlaceOf = lambda _: None) -> None:
        """Show these; `place_of`: where each can be looked at."""
        causes = causes_of(problems)
        new = sorted(problems, key=lambda problem: _order(problem, is_cause=problem in causes))
        self._every = tuple(ProblemRow(problem, place_words(place_of(problem))) for problem in new)
        self._show()

    def search(self, text: object) -> None:
        """Show only problems in which all of these words are."""
        self._sought = tuple(str(text).casefold().split())
        self._show()

    def turn(self, row: ProblemRow) -> None:
        """Open what is below a heading, or fold it."""
        self._turned ^= {row.kind}
        self._show()

    def below(self, heading: ProblemRow) -> tuple[Problem, ...]:
        """The problems of a heading, folded ones too."""
        return tuple(row.problem for row in self._kinds.get(heading.kind, ()))

    def _show(self) -> None:
        kinds = self._kinds = {}
        for row in self._every:
            if self._fits(row):
                kinds.setdefault(row.kind, []).append(row)
        rows: list[ProblemRow] = []
        for row in self._every:
            of_kind = kinds.get(row.kind, [])
            if len(of_kind) < FEWEST:
                rows += [row] if row in of_kind else []
            elif row is of_kind[0]:
                is_open = (len(of_kind) <= MOST_OPEN) != (row.kind in self._turned)
                rows.append(replace(row, about="", count=len(of_kind), is_open=is_open, said=_in_common(of_kind)))
                rows += [replace(one, is_below=True) for one in of_kind] if is_open else []
        self.set_rows(rows)

    def _fits(self, row: ProblemRow) -> bool:
        if not self._sought:
            return True
        told = f"{problem_words(row.problem)} {row.about} {row.problem.code} {_where(row.problem)}".casefold()
        return all(word in told for word in self._sought)

    def key(self, row: ProblemRow) -> object:
        """The problem, or the kind of a heading."""
        return row.kind if row.count else row.problem

    @property
    def counts(self) -> tuple[int, int]:
        """Errors and warnings, those too that are folded or do not fit the search."""
        errors = sum(row.problem.is_error for row in self._every)
        return errors, len(self._every) - errors

    def text(self, row: ProblemRow, column: int) -> str:
        """Cells."""
        problem = row.problem
        if row.count:
            return (f"{row.count:,} × {row.said}", "", "", problem.code)[column]
        return (problem_words(problem), row.about, _where(problem), problem.code)[column]

    def tip(self, row: ProblemRow, column: int) -> str:
        """Where a click leads, else all of the problem."""
        if row.count:
            return tr("Fold (Enter)") if row.is_open else tr("Show all {count:,} (Enter)", count=row.count)
        if column == ABOUT and row.about:
            return tr("Show {place} (Enter)", place=row.about)
        if column == PLACE and row.problem.place is not None:
            return tr("Show line {number} of the policy file (Ctrl+Enter)", number=row.problem.place.line)
        return str(row.problem)

    def spoken(self, row: ProblemRow, column: int) -> str:
        """With how bad it is."""
        if row.count:
            many = counted(row.count, "error", "errors") if row.problem.is_error else ""
            return "" if column != MESSAGE else f"{many or counted(row.count, 'warning', 'warnings')}: {row.said}"
        severity = tr("error") if row.problem.is_error else tr("warning")
        return "" if column != MESSAGE else f"{severity}: {problem_words(row.problem)}"


def place_words(place: RulePlace | None) -> str:
    """A place in the window as a trail; empty for a line of the file."""
    match place:
        case ToolPlace(agent_id, tool, operation):
            return " > ".join(filter(None, (agent_id, tool, operation)))
        case AgentPlace(agent_id):
            return agent_id
        case LevelPlace(source_id, index):
            level = None if index is None else tr("level {number}", number=index + 1)
            return f"{source_id} > {level}" if level is not None else source_id
        case PolicyPlace(index):
            return tr("policy rule {name}", name=index + 1)
        case LinePlace() | None:
            return ""


def _order(problem: Problem, *, is_cause: bool) -> tuple[bool, bool, str, int, int]:
    """Errors first; among them, and among warnings, those that explain others; then by line."""
    first, place = (not problem.is_error, not is_cause), problem.place
    return (*first, place.file, place.line, place.column) if place else (*first, "", 0, 0)


def _in_common(rows: Sequence[ProblemRow]) -> str:
    """Their code in words, and their sentence with its names left out where it is one."""
    said = {_NAME.sub("…", row.problem.message) for row in rows}
    code = rows[0].problem.code.replace("-", " ")
    return f"{code}: {said.pop()}" if len(said) == 1 else code


def problem_words(problem: Problem) -> str:
    """The sentence of a problem, with the name that was meant perhaps."""
    if not problem.near_miss:
        return problem.message
    return tr("{problem} (did you mean `{name}`?)", problem=problem.message, name=problem.near_miss)


def _where(problem: Problem) -> str:
    place = problem.place
    return f"{PurePath(place.file).name}:{place.line}:{place.column}" if place else ""


class ProblemDelegate(Delegate):
    """Icon and words; what one can go to in the colour of links."""

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        """Ground, icon, words."""
        look = current_look()
        rect: QRect = getattr(option, "rect")  # noqa: B009
        widget: QWidget | None = getattr(option, "widget", None)
        if widget is not None:
            widget.style().drawPrimitive(QStyle.PrimitiveElement.PE_PanelItemViewItem, option, painter, widget)
        painter.save()
        left = rect.left() + 8
        row = index.data(ROW)
        if index.column() == MESSAGE and row.count:
            fold = look.icon("chevron-down" if row.is_open else "chevron-right", "muted")
            fold.paint(painter, QRect(left, rect.top() + (rect.height() - 16) // 2, 16, 16))
            left += 20
        elif index.column() == MESSAGE and row.is_below:
            left += 20
        if index.column() == MESSAGE:
            icon, role = ("circle-alert", "deny") if index.data(ROW).problem.is_error else ("triangle-alert", "ask")
            look.icon(icon, role).paint(painter, QRect(left, rect.top() + (rect.height() - 16) // 2, 16, 16))
            left += 24
        colours = {MESSAGE: look.palette.text, ABOUT: look.palette.accent.fg, PLACE: look.palette.accent.fg}
        painter.setPen(QColor(colours.get(index.column(), look.palette.muted)))
        words = QRect(left, rect.top(), rect.right() - left - 4, rect.height())
        paint_prose(painter, words, str(index.data() or ""))
        painter.restore()


_ENTER = (Qt.Key.Key_Return, Qt.Key.Key_Enter)


class ProblemView(TableView):
    """Enter goes to what the problem is about, Ctrl+Enter to its line; clicked or activated, a row is chosen."""

    line_requested = Signal()

    def __init__(self, spoken: str, model: ProblemModel) -> None:
        super().__init__(spoken)
        self.setItemDelegate(ProblemDelegate(self))
        self.show_model(model, {ABOUT: 180, PLACE: 130, CODE: 150}, wide=MESSAGE)

    @property
    def problem(self) -> Problem | None:
        """The current one; None at a heading."""
        row = self.currentIndex().data(ROW)
        return row.problem if isinstance(row, ProblemRow) and not row.count else None

    @property
    def heading(self) -> ProblemRow | None:
        """The current heading; None at a problem."""
        row = self.currentIndex().data(ROW)
        return row if isinstance(row, ProblemRow) and row.count else None

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802
        """The second way."""
        if event.key() in _ENTER and event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            self.line_requested.emit()
        else:
            super().keyPressEvent(event)
