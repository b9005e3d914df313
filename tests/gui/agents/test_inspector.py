"""The inspector and the rules of an agent: why, a call decided, limits and grants edited, by real mouse and keys."""

import random
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from PySide6.QtCore import QModelIndex, QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QComboBox, QWidget

from gatewright.policy.capability import ClockRead, FsRead, NetWrite
from gatewright.policy.document import Agent, Delegate, PermissionRule, Source
from gatewright.policy.glob import PermissionRules
from gatewright.policy.reach import place_rights
from gatewright.policy.right import RightWord
from gatewright.policy.rule import AfterOutside, ArgumentConstraints, Cooldown, ExitLoop, MaxCalls, RateLimit, ToolRule
from gatewright.policy.verdict import Permission, Verdict
from gatewright_gui.pages.access.rules import RulesPage
from gatewright_gui.pages.access.tools import agent_rules
from gatewright_gui.pages.access.tools.agent_rules_pane import AgentRulesPane
from gatewright_gui.pages.access.tools.constraint_dialog import ConstraintDialog
from gatewright_gui.pages.access.tools.inspector import Inspector
from gatewright_gui.pages.access.tools.limit_list import Column
from gatewright_gui.pages.access.tools.why import DETAILS, Places, ShownRow, places_of, verdict_sentence
from gatewright_gui.qt.widget.text_field import NumberField
from gatewright_gui.session.calls import stage_words
from gatewright_gui.session.path_share import path_shares
from gatewright_gui.window.main_window import MainWindow
from tests.gui.session.opened import agents_page, demo, opened_window, settled, until
from tests.support.right_cells import Cell, cells_of, drawn_call

LEFT = Qt.MouseButton.LeftButton
HEADER = "[[agents.operator.tool_rules]]\n"
EVERYWHERE = f'{HEADER}tool_name = "*"\nrule_type = {{ RateLimit = {{ calls = 100, per = "1h" }} }}\n\n'


@dataclass
class Shown:
    window: MainWindow
    pane: Inspector

    @property
    def operator(self) -> Agent:
        return self.window.document.policy.agents["operator"]

    @property
    def undo_text(self) -> str:
        return self.window.document.undo_stack.undoText()

    @property
    def agent(self) -> AgentRulesPane:
        page = self.window.shelf.page("rules")
        assert isinstance(page, RulesPage)
        return page.agent

    def limits(self) -> list[tuple[str, ...]]:
        model = self.pane.limits.model
        columns = (Column.KIND, Column.VALUE, Column.FOR)
        return [tuple(str(model.index(row, c).data()) for c in columns) for row in range(model.rowCount())]

    def limit(self, kind: str, column: Column = Column.VALUE) -> QModelIndex:
        row = next(at for at, texts in enumerate(self.limits()) if texts[0] == kind)
        return self.pane.limits.model.index(row, column)

    def rule(self, what: str) -> QModelIndex:
        row = self.agent.model.find_row(what)
        assert row is not None, what
        return self.agent.model.index(row, agent_rules.Column.VALUE)

    def editor(self) -> QWidget:
        found = self.window.focusWidget()
        assert found is not None
        return found

    def type(self, text: str) -> None:
        QTest.keyClick(self.editor(), Qt.Key.Key_A, Qt.KeyboardModifier.ControlModifier)
        QTest.keyClicks(self.editor(), text)

    def enter(self) -> None:
        QTest.keyClick(self.editor(), Qt.Key.Key_Return)
        for view in (self.pane.limits.view, self.agent.view):  # a value is handed over once the key is done with
            QApplication.sendPostedEvents(view.itemDelegate())


@pytest.fixture
async def shown(tmp_path: Path) -> AsyncIterator[Shown]:
    policy = demo(tmp_path)
    text = policy.read_text("utf-8")
    marker = '[[agents.operator.tool_rules]]\ntool_name = "file"\nrule_type = { Cooldown'
    assert marker in text
    policy.write_text(text.replace(marker, EVERYWHERE + marker), "utf-8")
    async with opened_window(policy, tmp_path) as window:
        window.show_page("tools")
        window.selection.choose_agent("operator")
        window.activateWindow()
        await settled(window)
        yield Shown(window, agents_page(window).inspector)


