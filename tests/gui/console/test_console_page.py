"""The Console page over the real demo workspace, the real gate and a real copy."""

import json
from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QComboBox, QLabel, QLineEdit, QPushButton, QToolButton, QWidget

from gatewright.policy.verdict import Permission, Verdict
from gatewright_gui.pages.trial import TrialPage, stages
from gatewright_gui.qt.prose import ProseLabel
from gatewright_gui.qt.widget.empty_state import EmptyState
from gatewright_gui.qt.widget.text_field import LargeTextEdit
from gatewright_gui.session.calls import StageRow, change_words
from gatewright_gui.session.verbs import rights, sources
from tests.gui.console.standing import call, choose, settled
from tests.gui.dress import dressed
from tests.gui.files.support import Opened, source_of, until


async def test_every_control_has_a_name_for_code_and_for_people(page: TrialPage) -> None:
    names = (
        "agent", "tool", "form", "json", "decide", "run", "stages", "verdict", "result", "history", "approve", "refuse",
    )  # fmt: skip
    for name in names:
        found = page.findChild(QWidget, f"console.{name}")
        assert found is not None, name
        assert found.accessibleName(), name


async def test_only_what_the_agent_sees_is_offered(page: TrialPage) -> None:
    await choose(page, "researcher")
    op = page.request.form.editor("op")
    assert isinstance(op, QComboBox)
    assert {op.itemText(row) for row in range(1, op.count())} == {"read", "list"}
    await choose(page, "newcomer")
    assert page.request.tool_name == "file"
    assert page.request.note == "not shown to the model: `file` is not among the tools of agent `newcomer`"
    page.decide()
    record = await settled(page, 1)
    assert (record.verdict, record.stage) == (Verdict.DENY, "lookup")


async def test_only_arguments_of_the_chosen_operation_are_sent(page: TrialPage) -> None:
    form = page.request.form
    form.set_values({"op": "append", "path": "notes/a.md", "content": "x"})
    assert form.values() == {"op": "append", "path": "notes/a.md", "content": "x"}
    op, content = form.editor("op"), form.editor("content")
    assert isinstance(op, QComboBox)
    assert content is not None
    op.setCurrentIndex(op.findText("read"))
    assert not content.isEnabled()
    assert form.values() == {"op": "read", "path": "notes/a.md"}


async def test_form_and_json_hold_the_same_arguments(page: TrialPage) -> None:
    form = page.request.form
    form.set_values({"op": "read", "path": "README.md"})
    page.request.mode.set_current("json")
    assert json.loads(page.request.raw.text) == {"op": "read", "path": "README.md"}
    page.request.raw.set_text('{"op": "list", "path": "drafts", "odd": [1]}')
    page.request.mode.set_current("form")
    assert form.operation == "list"
    assert form.values() == {"op": "list", "path": "drafts", "odd": [1]}


async def test_broken_json_is_told_with_its_place_and_kept(page: TrialPage) -> None:
    page.request.mode.set_current("json")
    page.request.raw.set_text('{"op":\n "read" "path"}')
    assert page.request.raw.fault is not None
    assert "line 2 column 9" in page.request.raw.fault
    page.request.mode.set_current("form")
    assert page.request.mode.current == "json"
    assert page.request.raw.text.startswith('{"op":')


async def test_denied_call_names_stage_rule_line_and_both_messages(demo: Opened, page: TrialPage) -> None:
    call(page, op="delete", path="drafts/report.md")
    page.decide()
    record = await settled(page, 1)
    assert (record.verdict, record.stage, record.status) == (Verdict.DENY, "operation", None)
    assert record.rule is not None
    assert record.rule.line == demo.document.workspace.gate.decide("archivist", "file", {"op": "delete"}).rule.line  # pyright: ignore[reportOptionalMemberAccess]
    assert record.model_message is not None
    assert "delete" not in record.model_message
    shown: list[tuple[object, ...]] = []

    def keep(*where: object) -> None:
        shown.append(where)

    demo.context.navigator.tool_requested.connect(keep)
    page.outcome.verdict.rule_button.click()
    await until(lambda: shown)
    assert shown == [("archivist", "file", "delete")]
    page.outcome.verdict.line_requested.emit(record.rule)
    await until(lambda: demo.lines)
    assert demo.lines == [record.rule.line]
    reached = [str(page.outcome.model.state_at(row)) for row in range(4)]
    assert reached == ["allow", "allow", "deny", "skipped"]


