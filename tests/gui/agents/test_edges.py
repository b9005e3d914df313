"""The Agents page where things come in each other's way: links to rules, odd values, edits while a dialog is open."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from PySide6.QtCore import QModelIndex, QPoint, Qt, QTimer
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractItemView, QApplication, QCheckBox, QComboBox, QLabel, QLineEdit

from gatewright.policy.document import Agent
from gatewright.policy.right import Layer
from gatewright.policy.rights import Preset
from gatewright.policy.rule import ArgumentConstraints, MaxCalls, RateLimit
from gatewright.policy.ruleedit import RulePosition
from gatewright_gui.pages.access.rules import RulesPage
from gatewright_gui.pages.access.tools.constraint_dialog import ConstraintDialog
from gatewright_gui.pages.access.tools.limit_list import Column
from gatewright_gui.pages.access.tools.limits import value_of
from gatewright_gui.pages.access.tools.limits_pane import LimitsPane
from gatewright_gui.pages.access.tools.rights_dialog import RightsDialog
from gatewright_gui.pages.access.tools.row_state import RowState
from gatewright_gui.pages.access.tools.tool_tree import STATE
from gatewright_gui.session.place import place_of
from gatewright_gui.session.verbs import agents as agent_verbs
from gatewright_gui.session.verbs import rights as limit_verbs
from gatewright_gui.session.verbs.rights import ConstraintWish
from gatewright_gui.window.main_window import MainWindow
from tests.gui.session.opened import (
    Said,
    agents_page,
    agents_pane,
    cell,
    click,
    demo,
    opened_window,
    settled,
    ticked,
    until,
)

ODD = """
[[agents.newcomer.tool_rules]]
tool_name = "file"
rule_type = { MaxCalls = 0 }

[[agents.newcomer.tool_rules]]
tool_name = "file"
rule_type = { MaxCalls = 12345678901 }
conditions = ["operation:read"]

[[agents.newcomer.tool_rules]]
tool_name = "file"
rule_type = { Cooldown = 1.23456 } # measured

[[agents.newcomer.tool_rules]]
tool_name = "file"
rule_type = { ArgumentConstraints = { path = { pattern = "^notes/" }, content = { maxLength = 9 } } }

"""


@pytest.fixture
async def odd(tmp_path: Path) -> AsyncIterator[MainWindow]:
    policy = demo(tmp_path)
    text = policy.read_text("utf-8")
    policy.write_text(
        text.replace("tools = []\n", 'tools = ["file"]\n', 1).replace("[[sources]]", f"{ODD}[[sources]]", 1), "utf-8"
    )
    async with opened_window(policy, tmp_path) as opened:
        opened.selection.choose_agent("newcomer")
        agents_page(opened).tools.show_row("file", None)
        agents_page(opened).inspector.show_part("limits")
        await settled(opened)
        yield opened


MAIL = """{"tools": [{"name": "send_mail", "inputSchema": {"type": "object", "required": ["to"], "properties": {
  "to": {"type": "string"}, "subject": {"type": "string"}, "body": {"type": "string", "default": ""}
}}}]}"""
MAILING = """
[[catalogs]]
id = "mail"
type = "host"
manifest = "mail.json"

[[agents.newcomer.tool_rules]]
tool_name = "send_mail"
rule_type = { ArgumentConstraints = { to = { pattern = "@a.example$" } } } # ours

