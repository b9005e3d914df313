"""The preview of an agent with half of 600 tools: nothing that one does there may hold up the window for 100 ms."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from gatewright_gui.app.build import build_window
from gatewright_gui.settings import Preferences
from gatewright_gui.window.main_window import MainWindow
from tests.gui.session.opened import agents_page, end, until
from tests.gui.watchdog.watching import Watching
from tests.support.largeworkspace import large_opener, large_tools, write_large

AGENTS, TOOLS = 4, 600


@pytest.fixture
async def window(tmp_path: Path) -> AsyncIterator[MainWindow]:
    large_tools(TOOLS)
    preferences = Preferences(tmp_path / "preferences.ini")
    opened = await build_window(
        write_large(tmp_path / "large", AGENTS, TOOLS),
        preferences=preferences,
        theme="dark",
        opener=large_opener(TOOLS),
    )
    opened.tasks.cancel("upkeep")  # the self-check of everything takes minutes
    opened.resize(1024, 640)
    opened.show()
    yield opened
    await end(opened)


async def test_schema_and_difference_of_all_tools_hold_up_nothing(window: MainWindow, gui_watchdog: Watching) -> None:
    page = agents_page(window)
    preview, tree = page.preview, page.tools.view
    page.inspector.show_part("sees")
    window.selection.choose_agent("agent_0001")

    async def shown() -> None:
        await until(lambda: not {"preview", "preview.difference"} & set(window.tasks.names))
        await until(lambda: not preview.code.editor.is_filling)

    await shown()
    async with gui_watchdog.during("show all tools"):
        preview.scope.set_current("agent")
        await shown()
    assert len(preview.code.editor.lines) > 8_000
    async with gui_watchdog.during("unfold all"):
        preview.code.editor.unfold_all()
        await shown()
    async with gui_watchdog.during("tick a tool"):
        QTest.keyClick(tree, Qt.Key.Key_Space)
        await shown()
    async with gui_watchdog.during("fold all"):
        preview.code.editor.fold_all()
        await shown()
    async with gui_watchdog.during("show the difference"):
        preview.part.set_current("difference")
        await shown()
    async with gui_watchdog.during("tick a tool beside the difference"):
        QTest.keyClick(tree, Qt.Key.Key_Space)
        await shown()
    assert preview.code.text.startswith("--- unrestricted")
