"""What the tools of commands and modules see: their places on the page Catalogs, edited there, and how they stand."""

import json
import sys
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from gatewright.gate import Status
from gatewright.policy.document import PlaceUse
from gatewright.workspace import Workspace
from gatewright_gui.pages.servers.server_dialogs import TrustDialog
from gatewright_gui.window.main_window import MainWindow
from tests.engine.adapters.test_wasm_tools import reading
from tests.gui.servers.test_page import can_press, dialog_of, page_of, press, told
from tests.gui.session.opened import opened_window, settled, until

TOOL = {"name": "{name}", "description": "Reads.", "inputSchema": {"type": "object"}}
POLICY = """gatewright = 1

[agents.desk]
tools = ["read", "count", "ask"]
sources = ["texts"]
capabilities = [{{ WasmExec = {{}} }}]

[[sources]]
id = "texts"
type = "file"
base_path = "texts"
default_permission = "read_write"
{levels}

[[catalogs]]
id = "module"
type = "wasm"
manifest = "module.json"
module = "tool.wasm"
places = {{ texts = "read" }}

[[catalogs]]
id = "command"
type = "subprocess"
manifest = "command.json"
command = {python}
args = ["tool.py"]
places = {{ "./tool.py" = "read", texts = "snapshot" }}

[[catalogs]]
id = "host"
type = "host"
manifest = "host.json"

[[catalogs]]
id = "away"
type = "http"
manifest = "away.json"
url = "http://127.0.0.1:9/"
"""


