"""How a row of limits is drawn and edited: a number, a time, a rate, a scope, and for which operations.

It does not know verbs: editors hand values to the model.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from PySide6.QtCore import QAbstractItemModel, QModelIndex, QObject, QPersistentModelIndex, Qt
from PySide6.QtWidgets import QComboBox, QLineEdit, QStyleOptionViewItem, QWidget

from gatewright.policy.rule import MaxCalls, RateLimit, RequiresConsent, RuleKind
from gatewright_gui.models.limitlist import LINK, ROW, Choice, Column
from gatewright_gui.models.limitrow import LimitRow, title_of
from gatewright_gui.models.limitvalue import MAX_CALLS, RATE_EXAMPLE, limit_fault, limit_text
from gatewright_gui.pages.agents.value_field import ValueDelegate, ValueField
from gatewright_gui.qt.look import role_colour
from gatewright_gui.qt.plaintext import LONGEST_LINE, label_text
from gatewright_gui.qt.widget.number_field import NumberField

Index = QModelIndex | QPersistentModelIndex


class LimitDelegate(ValueDelegate):
    """`choices` gives what a row can be for."""

    def __init__(self, choices: Callable[[LimitRow], Sequence[Choice]], parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._choices = choices

    def initStyleOption(self, option: QStyleOptionViewItem, index: Index) -> None:  # noqa: N802
        """What is inherited is muted; what leads to a line has the colour of links."""
        super().initStyleOption(option, index)
        row, item = index.data(ROW), cast_any(option)
        if isinstance(row, LimitRow):
            role = "accent" if index.data(LINK) else "text" if row.is_own else "muted"
            for which in (item.palette.ColorRole.Text, item.palette.ColorRole.HighlightedText):
                item.palette.setColor(which, role_colour(role))

    def createEditor(self, parent: QWidget, option: QStyleOptionViewItem, index: Index) -> QWidget:  # noqa: N802
        """The editor that fits the kind."""
        row = index.data(ROW)
        if not isinstance(row, LimitRow):
            return super().createEditor(parent, option, index)
        if index.column() == Column.FOR:
            return self._operations_field(parent, row)
        if isinstance(row.kind, MaxCalls) and 1 <= row.kind.calls <= MAX_CALLS:
            number = NumberField("Max calls in a session", 1, MAX_CALLS, unit="calls", parent=parent)
            number.setObjectName("agents.limits.calls")
            number.setFrame(False)
            return number
        field = ValueField(partial(_fault, row.kind), parent)
        field.setObjectName("agents.limits.value")
        field.setAccessibleName(title_of(row))
        field.setPlaceholderText(_hint(row))
        return field

    def setEditorData(self, editor: QWidget, index: Index) -> None:  # noqa: N802
        """The value as it can be typed."""
        if isinstance(editor, NumberField):
            editor.setValue(int(str(index.data(Qt.ItemDataRole.EditRole))))
            editor.selectAll()
        elif isinstance(editor, QComboBox):
            row = index.data(ROW)
            texts = [choice.operations for choice in self._choices(row)]
            editor.setCurrentIndex(texts.index(row.operations) if row.operations in texts else 0)
        elif isinstance(editor, QLineEdit):
            editor.setText(str(index.data(Qt.ItemDataRole.EditRole)))

    def setModelData(self, editor: QWidget, model: QAbstractItemModel, index: Index) -> None:  # noqa: N802
        """Hand over what can be taken."""
        where = index if isinstance(index, QModelIndex) else model.index(index.row(), index.column())
        if isinstance(editor, NumberField):
            editor.interpretText()
            model.setData(where, str(editor.value()))
        elif isinstance(editor, QComboBox):
            model.setData(where, editor.currentData())
        elif isinstance(editor, ValueField) and not editor.refused:
            model.setData(where, editor.text())

    def updateEditorGeometry(self, editor: QWidget, option: QStyleOptionViewItem, index: Index) -> None:  # noqa: N802
        """Over the cell, never too narrow to type in."""
        del index
        rect = cast_any(option).rect
        rect.setWidth(max(rect.width(), min(editor.sizeHint().width(), 160)))
        editor.setGeometry(rect)

    def _operations_field(self, parent: QWidget, row: LimitRow) -> QComboBox:
        field = QComboBox(parent)
        field.setObjectName("agents.limits.for")
        field.setAccessibleName(f"{title_of(row)}: for which operations")
        for choice in self._choices(row):
            field.addItem(label_text(choice.text, LONGEST_LINE, keep=""), choice.operations)
        field.activated.connect(partial(self._chosen, field))
        return field

    def _chosen(self, field: QComboBox, _index: int) -> None:
        self.commitData.emit(field)
        self.closeEditor.emit(field, self.EndEditHint.NoHint)


def cast_any(option: QStyleOptionViewItem) -> Any:
    """Its members are untyped in the bindings."""
    return option


def _fault(kind: RuleKind, text: str) -> str:
    """What stands there may stay, though one could not type it anew."""
    return "" if text == limit_text(kind) else limit_fault(kind, text)


def _hint(row: LimitRow) -> str:
    if isinstance(row.kind, RateLimit):
        return RATE_EXAMPLE
    return "scope, or empty" if isinstance(row.kind, RequiresConsent) else "such as 1.5 s, 2 min, 100 ms"
