from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QMenu

from gatewright.policy.document import Trust
from gatewright.policy.rule import AfterOutside, ToolRule
from gatewright.policy.verdict import PathUse, Verdict
from gatewright_gui.pages.access.tools.declare_dialog import DeclareDialog
from gatewright_gui.pages.access.tools.paths_dialog import PathsDialog
from gatewright_gui.pages.access.tools.results_dialog import (
    ResultsDialog,
    basis_words,
    effect_words,
    is_outside_as_found,
)
from gatewright_gui.pages.access.tools.tool_tree import MARK, Column
from gatewright_gui.pages.access.tools.why_pane import StepModel
from gatewright_gui.pages.servers.detail import DetailPane
from gatewright_gui.pages.servers.page import ServersPage
from gatewright_gui.pages.trial.call_bar import ELSEWHERE, RUN
from gatewright_gui.pages.trial.page import TrialPage
from gatewright_gui.qt.widget.label import ElidedLabel
from gatewright_gui.session.verbs import operations as verbs
from gatewright_gui.window.main_window import MainWindow
from tests.gui.session.opened import agents_page, cell, demo, opened_window, settled, until

LEFT = Qt.MouseButton.LeftButton


@pytest.fixture
async def window(tmp_path: Path) -> AsyncIterator[MainWindow]:
    async with opened_window(demo(tmp_path), tmp_path) as opened:
        opened.selection.choose_agent("operator")
        await settled(opened)
        yield opened


async def opened_dialog(window: MainWindow, tool: str) -> DeclareDialog:
    tools = agents_page(window).tools
    tools.show_row(tool, None)
    await settled(window)
    QTest.mouseClick(tools.declaring.button, LEFT)
    await until(lambda: any(dialog.isVisible() for dialog in window.findChildren(DeclareDialog)))
    return window.findChildren(DeclareDialog)[0]


def opened_details(window: MainWindow) -> StepModel:
    """The steps of Why with everything behind them."""
    return agents_page(window).inspector.why.model


def menu_of(window: MainWindow) -> dict[str, bool]:
    menu = QMenu()
    agents_page(window).tools.declaring.fill(menu)
    return {action.text(): action.isEnabled() for action in menu.actions() if action.text()}


async def test_tree_marks_what_to_look_at_and_why_says_what_can_be_done(window: MainWindow) -> None:
    tools = agents_page(window).tools
    assert cell(window, "calendar", None).data(MARK) == "free"
    assert "free text" in cell(window, "calendar", None, Column.FACT).data()
    assert "open-ended" in cell(window, "run_sql", None, Column.FACT).data()
    assert cell(window, "tracker", None).data(MARK) == ""
    assert "from station" in cell(window, "tracker", None).data(Qt.ItemDataRole.ToolTipRole)

    tools.show_row("run_sql", None)
    await settled(window)

    model = opened_details(window)
    told = [step.text for step in model.rows]
    assert any("no list of operations can gate it" in text for text in told)
    assert tools.declaring.button.isVisible()


async def test_our_own_tools_offer_no_declaration(window: MainWindow) -> None:
    agents_page(window).tools.show_row("file", None)
    await settled(window)

    assert not agents_page(window).tools.declaring.button.isVisible()
    assert menu_of(window) == {"Who writes its results…": True}


async def test_ticked_names_become_operations_as_one_edit(window: MainWindow) -> None:
    dialog = await opened_dialog(window, "calendar")
    assert dialog.choice.field == "command"
    assert not dialog.accept_button.isEnabled()
    for row in range(2):
        dialog.operation_view.setCurrentIndex(dialog.operations.index(row, 0))
        QTest.keyClick(dialog.operation_view, Qt.Key.Key_Space)
    QTest.keyClicks(dialog.name, "close_year")
    QTest.keyClick(dialog.name, Qt.Key.Key_Return)
    assert dialog.isVisible()
    assert "3 operations instead of one box" in dialog.effect.text()

    QTest.mouseClick(dialog.accept_button, LEFT)
    await settled(window)

    wanted = ("add_round", "move_round", "close_year")
    assert window.document.rights("operator")["calendar"].facts.operation_names == wanted
    assert window.document.undo_stack.undoText() == "declare operations of calendar"
    assert cell(window, "calendar", "close_year").isValid()
    assert window.selection.tool == "calendar"
    assert menu_of(window)["As the schema says"]
    window.undo()
    await settled(window)
    assert not window.document.rights("operator")["calendar"].facts.has_operations


