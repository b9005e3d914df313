"""The rules on the current row as a table: kind, value, for what, where. Values are edited by verbs, not here."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any, Protocol

from PySide6.QtCore import QModelIndex, QObject, QPersistentModelIndex, Qt

from gatewright.base.durationwords import rate_words
from gatewright.policy.rule import RateLimit, RuleKind
from gatewright_gui.models.limitrow import LimitRow, Owner, holds_for, owner_words, title_of, value_of
from gatewright_gui.models.limitvalue import limit_text, read_limit
from gatewright_gui.models.placedrows import PlacedRows

Index = QModelIndex | QPersistentModelIndex
ROW = Qt.ItemDataRole.UserRole + 1
LINK = Qt.ItemDataRole.UserRole + 2
"""Words that lead to a line, in the column WHERE; empty where nothing does."""


class Column(IntEnum):
    """The columns, from the left."""

    KIND = 0
    VALUE = 1
    FOR = 2
    WHERE = 3


class LimitVerbs(Protocol):
    """What the table asks for; False: refused, and said."""

    def change(self, row: LimitRow, kind: RuleKind) -> bool:
        """Another value; of a new row: make it."""
        ...

    def bind(self, row: LimitRow, operations: frozenset[str] | None) -> bool:
        """For other operations."""
        ...


@dataclass(frozen=True, slots=True)
class Choice:
    """One entry of the list in the column FOR."""

    text: str
    operations: frozenset[str] | None


class LimitListModel(PlacedRows[LimitRow]):
    """A new row that is not written yet is the last of the agent's own."""

    headers = ("Limit", "Value", "For", "Where")

    def __init__(self, verbs: LimitVerbs, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._verbs = verbs

    def set_limits(self, rows: Sequence[LimitRow]) -> None:
        """Show these; a row that is being made stays."""
        new = list(rows)
        if self._draft is not None:
            new.insert(_own_count(new), self._draft)
        self._take(new)

    # new rows

    def begin(self, kind: RuleKind, operations: frozenset[str] | None, *, has_operations: bool) -> int:
        """The row to edit for such a limit: the one that stands for just these operations, else a new one."""
        wanted = LimitRow(kind, operations, Owner.OWN, has_operations=has_operations, is_draft=True)
        self.drop_draft()
        found = next((at for at, row in enumerate(self._rows) if row.key == wanted.key), None)
        if found is not None:
            return found
        at = _own_count(self._rows)
        self._begin_draft(at, wanted)
        return at

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Texts, and what delegates draw and edit from."""
        row = self.row_at(index.row()) if index.isValid() else None
        if row is None:
            return None
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return self._text(row, index)
            case Qt.ItemDataRole.EditRole:
                return limit_text(row.kind) if index.column() == Column.VALUE else self._text(row, index)
            case Qt.ItemDataRole.ToolTipRole:
                return self._tooltip(row, index)
            case Qt.ItemDataRole.AccessibleTextRole:
                return f"{self.headers[index.column()]}: {self._text(row, index) or 'none'}"
            case _ if role == ROW:
                return row
            case _ if role == LINK:
                return self._link(index.row()) if index.column() == Column.WHERE else ""
            case _:
                return None

    def setData(self, index: Index, value: Any, role: int = Qt.ItemDataRole.EditRole) -> bool:  # noqa: N802
        """Ask a verb: a typed value in VALUE, a set of operations (None: all) in FOR."""
        row = self.row_at(index.row()) if index.isValid() and role == Qt.ItemDataRole.EditRole else None
        if row is None or not row.is_own:
            return False
        if index.column() == Column.FOR:
            return self._bind(row, index.row(), value)
        if index.column() != Column.VALUE or not row.has_value:
            return False
        if not row.is_draft and str(value).strip() == limit_text(row.kind):
            return False  # words may be rounder than the value
        try:
            kind = read_limit(row.kind, str(value))
        except ValueError:
            return False
        return self._change(row, kind)

    def flags(self, index: Index) -> Qt.ItemFlag:
        """The agent's own rules can be edited."""
        row = self.row_at(index.row()) if index.isValid() else None
        flags = super().flags(index)
        if row is None:
            return flags
        editable = (index.column() == Column.VALUE and row.has_value) or (
            index.column() == Column.FOR and row.is_own and row.has_operations
        )
        return (flags | Qt.ItemFlag.ItemIsEditable if editable else flags) | Qt.ItemFlag.ItemNeverHasChildren

    def _change(self, row: LimitRow, kind: RuleKind) -> bool:
        """Write it; the new row becomes the rule where it stands in the list."""
        if not row.is_draft:
            return kind != row.kind and self._verbs.change(row, kind)
        draft, self._draft = self._draft, None
        if self._verbs.change(row, kind):
            return True
        self._draft = draft
        return False

    def _bind(self, row: LimitRow, at: int, operations: frozenset[str] | None) -> bool:
        if operations == row.operations:
            return False
        if not row.is_draft:
            return self._verbs.bind(row, operations)
        self._draft = replace(row, operations=operations)
        self.replace_rows(at, [self._draft])
        return True

    def _text(self, row: LimitRow, index: Index) -> str:
        match index.column():
            case Column.KIND:
                return title_of(row)
            case Column.VALUE:
                return value_of(row)
            case Column.FOR:
                return holds_for(row)
            case _:
                words = (owner_words(row), "not written yet" if row.is_draft else self._link(index.row()))
                return ", ".join(text for text in words if text)

    def _link(self, row: int) -> str:
        line = self.line_at(row)
        return "" if line is None else f"line {line}"

    def _tooltip(self, row: LimitRow, index: Index) -> str:
        text = self._text(row, index)
        if index.column() == Column.WHERE:
            return f"{text} of {self._file}. Click: go there" if self.line_at(index.row()) else text
        if index.column() == Column.VALUE and isinstance(row.kind, RateLimit):
            text = f"{text}: {rate_words(row.kind.calls, row.kind.per_s)}"
        if row.is_own:
            return f"{text}. Enter or F2: change it; Del: remove it"
        return f"{text}. It is inherited, from {owner_words(row)}: change it where it stands"


def _own_count(rows: Sequence[LimitRow]) -> int:
    return sum(row.owner is Owner.OWN for row in rows)


def choices_for(names: Sequence[str], row: LimitRow, current: str | None) -> tuple[Choice, ...]:
    """What a rule can be for: all, the current operation, what it is for now, then each operation alone."""
    first = (Choice("all operations", None),)
    sets = [frozenset({current})] if current else []
    sets += [row.operations] if row.operations is not None else []
    sets += [frozenset({name}) for name in names]
    return (*first, *(Choice(f"only {', '.join(sorted(one))}", one) for one in dict.fromkeys(sets)))
