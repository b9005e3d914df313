"""*Who can touch this file?*: what the table says of a file or folder is what the gate says."""

import json
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest

from gatewright_gui.pages.access.files.page import FilesPage
from gatewright_gui.pages.access.files.who_dialog import WhoDialog
from gatewright_gui.pages.access.tools.page import ToolsPage
from gatewright_gui.session.file_access import FileAccess
from gatewright_gui.window.main_window import MainWindow
from tests.gui.session.opened import opened_window, settled
from tests.support.demo import copy_demo


async def files_page(window: MainWindow, path: str) -> FilesPage:
    """The page Files with a path chosen in its folder."""
    window.navigator.go_to_page("files")
    await settled(window)
    page = window.shelf.page("files")
    assert isinstance(page, FilesPage)
    if "/" in path.rstrip("/"):
        page.folder.tree.expand(page.tree_model.index_of(path.partition("/")[0]))
        await settled(window)
    assert page.folder.select(path)
    return page


async def asked(window: MainWindow, path: str) -> WhoDialog:
    page = await files_page(window, path)
    page.folder.tree.setFocus()
    QTest.keyClick(page.folder.tree, Qt.Key.Key_F4)
    await settled(window)
    dialog = page.findChild(WhoDialog)
    assert dialog is not None
    return dialog


def cells(dialog: WhoDialog) -> dict[str, list[str]]:
    model = dialog.table.rows
    rows = [[str(model.index(row, column).data()) for column in range(5)] for row in range(model.count())]
    return {agent: verdicts for agent, *verdicts in rows}


async def test_key_on_a_file_says_for_every_agent_what_the_gate_says(window: MainWindow) -> None:
    dialog = await asked(window, "inbox/2026-07-15-gauge.txt")

    assert cells(dialog) == {
        "archivist": ["allow", "ask first: 1 of 2", "ask first: 1 of 7", "deny"],
        "researcher": ["allow: 3 of 4", "deny", "deny", "deny"],
        "operator": ["allow: 4 of 5", "ask first: 1 of 2", "ask first: 3 of 12", "ask first"],
        "newcomer": ["deny", "deny", "deny", "deny"],
    }
    assert all(dialog.table.sizeHintForColumn(at) <= dialog.table.columnWidth(at) for at in range(1, 5))
    workspace, rows = window.document.workspace, dialog.table.rows
    for at in range(rows.count()):
        row = rows.row_at(at)
        assert isinstance(row, FileAccess)
        answer = row.of("append")[0]
        call = {"op": "append", "path": "inbox/2026-07-15-gauge.txt", "content": "x"}
        decision = workspace.decide(row.agent_id, "file", call)
        assert (answer.verdict, answer.why) == (decision.verdict, decision.reason.replace("`", ""))


async def test_reason_is_read_below_copied_as_text_and_return_leads_to_the_operation(window: MainWindow) -> None:
    dialog = await asked(window, "notes/species.md")
    table = dialog.table
    table.setFocus()
    table.setCurrentIndex(table.rows.index(0, 3))

    assert "file.replace: deny, notes/species.md of archive is set to add only by rule 4 notes/**" in dialog.why.text()
    QTest.mouseClick(dialog.copy_button, Qt.MouseButton.LeftButton)
    copied = QGuiApplication.clipboard().text().splitlines()
    assert copied[:2] == ["notes/species.md", "Agent\tRead\tAppend\tOverwrite\tDelete"]
    assert copied[2] == "archivist\tallow\tallow\tdeny\tdeny"
    table.setCurrentIndex(table.rows.index(0, 2))
    QTest.keyClick(table, Qt.Key.Key_Return)
    await settled(window)

    agents = window.shelf.page("tools")
    assert isinstance(agents, ToolsPage)
    assert agents.isVisible()
    assert (window.selection.agent_id, agents.tools.view.current_row) == ("archivist", ("file", "append"))


async def test_menu_of_a_folder_asks_for_what_is_made_in_it_listed_and_removed(window: MainWindow) -> None:
    page = await files_page(window, "inbox/")
    menu = page.folder.make_menu("inbox/", None)
    action = next(action for action in menu.actions() if action.text().startswith("Who can touch this folder?"))
    action.trigger()
    await settled(window)
    dialog = page.findChild(WhoDialog)

    assert dialog is not None
    assert cells(dialog)["archivist"] == ["allow", "ask first", "\u2013", "deny"]


async def test_palette_asks_for_the_chosen_file(window: MainWindow) -> None:
    page = await files_page(window, "notes/species.md")
    window.open_palette()
    QTest.keyClicks(window.palette_box.search, "who can touch")
    QTest.keyClick(window.palette_box.search, Qt.Key.Key_Return)
    await settled(window)
    dialog = page.findChild(WhoDialog)

    assert dialog is not None
    assert dialog.text().startswith("notes/species.md\n")


async def test_a_tool_of_a_server_counts_though_its_agent_has_no_source(tmp_path: Path) -> None:
    policy = copy_demo(tmp_path / "demo")
    tool = {"name": "write_text", "inputSchema": {"type": "object", "properties": {"path": {"type": "string"}}}}
    (policy.parent / "hub.json").write_text(json.dumps([tool]), "utf-8")
    more = """
[agents.helper]
tools = ["write_text"]
sources = []

[[catalogs]]
id = "hub"
type = "host"
manifest = "hub.json"
"""
    policy.write_text(policy.read_text("utf-8") + more, "utf-8")
    async with opened_window(policy, tmp_path) as window:
        page = await files_page(window, "drafts/report.md")
        said = page.decided.agents.text
        dialog = await asked(window, "drafts/report.md")
        row = cells(dialog)["helper"]
        words = dialog.text()

    assert said.endswith("by paths on disk it may be reached by helper")
    assert row[2] == "ask first: 1 of 4"
    assert "helper" in words
