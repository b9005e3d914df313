import asyncio
import logging
import os
import re
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, QPoint, Qt, QUrl
from PySide6.QtGui import QAction, QDragEnterEvent, QDropEvent, QKeySequence, QShortcut
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QApplication,
    QCheckBox,
    QComboBox,
    QDialogButtonBox,
    QFileDialog,
    QHeaderView,
    QLineEdit,
    QPushButton,
    QWidget,
)

from gatewright.workspace import Workspace, create_workspace
from gatewright_gui.app.build import new_window
from gatewright_gui.app.living import live, open_first
from gatewright_gui.app.main import X11_LIBRARIES, has_display, missing_packages
from gatewright_gui.app.warm import warm_up
from gatewright_gui.pages.access.tools.tool_fit import NO_FILTERS, Filters, State
from gatewright_gui.pages.policy_file import TextPage
from gatewright_gui.pages.policy_file.problems import ProblemsPage
from gatewright_gui.pages.trial import TrialPage
from gatewright_gui.session.diagnostics import log_file
from gatewright_gui.session.opening import Opener, demo_folder
from gatewright_gui.settings import Preferences
from gatewright_gui.window.main_window import MainWindow
from gatewright_gui.window.pages import all_rows
from gatewright_gui.window.preferences_dialog import PreferencesDialog
from gatewright_gui.window.status_bar import ago
from tests.gui.session.opened import agents_page, broken, click, demo, end, forget, opened_window, settled, until
from tests.support.demo import copy_demo


def edit(window: MainWindow) -> None:
    window.selection.choose_agent("operator")
    click(window, "file", "delete")


async def answer(window: MainWindow, key: str) -> None:
    def button() -> QPushButton | None:
        return window.findChild(QPushButton, f"choice-{key}")

    await until(lambda: button() is not None)
    found = button()
    assert found is not None
    found.click()
    await settled(window)


async def test_undo_and_redo_name_what_they_do(window: MainWindow) -> None:
    undo, redo = window.actions_by_key["undo"], window.actions_by_key["redo"]
    assert not undo.isEnabled()
    edit(window)

    assert undo.text() == "Undo turn off delete of file for operator"
    assert "turn off delete" in undo.toolTip()
    undo.trigger()
    assert not undo.isEnabled()
    assert redo.text() == "Redo turn off delete of file for operator"
    redo.trigger()
    assert window.document.is_dirty


