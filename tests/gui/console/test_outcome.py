"""What became of calls: result views, rules, history, comparison, cancelling, live mode; through the real gate."""

import asyncio
import json
from typing import TypeVar

from PySide6.QtCore import QItemSelectionModel, QModelIndex, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QAbstractItemModelTester, QTest
from PySide6.QtWidgets import QApplication, QDialog, QTableView

from gatewright.policy.verdict import Permission, Verdict
from gatewright_gui.pages.trial import TrialPage, stages
from gatewright_gui.pages.trial import compare as comparison
from gatewright_gui.pages.trial.compare import NAME, CompareDialog, PairModel, compare_calls
from gatewright_gui.pages.trial.history_filter import HistoryFilter
from gatewright_gui.pages.trial.result import views_of
from gatewright_gui.pages.trial.verdict import ExactDialog
from gatewright_gui.session.calls import CallRecord, RuleLink, StageRow
from gatewright_gui.session.navigator import DEFAULT_LEVEL
from gatewright_gui.session.place import LevelPlace, LinePlace, PolicyPlace, ToolPlace, place_of
from gatewright_gui.session.verbs import rights, sources
from tests.gui.console.standing import settled
from tests.gui.files.support import SOURCE, Opened, source_of, until

READ = {"op": "read", "path": "README.md"}
CREATE = {"op": "create", "path": "drafts/fresh.md", "content": "hello\n"}
Dialog = TypeVar("Dialog", bound=QDialog)


async def choose(page: TrialPage, agent_id: str) -> None:
    page.request.choose_agent(agent_id)
    page.request.agent_chosen.emit(agent_id)
    await until(lambda: "console.tools" not in page._context.tasks.names)  # pyright: ignore[reportPrivateUsage]


def put(page: TrialPage, arguments: object) -> None:
    page.request.mode.set_current("json")
    page.request.tool.setEditText("file")
    page.request.raw.set_text(json.dumps(arguments))


async def made(page: TrialPage, arguments: object, *, run: bool = True) -> CallRecord:
    count = len(page.console.records)
    put(page, arguments)
    if run:
        page.run()
    else:
        page.decide()
    return await settled(page, count + 1)


async def dialog(kind: type[Dialog]) -> Dialog:
    def found() -> list[Dialog]:
        return [one for one in QApplication.topLevelWidgets() if isinstance(one, kind) and one.isVisible()]

    await until(found)
    return found()[0]


async def focused(page: TrialPage, view: QTableView) -> None:
    page.activateWindow()
    await until(page.isActiveWindow)
    view.setFocus()


# the result


async def test_edit_shows_its_change_first_and_text_and_tree_on_request(page: TrialPage) -> None:
    record = await made(page, CREATE)
    result = page.outcome.result
    assert record.change is not None
    assert (result.parts.current, result.diff.isVisible()) == ("diff", True)
    assert "+hello" in result.diff.text
    QTest.mouseClick(result.parts.button("tree"), Qt.MouseButton.LeftButton)
    assert result.tree.isVisible()
    assert result.tree.model.rowCount() == 1
    QTest.mouseClick(result.parts.button("text"), Qt.MouseButton.LeftButton)
    assert json.loads(result.text.text)["success"] is True


async def test_decided_edit_shows_what_it_would_change(demo: Opened, page: TrialPage) -> None:
    record = await made(page, CREATE, run=False)
    assert (record.kind, record.output) == ("decide", None)
    result = page.outcome.result
    assert result.diff.isVisible()
    assert not result.parts.button("text").isEnabled()
    assert not (demo.folder / "workspace" / "drafts" / "fresh.md").exists()


async def test_change_is_that_of_the_text_in_the_copy(page: TrialPage) -> None:
    await made(page, CREATE)
    record = await made(page, {"op": "append", "path": "drafts/fresh.md", "content": "more\n"}, run=False)
    assert record.change is not None
    assert " hello\n+more" in record.change


async def test_deleting_a_file_shows_the_text_that_goes(page: TrialPage) -> None:
    await choose(page, "operator")
    record = await made(page, {"op": "delete", "path": "drafts/report.md"}, run=False)
    assert record.verdict is Verdict.ASK
    assert record.change is not None
    removed = [line for line in record.change.splitlines()[2:] if line.startswith("-")]
    assert removed
    assert not [line for line in record.change.splitlines()[2:] if line.startswith("+")]


async def test_read_has_no_change_and_its_text_comes_first(page: TrialPage) -> None:
    record = await made(page, READ)
    result = page.outcome.result
    assert record.change is None
    assert result.text.isVisible()
    assert not result.parts.button("diff").isEnabled()
    assert result.parts.button("diff").toolTip() == "The call changes no text"


