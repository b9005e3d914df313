"""Enter presses the button that has the keys, as Space does: on every page, in every dialog, on both Enter keys."""

from collections.abc import Callable, Iterator

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QButtonGroup, QDialog, QPushButton, QToolButton, QWidget

from gatewright_gui.pages.page import PageRow
from gatewright_gui.window.main_window import MainWindow
from gatewright_gui.window.pages import all_rows
from tests.gui.session.opened import until

ENTER = (Qt.Key.Key_Return, Qt.Key.Key_Enter)


def buttons(root: QWidget) -> Iterator[QPushButton | QToolButton]:
    """Those that can be reached by the keyboard now."""
    for one in (*root.findChildren(QPushButton), *root.findChildren(QToolButton)):
        if one.isVisible() and one.isEnabled() and one.focusPolicy() & Qt.FocusPolicy.TabFocus:
            yield one


def check_enter(root: QWidget) -> int:
    """Press each button of a window by both keys; it only notes that it was pressed, and does nothing."""
    count, deaf = 0, list[str]()
    for group in root.findChildren(QButtonGroup):
        group.setExclusive(False)
    for button in list(buttons(root)):
        if isinstance(button, QToolButton):
            for action in button.actions():
                button.removeAction(action)
        button.blockSignals(True)
        button.setAutoExclusive(False)
        button.setCheckable(True)
        button.setFocus(Qt.FocusReason.TabFocusReason)
        if not button.hasFocus():
            continue
        for key in ENTER:
            was = button.isChecked()
            modifier = Qt.KeyboardModifier.KeypadModifier if key == Qt.Key.Key_Enter else Qt.KeyboardModifier.NoModifier
            QTest.keyClick(button, key, modifier)
            if button.isChecked() == was:
                deaf.append(f"{button.objectName()} {key}")
        count += 1
    assert not deaf
    return count


def ways(window: MainWindow) -> dict[str, Callable[[], object]]:
    """How each dialog of the window comes up."""
    return {
        "new": window.ask_new,
        "preferences": window.show_preferences,
        "help": window.show_keys,
        "import": window.show_import,
        "selfcheck": window.show_selfcheck,
    }


def dialog_of(window: MainWindow) -> QWidget | None:
    found = (one for one in QApplication.topLevelWidgets() if one is not window and one.isVisible())
    return next((one for one in found if isinstance(one, QDialog)), None)


async def test_enter_presses_every_button_of_every_dialog(window: MainWindow) -> None:
    await until(window.isActiveWindow)
    for name, come_up in ways(window).items():
        come_up()
        await until(lambda: dialog_of(window) is not None)
        dialog = dialog_of(window)
        assert dialog is not None
        dialog.activateWindow()
        await until(dialog.isActiveWindow)
        assert check_enter(dialog) > 0, name
        dialog.close()
        await until(lambda: dialog_of(window) is None)


@pytest.mark.parametrize("rows", [all_rows()[:4], all_rows()[4:8], all_rows()[8:]])
async def test_enter_presses_every_button_of_every_page(window: MainWindow, rows: tuple[PageRow, ...]) -> None:
    window.activateWindow()
    await until(window.isActiveWindow)
    for row in rows:
        window.show_page(row.key)
        await until(window.shelf.page(row.key).isVisible)
        assert check_enter(window) > 5, row.key
    window.shelf.setCurrentWidget(window.shelf.welcome)
    assert check_enter(window) > 3