async def test_keys_save_undo_and_change_pages(window: MainWindow) -> None:
    edit(window)
    QTest.keyClick(window, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
    assert not window.document.is_dirty
    QTest.keyClick(window, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier)
    assert window.document.is_dirty
    QTest.keyClick(window, Qt.Key.Key_S, Qt.KeyboardModifier.ControlModifier)
    await settled(window)
    assert not window.document.is_dirty
    assert window.status.saved.text() == "saved just now"
    number = window.rail.keys.index("policy_file") + 1
    window.activateWindow()  # where the review came up for a moment, this platform gives no window the keys back
    await until(window.isActiveWindow)
    QTest.keyClick(window, Qt.Key(Qt.Key.Key_0.value + number), Qt.KeyboardModifier.ControlModifier)
    assert window.shelf.current_key == "text"


async def test_status_bar_counts_the_self_check_and_follows_the_file(window: MainWindow) -> None:
    checked = window.status.check.text()
    assert re.fullmatch(r"self-check (\d+) of \1", checked)
    assert window.status.saved.text() == "saved"
    edit(window)
    await settled(window)

    assert window.status.saved.text() == "unsaved changes"
    assert window.status.check.text() == checked


async def test_edit_that_makes_a_warning_shows_it_at_once(window: MainWindow) -> None:
    window.selection.choose_agent("newcomer")
    click(window, "file", None)
    await settled(window)

    assert window.rail.button("policy_file").count == 1
    assert window.status.problems.text() == "1 warning"


async def test_closing_with_changes_asks_and_cancel_keeps_the_window(window: MainWindow) -> None:
    edit(window)
    assert not window.close()

    await answer(window, "cancel")

    assert window.isVisible()
    assert window.document.is_dirty


async def test_closing_with_discard_closes_and_writes_nothing(window: MainWindow) -> None:
    path = window.document.path
    assert path is not None
    before = path.read_bytes()
    edit(window)
    window.close()

    await answer(window, "discard")

    assert not window.isVisible()
    assert path.read_bytes() == before


async def test_closing_with_save_writes_and_closes(window: MainWindow) -> None:
    path = window.document.path
    assert path is not None
    edit(window)
    window.close()

    await answer(window, "save")

    assert not window.isVisible()
    assert path.read_text("utf-8") == window.document.workspace.saved_text
    assert not window.document.is_dirty


async def test_opening_another_workspace_asks_first(window: MainWindow, tmp_path: Path) -> None:
    other = demo(tmp_path / "other")
    edit(window)
    window.open_path(other)
    await answer(window, "cancel")
    assert window.document.path != other

    window.open_path(other)
    await answer(window, "discard")

    assert window.document.path == other
    assert window.preferences.last_workspace == other


async def test_reload_on_the_problems_page_asks_first(window: MainWindow) -> None:
    edit(window)
    window.show_page("problems")
    page = window.shelf.page("problems")
    assert isinstance(page, ProblemsPage)
    QTest.mouseClick(page.reload, Qt.MouseButton.LeftButton)
    await answer(window, "cancel")
    assert window.document.is_dirty

    QTest.mouseClick(page.reload, Qt.MouseButton.LeftButton)
    await answer(window, "discard")
    assert not window.document.is_dirty


async def test_an_empty_workspace_shows_nothing_of_the_one_that_was_open_before(
    window: MainWindow, tmp_path: Path
) -> None:
    page = agents_page(window)
    page.inspector.show_part("sees")
    page.tools.filters.set_filters(Filters(states=frozenset({State.ASKS})))
    page.tools.search.setText("file")
    await settled(window)
    assert page.preview.providers.isVisible()

    await window.open(create_workspace(tmp_path / "empty", "empty"))
    await settled(window)

    assert not page.preview.providers.isVisible()
    assert set(page.preview.providers.states.values()) == {"..."}
    assert page.tools.filters.filters == NO_FILTERS
    assert not page.tools.filters.isVisible()
    assert page.tools.search.text() == ""


async def test_outside_change_offers_to_reload(window: MainWindow) -> None:
    path = window.document.path
    assert path is not None
    path.write_text(path.read_text("utf-8").replace('name = "Field notes"', 'name = "Other notes"'), "utf-8")
    await until(window.outside.isVisible)

    window.outside.action_button.click()
    await settled(window)

    assert window.document.name == "Other notes"
    assert not window.outside.isVisible()


async def test_policy_with_errors_opens_on_problems_and_reload_brings_it_back(tmp_path: Path) -> None:
    policy = demo(tmp_path)
    good = broken(policy)
    async with opened_window(policy, tmp_path) as window:
        page = window.shelf.page("problems")
        assert isinstance(page, ProblemsPage)
        assert page.isVisible()
        assert page.model.counts[0] == 2
        assert not window.rail.button("access").isEnabled()
        rect = page.view.visualRect(page.model.index(0, 0))
        QTest.mouseClick(page.view.viewport(), Qt.MouseButton.LeftButton, pos=rect.center())
        toml = window.shelf.page("text")
        assert isinstance(toml, TextPage)
        assert "lod" in toml.code.editor.textCursor().selectedText()
        assert not window.actions_by_key["publish"].isEnabled()

        policy.write_text(good, "utf-8")
        window.show_page("problems")
        page.reload.click()
        await settled(window)

        assert window.document.is_open
        window.show_page("tools")
        assert agents_page(window).isVisible()


async def test_source_outside_the_workspace_is_trusted_once(tmp_path: Path) -> None:
    policy = demo(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    text = policy.read_text("utf-8").replace('base_path = "workspace"', 'base_path = "../elsewhere"')
    policy.write_text(text, "utf-8")
    async with opened_window(policy, tmp_path) as window:
        page = window.shelf.page("problems")
        assert isinstance(page, ProblemsPage)
        assert page.bar.action_button.text() == "Trust and open"

        page.bar.action_button.click()
        await settled(window)

        assert window.document.is_open


async def test_missing_workspace_leaves_an_empty_window_that_says_what_to_do(tmp_path: Path) -> None:
    async with opened_window(tmp_path / "nowhere", tmp_path) as window:
        assert window.shelf.currentWidget() is window.shelf.welcome
        assert "nowhere" in window.message.text


async def test_outline_of_the_policy_file_goes_to_a_part_by_click_and_by_typing_its_name(window: MainWindow) -> None:
    window.show_page("text")
    await settled(window)
    page = window.shelf.page("text")
    assert isinstance(page, TextPage)
    rows = [page.outline.rows.index(row, 0).data() for row in range(page.outline.rows.rowCount())]

    at = page.outline.visualRect(page.outline.rows.index(rows.index("operator"), 0)).center()
    QTest.mouseClick(page.outline.viewport(), Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, at)

    assert page.code.editor.textCursor().block().text() == "[agents.operator]"
    assert rows[:2] == ["Agents", "archivist"]
    assert "Sources" in rows
    QTest.keyClicks(page.outline, "res")
    QTest.keyClick(page.outline, Qt.Key.Key_Return)
    assert page.code.editor.textCursor().block().text() == "[agents.researcher]"
    page.part.set_current("difference")
    assert not page.outline.isVisible()


async def test_toml_page_shows_unsaved_changes(window: MainWindow) -> None:
    edit(window)
    window.show_page("text")
    page = window.shelf.page("text")
    assert isinstance(page, TextPage)
    page.part.set_current("difference")
    await settled(window)

    assert '+rule_type = { AllowedOperations = ["' in page.code.text
    await window.document.save()
    await settled(window)
    assert page.empty.isVisible()


def is_inside_field(control: QWidget) -> bool:
    return isinstance(control.parent(), QLineEdit)


async def test_every_control_has_a_name(window: MainWindow) -> None:
    controls = [
        control
        for kind in (QAbstractButton, QLineEdit, QComboBox, QAbstractItemView)
        for control in window.findChildren(kind)
        if control.isVisibleTo(window) and not isinstance(control, QHeaderView) and not is_inside_field(control)
    ]
    nameless = [control for control in controls if not (control.accessibleName() or getattr(control, "text", str)())]

    assert len(controls) > 30
    assert not nameless


async def test_preferences_count_at_once_and_follow_what_is_chosen_elsewhere(window: MainWindow) -> None:
    window.show_page("activity")
    notify = window.findChild(QCheckBox, "activity.notify")
    code = agents_page(window).preview.code
    QTest.keyClick(window, Qt.Key.Key_Comma, Qt.KeyboardModifier.ControlModifier)
    dialog = window.findChild(PreferencesDialog)
    assert dialog is not None
    assert notify is not None
    assert dialog.isVisible()

    QTest.keyClick(dialog.theme, Qt.Key.Key_End)
    assert (window.theme.current, window.preferences.theme) == ("dark", "dark")
    for box in (dialog.notify, dialog.only_gains, dialog.wrap_preview, dialog.wrap_toml):
        was_on = box.isChecked()
        QTest.keyClick(box, Qt.Key.Key_Space)
        assert box.isChecked() is not was_on
    kept = Preferences(window.preferences.file)
    assert (kept.notifies, kept.reviews_gains_only) == (notify.isChecked(), False) == (False, False)
    assert (kept.wraps_lines("preview"), kept.wraps_lines("toml")) == (code.is_wrapping, True) == (False, True)

    window.actions_by_key["theme"].trigger()
    notify.click()
    code.wrap_button.click()
    assert dialog.theme.currentData() == window.theme.current == "light"
    assert dialog.notify.isChecked() is window.preferences.notifies is True
    assert dialog.wrap_preview.isChecked()
    QTest.keyClick(dialog, Qt.Key.Key_Escape)
    assert not dialog.isVisible()


async def test_first_start_opens_nothing_and_the_next_what_was_open_last(tmp_path: Path, qapp: QApplication) -> None:
    preferences = Preferences(tmp_path / "p.ini")
    window = new_window(qapp, preferences=preferences, theme="light")
    await open_first(window, None)
    assert window.document.path is None
    assert window.shelf.currentWidget() is window.shelf.welcome
    mine = demo(tmp_path)
    await open_first(window, mine)
    await open_first(window, None)
    assert window.document.path == mine
    forget(mine.parent)

    await open_first(window, None)

    assert preferences.recent_workspaces == ()
    assert "not there any more" in window.message.text
    await settled(window)
    await end(window)


async def test_app_lives_until_its_window_is_closed_and_logs_no_word_of_an_error(
    tmp_path: Path, qapp: QApplication
) -> None:
    life = asyncio.ensure_future(live(qapp, demo(tmp_path), "light", Preferences(tmp_path / "preferences.ini")))

    def shown() -> list[MainWindow]:
        tops = QApplication.topLevelWidgets()
        return [top for top in tops if isinstance(top, MainWindow) and top.isVisible() and top.document.is_open]

    await until(lambda: bool(shown()))
    window = shown()[0]
    try:
        raise ValueError("hunter2 in a call")
    except ValueError as error:
        sys.excepthook(ValueError, error, error.__traceback__)
    logging.getLogger("gatewright.gate").warning("the tool `%s` raised", "secret_tool")
    window.actions_by_key["diagnostics"].trigger()
    copied, tools = QApplication.clipboard().text(), len(window.document.catalog)
    await until(lambda: set(window.shelf.pages) == {row.key for row in all_rows()}, "the pages that are made for later")
    window.close()

    assert await life == 0
    logging.getLogger("gatewright.gate").warning("after the end")
    logged = log_file().read_text("utf-8")
    for text in (copied, logged):
        assert "builtins.ValueError\n  tests.gui.window.test_window:" in text
        assert "the tool `%s` raised" in text
        assert not [word for word in ("hunter2", "secret_tool", "operator", str(Path.home())) if word in text]
    assert f"agents 4, tools {tools}, sources" in copied
    assert f"Gatewright {version('gatewright')}, Python 3." in copied
    assert "after the end" not in logged


@pytest.mark.parametrize("error", [SystemError("bad argument to internal function"), MemoryError(), KeyError("x")])
async def test_reading_that_fails_leaves_the_window_and_its_traceback_in_the_log(
    tmp_path: Path, qapp: QApplication, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fail(_opener: Opener, _path: Path, *, trust: bool = False) -> Workspace:
        del trust
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(Opener, "open", fail)
        life = asyncio.ensure_future(live(qapp, demo(tmp_path), "light", Preferences(tmp_path / "preferences.ini")))
        await until(lambda: bool(_windows()) and not _windows()[0].message.isHidden())
    window = _windows()[0]
    assert type(error).__name__ in window.message.text
    assert await window.open(tmp_path / "demo" / "policy.toml")
    window.close()

    assert await life == 0
    logged = log_file().read_text("utf-8")
    assert f"builtins.{type(error).__name__}\n" in logged
    assert "tests.gui.window.test_window:" in logged


def _windows() -> list[MainWindow]:
    """Those of the app that runs now; newest last."""
    return [top for top in QApplication.topLevelWidgets() if isinstance(top, MainWindow) and top.isVisible()]


CRASH = """
import threading, time
from gatewright_gui.session.diagnostics import keep_log
with keep_log():
    thread = threading.Thread(target=lambda: [][1], name="fails")
    thread.start()
    thread.join()
    {end}
"""


@pytest.mark.parametrize(
    ("end", "words"),
    [
        ("raise SystemError('at the start')", "the app ended with an error\n  builtins.SystemError\n"),
        ("import faulthandler; faulthandler._sigabrt()", "Fatal Python error: Aborted"),
        ("import faulthandler; faulthandler._sigsegv()", "Fatal Python error: Segmentation fault"),
    ],
)
def test_whatever_ends_the_program_is_in_the_log(tmp_path: Path, end: str, words: str) -> None:
    script = tmp_path / "crash.py"
    script.write_text(CRASH.format(end=end), "utf-8")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)

    assert done.returncode != 0
    assert log_file().exists(), done.stderr
    logged = log_file().read_text("utf-8")
    assert "a thread ended with an error\n  builtins.IndexError\n" in logged
    assert words in logged
    assert "at the start" not in logged


def test_no_display_is_noticed() -> None:
    assert not has_display({}, "linux")
    assert has_display({"WAYLAND_DISPLAY": "wayland-0"}, "linux")
    assert has_display({}, "darwin")


def test_each_library_of_x11_that_is_not_there_is_told_by_its_package_before_qt_ends_the_process() -> None:
    setup = (Path(__file__).parents[3] / "packaging" / "setup.sh").read_text("utf-8")
    for library, package in X11_LIBRARIES.items():

        def load(name: str, gone: str = library) -> object:
            if name == gone:
                raise OSError(name)
            return name

        assert missing_packages({"DISPLAY": ":0"}, "linux", load) == [package]
        assert package in setup.split() or f"{package}'" in setup or f"'{package}" in setup
        for environ in (
            {},
            {"DISPLAY": ":0", "WAYLAND_DISPLAY": "w"},
            {"DISPLAY": ":0", "QT_QPA_PLATFORM": "offscreen"},
        ):
            assert missing_packages(environ, "linux", load) == []
        assert missing_packages({"DISPLAY": ":0"}, "darwin", load) == []
    assert missing_packages({"DISPLAY": ":0"}, "linux") == []


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "just now"), (12, "12 s ago"), (61, "1 min ago"), (7300, "2 h ago"), (200_000, "2 d ago")],
)
def test_times_say_how_long_ago(seconds: float, words: str) -> None:
    assert ago(seconds) == words


