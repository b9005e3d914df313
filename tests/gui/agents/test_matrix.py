from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from PySide6.QtCore import QModelIndex, QPoint, QRect, Qt
from PySide6.QtGui import QColor, QImage, QPainter
from PySide6.QtTest import QAbstractItemModelTester, QTest
from PySide6.QtWidgets import QApplication, QLabel, QWidget

from gatewright.policy.verdict import Permission, Verdict
from gatewright_gui.app.build import build_window
from gatewright_gui.pages.access.tools.matrix import Place
from gatewright_gui.pages.access.tools.matrix_paint import CELL_WIDTH, CellPainter, box_rect
from gatewright_gui.pages.access.tools.matrix_pane import MatrixPane
from gatewright_gui.pages.access.tools.matrix_words import UNKNOWN, part_words
from gatewright_gui.qt.look import current_look
from gatewright_gui.session.readings import BUILT_IN
from gatewright_gui.session.right_columns import Cell, OperationCell, Summary
from gatewright_gui.session.verbs import sources
from gatewright_gui.settings import Preferences
from gatewright_gui.window.main_window import MainWindow
from tests.gui.files.support import source_of
from tests.gui.session.opened import (
    Said,
    agents_page,
    agents_pane,
    demo,
    end,
    opened_window,
    settled,
    turn_until,
    until,
)
from tests.support.largeworkspace import large_opener, write_large

SHIFT, CTRL = Qt.KeyboardModifier.ShiftModifier, Qt.KeyboardModifier.ControlModifier
PLAIN = Qt.KeyboardModifier.NoModifier


@pytest.fixture
async def window(tmp_path: Path) -> AsyncIterator[MainWindow]:
    async with opened_window(demo(tmp_path), tmp_path) as opened:
        await show_matrix(opened)
        yield opened


async def show_matrix(window: MainWindow) -> None:
    """Ctrl+M, until every cell is known."""
    agents_page(window).switch.trigger()
    await known(window)


async def known(window: MainWindow) -> None:
    pane = agents_page(window).matrix
    await until(lambda: all(pane.grid.column(agent.agent_id) is not None for agent in window.document.agents))
    await settled(window)


def pane_of(window: MainWindow) -> MatrixPane:
    return agents_page(window).matrix


def index_of(window: MainWindow, agent_id: str, tool: str, operation: str | None = None) -> QModelIndex:
    model = pane_of(window).model
    return model.index(model.row_of(Place(tool, operation)), model.column_of(agent_id))


def open_tool(window: MainWindow, tool: str) -> None:
    model = pane_of(window).model
    model.set_open(model.row_of(Place(tool, None)), on=True)


def choose(window: MainWindow, agent_id: str, tool: str, operation: str | None = None) -> None:
    pane = pane_of(window)
    pane.view.setFocus()
    pane.view.setCurrentIndex(index_of(window, agent_id, tool, operation))


def press(window: MainWindow, key: Qt.Key, modifier: Qt.KeyboardModifier = PLAIN) -> None:
    QTest.keyClick(pane_of(window).view, key, modifier)


def click(window: MainWindow, index: QModelIndex, at: QPoint | None = None) -> None:
    view = pane_of(window).view
    view.scrollTo(index)
    spot = at or view.visualRect(index).center()
    QTest.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, PLAIN, spot)


def text(window: MainWindow, agent_id: str, tool: str, operation: str | None = None) -> str:
    return str(index_of(window, agent_id, tool, operation).data())


def shown(window: MainWindow, agent_id: str, tool: str) -> frozenset[str]:
    return window.document.rights(agent_id)[tool].shown


WORDS = {Verdict.ALLOW: "On", Verdict.ASK: "Ask first", Verdict.DENY: "Off"}


async def test_every_cell_says_what_the_rights_of_its_agent_say(window: MainWindow) -> None:
    pane_of(window).model.set_all_open(on=True)

    for agent in window.document.agents:
        for name, right in window.document.rights(agent.agent_id).items():
            verdicts = [op.verdict for op in right.operations]
            held = [(verdicts.count(verdict), words) for verdict, words in WORDS.items() if verdict in verdicts]
            said = held[0][1] if len(held) == 1 else ", ".join(f"{count} {words}" for count, words in held)
            if right.facts.has_operations:
                assert text(window, agent.agent_id, name) == said
            for op in right.operations if right.facts.has_operations else ():
                said = text(window, agent.agent_id, name, op.operation)
                assert said.startswith("Off") == op.is_hidden
                assert said.startswith("Ask first") == (op.verdict is Verdict.ASK)
                assert (said == "Off: ticked, blocked by policy") == op.is_overruled


