"""The dialog for a constraint on one argument: a small form or JSON, and a value to try."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QFormLayout,
    QLineEdit,
    QPlainTextEdit,
    QWidget,
)

from gatewright.workspace.api import Agent, JsonValue, ToolFacts, argument_names, free_fields
from gatewright_gui.pages.access.tools.constraint import (
    ConstraintForm,
    form_of,
    json_fault,
    json_schema,
    json_text,
    schema_of,
)
from gatewright_gui.pages.access.tools.constraint_form import FIELDS, LABEL_WIDTH, ConstraintFields
from gatewright_gui.pages.access.tools.limits import LimitRow
from gatewright_gui.pages.page import PageContext
from gatewright_gui.qt.dialog import CheckedDialog, run_dialog
from gatewright_gui.qt.language import mark, tr
from gatewright_gui.qt.layout import named, row_of, stretch
from gatewright_gui.qt.look import current_look
from gatewright_gui.qt.plaintext import tip_text
from gatewright_gui.qt.widget.button import Segmented
from gatewright_gui.qt.widget.label import ElidedLabel, IconLabel, Label
from gatewright_gui.session.argument import Argument, arguments_of, example_fault, giving_of
from gatewright_gui.session.condition import constraint_words
from gatewright_gui.session.verbs import rights as verbs
from gatewright_gui.session.verbs.rights import ConstraintWish

SIZE = (560, 440)
SAY_SOMETHING = mark("say what its value has to be, or that it must be given")
GIVING = {
    "optional": mark("Calls that leave it out are denied"),
    "required": mark("The tool itself denies calls that leave it out"),
    "defaulted": mark("Its default counts as given; say what its value has to be instead"),
}


async def ask_constraint(
    parent: QWidget, context: PageContext, agent: Agent, facts: ToolFacts, operation: str | None, row: LimitRow | None
) -> None:
    """Ask for a constraint on an argument of a tool, or for another one in the place of `row`'s, and write it."""
    document = context.document
    known = await context.deriver.derive(arguments_of, facts.name)
    if known is None:
        return
    operations = row.operations if row else frozenset({operation}) if operation else None
    names = argument_names(facts, operations) if row else free_fields(agent, facts, operations)
    wish = ConstraintWish(agent.agent_id, facts.name, "", None, operations=operations)
    if row is not None:
        field = row.field or ""
        names = (field, *names) if field and field not in names else names
        wish = replace(
            wish, field=field, schema=row.schema, required=row.is_required, standing=row.standing, was=row.field
        )
    arguments = [replace(known.get(name, Argument(name)), giving=giving_of(facts, name, operations)) for name in names]
    dialog = ConstraintDialog(parent, wish, arguments, partial(verbs.constraint_refusal, document))
    if await run_dialog(dialog):
        verbs.constrain(document, dialog.wish)