@pytest.fixture
async def window(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[MainWindow]:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    folder = tmp_path / "desk"
    (folder / "texts" / "inner").mkdir(parents=True)
    (folder / "texts" / "file").write_text('"hello"', "utf-8")
    (folder / "tool.wasm").write_bytes(reading("file"))
    (folder / "tool.py").write_text("import json, sys\njson.load(sys.stdin)\nprint(1)\n", "utf-8")
    names = {"module": "read", "command": "count", "host": "post", "away": "ask"}
    for catalog, name in names.items():
        run = {"run": {"path": "/"}} if catalog == "away" else {}
        (folder / f"{catalog}.json").write_text(json.dumps([{**TOOL, "name": name, **run}]), "utf-8")
    policy = folder / "policy.toml"
    policy.write_text(POLICY.format(python=json.dumps(sys.executable), levels=""), encoding="utf-8")
    with Workspace.open(policy, trust=True) as workspace:
        for catalog in ("module", "command", "away"):
            workspace.accept_tools(catalog, None, needs_capabilities=False)
    async with opened_window(policy, tmp_path) as made:
        made.show_page("servers")
        await settled(made)
        yield made


def choose(window: MainWindow, catalog: str) -> None:
    page = page_of(window)
    page.choose("catalog", catalog)


async def sees(window: MainWindow, catalog: str) -> str:
    """Go to what the tools of a catalog see; the words of the band."""
    choose(window, catalog)
    page_of(window).detail.part.set_current("sees")
    await settled(window)
    return page_of(window).detail.sees.band.words.text()


def facts(window: MainWindow) -> dict[str, str]:
    return {row.name: row.value for row in page_of(window).detail.sees.facts.rows if row.name}


async def test_no_catalog_without_a_server_is_said_to_be_connected_or_running(window: MainWindow) -> None:
    states = {row.catalog_id: row.status[0] for row in page_of(window).catalogs.rows}
    assert states == {
        "module": "on",
        "command": "on",
        "host": "run elsewhere",
        "away": "on",
    }
    for catalog in states:
        choose(window, catalog)
        assert not any(can_press(page_of(window), f"servers.{verb}") for verb in ("start", "stop", "ask"))


async def test_what_the_tools_of_a_command_and_a_module_see_is_shown(window: MainWindow) -> None:
    assert (await sees(window, "command")).startswith("Confined")
    pane = page_of(window).detail.sees
    rooms = pane.browser.model.rooms
    assert {place.written: place.use for place in rooms[0].places}["texts"] is PlaceUse.SNAPSHOT
    assert facts(window)["Runs"] == "the programs of the system"
    assert facts(window)["Bounds"].startswith("of each call")

    assert (await sees(window, "module")).startswith("A module runs its tools")
    assert {place.written: place.use for place in pane.browser.model.rooms[0].places} == {"texts": PlaceUse.READ}
    told = facts(window)
    assert told["Runs"] == "no program: the module runs within this one"
    assert (told["Reaches"], told["Variables"]) == ("no host", "none of yours")
    assert (await sees(window, "away")).startswith("It runs elsewhere: calls go to http://127.0.0.1:9/")
    choose(window, "host")
    part = page_of(window).detail.part
    assert [key for key in part.keys if part.button(key).isEnabled()] == ["tools", "server"]


async def test_places_of_a_module_are_changed_by_hand_and_hold_for_its_calls(window: MainWindow) -> None:
    workspace = window.document.workspace
    await sees(window, "module")
    first = await workspace.call("desk", "read", {})
    assert first.output == "hello"
    press(page_of(window), "servers.sees.places")
    dialog = await dialog_of(window, TrustDialog)
    assert dialog.accept_button.text() == "Accept"
    dialog.browser.choose("module", "texts")
    assert not dialog.use.button("snapshot").isEnabled()
    QTest.mouseClick(dialog.use.button("write"), Qt.MouseButton.LeftButton)
    press(dialog, "trust.accept")
    await settled(window)
    catalog = window.document.policy.catalog("module")
    assert catalog is not None
    assert catalog.places == {"texts": PlaceUse.WRITE}

    press(page_of(window), "servers.sees.places")
    dialog = await dialog_of(window, TrustDialog)
    dialog.browser.choose("module", "texts")
    dialog.browser.tree.setFocus()
    QTest.keyClick(dialog.browser.tree, Qt.Key.Key_Delete)
    press(dialog, "trust.accept")
    await settled(window)
    catalog = window.document.policy.catalog("module")
    assert catalog is not None
    assert catalog.places == {}
    outcome = await workspace.call("desk", "read", {})
    assert outcome.output.isdecimal()  # there is no folder any more


@pytest.mark.parametrize(
    ("levels", "why"),
    [
        ('permission_rules = [{ pattern = "inner/**", permission = "none" }]', "texts"),
        ('permission_rules = [{ pattern = "inner/**", permission = "partner" }]', ""),
    ],
)
async def test_place_that_a_module_cannot_be_given_is_said_before_any_call(
    window: MainWindow, levels: str, why: str
) -> None:
    path = window.document.workspace.policy_path
    path.write_text(POLICY.format(python=json.dumps(sys.executable), levels=levels), encoding="utf-8")
    assert await window.document.reload()
    words = await sees(window, "module")
    outcome = await window.document.workspace.call("desk", "read", {})
    assert words.startswith("Not run: a module cannot be given its place") == (outcome.status is Status.FAILED)
    assert words.startswith("Not run") == bool(why)
    assert why in words


async def test_what_changes_on_the_disk_is_seen_on_the_page(window: MainWindow) -> None:
    folder, page = window.document.workspace.folder, page_of(window)
    changed = [{**TOOL, "name": "count", "description": "Counts what it reads."}]
    (folder / "command.json").write_text(json.dumps(changed), "utf-8")
    choose(window, "command")
    assert await window.document.reload()
    await until(lambda: page.current is not None and page.current.waiting)
    assert "+description: Counts what it reads." in page.detail.tools.code.text
    assert page.detail.tools.model.rows[0].state == "changed, to accept"

    (folder / "tool.wasm").write_bytes(reading("other"))
    choose(window, "module")
    page.page_shown()
    assert page.current is not None
    assert page.current.status[0] == "not trusted"
    assert can_press(page, "servers.trust")

    (folder / "away.json").unlink()
    assert await window.document.reload()
    choose(window, "away")
    assert page.current is not None
    assert page.current.status[0] == "cannot be read"
    assert "`away.json` of catalog `away` is missing" in told(page)