async def test_a_mark_is_filled_as_far_as_it_is_on_and_the_inspector_gives_its_room_to_the_cells(
    window: MainWindow,
) -> None:
    view, preview = pane_of(window).view, agents_page(window).inspector
    before, green = view.width(), current_look().palette.verdict.allow.fg
    for agent_id, tool, share in (("operator", "send_message", 2 / 5), ("archivist", "file", 7 / 13)):
        choose(window, "researcher", "recall")
        mark = box_rect(view.visualRect(index_of(window, agent_id, tool)))
        line = view.viewport().grab(QRect(mark.left() + 5, mark.top() + 2, 1, mark.height() - 4)).toImage()
        filled = sum(line.pixelColor(0, y).name() == green for y in range(line.height()))
        assert abs(filled - 12 * share) <= 1, tool
    assert text(window, "operator", "send_message") == "2 On, 3 Off"

    button = agents_page(window).inspector_button
    QTest.mouseClick(button, Qt.MouseButton.LeftButton)

    assert not preview.isVisible()
    await until(lambda: view.width() > before + 300)
    QTest.mouseClick(button, Qt.MouseButton.LeftButton)
    assert preview.isVisible()


async def test_rows_open_and_close_by_key_mouse_and_button_and_survive_the_model_tester(
    window: MainWindow,
) -> None:
    pane = pane_of(window)
    tester = QAbstractItemModelTester(pane.model, QAbstractItemModelTester.FailureReportingMode.Fatal)
    assert tester.model() is pane.model
    tools = pane.model.rowCount()
    choose(window, "operator", "file")

    press(window, Qt.Key.Key_Plus)
    assert pane.model.rowCount() == tools + 13
    press(window, Qt.Key.Key_Down)
    assert pane.view.current_place is not None
    assert pane.view.current_place.operation is not None
    press(window, Qt.Key.Key_Minus)
    assert pane.model.rowCount() == tools
    assert pane.view.current_place == Place("file", None)
    edge = pane.view.tool_edge
    arrow = QPoint(10, edge.sectionViewportPosition(pane.view.currentIndex().row()) + 10)
    QTest.mouseClick(edge.viewport(), Qt.MouseButton.LeftButton, PLAIN, arrow)
    assert pane.model.rowCount() == tools + 13
    pane.close_all.click()

    assert pane.model.rowCount() == tools
    assert pane.view.current_agent == "operator"


async def test_keys_on_a_range_over_several_agents_are_one_edit_and_one_undo(window: MainWindow) -> None:
    open_tool(window, "file")
    choose(window, "archivist", "file", "list")
    before = {agent: shown(window, agent, "file") for agent in ("archivist", "researcher", "operator")}
    press(window, Qt.Key.Key_Right, SHIFT)
    press(window, Qt.Key.Key_Right, SHIFT)
    said = Said(window.document)
    press(window, Qt.Key.Key_D, Qt.KeyboardModifier.AltModifier)

    assert not said.messages, "the line after an edit tells it"
    assert window.document.undo_stack.count() == 1
    assert window.document.undo_stack.undoText() == "turn off list of file for 3 agents"
    assert all("list" not in shown(window, agent, "file") for agent in before)
    assert len(pane_of(window).view.blocks()) == 1
    assert pane_of(window).view.blocks()[0].right == 2
    press(window, Qt.Key.Key_K, Qt.KeyboardModifier.AltModifier)
    await known(window)
    assert text(window, "operator", "file", "list") == "Ask first, limited"
    assert text(window, "archivist", "file", "list") == "Ask first, limited"
    window.undo()
    window.undo()
    await known(window)
    assert {agent: shown(window, agent, "file") for agent in before} == before


