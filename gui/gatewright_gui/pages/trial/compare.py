"""Two calls beside each other: what differs in verdict, stages, arguments and result."""

import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from PySide6.QtCore import QObject, Qt
from PySide6.QtWidgets import (
    QDialog,
    QStackedWidget,
    QStyleOptionViewItem,
    QWidget,
)

from gatewright.workspace.api import diff_text, frozen
from gatewright_gui.pages.trial.table import outcome_text, table_of, verdict_mark
from gatewright_gui.qt.language import counted, tr
from gatewright_gui.qt.layout import column_of, named, row_of, stretch
from gatewright_gui.qt.table_model import ROW, Index, RowModel
from gatewright_gui.qt.widget import Chip, CodeView, EmptyState, Segmented, TableView
from gatewright_gui.qt.widget.button import text_button
from gatewright_gui.qt.widget.item_view import Delegate, embolden, put_icon, tint
from gatewright_gui.qt.widget.label import Label
from gatewright_gui.session.calls import CallRecord, change_words, cut, stage_words, visible

MAX_COMPARED = 200_000
"""Characters of one text that are compared; the rest is left out, which is said."""


@frozen
class Pair:
    """One thing that is known of both calls."""

    name: str
    first: str
    second: str
    verdicts: tuple[str, str] = ("", "")

    @property
    def differs(self) -> bool:
        """Tell whether the calls are not alike in it."""
        return self.first != self.second


@frozen
class Comparison:
    """`first` is the earlier call. Diffs are unified, without a head; empty when the texts are equal."""

    first: CallRecord
    second: CallRecord
    facts: tuple[Pair, ...]
    stages: tuple[Pair, ...]
    arguments: str
    result: str

    @property
    def verdict_changed(self) -> bool:
        """Tell whether the gate judged them differently."""
        return self.first.verdict is not self.second.verdict


def compare_calls(one: CallRecord, other: CallRecord) -> Comparison:
    """Compare two calls; takes time where they are large."""
    first, second = sorted((one, other), key=lambda record: record.number)
    return Comparison(
        first,
        second,
        tuple(_facts(first, second)),
        tuple(_stages(first, second)),
        _diff("arguments", *(_indent(record.request.text, sort=True) for record in (first, second))),
        _diff("result", _result(first), _result(second)),
    )


def _facts(first: CallRecord, second: CallRecord) -> Iterator[Pair]:
    both = (first, second)
    verdicts = str(first.verdict), str(second.verdict)
    yield Pair(tr("verdict"), outcome_text(verdicts[0]), outcome_text(verdicts[1]), verdicts)
    for name, words in (
        (tr("decided at"), [f"{stage_words(record.stage)} \u00b7 {record.code}" for record in both]),
        (tr("reason"), [record.detail or record.reason for record in both]),
        (tr("rule"), [record.rule.rule_id if record.rule is not None else tr("none") for record in both]),
        (tr("for the model"), [_message(record) for record in both]),
        (tr("agent"), [visible(record.request.agent_id) for record in both]),
        (tr("call"), [record.called for record in both]),
        (tr("how"), [_how(record) for record in both]),
        (tr("ended"), [tr((record.status or "only decided").replace("_", " ")) for record in both]),
        (tr("result"), [_size(record) for record in both]),
    ):
        yield Pair(name, words[0], words[1])


def _message(record: CallRecord) -> str:
    if record.model_message is not None:
        return record.model_message
    return tr("the result") if record.output is not None else tr("nothing yet")


def _how(record: CallRecord) -> str:
    return tr("run LIVE") if record.is_live else tr("run in the copy") if record.kind == "run" else tr("decided")


def _size(record: CallRecord) -> str:
    if record.output is None:
        return tr("none")
    size = counted(record.output_bytes or len(record.output.encode("utf-8", "replace")), "byte", "bytes")
    return f"{size}, SHA-256 {record.output_hash[:12]}" if record.output_hash else size


def _stages(first: CallRecord, second: CallRecord) -> Iterator[Pair]:
    ours, theirs = ({row.name: row for row in record.stages} for record in (first, second))
    for name in dict.fromkeys((*ours, *theirs)):
        rows = ours.get(name), theirs.get(name)
        verdicts = tuple("" if row is None else str(row.verdict) for row in rows)
        words = [
            f"{outcome_text(row.verdict)} \u00b7 {row.reason}" if row is not None else tr("not reached") for row in rows
        ]
        yield Pair(name, words[0], words[1], (verdicts[0], verdicts[1]))


def _indent(text: str, *, sort: bool = False) -> str:
    try:
        return json.dumps(json.loads(text), ensure_ascii=False, indent=2, sort_keys=sort)
    except (ValueError, RecursionError):
        return text


def _result(record: CallRecord) -> str:
    text = record.model_text or ""
    return _indent(text) if len(text) <= MAX_COMPARED else text


def _diff(name: str, old: str, new: str) -> str:
    if old == new:
        return ""
    told = change_words(diff_text(name, _lines(old), _lines(new)), "")[1]
    longest = max(len(old), len(new))
    words = tr("only the first {count:,} of {all:,} characters were compared", count=MAX_COMPARED, all=longest)
    more = f"[{words}]\n" if longest > MAX_COMPARED else ""
    return cut(more + told) or more or f"[{tr('they differ after what was compared')}]\n"


