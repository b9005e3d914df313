"""The rules on the current row as a table: kind, value, for what, where. Values are edited by verbs, not here."""

from collections.abc import Sequence
from dataclasses import replace
from enum import IntEnum
from typing import Any, Protocol

from PySide6.QtCore import QObject, Qt

from gatewright.workspace.api import RateLimit, RuleKind, frozen, rate_words
from gatewright_gui.pages.agents.limits import LimitRow, Owner, limit_text, read_limit, value_of
from gatewright_gui.pages.agents.rule_table import RuleRows
from gatewright_gui.qt.language import mark, tr
from gatewright_gui.qt.table_model import Index


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


@frozen
class Choice:
    """One entry of the list in the column FOR."""

    text: str
    operations: frozenset[str] | None


class LimitListModel(RuleRows[LimitRow]):
    """A new row that is not written yet is the last of the agent's own."""

    headers = (mark("Limit"), mark("Value"), mark("For"), mark("Where"))

    def __init__(self, verbs: LimitVerbs, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._verbs = verbs

    def set_limits(self, rows: Sequence[LimitRow]) -> None:
        """Show these; a row that is being made stays."""
        new = list(rows)
        if self._draft is not None:
            new.insert(_own_count(new), self._draft)
        self.take(new)

    def begin(self, kind: RuleKind, operations: frozenset[str] | None, *, has_operations: bool) -> int:
        """The row to edit for such a limit: the one that stands for just these operations, else a new one."""
        wanted = LimitRow(kind, operations, Owner.OWN, has_operations=has_operations, is_draft=True)
        self.drop_draft()
        found = next((at for at, row in enumerate(self._rows) if row.key == wanted.key), None)
        if found is not None:
            return found
        at = _own_count(self._rows)
        self.begin_draft(at, wanted)
        return at

    def text(self, row: LimitRow, column: int, link: str) -> str:
        """What a cell shows."""
        match column:
            case Column.KIND:
                return row.title
            case Column.VALUE:
                return value_of(row)
            case Column.FOR:
                return row.holds_for
            case _:
                words = (row.owner_words, tr("not written yet") if row.is_draft else link)
                return ", ".join(text for text in words if text)

    def typed(self, row: LimitRow, column: int) -> object:
        """The value as it can be typed, or the operations that it is for."""
        return row.operations if column == Column.FOR else limit_text(row.kind)

    def tip(self, row: LimitRow, column: int, text: str) -> str:
        """The whole text, and what can be done."""
        if column == Column.VALUE and isinstance(row.kind, RateLimit):
            text = f"{text}: {rate_words(row.kind.calls, row.kind.per_s)}"
        if row.is_own:
            return tr("{text}. Enter or F2: change it; Del: remove it", text=text)
        return tr("{text}. It is inherited, from {owner}: change it where it stands", text=text, owner=row.owner_words)

    def setData(self, index: Index, value: Any, role: int = Qt.ItemDataRole.EditRole) -> bool:  # noqa: N802
        """Ask a verb: a typed value in VALUE, a set of operations (None: all) in FOR."""
        row = self.row_at(index.row()) if index.isValid() and role == Qt.ItemDataRole.EditRole else None
        if row is None or not row.is_own:
            return False
        if index.column() == Column.FOR:
            return value != row.operations and self._bind(row, index.row(), value)
        if index.column() != Column.VALUE or not row.has_value:
            return False
        if not row.is_draft and str(value).strip() == limit_text(row.kind):
            return False  # words may be rounder than the value
        try:
            kind = read_limit(row.kind, str(value))
        except ValueError:
            return False
        return (row.is_draft or kind != row.kind) and self.written(row, lambda: self._verbs.change(row, kind))

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

    def _bind(self, row: LimitRow, at: int, operations: frozenset[str] | None) -> bool:
        if not row.is_draft:
            return self._verbs.bind(row, operations)
        self.change_draft(at, replace(row, operations=operations))
        return True


def _own_count(rows: Sequence[LimitRow]) -> int:
    return sum(row.owner is Owner.OWN for row in rows)


def choices_for(names: Sequence[str], row: LimitRow, current: str | None) -> tuple[Choice, ...]:
    """What a rule can be for: all, the current operation, what it is for now, then each operation alone."""
    first = (Choice(tr("all operations"), None),)
    sets = [frozenset({current})] if current else []
    sets += [row.operations] if row.operations is not None else []
    sets += [frozenset({name}) for name in names]
    return (
        *first,
        *(Choice(tr("only {operations}", operations=", ".join(sorted(one))), one) for one in dict.fromkeys(sets)),
    )
