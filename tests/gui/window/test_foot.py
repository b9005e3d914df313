"""What the foot of the window says of a step back, and where its items lead."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from gatewright_gui.window.main_window import MainWindow
from tests.gui.session.opened import click, settled

CONTROL, SHIFT = Qt.KeyboardModifier.ControlModifier, Qt.KeyboardModifier.ShiftModifier


async def test_undo_and_redo_say_what_they_did(window: MainWindow) -> None:
    window.selection.choose_agent("operator")
    click(window, "file", "delete")
    window.show_page("text")
    QTest.keyClick(window, Qt.Key.Key_Z, CONTROL)
    assert window.impact.text.startswith("Undone: turn off delete of file for operator")

    QTest.keyClick(window, Qt.Key.Key_Z, CONTROL | SHIFT)

    assert window.impact.text.startswith("Redone: turn off delete of file for operator")
    assert not window.toast.isVisible(), "it would say the same"
    await settled(window)


async def test_room_of_the_line_is_kept_where_one_edits_and_elsewhere_once_something_was_edited(
    window: MainWindow,
) -> None:
    shown: dict[str, bool] = {}
    for key in ("home", "tools", "files", "rules", "memory", "servers", "text", "settings", "try", "activity"):
        window.show_page(key)
        shown[key] = window.impact.isVisible()
    assert [key for key, is_shown in shown.items() if not is_shown] == ["try", "activity"]
    window.show_page("tools")
    window.selection.choose_agent("operator")
    click(window, "file", "delete")
    window.show_page("try")
    assert window.impact.isVisible()
    await settled(window)


async def test_note_says_it_where_the_window_is_too_low_for_the_line(window: MainWindow) -> None:
    window.resize(1000, 540)
    window.selection.choose_agent("operator")
    click(window, "file", "delete")
    QTest.keyClick(window, Qt.Key.Key_Z, CONTROL)
    assert window.toast.isVisible()
    assert window.toast.text == "undone: turn off delete of file for operator"
    await settled(window)


async def test_undo_with_nothing_to_take_back_says_nothing(window: MainWindow) -> None:
    window.undo()
    window.redo()

    assert not window.toast.isVisible()


@pytest.mark.parametrize("live", [False, True])
async def test_item_on_live_mode_leads_to_the_console(window: MainWindow, live: bool) -> None:
    if live:
        window.document.live.enter()
    told = window.status.live.text()
    QTest.mouseClick(window.status.live, Qt.MouseButton.LeftButton)
    await settled(window)

    assert told == ("LIVE MODE: runs are real" if live else "live mode off")
    assert window.shelf.current_key == "try"
    assert window.document.live.is_on == live
