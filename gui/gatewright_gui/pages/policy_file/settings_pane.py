"""Roots, shell, web, messages, defaults: plain fields that one table makes; each is written when it is left."""

from functools import partial

from PySide6.QtCore import QSignalBlocker, Qt
from PySide6.QtGui import QResizeEvent, QWheelEvent
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QFormLayout,
    QLineEdit,
    QListWidget,
    QPushButton,
    QScrollArea,
    QSizePolicy,
    QWidget,
)

from gatewright.workspace.api import GatewrightError, Policy
from gatewright_gui.pages.access.rules.reading_row import ReadingRow
from gatewright_gui.pages.access.rules.words_field import WordsField
from gatewright_gui.pages.page import Page, PageContext
from gatewright_gui.pages.servers.room_pane import ConfineBand, RoomDialog
from gatewright_gui.qt.dialog import Choice, ask, run_dialog
from gatewright_gui.qt.language import counted, mark, tr
from gatewright_gui.qt.layout import column_of, holding, named, row_of, stretch
from gatewright_gui.qt.look import current_look, tie_icon
from gatewright_gui.qt.widget.item_view import Delegate
from gatewright_gui.qt.widget.label import Label, SectionHeader
from gatewright_gui.qt.widget.text_field import QuietField, SearchField
from gatewright_gui.session.read_only import READ_ONLY
from gatewright_gui.session.settings_table import COMMANDS, SECTIONS, Section, Setting
from gatewright_gui.session.verbs import policy as verbs

LABEL_WIDTH, FIELD_WIDTH, SECTIONS_WIDTH = 200, 460, 168
NARROW = 760
"""Pixels of the page below which the list of sections gives its room to the fields."""
ABOUT = mark("What holds for every agent, unless a rule of its own says otherwise")
Control = QLineEdit | QComboBox | QCheckBox


class _Choice(QComboBox):
    """The wheel scrolls the page past it, as it would change a value that one only passes."""

    def wheelEvent(self, event: QWheelEvent) -> None:  # noqa: N802
        event.ignore()