async def test_denied_call_is_marked_as_an_error(page: TrialPage) -> None:
    record = await made(page, {"op": "delete", "path": "README.md"})
    assert record.is_error
    assert record.change is None
    assert page.outcome.result.mark.isVisible()
    assert page.outcome.result.mark.text == "error"
    assert page.outcome.result.text.isVisible()


async def test_cut_result_says_its_size_and_hash_and_the_tree_holds_all_of_it(demo: Opened, page: TrialPage) -> None:
    (demo.folder / "workspace" / "notes" / "long.md").write_text("a line of a note\n" * 20_000, encoding="utf-8")
    record = await made(page, {"op": "read", "path": "notes/long.md"})
    assert record.truncated
    assert record.whole is not None
    mark = page.outcome.result.mark
    await until(lambda: mark.text == "cut for the model")
    assert f"{record.output_bytes:,} bytes" in mark.toolTip()
    assert str(record.output_hash) in mark.toolTip()
    views = views_of(record)
    assert (views.is_json, views.has_tree, views.first) == (False, True, "tree")
    tree = page.outcome.result.tree
    await until(tree.isVisible)
    tree.search.setText("content")
    await until(lambda: tree.hits and not tree.is_searching)
    tree.copy_value()
    assert QGuiApplication.clipboard().text() == "a line of a note\n" * 20_000
    tree.copy_path()
    assert QGuiApplication.clipboard().text() == "$.data.content"


