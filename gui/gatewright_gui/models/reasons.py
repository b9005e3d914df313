"""The reasons of a row as a list: verdict, sentence, line of the policy file. It does not know how to get there."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import QAbstractListModel, QModelIndex, QObject, QPersistentModelIndex, Qt

from gatewright.base.problem import Address
from gatewright.policy.right import Layer, Reason
from gatewright.policy.verdict import Verdict
from gatewright_gui.models.notes import PROBLEM, Note

Index = QModelIndex | QPersistentModelIndex
WHY = Qt.ItemDataRole.UserRole + 1
LAYER_WORDS = {
    Layer.TOOLS: "tools list",
    Layer.RULE: "tool rule",
    Layer.APPROVALS: "approvals",
    Layer.SOURCE: "source",
    Layer.CAPABILITY: "capability",
    Layer.POLICY: "policy",
}


@dataclass(frozen=True, slots=True)
class Why:
    """One reason; `line` of the policy file, None when it follows from no line (a default).

    `verdict` None: a note, what it says depends on the call.
    """

    verdict: Verdict | None
    layer: str
    text: str
    line: int | None
    file: str = ""

    @property
    def is_problem(self) -> bool:
        """Whether it says that something is wrong with the policy."""
        return self.verdict is None and self.layer == PROBLEM

    @property
    def where(self) -> str:
        """File and line; empty when it follows from no line."""
        if not self.line:
            return ""
        return f"{self.file}:{self.line}" if self.file else f"line {self.line}"


class ReasonModel(QAbstractListModel):
    """Reasons in the order in which they decide, then the notes."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._reasons: tuple[Reason | Note, ...] = ()
        self._lines: Mapping[Address, int] = {}
        self._file = ""

    @property
    def addresses(self) -> tuple[Address, ...]:
        """The places whose lines are wanted."""
        return tuple(reason.address for reason in self._reasons if reason.address is not None)

    def set_reasons(self, reasons: Sequence[Reason], notes: Sequence[Note] = ()) -> None:
        """Show these; lines that were known stay until others come."""
        new = (*reasons, *notes)
        if new == self._reasons:
            return
        self.beginResetModel()
        self._reasons = new
        self.endResetModel()

    def set_lines(self, lines: Mapping[Address, int], file: str = "") -> None:
        """Where the places stand now, and in which file."""
        self._lines, self._file = lines, file
        if self._reasons:
            self.dataChanged.emit(self.index(0), self.index(len(self._reasons) - 1))

    def why_at(self, row: int) -> Why | None:
        """The reason of a row."""
        if not 0 <= row < len(self._reasons):
            return None
        reason = self._reasons[row]
        line = self._lines.get(reason.address) if reason.address is not None else None
        file = self._file if line else ""
        if isinstance(reason, Note):
            return Why(None, reason.layer, reason.text, line, file)
        return Why(reason.verdict, LAYER_WORDS[reason.layer], reason.text, line, file)

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: N802, B008
        """How many reasons."""
        return 0 if parent.isValid() else len(self._reasons)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """The sentence, and the whole reason under `WHY`."""
        why = self.why_at(index.row()) if index.isValid() else None
        if why is None:
            return None
        if role == WHY:
            return why
        if role in {Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.ToolTipRole, Qt.ItemDataRole.AccessibleTextRole}:
            where = f", line {why.line}" if why.line else ""
            return f"{why.verdict or 'note'}, {why.layer}: {why.text}{where}"
        return None
