"""Which tool the request names: it stays by its name, those that are not shown can be tried, arguments go along."""

import json
from collections.abc import AsyncIterator

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLineEdit, QListView

from gatewright_gui.pages.trial import TrialPage
from gatewright_gui.pages.trial.file_choice import BrowseDialog
from gatewright_gui.pages.trial.request import RequestPanel
from gatewright_gui.pages.trial.tool_choice import HIDDEN, UNKNOWN, ToolChoice
from gatewright_gui.session.call_paths import FileChoice, FileChoices
from gatewright_gui.session.verbs import rights
from gatewright_gui.theme import Theme
from tests.gui.dress import dressed
from tests.gui.files.support import Opened, until


@pytest.fixture
async def page(demo: Opened) -> AsyncIterator[TrialPage]:
    demo.context.selection.choose_agent("archivist")
    made = dressed(TrialPage(demo.context))
    made.resize(1228, 720)
    made.show()
    made.page_shown()
    await loaded(made)
    yield made
    made.console.close()
    made.close()
    made.deleteLater()


async def loaded(page: TrialPage) -> None:
    await until(lambda: "console.tools" not in page._context.tasks.names)  # pyright: ignore[reportPrivateUsage]


def press(panel: RequestPanel, name: str) -> None:
    """Choose a tool from the list, as a click does."""
    panel.tool.setCurrentIndex(panel.tool.findText(name))
    panel.tool.activated.emit(panel.tool.currentIndex())


async def test_tool_and_its_json_stay_when_tools_come_and_go(demo: Opened, page: TrialPage) -> None:
    request = page.request
    request.mode.set_current("json")
    press(request, "file")
    request.raw.set_text('{"op": "read", "path": "README.md"}')
    page.hide()
    demo.context.selection.choose_tool("block")
    assert rights.tick_tool(demo.document, "archivist", "block", on=False)
    demo.document.undo()
    page.show()
    page.page_shown()
    await loaded(page)
    assert request.tool_name == "file"
    assert json.loads(request.raw.text) == {"op": "read", "path": "README.md"}
    assert rights.tick_tool(demo.document, "archivist", "file", on=False)
    await until(lambda: request.note)
    assert request.tool_name == "file"
    assert request.note.startswith("not shown to the model: ")
    assert json.loads(request.raw.text) == {"op": "read", "path": "README.md"}


async def test_tools_that_are_not_shown_come_after_the_others_and_have_a_form(page: TrialPage) -> None:
    request = page.request
    names = [request.tool.itemText(row) for row in range(request.tool.count())]
    headings = [
        name
        for row, name in enumerate(names)
        if not request.tool.model().index(row, 0).flags() & Qt.ItemFlag.ItemIsEnabled
    ]
    assert headings == [
        "",
        "Built-in tools",
        "station, program",
        f"Built-in tools · {HIDDEN}",
        f"station, program · {HIDDEN}",
    ]
    order = [names.index(name) for name in ("file", headings[2], "tracker", headings[3], "file_write", headings[4])]
    assert order == sorted(order)
    press(request, "file_write")
    assert request.form.isVisible()
    assert request.form.editor("path") is not None
    assert "`file_write`" in request.note
    press(request, "file")
    assert request.note == ""


def offered(tool: ToolChoice) -> list[str]:
    """What is in view of the open list, from the top."""
    view = tool.view()
    assert isinstance(view, QListView)
    return [tool.itemText(row) for row in range(tool.count()) if not view.isRowHidden(row)]


def list_key(tool: ToolChoice, *keys: str | Qt.Key) -> None:
    """Into the open list."""
    for key in keys:
        if isinstance(key, str):
            QTest.keyClicks(tool.view(), key)
        else:
            QTest.keyClick(tool.view(), key)


@pytest.mark.parametrize("mode", ["form", "json"])
async def test_typing_in_the_open_list_finds_a_tool_by_its_name_or_its_catalog(
    demo: Opened, page: TrialPage, mode: str
) -> None:
    tool = page.request.tool
    page.request.mode.set_current(mode)
    before, every = tool.name, len({facts.name for facts in demo.document.catalog})
    whole = [tool.itemText(row) for row in range(1, tool.count())]
    tool.setFocus()
    tool.showPopup()
    assert offered(tool) == whole

    list_key(tool, "stat")
    assert offered(tool)[:3] == [f"stat: 4 of {every} tools", "station, program", "tracker"]
    list_key(tool, " edit")
    assert offered(tool) == [f"stat edit: 1 of {every} tools", f"station, program · {HIDDEN}", "table_edit"]
    list_key(tool, Qt.Key.Key_Return)
    assert not tool.view().isVisible()
    assert (before, tool.name) == ("block", "table_edit")
    assert page.request.note.startswith("not shown to the model: ")

    tool.showPopup()
    assert offered(tool) == whole
    list_key(tool, "nowhere")
    assert offered(tool) == [f"nowhere: 0 of {every} tools"]
    list_key(tool, *[Qt.Key.Key_Backspace] * 7, "file_li", Qt.Key.Key_Escape)
    assert offered(tool) == whole
    list_key(tool, Qt.Key.Key_Escape)
    assert not tool.view().isVisible()
    assert tool.name == "table_edit"


