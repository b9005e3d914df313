"""How one likes the app, in one dialog: what is chosen counts at once, here and where else it can be chosen."""

from collections.abc import Callable

from PySide6.QtCore import QLocale, Qt
from PySide6.QtWidgets import QCheckBox, QComboBox, QDialog, QPushButton, QWidget

from gatewright_gui.qt.language import mark, tr
from gatewright_gui.qt.layout import Gap, column_of, named, row_of, stretch
from gatewright_gui.qt.widget.label import Label
from gatewright_gui.settings import Preferences, TextSize
from gatewright_gui.theme import ThemeChoice
from gatewright_resources import access

_THEMES: tuple[tuple[ThemeChoice, str], ...] = (
    ("system", mark("As the system")),
    ("light", mark("Light")),
    ("dark", mark("Dark")),
)
_SIZES: tuple[tuple[TextSize, str], ...] = (
    ("normal", mark("Normal")),
    ("large", mark("Large")),
    ("largest", mark("Largest")),
)
_WIDTH, _FIELD = 480, 180
_WAIT = mark(
    "How long a call waits is up to the program that makes it: 45 s, or what it was started with "
    "(gatewright serve --wait 10m)."
)


class PreferencesDialog(QDialog):
    """`choose_theme` puts a theme on and keeps it. Escape closes; there is nothing to confirm."""

    def __init__(
        self, preferences: Preferences, choose_theme: Callable[[ThemeChoice], None], parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        named(self, "preferences", spoken=tr("Preferences")).setWindowTitle(tr("Preferences"))
        self._preferences, self._choose_theme = preferences, choose_theme
        self.theme = named(QComboBox(), "preferences.theme", spoken=tr("Theme"))
        for choice, words in _THEMES:
            self.theme.addItem(tr(words), choice)
        self.text_size = named(QComboBox(), "preferences.text_size", spoken=tr("Size of text"))
        for size, words in _SIZES:
            self.text_size.addItem(tr(words), size)
        self.language = named(QComboBox(), "preferences.language", spoken=tr("Language"))
        self.language.addItem(tr("As the system"), "")
        for code in ("en", *access.languages()):
            self.language.addItem(QLocale(code).nativeLanguageName(), code)
        for field in (self.theme, self.text_size, self.language):
            field.setFixedWidth(_FIELD)
        self.notify = named(QCheckBox(tr("&Desktop message when a call begins to wait")), "preferences.notify")
        self.only_gains = named(QCheckBox(tr("&Only where somebody may do more afterwards")), "preferences.only_gains")
        self.wrap_preview = named(QCheckBox(tr("In the &preview")), "preferences.wrap.preview")
        self.wrap_toml = named(QCheckBox(tr("In the policy &file")), "preferences.wrap.toml")
        self.close_button = named(QPushButton(tr("Close")), "preferences.close")
        self._lay_out()
        self._follow()
        preferences.changed.connect(self._follow)
        self.theme.activated.connect(self._keep_theme)
        self.text_size.activated.connect(self._keep_text_size)
        self.language.activated.connect(self._keep_language)
        self.notify.clicked.connect(self._keep_notify)
        self.only_gains.clicked.connect(self._keep_only_gains)
        self.wrap_preview.clicked.connect(self._keep_wrap_preview)
        self.wrap_toml.clicked.connect(self._keep_wrap_toml)
        self.close_button.clicked.connect(self.close)

    def show_dialog(self) -> None:
        """Show it, or bring it to the front."""
        self.show()
        self.raise_()
        self.activateWindow()
        self.theme.setFocus(Qt.FocusReason.PopupFocusReason)

    def _lay_out(self) -> None:
        wait = named(Label(tr(_WAIT), wraps=True), kind="muted")
        self.close_button.setAutoDefault(False)
        column_of(
            row_of(Label(tr("Theme")), stretch(), self.theme),
            row_of(Label(tr("Size of text")), stretch(), self.text_size),
            named(Label(tr("Also with Ctrl+= and Ctrl+-; Ctrl+0 is the normal size.")), kind="muted"),
            row_of(Label(tr("Language")), stretch(), self.language),
            named(Label(tr("The language changes when Gatewright is started again.")), kind="muted"),
            Gap(3),
            named(Label(tr("Calls that wait for an answer")), kind="heading"),
            self.notify,
            wait,
            Gap(3),
            named(Label(tr("Saving shows what changes for the agents")), kind="heading"),
            self.only_gains,
            Gap(3),
            named(Label(tr("Wrap long lines")), kind="heading"),
            self.wrap_preview,
            self.wrap_toml,
            stretch(),
            row_of(stretch(), self.close_button),
            into=self,
            space=2,
            margins=4,
        )
        self.setFixedWidth(_WIDTH)

    def _follow(self) -> None:
        kept = self._preferences
        self.theme.setCurrentIndex(self.theme.findData(kept.theme))
        self.text_size.setCurrentIndex(self.text_size.findData(kept.text_size))
        self.language.setCurrentIndex(self.language.findData(kept.language))
        self.notify.setChecked(kept.notifies)
        self.only_gains.setChecked(kept.reviews_gains_only)
        self.wrap_preview.setChecked(kept.wraps_lines("preview"))
        self.wrap_toml.setChecked(kept.wraps_lines("toml"))

    def _keep_theme(self, _row: int) -> None:
        self._choose_theme(self.theme.currentData())

    def _keep_text_size(self, _row: int) -> None:
        self._preferences.text_size = self.text_size.currentData()

    def _keep_language(self, _row: int) -> None:
        self._preferences.language = self.language.currentData()

    def _keep_notify(self, on: bool) -> None:
        self._preferences.notifies = on

    def _keep_only_gains(self, on: bool) -> None:
        self._preferences.reviews_gains_only = on

    def _keep_wrap_preview(self, on: bool) -> None:
        self._preferences.set_wraps_lines("preview", on)

    def _keep_wrap_toml(self, on: bool) -> None:
        self._preferences.set_wraps_lines("toml", on)
