"""The stages of a call as rows: those that passed, the one at work, those that were not reached. It runs none."""

import time
from collections.abc import Callable, Sequence
from typing import Any, Literal

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QObject, QPersistentModelIndex, Qt

from gatewright.policy.verdict import Verdict
from gatewright_gui.session.calls import RuleLink, StageRow
from gatewright_gui.session.console import DECIDING_NAMES, STAGE_NAMES

Index = QModelIndex | QPersistentModelIndex
STAGE, VERDICT, REASON, RULE, TIME = range(5)
HEADERS = ("Stage", "Verdict", "Reason", "Rule", "Time")
STATE = Qt.ItemDataRole.UserRole + 1
"""A Verdict, or `working`, `waiting`, `skipped`, `cancelled`, `failed`."""
APPROVAL = "approval"
"""The stage at which a call waits for an answer."""
SLOW_S = 0.2
"""From when on it is told how long a stage has been at work."""
FIRST_ACTING = len(DECIDING_NAMES)
"""The first row whose stage acts."""
EXECUTE = "execute"
"""The stage at which a tool fails."""
State = Verdict | Literal["working", "waiting", "skipped", "cancelled", "failed"]
_WORDS: dict[str, str] = {"working": "at work", "waiting": "", "skipped": "not reached", "cancelled": "cancelled"}


