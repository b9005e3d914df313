"""Sees the app paint its first tools, in the process of the app, and loads nothing that the app would not load."""

import sys
from collections.abc import Callable
from typing import Any

TREE = "gatewright_gui.pages.access.tools.tool_view"


class TreeWatch:
    """Put it into `sys.meta_path` before the app starts; `then` is called in the turn after the tree was painted.

    Of the tree alone: looking at every event of the application would take a good part of the time itself.
    """

    def __init__(self, then: Callable[[], None]) -> None:
        self._then = then

    def find_spec(self, *_: object) -> None:
        """Find nothing; once the tree is there, look no more."""
        view: Any = getattr(sys.modules.get(TREE), "ToolView", None)
        if view is not None:
            sys.meta_path.remove(self)  # pyright: ignore[reportArgumentType]
            self._watch(view)

    def _watch(self, view: Any) -> None:
        from PySide6.QtCore import QTimer

        paint: Callable[..., None] = view.paintEvent

        def painted(tree: Any, event: object) -> None:
            paint(tree, event)
            if tree.model().rowCount() > 0:
                QTimer.singleShot(0, tree, self._then)

        view.paintEvent = painted
