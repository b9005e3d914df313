"""Small widgets, driven by keys and mouse."""

from typing import TypeVar

import pytest
from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtGui import QGuiApplication, QTextLayout
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel, QLineEdit, QPushButton, QWidget
from pytestqt.qtbot import QtBot

from gatewright_gui.qt.linediff import letter_changes, line_numbers
from gatewright_gui.qt.look import tie_icon
from gatewright_gui.qt.widget import (
    CodeView,
    ElidedLabel,
    EmptyState,
    IconButton,
    IconRail,
    MessageBar,
    NumberField,
    ProgressStrip,
    SearchField,
    SectionHeader,
    Segmented,
    Splitter,
    TableView,
    Toast,
    TreeView,
    VerdictBadge,
)
from gatewright_gui.theme import Theme
from gatewright_gui.theme.tokens import DARK, LIGHT
from tests.gui.foundation.drive import values
from tests.gui.session.opened import turn_until

pytestmark = pytest.mark.usefixtures("theme")


W = TypeVar("W", bound=QWidget)


def shown(qtbot: QtBot, widget: W) -> W:
    qtbot.addWidget(widget)
    widget.show()
    return widget


def test_search_escape_clears_first_and_leaves_second(qtbot: QtBot) -> None:
    field = shown(qtbot, SearchField("Filter tools"))
    QTest.keyClicks(field, " file ")
    with qtbot.waitSignal(field.search_changed) as cleared:
        QTest.keyClick(field, Qt.Key.Key_Escape)
    assert values(cleared) == [""]
    assert field.text() == ""
    with qtbot.waitSignal(field.leave_requested):
        QTest.keyClick(field, Qt.Key.Key_Escape)


def test_search_says_the_text_without_spaces_around(qtbot: QtBot) -> None:
    field = shown(qtbot, SearchField())
    said: list[object] = []
    field.search_changed.connect(said.append)
    QTest.keyClicks(field, " a ")
    assert said == ["", "a", "a"]


def test_search_down_leads_to_the_results(qtbot: QtBot) -> None:
    field = shown(qtbot, SearchField())
    with qtbot.waitSignal(field.results_requested):
        QTest.keyClick(field, Qt.Key.Key_Down)


def test_path_is_cut_in_the_middle_and_whole_in_the_tooltip(qtbot: QtBot) -> None:
    path = "/workspaces/archive/notes/2026/first-light.md"
    label = shown(qtbot, ElidedLabel(path, path=True))
    label.resize(150, 20)
    assert label.shown_text.startswith("/w")
    assert label.shown_text.endswith(".md")
    assert label.toolTip() == path
    label.resize(label.sizeHint())
    assert label.shown_text == path
    assert label.toolTip() == ""
    label.set_text("4")
    label.resize(3, 20)
    assert label.shown_text == ""  # no piece of a figure
    assert label.toolTip() == "4"


def test_badge_says_the_verdict_in_words_too(qtbot: QtBot) -> None:
    badge = shown(qtbot, VerdictBadge("ask"))
    assert badge.accessibleName() == "ask first"
    badge.set_verdict("deny")
    assert (badge.verdict, badge.text) == ("deny", "deny")


def test_empty_state_offers_its_action(qtbot: QtBot) -> None:
    state = shown(qtbot, EmptyState("folder", "No rules yet", "Add one to begin", action="Add rule"))
    with qtbot.waitSignal(state.action_requested):
        QTest.mouseClick(state.action_button, Qt.MouseButton.LeftButton)
    state.set_state("folder", "Nothing here", "Wait")
    assert state.action_button.isHidden()


def test_message_bar_closes_with_escape_and_button(qtbot: QtBot) -> None:
    page = shown(qtbot, QWidget())
    bar = MessageBar(page)
    assert bar.isHidden()
    bar.show_message("error", "line 3: unknown operation", action="Show")
    assert bar.accessibleName() == "error: line 3: unknown operation"
    with qtbot.waitSignal(bar.closed):
        QTest.keyClick(bar, Qt.Key.Key_Escape)
    bar.show_message("info", "again")
    with qtbot.waitSignal(bar.closed):
        QTest.mouseClick(bar.close_button, Qt.MouseButton.LeftButton)
    assert bar.isHidden()


def test_toast_stays_at_the_foot_when_the_window_grows(qtbot: QtBot) -> None:
    window = shown(qtbot, QWidget())
    window.resize(600, 400)
    toast = Toast(window)
    toast.show_note("Exported")
    before = toast.y()
    window.resize(600, 700)
    turn_until(lambda: toast.y() == before + 300, "the note to come down")


