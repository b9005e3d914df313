"""What one does first: the welcome, a workspace of one's own, the servers that one has already."""

from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QPushButton

from gatewright.policy.verdict import Permission, Verdict
from gatewright.workspace.template import SECRETS
from gatewright_gui.app.build import new_window
from gatewright_gui.pages.servers.add_dialog import AddDialog
from gatewright_gui.pages.servers.gate_dialogs import ClientDialog
from gatewright_gui.pages.trial import TrialPage
from gatewright_gui.session.calls import CallRequest
from gatewright_gui.settings import Preferences
from gatewright_gui.window.main_window import MainWindow
from gatewright_gui.window.new_dialog import NewDialog
from tests.gui.session.opened import agents_page, click, demo, end, settled, until


def fresh(tmp_path: Path, qapp: QApplication) -> MainWindow:
    window = new_window(qapp, preferences=Preferences(tmp_path / "p.ini"), theme="light")
    window.show()
    return window


async def begun(tmp_path: Path, qapp: QApplication) -> MainWindow:
    """A window on the demo with the first steps."""
    window = fresh(tmp_path, qapp)
    window.resize(1280, 800)
    window.steps.begin()
    await window.open(demo(tmp_path))
    await until(window.steps.isVisible)
    window.show_page("tools")
    await settled(window)
    return window


async def asked(window: MainWindow, way: str) -> NewDialog:
    QTest.mouseClick(window.shelf.welcome.buttons[way], Qt.MouseButton.LeftButton)
    await until(lambda: window.findChild(NewDialog, "new") is not None)
    dialog = window.findChild(NewDialog, "new")
    assert dialog is not None
    return dialog


def mine(tmp_path: Path) -> Path:
    folder = tmp_path / "mine"
    (folder / ".git").mkdir(parents=True)
    (folder / ".git" / "config").touch()
    (folder / "notes.md").write_text("a note\n")
    (folder / ".env").write_text("TOKEN=1\n")
    return folder


async def test_new_workspace_hides_what_looks_like_a_secret(tmp_path: Path, qapp: QApplication) -> None:
    window, folder = fresh(tmp_path, qapp), mine(tmp_path)
    dialog = await asked(window, "new")
    assert not dialog.accept_button.isEnabled()
    assert dialog.note.text().startswith("Choose a folder")
    assert not dialog.fault.isVisible()
    QTest.keyClicks(dialog.place, str(folder))
    assert dialog.hide_secrets.isVisible()
    assert ".env*" in dialog.hide_secrets.text()
    assert str(folder / "policy.toml") in dialog.note.text()
    QTest.keyClick(dialog.place, Qt.Key.Key_Return)
    await until(lambda: window.document.is_open)

    policy = window.document.policy
    (source,) = policy.sources
    assert {rule.pattern for rule in source.permission_rules} == set(SECRETS)
    assert {rule.permission for rule in source.permission_rules} == {Permission.NONE}
    agent = policy.agents["assistant"]
    assert (agent.tools, agent.sources) == ((), (source.source_id,))
    assert not window.document.problems
    assert window.selection.agent_id == "assistant"
    await settled(window)
    await end(window)


async def test_a_new_workspace_may_begin_as_a_copy_of_an_example(tmp_path: Path, qapp: QApplication) -> None:
    window, folder = fresh(tmp_path, qapp), tmp_path / "bot"
    dialog = await asked(window, "new")
    QTest.keyClicks(dialog.place, str(folder))
    dialog.begin.setFocus()
    QTest.keyClick(dialog.begin, Qt.Key.Key_End)
    assert dialog.begin.currentText() == "a copy of the example: support bot"
    assert not dialog.agent.isVisible()
    assert not dialog.level.isVisible()
    dialog.agent.clear()
    QTest.mouseClick(dialog.accept_button, Qt.MouseButton.LeftButton)
    await until(lambda: window.document.is_open)

    assert list(window.document.policy.agents) == ["bot"]
    assert (folder / "handbook" / "refunds.md").is_file()
    assert not window.document.problems
    await settled(window)
    await end(window)


