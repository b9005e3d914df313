"""Sources added, changed and removed in dialogs, each as one edit.

The dialog asks for kind, name, folder, default level, size limit and whether changes are followed, of a stream of
changes and of a source of a program for what these have, and for their rules, whose files no page shows; why a source
would be refused is said in it, and it stays.
"""

import os
from collections.abc import Coroutine, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject, Qt, QTimer, Signal
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QFileDialog,
    QFormLayout,
    QLineEdit,
    QPlainTextEdit,
    QPushButton,
    QWidget,
)
from shiboken6 import isValid

from gatewright.workspace.api import EditRefused, GatewrightError, Permission, PermissionRule, Source, SourceType
from gatewright_gui.pages.access.files.level import level_combo
from gatewright_gui.pages.access.files.shown_source import ShownSource
from gatewright_gui.pages.page import PageContext
from gatewright_gui.qt.dialog import CheckedDialog, Choice, ask, run_dialog
from gatewright_gui.qt.filedialog import dress
from gatewright_gui.qt.language import mark, tr
from gatewright_gui.qt.layout import named, row_of, stretch
from gatewright_gui.qt.look import current_look
from gatewright_gui.qt.widget import NumberField
from gatewright_gui.qt.widget.label import Label
from gatewright_gui.session.document import Document
from gatewright_gui.session.verbs import sources

_KINDS = {
    SourceType.FILE: mark("Files that agents work with"),
    SourceType.FOLDER_CHANGES: mark("Stream of the changes below a folder"),
    SourceType.HOST: mark("What a program adds: texts by key, a stream, tools"),
}
_WHICH_STREAM = mark("The folder whose changes are told: choose one, or write it from the policy file on.")
_WHICH_FOLDER = mark(
    "The folder that agents reach through this source: choose one, or write it from the policy file on."
)
_OUTSIDE = mark(
    "{folder} lies outside the folder of the policy. Agents reach it only once you trust it; what is trusted is kept"
    " with your keys, not in the policy."
)
_RUNS = mark("A program added it here: it runs.")
_RUNS_WITH = mark("A program added it here: it runs, with the tools {tools}.")
_NOT_RUN = mark(
    "No program added it here. It gives nothing, and its tools are not there, before a program that opens this policy"
    " adds a source of that name."
)
KIB = 1024
MAX_KIB = 1024 * 1024


