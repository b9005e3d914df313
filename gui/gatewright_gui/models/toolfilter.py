"""Which rows of the tree are shown: a search text and one chip. It does not know the field or the chips.

A row that stops fitting while it is worked on stays until the filter is set again, so that nothing jumps.
"""

from typing import Literal

from PySide6.QtCore import QModelIndex, QObject, QPersistentModelIndex, QSortFilterProxyModel

from gatewright.policy.right import OperationRight, ToolRight
from gatewright.policy.verdict import Verdict
from gatewright_gui.models.tooltree import ToolTreeModel

Index = QModelIndex | QPersistentModelIndex
Show = Literal["all", "on", "off", "asks", "overruled"]


class ToolFilterModel(QSortFilterProxyModel):
    """A tool is shown when it fits or one of its operations does; under a fitting tool name all operations are."""

    def __init__(self, tree: ToolTreeModel, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._tree = tree
        self._words: tuple[str, ...] = ()
        self._show: Show = "all"
        self.setDynamicSortFilter(False)
        self.setSourceModel(tree)

    @property
    def is_filtering(self) -> bool:
        """Whether anything may be left out."""
        return bool(self._words) or self._show != "all"

    def set_search(self, text: str) -> None:
        """Every word has to be in the name or the description."""
        self._words = tuple(text.casefold().split())
        self.invalidate()

    def set_show(self, show: Show) -> None:
        """Only rows in this state."""
        self._show = show
        self.invalidate()

    def shown_operations(self) -> dict[str, tuple[str, ...]]:
        """Tool -> its operations that fit; `("",)` for a tool without operations."""
        fitting = {right.facts.name: self._fitting(right) for right in self._tree.rights}
        return {name: operations for name, operations in fitting.items() if operations}

    def filterAcceptsRow(self, source_row: int, source_parent: Index) -> bool:  # noqa: N802
        """Whether a row is shown."""
        if not self.is_filtering:
            return True
        rights = self._tree.rights
        if not source_parent.isValid():
            return any(self._fits(rights[source_row], op) for op in rights[source_row].operations)
        right = rights[source_parent.row()]
        return self._fits(right, right.operations[source_row])

    def _fitting(self, right: ToolRight) -> tuple[str, ...]:
        return tuple(op.operation for op in right.operations if self._fits(right, op))

    def _fits(self, right: ToolRight, operation: OperationRight) -> bool:
        return self._in_state(operation) and self._has_words(right, operation.operation)

    def _has_words(self, right: ToolRight, operation: str) -> bool:
        if not self._words:
            return True
        facts = right.facts
        own = next(o for o in facts.operations if o.name == operation)
        text = f"{facts.name} {facts.description} {own.name} {own.description}".casefold()
        return all(word in text for word in self._words)

    def _in_state(self, operation: OperationRight) -> bool:
        match self._show:
            case "all":
                return True
            case "on":
                return not operation.is_hidden
            case "off":
                return operation.is_hidden
            case "asks":
                return operation.verdict is Verdict.ASK
            case "overruled":
                return operation.is_overruled
