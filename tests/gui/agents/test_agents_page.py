from PySide6.QtCore import QEvent, QPoint, Qt
from PySide6.QtGui import QAction, QFontMetrics
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLineEdit, QToolTip

from gatewright.policy.capability import CapabilityKind
from gatewright.policy.verdict import Permission, Verdict, pick_tools
from gatewright_gui.app.driver import lay_out
from gatewright_gui.pages.access.files.folder_tree import LEVEL
from gatewright_gui.pages.access.files.page import FilesPage
from gatewright_gui.pages.access.tools.rights_dialog import ResetDialog
from gatewright_gui.pages.access.tools.row_state import Asking, RowState, Switch
from gatewright_gui.pages.access.tools.source_bar import NO_SOURCE, NOTHING_AT_ALL
from gatewright_gui.pages.access.tools.tool_delegate import Part, name_left
from gatewright_gui.pages.access.tools.tool_fit import Filters, State
from gatewright_gui.pages.access.tools.tool_tree import ASKING, SHARE, STATE, SWITCH, SWITCH_TIP, Column
from gatewright_gui.pages.access.tools.tool_view import LEAST_FACT
from gatewright_gui.pages.access.tools.why import DETAILS, Step
from gatewright_gui.pages.policy_file import TextPage
from gatewright_gui.qt.look import current_look
from gatewright_gui.qt.widget.label import ElidedLabel
from gatewright_gui.session.verbs import agents, rights, sources
from gatewright_gui.window.main_window import MainWindow
from tests.gui.files.support import source_of
from tests.gui.session.opened import agents_page, agents_pane, cell, click, settled, ticked, until

ON, OFF, PART = Qt.CheckState.Checked, Qt.CheckState.Unchecked, Qt.CheckState.PartiallyChecked
TIP = Qt.ItemDataRole.ToolTipRole
NARROWEST_NAME = 240
"""Pixels for box, switch and a name."""


def counts(window: MainWindow) -> tuple[int, int]:
    """The number of operations that are on or ask first, and of all, as the chips of the page say it."""
    chips = agents_page(window).tools.tally.chips
    can, asks, cannot = (int(chips[key].text().split()[-1]) for key in (State.ON, State.ASKS, State.OFF))
    return can + asks, can + asks + cannot


def fact(window: MainWindow, tool: str, operation: str | None) -> str:
    """The fact at the right of a row."""
    return str(cell(window, tool, operation, Column.FACT).data())


def switch(window: MainWindow, tool: str, operation: str | None) -> Switch | None:
    """The lit half of the switch of a row; None where there is none."""
    found = cell(window, tool, operation).data(SWITCH)
    return None if found is None else Switch(found)


async def choose(window: MainWindow, agent_id: str, operation: str | None = None) -> None:
    window.selection.choose_agent(agent_id)
    if operation:
        agents_page(window).tools.show_row("file", operation)
    await settled(window)


def press(window: MainWindow, key: Qt.Key, modifier: Qt.KeyboardModifier = Qt.KeyboardModifier.AltModifier) -> None:
    QTest.keyClick(agents_page(window).tools.view, key, modifier)


async def test_click_on_a_box_turns_an_operation_off_and_undo_turns_it_on(window: MainWindow) -> None:
    await choose(window, "operator")
    before, every = counts(window)

    click(window, "file", "delete")

    assert ticked(window, "file", "delete") == OFF
    assert ticked(window, "file", None) == PART
    assert counts(window) == (before - 1, every)
    window.undo()
    assert ticked(window, "file", "delete") == ON


async def test_click_on_a_mixed_tool_turns_all_off_and_the_next_brings_back_what_was_on(window: MainWindow) -> None:
    await choose(window, "archivist")
    assert ticked(window, "file", None) == PART
    before = window.document.rights("archivist")["file"].shown

    click(window, "file", None)
    assert ticked(window, "file", None) == OFF
    click(window, "file", None)

    assert window.document.rights("archivist")["file"].shown == before
    assert ticked(window, "file", None) == PART


