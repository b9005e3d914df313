"""The Files page over the real demo workspace."""

import os
import sys
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QFontMetrics
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QComboBox, QLabel, QLineEdit, QPushButton, QTableView, QToolButton, QTreeView, QWidget

from gatewright.policy.document import PermissionRule, Source
from gatewright.policy.glob import PermissionRules
from gatewright.policy.verdict import Permission
from gatewright_gui.pages.access.files import FilesPage, folder_tree, rule_model
from gatewright_gui.qt.look import current_look
from gatewright_gui.session.files import pattern_of
from gatewright_gui.session.verbs import sources
from gatewright_gui.session.verdict import permission_words
from tests.gui.files.support import Opened, add_rule, rule_at, set_level, source_of, until


def row_of(page: FilesPage, pattern: str) -> int:
    model = page.rules.model
    return next(row for row in range(model.rowCount()) if model.index(row, rule_model.PATTERN).data() == pattern)


def patterns(page: FilesPage) -> list[str]:
    model = page.rules.model
    return [str(model.index(row, rule_model.PATTERN).data()) for row in range(model.rowCount() - 1)]


def click_rule(page: FilesPage, row: int) -> None:
    table = page.rules.table
    at = table.visualRect(page.rules.model.index(row, rule_model.PATTERN)).center()
    QTest.mouseClick(table.viewport(), Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, at)


def word(page: FilesPage, path: str) -> str:
    return str(page.tree_model.index_of(path).siblingAtColumn(folder_tree.LEVEL).data())


async def expand(page: FilesPage, path: str) -> None:
    page.folder.tree.expand(page.tree_model.index_of(path))
    await until(lambda: page.tree_model.rowCount(page.tree_model.index_of(path)) > 0)


async def test_every_control_has_a_name_for_code_and_for_people(page: FilesPage) -> None:
    for kind, name in (
        (QTableView, "files.rules"),
        (QTreeView, "files.tree"),
        (QLineEdit, "files.try"),
        (QWidget, "files.decided"),
        (QComboBox, "files.source"),
        (QPushButton, "files.add"),
        (QToolButton, "files.refresh"),
    ):
        found = page.findChild(kind, name)
        assert found is not None, name
        assert found.accessibleName(), name


async def test_tree_has_the_levels_of_the_real_folder(page: FilesPage) -> None:
    assert word(page, "README.md") == "read only"
    assert word(page, "secrets") == "hidden"
    await expand(page, "drafts")
    assert word(page, "drafts/report.md") == "read and write"
    assert word(page, "station.log") == "add only"


async def test_counts_add_up_to_the_files_of_the_folder(page: FilesPage) -> None:
    hits = page.rules.model.hits
    assert hits is not None
    base = page.folder.tree.model()
    assert base is page.tree_model
    files = sum(len(names) for _, _, names in os.walk(demo_base(page)))
    assert sum(hits.rules) + hits.default == hits.files == files


def demo_base(page: FilesPage) -> Path:
    path = page._context.document.path  # pyright: ignore[reportPrivateUsage]
    assert path is not None
    return path.parent / "workspace"


async def test_choosing_a_file_names_and_marks_the_deciding_rule(page: FilesPage) -> None:
    await expand(page, "drafts")
    assert page.folder.select("drafts/report.md")
    row = row_of(page, "drafts/**")
    shown = page.decided.shown
    assert shown is not None
    assert shown.sentence == f"read and write, by rule {row + 1} `drafts/**`"
    assert page.rules.model.index(row, 0).data(rule_model.SHOWN).is_deciding
    badges = {str(action): shown.verdict(action).value for action in type(next(iter(page.decided._badges)))}  # pyright: ignore[reportPrivateUsage]
    assert badges == {"read": "allow", "append": "allow", "overwrite": "allow", "delete": "ask"}


