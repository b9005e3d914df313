"""The rules on the current row as a table: kind, value, for what, where. Values are edited by verbs, not here."""

from collections.abc import Sequence
from dataclasses import replace
from enum import IntEnum
from typing import Any, Protocol

from PySide6.QtCore import QObject

from gatewright.workspace.api import RateLimit, RuleKind, frozen, rate_words
from gatewright_gui.pages.access.tools.limits import LimitRow, Owner, limit_text, read_limit, value_of
from gatewright_gui.pages.access.tools.rule_table import RuleRows
from gatewright_gui.qt.language import mark, tr


class Column(IntEnum):
    """The columns, from the left."""

    KIND = 0
    VALUE = 1
    FOR = 2
    WHERE = 3


class LimitVerbs(Protocol):
    """The verbs that the table asks for; False: refused, and said."""

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

    def begin(self, kind: RuleKind, operations: frozenset[str] | None, *, has_operations: bool) -> int:
        """The row to edit for such a limit: the one that stands for just these operations, else a new one."""
        wanted = LimitRow(kind, operations, Owner.OWN, has_operations=has_operations, is_draft=True)
        self.drop_draft()
        found = self.find(wanted.key)
        return found if found >= 0 else self.begin_draft(wanted)

    def place_of(self, draft: LimitRow, rows: Sequence[LimitRow]) -> int:
        """Behind the agent's own."""
        return sum(row.owner is draft.owner for row in rows)

    def text(self, row: LimitRow, column: int, /) -> str:
        """The text of a cell."""
        match column:
            case Column.KIND:
                return row.title
            case Column.VALUE:
                return value_of(row)
            case Column.FOR:
                return row.holds_for
            case _:
                words = (row.owner_words, tr("not written yet") if row.is_draft else self.link(row))
                return ", ".join(text for text in words if text)

    def editor_value(self, row: LimitRow, column: int) -> object:
        """The value as it can be typed, or the operations that it is for."""
        return row.operations if column == Column.FOR else limit_text(row.kind)

    def tip(self, row: LimitRow, column: int, /) -> str:
        """The whole text, and what can be done."""
        text = self.text(row, column)
        if column == Column.VALUE and isinstance(row.kind, RateLimit):
            text = f"{text}: {rate_words(row.kind.calls, row.kind.per_s)}"
        if row.is_own:
            return tr("{text}. Enter or F2: change it; Del: remove it", text=text)
        return tr("{text}. It is inherited, from {owner}: change it where it stands", text=text, owner=row.owner_words)

    def can_edit(self, row: LimitRow, column: int) -> bool:
        """The agent's own rules."""
        return (column == Column.VALUE and row.has_value) or (
            column == Column.FOR and row.is_own and row.has_operations
        )

    def edit_cell(self, row: LimitRow, column: int, value: Any) -> bool:
        """Ask a verb: a typed value in VALUE, a set of operations (None: all) in FOR."""
        if column == Column.FOR and row.is_draft:
            self.change_draft(replace(row, operations=value))
            return True
        if column == Column.FOR:
            return value != row.operations and self._verbs.bind(row, value)
        if not row.is_draft and str(value).strip() == limit_text(row.kind):
            return False  # words may be rounder than the value
        try:
            kind = read_limit(row.kind, str(value))
        except ValueError:
            return False
        return (row.is_draft or kind != row.kind) and self.write(row, lambda: self._verbs.change(row, kind))


def choices_for(names: Sequence[str], row: LimitRow, current: str | None) -> tuple[Choice, ...]:
    """Choices of what a rule can be for: all, the current operation, what it is for now, then each operation alone."""
    first = (Choice(tr("all operations"), None),)
    sets = [frozenset({current})] if current else []
    sets += [row.operations] if row.operations is not None else []
    sets += [frozenset({name}) for name in names]
    return (
        *first,
        *(Choice(tr("only {operations}", operations=", ".join(sorted(one))), one) for one in dict.fromkeys(sets)),
    )