class Sizes:
    def __init__(self) -> None:
        self.kept: dict[str, tuple[int, ...]] = {}

    def splitter_sizes(self, key: str) -> tuple[int, ...] | None:
        return self.kept.get(key)

    def set_splitter_sizes(self, key: str, sizes: tuple[int, ...]) -> None:
        self.kept[key] = sizes


def make_splitter(qtbot: QtBot, store: Sizes) -> Splitter:
    splitter = Splitter(Qt.Orientation.Horizontal, "agents", store)
    for _ in range(2):
        splitter.addWidget(QWidget())
    splitter.resize(605, 100)
    splitter.restore((200, 400))
    return shown(qtbot, splitter)


def test_splitter_keeps_its_sizes_for_the_next_start(qtbot: QtBot) -> None:
    store = Sizes()
    first = make_splitter(qtbot, store)
    assert first.sizes() == [200, 400]
    handle = first.handle(1)
    QTest.mousePress(handle, Qt.MouseButton.LeftButton, pos=QPoint(2, 50))
    QTest.mouseMove(handle, QPoint(102, 50))
    QTest.mouseRelease(handle, Qt.MouseButton.LeftButton, pos=QPoint(2, 50))
    assert first.sizes() == [300, 300]
    assert make_splitter(qtbot, store).sizes() == [300, 300]


def test_splitter_ignores_sizes_for_another_number_of_panes(qtbot: QtBot) -> None:
    store = Sizes()
    store.kept["agents"] = (1, 2, 3)
    assert make_splitter(qtbot, store).sizes() == [200, 400]


def make_rail(qtbot: QtBot) -> IconRail:
    rail = IconRail()
    for key in ("agents", "files", "audit"):
        rail.add_page(key, "bot", key.capitalize())
    return shown(qtbot, rail)


def test_rail_is_walked_with_arrow_keys_past_disabled_pages(qtbot: QtBot) -> None:
    rail = make_rail(qtbot)
    rail.button("files").setEnabled(False)
    with qtbot.waitSignal(rail.current_changed) as changed:
        QTest.keyClick(rail.button("agents"), Qt.Key.Key_Down)
    assert values(changed) == ["audit"]
    QTest.keyClick(rail.button("audit"), Qt.Key.Key_Home)
    assert rail.current == "agents"


def test_rail_counts_are_in_the_accessible_name(qtbot: QtBot) -> None:
    rail = make_rail(qtbot)
    rail.set_badge("files", 3, "deny")
    assert rail.button("files").accessibleName() == "Files, 3"
    rail.set_badge("files", 3, "deny", "3 errors, 9 warnings", "ask")
    assert rail.button("files").accessibleName() == "Files, 3 errors, 9 warnings"
    rail.set_badge("files", 0)
    assert rail.button("files").accessibleName() == "Files"


def test_segments_exclude_each_other(qtbot: QtBot) -> None:
    group = Segmented("Format")
    for key in ("mcp", "openai"):
        group.add_segment(key, key)
    shown(qtbot, group)
    with qtbot.waitSignal(group.current_changed) as changed:
        QTest.mouseClick(group.button("openai"), Qt.MouseButton.LeftButton)
    assert values(changed) == ["openai"]
    QTest.keyClick(group.button("openai"), Qt.Key.Key_Left)
    assert group.current == "mcp"


def test_progress_can_be_cancelled(qtbot: QtBot) -> None:
    page = shown(qtbot, QWidget())
    strip = ProgressStrip(page)
    strip.start("Colouring files", at_once=True)
    assert strip.isVisible()
    with qtbot.waitSignal(strip.cancel_requested):
        QTest.mouseClick(strip.cancel_button, Qt.MouseButton.LeftButton)
    strip.stop()
    assert strip.isHidden()


def test_short_work_never_shows_the_strip(qtbot: QtBot) -> None:
    page = shown(qtbot, QWidget())
    strip = ProgressStrip(page)
    strip.start("Quick")
    strip.stop()
    assert strip.isHidden()
    assert not any(timer.isActive() for timer in (strip._appear, strip._motion))  # pyright: ignore[reportPrivateUsage]


