"""A form made from the schema that the agent sees: one field for each argument. It does not know calls."""

from collections.abc import Mapping
from functools import partial
from typing import TypeAlias

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QComboBox,
    QFrame,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from gatewright.base.jsonvalue import JsonValue
from gatewright_gui.models.callform import (
    MAX_FIELDS,
    FieldFault,
    FormField,
    choice_text,
    form_fields,
    operation_of,
    text_of,
    value_of,
)
from gatewright_gui.pages.console.largetext import LargeTextEdit
from gatewright_gui.qt.look import current_look
from gatewright_gui.qt.widget import ElidedLabel, IconButton
from gatewright_gui.session.calls import ShownTool

_NOT_GIVEN = "(not given)"
_Editor: TypeAlias = QComboBox | QLineEdit | LargeTextEdit
_HINTS = {"integer": "whole number", "number": "number", "json": "JSON value", "text": "", "lines": ""}


class _Row(QWidget):
    """Label, field, description and fault of one argument. They are made when the argument is first taken or filled."""

    changed = Signal()

    def __init__(self, field: FormField) -> None:
        super().__init__()
        self.field = field
        self._standing: tuple[bool, bool] | None = None
        self._editor: _Editor | None = None
        self.hide()

    @property
    def editor(self) -> "_Editor":
        """The field itself."""
        return self._editor or self._build()

    def _build(self) -> "_Editor":
        field = self.field
        self._label = QLabel()
        self._label.setTextFormat(Qt.TextFormat.PlainText)
        self._label.setFont(current_look().mono_font)
        self._need = QLabel()
        self._need.setProperty("kind", "small")
        editor = self._make_editor()
        editor.setObjectName(f"console.form.{field.name}")
        editor.setAccessibleDescription(field.description)
        self._note = QLabel(field.description, self)
        self._note.setProperty("kind", "small")
        self._note.setWordWrap(True)
        self._note.setTextFormat(Qt.TextFormat.PlainText)
        self._note.setVisible(bool(field.description))
        self._fault = QLabel()
        self._fault.setProperty("kind", "error")
        self._fault.setWordWrap(True)
        self._fault.hide()
        head = QHBoxLayout()
        head.setSpacing(current_look().tokens.space_2)
        head.addWidget(self._label)
        head.addWidget(self._need)
        head.addStretch(1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(2)
        column.addLayout(head)
        for part in (editor, self._note, self._fault):
            column.addWidget(part)
        self._label.setText(field.name)
        self._editor = editor
        return editor

    @property
    def is_taken(self) -> bool:
        """Whether the chosen operation takes the argument."""
        return self._standing is not None and self._standing[0]

    @property
    def text(self) -> str:
        """What is in the field; for a list of choices the JSON text of the chosen one."""
        match self._editor:
            case None:
                return ""
            case QComboBox() as combo:
                return str(combo.currentData() or "")
            case LargeTextEdit() as edit:
                return edit.text
            case line:
                return line.text()

    def set_text(self, text: str) -> None:
        """Fill the field in."""
        if self._editor is None and not text:
            return
        if isinstance(self.editor, QComboBox):
            self.editor.setCurrentIndex(max(self.editor.findData(text), 0))
        elif isinstance(self.editor, LargeTextEdit):
            self.editor.set_text(text)
        else:
            self.editor.setText(text)

    def set_taken(self, *, taken: bool, required: bool) -> None:
        """Whether the chosen operation takes the argument, and needs it."""
        if self._standing == (taken, required):
            return
        self._standing = (taken, required)
        if not taken and self._editor is None:
            return
        self.editor.setEnabled(taken)
        self._need.setText("required" if required and taken else "" if taken else "not taken")
        self.editor.setAccessibleName(f"{self.field.name}{', required' if required else ''}")

    def show_row(self, *, shown: bool) -> None:
        """Show the argument, or not; one that is not taken is shown without being editable."""
        if shown:
            self.editor.setEnabled(self.is_taken)
            self._need.setText(self._need.text() if self.is_taken else "not taken")
        self.setVisible(shown)

    def show_note(self, *, shown: bool) -> None:
        """Show the description, or not."""
        if self._editor is not None:
            self._note.setVisible(shown and bool(self.field.description))

    def show_fault(self, fault: str | None) -> None:
        """Say what is wrong with the text."""
        if self._editor is not None:
            self._fault.setText(fault or "")
            self._fault.setVisible(bool(fault))

    def _make_editor(self) -> "_Editor":
        match self.field.kind:
            case "choice":
                return self._choices(
                    [(str(c) if isinstance(c, str) else choice_text(c), c) for c in self.field.choices]
                )
            case "boolean":
                return self._choices([("true", True), ("false", False)])
            case "lines" | "json":
                edit = LargeTextEdit(self.field.name, lines=5 if self.field.kind == "lines" else 3)
                edit.setPlaceholderText(self.field.example or _HINTS[self.field.kind])
                edit.edited.connect(self._tell)
                return edit
            case _:
                line = QLineEdit()
                line.setFont(current_look().mono_font)
                line.setPlaceholderText(_HINTS[self.field.kind])
                line.textChanged.connect(self._tell)
                return line

    def _choices(self, choices: list[tuple[str, JsonValue]]) -> QComboBox:
        combo = QComboBox()
        combo.addItem(_NOT_GIVEN, "")
        for word, value in choices:
            combo.addItem(word, choice_text(value))
        combo.currentIndexChanged.connect(self._tell)
        return combo

    def _tell(self, *_: object) -> None:
        self.changed.emit()


class _Untaken(QWidget):
    """One quiet line for the arguments that the chosen operation does not take."""

    def __init__(self) -> None:
        super().__init__()
        self.button = IconButton("chevron-right", "Show the arguments that are not taken")
        self.button.setObjectName("console.form.untaken")
        self._said = ElidedLabel(role="muted")
        self._said.setFont(current_look().small_font)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(current_look().tokens.space_1)
        row.addWidget(self.button)
        row.addWidget(self._said, 1)
        self.hide()

    def show_names(self, operation: str, names: list[str], *, unfolded: bool) -> None:
        """Say which they are; nothing is shown where there are none."""
        self.setVisible(bool(names))
        verb = "Hide" if unfolded else "Show"
        icon = "chevron-down" if unfolded else "chevron-right"
        self.button.set_icon(icon, f"{verb} the arguments that are not taken")
        self._said.set_text(f"not taken by {operation}: {', '.join(names)}")


class CallForm(QScrollArea):
    """Blank fields are not given. What no field can hold is kept beside the form and sent with it."""

    changed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("console.form")
        self.setAccessibleName("Arguments")
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self._tool: ShownTool | None = None
        self._rows: dict[str, _Row] = {}
        self._others: dict[str, JsonValue] = {}
        self._filling = False
        self._is_unfolded = False
        self._note = QLabel()
        self._untaken = _Untaken()
        self._rebuild(())

    @property
    def operation(self) -> str | None:
        """The chosen operation; None where there is none."""
        tool = self._tool
        row = self._rows.get(tool.operation_field) if tool is not None and tool.operation_field else None
        if row is None or not row.text:
            return None
        value = value_of(row.field, row.text)
        return value if isinstance(value, str) else None

    def set_tool(self, tool: ShownTool | None, operation: str | None = None) -> None:
        """Make the fields of another tool; values of arguments that both have stay. It begins with the operation, or
        with one that changes nothing.
        """
        if tool == self._tool:
            return
        before = (
            self.operation if tool is not None and self._tool is not None and tool.name == self._tool.name else None
        )
        kept = self.values_as_far()
        self._tool = tool
        fields = form_fields(tool.schema) if tool is not None else ()
        first = tool.operation_field if tool is not None else None
        self._rebuild(sorted(fields, key=lambda field: field.name != first)[:MAX_FIELDS])
        self._filling = True
        self._choose_operation(tool, before or operation)
        self.set_values({name: value for name, value in kept.items() if name in self._rows and name != first})

    def set_values(self, values: Mapping[str, JsonValue]) -> None:
        """Fill the fields in; fields that are not named become blank, except the operation."""
        self._filling = True
        selector = self._tool.operation_field if self._tool else None
        self._others = {}
        for name, row in self._rows.items():
            if name != selector or name in values:
                row.set_text("")
        for name, value in values.items():
            row = self._rows.get(name)
            text = text_of(row.field, value) if row is not None else None
            if row is None or text is None:
                self._others[name] = value
            else:
                row.set_text(text)
        self._filling = False
        self._row_changed()

    def values(self) -> dict[str, JsonValue]:
        """What the form sends. Raises FieldFault."""
        sent: dict[str, JsonValue] = {}
        for name, row in self._rows.items():
            if row.is_taken and row.text:
                sent[name] = value_of(row.field, row.text)
        return {**self._others, **sent}

    def values_as_far(self) -> dict[str, JsonValue]:
        """What can be sent of the form, faults left out."""
        sent: dict[str, JsonValue] = {}
        for name, row in self._rows.items():
            if row.text:
                try:
                    sent[name] = value_of(row.field, row.text)
                except FieldFault:
                    continue
        return sent

    def check(self) -> str | None:
        """Show what is wrong beside each field; the first fault, or None."""
        first: str | None = None
        for row in self._rows.values():
            fault = None
            if row.is_taken and row.text and row.field.kind not in {"text", "lines"}:
                try:
                    value_of(row.field, row.text)
                except FieldFault as error:
                    fault = str(error)
            row.show_fault(fault)
            first = first or fault
        return first

    def editor(self, name: str) -> QWidget | None:
        """The field of an argument."""
        row = self._rows.get(name)
        return row.editor if row is not None else None

    def _choose_operation(self, tool: ShownTool | None, wanted: str | None) -> None:
        row = self._rows.get(tool.operation_field) if tool is not None and tool.operation_field else None
        first = tool.first_operation(wanted) if tool is not None else None
        if row is not None and first is not None:
            row.set_text(text_of(row.field, first) or "")

    def _unfold(self) -> None:
        self._is_unfolded = not self._is_unfolded
        self._row_changed()

    def _row_changed(self) -> None:
        if self._filling:
            return
        blank = {name for name, row in self._rows.items() if not row.text}
        self._others = {name: value for name, value in self._others.items() if name not in self._rows or name in blank}
        tool = self._tool
        shape = operation_of(tool, self.operation) if tool is not None else None
        for name, row in self._rows.items():
            is_selector = tool is not None and name == tool.operation_field
            taken = shape is None or is_selector or name in shape.takes
            required = row.field.required if shape is None or is_selector else name in shape.required
            row.set_taken(taken=taken, required=required)
            row.show_row(shown=taken or self._is_unfolded)
            row.show_note(shown=not is_selector)
        hidden = [name for name, row in self._rows.items() if not row.is_taken]
        self._untaken.show_names(shape.name if shape is not None else "", hidden, unfolded=self._is_unfolded)
        self.check()
        self._say(shape.description if shape is not None else tool.description if tool is not None else "")
        self.changed.emit()

    def _say(self, text: str) -> None:
        others = ", ".join(self._others)
        self._note.setText(f"{text}\nalso sent, as in the JSON: {others}" if others else text)

    def _rebuild(self, fields: list[FormField] | tuple[()]) -> None:
        tokens = current_look().tokens
        body = QWidget()
        column = QVBoxLayout(body)
        column.setContentsMargins(tokens.space_2, tokens.space_1, tokens.space_2, tokens.space_2)
        column.setSpacing(tokens.space_3)
        self._rows = {field.name: _Row(field) for field in fields}
        self._note = QLabel()
        self._note.setProperty("kind", "small")
        self._note.setWordWrap(True)
        self._note.setTextFormat(Qt.TextFormat.PlainText)
        selector = self._tool.operation_field if self._tool is not None else None
        if selector not in self._rows:
            column.addWidget(self._note)
        for name, row in self._rows.items():
            row.changed.connect(partial(CallForm._row_changed, self))
            column.addWidget(row)
            if name == selector:
                column.addWidget(self._note)
        self._untaken = _Untaken()
        self._untaken.button.clicked.connect(partial(CallForm._unfold, self))
        column.addWidget(self._untaken)
        column.addStretch(1)
        self.setWidget(body)
