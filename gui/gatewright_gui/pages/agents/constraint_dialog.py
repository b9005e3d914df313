"""The dialog for a constraint on one argument: a small form or JSON, and a value to try. It writes nothing.

It knows no policy: why a constraint is refused and whether a value fits are asked of whoever opens it.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QDialog,
    QFormLayout,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QPlainTextEdit,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from gatewright.base.jsonvalue import JsonValue
from gatewright_gui.models.constraint import ConstraintForm, constraint_words, form_of, json_fault, schema_of
from gatewright_gui.pages.agents.constraint_form import FIELDS, LABEL_WIDTH, ConstraintFields
from gatewright_gui.qt.look import current_look
from gatewright_gui.qt.plaintext import tip_text, title_text
from gatewright_gui.qt.widget.elided_label import ElidedLabel
from gatewright_gui.qt.widget.icon_label import IconLabel
from gatewright_gui.qt.widget.label import Label
from gatewright_gui.qt.widget.segmented import Segmented
from gatewright_gui.session.argument import Argument

SIZE = (560, 440)
SAY_SOMETHING = "say what its value has to be, or that it must be given"
GIVING = {
    "optional": "Calls that leave it out are denied",
    "required": "The tool itself denies calls that leave it out",
    "defaulted": "Its default counts as given; say what its value has to be instead",
}


@dataclass(frozen=True, slots=True)
class Subject:
    """Whose argument of which tool, for which operations (None: all). `field` None: a new constraint.

    `schema` None: nothing is said of its value; `required`: it must be given.
    """

    agent_id: str
    tool: str
    operations: frozenset[str] | None
    field: str | None = None
    schema: JsonValue = None
    required: bool = False


@dataclass(frozen=True, slots=True)
class Answers:
    """What the dialog asks: why a constraint is refused (empty: it is not), and why a value does not fit (None)."""

    refusal: Callable[[str, JsonValue, bool], str]
    example: Callable[[JsonValue, Argument, str], str | None]


class ConstraintDialog(QDialog):
    """After it was accepted `field`, `schema` and `is_required` hold what was said."""

    def __init__(
        self, parent: QWidget | None, subject: Subject, arguments: Sequence[Argument], answers: Answers
    ) -> None:
        super().__init__(parent)
        self.setObjectName("constraint")
        self._subject, self._answers = subject, answers
        self._arguments = {argument.name: argument for argument in arguments}
        self._fault = ""
        self._stays = False
        title = f"Constrain an argument of {subject.tool}"
        self.setWindowTitle(title_text(title))
        self.setAccessibleName(title)
        self.argument_field = QComboBox()
        self.about = ElidedLabel(role="muted")
        self.given_box = QCheckBox("Must be &given")
        self.way = Segmented("How to say it")
        self.fields = ConstraintFields()
        self.code = QPlainTextEdit()
        self.example = QLineEdit()
        self._example_icon = IconLabel("circle-check", "allow", size=current_look().tokens.small_icon_size)
        self.example_words = _text("constraint.fits", "muted")
        self.words = _text("constraint.words", "muted")
        self.fault_label = _text("constraint.fault", "error")
        self.accept_button = QPushButton("OK")
        self.cancel_button = QPushButton("Cancel")
        self._lay_out(title)
        self._connect()
        self._start()
        self.resize(*SIZE)

    @property
    def field(self) -> str:
        """The argument."""
        return self.argument_field.currentText()

    @property
    def schema(self) -> JsonValue:
        """What was said of its value; None: nothing. Raises ValueError where it cannot be read."""
        if self.way.current == "json":
            text = self.code.toPlainText()
            if fault := json_fault(text):
                raise ValueError(fault)
            said = cast("JsonValue", json.loads(text))
            return None if said == {} else said
        return schema_of(self.fields.form(self._argument.kind)) or None

    @property
    def is_required(self) -> bool:
        """Whether a call must give it."""
        return self.given_box.isChecked()

    @property
    def _argument(self) -> Argument:
        return self._arguments.get(self.field) or Argument(self.field)

    # layout

    def _lay_out(self, title: str) -> None:
        tokens = current_look().tokens
        column = QVBoxLayout(self)
        column.setContentsMargins(tokens.space_4, tokens.space_4, tokens.space_4, tokens.space_4)
        column.setSpacing(tokens.space_2)
        heading = Label(title)
        heading.setProperty("kind", "heading")
        column.addWidget(heading)
        column.addWidget(ElidedLabel(self._scope_words(), role="muted"))
        column.addLayout(self._argument_row())
        column.addLayout(self._way_row())
        self.code.setObjectName("constraint.json")
        self.code.setAccessibleName("JSON Schema of the argument")
        self.code.setFont(current_look().mono_font)
        self.code.setTabChangesFocus(True)
        column.addWidget(self.fields)
        column.addWidget(self.code, 1)
        column.addLayout(self._example_row())
        column.addWidget(self.words)
        column.addWidget(self.fault_label)
        column.addStretch()  # below the form, so that the value to try is next to what it is tried against
        column.addLayout(self._buttons())

    def _scope_words(self) -> str:
        operations = self._subject.operations
        where = f"only {', '.join(sorted(operations))}" if operations is not None else "all operations that take it"
        return f"for {self._subject.agent_id}, {where}"

    def _argument_row(self) -> QFormLayout:
        rows = QFormLayout()
        rows.setHorizontalSpacing(current_look().tokens.space_2)
        rows.setVerticalSpacing(current_look().tokens.space_1)
        self.argument_field.setObjectName("constraint.argument")
        self.argument_field.setAccessibleName("Argument")
        self.argument_field.addItems(list(self._arguments))
        label = Label("&Argument")
        label.setBuddy(self.argument_field)
        label.setMinimumWidth(LABEL_WIDTH)
        rows.addRow(label, self.argument_field)
        rows.addRow("", self.about)
        self.given_box.setObjectName("constraint.given")
        rows.addRow("", self.given_box)
        return rows

    def _way_row(self) -> QHBoxLayout:
        row = QHBoxLayout()
        self.way.setObjectName("constraint.way")
        self.way.add_segment("form", "Form", tooltip="What most people want to say")
        self.way.add_segment("json", "JSON", tooltip="Any JSON Schema")
        row.addWidget(self.way)
        row.addStretch(1)
        return row

    def _show_way(self, key: str) -> None:
        """The form, or the JSON, which takes all the room there is."""
        self.fields.setVisible(key == "form")
        self.code.setVisible(key == "json")

    def _example_row(self) -> QHBoxLayout:
        row = QHBoxLayout()
        row.setSpacing(current_look().tokens.space_2)
        label = Label("T&ry a value")
        label.setBuddy(self.example)
        label.setMinimumWidth(LABEL_WIDTH)
        self.example.setObjectName("constraint.example")
        self.example.setAccessibleName("Try a value")
        row.addWidget(label)
        row.addWidget(self.example, 1)
        row.addWidget(self._example_icon)
        row.addWidget(self.example_words, 1)
        return row

    def _buttons(self) -> QHBoxLayout:
        row = QHBoxLayout()
        row.setSpacing(current_look().tokens.space_2)
        row.addStretch(1)
        self.cancel_button.setObjectName("constraint.cancel")
        self.cancel_button.setAutoDefault(False)
        self.accept_button.setObjectName("constraint.accept")
        self.accept_button.setProperty("kind", "primary")
        self.accept_button.setDefault(True)
        row.addWidget(self.cancel_button)
        row.addWidget(self.accept_button)
        return row

    def _connect(self) -> None:
        self.argument_field.currentIndexChanged.connect(self._argument_changed)
        self.way.current_changed.connect(self._way_changed)
        self.given_box.toggled.connect(self._show)
        self.fields.changed.connect(self._show)
        self.code.textChanged.connect(self._show)
        self.example.textChanged.connect(self._show)
        self.cancel_button.clicked.connect(self.reject)
        self.accept_button.clicked.connect(self.accept)

    def _start(self) -> None:
        subject = self._subject
        if subject.field is not None:
            self.argument_field.setCurrentText(subject.field)
        self._fill(subject.schema, required=subject.required)
        first = self.fields.edit("one_of") if self.way.current == "form" else self.code
        (self.argument_field if subject.field is None else first).setFocus()

    # what is done in it

    def accept(self) -> None:
        """Close, unless the constraint would be refused."""
        self._show()
        if not self._fault:
            super().accept()

    def _fill(self, schema: JsonValue, *, required: bool) -> None:
        """Show what is said of the argument: in the form where it can say it, else as JSON."""
        schema, giving = {} if schema is None else schema, self._argument.giving
        self.given_box.setChecked(required)
        self.given_box.setEnabled(required or giving == "optional")
        self.given_box.setToolTip(GIVING[giving])
        form = form_of(schema)
        can = form is not None and _kind_says(self._argument, form)
        self.fields.show_form(self._argument, form if form is not None and can else ConstraintForm())
        self.code.setPlainText(json.dumps(schema, indent=2, ensure_ascii=False))
        self.way.set_segment_enabled("form", bool(FIELDS[self._argument.kind]))
        self.way.set_current("form" if can else "json")
        self._show_way("form" if can else "json")
        self._show_about()
        self._show()

    def _argument_changed(self, _index: int) -> None:
        is_own = self.field == self._subject.field
        self._fill(self._subject.schema if is_own else None, required=is_own and self._subject.required)

    def _way_changed(self, key: object) -> None:
        """What was said goes along; JSON that the form cannot say stays JSON."""
        if self._stays:
            return
        if key == "json":
            try:
                said: JsonValue = schema_of(self.fields.form(self._argument.kind))
            except ValueError:
                said = {}
            self.code.setPlainText(json.dumps(said, indent=2, ensure_ascii=False))
            self._show_way("json")
        else:
            self._into_form()
        self._show()

    def _into_form(self) -> None:
        text = self.code.toPlainText()
        form = None if json_fault(text) else form_of(cast("JsonValue", json.loads(text)))
        if form is None or not _kind_says(self._argument, form):
            self._stays = True
            self.way.set_current("json")
            self._stays = False
            self.way.button("form").setToolTip("The form cannot say all of this JSON")
            return
        self.fields.show_form(self._argument, form)
        self._show_way("form")

    def _show_about(self) -> None:
        argument = self._argument
        kinds = {"text": "text", "number": "a number", "whole": "a whole number", "truth": "true or false"}
        kind = kinds.get(argument.kind, "a list" if argument.kind == "list" else "any value")
        self.about.set_text(f"{kind}; {argument.description}".rstrip("; ").replace("`", ""))
        self.example.setPlaceholderText("a text" if argument.kind == "text" else "a value in JSON")

    def _show(self, _value: object = None) -> None:
        """What is wrong, what it means, whether the example fits."""
        try:
            schema = self.schema
            self._fault = self._refusal(schema)
            said = "" if self._fault else constraint_words(schema, required=self.is_required)
            self.words.setText(said and f"{self.field}: {said}")
        except ValueError as error:
            schema, self._fault = True, str(error)
            self.words.setText("")
        says = self._fault != SAY_SOMETHING
        self.fault_label.setText(self._fault.replace("`", "") if says else "")
        self.fault_label.setVisible(bool(self._fault) and says)
        self.words.setVisible(not self._fault)
        self.accept_button.setEnabled(not self._fault)
        self.accept_button.setToolTip(tip_text(self._fault.replace("`", "")))
        self._show_example(schema)

    def _refusal(self, schema: JsonValue) -> str:
        if not self.field:
            return "no operation of it takes an argument"
        if schema is None and not self.is_required:
            return SAY_SOMETHING
        return self._answers.refusal(self.field, schema, self.is_required)

    def _show_example(self, schema: JsonValue) -> None:
        text = self.example.text()
        can = bool(text) and not self._fault
        self._example_icon.setVisible(can)
        if not can:
            self.example_words.setText("")
            return
        wrong = self._answers.example(schema, self._argument, text)
        self._example_icon.set_icon("circle-x" if wrong else "circle-check", "deny" if wrong else "allow")
        self.example_words.setText(f"denied: {wrong}".replace("`", "") if wrong else "goes through")


def _kind_says(argument: Argument, form: ConstraintForm) -> bool:
    """Whether the fields of the argument's kind can show all of the form."""
    names = FIELDS[argument.kind]
    held = [name for name in ConstraintForm.__dataclass_fields__ if getattr(form, name) is not None]
    return bool(names) and all(name in names for name in held) and not _has_comma(form)


def _has_comma(form: ConstraintForm) -> bool:
    return any("," in text or text != text.strip() or not text for text in form.one_of or ())


def _text(object_name: str, kind: str) -> QLabel:
    label = Label()
    label.setObjectName(object_name)
    label.setProperty("kind", kind)
    label.setWordWrap(True)
    return label
