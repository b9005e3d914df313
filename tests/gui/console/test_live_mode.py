"""Live mode and the copy: asked for, said loudly, real; and the copy thrown away by a key."""

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QDialog, QPushButton

from gatewright_gui.pages.trial import TrialPage
from gatewright_gui.pages.trial import history_model as callhistory
from gatewright_gui.qt.table_model import ROW
from gatewright_gui.session.calls import CallRecord
from gatewright_gui.window.status_bar import StatusBar
from tests.gui.console.standing import call, settled
from tests.gui.files.support import Opened, until
from tests.support.demo import copy_demo

FRESH = {"op": "create", "path": "drafts/fresh.md", "content": "hello"}


async def answer(key: str) -> None:
    def found() -> list[QPushButton]:
        dialogs = [w for w in QApplication.topLevelWidgets() if isinstance(w, QDialog) and w.isVisible()]
        return [button for one in dialogs if (button := one.findChild(QPushButton, f"choice-{key}")) is not None]

    await until(found)
    QTest.mouseClick(found()[0], Qt.MouseButton.LeftButton)


async def go_live(page: TrialPage) -> None:
    QTest.mouseClick(page.live_button, Qt.MouseButton.LeftButton)
    await answer("live")
    await until(lambda: page.console.is_live)


async def ran(page: TrialPage, count: int) -> CallRecord:
    page.request.form.set_values(FRESH)
    page.run()
    await until(lambda: len(page.console.records) >= count and not page.console.is_busy)
    return page.console.records[-1]


async def test_live_mode_is_entered_only_after_a_question_whose_default_is_to_stay(page: TrialPage) -> None:
    QTest.mouseClick(page.live_button, Qt.MouseButton.LeftButton)
    await answer("stay")
    await until(lambda: "console.live" not in page._context.tasks.names)  # pyright: ignore[reportPrivateUsage]
    assert not page.console.is_live
    assert not page.live_bar.isVisible()
    await go_live(page)
    assert page.live_bar.isVisible()
    assert page.live_bar.accessibleName().startswith("LIVE MODE")
    assert page.run_button.text() == "Run LIVE"
    assert not page.reset_copy_button.isVisible()


async def test_live_run_really_writes_and_stands_out_in_the_history(demo: Opened, page: TrialPage) -> None:
    target = demo.folder / "workspace" / "drafts" / "fresh.md"
    in_copy = await ran(page, 1)
    assert (in_copy.status, in_copy.is_live) == ("allowed", False)
    assert not target.exists()
    await go_live(page)
    live = await ran(page, 2)
    assert (live.status, live.is_live) == ("allowed", True)
    assert target.read_text(encoding="utf-8") == "hello"
    rows = [page.history.model.index(row, callhistory.CALL) for row in range(2)]
    assert [row.data() for row in rows] == ["LIVE file.create", "file.create"]
    assert [row.data(ROW).is_live for row in rows] == [True, False]
    assert "run live, in the real workspace" in str(rows[0].data(Qt.ItemDataRole.ToolTipRole))
    QTest.mouseClick(page.live_bar.leave_button, Qt.MouseButton.LeftButton)
    assert not page.console.is_live
    assert page.run_button.text() == "Run in copy"
    assert page.history.model.index(0, callhistory.CALL).data() == "LIVE file.create"


async def test_deciding_in_live_mode_changes_nothing_and_asks_the_real_workspace(demo: Opened, page: TrialPage) -> None:
    await ran(page, 1)
    await go_live(page)
    page.request.form.set_values(FRESH)
    page.decide()
    await until(lambda: len(page.console.records) == 2 and not page.console.is_busy)
    assert page.console.records[-1].verdict == "allow"
    assert not page.console.records[-1].is_live
    assert not (demo.folder / "workspace" / "drafts" / "fresh.md").exists()


async def test_copy_and_workspace_have_conversations_of_their_own(page: TrialPage) -> None:
    await ran(page, 1)
    agent_id = page.request.agent_id or ""
    assert page.console.session_state(agent_id).calls
    await go_live(page)
    assert page.console.session_state(agent_id).calls == ()


async def test_another_workspace_is_never_opened_live(demo: Opened, page: TrialPage, tmp_path: Path) -> None:
    await go_live(page)
    assert await demo.document.open(copy_demo(tmp_path / "other"))
    assert not page.console.is_live
    assert not page.live_bar.isVisible()
    await until(lambda: "console.tools" not in page._context.tasks.names)  # pyright: ignore[reportPrivateUsage]


async def test_key_resets_the_copy_and_its_files(page: TrialPage) -> None:
    assert (await ran(page, 1)).status == "allowed"
    assert (await ran(page, 2)).status == "failed"
    page.activateWindow()
    page.run_button.setFocus()
    QTest.keyClick(page, Qt.Key.Key_Delete, Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier)
    await until(lambda: not page.console.has_copy)
    assert (await ran(page, 3)).status == "allowed"


async def test_copy_says_how_far_it_is(demo: Opened, page: TrialPage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gatewright_gui.session.copy.TELL_S", 0.0)
    for number in range(60):
        (demo.folder / "workspace" / "notes" / f"{number}.md").write_text("a note\n", encoding="utf-8")
    told: list[str] = []
    page.console.copying.connect(told.append)
    await ran(page, 1)
    assert told[0] == "copying the workspace"
    assert any("files," in text for text in told)
    assert told[-1] == ""
    assert page.console.copied is not None
    assert page.console.copied.files > 60


async def test_status_bar_says_live_in_words_and_colour(demo: Opened, qtbot: object) -> None:
    bar = StatusBar()
    demo.document.live.changed.connect(bar.set_live)
    assert bar.live.text() == "live mode off"
    demo.document.live.enter()
    assert bar.live.text() == "LIVE MODE: runs are real"
    assert bar.live.property("kind") == "link-alarm"
    demo.document.live.leave()
    assert bar.live.text() == "live mode off"
    bar.deleteLater()


async def test_message_to_the_user_is_shown_live_and_not_sent_in_the_copy(demo: Opened, page: TrialPage) -> None:
    page.request.choose_agent("operator")
    page.request.agent_chosen.emit("operator")
    await until(lambda: "console.tools" not in page._context.tasks.names)  # pyright: ignore[reportPrivateUsage]
    page.request.choose_tool("send_message")
    call(page, target={"type": "user"}, content="The harbour is closed")
    page.run()
    record = await settled(page, 1)
    assert (record.status, record.is_live) == (None, False)  # decided and shown, as calls of the web are
    assert not any("harbour" in said for said in demo.said)
    await go_live(page)
    call(page, target={"type": "user"}, content="The harbour is closed")
    page.run()
    await settled(page, 2)
    await until(lambda: "operator to the user: The harbour is closed" in demo.said)
    assert demo.document.workspace.inbox().list() == ()
