"""Dialogs that a coroutine waits for, under the loop that runs Qt."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QDialog, QFileDialog, QLineEdit, QPushButton, QWidget
from pytestqt.qtbot import QtBot

from gatewright_gui.qt.dialog import Choice, ask, choose_folder, choose_open_file
from gatewright_gui.theme import Theme
from tests.support.patience import patient, until

CHOICES = (Choice("discard", "Discard", "danger"), Choice("cancel", "Cancel"), Choice("save", "Save", "primary"))


async def opened(kind: type[QDialog] = QDialog) -> QDialog:
    """The dialog that is on screen, once it is."""

    def visible() -> list[QDialog]:
        return [w for w in QApplication.topLevelWidgets() if isinstance(w, kind) and w.isVisible()]

    await until(lambda: bool(visible()))
    return visible()[0]


@pytest.fixture
def window(theme: Theme, qtbot: QtBot) -> QWidget:
    made = QWidget()
    qtbot.addWidget(made)
    made.show()
    return made


async def test_answer_is_the_key_of_the_pressed_button(window: QWidget, qtbot: QtBot) -> None:
    question = asyncio.create_task(ask(window, "Save changes?", "They are not on disk.", CHOICES))
    dialog = await opened()
    button = dialog.findChild(QPushButton, "choice-discard")
    assert isinstance(button, QPushButton)
    QTest.mouseClick(button, Qt.MouseButton.LeftButton)
    assert await question == "discard"


async def test_escape_answers_none(window: QWidget, qtbot: QtBot) -> None:
    question = asyncio.create_task(ask(window, "Save changes?", "They are not on disk.", CHOICES))
    dialog = await opened()
    QTest.keyClick(dialog, Qt.Key.Key_Escape)
    assert await question is None


async def test_other_tasks_go_on_while_a_dialog_is_open(window: QWidget) -> None:
    question = asyncio.create_task(ask(window, "Save changes?", "They are not on disk.", CHOICES))
    dialog = await opened()
    assert await asyncio.create_task(asyncio.to_thread(lambda: 7)) == 7
    assert not question.done()
    dialog.reject()
    assert await question is None


async def test_cancelling_the_question_closes_its_dialog(window: QWidget) -> None:
    question = asyncio.create_task(ask(window, "Save changes?", "They are not on disk.", CHOICES))
    dialog = await opened()
    gone = asyncio.Event()
    dialog.destroyed.connect(gone.set)
    question.cancel()
    with pytest.raises(asyncio.CancelledError):
        await question
    async with patient():
        await gone.wait()


async def test_focus_begins_on_the_primary_button(window: QWidget) -> None:
    question = asyncio.create_task(ask(window, "Save changes?", "They are not on disk.", CHOICES))
    dialog = await opened()
    await until(dialog.isActiveWindow)
    assert dialog.focusWidget().objectName() == "choice-save"
    dialog.reject()
    await question


async def test_chosen_folder_is_a_path(window: QWidget, tmp_path: Path) -> None:
    question = asyncio.create_task(choose_folder(window, "Open workspace", tmp_path))
    dialog = await opened(QFileDialog)
    dialog.accept()
    assert await question == tmp_path


@pytest.mark.parametrize("choose", [choose_folder, choose_open_file])
async def test_what_is_typed_is_chosen_and_no_folder_on_the_way_to_it(
    window: QWidget, tmp_path: Path, choose: Callable[[QWidget, str, Path], Awaitable[Path | None]]
) -> None:
    """Each folder is the first row of the one above it, where Qt keeps selected what lies on the way."""
    wanted = tmp_path / "a" / "b" / "c" / "d"
    wanted.parent.mkdir(parents=True)
    if choose is choose_folder:
        wanted.mkdir()
    else:
        wanted.write_text("")
    question = asyncio.ensure_future(choose(window, "Choose", tmp_path))
    dialog = await opened(QFileDialog)
    field = dialog.findChild(QLineEdit, "fileNameEdit")
    assert field is not None
    await until(field.hasFocus)
    field.selectAll()
    QTest.keyClicks(field, str(wanted))
    dialog.accept()
    assert await question == wanted


async def test_name_in_a_file_dialog_counts_from_the_folder_that_it_shows(window: QWidget, tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    question = asyncio.create_task(choose_folder(window, "Export", tmp_path))
    dialog = await opened(QFileDialog)
    field = dialog.findChild(QLineEdit, "fileNameEdit")
    assert field is not None
    field.setText("docs")
    field.setText("docs/new")
    dialog.accept()
    assert await question == tmp_path / "docs" / "new"


async def test_dismissed_file_dialog_gives_none(window: QWidget, tmp_path: Path) -> None:
    question = asyncio.create_task(choose_folder(window, "Open workspace", tmp_path))
    (await opened(QFileDialog)).reject()
    assert await question is None
