"""One step of a composition as a form: its tool, a row for each argument, and the condition on which it is made.

What is refused stays in its field, with the reason below it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from PySide6.QtCore import QSignalBlocker, QStringListModel, Qt, Signal
from PySide6.QtWidgets import QComboBox, QGridLayout, QLineEdit, QPushButton, QWidget

from gatewright.workspace.api import CompositionStep, JsonValue
from gatewright_gui.qt.highlighter import Highlighter
from gatewright_gui.qt.language import tr
from gatewright_gui.qt.layout import column_of, holding, named, row_of, stretch
from gatewright_gui.qt.look import current_look
from gatewright_gui.qt.plaintext import tip_text
from gatewright_gui.qt.widget.label import Label
from gatewright_gui.qt.widget.text_field import LargeTextEdit, completer_of
from gatewright_gui.session.argument import Argument
from gatewright_gui.session.composing import From, Given, StepPicture, origin_of, value_given
from gatewright_gui.session.condition import read_when, when_text
from gatewright_gui.session.verbs.policy import Fault


class ArgumentRow(QWidget):
    """The origin of an argument and the part of it that counts, or the value that is typed."""

    committed = Signal()

    def __init__(self, argument: Argument, inputs: tuple[str, ...], results: tuple[tuple[str, ...], ...]) -> None:
        super().__init__()
        self.argument, self._inputs, self._results = argument, inputs, results
        self.offers = (argument, inputs, results)
        name = f"policy.step.{argument.name}"
        self.label = Label(argument.name)
        self.label.setToolTip(tip_text(argument.description))
        self.source = named(QComboBox(), f"{name}.from", spoken=tr("Where {name} comes from", name=argument.name))
        for words, data in (
            (tr("not given"), ("none", 0)),
            (tr("value"), ("value", 0)),
            (tr("from the input"), ("input", 0)),
            *((tr("result of step {number}", number=at + 1), ("step", at)) for at in range(len(results))),
        ):
            self.source.addItem(words, data)
        self.what = named(QComboBox(), f"{name}.what", spoken=argument.name)
        self.what.setEditable(True)
        self.what.setInsertPolicy(QComboBox.InsertPolicy.NoInsert)
        self.what.setMinimumContentsLength(8)
        self.what.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.fault = named(Label(wraps=True), f"{name}.said", kind="error")
        self.fault.hide()
        column_of(row_of(self.source, stretch(self.what), space=2), self.fault, into=self)
        self.source.activated.connect(self._source_chosen)
        self.what.activated.connect(self._commit)
        edit = self.what.lineEdit()
        if edit is not None:
            edit.editingFinished.connect(self.committed)

    def _commit(self, _at: int = 0) -> None:
        self.committed.emit()

    def set_value(self, value: JsonValue, *, is_given: bool) -> None:
        """Show what stands in the step."""
        given = origin_of(value, self.argument) if is_given else Given("none")
        self._show_given(given)

    @property
    def given(self) -> Given:
        """The argument that the row says."""
        source, step = self._chosen
        return Given(source, self.what.currentText(), step)

    def show_fault(self, text: str) -> None:
        """Say what is wrong, below the row."""
        self.fault.setText(text.replace("`", ""))
        self.fault.setVisible(bool(text))

    @property
    def _chosen(self) -> tuple[From, int]:
        return self.source.currentData()

    def _show_given(self, given: Given) -> None:
        held = [tuple(self.source.itemData(at)) for at in range(self.source.count())]
        at = held.index((given.source, given.step)) if (given.source, given.step) in held else -1
        if at < 0:  # a result that comes later, or none
            self.source.addItem(tr("result of step {number}", number=given.step + 1), (given.source, given.step))
            at = self.source.count() - 1
        self.source.setCurrentIndex(at)
        self._offer()
        self.what.setEditText(given.text)

    def _offer(self) -> None:
        source, step = self._chosen
        offered: Sequence[str] = ()
        if source == "input":
            offered = self._inputs
        elif source == "step" and step < len(self._results):
            offered = self._results[step]
        elif source == "value":
            offered = self.argument.choices
        self.what.clear()
        self.what.addItems(list(offered))
        self.what.setEditText("")
        self.what.setEnabled(source != "none")
        edit = self.what.lineEdit()
        if edit is not None:
            hints = {"input": tr("the whole input"), "step": tr("the whole result"), "value": tr("a value")}
            edit.setPlaceholderText(hints.get(source, ""))

    def _source_chosen(self, _at: int) -> None:
        self._offer()
        source, _ = self._chosen
        if source == "none":
            self.committed.emit()
            return
        if source == "input" and self.argument.name in self._inputs:
            self.what.setEditText(self.argument.name)
            self.committed.emit()
        self.what.setFocus(Qt.FocusReason.OtherFocusReason)


class StepForm(QWidget):
    """`step_committed`: the form says another step than the one that stands."""

    step_committed = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self.step: CompositionStep | None = None
        self.rows: dict[str, ArgumentRow] = {}
        self.heading = named(Label(), "policy.step.heading", kind="heading")
        self.tool = named(QLineEdit(), "policy.step.tool", spoken=tr("Tool that the step calls"))
        self._known = QStringListModel(self)
        completer = completer_of(self.tool, self._known)
        self.tool.setCompleter(completer)
        self.tool_fault = named(Label(wraps=True), "policy.step.tool.said", kind="error")
        self.when = named(LargeTextEdit(tr("Condition as TOML"), lines=3), "policy.step.when")
        Highlighter(self.when.document()).set_language("toml")
        self.when.setPlaceholderText(tr('nothing: always; else such as { properties.input.required = ["line"] }'))
        self.when_button = named(QPushButton(tr("Apply")), "policy.step.when.apply", spoken=tr("Apply the condition"))
        self.fault = named(Label(wraps=True), "policy.step.said", kind="error")
        for label in (self.tool_fault, self.fault):
            label.hide()
        self._grid = QGridLayout()
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setHorizontalSpacing(current_look().tokens.space_2)
        self._grid.setVerticalSpacing(current_look().tokens.space_1)
        self._grid.setColumnStretch(1, 1)
        self._grid_holder = holding(self._grid)
        calls = row_of(Label(tr("&Calls"), buddy=self.tool), stretch(self.tool), space=2)
        only = named(Label(tr("Only where this holds of input and steps:")), kind="muted")
        foot = row_of(stretch(self.when), self.when_button, space=2)
        column_of(
            self.heading,
            calls,
            self.tool_fault,
            self._grid_holder,
            only,
            foot,
            self.fault,
            stretch(),
            into=self,
            space=1,
        )
        self.tool.editingFinished.connect(self._tool_chosen)
        completer.activated.connect(self._tool_chosen)
        self.when.edited.connect(self._tell_when)
        self.when_button.clicked.connect(self._commit)

    def offer(self, tools: Sequence[str]) -> None:
        """The tools that a step can call."""
        if list(tools) != self._known.stringList():
            self._known.setStringList(list(tools))

    def set_step(
        self, number: int, step: CompositionStep, inputs: Sequence[str], pictures: Sequence[StepPicture]
    ) -> None:
        """Show a step, and what it can be given; what is typed and not written yet stays while it is the same step."""
        before = self.step if self.step is not None and self.step.identity == step.identity else None
        self.step = step
        self.heading.setText(tr("Step {number}", number=number + 1))
        if before is None or before.tool != step.tool:
            self.tool.setText(step.tool)
        taken: Mapping[str, Argument] = pictures[number].arguments if number < len(pictures) else {}
        names = dict.fromkeys((*taken, *step.arguments))
        results = tuple(pictures[at].fields if at < len(pictures) else () for at in range(number))
        new = self._set_rows({name: taken.get(name) or Argument(name) for name in names}, tuple(inputs), results)
        for name, row in self.rows.items():
            is_given = name in step.arguments
            held = before is not None and (name in before.arguments, before.arguments.get(name))
            if name in new or held != (is_given, step.arguments.get(name)):
                row.set_value(step.arguments.get(name), is_given=is_given)
        if before is None or before.when != step.when:
            with QSignalBlocker(self.when):
                self.when.set_text("" if step.when is None else when_text(step.when))
            self.when_button.setEnabled(False)
        if before != step:
            self.show_faults({})

    def show_faults(self, faults: Mapping[str, str]) -> None:
        """Say what is wrong: by `tool`, the name of an argument behind a dot, or "" of the whole."""
        rest = dict(faults)
        for name, row in self.rows.items():
            row.show_fault(rest.pop(f".{name}", ""))
        said = rest.pop("tool", "")
        self.tool_fault.setText(said.replace("`", ""))
        self.tool_fault.setVisible(bool(said))
        whole = "; ".join(rest.values())
        self.fault.setText(whole.replace("`", ""))
        self.fault.setVisible(bool(whole))

    @property
    def said(self) -> CompositionStep | None:
        """The step that the form says; None where a value or the condition cannot be read, which is said there."""
        if self.step is None:
            return None
        faults: dict[str, str] = {}
        arguments: dict[str, JsonValue] = {}
        given = {name: row.given for name, row in self.rows.items()}
        for name in (*self.step.arguments, *(name for name in self.rows if name not in self.step.arguments)):
            if given[name].source == "none":
                continue
            held = self.step.arguments.get(name)
            if name in self.step.arguments and given[name] == origin_of(held, self.rows[name].argument):
                arguments[name] = held
                continue
            try:
                arguments[name] = value_given(given[name], self.rows[name].argument)
            except ValueError as error:
                faults[f".{name}"] = str(error)
        when = self.step.when
        try:
            when = read_when(self.when.text) if self.when.text.strip() else None
        except ValueError as error:
            faults[""] = str(error)
        if faults:
            self.show_faults(faults)
            return None
        return replace(self.step, tool=self.tool.text().strip(), arguments=arguments, when=when)

    def _set_rows(
        self, arguments: Mapping[str, Argument], inputs: tuple[str, ...], results: tuple[tuple[str, ...], ...]
    ) -> set[str]:
        """Have these rows; the names of those that are new. What is typed in the others stays, and so do the keys."""
        held, self.rows = self.rows, {}
        new: set[str] = set()
        for name, argument in arguments.items():
            row = held.get(name)
            if row is None or row.offers != (argument, inputs, results):
                new.add(name)
                row = ArgumentRow(argument, inputs, results)
                row.label.setBuddy(row.source)
                row.label.setMinimumHeight(row.source.sizeHint().height())
                row.committed.connect(self._commit)
            else:
                del held[name]
            self.rows[name] = row
        for row in held.values():
            for widget in (row.label, row):
                widget.hide()
                widget.deleteLater()
        if not new and not held:
            return new
        for at, row in enumerate(self.rows.values()):
            self._grid.addWidget(row.label, at, 0, Qt.AlignmentFlag.AlignTop)
            self._grid.addWidget(row, at, 1)
        previous: QWidget = self.tool
        for row in self.rows.values():
            QWidget.setTabOrder(previous, row.source)
            QWidget.setTabOrder(row.source, row.what)
            previous = row.what
        QWidget.setTabOrder(previous, self.when)
        return new

    def _tell_when(self) -> None:
        self.when_button.setEnabled(True)

    def _tool_chosen(self, _text: str = "") -> None:
        if self.step is not None and self.tool.text().strip() != self.step.tool:
            self._commit()

    def _commit(self) -> None:
        said = self.said
        if said is not None and self.step is not None:
            if said == self.step:
                self.show_faults({})
            else:
                self.step_committed.emit(said)


def step_faults(faults: Sequence[Fault], place: int, number: int) -> dict[str, str]:
    """Faults of one step of the composition at a place, as `show_faults` takes it; the rest under ""."""
    told: dict[str, str] = {}
    for path, message in faults:
        match path:
            case ("compositions", at, "steps", one, "arguments", str(name), *_) if (at, one) == (place, number):
                told.setdefault(f".{name}", message)
            case ("compositions", at, "steps", one, "tool", *_) if (at, one) == (place, number):
                told.setdefault("tool", message)
            case _:
                told.setdefault("", message)
    return told
