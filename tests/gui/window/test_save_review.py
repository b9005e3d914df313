"""What is shown before edits of rights are written: who gains and loses what, and which calls of late would differ."""

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
from gatewright_gui.window.save_review import SaveReview
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

    assert lines(shown.changes) == [
        ("archivist", "file.delete (deletes)", "off", "asks first"),
        ("archivist", "file.diff", "off", "on: by path"),
        ("operator", "file.delete (deletes)", "asks first", "off"),
    ]
    assert shown.summary.text().splitlines() == ["archivist gains 2 (1 deletes)", "operator loses 1"]
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

    told = shown.summary.text().splitlines()
    assert told[0].startswith("operator loses 1")
    assert told[1].startswith("4 agents, each: is new, gains ")
    assert len(told) == 2
    folded = lines(shown.changes)
    assert {line[0] for line in folded} == {"4 agents", "operator"}
    shown.table.setCurrentIndex(shown.changes.index(0, 0))
    shown.table.setFocus()
    QTest.keyClick(shown.table, Qt.Key.Key_Space)
    assert lines(shown.changes) == [
        folded[0],
        *((f"    {name}", *folded[0][1:]) for name in copies),
        *folded[1:],
    ]
    shown.changes.turn(shown.changes.rows[0])
    assert lines(shown.changes) == folded
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
    shown.only_gains.click()
    await press(window, Qt.Key.Key_S, Qt.KeyboardModifier.ControlModifier)
    assert not window.document.is_dirty
    tick(window, "operator", "file", "create", on=False)
    window.actions_by_key["save"].trigger()
    await settled(window)
    assert not window.document.is_dirty

    tick(window, "operator", "file", "create", on=True)
    assert (await review(window)).changes.rowCount() == 1
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

    assert ("", f"{source.source_id}: /zz-not-there/**", "no rule", "admin") in lines(shown.changes)
    assert "newcomer is deleted" in shown.summary.text()
    told = lines(shown.calls)
    assert [row[0] for row in told] == ["archivist", "archivist"]
    assert all(row[1].startswith("file.list") and row[2] == "allow" and row[3].startswith("deny: ") for row in told)
    assert shown.calls_view.isVisible()
    await press(window, Qt.Key.Key_Escape)
