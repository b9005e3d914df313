"""Presets, copied rights, filters and many agents: through the window."""

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QAbstractItemModelTester, QTest
from PySide6.QtWidgets import QCheckBox, QPushButton, QRadioButton, QToolButton

from gatewright.base.errors import Problem, Severity, Subject
from gatewright.policy.rights import Preset
from gatewright.policy.rightsdiff import AgentDiff, RightChange, RightState
from gatewright.policy.verdict import SafetyTier, Verdict
from gatewright_gui.pages.access.agents import COUNT, agents_with_problems, tools_with_problems
from gatewright_gui.pages.access.tools.right_changes import THEN, RightChangesModel, counts_words
from gatewright_gui.pages.access.tools.right_lines import lines_of
from gatewright_gui.pages.access.tools.rights_dialog import CopyDialog, PresetDialog, RightsDialog
from gatewright_gui.pages.access.tools.tool_fit import Filters, State
from gatewright_gui.window.main_window import MainWindow
from tests.gui.models.values import LIMITED, rights_of
from tests.gui.session.opened import agents_page, agents_pane, cell, settled, until

CTRL = Qt.KeyboardModifier.ControlModifier


async def opened_dialog(window: MainWindow) -> RightsDialog:
    await until(lambda: any(dialog.isVisible() for dialog in window.findChildren(RightsDialog)))
    return next(dialog for dialog in window.findChildren(RightsDialog) if dialog.isVisible())