async def test_the_selection_stays_while_preview_and_tree_follow_the_current_cell(window: MainWindow) -> None:
    open_tool(window, "file")
    choose(window, "researcher", "file", "read")
    press(window, Qt.Key.Key_Right, SHIFT)
    press(window, Qt.Key.Key_Down, SHIFT)
    wanted = pane_of(window).view.current_place
    assert wanted is not None
    await until(lambda: window.selection.operation == wanted.operation)

    assert (window.selection.agent_id, window.selection.tool) == ("operator", "file")
    assert agents_page(window).tools.view.current_row == ("file", wanted.operation)
    (block,) = pane_of(window).view.blocks()
    assert (block.bottom - block.top, block.right - block.left) == (1, 1)


async def test_the_selection_stays_though_the_rights_of_the_next_agent_come_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gatewright_gui.session.document.RIGHTS_AT_ONCE", 0)
    preferences, opener = Preferences(tmp_path / "preferences.ini"), large_opener(20)
    policy = write_large(tmp_path / "large", agents=5, tools=20)
    window = await build_window(policy, preferences=preferences, theme="light", opener=opener)
    try:
        window.resize(1280, 800)
        window.show()
        await show_matrix(window)
        first, other, *_ = window.document.agents
        hidden = {*(first.tools or ())}.difference(other.tools or ())  # among the others in the tree of the next
        tool = min(hidden)
        pane_of(window).search.setText(tool)  # which opens the tool
        await settled(window)
        choose(window, first.agent_id, tool, "read")
        for _ in range(3):
            press(window, Qt.Key.Key_Right, SHIFT)
            await settled(window)
        assert list(pane_of(window).cell_choice()) == [f"agent_{number:04}" for number in range(4)]
    finally:
        await end(window)


async def test_space_turns_a_mixed_tool_off_and_the_next_brings_back_what_was_on(window: MainWindow) -> None:
    choose(window, "archivist", "file")
    before = shown(window, "archivist", "file")
    assert 0 < len(before) < 13

    press(window, Qt.Key.Key_Space)
    assert shown(window, "archivist", "file") == frozenset()
    await known(window)
    press(window, Qt.Key.Key_Space)

    assert shown(window, "archivist", "file") == before


async def test_click_on_a_box_ticks_and_a_click_beside_it_only_chooses(window: MainWindow) -> None:
    open_tool(window, "file")
    index = index_of(window, "operator", "file", "delete")
    view = pane_of(window).view
    view.scrollTo(index)
    rect = view.visualRect(index)

    click(window, index, QPoint(rect.left() + 4, rect.center().y()))
    assert window.document.undo_stack.count() == 0
    assert view.current_agent == "operator"
    click(window, index, box_rect(rect).center())

    assert "delete" not in shown(window, "operator", "file")
    await known(window)
    assert text(window, "operator", "file", "delete") == "Off"
    tool = index_of(window, "operator", "file")
    view.scrollTo(tool)
    click(window, tool, box_rect(view.visualRect(tool)).center())
    assert shown(window, "operator", "file") == frozenset()


async def test_click_on_an_agents_name_chooses_it_and_stays_in_the_row(window: MainWindow) -> None:
    choose(window, "archivist", "file")
    view = pane_of(window).view
    column = pane_of(window).model.column_of("operator")
    at = QPoint(view.agent_edge.sectionViewportPosition(column) + 20, 10)

    QTest.mouseClick(view.agent_edge.viewport(), Qt.MouseButton.LeftButton, PLAIN, at)

    assert (view.current_agent, view.current_place) == ("operator", Place("file", None))
    await until(lambda: window.selection.agent_id == "operator")
    assert window.selection.tool == "file"
    (block,) = view.blocks()
    assert (block.left, block.right, block.bottom) == (column, column, pane_of(window).model.rowCount() - 1)


async def test_control_home_and_end_go_to_the_corners(window: MainWindow) -> None:
    choose(window, "researcher", "file")
    view, model = pane_of(window).view, pane_of(window).model

    press(window, Qt.Key.Key_End, CTRL)
    assert (view.currentIndex().row(), view.currentIndex().column()) == (model.rowCount() - 1, 3)
    press(window, Qt.Key.Key_Home, CTRL)

    assert (view.currentIndex().row(), view.currentIndex().column()) == (0, 0)


async def test_enter_shows_the_row_in_the_tree_of_the_agent(window: MainWindow) -> None:
    open_tool(window, "file")
    choose(window, "researcher", "file", "append")

    press(window, Qt.Key.Key_Return)
    await settled(window)

    page = agents_page(window)
    assert not page.shows_matrix
    assert page.tools.isVisible()
    assert (window.selection.agent_id, window.selection.operation) == ("researcher", "append")
    assert page.tools.view.current_row == ("file", "append")