async def test_click_on_the_switch_makes_an_operation_ask_and_not_ask(window: MainWindow) -> None:
    await choose(window, "archivist")

    assert switch(window, "file", "read") is Switch.ON
    click(window, "file", "read", Part.ASK)
    assert switch(window, "file", "read") is Switch.ASK
    click(window, "file", "read", Part.ASK)
    assert switch(window, "file", "read") is Switch.ASK
    click(window, "file", "read", Part.ON)

    assert switch(window, "file", "read") is Switch.ON
    assert window.document.undo_stack.count() == 2


async def test_keys_allow_ask_and_deny_the_selection(window: MainWindow) -> None:
    await choose(window, "archivist", "load")

    press(window, Qt.Key.Key_D)
    assert switch(window, "file", "load") is None
    press(window, Qt.Key.Key_K)
    assert switch(window, "file", "load") is Switch.ASK
    press(window, Qt.Key.Key_K)
    assert switch(window, "file", "load") is Switch.ON
    press(window, Qt.Key.Key_K)
    press(window, Qt.Key.Key_A)
    assert switch(window, "file", "load") is Switch.ON
    press(window, Qt.Key.Key_Space, Qt.KeyboardModifier.NoModifier)
    assert ticked(window, "file", "load") == OFF


async def test_operation_that_asks_at_some_paths_shows_that_and_says_so_in_words(window: MainWindow) -> None:
    await choose(window, "archivist")
    said, row = cell(window, "file", "append", Column.FACT), cell(window, "file", "append")

    assert (said.data(), Asking(row.data(ASKING))) == ("6 of 12 files, 1 more asks", Asking.SOME)
    counted = "depends on the file: of 12 files 6 without asking, 1 asks first, 5 never"
    assert said.data(TIP) == f"{counted}\nclick: at which files"
    assert row.data(SWITCH_TIP).splitlines()[0] == "some of its calls ask first"
    assert cell(window, "file", "list").data(SWITCH_TIP).splitlines()[0] == "does not ask first"
    info = cell(window, "block", "info", Column.FACT)
    assert info.data(TIP).startswith("depends on the block: of 12 files and ")
    assert info.data().endswith(" files and blocks")
    assert fact(window, "recall", "search") == ""
    click(window, "file", "append", Part.ASK)
    assert (said.data(), Asking(row.data(ASKING))) == ("7 files, 5 never", Asking.YES)


async def test_new_files_are_counted_but_not_for_what_makes_files(window: MainWindow) -> None:
    await choose(window, "operator")
    create, save = cell(window, "file", "create", Column.FACT), cell(window, "file", "save", Column.FACT)
    folder = window.document.workspace.folder / "workspace"

    before = save.data(SHARE)
    assert save.data(TIP).splitlines()[0].startswith(f"depends on the file: {before.words}")
    assert (create.data(), create.data(SHARE)) == ("depends on the folder", None), "it never writes over a file"
    (folder / "drafts" / "run.md").write_text("1", "utf-8")
    (folder / "secrets" / "run.md").write_text("1", "utf-8")
    await leave_and_come_back(window)

    after = save.data(SHARE)
    assert (after.deny - before.deny, after.ask - before.ask, after.allow - before.allow) == (1, 0, 1)
    assert create.data(SHARE) is None


async def leave_and_come_back(window: MainWindow) -> None:
    for page in ("problems", "tools"):
        window.navigator.go_to_page(page)
    await settled(window)


def files_page(window: MainWindow) -> FilesPage:
    page = window.shelf.page("files")
    assert isinstance(page, FilesPage)
    return page


def column_of_levels(window: MainWindow) -> dict[str, str]:
    """The column of levels of the folder, by name, under its heading."""
    tree = files_page(window).tree_model
    heading = tree.headerData(LEVEL, Qt.Orientation.Horizontal)
    rows = (tree.index(row, 0) for row in range(tree.rowCount()))
    return {"": heading, **{row.data(): row.siblingAtColumn(LEVEL).data() for row in rows}}