def press(button: QPushButton | QRadioButton | QCheckBox) -> None:
    at = QPoint(10, button.height() // 2)
    QTest.mouseClick(button, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, at)


async def test_preset_shows_what_it_would_change_and_is_one_edit(window: MainWindow) -> None:
    before = window.document.policy
    agents_pane(window).rights_menu.open_presets(("archivist",), Preset.READ_ONLY)
    dialog = await opened_dialog(window)
    assert isinstance(dialog, PresetDialog)
    await until(lambda: dialog.edit is not None)
    lines = [dialog.changes.index(row, 1).data() for row in range(dialog.changes.rowCount())]
    assert "file.save" in lines
    assert "turned off" in counts_words(dialog.changes.counts)

    press(dialog.accept_button)
    await settled(window)

    rights = window.document.rights("archivist")
    assert {op.tier for right in rights.values() for op in right.operations if op.ticked} == {SafetyTier.READ_ONLY}
    assert window.document.undo_stack.undoText() == "preset read only for archivist"
    window.undo()
    assert window.document.policy == before


async def test_preset_that_changes_nothing_says_so_and_cannot_be_applied(window: MainWindow) -> None:
    agents_pane(window).rights_menu.open_presets(("newcomer",), Preset.NOTHING)
    dialog = await opened_dialog(window)
    await until(dialog.nothing.isVisible)
    assert dialog.nothing.accessibleName() == "Nothing would change"
    assert not dialog.accept_button.isEnabled()

    QTest.keyClick(dialog, Qt.Key.Key_Escape)
    await settled(window)
    assert not window.document.is_dirty


async def test_another_preset_and_another_agent_are_worked_out_anew(window: MainWindow) -> None:
    agents_pane(window).rights_menu.open_presets(("newcomer",), Preset.NOTHING)
    dialog = await opened_dialog(window)
    await until(dialog.nothing.isVisible)
    everything = dialog.findChild(QRadioButton, "rights.preset.everything")
    assert everything is not None

    QTest.keyClick(everything, Qt.Key.Key_Space)
    await until(lambda: dialog.edit is not None)
    one = dialog.changes.counts_total
    QTest.keyClick(dialog.agent_view, Qt.Key.Key_Home)
    QTest.keyClick(dialog.agent_view, Qt.Key.Key_Space)
    await until(lambda: dialog.edit is not None and dialog.changes.counts_total > one)

    assert dialog.agents.chosen == ("archivist", "newcomer")
    dialog.reject()
    await settled(window)


async def test_rights_are_copied_with_what_is_chosen_and_read_the_same_from_the_file(window: MainWindow) -> None:
    agents_pane(window).rights_menu.open_copy("researcher")
    dialog = await opened_dialog(window)
    assert isinstance(dialog, CopyDialog)
    assert dialog.agents.chosen == ()
    assert not dialog.accept_button.isEnabled()
    press(dialog.sources)
    press(dialog.capabilities)
    press(dialog.all_button)
    await until(lambda: dialog.edit is not None)

    press(dialog.accept_button)
    await settled(window)

    policy = window.document.policy
    source = policy.agents["researcher"]
    for name in ("archivist", "operator", "newcomer"):
        other = policy.agents[name]
        assert (other.tools, other.tool_rules, other.sources) == (source.tools, source.tool_rules, source.sources)
        assert other.description != source.description
    assert window.document.undo_stack.undoText() == "copy the rights of researcher to 3 agents"
    assert await window.document.save()
    assert await window.document.reload()
    assert window.document.policy == policy


async def test_menu_of_the_tree_opens_the_dialog_with_that_preset(window: MainWindow) -> None:
    window.selection.choose_agent("operator")
    tools = agents_page(window).tools
    tools.preset_menu.aboutToShow.emit()
    action = next(one for one in tools.preset_menu.actions() if one.objectName() == "agents.preset.standard")
    action.trigger()
    dialog = await opened_dialog(window)
    assert isinstance(dialog, PresetDialog)
    assert dialog.preset is Preset.STANDARD
    assert dialog.agents.chosen == ("operator",)
    dialog.reject()
    await settled(window)


async def test_filters_leave_a_chip_each_that_takes_them_away(window: MainWindow) -> None:
    window.selection.choose_agent("operator")
    tools = agents_page(window).tools
    tools.filters.menu.aboutToShow.emit()
    named = {action.text(): action for action in tools.filters.menu.actions()}
    named["Read only"].trigger()
    named["On"].trigger()
    assert tools.filters.filters == Filters(frozenset({State.ON}), frozenset({SafetyTier.READ_ONLY}))
    shown = tools.rows.operations_that_fit()
    rights = window.document.rights("operator")
    assert {op.tier for name in shown for op in rights[name].operations if op.operation in shown[name]} == {
        SafetyTier.READ_ONLY
    }
    assert tools.filters.shown.text() == f"{sum(map(len, shown.values()))} shown"

    chip = tools.filters.findChild(QToolButton, "agents.filter.states")
    assert chip is not None
    QTest.mouseClick(chip, Qt.MouseButton.LeftButton)

    assert tools.filters.filters == Filters(tiers=frozenset({SafetyTier.READ_ONLY}))
    tools.show_all()
    assert not tools.filters.isVisible()


async def test_limits_filter_shows_only_what_a_rule_limits(window: MainWindow) -> None:
    window.selection.choose_agent("operator")
    tools = agents_page(window).tools
    tools.filters.set_filters(Filters(has_limits=True))
    assert "file" in tools.rows.operations_that_fit()
    assert tools.rows.shown_count < tools.model.tally.every


async def test_keys_on_a_tool_touch_only_what_the_filter_shows(window: MainWindow) -> None:
    window.selection.choose_agent("operator")
    tools = agents_page(window).tools
    tools.filters.set_filters(Filters(tiers=frozenset({SafetyTier.READ_ONLY})))
    tools.show_row("file", None)
    before = {op.operation for op in window.document.rights("operator")["file"].operations if op.ticked}
    QTest.keyClick(tools.view, Qt.Key.Key_D, Qt.KeyboardModifier.AltModifier)

    rows = window.document.rights("operator")["file"].operations
    left = {op.operation for op in rows if op.ticked}
    assert left == before - {op.operation for op in rows if op.tier is SafetyTier.READ_ONLY}
    assert left


async def test_ctrl_a_selects_all_that_is_shown_and_ctrl_i_the_rest(window: MainWindow) -> None:
    window.selection.choose_agent("operator")
    tools = agents_page(window).tools
    QTest.keyClick(tools.view, Qt.Key.Key_A, CTRL)
    targets = tools.view.targets()
    assert sum(len(target.operations) for target in targets) == tools.model.tally.every

    tools.view.clearSelection()
    tools.show_row("file", "read")
    assert [target.operations for target in tools.view.targets()] == [("read",)]
    QTest.keyClick(tools.view, Qt.Key.Key_I, CTRL)

    chosen = {target.tool: target.operations for target in tools.view.targets()}
    assert "read" not in chosen["file"]
    assert sum(map(len, chosen.values())) == tools.model.tally.every - 1


async def test_agents_say_how_much_is_on_and_many_can_be_filtered(window: MainWindow) -> None:
    agents = agents_pane(window)
    await until(lambda: bool(agents.rows.index(agents.rows.row_of("operator"), 0).data(COUNT)))
    on = sum(op.ticked and not op.is_hidden for r in window.document.rights("operator").values() for op in r.operations)
    assert agents.rows.index(agents.rows.row_of("operator"), 0).data(COUNT).startswith(f"{on} of ")
    assert not agents.search.isVisible()
    for _ in range(10):
        agents.add()
    await settled(window)
    assert agents.search.isVisible()

    QTest.keyClicks(agents.search, "agent-3")
    assert agents.rows.rowCount() == 1
    QTest.keyClick(agents.search, Qt.Key.Key_Escape)
    assert agents.rows.rowCount() == len(window.document.agents)


async def test_several_agents_are_removed_at_once(window: MainWindow) -> None:
    agents = agents_pane(window)
    agents.view.setFocus()
    window.selection.choose_agent("archivist")
    QTest.keyClick(agents.view, Qt.Key.Key_Down, Qt.KeyboardModifier.ShiftModifier)
    assert agents.choice() == ("archivist", "researcher")
    QTest.keyClick(agents.view, Qt.Key.Key_Delete)
    await settled(window)

    assert list(window.document.policy.agents) == ["operator", "newcomer"]
    assert window.document.undo_stack.undoText().startswith("remove 2 agents")
    window.undo()
    assert list(window.document.policy.agents) == ["archivist", "researcher", "operator", "newcomer"]


async def test_declaring_is_among_what_mends_the_row(window: MainWindow) -> None:
    window.selection.choose_agent("operator")
    tools = agents_page(window).tools
    tools.show_row("tracker", None)
    await settled(window)
    assert agents_page(window).inspector.why.isAncestorOf(tools.declaring.button)
    assert tools.declaring.button.isVisible()
    assert tools.declaring.button.focusPolicy() & Qt.FocusPolicy.TabFocus


async def test_large_changes_are_worked_out_beside_the_window(
    window: MainWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = agents_page(window).tools
    window.selection.choose_agent("archivist")
    await settled(window)
    tools.show_row("file", None)
    before = tools.model.tally
    monkeypatch.setattr("gatewright_gui.session.document.RIGHTS_AT_ONCE", 0)

    tools.wish("deny")
    assert tools.model.tally == before
    await settled(window)
    assert tools.model.tally.cannot > before.cannot
    window.undo()
    await settled(window)

    assert tools.model.tally == before
    assert cell(window, "file", None).isValid()


def test_lines_of_changes_keep_the_rules_of_item_models(qapp: object) -> None:
    del qapp
    model = RightChangesModel()
    tester = QAbstractItemModelTester(model, QAbstractItemModelTester.FailureReportingMode.Fatal)
    rows = (
        RightChange("a", "file", "save", RightState.ON, RightState.OFF),
        RightChange("a", "clock", "", RightState.OFF, RightState.ASKS),
    )
    model.add(lines_of(AgentDiff("a", rows, sources=((), None))))
    assert [model.index(row, THEN).data() for row in range(3)] == ["every source", "off", "asks first"]
    model.set_filter("save", "")
    assert model.rowCount() == 1
    model.set_filter("", "asks first now")
    assert model.rowCount() == 1
    model.clear()
    assert model.rowCount() == 0
    assert tester.model() is model


def test_lines_that_there_is_no_room_for_are_counted_all_the_same() -> None:
    rows = tuple(RightChange("a", f"tool_{at}", "", RightState.ON, RightState.OFF) for at in range(5))
    model = RightChangesModel()
    model.add(lines_of(AgentDiff("a", rows, sources=((), None)), room=3))

    assert model.rowCount() == 3
    assert model.is_cut
    assert counts_words(model.counts) == "5 turned off, 1 also changed"


def _about(subject: Subject) -> Problem:
    return Problem(Severity.WARNING, "x", "odd", subject=subject)


def test_problem_belongs_to_the_tools_and_the_agents_that_it_is_about() -> None:
    problems = (
        _about(Subject(("agents", "limited"), ("limited",), (("notes", "burn"),))),
        _about(Subject(("agents", "free", "tools", 0), ("free",), (("clock", None),))),
        _about(Subject(("tools", "disk"), (), (("disk", None), ("gone", None)))),
        Problem(Severity.WARNING, "x", "`clock` of agent `limited` stands in its words alone"),
    )
    found = tools_with_problems(problems, "limited", rights_of(LIMITED))
    assert set(found) == {"notes", "disk"}
    assert set(agents_with_problems(problems, ("limited", "free"))) == {"limited", "free"}
    assert Verdict.DENY not in found