async def choose(shown: Shown, part: str, tool: str = "file", operation: str | None = None) -> None:
    agents_page(shown.window).tools.show_row(tool, operation)
    shown.window.activateWindow()
    if part == "agent":
        shown.window.show_page("rules")
    else:
        shown.pane.show_part(part)
    await settled(shown.window)


async def test_limits_of_an_operation_say_value_scope_and_where_they_come_from(shown: Shown) -> None:
    await choose(shown, "limits", operation="append")

    assert shown.limits() == [
        ("Max calls", "40 calls in a session", "all operations"),
        ("Pause", "100 ms from start to start", "all operations"),
        ("Asks first", "consent group record", "only append"),
        ("Rate", "100 per 1 h, over all sessions", "all operations"),
    ]
    where = shown.limit("Rate", Column.WHERE)
    assert str(where.data()).startswith("every tool, line ")
    assert not shown.limit("Rate").flags() & Qt.ItemFlag.ItemIsEditable


async def test_enter_edits_a_number_in_place_as_one_undo(shown: Shown) -> None:
    await choose(shown, "limits")
    view = shown.pane.limits.view
    view.setFocus()
    view.setCurrentIndex(shown.limit("Max calls"))

    QTest.keyClick(view, Qt.Key.Key_Return)
    assert isinstance(shown.editor(), NumberField)
    shown.type("5")
    shown.enter()

    assert shown.operator.tool_rules[0] == ToolRule("file", MaxCalls(5), priority=7)
    assert shown.undo_text == "limit file to 5 calls for operator"
    assert shown.window.document.undo_stack.count() == 1
    assert shown.limit("Max calls").data() == "5 calls in a session"
    shown.window.undo()
    assert shown.limit("Max calls").data() == "40 calls in a session"


async def test_a_time_is_typed_in_words_and_what_cannot_be_read_stays_in_the_field(shown: Shown) -> None:
    await choose(shown, "limits")
    view = shown.pane.limits.view
    view.setCurrentIndex(shown.limit("Pause"))
    shown.pane.limits.edit_current()
    shown.type("2 weeks")
    shown.enter()
    assert "no unit" in shown.editor().accessibleDescription()
    assert not shown.window.document.is_dirty

    shown.type("1.5 s")
    shown.enter()

    assert shown.operator.tool_rules[2].rule_type == Cooldown(1.5)
    assert shown.undo_text == "pause 1.5 s between calls of file for operator"


async def test_a_new_limit_is_written_only_once_its_value_is_given(shown: Shown) -> None:
    await choose(shown, "limits", operation="read")
    shown.pane.limits.begin(RateLimit(30, 60.0))
    assert shown.limit("Rate", Column.WHERE).data() == "not written yet"
    QTest.keyClick(shown.editor(), Qt.Key.Key_Escape)
    await until(lambda: len(shown.limits()) == 3)
    assert not shown.window.document.is_dirty

    shown.pane.limits.begin(RateLimit(30, 60.0))
    shown.type("7 per 2 min")
    shown.enter()
    await settled(shown.window)

    assert shown.operator.tool_rules[-1] == ToolRule("file", RateLimit(7, 120.0), ("operation:read",))
    assert shown.limits()[2] == ("Rate", "7 per 2 min, over all sessions", "only read")
    assert shown.window.document.undo_stack.count() == 1
    assert shown.pane.limits.view.currentIndex().row() == 2


async def test_a_second_limit_of_a_kind_edits_the_one_that_stands(shown: Shown) -> None:
    await choose(shown, "limits")
    shown.pane.limits.begin(MaxCalls(10))
    shown.type("9")
    shown.enter()

    assert [rule.rule_type for rule in shown.operator.tool_rules].count(MaxCalls(9)) == 1
    assert shown.limit("Max calls").data() == "9 calls in a session"


