"""Tools of several places in tree and matrix: a row for each group, its box, its keys, what is remembered of it."""

import sys
from collections.abc import AsyncIterator
from pathlib import Path
from types import FrameType

import pytest
from PySide6.QtCore import QItemSelectionModel, QModelIndex, QPoint, Qt
from PySide6.QtGui import QAccessible, QAction
from PySide6.QtTest import QAbstractItemModelTester, QTest
from PySide6.QtWidgets import QApplication, QMenu

from gatewright.policy.right import ToolFacts
from gatewright.policy.verdict import pick_tools
from gatewright_gui.pages.access.rules import RulesPage
from gatewright_gui.pages.access.tools.matrix import Place
from gatewright_gui.pages.access.tools.matrix_pane import MatrixPane
from gatewright_gui.pages.access.tools.tool_filter import ToolFilterModel
from gatewright_gui.pages.access.tools.tool_group import MORE
from gatewright_gui.pages.access.tools.tool_pane import ToolPane
from gatewright_gui.pages.access.tools.tool_tree import COLUMNS, Column
from gatewright_gui.pages.servers.server_dialogs import TrustDialog
from gatewright_gui.session.verbs import rights
from gatewright_gui.window.main_window import MainWindow
from tests.gui.session.opened import Said, agents_page, cell, opened_window, settled, ticked, until
from tests.support.catalogworkspace import FAR, HELD, NEW, PLANT, write_catalogs

ON, OFF, PART = Qt.CheckState.Checked, Qt.CheckState.Unchecked, Qt.CheckState.PartiallyChecked
KEY = Qt.Key
LAST = f"plant_{PLANT - 1:04}"


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    return write_catalogs(tmp_path / "many")


@pytest.fixture
async def window(policy: Path, tmp_path: Path) -> AsyncIterator[MainWindow]:
    async with opened_window(policy, tmp_path) as made:
        made.selection.close_groups(())
        await settled(made)
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
    flag = QItemSelectionModel.SelectionFlag  # whatever modifier a key before left behind
    pane(window).view.selectionModel().setCurrentIndex(group(window, origin), flag.ClearAndSelect | flag.Rows)


def shown(window: MainWindow, prefix: str) -> set[str]:
    rights = window.document.rights("clerk")
    return {name for name, right in rights.items() if right.shown and name.startswith(prefix)}


def tools_of(window: MainWindow) -> tuple[ToolFacts, ...]:
    """One of each name, as agents have them."""
    return tuple(pick_tools(window.document.catalog, None).values())


async def test_own_tools_stand_below_the_place_they_come_from_and_those_with_nothing_on_in_one_closed_row(
    window: MainWindow,
) -> None:
    rows = pane(window).rows
    tester = QAbstractItemModelTester(rows, QAbstractItemModelTester.FailureReportingMode.Fatal)

    off = len(tools_of(window)) - 4
    assert titles(window) == ["plant", "far", f"{off} more tools, all off"]
    assert (rows.rowCount(group(window, "plant")), rows.rowCount(group(window, MORE))) == (3, off)
    assert [group(window, origin).siblingAtColumn(Column.FACT).data() for origin in ("plant", "far")] == [
        f"6 of {2 * PLANT}",
        f"1 of {FAR}, {NEW} to accept",
    ]
    assert not pane(window).view.isExpanded(group(window, MORE))
    assert group(window, MORE).data(Qt.ItemDataRole.CheckStateRole) is None
    assert cell(window, "far_01", None, Column.FACT).data().startswith("far")
    pane(window).search.setText("far_0")
    assert titles(window) == ["far"]
    window.selection.choose_agent("guest")
    pane(window).show_all()
    assert tester.model() is rows
    assert titles(window) == ["Built-in tools", "plant", "far"]


