"""The views of the preview and the choices of each: their words, and the menus that they are chosen in."""

from collections.abc import Mapping, Sequence
from functools import partial

from PySide6.QtCore import QObject, QSize, Qt, Signal
from PySide6.QtGui import QAction, QActionGroup
from PySide6.QtWidgets import QMenu, QSizePolicy, QToolButton, QWidget

from gatewright_gui.pages.access.preview.lint_pane import LEVEL_LOOKS, LEVEL_TIPS
from gatewright_gui.qt.language import mark, tr
from gatewright_gui.qt.layout import named, row_of
from gatewright_gui.qt.look import tie_icon
from gatewright_gui.qt.menu import add_heading
from gatewright_gui.qt.plaintext import button_text, label_text, line_text, tip_text
from gatewright_gui.qt.widget.button import ChoiceStore
from gatewright_gui.session.preview import PROVIDER_WORDS, Base, Counts, Preview, ProviderState, Reception

PARTS = (
    ("schema", mark("Schema"), mark("The tools as the model is given them")),
    ("rules", mark("Rules"), mark("The usage rules: the text on the tools for the system prompt")),
    ("tokens", mark("Tokens"), mark("What every tool costs, and what the limits save")),
    (
        "difference",
        mark("Difference"),
        mark("What limits take away and change, and what was edited since the last save"),
    ),
    (
        "context",
        mark("Context"),
        mark("What its host puts into the prompt from its memory: core blocks, then pinned ones"),
    ),
)
SCOPES = (
    ("tool", mark("This tool"), mark("Only the tool of the current row")),
    ("agent", mark("All tools"), mark("Every tool of the agent")),
)
FORMS = (
    ("json", "JSON", mark("Letter by letter as the model is sent it")),
    (
        "readable",
        mark("Readable"),
        mark("With real line breaks, operations and arguments as rows, and what the model is not sent"),
    ),
)
BASES = (
    ("unrestricted", mark("Unrestricted"), mark("Against what the model would see if nothing were limited")),
    ("saved", mark("Last save"), mark("Against what the model sees by the policy as it was last saved")),
)
COPY_NAMES = {
    "schema": mark("Copy the schema"),
    "rules": mark("Copy the usage rules"),
    "difference": mark("Copy the difference"),
    "context": mark("Copy the context"),
}
COPY_KEYS = "Ctrl+Shift+C"
NO_AGENT = mark("Choose an agent at the left, or add one.")
NOTHING_CHANGED: Mapping[Base, str] = {
    "unrestricted": mark("Nothing is taken away: the model sees all of it."),
    "saved": mark("The model sees what it saw at the last save."),
}
COUNTING = mark("counting the tokens…")


def sentence(note: str) -> str:
    """A note as a sentence, without code marks."""
    plain = note.replace("`", "")
    return f"{plain[:1].upper()}{plain[1:]}." if plain else ""


def host_texts(shown: Preview, part: str) -> tuple[str, str]:
    """Texts on what models of coding agents really get of this: where it differs, and where not; empty for none."""
    whole, narrowing = ", ".join(shown.whole), ", ".join(shown.narrowing)
    if part == "rules" and (whole or narrowing):
        agents = ", ".join((*shown.whole, *shown.narrowing))
        return tr("Models in {agents} do not get these rules: write them into its own instructions.", agents=agents), ""
    if part not in {"schema", "difference"}:
        return "", ""
    said = tr(
        "Models in {agents} see its tools whole, off or not: the gate refuses calls of what is off.", agents=whole
    )
    told = tr("Models in {agents} see just this, and of a tool that is off its name alone.", agents=narrowing)
    return said if whole else "", told if narrowing else ""


def counts_text(counts: Counts) -> str:
    """The share of the catalog that the model sees."""
    seen = tr(
        "The model sees {tools:,} of {all_tools:,} tools, {operations:,} of {all_operations:,} operations",
        tools=counts.shown_tools,
        all_tools=counts.all_tools,
        operations=counts.shown_operations,
        all_operations=counts.all_operations,
    )
    if not counts.observed:
        return seen
    names = label_text(", ".join(counts.observed), 400)
    return tr("Enforcing would hide {names}. {seen}", names=names, seen=seen)


