"""What is said after each edit, and before edits are written: who can do what now, and which calls would differ."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from gatewright.policy import agentedit, rights, sourceedit
from gatewright.policy.document import PermissionRule
from gatewright.policy.verdict import Permission
from gatewright.workspace import Workspace
from gatewright_gui.pages.access.tools.right_changes import RightChangesModel
from gatewright_gui.window.main_window import MainWindow
from gatewright_gui.window.save_review import ImpactModel, SaveReview
from tests.gui.session.opened import demo, opened_window, settled, until


def tick(window: MainWindow, agent_id: str, tool: str, operation: str, *, on: bool) -> None:
    ticked = window.document.push(
        lambda policy, tools: rights.tick_operations(policy, tools, agent_id, tool, [operation], on=on)
    )
    assert ticked


def reviews() -> list[SaveReview]:
    return [one for one in QApplication.topLevelWidgets() if isinstance(one, SaveReview) and one.isVisible()]


async def review(window: MainWindow) -> SaveReview:
    """Save, and wait for all that is told then."""
    window.actions_by_key["save"].trigger()
    await until(lambda: bool(reviews()))
    (shown,) = reviews()
    await until(lambda: "save.review" not in window.tasks.names)
    return shown


@pytest.fixture
async def window(tmp_path: Path) -> AsyncGenerator[MainWindow]:
    async with opened_window(demo(tmp_path), tmp_path) as made:
        made.preferences.reviews_gains_only = False
        yield made


async def press(
    window: MainWindow, key: Qt.Key, modifier: Qt.KeyboardModifier = Qt.KeyboardModifier.NoModifier
) -> None:
    (shown,) = reviews()
    QTest.keyClick(shown, key, modifier)
    await settled(window)


def sentences(model: ImpactModel) -> list[str]:
    return [str(model.index(row, 0).data()) for row in range(model.rowCount())]


def lines(model: RightChangesModel) -> list[tuple[str, ...]]:
    return [tuple(str(model.index(row, column).data()) for column in range(4)) for row in range(model.rowCount())]


def path_of(window: MainWindow) -> Path:
    assert window.document.path is not None
    return window.document.path


async def test_save_shows_dangerous_gains_first_and_writes_on_enter_alone(window: MainWindow) -> None:
    tick(window, "operator", "file", "delete", on=False)
    tick(window, "archivist", "file", "diff", on=True)
    tick(window, "archivist", "file", "delete", on=True)
    before = path_of(window).read_bytes()

    shown = await review(window)

    assert sentences(shown.changes) == [
        "archivist can now delete 3 files after asking (file.delete)",
        "archivist can read 11 files in 1 more way without asking (file.diff)",
        "operator can no longer delete 3 files (file.delete)",
    ]
    assert shown.changes.rows[0].line.is_dangerous
    assert shown.changes.rows[0].line.parts[1] == "delete"
    assert shown.summary.text() == "3 changes of what agents can do"
    await press(window, Qt.Key.Key_Escape)
    assert path_of(window).read_bytes() == before
    assert window.document.is_dirty
    await review(window)
    await press(window, Qt.Key.Key_Return)
    assert not window.document.is_dirty
    assert path_of(window).read_bytes() != before


async def test_agents_for_which_the_same_changes_have_one_line_which_unfolds(window: MainWindow) -> None:
    copies = tuple(f"copy{at}" for at in range(4))
    for name in copies:
        assert window.document.push(lambda policy, _, name=name: agentedit.duplicate_agent(policy, "archivist", name))
    tick(window, "operator", "file", "delete", on=False)

    shown = await review(window)

    folded = sentences(shown.changes)
    assert folded[0].startswith("copy0 and 3 others can now change ")
    assert "operator can no longer delete 3 files (file.delete)" in folded
    assert folded[-1] == "copy0 and 3 others: new"
    shown.table.setCurrentIndex(shown.changes.index(0, 0))
    shown.table.setFocus()
    QTest.keyClick(shown.table, Qt.Key.Key_Space)
    line = shown.changes.rows[0].line
    assert sentences(shown.changes) == [folded[0], *copies, *line.ways, *folded[1:]]
    shown.changes.turn(shown.changes.rows[0])
    assert sentences(shown.changes) == folded
    await press(window, Qt.Key.Key_Escape)


async def test_review_is_as_high_as_its_lines(window: MainWindow) -> None:
    tick(window, "archivist", "file", "delete", on=True)

    shown = await review(window)

    assert shown.changes.rowCount() == 1
    assert shown.height() < 260
    await press(window, Qt.Key.Key_Escape)


async def test_review_is_for_changes_of_rights_and_on_wish_only_for_those_by_which_somebody_may_do_more(
    window: MainWindow,
) -> None:
    assert window.document.push(lambda policy, _: agentedit.describe_agent(policy, "operator", "other words"))
    window.actions_by_key["save"].trigger()
    await settled(window)
    assert not window.document.is_dirty

    tick(window, "operator", "file", "delete", on=False)
    shown = await review(window)
    assert shown.only_gains.isVisible()
    shown.only_gains.click()
    await press(window, Qt.Key.Key_S, Qt.KeyboardModifier.ControlModifier)
    assert not window.document.is_dirty
    tick(window, "operator", "file", "create", on=False)
    window.actions_by_key["save"].trigger()
    await settled(window)
    assert not window.document.is_dirty

    tick(window, "operator", "file", "create", on=True)
    shown = await review(window)
    assert shown.changes.rowCount() == 1
    assert not shown.only_gains.isVisible(), "it is not about this change"
    await press(window, Qt.Key.Key_Escape)


async def test_review_tells_levels_deleted_agents_and_the_recorded_calls_that_would_be_decided_differently(
    window: MainWindow,
) -> None:
    def call_from_elsewhere() -> None:
        with Workspace.open(path_of(window)) as other:
            for operation in ("status", "list", "list"):
                asyncio.run(other.call("archivist", "file", {"op": operation}))

    await asyncio.to_thread(call_from_elsewhere)
    source = window.document.policy.sources[0]
    rule = PermissionRule("/zz-not-there/**", Permission.ADMIN)
    assert window.document.push(lambda policy, _: sourceedit.add_rule(policy, source.source_id, rule, 0))
    assert window.document.push(lambda policy, _: agentedit.remove_agent(policy, "newcomer"))
    tick(window, "archivist", "file", "list", on=False)

    shown = await review(window)

    told_changes = sentences(shown.changes)
    assert f"{source.source_id}: /zz-not-there/**: no rule \N{RIGHTWARDS ARROW} admin" in told_changes
    assert "newcomer: deleted" in told_changes
    told = lines(shown.calls)
    assert [row[0] for row in told] == ["archivist", "archivist"]
    assert all(row[1].startswith("file.list") and row[2] == "allow" and row[3].startswith("deny: ") for row in told)
    assert shown.calls_view.isVisible()
    await press(window, Qt.Key.Key_Escape)


async def test_line_tells_what_an_edit_changes_and_takes_it_back(window: MainWindow) -> None:
    strip = window.impact
    place = strip.geometry()
    assert strip.text == "What an edit changes for the agents shows here."
    tick(window, "archivist", "file", "delete", on=True)
    assert strip.text.startswith("Turn on delete of file for archivist")
    assert strip.text.endswith("counting...")
    await settled(window)
    assert strip.text.startswith("archivist can now delete 3 files after asking (file.delete)")
    assert "the model sees 1 more operation (" in strip.text
    assert not strip.is_counting
    assert strip.words.accessibleName() == f"Last edit: {strip.text}"

    QTest.keyClick(strip.undo_button, Qt.Key.Key_Return)
    await settled(window)

    assert not window.document.is_dirty
    assert strip.text.startswith("After undo: archivist can no longer delete 3 files (file.delete)")
    assert strip.undo_button.text() == "Redo"
    QTest.mouseClick(strip.undo_button, Qt.MouseButton.LeftButton)
    await settled(window)
    assert window.document.is_dirty
    assert strip.undo_button.text() == "Undo"
    assert strip.geometry() == place


async def test_line_leads_to_the_list_of_its_edit(window: MainWindow) -> None:
    tick(window, "archivist", "file_delete", "", on=True)
    await settled(window)
    assert window.impact.text.startswith("No one's access changes. 1 tick has no effect yet.")
    tick(window, "archivist", "file", "delete", on=True)
    await settled(window)

    QTest.keyClick(window.impact.words, Qt.Key.Key_Return)
    await until(lambda: bool(reviews()))
    (shown,) = reviews()
    await until(lambda: "save.review" not in window.tasks.names)

    assert sentences(shown.changes) == ["archivist can now delete 3 files after asking (file.delete)"]
    assert not shown.accept_button.isVisible()
    await press(window, Qt.Key.Key_Escape)
    assert window.document.is_dirty


async def test_answer_of_an_older_edit_is_never_shown(window: MainWindow) -> None:
    tick(window, "archivist", "file", "delete", on=True)
    tick(window, "operator", "memory_delete", "", on=False)
    await settled(window)
    assert window.impact.text.startswith("operator can no longer delete data (memory_delete)")