async def test_first_steps_get_their_ticks_and_never_come_again(tmp_path: Path, qapp: QApplication) -> None:
    window, folder = fresh(tmp_path, qapp), mine(tmp_path)
    assert not window.steps.isVisible()
    assert not any(window.rail.button(key).isEnabled() for key in window.rail.keys)
    dialog = await asked(window, "new")
    dialog.place.setText(str(folder))
    await until(dialog.accept_button.isEnabled)
    QTest.mouseClick(dialog.accept_button, Qt.MouseButton.LeftButton)
    await until(window.steps.isVisible)
    window.activateWindow()
    steps = window.steps.buttons
    await until(lambda: agents_page(window).tools.view.current_row[0] == "file")  # an agent that reads was asked for
    assert [button.accessibleName() for button in steps.values()] == [
        "Tick an operation, to do",
        "See the schema the model gets, to do",
        "Try a call, to do",
    ]

    QTest.mouseClick(steps["schema"], Qt.MouseButton.LeftButton)
    await settled(window)
    assert window.steps.done == ()  # nothing is ticked, so there is no schema yet
    QTest.mouseClick(steps["tick"], Qt.MouseButton.LeftButton)
    QTest.keyClick(agents_page(window).tools.view, Qt.Key.Key_Space)
    await settled(window)
    assert window.steps.done == ("tick",)
    agents_page(window).inspector_button.click()
    assert not agents_page(window).inspector.isVisible()
    QTest.mouseClick(steps["schema"], Qt.MouseButton.LeftButton)
    assert window.steps.done == ("tick", "schema")
    assert agents_page(window).preview.code.editor.isVisible()
    QTest.mouseClick(steps["try"], Qt.MouseButton.LeftButton)
    await settled(window)
    assert window.shelf.current_key == "try"
    console = window.shelf.page("try")
    assert isinstance(console, TrialPage)
    assert console.request.tool_name == window.selection.tool
    QTest.mouseClick(console.request.example_button, Qt.MouseButton.LeftButton)
    await settled(window)
    QTest.mouseClick(console.decide_button, Qt.MouseButton.LeftButton)
    assert not window.steps.next_button.isVisible()
    await until(lambda: "done" in steps["try"].accessibleName())
    await settled(window)

    # then its agent can be put to work
    QTest.mouseClick(window.steps.next_button, Qt.MouseButton.LeftButton)
    await until(lambda: any(dialog.isVisible() for dialog in window.findChildren(ClientDialog)))
    assert window.findChildren(ClientDialog)[0].agent.currentText() == "assistant"
    window.findChildren(ClientDialog)[0].reject()
    await settled(window)
    await end(window)

    again = fresh(tmp_path, qapp)
    dialog = await asked(again, "new")
    dialog.place.setText(str(tmp_path / "another"))
    await until(dialog.accept_button.isEnabled)
    QTest.mouseClick(dialog.accept_button, Qt.MouseButton.LeftButton)
    await until(lambda: again.document.is_open)
    assert not again.steps.isVisible()
    await settled(again)
    await end(again)


async def test_a_step_is_done_by_its_effect_and_to_do_again_once_that_is_taken_back(
    tmp_path: Path, qapp: QApplication
) -> None:
    window = await begun(tmp_path, qapp)
    click(window, "file", "delete")  # the agent is not granted what that needs
    await settled(window)
    assert window.steps.done == ("tick",)
    window.document.undo()
    await settled(window)
    assert window.steps.done == ()
    click(window, "file_delete", None)  # this one has no effect
    await settled(window)
    assert window.steps.done == ()
    await end(window)