@pytest.mark.parametrize(
    ("key", "wanted"),
    [
        (Qt.Key.Key_1, "home"),
        (Qt.Key.Key_2, "tools"),
        (Qt.Key.Key_3, "try"),
        (Qt.Key.Key_5, "servers"),
        (Qt.Key.Key_6, "text"),
    ],
)
async def test_keys_go_to_the_main_view_of_the_page_that_is_chosen(
    window: MainWindow, key: Qt.Key, wanted: str
) -> None:
    window.rail.button("home").setFocus()
    QTest.keyClick(window, key, Qt.KeyboardModifier.ControlModifier)
    await settled(window)

    focused = window.focusWidget()
    page = window.shelf.page(window.shelf.current_key)
    assert focused is not None
    assert page.isAncestorOf(focused)
    assert focused is page.main_view()
    assert window.shelf.current_key == wanted


async def test_window_starts_with_the_keys_in_the_tree(window: MainWindow) -> None:
    assert window.focusWidget() is agents_page(window).tools.view


async def test_arrow_keys_in_the_rail_stay_there(window: MainWindow) -> None:
    window.rail.button("access").setFocus()
    QTest.keyClick(window.rail.button("access"), Qt.Key.Key_Down)
    await settled(window)

    assert window.shelf.current_key == "try"
    assert window.focusWidget() is window.rail.button("try")


