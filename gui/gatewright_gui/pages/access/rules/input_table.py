"""The input of a composition: a row for each argument, and its JSON Schema for what rows cannot say."""

import json
from collections.abc import Mapping

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QCheckBox, QComboBox, QLineEdit, QPushButton, QVBoxLayout, QWidget

from gatewright.workspace.api import JsonValue
from gatewright_gui.qt.highlighter import Highlighter
from gatewright_gui.qt.language import mark, tr
from gatewright_gui.qt.layout import column_of, holding, named, row_of, stretch
from gatewright_gui.qt.look import tie_icon
from gatewright_gui.qt.widget.button import IconButton, Segmented
from gatewright_gui.qt.widget.label import Label
from gatewright_gui.qt.widget.text_field import LargeTextEdit

TYPES = (
    ("string", mark("text")), ("number", mark("number")), ("integer", mark("whole number")),
    ("boolean", mark("true or false")), ("array", mark("list")), ("object", mark("object")), ("", mark("anything")),
)  # fmt: skip
Schema = Mapping[str, JsonValue]


class FieldRow(QWidget):
    """One argument; `before` is its name as it stands, "" for a new one."""

    committed = Signal()
    removed = Signal()

    def __init__(self, number: int, before: str, said: Schema, *, is_required: bool) -> None:
        super().__init__()
        self.before, self._said = before, said
        name = f"policy.input.{number}"
        self.name = named(QLineEdit(before), f"{name}.name", spoken=tr("Name of the argument"))
        self.name.setPlaceholderText(tr("name"))
        self.kind = named(QComboBox(), f"{name}.type", spoken=tr("Type"))
        for key, words in TYPES:
            self.kind.addItem(tr(words), key)
        held = said.get("type", "")
        at = self.kind.findData(held) if isinstance(held, str) else -1
        if at < 0:
            self.kind.addItem(tr("as the JSON says"), None)
            at = self.kind.count() - 1
        self.kind.setCurrentIndex(at)
        self.required = named(QCheckBox(tr("required")), f"{name}.required")
        self.required.setChecked(is_required)
        self.about = named(QLineEdit(str(said.get("description", ""))), f"{name}.about", spoken=tr("Description"))
        self.about.setPlaceholderText(tr("what the model is told of it"))
        remove = named(IconButton("x", tr("Remove this argument")), f"{name}.remove")
        parts = (stretch(self.name, 2), self.kind, self.required, stretch(self.about, 3), remove)
        row_of(*parts, into=self, space=2)
        self.name.editingFinished.connect(self.committed)
        self.about.editingFinished.connect(self.committed)
        self.kind.activated.connect(self._commit)
        self.required.toggled.connect(self._commit)
        remove.clicked.connect(self.removed)

    def _commit(self, _value: object = None) -> None:
        self.committed.emit()

    @property
    def schema(self) -> dict[str, JsonValue]:
        """The schema with the words of the row; all else in it stays."""
        said = {key: held for key, held in self._said.items() if key not in {"type", "description"}}
        kind = self.kind.currentData()
        of_kind = self._said.get("type") if kind is None else kind
        about = self.about.text().strip()
        return {**({"type": of_kind} if of_kind else {}), **({"description": about} if about else {}), **said}