async def test_the_menu_names_the_row_and_adds_a_rule_without_a_value_at_once(shown: Shown) -> None:
    await choose(shown, "limits", operation="delete")
    menu = shown.pane.limits.menu
    menu.aboutToShow.emit()
    names = {action.objectName(): action for action in menu.actions()}
    assert menu.actions()[0].text() == "For file > delete only"

    names["agents.limits.add.end"].trigger()
    await until(lambda: shown.window.document.is_dirty)

    assert shown.operator.tool_rules[-1] == ToolRule("file", ExitLoop(), ("operation:delete",))


async def test_a_rule_after_outside_results_is_added_and_replaced_by_the_other(shown: Shown) -> None:
    await choose(shown, "limits", operation="delete")
    for key, effect, said in (
        ("ask", Verdict.ASK, "asks first once the session got a result from outside"),
        ("deny", Verdict.DENY, "denied once the session got a result from outside"),
    ):
        menu, before = shown.pane.limits.menu, shown.operator.tool_rules
        menu.aboutToShow.emit()
        names = {action.objectName(): action for action in menu.actions()}
        names[f"agents.limits.add.outside.{key}"].trigger()
        await until(lambda before=before: shown.operator.tool_rules != before)
        await settled(shown.window)

        rules = [rule for rule in shown.operator.tool_rules if isinstance(rule.rule_type, AfterOutside)]
        assert rules == [ToolRule("file", AfterOutside(effect), ("operation:delete",))]
        assert shown.limit("After outside results").data() == said


async def test_a_rule_is_bound_to_one_operation_and_del_removes_it(shown: Shown) -> None:
    await choose(shown, "limits", operation="append")
    view = shown.pane.limits.view
    index = shown.limit("Max calls", Column.FOR)
    view.setCurrentIndex(index)
    view.edit(index)
    box = view.findChild(QComboBox, "agents.limits.for")
    assert box is not None
    assert [box.itemText(at) for at in range(2)] == ["all operations", "only append"]
    box.setCurrentIndex(1)
    box.activated.emit(1)

    assert shown.operator.tool_rules[0].conditions == ("operation:append",)
    assert shown.undo_text == "limit of calls of operator is for file.append"
    await settled(shown.window)
    view.setCurrentIndex(shown.limit("Max calls"))
    view.setFocus()
    QTest.keyClick(view, Qt.Key.Key_Delete)
    assert "Max calls" not in [texts[0] for texts in shown.limits()]
    assert shown.undo_text == "remove the limit of calls of file.append for operator"


async def test_inherited_limits_are_never_changed_from_a_row(shown: Shown) -> None:
    await choose(shown, "limits", tool="block")
    pane = shown.pane.limits
    pane.view.setCurrentIndex(shown.limit("Rate"))

    pane.remove_current()

    assert not pane.remove_button.isEnabled()
    assert not shown.window.document.is_dirty
    asked: list[object] = []
    pane.line_requested.connect(asked.append)
    pane.edit_current()
    assert asked == [pane.model.line_at(pane.view.currentIndex().row())]


async def test_a_click_on_a_line_asks_for_it(shown: Shown) -> None:
    await choose(shown, "limits")
    asked: list[object] = []
    shown.window.navigator.line_requested.connect(asked.append)
    view, index = shown.pane.limits.view, shown.limit("Max calls", Column.WHERE)

    QTest.mouseClick(view.viewport(), LEFT, pos=view.visualRect(index).center())

    text = shown.window.document.workspace.text().splitlines()
    assert asked == [next(n for n, line in enumerate(text, 1) if "MaxCalls = 40" in line) - 2]


async def opened_dialog(shown: Shown) -> ConstraintDialog:
    await until(lambda: any(d.isVisible() for d in shown.pane.window().findChildren(ConstraintDialog)))
    return next(d for d in shown.pane.window().findChildren(ConstraintDialog) if d.isVisible())