def wide_and_narrow_keys(window: MainWindow) -> tuple[list[str], list[str]]:
    """Keys that work in the whole window, and keys of one widget."""
    wide: list[str] = []
    narrow: list[str] = []
    for action in window.findChildren(QAction):
        kept = wide if action.shortcutContext() is Qt.ShortcutContext.WindowShortcut else narrow
        kept += [keys.toString() for keys in action.shortcuts() if action.associatedObjects()]
    for shortcut in window.findChildren(QShortcut):
        kept = wide if shortcut.context() is Qt.ShortcutContext.WindowShortcut else narrow
        every = shortcut.keys()
        kept += [keys.toString() for keys in every]
    for button in window.findChildren(QAbstractButton):
        wide += [button.shortcut().toString()] if button.isVisible() and not button.shortcut().isEmpty() else []
    return wide, narrow


@pytest.mark.parametrize("page", ["tools", "files", "try", "text", "problems"])
async def test_no_key_means_two_things(window: MainWindow, page: str) -> None:
    window.show_page(page)
    await settled(window)

    wide, narrow = wide_and_narrow_keys(window)

    assert QKeySequence("Ctrl+S").toString() in wide
    assert sorted(set(wide)) == sorted(wide)
    assert not set(wide) & set(narrow)


async def test_outside_change_can_be_saved_over(window: MainWindow) -> None:
    path = window.document.path
    assert path is not None
    edit(window)
    path.write_text(path.read_text("utf-8").replace('name = "Field notes"', 'name = "Other notes"'), "utf-8")
    window.save()
    await settled(window)
    assert window.outside.text.startswith("Not saved")
    assert window.document.is_dirty

    window.outside.other_button.click()
    await settled(window)

    assert not window.outside.isVisible()
    assert not window.document.is_dirty
    assert 'name = "Field notes"' in path.read_text("utf-8")


