"""Dialogs that a coroutine can wait for: window-modal, answered through a future, never a nested event loop."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDialog, QFileDialog, QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from gatewright_gui.qt.filedialog import FolderDialog, dress
from gatewright_gui.qt.language import tr
from gatewright_gui.qt.layout import Part, column_of, named, row_of, stretch
from gatewright_gui.qt.look import Role, current_look
from gatewright_gui.qt.plaintext import button_text, title_text
from gatewright_gui.qt.widget.label import IconLabel, Label

ChoiceKind = Literal["primary", "normal", "danger"]


@dataclass(frozen=True, slots=True)
class Choice:
    """One button of a question. `key` is what `ask` answers with."""

    key: str
    label: str
    kind: ChoiceKind = "normal"


async def run_dialog(dialog: QDialog) -> bool:
    """Open a dialog, wait until it is finished, say whether it was accepted, and dispose of it.

    Cancelling the waiting task closes the dialog.
    """
    answer: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def settle(result: int) -> None:
        if not answer.done():
            answer.set_result(result)

    dialog.finished.connect(settle)
    dialog.open()
    try:
        return await answer == QDialog.DialogCode.Accepted.value
    finally:
        dialog.finished.disconnect(settle)
        dialog.close()
        dialog.deleteLater()


class FormDialog(QDialog):
    """Asks for something, and is accepted or not. `name` begins the names of what is in it."""

    def __init__(self, parent: QWidget | None, name: str, title: str, accept: str, cancel: str = "") -> None:
        super().__init__(parent)
        named(self, name, spoken=title)
        self.setWindowTitle(title_text(title))
        self.accept_button = named(QPushButton(button_text(accept)), f"{name}.accept", kind="primary")
        self.cancel_button = named(QPushButton(cancel or tr("Cancel")), f"{name}.cancel")
        self.cancel_button.clicked.connect(self.reject)
        self.accept_button.clicked.connect(self.accept)

    def lay_out(self, *parts: Part, foot: Sequence[Part] = (stretch(),), space: int = 2) -> QVBoxLayout:
        """The parts from top to bottom, below them the buttons behind what stands at the `foot`."""
        buttons = row_of(*foot, self.cancel_button, self.accept_button, space=2)
        return column_of(*parts, buttons, into=self, space=space, margins=4)


class CheckedDialog(FormDialog):
    """Says what is wrong with what is asked for, and stays; Return accepts. A subclass places heading and fault."""

    def __init__(self, parent: QWidget | None, name: str, title: str, accept: str) -> None:
        super().__init__(parent, name, title, accept)
        self.heading = named(Label(title), kind="heading")
        self.fault = named(Label(wraps=True), f"{name}.fault", kind="error")
        self.fault.hide()
        self.accept_button.setDefault(True)
        self.cancel_button.setAutoDefault(False)

    def say(self, fault: str) -> None:
        """Say what is wrong; nothing where it is empty."""
        self.fault.setText(fault.replace("`", ""))
        self.fault.setVisible(bool(fault))


class QuestionDialog(QDialog):
    """A short question with named buttons; Escape and closing leave `answer` None."""

    def __init__(
        self, parent: QWidget | None, title: str, text: str, choices: Sequence[Choice], icon: str, role: Role
    ) -> None:
        super().__init__(parent)
        self.answer: str | None = None
        self.setWindowTitle(title_text(title))
        self.setAccessibleName(title)
        self.setAccessibleDescription(text)
        space = current_look().tokens.space_4
        outer = QVBoxLayout(self)
        outer.setContentsMargins(space, space, space, space)
        outer.setSpacing(space)
        outer.addLayout(self._message(title, text, icon, role))
        outer.addLayout(self._buttons(choices))
        for button in self.findChildren(QPushButton):
            if button.isDefault():
                button.setFocus()
        self.setMinimumWidth(400)
        self.setMaximumWidth(640)

    def _message(self, title: str, text: str, icon: str, role: Role) -> QHBoxLayout:
        tokens = current_look().tokens
        row = QHBoxLayout()
        row.setSpacing(tokens.space_3)
        row.addWidget(IconLabel(icon, role, size=24), 0, Qt.AlignmentFlag.AlignTop)
        words = QVBoxLayout()
        words.setSpacing(tokens.space_1)
        heading = Label(title)
        heading.setProperty("kind", "heading")
        body = Label(text, wraps=True)
        body.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        words.addWidget(heading)
        words.addWidget(body)
        row.addLayout(words, 1)
        return row

    def _buttons(self, choices: Sequence[Choice]) -> QHBoxLayout:
        row = QHBoxLayout()
        row.setSpacing(current_look().tokens.space_2)
        row.addStretch(1)
        for choice in choices:
            button = QPushButton(choice.label)
            button.setObjectName(f"choice-{choice.key}")
            button.setProperty("kind", choice.kind)
            button.setAutoDefault(True)
            button.setDefault(choice.kind == "primary")
            button.clicked.connect(lambda _=False, key=choice.key: self._choose(key))
            row.addWidget(button)
        return row

    def _choose(self, key: str) -> None:
        self.answer = key
        self.accept()


async def ask(
    parent: QWidget | None,
    title: str,
    text: str,
    choices: Sequence[Choice],
    *,
    icon: str = "circle-help",
    role: Role = "accent",
) -> str | None:
    """Ask and wait: the key of the chosen button, or None when the question was dismissed."""
    dialog = QuestionDialog(parent, title, text, choices, icon, role)
    accepted = await run_dialog(dialog)
    return dialog.answer if accepted else None


async def tell(parent: QWidget | None, title: str, text: str, *, icon: str = "info", role: Role = "accent") -> None:
    """Say something that must be read before going on."""
    await ask(parent, title, text, (Choice("close", tr("Close"), "primary"),), icon=icon, role=role)


async def _pick(dialog: QFileDialog) -> Path | None:
    chosen: list[str] = []
    dialog.fileSelected.connect(chosen.append)  # once it is closed, Qt may answer otherwise
    return Path(chosen[-1]) if await run_dialog(dialog) and chosen else None


async def choose_folder(parent: QWidget | None, title: str, start: Path) -> Path | None:
    """Let a folder be chosen, also one that is not there yet; None when dismissed."""
    return await _pick(FolderDialog(parent, title, start))


async def choose_open_file(parent: QWidget | None, title: str, start: Path, name_filter: str = "") -> Path | None:
    """Let an existing file be chosen; None when dismissed. `name_filter` as in `Policy files (*.toml)`."""
    dialog = QFileDialog(parent, title, str(start), name_filter)
    dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
    dress(dialog)
    return await _pick(dialog)


async def choose_save_file(
    parent: QWidget | None, title: str, start: Path, name_filter: str = "", *, replaces: bool = True
) -> Path | None:
    """Let the name of a file to write be chosen; None when dismissed.

    ``replaces``: what is there may be written over, which is asked before.
    """
    dialog = QFileDialog(parent, title, str(start.parent), name_filter)
    dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
    dialog.setFileMode(QFileDialog.FileMode.AnyFile)
    dialog.setOption(QFileDialog.Option.DontConfirmOverwrite, not replaces)
    dialog.selectFile(start.name)
    dress(dialog)
    return await _pick(dialog)
