"""One policy rule as a form: a draft that is checked while it is typed and written when it is applied."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from PySide6.QtCore import QSignalBlocker, Qt, Signal
from PySide6.QtWidgets import QGridLayout, QLineEdit, QPushButton, QScrollArea, QWidget

from gatewright.workspace.api import PolicyRule, Verdict
from gatewright_gui.pages.access.rules.condition_form import ConditionForm
from gatewright_gui.pages.access.rules.times_form import TimesForm
from gatewright_gui.pages.access.rules.words_field import WordsField
from gatewright_gui.qt.language import mark, tr
from gatewright_gui.qt.layout import column_of, holding, named, row_of, stretch
from gatewright_gui.qt.look import current_look
from gatewright_gui.qt.widget.button import Segmented
from gatewright_gui.qt.widget.chip import VERDICT_ICONS
from gatewright_gui.qt.widget.label import Label
from gatewright_gui.session.argument import Argument
from gatewright_gui.session.verbs.policy import Fault

EFFECTS = (
    (Verdict.DENY, mark("Deny"), mark("Calls that it matches are denied")),
    (Verdict.ASK, mark("Ask first"), mark("Somebody is asked before calls that it matches")),
    (
        Verdict.ALLOW,
        mark("Allow"),
        mark(
            "Only where calls that no rule fits ask first, or are denied (Settings). It lifts no deny or ask of a rule"
        ),
    ),
)
LABEL_WIDTH = 74


class RuleForm(QWidget):
    """`rule` is the draft; `before` the rule that it changes, None for a new one."""

    changed = Signal()
    apply_requested = Signal()
    revert_requested = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.before: PolicyRule | None = None
        self._shown = PolicyRule("", Verdict.ASK)
        self.heading = named(Label(), "policy.heading", kind="heading")
        self.sentence = named(Label(wraps=True), "policy.sentence", kind="muted")
        self.name = named(QLineEdit(), "policy.name", spoken=tr("Name of the rule"))
        self.name.setPlaceholderText(tr("what it is about, in a few words"))
        self.effect = named(Segmented(tr("Effect")), "policy.effect")
        for verdict, words, tip in EFFECTS:
            self.effect.add_segment(verdict.value, tr(words), icon=VERDICT_ICONS[verdict.value], tooltip=tr(tip))
        self.agents = WordsField("policy.agents", tr("Agents"), tr("all agents"))
        self.tools = WordsField("policy.tools", tr("Tools"), tr("all tools"))
        self.operations = WordsField("policy.operations", tr("Operations"), tr("all operations"))
        self.when = ConditionForm()
        self.times = TimesForm()
        self.message = named(QLineEdit(), "policy.message", spoken=tr("Message"))
        self.message.setPlaceholderText(tr("why; told to whoever is asked, and to the model that is denied"))
        self.apply_button = named(QPushButton(tr("Apply")), "policy.apply", spoken=tr("Apply the rule"), kind="primary")
        self.revert_button = named(QPushButton(tr("Revert")), "policy.revert", spoken=tr("Take the changes back"))
        self.fault = named(Label(wraps=True), "policy.fault", kind="error")
        self._faults: dict[str, Label] = {}
        self._lay_out()
        for signal in (self.name.textChanged, self.agents.textChanged, self.tools.textChanged, self.when.changed):
            signal.connect(self.changed)
        self.times.changed.connect(self.changed)
        for signal in (self.operations.textChanged, self.effect.current_changed, self.message.textChanged):
            signal.connect(self.changed)
        for button in (self.apply_button, self.revert_button):
            button.setEnabled(False)  # nothing was changed yet
        self.apply_button.clicked.connect(self.apply_requested)
        self.revert_button.clicked.connect(self.revert_requested)

    def set_rule(self, rule: PolicyRule, before: PolicyRule | None) -> None:
        """Begin with a rule: `before` as it stands, or a new one."""
        with QSignalBlocker(self):
            self.before, self._shown = before, rule
            self.heading.setText(tr("Rule {name}", name=rule.name) if before is not None else tr("New rule"))
            self.name.setText(rule.name)
            self.effect.set_current(rule.effect.value)
            self.agents.set_words(rule.agents)
            self.tools.set_words(rule.tools)
            self.operations.set_words(rule.operations)
            self.when.set_when(rule.when)
            self.times.set_times(rule.times)
            self.message.setText(rule.message or "")
        self.changed.emit()

    def offer(self, agents: Sequence[str], tools: Sequence[str], operations: Sequence[str]) -> None:
        """Offer what the fields are completed with."""
        self.agents.offer(agents)
        self.tools.offer(tools)
        self.operations.offer(operations)

    def offer_arguments(self, arguments: Mapping[str, Argument]) -> None:
        """Offer what conditions are made of."""
        self.when.offer(arguments)

    @property
    def rule(self) -> PolicyRule | None:
        """The rule in the form; None where its condition or its times cannot be read, which is said there."""
        try:
            when = self.when.when
        except ValueError as error:
            self.when.show_faults({"": str(error)})
            return None
        try:
            times = self.times.times
        except ValueError as error:
            self.show_faults(((("policy", "rules", 0, "times"), str(error)),))
            return None
        return replace(
            self._shown,
            name=self.name.text().strip(),
            effect=Verdict(self.effect.current or "ask"),
            agents=self.agents.words,
            tools=self.tools.words,
            operations=self.operations.words,
            when=when,
            times=times,
            message=self.message.text().strip() or None,
        )

    @property
    def is_changed(self) -> bool:
        """Tell whether it says something else than the rule that stands; a new rule always does."""
        return self.before is None or self.rule != self.before

    def show_faults(self, faults: Sequence[Fault]) -> None:
        """Say what is wrong, each where it is."""
        told: dict[str, str] = {}
        when: dict[str, str] = {}
        for path, message in faults:
            match path:
                case ("policy", "rules", _, "when", "properties", str(field), *_):
                    when.setdefault(field, message)
                case ("policy", "rules", _, "when", *_):
                    when.setdefault("", message)
                case ("policy", "rules", _, str(key), *_):
                    told.setdefault(key, message)
                case _:
                    told.setdefault("", message)
        self.when.show_faults(when)
        for key, label in self._faults.items():
            label.setText(told.get(key, "").replace("`", ""))
            label.setVisible(key in told)

    def _lay_out(self) -> None:
        form = QGridLayout()
        form.setContentsMargins(0, 0, 0, 0)
        form.setHorizontalSpacing(current_look().tokens.space_2)
        form.setVerticalSpacing(current_look().tokens.space_1 + 2)
        fields: tuple[tuple[str, str, QWidget, tuple[int, int, int]], ...] = (
            ("name", tr("&Name"), self.name, (0, 0, 1)),
            ("agents", tr("&Agents"), self.agents, (0, 2, 1)),
            ("tools", tr("&Tools"), self.tools, (1, 0, 1)),
            ("operations", tr("&Operations"), self.operations, (1, 2, 1)),
            ("effect", tr("Effect"), holding(row_of(self.effect, stretch())), (2, 0, 3)),
            ("when", tr("When"), self.when, (3, 0, 3)),
            ("times", tr("Times"), self.times, (4, 0, 3)),
            ("message", tr("&Message"), self.message, (5, 0, 3)),
        )
        for key, words, field, (row, column, span) in fields:
            label = Label(words, buddy=field)
            label.setMinimumSize(LABEL_WIDTH, current_look().tokens.control_height)
            fault = self._faults[key] = named(Label(wraps=True), f"policy.{key}.said", kind="error")
            fault.hide()
            form.addWidget(label, row, column, Qt.AlignmentFlag.AlignTop)
            form.addLayout(column_of(field, fault), row, column + 1, 1, span)
        for column in (1, 3):
            form.setColumnStretch(column, 1)
        self._faults[""] = self.fault
        self.fault.hide()
        area = QScrollArea()
        area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        area.setWidgetResizable(True)
        area.setFrameShape(QScrollArea.Shape.NoFrame)
        fields_box = holding(column_of(form, stretch(), margins=(3, 1)))
        area.setWidget(fields_box)
        title = row_of(self.heading, stretch(), self.revert_button, self.apply_button, space=2)
        head = column_of(title, self.sentence, self.fault, margins=(3, 1))
        column_of(head, stretch(area), into=self)
        self._parts = head, fields_box

    @property
    def whole_height(self) -> int:
        """The height at which all fields show."""
        return sum(part.sizeHint().height() for part in self._parts)
