"""The arguments as JSON text, checked while they are typed: first the syntax, then the schema that the agent is shown.

It does not send them, and refuses nothing.
"""

import asyncio
from collections.abc import Awaitable

from PySide6.QtCore import QTimer, Signal
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget
from shiboken6 import isValid

from gatewright.base.errors import JsonRefused
from gatewright.base.jsonvalue import parse_object
from gatewright_gui.models.argumentcheck import ArgumentChecker, TextFault, checker_of, syntax_faults, text_faults
from gatewright_gui.models.jsoncompletion import Completion, completion_at
from gatewright_gui.models.jsontext import to_text
from gatewright_gui.pages.console.jsonedit import JsonEdit
from gatewright_gui.pages.console.linkbutton import link_button
from gatewright_gui.qt.look import current_look
from gatewright_gui.qt.task import TaskOwner
from gatewright_gui.qt.widget import IconLabel, ProseLine
from gatewright_gui.session.calls import ShownTool

SETTLE_MS = 120
AT_ONCE = 20_000
"""The syntax of texts up to this many characters is checked at once, that of longer ones beside the window."""
FITS, IS_OBJECT = "fits the schema", "one JSON object"


class RawJson(QWidget):
    """Editor and the line below it that says what is wrong, and where. F8 goes to it."""

    changed = Signal()

    def __init__(self, tasks: TaskOwner, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._tasks = tasks
        self._tool: ShownTool | None = None
        self._checker: ArgumentChecker | None = None
        self.faults: tuple[TextFault, ...] = ()
        self.editor = JsonEdit("Arguments as JSON")
        self.editor.setObjectName("console.json")
        self.editor.setPlaceholderText('{ "op": "read", "path": "README.md" }')
        self.editor.offer = self._offer
        self.editor.edited.connect(self._edited)
        self._settle = QTimer(self, singleShot=True, interval=SETTLE_MS)
        self._settle.timeout.connect(self._check)
        self._icon = IconLabel("circle-check", "allow", size=14)
        self._said = ProseLine()
        self._said.setObjectName("console.jsonfault")
        self.go_button = link_button("Go to it", "console.json.go", "Put the cursor to the first fault (F8)")
        self.go_button.clicked.connect(self.go_to_fault)
        self.format_button = link_button("Format", "console.json.format", "Indent the text (Ctrl+Shift+I)")
        self.format_button.clicked.connect(self.format)
        tokens = current_look().tokens
        foot = QHBoxLayout()
        foot.setContentsMargins(tokens.space_2, tokens.space_1, tokens.space_2, tokens.space_1)
        foot.setSpacing(tokens.space_2)
        foot.addWidget(self._icon)
        foot.addWidget(self._said, 1)
        foot.addWidget(self.go_button)
        foot.addWidget(self.format_button)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.editor, 1)
        column.addLayout(foot)
        self._show(())

    @property
    def text(self) -> str:
        """The whole text."""
        return self.editor.text

    @property
    def fault(self) -> str | None:
        """The first thing that is wrong, as far as it is known."""
        return str(self.faults[0]) if self.faults else None

    def set_text(self, text: str) -> None:
        """Hold another text."""
        self.editor.set_text(text)

    def set_tool(self, tool: ShownTool | None) -> None:
        """Check against, and complete from, the schema of a tool; None: of one that the agent does not see."""
        if tool == self._tool:
            return
        self._tool = tool
        self._checker = checker_of(tool) if tool is not None else None
        self._settle.start()

    def format(self) -> None:
        """Indent the text; broken text stays as it is."""
        if self.editor.is_aside:
            return
        try:
            text = to_text(parse_object(self.text))
        except JsonRefused:
            self.go_to_fault()
            return
        if text != self.text:
            self.editor.put_formatted(text)

    def go_to_fault(self) -> None:
        """Put the cursor to the first thing that is wrong."""
        if self.faults:
            self.editor.go_to(self.faults[0])

    def _offer(self, text: str, at: int) -> Completion:
        return Completion(at, at) if self._tool is None else completion_at(self._tool, text, at)

    def _edited(self) -> None:
        if not self.editor.is_aside and self.editor.document().characterCount() <= AT_ONCE:
            self._show(syntax_faults(self.text), is_checked=self._checker is None)
        self._settle.start()
        self.changed.emit()

    def _check(self) -> None:
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:  # nobody runs the window
            return
        if not self._tasks.closed:
            text, checker = self.text, self._checker
            found = loop.run_in_executor(None, text_faults, text, checker)
            self._tasks.start(self._check_beside(text, checker, found), "console.check", replace=True)

    async def _check_beside(
        self, text: str, checker: ArgumentChecker | None, found: Awaitable[tuple[TextFault, ...]]
    ) -> None:
        faults = await found
        if isValid(self) and checker is self._checker and text == self.text:
            self._show(faults)

    def _show(self, faults: tuple[TextFault, ...], *, is_checked: bool = True) -> None:
        self.faults = faults
        is_syntax = bool(faults) and faults[0].is_syntax
        role = "deny" if is_syntax else "ask" if faults else "allow"
        self._icon.set_icon("circle-alert" if faults else "circle-check", role)
        more = f"  (and {len(faults) - 1} more)" if len(faults) > 1 else ""
        fine = FITS if is_checked and self._tool is not None else IS_OBJECT
        self._said.set_text(f"{faults[0]}{more}" if faults else fine)
        self.go_button.setVisible(bool(faults))
        self.editor.mark(faults)
