"""The arguments as JSON text, checked while they are typed. It does not know tools."""

import asyncio

from PySide6.QtCore import QTimer, Signal
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from gatewright_gui.models.callform import json_fault
from gatewright_gui.pages.console.largetext import LargeTextEdit
from gatewright_gui.qt.highlighter import Highlighter
from gatewright_gui.qt.look import current_look
from gatewright_gui.qt.task import TaskOwner
from gatewright_gui.qt.widget import ElidedLabel, IconLabel

SETTLE_MS = 120
AT_ONCE = 20_000
"""Texts up to this many characters are checked at once, longer ones beside the window."""


class RawJson(QWidget):
    """Editor and the line below it that says whether it is one JSON object, and if not, where."""

    changed = Signal()

    def __init__(self, tasks: TaskOwner, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._tasks = tasks
        self.fault: str | None = None
        self.editor = LargeTextEdit("Arguments as JSON")
        self.editor.setObjectName("console.json")
        self.editor.setPlaceholderText('{ "op": "read", "path": "README.md" }')
        Highlighter(self.editor.document()).set_language("json")
        self.editor.edited.connect(self._edited)
        self._settle = QTimer(self, singleShot=True, interval=SETTLE_MS)
        self._settle.timeout.connect(self._check)
        self._icon = IconLabel("circle-check", "allow", size=14)
        self._said = ElidedLabel(role="muted")
        self._said.setObjectName("console.jsonfault")
        tokens = current_look().tokens
        foot = QHBoxLayout()
        foot.setContentsMargins(tokens.space_2, tokens.space_1, tokens.space_2, tokens.space_1)
        foot.setSpacing(tokens.space_2)
        foot.addWidget(self._icon)
        foot.addWidget(self._said, 1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.editor, 1)
        column.addLayout(foot)
        self._show(None)

    @property
    def text(self) -> str:
        """The whole text."""
        return self.editor.text

    def set_text(self, text: str) -> None:
        """Hold another text."""
        self.editor.set_text(text)

    def _edited(self) -> None:
        if not self.editor.is_aside and self.editor.document().characterCount() <= AT_ONCE:
            self._show(json_fault(self.text))
        else:
            self._settle.start()
        self.changed.emit()

    def _check(self) -> None:
        self._tasks.start(self._check_beside(self.text), "console.check", replace=True)

    async def _check_beside(self, text: str) -> None:
        self._show(await asyncio.to_thread(json_fault, text))

    def _show(self, fault: str | None) -> None:
        self.fault = fault
        self._icon.set_icon("circle-alert" if fault else "circle-check", "deny" if fault else "allow")
        self._said.set_text(fault or "one JSON object")