async def test_tried_path_need_not_exist_and_follows_each_key(page: FilesPage) -> None:
    field = page.decided.field
    QTest.keyClicks(field, "drafts/")
    assert page.decided.shown is not None
    first = page.decided.shown.path
    QTest.keyClicks(field, "new/thing.md")
    assert (first, page.decided.shown.path) == ("drafts/", "drafts/new/thing.md")
    assert page.decided.shown.permission is Permission.READ_WRITE
    assert page.rules.model.index(row_of(page, "drafts/**"), 0).data(rule_model.SHOWN).is_deciding
    field.setText("nowhere/at/all.txt")
    assert page.decided.shown.is_default
    assert page.rules.model.index(page.rules.model.default_row, 0).data(rule_model.SHOWN).is_deciding


@pytest.mark.parametrize("path", ["../policy.toml", "/etc/passwd", "a/../../b"])
async def test_tried_path_outside_the_source_is_said(page: FilesPage, path: str) -> None:
    page.decided.field.setText(path)
    assert page.decided.shown is not None
    assert page.decided.shown.outside
    assert all(badge.verdict == "deny" for badge in page.decided._badges.values())  # pyright: ignore[reportPrivateUsage]


@pytest.mark.parametrize("path", ["\0", "a\\b", "a" * 5000, "\ud800", "é/ü.md", "//", "./", "*", "drafts/..", ".."])
async def test_odd_paths_are_answered(page: FilesPage, path: str) -> None:
    page.decided.field.setText(path)
    assert (page.decided.shown is not None) == (page.decided.field.text() != "")


async def test_folder_has_the_level_of_its_files_and_mixed_where_they_differ(demo: Opened, page: FilesPage) -> None:
    def decider(path: str) -> str:
        return str(page.tree_model.index_of(path).siblingAtColumn(folder_tree.RULE).data())

    rule = row_of(page, "drafts/**")
    assert (word(page, "notes"), decider("notes")) == ("add only", f"rule {row_of(page, 'notes/**') + 1}")
    assert (word(page, "drafts"), decider("drafts")) == ("mixed", f"rules {rule}, {rule + 1}")
    await expand(page, "drafts")
    assert word(page, "drafts/final") == "read only"
    assert "files in it: read only, read and write" in str(
        page.tree_model.index_of("drafts").data(Qt.ItemDataRole.ToolTipRole)
    )
    assert set_level(demo.document, rule, Permission.READ_ONLY)
    assert word(page, "drafts") == "read only"
    assert set_level(demo.document, rule, Permission.HUMAN)
    final = rule_at(demo.document, row_of(page, "drafts/final/**"))
    assert sources.remove_rules(demo.document, source_of(demo.document), [final])
    await until(lambda: word(page, "drafts") == "ask to change" and decider("drafts") == f"rule {rule}")


async def test_folder_is_spoken_of_as_what_its_files_get(page: FilesPage) -> None:
    page.folder.select("notes/")
    row = row_of(page, "notes/**")
    assert page.decided.sentence == f"a new file in it: add only, by rule {row + 1} notes/**"
    assert page.decided.files.text() == "every file in it: add only; the folder itself is read only (default)"
    assert page.rules.model.index(row, 0).data(rule_model.SHOWN).is_deciding
    page.folder.select("README.md")
    assert page.decided.files.isHidden()


async def test_empty_folder_has_the_level_that_a_new_file_would_have(demo: Opened, page: FilesPage) -> None:
    (demo.folder / "workspace" / "inbox" / "later").mkdir()
    page.folder.refresh_requested.emit()
    await expand(page, "inbox")
    await until(lambda: page.tree_model.index_of("inbox/later").isValid())
    assert word(page, "inbox/later") == "ask to change"


async def test_roots_are_named_with_what_holds_there_instead_of_levels(demo: Opened, page: FilesPage) -> None:
    line = page.rules.roots.text()
    assert "shared (desk), tmp and vault" in line
    assert line.startswith("No rules here hold in shared")
    assert line.endswith("there the access decides that Rules grants an agent.")
    assert str(demo.folder / "desk") in page.rules.roots.toolTip()
    assert sources.add_source(demo.document, Source("desktop", "desk"))
    assert "shared (desk) lies in source desktop: its levels hold there too" in page.rules.roots.text()
    await until(lambda: not page.tree_model.is_reading)


