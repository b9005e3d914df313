"""Files that define tools are added by hand on the page Catalogs: documents and manifests, good and broken ones."""

import json
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest

from gatewright.gate import Status
from gatewright.policy.document import CatalogType
from gatewright_gui.pages.servers.add_dialog import LARGE, AddDialog
from gatewright_gui.pages.servers.server_dialogs import TrustDialog
from gatewright_gui.pages.servers.tools import TOOL
from gatewright_gui.window.main_window import MainWindow
from tests.engine.adapters.test_openapi import document
from tests.engine.builtins.webbench import Site, answer, started
from tests.gui.servers.test_page import dialog_of, page_of, press
from tests.gui.session.opened import opened_window, settled, until

POLICY = """gatewright = 1

[agents.desk]
sources = []
capabilities = [{ NetRead = { allowlist = ["127.0.0.1"] } }]

[workspace]
web = { allow_private = true }
"""
COUNT = [{"name": "count", "description": "Counts.", "inputSchema": {"type": "object"}}]


@pytest.fixture
async def window(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[MainWindow]:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    policy = tmp_path / "desk" / "policy.toml"
    policy.parent.mkdir()
    policy.write_text(POLICY, encoding="utf-8")
    async with opened_window(policy, tmp_path) as made:
        made.show_page("servers")
        await settled(made)
        yield made


@pytest.fixture
async def site() -> AsyncGenerator[Site]:
    server, made = await started()
    made.pages["/v1/pets"] = answer('{"pets": []}', content_type="application/json")
    yield made
    server.close()
    await server.wait_closed()


def written(path: Path, value: object) -> Path:
    path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return path


async def add_dialog(window: MainWindow) -> AddDialog:
    press(page_of(window), "servers.add")
    return await dialog_of(window, AddDialog)


async def read(dialog: AddDialog, path: Path) -> None:
    """Have a file read, to its end."""
    dialog.read_file(path)
    await until(lambda: dialog.form.found is not None or dialog.fault.text())


async def add_file(window: MainWindow, path: Path) -> AddDialog:
    dialog = await add_dialog(window)
    await read(dialog, path)
    return dialog


async def trusted(window: MainWindow) -> str:
    """Trust what was added; the words that were agreed to."""
    dialog = await dialog_of(window, TrustDialog)
    words = dialog.code.text
    press(dialog, "trust.accept")
    await settled(window)
    return words


async def test_document_is_looked_at_chosen_trusted_accepted_and_called(
    window: MainWindow, site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SHOP_KEY", raising=False)
    local = f"http://127.0.0.1:{site.port}/v1"
    broken: dict[str, Any] = {"get": 3, "options": {"responses": {}}}
    shop = document(servers=[{"url": "https://shop.example.com"}, {"url": local}])
    shop["paths"]["/odd"] = broken
    dialog = await add_file(window, written(tmp_path / "shop.json", shop))
    form = dialog.form
    assert form.title.text() == "OpenAPI document: Pets"
    assert "5 operations in 1 tool" in form.summary.text()
    assert "2 parts are left out" in form.summary.text()
    assert [row.name for row in form.model.rows] == ["pets"]
    form.part.set_current("faults")
    assert {row.about for row in form.model.rows} == {"/paths/~1odd/get", "/paths/~1odd/options"}
    assert form.headers.text() == "X-Key=EXAMPLE_X_KEY"
    assert form.variables.text().endswith("EXAMPLE_X_KEY")
    assert [form.address.itemText(at) for at in range(form.address.count())] == ["https://shop.example.com", local]

    form.catalog_id.clear()
    assert not dialog.accept_button.isEnabled()
    assert dialog.fault.text() == "it needs an id"
    QTest.keyClicks(form.catalog_id, "shop")
    form.address.setCurrentText("shop.example.com")
    assert "where do calls go?" in dialog.fault.text()
    form.address.setCurrentIndex(1)
    assert "go to 127.0.0.1" in form.summary.text()
    form.headers.clear()
    monkeypatch.setenv("SHOP_KEY", "open-sesame-now")
    QTest.keyClicks(form.headers, "X-Key=SHOP_KEY")
    assert form.variables.text() == "all of them are set here"
    assert window.document.policy.catalogs == ()
    QTest.keyClick(form.headers, Qt.Key.Key_Return)
    words = await trusted(window)
    assert f"address   {local}" in words
    assert "header    X-Key from the variable SHOP_KEY" in words
    assert site.requests == []

    page = page_of(window)
    assert page.current is not None
    assert (page.current.catalog_id, page.current.status[0]) == ("shop", "on")
    press(page, "servers.accept")
    await settled(window)
    workspace = window.document.workspace
    outcome = await workspace.call("desk", "pets", {"operation": "list"})
    assert (outcome.status, outcome.output) == (Status.ALLOWED, '{"pets":[]}')
    assert site.headers()["x-key"] == "open-sesame-now"
    outcome = await workspace.call("desk", "pets", {"operation": "delete", "petId": "7"})
    assert outcome.status is Status.DENIED
    window.document.undo()
    assert window.document.policy.catalogs == ()


async def test_document_that_changed_is_read_again_and_what_changed_is_held_with_its_difference(
    window: MainWindow, tmp_path: Path
) -> None:
    path = written(tmp_path / "shop.json", document())
    press(await add_file(window, path), "catalog_add.accept")
    await trusted(window)
    page = page_of(window)
    press(page, "servers.accept")
    await settled(window)
    changed = document()
    changed["paths"]["/pets"]["delete"] = {"tags": ["Pets"], "summary": "All gone", "responses": {}}
    changed["paths"]["/new"] = {"get": {"tags": ["News"], "responses": {}}}
    dialog = await add_file(window, written(path, changed))
    assert dialog.form.catalog_id.text() == "example"
    assert "Reads the document of example again" in dialog.form.summary.text()
    press(dialog, "catalog_add.accept")
    await until(lambda: page.detail.tools.model.ticked_count == 2)
    await settled(window)
    lines = {line.name: line.state for line in page.detail.tools.model.rows}
    assert lines == {"news": "new, to accept", "pets": "changed, to accept"}
    page.detail.tools.view.setCurrentIndex(page.detail.tools.model.index([*lines].index("pets"), TOOL))
    assert '"description": "All gone"' in page.detail.tools.code.text
    assert [catalog.catalog_id for catalog in window.document.policy.catalogs] == ["example"]


async def test_manifest_in_the_folder_becomes_tools_of_a_process_where_it_lies(window: MainWindow) -> None:
    folder = window.document.workspace.folder
    path = written(folder / "count.json", {"name": "Counting", "tools": [*COUNT, {"name": "bad"}]})
    written(folder / "count.py", "import json, sys\njson.load(sys.stdin)\nprint(3)\n")
    dialog = await add_file(window, path)
    form = dialog.form
    assert form.title.text() == "Manifest of tools: Counting"
    assert [CatalogType(form.kind.itemData(at)) for at in range(form.kind.count())] == [
        CatalogType.SUBPROCESS,
        CatalogType.WASM,
        CatalogType.HOST,
    ]
    form.part.set_current("faults")
    assert [row.about for row in form.model.rows] == ["/1"]
    assert "which command runs its tools?" in dialog.fault.text()
    QTest.keyClicks(form.command, f"{sys.executable} count.py 'x")
    assert "no closing quotation" in dialog.fault.text()
    form.command.clear()
    QTest.keyClicks(form.command, f"{sys.executable} ./count.py")
    press(dialog, "catalog_add.accept")
    words = await trusted(window)
    assert "type      subprocess" in words
    (catalog,) = window.document.policy.catalogs
    assert (catalog.catalog_id, catalog.manifest, catalog.args) == ("counting", "count.json", ("./count.py",))
    page = page_of(window)
    assert (page.detail.tools.model.rows[0].name, page.detail.tools.model.rows[0].state) == ("count", "new, to accept")


async def test_manifest_elsewhere_is_copied_and_a_module_runs_it(window: MainWindow, tmp_path: Path) -> None:
    folder = window.document.workspace.folder
    (folder / "count.wasm").write_bytes(b"\0asm\1\0\0\0")
    tools = [{**COUNT[0], "run": {"fuel": 1000}}]
    dialog = await add_file(window, written(tmp_path / "count.json", tools))
    assert dialog.form.runs is CatalogType.WASM
    assert not dialog.form.address.isVisible()
    QTest.keyClicks(dialog.form.module, "count.wasm")
    press(dialog, "catalog_add.accept")
    words = await trusted(window)
    assert "module    count.wasm" in words
    assert json.loads((folder / "tools.tools.json").read_text("utf-8")) == tools


async def test_yaml_can_be_typed_and_what_is_wrong_with_it_is_said_at_its_place(window: MainWindow) -> None:
    dialog = await add_dialog(window)
    dialog.text.setPlainText("openapi: 3.1.0\ninfo: {title: Shop\npaths: [")
    await until(dialog.fault.text)
    assert "line 3" in dialog.fault.text()
    assert not dialog.accept_button.isEnabled()
    QTest.keyClicks(dialog.form.catalog_id, "mine")
    start = "openapi: 3.1.0\ninfo: {title: Shop, version: '1'}\n"
    dialog.text.setPlainText(f"{start}paths:\n  /a:\n    get: {{responses: {{}}}}")
    await until(lambda: dialog.form.found is not None)
    assert dialog.form.catalog_id.text() == "mine"
    assert not dialog.accept_button.isEnabled()
    assert "where do calls go?" in dialog.fault.text()
    dialog.form.address.setEditText("https://api.example.org")
    assert dialog.accept_button.isEnabled()
    QTest.keyClick(dialog, Qt.Key.Key_Escape)
    await settled(window)
    assert window.document.policy.catalogs == ()


def broken_files() -> dict[str, tuple[Any, str]]:
    """Files that cannot be read, each with words of what is said."""
    swagger: dict[str, Any] = {"swagger": "2.0", "paths": {}}
    return {
        "swagger.json": (swagger, "Swagger 2.0"),
        "cut.json": ('{"openapi": "3.1.0",\n "paths": {', "line 2 column 12"),
        "twice.json": ('{"tools": [], "tools": []}', "twice"),
        "bytes.yaml": (b"openapi: \xff", "UTF-8"),
        "deep.json": ('{"tools": ' + "[" * 5000, ""),
        "alias.yaml": ("openapi: 3.1.0\na: &a [x, x]\nb: *a\nc: *z\n", "line 4"),
        "none.json": ({"openapi": "3.1.0", "paths": {}}, ""),
        "empty.json": ({"tools": []}, ""),
        "text.json": ({"tools": "all"}, "a list of tools"),
    }


async def test_broken_file_adds_nothing_and_the_dialog_stays_with_what_was_typed(
    window: MainWindow, tmp_path: Path
) -> None:
    dialog = await add_dialog(window)
    for name, (value, words) in broken_files().items():
        path = tmp_path / name
        path.write_bytes(value) if isinstance(value, bytes) else written(path, value)
        await read(dialog, path)
        assert words in dialog.fault.text(), name
        assert not dialog.accept_button.isEnabled(), name
        assert dialog.isVisible()
    await read(dialog, written(tmp_path / "good.json", document()))
    dialog.form.catalog_id.setText("a b")
    press(dialog, "catalog_add.accept")
    await until(lambda: dialog.fault.text() and dialog.accept_button.isEnabled())
    assert dialog.isVisible()
    assert (dialog.form.catalog_id.text(), window.document.policy.catalogs) == ("a b", ())
    assert not (window.document.workspace.folder / "a b.tools.json").exists()


async def test_file_of_somebody_else_is_not_written_over(window: MainWindow, tmp_path: Path) -> None:
    other = written(window.document.workspace.folder / "example.tools.json", {"mine": True})
    dialog = await add_file(window, written(tmp_path / "shop.json", document()))
    press(dialog, "catalog_add.accept")
    await until(dialog.fault.text)
    assert "exists already" in dialog.fault.text()
    assert json.loads(other.read_text("utf-8")) == {"mine": True}
    assert window.document.policy.catalogs == ()


async def test_large_text_is_pasted_and_read_without_being_shown(window: MainWindow) -> None:
    shop = document()
    shop["x-more"] = "x" * LARGE
    QGuiApplication.clipboard().setText(json.dumps(shop))
    dialog = await add_dialog(window)
    dialog.text.setFocus()
    QTest.keyClick(dialog.text, Qt.Key.Key_V, Qt.KeyboardModifier.ControlModifier)
    await until(lambda: dialog.form.found is not None)
    assert dialog.text.toPlainText() == ""
    assert "characters was pasted" in dialog.text.placeholderText()
    assert dialog.form.title.text() == "OpenAPI document: Pets"
    press(dialog, "catalog_add.cancel")
    await settled(window)
