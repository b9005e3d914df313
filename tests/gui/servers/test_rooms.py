"""Pictures of what a server would see, where it is asked for: places proposed, changed, accepted; folders counted."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from PySide6.QtCore import QModelIndex, Qt
from PySide6.QtGui import QAction
from PySide6.QtTest import QAbstractItemModelTester, QTest
from PySide6.QtWidgets import QAbstractButton, QFileDialog, QLabel, QLineEdit, QMenu, QPushButton, QWidget

from gatewright.base.errors import Problem, Severity, Subject
from gatewright.policy import policyedit, sourceedit
from gatewright.policy.document import PlaceUse
from gatewright.policy.verdict import Permission
from gatewright_gui.pages.policy_file.problems import ProblemsPage
from gatewright_gui.pages.servers.room_browser import RoomBrowser
from gatewright_gui.pages.servers.room_pane import RoomDialog
from gatewright_gui.pages.servers.room_tree import FILES, NAME, SEES
from gatewright_gui.pages.servers.server_dialogs import TrustDialog
from gatewright_gui.window.main_window import MainWindow
from tests.gui.servers.test_page import dialog_of, page_of, press, told
from tests.gui.session.opened import Said, agents_pane, opened_window, settled, until

POLICY = """\
gatewright = 1

[agents.desk]
sources = ["notes"]

[agents.guest]
sources = []
capabilities = [{ NetRead = { allowlist = ["api.example.com"] } }]

[workspace]
roots = { shared = "lib" }
shell = { backend = "host", allow = ["ls"] }

[[sources]]
id = "notes"
type = "file"
base_path = "notes"
default_permission = "read_write"

[[sources.permission_rules]]
pattern = "*.pem"
permission = "none"

[[sources.permission_rules]]
pattern = "/plan/"
permission = "human"

