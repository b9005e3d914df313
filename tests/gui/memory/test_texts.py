"""Notes, archive and conversations on the page Memory: searched, looked at, and what may be changed of them."""

import json
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QAbstractItemModelTester, QTest

from gatewright.workspace import Workspace
from gatewright_gui.pages.access.memory.text_dialog import TextDialog
from gatewright_gui.pages.access.memory.texts_pane import ABOUT, SCORE, TEXT, TextModel, TextsPane
from gatewright_gui.qt.dialog import QuestionDialog
from gatewright_gui.session.remembered import TextRow
from tests.gui.memory.test_blocks import LEFT, Bench, dialog_of, place
from tests.gui.session.opened import opened_window, settled, until


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncGenerator[Bench]:
    policy = place(tmp_path)
    with Workspace.open(policy) as other:
        async with opened_window(policy, tmp_path) as window:
            window.selection.choose_agent("operator")
            window.show_page("memory")
            await settled(window)
            yield Bench(window, other)


async def part(bench: Bench, key: str) -> None:
    QTest.mouseClick(bench.page.part.button(key), LEFT)
    await settled(bench.window)


def texts(pane: TextsPane) -> list[str]:
    return [pane.model.index(row, TEXT).data() for row in range(pane.model.rowCount())]


async def search(bench: Bench, pane: TextsPane, words: str) -> None:
    pane.search.clear()
    QTest.keyClicks(pane.search, words)
    await settled(bench.window)


async def test_notes_of_a_user_are_made_found_changed_and_deleted(bench: Bench) -> None:
    await part(bench, "notes")
    pane = bench.page.notes
    assert pane.empty.isVisible()
    assert "Type the id of a user" in pane.empty.accessibleDescription()
    assert not pane.new_button.isEnabled()

    bench.other.notes.of("bob").save("bob likes beans")
    QTest.keyClicks(pane.user, "dana")
    QTest.keyClick(pane.user, Qt.Key.Key_Return)
    await settled(bench.window)
    assert pane.empty.accessibleName() == "No notes for dana"
    bench.press("memory.new_note")
    dialog = await dialog_of(TextDialog)
    assert not dialog.accept_button.isEnabled()
    QTest.keyClicks(dialog.editors["text"], "likes tea without milk")
    bench.press("memory_text.accept", dialog)
    await settled(bench.window)
    assert texts(pane) == ["likes tea without milk"]

    bench.other.notes.of("dana").save("lives by the sea")
    await until(lambda: texts(pane) == ["lives by the sea", "likes tea without milk"])
    await search(bench, pane, "milk")
    assert texts(pane)[0] == "likes tea without milk"
    assert not pane.view.isColumnHidden(SCORE)
    pane.view.setCurrentIndex(pane.model.index(0, TEXT))
    pane.editor.setFocus()
    QTest.keyClick(pane.editor, Qt.Key.Key_End, Qt.KeyboardModifier.ControlModifier)
    QTest.keyClicks(pane.editor, ", with lemon")
    bench.press("memory.save_note")
    await settled(bench.window)
    assert "likes tea without milk, with lemon" in [note.content for note in bench.other.notes.of("dana").list()]
    assert not pane.save_button.isEnabled()

    await search(bench, pane, "lemon")
    bench.press("memory.delete_note")
    bench.press("choice-delete", await dialog_of(QuestionDialog))
    await settled(bench.window)
    assert [note.content for note in bench.other.notes.of("dana").list()] == ["lives by the sea"]
    pane.search.clear()
    pane.user.setCurrentText("bob")
    QTest.keyClick(pane.user, Qt.Key.Key_Return)
    await settled(bench.window)
    assert texts(pane) == ["bob likes beans"]


async def test_note_that_somebody_else_changed_is_not_written_over_unseen(bench: Bench) -> None:
    store = bench.other.notes.of("dana")
    (note_id,) = store.save("tea")
    await part(bench, "notes")
    pane = bench.page.notes
    assert pane.editor.text == "tea"
    assert not pane.difference.isVisible()
    QTest.keyClicks(pane.editor, "green ")
    assert pane.difference.text.splitlines()[-2:] == ["-tea", "+green tea"]
    store.update(note_id, "coffee")
    await until(lambda: texts(pane) == ["coffee"])
    assert pane.editor.text == "green tea"
    assert pane.difference.text.splitlines()[-2:] == ["-coffee", "+green tea"], "what saving would write over"
    bench.press("memory.save_note")
    await settled(bench.window)
    assert "somebody else changed the note" in pane.bar.text.casefold()
    assert (store.content(note_id), pane.editor.text) == ("coffee", "green tea")
    bench.press("memory.save_note")
    await settled(bench.window)
    assert (store.content(note_id), pane.editor.text) == ("green tea", "green tea")
    assert not pane.difference.isVisible()


async def test_typed_note_is_there_in_the_next_window_and_goes_over_no_later_text_unseen(tmp_path: Path) -> None:
    policy = place(tmp_path)
    with Workspace.open(policy) as other:
        store = other.notes.of("dana")
        (note_id,) = store.save("tea")
        async with opened_window(policy, tmp_path) as window:
            window.show_page("memory")
            await part(first := Bench(window, other), "notes")
            QTest.keyClicks(first.page.notes.editor, "green ")
        store.update(note_id, "coffee")

        async with opened_window(policy, tmp_path) as window:
            window.show_page("memory")
            await part(second := Bench(window, other), "notes")
            pane = second.page.notes
            await until(lambda: pane.editor.text == "green tea")
            second.press("memory.save_note")
            await settled(window)
            assert "somebody else changed the note" in pane.bar.text.casefold()
            assert store.content(note_id) == "coffee"
            second.press("memory.save_note")
            await settled(window)
            assert (store.content(note_id), pane.editor.text) == ("green tea", "green tea")