async def test_tree_is_searched_and_copied_by_keys(page: TrialPage) -> None:
    await made(page, READ)
    page.outcome.result.parts.set_current("tree")
    tree = page.outcome.result.tree
    page.activateWindow()
    await until(page.isActiveWindow)
    page.outcome.result.open_find()
    QTest.keyClicks(tree.search, "e")
    await until(lambda: tree.hits > 1 and not tree.is_searching)
    first = tree.tree.currentIndex()
    QTest.keyClick(tree.search, Qt.Key.Key_Return)
    assert tree.tree.currentIndex() != first
    QTest.keyClick(tree.search, Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    assert tree.tree.currentIndex() == first
    QTest.keyClick(tree.search, Qt.Key.Key_Down)
    QTest.keyClick(tree.tree, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    assert QGuiApplication.clipboard().text() == tree.model.text_at(first)


async def test_exactly_what_the_model_gets_can_be_seen_and_copied(page: TrialPage) -> None:
    record = await made(page, READ)
    QTest.mouseClick(page.outcome.verdict.copy_model_button, Qt.MouseButton.LeftButton)
    assert QGuiApplication.clipboard().text() == record.output
    QTest.mouseClick(page.outcome.verdict.exact_button, Qt.MouseButton.LeftButton)
    shown = await dialog(ExactDialog)
    assert shown.code.text == record.output
    shown.parts.set_current("json")
    assert json.loads(shown.code.text) == record.output
    QTest.keyClick(shown, Qt.Key.Key_Escape)
    await until(lambda: "console.exact" not in page._context.tasks.names)  # pyright: ignore[reportPrivateUsage]
    QTest.mouseClick(page.outcome.verdict.copy_reason_button, Qt.MouseButton.LeftButton)
    assert QGuiApplication.clipboard().text() == record.reason


# stages and rules


async def test_stage_at_work_tells_how_long_it_takes(page: TrialPage) -> None:
    now = [0.0]
    model = stages.StageModel(page, steady=lambda: now[0])
    model.start_over(running=True)
    model.pass_stage(StageRow("parse", Verdict.ALLOW, "one JSON object", 10.0))
    assert model.index(1, stages.VERDICT).data() == "at work"
    assert model.index(1, stages.TIME).data() == ""
    now[0] = 2.4
    heard: list[int] = []

    def keep(first: QModelIndex, _last: QModelIndex) -> None:
        heard.append(first.row())

    model.dataChanged.connect(keep)
    model.tick()
    assert heard == [1]
    assert model.index(1, stages.TIME).data() == "2.4 s"


async def test_chosen_stage_is_told_in_full_and_copied(page: TrialPage) -> None:
    await made(page, READ)
    pane = page.outcome.stage_pane
    await focused(page, pane.view)
    pane.view.setCurrentIndex(pane.model.index(0, 0))
    for _ in range(4):
        QTest.keyClick(pane.view, Qt.Key.Key_Down)
    assert pane.detail.isVisible()
    assert pane.detail.text() == "find targets: `README.md` of `archive`"
    pane.copy_button.click()
    assert "`README.md` of `archive`" in QGuiApplication.clipboard().text()
    QTest.keyClick(pane.view, Qt.Key.Key_Escape)
    assert not pane.detail.isVisible()


async def test_rules_lead_to_where_they_are_edited(demo: Opened) -> None:
    policy = demo.document.policy
    limit = next(
        (agent.agent_id, index, rule)
        for agent in policy.agents.values()
        for index, rule in enumerate(agent.tool_rules)
        if rule.kind == "MaxCalls" and rule.tool_name != "*"
    )
    address = ("agents", limit[0], "tool_rules", limit[1])
    assert place_of(policy, address, 9) == ToolPlace(limit[0], limit[2].tool_name, None, "limits", address)
    assert place_of(policy, address, 9, ("file", "read")) == ToolPlace(limit[0], "file", "read", "limits", address)
    assert place_of(policy, ("agents", limit[0], "tool_rules", 999), 9) is None
    assert place_of(policy, ("sources", SOURCE, "permission_rules", 1), 9) == LevelPlace(SOURCE, 1)
    assert place_of(policy, ("sources", SOURCE, "permission_rules", 999), 9) is None
    assert place_of(policy, ("sources", SOURCE, "default_permission"), 9) == LevelPlace(SOURCE, None)
    assert place_of(policy, ("policy", "rules", 0), 12) == PolicyPlace(0)
    assert place_of(policy, ("policy", "rules", 999), 12) is None
    assert place_of(policy, ("defaults",), 12) == LinePlace(12)
    assert place_of(policy, ("defaults",), None) is None


async def test_level_that_decided_leads_to_the_files_page(demo: Opened, page: TrialPage) -> None:
    heard: list[tuple[object, ...]] = []
    navigator = demo.context.navigator

    def keep(*where: object) -> None:
        heard.append(where)

    navigator.page_requested.connect(keep)
    navigator.level_requested.connect(keep)
    assert sources.set_default_level(demo.document, source_of(demo.document), Permission.NONE)
    record = await made(page, READ)
    assert record.stage == "permission"
    page.outcome.verdict.rule_button.click()
    await until(lambda: len(heard) == 2)
    assert heard == [("files",), (SOURCE, DEFAULT_LEVEL)]


async def test_rule_that_is_gone_is_said(demo: Opened, page: TrialPage) -> None:
    page.outcome.rule_requested.emit(RuleLink("lost", ("agents", "archivist", "tool_rules", 999), 3))
    await until(lambda: demo.said)
    assert demo.said == ["`lost` is no longer in the policy"]


# the history


async def test_call_made_again_under_another_policy_tells_both_verdicts(demo: Opened, page: TrialPage) -> None:
    await made(page, READ)
    assert rights.tick_operations(demo.document, "archivist", "file", ("read",), on=False)
    await focused(page, page.history.view)
    QTest.keyClick(page.history.view, Qt.Key.Key_Return)
    record = await settled(page, 2)
    assert record.earlier is not None
    assert (record.earlier.number, record.earlier.verdict, record.verdict) == (1, Verdict.ALLOW, Verdict.DENY)
    then = page.outcome.verdict._then  # pyright: ignore[reportPrivateUsage]
    assert then.isVisible()
    assert then.text == "then allowed, now denied"


async def test_history_is_searched_and_filtered(page: TrialPage) -> None:
    await made(page, READ, run=False)
    await made(page, {"op": "delete", "path": "README.md"}, run=False)
    await made(page, {"op": "list", "path": "."}, run=False)
    history = page.history
    QTest.keyClicks(history.bar.search, "readme deny")
    assert [history.model.record_at(row) for row in range(history.model.rowCount())] == [page.console.records[1]]
    QTest.keyClick(history.bar.search, Qt.Key.Key_Escape)
    assert history.model.rowCount() == 3
    history.bar.menu.aboutToShow.emit()
    deny = next(action for action in history.bar.menu.actions() if action.text() == "denied")
    deny.trigger()
    assert history.bar.filter == HistoryFilter(verdicts=frozenset({"deny"}))
    assert history.model.rowCount() == 1
    QTest.keyClicks(history.bar.search, "nothing like it")
    assert history.model.rowCount() == 0
    assert not history.view.isVisible()
    history.bar.clear()
    assert history.model.rowCount() == 3


async def test_filtered_history_is_a_sound_model(page: TrialPage) -> None:
    model = page.history.model
    tester = QAbstractItemModelTester(model, QAbstractItemModelTester.FailureReportingMode.Fatal)
    model.set_filter(HistoryFilter(words=("read",)))
    await made(page, READ, run=False)
    await made(page, {"op": "list", "path": "."}, run=False)
    assert model.rowCount() == 1
    page.console.forget_calls()
    assert model.rowCount() == 0
    assert tester.model() is model


async def test_two_chosen_calls_are_compared_by_a_key(page: TrialPage) -> None:
    await made(page, READ)
    await made(page, {"op": "delete", "path": "README.md"})
    view = page.history.view
    assert not page.history.compare_button.isEnabled()
    await focused(page, view)
    view.setCurrentIndex(page.history.model.index(0, 0))
    QTest.keyClick(view, Qt.Key.Key_Down, Qt.KeyboardModifier.ShiftModifier)
    assert page.history.compare_button.isEnabled()
    QTest.keyClick(view, Qt.Key.Key_D, Qt.KeyboardModifier.ControlModifier)
    shown = await dialog(CompareDialog)
    told = shown.comparison
    assert (told.first.number, told.second.number, told.verdict_changed) == (1, 2, True)
    assert '-  "op": "read"' in told.arguments
    assert '+  "op": "delete"' in told.arguments
    first_different = next(pair.name for pair in told.stages if pair.differs)
    assert first_different == "operation"
    for key in shown.parts.keys:
        QTest.mouseClick(shown.parts.button(key), Qt.MouseButton.LeftButton)
    assert shown.result_diff.isVisible()
    for table in (shown.facts, shown.stages):  # no name is cut
        assert table.columnWidth(NAME) >= table.sizeHintForColumn(NAME)
    QTest.mouseClick(shown.close_button, Qt.MouseButton.LeftButton)
    await until(lambda: "console.compare" not in page._context.tasks.names)  # pyright: ignore[reportPrivateUsage]


async def test_equal_calls_compare_as_equal(page: TrialPage) -> None:
    one = await made(page, READ, run=False)
    other = await made(page, READ, run=False)
    told = compare_calls(other, one)
    assert (told.first, told.second) == (one, other)
    assert (told.arguments, told.result) == ("", "")
    assert not [pair.name for pair in (*told.facts, *told.stages) if pair.differs]
    model = PairModel(("", "1", "2"), told.facts)
    tester = QAbstractItemModelTester(model, QAbstractItemModelTester.FailureReportingMode.Fatal)
    assert model.index(0, comparison.FIRST).data() == "allowed"
    assert tester.model() is model


async def test_calls_are_copied_as_json_and_cleared(page: TrialPage) -> None:
    record = await made(page, CREATE)
    await focused(page, page.history.view)
    QTest.keyClick(page.history.view, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    copied = json.loads(QGuiApplication.clipboard().text())
    assert (copied["verdict"], copied["arguments"], copied["output"]) == ("allow", CREATE, record.output)
    assert [row["stage"] for row in copied["stages"]] == list(stages.STAGE_NAMES)
    QTest.mouseClick(page.history.clear_button, Qt.MouseButton.LeftButton)
    assert page.console.records == ()
    assert page.console.session_state("archivist").calls


async def test_edit_again_puts_the_call_back_by_a_key(page: TrialPage) -> None:
    await made(page, READ, run=False)
    put(page, {"op": "list"})
    await focused(page, page.history.view)
    QTest.keyClick(page.history.view, Qt.Key.Key_F2)
    assert json.loads(page.request.raw.text) == READ
    await until(lambda: "console.tools" not in page._context.tasks.names)  # pyright: ignore[reportPrivateUsage]


async def test_key_alone_never_makes_a_run_live_again(demo: Opened, page: TrialPage) -> None:
    await made(page, READ)
    demo.document.live.enter()
    assert "LIVE" in page.history.again_button.toolTip()
    await focused(page, page.history.view)
    page.history.view.selectionModel().setCurrentIndex(
        page.history.model.index(0, 0), QItemSelectionModel.SelectionFlag.ClearAndSelect
    )
    QTest.keyClick(page.history.view, Qt.Key.Key_Return)
    await asyncio.sleep(0)
    assert not page.console.is_busy
    QTest.mouseClick(page.history.again_button, Qt.MouseButton.LeftButton)
    assert (await settled(page, 2)).is_live


async def test_until_the_first_call_the_page_says_what_it_is_for_and_fills_in_an_example(page: TrialPage) -> None:
    blank = page.outcome.blank
    assert blank.isVisible()
    assert not page.outcome.verdict.isVisible()
    assert not page.outcome.stages.isVisible()
    assert "your files stay as they are" in blank.accessibleDescription()

    QTest.mouseClick(blank.action_button, Qt.MouseButton.LeftButton)
    await until(lambda: bool(page.request.form.values_as_far().get("path")))
    page.run()
    record = await settled(page, 1)

    assert record.verdict is Verdict.ALLOW
    assert not blank.isVisible()
    assert page.outcome.stages.isVisible()
