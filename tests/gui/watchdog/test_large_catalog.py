"""The page Catalogs with a server of 500 tools: nothing that one does there may hold up the window."""

import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QPushButton

from gatewright.workspace import Workspace
from gatewright_gui.app.build import build_window
from gatewright_gui.app.warm import warm_up
from gatewright_gui.pages.servers import ServersPage
from gatewright_gui.settings import Preferences
from gatewright_gui.window.main_window import MainWindow
from tests.gui.session.opened import agents_page, end, until
from tests.gui.watchdog.test_large_workspace import wheel
from tests.gui.watchdog.watching import Watching

TOOLS = 500
SERVER = f"""
from mcp.server.mcpserver import MCPServer
server = MCPServer("large")

def work(path: str, pattern: str = "*", depth: int = 3, names: list[str] | None = None) -> str:
    return path

for number in range({TOOLS}):
    verb = ("list", "get", "create", "delete", "run")[number % 5]
    name = f"{{verb}}_of_the_warehouse_management_and_logistics_system_{{number:03}}"
    server.add_tool(work, name=name, description=("What it does, at length. " * 20).strip())
server.run("stdio")
"""


@pytest.fixture
async def window(tmp_path: Path) -> AsyncIterator[MainWindow]:
    program, policy = tmp_path / "large.py", tmp_path / "desk" / "policy.toml"
    program.write_text(SERVER, encoding="utf-8")
    policy.parent.mkdir()
    catalog = f'[[catalogs]]\nid = "large"\ntype = "mcp"\nconfine = "none"\ncommand = {json.dumps(sys.executable)}\n'
    policy.write_text(
        f"gatewright = 1\n\n[agents.desk]\nsources = []\n\n{catalog}args = [{json.dumps(str(program))}]\n", "utf-8"
    )
    with Workspace.open(policy, trust=True) as workspace:
        await workspace.servers.refresh("large")
    made = await build_window(policy, preferences=Preferences(tmp_path / "preferences.ini"), theme="light")
    made.tasks.cancel("upkeep")  # the self-check of 500 tools takes its time; what is timed here is the window
    made.resize(1280, 800)
    made.show()
    await warm_up(made.document)  # as it is done after every start
    yield made
    await end(made)


def press(page: ServersPage, name: str) -> None:
    button = page.findChild(QPushButton, name)
    assert button is not None
    assert button.isEnabled()
    QTest.mouseClick(button, Qt.MouseButton.LeftButton)


async def test_500_tools_are_listed_looked_through_and_accepted_without_holding_up_the_window(
    window: MainWindow, gui_watchdog: Watching
) -> None:
    page = window.shelf.page("servers")  # to make a page takes its time, whatever is in it
    async with gui_watchdog.during("open the page"):
        window.show_page("servers")
        await until(page.isVisible)
    assert isinstance(page, ServersPage)
    detail = page.detail
    async with gui_watchdog.during("work out what waits"):
        await until(lambda: detail.tools.model.ticked_count == TOOLS)
    for _ in range(3):
        async with gui_watchdog.during("scroll the tools"):
            wheel(detail.tools.view, -1200)
    async with gui_watchdog.during("tick none"):
        press(page, "servers.all")
        assert not detail.tools.model.ticked
    async with gui_watchdog.during("tick all"):
        press(page, "servers.all")
    async with gui_watchdog.during("choose another tool"):
        at = detail.tools.view.visualRect(detail.tools.model.index(detail.tools.view.rowAt(40), 1)).center()
        QTest.mouseClick(detail.tools.view.viewport(), Qt.MouseButton.LeftButton, pos=QPoint(at))
    assert "warehouse" in detail.tools.code.text
    async with gui_watchdog.during("accept all"):
        press(page, "servers.accept")
        await until(lambda: {line.state for line in detail.tools.model.rows} == {"accepted"})
    assert len(detail.tools.model.rows) == TOOLS
    for _ in range(3):
        async with gui_watchdog.during("scroll what was accepted"):
            wheel(detail.tools.view, -1200)
    async with gui_watchdog.during("go to the agents and back"):
        window.show_page("tools")
        await until(lambda: agents_page(window).tools.model.rowCount() > TOOLS)
        window.show_page("servers")
        await until(page.isVisible)
