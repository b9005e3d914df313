"""What can be done with a row of the rules, as a menu. It does nothing itself."""

from collections.abc import Callable
from functools import partial
from typing import Protocol

from PySide6.QtCore import QModelIndex
from PySide6.QtWidgets import QMenu, QWidget

from gatewright_gui.models import permissionrules


class RuleActs(Protocol):
    """What the entries lead to."""

    def show_files(self) -> None:
        """Show the files that the row decides."""
        ...

    def edit_cell(self, index: QModelIndex) -> None:
        """Open the editor of a cell."""
        ...

    def add_above_chosen(self) -> None:
        """Ask for a rule above the chosen one."""
        ...

    def move_rule(self, step: int) -> None:
        """Move the chosen rules up (-1) or down (1)."""
        ...

    def remove_rule(self) -> None:
        """Remove the chosen rules."""
        ...

    def go_to_shadow(self, index: QModelIndex) -> None:
        """Go to the rule that hides this one."""
        ...


def rule_menu(parent: QWidget, acts: RuleActs, index: QModelIndex, rows: tuple[int, ...], last: int) -> QMenu:
    """For the row of `index`. `rows`: the rules that are chosen, of which none is the default; `last`: the default."""
    menu = QMenu(parent)
    by, is_rule = index.data(permissionrules.SHADOWED_BY), index.row() < last
    pattern, level = (index.siblingAtColumn(column) for column in (permissionrules.PATTERN, permissionrules.LEVEL))
    several = f" {len(rows)} rules" if len(rows) > 1 else ""

    def add(words: str, act: Callable[[], None], *, on: bool = True) -> None:
        action = menu.addAction(words)
        action.setEnabled(on)
        action.triggered.connect(partial(_call, act))

    add("Show the files that it decides\tCtrl+Return", acts.show_files)
    if by is not None:
        add(f"Go to rule {by + 1}, which hides it", partial(acts.go_to_shadow, index))
    menu.addSeparator()
    add("Edit the pattern\tF2", partial(acts.edit_cell, pattern), on=is_rule)
    add("Change the level", partial(acts.edit_cell, level))
    add("Add a rule above\tIns", acts.add_above_chosen)
    menu.addSeparator()
    add(f"Move{several} up\tAlt+Up", partial(acts.move_rule, -1), on=bool(rows) and rows[0] > 0)
    add(f"Move{several} down\tAlt+Down", partial(acts.move_rule, 1), on=bool(rows) and rows[0] + len(rows) < last)
    add(f"Remove{several}\tDel", acts.remove_rule, on=bool(rows))
    return menu


def _call(act: Callable[[], None], _checked: bool = False) -> None:
    act()
