"""One button for every provider: whether it takes what is shown as it is. A click chooses its format."""

from functools import partial

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import QGridLayout, QSizePolicy, QToolButton, QWidget

from gatewright_gui.pages.preview.lint_pane import LEVEL_LOOKS, LEVEL_TIPS
from gatewright_gui.qt.look import current_look, tie_icon
from gatewright_gui.qt.plaintext import tip_text
from gatewright_gui.session.lints import PROVIDER_WORDS, ProviderState
from gatewright_gui.session.preview import Reception

COLUMNS = 2


class ProviderStrip(QWidget):
    """Lines up in columns; the chosen format is the one that is down."""

    provider_chosen = Signal(object)
    """Name of a format: str."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("preview.providers")
        self.setAccessibleName("How each provider takes the tools")
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setSpacing(2)
        self.buttons: dict[str, QToolButton] = {}
        for place, name in enumerate(PROVIDER_WORDS):
            self._add(place, name)
        for column in range(COLUMNS):
            self._grid.setColumnStretch(column, 1)

    def _add(self, place: int, name: str) -> None:
        button = QToolButton()
        button.setObjectName(f"preview.provider.{name}")
        button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        button.setFont(current_look().small_font)
        button.setIconSize(QSize(12, 12))
        button.setCheckable(True)
        button.setProperty("kind", "small")
        button.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        button.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        button.clicked.connect(partial(self._clicked, name))
        self.buttons[name] = button
        self._grid.addWidget(button, place // COLUMNS, place % COLUMNS)
        self.show_state(ProviderState(name, None, 0), known=False)

    def _clicked(self, name: str, _down: bool = False) -> None:
        self.buttons[name].setChecked(True)
        self.provider_chosen.emit(name)

    def choose(self, name: str) -> None:
        """Press the button of a format."""
        for key, button in self.buttons.items():
            button.setChecked(key == name)

    def show_reception(self, found: Reception | None) -> None:
        """Say how each provider takes what is shown; None: they are being asked."""
        states = found.states if found is not None else [ProviderState(name, None, 0) for name in self.buttons]
        for state in states:
            self.show_state(state, known=found is not None)

    def show_state(self, state: ProviderState, *, known: bool) -> None:
        """Say it of one provider; `known` False: it is being asked."""
        button, words = self.buttons.get(state.provider), PROVIDER_WORDS.get(state.provider, state.provider)
        if button is None:
            return
        icon, role = LEVEL_LOOKS[state.level] if state.level else ("circle-check", "allow")
        tie_icon(button, icon if known else "clock", role if known else "muted")
        said = state.words if known else "..."
        button.setText(f"{words} {said}")
        button.setAccessibleName(f"{words}: {said}")
        why = LEVEL_TIPS[state.level] if state.level else "the provider takes it as it is"
        button.setToolTip(tip_text(f"{words}: {said}, {why}") if known else f"{words}: not known yet")
