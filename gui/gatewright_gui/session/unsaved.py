"""Keeps what is edited or typed and not saved: it is there in the next window, whatever ended this one."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress

from PySide6.QtCore import QObject, QTimer, Signal

from gatewright.workspace.api import (
    GatewrightError,
    Journal,
    TypedText,
    TypedTexts,
    UnsavedPolicy,
    Workspace,
    write_beside,
)
from gatewright_gui.qt.language import tr
from gatewright_gui.qt.task import TaskOwner
from gatewright_gui.session.derive import Deriver
from gatewright_gui.session.document import Document
from gatewright_gui.session.filetext import Offer, offer_of
from gatewright_gui.session.opening import folder_of_unsaved

__all__ = ["Typed", "TypedText", "UnsavedEdits"]
KEEP_MS = 1_000
"""From a key or an edit to the writing of the file; what comes in between is written with it."""


class Typed(QObject):
    """Texts typed over the memory and the text of the policy that is open, by a name. `end` it with the window."""

    read = Signal()
    """Emitted once the texts that earlier windows left are known."""

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
        document.closed.connect(self._start_over)
        document.opened.connect(self._start_over)
        self._start_over()

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

    def _start_over(self) -> None:
        self.end()
        self._known, self._is_warned = {}, False
        path = self._document.path
        self._file = TypedTexts(folder_of_unsaved(), path) if path is not None else None
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
        return tr("`{folder}` cannot be written ({reason})", folder=folder_of_unsaved(), reason=reason)
    return ""


LAST_WRITING_S = 3.0
"""So long the end of the window waits for the journal."""


class UnsavedEdits(QObject):
    """The journal of the open document. `close` it before the deriver."""

    offered = Signal(object)
    """Offer: what a process left that ended with unsaved edits; None: nothing is offered any more."""

    def __init__(self, document: Document, deriver: Deriver, tasks: TaskOwner) -> None:
        super().__init__(document)
        self._document, self._deriver, self._tasks = document, deriver, tasks
        self._journal: Journal | None = None
        self._left: dict[str, UnsavedPolicy] = {}
        self._offer: Offer | None = None
        self._brought_back: set[str] = set()
        """Journals whose edits are made again; they go once the own journal has these."""
        self._is_kept = self._is_warned = self._is_given_up = False
        self._writing = asyncio.Lock()
        self._timer = QTimer(self, interval=KEEP_MS, singleShot=True)
        self._timer.timeout.connect(self._start_keeping)
        document.closed.connect(self._start_over)
        document.opened.connect(self._start_over)
        document.policy_changed.connect(self._follow)
        document.dirty_changed.connect(self._follow)

    def bring_back(self) -> None:
        """Make what is offered one edit."""
        self._tasks.start(self._bring_back(), "unsaved.bring_back")

    def throw_away(self) -> None:
        """Throw away what is offered: it is not wanted."""
        self._tasks.start(self._remove_offer(), "unsaved.throw_away")

    def save_beside(self) -> None:
        """Write what is offered into a file of its own."""
        self._tasks.start(self._save_beside(), "unsaved.save_beside")

    def give_up(self) -> None:
        """The unsaved edits end with the window, as somebody answered."""
        self._is_given_up = True

    async def close(self) -> None:
        """Write the last edits, or remove the journal where nothing is unsaved."""
        is_due = self._timer.isActive()
        self._timer.stop()
        journal = self._journal
        if journal is None:
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(LAST_WRITING_S):
                if is_due or self._is_given_up or not self._is_unsaved:
                    await self._keep()
        async with self._writing:
            await asyncio.to_thread(journal.close)

    @property
    def _is_unsaved(self) -> bool:
        document = self._document
        return document.is_open and document.workspace.is_dirty and not self._is_given_up

    def _start_over(self) -> None:
        document, before = self._document, self._journal
        self._timer.stop()
        self._journal = Journal(folder_of_unsaved(), document.workspace.policy_path) if document.is_open else None
        self._left, self._brought_back, self._is_kept, self._is_warned = {}, set(), False, False
        self._tell(None)
        self._tasks.start(self._look(before), "unsaved.look", stays=True)

    def _follow(self, _what: object = None) -> None:
        if self._is_unsaved:
            if not self._timer.isActive():
                self._timer.start()
        elif self._is_kept or self._timer.isActive():
            self._timer.stop()
            self._start_keeping()

    def _start_keeping(self) -> None:
        self._tasks.start(self._keep(), "unsaved.keep", stays=True)

    async def _keep(self) -> None:
        """Bring the journal up to what is unsaved now; what cannot be kept is said once."""
        async with self._writing:
            document, journal = self._document, self._journal
            if journal is None:
                return
            try:
                text = await self._deriver.derive(Workspace.text) if self._is_unsaved else ""
                if text is None or journal is not self._journal:
                    return  # what changed meanwhile is followed by itself
                if self._is_unsaved:
                    self._is_kept = True
                    saved = document.workspace.saved_text
                    await asyncio.to_thread(journal.keep, UnsavedPolicy(saved, text, self._steps))
                    for name in tuple(self._brought_back):
                        self._brought_back.discard(name)
                        await self._remove(name)
                else:
                    self._is_kept = False
                    await asyncio.to_thread(journal.forget)
            except (GatewrightError, OSError) as error:
                if not self._is_warned:
                    self._is_warned = True
                    why = (error.strerror if isinstance(error, OSError) else None) or error
                    text = tr(
                        "unsaved changes would not survive a crash: `{folder}` cannot hold them ({reason})",
                        folder=folder_of_unsaved(),
                        reason=why,
                    )
                    document.say("warning", text)

    @property
    def _steps(self) -> int:
        stack = self._document.undo_stack
        return max(1, abs(stack.index() - max(0, stack.cleanIndex())))

    async def _look(self, before: Journal | None) -> None:
        """End the journal of what was open before, and look what others left of what is open now."""
        if before is not None:
            async with self._writing:
                with suppress(OSError):
                    await asyncio.to_thread(before.forget)
        journal = self._journal
        if journal is None:
            return
        left, ignored = await asyncio.to_thread(journal.leftovers)
        if journal is not self._journal:
            return
        for sentence in ignored:
            self._document.say("warning", sentence)
        self._left = dict(left)
        await self._offer_next()

    async def _offer_next(self) -> None:
        document, journal = self._document, self._journal
        self._tell(None)
        while self._left and journal is not None and journal is self._journal:
            name, unsaved = next(iter(self._left.items()))
            if unsaved.text == document.workspace.saved_text:  # saved, and killed before the journal was removed
                await self._remove(name)
                continue
            try:
                offer = await self._deriver.derive(offer_of, name, unsaved)
            except GatewrightError as error:
                del self._left[name]
                path = folder_of_unsaved() / name
                document.say(
                    "warning", tr("unsaved changes in `{path}` are ignored: {reason}", path=path, reason=error)
                )
                continue
            if offer is not None:
                self._tell(offer)
                return

    async def _bring_back(self) -> None:
        """With the text as it was left, letter by letter, where nothing else was changed since."""
        offer = self._offer
        if offer is None or offer.edit is None:
            return
        edit, left, workspace = offer.edit, offer.unsaved, self._document.workspace
        if workspace.saved_text == left.grown_from and not workspace.is_dirty:
            edit = workspace.with_text(edit, left.text)
        if self._document.push(lambda _policy, _catalog: edit):
            self._brought_back.add(offer.name)
            del self._left[offer.name]
            await self._keep()
            await self._offer_next()

    async def _save_beside(self) -> None:
        offer = self._offer
        if offer is None:
            return
        try:
            path = await asyncio.to_thread(write_beside, self._document.workspace.policy_path, offer.unsaved.text)
        except GatewrightError as error:
            self._document.say("error", str(error))
            return
        self._document.say("info", tr("the unsaved changes are in `{path}`", path=path))
        await self._remove_offer()

    async def _remove_offer(self) -> None:
        if self._offer is not None:
            await self._remove(self._offer.name)
            await self._offer_next()

    async def _remove(self, name: str) -> None:
        self._left.pop(name, None)
        if self._journal is not None:
            try:
                await asyncio.to_thread(self._journal.remove, name)
            except OSError as error:
                path = folder_of_unsaved() / name
                text = tr("`{path}` cannot be removed: {reason}", path=path, reason=error.strerror)
                self._document.say("warning", text)

    def _tell(self, offer: Offer | None) -> None:
        self._offer = offer
        self.offered.emit(offer)
