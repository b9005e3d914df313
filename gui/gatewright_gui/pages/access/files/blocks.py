"""Files and their blocks: how the two stand to each other, and the ways to bring them into step."""

from collections.abc import Callable, Mapping
from functools import partial

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtWidgets import QDialog, QVBoxLayout, QWidget
from shiboken6 import isValid

from gatewright.workspace.api import GatewrightError, frozen
from gatewright_gui.pages.page import PageContext
from gatewright_gui.qt.dialog import Choice, ask, run_dialog
from gatewright_gui.qt.language import mark, tr
from gatewright_gui.qt.layout import aligned, column_of, named, row_of, stretch
from gatewright_gui.qt.look import Role
from gatewright_gui.qt.plaintext import title_text
from gatewright_gui.qt.widget import CodeView, SectionHeader
from gatewright_gui.qt.widget.button import text_button
from gatewright_gui.qt.widget.label import IconLabel, Label
from gatewright_gui.session.file_state import FileStanding, FileState, FolderStanding, Reconciled, Standings
from gatewright_gui.session.files import SourceFolder


@frozen
class StateLook:
    """The look of a state."""

    word: str
    icon: str
    role: Role
    explanation: str


STATES: Mapping[FileState, StateLook] = {
    FileState.SYNCED: StateLook(mark("loaded"), "layers", "muted", mark("open as a block, in sync with the disk")),
    FileState.BLOCK_MODIFIED: StateLook(
        mark("unsaved"), "pencil", "ask", mark("its block holds edits that were not written to disk")
    ),
    FileState.DISK_MODIFIED: StateLook(
        mark("disk changed"),
        "refresh-cw",
        "accent",
        mark("the file changed outside; its block, without edits, is older"),
    ),
    FileState.CONFLICT: StateLook(
        mark("conflict"),
        "triangle-alert",
        "deny",
        mark("its block holds edits, and the file changed outside meanwhile"),
    ),
    FileState.DISK_DELETED: StateLook(
        mark("gone"), "trash", "deny", mark("the file is gone from disk; its block is still there")
    ),
}


def look_of(state: FileState) -> StateLook:
    """The look of a state."""
    return STATES.get(state, STATES[FileState.SYNCED])


def words_of(standing: FileStanding | FolderStanding | None) -> str:
    """The word of a file's state, or how many files below a folder have it; empty for none."""
    if standing is None:
        return ""
    word = tr(look_of(standing.state).word)
    return f"{standing.count:,} {word}" if isinstance(standing, FolderStanding) else word


def sentence_of(standing: FileStanding) -> str:
    """Return what is to be known of a file with a block."""
    explanation = tr(look_of(standing.state).explanation)
    return f"{explanation}: {standing.problem}" if standing.problem else explanation


_WAYS = (
    ("ours", mark("Keep block"), mark("The block stays as it is; writing it would then replace what is on disk")),
    ("theirs", mark("Take disk"), mark("The block takes what is on disk; its edits are gone")),
    ("merge", mark("Merge"), mark("The block gets both changes; where they meet nothing is done")),
    ("ask", mark("Show both"), mark("What the block and the disk each changed since they were in step")),
)


