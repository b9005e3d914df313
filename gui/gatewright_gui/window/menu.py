"""The workspace menu: actions, recent workspaces, pages, themes."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from PySide6.QtGui import QAction, QActionGroup
from PySide6.QtWidgets import QMenu

from gatewright_gui.qt.plaintext import button_text
from gatewright_gui.theme import ThemeChoice

THEMES: tuple[tuple[ThemeChoice, str], ...] = (("system", "As the system"), ("light", "Light"), ("dark", "Dark"))


def fill_menu(
    menu: QMenu,
    actions: Mapping[str, QAction],
    *,
    recent: Sequence[Path],
    open_path: Callable[[Path], None],
    theme: ThemeChoice,
    choose_theme: Callable[[ThemeChoice], None],
) -> None:
    """Put the rows in anew, as things stand now."""
    menu.clear()
    menu.addActions([actions["new"], actions["open"]])
    _add_recent(menu.addMenu("Open recent"), recent, open_path)
    menu.addActions([actions["window"], actions["demo"], actions["reload"]])
    menu.addSeparator()
    menu.addActions([actions["save"], actions["save_as"], actions["export"], actions["pattern"]])
    menu.addActions([actions["import"], actions["manifest"]])
    menu.addSeparator()
    menu.addActions([actions["undo"], actions["redo"], actions["find"], actions["palette"]])
    menu.addSeparator()
    menu.addMenu("Go to").addActions([action for key, action in actions.items() if key.startswith("page.")])
    _add_themes(menu.addMenu("Theme"), theme, choose_theme)
    menu.addSeparator()
    menu.addActions([actions["help"], actions["diagnostics"], actions["quit"]])


def _add_recent(menu: QMenu, recent: Sequence[Path], open_path: Callable[[Path], None]) -> None:
    menu.setEnabled(bool(recent))
    for path in recent:
        menu.addAction(button_text(str(path))).triggered.connect(lambda _=False, chosen=path: open_path(chosen))


def _add_themes(menu: QMenu, theme: ThemeChoice, choose_theme: Callable[[ThemeChoice], None]) -> None:
    group = QActionGroup(menu)
    for choice, text in THEMES:
        action = menu.addAction(text)
        action.setCheckable(True)
        action.setChecked(theme == choice)
        action.triggered.connect(partial(_chosen, choose_theme, choice))
        group.addAction(action)


def _chosen(choose_theme: Callable[[ThemeChoice], None], choice: ThemeChoice, _checked: bool = False) -> None:
    choose_theme(choice)
