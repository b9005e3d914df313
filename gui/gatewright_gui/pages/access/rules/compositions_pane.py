"""The compositions: a list beside the chosen one, whose fields and steps are each edited where they are seen."""

from collections.abc import Mapping
from dataclasses import replace

from PySide6.QtCore import QSignalBlocker, Qt, QTimer
from PySide6.QtWidgets import QFormLayout, QLineEdit, QPushButton, QScrollArea, QWidget
from shiboken6 import isValid

from gatewright.workspace.api import MAX_STEPS, Composition, CompositionStep, JsonValue
from gatewright_gui.pages.access.rules.input_table import InputTable
from gatewright_gui.pages.access.rules.step_form import StepForm, step_faults
from gatewright_gui.pages.access.rules.step_list import StepList, StepListModel
from gatewright_gui.pages.page import PageContext
from gatewright_gui.qt.language import counted, mark, tr
from gatewright_gui.qt.layout import column_of, holding, named, stack_of, stretch
from gatewright_gui.qt.look import current_look, tie_icon
from gatewright_gui.qt.table_model import RowModel
from gatewright_gui.qt.widget.button import IconButton
from gatewright_gui.qt.widget.empty_state import EmptyState
from gatewright_gui.qt.widget.item_view import TableView
from gatewright_gui.qt.widget.label import Label, SectionHeader
from gatewright_gui.qt.widget.splitter import split_of
from gatewright_gui.session.composing import Picture, example_input, picture_of
from gatewright_gui.session.question import TIER_WORDS
from gatewright_gui.session.readings import COMPOSITION
from gatewright_gui.session.verbs import policy as verbs
from gatewright_gui.session.verbs.policy import Fault
from gatewright_gui.session.verdict import right_words

NONE = (
    "list",
    mark("No compositions yet"),
    mark(
        "A composition is one tool to the model, and makes several calls: read a report, file it, note it in the index."
    ),
)
_LOOK_MS = 60
_PICTURE = "policy.composition"
_ACROSS = Qt.Orientation.Horizontal


class CompositionListModel(RowModel[Composition]):
    """One row for each composition; a row stays itself while it is edited."""

    headers = (mark("Composition"),)

    def key(self, row: Composition) -> object:
        """The composition, whatever became of it."""
        return row.identity

    def text(self, row: Composition, _column: int) -> str:
        """Its name."""
        return row.name

    def tip(self, row: Composition, _column: int) -> str:
        """Its description, and how many calls it makes."""
        return "\n".join(filter(None, (row.description, counted(len(row.steps), "step", "steps"))))