async def test_click_on_by_path_shows_what_the_operation_comes_to_at_each_file(window: MainWindow) -> None:
    await choose(window, "archivist")

    click(window, "file", "append", Part.FILES)
    await settled(window)

    shown = column_of_levels(window)
    assert (shown[""], shown["drafts"], shown["inbox"]) == ("Verdict", "mixed", "ask first")
    assert (shown["notes"], shown["secrets"], shown["README.md"]) == ("allow", "deny", "deny")
    bar = files_page(window).folder.use_bar
    assert bar.text == "What `file.append` of `archivist` comes to at each file"
    QTest.keyClick(bar, Qt.Key.Key_Escape)
    assert column_of_levels(window)["notes"] == "add only"


async def test_menu_of_a_row_leads_to_its_files_which_follow_the_policy(window: MainWindow) -> None:
    await choose(window, "archivist", "append")
    QTest.keyClick(agents_page(window).tools.view, Qt.Key.Key_Menu)
    agents_page(window).tools.view.customContextMenuRequested.emit(QPoint(5, 5))
    action = window.findChild(QAction, "agents.files")
    assert action is not None
    action.trigger()
    await settled(window)
    assert column_of_levels(window)["README.md"] == "deny"

    sources.set_default_level(window.document, source_of(window.document), Permission.ADMIN)
    await settled(window)
    assert column_of_levels(window)["README.md"] == "allow"
    rights.tick_operations(window.document, "archivist", "file", ("append",), on=False)
    await settled(window)

    assert column_of_levels(window)[""] == "Level"


async def test_share_of_the_files_follows_the_policy_and_belongs_to_the_agent_that_is_shown(window: MainWindow) -> None:
    await choose(window, "archivist")
    read = cell(window, "file", "read", Column.FACT)
    assert (read.data(SHARE).allow, read.data(SHARE).deny) == (11, 1)

    sources.set_default_level(window.document, source_of(window.document), Permission.NONE)
    await settled(window)
    closed = read.data(SHARE)
    await choose(window, "newcomer")

    assert closed.deny > 1
    assert closed.files == 12
    assert cell(window, "file", "read").data(SHARE) is None


async def test_keys_work_on_many_rows_as_one_edit(window: MainWindow) -> None:
    await choose(window, "operator", "read")
    before, every = counts(window)
    view = agents_page(window).tools.view
    for _ in range(3):
        QTest.keyClick(view, Qt.Key.Key_Down, Qt.KeyboardModifier.ShiftModifier)

    press(window, Qt.Key.Key_D)

    assert counts(window) == (before - 4, every)
    assert window.document.undo_stack.undoText() == "turn off 4 operations of file for operator"
    assert window.toast.text == "turned off 4 operations of operator"
    window.toast.action_button.click()
    assert counts(window) == (before, every)
    assert window.impact.text.startswith("Undone: ")


async def test_letters_go_to_a_row_by_its_name_and_change_no_right(window: MainWindow) -> None:
    await choose(window, "operator")
    view = agents_page(window).tools.view

    QTest.keyClicks(view, "tra")

    assert view.current_row[0] == "tracker"
    assert not window.document.is_dirty


async def test_search_and_chips_filter_and_bulk_buttons_touch_only_what_is_shown(window: MainWindow) -> None:
    await choose(window, "operator")
    page = agents_page(window)
    page.focus_search()
    QTest.keyClicks(page.tools.search, "delete")
    assert not cell(window, "block", None).isValid()

    off = window.findChild(QAction, "agents.all_off")
    assert off is not None
    assert off.text() == f"Turn off the {page.tools.rows.shown_count} shown"
    off.trigger()

    shown = window.document.rights("operator")["file"].shown
    assert "delete" not in shown
    page.tools.show_all()
    page.tools.filters.set_filters(Filters(states=frozenset({State.OFF})))
    assert cell(window, "file", "delete").isValid()
    assert not cell(window, "file", "read").isValid()


