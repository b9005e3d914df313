"""Ways through the window that the steps of several pages take, by mouse and keyboard. It checks nothing."""

import re
from collections.abc import Callable

from PySide6.QtCore import QModelIndex, QPoint, Qt, QTimer
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QApplication, QComboBox, QDialog, QListView, QMenu

from gatewright.policy.right import OperationRight
from gatewright_gui.app.touring.driver import CTRL, DriveError
from gatewright_gui.app.touring.scene import Scene
from gatewright_gui.models.agents import AGENT_ID
from gatewright_gui.pages.agents.tool_delegate import box_rect

LOOK_MS = 10


def choose_agent(scene: Scene, agent_id: str) -> None:
    """Click an agent in the list."""
    view = scene.driver.find("agents.list", QListView)
    rows = [view.model().index(row, 0) for row in range(view.model().rowCount())]
    scene.driver.click_cell(view, next(row for row in rows if row.data(AGENT_ID) == agent_id))
    scene.settle()


def choose_row(scene: Scene, tool: str, operation: str | None = None) -> None:
    """Click the name of a row of the tree."""
    cell = scene.row(tool, operation)
    scene.driver.click_cell(scene.tree, cell, QPoint(60, scene.tree.visualRect(cell).height() // 2))
    scene.settle()


def click_box(scene: Scene, tool: str, operation: str | None = None) -> None:
    """Click the box of a row of the tree."""
    cell = scene.row(tool, operation)
    rect = scene.driver.cell(scene.tree, cell)
    scene.driver.click_cell(scene.tree, cell, box_rect(rect).center() - rect.topLeft())


def choose_in(scene: Scene, name: str, word: str) -> None:
    """Open a list by a click, go to a word by keyboard."""
    combo = scene.driver.find(name, QComboBox)
    at = combo.findText(word)
    if at < 0:
        raise DriveError(f"`{name}` does not offer `{word}`")
    if combo.currentIndex() == at:
        return
    before = len(scene.driver.popups())
    scene.driver.click(combo)
    scene.driver.until(lambda: len(scene.driver.popups()) > before, f"the list of `{name}`")
    scene.driver.key(Qt.Key.Key_Home)
    for _ in range(at):
        scene.driver.key(Qt.Key.Key_Down)
    scene.driver.key(Qt.Key.Key_Return)
    scene.driver.until(lambda: len(scene.driver.popups()) <= before, f"the list of `{name}` to close")
    scene.settle()


def menu(scene: Scene, opener: str, *words: str) -> None:
    """Open a menu by a click and click through it; each word begins an action's text, or is its object name."""
    with_menu(scene, opener, lambda: take(scene, *words))


def with_menu(scene: Scene, opener: str, act: Callable[[], None]) -> None:
    """Open a menu by a click and do something while it is open; it is closed afterwards.

    A click on a button with a menu comes back only when the menu is closed: what is done waits for the menu instead.
    """
    failed: list[Exception] = []
    is_over: list[bool] = []

    def look() -> None:
        if is_over or not _menus(scene):
            return
        is_over.append(True)
        try:
            act()
        except Exception as error:  # noqa: BLE001  # told to whoever waits below
            failed.append(error)
        finally:
            close_menus(scene)

    timer = QTimer(interval=LOOK_MS)
    timer.timeout.connect(look)
    timer.start()
    try:
        scene.driver.click(opener)
        scene.driver.until(lambda: bool(is_over), f"the menu of `{opener}`")
    finally:
        timer.stop()
    if failed:
        raise failed[0]
    scene.settle()


def take(scene: Scene, *words: str) -> None:
    """Click actions of the menus that are open, one after the other."""
    for word in words:
        scene.driver.until(lambda word=word: _action(scene, word) is not None, f"`{word}` in the menu")
        found = _action(scene, word)
        if found is not None:
            scene.driver.click(found[0], found[0].actionGeometry(found[1]).center())


def close_menus(scene: Scene) -> None:
    """Close what is open by Escape."""
    for _ in range(4):
        if _menus(scene):
            scene.driver.key(Qt.Key.Key_Escape)


def _menus(scene: Scene) -> list[QMenu]:
    return [top for top in scene.driver.popups() if isinstance(top, QMenu)]


def _action(scene: Scene, word: str) -> tuple[QMenu, QAction] | None:
    for held in reversed(_menus(scene)):
        for action in held.actions():
            text = action.text().replace("&", "")
            if not action.isSeparator() and (action.objectName() == word or text.startswith(word)):
                return held, action
    return None


def dialog(scene: Scene, name: str) -> QDialog | None:
    """The open dialog of that name."""
    return next((top for top in scene.driver.popups() if isinstance(top, QDialog) and top.objectName() == name), None)


def wait_for_dialog(scene: Scene, name: str) -> None:
    """Until it is there. Raises DriveError."""
    scene.driver.until(lambda: dialog(scene, name) is not None, f"the dialog `{name}`")


def leave_dialog(scene: Scene, name: str) -> None:
    """Close a dialog that a failed step left behind."""
    if dialog(scene, name) is not None:
        scene.driver.key(Qt.Key.Key_Escape)
        scene.driver.until(lambda: dialog(scene, name) is None, f"the dialog `{name}` to close")


def undo(scene: Scene, times: int = 1) -> None:
    """Ctrl+Z."""
    for _ in range(times):
        scene.driver.key(Qt.Key.Key_Z, CTRL)
    scene.settle()


def copied(scene: Scene, act: Callable[[], None]) -> str:
    """What an act puts on the clipboard; what was there is put back."""
    clipboard = QApplication.clipboard()
    before = clipboard.text()
    clipboard.clear()
    act()
    scene.driver.holds_soon(lambda: bool(clipboard.text()), 2.0)
    found = clipboard.text()
    clipboard.setText(before)
    return found


def right_of(scene: Scene, agent_id: str, tool: str, operation: str) -> OperationRight:
    """What the engine says of an operation."""
    rights = scene.document.rights(agent_id)[tool].operations
    return next(right for right in rights if right.operation == operation)


def shown_rows(scene: Scene) -> dict[str, list[str]]:
    """The tools that the tree shows, with their operations."""
    return {top: scene.visible_rows(scene.row(top)) for top in scene.visible_rows(QModelIndex())}


def names(text: str, operation: str) -> bool:
    """Whether a text names an operation, as a word of its own."""
    return re.search(rf"(?<!\w){re.escape(operation)}(?!\w)", text) is not None