async def test_nothing_is_switched_on_the_way_from_json_to_the_form(page: TrialPage) -> None:
    request = page.request
    request.mode.set_current("json")
    request.tool.setEditText("file_write")
    request.raw.set_text('{"path": "tmp/a.md"}')
    request.mode.set_current("form")
    assert (request.tool_name, request.form.values()) == ("file_write", {"path": "tmp/a.md"})
    request.mode.set_current("json")
    request.tool.setEditText("rm_rf")
    assert request.note == "no tool has this name"
    request.raw.set_text('{"all": true}')
    request.mode.set_current("form")
    assert request.tool_name == "rm_rf"
    assert UNKNOWN in [request.tool.itemText(row) for row in range(request.tool.count())]
    assert request.none.isVisible()
    request.mode.set_current("json")
    assert (request.tool_name, json.loads(request.raw.text)) == ("rm_rf", {"all": True})


async def test_fresh_request_follows_what_is_chosen_elsewhere_and_a_touched_one_does_not(
    demo: Opened, page: TrialPage, one_theme: Theme, qapp: QApplication
) -> None:
    one_theme.apply(qapp, "dark")
    demo.context.selection.choose_tool("file_search")
    page.page_shown()
    assert page.request.tool_name == "file_search"
    demo.context.selection.choose_tool("file", "list")
    page.page_shown()
    assert (page.request.tool_name, page.request.form.operation) == ("file", "list")
    path = page.request.form.editor("path")
    assert isinstance(path, QLineEdit)
    QTest.keyClicks(path, "notes")
    demo.context.selection.choose_tool("block")
    page.page_shown()
    assert (page.request.tool_name, page.request.form.values()) == ("file", {"op": "list", "path": "notes"})


async def test_call_that_is_asked_for_elsewhere_begins_here(demo: Opened, page: TrialPage) -> None:
    page.request.form.set_values({"op": "read", "path": "README.md"})
    press(page.request, "block")
    demo.context.navigator.go_to_call("operator", "file", "append")
    await loaded(page)
    request = page.request
    assert (request.agent_id, request.tool_name, request.form.operation) == ("operator", "file", "append")


@pytest.mark.parametrize("mode", ["form", "json"])
async def test_arguments_that_fit_go_to_the_next_tool_and_the_others_wait(page: TrialPage, mode: str) -> None:
    request = page.request
    press(request, "file")
    request.mode.set_current("json")
    request.raw.set_text('{"op": "append", "path": "notes/a.md", "content": "x", "source": 7}')
    request.mode.set_current(mode)
    press(request, "file_write")
    shown = json.loads(request.raw.text) if mode == "json" else request.form.values()
    assert shown == {"path": "notes/a.md", "content": "x"}
    press(request, "file")
    back = json.loads(request.raw.text) if mode == "json" else request.form.values()
    assert back == {"op": "append", "path": "notes/a.md", "content": "x", "source": 7}


async def test_example_names_files_that_are_there(demo: Opened, page: TrialPage) -> None:
    request = page.request
    base = demo.folder / "workspace"
    press(request, "file")
    request.form.choose_operation("read")
    request.example_button.click()
    await until(lambda: "path" in request.form.values())
    assert (base / str(request.form.values()["path"])).is_file()
    request.form.clear()
    request.form.choose_operation("create")
    request.example_button.click()
    await until(lambda: "path" in request.form.values())
    named = base / str(request.form.values()["path"])
    assert named.parent.is_dir()
    assert not named.exists()


async def test_example_of_a_tool_is_its_own_and_operations_that_are_off_have_none(
    demo: Opened, page: TrialPage
) -> None:
    request = page.request
    press(request, "recall")
    request.form.choose_operation("insert")
    request.example_button.click()
    await until(lambda: request.form.values().get("metadata") == {"from": "a letter"})
    file = request.tool.of_name("file")
    assert file is not None
    assert file.hidden is None
    assert {str(one["op"]) for one in file.examples} == {shape.name for shape in file.operations}
    assert "delete" not in {shape.name for shape in file.operations}


async def test_tab_takes_what_is_offered(page: TrialPage) -> None:
    page.activateWindow()
    await until(page.isActiveWindow)
    press(page.request, "file")
    page.request.mode.set_current("json")
    editor = page.request.raw.editor
    editor.set_text('{"pa"}')
    editor.setFocus()
    for _ in range(4):
        QTest.keyClick(editor, Qt.Key.Key_Right)
    QTest.keyClick(editor, Qt.Key.Key_Space, Qt.KeyboardModifier.ControlModifier)
    assert editor.is_offering
    QTest.keyClick(QApplication.activePopupWidget() or editor, Qt.Key.Key_Tab)
    assert not editor.is_offering
    assert json.loads(editor.text) == {"path": ""}
    assert QApplication.focusWidget() is editor


ROWS = tuple(
    FileChoice(path, "archive", path in {"notes", "notes/species"})
    for path in ("notes", "notes/species", "notes/species/moss.md", "notes/species.md", "station.log")
)


async def test_filter_chooses_the_first_file_that_fits_and_return_takes_it(page: TrialPage) -> None:
    dialog = BrowseDialog(page, FileChoices(ROWS), "")
    dialog.open()
    await until(dialog.isActiveWindow)
    assert not dialog.choose_button.isEnabled()
    QTest.keyClicks(dialog.search, "spec")
    QTest.keyClick(dialog.search, Qt.Key.Key_Return)
    assert dialog.choice == FileChoice("notes/species.md", "archive")


async def test_folder_is_chosen_only_where_one_is_wanted(page: TrialPage) -> None:
    dialog = BrowseDialog(page, FileChoices(ROWS), "", takes_folders=True)
    dialog.open()
    await until(dialog.isActiveWindow)
    QTest.keyClicks(dialog.search, "notes")
    QTest.keyClick(dialog.search, Qt.Key.Key_Return)
    assert dialog.choice == FileChoice("notes", "archive", is_folder=True)