def missing(folder: Path) -> Path:
    return folder / "nowhere"


def without_policy(folder: Path) -> Path:
    (folder / "bare").mkdir()
    return folder / "bare"


def binary(folder: Path) -> Path:
    (folder / "policy.toml").write_bytes(bytes(range(256)))
    return folder / "policy.toml"


def folder_for_a_policy(folder: Path) -> Path:
    (folder / "odd" / "policy.toml").mkdir(parents=True)
    return folder / "odd"


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (missing, "does not exist"),
        (without_policy, "no policy.toml in"),
        (binary, "is not UTF-8 text"),
        (folder_for_a_policy, "is a folder"),
    ],
)
async def test_workspace_that_cannot_be_read_is_named_and_the_demo_offered(
    tmp_path: Path, make: Callable[[Path], Path], said: str
) -> None:
    async with opened_window(make(tmp_path), tmp_path) as window:
        assert said in window.message.text
        assert str(tmp_path) in window.message.text
        assert not window.status.problems.isVisible()
        assert window.focusWidget() is window.shelf.welcome.buttons["new"]

        window.shelf.welcome.buttons["demo"].click()
        await settled(window)

        assert window.document.path == demo_folder() / "policy.toml"
        assert not window.message.isVisible()


async def test_a_window_that_ends_leaves_no_copy_of_the_workspace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    async with opened_window(demo(tmp_path), tmp_path) as window:
        window.show_page("try")
        await settled(window)
        page = window.shelf.page("try")
        assert isinstance(page, TrialPage)
        page.request.choose_tool("file")
        page.request.mode.set_current("json")
        page.request.raw.set_text('{"op": "list", "path": ""}')
        page.run()
        await until(lambda: len(page.console.records) == 1 and not page.console.is_busy)
        assert list((tmp_path / "temporary").glob("gatewright-sandbox-*/workspace/policy.toml"))
    assert not list((tmp_path / "temporary").glob("gatewright-sandbox-*"))


