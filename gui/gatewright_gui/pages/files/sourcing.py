"""Sources added, changed and removed in dialogs, each as one edit. It decides nothing: verbs and the engine do."""

import os
from collections.abc import Coroutine
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QWidget
from shiboken6 import isValid

from gatewright.base.errors import GatewrightError
from gatewright.policy.document import Source
from gatewright_gui.pages.files.shown import Shown
from gatewright_gui.pages.page import PageContext
from gatewright_gui.qt.dialog import Choice, ask, shown
from gatewright_gui.session.document import Document
from gatewright_gui.session.verbs import sources

if TYPE_CHECKING:
    from gatewright_gui.pages.files.sourcedialog import SourceAnswers

_NEW = Source("", "")


class Sourcing(QObject):
    """The dialogs for the source that a page shows, one at a time."""

    taken = Signal(object)
    """A source that was added or renamed is to be shown: its id, str."""

    def __init__(self, context: PageContext, shown: Shown, page: QWidget) -> None:
        super().__init__(page)
        self._context, self._shown, self._page = context, shown, page

    def add(self) -> None:
        """Ask for a new one."""
        if self._context.document.is_open:
            self._ask(self._take(add_source(self._page, self._context.document)))

    def change(self) -> None:
        """Ask for other settings."""
        source_id = self._shown.source_id
        if source_id is not None:
            self._ask(self._take(change_source(self._page, self._context.document, source_id)))

    def remove(self) -> None:
        """Ask whether it is to go."""
        source_id = self._shown.source_id
        if source_id is not None:
            self._ask(remove_source(self._page, self._context.document, source_id))

    def _ask(self, work: Coroutine[Any, Any, object]) -> None:
        self._context.tasks.start(work, "files.sources", replace=True)

    async def _take(self, asked: Coroutine[Any, Any, str | None]) -> None:
        source_id = await asked
        if isValid(self) and source_id is not None and source_id != self._shown.source_id:
            self.taken.emit(source_id)


async def add_source(parent: QWidget, document: Document) -> str | None:
    """Ask for a new source; its id once it was added."""
    from gatewright_gui.pages.files.sourcedialog import SourceDialog

    dialog = SourceDialog(parent, _NEW, _answers(document, None), is_new=True)
    if not await shown(dialog):
        return None
    source = dialog.source
    if dialog.trusts and not _trust(document, source):
        return None
    return source.source_id if sources.add_source(document, source) else None


async def change_source(parent: QWidget, document: Document, source_id: str) -> str | None:
    """Ask for other settings; the id that the source has then."""
    from gatewright_gui.pages.files.sourcedialog import SourceDialog

    before = document.policy.source(source_id)
    if before is None:
        return None
    dialog = SourceDialog(parent, before, _answers(document, source_id), is_new=False)
    if not await shown(dialog):
        return None
    after = dialog.source
    if dialog.trusts and not _trust(document, after):
        return None
    return after.source_id if sources.change_source(document, source_id, after) else None


async def remove_source(parent: QWidget, document: Document, source_id: str) -> bool:
    """Remove a source after a question that says what goes with it."""
    if refusal := sources.remove_refusal(document, source_id):
        document.say("warning", f"source `{source_id}` stays: {refusal}")
        return False
    agents = sources.listed_by(document, source_id)
    names = ", ".join(agents[:4]) + (f" and {len(agents) - 4} more" if len(agents) > 4 else "")
    text = "Its rules go with it; no file is touched. Undo brings it back."
    if agents:
        text += f" It is also taken from the lists of {names}."
    choices = (Choice("keep", "Keep it"), Choice("remove", "Remove", "danger"))
    answer = await ask(parent, f"Remove source {source_id}?", text, choices, icon="trash", role="ask")
    return answer == "remove" and sources.remove_source(document, source_id)


def _answers(document: Document, source_id: str | None) -> "SourceAnswers":
    from gatewright_gui.pages.files.sourcedialog import SourceAnswers

    workspace = document.workspace

    def refusal(source: Source, trusts: bool) -> str:
        asked = source
        if trusts and workspace.outside(source.base_path) is not None:
            asked = replace(source, base_path="." if source_id is None else _inside(document, source_id))
        if source_id is None:
            return sources.add_refusal(document, asked)
        return sources.change_refusal(document, source_id, asked)

    def place(written: str) -> Path:
        return Path(os.path.realpath(workspace.folder / written))

    def written(path: Path) -> str:
        real = os.path.realpath(path)
        return (
            real if workspace.outside(real) is not None else os.path.relpath(real, os.path.realpath(workspace.folder))
        )

    return SourceAnswers(written, place, workspace.outside, refusal)


def _inside(document: Document, source_id: str) -> str:
    """The folder that the source has now: what is refused besides the folder is asked with it."""
    source = document.policy.source(source_id)
    return source.base_path if source is not None else "."


def _trust(document: Document, source: Source) -> bool:
    try:
        document.workspace.trust_source(source.source_id, source.base_path)
    except GatewrightError as error:
        document.say("error", str(error))
        return False
    return True
