"""The policy typed as text on the page TOML, in a real window: checked, applied, discarded, merged, kept."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QTextCursor
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QPushButton

from gatewright_gui.pages.policy_file import PolicyFilePage, TextPage
from gatewright_gui.pages.policy_file.problems import ProblemsPage
from gatewright_gui.session.verbs.agents import describe_agent
from gatewright_gui.window.main_window import MainWindow
from tests.gui.session.opened import broken, demo, opened_window, settled, until


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    return demo(tmp_path)


@pytest.fixture
async def window(policy: Path, tmp_path: Path) -> AsyncGenerator[MainWindow]:
    async with opened_window(policy, tmp_path) as made:
        yield made


async def page_of(window: MainWindow) -> TextPage:
    window.show_page("text")
    await settled(window)
    page = window.shelf.page("text")
    assert isinstance(page, TextPage)
    await until(lambda: not page.editor.isReadOnly())
    return page


def replace(page: TextPage, old: str, new: str) -> None:
    """Select some letters of the text and type others."""
    at = "\n".join(page.editor.lines).index(old)
    cursor = page.editor.textCursor()
    cursor.setPosition(at)
    cursor.setPosition(at + len(old), QTextCursor.MoveMode.KeepAnchor)
    page.editor.setTextCursor(cursor)
    for at, line in enumerate(new.split("\n")):
        if at:
            press(page, Qt.Key.Key_Return)
        QTest.keyClicks(page.editor, line)


def press(page: TextPage, key: Qt.Key, held: Qt.KeyboardModifier = Qt.KeyboardModifier.NoModifier) -> None:
    QTest.keyClick(page.editor, key, held)


async def answer(window: MainWindow, label: str) -> None:
    """Click a button of the question that is open."""
    await until(lambda: QApplication.activeModalWidget() is not None)
    box = QApplication.activeModalWidget()
    assert box is not None
    button = next(one for one in box.findChildren(QPushButton) if one.text() == label)
    QTest.mouseClick(button, Qt.MouseButton.LeftButton)
    await settled(window)


async def test_typed_text_is_checked_where_it_stands_applied_as_one_edit_and_undone(window: MainWindow) -> None:
    page, document = await page_of(window), window.document
    before, control = page.code.text, Qt.KeyboardModifier.ControlModifier
    assert not page.apply_button.isVisible()

    replace(page, "[agents.operator]", "# typed by hand\n[agents.operator]\ntolls = 1")
    await until(page.fault_list.isVisible)
    assert page.faults.counts[0] > 0
    fault = page.editor.faults[0]
    assert fault.role == "deny"
    page.editor.moveCursor(QTextCursor.MoveOperation.Start)
    press(page, Qt.Key.Key_F8)
    assert page.editor.textCursor().blockNumber() + 1 == fault.line
    press(page, Qt.Key.Key_Return, control)
    await until(window.message.isVisible)
    assert "not applied" in window.message.text
    assert not document.is_dirty

    replace(page, "tolls = 1", "# nothing")
    press(page, Qt.Key.Key_Return, control)
    await settled(window)
    typed = "# typed by hand\n[agents.operator]\n# nothing"
    assert document.workspace.text() == before.replace("[agents.operator]", typed)
    assert not page.apply_button.isVisible()
    assert document.undo_stack.count() == 1

    press(page, Qt.Key.Key_Z, control)  # nothing typed is left to take back: the window's key
    await settled(window)
    assert page.code.text == document.workspace.text() == before
    assert not document.is_dirty


async def test_typing_is_merged_with_edits_elsewhere_and_what_both_changed_is_said_and_kept(window: MainWindow) -> None:
    page, document = await page_of(window), window.document
    replace(page, "[agents.operator]", "# mine\n[agents.operator]")
    assert describe_agent(document, "archivist", "theirs")
    window.deriver.hold()  # applying takes until it is let go on
    page.apply_button.click()
    await until(lambda: page.apply_button.text() == "Stop")
    page.apply_button.click()
    await until(lambda: page.apply_button.text() == "Apply")
    window.deriver.release()
    await settled(window)
    assert "# mine" not in document.workspace.text()
    assert "# mine" in "\n".join(page.editor.lines)

    page.apply_button.click()
    await settled(window)
    assert "# mine\n[agents.operator]" in document.workspace.text()
    assert 'description = "theirs"' in page.code.text

    replace(page, 'description = "theirs"', 'description = "mine"')
    assert describe_agent(document, "archivist", "others")
    page.apply_button.click()
    await until(window.message.isVisible)
    assert "agent archivist changed" in window.message.text
    assert 'description = "mine"' in "\n".join(page.editor.lines)
    assert document.policy.agents["archivist"].description == "others"
    page.discard_button.click()
    await settled(window)
    assert 'description = "others"' in page.code.text


async def test_typed_text_is_there_in_the_next_window_and_is_asked_about_at_save(policy: Path, tmp_path: Path) -> None:
    async with opened_window(policy, tmp_path) as window:
        page = await page_of(window)
        replace(page, "[agents.operator]", "# kept\n[agents.operator]")
    assert "# kept" not in policy.read_text("utf-8")

    async with opened_window(policy, tmp_path) as window:
        await until(lambda: window.draft.is_pending)
        page = await page_of(window)
        assert "# kept\n[agents.operator]" in page.code.text
        assert window.actions_by_key["save"].isEnabled()
        window.close()
        await answer(window, "Cancel")
        window.save()
        await answer(window, "Apply and save")
        assert "# kept\n[agents.operator]" in policy.read_text("utf-8")
        assert not window.document.is_dirty


async def test_a_policy_that_does_not_open_is_mended_as_text(policy: Path, tmp_path: Path) -> None:
    good = broken(policy).replace("\n", "\r\n")
    policy.write_bytes(policy.read_bytes().replace(b"\n", b"\r\n"))
    async with opened_window(policy, tmp_path) as window:
        problems = window.shelf.page("problems")
        assert isinstance(problems, ProblemsPage)
        QTest.mouseClick(problems.bar.action_button, Qt.MouseButton.LeftButton)
        await settled(window)
        assert window.shelf.current_key == "text"
        page = await page_of(window)
        assert "lod" in page.editor.textCursor().selectedText()
        replace(page, '"list", "lod"', '"list", "load"')
        await until(lambda: page.faults.counts == (1, 0))
        page.apply_button.click()
        await until(window.message.isVisible)
        assert "1 error" in window.message.text
        replace(page, "ContinuLoop", "ContinueLoop")
        page.apply_button.click()
        await until(lambda: window.document.is_open)
        assert policy.read_bytes().decode() == good
        await settled(window)


async def test_outline_marks_parts_with_problems_and_the_tab_counts_them(tmp_path: Path, policy: Path) -> None:
    agent = '\n[agents.scribe]\ntools = ["file"]\nsources = []\n'
    policy.write_text(policy.read_text("utf-8") + agent, "utf-8")
    async with opened_window(policy, tmp_path) as window:
        page = await page_of(window)
        model = page.outline.rows
        await until(lambda: any(model.role_of(row) for row in model.rows))
        assert [row.name for row in model.rows if model.role_of(row) == "ask"] == ["scribe"]
        at = next(at for at, row in enumerate(model.rows) if row.name == "scribe")
        assert model.index(at, 0).data(Qt.ItemDataRole.AccessibleTextRole).endswith("a warning")
        place = window.shelf.place("text")
        assert isinstance(place, PolicyFilePage)
        assert place.bar.tabText(1) == f"Problems  {len(window.document.problems)}"

        describe_agent(window.document, "operator", "moved")
        replace(page, "scribe", "scriber")
        await until(lambda: window.draft.is_pending)
        assert "not applied" in place.bar.tabText(0)
        assert not any(model.role_of(row) for row in model.rows)
        window.draft.discard()
        await settled(window)


async def test_find_box_is_there_at_once_and_stays(window: MainWindow) -> None:
    page = await page_of(window)
    bar = page.code.find_bar
    assert bar.isVisible()
    assert not page.code.find_button.isVisible()
    QTest.keyClicks(bar.field, "operator")
    assert bar.hits > 1
    QTest.keyClick(bar.field, Qt.Key.Key_Return)
    assert bar.count.text().startswith("2 of ")
    QTest.keyClick(bar.field, Qt.Key.Key_Escape)
    assert bar.isVisible()
    assert page.editor.hasFocus()
    assert not bar.field.text()
    page.focus_search()
    assert bar.field.hasFocus()
    assert page.code.wrap_button.parentWidget() is page.code.copy_button.parentWidget() is bar
