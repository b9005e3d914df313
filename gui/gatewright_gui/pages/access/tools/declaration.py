"""What the operations of a stranger's tool may be taken for, and the list that is declared. It changes no policy.

A choice is one way to read the schema; the list holds its operations, with boxes where they are the operator's to name.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import QModelIndex, Qt, Signal

from gatewright.workspace.api import Operation, OperationSet, Survey, frozen
from gatewright_gui.qt.language import counted, mark, tr
from gatewright_gui.qt.table_model import Index, RowModel
from gatewright_gui.session.verbs.operations import AS_THE_SCHEMA_SAYS, NO_OPERATIONS, Declaration

_TEXT = {Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.AccessibleTextRole, Qt.ItemDataRole.ToolTipRole}
UNTAKEN = mark("not taken for operations unless it is declared")
CONFIDENCE = {"high": mark("high"), "medium": mark("medium"), "low": mark("low"), "declared": mark("declared")}


@frozen
class Choice:
    """One way to read the schema. `field`: as it is declared; `is_free`: the operator names the operations."""

    title: str
    note: str
    field: str | None
    operations: tuple[Operation, ...] = ()
    suggested: tuple[str, ...] = ()
    is_free: bool = False

    def declaration(self, named: Sequence[str]) -> Declaration:
        """The declaration written for it, with the names that are ticked."""
        if self.field is None:
            return AS_THE_SCHEMA_SAYS
        if not self.field:
            return NO_OPERATIONS
        return Declaration(self.field, tuple(named)) if self.is_free else Declaration(self.field)


def choices_of(survey: Survey, now: Declaration) -> tuple[Choice, ...]:
    """Every choice that a tool has, as the schema says first, no operations last."""
    found = survey.found
    own = found.operations if found is not None else ()
    title, note = tr("As the schema says: no operations"), tr("one box for the whole tool")
    if found is not None:
        title, note = tr("As the schema says: {field}", field=found.field), f"{_operation_count(found)}, {_sure(found)}"
    fields = [_field_choice(reading) for reading in survey.readings]
    free = [_free(reading) for reading in survey.free]
    known = {choice.field for choice in (*fields, *free)}
    other = [_free_choice(now)] if now.operations is not None and now.field not in known else []
    last = Choice(tr("No operations"), tr("one box for the whole tool"), "")
    return (Choice(title, note, None, own), *fields, *free, *other, last)


def row_in_force(choices: Sequence[Choice], now: Declaration, *, wants_free: bool) -> int:
    """The choice that is in force; where nothing is declared, the first that one may have come for."""
    if now != AS_THE_SCHEMA_SAYS:
        wanted = now.field
        return next((row for row, choice in enumerate(choices) if choice.field == wanted), 0)
    if wants_free:
        return next((row for row, choice in enumerate(choices) if choice.is_free), 0)
    return 0


def _field_choice(found: OperationSet) -> Choice:
    sure = tr(UNTAKEN) if found.confidence == "declared" else _sure(found)
    return Choice(
        tr("The values of {field}", field=found.field),
        f"{_operation_count(found)}, {sure}",
        found.field,
        found.operations,
    )


def _free(found: OperationSet) -> Choice:
    count = len(found.suggested)
    said = tr("free text; its description names {count}", count=count) if count else tr("free text")
    return Choice(tr("Names for {field}", field=found.field), said, found.field, (), found.suggested, is_free=True)


def _free_choice(now: Declaration) -> Choice:
    return Choice(
        tr("Names for {field}", field=now.field), tr("declared in the policy"), now.field, (), (), is_free=True
    )


def _sure(found: OperationSet) -> str:
    return tr("{degree} confidence", degree=tr(CONFIDENCE.get(found.confidence, found.confidence)))


def _operation_count(found: OperationSet) -> str:
    return counted(len(found.operations), "operation", "operations")


class ChoiceModel(RowModel[Choice]):
    """The choices, one a row."""

    def cell(self, row: Choice, column: int, role: int) -> Any:
        """Title and note."""
        del column
        return f"{row.title} ({row.note})" if role in _TEXT else None


@dataclass(slots=True)
class _Row:
    name: str
    note: str
    is_on: bool
    is_own: bool = False


class OperationListModel(RowModel[_Row]):
    """The operations of a choice. Where the schema closes the list they are only shown; otherwise they are ticked."""

    changed = Signal()
    """Another name is ticked, added or gone."""

    is_free = False
    """Whether names can be ticked and added."""

    def show(self, choice: Choice, ticked: Sequence[str]) -> None:
        """Show the operations of a choice; `ticked`: those that are declared already."""
        self.is_free = choice.is_free
        self.set_rows(_rows(choice, ticked))
        self.changed.emit()

    @property
    def names(self) -> tuple[str, ...]:
        """The operations that there would be."""
        return tuple(row.name for row in self.rows if row.is_on)

    def add(self, name: str) -> str:
        """Add a name, ticked, or tick the one that is there; why not, in words, otherwise empty."""
        if not name:
            return tr("an operation needs a name")
        if name != name.strip():
            return tr("`{name}` has blanks around it", name=name)
        row = next((row for row, held in enumerate(self.rows) if held.name == name), None)
        if row is not None:
            if self.rows[row].is_on:
                return tr("`{name}` is there already", name=name)
            self.setData(self.index(row, 0), Qt.CheckState.Checked, Qt.ItemDataRole.CheckStateRole)
            return ""
        end = self.count()
        self.beginInsertRows(QModelIndex(), end, end)
        self.rows = (*self.rows, _Row(name, tr("added here"), is_on=True, is_own=True))
        self.endInsertRows()
        self.changed.emit()
        return ""

    def remove(self, row: int) -> bool:
        """Take away a name that was added here; a suggested one only loses its tick."""
        if not self.is_free or not 0 <= row < self.count():
            return False
        if not self.rows[row].is_own:
            return self.setData(self.index(row, 0), Qt.CheckState.Unchecked, Qt.ItemDataRole.CheckStateRole)
        self.beginRemoveRows(QModelIndex(), row, row)
        self.rows = (*self.rows[:row], *self.rows[row + 1 :])
        self.endRemoveRows()
        self.changed.emit()
        return True

    def turn_all(self) -> None:
        """Tick every name, or none where all are ticked."""
        on = len(self.names) < self.count()
        for row in self.rows:
            row.is_on = on
        self.tell_changed()
        self.changed.emit()

    def flags(self, index: Index) -> Qt.ItemFlag:
        """Free names can be ticked."""
        flags = super().flags(index)
        return flags | Qt.ItemFlag.ItemIsUserCheckable if index.isValid() and self.is_free else flags

    def cell(self, row: _Row, column: int, role: int) -> Any:
        """The name with its parameters, and its tick."""
        del column
        if role == Qt.ItemDataRole.CheckStateRole and self.is_free:
            return Qt.CheckState.Checked if row.is_on else Qt.CheckState.Unchecked
        return (f"{row.name}  ({row.note})" if row.note else row.name) if role in _TEXT else None

    def setData(self, index: Index, value: Any, role: int = Qt.ItemDataRole.EditRole) -> bool:  # noqa: N802
        """Tick a name or not."""
        row = self.row_at(index.row())
        if not self.is_free or row is None or role != Qt.ItemDataRole.CheckStateRole:
            return False
        row.is_on = Qt.CheckState(value) == Qt.CheckState.Checked
        self.dataChanged.emit(index, index, [role])
        self.changed.emit()
        return True


def _rows(choice: Choice, ticked: Sequence[str]) -> Iterator[_Row]:
    if not choice.is_free:
        for operation in choice.operations:
            needs = ", ".join((*operation.required, *operation.inner_required))
            takes = ", ".join((*operation.optional, *operation.inner_optional))
            said = (
                tr("needs {arguments}", arguments=needs) if needs else "",
                tr("takes {arguments}", arguments=takes) if takes else "",
            )
            yield _Row(operation.name, "; ".join(filter(None, said)), is_on=True)
        return
    for name in choice.suggested:
        yield _Row(name, tr("suggested"), is_on=name in ticked)
    for name in ticked:
        if name not in choice.suggested:
            yield _Row(name, tr("declared"), is_on=True, is_own=True)