async def test_search_finds_tools_operations_and_agents_and_says_when_nothing_fits(window: MainWindow) -> None:
    pane = pane_of(window)
    agents_page(window).focus_search()
    QTest.keyClicks(pane.search, "file delete")
    places = [pane.model.place_at(row) for row in range(pane.model.rowCount())]
    assert Place("file", "delete") in places
    assert Place("file", "read") not in places
    pane.agent_search.setText("operat")
    assert [agent.agent_id for agent in pane.model.agents] == ["operator"]
    pane.search.setText("no such thing")
    assert pane.nothing.isVisible()

    pane.nothing.action_button.click()

    assert pane.view.isVisible()
    assert len(pane.model.agents) == 4


async def test_only_rows_that_differ_are_shown_when_that_is_wanted(window: MainWindow) -> None:
    pane = pane_of(window)
    pane.agent_search.setText("archivist")
    pane.differs.click()
    assert pane.model.rowCount() == 0

    pane.agent_search.clear()

    agents = [agent.agent_id for agent in window.document.agents]
    tools = tools_shown(window)
    assert "file" in tools
    for facts in window.document.catalog:
        seen = {
            tuple(
                (op.ticked, op.verdict, op.limits, op.by_path, op.by_value)
                for op in window.document.rights(agent)[facts.name].operations
            )
            for agent in agents
        }
        assert facts.needs_source or (facts.name in tools) == (len(seen) > 1)


TWIN = """
[agents.{name}]
tools = ["file", "recall@2"]
sources = [{sources}]
"""
LIMIT = """
[[agents.twin_two.tool_rules]]
tool_name = "{tool}"
{limit}
"""
MAX = "rule_type = { MaxCalls = 40 }"
RATE = 'rule_type = { RateLimit = { calls = 30, per = "1m" } }'
DRAFTS = 'rule_type = { ArgumentConstraints = { path = { pattern = "^drafts/" } } }\nconditions = ["operation:append"]'


def tools_shown(window: MainWindow) -> set[str]:
    model = pane_of(window).model
    return {place.tool for row in range(model.rowCount()) if (place := model.place_at(row)) and place.tool}


def rows_shown(window: MainWindow) -> list[str | None]:
    model = pane_of(window).model
    places = map(model.place_at, range(model.rowCount()))
    return [place.operation for place in places if place is not None and place.tool]


@asynccontextmanager
async def twins(tmp_path: Path, other: str = "", other_sources: str = '"archive"') -> AsyncGenerator[MainWindow]:
    """The differences of two agents that are alike but for what the second one has besides."""
    policy = demo(tmp_path)
    agents = TWIN.format(name="twin_one", sources='"archive"') + TWIN.format(name="twin_two", sources=other_sources)
    policy.write_text(policy.read_text("utf-8") + agents + other, "utf-8")
    async with opened_window(policy, tmp_path) as window:
        await show_matrix(window)
        pane = pane_of(window)
        pane.open_all.click()
        QTest.keyClicks(pane.agent_search, "twin")
        pane.differs.click()
        await known(window)
        yield window


async def test_agents_that_are_alike_have_no_differences(tmp_path: Path) -> None:
    async with twins(tmp_path) as window:
        assert len(pane_of(window).model.agents) == 2
        assert rows_shown(window) == []
        assert pane_of(window).nothing.isVisible()


@pytest.mark.parametrize("limit", [MAX, RATE])
async def test_agents_that_differ_by_a_limit_alone_differ_in_what_it_limits(tmp_path: Path, limit: str) -> None:
    async with twins(tmp_path, LIMIT.format(tool="recall", limit=limit)) as window:
        assert tools_shown(window) == {"recall"}
        assert text(window, "twin_one", "recall", "search") == "On"
        assert text(window, "twin_two", "recall", "search") == "On, limited"


async def test_agents_with_the_same_kind_of_limit_and_other_numbers_differ(tmp_path: Path) -> None:
    rules = LIMIT.format(tool="recall", limit=MAX) + LIMIT.format(tool="recall", limit=MAX).replace("two", "one")

    async with twins(tmp_path / "same", rules) as window:
        assert tools_shown(window) == set()
    async with twins(tmp_path / "other", rules.replace("40", "39", 1)) as window:
        assert tools_shown(window) == {"recall"}


