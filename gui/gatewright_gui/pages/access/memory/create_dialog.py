"""A block is made: label, what it holds, how agents may use it."""

from collections.abc import Awaitable, Callable, Mapping
from itertools import pairwise

from PySide6.QtWidgets import QComboBox, QLineEdit, QWidget
from shiboken6 import isValid

from gatewright.workspace.api import (
    BlockSchema,
    GatewrightError,
    JsonValue,
    ListSchema,
    TextSchema,
    schema_from_json,
    schema_keys,
)
from gatewright_gui.pages.access.memory.settings_form import SettingsFields
from gatewright_gui.pages.access.memory.value_form import ValueForm
from gatewright_gui.pages.trial.call_form import FieldFault
from gatewright_gui.pages.trial.form import FormPane
from gatewright_gui.qt.dialog import FormDialog
from gatewright_gui.qt.language import mark, tr
from gatewright_gui.qt.layout import column_of, holding, named, row_of, stack_of, stretch
from gatewright_gui.qt.task import TaskOwner
from gatewright_gui.qt.widget.label import Label
from gatewright_gui.qt.widget.text_field import LargeTextEdit
from gatewright_gui.session.calls import ShownTool
from gatewright_gui.session.memory import BlockType, NewBlock, new_value

KINDS: tuple[tuple[str, str, Mapping[str, JsonValue]], ...] = (
    ("text", mark("a text"), {}),
    ("map", mark("fields with names"), {"fields": [{"name": "name", "type": "text"}]}),
    ("list", mark("a list"), {"item_type": "text"}),
    ("log", mark("a log, which is only added to"), {}),
    ("composite", mark("sections of several kinds"), {"sections": [{"name": "facts", "schema": {"type": "text"}}]}),
)
"""What a block can hold, in words, and the schema that one begins with."""


Make = Callable[[str, NewBlock], Awaitable[None]]


class CreateDialog(FormDialog):
    """``make`` makes a block of an agent, or of "" a shared one; where it cannot the dialog says why, and stays."""

    def __init__(self, parent: QWidget | None, agent_id: str, tasks: TaskOwner, make: Make) -> None:
        super().__init__(parent, "memory_new", tr("New block"), tr("Make it"))
        self._agent_id, self._tasks, self._make = agent_id, tasks, make
        self.accept_button.setAccessibleName(tr("Make the block"))
        self.label = named(QLineEdit(), "memory_new.label", spoken=tr("Label"))
        self.label.setPlaceholderText("persona")
        self.whose = named(QComboBox(), "memory_new.whose", spoken=tr("Whose block"))
        if agent_id:
            self.whose.addItem(tr("of {agent} alone", agent=agent_id), False)
        self.whose.addItem(tr("shared by all agents"), True)
        self.kind = named(QComboBox(), "memory_new.kind", spoken=tr("What it holds"))
        for key, words, _ in KINDS:
            self.kind.addItem(tr(words), key)
        self.fields = SettingsFields("memory_new")
        for at, (words, field) in enumerate(
            ((tr("Label"), self.label), (tr("Whose"), self.whose), (tr("Holds"), self.kind))
        ):
            self.fields.rows.insertRow(at, Label(words), field)
        self.schema = FormPane(tasks, "memory_new.schema", tr("Parts"))
        self.content = named(LargeTextEdit(tr("What is in it at first")), "memory_new.content")
        self.value = ValueForm(tasks, "memory_new.value")
        self._shown: BlockSchema | None = None
        """The schema of which ``value`` is the form."""
        self._first = stack_of(self.content, self.value)
        self.fault = named(Label(wraps=True), "memory_new.fault", kind="error")
        self._parts = holding(column_of(Label(tr("Its parts")), stretch(self.schema), space=1))
        self._at_first = holding(column_of(Label(tr("At first")), stretch(self._first), space=1))
        held = column_of(stretch(self._parts, 3), stretch(self._at_first, 2), space=2)
        whole = row_of(column_of(self.fields, stretch()), stretch(held), space=4)
        self.lay_out(stretch(whole), foot=(stretch(self.fault),), space=3)
        self.resize(860, 540)
        for before, after in pairwise((self.label, self.whose, self.kind, self.fields.type)):
            self.setTabOrder(before, after)
        self.label.setFocus()
        self.kind.currentIndexChanged.connect(self._choose_kind)
        self.label.textChanged.connect(self._check)
        for signal in (self.fields.changed, self.schema.changed, self.content.edited, self.value.edited):
            signal.connect(self._check)
        self._choose_kind()

    @property
    def new(self) -> NewBlock:
        """The block as it is filled in. Raises GatewrightError with what is wrong."""
        schema, settings = self._schema(), self.fields.settings
        if self.value.fault:
            raise GatewrightError(self.value.fault)
        return NewBlock(
            self.label.text(),
            schema,
            new_value(schema, self.content.text if isinstance(schema, TextSchema) else self.value.text),
            settings.type or BlockType.WORKING,
            settings.permission or NewBlock("", schema).permission,
            settings.char_limit or 0,
            bool(settings.pinned),
            settings.description or "",
        )

    def accept(self) -> None:
        """Make it, and close where that went well."""
        self._tasks.start(self._try(), "memory_new")

    async def _try(self) -> None:
        self.accept_button.setEnabled(False)
        try:
            await self._make("" if self.whose.currentData() else self._agent_id, self.new)
        except GatewrightError as error:
            if isValid(self):
                self._check()
                self.fault.setText(str(error))
        else:
            super().accept()

    def _schema(self) -> BlockSchema:
        try:
            return schema_from_json({"type": self.kind.currentData(), **self.schema.values()})
        except FieldFault as fault:
            raise GatewrightError(str(fault)) from None

    def _choose_kind(self) -> None:
        key, _, begun = KINDS[self.kind.currentIndex()]
        self.schema.set_tool(ShownTool(key, "", schema_keys(key), None, ()))
        self.schema.set_values(begun)
        self._parts.setVisible(key != "text")
        self._at_first.setVisible(key != "log")
        self._first.setCurrentWidget(self.content if key == "text" else self.value)
        if (key == "log") != (self.fields.settings.type is BlockType.LOG):
            kind = BlockType.LOG if key == "log" else BlockType.WORKING
            self.fields.type.setCurrentIndex(self.fields.type.findData(kind))
        self._check()

    def _check(self) -> None:
        fault, ready = "", False
        try:
            self._show_value(self._schema())
            ready = bool(self.new.label)
        except GatewrightError as error:
            fault = str(error)
        self.fault.setText(fault)
        self.accept_button.setEnabled(ready)

    def _show_value(self, schema: BlockSchema) -> None:
        """The form of what is in it at first follows its parts; what was filled in stays as far as it fits."""
        if schema != self._shown:
            is_same = type(schema) is type(self._shown)
            self._shown = schema
            self.value.show_value(
                "new", schema, self.value.text if is_same else "[]" if isinstance(schema, ListSchema) else "{}"
            )