class ConstraintDialog(CheckedDialog):
    """Begins with what `before` says (no field: a new constraint); `refusal` says why one cannot be written."""

    def __init__(
        self,
        parent: QWidget | None,
        before: ConstraintWish,
        arguments: Sequence[Argument],
        refusal: Callable[[ConstraintWish], str],
    ) -> None:
        title = tr("Constrain an argument of {tool}", tool=before.tool)
        super().__init__(parent, "constraint", title, tr("OK"))
        self._before, self._refuse = before, refusal
        self._arguments = {argument.name: argument for argument in arguments}
        self._stays = False
        self.argument_field = named(QComboBox(), "constraint.argument", spoken=tr("Argument"))
        self.argument_field.addItems(list(self._arguments))
        self.about = ElidedLabel(role="muted")
        self.given_box = named(QCheckBox(tr("Must be &given")), "constraint.given")
        self.way = named(Segmented(tr("How to say it")), "constraint.way")
        self.way.add_segment("form", tr("Form"), tooltip=tr("What most people want to say"))
        self.way.add_segment("json", tr("JSON"), tooltip=tr("Any JSON Schema"))
        self.fields = ConstraintFields()
        self.code = named(QPlainTextEdit(), "constraint.json", spoken=tr("JSON Schema of the argument"))
        self.code.setFont(current_look().mono_font)
        self.code.setTabChangesFocus(True)
        self.example = named(QLineEdit(), "constraint.example", spoken=tr("Try a value"))
        self._example_icon = IconLabel("circle-check", "allow", size=current_look().tokens.small_icon_size)
        self.example_words = named(Label(wraps=True), "constraint.fits", kind="muted")
        self.words = named(Label(wraps=True), "constraint.words", kind="muted")
        self._refused = ""
        """Why it cannot be accepted."""
        self._lay_out()
        self._connect()
        self._start()
        self.resize(*SIZE)

    @property
    def wish(self) -> ConstraintWish:
        """The wish that was said. Raises ValueError where it cannot be read."""
        return replace(self._before, field=self.field, schema=self.schema, required=self.is_required)

    @property
    def field(self) -> str:
        """The argument."""
        return self.argument_field.currentText()

    @property
    def schema(self) -> JsonValue:
        """The schema of its value as said; None: nothing. Raises ValueError where it cannot be read."""
        if self.way.current == "json":
            text = self.code.toPlainText()
            if fault := json_fault(text):
                raise ValueError(fault)
            said = json_schema(text)
            return None if said == {} else said
        return schema_of(self.fields.form(self._argument.kind)) or None

    @property
    def is_required(self) -> bool:
        """Tell whether a call must give it."""
        return self.given_box.isChecked()

    @property
    def _argument(self) -> Argument:
        return self._arguments.get(self.field) or Argument(self.field)

    # layout

    def _lay_out(self) -> None:
        operations = self._before.operations
        where = tr("all operations that take it")
        if operations is not None:
            where = tr("only {operations}", operations=", ".join(sorted(operations)))
        rows = QFormLayout()
        rows.setHorizontalSpacing(current_look().tokens.space_2)
        rows.setVerticalSpacing(current_look().tokens.space_1)
        rows.addRow(_label(tr("&Argument"), self.argument_field), self.argument_field)
        rows.addRow("", self.about)
        rows.addRow("", self.given_box)
        example = _label(tr("T&ry a value"), self.example)
        self.lay_out(
            self.heading,
            ElidedLabel(tr("for {agent}, {operations}", agent=self._before.agent_id, operations=where), role="muted"),
            rows,
            row_of(self.way, stretch()),
            self.fields,
            stretch(self.code),
            row_of(example, stretch(self.example), self._example_icon, stretch(self.example_words), space=2),
            self.words,
            self.fault,
            stretch(factor=0),  # below the form, so that the value to try is next to what it is tried against
        )

    def _show_way(self, key: str) -> None:
        """The form, or the JSON, which takes all the room there is."""
        self.fields.setVisible(key == "form")
        self.code.setVisible(key == "json")

    def _connect(self) -> None:
        self.argument_field.currentIndexChanged.connect(self._argument_changed)
        self.way.current_changed.connect(self._way_changed)
        self.given_box.toggled.connect(self._show)
        self.fields.changed.connect(self._show)
        self.code.textChanged.connect(self._show)
        self.example.textChanged.connect(self._show)

    def _start(self) -> None:
        before = self._before
        if before.field:
            self.argument_field.setCurrentText(before.field)
        self._fill(before.schema, required=before.required)
        first = self.fields.edit("one_of") if self.way.current == "form" else self.code
        (first if before.field else self.argument_field).setFocus()

    # what is done in it

    def accept(self) -> None:
        """Close, unless the constraint would be refused."""
        self._show()
        if not self._refused:
            super().accept()

    def _fill(self, schema: JsonValue, *, required: bool) -> None:
        """Show what is said of the argument: in the form where it can say it, else as JSON."""
        schema, argument = {} if schema is None else schema, self._argument
        self.given_box.setChecked(required)
        self.given_box.setEnabled(required or argument.giving == "optional")
        self.given_box.setToolTip(tr(GIVING[argument.giving]))
        form = form_of(schema)
        can = form is not None and _kind_says(argument, form)
        self.fields.show_form(argument, form if form is not None and can else ConstraintForm())
        self.code.setPlainText(json_text(schema))
        self.way.set_segment_enabled("form", bool(FIELDS[argument.kind]))
        self.way.set_current("form" if can else "json")
        self._show_way("form" if can else "json")
        kinds = {
            "text": tr("text"),
            "number": tr("a number"),
            "whole": tr("a whole number"),
            "truth": tr("true or false"),
            "list": tr("a list"),
            "any": tr("any value"),
        }
        self.about.set_text(f"{kinds[argument.kind]}; {argument.description}".rstrip("; ").replace("`", ""))
        self.example.setPlaceholderText(tr("a text") if argument.kind == "text" else tr("a value in JSON"))
        self._show()

    def _argument_changed(self, _index: int) -> None:
        is_own = self.field == self._before.field
        self._fill(self._before.schema if is_own else None, required=is_own and self._before.required)

    def _way_changed(self, key: object) -> None:
        """Take along what was said; JSON that the form cannot say stays JSON."""
        if self._stays:
            return
        if key == "json":
            try:
                said: JsonValue = schema_of(self.fields.form(self._argument.kind))
            except ValueError:
                said = {}
            self.code.setPlainText(json_text(said))
            self._show_way("json")
        else:
            text = self.code.toPlainText()
            form = None if json_fault(text) else form_of(json_schema(text))
            if form is not None and _kind_says(self._argument, form):
                self.fields.show_form(self._argument, form)
                self._show_way("form")
            else:
                self._stays = True
                self.way.set_current("json")
                self._stays = False
                self.way.button("form").setToolTip(tr("The form cannot say all of this JSON"))
        self._show()

    def _show(self, _value: object = None) -> None:
        """Show what is wrong, what it means, whether the example fits."""
        try:
            schema = self.schema
            self._refused = self._refusal(schema)
            said = "" if self._refused else constraint_words(schema, required=self.is_required)
            self.words.setText(said and f"{self.field}: {said}")
        except ValueError as error:
            schema, self._refused = True, str(error)
            self.words.setText("")
        self.say(self._refused if self._refused != tr(SAY_SOMETHING) else "")
        self.words.setVisible(not self._refused)
        self.accept_button.setEnabled(not self._refused)
        self.accept_button.setToolTip(tip_text(self._refused.replace("`", "")))
        text = self.example.text()
        can = bool(text) and not self._refused
        wrong = example_fault(schema, self._argument, text) if can else ""
        self._example_icon.setVisible(can)
        self._example_icon.set_icon("circle-x" if wrong else "circle-check", "deny" if wrong else "allow")
        said = tr("denied: {reason}", reason=wrong).replace("`", "") if wrong else tr("goes through")
        self.example_words.setText(said if can else "")

    def _refusal(self, schema: JsonValue) -> str:
        if not self.field:
            return tr("no operation of it takes an argument")
        if schema is None and not self.is_required:
            return tr(SAY_SOMETHING)
        return self._refuse(self.wish)


def _kind_says(argument: Argument, form: ConstraintForm) -> bool:
    """Tell whether the fields of the argument's kind can show all of the form."""
    names = FIELDS[argument.kind]
    held = [name for name in ConstraintForm.__dataclass_fields__ if getattr(form, name) is not None]
    can_be_listed = all(text and text == text.strip() and "," not in text for text in form.one_of or ())
    return bool(names) and all(name in names for name in held) and can_be_listed


def _label(text: str, field: QWidget) -> Label:
    label = Label(text, buddy=field)
    label.setMinimumWidth(LABEL_WIDTH)
    return label