async def test_pattern_is_not_cut_while_there_is_room(demo: Opened, page: FilesPage) -> None:
    pattern = "stations/north/2026/readings/**"
    assert add_rule(demo.document, pattern, Permission.READ_ONLY)
    wide = QFontMetrics(current_look().mono_font).horizontalAdvance(pattern)
    assert page.rules.table.columnWidth(rule_model.PATTERN) > wide
    table = page.rules.table
    columns = range(page.rules.model.columnCount())
    assert sum(map(table.columnWidth, columns)) <= table.viewport().width() + 1


async def test_changed_level_recolours_without_closing_folders(demo: Opened, page: FilesPage) -> None:
    await expand(page, "drafts")
    page.folder.select("drafts/report.md")
    assert set_level(demo.document, row_of(page, "drafts/**"), Permission.HUMAN)
    assert word(page, "drafts/report.md") == "ask to change"
    assert page.folder.tree.isExpanded(page.tree_model.index_of("drafts"))
    assert page.decided.shown is not None
    assert page.decided.shown.permission is Permission.HUMAN
    demo.document.undo()
    assert word(page, "drafts/report.md") == "read and write"
    assert not demo.document.is_dirty


async def test_level_is_edited_in_place_and_undone_by_name(demo: Opened, page: FilesPage) -> None:
    row = row_of(page, "drafts/**")
    assert page.rules.model.setData(page.rules.model.index(row, rule_model.LEVEL), "admin")
    assert demo.document.undo_stack.undoText() == "set drafts/** of archive to admin"
    assert demo.document.policy.sources[0].permission_rules[row].permission is Permission.ADMIN


async def test_bad_pattern_is_refused_with_its_message_and_can_be_edited_again(demo: Opened, page: FilesPage) -> None:
    before = patterns(page)
    table, index = page.rules.table, page.rules.model.index(0, rule_model.PATTERN)
    table.setCurrentIndex(index)
    table.edit(index)
    editor = table.findChild(QLineEdit, "files.pattern")
    assert editor is not None
    editor.setText("!secrets/public")
    fault = page.findChild(QLabel, "files.fault")
    assert fault is not None
    assert "`!` is not supported" in fault.text()
    QTest.keyClick(editor, Qt.Key.Key_Return)
    assert table.findChild(QLineEdit, "files.pattern") is editor
    table.commitData(editor)
    assert patterns(page) == before
    assert "`!` is not supported" in page.rules.message.text
    assert not demo.document.is_dirty


async def test_good_pattern_is_taken(demo: Opened, page: FilesPage) -> None:
    index = page.rules.model.index(0, rule_model.PATTERN)
    page.rules.table.setCurrentIndex(index)
    page.rules.table.edit(index)
    editor = page.rules.table.findChild(QLineEdit, "files.pattern")
    assert editor is not None
    editor.setText("secrets/deep/**")
    QTest.keyClick(editor, Qt.Key.Key_Return)
    await until(lambda: patterns(page)[0] == "secrets/deep/**")
    await until(lambda: page.rules.model.hits is not None)
    assert page.rules.model.index(0, 0).data(rule_model.SHOWN).idle_words == "no file yet"
    assert page.rules.model.dead_rows == ()


async def test_keys_move_a_rule_and_the_choice_goes_with_it(page: FilesPage) -> None:
    first, second = patterns(page)[:2]
    table = page.rules.table
    table.setCurrentIndex(page.rules.model.index(0, rule_model.PATTERN))
    page.rules.move_rule(1)
    assert patterns(page)[:2] == [second, first]
    assert table.currentIndex().row() == 1
    page.rules.move_rule(-1)
    page.rules.move_rule(-1)
    assert patterns(page)[:2] == [first, second]


