"""The two ways to a rule that decided something, as menu entries. It goes nowhere by itself."""

from collections.abc import Callable
from functools import partial

from PySide6.QtWidgets import QMenu

from gatewright_gui.session.calls import RuleLink


def add_rule_ways(
    menu: QMenu, rule: RuleLink | None, go: Callable[[RuleLink], object], show: Callable[[RuleLink], object]
) -> None:
    """Where the rule is edited, and where it stands in the file; neither where there is no rule."""
    for words, act in (("Go to the rule", go), ("Show in TOML", show)):
        action = menu.addAction(words)
        action.setEnabled(rule is not None)
        if rule is not None:
            action.triggered.connect(partial(_follow, act, rule))


def _follow(act: Callable[[RuleLink], object], rule: RuleLink, _checked: bool = False) -> None:
    act(rule)