async def test_a_constraint_is_made_in_the_form_tried_and_changed_as_json(shown: Shown) -> None:
    await choose(shown, "limits", operation="append")
    menu = shown.pane.limits.menu
    menu.aboutToShow.emit()
    next(action for action in menu.actions() if action.objectName() == "agents.limits.add.argument").trigger()
    dialog = await opened_dialog(shown)
    assert not dialog.accept_button.isEnabled()
    dialog.argument_field.setCurrentText("path")
    QTest.keyClicks(dialog.fields.edit("pattern"), "^notes/")
    QTest.keyClicks(dialog.example, "inbox/a.md")
    assert dialog.example_words.text().startswith("denied: ")
    dialog.example.clear()
    QTest.keyClicks(dialog.example, "notes/a.md")
    assert dialog.example_words.text() == "goes through"

    QTest.mouseClick(dialog.accept_button, LEFT)
    await settled(shown.window)

    wanted = ToolRule("file", ArgumentConstraints({"path": {"pattern": "^notes/"}}), ("operation:append",))
    assert shown.operator.tool_rules[-1] == wanted
    assert shown.undo_text == "constrain path of file.append for operator"
    assert shown.limit("Argument path").data() == "matches ^notes/"

    shown.pane.limits.view.setCurrentIndex(shown.limit("Argument path"))
    shown.pane.limits.edit_current()
    dialog = await opened_dialog(shown)
    dialog.way.set_current("json")
    dialog.code.setPlainText('{"patern": 1}')
    assert "no keyword patern" in dialog.fault.text()
    assert not dialog.accept_button.isEnabled()
    dialog.code.setPlainText('{\n  "maxLength": ')
    assert dialog.fault.text().startswith("line 2, column ")
    dialog.code.setPlainText('{"maxLength": 12, "not": {"const": "x"}}')
    dialog.way.set_current("form")
    assert dialog.way.current == "json", "the form cannot say that"
    QTest.keyClick(dialog, Qt.Key.Key_Return)
    await settled(shown.window)
    assert shown.operator.tool_rules[-1].rule_type == ArgumentConstraints(
        {"path": {"maxLength": 12, "not": {"const": "x"}}}
    )


async def test_dialog_refuses_ranges_that_no_value_meets_and_says_a_folder_that_keeps_paths_in(shown: Shown) -> None:
    await choose(shown, "limits")
    shown.pane.limits.constrain(shown.operator, shown.window.document.rights("operator")["file"].facts, None, None)
    dialog = await opened_dialog(shown)
    dialog.argument_field.setCurrentText("path")
    dialog.fields.edit("min_length").setText("20")
    dialog.fields.edit("max_length").setText("10")
    assert dialog.fault.text() == "no value is at least 20 and at most 10"
    assert not dialog.accept_button.isEnabled()

    dialog.fields.edit("min_length").setText("")
    dialog.fields.edit("below").setText("../up")
    assert "is no folder" in dialog.fault.text()
    dialog.fields.edit("below").setText("notes/")
    assert dialog.words.text() == "path: only in notes/, is at most 10 characters"
    dialog.example.setText("notes/../x")
    assert dialog.example_words.text() == "denied: only in notes/"
    dialog.example.setText("notes/x")
    assert dialog.example_words.text() == "goes through"
    dialog.reject()
    await settled(shown.window)


async def test_escape_in_the_dialog_changes_nothing(shown: Shown) -> None:
    await choose(shown, "limits")
    shown.pane.limits.constrain(shown.operator, shown.window.document.rights("operator")["file"].facts, None, None)
    dialog = await opened_dialog(shown)
    QTest.keyClicks(dialog.fields.edit("one_of"), "read, list")

    QTest.keyClick(dialog, Qt.Key.Key_Escape)
    await settled(shown.window)

    assert not shown.window.document.is_dirty


async def test_capabilities_are_granted_changed_and_revoked(shown: Shown) -> None:
    await choose(shown, "agent")
    pane = shown.agent
    assert [row.what for row in pane.model.rows][:4] == ["Access", "AdvancedEdit", "FsRead", "FsWrite"]
    pane.view.setCurrentIndex(shown.rule("FsRead"))
    QTest.keyClick(pane.view, Qt.Key.Key_Return)
    shown.type("../up")
    shown.enter()
    assert "may not contain `..`" in shown.editor().accessibleDescription()
    shown.type("desk, vault")
    shown.enter()
    assert shown.operator.capabilities[1] == FsRead(("desk", "vault"))
    assert shown.undo_text == "change FsRead of operator"

    pane.grant(agent_rules.CapabilityKind.NET_WRITE)
    shown.type("*.example.org")
    shown.enter()
    pane.grant(agent_rules.CapabilityKind.CLOCK_READ)
    assert shown.operator.capabilities[5:] == (NetWrite(("*.example.org",)), ClockRead())

    await settled(shown.window)
    pane.view.setCurrentIndex(shown.rule("NetWrite"))
    pane.view.setFocus()
    QTest.keyClick(pane.view, Qt.Key.Key_Delete)
    assert shown.undo_text == "revoke NetWrite of operator"


