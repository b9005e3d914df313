"""The window's actions as rows of data, and what they need of a window. It draws no menu and knows no page."""

from collections.abc import Callable
from functools import partial
from typing import Protocol

from PySide6.QtCore import Qt
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QWidget

from gatewright.workspace.api import frozen
from gatewright_gui.qt.language import key_names, mark, tr
from gatewright_gui.qt.look import tie_icon
from gatewright_gui.qt.plaintext import button_text, tip_text
from gatewright_gui.session.document import Document
from gatewright_gui.session.exporting import ExportKind


class Frame(Protocol):
    """The requests that an action may make of the window."""

    def ask_new(self) -> None:
        """Ask what a new workspace begins with, make it and open it."""
        ...

    def ask_import(self) -> None:
        """Take in the servers of a client."""
        ...

    def ask_client(self) -> None:
        """Put the gateway into the configuration of a client."""
        ...

    def ask_open(self) -> None:
        """Let a policy file be chosen and open it."""
        ...

    def ask_publish(self, kind: ExportKind = "policy") -> None:
        """Show the ways to publish the policy."""
        ...

    def save(self) -> None:
        """Save the policy."""
        ...

    def ask_save_as(self) -> None:
        """Let another place be chosen, save there and go on there."""
        ...

    def reload(self) -> None:
        """Read the policy file again."""
        ...

    def new_window(self) -> None:
        """Open another policy file in a window of its own."""
        ...

    def open_demo(self) -> None:
        """Open the user's copy of the demo."""
        ...

    def undo(self) -> None:
        """Take the last edit back."""
        ...

    def redo(self) -> None:
        """Do it again."""
        ...

    def search(self) -> None:
        """Go to where the page is searched."""
        ...

    def open_palette(self) -> None:
        """Search everything, or run a command."""
        ...

    def show_keys(self) -> None:
        """List the keys, those of the page first."""
        ...

    def copy_diagnostics(self) -> None:
        """Copy what somebody who reports a fault should send along."""
        ...

    def show_import(self) -> None:
        """Say how tools of other programs come in."""
        ...

    def show_preferences(self) -> None:
        """Show how one likes the app."""
        ...

    def resize_text(self, step: int) -> None:
        """Make texts a step larger or smaller; 0: the normal size."""
        ...

    def switch_theme(self) -> None:
        """From light to dark and back."""
        ...

    def stop_agents(self) -> None:
        """Stop all agents at once, or let them go on."""
        ...

    def close(self) -> bool:
        """Close the window; unsaved changes are asked about."""
        ...


def _always(_document: Document) -> bool:
    return True


@frozen
class ActionRow:
    """One action: `key` is its object name too, `run` what it does, `enabled` when it can."""

    key: str
    text: str
    icon: str
    keys: str
    run: Callable[[Frame], object]
    enabled: Callable[[Document], bool] = _always


