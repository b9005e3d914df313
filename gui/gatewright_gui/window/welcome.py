"""What the window shows while nothing is open: what the program is for, and four ways to begin."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QPushButton, QSizePolicy, QVBoxLayout, QWidget
from shiboken6 import isValid

from gatewright_gui.qt.language import mark, tr
from gatewright_gui.qt.layout import column_of, holding, named, row_of, stretch
from gatewright_gui.qt.look import current_look, tie_icon
from gatewright_gui.qt.plaintext import button_text
from gatewright_gui.qt.widget.label import Label

PURPOSE = mark("Decide what each agent may do with each tool")
MORE = mark(
    "Tick operations, see what the model will see, and try calls through the gate that will run them."
    " Nothing is started or connected before you say so."
)
WAYS: tuple[tuple[str, str, str, str], ...] = (
    ("new", "folder-plus", mark("New workspace"), mark("Choose a folder; secrets stay hidden; one agent to start")),
    ("import", "plug", mark("Import my MCP tools"), mark("From Claude, VS Code, Cursor, Windsurf, Zed, or a command")),
    ("open", "folder-open", mark("Open a policy"), mark("An existing policy.toml")),
    ("demo", "package", mark("Explore the demo"), mark("Four agents, a small archive, every built-in tool")),
)
_WIDTH = 600
_MOST_RECENT = 5


class Welcome(QWidget):
    """Every way is a button; the keys begin at the first."""

    way_chosen = Signal(object)
    """Key of a way: str."""
    recent_chosen = Signal(object)
    """A policy that was open before: Path."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        named(self, "window.welcome", spoken=tr("Welcome"))
        self.buttons = {key: self._button(key, icon, tr(title), tr(about)) for key, icon, title, about in WAYS}
        more = named(Label(tr(MORE), wraps=True), kind="muted")
        self._recent_title = named(Label(tr("Open again")), kind="heading")
        self._recent = QVBoxLayout()
        self._recent.setSpacing(0)
        ways = [
            row_of(self.buttons[key], stretch(named(Label(about), kind="muted")), space=3) for key, _, _, about in WAYS
        ]
        body = holding(
            column_of(named(Label(tr(PURPOSE)), kind="title"), more, *ways, self._recent_title, self._recent, space=3)
        )
        self._body = body
        self._focus: QWidget | None = None
        self._opening = named(Label(), "welcome.opening", kind="muted")
        self._opening.hide()
        body.setMaximumWidth(_WIDTH + 2 * current_look().tokens.space_4)
        body.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Maximum)
        column_of(
            stretch(factor=2),
            row_of(stretch(), stretch(body, 8), stretch()),
            row_of(stretch(), self._opening, stretch()),
            stretch(factor=3),
            into=self,
            margins=4,
        )
        self.show_recent(())

    def _button(self, key: str, icon: str, title: str, about: str) -> QPushButton:
        kind = "primary" if key == WAYS[0][0] else ""
        button = named(QPushButton(title), f"welcome.{key}", spoken=title, kind=kind)
        button.setAccessibleDescription(about)
        button.setFixedWidth(190)
        button.setMinimumHeight(32)
        tie_icon(button, icon, "on_accent" if kind else "text")
        button.clicked.connect(partial(self._choose, key))
        return button

    def _choose(self, key: str, _checked: bool = False) -> None:
        self.way_chosen.emit(key)

    def set_opening(self, name: str) -> None:
        """A workspace is being opened: say which, and offer nothing else meanwhile; "": none is."""
        self._opening.setText(tr("Opening {name}...", name=button_text(name)) if name else "")
        self._opening.setVisible(bool(name))
        held = [one for one in self._body.findChildren(QPushButton) if one.hasFocus()]
        self._focus = next(iter(held), self._focus or self.buttons["new"]) if name else self._focus
        self._body.setEnabled(not name)
        if not name and self._focus is not None:
            if isValid(self._focus) and self.isVisibleTo(self.window()):
                self._focus.setFocus(Qt.FocusReason.OtherFocusReason)
            self._focus = None

    def show_recent(self, paths: Sequence[Path]) -> None:
        """Offer what was open before, the latest first."""
        while (item := self._recent.takeAt(0)) is not None:
            if (widget := item.widget()) is not None:
                widget.deleteLater()
        self._recent_title.setVisible(bool(paths))
        for path in paths[:_MOST_RECENT]:
            button = named(QPushButton(button_text(str(path))), kind="link")
            button.clicked.connect(partial(self._choose_recent, path))
            self._recent.addWidget(button, 0, Qt.AlignmentFlag.AlignLeft)

    def _choose_recent(self, path: Path, _checked: bool = False) -> None:
        self.recent_chosen.emit(path)