async def test_what_the_tools_need_and_lack_is_granted_by_enter(shown: Shown) -> None:
    shown.window.selection.choose_agent("researcher")
    await choose(shown, "agent")
    assert shown.rule("AdvancedEdit").data() == "not granted"
    what = shown.rule("AdvancedEdit").siblingAtColumn(agent_rules.Column.WHAT)
    assert what.data() == "Advanced editing"
    assert str(what.data(Qt.ItemDataRole.ToolTipRole)).endswith("in the policy file: AdvancedEdit")
    shown.agent.view.setCurrentIndex(shown.rule("AdvancedEdit"))

    QTest.keyClick(shown.agent.view, Qt.Key.Key_Return)

    assert shown.undo_text == "grant AdvancedEdit to researcher"
    assert shown.rule("AdvancedEdit").data() == "granted"


async def test_approvals_keys_are_judged_by_keys_added_and_removed(shown: Shown) -> None:
    await choose(shown, "agent")
    pane = shown.agent
    assert not pane.view.selectionModel().hasSelection()
    tiers = [(row.what, row.value) for row in pane.model.rows if row.kind is agent_rules.RowKind.INHERITED]
    assert tiers == [("read_only", "without asking"), ("side_effecting", "without asking"), ("privileged", "ask first")]
    pane.view.setCurrentIndex(shown.rule("side_effecting"))
    pane.view.setFocus()
    QTest.keyClick(pane.view, Qt.Key.Key_K, Qt.KeyboardModifier.AltModifier)
    assert shown.operator.approvals["side_effecting"] is Verdict.ASK
    QTest.keyClick(pane.view, Qt.Key.Key_Delete)
    assert "side_effecting" not in shown.operator.approvals
    assert shown.rule("side_effecting").data() == "without asking"

    pane.add_key(None)
    shown.type("file.delte")
    shown.enter()
    assert "did you mean `file.delete`" in shown.editor().accessibleDescription()
    shown.type("file.create")
    shown.enter()
    assert shown.operator.approvals["file.create"] is Verdict.ASK
    assert shown.undo_text == "ask first for file.create for operator by approvals"


async def test_sub_agents_are_named_in_place_with_their_rights_and_taken_away_by_keys(shown: Shown) -> None:
    await choose(shown, "agent")
    pane, undo = shown.agent, shown.window.document.undo_stack
    pane.menu.aboutToShow.emit()
    next(one for one in pane.menu.actions() if one.objectName() == "agents.rules.add_sub_agent").trigger()
    await until(lambda: shown.editor().objectName() == "agents.rules.sub_agent")
    assert shown.editor().accessibleName() == "Sub-agent"
    for typed, refusal in (("operator", "no sub-agent of its own"), ("archivst", "did you mean `archivist`?")):
        shown.type(typed)
        shown.enter()
        assert refusal in shown.editor().accessibleDescription()
    assert not shown.window.document.is_dirty
    shown.type("archivist")
    shown.enter()
    assert shown.operator.sub_agents == ("archivist",)
    assert shown.undo_text == "let operator start archivist with its own rights"
    await settled(shown.window)
    assert pane.current is not None
    assert (pane.current.what, pane.current.kind) == ("archivist", agent_rules.RowKind.CHILD)
    where = pane.model.index(pane.view.currentIndex().row(), agent_rules.Column.WHERE)
    assert str(where.data()).startswith("line ")

    at = next(row for row, one in enumerate(pane.model.rows) if one.kind is agent_rules.RowKind.DELEGATE)
    assert pane.model.index(at, agent_rules.Column.VALUE).data() == "keep all their own rights"
    pane.view.setCurrentIndex(pane.model.index(at, agent_rules.Column.VALUE))
    pane.view.setFocus()
    QTest.keyClick(pane.view, Qt.Key.Key_Return)
    field = shown.editor()
    assert isinstance(field, QComboBox)
    assert field.accessibleName() == "Rights of its sub-agents"
    QTest.keyClick(field, Qt.Key.Key_Down)
    shown.enter()
    assert shown.operator.delegate is Delegate.INTERSECT
    assert pane.model.index(at, agent_rules.Column.VALUE).data() == "only what it may do itself"

    pane.view.setCurrentIndex(pane.model.index(at + 1, agent_rules.Column.VALUE))
    QTest.keyClick(pane.view, Qt.Key.Key_Delete)
    assert shown.operator.sub_agents == ()
    while undo.canUndo():
        undo.undo()
    assert (shown.operator.sub_agents, shown.operator.delegate) == ((), Delegate.OWN)
    assert not shown.window.document.is_dirty