async def test_tools_of_a_server_that_is_not_trusted_lead_to_the_question_on_the_page_of_catalogs(
    window: MainWindow,
) -> None:
    tools = pane(window)
    choose(window, "plant")
    assert not agents_page(window).inspector.why.trust_button.isVisible()
    choose(window, "far")
    assert agents_page(window).inspector.why.trust_button.isVisible()
    tools.show_row("far_00", None)
    QTest.mouseClick(agents_page(window).inspector.why.trust_button, Qt.MouseButton.LeftButton)
    await until(lambda: window.findChild(TrustDialog) is not None)
    dialog = window.findChild(TrustDialog)
    assert dialog is not None
    assert window.shelf.current_key == "servers"
    assert sys.executable in dialog.code.text
    dialog.cancel_button.click()
    await settled(window)
    window.show_page("tools")
    assert agents_page(window).inspector.why.trust_button.isVisible()
    window.document.workspace.trust_server("far")
    window.document.set_problems(window.document.workspace.current_problems())
    assert not agents_page(window).inspector.why.trust_button.isVisible()


async def test_group_tells_its_name_its_kind_its_count_and_its_state_in_words(window: MainWindow) -> None:
    ours = sum(len(facts.operations) for facts in tools_of(window) if facts.origin == "built-in")
    window.selection.choose_agent("guest")
    assert group(window, "built-in").data(Qt.ItemDataRole.AccessibleTextRole) == f"Built-in tools, 0 of {ours}, off"
    window.selection.choose_agent("clerk")
    told = [group(window, name).data(Qt.ItemDataRole.AccessibleTextRole) for name in ("plant", "far")]

    assert told == [
        f"plant, program, 6 of {2 * PLANT}, mixed",
        "far, MCP server, 1 of 30, mixed",
    ]
    spoken = QAccessible.queryAccessibleInterface(pane(window).view)
    plant = spoken.child(COLUMNS)  # behind the headings
    assert plant.text(QAccessible.Text.Name) == told[0]
    assert (plant.state().expandable, plant.state().expanded, plant.state().checkable) == (1, 1, 1)
    choose(window, "plant")
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
    assert said.last == "turned on 27 operations of `clerk`, 27 privileged, 27 asking first"
    window.undo()
    assert (box(window, "far"), shown(window, "far")) == (OFF, set())
    window.undo()
    assert shown(window, "far") == {"far_00"}


async def test_click_on_the_box_of_a_large_group_is_one_edit_that_says_what_it_did(window: MainWindow) -> None:
    said = Said(window.document)

    click_box(window, "plant")
    await until(lambda: not shown(window, "plant"))

    assert window.document.undo_stack.undoText() == f"turn off {2 * PLANT} operations of {PLANT} tools for clerk"
    assert said.last == "turned off 6 operations of `clerk`"
    assert box(window, "plant") == OFF
    window.undo()
    await until(lambda: box(window, "plant") == PART)
    assert shown(window, "plant") == {"plant_0000", "plant_0001", "plant_0042"}


async def test_box_of_a_group_under_a_filter_is_for_what_is_shown(window: MainWindow) -> None:
    pane(window).search.setText("plant_000 write")
    await until(lambda: pane(window).rows.tool_count == 10)
    assert group(window, "plant").siblingAtColumn(Column.FACT).data() == "2 of 10"

    click_box(window, "plant")
    await settled(window)

    rights = window.document.rights("clerk")
    assert rights["plant_0000"].shown == {"read"}
    assert rights["plant_0042"].shown == {"read", "write"}


async def test_left_and_right_close_and_open_a_group_and_its_row_is_current_then(window: MainWindow) -> None:
    view = pane(window).view
    pane(window).show_row("plant_0001", None)

    press(window, KEY.Key_Left)
    assert view.currentIndex() == group(window, "plant")
    assert window.selection.tool is None
    press(window, KEY.Key_Left)
    assert not view.isExpanded(group(window, "plant"))
    press(window, KEY.Key_Down)
    assert view.currentIndex() == group(window, "far")
    press(window, KEY.Key_Up, KEY.Key_Right, KEY.Key_Right)
    assert view.currentIndex() == cell(window, "plant_0000", None)


