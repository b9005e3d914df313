"""The calls that were decided or run, newest first, and how their rows are drawn."""

from datetime import datetime
from typing import Any

from PySide6.QtCore import Qt
from PySide6.QtGui import QFontMetrics
from PySide6.QtWidgets import QStyleOptionViewItem

from gatewright_gui.pages.trial.table import FAILED, PAD, outcome_text, verdict_mark
from gatewright_gui.qt.language import mark, tr
from gatewright_gui.qt.look import Role
from gatewright_gui.qt.plaintext import line_text
from gatewright_gui.qt.table_model import ROW, Index, RowModel
from gatewright_gui.qt.widget.item_view import Delegate, embolden, put_icon, tint
from gatewright_gui.session.calls import CallRecord

WHEN, WHAT, CALL, AGENT, VERDICT = range(5)
HEADERS = (mark("Time"), "", mark("Call"), mark("Agent"), mark("Verdict"))


class CallHistoryModel(RowModel[CallRecord]):
    """Follows the console's records."""

    headers = HEADERS

    def cell(self, row: CallRecord, column: int, role: int) -> Any:
        """Texts, and what the delegate draws from."""
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return _text(row, column)
            case Qt.ItemDataRole.AccessibleTextRole:
                call = f"{_text(row, CALL)} {row.telling}".rstrip()
                made = tr("{kind} {call} by {agent}", kind=_kind(row), call=call, agent=row.request.agent_id)
                return f"{made}, {_text(row, VERDICT)}"
            case Qt.ItemDataRole.ToolTipRole:
                told = f" {row.telling}" if row.telling else ""
                call, agent = f"{row.called}{told}", row.request.agent_id
                made = tr("{kind}: {call} as {agent}", kind=_kind(row), call=call, agent=agent)
                return f"{made}\n{row.reason}"
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
            return outcome_text(record.outcome_word)


def _kind(record: CallRecord) -> str:
    if record.is_live:
        return tr("run live, in the real workspace")
    return tr("run") if record.kind == "run" else tr("decide")


class HistoryDelegate(Delegate):
    """An icon for what was done, the verdict in its colour."""

    def initStyleOption(self, option: QStyleOptionViewItem, index: Index) -> None:  # noqa: N802
        """Icon and colour."""
        super().initStyleOption(option, index)
        record: CallRecord = index.data(ROW)
        if index.column() == WHAT:
            kind: tuple[str, Role] = ("play" if record.kind == "run" else "shield-check", "muted")
            put_icon(option, *(("triangle-alert", "deny") if record.is_live else kind))
        elif index.column() == CALL:
            self._tell_call(option, record)
        elif index.column() == VERDICT:
            failed = record.outcome_word != record.verdict
            icon, role = FAILED if failed else verdict_mark(str(record.verdict))
            put_icon(option, icon, role)
            tint(option, role)
        elif index.column() == WHEN:
            tint(option, "muted")

    def _tell_call(self, item: Any, record: CallRecord) -> None:
        """The call with the argument that tells it from others, of which the end is seen, where paths differ."""
        if record.is_live:
            tint(item, "deny")
            embolden(item)
        if record.telling:
            metrics, called = QFontMetrics(item.font), f"{item.text}  "
            room = item.rect.width() - metrics.horizontalAdvance(called) - 5 * PAD
            item.text = called + line_text(metrics, record.telling, max(room, 0), Qt.TextElideMode.ElideLeft)
