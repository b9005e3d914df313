"""The self-check's count at the foot of the window and the dialog behind it."""

from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QAbstractItemModelTester, QTest

from gatewright.policy.verdict import pick_tools
from gatewright_gui.models.selfcheck import STATE, TOOL, WHAT, AgentCheckModel, CheckNoteModel
from gatewright_gui.session.selfcheck import AgentCheck, CheckCount, CheckNote, CheckProgress
from gatewright_gui.session.verbs import rights
from gatewright_gui.window.main_window import MainWindow
from tests.gui.session.opened import settled

LEFT, PLAIN = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
WRONG = CheckNote("operator", "file", "delete", "listed, valid, not passed")
UNTRIED = CheckNote("archivist", "file", "list", "no call could be made", is_wrong=False)
FOUND = CheckCount((AgentCheck("operator", 15, 12, 43, 1, 0),), (WRONG,), (UNTRIED,), 1.0)


async def test_click_on_the_count_opens_what_was_checked_of_each_agent(window: MainWindow) -> None:
    await settled(window)
    QTest.mouseClick(window.status.check, LEFT)

    dialog, found = window.selfcheck, window.upkeep.found
    assert dialog.isVisible()
    assert found is not None
    operations = sum(len(row.operations) for row in pick_tools(window.document.catalog, None).values())
    assert [row.operations for row in found.agents] == [operations] * len(window.document.policy.agents)
    assert dialog.agents.rowCount() == len(found.agents)
    assert dialog.nothing.isVisible()
    dialog.close()


async def test_note_of_the_self_check_goes_to_its_tool(window: MainWindow) -> None:
    await settled(window)
    window.upkeep.selfcheck_changed.emit(FOUND)
    assert window.status.check.text() == "self-check 42 of 43"
    assert str(WRONG) in window.status.check.toolTip()
    QTest.mouseClick(window.status.check, LEFT)
    view = window.selfcheck.note_view
    assert window.selfcheck.notes.index(0, WHAT).data() == WRONG.what
    place = view.visualRect(view.model().index(0, TOOL)).topLeft() + QPoint(6, 6)

    QTest.mouseClick(view.viewport(), LEFT, PLAIN, place)

    chosen = window.selection
    assert (chosen.agent_id, chosen.tool, chosen.operation) == ("operator", "file", "delete")
    QTest.mouseClick(window.selfcheck.copy_button, LEFT)
    text = QGuiApplication.clipboard().text()
    assert f"differs: {WRONG}" in text
    assert f"not tried: {UNTRIED}" in text
    assert "operator\t15\t12\t43\t1\t0" in text
    window.selfcheck.close()


async def test_check_again_checks_and_an_edit_stops_a_check_of_the_older_policy(window: MainWindow) -> None:
    await settled(window)
    before = window.upkeep.found
    window.selfcheck.show_dialog()
    QTest.mouseClick(window.selfcheck.again_button, LEFT)
    assert window.upkeep.is_checking
    rights.tick_tool(window.document, "operator", "file", on=False)
    assert not window.upkeep.is_checking
    await settled(window)

    after = window.upkeep.found
    assert after is not None
    assert after is not before
    assert after.differences == ()
    window.selfcheck.close()


async def test_progress_is_told_while_a_check_takes_long_and_stopping_keeps_the_count(window: MainWindow) -> None:
    await settled(window)
    words = window.status.check.text()
    window.upkeep.check_progressed.emit(CheckProgress(3, 50))
    assert window.status.check.text() == "self-check: 3 of 50 agents"
    assert window.selfcheck.again_button.text() == "&Stop"
    window.upkeep.check_progressed.emit(None)
    assert window.status.check.text() == words


async def test_a_check_that_is_stopped_leaves_what_was_found_before(window: MainWindow) -> None:
    await settled(window)
    before = window.upkeep.found
    window.upkeep.check_again()
    window.upkeep.stop_check()
    await settled(window)

    assert not window.upkeep.is_checking
    assert window.upkeep.found is before


def test_models_of_the_self_check_keep_the_rules_of_item_models(qapp: object) -> None:
    del qapp
    agents, notes = AgentCheckModel(), CheckNoteModel()
    testers = [
        QAbstractItemModelTester(model, QAbstractItemModelTester.FailureReportingMode.Fatal)
        for model in (agents, notes)
    ]
    agents.set_rows(FOUND.agents)
    notes.set_rows((*FOUND.differences, *FOUND.untried))
    assert [tester.model().rowCount() for tester in testers] == [1, 2]
    assert notes.index(1, STATE).data() == "not tried"
