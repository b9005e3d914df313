"""An OpenAPI document of 10 MB on the page Catalogs: reading it holds up nothing, and can be stopped."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QPushButton

from gatewright_gui.app.build import build_window
from gatewright_gui.app.warm import warm_up
from gatewright_gui.pages.servers import ServersPage
from gatewright_gui.pages.servers.add_dialog import AddDialog
from gatewright_gui.settings import Preferences
from gatewright_gui.window.main_window import MainWindow
from tests.gui.servers.test_page import dialog_of
from tests.gui.session.opened import end, until
from tests.gui.watchdog.watching import Watching

SIZE = 10_000_000


def large() -> str:
    """A document of 300 operations; most of it are examples that nobody needs."""
    paths: dict[str, Any] = {}
    for number in range(300):
        query = {"name": "q", "in": "query", "schema": {"type": "string"}}
        example = [{"text": "x" * 30, "number": row} for row in range(SIZE // 300 // 60)]
        got: dict[str, Any] = {
            "tags": [f"part{number % 20}"],
            "parameters": [query],
            "responses": {},
            "x-example": example,
        }
        paths[f"/things{number}/{{id}}"] = {
            "parameters": [{"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}],
            "get": got,
        }
    servers = [{"url": "https://api.example.com"}]
    return json.dumps(
        {"openapi": "3.0.3", "info": {"title": "Large", "version": "1"}, "servers": servers, "paths": paths}
    )


@pytest.fixture
async def window(tmp_path: Path) -> AsyncIterator[MainWindow]:
    policy = tmp_path / "desk" / "policy.toml"
    policy.parent.mkdir()
    policy.write_text("gatewright = 1\n\n[agents.desk]\nsources = []\n", "utf-8")
    made = await build_window(policy, preferences=Preferences(tmp_path / "preferences.ini"), theme="light")
    made.resize(1280, 800)
    made.show()
    await warm_up(made.document)
    yield made
    await end(made)


async def opened_dialog(window: MainWindow) -> AddDialog:
    window.show_page("servers")
    page = window.shelf.page("servers")
    assert isinstance(page, ServersPage)
    page.add_button.click()
    return await dialog_of(window, AddDialog)


async def test_large_document_is_read_beside_the_window(
    window: MainWindow, gui_watchdog: Watching, tmp_path: Path
) -> None:
    path = tmp_path / "large.json"
    path.write_text(large(), "utf-8")
    assert path.stat().st_size > SIZE * 0.9
    dialog = await opened_dialog(window)
    async with gui_watchdog.during("read the file"):
        dialog.read_file(path)
        await until(lambda: dialog.form.found is not None)
    assert "300 operations in 20 tools" in dialog.form.summary.text()
    dialog.reject()


async def test_large_text_is_pasted_and_its_reading_is_stopped(window: MainWindow, gui_watchdog: Watching) -> None:
    QGuiApplication.clipboard().setText(large())
    dialog = await opened_dialog(window)
    async with gui_watchdog.during("paste"):
        QTest.keyClick(dialog.text, Qt.Key.Key_V, Qt.KeyboardModifier.ControlModifier)
    assert dialog.text.toPlainText() == ""
    await until(dialog.strip.isVisible)
    cancel = dialog.strip.findChild(QPushButton)
    assert cancel is not None
    async with gui_watchdog.during("stop"):
        QTest.mouseClick(cancel, Qt.MouseButton.LeftButton)
    await until(lambda: "servers.read_tools" not in window.tasks.names)
    assert not dialog.strip.isVisible()
    assert dialog.form.found is None
    assert not dialog.accept_button.isEnabled()
    dialog.text.setPlainText("https://example.com/mcp")
    assert [server.server_id for server in dialog.chosen] == ["example"]
    dialog.reject()
