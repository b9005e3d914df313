"""The files that a call may name: listed as the agent may see them, offered in the field, chosen in a dialog."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLineEdit

from gatewright.workspace import Workspace
from gatewright_gui.pages.trial.file_choice import BrowseDialog
from gatewright_gui.pages.trial.request import RequestPanel
from gatewright_gui.session.call_paths import file_choices
from gatewright_gui.session.calls import visible_tools
from tests.gui.dress import dressed
from tests.gui.files.support import Opened, until
from tests.support.demo import copy_demo


@pytest.fixture
async def panel(demo: Opened) -> AsyncIterator[RequestPanel]:
    made = dressed(RequestPanel(demo.context))
    made.resize(460, 700)
    made.show()
    made.set_agents(tuple(demo.document.policy.agents.values()), "operator")
    made.set_tools(visible_tools(demo.document.workspace, "operator"), "file", "read")
    made.choose_tool("file", "read")
    made.activateWindow()
    await until(made.isActiveWindow)
    yield made
    made.close()
    made.deleteLater()


def path_field(panel: RequestPanel) -> QLineEdit:
    field = panel.form.editor("path")
    assert isinstance(field, QLineEdit)
    return field


def test_only_what_the_agent_may_see_is_listed_as_its_tools_want_it(tmp_path: Path) -> None:
    workspace = Workspace.open(copy_demo(tmp_path / "demo"))
    try:
        in_sources = {row.path for row in file_choices(workspace, "operator", "sources").rows}
        assert "README.md" in in_sources
        assert not [path for path in in_sources if path.startswith("secrets")]
        in_roots = {row.path for row in file_choices(workspace, "operator", "roots").rows}
        assert in_roots
        assert {path.split("/")[0] for path in in_roots} <= {"shared", "tmp", "vault"}
        assert file_choices(workspace, "newcomer", "sources").rows == ()
        assert file_choices(workspace, "newcomer", "roots").rows == ()
        kinds = {tool.name: tool.files for tool in visible_tools(workspace, "operator")}
        assert (kinds["file"], kinds["file_read"], kinds["tracker"]) == ("sources", "roots", "nothing")
    finally:
        workspace.close()


async def test_field_of_a_path_offers_real_files(panel: RequestPanel) -> None:
    field = path_field(panel)
    field.setFocus()
    await until(panel.form.files.stringList)
    QTest.keyClicks(field, "eadm")
    assert QApplication.activePopupWidget() is None
    QTest.keyClick(field, Qt.Key.Key_Down)
    popup = QApplication.activePopupWidget()
    assert popup is not None
    QTest.keyClick(popup, Qt.Key.Key_Down)
    QTest.keyClick(popup, Qt.Key.Key_Return)
    assert panel.form.values() == {"op": "read", "path": "README.md"}


async def test_file_is_chosen_by_keys_in_a_dialog_of_what_can_be_seen(panel: RequestPanel) -> None:
    field = path_field(panel)
    field.setFocus()
    QTest.keyClick(field, Qt.Key.Key_F4)
    await until(lambda: panel.findChild(BrowseDialog) is not None)
    dialog = panel.findChild(BrowseDialog)
    assert dialog is not None
    await until(dialog.isActiveWindow)
    QTest.keyClicks(dialog.search, "station")
    QTest.keyClick(dialog.search, Qt.Key.Key_Down)
    QTest.keyClick(dialog.view, Qt.Key.Key_Down)
    await until(dialog.choose_button.isEnabled)
    dialog.choose_button.click()
    await until(lambda: path_field(panel).text() == "station.log")
    assert panel.form.values() == {"op": "read", "path": "station.log"}


async def test_file_of_one_source_among_several_names_its_source(panel: RequestPanel) -> None:
    panel.form.put_file(("path",), "notes/a.md", "archive")
    assert panel.form.values() == {"op": "read", "path": "notes/a.md", "source": "archive"}


async def test_call_in_a_provider_s_spelling_is_restored(demo: Opened, panel: RequestPanel) -> None:
    view = demo.document.workspace.view("operator")
    assert [tool["function"]["name"] for tool in view.tools("openai")]
    arguments = {"op": "read", "path": "README.md", "source": None, "content": None}
    call = {"type": "function", "function": {"name": "file", "arguments": json.dumps(arguments)}}
    QApplication.clipboard().setText(json.dumps([call, call]))
    panel.paste_button.click()
    await until(lambda: panel.message.text)
    _, restored = view.restore("openai", "file", json.dumps(arguments))
    wanted = json.loads(restored) if isinstance(restored, str) else restored
    assert panel.form.values() == wanted
    assert "1 more call beside it left out" in panel.message.text
