"""The stop in the window: on every page, pulled here or elsewhere, and its end."""

import os
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QToolButton

from gatewright.workspace import stop_switch
from gatewright_gui.window.main_window import MainWindow
from gatewright_gui.window.pages import all_rows
from tests.gui.session.opened import agents_pane, settled, until


def pull_elsewhere(window: MainWindow, agent_id: str = "") -> None:
    other = stop_switch(window.document.workspace.policy_path)
    other.pull("ann", "it pays twice", agent_id)
    other.close()


def switch(window: MainWindow) -> QToolButton:
    found = window.findChild(QToolButton, "top.stop")
    assert found is not None
    return found


async def test_one_click_stops_all_agents_and_one_lets_them_go_on(window: MainWindow) -> None:
    workspace = window.document.workspace
    assert "Stop all agents" in switch(window).text()
    switch(window).click()
    await settled(window)
    assert workspace.decide("archivist", "file", {"op": "list"}).code == "stopped"
    for row in all_rows():
        window.show_page(row.key)
        assert window.stop_bar.isVisible()
        assert switch(window).isVisible()
    assert "STOPPED by a person in the app since" in window.stop_bar.text
    window.stop_bar.dismiss()
    assert window.stop_bar.isVisible()
    assert "go on" in switch(window).text()
    window.stop_bar.action_button.click()
    await settled(window)
    assert not window.stop_bar.isVisible()
    assert workspace.decide("archivist", "file", {"op": "list"}).code != "stopped"
    assert [row.kind for row in workspace.audit.rows() if row.kind.startswith("Stop")] == ["StopPulled", "StopLifted"]


async def test_a_stop_that_somebody_else_pulled_is_told_and_kept(window: MainWindow) -> None:
    pull_elsewhere(window)
    await until(window.stop_bar.isVisible)
    assert "STOPPED by ann since" in window.stop_bar.text
    assert "it pays twice" in window.stop_bar.text
    folder = window.document.workspace.state_folder
    (folder / "stop").unlink()
    window.document.stops.look()
    assert window.stop_bar.isVisible()


async def test_a_stop_without_the_key_is_put_under_the_seal_by_the_window(
    window: MainWindow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as stranger:
        stranger.setenv("GATEWRIGHT_KEYS", os.fspath(tmp_path / "none"))
        pull_elsewhere(window)
    file = window.document.workspace.state_folder / "stop"

    def holds_without_the_file() -> bool:
        kept = file.read_bytes()
        file.unlink()
        stands = bool(window.document.workspace.stops.look())
        file.write_bytes(kept)
        return stands

    await until(window.stop_bar.isVisible)
    await until(holds_without_the_file)


async def test_one_agent_is_stopped_from_its_menu(window: MainWindow) -> None:
    window.selection.choose_agent("archivist")
    agents_pane(window).view.customContextMenuRequested.emit(QPoint(1, 1))
    (choice,) = (one for one in agents_pane(window).findChildren(QAction) if one.objectName() == "agents.stop")
    choice.trigger()
    await settled(window)
    assert window.document.workspace.decide("archivist", "file", {"op": "list"}).code == "stopped"
    assert "agent archivist makes no call" in window.stop_bar.text
    assert "Stop all agents" in switch(window).text()
    window.stop_bar.action_button.click()
    await settled(window)
    assert not window.stop_bar.isVisible()


async def test_the_keys_stop_and_let_go_on(window: MainWindow) -> None:
    action = window.findChild(QAction, "action.stop")
    assert action is not None
    for stands in (True, False):
        action.trigger()
        await settled(window)
        assert window.stop_bar.isVisible() is stands
