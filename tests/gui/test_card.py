"""The card, row by row: the window, its boxes, preview, rules, folders, console and text; the layout of the project."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QTableView, QTreeView

from gatewright_gui.pages.access.files import folder_tree, rule_model
from gatewright_gui.pages.policy_file import TextPage
from gatewright_gui.pages.trial import TrialPage
from gatewright_gui.window.main_window import MainWindow
from tests.gui.session.opened import agents_page, click, settled, ticked, until
from tests.support.checkout import ROOT


async def test_app(window: MainWindow) -> None:
    assert window.isVisible()
    assert window.document.policy.name == "Field notes"


async def test_checkboxes(window: MainWindow) -> None:
    window.selection.choose_agent("archivist")
    await settled(window)
    assert ticked(window, "file", "replace") is Qt.CheckState.Checked
    click(window, "file", "replace")
    await settled(window)
    assert ticked(window, "file", "replace") is Qt.CheckState.Unchecked
    decision = window.document.workspace.decide(
        "archivist", "file", {"op": "replace", "path": "a", "old": "a", "new": "b"}
    )
    assert (decision.stage, decision.code) == ("operation", "operation-not-allowed")


async def test_preview(window: MainWindow) -> None:
    window.selection.choose_agent("archivist")
    agents_page(window).tools.show_row("file", None)
    await settled(window)
    preview = agents_page(window).preview
    assert '"replace"' in preview.code.text
    click(window, "file", "replace")
    await settled(window)
    assert '"replace"' not in preview.code.text


async def test_rules(window: MainWindow) -> None:
    window.show_page("files")
    await settled(window)
    rules = window.findChild(QTableView, "files.rules")
    assert rules is not None
    patterns = [rules.model().index(row, rule_model.PATTERN).data() for row in range(rules.model().rowCount())]
    assert "drafts/**" in patterns


async def test_globs(window: MainWindow) -> None:
    window.show_page("files")
    await settled(window)
    tree = window.findChild(QTreeView, "files.tree")
    assert tree is not None
    await until(lambda: tree.model().rowCount() > 0)
    levels = {
        tree.model().index(row, 0).data(): tree.model().index(row, 0).data(folder_tree.PATH_LEVEL)
        for row in range(tree.model().rowCount())
    }
    assert str(levels["README.md"].permission) == "read_only"


async def test_console(window: MainWindow) -> None:
    window.selection.choose_agent("archivist")
    window.show_page("try")
    await settled(window)
    page = window.shelf.page("try")
    assert isinstance(page, TrialPage)
    await until(lambda: page.request.tool.is_known)
    page.request.choose_tool("file")
    page.request.mode.set_current("json")
    page.request.raw.set_text(json.dumps({"op": "read", "path": "README.md"}))
    page.run()
    await until(lambda: page.console.records and not page.console.is_busy)
    record = page.console.records[-1]
    assert (record.status, len(record.stages)) == ("allowed", 14)


async def test_toml(window: MainWindow) -> None:
    window.show_page("text")
    await settled(window)
    page = window.shelf.page("text")
    assert isinstance(page, TextPage)
    window.selection.choose_agent("archivist")
    click(window, "file", "replace")
    await until(lambda: '"append", "create"]' in "\n".join(page.editor.lines))


def test_layout() -> None:
    wanted = {"pyproject.toml", "README.md", "gui", "engine", "resources", "tests", "packaging"}
    assert wanted <= {path.name for path in ROOT.iterdir()}


def test_installer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert {"deb", "rpm"} <= set((ROOT / "packaging" / "build").read_text().replace(")", " ").split())
    for name in ("PYINSTALLER_RESET_ENVIRONMENT", "PYDANTIC_DISABLE_PLUGINS"):  # which the program sets for itself
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    for words in (["init", str(tmp_path / "ws")], ["check", str(tmp_path / "ws")]):
        monkeypatch.setattr("sys.argv", ["gatewright", *words])
        with pytest.raises(SystemExit) as ended:
            runpy.run_path(str(ROOT / "packaging" / "program.py"), run_name="__main__")
        assert ended.value.code == 0
