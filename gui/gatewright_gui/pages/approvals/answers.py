"""Tables of answers: those that still stand, to be taken back, the questions gone stale, and today's, to be read."""

import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from PySide6.QtCore import QItemSelectionModel, Signal
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QWidget

from gatewright_gui.pages.console.table import table_of
from gatewright_gui.qt.language import mark, tr
from gatewright_gui.qt.layout import column_of, named, row_of, stack_of, stretch
from gatewright_gui.qt.table_model import RowModel
from gatewright_gui.qt.widget.button import text_button
from gatewright_gui.qt.widget.delegate import Delegate
from gatewright_gui.qt.widget.empty_state import EmptyState
from gatewright_gui.qt.widget.search_field import SearchField
from gatewright_gui.session.answered import Answered
from gatewright_gui.session.question import Stale, Standing, span

R = TypeVar("R")
NOTHING_STANDS = mark("An answer for a while or for a session is listed here until it is over, and can be taken back.")


class _Rows(RowModel[R]):
    """Rows of words that can be filtered; `wall` tells the time, to be told another one."""

    def __init__(self, wall: Callable[[], float] = time.time) -> None:
        super().__init__()
        self._wall = wall
        self.all: tuple[R, ...] = ()
        """However it is filtered."""
        self._words: tuple[str, ...] = ()

    def cells(self, row: R) -> tuple[str, ...]:
        """What the columns say."""
        raise NotImplementedError

    def whole(self, row: R) -> str:
        """What a row says in whole."""
        return ", ".join(filter(None, self.cells(row)))

    def show(self, rows: Sequence[R]) -> None:
        """Show these, as far as they fit; times are told anew in any case."""
        self.all = tuple(rows)
        self.set_rows(row for row in rows if all(word in self.whole(row).casefold() for word in self._words))

    def set_search(self, text: str) -> None:
        """Only rows that have every word."""
        self._words = tuple(text.casefold().split())
        self.show(self.all)

    def text(self, row: R, column: int) -> str:
        """Words."""
        return self.cells(row)[column]

    def tip(self, row: R, _column: int) -> str:
        """All of the row."""
        return self.whole(row)

    spoken = tip


class StandingModel(_Rows[Standing]):
    """One row for each answer that stands."""

    headers = (mark("What"), mark("Agent"), mark("Answer"), mark("Given"), mark("Until"), mark("Used today"))

    def __init__(self, wall: Callable[[], float] = time.time) -> None:
        super().__init__(wall)
        self.uses: dict[str, int] = {}

    def cells(self, row: Standing) -> tuple[str, ...]:
        """What, for whom, by whom, since when, until when, how often."""
        now_s = self._wall()
        until = tr("revoked") if row.expires_wall_s is None else tr("in {time}", time=span(row.expires_wall_s - now_s))
        answer = tr("allowed by {who}") if row.approved else tr("refused by {who}")
        who = answer.format(who=row.who or tr("the operator"))
        what = f"{row.what} {row.where}".rstrip()
        given = tr("{time} ago", time=span(now_s - row.granted_wall_s))
        return what, row.agent_id, who, given, until, str(self.uses.get(row.grant_id, 0))

    def whole(self, row: Standing) -> str:
        """With the session that it is for."""
        is_session = row.session_id and row.where == tr("in this session")
        session = tr("session {session}", session=row.session_id) if is_session else ""
        return ", ".join(filter(None, (row.words, *self.cells(row)[1:5], session)))


class StaleModel(_Rows[Stale]):
    """One row for each question of a suspended call that no answer fits any more."""

    headers = (mark("What"), mark("Agent"), mark("Conversation"), mark("Asked"), mark("Why it came to nothing"))

    def cells(self, row: Stale) -> tuple[str, ...]:
        """Name the call, its agent and conversation, its age, and why it went stale."""
        asked = tr("{time} ago", time=span(self._wall() - row.asked_wall_s))
        return row.called, row.agent_id, row.conversation, asked, row.why

    def whole(self, row: Stale) -> str:
        """With the arguments."""
        return "\n".join((super().whole(row), row.arguments))

    def spoken(self, row: Stale, _column: int) -> str:
        """The row without its arguments, which may be long."""
        return super().whole(row)


class AnsweredModel(_Rows[Answered]):
    """One row for each call that asked today."""

    headers = (mark("Time"), mark("What"), mark("Agent"), mark("Answer"), mark("Outcome"))

    def cells(self, row: Answered) -> tuple[str, ...]:
        """When, what, for whom, which answer, what became of it."""
        when = time.strftime("%H:%M:%S", time.localtime(row.wall_s))
        return when, row.called, row.agent_id, row.answer, row.outcome or tr("under way")


class AnswersPane(QWidget):
    """A table with a field to filter it; with `revoke` also a button that takes the chosen rows back."""

    revoke_requested = Signal(object)
    """tuple[Standing, ...]: these are to be taken back."""

    def __init__(
        self, model: _Rows[Any], name: str, spoken: str, empty: EmptyState, *, stretched: int, revoke: bool
    ) -> None:
        super().__init__()
        self.model = model
        self.search = named(SearchField(tr("Filter")), f"{name}.search")
        self.search.search_changed.connect(self._narrow)
        self.view = table_of(model, Delegate, spoken, name)
        header = self.view.horizontalHeader()
        header.setStretchLastSection(False)
        header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        header.setSectionResizeMode(stretched, QHeaderView.ResizeMode.Stretch)
        tip = tr("Take the chosen answers back: such calls ask again (Del)")
        self.revoke_button = text_button(tr("Revoke"), f"{name}.revoke", self._revoke, tip)
        if not revoke:
            self.revoke_button.hide()
        else:
            self.view.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
            self.view.selectionModel().selectionChanged.connect(self._tell)
        self.empty = empty
        self._is_known = False
        self._unknown = EmptyState("", "", "")
        self._unknown.set_unknown()
        self._stack = stack_of(self._unknown, self.view, empty)
        bar = row_of(stretch(self.search), self.revoke_button, space=2, margins=2)
        column_of(bar, stretch(self._stack), into=self)
        self._tell()

    @property
    def chosen(self) -> tuple[Any, ...]:
        """The values of the chosen rows."""
        return tuple(self.model.row_at(index.row()) for index in self.view.selectionModel().selectedRows())

    def set_rows(self, rows: Sequence[Any], *, is_known: bool = True) -> None:
        """Show these; rows that are still there stay chosen. Without any: none, or not known yet."""
        self._is_known = is_known
        kept = set(self.chosen)
        self.model.show(rows)
        self._choose(kept)

    def _narrow(self, text: str) -> None:
        kept = set(self.chosen)
        self.model.set_search(text)
        self._choose(kept)

    def _choose(self, kept: set[Any]) -> None:
        how = QItemSelectionModel.SelectionFlag.Select | QItemSelectionModel.SelectionFlag.Rows
        if kept and not self.chosen:
            for row in range(self.model.rowCount()):
                if self.model.row_at(row) in kept:
                    self.view.selectionModel().select(self.model.index(row, 0), how)
        self._stack.setCurrentWidget(self.view if self.model.all else self.empty if self._is_known else self._unknown)
        self._tell()

    def _tell(self, *_what: object) -> None:
        count = len(self.chosen)
        self.revoke_button.setEnabled(count > 0)
        self.revoke_button.setText(tr("Revoke {count}", count=count) if count > 1 else tr("Revoke"))

    def _revoke(self) -> None:
        if self.chosen:
            self.revoke_requested.emit(self.chosen)
