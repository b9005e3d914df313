"""A form made from the schema that the agent sees: one field for each argument. It does not know calls."""

from collections.abc import Mapping
from functools import partial

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
from gatewright_gui.session.calls import ShownTool

_NOT_GIVEN = "(not given)"
_HINTS = {"integer": "whole number", "number": "number", "json": "JSON value", "text": "", "lines": ""}


class _Row(QWidget):
    """Label, field, description and fault of one argument."""

    changed = Signal()

    def __init__(self, field: FormField) -> None:
        super().__init__()
        self.field = field
        self._standing: tuple[bool, bool] | None = None
        self._label = QLabel()
        self._label.setTextFormat(Qt.TextFormat.PlainText)
        self._label.setFont(current_look().mono_font)
        self._need = QLabel()
        self._need.setProperty("kind", "small")
        self.editor = self._make_editor()
        self.editor.setObjectName(f"console.form.{field.name}")
        self.editor.setAccessibleDescription(field.description)
        self._note = QLabel(field.description)
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
        for part in (self.editor, self._note, self._fault):
            column.addWidget(part)
        self.set_taken(taken=True, required=field.required)

    @property
    def is_taken(self) -> bool:
        """Whether the chosen operation takes the argument."""
        return self.editor.isEnabled()

    @property
    def text(self) -> str:
        """What is in the field; for a list of choices the JSON text of the chosen one."""
        if isinstance(self.editor, QComboBox):
            return str(self.editor.currentData() or "")
        if isinstance(self.editor, LargeTextEdit):
            return self.editor.text
        return self.editor.text()

    def set_text(self, text: str) -> None:
        """Fill the field in."""
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
        self.editor.setEnabled(taken)
        self.editor.setVisible(taken)
        self._label.setText(self.field.name)
        self._label.setProperty("kind", None if taken else "muted")
        self._label.style().unpolish(self._label)
        self._label.style().polish(self._label)
        self._need.setText("not taken by this operation" if not taken else "required" if required else "")
        self.editor.setAccessibleName(f"{self.field.name}{', required' if required else ''}")

    def show_note(self, *, shown: bool) -> None:
        """Show the description, or not."""
        self._note.setVisible(shown and bool(self.field.description))

    def show_fault(self, fault: str | None) -> None:
        """Say what is wrong with the text."""
        self._fault.setText(fault or "")
        self._fault.setVisible(bool(fault))

    def _make_editor(self) -> QComboBox | QLineEdit | LargeTextEdit:
        match self.field.kind:
            case "choice":
                return self._choices(
                    [(str(c) if isinstance(c, str) else choice_text(c), c) for c in self.field.choices]
                )
            case "boolean":
                return self._choices([("true", True), ("false", False)])
            case "lines" | "json":
                edit = LargeTextEdit(self.field.name, lines=5 if self.field.kind == "lines" else 3)
                edit.setPlaceholderText(_HINTS[self.field.kind])
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
        self._note = QLabel()
        self._note.setProperty("kind", "small")
        self._note.setWordWrap(True)
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

    def set_tool(self, tool: ShownTool | None) -> None:
        """Make the fields of another tool; values of arguments that both have stay."""
        if tool == self._tool:
            return
        kept = self.values_as_far()
        self._tool = tool
        fields = form_fields(tool.schema) if tool is not None else ()
        first = tool.operation_field if tool is not None else None
        self._rebuild(sorted(fields, key=lambda field: field.name != first)[:MAX_FIELDS])
        self._filling = True
        self._choose_first_operation()
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

    def _choose_first_operation(self) -> None:
        tool = self._tool
        row = self._rows.get(tool.operation_field) if tool is not None and tool.operation_field else None
        if row is not None and isinstance(row.editor, QComboBox) and row.editor.count() > 1:
            row.editor.setCurrentIndex(1)

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
            row.show_note(shown=taken and not is_selector)
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
        for number, row in enumerate(self._rows.values()):
            row.changed.connect(partial(CallForm._row_changed, self))
            column.addWidget(row)
            if number == 0:
                column.addWidget(self._note)
        if not self._rows:
            column.addWidget(self._note)
        column.addStretch(1)
        self.setWidget(body)