class StageModel(QAbstractTableModel):
    """One row for each stage, always all of them, in the gate's order."""

    def __init__(self, parent: QObject | None = None, steady: Callable[[], float] = time.monotonic) -> None:
        super().__init__(parent)
        self._steady = steady
        self._since_s = 0.0
        self._rows: dict[str, StageRow] = {}
        self._is_running = False
        self._is_held = False
        self._is_asking = False
        self._last = STAGE_NAMES[-1]
        self._cut_at = self._failed = ""

    def start_over(self, *, running: bool, to_the_end: bool = True) -> None:
        """Nothing has passed yet; without `to_the_end` only the deciding stages will."""
        self._rows.clear()
        self._is_running, self._is_held, self._is_asking = running, False, False
        self._cut_at = self._failed = ""
        self._last = STAGE_NAMES[-1] if to_the_end else DECIDING_NAMES[-1]
        self._since_s = self._steady()
        self._changed()

    def pass_stage(self, row: StageRow) -> None:
        """A stage passed. A stage that passed before begins another round: what came after it is open again."""
        if row.name in self._rows:
            for name in STAGE_NAMES[STAGE_NAMES.index(row.name) :]:
                self._rows.pop(name, None)
        self._rows[row.name] = row
        self._since_s = self._steady()
        self._changed()

    def tick(self) -> None:
        """Time passed for the stage that is at work."""
        row = len(self._rows)
        if self._is_running and row < len(STAGE_NAMES):
            self.dataChanged.emit(self.index(row, TIME), self.index(row, TIME))

    def text_at(self, row: int) -> str:
        """A stage as a line to read or copy."""
        parts = [self._text(row, column) for column in (STAGE, VERDICT, TIME, REASON)]
        return " \u00b7 ".join(part for part in parts if part)

    def reason_at(self, row: int) -> str:
        """What a stage found, whole; empty where it was not reached."""
        found = self._rows.get(STAGE_NAMES[row]) if 0 <= row < len(STAGE_NAMES) else None
        return self._reason(found) if found is not None else ""

    def finish(
        self,
        rows: Sequence[StageRow],
        *,
        to_the_end: bool = True,
        asks: bool = False,
        cut_at: str = "",
        failed: str = "",
    ) -> None:
        """What passed in the end. `asks`: somebody would have to answer before the call goes on.

        `cut_at`: the stage at which it was cancelled. `failed`: how it failed although it was executed.
        """
        self._rows = {row.name: row for row in rows}
        self._is_running, self._is_held, self._is_asking = False, False, asks
        self._cut_at, self._failed = cut_at, failed
        self._last = STAGE_NAMES[-1] if to_the_end else DECIDING_NAMES[-1]
        self._changed()

    def hold(self, *, held: bool) -> None:
        """The call waits for an answer, or goes on."""
        self._is_held = held
        self._changed()

    def stop(self) -> None:
        """The call was given up."""
        self._is_running = self._is_held = False
        self._changed()

    def state_at(self, row: int) -> State:
        """What became of a stage."""
        name = STAGE_NAMES[row]
        found = self._rows.get(name)
        if name == self._cut_at:
            return "cancelled"
        if name == EXECUTE and self._failed:
            return "failed"
        if found is not None:
            return Verdict.ASK if self._asks_at(found) else found.verdict
        if not self._is_running or row > STAGE_NAMES.index(self._last):
            return "skipped" if self._rows or self._is_running else "waiting"
        return "working" if row == len(self._rows) and not self._is_held else "waiting"

    def rule_at(self, row: int) -> RuleLink | None:
        """The place of the policy that a stage speaks of."""
        found = self._rows.get(STAGE_NAMES[row]) if 0 <= row < len(STAGE_NAMES) else None
        return found.rule if found is not None else None

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: N802, B008
        """All stages."""
        return 0 if parent.isValid() else len(STAGE_NAMES)

    def columnCount(self, parent: Index = QModelIndex()) -> int:  # noqa: N802, B008
        """Stage, verdict, reason, rule, time."""
        return 0 if parent.isValid() else len(HEADERS)

    def headerData(  # noqa: N802
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> Any:
        """Names of the columns."""
        if orientation == Qt.Orientation.Horizontal and role == Qt.ItemDataRole.DisplayRole:
            return HEADERS[section]
        return None

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Texts, and the state that the delegate draws."""
        if not index.isValid():
            return None
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return self._text(index.row(), index.column())
            case Qt.ItemDataRole.ToolTipRole:
                return self._text(index.row(), index.column()) or None
            case Qt.ItemDataRole.AccessibleTextRole:
                return f"{HEADERS[index.column()]} {self._text(index.row(), index.column())}"
            case Qt.ItemDataRole.TextAlignmentRole if index.column() == TIME:
                return Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
            case _ if role == STATE:
                return self.state_at(index.row())
            case _:
                return None

    def flags(self, index: Index) -> Qt.ItemFlag:
        """Rows can be chosen and copied from."""
        flags = super().flags(index)
        return flags | Qt.ItemFlag.ItemNeverHasChildren if index.isValid() else flags

    def _text(self, row: int, column: int) -> str:
        name = STAGE_NAMES[row]
        found = self._rows.get(name)
        if column == STAGE:
            return name
        if found is None:
            if column == TIME:
                return self._so_far(row)
            return _WORDS[str(self.state_at(row))] if column == VERDICT else ""
        if column == VERDICT:
            state = self.state_at(row)
            return self._failed if state == "failed" else str(state)
        if column == REASON:
            return self._reason(found)
        if column == RULE:
            return f"line {found.rule.line}" if found.rule is not None and found.rule.line else ""
        return duration(found.elapsed_us)

    def _so_far(self, row: int) -> str:
        """How long the stage at work has been, once that is worth telling."""
        if self.state_at(row) != "working":
            return ""
        spent_s = self._steady() - self._since_s
        return duration(spent_s * 1_000_000) if spent_s >= SLOW_S else ""

    def _reason(self, found: StageRow) -> str:
        if self._is_held and found.name == APPROVAL:
            return "waits for an answer"
        return "somebody has to answer before it runs" if self._asks_at(found) else found.reason

    def _asks_at(self, found: StageRow) -> bool:
        """The stage itself only lets the call pass to whoever answers: for who looks on, that is where it waits."""
        return found.name == APPROVAL and found.verdict is Verdict.ALLOW and (self._is_held or self._is_asking)

    def _changed(self) -> None:
        self.dataChanged.emit(self.index(0, 0), self.index(len(STAGE_NAMES) - 1, len(HEADERS) - 1))


def duration(microseconds: float) -> str:
    """A time with its unit: `87 us`, `1.3 ms`, `2.4 s`."""
    if microseconds < 1_000:
        return f"{microseconds:.0f} us"
    if microseconds < 1_000_000:
        return f"{microseconds / 1_000:.1f} ms"
    return f"{microseconds / 1_000_000:.1f} s"
