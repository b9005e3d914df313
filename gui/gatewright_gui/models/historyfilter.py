"""Which calls of the history are shown: words to search for, verdicts, agents, tools. It does not know the field."""

from dataclasses import dataclass

from PySide6.QtCore import QModelIndex, QObject, QPersistentModelIndex, QSortFilterProxyModel

from gatewright_gui.models.callhistory import CallHistoryModel, outcome_word
from gatewright_gui.session.calls import CallRecord

Index = QModelIndex | QPersistentModelIndex
MAX_SEARCHED = 4_000
"""Characters of the arguments that are searched."""


@dataclass(frozen=True, slots=True)
class HistoryFilter:
    """Empty: everything fits. `words` all have to be found; of the others one of each kind that is named."""

    words: tuple[str, ...] = ()
    verdicts: frozenset[str] = frozenset()
    agents: frozenset[str] = frozenset()
    tools: frozenset[str] = frozenset()

    @property
    def is_empty(self) -> bool:
        """Whether nothing is left out."""
        return not (self.words or self.verdicts or self.agents or self.tools)

    def fits(self, record: CallRecord) -> bool:
        """Whether a call is shown."""
        request = record.request
        return (
            (not self.verdicts or str(record.verdict) in self.verdicts)
            and (not self.agents or request.agent_id in self.agents)
            and (not self.tools or request.tool in self.tools)
            and self._has_words(record)
        )

    def _has_words(self, record: CallRecord) -> bool:
        if not self.words:
            return True
        told = f"{record.called} {record.request.agent_id} {outcome_word(record)} {record.code} {record.reason}"
        text = f"{told} {record.kind} {_arguments(record)}".casefold()
        return all(word in text for word in self.words)


class HistoryFilterModel(QSortFilterProxyModel):
    """Rows stay in the order of the history."""

    def __init__(self, calls: CallHistoryModel, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._calls = calls
        self._filter = HistoryFilter()
        self.setSourceModel(calls)

    @property
    def filter(self) -> HistoryFilter:
        """What is shown."""
        return self._filter

    def set_filter(self, wanted: HistoryFilter) -> None:
        """Show these."""
        self._filter = wanted
        self.invalidate()

    def record_at(self, row: int) -> CallRecord | None:
        """The record of a row that is shown."""
        index = self.index(row, 0)
        return self._calls.record_at(self.mapToSource(index).row()) if index.isValid() else None

    def filterAcceptsRow(self, source_row: int, source_parent: Index) -> bool:  # noqa: N802
        """Whether a row is shown."""
        del source_parent
        record = self._calls.record_at(source_row)
        return record is not None and self._filter.fits(record)


def _arguments(record: CallRecord) -> str:
    given = record.request.arguments
    if isinstance(given, str):
        return given[:MAX_SEARCHED]
    return " ".join(f"{name} {str(value)[:MAX_SEARCHED]}" for name, value in given.items())[:MAX_SEARCHED]