[[catalogs]]
id = "files"
type = "mcp"
command = "no-such-server-files"
places = { notes = "write", "./lib" = "read" }
"""
FILES_THERE = ("notes/a.md", "notes/plan/b.md", "notes/keys/id.pem", "notes/Übersicht/größe.txt", "lib/c.md")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in FILES_THERE:
        path = tmp_path / "desk" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x", encoding="utf-8")
    (tmp_path / "desk" / "policy.toml").write_text(POLICY, encoding="utf-8")
    return tmp_path / "desk"


@pytest.fixture
async def window(folder: Path, tmp_path: Path) -> AsyncGenerator[MainWindow]:
    async with opened_window(folder / "policy.toml", tmp_path) as made:
        made.show_page("servers")
        await settled(made)
        yield made


async def browser_of(window: MainWindow, catalog_id: str = "files") -> RoomBrowser:
    page = page_of(window)
    page.choose("catalog", catalog_id)
    QTest.mouseClick(page.detail.part.button("sees"), Qt.MouseButton.LeftButton)
    await settled(window)
    return page.detail.sees.browser


def drawn(browser: RoomBrowser, parent: QModelIndex | None = None, depth: int = 0) -> list[str]:
    """The rows that are open, as they read."""
    top = parent if parent is not None else QModelIndex()
    lines: list[str] = []
    for row in range(browser.model.rowCount(top)):
        cells = [str(browser.model.index(row, column, top).data() or "") for column in (NAME, SEES, FILES)]
        lines.append("  " * depth + " | ".join(filter(None, cells)))
        index = browser.model.index(row, NAME, top)
        if browser.tree.isExpanded(index):
            lines += drawn(browser, index, depth + 1)
    return lines


async def trust_dialog(window: MainWindow) -> TrustDialog:
    press(page_of(window), "servers.trust")
    dialog = await dialog_of(window, TrustDialog)
    await settled_but_dialog(window)
    return dialog


async def settled_but_dialog(window: MainWindow) -> None:
    """Until nothing is read or counted; the question itself waits for its answer."""
    await until(lambda: not set(window.tasks.names) - {"servers"})


def choose_place(browser: RoomBrowser, name: str) -> None:
    """A click on the row of a place."""
    for row in range(browser.model.rowCount()):
        index = browser.model.index(row, NAME)
        if str(index.data()) == name:
            at = browser.tree.visualRect(index).center()
            QTest.mouseClick(browser.tree.viewport(), Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, at)
            return
    raise AssertionError(name)


async def test_what_a_server_sees_is_drawn_for_all_agents_and_for_one(window: MainWindow) -> None:
    browser = await browser_of(window)
    QAbstractItemModelTester(browser.model)
    lib = f"{window.document.workspace.folder}/lib"
    assert drawn(browser) == [
        f"{lib} | read | 1 file",
        "  c.md | read",
        "source notes (for desk) | change | 4 files, 1 hidden",
        "  keys | hidden | 1 file",
        "  plan | read | 1 file",
        "  Übersicht | change | 1 file",
        "  a.md | change",
    ]
    assert browser.summary.text() == "5 files: 2 to read, 2 to change, 1 hidden"
    pane = page_of(window).detail.sees
    facts = [(row.name, row.value) for row in pane.facts.rows]
    assert ("Reaches", "api.example.com (for guest)") in facts
    assert any(name == "Never changes" and value.endswith("policy.toml") for name, value in facts)
    assert any(value.startswith("a hidden name that appears anew in") and value.endswith("notes") for _, value in facts)

    pane.agents.setCurrentIndex(pane.agents.findData("guest"))
    pane.agents.activated.emit(pane.agents.currentIndex())
    await settled(window)
    assert drawn(browser)[0] == f"{lib} | read | 1 file"
    assert "notes" not in "".join(drawn(browser))


async def test_drawing_follows_an_edit_of_a_level_and_keeps_what_is_open(window: MainWindow) -> None:
    browser = await browser_of(window)
    window.document.push(lambda policy, _: sourceedit.set_level(policy, "notes", 0, Permission.READ_ONLY))
    await settled(window)
    assert "  keys | read | 1 file" in drawn(browser)
    window.document.undo()
    await settled(window)
    assert "  keys | hidden | 1 file" in drawn(browser)


async def test_places_are_changed_by_mouse_and_keyboard_and_accepted_by_one_button(window: MainWindow) -> None:
    dialog = await trust_dialog(window)
    browser = dialog.browser
    assert drawn(browser)[0] == "source notes | change | 4 files, 1 hidden"
    choose_place(browser, "source notes")
    QTest.mouseClick(dialog.use.button("read"), Qt.MouseButton.LeftButton)
    await settled_but_dialog(window)
    assert "source notes | read | 4 files, 1 hidden" in drawn(browser)
    assert browser.summary.text() == "5 files: 4 to read, 0 to change, 1 hidden"

    choose_place(browser, "./lib")
    browser.tree.setFocus()
    QTest.keyClick(browser.tree, Qt.Key.Key_Delete)
    assert dialog.places["files"] == {"notes": PlaceUse.READ}
    QTest.mouseClick(dialog.folder_button, Qt.MouseButton.LeftButton)
    chooser = await dialog_of(window, QFileDialog)
    field = chooser.findChild(QLineEdit, "fileNameEdit")
    assert field is not None
    field.setText(str(window.document.workspace.folder / "more"))
    QTest.keyClick(field, Qt.Key.Key_Return)
    await until(lambda: "./more" in dialog.places["files"])
    QTest.keyClick(dialog.use.button("read"), Qt.Key.Key_Right)
    QTest.keyClick(dialog.use.button("write"), Qt.Key.Key_Right)
    assert dialog.places["files"] == {"notes": PlaceUse.READ, "./more": PlaceUse.SNAPSHOT}

    press(dialog, "trust.accept")
    await settled(window)
    catalog = window.document.policy.catalog("files")
    assert catalog is not None
    assert catalog.places == {"notes": PlaceUse.READ, "./more": PlaceUse.SNAPSHOT}
    row = page_of(window).current
    assert row is not None
    assert row.is_trusted
    window.document.undo()
    catalog = window.document.policy.catalog("files")
    assert catalog is not None
    assert catalog.places == {"notes": PlaceUse.WRITE, "./lib": PlaceUse.READ}


async def test_sources_that_are_no_place_yet_are_offered(window: MainWindow) -> None:
    dialog = await trust_dialog(window)
    dialog.source_menu.aboutToShow.emit()
    assert [action.text() for action in dialog.source_menu.actions()] == ["no other source"]
    choose_place(dialog.browser, "source notes")
    press(dialog, "trust.remove")
    dialog.source_menu.aboutToShow.emit()
    (action,) = dialog.source_menu.actions()
    action.trigger()
    assert dialog.places["files"] == {"./lib": PlaceUse.READ, "notes": PlaceUse.READ}
    press(dialog, "trust.cancel")
    await settled(window)
    assert not window.document.is_dirty


async def test_a_home_folder_the_disk_and_a_folder_that_is_gone_are_said(folder: Path, tmp_path: Path) -> None:
    places = f'places = {{ "{tmp_path}/home" = "read", "{tmp_path}" = "read", "./gone" = "write" }}'
    text = POLICY.replace('places = { notes = "write", "./lib" = "read" }', places)
    (folder / "policy.toml").write_text(text, encoding="utf-8")
    async with opened_window(folder / "policy.toml", tmp_path) as window:
        window.show_page("servers")
        await settled(window)
        dialog = await trust_dialog(window)
        warnings = dialog.browser.warning.text().splitlines()
        assert len(warnings) == 2
        assert all("keys, passwords" in one for one in warnings)
        assert "./gone | change | not there" in drawn(dialog.browser)
        press(dialog, "trust.cancel")
        await settled(window)


async def test_a_large_folder_and_forty_places_are_drawn_beside_the_window_and_counting_stops_on_a_word(
    folder: Path, tmp_path: Path
) -> None:
    for number in range(100):
        part = folder / "big" / f"part{number:03}"
        part.mkdir(parents=True)
        for name in range(1000):
            (part / f"f{name}").touch()
    for number in range(40):
        (folder / f"täglich {number:02}").mkdir()
    many = ", ".join(f'"./täglich {number:02}" = "read"' for number in range(40))
    text = POLICY.replace('"./lib" = "read" }', f'"./big" = "read", {many} }}')
    (folder / "policy.toml").write_text(text, encoding="utf-8")
    async with opened_window(folder / "policy.toml", tmp_path) as window:
        window.show_page("servers")
        await settled(window)
        dialog = await trust_dialog(window)
        rows = drawn(dialog.browser)
        assert "./big | read | 100,000 files" in rows
        assert "./täglich 39 | read | 0 files" in rows
        assert len(rows) == 42
        dialog.browser.count()
        assert "trust.places.count" in window.tasks.names
        dialog.browser.strip.cancel_requested.emit()
        await settled_but_dialog(window)
        assert dialog.browser.summary.text() == "Counting was stopped."
        dialog.browser.count()
        QTest.keyClick(dialog, Qt.Key.Key_Escape)
        await settled(window)


async def test_what_shell_commands_see_is_shown_from_the_policy(window: MainWindow) -> None:
    window.show_page("settings")
    await settled(window)
    page = window.shelf.page("settings")
    press(page, "settings.shell.room")
    dialog = await dialog_of(window, RoomDialog)
    await until(lambda: not set(window.tasks.names) - {"settings.room"})
    assert drawn(dialog.pane.browser)[-1] == "  c.md | read"
    press(dialog, "room.accept")
    await settled(window)


async def test_everything_in_the_dialog_has_a_name_and_fits_a_small_window(window: MainWindow) -> None:
    window.resize(853, 533)
    dialog = await trust_dialog(window)
    assert dialog.height() <= 533
    assert dialog.width() <= 853
    for one in dialog.findChildren(QWidget):
        takes_keys = bool(one.focusPolicy() & Qt.FocusPolicy.TabFocus) and one.isVisible()
        spoken = one.accessibleName() or (one.text() if isinstance(one, QAbstractButton | QLabel) else "")
        assert not takes_keys or spoken, one
    assert dialog.focusWidget() is dialog.findChild(QPushButton, "trust.cancel")
    press(dialog, "trust.cancel")
    await settled(window)


HELD = POLICY.replace('places = { notes = "write", "./lib" = "read" }', 'args = ["./lib", "--root=notes"]')


@pytest.mark.parametrize("is_trusted", [False, True])
async def test_a_server_whose_places_nobody_accepted_is_asked_about_with_what_its_command_names(
    folder: Path, tmp_path: Path, *, is_trusted: bool
) -> None:
    (folder / "policy.toml").write_text(HELD, encoding="utf-8")
    async with opened_window(folder / "policy.toml", tmp_path) as window:
        if is_trusted:
            window.document.workspace.trust_server("files")
        window.show_page("servers")
        await settled(window)
        page = page_of(window)
        if is_trusted:
            assert "which folders" in told(page)
            row = page.current
            assert row is not None
            assert row.status[0] == "off: needs folders"
        press(page, "servers.places" if is_trusted else "servers.trust")
        dialog = await dialog_of(window, TrustDialog)
        await settled_but_dialog(window)
        assert set(dialog.places["files"]) == {"./lib", "notes"}
        press(dialog, "trust.accept")
        await settled(window)
        catalog = window.document.policy.catalog("files")
        assert catalog is not None
        assert catalog.places is not None
        assert set(catalog.places) == {"./lib", "notes"}
        row = page.current
        assert row is not None
        assert row.is_trusted


async def test_problem_of_places_leads_to_the_drawing_and_is_mended_nowhere_unseen(
    folder: Path, tmp_path: Path
) -> None:
    (folder / "policy.toml").write_text(HELD, encoding="utf-8")
    async with opened_window(folder / "policy.toml", tmp_path) as window:
        problem = Problem(Severity.WARNING, "places-not-accepted", "held", subject=Subject(("catalogs", "files")))
        window.show_page("problems")
        await settled(window)
        window.document.set_problems([problem])
        page = window.shelf.page("problems")
        assert isinstance(page, ProblemsPage)
        page.view.setCurrentIndex(page.model.index(0, 0))
        await settled(window)
        buttons = {one.objectName(): one for one in page.findChildren(QPushButton) if one.isVisible()}
        assert not [name for name in buttons if name.startswith("problems.mend")]
        assert buttons["problems.trust"].text() == "Places..."
        QTest.mouseClick(buttons["problems.trust"], Qt.MouseButton.LeftButton)
        dialog = await dialog_of(window, TrustDialog)
        assert set(dialog.places["files"]) == {"./lib", "notes"}
        press(dialog, "trust.cancel")
        await settled(window)


async def test_an_edit_meanwhile_makes_the_answer_void(window: MainWindow) -> None:
    dialog, said = await trust_dialog(window), Said(window.document)
    window.document.push(lambda policy, _: policyedit.set_places(policy, "files", {}))
    press(dialog, "trust.accept")
    await settled(window)
    assert "changed meanwhile" in said.last
    row = page_of(window).current
    assert row is not None
    assert not row.is_trusted
    assert row.state.catalog.places == {}


async def test_shell_of_an_agent_is_shown_from_its_menu(window: MainWindow) -> None:
    window.show_page("tools")
    await settled(window)
    pane = agents_pane(window)
    at = pane.view.visualRect(pane.view.currentIndex()).center()
    pane.view.customContextMenuRequested.emit(at)
    menu = next(one for one in pane.findChildren(QMenu) if one.isVisible())
    action = menu.findChild(QAction, "agents.room")
    assert action is not None
    action.trigger()
    menu.close()
    dialog = await dialog_of(window, RoomDialog)
    await until(lambda: not set(window.tasks.names) - {"agents.room"})
    assert dialog.windowTitle() == "What shell commands of desk can see"
    assert drawn(dialog.pane.browser)[-1] == "  c.md | read"
    QTest.keyClick(dialog, Qt.Key.Key_Escape)
    await settled(window)
