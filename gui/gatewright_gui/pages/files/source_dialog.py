"""Sources added, changed and removed in dialogs, each as one edit."""

import os
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject, Qt, QTimer, Signal
from PySide6.QtWidgets import (
    QCheckBox,
    QDialog,
    QFileDialog,
    QFormLayout,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QPushButton,
    QVBoxLayout,
    QWidget,
)
from shiboken6 import isValid

from gatewright.base.errors import GatewrightError
from gatewright.policy.document import Source
from gatewright.policy.permission import Permission
from gatewright_gui.pages.files.level import level_combo
from gatewright_gui.pages.files.shown_source import Shown
from gatewright_gui.pages.page import PageContext
from gatewright_gui.qt.dialog import Choice, ask, shown
from gatewright_gui.qt.filedialog import dress
from gatewright_gui.qt.look import current_look
from gatewright_gui.qt.plaintext import title_text
from gatewright_gui.qt.widget import NumberField
from gatewright_gui.qt.widget.label import Label
from gatewright_gui.session.document import Document
from gatewright_gui.session.verbs import sources

if TYPE_CHECKING:
    from gatewright_gui.pages.files.source_dialog import SourceAnswers


KIB = 1024


MAX_KIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class SourceAnswers:
    """What the dialog asks. `written`: how a folder is written in the policy; `place`: the real folder of what is
    written; `outside`: that folder where it lies outside the workspace; `refusal`: why a source would be refused.
    """

    written: Callable[[Path], str]
    place: Callable[[str], Path]
    outside: Callable[[str], Path | None]
    refusal: Callable[[Source, bool], str]


