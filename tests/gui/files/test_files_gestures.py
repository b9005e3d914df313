"""What one does on the Files page by mouse and keys: order rules, type patterns, filter, jump, follow the disk."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QDialog, QLineEdit, QMenu, QPushButton, QTableView

from gatewright.policy.agentedit import remove_agent
from gatewright.policy.document import PermissionRule, Source, SourceType
from gatewright.policy.verdict import Permission
from gatewright_gui.pages.access.files import FilesPage, folder_tree, rule_model
from gatewright_gui.pages.access.files.rule_table import edit_at_once
from gatewright_gui.pages.access.files.source_dialog import SourceDialog
from gatewright_gui.pages.access.tools.source_bar import SourceBar
from gatewright_gui.session.verbs import sources
from gatewright_gui.session.verbs.agents import attach_source
from tests.gui.files.support import SOURCE, Opened, add_rule, set_level, source_of, until
from tests.gui.session.opened import drag

LEFT, NONE = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier


def patterns(page: FilesPage) -> list[str]:
    model = page.rules.model
    return [str(model.index(row, rule_model.PATTERN).data()) for row in range(model.default_row)]


def choose(page: FilesPage, *rows: int) -> None:
    for row in rows:
        at = page.rules.table.visualRect(page.rules.model.index(row, rule_model.PATTERN)).center()
        modifier = NONE if row == rows[0] else Qt.KeyboardModifier.ControlModifier
        QTest.mouseClick(page.rules.table.viewport(), LEFT, modifier, at)


def middle(page: FilesPage, row: int, shift: int) -> Callable[[], QPoint]:
    return lambda: page.rules.table.visualRect(page.rules.model.index(row, 0)).center() + QPoint(40, shift)


async def test_rule_is_dragged_below_another_one_as_one_edit(
    demo: Opened, page: FilesPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, count = patterns(page), demo.document.undo_stack.count()
    lines = drag(page.rules.table, monkeypatch, 0, middle(page, 2, 6))
    await until(lambda: patterns(page) != before)
    assert lines == [3]
    assert patterns(page) == [*before[1:3], before[0], *before[3:]]
    assert demo.document.undo_stack.count() == count + 1
    assert page.rules.table.currentIndex().row() == 2
    assert page.rules.table.drop_at is None
    demo.document.undo()
    assert patterns(page) == before


async def test_rule_dropped_below_the_default_stands_above_it(page: FilesPage, monkeypatch: pytest.MonkeyPatch) -> None:
    before = patterns(page)
    lines = drag(page.rules.table, monkeypatch, 1, middle(page, page.rules.model.default_row, 6))
    await until(lambda: patterns(page) != before)
    assert lines == [page.rules.model.default_row]
    assert patterns(page)[-1] == before[1]


async def test_several_chosen_rules_move_by_keys_as_one_edit_and_stay_chosen(demo: Opened, page: FilesPage) -> None:
    before, count = patterns(page), demo.document.undo_stack.count()
    choose(page, 1, 3)
    QTest.keyClick(page.rules.table, Qt.Key.Key_Up, Qt.KeyboardModifier.AltModifier)
    assert patterns(page) == [before[1], before[3], before[0], before[2], *before[4:]]
    assert page.rules.table.chosen == (0, 1)
    assert demo.document.undo_stack.undoText() == f"move 2 rules of {SOURCE}"
    assert demo.document.undo_stack.count() == count + 1
    QTest.keyClick(page.rules.table, Qt.Key.Key_Delete)
    assert patterns(page) == [before[0], before[2], *before[4:]]
    demo.document.undo()
    demo.document.undo()
    assert patterns(page) == before


async def test_typed_pattern_is_counted_live_and_nothing_is_changed(demo: Opened, page: FilesPage) -> None:
    base, count = patterns(page), demo.document.undo_stack.count()
    index = page.rules.model.index(len(base) - 1, rule_model.PATTERN)
    edit_at_once(page.rules.table, index)
    editor = page.rules.table.indexWidget(index)
    assert isinstance(editor, QLineEdit)
    editor.selectAll()
    QTest.keyClicks(editor, "*.md")
    await until(lambda: "files" in page.rules.trial.text())
    matches = len(list(demo.folder.joinpath("workspace").rglob("*.md")))
    said = page.rules.trial.text()
    assert said.startswith(f"Pattern: {matches} files, ")
    assert "of them decided by it" in said
    shown = page.rules.model.index(len(base) - 1, rule_model.HITS).data()
    assert f", {shown} of them" in said
    QTest.keyClicks(editor, "/../x")
    assert page.rules.trial.isHidden()
    assert ".." in page.rules.fault.text()
    QTest.keyClick(editor, Qt.Key.Key_Escape)
    await until(lambda: page.rules.trial.text() == "")
    assert patterns(page) == base
    assert demo.document.undo_stack.count() == count


def level_shown(page: FilesPage, path: str) -> str:
    return str(page.tree_model.index_of(path).siblingAtColumn(folder_tree.LEVEL).data())


def hits_told(page: FilesPage) -> int:
    model = page.rules.model
    return sum(int(model.index(row, rule_model.HITS).data()) for row in range(model.rowCount()))


async def test_new_rule_says_what_it_would_decide_and_open_and_folder_and_counts_show_it_while_it_is_typed(
    page: FilesPage,
) -> None:
    choose(page, 0)
    assert page.rules.model.hits is not None
    every, told = page.rules.model.hits.files, hits_told(page)
    coloured = [level_shown(page, path) for path in ("secrets", "drafts", "README.md")]
    assert coloured == ["hidden", "mixed", "read only"]
    QTest.keyClick(page.rules.table, Qt.Key.Key_Insert)
    new = page.rules.new
    new.pattern.selectAll()
    QTest.keyClicks(new.pattern, "**")
    await until(lambda: new.count.text().startswith(f"{every} files"))

    assert "secrets/station-key.txt: hidden -> read only, more open" in new.change.text()
    decides = int(re.findall(r"(\d+) of them", new.count.text())[0]) if "of them" in new.count.text() else every
    assert hits_told(page) + decides == told
    assert {level_shown(page, path) for path in ("secrets", "drafts", "README.md")} == {"read only"}
    new.level.setCurrentIndex(new.level.findData("none"))
    assert "more open" not in new.change.text()
    await until(lambda: level_shown(page, "drafts") == "hidden")
    assert page.folder.bar.chips["none"].accessibleName() == f"hidden, {every} files"
    QTest.keyClicks(new.pattern, "/../x")
    assert [level_shown(page, path) for path in ("secrets", "drafts", "README.md")] == coloured
    QTest.keyClick(new.pattern, Qt.Key.Key_Escape)
    assert hits_told(page) == told


async def test_added_rule_stands_where_it_takes_nothing_from_the_others_unless_told(page: FilesPage) -> None:
    choose(page, 0)
    before = patterns(page)
    page.rules.header.add_button.click()
    page.rules.new.pattern.setText("**")
    await until(lambda: page.rules.new.count.text() != "")
    assert "secrets/station-key.txt" not in page.rules.new.change.text()
    QTest.keyClick(page.rules.new.pattern, Qt.Key.Key_Return)
    assert patterns(page) == [*before, "**"]

    page.rules.header.add_button.click()
    page.rules.new.pattern.setText("late/**")
    QTest.keyClick(page.rules.new.pattern, Qt.Key.Key_Return)
    assert patterns(page) == [*before, "late/**", "**"]


def shown_files(page: FilesPage) -> list[str]:
    """Every file of the tree, folder by folder."""
    model = page.tree_model
    found: list[str] = []
    waiting = [model.index(row, 0) for row in range(model.rowCount())]
    while waiting:
        index = waiting.pop(0)
        if index.data(folder_tree.KIND) == "file":
            found.append(str(index.data(folder_tree.RELATIVE)))
        waiting += [model.index(row, 0, index) for row in range(model.rowCount(index))]
    return sorted(found)


async def test_chip_of_a_level_leaves_only_its_files_with_their_folders(demo: Opened, page: FilesPage) -> None:
    chip = page.folder.bar.chips["append"]
    counts = {word: one.accessibleName() for word, one in page.folder.bar.chips.items() if not one.isHidden()}
    assert "admin" not in counts
    assert counts["append"] == "add only, 4 files"
    QTest.mouseClick(chip, LEFT)
    await until(lambda: page.folder.bar.shown.text.startswith("4 of 12"))
    await until(lambda: len(shown_files(page)) == 4)
    rows = demo.document.workspace.explain_paths(SOURCE, shown_files(page))
    assert {str(row.permission) for row in rows} == {"append"}
    QTest.mouseClick(page.folder.bar.clear_button, LEFT)
    await until(lambda: page.tree_model.index_of("secrets").isValid())
    assert page.folder.bar.isVisible()
    assert not page.folder.bar.clear_button.isVisible()


async def test_filter_by_level_follows_a_changed_level(demo: Opened, page: FilesPage) -> None:
    QTest.mouseClick(page.folder.bar.chips["append"], LEFT)
    await until(lambda: len(shown_files(page)) == 4)
    at = patterns(page).index("*.log")
    set_level(demo.document, at, Permission.ADMIN)
    await until(lambda: len(shown_files(page)) == 3)
    assert not page.folder.bar.chips["admin"].isHidden()


async def test_text_filters_by_path_and_f3_goes_round(page: FilesPage) -> None:
    page.focus_search()
    QTest.keyClicks(page.folder.bar.field, "drafts")
    await until(lambda: page.folder.bar.shown.text.startswith("3 of 12"))
    await until(lambda: len(shown_files(page)) == 3)
    seen: list[str | None] = []
    for _ in range(4):
        QTest.keyClick(page.folder.tree, Qt.Key.Key_F3)
        seen.append(page.tree_model.path_at(page.folder.tree.currentIndex()))
    assert sorted({str(path) for path in seen}) == shown_files(page)
    assert seen[3] == seen[0]
    QTest.keyClick(page.folder.tree, Qt.Key.Key_F3, Qt.KeyboardModifier.ShiftModifier)
    assert page.tree_model.path_at(page.folder.tree.currentIndex()) == seen[2]


async def test_filter_that_leaves_nothing_says_so_and_can_be_taken_back(page: FilesPage) -> None:
    page.folder.bar.field.setText("no such file")
    await until(page.folder.empty.isVisible)
    page.folder.empty.action_requested.emit()
    await until(lambda: not page.folder.empty.isVisible())


async def test_return_on_a_file_goes_to_its_rule_and_ctrl_return_back_to_its_files(page: FilesPage) -> None:
    assert page.folder.select("station.log")
    page.folder.tree.setFocus()
    QTest.keyClick(page.folder.tree, Qt.Key.Key_Return)
    row = page.rules.table.currentIndex().row()
    assert patterns(page)[row] == "*.log"
    assert page.rules.table.hasFocus()
    QTest.keyClick(page.rules.table, Qt.Key.Key_Return, Qt.KeyboardModifier.ControlModifier)
    await until(lambda: shown_files(page) == ["station.log"])
    await until(lambda: page.tree_model.path_at(page.folder.tree.currentIndex()) == "station.log")
    assert page.folder.tree.hasFocus()
    assert "decided by rule" in page.folder.bar.shown.text


async def test_link_beside_a_tried_path_goes_to_the_default(page: FilesPage) -> None:
    QTest.keyClicks(page.decided.field, "nobody.txt")
    assert page.decided.rule_button.text() == "Go to the default"
    QTest.mouseClick(page.decided.rule_button, LEFT)
    assert page.rules.table.currentIndex().row() == page.rules.model.default_row


async def test_click_on_why_a_rule_is_dead_goes_to_the_rule_that_hides_it(demo: Opened, page: FilesPage) -> None:
    add_rule(demo.document, "notes/old/**", Permission.NONE)
    last = page.rules.model.default_row - 1
    cell = page.rules.model.index(last, rule_model.COMMENT)
    await until(lambda: cell.data(rule_model.SHOWN).shadowed_by is not None)
    at = page.rules.table.visualRect(cell)
    QTest.mouseClick(page.rules.table.viewport(), LEFT, NONE, QPoint(at.left() + 12, at.center().y()))
    assert patterns(page)[page.rules.table.currentIndex().row()] == "notes/**"


async def test_levels_are_explained_by_shift_f1_with_the_table_of_the_engine(page: FilesPage) -> None:
    QTest.keyClick(page.folder.tree, Qt.Key.Key_F1, Qt.KeyboardModifier.ShiftModifier)
    await until(lambda: page.findChild(QDialog, "files.levelhelp") is not None)
    help_ = page.findChild(QDialog, "files.levelhelp")
    assert help_ is not None
    table = help_.findChild(QTableView, "files.levelhelp.table")
    assert table is not None
    model = table.model()
    rows = {model.index(r, 0).data(): [model.index(r, c).data() for c in range(1, 5)] for r in range(model.rowCount())}
    assert rows["read and write"] == ["allow", "allow", "allow", "ask first"]
    assert rows["hidden"] == ["deny"] * 4
    assert rows["ask first"] == ["ask first"] * 4
    assert len(rows) == 8
    help_.close()


async def test_tab_completes_what_exists_and_wrong_paths_are_told_in_words(page: FilesPage) -> None:
    field = page.decided.field
    field.setFocus()
    QTest.keyClicks(field, "dr")
    await until(lambda: field.candidates == ("drafts/",))
    assert page.decided.hint.isVisible()
    QTest.keyClick(field, Qt.Key.Key_Tab)
    assert field.text() == "drafts/"
    await until(lambda: "drafts/final/" in field.candidates)
    QTest.keyClick(field, Qt.Key.Key_Down)
    menu = page.findChild(QMenu, "files.completions")
    assert menu is not None
    assert menu.actions()[0].text() == "drafts/final/"
    menu.close()
    for path, words in (("../x", "`..` leads above"), ("/etc/passwd", "without `/` at its start")):
        field.setText(path)
        assert page.decided.shown is not None
        assert words in page.decided.shown.sentence


async def test_file_made_outside_appears_although_the_source_is_not_watched(demo: Opened, page: FilesPage) -> None:
    source = demo.document.policy.source(SOURCE)
    assert source is not None
    assert page.outside.wait(3_600)
    page.folder.tree.expand(page.tree_model.index_of("drafts"))
    await until(lambda: page.tree_model.rowCount(page.tree_model.index_of("drafts")) > 0)
    page.folder.select("drafts/report.md")
    base = demo.folder / "workspace"
    (base / "drafts" / "fresh.md").write_text("x", encoding="utf-8")
    (base / "empty").mkdir()
    await until(lambda: page.tree_model.index_of("drafts/fresh.md").isValid())
    await until(lambda: page.tree_model.index_of("empty").isValid())
    state = page.tree_model.index_of("drafts/fresh.md").siblingAtColumn(folder_tree.STATE)
    assert state.data() == "new just now"
    await until(lambda: page.rules.model.hits is not None and page.rules.model.hits.files == 13)
    assert page.tree_model.path_at(page.folder.tree.currentIndex()) == "drafts/report.md"
    (base / "drafts" / "fresh.md").unlink()
    await until(lambda: not page.tree_model.index_of("drafts/fresh.md").isValid())
    await until(lambda: page.rules.model.hits is not None and page.rules.model.hits.files == 12)


async def test_folder_that_vanishes_is_said_and_shown_again_once_it_is_back(demo: Opened, page: FilesPage) -> None:
    assert page.outside.wait(3_600)
    base, kept = demo.folder / "workspace", demo.folder / "kept"
    base.rename(kept)
    await until(page.folder.empty.isVisible)
    kept.rename(base)
    await until(lambda: page.folder.tree.isVisible() and page.rules.model.hits is not None)


async def test_another_folder_in_its_place_is_shown_once_the_policy_was_read_again(
    demo: Opened, page: FilesPage
) -> None:
    assert page.outside.wait(3_600)
    base, kept = demo.folder / "workspace", demo.folder / "kept"
    base.rename(kept)
    shutil.copytree(kept, base)
    (base / "fresh.md").write_text("x", encoding="utf-8")
    await until(page.folder.empty.isVisible)
    assert not page.tree_model.index_of("fresh.md").isValid()
    assert await demo.document.reload()
    await until(lambda: page.folder.tree.isVisible() and page.tree_model.index_of("fresh.md").isValid())


async def test_link_from_elsewhere_chooses_source_and_rule(demo: Opened, page: FilesPage) -> None:
    (demo.folder / "more").mkdir()
    assert sources.add_source(
        demo.document, Source("more", "more", permission_rules=(PermissionRule("*", Permission.ADMIN),))
    )
    demo.context.navigator.go_to_level("more", 0)
    assert page.rules.header.picker.currentData() == "more"
    assert page.rules.table.currentIndex().row() == 0
    assert page.rules.table.hasFocus()
    demo.context.navigator.go_to_level(SOURCE, -1)
    assert page.rules.header.picker.currentData() == SOURCE
    assert page.rules.table.currentIndex().row() == page.rules.model.default_row
    await until(lambda: not page.tree_model.is_reading)


async def dialog(page: FilesPage) -> SourceDialog:
    await until(lambda: any(d.isVisible() for d in page.findChildren(SourceDialog)))
    return next(d for d in page.findChildren(SourceDialog) if d.isVisible())


def removal() -> QPushButton | None:
    """The button that removes, while it is asked."""
    shown = [one for one in QApplication.allWidgets() if one.objectName() == "choice-remove" and one.isVisible()]
    return next((one for one in shown if isinstance(one, QPushButton)), None)


async def test_source_is_added_in_a_dialog_as_one_edit_and_shown(demo: Opened, page: FilesPage) -> None:
    (demo.folder / "more").mkdir()
    page.rules.header.add_source_requested.emit()
    asked = await dialog(page)
    QTest.keyClicks(asked.name, SOURCE.upper())
    QTest.keyClicks(asked.folder, "more")
    assert "already" in asked.fault.text()
    assert not asked.accept_button.isEnabled()
    asked.name.setText("more")
    asked.limit.setValue(64)
    QTest.mouseClick(asked.accept_button, LEFT)
    await until(lambda: page.rules.header.picker.currentData() == "more")
    added = demo.document.policy.source("more")
    assert added is not None
    assert (added.base_path, added.max_file_bytes) == ("more", 65_536)
    assert demo.document.undo_stack.undoText() == "add source more"
    demo.document.undo()
    assert page.rules.header.picker.currentData() == SOURCE
    await until(lambda: not page.tree_model.is_reading)


async def test_folder_outside_needs_a_word_of_trust(demo: Opened, page: FilesPage, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    page.rules.header.add_source_requested.emit()
    asked = await dialog(page)
    asked.name.setText("far")
    asked.folder.setText(str(outside))
    assert asked.trust.isVisible()
    assert "lies outside" in asked.note.text()
    assert not asked.accept_button.isEnabled()
    asked.trust.setChecked(True)
    assert asked.accept_button.isEnabled()
    QTest.mouseClick(asked.accept_button, LEFT)
    await until(lambda: demo.document.policy.source("far") is not None)
    await until(lambda: not page.tree_model.is_reading)


async def test_settings_of_a_source_are_changed_and_it_is_removed_after_a_question(
    demo: Opened, page: FilesPage
) -> None:
    page.rules.header.change_source_requested.emit("")
    asked = await dialog(page)
    asked.watch.setChecked(not asked.watch.isChecked())
    QTest.mouseClick(asked.accept_button, LEFT)
    await until(lambda: "changes of" in demo.document.undo_stack.undoText())
    page.rules.header.remove_source_requested.emit("")
    await until(lambda: demo.said)
    assert "has to call it before it ends" in demo.said[-1]
    assert "stays" in demo.said[-1]
    (demo.folder / "more").mkdir()
    assert sources.add_source(demo.document, Source("more", "more"))
    page.rules.header.source_chosen.emit("more")
    page.rules.header.remove_source_requested.emit("")

    await until(lambda: removal() is not None)
    QTest.mouseClick(cast("QPushButton", removal()), LEFT)
    await until(lambda: demo.document.policy.source("more") is None)
    demo.document.undo()
    assert demo.document.policy.source("more") is not None
    await until(lambda: not page.tree_model.is_reading)


def chosen(menu: QMenu, *words: str) -> None:
    """Choose in a menu, and in the menus in it, by what stands there."""
    for word in words[:-1]:
        action = next(one for one in menu.actions() if one.text() == word)
        menu = cast("QMenu", action.menu())
    next(one for one in menu.actions() if one.text() == words[-1]).trigger()


async def test_stream_of_changes_is_added_changed_attached_and_removed_by_the_mouse(
    demo: Opened, page: FilesPage
) -> None:
    (demo.folder / "inbox").mkdir()
    menu = page.rules.header.source_menu
    chosen(menu, "&New source...")
    asked = await dialog(page)
    assert asked.limit.isVisible()
    asked.kind.setCurrentIndex(asked.kind.findText("Stream", Qt.MatchFlag.MatchStartsWith))
    assert not asked.limit.isVisible()
    assert not asked.watch.isVisible()
    QTest.keyClicks(asked.name, "incoming")
    QTest.keyClicks(asked.folder, "inbox")
    QTest.mouseClick(asked.accept_button, LEFT)
    await until(lambda: demo.document.policy.source("incoming") is not None)
    added = demo.document.policy.source("incoming")
    assert added is not None
    assert (added.kind, added.base_path, added.watch) == (SourceType.FOLDER_CHANGES, "inbox", False)
    assert page.rules.header.offered == (SOURCE,)
    assert 'type = "folder_changes"' in demo.document.workspace.text()
    assert demo.document.workspace.streams.get("incoming") is not None
    chosen(menu, "Stream incoming", "&Settings...")
    asked = await dialog(page)
    assert not asked.kind.isEnabled()
    asked.name.setText("arrivals")
    QTest.mouseClick(asked.accept_button, LEFT)
    await until(lambda: demo.document.policy.source("arrivals") is not None)
    agent_id = next(iter(demo.document.policy.agents))
    bar = SourceBar()
    bar.show_agent(demo.document.policy, demo.document.policy.agents[agent_id], None)

    def attach(source_id: str, on: bool) -> None:
        attach_source(demo.document, agent_id, source_id, on=on)

    bar.source_asked.connect(attach)
    bar.menu.aboutToShow.emit()
    chosen(bar.menu, "arrivals\tinbox (changes)")
    agent = demo.document.policy.agents[agent_id]
    assert [one.source_id for one in demo.document.policy.streams_of(agent)] == ["arrivals"]
    chosen(menu, "Stream arrivals", "&Remove...")
    await until(lambda: removal() is not None)
    QTest.mouseClick(cast("QPushButton", removal()), LEFT)
    await until(lambda: demo.document.policy.source("arrivals") is None)
    assert "arrivals" not in (demo.document.policy.agents[agent_id].sources or ())
    assert [action.text() for action in menu.actions() if action.menu()] == []
    demo.document.undo()
    assert demo.document.workspace.streams.get("arrivals") is not None


async def test_page_without_sources_of_files_leads_to_its_streams(demo: Opened, page: FilesPage) -> None:
    assert sources.add_source(demo.document, Source("incoming", "docs", kind=SourceType.FOLDER_CHANGES))
    for agent in demo.document.policy.agents.values():
        demo.document.push(lambda policy, _tools, agent=agent: remove_agent(policy, agent.agent_id))
    assert sources.remove_source(demo.document, source_of(demo.document))
    assert page.no_source.other_button.isVisibleTo(page)
    page.focus_main()
    assert page.window().focusWidget() is page.no_source.action_button
    assert page.no_source.other_button.text() == "1 other source..."
    QTest.mouseClick(page.no_source.other_button, LEFT)
    await until(page.rules.header.source_menu.isVisible)
    page.rules.header.source_menu.close()