async def test_refusal_is_said_in_the_dialog_which_stays(window: MainWindow) -> None:
    dialog = await opened_dialog(window, "tracker")
    last = dialog.choices.rowCount() - 1
    dialog.choice_view.setCurrentIndex(dialog.choices.index(last, 0))
    assert "tool rule 3 of archivist names comment, list, open: change it first" in dialog.effect.text()

    QTest.mouseClick(dialog.accept_button, LEFT)

    assert dialog.isVisible()
    assert "tracker" in dialog.fault.text()
    assert not window.document.is_dirty
    QTest.keyClick(dialog, Qt.Key.Key_Escape)
    await settled(window)
    assert window.document.rights("operator")["tracker"].facts.has_operations


async def test_menu_says_no_operations_and_back_as_the_schema_says(window: MainWindow) -> None:
    tools = agents_page(window).tools
    tools.show_row("table_edit", None)
    await settled(window)
    assert menu_of(window) == {
        "Treat a field as operations…": True,
        "Declare operations…": True,
        "Paths of its arguments…": True,
        "No operations here": True,
        "As the schema says": False,
        "Who writes its results…": True,
    }
    for text, has in (("No operations here", False), ("As the schema says", True)):
        menu = QMenu()
        tools.declaring.fill(menu)
        next(action for action in menu.actions() if action.text() == text).trigger()
        await settled(window)
        assert window.document.rights("operator")["table_edit"].facts.has_operations == has
        tools.show_row("table_edit", None)


async def opened_paths(window: MainWindow, tool: str) -> PathsDialog:
    tools = agents_page(window).tools
    tools.show_row(tool, None)
    await settled(window)
    menu = QMenu()
    tools.declaring.fill(menu)
    next(action for action in menu.actions() if action.text().startswith("Paths")).trigger()
    await until(lambda: any(dialog.isVisible() for dialog in window.findChildren(PathsDialog)))
    return next(dialog for dialog in window.findChildren(PathsDialog) if dialog.isVisible())


async def test_paths_are_declared_by_key_and_by_mouse_as_one_edit(window: MainWindow) -> None:
    dialog = await opened_paths(window, "calendar")
    rows = [dialog.model.index(row, 0).data() for row in range(dialog.model.rowCount())]
    assert rows == [f"{name}  (no path, as found)" for name in ("command", "day", "person")]
    assert not dialog.accept_button.isEnabled()

    QTest.keyClick(dialog.view, Qt.Key.Key_W)
    QTest.keyClick(dialog.view, Qt.Key.Key_Down)
    QTest.mouseClick(dialog.choice.button("read"), LEFT)
    assert dialog.model.index(0, 0).data() == "command  (written, declared)"
    assert dialog.choice.current == "read"
    QTest.mouseClick(dialog.accept_button, LEFT)
    await settled(window)

    assert window.document.policy.tools["calendar"].paths == {"command": PathUse.WRITE, "day": PathUse.READ}
    assert window.document.undo_stack.undoText() == "say which arguments of calendar are paths"
    tools = agents_page(window).tools
    tools.show_row("calendar", None)
    await settled(window)
    model = opened_details(window)
    told = [step.text for step in model.rows]
    assert any(
        "`command` is a path (overwrite, declared)" in text and "it depends on the file" in text for text in told
    )
    right = window.document.rights("operator")["calendar"].operations[0]
    assert right.by_path

    dialog = await opened_paths(window, "calendar")
    QTest.keyClick(dialog.view, Qt.Key.Key_F)
    QTest.keyClick(dialog.view, Qt.Key.Key_Down)
    QTest.keyClick(dialog.view, Qt.Key.Key_F)
    QTest.keyClick(dialog.view, Qt.Key.Key_Return)
    await settled(window)
    assert "calendar" not in window.document.policy.tools


async def opened_results(window: MainWindow, tool: str) -> ResultsDialog:
    tools = agents_page(window).tools
    tools.show_row(tool, None)
    await settled(window)
    menu = QMenu()
    tools.declaring.fill(menu)
    next(action for action in menu.actions() if action.objectName() == "agents.results").trigger()
    await until(lambda: any(dialog.isVisible() for dialog in window.findChildren(ResultsDialog)))
    return next(dialog for dialog in window.findChildren(ResultsDialog) if dialog.isVisible())


def is_outside(window: MainWindow, tool: str) -> bool:
    return next(facts.outside for facts in window.document.catalog if facts.name == tool)