class CompositionsPane(QWidget):
    """Each edit is written when its field is left, and is one step of undo; what is refused stays in its field."""

    def __init__(self, context: PageContext) -> None:
        super().__init__()
        self._context, self._document = context, context.document
        self._picture: Picture | None = None
        self._looked_at: Composition | None = None
        self._shown: Composition | None = None
        self.header = SectionHeader(tr("Compositions"))
        self.add_button = named(QPushButton(tr("Add")), "policy.compositions.add", spoken=tr("Add composition"))
        tie_icon(self.add_button, "plus")
        self.copy_button = named(IconButton("copy", tr("Duplicate")), "policy.compositions.copy")
        self.remove_button = named(IconButton("trash", tr("Remove")), "policy.compositions.remove")
        self.run_button = named(
            QPushButton(tr("Run in console")), "policy.compositions.run", tip=tr("Begin a call with an example input")
        )
        tie_icon(self.run_button, "play")
        for control in (self.run_button, self.add_button, self.copy_button, self.remove_button):
            self.header.add_control(control)
        self.model = CompositionListModel()
        self.view = named(TableView(tr("Compositions")), "policy.compositions")
        self.view.show_model(self.model, {}, wide=0)
        self.view.horizontalHeader().hide()
        self.name = named(QLineEdit(), "policy.composition.name", spoken=tr("Name of the composition"))
        self.about = named(QLineEdit(), "policy.composition.about", spoken=tr("Description"))
        self.about.setPlaceholderText(tr("what the model is told of it"))
        self.input = InputTable()
        self.fault = named(Label(wraps=True), "policy.composition.said", kind="error")
        self.fault.hide()
        self.steps_header = SectionHeader(tr("Steps"))
        self.steps_add = named(QPushButton(tr("Step")), "policy.steps.add", spoken=tr("Add step"), tip=tr("Ins"))
        tie_icon(self.steps_add, "plus")
        self.up_button = named(IconButton("arrow-up", tr("Up (Alt+Up)")), "policy.steps.up")
        self.down_button = named(IconButton("arrow-down", tr("Down (Alt+Down)")), "policy.steps.down")
        self.drop_button = named(IconButton("trash", tr("Remove (Del)")), "policy.steps.remove")
        for control in (self.steps_add, self.up_button, self.down_button, self.drop_button):
            self.steps_header.add_control(control)
        self.steps = StepListModel()
        self.steps_view = StepList(self.steps)
        self.form = StepForm()
        self.tier = named(Label(wraps=True), "policy.composition.tier", kind="muted")
        icon, title, text = NONE
        self.empty = named(
            EmptyState(icon, tr(title), tr(text), action=tr("Add a composition")), "policy.no_compositions"
        )
        self._look_soon = QTimer(self, singleShot=True, interval=_LOOK_MS)
        self._lay_out()
        self._connect()
        self._reopen()

    def _lay_out(self) -> None:
        fields = QFormLayout()
        fields.setContentsMargins(0, 0, 0, 0)
        fields.setHorizontalSpacing(current_look().tokens.space_2)
        fields.setLabelAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignTop)
        fields.addRow(Label(tr("&Name"), buddy=self.name), self.name)
        fields.addRow(Label(tr("&Description"), buddy=self.about), self.about)
        fields.addRow(Label(tr("Input")), self.input)
        parts = (holding(fields), self.fault, self.steps_header, self.steps_view, self.tier, self.form, stretch())
        area = QScrollArea()
        area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        area.setWidgetResizable(True)
        area.setFrameShape(QScrollArea.Shape.NoFrame)
        area.setWidget(holding(column_of(*parts, space=2, margins=(3, 2))))
        area.setMinimumWidth(320)
        whole = split_of(_ACROSS, "policy.compositions", self._context.sizes, (self.view, area), (170, 790))
        self._stack = stack_of(whole, self.empty)
        column_of(self.header, stretch(self._stack), into=self)

    def _connect(self) -> None:
        document = self._document
        document.closed.connect(self._reopen)
        document.opened.connect(self._reopen)
        document.policy_changed.connect(self._refresh)
        self._context.selection.agent_changed.connect(self._look_again)
        self._look_soon.timeout.connect(self._look)
        self.add_button.clicked.connect(self.add)
        self.empty.action_requested.connect(self.add)
        self.copy_button.clicked.connect(self._duplicate)
        self.remove_button.clicked.connect(self._remove)
        self.run_button.clicked.connect(self._run)
        self.view.selectionModel().selectionChanged.connect(self._show)
        self.name.editingFinished.connect(self._rename)
        self.about.editingFinished.connect(self._describe)
        self.input.schema_committed.connect(self._set_input)
        self.steps_add.clicked.connect(self._add_step)
        self.steps_view.add_requested.connect(self._add_step)
        self.up_button.clicked.connect(lambda: self.steps_view.move_by(-1))
        self.down_button.clicked.connect(lambda: self.steps_view.move_by(1))
        self.drop_button.clicked.connect(self._remove_step)
        self.steps_view.remove_requested.connect(self._remove_step)
        self.steps_view.move_requested.connect(self._move_step)
        self.steps_view.edit_requested.connect(lambda: self.form.tool.setFocus(Qt.FocusReason.OtherFocusReason))
        self.steps_view.selectionModel().selectionChanged.connect(self._show_step)
        self.form.step_committed.connect(self._change_step)

    # what is shown

    def main_view(self) -> QWidget:
        """The list, or the button that makes the first one."""
        return self.view if self.model.count() else self.empty.action_button

    @property
    def chosen(self) -> Composition | None:
        """The composition that is shown, as it stands now."""
        return self.model.row_at(self.view.currentIndex().row())

    @property
    def chosen_step(self) -> CompositionStep | None:
        """The step whose form is shown, as it stands now."""
        return self.steps.row_at(self.steps_view.currentIndex().row())

    @property
    def is_looked_at(self) -> bool:
        """True where the answer of the worker process is of the composition as it stands."""
        return self._picture is not None and not self._look_soon.isActive() and self._looked_at is self.chosen

    def show_composition(self, name: str) -> None:
        """Choose a composition."""
        at = next((at for at, row in enumerate(self.model.rows) if row.name == name), -1)
        if at >= 0:
            self.view.setCurrentIndex(self.model.index(at, 0))

    def _reopen(self) -> None:
        self._picture = self._shown = None
        self.form.step = None
        self.model.set_rows(self._document.policy.compositions)
        self._choose(0)
        self._show()

    def _refresh(self, _changes: object = None) -> None:
        """The compositions after an edit; the chosen one and its step stay chosen."""
        held = self.chosen
        step = self.chosen_step
        at = self.view.currentIndex().row()
        with QSignalBlocker(self.view.selectionModel()), QSignalBlocker(self.steps_view.selectionModel()):
            self.model.set_rows(self._document.policy.compositions)
            row = -1 if held is None else self.model.find(held.identity)
            self._choose(row if row >= 0 else min(max(at, 0), self.model.count() - 1))
            now = self.chosen
            self.steps.set_rows(now.steps if now is not None else ())
            place = -1 if step is None else self.steps.find(step.identity)
            if place >= 0:
                self.steps_view.choose(place)
        self._show()

    def _choose(self, row: int) -> None:
        if 0 <= row < self.model.count():
            self.view.setCurrentIndex(self.model.index(row, 0))

    def _show(self, *_selection: object) -> None:
        row = self.chosen
        self._stack.setCurrentIndex(0 if self.model.count() else 1)
        self.add_button.setEnabled(self._document.is_open)
        for control in (self.copy_button, self.remove_button, self.run_button):
            control.setEnabled(row is not None)
        shown, self._shown = self._shown, row
        if row is None:
            self.steps.set_rows(())
            return
        if self._picture is not None and self._picture.identity != row.identity:
            self._picture = None
        if shown is None or shown.identity != row.identity:
            shown = None
            self._say("")
        if shown is None or shown.name != row.name:
            self.name.setText(row.name)
        if shown is None or shown.description != row.description:
            self.about.setText(row.description)
        if shown is None or shown.input != row.input:
            self.input.set_schema(row.input)
        held = self.chosen_step
        self.steps.set_rows(row.steps)
        at = -1 if held is None else self.steps.find(held.identity)
        self.steps_view.choose(max(at, 0))
        height = self.steps_view.horizontalHeader().sizeHint().height() + 6
        self.steps_view.setFixedHeight(height + current_look().tokens.row_height * min(len(row.steps), 8))
        self._show_step()
        self._look_soon.start()

    def _show_step(self, *_selection: object) -> None:
        row, step = self.chosen, self.chosen_step
        self.form.setVisible(step is not None)
        if row is None or step is None:
            return
        at, count = self.steps_view.currentIndex().row(), len(row.steps)
        self.up_button.setEnabled(at > 0)
        self.down_button.setEnabled(at < count - 1)
        self.drop_button.setEnabled(count > 1)
        self.steps_add.setEnabled(count < MAX_STEPS)
        pictures = self._picture.steps if self._picture is not None else ()
        self.form.offer(sorted({facts.name for facts in self._document.catalog if facts.name != row.name}))
        self.form.set_step(at, step, self.input.names, pictures)

    def _look_again(self, _agent: object = None) -> None:
        self._look_soon.start()

    def _look(self) -> None:
        if self._document.is_open and self.chosen is not None:
            self._context.tasks.start(self._derive(), _PICTURE, replace=True)

    async def _derive(self) -> None:
        row, agent_id = self.chosen, self._context.selection.agent_id
        place = -1 if row is None else self.model.find(row.identity)
        if row is None or place < 0:
            return
        found = await self._context.deriver.derive(picture_of, place, agent_id)
        now = self.chosen
        if found is None or not isValid(self) or now is None or now.identity != row.identity or now != row:
            return
        self._picture = replace(found, identity=row.identity)  # rows of the worker process may have other numbers
        self._looked_at = row
        self.steps.show_picture(self._picture)
        words = tr("tier: {tier}", tier=tr(TIER_WORDS.get(found.tier, found.tier)))
        if agent_id and found.right is not None:
            right = right_words(found.right)
            words = tr("{tier}; the call itself for {agent}: {right}", tier=words, agent=agent_id, right=right)
        self.tier.setText(words)
        self._show_step()

    def _say(self, fault: str) -> None:
        self.fault.setText(fault.replace("`", ""))
        self.fault.setVisible(bool(fault))

    # what is done

    def add(self) -> None:
        """Add a composition with one step, and put the keys into its name."""
        tools = [facts.name for facts in self._document.catalog if facts.origin != COMPOSITION]
        if not tools:
            self._document.say("warning", tr("no tool is there that a step could call"))
            return
        first = "file" if "file" in tools else tools[0]
        made = Composition(self._free("composition"), steps=(CompositionStep(first),))
        if self._tell_faults(verbs.add(self._document, made)):
            self.show_composition(made.name)
            self.name.setFocus(Qt.FocusReason.OtherFocusReason)
            self.name.selectAll()

    def _free(self, stem: str) -> str:
        taken = {facts.name for facts in self._document.catalog}
        return next(name for at in range(1, 10_000) if (name := f"{stem}_{at}") not in taken)

    def _tell_faults(self, faults: tuple[Fault, ...]) -> bool:
        """Say what is wrong with the composition; whether nothing is."""
        self._say("; ".join(message for _, message in faults[:3]))
        return not faults

    def _duplicate(self) -> None:
        row = self.chosen
        if row is not None:
            name = self._free(row.name)
            if self._tell_faults(verbs.duplicate(self._document, row, name)):
                self.show_composition(name)

    def _remove(self) -> None:
        row = self.chosen
        if row is not None:
            self._tell_faults(verbs.remove(self._document, row))

    def _run(self) -> None:
        row, agent_id = self.chosen, self._context.selection.agent_id
        if row is None:
            return
        agents = [agent.agent_id for agent in self._document.agents]
        runner = agent_id if agent_id in agents else next(iter(agents), None)
        if runner is None:
            self._document.say("warning", tr("no agent is there that could call it"))
            return
        self._context.navigator.go_to_call(runner, row.name, None, example_input(row.input))

    def _rename(self) -> None:
        row = self.chosen
        if row is not None and self.name.text().strip() != row.name:
            self._tell_faults(verbs.rename(self._document, row, self.name.text().strip()))

    def _describe(self) -> None:
        row = self.chosen
        if row is not None and self.about.text() != row.description:
            self._tell_faults(verbs.describe(self._document, row, self.about.text()))

    def _set_input(self, schema: Mapping[str, JsonValue], renamed: Mapping[str, str]) -> None:
        row = self.chosen
        if row is not None:
            faults = verbs.set_input(self._document, row, schema, renamed)
            self.input.show_fault("; ".join(message for _, message in faults[:3]))

    def _add_step(self) -> None:
        row = self.chosen
        if row is not None:
            made = CompositionStep(row.steps[-1].tool)
            if self._tell_faults(verbs.add_step(self._document, row, made, None)):
                self.steps_view.choose(self.steps.count() - 1)
                self.form.tool.setFocus(Qt.FocusReason.OtherFocusReason)
                self.form.tool.selectAll()

    def _change_step(self, after: object) -> None:
        row, step = self.chosen, self.chosen_step
        if row is None or step is None or not isinstance(after, CompositionStep):
            return
        if after.tool != step.tool:
            after = self._with_tool(after, step)
        at, place = self.steps_view.currentIndex().row(), self.model.find(row.identity)
        faults = verbs.change_step(self._document, row, step, after)
        if faults:
            self.form.show_faults(step_faults(faults, place, at))

    def _with_tool(self, after: CompositionStep, step: CompositionStep) -> CompositionStep:
        """The step without the arguments that the other tool does not take, and without the old operation."""
        facts = {one.name: one for one in self._document.catalog}
        new, old = facts.get(after.tool), facts.get(step.tool)
        if new is None:
            return after
        taken = {name for row in new.operations for name in row.parameters}
        chosen = old.selection.fields if old is not None and old.selection is not None else frozenset[str]()
        kept = {name: held for name, held in after.arguments.items() if name in taken and name not in chosen}
        return CompositionStep(after.tool, kept, after.when)

    def _move_step(self, to: int) -> None:
        row, step = self.chosen, self.chosen_step
        if row is not None and step is not None:
            at, place = self.steps_view.currentIndex().row(), self.model.find(row.identity)
            faults = verbs.move_step(self._document, row, step, to)
            if faults:
                self.form.show_faults(step_faults(faults, place, at))

    def _remove_step(self) -> None:
        row, step = self.chosen, self.chosen_step
        if row is not None and step is not None:
            at, place = self.steps_view.currentIndex().row(), self.model.find(row.identity)
            faults = verbs.remove_step(self._document, row, step)
            if faults:
                self.form.show_faults(step_faults(faults, place, at))