async def test_agents_that_differ_by_a_constraint_differ_in_the_operation_that_it_is_for(tmp_path: Path) -> None:
    async with twins(tmp_path, LIMIT.format(tool="file", limit=DRAFTS)) as window:
        assert rows_shown(window) == [None, "append"]
        assert text(window, "twin_two", "file", "append") == "On, Ask first for some, limited"
        choose(window, "twin_two", "file", "append")
        said = pane_of(window).said.toolTip()
        assert "only if the values of path fit what the rule says" in said
        assert "in archive it depends on the file" in said


async def test_agents_that_differ_by_their_sources_differ_in_the_tools_that_go_there(tmp_path: Path) -> None:
    source = '\n[[sources]]\nid = "desk"\ntype = "file"\nbase_path = "desk"\n'
    async with twins(tmp_path, source, '"archive", "desk"') as window:
        assert tools_shown(window) == {"file"}
        assert "delete" in rows_shown(window)


async def test_a_limit_that_is_added_by_hand_shows_in_the_cell_and_goes_with_an_undo(window: MainWindow) -> None:
    open_tool(window, "recall")
    choose(window, "archivist", "recall", "search")
    before = text(window, "archivist", "recall", "search")
    press(window, Qt.Key.Key_Return)
    await settled(window)
    detail = agents_page(window).inspector
    detail.show_part("limits")
    menu = detail.limits.menu
    menu.aboutToShow.emit()
    next(action for action in menu.actions() if action.objectName() == "agents.limits.add.end").trigger()
    await until(lambda: window.document.is_dirty)
    await show_matrix(window)

    assert before == "On"
    assert text(window, "archivist", "recall", "search") == "On, limited"
    window.undo()
    await known(window)
    assert text(window, "archivist", "recall", "search") == "On"


async def test_an_operation_that_asks_at_some_paths_has_a_hand_and_says_so(window: MainWindow) -> None:
    open_tool(window, "file")
    tip = str(index_of(window, "archivist", "file", "append").data(Qt.ItemDataRole.ToolTipRole))

    assert text(window, "archivist", "file", "append") == "On, Ask first for some, limited"
    assert tip.splitlines()[0] == "archivist, file > append: On, Ask first for some, limited"
    assert "`inbox/**` ask".replace("`", "") in tip
    assert text(window, "archivist", "file", "list") == "On, limited"


async def test_an_operation_that_goes_by_the_path_says_at_how_many_files(window: MainWindow) -> None:
    pane = pane_of(window)
    open_tool(window, "file")
    read = index_of(window, "archivist", "file", "read")

    def denied() -> int:
        share = pane.model.share(read.row(), read.column())
        return share.deny if share is not None else 0

    await until(lambda: denied() == 1)

    tip = str(read.data(Qt.ItemDataRole.ToolTipRole)).splitlines()
    assert tip[1] == "depends on the file: of 12 files 11 without asking, 1 never"
    sources.set_default_level(window.document, source_of(window.document), Permission.NONE)
    await until(lambda: denied() > 1)
    choose(window, "archivist", "file", "read")
    assert "depends on the file: of 12 files" in pane.said.text
    block = index_of(window, "archivist", "block")
    assert pane.model.share(block.row(), block.column()) is None


async def test_a_tip_says_the_state_and_why(window: MainWindow) -> None:
    open_tool(window, "file")
    tip = str(index_of(window, "archivist", "file", "delete").data(Qt.ItemDataRole.ToolTipRole))

    assert tip.splitlines()[0] == "archivist, file > delete: Off"
    assert len(tip.splitlines()) > 1
    choose(window, "archivist", "file", "delete")
    said = pane_of(window).said
    assert said.text == "archivist, file > delete: Off"
    assert said.toolTip().splitlines() == tip.splitlines()


async def test_copy_puts_the_selected_cells_with_their_names_on_the_clipboard(window: MainWindow) -> None:
    choose(window, "archivist", "file")
    press(window, Qt.Key.Key_Right, SHIFT)

    press(window, Qt.Key.Key_C, CTRL)

    lines = QApplication.clipboard().text().splitlines()
    assert lines[0] == "tool\toperation\tarchivist\tresearcher"
    assert lines[1].startswith("file\t\t")
    assert lines[1].split("\t")[2] == text(window, "archivist", "file")