"""


@pytest.fixture
async def mailing(tmp_path: Path) -> AsyncIterator[MainWindow]:
    policy = demo(tmp_path)
    text = policy.read_text("utf-8").replace("tools = []\n", 'tools = ["send_mail"]\n', 1)
    policy.write_text(text.replace("[[sources]]", f"{MAILING}[[sources]]", 1), "utf-8")
    (policy.parent / "mail.json").write_text(MAIL, "utf-8")
    async with opened_window(policy, tmp_path) as opened:
        opened.selection.choose_agent("newcomer")
        agents_page(opened).tools.show_row("send_mail", None)
        agents_page(opened).inspector.show_part("limits")
        await settled(opened)
        yield opened


def limits(window: MainWindow) -> LimitsPane:
    return agents_page(window).inspector.limits


def newcomer(window: MainWindow) -> Agent:
    return window.document.policy.agents["newcomer"]


def limit(window: MainWindow, at: int, column: Column = Column.VALUE) -> QModelIndex:
    """The cell of the agent's rule with that number."""
    pane = limits(window)
    address = ("agents", "newcomer", "tool_rules", at)
    row = next(row for row, held in enumerate(pane.model.rows) if held.address == address)
    return pane.model.index(row, column)


async def test_a_link_to_a_limit_leads_to_its_row_from_wherever_one_is(window: MainWindow) -> None:
    page = agents_page(window)
    window.selection.show_everyone(on=True)
    window.navigator.go_to_page("try")
    policy = window.document.policy
    address = ("agents", "operator", "tool_rules", 1)
    place = place_of(policy, address, None, ("file", "append"))
    assert place is not None

    window.navigator.go_to_rule(place)
    await settled(window)

    assert (window.shelf.current_key, page.shows_matrix) == ("tools", False)
    assert (window.selection.agent_id, window.selection.tool, window.selection.operation) == (
        "operator",
        "file",
        "append",
    )
    assert page.inspector.part == "limits"
    row = page.inspector.limits.model.row_at(page.inspector.limits.view.currentIndex().row())
    assert row is not None
    assert row.address == address
    assert window.focusWidget() is page.inspector.limits.view
    window.navigator.go_to_tool("operator", "file", "append", "why")
    assert page.inspector.part == "why"


@pytest.mark.parametrize("at", [0, 1, 2])
async def test_a_value_that_is_looked_at_and_left_stays_as_it_is(odd: MainWindow, at: int) -> None:
    pane = limits(odd)
    before = newcomer(odd).tool_rules
    pane.view.setFocus()
    pane.view.setCurrentIndex(limit(odd, at))

    QTest.keyClick(pane.view, Qt.Key.Key_Return)
    field = QApplication.focusWidget()
    assert isinstance(field, QLineEdit)
    QTest.keyClick(field, Qt.Key.Key_Return)
    QApplication.sendPostedEvents(pane.view.itemDelegate())

    assert pane.view.state() != QAbstractItemView.State.EditingState
    assert newcomer(odd).tool_rules == before
    assert not odd.document.is_dirty


@pytest.mark.parametrize("part", ["limits", "agent"])
async def test_a_click_elsewhere_while_a_value_is_edited_leaves_the_keys_there(odd: MainWindow, part: str) -> None:
    agents = agents_pane(odd).view
    rules = odd.shelf.page("rules")
    assert isinstance(rules, RulesPage)
    odd.show_page("tools" if part == "limits" else "rules")
    pane = limits(odd) if part == "limits" else rules.agent
    await settled(odd)
    pane.view.setFocus()
    row = 2 if part == "limits" else rules.agent.model.find_row("read_only")
    assert row is not None
    pane.view.setCurrentIndex(pane.model.index(row, 1))
    pane.edit_current()
    assert pane.view.state() == QAbstractItemView.State.EditingState

    place = agents.visualRect(agents.currentIndex()).center()
    QTest.mouseClick(agents.viewport(), Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, place)
    await until(lambda: pane.view.state() != QAbstractItemView.State.EditingState)
    later: list[bool] = []
    QTimer.singleShot(0, lambda: later.append(True))  # behind what the pane does once the field is gone
    await until(lambda: bool(later))

    assert odd.focusWidget() is agents
    assert not odd.document.is_dirty