class MenuChoice(QObject):
    """Rows of a menu, one of which is ticked."""

    current_changed = Signal(object)
    """Key of the row that was chosen: str."""

    def __init__(self, menu: QMenu, name: str, heading: str, rows: Sequence[tuple[str, str, str]]) -> None:
        super().__init__(menu)
        group = QActionGroup(self)
        self.actions = {"": add_heading(menu, heading)}
        for key, text, tip in rows:
            action = self.actions[key] = menu.addAction(button_text(tr(text)))
            action.setObjectName(f"{name}.{key}")
            action.setToolTip(tr(tip))
            action.setCheckable(True)
            action.setChecked(key == rows[0][0])
            action.toggled.connect(partial(self._take_choice, key))
            group.addAction(action)

    def keep(self, name: str, store: ChoiceStore) -> None:
        """Begin with the row that was chosen last, and keep what is chosen from now on."""
        kept = store.choice(name)
        if kept in self.actions:
            self.set_current(kept)
        self.current_changed.connect(partial(store.set_choice, name))

    def _take_choice(self, key: str, on: bool) -> None:
        if on:
            self.current_changed.emit(key)

    @property
    def current(self) -> str:
        """Key of the chosen row."""
        return next(key for key, action in self.actions.items() if action.isChecked())

    def set_current(self, key: str) -> None:
        """Choose a row. Raises KeyError for an unknown one."""
        self.actions[key].setChecked(True)

    def set_usable(self, usable: bool) -> None:
        """Let it be chosen or not."""
        for key, action in self.actions.items():
            action.setEnabled(usable and bool(key))


def menu_button(name: str, spoken: str, menu: QMenu) -> QToolButton:
    """A button that opens a menu, also by the keys."""
    button = named(QToolButton(), name, spoken=spoken, tip=spoken)
    button.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
    button.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
    menu.setToolTipsVisible(True)
    button.setMenu(menu)
    return button


FORMAT_WORDS = {**PROVIDER_WORDS, "openai": "OpenAI (chat)", "openai-responses": "OpenAI (responses)"}


_WIDEST = 64
"""Pixels of the name of a format on its button: the controls stay in one line."""


class FormatChoice(QWidget):
    """The provider in whose format the tools are shown; its menu says in words how each of them takes the tools."""

    provider_chosen = Signal(object)
    """Name of a format: str."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.menu = QMenu(self)
        self.button = menu_button("preview.format", tr("Format"), self.menu)
        self.button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.button.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        rows = tuple((name, words, "") for name, words in FORMAT_WORDS.items())
        self._choice = MenuChoice(self.menu, "preview.provider", tr("Format, and how each provider takes it"), rows)
        self.states = dict[str, str]()
        """By provider how it takes what is shown, in words."""
        self._choice.current_changed.connect(self._choose)
        row_of(self.button, into=named(self, "preview.providers", spoken=tr("Format")))
        self.show_reception(None)

    @property
    def current(self) -> str:
        """Name of the chosen format."""
        return self._choice.current

    def action(self, name: str) -> QAction:
        """The row of a provider."""
        return self._choice.actions[name]

    def choose(self, name: str) -> None:
        """Make a format the chosen one; says so when it is another."""
        self._choice.set_current(name)

    def _choose(self, name: object) -> None:
        self._name_button()
        self.provider_chosen.emit(name)

    def show_reception(self, found: Reception | None) -> None:
        """Say how each provider takes what is shown; None: they are being asked."""
        states = {state.provider: state for state in found.states} if found is not None else {}
        for name in FORMAT_WORDS:
            self._show_state(name, states.get(name), is_known=found is not None)
        self._name_button()

    def _show_state(self, name: str, state: ProviderState | None, *, is_known: bool) -> None:
        action, words = self.action(name), FORMAT_WORDS[name]
        if state is None:
            tie_icon(action, "minus" if is_known else "clock", "muted")
            said, why = (tr("nothing is sent"), "") if is_known else ("...", tr("not known yet"))
        else:
            icon, role = LEVEL_LOOKS[state.level] if state.level else ("circle-check", "allow")
            tie_icon(action, icon, role)
            fine = tr("the provider takes it as it is")
            said, why = state.words, tr(LEVEL_TIPS[state.level]) if state.level else fine
        self.states[name] = said
        action.setText(f"{words}\t{said}")
        action.setToolTip(tip_text(", ".join(part for part in (f"{words}: {said}", why) if part)))

    def _name_button(self) -> None:
        name = self.current
        for one in FORMAT_WORDS:  # an icon takes the place of a tick
            font = self.action(one).font()
            font.setBold(one == name)
            self.action(one).setFont(font)
        words = line_text(self.button.fontMetrics(), PROVIDER_WORDS[name], _WIDEST)
        self.button.setText(f"{words} ")
        self.button.setIcon(self.action(name).icon())
        self.button.setIconSize(QSize(12, 12))
        named(self.button, spoken=tr("Format {format}", format=f"{FORMAT_WORDS[name]}: {self.states[name]}"))
        self.button.setToolTip(self.action(name).toolTip())
