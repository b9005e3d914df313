"""The policy file under the window: changed by others, gone, not writable; what bars, foot and TOML page say."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt, QUrl
from PySide6.QtGui import QDesktopServices
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QDialogButtonBox, QFileDialog, QLineEdit

from gatewright_gui.pages.policy_file import TextPage
from gatewright_gui.session.verbs import rights
from gatewright_gui.window.main_window import MainWindow
from tests.gui.session.opened import demo, forget, opened_window, settled, until

TRAINEE = '\n[agents.trainee]\ndescription = "came from elsewhere"\ntools = ["file"]\n'


@pytest.fixture
async def window(tmp_path: Path) -> AsyncGenerator[MainWindow]:
    async with opened_window(demo(tmp_path), tmp_path) as made:
        yield made


def edit(window: MainWindow) -> None:
    assert rights.tick_operations(window.document, "operator", "file", ["delete"], on=False)


def type_comment(window: MainWindow) -> None:
    workspace = window.document.workspace
    change = workspace.typed_edit("policy as text", workspace.text(), f"# typed\n{workspace.text()}")
    assert window.document.push(lambda _policy, _tools: workspace.with_text(*change))


def path_of(window: MainWindow) -> Path:
    path = window.document.path
    assert path is not None
    return path


def append_agent(window: MainWindow) -> None:
    path = path_of(window)
    path.write_text(path.read_text("utf-8") + TRAINEE, "utf-8")


def toml(window: MainWindow) -> TextPage:
    page = window.shelf.page("text")
    assert isinstance(page, TextPage)
    return page


async def test_difference_is_against_the_disk_as_it_is_now_and_shows_what_saving_over_it_deletes(
    window: MainWindow,
) -> None:
    edit(window)
    append_agent(window)
    await until(window.outside.isVisible)

    window.outside.more_button.click()
    await settled(window)

    shown = toml(window).code.text
    assert window.shelf.current_key == "text"
    assert "-[agents.trainee]" in shown
    assert '+rule_type = { AllowedOperations = ["' in shown
    assert "changed by another program" in shown.splitlines()[0]
    window.save_over()
    await settled(window)
    assert "[agents.trainee]" not in path_of(window).read_text("utf-8")


async def test_what_another_program_changed_can_be_looked_at_before_it_is_read(window: MainWindow) -> None:
    append_agent(window)
    await until(window.outside.isVisible)

    window.outside.more_button.click()
    await settled(window)

    assert "+[agents.trainee]" in toml(window).code.text
    assert window.document.policy.agents.get("trainee") is None


async def test_changes_of_both_are_merged_where_they_are_of_different_things_and_undo_leaves_theirs(
    window: MainWindow,
) -> None:
    edit(window)
    type_comment(window)
    append_agent(window)
    await until(window.outside.isVisible)

    window.outside.merge_button.click()
    await settled(window)

    assert not window.outside.isVisible()
    assert window.document.workspace.text().startswith("# typed\n")
    assert "trainee" in window.document.policy.agents
    assert "delete" not in window.document.rights("operator")["file"].shown
    window.undo()
    assert "delete" in window.document.rights("operator")["file"].shown
    assert not window.document.is_dirty


async def test_changes_of_the_same_agent_are_not_merged_and_nothing_is_lost(window: MainWindow) -> None:
    edit(window)
    path = path_of(window)
    text = path.read_text("utf-8")
    mended = text.replace('[agents.operator]\ndescription = "', '[agents.operator]\ndescription = "Truly: ')
    assert mended != text
    path.write_text(mended, "utf-8")
    await until(window.outside.isVisible)

    window.outside.merge_button.click()
    await settled(window)

    assert "both changed the same agent" in window.message.text
    assert window.outside.isVisible()
    assert "delete" not in window.document.rights("operator")["file"].shown
    assert path.read_text("utf-8") == mended


async def test_a_policy_file_that_is_gone_is_said_and_written_again(window: MainWindow) -> None:
    path = path_of(window)
    before = path.read_bytes()
    path.unlink()
    await until(window.outside.isVisible)

    assert "gone" in window.outside.text
    assert window.status.saved.text() == "the policy file is gone"
    assert window.actions_by_key["save"].isEnabled()
    window.show_page("text")
    toml(window).part.set_current("difference")
    await settled(window)
    assert "gone" in toml(window).empty.accessibleName()
    window.outside.action_button.click()
    await settled(window)

    assert path.read_bytes() == before
    assert not window.outside.isVisible()
    assert not window.actions_by_key["save"].isEnabled()
    assert window.status.saved.text() == "saved just now"


async def test_save_writes_a_file_that_is_gone_with_the_edits(window: MainWindow) -> None:
    edit(window)
    path_of(window).unlink()
    await until(lambda: window.document.is_gone)

    window.save()
    await settled(window)

    assert path_of(window).read_text("utf-8") == window.document.workspace.text()
    assert not window.document.is_dirty
    assert not window.outside.isVisible()


async def test_reading_again_a_file_that_is_gone_changes_nothing_and_says_so(window: MainWindow) -> None:
    path_of(window).unlink()
    window.reload()
    await until(window.outside.isVisible)

    assert "gone" in window.outside.text
    assert window.document.alarm is None
    assert not window.alarm.isVisible()


async def test_a_file_that_comes_back_as_it_was_is_nothing_to_tell(window: MainWindow) -> None:
    path = path_of(window)
    before = path.read_bytes()
    path.unlink()
    await until(window.outside.isVisible)

    path.write_bytes(before)
    await until(lambda: not window.document.is_gone)

    assert not window.outside.isVisible()
    assert not window.document.is_dirty


async def test_a_failed_save_is_said_once_and_forgotten_when_saving_works(window: MainWindow) -> None:
    path = path_of(window)
    edit(window)
    before = path.read_bytes()
    path.unlink()
    path.mkdir()
    window.save_over()
    await until(window.message.isVisible)

    assert window.message.text.count("not saved") == 1
    path.rmdir()
    path.write_bytes(before)
    window.save_over()
    await settled(window)

    assert not window.message.isVisible()
    assert not window.outside.isVisible()


async def test_an_opened_policy_is_as_on_disk_until_it_is_saved_here(window: MainWindow) -> None:
    assert window.status.saved.text() == "saved"
    edit(window)
    await window.document.save()
    assert window.status.saved.text() == "saved just now"


async def test_toml_page_opens_the_file_in_the_editor_of_the_system(
    window: MainWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[QUrl] = []

    def opened(url: QUrl) -> bool:
        asked.append(url)
        return True

    monkeypatch.setattr(QDesktopServices, "openUrl", opened)
    window.show_page("text")
    await settled(window)
    page = toml(window)

    page.editor_button.click()

    assert [url.toLocalFile() for url in asked] == [str(path_of(window))]


async def save_as(window: MainWindow, path: Path) -> None:
    """Type a path into the dialog that is open."""
    await until(lambda: bool(window.findChildren(QFileDialog)))
    dialog = window.findChildren(QFileDialog)[0]
    field, box = dialog.findChild(QLineEdit, "fileNameEdit"), dialog.findChild(QDialogButtonBox)
    assert field is not None
    assert box is not None
    field.setText(str(path))
    box.button(QDialogButtonBox.StandardButton.Save).click()
    await settled(window)


async def test_save_as_takes_the_unsaved_edits_to_a_new_file_and_goes_on_there(
    window: MainWindow, tmp_path: Path
) -> None:
    old, before = path_of(window), path_of(window).read_bytes()
    window.selection.choose_agent("operator")
    edit(window)
    there = tmp_path / "other" / "desk.toml"
    there.parent.mkdir()

    QTest.keyClick(window, Qt.Key.Key_S, Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier)
    await save_as(window, there.with_suffix(""))

    assert path_of(window) == there
    assert not window.document.is_dirty
    assert old.read_bytes() == before
    assert "delete" not in window.document.rights("operator")["file"].shown
    assert window.selection.agent_id == "operator"
    assert window.preferences.recent_workspaces[0] == there
    assert f"saved as {there}, with 1 manifest" in window.message.text
    assert "memory, audit log and trust stay" in window.message.text


async def test_save_as_replaces_neither_a_policy_nor_a_manifest_that_is_there(
    window: MainWindow, tmp_path: Path
) -> None:
    old = path_of(window)
    edit(window)
    there = tmp_path / "other"
    there.mkdir()
    (there / "taken.toml").write_text("taken")
    manifest = window.document.policy.catalogs[0].file
    (there / manifest).parent.mkdir(parents=True, exist_ok=True)
    (there / manifest).write_text("another")

    window.actions_by_key["save_as"].trigger()
    await save_as(window, there / "taken.toml")
    assert "a file of that name exists already" in window.message.text
    window.message.action_button.click()
    await save_as(window, there / "free.toml")

    assert f"another {manifest}" in window.message.text
    assert (there / "taken.toml").read_text() == "taken"
    assert (there / manifest).read_text() == "another"
    assert not (there / "free.toml").exists()
    assert path_of(window) == old
    assert window.document.is_dirty


async def test_where_the_folder_is_gone_or_saving_fails_another_place_is_offered(
    window: MainWindow, tmp_path: Path
) -> None:
    path = path_of(window)
    edit(window)
    forget(path.parent)
    await until(lambda: window.document.is_gone)
    path.parent.write_text("a file is in the way of the folder")
    window.save()
    await until(window.message.isVisible)
    assert window.message.action_button.text() == "Save as..."

    window.outside.other_button.click()
    await save_as(window, tmp_path / "rescued.toml")

    assert path_of(window) == tmp_path / "rescued.toml"
    assert "delete" not in window.document.rights("operator")["file"].shown
    assert not window.outside.isVisible()
    assert window.message.text.startswith(f"saved as {tmp_path}")