async def test_one_argument_of_a_rule_is_bound_and_the_other_keeps_its_constraint(odd: MainWindow) -> None:
    pane = limits(odd)
    row = next(at for at, held in enumerate(pane.model.rows) if held.field == "content")
    index = pane.model.index(row, Column.FOR)
    pane.view.setCurrentIndex(index)
    pane.view.edit(index)
    box = pane.view.findChild(QComboBox, "agents.limits.for")
    assert box is not None
    offered = [box.itemText(at) for at in range(box.count())]
    assert "only append" in offered
    assert "only delete" not in offered, "it takes no content"
    box.setCurrentIndex(offered.index("only append"))
    box.activated.emit(box.currentIndex())

    kinds = [(rule.rule_type, rule.conditions) for rule in newcomer(odd).tool_rules[3:]]
    assert kinds == [
        (ArgumentConstraints({"path": {"pattern": "^notes/"}}), ()),
        (ArgumentConstraints({"content": {"maxLength": 9}}), ("operation:append",)),
    ]
    assert odd.document.undo_stack.undoText() == "constraint of content of newcomer is for file.append"


async def test_a_constrained_argument_is_not_offered_for_a_second_constraint(odd: MainWindow) -> None:
    pane = limits(odd)
    facts = odd.document.rights("newcomer")["file"].facts
    pane.constrain(newcomer(odd), facts, None, None)
    dialog = await constraint_dialog(odd)

    offered = [dialog.argument_field.itemText(at) for at in range(dialog.argument_field.count())]
    assert "source" in offered
    assert not {"path", "content"} & set(offered)
    dialog.reject()
    await settled(odd)


