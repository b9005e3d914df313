"""The providers as tabs: one of them is the format of the preview, and each says how it takes what is shown."""

from functools import partial

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QGridLayout, QSizePolicy, QToolButton, QWidget

from gatewright_gui.pages.access.preview.lint_pane import LEVEL_LOOKS, LEVEL_TIPS
from gatewright_gui.qt.language import tr
from gatewright_gui.qt.layout import named
from gatewright_gui.qt.look import current_look, tie_icon
from gatewright_gui.qt.plaintext import tip_text
from gatewright_gui.session.preview import PROVIDER_WORDS, ProviderState, Reception

FORMAT_WORDS = {**PROVIDER_WORDS, "openai": "OpenAI (chat)", "openai-responses": "OpenAI (responses)"}
_ICON = 12


class ProviderTabs(QWidget):
    """In one row, or in two where the pane is narrow; Left and Right go to the neighbour."""

    provider_chosen = Signal(object)
    """Name of a format: str."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        named(self, "preview.providers", spoken=tr("Format, and how each provider takes the tools"))
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setSpacing(0)
        self._columns = 0
        self.current = next(iter(PROVIDER_WORDS))
        self.buttons = {name: self._made(name) for name in PROVIDER_WORDS}
        self.show_reception(None)
        self._arrange()
        self.choose(self.current)

    def _made(self, name: str) -> QToolButton:
        button = named(QToolButton(), f"preview.provider.{name}", kind="tab")
        button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        button.setText(PROVIDER_WORDS[name])
        button.setFont(current_look().small_font)
        button.setIconSize(QSize(_ICON, _ICON))
        button.setCheckable(True)
        button.setAutoExclusive(True)
        button.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        button.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        button.clicked.connect(partial(self._clicked, name))
        return button

    def _arrange(self) -> None:
        widths = [button.sizeHint().width() for button in self.buttons.values()]
        count = len(widths)
        columns = count if self.width() >= sum(widths) else (count + 1) // 2
        if columns == self._columns:
            return
        self._columns = columns
        for place, button in enumerate(self.buttons.values()):
            self._grid.addWidget(button, place // columns, place % columns)
        for column in range(count):
            stretch = max(widths[column::columns]) if column < columns else 0
            self._grid.setColumnStretch(column, stretch)

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802
        """One row or two."""
        super().resizeEvent(event)
        self._arrange()

    def _clicked(self, name: str, _down: bool = False) -> None:
        self.choose(name)

    def choose(self, name: str) -> None:
        """Make a format the chosen one; says so when it is another."""
        self.buttons[name].setChecked(True)
        if name != self.current:
            self.current = name
            self.provider_chosen.emit(name)

    def show_reception(self, found: Reception | None) -> None:
        """Say how each provider takes what is shown; None: they are being asked."""
        states = {state.provider: state for state in found.states} if found is not None else {}
        for name in self.buttons:
            self._show_state(name, states.get(name), is_known=found is not None)

    def _show_state(self, name: str, state: ProviderState | None, *, is_known: bool) -> None:
        button, words = self.buttons[name], FORMAT_WORDS[name]
        if state is None:
            tie_icon(button, "minus" if is_known else "clock", "muted")
            said, why = (tr("nothing is sent"), "") if is_known else ("...", tr("not known yet"))
        else:
            icon, role = LEVEL_LOOKS[state.level] if state.level else ("circle-check", "allow")
            tie_icon(button, icon, role)
            said, why = (
                state.words,
                tr(LEVEL_TIPS[state.level]) if state.level else tr("the provider takes it as it is"),
            )
        button.setAccessibleName(f"{words}: {said}")
        button.setToolTip(tip_text(", ".join(part for part in (f"{words}: {said}", why) if part)))