async def test_the_example_of_the_first_steps_is_allowed_in_the_copy(tmp_path: Path, qapp: QApplication) -> None:
    window = await begun(tmp_path, qapp)
    QTest.mouseClick(window.steps.buttons["try"], Qt.MouseButton.LeftButton)
    await settled(window)
    console = window.shelf.page("try")
    assert isinstance(console, TrialPage)
    QTest.mouseClick(console.request.example_button, Qt.MouseButton.LeftButton)
    await settled(window)
    for button in (console.decide_button, console.run_button):
        made = len(console.console.records)
        QTest.mouseClick(button, Qt.MouseButton.LeftButton)
        await until(lambda made=made: len(console.console.records) > made)
        await settled(window)
    decided, ran = console.console.records
    assert (decided.verdict, ran.verdict, ran.status) == (Verdict.ALLOW, Verdict.ALLOW, "allowed"), ran.reason
    assert "try" in window.steps.done
    await end(window)


async def test_a_denied_call_of_the_console_is_no_step_done(tmp_path: Path, qapp: QApplication) -> None:
    window = await begun(tmp_path, qapp)
    window.show_page("try")
    console = window.shelf.page("try")
    assert isinstance(console, TrialPage)
    await settled(window)
    console.request.put(CallRequest("archivist", "file", {"op": "delete", "path": "README.md"}))
    QTest.mouseClick(console.decide_button, Qt.MouseButton.LeftButton)
    await until(lambda: len(console.console.records) == 1)
    await settled(window)
    assert console.console.records[0].verdict is Verdict.DENY
    assert window.steps.done == ()
    await end(window)


async def test_folder_with_a_policy_is_not_overwritten(tmp_path: Path, qapp: QApplication) -> None:
    window, there = fresh(tmp_path, qapp), demo(tmp_path)
    before = there.read_bytes()
    dialog = await asked(window, "new")
    QTest.keyClicks(dialog.place, str(there.parent))

    assert not dialog.accept_button.isEnabled()
    assert "exists already" in dialog.fault.text()
    QTest.keyClick(dialog, Qt.Key.Key_Escape)
    await settled(window)
    assert there.read_bytes() == before
    assert not window.document.is_open
    await end(window)


async def test_name_that_no_agent_can_have_is_said(tmp_path: Path, qapp: QApplication) -> None:
    window, folder = fresh(tmp_path, qapp), tmp_path / "new" / "deep"
    dialog = await asked(window, "new")
    dialog.agent.setText("two words")
    QTest.keyClicks(dialog.place, str(folder))
    await until(dialog.accept_button.isEnabled)
    QTest.mouseClick(dialog.accept_button, Qt.MouseButton.LeftButton)
    await until(window.message.isVisible)

    assert "two words is no agent id" in window.message.text
    assert not folder.exists()
    await settled(window)
    await end(window)


async def test_import_of_servers_makes_a_workspace_first(tmp_path: Path, qapp: QApplication) -> None:
    window = fresh(tmp_path, qapp)
    dialog = await asked(window, "import")
    dialog.place.setText(str(tmp_path / "servers"))
    await until(dialog.accept_button.isEnabled)
    QTest.mouseClick(dialog.accept_button, Qt.MouseButton.LeftButton)
    await until(lambda: bool(window.findChildren(AddDialog)))

    assert window.shelf.current_key == "servers"
    assert window.document.policy.sources == ()
    window.findChildren(AddDialog)[0].reject()
    await settled(window)
    await end(window)


async def test_what_was_open_before_is_offered(tmp_path: Path, qapp: QApplication) -> None:
    preferences, policy = Preferences(tmp_path / "p.ini"), demo(tmp_path)
    preferences.add_recent_workspace(policy)
    window = new_window(qapp, preferences=preferences, theme="light")
    window.show()
    (again,) = (b for b in window.shelf.welcome.findChildren(QPushButton) if b.text() == str(policy))
    QTest.mouseClick(again, Qt.MouseButton.LeftButton)
    await until(lambda: window.document.is_open)

    assert window.document.path == policy
    await settled(window)
    await end(window)