async def test_parts_that_are_not_shown_are_brought_up_to_date_when_they_are(shown: Shown) -> None:
    await choose(shown, "limits", operation="append")
    shown.pane.show_part("why")
    shown.window.selection.choose_agent("researcher")
    await choose(shown, "why", operation="read")
    assert len(shown.limits()) == 4

    shown.pane.show_part("limits")

    assert [texts[0] for texts in shown.limits()] == ["Rate", "Before the end"]


@pytest.mark.parametrize("part", ["limits", "try"])
async def test_tab_goes_from_the_bar_into_the_part_that_is_made_when_it_is_chosen(shown: Shown, part: str) -> None:
    pane, passed = shown.pane, list[QWidget]()
    pane.show_part(part)
    await settled(shown.window)
    goals = {
        "limits": lambda: pane.limits.view,
        "try": lambda: pane.trial.decide_button,
    }

    widget = pane.tabs.button("try").nextInFocusChain()
    while widget is not None and widget is not pane.tabs.button("try"):
        if widget.focusPolicy() & Qt.FocusPolicy.TabFocus and widget.isVisibleTo(shown.window):
            passed.append(widget)
        widget = widget.nextInFocusChain()

    at = passed.index(goals[part]())
    assert all(pane.isAncestorOf(one) for one in passed[: at + 1]), [one.objectName() for one in passed[: at + 1]]


async def test_a_verdict_by_path_is_one_sentence_that_every_decision_bears_out(shown: Shown) -> None:
    document, policy = shown.window.document, shown.window.document.policy
    told = 0
    for agent in policy.agents.values():
        for name, tool in document.rights(agent.agent_id).items():
            for row in tool.operations:
                places = places_of(policy, agent, tool, row)
                if places is None:
                    continue
                told += 1
                source = places.source
                place = place_rights(policy, agent.agent_id, tool)[row.operation]
                real = PermissionRules(source.permission_rules, source.default_permission)
                for path in PATHS:
                    wanted = place.verdict(source, real.explain(path).permission, ())
                    assert said_by(places, path) is wanted, (agent.agent_id, name, row.operation, path, places.sentence)
    assert told > 10


PATHS = (
    *(
        "a.md",
        "a.log",
        "secrets/a",
        "secrets/b/c.log",
        "drafts/a.md",
        "drafts/a.log",
        "drafts/final/a",
        "drafts/final/b/c",
    ),
    *(
        "drafts/secrets/a",
        "notes/a",
        "notes/secrets/a",
        "notes/drafts/a",
        "inbox/a",
        "inbox/secrets/x",
        "inbox/b/c.log",
    ),
)


def said_by(places: Places, path: str) -> Verdict:
    """The verdict on a path by what the sentence says, read from the left."""

    def lies_in(names: tuple[str, ...]) -> bool:
        rules = tuple(PermissionRule(bound(name, places.source), Permission.NONE) for name in names)
        return PermissionRules(rules, Permission.READ_WRITE).explain(path).index is not None

    if lies_in(places.never):
        return Verdict.DENY
    return next((verdict for verdict, names in places.named if lies_in(names)), places.rest)


