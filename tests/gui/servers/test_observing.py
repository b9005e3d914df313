"""The mode of a catalog in Servers: only observed until a moment, and enforced again."""

import time
from collections.abc import AsyncIterator
from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from gatewright.policy.observe import MOST_OBSERVE_S
from gatewright_gui.pages.servers.server_dialogs import FORM, ObserveDialog, moment_words, read_moment
from gatewright_gui.window.main_window import MainWindow
from tests.gui.servers.test_page import can_press, page_of, press, told
from tests.gui.session.opened import demo, opened_window, settled, until

LEFT, DAY_S = Qt.MouseButton.LeftButton, 86_400.0
ROUNDS = "operator", "calendar", {"command": "list_rounds"}


@pytest.fixture
async def window(tmp_path: Path) -> AsyncIterator[MainWindow]:
    async with opened_window(demo(tmp_path), tmp_path) as made:
        made.show_page("servers")
        await settled(made)
        yield made


async def asked(window: MainWindow) -> ObserveDialog:
    press(page_of(window), "servers.observe")
    found: list[ObserveDialog] = []

    def is_open() -> bool:
        found[:] = [one for one in QApplication.topLevelWidgets() if isinstance(one, ObserveDialog) and one.isVisible()]
        return bool(found)

    await until(is_open)
    return found[0]


async def test_catalog_is_only_observed_until_a_moment_and_enforced_again(window: MainWindow) -> None:
    page, document = page_of(window), window.document
    assert str(document.workspace.decide(*ROUNDS).effect) == "ask"
    before = document.workspace.text()
    dialog = await asked(window)
    assert dialog.until.accessibleName() == "Until"
    assert "operator" in dialog.findChild(type(dialog.heading), "observe.agents").text()  # pyright: ignore[reportOptionalMemberAccess]
    QTest.mouseClick(dialog.span.button("1"), LEFT)
    QTest.keyClick(dialog.until, Qt.Key.Key_Return)
    await settled(window)

    (catalog,) = document.policy.catalogs
    assert catalog.observe_until_s is not None
    assert DAY_S - 120 < catalog.observe_until_s - time.time() <= DAY_S
    assert document.undo_stack.undoText() == "observe catalog station"
    assert "only observed" in page.detail.state.text
    assert f"Only observed until {moment_words(catalog.observe_until_s)}" in told(page)
    assert window.observe.isVisible()
    passed = document.workspace.decide(*ROUNDS)
    assert (str(passed.verdict), str(passed.effect)) == ("ask", "allow")
    press(page, "servers.enforce")
    await settled(window)
    assert document.workspace.text() == before
    assert str(document.workspace.decide(*ROUNDS).effect) == "ask"
    assert not window.observe.isVisible()
    window.undo()
    await settled(window)
    assert can_press(page, "servers.enforce")
    window.undo()
    await settled(window)
    assert document.workspace.text() == before


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "say the end as"),
        ("tomorrow", "say the end as"),
        ("2020-01-01 10:00", "is over"),
        ("2099-01-01 10:00", "more than 30 days"),
    ],
)
async def test_moment_that_cannot_be_taken_is_refused_in_the_dialog(window: MainWindow, text: str, why: str) -> None:
    dialog = await asked(window)
    dialog.until.setText(text)
    assert why in dialog.fault.text()
    assert not dialog.accept_button.isEnabled()
    QTest.keyClick(dialog.until, Qt.Key.Key_Return)
    assert dialog.isVisible()
    QTest.mouseClick(dialog.span.button("30"), LEFT)
    assert dialog.fault.text() == ""
    assert dialog.accept_button.isEnabled()
    QTest.keyClick(dialog, Qt.Key.Key_Escape)
    await settled(window)
    assert not window.document.is_dirty


@given(st.text(max_size=30) | st.datetimes().map(lambda at: at.strftime(FORM)))
def test_any_text_is_a_moment_within_thirty_days_or_refused(text: str) -> None:
    now_s = time.time()
    until_s, fault = read_moment(text, now_s)
    assert bool(fault) != (0 < until_s - now_s <= MOST_OBSERVE_S)


@given(st.integers(1, 30 * 24 * 60 - 1), st.datetimes(datetime(2025, 1, 1), datetime(2027, 1, 1)))  # noqa: DTZ001
def test_every_minute_of_the_next_thirty_days_is_read_as_it_is_shown(minutes: int, now: datetime) -> None:
    now_s = float(int(now.timestamp()) // 60 * 60)
    wanted_s = now_s + 60 * minutes
    assert read_moment(f" {moment_words(wanted_s)} ", now_s) == (wanted_s, "")
