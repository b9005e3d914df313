"""The calls that were decided or run, newest first, and how their rows are drawn."""

from datetime import datetime
from typing import Any

from PySide6.QtCore import Qt
from PySide6.QtGui import QFont, QFontMetrics
from PySide6.QtWidgets import QStyleOptionViewItem

from gatewright_gui.pages.console.table import FAILED, PAD, Index, put_icon, tint, verdict_mark
from gatewright_gui.qt.language import mark, tr
from gatewright_gui.qt.look import Role
from gatewright_gui.qt.plaintext import line_text
from gatewright_gui.qt.table_model import RowModel
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
            case _ if role == VERDICT_ROLE:
                return row.verdict
            case _ if role == FAILED_ROLE:
                return row.outcome_word != row.verdict
            case _ if role == KIND_ROLE:
                return row.kind
            case _ if role == LIVE_ROLE:
                return row.is_live
            case _ if role == TELLING_ROLE:
                return row.telling
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
