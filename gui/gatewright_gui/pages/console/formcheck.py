"""The faults of a form's arguments by the schema, looked for beside the window once nothing changes. It marks none."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from PySide6.QtCore import QObject, QTimer, Signal
from shiboken6 import isValid

from gatewright.base.jsonvalue import JsonValue
from gatewright_gui.models.argumentcheck import ArgumentChecker, PlaceFault, checker_of
from gatewright_gui.qt.task import TaskOwner
from gatewright_gui.session.calls import ShownTool

SETTLE_MS = 150


class FormCheck(QObject):
    """`values` gives the arguments as they are; without a task owner nothing is checked."""

    found = Signal()
    """`faults` are those of the arguments now."""

    def __init__(self, tasks: TaskOwner | None, values: Callable[[], Mapping[str, JsonValue]], parent: QObject) -> None:
        super().__init__(parent)
        self.faults: tuple[PlaceFault, ...] = ()
        self._tasks, self._values = tasks, values
        self._checker: ArgumentChecker | None = None
        self._settle = QTimer(self, singleShot=True, interval=SETTLE_MS)
        self._settle.timeout.connect(self._check)

    def set_tool(self, tool: ShownTool | None) -> None:
        """Check for another tool; what was found for the one before is forgotten."""
        self._checker = checker_of(tool) if tool is not None else None
        self.faults = ()

    def start(self) -> None:
        """The arguments changed: check them in a moment."""
        self._settle.start()

    def _check(self) -> None:
        checker, tasks = self._checker, self._tasks
        if tasks is None or checker is None or tasks.closed:
            return
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:  # nobody runs the window
            return
        found = loop.run_in_executor(None, checker.faults, self._values())
        tasks.start(self._take(checker, found), "console.form", replace=True)

    async def _take(self, checker: ArgumentChecker, found: Awaitable[tuple[PlaceFault, ...]]) -> None:
        faults = await found
        if isValid(self) and checker is self._checker:
            self.faults = faults
            self.found.emit()