async def test_archive_is_searched_with_scores_and_added_to_and_its_entries_cannot_be_edited(bench: Bench) -> None:
    bench.other.archive("").insert("The tide table is on the door.", {"from": "dana"})
    bench.other.archive("operator").insert("Boats leave at nine.")
    bench.other.archive("archivist").insert("A tide of letters.")
    await part(bench, "archive")
    pane = bench.page.archive
    assert texts(pane) == ["Boats leave at nine.", "The tide table is on the door."]
    assert pane.view.isColumnHidden(SCORE)
    await search(bench, pane, "tide")
    assert texts(pane) == ["The tide table is on the door."]
    assert float(pane.model.index(0, SCORE).data()) > 0
    assert pane.model.index(0, ABOUT).data() == "shared"
    assert '{"from": "dana"}' in pane.about.text
    assert pane.code.editor.isReadOnly()
    await search(bench, pane, "nobody")
    assert pane.empty.accessibleName() == "No entry has these words"
    pane.search.clear()

    bench.press("memory.insert")
    dialog = await dialog_of(TextDialog)
    QTest.keyClicks(dialog.editors["text"], "High water at noon.")
    QTest.keyClicks(dialog.editors["metadata"], "[1]")
    assert dialog.fault.text() == "metadata is a JSON object"
    assert not dialog.accept_button.isEnabled()
    dialog.editors["metadata"].set_text('{"day": 3}')
    bench.press("memory_text.accept", dialog)
    await settled(bench.window)
    (newest, *_) = bench.other.archive("operator").list()
    assert (newest.content, dict(newest.metadata)) == ("High water at noon.", {"day": 3})
    assert texts(pane)[0] == "High water at noon."

    pane.view.setCurrentIndex(pane.model.index(0, TEXT))
    bench.press("memory.forget")
    bench.press("choice-forget", await dialog_of(QuestionDialog))
    await settled(bench.window)
    assert texts(pane) == ["Boats leave at nine.", "The tide table is on the door."]


async def test_conversations_are_read_with_each_user_and_follow_what_is_recorded(bench: Bench) -> None:
    await part(bench, "conversations")
    pane = bench.page.conversations
    assert "records them" in pane.empty.accessibleDescription()
    talk = bench.other.conversations("operator", user_id="dana")
    talk.append("user", "When is the tide?", session_id="s1")
    bench.other.conversations("operator").append("user", "said to nobody")
    await until(lambda: texts(pane) == ["When is the tide?"])
    await settled(bench.window)
    assert pane.model.index(0, ABOUT).data() == "user, session s1"
    talk.append("assistant", "At nine.", session_id="s1")
    await until(lambda: texts(pane) == ["At nine.", "When is the tide?"])
    await search(bench, pane, "tide")
    assert texts(pane) == ["When is the tide?"]
    pane.search.clear()
    pane.user.setCurrentIndex(pane.user.findText("nobody"))
    pane.user.activated.emit(0)
    await settled(bench.window)
    assert texts(pane) == ["said to nobody"]


async def test_damaged_notes_are_a_sentence(bench: Bench) -> None:
    bench.other.notes.of("dana").save("tea")
    await part(bench, "notes")
    assert texts(bench.page.notes) == ["tea"]
    bench.other.notes.close()
    (store,) = (bench.other.state_folder / "notes").glob("*.sqlite")
    store.unlink()
    store.write_bytes(b"no database" * 100)
    await until(bench.page.notes.bar.isVisible)
    assert "cannot be read" in bench.page.notes.bar.text
    assert texts(bench.page.notes) == ["tea"]


def test_model_of_texts_keeps_its_promises() -> None:
    model = TextModel()
    tester = QAbstractItemModelTester(model, QAbstractItemModelTester.FailureReportingMode.Fatal)
    rows = tuple(TextRow(str(number), json.dumps(number), 1.0, 0.5) for number in range(3))
    for shown in (rows, rows, rows[1:], (), rows):
        model.set_rows(shown)
        assert model.rowCount() == len(shown)
    assert tester


@pytest.mark.parametrize("percent", [0, 35, 100])
async def test_weight_of_the_meaning_is_an_edit_of_the_policy_that_undo_takes_back(bench: Bench, percent: int) -> None:
    bench.other.notes.of("dana").save("likes tea")
    await part(bench, "notes")
    pane, document = bench.page.notes, bench.window.document
    assert pane.weight.value() == 70
    before = document.policy

    pane.weight.setFocus()
    pane.weight.selectAll()
    QTest.keyClicks(pane.weight, str(percent))
    QTest.keyClick(pane.weight, Qt.Key.Key_Return)
    await settled(bench.window)
    weights = document.policy.memory
    assert (weights.vector, round(weights.text, 9)) == (percent / 100, round(1 - percent / 100, 9))
    assert not document.workspace.problems
    assert f"vector = {percent / 100}" in document.workspace.text_under(document.policy)

    document.undo_stack.undo()
    await settled(bench.window)
    assert document.policy.memory == before.memory
    assert pane.weight.value() == 70
