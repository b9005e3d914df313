"""Tools of several places in the tree: a row for each group, its box, its keys, what is remembered of it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from PySide6.QtCore import QModelIndex, QPoint, Qt
from PySide6.QtGui import QAccessible
from PySide6.QtTest import QAbstractItemModelTester, QTest

from gatewright_gui.pages.agents.tool_pane import ToolPane
from gatewright_gui.pages.agents.tool_tree import COLUMNS, COUNT, Column
from gatewright_gui.window.main_window import MainWindow
from tests.gui.session.opened import Said, agents_page, cell, opened_window, settled, ticked, until
from tests.support.catalogworkspace import FAR, HELD, NEW, PLANT, write_catalogs

ON, OFF, PART = Qt.CheckState.Checked, Qt.CheckState.Unchecked, Qt.CheckState.PartiallyChecked
KEY = Qt.Key


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    return write_catalogs(tmp_path / "many")


@pytest.fixture
async def window(policy: Path, tmp_path: Path) -> AsyncIterator[MainWindow]:
    async with opened_window(policy, tmp_path) as made:
        yield made


def pane(window: MainWindow) -> ToolPane:
    return agents_page(window).tools


def group(window: MainWindow, origin: str) -> QModelIndex:
    return pane(window).rows.group_index(origin)


def box(window: MainWindow, origin: str) -> Qt.CheckState:
    return Qt.CheckState(group(window, origin).data(Qt.ItemDataRole.CheckStateRole))


def titles(window: MainWindow) -> list[str]:
    rows = pane(window).rows
    return [str(rows.index(row, 0).data()) for row in range(rows.rowCount())]


def click_box(window: MainWindow, origin: str) -> None:
    view = pane(window).view
    view.scrollTo(group(window, origin))
    rect = view.visualRect(group(window, origin))
    QTest.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=QPoint(rect.left() + 10, rect.center().y()))


def press(window: MainWindow, *keys: Qt.Key) -> None:
    for key in keys:
        QTest.keyClick(pane(window).view, key)


def choose(window: MainWindow, origin: str) -> None:
    pane(window).view.setCurrentIndex(group(window, origin))


def shown(window: MainWindow, prefix: str) -> set[str]:
    rights = window.document.rights("clerk")
    return {name for name, right in rights.items() if right.shown and name.startswith(prefix)}


async def test_tools_stand_below_the_place_they_come_from_in_the_order_of_the_policy(window: MainWindow) -> None:
    rows = pane(window).rows
    tester = QAbstractItemModelTester(rows, QAbstractItemModelTester.FailureReportingMode.Fatal)

    assert titles(window) == ["Built-in tools", "plant", "far"]
    assert rows.rowCount(group(window, "plant")) == PLANT
    assert [group(window, origin).data(COUNT) for origin in ("plant", "far")] == ["6 of 1,000 on", f"1 of {FAR} on"]
    assert group(window, "far").siblingAtColumn(Column.LIMITS).data() == f"{NEW} to accept"
    assert pane(window).view.isColumnHidden(Column.ORIGIN)
    pane(window).search.setText("far_0")
    assert titles(window) == ["far"]
    window.selection.choose_agent("guest")
    pane(window).show_all()
    assert tester.model() is rows
    assert titles(window) == ["Built-in tools", "plant", "far"]


async def test_group_tells_its_name_its_kind_its_count_and_its_state_in_words(window: MainWindow) -> None:
    ours = sum(len(facts.operations) for facts in window.document.catalog if facts.origin == "built-in")
    told = [group(window, name).data(Qt.ItemDataRole.AccessibleTextRole) for name in ("built-in", "plant", "far")]

    assert told == [
        f"Built-in tools, 0 of {ours}, off",
        "plant, program, 6 of 1,000, mixed",
        "far, MCP server, 1 of 30, mixed",
    ]
    spoken = QAccessible.queryAccessibleInterface(pane(window).view)
    built_in = spoken.child(COLUMNS)  # behind the headings
    assert built_in.text(QAccessible.Text.Name) == told[0]
    assert (built_in.state().expandable, built_in.state().expanded, built_in.state().checkable) == (1, 1, 1)
    choose(window, "built-in")
    press(window, KEY.Key_Left)
    assert (spoken.child(COLUMNS).state().expandable, spoken.child(COLUMNS).state().expanded) == (1, 0)


async def test_space_turns_a_group_on_but_what_waits_to_be_accepted_and_one_undo_takes_it_back(
    window: MainWindow,
) -> None:
    said = Said(window.document)
    window.selection.choose_agent("clerk")
    choose(window, "far")

    press(window, KEY.Key_Space)
    await settled(window)
    assert (box(window, "far"), shown(window, "far")) == (OFF, set())
    press(window, KEY.Key_Space)
    await settled(window)

    assert box(window, "far") == ON
    assert len(shown(window, "far")) == FAR - NEW
    assert [ticked(window, name, None) for name in HELD] == [OFF] * NEW
    assert said.last == "turned on 27 operations of `clerk`, 27 privileged, 27 asking first; undo takes them back"
    window.undo()
    assert (box(window, "far"), shown(window, "far")) == (OFF, set())
    window.undo()
    assert shown(window, "far") == {"far_00"}


async def test_click_on_the_box_of_a_large_group_is_one_edit_that_says_what_it_did(window: MainWindow) -> None:
    said = Said(window.document)

    click_box(window, "plant")
    await until(lambda: not shown(window, "plant"))

    assert window.document.undo_stack.undoText() == "turn off 1,000 operations of 500 tools for clerk"
    assert said.last == "turned off 6 operations of `clerk`; undo brings them back"
    assert box(window, "plant") == OFF
    window.undo()
    await until(lambda: box(window, "plant") == PART)
    assert shown(window, "plant") == {"plant_0000", "plant_0001", "plant_0042"}


async def test_box_of_a_group_under_a_filter_is_for_what_is_shown(window: MainWindow) -> None:
    pane(window).search.setText("plant_000 write")
    await until(lambda: pane(window).rows.tool_count == 10)
    assert group(window, "plant").data(COUNT) == "2 of 10 on"

    click_box(window, "plant")
    await settled(window)

    rights = window.document.rights("clerk")
    assert rights["plant_0000"].shown == {"read"}
    assert rights["plant_0042"].shown == {"read", "write"}


async def test_left_and_right_close_and_open_a_group_and_its_row_is_current_then(window: MainWindow) -> None:
    view = pane(window).view
    pane(window).show_row("plant_0003", None)

    press(window, KEY.Key_Left)
    assert view.currentIndex() == group(window, "plant")
    assert window.selection.tool is None
    press(window, KEY.Key_Left)
    assert not view.isExpanded(group(window, "plant"))
    press(window, KEY.Key_Down)
    assert view.currentIndex() == group(window, "far")
    press(window, KEY.Key_Up, KEY.Key_Right, KEY.Key_Right)
    assert view.currentIndex() == cell(window, "plant_0000", None)


async def test_closed_group_stays_closed_for_other_agents_after_a_filter_and_in_the_next_window(
    policy: Path, tmp_path: Path
) -> None:
    async with opened_window(policy, tmp_path) as window:
        view = pane(window).view
        choose(window, "plant")
        press(window, KEY.Key_Left)
        window.selection.choose_agent("guest")
        await settled(window)
        assert not view.isExpanded(group(window, "plant"))
        pane(window).search.setText("plant_0042")
        assert view.isExpanded(group(window, "plant"))
        assert not view.visualRect(cell(window, "plant_0042", None)).isEmpty()
        pane(window).search.setText("")
        assert [view.isExpanded(group(window, name)) for name in ("plant", "far")] == [False, True]

    async with opened_window(policy, tmp_path) as window:
        view = pane(window).view
        assert [view.isExpanded(group(window, name)) for name in ("plant", "far")] == [False, True]
        window.navigator.go_to_tool("clerk", "plant_0042", "read")
        assert view.current_row == ("plant_0042", "read")
        assert view.isExpanded(group(window, "plant"))


async def test_selection_that_runs_over_a_group_takes_in_no_more_than_its_rows(window: MainWindow) -> None:
    view = pane(window).view
    pane(window).show_row("plant_0499", None)
    for _ in range(3):
        QTest.keyClick(view, KEY.Key_Down, Qt.KeyboardModifier.ShiftModifier)

    assert [target.tool for target in view.targets()] == ["plant_0499", "far_00", "far_01"]
    choose(window, "far")
    assert [target.tool for target in view.targets()] == [f"far_{number:02}" for number in range(FAR - NEW)]
    QTest.keyClick(view, KEY.Key_A, Qt.KeyboardModifier.ControlModifier)
    assert len(view.targets()) == len(window.document.catalog)


async def test_search_finds_tools_by_their_catalog(window: MainWindow) -> None:
    pane(window).search.setText("far")
    await until(lambda: titles(window) == ["far"])

    assert pane(window).rows.tool_count == FAR


async def test_tools_of_one_place_alone_have_no_group(tmp_path: Path) -> None:
    policy = tmp_path / "policy.toml"
    policy.write_text('gatewright = 1\n[agents.clerk]\ntools = ["block"]\n', "utf-8")
    async with opened_window(policy, tmp_path) as window:
        assert titles(window) == [facts.name for facts in window.document.catalog]
        assert not pane(window).view.isColumnHidden(Column.ORIGIN)
