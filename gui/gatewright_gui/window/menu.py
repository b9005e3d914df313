"""The workspace menu: actions, recent workspaces, pages."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from PySide6.QtGui import QAction
from PySide6.QtWidgets import QMenu

from gatewright_gui.qt.language import tr
from gatewright_gui.qt.plaintext import button_text


def fill_menu(
    menu: QMenu,
    actions: Mapping[str, QAction],
    *,
    recent: Sequence[Path],
    open_path: Callable[[Path], None],
) -> None:
    """Put the rows in anew, as things stand now."""
    menu.clear()
    menu.addActions([actions["new"], actions["open"]])
    before = menu.addMenu(tr("Open recent"))
    before.setEnabled(bool(recent))
    for path in recent:
        before.addAction(button_text(str(path))).triggered.connect(lambda _=False, chosen=path: open_path(chosen))
    menu.addActions([actions["window"], actions["demo"], actions["reload"]])
    menu.addSeparator()
    menu.addActions([actions["save"], actions["save_as"], actions["publish"]])
    menu.addActions([actions["team"], actions["pattern"]])
    menu.addActions([actions["connect"], actions["import"], actions["manifest"]])
    menu.addSeparator()
    menu.addActions([actions["undo"], actions["redo"], actions["find"], actions["palette"]])
    menu.addSeparator()
    menu.addAction(actions["stop"])
    menu.addMenu(tr("Go to")).addActions([action for key, action in actions.items() if key.startswith("page.")])
    menu.addAction(actions["preferences"])
    menu.addSeparator()
    menu.addActions([actions["help"], actions["diagnostics"], actions["quit"]])