async def test_who_writes_the_results_of_a_tool_is_declared_by_key_and_by_mouse_and_taken_back(
    window: MainWindow,
) -> None:
    before = window.document.workspace.text()
    dialog = await opened_results(window, "web_fetch")
    assert dialog.found.text() == "As found it has results from outside: it reads what others write."
    assert "has a rule after outside results: nothing follows" in dialog.effect.text()
    assert not dialog.accept_button.isEnabled()
    assert dialog.choice.accessibleName() == "Who writes its results"
    QTest.keyClick(dialog.choice.button("found"), Qt.Key.Key_Right)
    assert dialog.choice.current == "own"
    assert dialog.effect.text() == "Its results mark no session, whoever wrote them."
    QTest.keyClick(dialog.accept_button, Qt.Key.Key_Return)
    await settled(window)
    assert window.document.policy.tools["web_fetch"].trust is Trust.OWN
    assert window.document.undo_stack.undoText() == "say who writes the results of web_fetch"
    assert not is_outside(window, "web_fetch")

    dialog = await opened_results(window, "web_fetch")
    assert dialog.choice.current == "own"
    QTest.mouseClick(dialog.choice.button("found"), LEFT)
    QTest.mouseClick(dialog.accept_button, LEFT)
    await settled(window)
    assert window.document.workspace.text() == before
    assert is_outside(window, "web_fetch")


def note_of(detail: DetailPane) -> str:
    return detail.tools.header.findChildren(ElidedLabel)[0].text


async def test_place_servers_says_who_writes_the_results_of_a_tool_and_changes_it(window: MainWindow) -> None:
    window.show_page("servers")
    await settled(window)
    page = window.shelf.page("servers")
    assert isinstance(page, ServersPage)
    detail, tool = page.detail, "tracker"
    assert note_of(detail) == "own results: the program that uses the policy runs it"
    QTest.mouseClick(detail.tools.results_button, LEFT)
    await until(lambda: any(dialog.isVisible() for dialog in window.findChildren(ResultsDialog)))
    (dialog,) = window.findChildren(ResultsDialog)
    QTest.mouseClick(dialog.choice.button("outside"), LEFT)
    QTest.mouseClick(dialog.accept_button, LEFT)
    await settled(window)
    assert is_outside(window, tool)
    assert note_of(detail) == "results from outside: the policy says so"
    window.undo()
    await settled(window)
    assert not is_outside(window, tool)
    assert note_of(detail) == "own results: the program that uses the policy runs it"


async def test_every_tool_says_what_the_trust_in_its_results_rests_on_and_takes_the_other(window: MainWindow) -> None:
    document = window.document
    before, rule = document.workspace.text(), ToolRule("file", AfterOutside(Verdict.ASK))
    for facts in document.catalog:
        was = is_outside(window, facts.name)
        assert basis_words(document, facts).startswith("results from outside: " if was else "own results: "), facts.name
        for wanted in (Trust.OWN, Trust.OUTSIDE):
            assert verbs.declare_trust(document, facts.name, facts.major, wanted)
            assert is_outside(window, facts.name) == (wanted is Trust.OUTSIDE)
            assert is_outside_as_found(document, facts) == was
            assert basis_words(document, facts).endswith(": the policy says so")
        verbs.declare_trust(document, facts.name, facts.major, None)
        assert is_outside(window, facts.name) == was
    assert document.workspace.text() == before
    facts, agent = document.catalog[0], document.policy.agents["operator"]
    having = replace(document.policy, agents={"operator": replace(agent, tools=None, tool_rules=(rule,))})
    assert effect_words(having, facts, is_outside=True, was_outside=True) == (
        "After a result of it the rules of operator ask or deny."
    )
    for is_now, was in ((False, False), (False, True), (True, False)):
        assert "operator" not in effect_words(document.policy, facts, is_outside=is_now, was_outside=was)


async def test_console_decides_what_another_program_runs_and_says_so(window: MainWindow) -> None:
    agents_page(window).tools.show_row("calendar", None)
    window.show_page("try")
    await settled(window)
    page = window.shelf.page("try")
    assert isinstance(page, TrialPage)
    assert (page.request.tool_name, page.run_button.text()) == ("calendar", ELSEWHERE)
    page.request.mode.set_current("json")
    page.request.raw.set_text('{"command": "list_rounds"}')

    page.run()
    await settled(window)

    shown = page.outcome.shown
    assert shown is not None
    assert (shown.kind, str(shown.verdict), shown.output) == ("decide", "ask", None)
    assert not page.console.has_copy
    page.request.tool.setEditText("file")
    assert page.run_button.text() == RUN