def _lines(text: str) -> str:
    short = text[:MAX_COMPARED]
    return short if short.endswith("\n") or not short else f"{short}\n"


NAME, FIRST, SECOND = range(3)


class PairModel(RowModel[Pair]):
    """One row for each thing that is known of both; `headers`: what is compared, and the two calls."""

    def __init__(self, headers: tuple[str, ...], pairs: Sequence[Pair] = (), parent: QObject | None = None) -> None:
        super().__init__(parent, pairs)
        self.headers = headers

    def cell(self, row: Pair, column: int, role: int) -> Any:
        """Texts, and what the delegate draws from."""
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return " ".join(_text(row, column).split())
            case Qt.ItemDataRole.ToolTipRole:
                return _text(row, column)
            case Qt.ItemDataRole.AccessibleTextRole:
                return f"{_text(row, column)}, {tr('different') if row.differs else tr('the same')}"
            case _:
                return None


def _text(pair: Pair, column: int) -> str:
    return (pair.name, pair.first, pair.second)[column]


class _Delegate(Delegate):
    """A delegate: what differs is bold and has a mark; a verdict has its icon."""

    def initStyleOption(self, option: QStyleOptionViewItem, index: Index) -> None:  # noqa: N802
        super().initStyleOption(option, index)
        pair: Pair = index.data(ROW)
        if index.column() == NAME:
            put_icon(option, *(("diff", "ask") if pair.differs else ("minus", "disabled")))
            if pair.differs:
                embolden(option)
        elif verdict := pair.verdicts[index.column() - 1]:
            put_icon(option, *verdict_mark(verdict))
        if not pair.differs:
            tint(option, "muted")


class CompareDialog(QDialog):
    """The earlier call at the left."""

    def __init__(self, parent: QWidget | None, told: Comparison) -> None:
        super().__init__(parent)
        self.comparison = told
        named(self, "console.compare.dialog", spoken=tr("Compare two calls")).setWindowTitle(tr("Compare two calls"))
        heads = _head(told.first), _head(told.second)
        self.facts = _table(tr("What is known of both"), "console.compare.facts", ("", *heads), told.facts)
        self.stages = _table(tr("Stages of both"), "console.compare.stages", (tr("Stage"), *heads), told.stages)
        self.arguments_diff = _diff_view(tr("Difference of the arguments"), "console.compare.arguments", told.arguments)
        self.result_diff = _diff_view(tr("Difference of what the model gets"), "console.compare.result", told.result)
        self.parts = named(Segmented(tr("What is compared")), "console.compare.parts")
        self._stack = QStackedWidget()
        self._pages: dict[str, QWidget] = {}
        different = sum(pair.differs for pair in told.stages)
        for key, words, view in (
            ("facts", tr("Overview"), self.facts),
            ("stages", tr("Stages ({count})", count=different), self.stages),
            ("arguments", _or_same(tr("Arguments"), told.arguments), _diff_part(self.arguments_diff, told.arguments)),
            ("result", _or_same(tr("Result"), told.result), _diff_part(self.result_diff, told.result)),
        ):
            self.parts.add_segment(key, words)
            self._pages[key] = view
            self._stack.addWidget(view)
        self.parts.current_changed.connect(self._show_part)
        self.close_button = text_button(tr("Close"), "console.compare.close", self.accept)
        self.close_button.setDefault(True)
        self._lay_out(told)
        self.resize(900, 520)

    def _show_part(self, key: object) -> None:
        self._stack.setCurrentWidget(self._pages[str(key)])

    def _lay_out(self, told: Comparison) -> None:
        before, now = outcome_text(told.first.verdict), outcome_text(told.second.verdict)
        chip = named(Chip("", role="ask"), "console.compare.verdict")
        if told.verdict_changed:
            chip.set_chip(tr("then {before}, now {now}", before=before, now=now), "diff", "ask")
        else:
            chip.set_chip(tr("both {verdict}", verdict=now), "check", "muted")
        note = named(
            Label(tr("unified: what only the later call has is +, what only the earlier one has is -")), kind="small"
        )
        column_of(
            row_of(chip, note, stretch(), self.parts, space=2),
            stretch(self._stack),
            row_of(stretch(), self.close_button),
            into=self,
            space=2,
            margins=3,
        )


def _head(record: CallRecord) -> str:
    when = datetime.fromtimestamp(record.wall_s).astimezone().strftime("%H:%M:%S")
    return tr("#{number} {call} at {time}", number=record.number, call=record.called, time=when)


def _table(name: str, object_name: str, heads: tuple[str, str, str], pairs: Sequence[Pair]) -> TableView:
    view = table_of(model := PairModel(heads, pairs), _Delegate, name, object_name)
    model.setParent(view)
    header = view.horizontalHeader()
    header.setSectionResizeMode(NAME, header.ResizeMode.ResizeToContents)
    for column in (FIRST, SECOND):
        header.setSectionResizeMode(column, header.ResizeMode.Stretch)
    return view


def _diff_view(name: str, object_name: str, text: str) -> CodeView:
    view = named(CodeView(name), object_name)
    view.set_diff(text)
    return view


def _diff_part(view: CodeView, text: str) -> QWidget:
    return view if text else EmptyState("check", tr("The same"), tr("There is no difference"))


def _or_same(words: str, diff: str) -> str:
    return words if diff else tr("{part} (same)", part=words)