async def test_a_window_that_starts_removes_the_copy_of_one_that_was_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = tmp_path / "temporary/gatewright-sandbox-left"
    left.mkdir(parents=True)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    async with opened_window(demo(tmp_path), tmp_path) as window:
        await warm_up(window.document)
        assert not left.exists()


async def _least_sizes(window: MainWindow) -> dict[str, tuple[int, int]]:
    found: dict[str, tuple[int, int]] = {}
    for page in window.rail.keys:
        window.show_page(page)
        await asyncio.sleep(0)
        least = window.minimumSizeHint()
        found[page] = (least.width(), least.height())
    return found


async def test_window_fits_a_full_hd_screen_at_twice_the_scale(window: MainWindow, tmp_path: Path) -> None:
    sizes = [await _least_sizes(window)]
    async with opened_window(create_workspace(tmp_path / "made", "coding-agent"), tmp_path) as one_without_catalogs:
        sizes.append(await _least_sizes(one_without_catalogs))
    for found in sizes:
        assert {page: size for page, size in found.items() if size[0] > 960 or size[1] > 510} == {}


def drop(window: MainWindow, *urls: QUrl) -> bool:
    """Drag files over the tree of the window and let go, as the window system tells it; whether they were let in."""
    data = QMimeData()
    data.setUrls(urls)
    tree = agents_page(window).tools.view.viewport()
    at = tree.mapTo(window, QPoint(40, 40))
    how = Qt.DropAction.CopyAction, data, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    over = QDragEnterEvent(at, *how)
    QApplication.sendEvent(window.windowHandle(), over)
    if over.isAccepted():
        QApplication.sendEvent(window.windowHandle(), QDropEvent(at, *how))
    return over.isAccepted()


