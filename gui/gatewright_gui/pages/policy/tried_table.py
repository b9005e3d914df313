"""What a policy rule would have made of recorded calls: then, and with the rule."""

from datetime import datetime
from typing import Any

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QStyleOptionViewItem

from gatewright_gui.pages.audit.call_model import mark_of, time_words
from gatewright_gui.pages.console.table import put_icon, tint, verdict_mark
from gatewright_gui.qt.prose import plain
from gatewright_gui.qt.table_model import FlatModel
from gatewright_gui.qt.widget.delegate import Delegate, Index
from gatewright_gui.session.audit_call import outcome_words
from gatewright_gui.session.review import Replay, ReplayedCall

TIME, CALL, THEN, DRAFTED = range(4)
TRIED = Qt.ItemDataRole.UserRole + 1


class TriedModel(FlatModel):
    """One row for each call, newest first."""

    headers = ("Time", "Call", "Then", "With the rule")

    def __init__(self) -> None:
        super().__init__()
        self._calls: tuple[ReplayedCall, ...] = ()

    def set_calls(self, calls: tuple[ReplayedCall, ...]) -> None:
        """Show these."""
        if calls != self._calls:
            self.beginResetModel()
            self._calls = calls
            self.endResetModel()

    def count(self) -> int:
        """How many calls."""
        return len(self._calls)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Texts."""
        if not index.isValid() or index.row() >= len(self._calls):
            return None
        tried = self._calls[index.row()]
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return self._text(tried, index.column())
            case Qt.ItemDataRole.ToolTipRole:
                lacks = f"\n{tried.lacks}: with these it may differ" if tried.lacks else ""
                return f"{self._text(tried, CALL)}\nWith the rule: {plain(tried.reason)}{lacks}"
            case Qt.ItemDataRole.AccessibleTextRole:
                return f"{self.headers[index.column()]}: {self._text(tried, index.column())}"
            case _ if role == TRIED:
                return tried
            case _:
                return None

    @staticmethod
    def _text(tried: ReplayedCall, column: int) -> str:
        call = tried.call
        match column:
            case 0:
                return time_words(call.wall_s, datetime.now().astimezone().date())
            case 1:
                return f"{call.agent}: {call.called}  {call.arguments}".rstrip()
            case 2:
                return outcome_words(call)
            case _:
                was = f", today {tried.before.words}" if tried.is_changed else ""
                return f"{tried.after.words}{was}"


def tried_words(found: Replay) -> str:
    """What the rule would change, in a line."""
    if not found.calls:
        if not found.looked_at:
            return "no calls are recorded yet: try one in the Console"
        return f"the rule is for none of the newest {found.looked_at:,} calls"
    verdicts = {"deny": "denied", "ask": "asked first", "allow": "allowed"}
    told = [
        f"{count} {words}"
        for verdict, words in verdicts.items()
        if (count := sum(one.is_changed and one.after == verdict for one in found.calls))
    ]
    would = f"{found.differing:,} would differ: {', '.join(told)}" if told else "none would differ"
    return f"of the newest {len(found.calls):,} calls that it is for, {would}"


class TriedDelegate(Delegate):
    """Verdicts with icon and colour; what stays as it is is quiet."""

    def initStyleOption(self, option: QStyleOptionViewItem, index: Index) -> None:  # noqa: N802
        """Icon and colour."""
        super().initStyleOption(option, index)
        tried = index.data(TRIED)
        if not isinstance(tried, ReplayedCall):
            return
        icon, role = mark_of(tried.call) if index.column() == THEN else verdict_mark(tried.after.value)
        if index.column() in {THEN, DRAFTED}:
            put_icon(option, icon, role)
        tint(
            option, role if index.column() == DRAFTED and tried.is_changed else "text" if tried.is_changed else "muted"
        )