class SourceDialog(QDialog):
    """After it was accepted `source` holds what was chosen, and `trusts` whether a folder outside is to be trusted."""

    def __init__(self, parent: QWidget | None, before: Source, answers: SourceAnswers, *, is_new: bool) -> None:
        super().__init__(parent)
        self.setObjectName("source")
        self._before, self._answers, self._is_new = before, answers, is_new
        title = "New source" if is_new else f"Settings of {before.source_id}"
        self.setWindowTitle(title_text(title))
        self.setAccessibleName(title)
        self.name = QLineEdit(before.source_id)
        self.folder = QLineEdit(before.base_path)
        self.browse_button = QPushButton("C&hoose...")
        self.level = level_combo(self)
        self.limit = NumberField("Size limit of a file, in KiB", 1, MAX_KIB, unit="KiB")
        self.watch = QCheckBox("&Take changes made outside into open blocks (watch)")
        self.trust = QCheckBox("&Trust this folder, although it lies outside the workspace")
        self.note = _text("source.note", "muted")
        self.fault = _text("source.fault", "error")
        self.accept_button = QPushButton("Add source" if is_new else "Change")
        self.cancel_button = QPushButton("Cancel")
        self._fill()
        self._lay_out(title)
        self._connect()
        self._check()
        self.name.setFocus()
        self.resize(600, self.sizeHint().height())

    @property
    def source(self) -> Source:
        """What is asked for; a limit that was not touched keeps its bytes."""
        size = self._before.max_file_bytes
        if self.limit.value() != _kib(size):
            size = self.limit.value() * KIB
        return replace(
            self._before,
            source_id=self.name.text(),
            base_path=self.folder.text(),
            default_permission=Permission(str(self.level.currentData())),
            max_file_bytes=size,
            watch=self.watch.isChecked(),
        )

    @property
    def trusts(self) -> bool:
        """Whether a folder outside is to be trusted."""
        return self.trust.isChecked() and not self.trust.isHidden()

    def accept(self) -> None:
        """Close, unless it would be refused: then say why and stay."""
        fault = self._fault()
        self._say(fault)
        if not fault:
            super().accept()

    def _fault(self) -> str:
        source = self.source
        if not source.source_id.strip():
            return "a source needs a name"
        if not source.base_path.strip():
            return "a source needs a folder"
        if not self.trust.isHidden() and not self.trusts:
            return "choose a folder inside the workspace, or tick that you trust this one"
        return self._answers.refusal(source, self.trusts)

    def _check(self) -> None:
        """Say while one types what would be refused; an empty field is no mistake yet."""
        written = self.folder.text()
        outside = self._answers.outside(written) if written.strip() else None
        is_other = self._is_new or written != self._before.base_path or self.name.text() != self._before.source_id
        self.trust.setVisible(outside is not None and is_other)
        self.note.setText(self._about(written, outside))
        self.note.setVisible(bool(self.note.text()))
        empty = not self.name.text().strip() or not written.strip()
        fault = "" if empty else self._fault()
        self._say(fault)
        same = not self._is_new and self.source == self._before
        self.accept_button.setEnabled(not empty and not fault and not same)
        self.accept_button.setToolTip("It is so already" if same else "")
        QTimer.singleShot(0, self, self._grow)

    def _grow(self) -> None:
        """Room for what is said."""
        needed = self._column.totalHeightForWidth(self.width())
        if needed > self.height():
            self.resize(self.width(), needed)

    def _about(self, written: str, outside: Path | None) -> str:
        if not written.strip():
            return "The folder that agents reach through this source: choose one, or write it from the policy file on."
        told: list[str] = []
        if outside is not None:
            told.append(
                f"{outside} lies outside the folder of the policy. Agents reach it only once you trust it; what is"
                " trusted is kept with your keys, not in the policy."
            )
        place = self._answers.place(written)
        if not place.is_dir():
            told.append(f"{place} is not there yet: nothing can be read in it until it is made.")
        return " ".join(told)

    def _say(self, fault: str) -> None:
        self.fault.setText(fault.replace("`", ""))
        self.fault.setVisible(bool(fault))

    def _browse(self) -> None:
        start = self._answers.place(self.folder.text() or ".")
        dialog = QFileDialog(self, "Folder of the source", str(start if start.is_dir() else start.parent))
        dialog.setObjectName("source.folderdialog")
        dialog.setFileMode(QFileDialog.FileMode.Directory)
        dialog.setOption(QFileDialog.Option.ShowDirsOnly, on=True)
        dialog.setLabelText(QFileDialog.DialogLabel.FileName, "Folder:")
        dress(dialog)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.fileSelected.connect(self._take_folder)
        dialog.open()

    def _take_folder(self, path: str) -> None:
        if not path:
            return
        self.folder.setText(self._answers.written(Path(path)))
        if not self.name.text():
            self.name.setText(Path(path).name)

    # the parts

    def _fill(self) -> None:
        self.level.setCurrentIndex(self.level.findData(str(self._before.default_permission)))
        self.limit.setValue(_kib(self._before.max_file_bytes))
        self.watch.setChecked(self._before.watch)
        self.name.setPlaceholderText("as agents write it, such as notes")
        self.folder.setPlaceholderText("from the policy file on, such as shared/notes")
        for part, name, spoken in (
            (self.name, "source.name", "Name of the source"),
            (self.folder, "source.folder", "Folder of the source"),
            (self.browse_button, "source.browse", "Choose the folder"),
            (self.level, "source.level", "Default level"),
            (self.limit, "source.limit", "Size limit of a file, in KiB"),
            (self.watch, "source.watch", "Take changes made outside into open blocks"),
            (self.trust, "source.trust", "Trust this folder outside the workspace"),
            (self.accept_button, "source.accept", self.accept_button.text()),
            (self.cancel_button, "source.cancel", "Cancel"),
        ):
            part.setObjectName(name)
            part.setAccessibleName(spoken)
        self.level.setToolTip("What a path gets that no rule matches")
        self.watch.setToolTip("Blocks without edits follow the file; one with edits is told as a conflict")

    def _lay_out(self, title: str) -> None:
        tokens = current_look().tokens
        heading = Label(title)
        heading.setProperty("kind", "heading")
        folder = QHBoxLayout()
        folder.setSpacing(tokens.space_2)
        folder.addWidget(self.folder, 1)
        folder.addWidget(self.browse_button)
        form = QFormLayout()
        form.setSpacing(tokens.space_2)
        form.setLabelAlignment(Qt.AlignmentFlag.AlignLeft)
        form.addRow("&Name", self.name)
        label = Label("&Folder")
        label.setBuddy(self.folder)
        form.addRow(label, folder)
        form.addRow("", self.note)
        form.addRow("", self.trust)
        form.addRow("&Default level", self.level)
        form.addRow("&Size limit of a file", self.limit)
        form.addRow("", self.watch)
        foot = QHBoxLayout()
        foot.setSpacing(tokens.space_2)
        foot.addStretch(1)
        foot.addWidget(self.cancel_button)
        foot.addWidget(self.accept_button)
        self.accept_button.setProperty("kind", "primary")
        self.accept_button.setDefault(True)
        for button in (self.browse_button, self.cancel_button):
            button.setAutoDefault(False)
        column = self._column = QVBoxLayout(self)
        column.setContentsMargins(tokens.space_4, tokens.space_4, tokens.space_4, tokens.space_4)
        column.setSpacing(tokens.space_3)
        column.addWidget(heading)
        column.addLayout(form)
        column.addWidget(self.fault)
        column.addStretch(1)
        column.addLayout(foot)

    def _connect(self) -> None:
        self.name.textChanged.connect(self._check)
        self.folder.textChanged.connect(self._check)
        self.level.currentIndexChanged.connect(self._check)
        self.limit.valueChanged.connect(self._check)
        self.watch.toggled.connect(self._check)
        self.trust.toggled.connect(self._check)
        self.browse_button.clicked.connect(self._browse)
        self.cancel_button.clicked.connect(self.reject)
        self.accept_button.clicked.connect(self.accept)


def _kib(size: int) -> int:
    return max(1, min(MAX_KIB, -(-size // KIB)))


def _text(name: str, kind: str) -> QLabel:
    label = Label()
    label.setObjectName(name)
    label.setProperty("kind", kind)
    label.setWordWrap(True)
    return label


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
    from gatewright_gui.pages.files.source_dialog import SourceDialog

    dialog = SourceDialog(parent, _NEW, _answers(document, None), is_new=True)
    if not await shown(dialog):
        return None
    source = dialog.source
    if dialog.trusts and not _trust(document, source):
        return None
    return source.source_id if sources.add_source(document, source) else None


async def change_source(parent: QWidget, document: Document, source_id: str) -> str | None:
    """Ask for other settings; the id that the source has then."""
    from gatewright_gui.pages.files.source_dialog import SourceDialog

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
    from gatewright_gui.pages.files.source_dialog import SourceAnswers

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