async def test_search_without_a_hit_says_so_and_offers_to_show_all(window: MainWindow) -> None:
    tools = agents_page(window).tools
    tools.search.setText("no such thing anywhere")
    assert tools.nothing.isVisible()

    tools.nothing.action_button.click()

    assert tools.view.isVisible()
    assert tools.rows.tool_count == len(pick_tools(window.document.catalog, None))


async def test_reset_shows_what_it_would_open_before_it_gives_a_tool_its_own_defaults(window: MainWindow) -> None:
    await choose(window, "researcher", "read")
    before = window.document.policy
    reset = window.findChild(QAction, "agents.reset")
    assert reset is not None
    assert reset.text() == "Clear overrides of file…"

    reset.trigger()
    await until(lambda: bool(window.findChildren(ResetDialog)))
    (dialog,) = window.findChildren(ResetDialog)
    await until(lambda: dialog.edit is not None)
    lines = [dialog.changes.index(row, 1).data() for row in range(dialog.changes.rowCount())]
    assert "file.delete" in lines
    assert window.document.policy == before
    assert not dialog.agent_view.isVisible()

    dialog.accept_button.click()
    await until(lambda: window.document.policy != before)

    right = window.document.rights("researcher")["file"]
    assert len(right.ticked) == len(right.operations)
    assert ticked(window, "file", None) == PART  # `load` is ticked, and a policy rule turns it off
    assert window.document.undo_stack.undoText() == "reset file for researcher"
    window.undo()
    assert window.document.policy == before


async def test_tool_that_is_on_in_part_says_what_is_off_and_by_whom(window: MainWindow) -> None:
    await choose(window, "researcher")
    page = agents_page(window)
    page.tools.show_row("file", None)

    said = [step.text for step in page.inspector.why.model.rows]

    assert "in part: the model sees 2 of 13: ticked, yet load off by policy" in said


async def test_ticked_tool_without_a_source_shows_what_turns_it_off(window: MainWindow) -> None:
    await choose(window, "newcomer")
    agents_page(window).tools.show_row("file", "load")
    await settled(window)
    unticked = agents_page(window).preview.unsent.text()
    assert unticked.startswith("Hidden from the model: not ticked; besides: ")

    click(window, "file", None)
    await settled(window)

    assert RowState(cell(window, "file", "load").data(STATE)) is RowState.OVERRULED
    assert fact(window, "file", "load") == "no effect: needs a source"
    assert counts(window)[0] == 0
    agents_page(window).tools.show_row("file", "load")
    await settled(window)
    unsent = agents_page(window).preview.unsent.text()
    assert unsent.startswith("Hidden from the model: ")
    assert "not ticked" not in unsent
    assert unsent.endswith(". If it were on:")
    assert "source" in unsent
    assert '"delete"' in agents_page(window).preview.code.text


async def test_the_first_step_is_the_box_and_what_stops_a_ticked_one_comes_next(window: MainWindow) -> None:
    def told() -> list[str]:
        return [step.mark for step in agents_page(window).inspector.why.model.rows if step.mark not in DETAILS]

    await choose(window, "newcomer", "load")
    tick = agents_page(window).inspector.why.model.row_at(0)
    assert tick is not None
    assert tick.text == "not ticked: `file` is not among the tools of agent `newcomer`"

    click(window, "file", None)
    click(window, "file", "delete")
    await settled(window)

    agents_page(window).tools.show_row("file", "delete")
    assert told()[0] == "off"
    agents_page(window).tools.show_row("file", "load")
    assert told() == ["on", "stop"]
    agents_page(window).tools.show_row("file", None)
    assert told()[:2] == ["on", "stop"]


async def test_why_names_the_rule_and_a_click_goes_to_its_line(window: MainWindow) -> None:
    await choose(window, "archivist", "delete")
    why = agents_page(window).inspector.why
    stopped, reason = 0, why.model.rows[0]
    assert why.sentence.text() == "Off: not ticked."
    assert reason.mark == "off"
    assert reason.text.startswith("not ticked: ")
    assert reason.line is not None

    rect = why.view.visualRect(why.model.index(stopped, 0))
    QTest.mouseClick(why.view.viewport(), Qt.MouseButton.LeftButton, pos=rect.center())
    await settled(window)

    assert window.shelf.current_key == "text"
    page = window.shelf.page("text")
    assert isinstance(page, TextPage)
    selected = page.code.editor.textCursor().selectedText()
    assert selected == window.document.workspace.text().splitlines()[reason.line - 1]


