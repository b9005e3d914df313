"""The value of a block with parts as a form: the console's, made from what the block may hold."""

import json
from typing import cast

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from gatewright.workspace.api import BlockSchema, CompositeSchema, JsonValue, ListSchema, LogSchema, value_schema
from gatewright_gui.pages.trial.call_form import FieldFault
from gatewright_gui.pages.trial.form import FormPane
from gatewright_gui.qt.language import tr
from gatewright_gui.qt.layout import column_of, stretch
from gatewright_gui.qt.task import TaskOwner
from gatewright_gui.session.calls import ShownTool
from gatewright_gui.session.memory import value_text

_ITEMS = "items"
"""A form is of an object: a list stands in it under this name."""


class ValueForm(QWidget):
    """Holds the value of one block at a time; ``text`` is that value as JSON."""

    edited = Signal()

    def __init__(self, tasks: TaskOwner, name: str) -> None:
        super().__init__()
        self.pane = FormPane(tasks, name, tr("Value"))
        self._is_list = False
        self._before: dict[str, JsonValue] = {}
        self._logs: dict[str, JsonValue] = {}
        """Sections that are only ever added to: they are no part of the form."""
        self._is_putting = False
        column_of(stretch(self.pane), into=self)
        self.pane.changed.connect(self._tell_edit)

    def show_value(self, block_id: str, schema: BlockSchema, text: str) -> bool:
        """Show a value, given as JSON; False where it is none that a form could hold."""
        try:
            value = cast("JsonValue", json.loads(text))
        except (ValueError, RecursionError):
            return False
        shape, is_list = value_schema(schema), isinstance(schema, ListSchema)
        if is_list:
            shape = {"type": "object", "properties": {_ITEMS: shape}}
            value = cast("JsonValue", {_ITEMS: value}) if isinstance(value, list) else None
        if not isinstance(value, dict):
            return False
        sections = schema.sections if isinstance(schema, CompositeSchema) else ()
        logs = {section.name for section in sections if isinstance(section.schema, LogSchema)}
        self._is_list, self._before = is_list, value
        self._logs = {name: held for name, held in value.items() if name in logs}
        self._is_putting = True
        self.pane.set_tool(ShownTool(block_id, "", shape, None, ()))
        self.pane.set_open((_ITEMS,), is_open=True)
        self.pane.set_values({name: held for name, held in value.items() if name not in logs})
        self._is_putting = False
        return True

    @property
    def text(self) -> str:
        """The value as it is filled in."""
        held = {**self._logs, **self.pane.values_as_far()}
        ordered = {name: held[name] for name in (*self._before, *held) if name in held}
        return value_text(ordered.get(_ITEMS, []) if self._is_list else ordered)

    @property
    def fault(self) -> str:
        """Why the value cannot be told: JSON in a field of it is broken."""
        try:
            self.pane.values()
        except FieldFault as fault:
            return str(fault)
        return ""

    def _tell_edit(self) -> None:
        if not self._is_putting:
            self.edited.emit()