def colours(view: CodeView, line: int) -> dict[str, str]:
    """Text of each highlighted piece of a line -> its colour."""
    block = view.editor.document().findBlockByNumber(line)
    ranges: list[QTextLayout.FormatRange] = block.layout().formats()
    text = block.text().encode("utf-16-le")
    return {
        text[2 * r.start : 2 * (r.start + r.length)].decode("utf-16-le"): r.format.foreground().color().name()
        for r in ranges
    }


def test_code_is_coloured_and_recoloured(qtbot: QtBot, theme: Theme, qapp: QApplication) -> None:
    view = shown(qtbot, CodeView("Schema"))
    view.set_json('{\n "name": "file"\n}')
    assert colours(view, 1)['"name"'] == LIGHT.syntax.key
    assert colours(view, 1)['"file"'] == LIGHT.syntax.string
    theme.apply(qapp, "dark")
    assert colours(view, 1)['"name"'] == DARK.syntax.key
    view.set_toml("# note\nlimit = 5")
    assert colours(view, 0)["# note"] == DARK.syntax.comment
    assert colours(view, 1)["5"] == DARK.syntax.number


def test_colours_stay_in_place_behind_letters_beyond_the_first_plane(qtbot: QtBot) -> None:
    view = shown(qtbot, CodeView("Schema"))
    view.set_json('{"\U0001f600": "x", "b": 1}')
    assert colours(view, 0)['"b"'] == LIGHT.syntax.key


def test_new_text_keeps_the_place_that_is_in_view(qtbot: QtBot) -> None:
    view = shown(qtbot, CodeView("Schema"))
    view.resize(300, 200)
    lines = [f'"line {n}": {n},' for n in range(300)]
    view.set_json("\n".join(lines))
    bar = view.editor.verticalScrollBar()
    bar.setValue(150)
    lines[3] = '"changed": 0,'
    view.set_json("\n".join(lines))
    assert bar.value() == 150
    assert view.editor.toPlainText() == "\n".join(lines)


