"""Help: the list of keys is what docs/app.md says and what the window listens to; how strangers' tools come in."""

import json
import re

import pytest
from PySide6.QtCore import QModelIndex, Qt
from PySide6.QtGui import QAction, QGuiApplication, QKeySequence, QShortcut
from PySide6.QtTest import QAbstractItemModelTester, QTest
from PySide6.QtWidgets import QAbstractButton, QLineEdit

from gatewright_gui.models.keys import DOES, KEYS, PARTS, KeysModel
from gatewright_gui.qt.widget.button import CopyButton
from gatewright_gui.window.help_dialog import CATALOG_LINES, HelpDialog
from gatewright_gui.window.main_window import MainWindow
from tests.gui.session.opened import settled
from tests.support.checkout import ROOT

PAGES = ("home", "tools", "files", "memory", "try", "activity", "text", "problems")
TOOL: dict[str, object] = {
    "name": "page_somebody",
    "description": "Pages somebody.",
    "inputSchema": {"type": "object", "properties": {}},
}


def told(model: KeysModel) -> list[str]:
    return [model.index(row, KEYS).data() for row in range(model.rowCount(QModelIndex()))]


def row_of(model: KeysModel, keys: str) -> int:
    return told(model).index(keys)


async def press_f1(window: MainWindow) -> HelpDialog:
    QTest.keyClick(window, Qt.Key.Key_F1)
    await settled(window)
    dialog = window.findChild(HelpDialog, "help")
    assert dialog is not None
    assert dialog.isVisible()
    return dialog


def test_list_of_keys_is_that_of_the_documents() -> None:
    found: dict[str, list[tuple[str, str]]] = {}
    title = ""
    for line in (ROOT / "docs" / "app.md").read_text("utf-8").splitlines():
        if line.startswith("## "):
            title = line.removeprefix("## ")
        row = re.fullmatch(r"\| (`.+`) \| (.+) \|", line)
        if row is not None:
            found.setdefault(title, []).append((row[1].replace("`", ""), row[2].replace("`", "")))

    assert {part.title: [tuple(row) for row in part.rows] for part in PARTS} == found


def listed_keys() -> set[str]:
    found: set[str] = set()
    for part in PARTS:
        for row in part.rows:
            first, dots, last = row.keys.partition(" ... ")
            if dots:
                last, *others = last.split(", ")
                found |= {f"Ctrl+{number}" for number in range(int(first[-1]), int(last[-1]) + 1)} | {*others}
            else:
                found |= set(row.keys.split(", "))
    return {QKeySequence(keys).toString() for keys in found}


def bound_keys(window: MainWindow) -> set[str]:
    """What the window and its pages listen to by themselves; menus that are not open have none yet."""
    found = [keys for action in window.findChildren(QAction) for keys in action.shortcuts()]
    found += [keys for shortcut in window.findChildren(QShortcut) for keys in shortcut.keys()]  # noqa: SIM118
    found += [button.shortcut() for button in window.findChildren(QAbstractButton)]
    return {keys.toString().replace("+Enter", "+Return") for keys in found if not keys.isEmpty()}


async def test_every_key_that_the_window_listens_to_is_listed(window: MainWindow) -> None:
    for page in PAGES:
        window.show_page(page)
        await settled(window)

    bound = bound_keys(window)

    assert len(bound) > 20
    missing = bound - listed_keys()
    assert not missing


@pytest.mark.parametrize(
    ("page", "first"), [("tools", "Access, Tools"), ("files", "Access, Files"), ("problems", "Everywhere")]
)
async def test_f1_lists_the_keys_of_the_page_first(window: MainWindow, page: str, first: str) -> None:
    window.show_page(page)

    dialog = await press_f1(window)

    assert told(dialog.model)[0] == first
    assert len(told(dialog.model)) == len(PARTS) + sum(len(part.rows) for part in PARTS)
    assert dialog.search.hasFocus()


async def test_without_a_workspace_help_begins_with_the_keys_that_hold_everywhere(window: MainWindow) -> None:
    window.document.close()
    await settled(window)
    dialog = await press_f1(window)
    everywhere = [part for part in PARTS if not part.pages]
    assert told(dialog.model)[0] == everywhere[0].title


async def test_keys_are_searched_by_what_they_do(window: MainWindow) -> None:
    dialog = await press_f1(window)
    QTest.keyClicks(dialog.search, "takes wholly unheard of")
    assert dialog.model.rowCount() == 0
    assert not dialog.view.isVisible()
    dialog.search.clear()
    QTest.keyClicks(dialog.search, "undo")

    assert told(dialog.model) == ["Everywhere", "Ctrl+Z, Ctrl+Shift+Z"]
    assert dialog.model.index(1, DOES).data().startswith("undo, redo")
    assert dialog.view.isVisible()
    QTest.keyClick(dialog.search, Qt.Key.Key_Escape)
    QTest.keyClick(dialog.search, Qt.Key.Key_Escape)
    assert not dialog.isVisible()


def test_title_of_a_part_stands_over_its_keys_and_cannot_be_chosen() -> None:
    model = KeysModel()
    QAbstractItemModelTester(model, QAbstractItemModelTester.FailureReportingMode.Fatal)
    model.set_page("try")
    model.set_search("run")

    at = row_of(model, "Ctrl+Return, Ctrl+Shift+Return")
    assert told(model)[0] == "Try"
    assert model.title_rows[0] == 0
    assert not model.flags(model.index(0, 0)) & Qt.ItemFlag.ItemIsSelectable
    assert model.flags(model.index(at, 0)) & Qt.ItemFlag.ItemIsSelectable


@pytest.mark.parametrize(
    ("typed", "part"), [("help", "keys"), ("shortcuts", "keys"), ("another program", "import"), ("manifest", "import")]
)
async def test_palette_finds_help_by_what_one_would_type(window: MainWindow, typed: str, part: str) -> None:
    window.open_palette()
    field = window.findChild(QLineEdit, "palette.search")
    assert field is not None
    QTest.keyClicks(field, f">{typed}")
    QTest.keyClick(field, Qt.Key.Key_Return)
    await settled(window)

    dialog = window.findChild(HelpDialog, "help")
    assert dialog is not None
    assert dialog.isVisible()
    assert dialog.part.current == part


async def test_lines_that_help_gives_bring_a_list_of_tools_in(window: MainWindow) -> None:
    path = window.document.path
    assert path is not None
    window.show_import()
    window.help.findChildren(CopyButton)[0].click()
    assert QGuiApplication.clipboard().text() == CATALOG_LINES
    (path.parent / "team.json").write_text(json.dumps({"tools": [TOOL]}), "utf-8")
    lines = QGuiApplication.clipboard().text().replace('"desk', '"team')
    path.write_text(f"{path.read_text('utf-8')}\n{lines}", "utf-8")

    window.reload()
    await settled(window)

    assert "page_somebody" in {facts.name for facts in window.document.catalog}


async def test_help_goes_to_the_policy_file_and_stays_open(window: MainWindow) -> None:
    window.show_import()
    window.help.file_button.click()

    assert window.shelf.current_key == "text"
    assert window.help.isVisible()
