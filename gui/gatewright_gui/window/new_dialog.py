"""Asks for what a new workspace begins with: its folder, what agents may do with the files there, a first agent."""

from pathlib import Path

from PySide6.QtCore import QStandardPaths, Qt
from PySide6.QtWidgets import QCheckBox, QComboBox, QFormLayout, QLineEdit, QPushButton, QWidget

from gatewright.workspace.api import Permission
from gatewright_gui.qt.dialog import CheckedDialog, choose_folder
from gatewright_gui.qt.language import mark, tr
from gatewright_gui.qt.layout import named, row_of, stretch
from gatewright_gui.qt.look import current_look
from gatewright_gui.qt.plaintext import label_text
from gatewright_gui.qt.task import TaskOwner
from gatewright_gui.qt.widget.label import Label
from gatewright_gui.session.opening import POLICY_NAME, example_names, secret_patterns

_LEVELS: tuple[tuple[str, Permission | None], ...] = (
    (mark("read them"), Permission.READ_ONLY),
    (mark("read them, and change them after asking"), Permission.HUMAN),
    (mark("read and change them; deleting asks first"), Permission.READ_WRITE),
    (mark("not touch them"), None),
)
_SHOWN = (".env*", ".ssh/", "*.pem")
"""Some of the patterns that hide secrets: the box has room for no more."""


class NewDialog(CheckedDialog):
    """After it was accepted `folder` and `example`, `agent_id`, `files_level` and `hide_secrets` hold the choice."""

    def __init__(self, parent: QWidget, tasks: TaskOwner, *, with_files: bool = True) -> None:
        super().__init__(parent, "new", tr("New workspace"), tr("Create"))
        self._tasks, self._with_files = tasks, with_files
        documents = QStandardPaths.writableLocation(QStandardPaths.StandardLocation.DocumentsLocation)
        own = "" if with_files else str(Path(documents or Path.home()) / "gatewright")  # with files the user says which
        self.place = named(QLineEdit(own), "new.folder", spoken=tr("Folder of the workspace"))
        self.browse_button = named(QPushButton(tr("C&hoose...")), "new.browse", spoken=tr("Choose the folder"))
        self.begin = named(QComboBox(), "new.begin", spoken=tr("What the workspace begins with"))
        self.begin.addItem(tr("a policy of my own, with one agent"))
        for example in example_names():
            self.begin.addItem(tr("a copy of the example: {example}", example=example.replace("-", " ")), example)
        self.level = named(QComboBox(), "new.level", spoken=tr("What agents may do with the files in it"))
        for words, level in _LEVELS:
            self.level.addItem(tr(words), level)
        self.level.setCurrentIndex(0 if with_files else len(_LEVELS) - 1)
        self.hide_secrets = named(
            QCheckBox(tr("Hide what looks like a secret, now and later: {names} and more", names=", ".join(_SHOWN))),
            "new.hide",
            spoken=tr("Hide secrets from every agent"),
        )
        self.hide_secrets.setToolTip(label_text(", ".join(secret_patterns())))
        self.hide_secrets.setChecked(True)
        self.agent = named(QLineEdit("assistant"), "new.agent", spoken=tr("Name of the first agent"))
        self.note = named(Label(wraps=True), "new.note", kind="muted")
        self._form = QFormLayout()
        self._lay_out()
        self.place.textChanged.connect(self._check)
        self.begin.currentIndexChanged.connect(self._check)
        self.level.currentIndexChanged.connect(self._check)
        self.agent.textChanged.connect(self._check)
        self.browse_button.clicked.connect(lambda: tasks.start(self._browse(), "new.browse", replace=True))
        self._check()
        self.place.setFocus()

    @property
    def folder(self) -> Path:
        """The folder where the workspace is to be."""
        return Path(self.place.text()).expanduser()

    @property
    def example(self) -> str | None:
        """The example to copy; None: a policy of one's own."""
        return self.begin.currentData()

    @property
    def agent_id(self) -> str:
        """The first agent."""
        return self.agent.text().strip()

    @property
    def files_level(self) -> Permission | None:
        """The level of what agents may do with the files of the folder; None: it has none for them."""
        return _LEVELS[self.level.currentIndex()][1]

    def _check(self, _what: object = None) -> None:
        folder, is_own = self.folder, self.example is None
        has_files = self.files_level is not None and is_own
        for row in (self.level, self.hide_secrets, self.agent):
            self._form.setRowVisible(row, is_own)
        path = folder / POLICY_NAME
        fault, is_named = "", bool(self.place.text())
        if is_named and not folder.is_absolute():
            fault = tr("write the folder whole, from the root or from ~ on")
        elif is_named and path.exists():
            fault = tr("{path} exists already: open it instead", path=path)
        elif is_own and not self.agent_id:
            fault = tr("the first agent needs a name")
        self.say(fault)
        self.hide_secrets.setVisible(has_files)
        place = (
            tr("The policy will be {path}.", path=path)
            if is_named
            else tr("Choose a folder: the policy will be {file} in it.", file=POLICY_NAME)
        )
        self.note.setText(f"{place} {tr('No tool can read or change that file, whatever the rules say.')}")
        self.accept_button.setEnabled(is_named and not fault)

    async def _browse(self) -> None:
        start = self.folder if self.folder.is_dir() else Path.home()
        chosen = await choose_folder(self, tr("Folder of the workspace"), start)
        if chosen is not None:
            self.place.setText(str(chosen))

    def _lay_out(self) -> None:
        form = self._form
        form.setSpacing(current_look().tokens.space_2)
        form.setLabelAlignment(Qt.AlignmentFlag.AlignLeft)
        form.addRow(Label(tr("&Folder"), buddy=self.place), row_of(stretch(self.place), self.browse_button, space=2))
        form.addRow("", self.note)
        if self._with_files:
            form.addRow(tr("Begin &with"), self.begin)
        form.addRow(tr("With its files agents &may"), self.level)
        form.addRow("", self.hide_secrets)
        form.addRow(tr("First &agent"), self.agent)
        self.browse_button.setAutoDefault(False)
        self.lay_out(self.heading, form, self.fault, stretch(), space=3)
        self.resize(640, 320)
