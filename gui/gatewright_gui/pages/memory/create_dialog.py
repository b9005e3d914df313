"""A block is made: label, what it holds, how agents may use it."""

import json

from PySide6.QtWidgets import QComboBox, QDialog, QFormLayout, QLineEdit, QPushButton, QWidget

from gatewright.workspace.api import GatewrightError, JsonValue, TextSchema, schema_from_json
from gatewright_gui.pages.memory.settings_form import SettingsFields
from gatewright_gui.qt.layout import column_of, named, row_of, stretch
from gatewright_gui.qt.plaintext import title_text
from gatewright_gui.qt.widget.label import Label
from gatewright_gui.qt.widget.large_text import LargeTextEdit
from gatewright_gui.session.memory import BlockType, NewBlock, json_fault

SCHEMAS = (
    ("text", "a text", ""),
    (
        "map",
        "fields with names",
        (
            '{"type": "map", "fields": [\n  {"name": "mood", "type": "text", "description": "how it goes"},\n'
            '  {"name": "visits", "type": "counter"}\n]}'
        ),
    ),
    ("list", "a list", '{"type": "list", "item_type": "text", "max_items": 100}'),
    ("log", "a log, which is only added to", '{"type": "log", "display_limit": 20}'),
    (
        "composite",
        "sections of several kinds",
        (
            '{"type": "composite", "sections": [\n  {"name": "facts", "schema": {"type": "text"}},\n'
            '  {"name": "todo", "schema": {"type": "list", "item_type": "text"}}\n]}'
        ),
    ),
)


class CreateDialog(QDialog):
    """After it was accepted ``new`` is the block to make, and ``is_shared`` says whose."""

    def __init__(self, parent: QWidget | None, agent_id: str) -> None:
        super().__init__(parent)
        named(self, "memory_new", spoken="New block")
        self.setWindowTitle(title_text("New block"))
        self.label = named(QLineEdit(), "memory_new.label", spoken="Label")
        self.label.setPlaceholderText("persona")
        self.whose = named(QComboBox(), "memory_new.whose", spoken="Whose block")
        if agent_id:
            self.whose.addItem(f"of {agent_id} alone", False)
        self.whose.addItem("shared by all agents", True)
        self.kind = named(QComboBox(), "memory_new.kind", spoken="What it holds")
        for key, words, _ in SCHEMAS:
            self.kind.addItem(words, key)
        self.schema = named(LargeTextEdit("Schema as JSON", lines=5), "memory_new.schema")
        self.fields = SettingsFields("memory_new")
        self.content = named(LargeTextEdit("What is in it at first", lines=5), "memory_new.content")
        self.fault = named(Label(), "memory_new.fault", kind="error")
        self.fault.setWordWrap(True)
        self.make_button = named(QPushButton("Make it"), "memory_new.accept", spoken="Make the block", kind="primary")
        self.cancel_button = named(QPushButton("Cancel"), "memory_new.cancel", spoken="Cancel")
        form = QFormLayout()
        for words, field in (("Label", self.label), ("Whose", self.whose), ("Holds", self.kind)):
            form.addRow(Label(words), field)
        self._schema_words = Label("Schema")
        form.addRow(self._schema_words, self.schema)
        form.addRow(Label("At first"), self.content)
        buttons = row_of(stretch(self.fault), self.cancel_button, self.make_button, space=2)
        column_of(form, self.fields, stretch(), buttons, into=self, space=3, margins=4)
        self.resize(560, 480)
        self.kind.currentIndexChanged.connect(self._choose_kind)
        self.label.textChanged.connect(self._check)
        self.fields.changed.connect(self._check)
        for editor in (self.schema, self.content):
            editor.edited.connect(self._check)
        self.make_button.clicked.connect(self.accept)
        self.cancel_button.clicked.connect(self.reject)
        self._choose_kind()

    @property
    def is_shared(self) -> bool:
        """Whether all agents have it."""
        return bool(self.whose.currentData())

    @property
    def new(self) -> NewBlock:
        """The block as it is typed. Raises GatewrightError with what is wrong."""
        kind, text, settings = self.kind.currentData(), self.content.text, self.fields.settings
        schema = TextSchema() if kind == "text" else schema_from_json(_json(self.schema.text, "the schema"))
        content = text if kind == "text" else _json(text, "what is in it") if text.strip() else None
        return NewBlock(
            self.label.text(),
            schema,
            content or None,
            settings.type or BlockType.WORKING,
            settings.permission or NewBlock("", schema).permission,
            settings.char_limit or 0,
            bool(settings.pinned),
            settings.description or "",
        )

    def _choose_kind(self) -> None:
        _, _, schema = SCHEMAS[self.kind.currentIndex()]
        for part in (self._schema_words, self.schema):
            part.setVisible(bool(schema))
        self.schema.set_text(schema)
        if self.kind.currentData() == "log":
            self.fields.type.setCurrentIndex(self.fields.type.findData(BlockType.LOG))
        self._check()

    def _check(self) -> None:
        fault = ""
        try:
            ready = bool(self.new.label)
        except GatewrightError as error:
            ready, fault = False, str(error)
        self.fault.setText(fault)
        self.make_button.setEnabled(ready)


def _json(text: str, what: str) -> JsonValue:
    fault = json_fault(text)
    if fault:
        raise GatewrightError(f"{what}: {fault}")
    return json.loads(text)