async def test_preview_follows_the_boxes(window: MainWindow) -> None:
    await choose(window, "operator", "read")
    preview = agents_page(window).preview
    assert '"delete"' in preview.code.text

    click(window, "file", "delete")
    await settled(window)
    assert '"delete"' not in preview.code.text
    window.undo()
    await settled(window)
    assert '"delete"' in preview.code.text
    on, every = counts(window)
    shown = len(window.document.policy.agents["operator"].tools or ())
    tools = len(pick_tools(window.document.catalog, None))
    assert preview.counts.text == f"The model sees {shown} of {tools} tools, {on} of {every} operations"
    agents_page(window).inspector.show_part("sees")
    preview.part.set_current("difference")
    assert preview.empty.isVisible()


async def test_preview_shows_other_formats_and_all_tools(window: MainWindow) -> None:
    await choose(window, "archivist", "read")
    preview = agents_page(window).preview
    preview.scope.set_current("agent")
    preview.choose_format("anthropic")
    await settled(window)

    assert "input_schema" in preview.code.text
    assert '"block"' in preview.code.text
    preview.part.set_current("rules")
    assert preview.code.text.startswith("## Tool Usage Rules")


async def test_added_agent_can_be_named_at_once_and_may_do_nothing(window: MainWindow) -> None:
    pane = agents_pane(window)
    pane.add()
    field = window.findChild(QLineEdit, "agents.list.name")
    assert field is not None
    field.setText("scribe")
    QTest.keyClick(field, Qt.Key.Key_Return)
    await settled(window)

    assert window.selection.agent_id == "scribe"
    assert list(window.document.policy.agents)[-1] == "scribe"
    assert {op.verdict for right in window.document.rights("scribe").values() for op in right.operations} == {
        Verdict.DENY
    }
    window.undo()
    assert window.selection.agent_id == "agent"


async def test_removed_agent_comes_back_by_undo(window: MainWindow) -> None:
    await choose(window, "newcomer")
    agents_pane(window).remove()

    assert "newcomer" not in window.document.policy.agents
    assert window.selection.agent_id == "operator"
    window.undo()
    assert list(window.document.policy.agents) == ["archivist", "researcher", "operator", "newcomer"]
    assert window.selection.agent_id == "newcomer"

    agents_pane(window).remove()
    window.selection.choose_agent("archivist")
    window.undo()
    assert window.selection.agent_id == "archivist", "somebody chose another one meanwhile"


async def test_without_agents_the_page_offers_to_add_one(window: MainWindow) -> None:
    page = agents_page(window)
    agents_pane(window).view.selectAll()
    agents_pane(window).remove()
    assert page.nobody.isVisible()
    assert page.main_view() is page.nobody.action_button

    QTest.mouseClick(page.nobody.action_button, Qt.MouseButton.LeftButton)
    field = window.findChild(QLineEdit, "agents.list.name")
    assert field is not None
    field.setText("scribe")
    QTest.keyClick(field, Qt.Key.Key_Return)
    await settled(window)
    assert list(window.document.policy.agents) == ["scribe"]
    assert page.tools.view.isVisible()


async def test_escape_in_the_name_of_a_new_agent_takes_it_back_and_of_another_leaves_it(window: MainWindow) -> None:
    pane = agents_pane(window)
    before = window.document.policy
    pane.add()
    field = window.findChild(QLineEdit, "agents.list.name")
    assert field is not None
    assert field.selectedText() == "agent"
    await settled(window)
    assert field.selectedText() == "agent"  # counts and problems of the row came meanwhile

    QTest.keyClick(field, Qt.Key.Key_Escape)
    await until(lambda: window.document.policy == before)
    assert pane.view.selectionModel().hasSelection()

    window.redo()
    await settled(window)
    window.selection.choose_agent("agent")
    pane.rename()
    again = pane.view.findChild(QLineEdit, "agents.list.name")
    assert again is not None
    QTest.keyClick(again, Qt.Key.Key_Escape)
    await settled(window)
    assert "agent" in window.document.policy.agents