def bound(name: str, source: Source) -> str:
    """The pattern that a name stands for."""
    patterns = [rule.pattern for rule in source.permission_rules]
    return (
        name if name in patterns else next(one for one in patterns if one.strip("/").removesuffix("/**") == name[:-1])
    )


async def test_why_is_a_sentence_and_at_most_four_steps_and_leaves_out_what_was_not_reached(shown: Shown) -> None:
    why, document = shown.pane.why, shown.window.document
    seen = 0
    for agent in document.policy.agents.values():
        shown.window.selection.choose_agent(agent.agent_id)
        await settled(shown.window)
        for name, tool in document.rights(agent.agent_id).items():
            for row in tool.operations:
                row_shown = ShownRow(agent, tool, row)
                why.show_row(row_shown)
                steps = [step for step in why.model.rows if step.mark not in DETAILS]
                assert 2 - (not row.ticked) <= len(steps) <= 4, (agent.agent_id, name, row.operation)
                assert steps[0].mark == ("on" if row.ticked else "off")
                assert any(step.mark == "stop" for step in steps) or not row.is_overruled
                assert why.sentence.text().startswith("Off: ") == (not row.ticked)
                assert why.sentence.text().startswith("No effect") == row.is_overruled
                assert not any("it depends on" in step.text for step in steps), "the sentence says it"
                seen += 1
    assert seen > 200


async def test_a_right_that_depends_on_the_block_says_so_among_its_steps_and_leads_to_memory(shown: Shown) -> None:
    shown.window.selection.choose_agent("archivist")
    await choose(shown, "why", "block")
    why = shown.pane.why
    assert why.sentence.text().startswith("On, but it depends on the block: ")
    steps = [step.text for step in why.model.rows]
    at = steps.index("the level of the block decides, block by block")
    assert why.model.rows[at].where == "Memory"
    assert steps[-1].startswith("the tool's own: "), "details stand below"
    why.view.chosen.emit(why.model.index(at, 0))
    await settled(shown.window)
    assert shown.window.shelf.current_key == "memory"


async def test_a_tool_says_how_many_of_its_operations_ask_and_the_gate_lets_none_of_these_through(shown: Shown) -> None:
    workspace, draw, seen = shown.window.document.workspace, random.Random(34), set[str]()
    tools: dict[tuple[str, str], list[Cell]] = {}
    for cell in cells_of([workspace]):
        tools.setdefault((cell.agent_id, cell.tool.facts.name), []).append(cell)
    for (agent_id, name), cells in tools.items():
        said = verdict_sentence(cells[0].tool, None)
        found = re.match(r"(\d+) of its (\d+) operations are on(, and every call asks|, and (\d+) of them ask)?", said)
        if found is None:
            continue
        asking = [cell for cell in cells if cell.right.word is RightWord.ASK]
        on = sum(not cell.right.is_hidden for cell in cells)
        assert (int(found[1]), int(found[2])) == (on, len(cells))
        assert len(asking) == (on if found[3] and not found[4] else int(found[4] or 0)), said
        seen.add("every" if found[3] and not found[4] else "some" if found[4] else "none")
        for cell in asking:
            for _ in range(5):
                call = drawn_call(cell, cell.words, draw)
                if call is not None:
                    assert workspace.decide(agent_id, name, call).verdict is not Verdict.ALLOW
    assert seen == {"every", "some", "none"}