class SourceDialog(CheckedDialog):
    """Asks for a new source, or for other settings of `before`.

    After it was accepted `source` holds what was chosen, and `trusts` whether a folder outside is to be trusted.
    """

    def __init__(self, parent: QWidget | None, document: Document, before: Source | None = None) -> None:
        title = tr("New source") if before is None else tr("Settings of {source}", source=before.source_id)
        super().__init__(parent, "source", title, tr("Add source") if before is None else tr("Change"))
        self._document, self._is_new, self._before = document, before is None, before or Source("", "")
        self.kind = named(QComboBox(), "source.kind", spoken=tr("Kind of source"))
        for kind, words in _KINDS.items():
            self.kind.addItem(tr(words), str(kind))
        self.kind.setEnabled(self._is_new)
        self.kind.setToolTip("" if self._is_new else tr("A source stays what it is: remove it and add another one"))
        self.name = named(QLineEdit(self._before.source_id), "source.name", spoken=tr("Name of the source"))
        self.folder = named(QLineEdit(self._before.base_path), "source.folder", spoken=tr("Folder of the source"))
        self.browse_button = named(QPushButton(tr("C&hoose...")), "source.browse", spoken=tr("Choose the folder"))
        self.level = named(
            level_combo(self),
            "source.level",
            spoken=tr("Default level"),
            tip=tr("What a path gets that no rule matches"),
        )
        limit = tr("Size limit of a file, in KiB")
        self.limit = named(NumberField(limit, 1, MAX_KIB, unit="KiB"), "source.limit", spoken=limit)
        self.watch = named(
            QCheckBox(tr("&Take changes made outside into open blocks (watch)")),
            "source.watch",
            spoken=tr("Take changes made outside into open blocks"),
            tip=tr("Edits of other lines are kept in the block; of the same lines they are told as a conflict"),
        )
        rules = tr("Levels of keys and paths, a rule on each line; the first one that matches counts")
        self.rules = named(QPlainTextEdit(), "source.rules", spoken=rules, tip=rules)
        self.rules.setPlaceholderText(tr("closed/** none\nopen/** read_write"))
        self.rules.setTabChangesFocus(True)
        self.rules.setMaximumHeight(88)
        self.trust = named(
            QCheckBox(tr("&Trust this folder, although it lies outside the workspace")),
            "source.trust",
            spoken=tr("Trust this folder outside the workspace"),
        )
        self.note = named(Label(wraps=True), "source.note", kind="muted")
        self._fill()
        self._lay_out()
        self._connect()
        self._check()
        self.name.setFocus()
        self.resize(600, self.sizeHint().height())

    @property
    def source(self) -> Source:
        """The source that is asked for; a limit that was not touched keeps its bytes."""
        size = self._before.max_file_bytes
        if self.limit.value() != _kib(size) and not self.is_stream:
            size = self.limit.value() * KIB
        is_file = self.kind.currentData() == str(SourceType.FILE)
        rules = self._before.permission_rules if is_file else tuple(self._rules())
        return replace(
            self._before,
            source_id=self.name.text(),
            base_path="" if self.is_own else self.folder.text(),
            permission_rules=rules,
            default_permission=Permission(str(self.level.currentData())),
            max_file_bytes=size,
            watch=self.watch.isChecked() and is_file,
            kind=SourceType(str(self.kind.currentData())),
        )

    @property
    def is_stream(self) -> bool:
        """Tell whether it is to tell of changes, and to give no files."""
        return self.kind.currentData() == str(SourceType.FOLDER_CHANGES)

    @property
    def is_own(self) -> bool:
        """True where a program adds it, which has no folder."""
        return self.kind.currentData() == str(SourceType.HOST)

    @property
    def trusts(self) -> bool:
        """Tell whether a folder outside is to be trusted."""
        return self.trust.isChecked() and not self.trust.isHidden()

    def accept(self) -> None:
        """Close, unless it would be refused: then say why and stay."""
        fault = self._fault()
        self.say(fault)
        if not fault:
            super().accept()

    def _rules(self) -> Iterator[PermissionRule]:
        """The rules as they are written; those that were there stay the same. Raises EditRefused."""
        before = {(rule.pattern, rule.permission): rule for rule in self._before.permission_rules}
        levels = {str(level): level for level in Permission}
        for number, line in enumerate(self.rules.toPlainText().splitlines(), 1):
            pattern, _, word = line.strip().rpartition(" ")
            if not line.strip():
                continue
            if word not in levels or not pattern.strip():
                named = ", ".join(levels)
                told = tr("line {number}: write a pattern, a space and a level: {levels}", number=number, levels=named)
                raise EditRefused(told)
            rule = PermissionRule(pattern.strip(), levels[word])
            yield before.get((rule.pattern, rule.permission), rule)

    def _fault(self) -> str:
        try:
            source = self.source
        except EditRefused as error:
            return str(error)
        if not source.source_id.strip():
            return tr("a source needs a name")
        if not self.is_own and not source.base_path.strip():
            return tr("a source needs a folder")
        if not self.trust.isHidden() and not self.trusts:
            return tr("choose a folder inside the workspace, or tick that you trust this one")
        if self.trusts and not self.is_own and self._document.workspace.outside(source.base_path) is not None:
            # trust is given with the edit: what else would be refused is asked for a folder that needs none
            source = replace(source, base_path="." if self._is_new else self._before.base_path)
        if self._is_new:
            return sources.add_refusal(self._document, source)
        return sources.change_refusal(self._document, self._before, source)

    def _check(self) -> None:
        """Say while one types what would be refused; an empty field is no mistake yet."""
        written = "" if self.is_own else self.folder.text()
        outside = self._document.workspace.outside(written) if written.strip() else None
        is_other = self._is_new or written != self._before.base_path or self.name.text() != self._before.source_id
        self.trust.setVisible(outside is not None and is_other)
        is_file = not self.is_stream and not self.is_own
        self._form.setRowVisible(self._folder, not self.is_own)
        self._form.setRowVisible(self.limit, not self.is_stream)
        self._form.setRowVisible(self.watch, is_file)
        self._form.setRowVisible(self.rules, not is_file)
        self.note.setText(self._about(written, outside))
        self.note.setVisible(bool(self.note.text()))
        empty = not self.name.text().strip() or not (self.is_own or written.strip())
        fault = "" if empty else self._fault()
        self.say(fault)
        same = not self._is_new and not fault and self.source == self._before
        self.accept_button.setEnabled(not empty and not fault and not same)
        self.accept_button.setToolTip(tr("It is so already") if same else "")
        QTimer.singleShot(0, self, self._grow)

    def _grow(self) -> None:
        """Room for what is said."""
        needed = self._column.totalHeightForWidth(self.width())
        if needed > self.height():
            self.resize(self.width(), needed)

    def _about(self, written: str, outside: Path | None) -> str:
        if self.is_own:
            return self._about_program()
        if not written.strip():
            return tr(_WHICH_STREAM if self.is_stream else _WHICH_FOLDER)
        told: list[str] = []
        if outside is not None:
            told.append(tr(_OUTSIDE, folder=outside))
        place = self._place(written)
        if not place.is_dir():
            told.append(tr("{folder} is not there yet: nothing can be read in it until it is made.", folder=place))
        return " ".join(told)

    def _about_program(self) -> str:
        """Say whether a program added it, and with which tools."""
        name = self._before.source_id
        if self._is_new or self._document.workspace.sources.own(name) is None:
            return tr(_NOT_RUN)
        tools = [facts.name for facts in self._document.catalog if facts.source == name]
        return tr(_RUNS_WITH, tools=", ".join(tools)) if tools else tr(_RUNS)

    def _place(self, written: str) -> Path:
        """The real folder of what is written in the policy."""
        return Path(os.path.realpath(self._document.workspace.folder / written))

    def _browse(self) -> None:
        start = self._place(self.folder.text() or ".")
        dialog = QFileDialog(self, tr("Folder of the source"), str(start if start.is_dir() else start.parent))
        dialog.setObjectName("source.folderdialog")
        dialog.setFileMode(QFileDialog.FileMode.Directory)
        dialog.setOption(QFileDialog.Option.ShowDirsOnly, on=True)
        dialog.setLabelText(QFileDialog.DialogLabel.FileName, tr("Folder:"))
        dress(dialog)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.fileSelected.connect(self._take_folder)
        dialog.open()

    def _take_folder(self, path: str) -> None:
        """Write a chosen folder as a policy has it: from the policy file on, or whole where it lies outside."""
        if not path:
            return
        workspace, real = self._document.workspace, os.path.realpath(path)
        is_outside = workspace.outside(real) is not None
        self.folder.setText(real if is_outside else os.path.relpath(real, os.path.realpath(workspace.folder)))
        if not self.name.text():
            self.name.setText(Path(path).name)

    # the parts

    def _fill(self) -> None:
        self.kind.setCurrentIndex(self.kind.findData(str(self._before.kind)))
        self.level.setCurrentIndex(self.level.findData(str(self._before.default_permission)))
        self.limit.setValue(_kib(self._before.max_file_bytes))
        self.watch.setChecked(self._before.watch)
        lines = (f"{rule.pattern} {rule.permission}" for rule in self._before.permission_rules)
        self.rules.setPlainText("\n".join(lines))
        self.name.setPlaceholderText(tr("as agents write it, such as notes"))
        self.folder.setPlaceholderText(tr("from the policy file on, such as shared/notes"))

    def _lay_out(self) -> None:
        form = self._form = QFormLayout()
        form.setSpacing(current_look().tokens.space_2)
        form.setLabelAlignment(Qt.AlignmentFlag.AlignLeft)
        form.addRow(tr("&Kind"), self.kind)
        form.addRow(tr("&Name"), self.name)
        self._folder = row_of(stretch(self.folder), self.browse_button, space=2)
        form.addRow(Label(tr("&Folder"), buddy=self.folder), self._folder)
        form.addRow("", self.note)
        form.addRow("", self.trust)
        form.addRow(tr("&Default level"), self.level)
        form.addRow(tr("&Rules"), self.rules)
        form.addRow(tr("&Size limit of a file"), self.limit)
        form.addRow("", self.watch)
        self.browse_button.setAutoDefault(False)
        self._column = self.lay_out(self.heading, form, self.fault, stretch(), space=3)

    def _connect(self) -> None:
        for changed in (
            self.kind.currentIndexChanged,
            self.name.textChanged,
            self.folder.textChanged,
            self.level.currentIndexChanged,
            self.limit.valueChanged,
            self.rules.textChanged,
            self.watch.toggled,
            self.trust.toggled,
        ):
            changed.connect(self._check)
        self.browse_button.clicked.connect(self._browse)