async def test_buttons_for_all_say_whether_they_mean_what_is_shown(window: MainWindow) -> None:
    await choose(window, "newcomer")
    tools = agents_page(window).tools
    every = window.findChild(QAction, "agents.all_on")
    assert every is not None
    assert every.text() == "Turn on all"
    tools.search.setText("block_edit")
    await settled(window)
    assert every.text() == f"Turn on the {tools.rows.shown_count} shown"
    tools.preset_menu.aboutToShow.emit()
    assert every in tools.preset_menu.actions()

    every.trigger()
    await settled(window)

    assert window.document.policy.agents["newcomer"].tools == ("block_edit",)
    tools.show_all()
    assert every.text() == "Turn on all"


async def test_filter_that_fits_nothing_leaves_what_was_chosen(window: MainWindow) -> None:
    await choose(window, "archivist", "load")
    tools = agents_page(window).tools
    tools.search.setText("no such thing anywhere")
    await settled(window)
    assert (window.selection.tool, window.selection.operation) == ("file", "load")

    tools.show_all()

    assert tools.view.current_row == ("file", "load")


async def test_grant_that_reaches_nothing_is_said_where_the_tool_is_allowed(window: MainWindow) -> None:
    await choose(window, "archivist")
    tools = agents_page(window).tools
    click(window, "file_search", None)
    assert fact(window, "file_search", None) == "no effect: needs read access"
    agents.grant(window.document, "archivist", CapabilityKind.FS_READ, "notes")
    tools.view.show_row("file_search", None)
    await settled(window)

    why = agents_page(window).inspector.why
    texts = [step.text for step in why.model.rows]

    assert any("reaches nothing of `desk` and `tmp`" in text for text in texts)
    assert "capability: FsRead reaches no further than `notes`" in texts
    assert "works on desk" in cell(window, "file_search", None).data(Qt.ItemDataRole.ToolTipRole)
    assert agents.scope_example(window.document, CapabilityKind.FS_READ) == "desk, tmp"


async def test_description_is_changed_when_the_field_is_left(window: MainWindow) -> None:
    await choose(window, "archivist")
    field = agents_page(window).tools.description
    field.setFocus()
    field.selectAll()
    QTest.keyClicks(field, "Keeps order")
    QTest.keyClick(field, Qt.Key.Key_Return)

    assert window.document.policy.agents["archivist"].description == "Keeps order"
    assert window.document.undo_stack.undoText() == "describe archivist"


async def test_same_row_stays_current_when_another_agent_is_chosen(window: MainWindow) -> None:
    await choose(window, "archivist", "load")
    window.selection.choose_agent("operator")

    assert (window.selection.tool, window.selection.operation) == ("file", "load")


def is_open(window: MainWindow, tool: str) -> bool:
    return agents_page(window).tools.view.isExpanded(cell(window, tool, None))


async def test_tools_that_a_search_hid_come_back_as_they_were(window: MainWindow) -> None:
    tools = agents_page(window).tools
    await choose(window, "operator", "read")
    tools.view.open_tools({"file"})
    tools.search.setText("file")
    tools.search.clear()
    assert is_open(window, "file")
    assert not is_open(window, "block")

    tools.view.open_tools({"block", "file"})
    tools.search.setText("delete")
    tools.search.clear()

    assert is_open(window, "block")