async def test_added_rule_begins_with_the_chosen_path_and_can_be_removed(page: FilesPage) -> None:
    before = patterns(page)
    page.folder.select("README.md")
    click_rule(page, 0)
    QTest.keyClick(page.rules.table, Qt.Key.Key_Insert)
    assert page.rules.new.pattern.text() == "/README.md"
    QTest.keyClick(page.rules.new.pattern, Qt.Key.Key_Return)
    assert patterns(page) == ["/README.md", *before]
    page.rules.table.setCurrentIndex(page.rules.model.index(0, rule_model.PATTERN))
    page.rules.remove_rule()
    assert patterns(page) == before


async def test_rule_added_for_a_chosen_folder_stands_where_it_decides_and_no_higher(page: FilesPage) -> None:
    before = patterns(page)
    page.folder.select("code/")
    page.rules.add_rule()
    assert page.rules.new.pattern.text() == "/code/"
    QTest.keyClick(page.rules.new.pattern, Qt.Key.Key_Return)
    assert patterns(page) == [*before, "/code/"]

    page.folder.select("notes/")
    page.rules.add_rule()
    QTest.keyClick(page.rules.new.pattern, Qt.Key.Key_Return)

    assert patterns(page).index("/notes/") + 1 == patterns(page).index("notes/**")


def give(page: FilesPage, path: str, level: Permission) -> None:
    """Choose a level in the menu of a row of the folder."""
    now = page.folder.given(path)
    assert now is not None
    menu = page.folder.make_menu(path, now)
    next(action for action in menu.actions() if action.text().startswith(f"{permission_words(level)}\t")).trigger()


async def test_level_given_in_the_folder_is_one_rule_and_touches_nothing_else(demo: Opened, page: FilesPage) -> None:
    before = patterns(page)
    others = {path: word(page, path) for path in ("drafts/", "notes/", "secrets/", "README.md", "station.log")}

    give(page, "code/", Permission.APPEND)

    assert patterns(page) == [*before, "/code/"]
    assert word(page, "code/") == "add only"
    assert {path: word(page, path) for path in others} == others
    give(page, "code/", Permission.READ_WRITE)
    assert (patterns(page), word(page, "code/")) == ([*before, "/code/"], "read and write")
    demo.document.undo()
    demo.document.undo()
    assert (patterns(page), word(page, "code/")) == (before, "read only")


async def test_level_given_to_a_folder_with_a_rule_of_its_own_changes_that_rule(page: FilesPage) -> None:
    before = patterns(page)
    await expand(page, "notes/")

    give(page, "notes/", Permission.HUMAN)

    assert patterns(page) == before
    assert word(page, "notes/species.md") == "ask to change"


@pytest.mark.parametrize("path", ["odd [1]*.txt", "why?.md", "back\\slash", "#first", "!not", "end ", "日本/файл.md"])
def test_pattern_of_a_path_with_signs_of_patterns_names_that_path_only(path: str) -> None:
    rules = PermissionRules((PermissionRule(pattern_of(path), Permission.ADMIN),), Permission.NONE)
    assert rules.level(path) is Permission.ADMIN
    others = ("odd 1x.txt", "whyx.md", f"sub/{path}")
    assert {rules.level(other) for other in others} == {Permission.NONE}


async def test_numbers_of_many_rules_are_never_cut(demo: Opened, page: FilesPage) -> None:
    narrow = page.rules.table.columnWidth(rule_model.NUMBER)
    for number in range(100):
        assert add_rule(demo.document, f"n{number}", Permission.READ_ONLY)

    room = page.rules.table.columnWidth(rule_model.NUMBER)
    assert room > narrow
    index = page.rules.model.index(99, rule_model.NUMBER)
    assert page.rules.table.sizeHintForIndex(index).width() <= room


