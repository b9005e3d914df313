"""Packages with install scripts that *Add servers* installs: asked about by name, left out unless allowed."""

import json
import shutil
from collections.abc import AsyncGenerator, Generator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from gatewright.adapters.confine import Confiner
from gatewright_gui.pages.servers.add_dialog import AddDialog
from gatewright_gui.pages.servers.page import ServersPage
from gatewright_gui.pages.servers.server_dialogs import TrustDialog
from gatewright_gui.qt.dialog import QuestionDialog
from gatewright_gui.window.main_window import MainWindow
from tests.gui.servers.test_page import POLICY, dialog_of, page_of, press, told
from tests.gui.session.opened import opened_window, settled
from tests.support.real_servers import put_node
from tests.support.registry import SERVER_JS, make_wheel, npm_registry

pytestmark = pytest.mark.skipif(bool(Confiner.why_not()), reason=Confiner.why_not() or "-")

SERVER_PY = """\
import json, sys
def main():
    answers = {
        "initialize": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                       "serverInfo": {"name": "s", "version": "1"}},
        "tools/list": {"tools": [{"name": "hello", "inputSchema": {"type": "object"}}]},
    }
    for line in sys.stdin:
        row = json.loads(line)
        if row.get("method") in answers:
            print(json.dumps({"jsonrpc": "2.0", "id": row["id"], "result": answers[row["method"]]}), flush=True)
"""
BACKEND = """\
import shutil
def build_wheel(folder, *_):
    shutil.copy(WHEEL, folder)
    return WHEEL
"""


def npm(text: str, files: dict[str, str] | None = None, **more: object) -> dict[str, str]:
    about = {"bin": {"serve": "cli.js"}, **more}
    return {"package.json": json.dumps(about), "cli.js": text, **(files or {})}


def needing(name: str) -> str:
    head, rest = SERVER_JS.split("\n", 1)
    return f"{head}\nrequire('{name}')\n{rest}"


SCRIPT = {"scripts": {"install": "node install.js"}}
WRITES = {"install.js": "require('fs').writeFileSync('made.js', '')"}
PACKAGES = {
    "plain": {"1.0.0": npm(SERVER_JS)},
    "vain": {"1.0.0": npm(SERVER_JS, WRITES, **SCRIPT)},
    "own": {"1.0.0": npm(needing("./made"), WRITES, **SCRIPT)},
    "native": {"1.0.0": npm("", WRITES, **SCRIPT)},
    "deep": {"1.0.0": npm(needing("native/made"), dependencies={"native": "1.0.0"})},
}
OUTCOMES = [  # the command; whose scripts; how the server is without them
    ("npx -y plain", "", True),
    ("npx -y vain", "vain", True),
    ("npx -y own", "own", False),
    ("npx deep@1.0.0", "native", False),
    ("uvx built==1.0", "built", False),
    ("uvx needs-built", "built", False),
]


def put_sources(folder: Path) -> None:
    """A source distribution of `built`, which has no wheel, and a wheel that needs it."""
    source = folder / "built-1.0"
    source.mkdir(parents=True)
    (source / "pyproject.toml").write_text(
        '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
    )
    (source / "PKG-INFO").write_text("Metadata-Version: 2.1\nName: built\nVersion: 1.0\n")
    make_wheel(source, "built", "1.0", {"built.py": SERVER_PY}, {"built": "built:main"})
    (source / "backend.py").write_text(BACKEND.replace("WHEEL", repr("built-1.0-py3-none-any.whl")))
    shutil.make_archive(str(source), "gztar", folder, source.name)
    make_wheel(
        folder, "needs-built", "1.0", {"needs_built.py": SERVER_PY}, {"needs-built": "needs_built:main"}, "built"
    )


@pytest.fixture
def registries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[None]:
    put_sources(tmp_path / "sources")
    with npm_registry(PACKAGES) as (address, _):
        monkeypatch.setenv("PATH", f"{put_node(tmp_path / 'bin')}:/usr/bin:/bin")
        monkeypatch.setenv("npm_config_registry", address)
        monkeypatch.setenv("npm_config_cache", str(tmp_path / "cache"))
        monkeypatch.setenv("PIP_NO_INDEX", "1")
        monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "sources"))
        yield


@pytest.fixture
async def window(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, registries: None) -> AsyncGenerator[MainWindow]:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    policy = tmp_path / "desk" / "policy.toml"
    policy.parent.mkdir()
    policy.write_text(POLICY, encoding="utf-8")
    async with opened_window(policy, tmp_path) as made:
        made.show_page("servers")
        await settled(made)
        yield made


async def add(window: MainWindow, line: str) -> ServersPage:
    page = page_of(window)
    QTest.mouseClick(page.empty.action_button, Qt.MouseButton.LeftButton)
    dialog = await dialog_of(window, AddDialog)
    dialog.text.setPlainText(line)
    press(dialog, "catalog_add.accept")
    press(await dialog_of(window, TrustDialog), "trust.accept")
    return page


def status(page: ServersPage) -> str:
    assert page.current is not None
    return page.current.status[0]


@pytest.mark.parametrize(("line", "named", "runs_without"), OUTCOMES)
async def test_install_scripts_are_asked_about_by_name_and_run_only_when_allowed(
    window: MainWindow, line: str, named: str, runs_without: bool
) -> None:
    page = await add(window, line)
    if not named:
        await settled(window)
        assert status(page) == "running"
        return
    question = await dialog_of(window, QuestionDialog)
    words = question.accessibleDescription()
    assert f": {named}." in words
    assert "registries" in words
    assert ("the server runs" if runs_without else "does not start") in words
    QTest.keyClick(question, Qt.Key.Key_Return)  # no, unless somebody chooses otherwise
    await settled(window)
    assert status(page) == ("running" if runs_without else "failed")
    if not runs_without:
        assert "install scripts" in told(page)
        assert named in told(page)

        press(page, "servers.start")
        press(await dialog_of(window, QuestionDialog), "choice-run")
        await settled(window)
        assert status(page) == "running"
        assert not page.catalogs.left_out_scripts(page.current.catalog_id if page.current else "")