async def test_run_happens_in_the_copy_and_leaves_the_workspace_alone(demo: Opened, page: TrialPage) -> None:
    page.request.form.set_values({"op": "create", "path": "drafts/fresh.md", "content": "hello"})
    page.run()
    record = await settled(page, 1)
    assert (record.verdict, record.status) == (Verdict.ALLOW, "allowed"), record
    assert record.output
    assert not (demo.folder / "workspace" / "drafts" / "fresh.md").exists()
    assert page.console.has_copy
    assert [row.name for row in record.stages] == list(stages.STAGE_NAMES)
    call(page, op="read", path="drafts/fresh.md")
    page.run()
    again = await settled(page, 2)
    assert "hello" in (again.output or "")
    state = page.console.session_state("archivist")
    assert dict(state.calls) == {"file.create": 1, "file.read": 1}


async def test_page_that_nobody_touched_finds_no_fault_and_offers_one_example_by_one_name(page: TrialPage) -> None:
    form = page.request.form
    await until(lambda: form.verdict == "nothing is filled in yet")
    blank = page.findChild(EmptyState, "console.blank")
    assert blank is not None
    offers = [button for button in blank.findChildren(QPushButton) if button.isVisible()]
    assert [button.text() for button in offers] == [page.request.example_button.text()]
    QTest.mouseClick(offers[0], Qt.MouseButton.LeftButton)
    await until(lambda: form.verdict == "every field fits")
    form.set_values({"op": "read", "source": "archive"})
    await until(lambda: form.verdict == "`read` needs `path`")


async def test_decide_stands_out_until_there_is_a_verdict_on_what_is_filled_in(page: TrialPage) -> None:
    def kinds() -> tuple[object, object]:
        return page.decide_button.property("kind"), page.run_button.property("kind")

    assert kinds() == ("primary", "")
    call(page, op="read", path="README.md")
    page.decide()
    await settled(page, 1)
    await until(lambda: kinds() == ("", "primary"))
    call(page, op="read", path="notes/species.md")
    await until(lambda: kinds() == ("primary", ""))
    call(page, op="read", path="README.md")
    await until(lambda: kinds() == ("", "primary"))


async def test_call_that_failed_is_marked_as_failed_and_its_model_gets_an_error(page: TrialPage) -> None:
    call(page, op="read", path="nothing.md")
    page.run()
    record = await settled(page, 1)
    assert (record.verdict, record.is_error) == (Verdict.ALLOW, True)
    verdict = page.outcome.verdict
    await until(lambda: verdict.role == "ask")
    labels = [label.text() for label in verdict.findChildren(QLabel, "console.modelmessage")]
    assert labels == ["gets the error below"]


async def test_result_of_a_denied_call_offers_no_run(page: TrialPage) -> None:
    await choose(page, "archivist")
    none = page.outcome.result.none
    call(page, op="append", path="README.md", content="x")
    page.decide()
    assert (await settled(page, 1)).verdict is Verdict.DENY
    await until(lambda: none.accessibleDescription() == "The gate lets no tool run for this call.")
    call(page, op="read", path="README.md")
    page.decide()
    assert (await settled(page, 2)).verdict is Verdict.ALLOW
    await until(lambda: none.accessibleDescription().startswith("Run in copy (Ctrl+Shift+Return)"))