async def test_written_rule_is_one_edit_and_escape_leaves_nothing(demo: Opened, page: FilesPage) -> None:
    before = patterns(page)
    page.rules.add_rule()
    QTest.keyClicks(page.rules.new.pattern, "scratch/**")
    QTest.keyClick(page.rules.new.pattern, Qt.Key.Key_Escape)
    assert (patterns(page), page.rules.new.isVisible(), demo.document.undo_stack.count()) == (before, False, 0)
    page.rules.add_rule()
    QTest.keyClicks(page.rules.new.pattern, "!scratch")
    QTest.keyClick(page.rules.new.pattern, Qt.Key.Key_Return)
    assert (patterns(page), page.rules.new.isVisible()) == (before, True)
    page.rules.new.pattern.setText("scratch/**")
    QTest.keyClick(page.rules.new.pattern, Qt.Key.Key_Return)
    assert sorted(patterns(page)) == sorted([*before, "scratch/**"])
    assert demo.document.undo_stack.count() == 1
    assert page.rules.table.currentIndex().data() == "scratch/**"
    demo.document.undo()
    assert patterns(page) == before


@pytest.mark.parametrize("key", [Qt.Key.Key_F2, Qt.Key.Key_Return, Qt.Key.Key_R])
async def test_key_on_a_level_opens_its_list_and_a_choice_is_one_edit(
    demo: Opened, page: FilesPage, key: Qt.Key
) -> None:
    combo = await open_levels(page, key)
    rule = demo.document.policy.sources[0].permission_rules[2]
    for _ in range(2):
        QTest.keyClick(combo.view(), Qt.Key.Key_Up)
    assert demo.document.undo_stack.count() == 0
    wanted = combo.itemData(combo.view().currentIndex().row())
    QTest.keyClick(combo.view(), Qt.Key.Key_Return)
    await until(lambda: page.rules.table.findChild(QComboBox, "files.level") is None)
    assert demo.document.undo_stack.count() == 1
    assert demo.document.policy.sources[0].permission_rules[2].permission == wanted != rule.permission


async def test_escape_leaves_the_list_of_levels_and_its_editor(demo: Opened, page: FilesPage) -> None:
    combo = await open_levels(page, Qt.Key.Key_F2)
    QTest.keyClick(combo.view(), Qt.Key.Key_Up)
    QTest.keyClick(combo.view(), Qt.Key.Key_Escape)
    await until(lambda: page.rules.table.findChild(QComboBox, "files.level") is None)
    assert demo.document.undo_stack.count() == 0
    assert page.focusWidget() is page.rules.table


async def test_list_of_levels_that_a_click_opened_leaves_nothing_after_escape(demo: Opened, page: FilesPage) -> None:
    table = page.rules.table
    at = table.visualRect(page.rules.model.index(3, rule_model.LEVEL)).center()
    for _ in range(2):
        QTest.mouseClick(table.viewport(), Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, at)
        combo = table.findChild(QComboBox, "files.level")
        assert combo is not None
        await until(combo.view().isVisible)
        assert combo.width() >= combo.sizeHint().width()
        QTest.keyClick(combo.view(), Qt.Key.Key_Down)
        QTest.keyClick(combo.view(), Qt.Key.Key_Escape)
        await until(lambda: table.findChild(QComboBox, "files.level") is None)
    assert demo.document.undo_stack.count() == 0


async def open_levels(page: FilesPage, key: Qt.Key) -> QComboBox:
    table = page.rules.table
    page.activateWindow()
    await until(page.isActiveWindow)
    table.setFocus()
    table.setCurrentIndex(page.rules.model.index(2, rule_model.LEVEL))
    QTest.keyClick(table, key)
    combo = table.findChild(QComboBox, "files.level")
    assert combo is not None
    await until(combo.view().isVisible)
    return combo


async def test_rule_without_files_says_which_rule_takes_them(demo: Opened, page: FilesPage) -> None:
    model = page.rules.model
    rows = len(patterns(page))
    assert add_rule(demo.document, "drafts/report.md", Permission.NONE)
    assert add_rule(demo.document, "nothing/here", Permission.NONE)
    await until(lambda: model.hits is not None)
    said = [model.index(row, 0).data(rule_model.SHOWN).idle_words for row in range(model.rowCount())]
    assert said == [*[""] * rows, f"rule {row_of(page, 'drafts/**') + 1} decides", "no file yet", ""]