class ReconcileBar(QWidget):
    """Hidden for a file without a block."""

    asked = Signal(object)
    """A strategy: str."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("files.block")
        self._icon = IconLabel("layers", "muted", size=14)
        self._words = Label(wraps=True)
        self.buttons = {
            way: text_button(tr(word), f"files.{way}", partial(self.asked.emit, way), tr(tip))
            for way, word, tip in _WAYS
        }
        said = row_of(aligned(self._icon, Qt.AlignmentFlag.AlignTop), stretch(self._words), space=2)
        column_of(said, row_of(*self.buttons.values(), stretch(), space=2), into=self, space=1)
        self.hide()

    def show_standing(self, standing: FileStanding | None) -> None:
        """Say how file and block stand to each other; the ways on only where the disk changed."""
        self.setVisible(standing is not None)
        if standing is None:
            return
        look = look_of(standing.state)
        self._icon.set_icon(look.icon, look.role)
        self._words.setText(f"{tr(look.word)}: {sentence_of(standing)}")
        self.setAccessibleName(self._words.text())
        for button in self.buttons.values():
            button.setVisible(standing.needs_reconciling and standing.problem is None)


class BothDialog(QDialog):
    """The changes on each side, side by side."""

    def __init__(self, parent: QWidget | None, told: Reconciled) -> None:
        super().__init__(parent)
        self.setObjectName("files.both")
        self.setWindowTitle(title_text(tr("Block and disk: {path}", path=told.path)))
        self.resize(900, 460)
        block = _side(tr("The block changed"), "files.blockdiff", told.block_diff)
        disk = _side(tr("The disk changed"), "files.diskdiff", told.disk_diff)
        why = named(Label(told.why, wraps=True), kind="muted")
        close = text_button(tr("Close"), "files.closeboth", self.accept)
        close.setDefault(True)
        sides = row_of(stretch(block), stretch(disk), space=2)
        column_of(stretch(sides), row_of(stretch(why), close, space=2), into=self, space=2, margins=2)


def _side(title: str, name: str, diff: str) -> QVBoxLayout:
    view = named(CodeView(title), name)
    view.set_diff(diff) if diff else view.set_plain(tr("not known: the text that both began with is not kept"))
    return column_of(SectionHeader(title), stretch(view))


_DONE = {
    "nothing": mark("`{path}`: block and file were in step already"),
    "kept_block": mark("`{path}`: the block stays, and is now compared with the file as it is on disk"),
    "took_disk": mark("`{path}`: the block took what is on disk"),
    "merged": mark("`{path}`: merged into the block; nothing was written to disk"),
    "forgotten": mark("`{path}`: the file is gone, and its block with it"),
    "conflict": mark("`{path}`: nothing was done, {why}"),
}


class Blocks(QObject):
    """One source at a time; an answer for another one is dropped."""

    found = Signal(object)
    """Standings."""
    failed = Signal(object)
    """Why they are not known: str."""

    def __init__(self, page: QWidget, context: PageContext, folder: SourceFolder) -> None:
        super().__init__(page)
        self._page, self._context, self._folder = page, context, folder
        self._turn = 0

    def look(self, source_id: str) -> None:
        """Look at every file that has a block."""
        self._turn += 1
        self._context.tasks.start(self._look(source_id, self._turn), "files.blocks", replace=True)

    def reconcile(self, source_id: str, path: str, strategy: str, standing: Callable[[], FileStanding | None]) -> None:
        """Bring a file and its block into step, after a question where edits would be lost."""
        task = self._reconcile(source_id, path, strategy, standing())
        self._context.tasks.start(task, "files.reconcile", replace=True)

    async def _look(self, source_id: str, turn: int) -> None:
        try:
            standings: Standings = await self._folder.standings(source_id)
        except GatewrightError as error:
            if isValid(self) and turn == self._turn:
                self.failed.emit(str(error))
            return
        if isValid(self) and turn == self._turn:
            self.found.emit(standings)

    async def _reconcile(self, source_id: str, path: str, strategy: str, standing: FileStanding | None) -> None:
        seen = standing if strategy == "theirs" else None
        if seen is not None and seen.has_edits:
            text = tr("What was edited in the block of {path} and not written to disk is gone then.", path=path)
            choices = (Choice("keep", tr("Keep the edits"), "primary"), Choice("take", tr("Take disk"), "danger"))
            title = tr("Throw the edits of the block away?")
            if await ask(self._page, title, text, choices, icon="triangle-alert", role="ask") != "take":
                return
        try:
            mark = None if seen is None else seen.mark
            told = await self._folder.reconcile(source_id, path, strategy, mark)
        except GatewrightError as error:
            self._context.document.say("error", tr("not reconciled: {reason}", reason=error))
            if isValid(self):
                self.look(source_id)
            return
        if isValid(self):
            await self._tell(source_id, told, strategy)

    async def _tell(self, source_id: str, told: Reconciled, strategy: str) -> None:
        self.look(source_id)
        if strategy != "ask":
            words = tr(_DONE.get(told.outcome, "`{path}`: {why}"), path=told.path, why=told.why)
            self._context.document.say("warning" if told.is_conflict else "info", words)
        if told.is_conflict:
            await run_dialog(BothDialog(self._page, told))
