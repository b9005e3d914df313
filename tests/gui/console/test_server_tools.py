"""Tools of MCP servers and of the web in the console: decided in the copy, and run live."""

import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gatewright.workspace import Workspace
from gatewright_gui.pages.trial import TrialPage
from tests.gui.console.standing import call, console_page, settled
from tests.gui.console.test_live_mode import go_live
from tests.gui.files.support import Opened
from tests.support.checkout import ROOT

SERVER = json.dumps(str(ROOT / "tests" / "support" / "bad_server.py"))
POLICY = """gatewright = 1

[agents.clerk]
tools = ["one", "web_fetch"]
approvals = { privileged = "allow" }
capabilities = [{ NetRead = { allowlist = ["*"] } }]
"""
CATALOG = f"""
[[catalogs]]
id = "far"
type = "mcp"
command = {json.dumps(sys.executable)}
confine = "none"
args = [{SERVER}, "plain"]
"""


@pytest.fixture
async def page(demo: Opened, tmp_path: Path) -> AsyncIterator[TrialPage]:
    folder = tmp_path / "far"
    folder.mkdir()
    policy = folder / "policy.toml"
    policy.write_text("gatewright = 1\n" + CATALOG, encoding="utf-8")
    with Workspace.open(folder, trust=True) as workspace:
        await workspace.servers.refresh("far")
        workspace.accept_tools("far", None)
    policy.write_text(POLICY + CATALOG, encoding="utf-8")
    assert await demo.document.open(policy)
    async with console_page(demo) as made:
        made.request.choose_tool("one")
        yield made


async def test_in_the_copy_a_call_of_a_servers_tool_is_decided_and_the_button_says_so(page: TrialPage) -> None:
    assert page.run_button.text() == "Decide, not run"
    assert page.run_button.toolTip().startswith("It acts outside of the copy, and is called live only")
    call(page)
    page.run()
    record = await settled(page, 1)
    assert (record.kind, record.verdict) == ("decide", "allow")


async def test_in_the_copy_a_call_of_the_web_is_decided_too(page: TrialPage) -> None:
    page.request.choose_tool("web_fetch")
    assert page.run_button.text() == "Decide, not run"
    call(page, url="https://example.org/")
    page.run()
    record = await settled(page, 1)
    assert (record.kind, record.verdict) == ("decide", "allow")


async def test_live_a_call_reaches_the_server(page: TrialPage) -> None:
    await go_live(page)
    assert page.run_button.text() == "Run LIVE"
    call(page)
    page.run()
    record = await settled(page, 1)
    assert (record.kind, record.status, record.output) == ("run", "allowed", "raw")
