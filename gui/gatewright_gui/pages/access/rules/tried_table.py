"""What a policy rule would have made of recorded calls: then, and with the rule."""

from datetime import datetime

from PySide6.QtWidgets import QStyleOptionViewItem

from gatewright_gui.pages.activity.rows import mark_of, time_words
from gatewright_gui.pages.trial.table import verdict_mark
from gatewright_gui.qt.language import counted, mark, tr
from gatewright_gui.qt.prose import plain
from gatewright_gui.qt.table_model import ROW, Index, RowModel
from gatewright_gui.qt.widget.item_view import Delegate, put_icon, tint
from gatewright_gui.session.audit_call import decision_words, outcome_words
from gatewright_gui.session.comparison import Replay, ReplayedCall

TIME, CALL, THEN, DRAFTED = range(4)


class TriedModel(RowModel[ReplayedCall]):
    """One row for each call, newest first."""

    headers = (mark("Time"), mark("Call"), mark("Recorded"), mark("With the rule"))

    def text(self, row: ReplayedCall, column: int) -> str:
        """When, what, and what became of it without the rule and with it."""
        call = row.call
        match column:
            case 0:
                return time_words(call.wall_s, datetime.now().astimezone().date())
            case 1:
                return f"{call.agent}: {call.called}  {call.arguments}".rstrip()
            case 2:
                return outcome_words(call)
            case _:
                after, before = decision_words(row.after), decision_words(row.before)
                return tr("{verdict}, today {before}", verdict=after, before=before) if row.is_changed else after

    def tip(self, row: ReplayedCall, _column: int) -> str:
        """The call, and why."""
        lines = [self.text(row, CALL), f"{tr('With the rule')}: {plain(row.reason)}"]
        if row.lacks:
            lines.append(tr("{lacks}: with these it may differ", lacks=row.lacks))
        return "\n".join(lines)

    def spoken(self, row: ReplayedCall, column: int) -> str:
        """With the name of the column."""
        return f"{tr(self.headers[column])}: {self.text(row, column)}"


def trial_words(found: Replay) -> str:
    """A line on what the rule would change."""
    if not found.calls:
        if not found.looked_at:
            return tr("no calls are recorded yet")
        calls = counted(found.looked_at, "call", "calls")
        return tr("the rule is for none of the newest {calls}", calls=calls)
    verdicts = {"deny": tr("denied"), "ask": tr("asked first"), "allow": tr("allowed")}
    told = [
        f"{count} {words}"
        for verdict, words in verdicts.items()
        if (count := sum(one.is_changed and one.after == verdict for one in found.calls))
    ]
    would = tr("none would differ")
    if told:
        would = tr("{count} would differ: {verdicts}", count=f"{found.differing:,}", verdicts=", ".join(told))
    calls = counted(len(found.calls), "call", "calls")
    return tr("of the newest {calls} that it is for, {would}", calls=calls, would=would)


class TriedDelegate(Delegate):
    """Verdicts with icon and colour; what stays as it is is quiet."""

    def initStyleOption(self, option: QStyleOptionViewItem, index: Index) -> None:  # noqa: N802
        """Icon and colour."""
        super().initStyleOption(option, index)
        tried = index.data(ROW)
        if not isinstance(tried, ReplayedCall):
            return
        icon, role = mark_of(tried.call) if index.column() == THEN else verdict_mark(tried.after.value)
        if index.column() in {THEN, DRAFTED}:
            put_icon(option, icon, role)
        tint(
            option, role if index.column() == DRAFTED and tried.is_changed else "text" if tried.is_changed else "muted"
        )