class SourceQuestions(QObject):
    """The dialogs for the source that a page shows, and for streams of changes by their ids, one at a time."""

    taken = Signal(object)
    """A source of files that was added or renamed is to be shown: its id, str."""

    def __init__(self, context: PageContext, shown: ShownSource, page: QWidget) -> None:
        super().__init__(page)
        self._document, self._tasks, self._shown, self._page = context.document, context.tasks, shown, page

    def add(self) -> None:
        """Ask for a new one."""
        if self._document.is_open:
            self._start(self._ask_settings(None))

    def change(self, stream_id: str) -> None:
        """Ask for other settings; "": of the source that is shown."""
        source = self._document.policy.source(stream_id) if stream_id else self._shown.source
        if source is not None:
            self._start(self._ask_settings(source))

    def remove(self, stream_id: str) -> None:
        """Remove it after a question that says what goes with it."""
        source = self._document.policy.source(stream_id) if stream_id else self._shown.source
        if source is not None:
            self._start(self._ask_removal(source))

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        self._tasks.start(work, "files.sources", replace=True)

    async def _ask_settings(self, before: Source | None) -> None:
        document, dialog = self._document, SourceDialog(self._page, self._document, before)
        if not await run_dialog(dialog):
            return
        source = dialog.source
        if dialog.trusts:
            try:
                document.workspace.trust_source(source.source_id, source.base_path)
            except GatewrightError as error:
                document.say("error", str(error))
                return
        if before is None:
            done = sources.add_source(document, source)
        else:
            done = sources.change_source(document, before, source)
        if done and isValid(self) and source.kind is SourceType.FILE and source.source_id != self._shown.source_id:
            self.taken.emit(source.source_id)
        if done and before is None:
            text = tr(
                "source `{source}` was added: agents get it on the page Agents (Sources)", source=source.source_id
            )
            document.say("info", text)

    async def _ask_removal(self, source: Source) -> None:
        document, source_id = self._document, source.source_id
        if refusal := sources.remove_refusal(document, source):
            document.say("warning", tr("source `{source}` stays: {reason}", source=source_id, reason=refusal))
            return
        agents = sources.agents_listing(document, source_id)
        text = tr("Its rules go with it; no file is touched. Undo brings it back.")
        if agents:
            names = ", ".join(agents[:4])
            if len(agents) > 4:
                names = tr("{names} and {count:,} more", names=names, count=len(agents) - 4)
            text += " " + tr("It is also taken from the lists of {agents}.", agents=names)
        choices = (Choice("keep", tr("Keep it")), Choice("remove", tr("Remove"), "danger"))
        title = tr("Remove source {source}?", source=source_id)
        answer = await ask(self._page, title, text, choices, icon="trash", role="ask")
        if answer == "remove":
            sources.remove_source(document, source)


def _kib(size: int) -> int:
    return max(1, min(MAX_KIB, -(-size // KIB)))
