"""What the operations of a stranger's tool may be taken for, and the list that is declared. It changes no policy.

A choice is one way to read the schema; the list holds its operations, with boxes where they are the operator's to name.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import QAbstractListModel, QModelIndex, QObject, QPersistentModelIndex, Qt, Signal

from gatewright.workspace.api import Operation, OperationSet, Survey, frozen
from gatewright_gui.qt.language import counted, mark, tr
from gatewright_gui.session.verbs.operations import AS_THE_SCHEMA_SAYS, NO_OPERATIONS, Declaration

Index = QModelIndex | QPersistentModelIndex
CHOICE = Qt.ItemDataRole.UserRole + 1
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
        """What is written for it, with the names that are ticked."""
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
        title, note = tr("As the schema says: {field}", field=found.field), f"{_counted(found)}, {_sure(found)}"
    fields = [_closed(reading) for reading in survey.readings]
    free = [_free(reading) for reading in survey.free]
    known = {choice.field for choice in (*fields, *free)}
    other = [_named(now)] if now.operations is not None and now.field not in known else []
    last = Choice(tr("No operations"), tr("one box for the whole tool"), "")
    return (Choice(title, note, None, own), *fields, *free, *other, last)


def chosen_row(choices: Sequence[Choice], now: Declaration, *, wants_free: bool) -> int:
    """The choice that is in force; where nothing is declared, the first that one may have come for."""
    if now != AS_THE_SCHEMA_SAYS:
        wanted = now.field
        return next((row for row, choice in enumerate(choices) if choice.field == wanted), 0)
    if wants_free:
        return next((row for row, choice in enumerate(choices) if choice.is_free), 0)
    return 0


def _closed(found: OperationSet) -> Choice:
    sure = tr(UNTAKEN) if found.confidence == "declared" else _sure(found)
    return Choice(
        tr("The values of {field}", field=found.field), f"{_counted(found)}, {sure}", found.field, found.operations
    )


def _free(found: OperationSet) -> Choice:
    count = len(found.suggested)
    said = tr("free text; its description names {count}", count=count) if count else tr("free text")
    return Choice(tr("Names for {field}", field=found.field), said, found.field, (), found.suggested, is_free=True)


def _named(now: Declaration) -> Choice:
    return Choice(
        tr("Names for {field}", field=now.field), tr("declared in the policy"), now.field, (), (), is_free=True
    )


def _sure(found: OperationSet) -> str:
    return tr("{degree} confidence", degree=tr(CONFIDENCE.get(found.confidence, found.confidence)))


def _counted(found: OperationSet) -> str:
    return counted(len(found.operations), "operation", "operations")


class ChoiceModel(QAbstractListModel):
    """The choices, one a row."""

    def __init__(self, choices: Sequence[Choice], parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.choices = tuple(choices)

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: N802, B008
        """How many."""
        return 0 if parent.isValid() else len(self.choices)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Title and note, and the choice itself under `CHOICE`."""
        if not index.isValid() or index.row() >= len(self.choices):
            return None
        choice = self.choices[index.row()]
        if role == CHOICE:
            return choice
        if role in {Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.AccessibleTextRole, Qt.ItemDataRole.ToolTipRole}:
            return f"{choice.title} ({choice.note})"
        return None


@dataclass(slots=True)
class _Row:
    name: str
    note: str
    is_on: bool
    is_own: bool = False