ACTIONS = (
    ActionRow(
        "new", mark("New workspace..."), "folder-plus", "", lambda frame: frame.ask_new(), lambda d: not d.is_busy
    ),
    ActionRow(
        "import",
        mark("Import MCP servers..."),
        "plug",
        "",
        lambda frame: frame.ask_import(),
        lambda d: not d.is_busy,
    ),
    ActionRow(
        "connect", mark("Connect a client..."), "send", "", lambda frame: frame.ask_client(), lambda d: d.is_open
    ),
    ActionRow(
        "open", mark("Open..."), "folder-open", "Ctrl+O", lambda frame: frame.ask_open(), lambda d: not d.is_busy
    ),
    ActionRow("window", mark("New window..."), "external-link", "Ctrl+Shift+N", lambda frame: frame.new_window()),
    ActionRow("demo", mark("Open the demo"), "package", "", lambda frame: frame.open_demo(), lambda d: not d.is_busy),
    ActionRow(
        "reload",
        mark("Reload from disk"),
        "refresh-cw",
        "Ctrl+R",
        lambda frame: frame.reload(),
        lambda d: d.path is not None,
    ),
    ActionRow("save", mark("Save"), "save", "Ctrl+S", lambda frame: frame.save(), lambda d: d.is_dirty),
    ActionRow(
        "save_as", mark("Save as..."), "save", "Ctrl+Shift+S", lambda frame: frame.ask_save_as(), lambda d: d.is_open
    ),
    ActionRow(
        "publish", mark("Publish..."), "upload", "Ctrl+Shift+X", lambda frame: frame.ask_publish(), lambda d: d.is_open
    ),
    ActionRow(
        "team",
        mark("Publish for a team, with a README and a starter..."),
        "upload",
        "",
        lambda frame: frame.ask_publish("team"),
        lambda d: d.is_open,
    ),
    ActionRow(
        "pattern",
        mark("Publish for Pattern, one file per agent..."),
        "upload",
        "",
        lambda frame: frame.ask_publish("pattern"),
        lambda d: d.is_open,
    ),
    ActionRow("undo", mark("Undo"), "undo", "Ctrl+Z", lambda frame: frame.undo(), lambda d: d.undo_stack.canUndo()),
    ActionRow(
        "redo", mark("Redo"), "redo", "Ctrl+Shift+Z", lambda frame: frame.redo(), lambda d: d.undo_stack.canRedo()
    ),
    ActionRow(
        "stop",
        mark("Stop all agents"),
        "circle-stop",
        "Ctrl+Shift+.",
        lambda frame: frame.stop_agents(),
        lambda d: d.is_open,
    ),
    ActionRow("find", mark("Find"), "search", "Ctrl+F", lambda frame: frame.search()),
    ActionRow("palette", mark("Search or run a command"), "command", "Ctrl+K", lambda frame: frame.open_palette()),
    ActionRow("help", mark("Help: keys and shortcuts"), "circle-help", "F1", lambda frame: frame.show_keys()),
    ActionRow("diagnostics", mark("Copy diagnostics"), "copy", "", lambda frame: frame.copy_diagnostics()),
    ActionRow(
        "manifest",
        mark("How to import tools of another program (catalog, manifest)"),
        "plug",
        "",
        lambda frame: frame.show_import(),
    ),
    ActionRow("preferences", mark("Preferences..."), "settings", "Ctrl+,", lambda frame: frame.show_preferences()),
    ActionRow("larger", mark("Larger text"), "plus", "Ctrl+=", lambda frame: frame.resize_text(1)),
    ActionRow("smaller", mark("Smaller text"), "minus", "Ctrl+-", lambda frame: frame.resize_text(-1)),
    ActionRow("usual_size", mark("Text of normal size"), "rotate-ccw", "Ctrl+0", lambda frame: frame.resize_text(0)),
    ActionRow("theme", mark("Switch light and dark"), "sun-moon", "", lambda frame: frame.switch_theme()),
    ActionRow("quit", mark("Quit"), "x", "Ctrl+Q", lambda frame: frame.close()),
)


def make_actions(window: QWidget, frame: Frame) -> dict[str, QAction]:
    """Every row as an action of the window, by key."""
    made: dict[str, QAction] = {}
    for row in ACTIONS:
        text = tr(row.text)
        action = QAction(text, window)
        action.setObjectName(f"action.{row.key}")
        action.setIconText(f" {text.rstrip('.')}")  # the style leaves no gap behind the icon of a button
        action.setToolTip(tip_of(text, key_names(row.keys)))
        action.setShortcutContext(Qt.ShortcutContext.WindowShortcut)
        if row.keys:
            action.setShortcut(QKeySequence(row.keys))
        tie_icon(action, row.icon)
        action.triggered.connect(partial(_run, row, frame))
        window.addAction(action)
        made[row.key] = action
    return made


def _run(row: ActionRow, frame: Frame, _checked: bool = False) -> None:
    row.run(frame)


def refresh_actions(actions: dict[str, QAction], document: Document) -> None:
    """Switch actions on and off, and name what undo and redo would do."""
    for row in ACTIONS:
        actions[row.key].setEnabled(row.enabled(document))
    stack = document.undo_stack
    for key, word, what, keys in (
        ("undo", tr("Undo"), stack.undoText(), "Ctrl+Z"),
        ("redo", tr("Redo"), stack.redoText(), "Ctrl+Shift+Z"),
    ):
        text = f"{word} {what}" if what else word
        actions[key].setText(button_text(text))
        actions[key].setToolTip(tip_text(tip_of(text, key_names(keys))))


def tip_of(text: str, keys: str) -> str:
    """Words with the keys behind."""
    return f"{text.rstrip('.')} ({keys})" if keys else text.rstrip(".")