class InputTable(QWidget):
    """`schema_committed`: another schema, and the new names of arguments by their old ones."""

    schema_committed = Signal(object, object)

    def __init__(self) -> None:
        super().__init__()
        self._schema: Schema = {}
        self.rows: list[FieldRow] = []
        self.way = named(Segmented(tr("How to say the input")), "policy.input.way")
        self.way.add_segment("rows", tr("Form"), tooltip=tr("Name, type, required, description"))
        self.way.add_segment("json", "JSON", tooltip=tr("Any JSON Schema of an object"))
        self.add_button = named(QPushButton(tr("Argument")), "policy.input.add", spoken=tr("Add argument"))
        tie_icon(self.add_button, "plus")
        self.code = named(LargeTextEdit(tr("Input as JSON Schema"), lines=7), "policy.input.json")
        Highlighter(self.code.document()).set_language("json")
        self.apply_button = named(QPushButton(tr("Apply")), "policy.input.apply", spoken=tr("Apply the schema"))
        self.fault = named(Label(wraps=True), "policy.input.said", kind="error")
        self.fault.hide()
        self.nothing = named(Label(tr("It takes no arguments.")), kind="muted")
        self._lines = QVBoxLayout()
        self._lines.setSpacing(4)
        self._json = holding(row_of(stretch(self.code), self.apply_button, space=2))
        top = row_of(self.way, self.nothing, stretch(), self.add_button, space=2)
        column_of(top, self._lines, self._json, self.fault, into=self, space=1)
        self.way.current_changed.connect(self._show)
        self.add_button.clicked.connect(self._add)
        self.apply_button.clicked.connect(self._apply)
        self._show()

    @property
    def names(self) -> tuple[str, ...]:
        """The arguments as they stand."""
        return tuple(_properties(self._schema))

    def set_schema(self, schema: Schema) -> None:
        """Show a schema; what was refused is forgotten."""
        self.show_fault("")
        if schema != self._schema or not self.rows or any(not row.before for row in self.rows):
            self._schema = schema
            for row in self.rows:
                row.hide()
                row.deleteLater()
            self.rows = []
            required = schema.get("required")
            for name, said in _properties(schema).items():
                held = said if isinstance(said, dict) else {}
                self._put(
                    FieldRow(len(self.rows), name, held, is_required=isinstance(required, list) and name in required)
                )
        self.code.set_text(json.dumps(schema, indent=2, ensure_ascii=False))
        self._show()

    def show_fault(self, text: str) -> None:
        """Say what is wrong."""
        self.fault.setText(text.replace("`", ""))
        self.fault.setVisible(bool(text))

    def _put(self, row: FieldRow) -> None:
        self.rows.append(row)
        self._lines.addWidget(row)
        row.committed.connect(self._commit)
        row.removed.connect(lambda: self._remove(row))

    def _add(self) -> None:
        row = FieldRow(len(self.rows), "", {"type": "string"}, is_required=False)
        self._put(row)
        self._show()
        row.name.setFocus(Qt.FocusReason.OtherFocusReason)

    def _remove(self, row: FieldRow) -> None:
        self.rows.remove(row)
        row.hide()
        row.deleteLater()
        (self.rows[-1].name if self.rows else self.add_button).setFocus(Qt.FocusReason.OtherFocusReason)
        self._show()
        self._commit()

    def _commit(self) -> None:
        names = [row.name.text().strip() for row in self.rows]
        if not all(names):
            return  # a row without a name is not finished
        if len(set(names)) < len(names):
            self.show_fault(tr("two arguments have the same name"))
            return
        if spoiled := next((name for name in names if "." in name or " " in name), None):
            self.show_fault(tr("{name} cannot be named by a step: no dot and no space", name=spoiled))
            return
        properties = _properties(self._schema)
        said: dict[str, JsonValue] = {
            name: properties[row.before] if isinstance(properties.get(row.before), bool) else row.schema
            for name, row in zip(names, self.rows, strict=True)
        }
        required: list[JsonValue] = [
            name for name, row in zip(names, self.rows, strict=True) if row.required.isChecked()
        ]
        schema = {**self._schema, "properties": said, **({"required": required} if required else {})}
        if not required:
            schema.pop("required", None)
        renamed = {row.before: name for name, row in zip(names, self.rows, strict=True) if row.before not in {"", name}}
        if schema != self._schema:
            self.schema_committed.emit(schema, renamed)

    def _apply(self) -> None:
        try:
            schema: object = json.loads(self.code.text)
        except json.JSONDecodeError as error:
            self.show_fault(tr("line {line}, column {column}: this is not JSON", line=error.lineno, column=error.colno))
            return
        if not isinstance(schema, dict):
            self.show_fault(tr("the input is a JSON Schema of an object"))
            return
        self.schema_committed.emit(schema, {})

    def _show(self, _key: object = None) -> None:
        is_rows = self.way.current != "json"
        for row in self.rows:
            row.setVisible(is_rows)
        self._json.setVisible(not is_rows)
        self.add_button.setVisible(is_rows)
        self.nothing.setVisible(is_rows and not self.rows)


def _properties(schema: Schema) -> Mapping[str, JsonValue]:
    held = schema.get("properties")
    return held if isinstance(held, dict) else {}
