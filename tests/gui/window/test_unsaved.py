"""Unsaved edits survive a kill: what a real process of the window left is offered by the next one."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton

from gatewright.workspace.trust import Journal, UnsavedPolicy
from gatewright_gui.pages.policy_file import TextPage
from gatewright_gui.qt.task import TaskOwner
from gatewright_gui.session.derive import Deriver
from gatewright_gui.session.document import Document
from gatewright_gui.session.opening import folder_of_unsaved
from gatewright_gui.session.unsaved import UnsavedEdits
from gatewright_gui.session.verbs import rights
from gatewright_gui.window.main_window import MainWindow
from tests.gui.session.opened import Said, click, demo, opened_window, settled, ticked, until
from tests.support.checkout import ROOT


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    return demo(tmp_path)


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with a workspace that a process was killed in when `append` of `file` was unticked, and what it left.

    The workspace as it was lies in ``before``, the journal in ``unsaved``.
    """
    home = tmp_path_factory.mktemp("killed")
    policy = demo(home)
    shutil.copytree(policy.parent, home / "before")
    data = home / "data"
    words = (sys.executable, "-m", "tests.support.edited_window", str(policy), str(home))
    environ = {**os.environ, "XDG_DATA_HOME": str(data)}
    with subprocess.Popen(words, cwd=ROOT, env=environ, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "edited\n"
        finally:
            process.kill()
    assert policy.read_text("utf-8") == (home / "before" / policy.name).read_text("utf-8")
    (data / "gatewright/unsaved").rename(home / "unsaved")
    return home


@pytest.fixture
def left(killed: Path) -> Path:
    """The policy of the process that was killed, whose journal lies in the data of this test's user."""
    shutil.rmtree(killed / "demo")
    shutil.copytree(killed / "before", killed / "demo")
    shutil.copytree(killed / "unsaved", folder_of_unsaved())
    return killed / "demo/policy.toml"


def press(button: QAbstractButton) -> None:
    assert button.isVisible()
    QTest.mouseClick(button, Qt.MouseButton.LeftButton)


def kept() -> list[Path]:
    return sorted(folder_of_unsaved().glob("*.json"))


def edit(window: MainWindow, operation: str = "delete", agent_id: str = "operator") -> None:
    assert rights.tick_operations(window.document, agent_id, "file", [operation], on=False)


async def test_edits_of_a_killed_window_are_brought_back_as_one_edit_and_undone(left: Path, tmp_path: Path) -> None:
    before = left.read_text("utf-8")
    assert kept()[0].stat().st_mode & 0o777 == 0o600

    async with opened_window(left, tmp_path) as window:
        bar = window.unsaved_bar
        await until(bar.isVisible)
        assert bar.action_button.text() == "Bring back 1 unsaved change"
        was = ticked(window, "file", "append")
        press(bar.more_button)
        await settled(window)
        page = window.shelf.page("text")
        assert isinstance(page, TextPage)
        assert "@@" in page.code.text
        press(bar.action_button)
        await settled(window)
        assert not bar.isVisible()
        window.show_page("tools")
        assert ticked(window, "file", "append") != was
        assert window.document.is_dirty
        assert window.document.undo_stack.count() == 1

        window.undo()
        await settled(window)

        assert ticked(window, "file", "append") == was
        assert not window.document.is_dirty
        assert window.document.workspace.text() == before
        assert not kept()


async def test_bringing_back_what_is_offered_no_more_does_nothing() -> None:
    document, failures = Document(), list[BaseException]()
    deriver, tasks = Deriver(document), TaskOwner(lambda _name, error: failures.append(error))
    UnsavedEdits(document, deriver, tasks).bring_back()
    await until(lambda: not tasks.names)
    deriver.close()
    assert failures == []


async def test_edits_that_are_thrown_away_are_offered_no_more(left: Path, tmp_path: Path) -> None:
    async with opened_window(left, tmp_path) as window:
        await until(window.unsaved_bar.isVisible)
        press(window.unsaved_bar.other_button)
        await settled(window)
        assert not window.unsaved_bar.isVisible()
        assert not window.document.is_dirty
    assert not kept()


async def test_edits_fit_a_file_that_was_changed_elsewhere_and_keep_that(left: Path, tmp_path: Path) -> None:
    left.write_text(left.read_text("utf-8") + '\n[agents.trainee]\ntools = ["file"]\n', "utf-8")
    async with opened_window(left, tmp_path) as window:
        await until(window.unsaved_bar.isVisible)
        assert "changed since, in other places" in window.unsaved_bar.text
        press(window.unsaved_bar.action_button)
        await settled(window)
        assert window.document.is_dirty
        assert "trainee" in window.document.policy.agents


async def test_edits_that_no_longer_fit_are_saved_as_a_file_beside_the_policy(left: Path, tmp_path: Path) -> None:
    text = left.read_text("utf-8")
    left.write_text(text.replace('user_id = "station"', 'user_id = "someone"', 1), "utf-8")  # the archivist's
    async with opened_window(left, tmp_path) as window:
        said = Said(window.document)
        await until(window.unsaved_bar.isVisible)
        assert "do not fit" in window.unsaved_bar.text
        press(window.unsaved_bar.action_button)
        await settled(window)
        beside = left.with_name("policy.unsaved.toml")
        assert str(beside) in said.last
        assert beside.read_text("utf-8") != text
        assert not window.document.is_dirty
    assert not kept()


@pytest.mark.parametrize("content", [b"{", b'{"grown_from": "", "text": "no policy", "steps": 1}'])
async def test_a_damaged_journal_is_ignored_with_a_sentence(left: Path, tmp_path: Path, content: bytes) -> None:
    kept()[0].write_bytes(content)
    async with opened_window(left, tmp_path) as window:
        await until(window.message.isVisible)
        assert "are ignored" in window.message.text
        assert window.document.is_open
        assert not window.unsaved_bar.isVisible()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
async def test_a_journal_of_another_user_is_ignored_with_a_sentence(left: Path, tmp_path: Path) -> None:
    os.chown(kept()[0], 65534, 65534)
    async with opened_window(left, tmp_path) as window:
        await until(window.message.isVisible)
        assert "not yours" in window.message.text
        assert not window.unsaved_bar.isVisible()


async def test_two_windows_on_one_policy_keep_their_own_journals_and_offer_neither(
    policy: Path, tmp_path: Path
) -> None:
    async with opened_window(policy, tmp_path) as one:
        edit(one)
        await until(lambda: len(kept()) == 1)
        async with opened_window(policy, tmp_path) as other:
            assert not other.unsaved_bar.isVisible()
            edit(other, "append")
            await until(lambda: len(kept()) == 2)
            other.undo()
            await until(lambda: len(kept()) == 1)


async def test_the_journal_goes_when_the_policy_is_saved_and_stays_when_the_window_is_ended(
    policy: Path, tmp_path: Path
) -> None:
    async with opened_window(policy, tmp_path) as window:
        edit(window)
        await until(lambda: len(kept()) == 1)
        window.save()
        await until(lambda: not kept())
        edit(window, "append")
    assert len(kept()) == 1
    async with opened_window(policy, tmp_path) as again:
        await until(again.unsaved_bar.isVisible)


async def test_where_nothing_can_be_kept_one_warning_says_so_and_editing_goes_on(policy: Path, tmp_path: Path) -> None:
    folder_of_unsaved().parent.mkdir(parents=True, exist_ok=True)
    folder_of_unsaved().write_text("not a folder")
    async with opened_window(policy, tmp_path) as window:
        said = Said(window.document)
        edit(window)
        await until(lambda: bool(said.messages))
        assert "would not survive a crash" in said.last
        click(window, "file", "append")
        await until(lambda: not window.tasks.names)
        await window.unsaved.close()
        assert len(said.messages) == 1
        assert window.document.undo_stack.count() == 2


async def test_unsaved_text_that_was_typed_is_brought_back_letter_by_letter(policy: Path, tmp_path: Path) -> None:
    saved = policy.read_text("utf-8")
    typed = saved.replace("[agents.operator]", "#  typed by   hand\n[agents.operator]")
    journal = Journal(folder_of_unsaved(), policy)
    journal.keep(UnsavedPolicy(saved, typed, 1))
    journal.close()
    async with opened_window(policy, tmp_path) as window:
        await until(window.unsaved_bar.isVisible)
        press(window.unsaved_bar.action_button)
        await settled(window)
        assert window.document.workspace.text() == typed
        window.undo()
        assert window.document.workspace.text() == saved