async def test_why_draws_the_files_and_its_steps_lead_to_the_rules_of_files(shown: Shown) -> None:
    shown.window.selection.choose_agent("archivist")
    await choose(shown, "why", operation="replace")
    why = shown.pane.why
    assert why.sentence.text() == (
        "Never in drafts/final/; without asking in drafts/, asks first in inbox/, never anywhere else."
    )
    share = path_shares(shown.window.document.workspace, "archivist", frozenset({"file"}))["file", "replace"]
    assert share.files > 0
    counts = {"allow": share.allow, "ask": share.ask, "deny": share.deny}
    for verdict, label in why.share.counts.items():
        assert label.isVisible() == (counts[verdict] > 0)
        assert label.text.split()[0] == f"{counts[verdict]:,}"

    row = next(at for at, step in enumerate(why.model.rows) if step.mark == "rest")
    assert why.model.rows[row].where == "default"
    rect = why.view.visualRect(why.model.index(row, 0))
    QTest.mouseClick(why.view.viewport(), LEFT, pos=rect.center())
    await settled(shown.window)
    assert shown.window.shelf.current_key == "files"

    shown.window.show_page("tools")
    QTest.mouseClick(why.share.files_button, LEFT)
    await settled(shown.window)
    assert shown.window.shelf.current_key == "files"


async def test_the_limits_among_the_steps_lead_to_their_tab(shown: Shown) -> None:
    await choose(shown, "why")
    why = shown.pane.why
    row = next(at for at, step in enumerate(why.model.rows) if step.mark == "limit")
    why.view.setFocus()
    why.view.setCurrentIndex(why.model.index(row, 0))
    QTest.keyClick(why.view, Qt.Key.Key_Return)
    assert shown.pane.part == "limits"


async def test_the_bar_of_tabs_never_moves(shown: Shown) -> None:
    places = {key: shown.pane.tabs.button(key).mapTo(shown.window, QPoint()) for key in shown.pane.tabs.keys}
    for key in shown.pane.tabs.keys:
        QTest.mouseClick(shown.pane.tabs.button(key), LEFT)
        for tool, operation in (("file", None), ("file", "append"), ("calendar", None), ("block", "load")):
            agents_page(shown.window).tools.show_row(tool, operation)
            await settled(shown.window)
            assert shown.pane.part == key
            now = {one: shown.pane.tabs.button(one).mapTo(shown.window, QPoint()) for one in places}
            assert now == places, (key, tool, operation)


async def test_a_call_is_decided_in_place_by_the_gate_and_follows_the_policy(shown: Shown) -> None:
    await choose(shown, "try", operation="append")
    trial, workspace = shown.pane.trial, shown.window.document.workspace
    given = trial.form.values()
    assert given["op"] == "append"
    assert given["path"]
    before = sorted(workspace.folder.rglob("*.md"))

    QTest.mouseClick(trial.decide_button, LEFT)
    await settled(shown.window)

    decision = workspace.decide("operator", "file", given)
    assert trial.answer.record is not None
    assert trial.answer.record.verdict is decision.verdict is Verdict.ASK
    assert trial.answer.title.text() == "Asks first"
    assert trial.answer.stage.text() == f"at \u201c{stage_words(decision.stage)}\u201d"
    assert sorted(workspace.folder.rglob("*.md")) == before, "nothing was run"

    QTest.keyClick(agents_page(shown.window).tools.view, Qt.Key.Key_Space)
    await settled(shown.window)
    assert trial.form.values() == given
    assert trial.answer.title.text() == "Denied", "it was decided again once the box was off"
    assert trial.answer.record.reason

    QTest.mouseClick(trial.open_button, LEFT)
    await settled(shown.window)
    assert shown.window.shelf.current_key == "try"


async def test_what_is_typed_of_a_call_greys_the_answer_until_it_is_decided_by_the_keys(shown: Shown) -> None:
    await choose(shown, "try", operation="read")
    trial = shown.pane.trial
    trial.decide()
    await settled(shown.window)
    assert trial.answer.title.text() == "Allowed"
    field = trial.form.editor("path")
    assert field is not None
    trial.form.set_values({"op": "read", "path": "secrets/none.md"})
    assert not trial.answer.title.isEnabled()
    field.setFocus()
    QTest.keyClick(shown.editor(), Qt.Key.Key_Return, Qt.KeyboardModifier.ControlModifier)
    await settled(shown.window)
    assert trial.answer.title.isEnabled()
    assert trial.answer.title.text() == "Denied"
    assert trial.answer.rule_button.isVisible()
    QTest.mouseClick(trial.answer.rule_button, LEFT)
    await settled(shown.window)
    assert shown.window.shelf.current_key == "files"