async def test_name_that_is_refused_is_said_in_the_field_and_stays_there(window: MainWindow) -> None:
    agents = agents_pane(window)
    agents.add()
    field = agents.view.findChild(QLineEdit, "agents.list.name")
    assert field is not None
    QTest.keyClicks(field, "operator")
    assert field.property("kind") == "error"
    assert "exists already" in QToolTip.text()

    QTest.keyClick(field, Qt.Key.Key_Return)
    assert field.isVisible()
    field.selectAll()
    QTest.keyClicks(field, "steward")
    QTest.keyClick(field, Qt.Key.Key_Return)
    await until(lambda: window.selection.agent_id == "steward")

    assert "steward" in window.document.policy.agents
    assert not window.message.isVisible()


def advice(window: MainWindow) -> str:
    hint = window.findChild(ElidedLabel, "agents.hint")
    assert hint is not None
    return hint.text


def choose_source(window: MainWindow, text: str) -> None:
    """Open the menu of sources and choose the entry that begins so."""
    menu = agents_page(window).tools.sources.menu
    menu.aboutToShow.emit()
    next(action for action in menu.actions() if action.text().startswith(text)).trigger()


async def test_new_agent_is_told_what_to_do_next(window: MainWindow) -> None:
    await choose(window, "operator")
    assert advice(window) == ""
    agents_pane(window).add()
    await settled(window)
    assert advice(window) == NOTHING_AT_ALL

    click(window, "file", "read")
    assert advice(window) == NO_SOURCE
    choose_source(window, "archive")

    assert advice(window) == ""
    assert switch(window, "file", "read") is Switch.ON


async def test_advice_that_comes_and_goes_does_not_move_the_rows_under_the_mouse(window: MainWindow) -> None:
    agents_pane(window).add()
    await settled(window)
    tools = agents_page(window).tools
    before = (tools.view.mapTo(window, QPoint(0, 0)), tools.sources.button.pos())

    click(window, "file", "read")
    await settled(window)
    assert advice(window) != ""
    choose_source(window, "archive")
    await settled(window)

    assert advice(window) == ""
    assert (tools.view.mapTo(window, QPoint(0, 0)), tools.sources.button.pos()) == before


async def test_sources_of_an_agent_are_named_and_taken_away_and_undone(window: MainWindow) -> None:
    await choose(window, "archivist")
    button = agents_page(window).tools.sources.button
    assert button.text().strip() == "archive"

    choose_source(window, "archive")

    assert button.text().strip() == "none"
    assert fact(window, "file", "read") == "no effect: needs a source"
    assert window.document.undo_stack.undoText() == "take archive from archivist"
    window.undo()
    assert button.text().strip() == "archive"
    assert switch(window, "file", "read") is Switch.ON


async def test_click_on_a_box_makes_why_and_preview_speak_of_its_row(window: MainWindow) -> None:
    await choose(window, "operator", "read")

    click(window, "file", "delete")

    assert agents_page(window).tools.view.current_row == ("file", "delete")
    assert agents_page(window).inspector.why.model.rowCount() > 0


async def test_names_of_tools_stay_readable_in_a_narrow_window(window: MainWindow) -> None:
    tools = agents_page(window).tools
    for width in (1600, 1024):
        window.resize(width, 640)
        await until(lambda width=width: window.width() == width)
        assert tools.view.columnWidth(Column.NAME) >= NARROWEST_NAME
        assert tools.view.columnWidth(Column.FACT) >= LEAST_FACT
        assert tools.view.horizontalScrollBar().maximum() == 0, "columns are cut"


async def test_description_stands_beside_the_name_and_a_search_marks_where_it_found_its_words(
    window: MainWindow,
) -> None:
    await choose(window, "operator")
    tools = agents_page(window).tools
    accent, muted = current_look().palette.accent.fg, current_look().palette.muted
    assert muted in colours_behind_the_name(window, "file_list")
    assert accent not in colours_behind_the_name(window, "file_list")

    for word in ("folder", "begins"):  # both in its description alone, the second beyond what there is room for
        tools.search.setText(word)
        assert accent in colours_behind_the_name(window, "file_list"), word

    tools.search.clear()
    assert accent not in colours_behind_the_name(window, "file_list")