class SettingsPage(Page):
    """A value that would be refused stays in its field with the reason below it, and is not written."""

    def __init__(self, context: PageContext) -> None:
        super().__init__()
        self._context, self._document = context, context.document
        self._controls: dict[Setting, Control] = {}
        self._switches: dict[str, QCheckBox] = {}
        self._faults: dict[Setting, Label] = {}
        self._effects: dict[Setting, Label] = {}
        self.band = ConfineBand(context.document, context.tasks, "settings.shell.confine")
        self.reading = ReadingRow(context)
        self.room_button = named(
            QPushButton(tr("What they can see...")), "settings.shell.room", spoken=tr("What shell commands can see")
        )
        tie_icon(self.room_button, "eye")
        self.room_button.clicked.connect(lambda: context.tasks.start(self._show_room(), "settings.room", replace=True))
        self._forms: dict[Setting, tuple[QFormLayout, QWidget]] = {}
        """Where the row of each setting stands."""
        self._parts: dict[str, tuple[QWidget, tuple[QWidget, ...]]] = {}
        """Each section, and what else stands in it."""
        self.search = named(SearchField(tr("Search settings")), "settings.search")
        self.search.setMinimumWidth(220)
        self.header = SectionHeader(tr("Settings"), tr(ABOUT))
        self.header.add_control(self.search)
        sections = [self._section_of(section) for section in SECTIONS]
        self.nothing = named(Label(tr("No setting has these words.")), "settings.nothing", kind="muted")
        self.nothing.hide()
        self.sections = named(QListWidget(), "settings.sections", spoken=tr("Sections"))
        self.sections.setItemDelegate(Delegate(self.sections))
        self.sections.setFixedWidth(SECTIONS_WIDTH)
        self.sections.setFrameShape(QListWidget.Shape.NoFrame)
        self.sections.addItems([tr(section.title) for section in SECTIONS])
        self.sections.setCurrentRow(0)
        self._is_led = False
        """The list of sections scrolls the fields; else it follows them."""
        self.area = area = QScrollArea()
        area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        area.setWidgetResizable(True)
        area.setFrameShape(QScrollArea.Shape.NoFrame)
        area.setWidget(holding(column_of(self.nothing, *sections, stretch(), space=4, margins=(2, 3))))
        column_of(self.header, stretch(row_of(self.sections, stretch(area), margins=(1, 0, 0, 0))), into=self)
        area.verticalScrollBar().valueChanged.connect(self._follow_scroll)
        self.sections.currentRowChanged.connect(self._show_section)
        self.search.search_changed.connect(self._narrow)
        self.search.results_requested.connect(self._go_to_first)
        self.search.leave_requested.connect(self._go_to_first)
        self._document.closed.connect(self._let_go)
        self._document.opened.connect(self._refresh)
        self._document.policy_changed.connect(self._refresh)
        self._refresh()

    def main_view(self) -> QWidget:
        """The first field that the search leaves."""
        return next((one for one in self._controls.values() if one.isVisibleTo(self)), self.search)

    def focus_search(self) -> None:
        """Go into the search."""
        self.search.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self.search.selectAll()

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802
        """The fields need the room more."""
        super().resizeEvent(event)
        self.sections.setVisible(self.width() >= NARROW)

    def _show_section(self, at: int) -> None:
        """Scroll to a section, which stays the chosen one though it may be too low to stand at the top."""
        self._is_led = True
        self.area.verticalScrollBar().setValue(self._parts[SECTIONS[at].key][0].y())
        self._is_led = False

    def _follow_scroll(self, value: int) -> None:
        """Choose the section that stands at the top."""
        bar, parts = self.area.verticalScrollBar(), [self._parts[section.key][0] for section in SECTIONS]
        top = value + self.area.height() // 8
        above = [at for at, part in enumerate(parts) if not part.isHidden() and part.y() <= top]
        if above and not self._is_led:
            with QSignalBlocker(self.sections):
                self.sections.setCurrentRow(above[-1] if value < bar.maximum() else len(parts) - 1)

    def _go_to_first(self) -> None:
        self.main_view().setFocus(Qt.FocusReason.OtherFocusReason)

    def _narrow(self, text: object) -> None:
        """Show only settings in which, with their section, all of these words are."""
        words, count = str(text).casefold().split(), 0
        for section in SECTIONS:
            part, others = self._parts[section.key]
            head = f"{tr(section.title)} {tr(section.about)}"
            found = 0
            for setting in section.settings:
                form, row = self._forms[setting]
                choices = " ".join(tr(choice) for choice, _ in setting.choices)
                whole = f"{head} {tr(setting.label)} {tr(setting.hint)} {choices} {setting.path[-1]}".casefold()
                is_meant = all(word in whole for word in words)
                form.setRowVisible(row, is_meant)
                found += is_meant
            for other in others:
                whole = f"{head} {other.accessibleName()}".casefold()
                other.setVisible(all(word in whole for word in words))
            part.setVisible(bool(found))
            self.sections.setRowHidden(SECTIONS.index(section), not found)
            count += found
        self.nothing.setVisible(not count)
        self.header.set_note(counted(count, "setting", "settings") if words else tr(ABOUT))

    # layout

    def _section_of(self, section: Section) -> QWidget:
        title = named(Label(tr(section.title)), kind="heading")
        head = row_of(title, stretch())
        if section.made_of is not None:
            switch = self._switches[section.key] = named(QCheckBox(tr("on")), f"settings.{section.key}.on")
            switch.setAccessibleName(tr(section.title))
            switch.toggled.connect(partial(self._switch, section))
            head = row_of(title, switch, stretch(), space=3)
        form = QFormLayout()
        form.setContentsMargins(0, 0, 0, 0)
        form.setHorizontalSpacing(current_look().tokens.space_3)
        form.setVerticalSpacing(current_look().tokens.space_1)
        form.setLabelAlignment(Qt.AlignmentFlag.AlignLeft)
        form.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)
        for setting in section.settings:
            control = self._controls[setting] = self._control_of(section, setting)
            fault = self._faults[setting] = named(Label(wraps=True), f"{control.objectName()}.said", kind="error")
            fault.hide()
            label = Label("" if isinstance(control, QCheckBox) else tr(setting.label))
            label.setBuddy(control)
            label.setToolTip(tr("In the policy file: {key}", key=setting.path[-1]))
            label.setMinimumWidth(LABEL_WIDTH)
            effect = self._effects[setting] = named(Label(wraps=True), f"{control.objectName()}.effect", kind="muted")
            more = (self.reading,) if setting.path[-1] == str(READ_ONLY) else ()
            parts = (stretch(control),) if isinstance(control, QCheckBox) else (stretch(control, 3), stretch(effect, 2))
            row = holding(column_of(row_of(*parts, space=3), fault, *more))
            self._forms[setting] = form, row
            form.addRow(label, row)
        about = named(Label(tr(section.about)), kind="muted")
        confined = (self.band, self.room_button) if section.key == "shell" else ()
        below = (self.band, row_of(self.room_button, stretch())) if section.key == "shell" else ()
        part = holding(column_of(head, about, form, *below, space=1))
        self._parts[section.key] = part, confined
        return part

    def _control_of(self, section: Section, setting: Setting) -> Control:
        name = f"settings.{section.key}.{setting.path[-1]}"
        write = partial(self._write, section, setting)
        match setting.kind:
            case "flag":
                box = named(QCheckBox(f"{tr(setting.label)}: {tr(setting.hint)}"), name)
                box.toggled.connect(write)
                return box
            case "choice":
                choice = named(_Choice(), name, spoken=tr(setting.label), tip=tr(setting.hint))
                for words, value in setting.choices:
                    choice.addItem(tr(words), value)
                choice.activated.connect(write)
                choice.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
                choice.setMaximumWidth(FIELD_WIDTH)
                return choice
            case "agents" | "commands":
                field: QLineEdit = WordsField(name, tr(setting.label), setting.empty_words)
            case _:
                field = named(QuietField(is_framed=True), name, spoken=tr(setting.label))
                field.setPlaceholderText(setting.empty_words)
        field.setMaximumWidth(FIELD_WIDTH)
        field.editingFinished.connect(write)
        return field

    # what is shown

    def _let_go(self) -> None:
        """Drop what was refused, and still stands in its field: it is of a workspace that is gone."""
        for setting in self._faults:
            self._say(setting, "")
        self._refresh()

    def _refresh(self, _changes: object = None) -> None:
        """The values of the policy as it is now, but for what was refused and still stands in its field."""
        policy = self._document.policy
        self.band.show_standing(None)
        self.band.setEnabled(self._document.is_open)
        self.room_button.setEnabled(self._document.is_open)
        self.reading.refresh()
        for section in SECTIONS:
            is_there = section.made_of is None or section.switch.value_in(policy) is not None
            if section.made_of is not None:
                switch = self._switches[section.key]
                is_begun = any(not self._faults[setting].isHidden() for setting in section.settings)
                if is_there or not is_begun:
                    with QSignalBlocker(switch):
                        switch.setChecked(is_there)
            for setting in section.settings:
                control = self._controls[setting]
                control.setEnabled(self._document.is_open and (is_there or self._switches[section.key].isChecked()))
                if self._faults[setting].isHidden():
                    self._show(setting, control, policy)
                self._effects[setting].setText(tr(setting.effect_in(policy)) if setting.effects else setting.help_words)
            for setting in section.settings:
                if isinstance(field := self._controls[setting], WordsField):
                    field.offer(COMMANDS if setting.kind == "commands" else policy.agents)

    @staticmethod
    def _show(setting: Setting, control: Control, policy: Policy) -> None:
        with QSignalBlocker(control):
            if isinstance(control, QCheckBox):
                control.setChecked(setting.value_in(policy) is True)
            elif isinstance(control, QComboBox):
                control.setCurrentIndex(control.findData(setting.value_in(policy)))
            elif (text := setting.text_in(policy)) != control.text():
                control.setText(text)

    def _say(self, setting: Setting, fault: str) -> None:
        self._faults[setting].setText(fault.replace("`", ""))
        self._faults[setting].setVisible(bool(fault))

    # what is done

    def _value_of(self, setting: Setting) -> object:
        control = self._controls[setting]
        if isinstance(control, QCheckBox):
            return control.isChecked()
        return control.currentData() if isinstance(control, QComboBox) else setting.read(control.text())

    def _write(self, section: Section, setting: Setting, *_value: object) -> None:
        """Write a value, or a whole section that has all it needs; say what is wrong, or ask whether to trust."""
        if not self._document.is_open:
            return
        policy, whole = self._document.policy, section.switch if section.made_of is not None else setting
        try:
            value = self._value_of(setting)
            if section.made_of is not None and whole.value_in(policy) is None:
                value = section.build({one: self._value_of(one) for one in section.settings})
                after = whole.put_into(policy, value)
            else:
                if setting.is_required and not value:
                    raise ValueError(setting.needed)
                after = setting.put_into(policy, value)
        except ValueError as error:
            self._say(setting, str(error))
            return
        if after == policy:
            self._say(setting, "")
            self._refresh()
            return
        if setting.field == "roots" and isinstance(value, str) and self._document.workspace.outside(value) is not None:
            self._context.tasks.start(self._trust(setting, value, after), "policy.trust", replace=True)
            return
        self._put(section, setting, after)

    def _put(self, section: Section, setting: Setting, after: Policy) -> None:
        field = setting.field
        value: object = getattr(after, field)
        found = verbs.field_faults(self._document, field, value)
        if found:
            self._say(setting, found[0][1])
            return
        for one in section.settings:
            self._say(one, "")
        verbs.set_field(self._document, field, value)

    async def _show_room(self) -> None:
        context = self._context
        await run_dialog(RoomDialog(self, self._document, context.tasks, context.sizes, context.selection.agent_id))

    async def _trust(self, setting: Setting, written: str, after: Policy) -> None:
        """A folder outside is used only once the operator trusted it."""
        workspace = self._document.workspace
        where = workspace.outside(written)
        text = tr(
            "{folder} lies outside the folder of the policy. Agents reach it only once you trust it.", folder=where
        )
        choices = (Choice("trust", tr("Trust this folder"), "primary"), Choice("no", tr("Cancel")))
        if await ask(self, tr("A folder outside the workspace"), text, choices) == "trust":
            try:
                workspace.trust_root(setting.path[-1], written)
            except GatewrightError as error:
                self._say(setting, str(error))
                return
        section = next(one for one in SECTIONS if setting in one.settings)
        self._put(section, setting, after)

    def _switch(self, section: Section, on: bool) -> None:
        """Off takes the whole away; on writes it as soon as it has what it needs."""
        if not on:
            for setting in section.settings:
                self._say(setting, "")
            if section.switch.value_in(self._document.policy) is not None:
                self._put(section, section.settings[0], section.switch.put_into(self._document.policy, None))
            self._refresh()
            return
        for setting in section.settings:
            self._controls[setting].setEnabled(True)
        needed = next((one for one in section.settings if one.is_required), None)
        if needed is None:
            self._write(section, section.settings[0])
        else:
            self._say(needed, needed.needed)
        self._controls[section.settings[0]].setFocus(Qt.FocusReason.OtherFocusReason)
