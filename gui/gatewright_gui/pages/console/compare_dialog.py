"""Two calls beside each other: what differs in verdict, stages, arguments, result. It compares nothing by itself."""

from datetime import datetime
from typing import Any

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QAbstractItemView,
    QDialog,
    QHBoxLayout,
    QPushButton,
    QStackedWidget,
    QStyleOptionViewItem,
    QVBoxLayout,
    QWidget,
)

from gatewright_gui.models import comparison
from gatewright_gui.models.comparison import PairModel
from gatewright_gui.pages.console.delegate import put_icon, tint, verdict_mark
from gatewright_gui.qt.look import current_look
from gatewright_gui.qt.widget import Chip, CodeView, EmptyState, Segmented, TableView
from gatewright_gui.qt.widget.delegate import Delegate
from gatewright_gui.qt.widget.label import Label
from gatewright_gui.session.calls import CallRecord
from gatewright_gui.session.comparison import Comparison


class _Delegate(Delegate):
    """What differs is bold and has a mark; a verdict has its icon."""

    def initStyleOption(self, option: QStyleOptionViewItem, index: comparison.Index) -> None:  # noqa: N802
        super().initStyleOption(option, index)
        item: Any = option
        differs = bool(index.data(comparison.DIFFERS))
        verdict = str(index.data(comparison.VERDICT) or "")
        if index.column() == comparison.NAME:
            put_icon(option, "diff" if differs else "minus", "ask" if differs else "disabled")
            item.font.setBold(differs)
        elif verdict:
            put_icon(option, *verdict_mark(verdict))
        if not differs:
            tint(option, "muted")


class CompareDialog(QDialog):
    """The earlier call at the left."""

    def __init__(self, parent: QWidget | None, told: Comparison) -> None:
        super().__init__(parent)
        self.comparison = told
        self.setObjectName("console.compare.dialog")
        self.setWindowTitle("Compare two calls")
        self.setAccessibleName("Compare two calls")
        heads = _head(told.first), _head(told.second)
        self.facts = _table("What is known of both", "console.compare.facts", ("", *heads), told.facts)
        self.stages = _table("Stages of both", "console.compare.stages", ("Stage", *heads), told.stages)
        self.arguments_diff = _diff("Difference of the arguments", "console.compare.arguments", told.arguments)
        self.result_diff = _diff("Difference of what the model gets", "console.compare.result", told.result)
        self.parts = Segmented("What is compared")
        self.parts.setObjectName("console.compare.parts")
        self._stack = QStackedWidget()
        self._pages: dict[str, QWidget] = {}
        different = sum(pair.differs for pair in told.stages)
        for key, words, view in (
            ("facts", "Overview", self.facts),
            ("stages", f"Stages ({different})", self.stages),
            (
                "arguments",
                "Arguments" if told.arguments else "Arguments (same)",
                _shown(self.arguments_diff, told.arguments),
            ),
            ("result", "Result" if told.result else "Result (same)", _shown(self.result_diff, told.result)),
        ):
            self.parts.add_segment(key, words)
            self._pages[key] = view
            self._stack.addWidget(view)
        self.parts.current_changed.connect(self._show_part)
        self.close_button = QPushButton("Close")
        self.close_button.setObjectName("console.compare.close")
        self.close_button.setDefault(True)
        self.close_button.clicked.connect(self.accept)
        self._lay_out(told)
        self.resize(900, 520)

    def _show_part(self, key: object) -> None:
        self._stack.setCurrentWidget(self._pages[str(key)])

    def _lay_out(self, told: Comparison) -> None:
        tokens = current_look().tokens
        verdicts = (str(told.first.verdict), str(told.second.verdict))
        chip = Chip("", role="ask")
        if told.verdict_changed:
            chip.set_chip(f"then {verdicts[0]}, now {verdicts[1]}", "diff", "ask")
        else:
            chip.set_chip(f"both {verdicts[0]}", "check", "muted")
        chip.setObjectName("console.compare.verdict")
        note = Label("unified: what only the later call has is +, what only the earlier one has is -")
        note.setProperty("kind", "small")
        top = QHBoxLayout()
        for part in (chip, note):
            top.addWidget(part)
        top.addStretch(1)
        top.addWidget(self.parts)
        foot = QHBoxLayout()
        foot.addStretch(1)
        foot.addWidget(self.close_button)
        column = QVBoxLayout(self)
        column.setContentsMargins(tokens.space_3, tokens.space_3, tokens.space_3, tokens.space_3)
        column.setSpacing(tokens.space_2)
        column.addLayout(top)
        column.addWidget(self._stack, 1)
        column.addLayout(foot)


def _head(record: CallRecord) -> str:
    when = datetime.fromtimestamp(record.wall_s).astimezone().strftime("%H:%M:%S")
    return f"#{record.number} {record.called} at {when}"


def _table(name: str, object_name: str, heads: tuple[str, str, str], pairs: Any) -> TableView:
    view = TableView(name)
    view.setObjectName(object_name)
    model = PairModel(heads, view)
    model.set_pairs(heads, pairs)
    view.setModel(model)
    view.setItemDelegate(_Delegate(view))
    view.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
    view.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
    view.setTabKeyNavigation(False)
    view.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    header = view.horizontalHeader()
    header.setSectionResizeMode(comparison.NAME, header.ResizeMode.ResizeToContents)
    for column in (comparison.FIRST, comparison.SECOND):
        header.setSectionResizeMode(column, header.ResizeMode.Stretch)
    return view


def _diff(name: str, object_name: str, text: str) -> CodeView:
    view = CodeView(name)
    view.setObjectName(object_name)
    view.set_diff(text)
    return view


def _shown(view: CodeView, text: str) -> QWidget:
    return view if text else EmptyState("check", "The same", "There is no difference")