class OperationListModel(QAbstractListModel):
    """The operations of a choice. Where the schema closes the list they are only shown; otherwise they are ticked."""

    changed = Signal()
    """Another name is ticked, added or gone."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._rows: list[_Row] = []
        self._is_free = False

    def show(self, choice: Choice, ticked: Sequence[str]) -> None:
        """Show the operations of a choice; `ticked`: those that are declared already."""
        self.beginResetModel()
        self._is_free = choice.is_free
        self._rows = list(_rows(choice, ticked))
        self.endResetModel()
        self.changed.emit()

    @property
    def names(self) -> tuple[str, ...]:
        """The operations that there would be."""
        return tuple(row.name for row in self._rows if row.is_on)

    @property
    def is_free(self) -> bool:
        """Whether names can be ticked and added."""
        return self._is_free

    def add(self, name: str) -> str:
        """Add a name, ticked, or tick the one that is there; why not, in words, otherwise empty."""
        if not name:
            return tr("an operation needs a name")
        if name != name.strip():
            return tr("`{name}` has blanks around it", name=name)
        row = next((row for row, held in enumerate(self._rows) if held.name == name), None)
        if row is not None:
            if self._rows[row].is_on:
                return tr("`{name}` is there already", name=name)
            self.setData(self.index(row), Qt.CheckState.Checked, Qt.ItemDataRole.CheckStateRole)
            return ""
        end = len(self._rows)
        self.beginInsertRows(QModelIndex(), end, end)
        self._rows.append(_Row(name, tr("added here"), is_on=True, is_own=True))
        self.endInsertRows()
        self.changed.emit()
        return ""

    def remove(self, row: int) -> bool:
        """Take away a name that was added here; a suggested one only loses its tick."""
        if not self._is_free or not 0 <= row < len(self._rows):
            return False
        if not self._rows[row].is_own:
            return self.setData(self.index(row), Qt.CheckState.Unchecked, Qt.ItemDataRole.CheckStateRole)
        self.beginRemoveRows(QModelIndex(), row, row)
        del self._rows[row]
        self.endRemoveRows()
        self.changed.emit()
        return True

    def tick_all(self, *, on: bool) -> None:
        """Tick every name, or none."""
        for row in self._rows:
            row.is_on = on
        if self._rows:
            self.dataChanged.emit(self.index(0), self.index(len(self._rows) - 1))
        self.changed.emit()

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: N802, B008
        """How many names."""
        return 0 if parent.isValid() else len(self._rows)

    def flags(self, index: Index) -> Qt.ItemFlag:
        """Free names can be ticked."""
        flags = super().flags(index)
        return flags | Qt.ItemFlag.ItemIsUserCheckable if index.isValid() and self._is_free else flags

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """The name with its parameters, and its tick."""
        if not index.isValid() or index.row() >= len(self._rows):
            return None
        row = self._rows[index.row()]
        if role == Qt.ItemDataRole.CheckStateRole and self._is_free:
            return Qt.CheckState.Checked if row.is_on else Qt.CheckState.Unchecked
        if role in {Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.AccessibleTextRole, Qt.ItemDataRole.ToolTipRole}:
            return f"{row.name}  ({row.note})" if row.note else row.name
        return None

    def setData(self, index: Index, value: Any, role: int = Qt.ItemDataRole.EditRole) -> bool:  # noqa: N802
        """Tick a name or not."""
        fits = self._is_free and index.isValid() and index.row() < len(self._rows)
        if not fits or role != Qt.ItemDataRole.CheckStateRole:
            return False
        self._rows[index.row()].is_on = Qt.CheckState(value) == Qt.CheckState.Checked
        self.dataChanged.emit(index, index, [role])
        self.changed.emit()
        return True


def _rows(choice: Choice, ticked: Sequence[str]) -> Iterator[_Row]:
    if not choice.is_free:
        for operation in choice.operations:
            yield _Row(operation.name, _parameters(operation), is_on=True)
        return
    for name in choice.suggested:
        yield _Row(name, "suggested", is_on=name in ticked)
    for name in ticked:
        if name not in choice.suggested:
            yield _Row(name, "declared", is_on=True, is_own=True)


def _parameters(operation: Operation) -> str:
    needs = ", ".join((*operation.required, *operation.inner_required))
    takes = ", ".join((*operation.optional, *operation.inner_optional))
    said = (
        tr("needs {arguments}", arguments=needs) if needs else "",
        tr("takes {arguments}", arguments=takes) if takes else "",
    )
    return "; ".join(text for text in said if text)