async def test_a_policy_file_that_is_dropped_is_opened_once_unsaved_changes_are_answered(
    window: MainWindow, tmp_path: Path
) -> None:
    other = copy_demo(tmp_path / "other")
    edit(window)

    assert drop(window, QUrl.fromLocalFile(str(other)))
    await until(lambda: window.findChild(QPushButton, "choice-cancel") is not None)
    assert not drop(window, QUrl.fromLocalFile(str(other)))
    await answer(window, "cancel")
    assert window.document.is_dirty
    assert drop(window, QUrl.fromLocalFile(str(other.parent)))
    await answer(window, "discard")

    assert window.document.path == other
    assert not window.document.is_dirty


async def test_what_is_no_policy_file_is_refused_in_words_when_it_is_dropped(
    window: MainWindow, tmp_path: Path
) -> None:
    before = window.document.path
    picture = tmp_path / "cat.png"
    picture.write_bytes(b"PNG")
    (tmp_path / "empty").mkdir()

    assert drop(window, QUrl.fromLocalFile(str(picture)))
    assert "cat.png is no policy file" in window.message.text
    assert drop(window, QUrl("https://example.org/policy.toml"))
    assert "not one file of this computer" in window.message.text
    assert drop(window, QUrl.fromLocalFile(str(tmp_path / "empty")))
    await settled(window)

    assert "no policy.toml in" in window.message.text
    assert window.document.path == before


async def test_what_only_looks_like_a_policy_file_leaves_the_one_that_is_open(
    window: MainWindow, tmp_path: Path
) -> None:
    before = window.document.path
    os.mkfifo(tmp_path / "pipe.toml")
    (tmp_path / "device.toml").symlink_to("/dev/zero")
    (tmp_path / "nowhere\n\x1b[2J\u202e.toml").symlink_to("nothing")
    with (tmp_path / "large.toml").open("wb") as large:
        large.truncate(1 << 30)
    for name, words in (
        ("pipe.toml", "is no ordinary file"),
        ("device.toml", "is no ordinary file"),
        ("large.toml", "is larger than 8 MiB"),
        ("nowhere\n\x1b[2J\u202e.toml", "does not exist"),
    ):
        assert drop(window, QUrl.fromLocalFile(str(tmp_path / name)))
        await settled(window)
        assert words in window.message.text
        assert window.document.path == before
        assert window.document.is_open


async def test_new_window_opens_the_chosen_policy_in_a_process_of_its_own(
    window: MainWindow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, told = window.document.path, tmp_path / "told"
    other = copy_demo(tmp_path / "other")
    record = f"import sys; open({str(told)!r}, 'w').write(repr(sys.argv[1:]))"
    monkeypatch.setattr("gatewright_gui.session.clients.gateway_command", lambda: (sys.executable, "-c", record))

    both = Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier
    QTest.keyClick(window, Qt.Key.Key_N, both)
    await until(lambda: bool(window.findChildren(QFileDialog)))
    dialog = window.findChildren(QFileDialog)[0]
    field, box = dialog.findChild(QLineEdit, "fileNameEdit"), dialog.findChild(QDialogButtonBox)
    assert field is not None
    assert box is not None
    field.setText(str(other))
    box.button(QDialogButtonBox.StandardButton.Open).click()
    await until(lambda: told.is_file() and told.read_text().endswith("]"))

    assert told.read_text() == repr(["gui", str(other)])
    assert window.document.path == before
    await settled(window)
    assert not window.message.isVisible()


async def test_keys_and_preferences_size_the_text(window: MainWindow) -> None:
    usual = QApplication.font().pixelSize()
    control = Qt.KeyboardModifier.ControlModifier
    for _ in range(5):
        QTest.keyClick(window, Qt.Key.Key_Equal, control)
    assert (window.preferences.text_size, QApplication.font().pixelSize()) == ("largest", 17)
    QTest.keyClick(window, Qt.Key.Key_Minus, control)
    assert (window.preferences.text_size, QApplication.font().pixelSize()) == ("large", 15)
    QTest.keyClick(window, Qt.Key.Key_0, control)
    assert (window.preferences.text_size, QApplication.font().pixelSize()) == ("normal", usual)
    dialog = PreferencesDialog(window.preferences, window.choose_theme, window)
    dialog.text_size.setCurrentIndex(2)
    dialog.text_size.activated.emit(2)
    assert QApplication.font().pixelSize() == 17
    window.preferences.text_size = "normal"
    assert dialog.text_size.currentData() == "normal"
    assert QApplication.font().pixelSize() == usual