def test_find_bar_counts_and_walks_hits(qtbot: QtBot) -> None:
    view = shown(qtbot, CodeView("Schema"))
    view.set_json("type\nname\ntype\ntype")
    QTest.keyClick(view.editor, Qt.Key.Key_F, Qt.KeyboardModifier.ControlModifier)
    assert view.find_bar.isVisible()
    QTest.keyClicks(view.find_bar.field, "type")
    assert view.find_bar.hits == 3
    QTest.keyClick(view.find_bar.field, Qt.Key.Key_Return)
    assert view.find_bar.count.text() == "2 of 3"
    assert view.editor.textCursor().blockNumber() == 2
    QTest.keyClick(view.find_bar.field, Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    assert view.find_bar.count.text() == "1 of 3"
    QTest.keyClick(view.find_bar.field, Qt.Key.Key_Escape)
    assert view.find_bar.isHidden()
    assert view.editor.extraSelections() == []


def test_copy_button_copies_the_whole_text(qtbot: QtBot) -> None:
    view = shown(qtbot, CodeView("Schema"))
    view.set_diff("-a\n+b")
    QTest.mouseClick(view.copy_button, Qt.MouseButton.LeftButton)
    assert QGuiApplication.clipboard().text() == "-a\n+b"


def test_line_is_brought_into_view(qtbot: QtBot) -> None:
    view = shown(qtbot, CodeView("TOML"))
    view.resize(300, 200)
    view.set_toml("\n".join(f"a{n} = {n}" for n in range(500)))
    view.go_to_line(400)
    assert view.editor.textCursor().selectedText() == "a399 = 399"
    assert view.editor.viewport().rect().contains(view.editor.cursorRect())
    view.go_to_line(9999)
    assert view.editor.textCursor().selectedText() == "a399 = 399"


def test_code_cannot_be_edited(qtbot: QtBot) -> None:
    view = shown(qtbot, CodeView("TOML"))
    view.set_toml("a = 1")
    QTest.keyClicks(view.editor, "xyz")
    assert view.editor.toPlainText() == "a = 1"


def test_tree_rows_have_the_height_of_the_house(theme: Theme, qtbot: QtBot) -> None:
    from PySide6.QtGui import QStandardItem, QStandardItemModel

    tree = TreeView("Tools")
    model = QStandardItemModel(tree)
    model.appendRow(QStandardItem("file"))
    tree.setModel(model)
    tree.setCurrentIndex(model.index(0, 0))
    theme.dress(shown(qtbot, tree))
    assert tree.visualRect(model.index(0, 0)).height() == 26


def test_everything_one_can_operate_has_an_accessible_name(qtbot: QtBot) -> None:
    made: list[QWidget] = [
        SearchField(),
        ElidedLabel("x"),
        VerdictBadge("allow"),
        EmptyState("folder", "Title", "advice"),
        CodeView("Code"),
        SectionHeader("Title"),
        IconButton("x", "Close"),
        make_rail(qtbot),
        Segmented("Format"),
        TableView("Rules"),
        NumberField("Max calls", 0, 9),
    ]
    for widget in made:
        qtbot.addWidget(widget)
        assert widget.accessibleName(), type(widget).__name__


def test_controls_keep_clear_of_each_other_in_a_header(qtbot: QtBot) -> None:
    header = SectionHeader("Tools", "3 of 5 on")
    for name in ("Reset", "Expand"):
        header.add_control(IconButton("x", name))
    shown(qtbot, header)
    header.resize(400, 40)
    places = [QRect(child.geometry()) for child in header.findChildren(IconButton)]
    assert not places[0].intersects(places[1])
    assert [label.text() for label in header.findChildren(QLabel)] == ["Tools"]
    assert [label.shown_text for label in header.findChildren(ElidedLabel)] == ["3 of 5 on"]
    assert not header.findChildren(QLineEdit)


def test_long_note_of_a_header_gives_way_instead_of_widening_the_window(qtbot: QtBot) -> None:
    header = shown(qtbot, SectionHeader("Policy file", "/a/long/way" * 30, note_is_path=True))
    assert header.minimumSizeHint().width() < 250


def test_lines_of_a_difference_have_the_numbers_of_the_file_and_what_tells_the_place_has_none() -> None:
    assert line_numbers("@@ -7,2 +8,3 @@\n a\n-b\n+c\n+d\n@@ -40 +42 @@ x\n-e\n") == (
        *("", "8", "8", "9", "10"),
        *("", "40", ""),
    )
    assert line_numbers("-a\n+b") == ()


def test_changed_letters_are_those_between_what_two_lines_share() -> None:
    diff = "@@ -1 +1 @@\n-  at most 40 calls\n+  at most 5 calls\n-gone\n unchanged\n+new\n"
    found = [(one.line, one.start, one.end, one.is_added) for one in letter_changes(diff)]
    assert found == [(1, 11, 13, False), (2, 11, 12, True)]


def test_changed_letters_of_a_diff_stand_on_a_stronger_ground(qtbot: QtBot) -> None:
    view = shown(qtbot, CodeView("Difference"))
    view.set_diff("-max 40 calls\n+max 5 calls\n")
    marks = [mark.cursor.selectedText() for mark in view.editor.extraSelections()]
    assert marks == ["40", "5"]
    view.set_json("{}")
    assert not view.editor.extraSelections()


def test_wrapped_text_keeps_clear_of_the_buttons_in_the_corner(qtbot: QtBot) -> None:
    view = shown(qtbot, CodeView("Schema"))
    view.resize(300, 200)
    view.set_plain("word " * 200)
    view.wrap_button.click()
    assert view.editor.horizontalScrollBar().maximum() == 0
    right = view.editor.viewport().mapTo(view, QPoint(view.editor.viewport().width(), 0)).x()
    assert right <= view.copy_button.x()


def test_no_line_of_code_is_cut_by_the_lower_edge(qtbot: QtBot) -> None:
    view = shown(qtbot, CodeView("Schema"))
    view.set_plain("\n".join(f"line {number} {'x' * 300}" for number in range(100)))
    margin = round(view.editor.document().documentMargin())
    line = round(view.editor.blockBoundingRect(view.editor.document().findBlockByNumber(1)).height())
    for height in (200, 207, 211):
        view.resize(300, height)
        assert (view.editor.viewport().height() - margin) % line == 0


def test_empty_state_without_advice_is_quiet(qtbot: QtBot) -> None:
    state = shown(qtbot, EmptyState("folder", "Nothing here", ""))
    labels = [label.text() for label in state.findChildren(QLabel) if label.isVisible() and label.text()]
    assert labels == ["Nothing here"]


def test_words_of_a_button_keep_clear_of_its_icon(qtbot: QtBot, theme: Theme) -> None:
    button = shown(qtbot, QPushButton("Export..."))
    tie_icon(button, "upload")
    size = button.icon().actualSize(button.iconSize())
    assert (size.width(), size.height()) == (20, 16)
    picture = button.icon().pixmap(button.iconSize()).toImage()
    assert all(picture.pixelColor(x, y).alpha() == 0 for x in range(16, 20) for y in range(16))
