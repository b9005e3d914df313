"""The calls that were decided or run, newest first, and how their rows are drawn."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from PySide6.QtCore import QModelIndex, QObject, Qt
from PySide6.QtGui import QFont, QFontMetrics
from PySide6.QtWidgets import QStyleOptionViewItem

from gatewright_gui.pages.console.table import FAILED, PAD, Index, put_icon, tint, verdict_mark
from gatewright_gui.qt.language import mark, tr
from gatewright_gui.qt.look import Role
from gatewright_gui.qt.plaintext import line_text
from gatewright_gui.qt.table_model import FlatModel
from gatewright_gui.qt.widget.delegate import Delegate
from gatewright_gui.session.calls import CallRecord

WHEN, WHAT, CALL, AGENT, VERDICT = range(5)
HEADERS = (mark("Time"), "", mark("Call"), mark("Agent"), mark("Verdict"))
VERDICT_ROLE = Qt.ItemDataRole.UserRole + 1
"""Verdict of a row."""
KIND_ROLE = Qt.ItemDataRole.UserRole + 2
"""`decide` or `run`."""
LIVE_ROLE = Qt.ItemDataRole.UserRole + 3
"""Whether it was run in the real workspace."""
TELLING_ROLE = Qt.ItemDataRole.UserRole + 4
"""The argument that tells the call from others of the same operation; may be empty."""
FAILED_ROLE = Qt.ItemDataRole.UserRole + 5
"""Whether it was carried out, and did not end well."""


class CallHistoryModel(FlatModel):
    """Follows the console's records."""

    headers = HEADERS

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._records: tuple[CallRecord, ...] = ()

    @property
    def records(self) -> tuple[CallRecord, ...]:
        """The calls, newest first."""
        return self._records

    def set_records(self, records: Sequence[CallRecord]) -> None:
        """Show these, oldest first as they are given; one more at the end keeps the rows."""
        new = tuple(reversed(records))
        if len(new) == len(self._records) + 1 and new[1:] == self._records:
            self.beginInsertRows(QModelIndex(), 0, 0)
            self._records = new
            self.endInsertRows()
            return
        self.beginResetModel()
        self._records = new
        self.endResetModel()

    def record_at(self, row: int) -> CallRecord | None:
        """The record of a row."""
        return self._records[row] if 0 <= row < len(self._records) else None

    def count(self) -> int:
        """How many calls."""
        return len(self._records)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Texts, and what the delegate draws from."""
        record = self.record_at(index.row()) if index.isValid() else None
        if record is None:
            return None
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return _text(record, index.column())
            case Qt.ItemDataRole.AccessibleTextRole:
                call = f"{_text(record, CALL)} {record.telling}".rstrip()
                made = tr("{kind} {call} by {agent}", kind=_kind(record), call=call, agent=record.request.agent_id)
                return f"{made}, {_text(record, VERDICT)}"
            case Qt.ItemDataRole.ToolTipRole:
                told = f" {record.telling}" if record.telling else ""
                call, agent = f"{record.called}{told}", record.request.agent_id
                made = tr("{kind}: {call} as {agent}", kind=_kind(record), call=call, agent=agent)
                return f"{made}\n{record.reason}"
            case _ if role == VERDICT_ROLE:
                return record.verdict
            case _ if role == FAILED_ROLE:
                return record.outcome_word != record.verdict
            case _ if role == KIND_ROLE:
                return record.kind
            case _ if role == LIVE_ROLE:
                return record.is_live
            case _ if role == TELLING_ROLE:
                return record.telling
            case _:
                return None


def _text(record: CallRecord, column: int) -> str:
    match column:
        case 0:
            return datetime.fromtimestamp(record.wall_s).astimezone().strftime("%H:%M:%S")
        case 1:
            return ""
        case 2:
            return f"{tr('LIVE')} {record.called}" if record.is_live else record.called
        case 3:
            return record.request.agent_id
        case _:
            return tr(record.outcome_word)


def _kind(record: CallRecord) -> str:
    if record.is_live:
        return tr("run live, in the real workspace")
    return tr("run") if record.kind == "run" else tr("decide")


class HistoryDelegate(Delegate):
    """An icon for what was done, the verdict in its colour."""

    def initStyleOption(self, option: QStyleOptionViewItem, index: Index) -> None:  # noqa: N802
        """Icon and colour."""
        super().initStyleOption(option, index)
        if index.column() == WHAT:
            is_run = index.data(KIND_ROLE) == "run"
            is_live = bool(index.data(LIVE_ROLE))
            kind: tuple[str, Role] = ("play" if is_run else "shield-check", "muted")
            put_icon(option, *(("triangle-alert", "deny") if is_live else kind))
        elif index.column() == CALL:
            self._tell_call(option, index)
        elif index.column() == VERDICT:
            failed = bool(index.data(FAILED_ROLE))
            icon, role = FAILED if failed else verdict_mark(str(index.data(VERDICT_ROLE)))
            put_icon(option, icon, role)
            tint(option, role)
        elif index.column() == WHEN:
            tint(option, "muted")

    def _tell_call(self, item: Any, index: Index) -> None:
        """The call with the argument that tells it from others, of which the end is seen, where paths differ."""
        if index.data(LIVE_ROLE):
            tint(item, "deny")
            font = QFont(item.font)
            font.setWeight(QFont.Weight.DemiBold)
            item.font = font
        telling = str(index.data(TELLING_ROLE) or "")
        if telling:
            metrics, called = QFontMetrics(item.font), f"{item.text}  "
            room = item.rect.width() - metrics.horizontalAdvance(called) - 5 * PAD
            item.text = called + line_text(metrics, telling, max(room, 0), Qt.TextElideMode.ElideLeft)
