"""Which calls of the history are shown: words to search for, verdicts, agents and tools, and the bar to choose them."""

from collections.abc import Iterable
from dataclasses import replace
from functools import partial

from PySide6.QtCore import QObject, QSortFilterProxyModel, Signal
from PySide6.QtWidgets import QMenu, QToolButton, QWidget

from gatewright.workspace.api import frozen
from gatewright_gui.pages.trial.history_model import CallHistoryModel
from gatewright_gui.pages.trial.table import outcome_text
from gatewright_gui.qt.language import mark, tr
from gatewright_gui.qt.layout import named, row_of, stretch
from gatewright_gui.qt.look import tie_icon
from gatewright_gui.qt.menu import add_action
from gatewright_gui.qt.table_model import Index
from gatewright_gui.qt.widget import IconButton, SearchField
from gatewright_gui.qt.widget.label import Label
from gatewright_gui.session.calls import CallRecord, visible

MAX_SEARCHED = 4_000
"""Characters of the arguments that are searched."""


@frozen
class HistoryFilter:
    """Empty: everything fits. `words` all have to be found; of the others one of each kind that is named."""

    words: tuple[str, ...] = ()
    verdicts: frozenset[str] = frozenset()
    agents: frozenset[str] = frozenset()
    tools: frozenset[str] = frozenset()

    @property
    def is_empty(self) -> bool:
        """Tell whether nothing is left out."""
        return not (self.words or self.verdicts or self.agents or self.tools)

    def fits(self, record: CallRecord) -> bool:
        """Tell whether a call is shown."""
        request = record.request
        is_chosen = (
            (not self.verdicts or str(record.verdict) in self.verdicts)
            and (not self.agents or request.agent_id in self.agents)
            and (not self.tools or request.tool in self.tools)
        )
        if not (is_chosen and self.words):
            return is_chosen
        words = f"{record.outcome_word} {outcome_text(record.outcome_word)}"
        told = f"{record.called} {request.agent_id} {words} {record.code} {record.reason}"
        text = f"{told} {record.kind} {_arguments(record)}".casefold()
        return all(word in text for word in self.words)


class HistoryFilterModel(QSortFilterProxyModel):
    """Rows stay in the order of the history."""

    def __init__(self, calls: CallHistoryModel, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._calls = calls
        self._filter = HistoryFilter()
        self.setSourceModel(calls)

    def set_filter(self, wanted: HistoryFilter) -> None:
        """Show these."""
        self._filter = wanted
        self.invalidate()

    def record_at(self, row: int) -> CallRecord | None:
        """The record of a row that is shown."""
        index = self.index(row, 0)
        return self._calls.row_at(self.mapToSource(index).row()) if index.isValid() else None

    def filterAcceptsRow(self, source_row: int, source_parent: Index) -> bool:  # noqa: N802
        """Tell whether a row is shown."""
        del source_parent
        record = self._calls.row_at(source_row)
        return record is not None and self._filter.fits(record)


def _arguments(record: CallRecord) -> str:
    given = record.request.arguments
    if isinstance(given, str):
        return given[:MAX_SEARCHED]
    return " ".join(f"{name} {str(value)[:MAX_SEARCHED]}" for name, value in given.items())[:MAX_SEARCHED]


_VERDICTS = ("allow", "ask", "deny")
_HEADS = {"verdicts": mark("Verdicts"), "agents": mark("Agents"), "tools": mark("Tools")}
_MAX_CHOICES = 30
"""Agents or tools that the menu offers; the field finds the others."""


class HistoryBar(QWidget):
    """Emits `changed` with each letter and each tick."""

    changed = Signal(object)
    """HistoryFilter."""
    leave_requested = Signal()
    """The keys are to go to the calls."""

    def __init__(self, calls: CallHistoryModel) -> None:
        super().__init__()
        self._calls = calls
        self._filter = HistoryFilter()
        tip = tr("Every word has to be in the call, its agent, arguments, verdict, code or reason")
        self.search = named(SearchField(tr("Search calls")), "console.history.search", tip=tip)
        self.search.search_changed.connect(self._take_words)
        self.search.results_requested.connect(self.leave_requested)
        self.search.leave_requested.connect(self.leave_requested)
        button = IconButton("funnel", tr("Show only some verdicts, agents or tools"))
        self.menu_button = named(button, "console.history.filter")
        self.menu_button.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.menu = named(QMenu(self), "console.history.menu")
        self.menu.aboutToShow.connect(self._fill)
        self.menu_button.setMenu(self.menu)
        self._count = named(Label(), "console.history.count", kind="small")
        row_of(stretch(self.search), self._count, self.menu_button, into=self, space=1, margins=(2, 0, 1, 1))

    @property
    def filter(self) -> HistoryFilter:
        """The filter for what is to be shown."""
        return self._filter

    def tell_count(self, shown: int, of: int) -> None:
        """Tell how many calls fit."""
        self._count.setText("" if self._filter.is_empty else tr("{count:,} of {all:,}", count=shown, all=of))

    def clear(self) -> None:
        """Show all calls."""
        self._set(HistoryFilter())
        self.search.clear()

    def _take_words(self, text: str) -> None:
        self._set(replace(self._filter, words=tuple(text.casefold().split())))

    def _set(self, wanted: HistoryFilter) -> None:
        if wanted == self._filter:
            return
        self._filter = wanted
        is_on = bool(wanted.verdicts or wanted.agents or wanted.tools)
        tie_icon(self.menu_button, "funnel", "accent" if is_on else "muted")
        told = ", ".join(sorted(map(visible, (*map(tr, wanted.verdicts), *wanted.agents, *wanted.tools))))
        tip = tr("Shown: {names}", names=told) if is_on else tr("Show only some verdicts, agents or tools")
        named(self.menu_button, spoken=tip, tip=tip)
        self.changed.emit(wanted)

    def _fill(self) -> None:
        self.menu.clear()
        self._offer("verdicts", _VERDICTS, self._filter.verdicts)
        self._offer("agents", (record.request.agent_id for record in self._calls.rows), self._filter.agents)
        self._offer("tools", (record.request.tool for record in self._calls.rows), self._filter.tools)
        self.menu.addSeparator()
        add_action(self.menu, tr("Show all"), self.clear, can=not self._filter.is_empty)

    def _offer(self, kind: str, names: Iterable[str], chosen: frozenset[str]) -> None:
        self.menu.addSection(tr(_HEADS[kind]))
        for name in sorted({*names, *chosen})[:_MAX_CHOICES] if kind != "verdicts" else _VERDICTS:
            words = outcome_text(name) if kind == "verdicts" else visible(name)
            tick = partial(self._tick, kind, name)
            add_action(self.menu, words.replace("&", "&&"), tick, ticked=name in chosen)

    def _tick(self, kind: str, name: str) -> None:
        now = self._filter
        parts = {"verdicts": now.verdicts, "agents": now.agents, "tools": now.tools}
        parts[kind] = parts[kind] ^ {name}
        self._set(HistoryFilter(now.words, parts["verdicts"], parts["agents"], parts["tools"]))