async def test_an_edit_elsewhere_shows_in_the_cells(window: MainWindow) -> None:
    document, page = window.document, agents_page(window)
    window.selection.show_everyone(on=False)
    window.selection.choose_agent("operator")
    page.tools.show_row("file", None)
    page.tools.wish("deny")
    window.selection.show_everyone(on=True)
    await known(window)
    assert text(window, "operator", "file") == "Off"

    document.undo()
    await known(window)

    assert text(window, "operator", "file") == "11 On, 2 Ask first"


async def test_agents_that_come_and_go_are_columns_that_come_and_go(window: MainWindow) -> None:
    pane = pane_of(window)
    agents_pane(window).add()
    await known(window)
    assert len(pane.model.agents) == 5
    assert text(window, pane.model.agents[-1].agent_id, "file") != UNKNOWN

    window.undo()

    assert [agent.agent_id for agent in pane.model.agents] == [agent.agent_id for agent in window.document.agents]


async def test_both_edges_stay_when_the_cells_scroll(window: MainWindow) -> None:
    window.resize(1024, 640)
    pane = pane_of(window)
    pane.model.set_all_open(on=True)
    first = pane.view.agent_edge.geometry(), pane.view.tool_edge.geometry()
    pane.view.verticalScrollBar().setValue(pane.view.verticalScrollBar().maximum())

    assert pane.view.verticalScrollBar().value() > 0
    assert (pane.view.agent_edge.geometry(), pane.view.tool_edge.geometry()) == first
    top = pane.view.rowAt(0)
    assert pane.view.tool_edge.visualIndexAt(0) == top


async def test_the_matrix_is_there_again_at_the_next_start(window: MainWindow, tmp_path: Path) -> None:
    again = await build_window(
        demo(tmp_path / "again"), preferences=Preferences(tmp_path / "preferences.ini"), theme="light"
    )
    again.show()
    await settled(again)

    assert agents_page(again).shows_matrix
    assert pane_of(again).view.isVisible()
    await end(again)


async def test_control_m_switches_there_and_back(window: MainWindow) -> None:
    page = agents_page(window)
    press(window, Qt.Key.Key_M, CTRL)
    assert page.tools.isVisible()
    assert agents_pane(window).isVisible()
    assert page.tools.view.hasFocus()

    QTest.keyClick(page.tools.view, Qt.Key.Key_M, CTRL)

    assert pane_of(window).view.isVisible()
    assert agents_pane(window).everyone.isChecked()
    assert pane_of(window).view.hasFocus()


async def test_everyone_names_no_agent_until_a_cell_is_chosen(window: MainWindow) -> None:
    page, pane, trail = agents_page(window), pane_of(window), window.top.breadcrumb
    window.selection.choose_agent("operator")
    window.selection.show_everyone(on=False)
    QTest.mouseClick(agents_pane(window).everyone, Qt.MouseButton.LeftButton)
    await settled(window)

    assert trail.text == "Everyone"
    assert not pane.view.currentIndex().isValid()
    assert pane.said.text == ""
    assert not page.inspector.tabs.isVisible()
    assert "Choose a cell" in [label.text() for label in page.inspector.findChildren(QLabel) if label.isVisible()]

    click(window, index_of(window, "researcher", "search"))
    await settled(window)

    assert trail.text == "Everyone  ›  search  ›  researcher"
    assert page.inspector.tabs.isVisible()
    assert page.inspector.ground.text.startswith("researcher")
    window.selection.show_everyone(on=False)
    assert trail.text == "researcher  ›  search"


async def test_a_mark_that_is_filled_in_part_has_its_figures_beside_it_where_a_column_is_wide() -> None:
    assert part_words(Summary(7, 0, 6)) == "7/13"
    assert part_words(Summary(5, 4, 4)) == "9/13"
    assert part_words(Summary(11, 2, 0)) == "2 ask"
    assert [part_words(found) for found in (Summary(3, 0, 0), Summary(0, 3, 0), Summary(0, 0, 3), None)] == [""] * 4


