"""What a plan would change, as a table: agent, operation, now, then. It does not know which plan, nor who makes it."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QObject, QPersistentModelIndex, Qt

from gatewright.policy.capability import Capability
from gatewright.policy.rightsdiff import AgentDiff, ChangeKind, RightChange, Standing
from gatewright.policy.rule import RequiresConsent, ToolRule
from gatewright_gui.models.limits import PlacedRule, sentence

Index = QModelIndex | QPersistentModelIndex
BEFORE, AFTER = Qt.ItemDataRole.UserRole + 1, Qt.ItemDataRole.UserRole + 2
"""The `Standing` of an operation; None in a row about something else."""
HEADINGS = ("Agent", "What changes", "Now", "Then")
AGENT, WHAT, NOW, THEN = range(4)
MOST_ROWS = 20_000
"""More rows nobody reads; the counts are of all of them."""
OTHER = "also changed"


@dataclass(frozen=True, slots=True)
class ChangeRow:
    """One line. `kind`: a `ChangeKind`, or `OTHER` for limits, sources, capabilities."""

    agent_id: str
    what: str
    now: str
    then: str
    kind: str
    before: Standing | None = None
    after: Standing | None = None


class RightChangesModel(QAbstractTableModel):
    """Rows come agent by agent; a search and a kind choose among them."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._rows: list[ChangeRow] = []
        self._texts: list[str] = []
        self._shown: list[int] = []
        self._counts: Counter[str] = Counter()
        self._words: tuple[str, ...] = ()
        self._kind = ""

    @property
    def counts(self) -> Mapping[str, int]:
        """How many lines of each kind there are in all, those left out of the table too."""
        return self._counts

    @property
    def counts_total(self) -> int:
        """How many lines there are in all."""
        return self._counts.total()

    @property
    def is_cut(self) -> bool:
        """Whether there are more lines than the table holds."""
        return self._counts.total() > len(self._rows)

    def clear(self) -> None:
        """No lines."""
        self.beginResetModel()
        self._rows, self._texts, self._shown = [], [], []
        self._counts = Counter()
        self.endResetModel()

    def add(self, diff: AgentDiff) -> None:
        """The lines of one more agent."""
        new = list(rows_of(diff))
        self._counts.update(row.kind for row in new)
        room = new[: max(MOST_ROWS - len(self._rows), 0)]
        texts = [f"{row.agent_id} {row.what} {row.now} {row.then}".casefold() for row in room]
        first = len(self._rows)
        chosen = [first + at for at, row in enumerate(room) if self._fits(row, texts[at])]
        if chosen:
            self.beginInsertRows(QModelIndex(), len(self._shown), len(self._shown) + len(chosen) - 1)
        self._rows += room
        self._texts += texts
        self._shown += chosen
        if chosen:
            self.endInsertRows()

    def set_filter(self, text: str, kind: str) -> None:
        """Only lines with all of these words, and of that kind; an empty one stands for all."""
        self._words, self._kind = tuple(text.casefold().split()), kind
        self.beginResetModel()
        self._shown = [at for at, row in enumerate(self._rows) if self._fits(row, self._texts[at])]
        self.endResetModel()

    def _fits(self, row: ChangeRow, text: str) -> bool:
        return (not self._kind or row.kind == self._kind) and all(word in text for word in self._words)

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: N802, B008
        """How many lines fit."""
        return 0 if parent.isValid() else len(self._shown)

    def columnCount(self, parent: Index = QModelIndex()) -> int:  # noqa: N802, B008
        """The same everywhere."""
        return 0 if parent.isValid() else len(HEADINGS)

    def headerData(  # noqa: N802
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> Any:
        """Words over the columns."""
        if orientation == Qt.Orientation.Horizontal and role == Qt.ItemDataRole.DisplayRole:
            return HEADINGS[section]
        return None

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Words, and the two standings of an operation."""
        if not index.isValid():
            return None
        row = self._rows[self._shown[index.row()]]
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return (row.agent_id, row.what, row.now, row.then)[index.column()]
            case Qt.ItemDataRole.ToolTipRole | Qt.ItemDataRole.AccessibleTextRole:
                return f"{row.agent_id}: {row.what}: {row.now} -> {row.then}"
            case _ if role == BEFORE:
                return row.before
            case _ if role == AFTER:
                return row.after
            case _:
                return None


def rows_of(diff: AgentDiff) -> Iterator[ChangeRow]:
    """Every line of one agent: what else changes first, then the operations in the order of the catalog."""
    name = diff.agent_id
    if diff.sources is not None:
        yield ChangeRow(name, "sources", _sources(diff.sources[0]), _sources(diff.sources[1]), OTHER)
    if diff.capabilities is not None:
        now, then = diff.capabilities
        yield ChangeRow(name, "capabilities", _capabilities(now), _capabilities(then), OTHER)
    for rule in diff.limits_gone:
        yield ChangeRow(name, f"limit of {rule.tool_name}", _limit(rule), "none", OTHER)
    for rule in diff.limits_come:
        yield ChangeRow(name, f"limit of {rule.tool_name}", "none", _limit(rule), OTHER)
    yield from map(_operation, diff.rows)


def _operation(row: RightChange) -> ChangeRow:
    what = f"{row.tool}.{row.operation}" if row.operation else row.tool
    return ChangeRow(row.agent_id, what, str(row.before), str(row.after), str(row.kind), row.before, row.after)


def _sources(sources: Sequence[str] | None) -> str:
    return "every source" if sources is None else ", ".join(sources) or "none"


def _capabilities(capabilities: Sequence[Capability]) -> str:
    return ", ".join(type(one).__name__ for one in capabilities) or "none"


def _limit(rule: ToolRule) -> str:
    kind = rule.rule_type
    if isinstance(kind, RequiresConsent):
        only = f"only {', '.join(sorted(rule.operations))}: " if rule.operations else ""
        return f"{only}asks, unless a grant covers {f'the scope {kind.scope}' if kind.scope else 'it'}"
    return sentence(PlacedRule(rule, None)) or rule.kind


def counts_words(counts: Mapping[str, int]) -> str:
    """`3 turned on, 2 turned off`, in the order in which one wants to know."""
    order = [*map(str, ChangeKind), OTHER]
    return ", ".join(f"{counts[kind]:,} {kind}" for kind in order if counts.get(kind))
