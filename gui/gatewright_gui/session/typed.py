"""Keeps what is typed over memory, or over the policy's text, and not saved: it is there in the next window."""

import asyncio
from collections.abc import Mapping

from PySide6.QtCore import QObject, QTimer, Signal

from gatewright.workspace.api import TypedText, TypedTexts
from gatewright_gui.qt.language import tr
from gatewright_gui.qt.task import TaskOwner
from gatewright_gui.session.document import Document
from gatewright_gui.session.opening import unsaved_folder

__all__ = ["Typed", "TypedText"]
KEEP_MS = 1_000
"""From a key to the writing of the file; what is typed in between is written with it."""


class Typed(QObject):
    """Texts typed over the memory and the text of the policy that is open, by a name. `end` it with the window."""

    read = Signal()
    """What earlier windows left is known."""

    def __init__(self, document: Document, tasks: TaskOwner, parent: QObject) -> None:
        super().__init__(parent)
        self._document, self._tasks = document, tasks
        self._known: dict[str, TypedText] = {}
        self._due: dict[str, TypedText | None] = {}
        self._file: TypedTexts | None = None
        self._is_warned = False
        self._writing = asyncio.Lock()
        self._timer = QTimer(self, interval=KEEP_MS, singleShot=True)
        self._timer.timeout.connect(self._start_keeping)
        document.closed.connect(self._opened)
        document.opened.connect(self._opened)
        self._opened()

    def of(self, name: str) -> TypedText | None:
        """The text that is typed there and not saved."""
        return self._known.get(name)

    def put(self, name: str, typed: TypedText | None) -> None:
        """Something is typed; None: it was saved, or is not wanted."""
        if typed == self._known.get(name):
            return
        if typed is None:
            del self._known[name]
        else:
            self._known[name] = typed
        self._due[name] = typed
        if not self._timer.isActive():
            self._timer.start()

    def end(self) -> None:
        """Write what was typed last."""
        self._timer.stop()
        file, due, self._due = self._file, self._due, {}
        if file is not None and due:
            _change(file, due)

    def _opened(self) -> None:
        self.end()
        self._known, self._is_warned = {}, False
        path = self._document.path
        self._file = TypedTexts(unsaved_folder(), path) if path is not None else None
        if self._file is not None:
            self._tasks.start(self._read(self._file), "typed.read", replace=True)

    async def _read(self, file: TypedTexts) -> None:
        found = await asyncio.to_thread(file.read)
        if file is self._file and found:
            left = {name: typed for name, typed in found.items() if name not in self._due}
            self._known = {**left, **self._known}
            self.read.emit()

    def _start_keeping(self) -> None:
        self._tasks.start(self._keep(), "typed.keep", stays=True)

    async def _keep(self) -> None:
        async with self._writing:
            file, due, self._due = self._file, self._due, {}
            if file is not None and due:
                self._tell(await asyncio.to_thread(_change, file, due))

    def _tell(self, why_not: str) -> None:
        """Say once what cannot be kept."""
        if why_not and not self._is_warned:
            self._is_warned = True
            text = tr("unsaved text will be lost when the window closes: {reason}", reason=why_not)
            self._document.say("warning", text)


def _change(file: TypedTexts, due: Mapping[str, TypedText | None]) -> str:
    """Why it could not be written; empty where it was."""
    try:
        file.change(due)
    except OSError as error:
        reason = error.strerror or error
        return tr("`{folder}` cannot be written ({reason})", folder=unsaved_folder(), reason=reason)
    return ""