async def test_what_is_still_worked_out_is_counted_in_words(tmp_path: Path) -> None:
    policy, preferences = write_large(tmp_path / "large", agents=6, tools=40), Preferences(tmp_path / "preferences.ini")
    window = await build_window(policy, preferences=preferences, theme="light", opener=large_opener(40))
    try:
        window.resize(1280, 800)
        window.show()
        agents_page(window).switch.trigger()
        turn_until(lambda: pane_of(window).note.text() == "0 of 6 agents in view worked out", "the count")
        await known(window)
        assert pane_of(window).note.text().endswith("tools, 6 agents")
    finally:
        await end(window)


async def test_nothing_is_worked_out_while_nobody_looks(window: MainWindow) -> None:
    page = agents_page(window)
    window.selection.show_everyone(on=False)
    before = pane_of(window).grid.column("researcher")
    window.selection.choose_agent("researcher")
    page.tools.show_row("file", None)
    window.selection.choose_agent("archivist")
    window.document.undo_stack.clear()

    assert "agents.matrix" not in window.tasks.names
    assert pane_of(window).grid.column("researcher") == before


def inked(cell: OperationCell | Summary) -> int:
    """How many points of a cell are drawn on."""
    image = QImage(CELL_WIDTH + 40, 40, QImage.Format.Format_RGB32)
    image.fill(QColor("white"))
    painter = QPainter(image)
    CellPainter().paint(painter, QRect(0, 0, image.width(), image.height()), cell, 1.0)
    painter.end()
    white = QColor("white").rgb()
    return sum(image.pixel(x, y) != white for x in range(image.width()) for y in range(image.height()))


@pytest.mark.parametrize("state", [Cell.ON, Cell.ASKS, Cell.LOCKED])
async def test_a_dot_in_the_corner_of_a_mark_says_that_it_depends_on_path_or_value(
    window: MainWindow, state: Cell
) -> None:
    del window  # it brings the theme
    assert inked(OperationCell(state, is_limited=True)) > inked(OperationCell(state)) + 10
    assert inked(OperationCell(Cell.SOME_ASK)) == inked(OperationCell(Cell.ON, is_limited=True))
    assert inked(OperationCell(Cell.OFF, is_limited=True)) == inked(OperationCell(Cell.OFF))
    assert inked(Summary(1, 0, 1, depends=True)) > inked(Summary(1, 0, 1)) + 10
    assert inked(OperationCell(state, is_observed=True)) > inked(OperationCell(state))


async def test_the_names_of_a_group_and_of_an_open_tool_stay_while_its_rows_scroll(window: MainWindow) -> None:
    window.resize(1024, 640)
    pane = pane_of(window)
    view, model = pane.view, pane.model
    pane.model.set_all_open(on=True)
    head, tool = model.row_of(Place("", None, BUILT_IN)), model.row_of(Place("file", None))
    assert view.rows_on_top() == ()
    view.verticalScrollBar().setValue(view.rowHeight(0) * (tool + 3))
    await settled(window)

    assert view.rows_on_top() == (head, tool)
    index = view.indexAt(QPoint(20, view.rowHeight(0) + 8))
    assert index.row() == tool
    edge, high = view.tool_edge, view.rowHeight(0)
    named = [edge.viewport().grab(QRect(0, at * high, edge.width(), high)).toImage() for at in (0, 1)]
    view.verticalScrollBar().setValue(view.verticalScrollBar().value() + 2 * high)
    again = [edge.viewport().grab(QRect(0, at * high, edge.width(), high)).toImage() for at in (0, 1)]
    assert again == named

    QTest.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, PLAIN, QPoint(4, high + 8))
    assert view.current_place == Place("file", None)
    press(window, Qt.Key.Key_Down)
    assert view.visualRect(view.currentIndex()).top() >= 2 * high
    QTest.mouseClick(edge.viewport(), Qt.MouseButton.LeftButton, PLAIN, QPoint(30, 8))
    assert view.current_place is not None
    assert view.current_place.tool == ""
    assert len(view.blocks()) == 1


async def test_a_line_below_the_cells_says_what_the_marks_mean(window: MainWindow) -> None:
    legend = pane_of(window).findChild(QWidget, "agents.matrix.legend")
    assert legend is not None
    assert legend.isVisible()
    assert legend.accessibleName().startswith("Legend: Off, Ask first, On, ")
    spoken = index_of(window, "operator", "shell_exec").data(Qt.ItemDataRole.AccessibleTextRole)
    assert spoken.startswith("operator, shell_exec: Ask first")