async def test_choice_in_the_tree_gives_way_to_a_tried_path_and_comes_back(page: FilesPage) -> None:
    page.folder.select("README.md")
    tree = page.folder.tree
    page.decided.field.setText("nowhere/at/all.txt")
    assert not tree.selectionModel().hasSelection()
    page.decided.field.setText("station.log")
    assert [index.data() for index in tree.selectionModel().selectedRows()] == ["station.log"]
    page.decided.field.clear()
    assert [index.data() for index in tree.selectionModel().selectedRows()] == ["README.md"]
    assert page.decided.shown is not None
    assert page.decided.shown.path == "README.md"


async def test_refresh_shows_new_files_and_counts_them(page: FilesPage) -> None:
    await expand(page, "drafts")
    (demo_base(page) / "drafts" / "fresh.md").write_text("x", encoding="utf-8")
    button = page.findChild(QToolButton, "files.refresh")
    assert button is not None
    hits = page.rules.model.hits
    assert hits is not None
    button.click()
    await until(lambda: page.tree_model.index_of("drafts/fresh.md").isValid())
    assert page.folder.tree.isExpanded(page.tree_model.index_of("drafts"))

    def one_more() -> bool:
        now = page.rules.model.hits
        return now is not None and now.files == hits.files + 1

    await until(one_more)


async def test_missing_folder_is_said_in_its_place(demo: Opened, page: FilesPage) -> None:
    demo_base(page).rename(demo.folder / "elsewhere")
    page.folder.refresh_requested.emit()
    await until(page.folder.empty.isVisible)
    assert str(demo_base(page)) in page.folder.empty.accessibleDescription()
    hits = page.rules.model.index(0, rule_model.HITS)
    await until(lambda: hits.data() == "?")
    assert page.width() == 1228
    (demo.folder / "elsewhere").rename(demo_base(page))
    page.folder.empty.action_requested.emit()
    await until(lambda: page.folder.tree.isVisible() and page.tree_model.rowCount() > 1)


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege there")
async def test_link_is_shown_as_unusable(demo: Opened, page: FilesPage) -> None:
    (demo_base(page) / "way-out").symlink_to("/etc")
    page.folder.refresh_requested.emit()
    await until(lambda: page.tree_model.index_of("way-out").isValid())
    assert word(page, "way-out") == "unusable"
    await until(lambda: not demo.context.tasks.names)


async def test_policy_inside_the_source_is_protected(demo: Opened, page: FilesPage) -> None:
    os.link(demo.folder / "policy.toml", demo_base(page) / "other-name.toml")
    page.folder.refresh_requested.emit()
    await until(lambda: page.tree_model.index_of("other-name.toml").isValid())
    assert word(page, "other-name.toml") == "protected"
    page.folder.select("other-name.toml")
    assert page.decided.shown is not None
    assert page.decided.shown.protected


async def test_page_keeps_its_place_while_it_is_hidden(demo: Opened, page: FilesPage) -> None:
    await expand(page, "drafts")
    page.folder.select("drafts/report.md")
    page.hide()
    assert sources.set_default_level(demo.document, source_of(demo.document), Permission.NONE)
    page.show()
    page.page_shown()
    assert page.folder.tree.isExpanded(page.tree_model.index_of("drafts"))
    assert word(page, "README.md") == "hidden"
    assert page.decided.shown is not None
    assert page.decided.shown.path == "drafts/report.md"


@pytest.mark.parametrize(
    ("agent_id", "is_everyone", "words"),
    [
        ("archivist", False, "What archivist may do with the files of archive; the same rules hold for researcher, operator"),  # noqa: E501
        ("newcomer", False, "newcomer does not have the files of archive; these rules are for archivist, researcher, operator"),  # noqa: E501
        ("archivist", True, "What agents may do with the files of archive; these rules hold for archivist, researcher, operator"),  # noqa: E501
    ],
)  # fmt: skip
async def test_the_line_at_the_top_says_whose_files_they_are(
    demo: Opened, page: FilesPage, agent_id: str, is_everyone: bool, words: str
) -> None:
    demo.context.selection.choose_agent(agent_id)
    demo.context.selection.show_everyone(on=is_everyone)
    assert page.whose.isVisible()
    assert page.whose.text == words