async def test_group_that_is_opened_is_laid_out_once(window: MainWindow) -> None:
    choose(window, MORE)
    await settled(window)
    asked: list[int] = []

    def watch(frame: FrameType, event: str, _of: object) -> None:
        if event == "call" and frame.f_code is ToolFilterModel.index.__code__:
            asked.append(frame.f_locals["row"])

    sys.setprofile(watch)
    try:
        press(window, KEY.Key_Right)
    finally:
        sys.setprofile(None)

    assert pane(window).view.isExpanded(group(window, MORE))
    assert asked.count(PLANT // 2) == 1


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


async def test_built_in_tools_that_no_agent_has_are_closed_at_first_and_stay_as_they_were_left(
    policy: Path, tmp_path: Path
) -> None:
    async with opened_window(policy, tmp_path) as window:
        window.selection.choose_agent("guest")
        await settled(window)
        view = pane(window).view
        view.choose_first()
        assert (view.isExpanded(group(window, "built-in")), view.isExpanded(group(window, "plant"))) == (False, True)
        assert view.currentIndex() == group(window, "built-in")
        assert matrix_rows(await matrix_of(window), 3) == ["Built-in tools", "plant", "plant_0000"]
        agents_page(window).switch.trigger()
        choose(window, "built-in")
        press(window, KEY.Key_Right)
        assert view.isExpanded(group(window, "built-in"))
    async with opened_window(policy, tmp_path) as window:
        window.selection.choose_agent("guest")
        await settled(window)
        assert pane(window).view.isExpanded(group(window, "built-in"))

    other = write_catalogs(tmp_path / "used")
    other.write_text(other.read_text("utf-8").replace("tools = []", 'tools = ["block"]'), "utf-8")
    async with opened_window(other, tmp_path) as window:
        window.selection.choose_agent("guest")
        await settled(window)
        assert pane(window).view.isExpanded(group(window, "built-in"))


async def test_selection_that_runs_over_a_group_takes_in_no_more_than_its_rows(window: MainWindow) -> None:
    view = pane(window).view
    window.selection.choose_agent("guest")
    pane(window).show_row(LAST, None)
    for _ in range(3):
        QTest.keyClick(view, KEY.Key_Down, Qt.KeyboardModifier.ShiftModifier)

    assert [target.tool for target in view.targets()] == [LAST, "far_00", "far_01"]
    choose(window, "far")
    assert [target.tool for target in view.targets()] == [f"far_{number:02}" for number in range(FAR - NEW)]
    QTest.keyClick(view, KEY.Key_A, Qt.KeyboardModifier.ControlModifier)
    assert len(view.targets()) == len(tools_of(window))


async def test_search_finds_tools_by_their_catalog(window: MainWindow) -> None:
    pane(window).search.setText("far")
    await until(lambda: titles(window) == ["far"])

    assert pane(window).rows.tool_count == FAR


async def test_tools_of_one_place_alone_have_no_group(tmp_path: Path) -> None:
    policy = tmp_path / "policy.toml"
    policy.write_text('gatewright = 1\n[agents.clerk]\ntools = ["block"]\n', "utf-8")
    async with opened_window(policy, tmp_path) as window:
        assert titles(window) == ["block", f"{len(tools_of(window)) - 1} more tools, all off"]
        rights.tick_tool(window.document, "clerk", "block", on=False)
        window.selection.choose_agent(None)
        window.selection.choose_agent("clerk")
        assert titles(window) == [facts.name for facts in tools_of(window)]


async def matrix_of(window: MainWindow) -> MatrixPane:
    """The matrix, shown, with every cell known."""
    agents_page(window).switch.trigger()
    pane = agents_page(window).matrix
    await until(lambda: all(pane.grid.column(name) is not None for name in ("clerk", "guest")))
    await settled(window)
    return pane


def matrix_rows(matrix: MatrixPane, count: int) -> list[str]:
    """The first rows, as their edge says them."""
    return [str(matrix.model.headerData(row, Qt.Orientation.Vertical)) for row in range(count)]


def matrix_cell(matrix: MatrixPane, agent_id: str, origin: str) -> QModelIndex:
    return matrix.model.index(matrix.model.row_of(Place("", None, origin)), matrix.model.column_of(agent_id))


def click_cell(matrix: MatrixPane, cell: QModelIndex) -> None:
    matrix.view.scrollTo(cell)
    QTest.mouseClick(
        matrix.view.viewport(), Qt.MouseButton.LeftButton, pos=matrix.view.visualRect(cell).topLeft() + QPoint(4, 8)
    )


async def test_matrix_has_a_row_of_counts_for_each_group(window: MainWindow) -> None:
    matrix = await matrix_of(window)
    tester = QAbstractItemModelTester(matrix.model, QAbstractItemModelTester.FailureReportingMode.Fatal)

    ours = [facts.name for facts in tools_of(window) if facts.origin == "built-in"]
    assert matrix_rows(matrix, len(ours) + 3) == ["Built-in tools", *ours, "plant", "plant_0000"]
    counts = [matrix_cell(matrix, "clerk", name).data() for name in ("plant", "far")]
    assert counts == [f"6 Ask first, {2 * PLANT - 6} Off", "1 Ask first, 29 Off"]
    assert matrix_cell(matrix, "guest", "plant").data() == "Off"
    spoken = matrix_cell(matrix, "clerk", "far").data(Qt.ItemDataRole.AccessibleTextRole)
    assert spoken.startswith("clerk, far, MCP server: 1 Ask first, 29 Off")
    matrix.search.setText("plant_004")
    assert (matrix.model.rowCount(), matrix.model.tool_count) == (1 + 10 + 20, 10)
    assert matrix_cell(matrix, "clerk", "plant").data() == "2 Ask first, 18 Off"
    matrix.search.setText("far")
    assert matrix.model.tool_count == FAR
    assert tester.model() is matrix.model


async def test_space_on_a_groups_cell_is_for_its_tools_and_that_agent(window: MainWindow) -> None:
    matrix = await matrix_of(window)
    click_cell(matrix, matrix_cell(matrix, "guest", "far"))

    QTest.keyClick(matrix.view, KEY.Key_Space)
    await until(lambda: matrix_cell(matrix, "guest", "far").data() == f"{FAR - NEW} Ask first, {NEW} Off")
    await settled(window)  # a second edit is refused while the first one is worked out

    assert window.document.undo_stack.undoText() == "turn on 27 operations of 27 tools for guest"
    assert shown(window, "far") == {"far_00"}
    assert not set(HELD).intersection(window.document.policy.agents["guest"].tools or ())
    QTest.keyClick(matrix.view, KEY.Key_Space)
    await until(lambda: matrix_cell(matrix, "guest", "far").data() == "Off")
    window.undo()
    window.undo()
    await until(lambda: window.document.undo_stack.index() == 0)


async def test_group_is_closed_in_matrix_and_tree_alike_by_mouse_and_key(window: MainWindow) -> None:
    matrix = await matrix_of(window)
    every = matrix.model.rowCount()
    edge, row = matrix.view.tool_edge, matrix.model.row_of(Place("", None, "plant"))
    at = QPoint(8, edge.sectionViewportPosition(row) + 10)

    QTest.mouseClick(edge.viewport(), Qt.MouseButton.LeftButton, pos=at)
    assert matrix.model.rowCount() == every - PLANT
    assert not pane(window).view.isExpanded(group(window, "plant"))
    assert matrix.model.row_of(Place("plant_0007", None)) == row  # the row that stands for it
    click_cell(matrix, matrix_cell(matrix, "clerk", "plant"))
    QTest.keyClick(matrix.view, KEY.Key_Plus)
    assert matrix.model.rowCount() == every
    QTest.keyClick(matrix.view, KEY.Key_Minus)
    assert matrix.model.rowCount() == every - PLANT
    matrix.search.setText("plant_0042")
    assert matrix.model.row_of(Place("plant_0042", "read")) > 0
    matrix.search.setText("")
    assert matrix.model.rowCount() == every - PLANT


async def test_selection_over_a_groups_row_takes_in_its_selected_tools_alone(window: MainWindow) -> None:
    matrix = await matrix_of(window)
    model, view = matrix.model, matrix.view
    first = model.row_of(Place(LAST, None))
    click_cell(matrix, model.index(first, model.column_of("guest")))
    for _ in range(2):
        QTest.keyClick(view, KEY.Key_Down, Qt.KeyboardModifier.ShiftModifier)
    assert [target.tool for target in matrix.cell_choice()["guest"]] == [LAST, "far_00"]

    click_cell(matrix, matrix_cell(matrix, "guest", "far"))
    assert len(matrix.cell_choice()["guest"]) == FAR - NEW
    await until(lambda: pane(window).view.currentIndex() == group(window, "far"))
    assert window.selection.agent_id == "guest"
    QTest.keyClick(view, KEY.Key_Return)
    assert pane(window).view.hasFocus()
    assert pane(window).view.currentIndex() == group(window, "far")


def open_menu(window: MainWindow) -> dict[str, QAction]:
    """The menu of the current row, by the names of its actions."""
    view = pane(window).view
    view.customContextMenuRequested.emit(view.visualRect(view.currentIndex()).center())
    menu = QApplication.activePopupWidget()
    assert isinstance(menu, QMenu)
    menu.hide()
    return {action.objectName(): action for action in menu.actions()}


async def test_a_whole_catalog_is_listed_from_its_row_and_why_leads_to_it(window: MainWindow) -> None:
    document = window.document
    window.selection.choose_agent("clerk")
    await settled(window)
    pane(window).view.setCurrentIndex(group(window, "plant"))
    whole = open_menu(window)["agents.whole_catalog"]
    assert (whole.text(), whole.isCheckable(), whole.isChecked()) == ("All of plant, later tools too", True, False)
    whole.trigger()
    await settled(window)
    assert document.policy.agents["clerk"].tools == (
        *("file", "plant_0000", "plant_0001", "plant_0042", "far_00"),
        "catalog:plant",
    )
    assert box(window, "plant") is ON
    pane(window).show_row(LAST, None)
    await settled(window)
    why = agents_page(window).inspector.why
    await until(lambda: why.model.rows[0].line)
    step = why.model.rows[0]
    assert (step.mark, step.text) == ("on", "ticked by `catalog:plant`, all tools of the catalog")
    assert step.address == ("agents", "clerk", "tools", 5)
    QTest.mouseClick(
        why.view.viewport(), Qt.MouseButton.LeftButton, pos=why.view.visualRect(why.model.index(0, 0)).center()
    )
    await settled(window)
    assert window.shelf.current_key == "text"
    assert "catalog:plant" in document.workspace.text().splitlines()[(step.line or 1) - 1]

    window.show_page("tools")
    pane(window).view.setCurrentIndex(group(window, "plant"))
    whole = open_menu(window)["agents.whole_catalog"]
    assert whole.isChecked()
    whole.trigger()
    assert document.policy.agents["clerk"].tools == ("file", "plant_0000", "plant_0001", "plant_0042", "far_00")
    document.undo_stack.undo()
    document.undo_stack.undo()
    assert not document.is_dirty


async def test_whole_catalogs_stand_among_the_rules_of_the_agent(window: MainWindow) -> None:
    document, page = window.document, window.shelf.page("rules")
    assert isinstance(page, RulesPage)
    window.selection.choose_agent("guest")
    window.show_page("rules")
    await settled(window)
    rules = page.agent
    rules.menu.aboutToShow.emit()
    (whole,) = [one.menu() for one in rules.menu.actions() if one.text() == "&Whole server"]
    assert isinstance(whole, QMenu)
    assert [one.text() for one in whole.actions()] == ["plant", "far"]
    whole.actions()[1].trigger()
    await until(lambda: document.policy.agents["guest"].tools == ("catalog:far",))
    await settled(window)
    assert rules.current is not None
    assert (rules.current.what, rules.current.about) == ("catalog:far", f"{FAR} tools now, later ones too")
    assert document.undo_stack.undoText() == "list all tools of far for guest"
    rules.view.setFocus()
    QTest.keyClick(rules.view, KEY.Key_Delete)
    assert document.policy.agents["guest"].tools == ()