def press_box(box: QCheckBox) -> None:
    """A mouse click on the box itself."""
    QTest.mouseClick(box, Qt.MouseButton.LeftButton, pos=QPoint(10, box.height() // 2))


def said_in_limits(window: MainWindow) -> list[tuple[str | None, str]]:
    return [(row.field, value_of(row)) for row in limits(window).model.rows if row.field]


async def test_an_argument_is_asked_for_by_a_tick_which_the_file_says_and_undo_takes_back(mailing: MainWindow) -> None:
    pane, before = limits(mailing), mailing.document.workspace.text()
    facts = mailing.document.rights("newcomer")["send_mail"].facts
    pane.constrain(newcomer(mailing), facts, None, None)
    dialog = await constraint_dialog(mailing)
    assert dialog.field == "subject"
    assert not dialog.accept_button.isEnabled()

    press_box(dialog.given_box)
    assert dialog.words.text() == "subject: must be given"
    QTest.mouseClick(dialog.accept_button, Qt.MouseButton.LeftButton)
    await settled(mailing)

    assert said_in_limits(mailing) == [("to", "matches @a.example$"), ("subject", "must be given")]
    assert mailing.document.undo_stack.undoText() == "require subject of send_mail for newcomer"
    assert mailing.document.workspace.text() == before.replace(
        '{ to = { pattern = "@a.example$" } }', '{ to = { pattern = "@a.example$" }, required = ["subject"] }'
    )
    mailing.undo()
    assert mailing.document.workspace.text() == before


async def test_the_tick_of_a_row_is_taken_away_and_its_value_limited_in_one_edit(mailing: MainWindow) -> None:
    document, pane = mailing.document, limits(mailing)
    assert limit_verbs.constrain(document, ConstraintWish("newcomer", "send_mail", "subject", None, required=True))
    await settled(mailing)
    row = next(at for at, held in enumerate(pane.model.rows) if held.field == "subject")
    pane.view.setCurrentIndex(pane.model.index(row, Column.VALUE))
    pane.edit_current()
    dialog = await constraint_dialog(mailing)
    assert dialog.is_required

    press_box(dialog.given_box)
    assert not dialog.accept_button.isEnabled(), "nothing is said of it any more"
    QTest.keyClicks(dialog.fields.edit("max_length"), "20")
    QTest.keyClick(dialog, Qt.Key.Key_Return)
    await settled(mailing)

    assert newcomer(mailing).tool_rules[-1].rule_type == ArgumentConstraints(
        {"to": {"pattern": "@a.example$"}, "subject": {"maxLength": 20}}
    )


async def test_the_tick_is_not_offered_where_the_tool_asks_itself_or_has_a_default(mailing: MainWindow) -> None:
    pane = limits(mailing)
    facts = mailing.document.rights("newcomer")["send_mail"].facts
    pane.constrain(newcomer(mailing), facts, None, None)
    dialog = await constraint_dialog(mailing)
    assert dialog.given_box.isEnabled()

    dialog.argument_field.setCurrentText("body")
    assert not dialog.given_box.isEnabled()
    assert dialog.given_box.toolTip().startswith("Its default counts as given")
    dialog.reject()
    await settled(mailing)
    pane.edit_current()
    dialog = await constraint_dialog(mailing)
    assert (dialog.field, dialog.given_box.isEnabled()) == ("to", False)
    dialog.reject()
    await settled(mailing)


async def constraint_dialog(window: MainWindow) -> ConstraintDialog:
    await until(lambda: any(dialog.isVisible() for dialog in window.findChildren(ConstraintDialog)))
    return next(dialog for dialog in window.findChildren(ConstraintDialog) if dialog.isVisible())


async def rights_dialog(window: MainWindow) -> RightsDialog:
    await until(lambda: any(dialog.isVisible() for dialog in window.findChildren(RightsDialog)))
    return next(dialog for dialog in window.findChildren(RightsDialog) if dialog.isVisible())


async def test_a_constraint_that_went_while_its_dialog_is_open_cannot_be_written(odd: MainWindow) -> None:
    pane = limits(odd)
    row = next(at for at, held in enumerate(pane.model.rows) if held.field == "content")
    pane.view.setCurrentIndex(pane.model.index(row, Column.VALUE))
    pane.edit_current()
    dialog = await constraint_dialog(odd)
    rule = newcomer(odd).tool_rules[3]
    assert limit_verbs.remove_rule(odd.document, RulePosition("newcomer", 3, rule))
    after = odd.document.policy

    QTest.keyClick(dialog, Qt.Key.Key_Return)

    assert dialog.isVisible()
    assert dialog.fault.text() == "tool rule 4 of newcomer is not what it was"
    dialog.reject()
    await settled(odd)
    assert odd.document.policy == after


async def test_a_limit_that_is_typed_while_the_file_is_read_again_is_lost_with_a_word(odd: MainWindow) -> None:
    pane, said = limits(odd), Said(odd.document)
    pane.begin(RateLimit(30, 60.0))
    path = odd.document.path
    assert path is not None
    path.write_text(
        path.read_text("utf-8")
        .replace("[agents.newcomer]", "[agents.late]")
        .replace("agents.newcomer.", "agents.late."),
        "utf-8",
    )

    assert await odd.document.reload()
    await settled(odd)

    assert "newcomer" not in odd.document.policy.agents
    assert odd.document.policy.agents["late"].tool_rules[0].rule_type == MaxCalls(0)
    assert not odd.document.is_dirty
    assert said.last == "no agent `newcomer`"


async def test_an_undo_below_a_preset_dialog_has_the_lines_worked_out_anew(window: MainWindow) -> None:
    click(window, "file", "read")
    agents_pane(window).rights_menu.open_presets(("archivist",), Preset.READ_ONLY)
    dialog = await rights_dialog(window)
    await until(lambda: dialog.edit is not None)
    first = dialog.edit

    window.undo()
    await until(lambda: dialog.edit is not None and dialog.edit is not first)
    dialog.accept()
    await settled(window)

    assert window.document.undo_stack.undoText() == "preset read only for archivist"
    assert ticked(window, "file", "read") == Qt.CheckState.Checked


async def test_an_agent_that_goes_while_its_preset_is_chosen_is_said(window: MainWindow) -> None:
    agents_pane(window).rights_menu.open_presets(("newcomer",), Preset.EVERYTHING)
    dialog = await rights_dialog(window)
    await until(lambda: dialog.edit is not None)

    agent_verbs.remove_agent(window.document, "newcomer")
    await until(lambda: bool(dialog.fault.text()))

    assert dialog.fault.text() == "no agent newcomer"
    assert not dialog.accept_button.isEnabled()
    dialog.reject()
    await settled(window)


async def test_copying_says_which_rules_do_not_go_along(window: MainWindow) -> None:
    agents_pane(window).rights_menu.open_copy("researcher")
    dialog = await rights_dialog(window)
    told = dialog.findChild(QLabel, "rights.not_copied")

    named = [rule.name for rule in window.document.policy.rules if rule.agents and "researcher" in rule.agents]
    assert named
    assert told is not None
    assert told.toolTip().splitlines() == named
    dialog.reject()
    await settled(window)


async def test_a_window_without_agents_says_what_to_do_and_takes_a_new_one(window: MainWindow) -> None:
    assert agent_verbs.remove_agents(window.document, tuple(window.document.policy.agents))
    await settled(window)
    page = agents_page(window)
    assert not page.tools.isEnabled()
    assert page.inspector.limits.model.rowCount() == 0
    window.selection.show_everyone(on=True)
    await settled(window)
    window.selection.show_everyone(on=False)

    name = agent_verbs.add_agent(window.document)
    assert name == "agent"
    window.selection.choose_agent(name)
    await settled(window)

    click(window, "file", "read")
    assert window.document.policy.agents["agent"].tools == ("file",)
    window.undo()
    window.undo()
    window.undo()
    assert len(window.document.policy.agents) == 4


async def test_a_name_that_cannot_be_one_is_refused_with_words(window: MainWindow) -> None:
    said = Said(window.document)

    assert not agent_verbs.rename_agent(window.document, "operator", "Öper ätor")

    assert said.last == "`Öper ätor` is no agent id: letters, digits, `-` and `_`, at most 64"
    long = "a" * 64
    assert agent_verbs.rename_agent(window.document, "operator", long)
    assert agent_verbs.duplicate_agent(window.document, long) == f"{'a' * 54}-copy"
    assert agent_verbs.duplicate_agent(window.document, long) == f"{'a' * 54}-copy-2"


LAYERED = """gatewright = 1

[agents.a]
tools = ["file", "block_edit", "block"]
sources = ["docs"]

[[agents.a.tool_rules]]
tool_name = "block"
rule_type = { AllowedOperations = ["load"] }

[[agents.a.tool_rules]]
tool_name = "block"
rule_type = { AllowedOperations = ["info"] }

[[sources]]
id = "docs"
type = "file"
base_path = "docs"
required_tools = [{ tool_name = "file", rule_type = { AllowedOperations = ["read", "list", "load"] } }]

[[policy.rules]]
name = "no loading"
effect = "deny"
tools = ["file"]
operations = ["load"]
message = "load is off"
"""


async def test_each_layer_that_turns_a_ticked_box_off_says_so_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    policy = tmp_path / "policy.toml"
    policy.write_text(LAYERED, "utf-8")
    async with opened_window(policy, tmp_path) as window:
        assert window.document.failure is None, window.document.problems
        rows = {
            ("file", "save"): (Layer.SOURCE, 19),
            ("file", "load"): (Layer.POLICY, 21),
            ("block_edit", "patch"): (Layer.CAPABILITY, 3),
        }
        for (tool, operation), (layer, line) in rows.items():
            page = agents_page(window)
            page.tools.show_row(tool, operation)
            await settled(window)
            assert cell(window, tool, operation).data(STATE) == RowState.OVERRULED, (tool, operation)
            reasons = [page.inspector.why.model.row_at(row) for row in range(page.inspector.why.model.rowCount())]
            first = next(step for step in reasons if step is not None and step.mark == "stop")
            right = window.document.rights(window.selection.agent_id or "")[tool]
            row = next(one for one in right.operations if one.operation == operation)
            assert next(one.layer for one in row.reasons if one.text == first.text) is layer
            assert first.line == line
        assert ticked(window, "file", "save") == Qt.CheckState.Checked