@pytest.mark.parametrize("height", [600, 655, 700, 720])
async def test_no_stage_is_cut_in_half(page: TrialPage, height: int) -> None:
    call(page, op="read", path="README.md")
    page.decide()
    await settled(page, 1)
    page.resize(1000, height)
    view = page.outcome.stages
    row = view.rowHeight(0)
    await until(lambda: view.viewport().height() // row >= 5)
    await until(lambda: view.viewport().height() % row <= 2)


async def test_stages_are_told_as_they_pass(page: TrialPage) -> None:
    seen: list[str] = []

    def keep(row: StageRow) -> None:
        seen.append(row.name)

    page.console.stage_passed.connect(keep)
    page.request.form.set_values({"op": "read", "path": "README.md"})
    page.run()
    await settled(page, 1)
    await until(lambda: len(seen) == len(stages.STAGE_NAMES))
    assert seen == list(stages.STAGE_NAMES)


async def test_copy_follows_the_policy_as_edited(demo: Opened, page: TrialPage) -> None:
    call(page, op="read", path="README.md")
    page.run()
    assert (await settled(page, 1)).verdict is Verdict.ALLOW
    assert rights.tick_operations(demo.document, "archivist", "file", ("read",), on=False)
    page.run()
    assert (await settled(page, 2)).stage == "operation"
    demo.document.undo()
    assert sources.set_default_level(demo.document, source_of(demo.document), Permission.NONE)
    page.run()
    record = await settled(page, 3)
    assert (record.verdict, record.stage) == (Verdict.DENY, "permission")


async def test_question_is_a_bar_that_blocks_nothing_and_never_takes_the_focus(page: TrialPage) -> None:
    await choose(page, "operator")
    call(page, op="delete", path="drafts/report.md")
    page.run()
    await until(lambda: page.outcome.approval.question is not None)
    bar = page.outcome.approval
    assert bar.isVisible()
    assert bar.question is not None
    assert bar.question.reasons
    assert json.loads(bar.question.arguments)["path"] == "drafts/report.md"
    assert QApplication.focusWidget() is not bar.approve_button
    assert not bar.approve_button.isDefault()
    assert QApplication.activeModalWidget() is None
    assert page.request.agent.isEnabled()
    bar.refuse_button.click()
    record = await settled(page, 1)
    assert (record.verdict, record.code) == (Verdict.DENY, "approval-refused")
    assert not bar.isVisible()


async def test_allowed_question_runs_once(demo: Opened, page: TrialPage) -> None:
    await choose(page, "operator")
    call(page, op="delete", path="drafts/report.md")
    page.run()
    await until(lambda: page.outcome.approval.question is not None)
    page.outcome.approval.approve_button.click()
    record = await settled(page, 1)
    assert (record.verdict, record.status) == (Verdict.ALLOW, "allowed")
    assert (demo.folder / "workspace" / "drafts" / "report.md").exists()


async def test_cancelling_a_waiting_call_withdraws_the_question(page: TrialPage) -> None:
    await choose(page, "operator")
    call(page, op="delete", path="drafts/report.md")
    page.run()
    await until(lambda: page.outcome.approval.question is not None)
    page.cancel()
    await until(lambda: not page.console.is_busy)
    assert page.outcome.approval.question is None
    assert [record.status for record in page.console.records] == ["cancelled"]
    page.decide()
    assert (await settled(page, 1)).verdict is Verdict.ASK


async def test_escape_gives_up_a_call_that_waits_for_an_answer(page: TrialPage) -> None:
    await choose(page, "operator")
    call(page, op="delete", path="drafts/report.md")
    page.run()
    await until(lambda: page.outcome.approval.question is not None)
    QTest.keyClick(page.outcome.approval.refuse_button, Qt.Key.Key_Escape)
    await until(lambda: not page.console.is_busy)
    assert page.outcome.approval.question is None


async def test_form_tells_what_the_operation_needs_in_the_words_of_the_gate(page: TrialPage) -> None:
    await choose(page, "archivist")
    form = page.request.form
    page.request.choose_tool("file", "append")
    form.set_values({"op": "append", "path": "drafts/report.md"})
    await until(lambda: form.verdict == "`append` needs `content`")
    page.decide()
    record = await settled(page, 1)
    assert record.stage == "arguments"
    assert form.verdict in record.reason
    form.set_values({"op": "append", "path": "drafts/report.md", "content": "more"})
    await until(lambda: form.verdict == "every field fits")
    page.decide()
    assert (await settled(page, 2)).stage != "arguments"


async def test_json_tells_what_the_operation_needs_too(page: TrialPage) -> None:
    await choose(page, "archivist")
    call(page, op="append", path="drafts/report.md")
    await until(lambda: [fault.message for fault in page.request.raw.faults] == ["`append` needs `content`"])


async def test_reason_shows_its_code_without_backticks_and_copies_them(page: TrialPage) -> None:
    await choose(page, "archivist")
    call(page, op="append", path="drafts/report.md")
    page.decide()
    record = await settled(page, 1)
    reason = page.findChild(ProseLabel, "console.reason")
    assert reason is not None
    assert reason.text() == record.reason
    assert "`append`" in record.reason
    assert "append needs content" in reason.accessibleName()
    page.outcome.verdict.copy_reason_button.click()
    assert QApplication.clipboard().text() == record.reason


async def test_reset_copy_gives_a_fresh_one(page: TrialPage) -> None:
    page.request.form.set_values({"op": "create", "path": "drafts/fresh.md", "content": "hello"})
    page.run()
    await settled(page, 1)
    button = page.findChild(QPushButton, "console.resetcopy")
    assert button is not None
    button.click()
    await until(lambda: not page.console.has_copy)
    page.run()
    record = await settled(page, 2)
    assert record.status == "allowed"


async def test_history_shows_a_call_again_and_runs_it_again(page: TrialPage) -> None:
    call(page, op="read", path="README.md")
    page.decide()
    await settled(page, 1)
    call(page, op="delete", path="README.md")
    page.decide()
    await settled(page, 2)
    page.history.view.setCurrentIndex(page.history.model.index(1, 0))
    assert page.outcome.shown is page.console.records[0]
    page.history.again_button.click()
    record = await settled(page, 3)
    assert record.request == page.console.records[0].request


async def test_session_can_be_begun_anew(page: TrialPage) -> None:
    call(page, op="read", path="README.md")
    page.run()
    await settled(page, 1)
    assert page.console.session_state("archivist").calls
    page.history.reset_button.click()
    assert page.console.session_state("archivist").calls == ()


async def test_session_that_changes_while_the_window_ends_is_not_looked_up(page: TrialPage, demo: Opened) -> None:
    await demo.context.tasks.close()
    page.history.reset_button.click()
    assert "console.session" not in demo.context.tasks.names


async def test_any_tool_name_can_be_typed_in_json(page: TrialPage) -> None:
    page.request.mode.set_current("json")
    line = page.request.tool.lineEdit()
    assert isinstance(line, QLineEdit)
    line.setText("rm\u202e_rf")
    page.request.raw.set_text("{}")
    page.decide()
    record = await settled(page, 1)
    assert (record.verdict, record.stage) == (Verdict.DENY, "lookup")
    assert record.called == "rm\\u202e_rf"
    assert "\u202e" not in record.reason


async def test_keys_decide_and_run(page: TrialPage) -> None:
    page.activateWindow()
    await until(page.isActiveWindow)
    call(page, op="read", path="README.md")
    page.request.raw.editor.setFocus()
    QTest.keyClick(page.request.raw.editor, Qt.Key.Key_Return, Qt.KeyboardModifier.ControlModifier)
    assert (await settled(page, 1)).kind == "decide"
    both = Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier
    QTest.keyClick(page.request.raw.editor, Qt.Key.Key_Return, both)
    assert (await settled(page, 2)).kind == "run"


async def focused(page: TrialPage, widget: QWidget) -> None:
    page.activateWindow()
    await until(page.isActiveWindow)
    widget.setFocus()
    assert QApplication.focusWidget() is widget


async def test_keys_stay_where_they_were_over_a_call(page: TrialPage) -> None:
    call(page, op="read", path="README.md")
    for count, button in enumerate((page.decide_button, page.run_button), 1):
        await focused(page, button)
        QTest.keyClick(button, Qt.Key.Key_Space)
        await settled(page, count)
        assert QApplication.focusWidget() is button


@pytest.mark.parametrize("answer", ["approve", "refuse"])
async def test_keys_come_back_from_a_question(page: TrialPage, answer: str) -> None:
    await choose(page, "operator")
    call(page, op="delete", path="drafts/report.md")
    editor = page.request.raw.editor
    await focused(page, editor)
    page.run()
    bar = page.outcome.approval
    await until(lambda: bar.question is not None)
    assert QApplication.focusWidget() is editor
    QTest.keyClick(editor, Qt.Key.Key_F6)
    assert QApplication.focusWidget() is bar.refuse_button
    button = bar.approve_button if answer == "approve" else bar.refuse_button
    button.setFocus()
    QTest.keyClick(button, Qt.Key.Key_Space)
    await settled(page, 1)
    assert QApplication.focusWidget() is editor


async def test_waiting_call_shows_that_the_approval_waits(page: TrialPage) -> None:
    await choose(page, "operator")
    call(page, op="delete", path="drafts/report.md")
    row = stages.STAGE_NAMES.index("approval")
    model = page.outcome.model
    page.decide()
    assert (await settled(page, 1)).verdict is Verdict.ASK
    assert model.index(row, stages.VERDICT).data() == "asks"
    page.run()
    await until(lambda: page.outcome.approval.question is not None)
    assert model.index(row, stages.VERDICT).data() == "asks"
    page.outcome.approval.approve_button.click()
    await settled(page, 2)
    assert model.index(row, stages.VERDICT).data() == "passed"


async def test_question_says_that_the_policy_was_edited_under_it(demo: Opened, page: TrialPage) -> None:
    await choose(page, "operator")
    call(page, op="delete", path="drafts/report.md")
    page.run()
    await until(lambda: page.outcome.approval.question is not None)
    assert rights.tick_operations(demo.document, "operator", "file", ("delete",), on=False)
    said = [label.text() for label in page.outcome.approval.findChildren(QLabel)]
    assert any("is decided again, by the policy as it is then" in text for text in said)
    page.outcome.approval.approve_button.click()
    record = await settled(page, 1)
    assert (record.verdict, record.stage) == (Verdict.DENY, "operation")
    await until(lambda: "console.tools" not in page._context.tasks.names)  # pyright: ignore[reportPrivateUsage]


async def test_call_given_up_while_the_copy_is_made_does_not_reach_the_gate(demo: Opened, page: TrialPage) -> None:
    for number in range(3000):  # so that copying takes longer than a look at the strip
        (demo.folder / "workspace" / "notes" / f"{number}.md").write_text("a note\n", encoding="utf-8")
    call(page, op="read", path="README.md")
    page.run()
    await until(lambda: page.outcome.strip.accessibleName().startswith("copying the workspace"))
    page.cancel()
    await until(lambda: not page.console.is_busy)
    await page.console.reset_copy()
    assert [(record.status, record.stages) for record in page.console.records] == [("cancelled", ())]
    assert "before the gate saw it" in page.console.records[0].reason
    assert page.console.session_state("archivist").calls == ()
    page.run()
    assert (await settled(page, 2)).status == "allowed"


async def test_form_begins_with_an_operation_that_changes_nothing(page: TrialPage) -> None:
    assert page.request.form.operation == "read"


async def test_form_begins_with_what_is_chosen_on_another_page(demo: Opened) -> None:
    demo.context.selection.choose_agent("operator")
    demo.context.selection.choose_tool("file", "list")
    page = dressed(TrialPage(demo.context))
    page.show()
    page.page_shown()
    await until(lambda: page.request.tool.is_known)
    assert (page.request.agent_id, page.request.tool_name, page.request.form.operation) == ("operator", "file", "list")
    page.console.close()
    page.close()


async def test_typed_tool_outlives_a_look_at_another_page(page: TrialPage) -> None:
    call(page, op="read")
    line = page.request.tool.lineEdit()
    assert isinstance(line, QLineEdit)
    line.setText("rm_rf")
    page.hide()
    page.show()
    page.page_shown()
    assert page.request.tool_name == "rm_rf"


async def test_arguments_that_are_not_taken_are_one_line_that_unfolds(page: TrialPage) -> None:
    form = page.request.form
    form.set_values({"op": "append", "path": "notes/a.md", "content": "x"})
    form.set_values({"op": "read", "path": "notes/a.md"})
    button = form.findChild(QToolButton, "console.form.untaken")
    content = form.editor("content")
    assert button is not None
    assert content is not None
    assert button.isVisible()
    assert not content.isVisible()
    button.click()
    assert content.isVisible()
    assert not content.isEnabled()


async def test_head_of_the_change_is_said_in_words(page: TrialPage) -> None:
    diff = "--- a/b.md\n+++ a/b.md sha256:00\n@@ -1,0 +1,2 @@\n+one\n+two\n"
    assert change_words(diff, "create") == ("a/b.md · new file · +2 lines", "@@ -1,0 +1,2 @@\n+one\n+two\n")
    assert change_words("no diff", "create") == ("", "no diff")


async def test_ten_megabytes_are_kept_aside_and_denied_with_a_reason(page: TrialPage) -> None:
    page.request.mode.set_current("json")
    data = QMimeData()
    data.setText('{"op": "read", "path": "' + "x" * 10_000_000 + '"}')
    page.request.raw.editor.selectAll()
    page.request.raw.editor.insertFromMimeData(data)
    assert page.request.raw.editor.is_aside
    assert len(page.request.raw.editor.toPlainText()) < 1_000
    page.decide()
    record = await settled(page, 1)
    assert (record.verdict, record.stage) == (Verdict.DENY, "parse")
    await until(lambda: page.request.raw.fault is not None)
    page.request.mode.set_current("form")
    assert page.request.mode.current == "json"
    assert page.request.message.text


async def test_large_text_in_a_field_is_kept_aside_and_cleared_by_a_key(page: TrialPage) -> None:
    page.request.form.set_values({"op": "append", "path": "notes/a.md"})
    field = page.request.form.editor("content")
    assert isinstance(field, LargeTextEdit)
    field.set_text("y" * 300_000)
    assert page.request.form.values()["content"] == "y" * 300_000
    QTest.keyClick(field, Qt.Key.Key_Backspace)
    assert field.text == ""


async def test_copy_that_cannot_be_made_is_a_message(page: TrialPage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gatewright.workspace.sandbox.MAX_COPY_FILES", 1)
    page.run()
    await until(page.outcome.message.isVisible)
    assert "too large for a disposable copy" in page.outcome.message.text
    await until(page.run_button.isEnabled)
    assert page.console.records == ()


async def test_other_workspace_begins_with_an_empty_history(demo: Opened, page: TrialPage, tmp_path: Path) -> None:
    call(page, op="read", path="README.md")
    page.run()
    await settled(page, 1)
    path = demo.document.path
    assert path is not None
    assert await demo.document.open(path)
    assert page.console.records == ()
    page.run()
    assert (await settled(page, 1)).verdict is Verdict.ALLOW