def colours_behind_the_name(window: MainWindow, tool: str) -> set[str]:
    view = agents_page(window).tools.view
    view.scrollTo(cell(window, tool, None))
    view.clearSelection()
    rect = view.visualRect(cell(window, tool, None))
    rect.setLeft(name_left(rect) + QFontMetrics(view.font()).boundingRect(tool).width() + 16)
    picture = view.viewport().grab(rect.adjusted(0, 2, -4, -2)).toImage()
    return {picture.pixelColor(x, y).name() for x in range(picture.width()) for y in range(picture.height())}


async def test_inspector_stays_open_while_the_window_becomes_smaller_and_larger(window: MainWindow) -> None:
    page, shown = agents_page(window), list[bool]()
    await choose(window, "archivist")
    page.inspector_button.toggled.connect(shown.append)
    for width in (1024, 1280):
        window.resize(width, 768)
        lay_out()
        assert page.inspector.isVisible()
        assert agents_pane(window).isVisible() is (width == 1280)
    assert not shown, "it neither closed nor opened on the way"


async def test_tool_that_is_hidden_does_not_push_the_tree_aside(window: MainWindow) -> None:
    page = agents_page(window)
    page.inspector.show_part("sees")
    window.resize(1024, 640)
    await choose(window, "archivist")
    await until(lambda: page.inspector.isVisible() and page.tools.width() + page.inspector.width() < page.width())
    before = page.tools.width()

    await choose(window, "newcomer")
    QApplication.sendPostedEvents(None, QEvent.Type.LayoutRequest.value)

    assert page.preview.unsent.isVisible()
    assert page.tools.width() == before


async def test_long_description_is_shortened_and_whole_in_the_tooltip(window: MainWindow) -> None:
    await choose(window, "operator")
    field = agents_page(window).tools.description
    window.resize(1024, 640)
    field.setFocus()
    QTest.keyClicks(field, ", and tells those who asked for it what became of it")
    QTest.keyClick(field, Qt.Key.Key_Return)
    await settled(window)
    await until(lambda: field.shown_text.endswith("…"))
    assert field.toolTip() == field.text() == window.document.policy.agents["operator"].description


async def test_long_reason_is_wrapped_and_names_the_file(window: MainWindow) -> None:
    await choose(window, "operator", "delete")
    click(window, "file", "delete")
    await settled(window)
    why = agents_page(window).inspector.why

    step = why.model.rows[0]
    assert step.file == "policy.toml"
    assert f"policy.toml:{step.line}" in why.model.index(0, 0).data(Qt.ItemDataRole.ToolTipRole)
    why.model.set_steps((step, Step("rest", "nothing else limits it")))
    assert why.view.visualRect(why.model.index(0, 0)).height() > why.view.visualRect(why.model.index(1, 0)).height()


async def test_an_agent_is_added_by_its_keys_from_all_over_the_page(window: MainWindow) -> None:
    page = agents_page(window)
    places = [
        agents_pane(window).view,
        page.tools.view,
        page.tools.search,
        page.preview.table,
        agents_pane(window).everyone,
    ]
    window.selection.show_everyone(on=True)
    window.selection.show_everyone(on=False)
    await settled(window)
    for place in [*places, page.matrix.view]:
        window.selection.show_everyone(on=place is page.matrix.view)
        place.setFocus()
        before = len(window.document.agents)

        QTest.keyClick(place, Qt.Key.Key_N, Qt.KeyboardModifier.ControlModifier)

        assert len(window.document.agents) == before + 1, place.objectName()
        window.undo()
        await settled(window)


async def test_a_copy_named_by_enter_is_copied_by_the_same_keys_again(window: MainWindow) -> None:
    agents_pane(window).view.setFocus()
    before = len(window.document.agents)

    for count in range(1, 4):
        QTest.keyClick(window.focusWidget(), Qt.Key.Key_D, Qt.KeyboardModifier.ControlModifier)
        QTest.keyClick(window.focusWidget(), Qt.Key.Key_Return)
        await settled(window)

        assert len(window.document.agents) == before + count
        assert agents_pane(window).choice() == (window.selection.agent_id,)
        assert agents_pane(window).view.hasFocus()
